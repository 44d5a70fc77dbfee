"""Budgets of corruption, shares of it, heavy tails in linear bandits, and late feedback.

See docs/reproductions/robust_frontier.md.
"""

from jaxbandits.papers.robust_frontier import (
    budgets,
    corrupted_regime,
    delay,
    heavy_linear,
    linear_budgets,
    shares,
)

STUDIES = {
    "budgets": budgets.STUDY,
    "corrupted-regime": corrupted_regime.STUDY,
    "linear-budgets": linear_budgets.STUDY,
    "heavy-linear": heavy_linear.STUDY,
    "shares": shares.STUDY,
    "delay": delay.STUDY,
}

"""Budgets of corruption, shares of it, heavy tails in linear bandits, and late feedback.

See docs/reproductions/robust_frontier.md.
"""

from jaxbandits.papers.robust_frontier import (
    corrupted_regime,
    corruption_budgets,
    heavy_linear,
    late_feedback,
    linear_budgets,
    shares,
)

STUDIES = {
    "budgets": corruption_budgets.STUDY,
    "corrupted-regime": corrupted_regime.STUDY,
    "linear-budgets": linear_budgets.STUDY,
    "heavy-linear": heavy_linear.STUDY,
    "shares": shares.STUDY,
    "delay": late_feedback.STUDY,
}

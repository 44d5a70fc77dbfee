"""Budgets of corruption, shares of it, heavy tails in linear bandits, and late feedback.

See docs/reproductions/robust_frontier.md.
"""

# figure -> its module
STUDIES = {
    "budgets": "corruption_budgets", "corrupted-regime": "corrupted_regime", "linear-budgets": "linear_budgets",
    "heavy-linear": "heavy_linear", "shares": "shares", "delay": "late_feedback",
}  # fmt: skip

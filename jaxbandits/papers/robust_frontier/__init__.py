"""Budgets of corruption, shares of it, heavy tails in linear bandits, and late feedback.

See docs/reproductions/robust_frontier.md.
"""

# figure -> its module, and which of its studies
STUDIES = {
    "budgets": "corruption_budgets", "corrupted-regime": "corruption_budgets:REGIME",
    "linear-budgets": "corruption_budgets:LINEAR",
    "heavy-linear": "heavy_linear", "shares": "shares", "delay": "late_feedback",
}  # fmt: skip

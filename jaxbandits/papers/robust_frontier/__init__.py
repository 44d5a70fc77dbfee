"""Budgets of corruption, shares of it, heavy tails in linear bandits, and late feedback.

See docs/reproductions/robust_frontier.md.
"""

# figure -> its module, and which of its studies
STUDIES = {
    "budgets": "budgets", "corrupted-regime": "budgets:REGIME",
    "linear-budgets": "budgets:LINEAR",
    "heavy-linear": "budgets:HEAVY", "shares": "shares", "delay": "late_feedback",
}  # fmt: skip

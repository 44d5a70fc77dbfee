"""Studies across the papers, see docs/reproductions/across.md."""

# figure -> its module
STUDIES = {
    "named-epsilon": "named_epsilon", "coverage": "coverage", "believed": "believed", "counting": "better_counting",
    "before-after": "before_after", "trust": "trust", "atlas": "atlas", "plain-thompson": "plain_thompson",
    "worst-case": "worst_case",
}  # fmt: skip

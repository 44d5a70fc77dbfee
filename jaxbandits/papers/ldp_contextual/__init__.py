"""Improved rate for locally differentially private linear bandits.

Figure 1, and which of its claims hold under which reading.
"""

# figure -> its module
STUDIES = {
    "figure-1": "figure_1", "printed-form": "printed_form", "map": "readings", "widths": "widths",
    "favourable": "favourable", "equal-budget": "equal_budget", "noise-reach": "noise_reach",
}  # fmt: skip

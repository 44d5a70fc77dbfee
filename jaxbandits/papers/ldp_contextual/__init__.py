"""Improved rate for locally differentially private linear bandits.

Figure 1, and which of its claims hold under which reading.
"""

# figure -> its module, and which of its studies
STUDIES = {
    "figure-1": "figure_1", "printed-form": "figure_1:PRINTED_FORM", "map": "readings", "widths": "figure_1:WIDE",
    "favourable": "favourable", "equal-budget": "equal_budget", "noise-reach": "noise_reach",
}  # fmt: skip

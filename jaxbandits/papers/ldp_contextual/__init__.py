"""Improved rate for locally differentially private linear bandits.

Figure 1, and which of its claims hold under which reading.
"""

from jaxbandits.papers.ldp_contextual import (
    equal_budget,
    favourable,
    figure_1,
    noise_reach,
    printed_form,
    readings,
    widths,
)

STUDIES = {
    "figure-1": figure_1.STUDY,
    "printed-form": printed_form.STUDY,
    "map": readings.STUDY,
    "widths": widths.STUDY,
    "favourable": favourable.STUDY,
    "equal-budget": equal_budget.STUDY,
    "noise-reach": noise_reach.STUDY,
}

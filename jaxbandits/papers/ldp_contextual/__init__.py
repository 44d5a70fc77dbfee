"""Improved rate for locally differentially private linear bandits.

Figure 1, and which of its claims hold under which reading.
"""

from jaxbandits.papers.ldp_contextual import equal_budget, figure_1, readings

STUDIES = {"figure-1": figure_1.STUDY, "map": readings.STUDY, "equal-budget": equal_budget.STUDY}

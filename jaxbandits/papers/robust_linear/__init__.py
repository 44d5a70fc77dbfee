"""Charisopoulos, Esfandiari and Mirrokni, Robust and private stochastic linear bandits (ICML 2023, arXiv 2304.11741).

The paper has no experiments and one figure of bounds: the instance and the sizes are ours.
"""

from jaxbandits.papers.robust_linear import both_models, breakdown, dimension, figure_1, printed_filter

STUDIES = {
    "regret": both_models.STUDY,
    "breakdown": breakdown.STUDY,
    "dimension": dimension.STUDY,
    "filter": printed_filter.STUDY,
    "figure-1": figure_1.STUDY,
}

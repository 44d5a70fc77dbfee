"""Wu, Zhou, Tao and Wang, On Private and Robust Bandits (arXiv 2302.02526).

The paper's own experiments could not be found: E1 to E4 are ours, see docs/reproductions/private_robust_mab.md.
"""

from jaxbandits.papers.private_robust_mab import (
    bernoulli,
    between_bounds,
    central_moments,
    moment_order,
    outliers,
    raw_moments,
)

STUDIES = {
    "raw-moments": raw_moments.STUDY,
    "central-moments": central_moments.STUDY,
    "bernoulli": bernoulli.STUDY,
    "moment-order": moment_order.STUDY,
    "bounds": between_bounds.STUDY,
    "outliers": outliers.STUDY,
}

"""Wu, Zhou, Tao and Wang, On Private and Robust Bandits (arXiv 2302.02526).

The paper's own experiments could not be found: E1 to E4 are ours, see docs/reproductions/private_robust_mab.md.
"""

# figure -> its module, and which of its studies
STUDIES = {
    "raw-moments": "raw_moments", "central-moments": "central_moments", "bernoulli": "bernoulli",
    "moment-order": "moment_order", "bounds": "raw_moments:BOUNDED", "outliers": "outliers",
}  # fmt: skip

"""Wu, Zhou, Tao and Wang, On Private and Robust Bandits (arXiv 2302.02526).

The paper's own experiments could not be found: E1 to E4 are ours, see docs/reproductions/private_robust_mab.md.
"""

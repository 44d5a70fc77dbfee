"""Wu, Zhou, Tao and Wang, On Private and Robust Bandits (arXiv 2302.02526)."""

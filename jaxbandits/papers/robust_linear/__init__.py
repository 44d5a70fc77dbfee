"""Charisopoulos, Esfandiari and Mirrokni, Robust and private stochastic linear bandits (ICML 2023, arXiv 2304.11741).

The paper has no experiments and one figure of bounds: the instance and the sizes are ours.
"""

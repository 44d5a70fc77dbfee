"""Charisopoulos, Esfandiari and Mirrokni, Robust and private stochastic linear bandits (arXiv 2304.11741)."""

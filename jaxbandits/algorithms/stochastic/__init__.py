"""Stochastic bandits: every arm pays from one law, plain and private."""

"""Budgets of corruption, shares of it, heavy tails in linear bandits, and late feedback.

See docs/reproductions/robust_frontier.md.
"""

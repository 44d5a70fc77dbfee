"""Budgets of corruption, shares of it, heavy tails in linear bandits, and late feedback."""

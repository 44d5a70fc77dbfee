"""Improved rate for locally differentially private linear bandits."""

"""Improved rate for locally differentially private linear bandits.

Figure 1, and which of its claims hold under which reading.
"""

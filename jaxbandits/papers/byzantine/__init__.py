"""Jadbabaie, Li, Qian and Tian, Byzantine-robust federated linear bandits.

The paper has no experiments: these are ours, see docs/reproductions/byzantine.md.
"""

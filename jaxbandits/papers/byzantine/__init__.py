"""Jadbabaie, Li, Qian and Tian, Byzantine-robust federated linear bandits.

The paper has no experiments: these are ours, see docs/reproductions/byzantine.md.
"""

# figure -> its module
STUDIES = {
    "isolated": "isolated", "rate": "rate", "price": "price", "corruption": "corruption",
    "episodes": "episode_lengths", "privacy": "calibrations", "attacks": "attacks", "aggregate": "aggregate",
}  # fmt: skip

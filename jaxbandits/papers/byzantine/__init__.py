"""Jadbabaie, Li, Qian and Tian, Byzantine-robust federated linear bandits.

The paper has no experiments: these are ours, see docs/reproductions/byzantine.md.
"""

# figure -> its module, and which of its studies
STUDIES = {
    "isolated": "regret:ISOLATED", "rate": "regret:GROWTH", "price": "price", "corruption": "regret:CORRUPTION",
    "episodes": "regret:EPISODES", "privacy": "calibrations", "attacks": "attacks", "aggregate": "aggregate",
}  # fmt: skip

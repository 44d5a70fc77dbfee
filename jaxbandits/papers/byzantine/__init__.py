"""Jadbabaie, Li, Qian and Tian, Byzantine-robust federated linear bandits.

The paper has no experiments: these are ours, see docs/reproductions/byzantine.md.
"""

from jaxbandits.papers.byzantine import attacks, corruption, episodes, isolated, privacy, rate

STUDIES = {
    "isolated": isolated.STUDY,
    "rate": rate.STUDY,
    "corruption": corruption.STUDY,
    "episodes": episodes.STUDY,
    "privacy": privacy.STUDY,
    "attacks": attacks.STUDY,
}

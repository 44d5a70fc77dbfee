"""Jadbabaie, Li, Qian and Tian, Byzantine-robust federated linear bandits.

The paper has no experiments: these are ours, see docs/reproductions/byzantine.md.
"""

from jaxbandits.papers.byzantine import (
    aggregate,
    attacks,
    calibrations,
    corruption,
    episode_lengths,
    isolated,
    price,
    rate,
)

STUDIES = {
    "isolated": isolated.STUDY,
    "rate": rate.STUDY,
    "price": price.STUDY,
    "corruption": corruption.STUDY,
    "episodes": episode_lengths.STUDY,
    "privacy": calibrations.STUDY,
    "attacks": attacks.STUDY,
    "aggregate": aggregate.STUDY,
}

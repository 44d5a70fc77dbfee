"""Linear bandits of many agents, some of which lie."""

from jaxbandits.algorithms.federated.byzantine_ucb import byzantine_ucb
from jaxbandits.algorithms.federated.isolated_linucb import isolated_linucb
from jaxbandits.algorithms.federated.oracle_linucb import oracle_linucb

__all__ = [
    "byzantine_ucb",
    "isolated_linucb",
    "oracle_linucb",
]

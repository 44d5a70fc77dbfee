"""Linear bandits whose arms are new at every play: one user a play, plain and private."""

from jaxbandits.algorithms.contextual.adac_oful import adac_oful
from jaxbandits.algorithms.contextual.bandit_combiner import bandit_combiner
from jaxbandits.algorithms.contextual.cw_oful import cw_oful
from jaxbandits.algorithms.contextual.doubling import doubling
from jaxbandits.algorithms.contextual.epsilon_greedy import epsilon_greedy
from jaxbandits.algorithms.contextual.hvt_linucb import hvt_linucb
from jaxbandits.algorithms.contextual.jdp_linucb import jdp_linucb
from jaxbandits.algorithms.contextual.ldp_linucb import ldp_linucb
from jaxbandits.algorithms.contextual.linear_thompson import linear_thompson
from jaxbandits.algorithms.contextual.linucb import linucb
from jaxbandits.algorithms.contextual.online_ucb import online_ucb
from jaxbandits.algorithms.contextual.robust_oful import robust_oful
from jaxbandits.algorithms.contextual.shuffle_linucb import shuffle_linucb

__all__ = [
    "linucb",
    "ldp_linucb",
    "jdp_linucb",
    "adac_oful",
    "cw_oful",
    "hvt_linucb",
    "robust_oful",
    "shuffle_linucb",
    "linear_thompson",
    "epsilon_greedy",
    "online_ucb",
    "doubling",
    "bandit_combiner",
]

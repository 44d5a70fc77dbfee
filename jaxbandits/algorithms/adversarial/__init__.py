"""Adversarial bandits and experts: losses may be chosen by an opponent."""

from jaxbandits.algorithms.adversarial.bandit_to_experts import bandit_to_experts
from jaxbandits.algorithms.adversarial.batched_exp4 import batched_exp4
from jaxbandits.algorithms.adversarial.delayed import delayed
from jaxbandits.algorithms.adversarial.exp3 import exp3
from jaxbandits.algorithms.adversarial.exp3_ix import exp3_ix
from jaxbandits.algorithms.adversarial.exp4 import exp4
from jaxbandits.algorithms.adversarial.ftpl import ftpl
from jaxbandits.algorithms.adversarial.htinf import htinf
from jaxbandits.algorithms.adversarial.hybrid_tsallis_inf import hybrid_tsallis_inf
from jaxbandits.algorithms.adversarial.ldp_exp3 import ldp_exp3
from jaxbandits.algorithms.adversarial.local_exp4 import local_exp4
from jaxbandits.algorithms.adversarial.private_batched import private_batched
from jaxbandits.algorithms.adversarial.tsallis_inf import tsallis_inf

__all__ = [
    "exp3",
    "exp3_ix",
    "tsallis_inf",
    "htinf",
    "ftpl",
    "private_batched",
    "ldp_exp3",
    "bandit_to_experts",
    "exp4",
    "local_exp4",
    "batched_exp4",
    "delayed",
    "hybrid_tsallis_inf",
]

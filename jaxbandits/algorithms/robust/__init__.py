"""Heavy tails and contaminated rewards, plain and private."""

from jaxbandits.algorithms.robust.cr_ucb import cr_ucb
from jaxbandits.algorithms.robust.crimed import crimed
from jaxbandits.algorithms.robust.dprse import dprse
from jaxbandits.algorithms.robust.huber_ucb import huber_ucb
from jaxbandits.algorithms.robust.local_robust_elimination import local_robust_elimination
from jaxbandits.algorithms.robust.prm_elimination import prm_elimination
from jaxbandits.algorithms.robust.prm_thompson import prm_thompson
from jaxbandits.algorithms.robust.prm_ucb import prm_ucb
from jaxbandits.algorithms.robust.robust_ucb import robust_ucb

__all__ = [
    "prm_elimination",
    "prm_ucb",
    "prm_thompson",
    "dprse",
    "local_robust_elimination",
    "robust_ucb",
    "huber_ucb",
    "cr_ucb",
    "crimed",
]

"""Algorithm factories: keyword arguments in, `protocol.Algorithm` out. One algorithm a file."""

from jaxbandits.algorithms.adap_kl_ucb import adap_kl_ucb
from jaxbandits.algorithms.adap_ucb import adap_ucb
from jaxbandits.algorithms.bandit_combiner import bandit_combiner
from jaxbandits.algorithms.bandit_to_experts import bandit_to_experts
from jaxbandits.algorithms.batched_exp4 import batched_exp4
from jaxbandits.algorithms.bogunovic_elimination import bogunovic_elimination
from jaxbandits.algorithms.byzantine_ucb import byzantine_ucb
from jaxbandits.algorithms.cr_ucb import cr_ucb
from jaxbandits.algorithms.doubling import doubling
from jaxbandits.algorithms.dp_se import dp_se
from jaxbandits.algorithms.dprse import dprse
from jaxbandits.algorithms.epsilon_greedy import epsilon_greedy
from jaxbandits.algorithms.exp3 import exp3
from jaxbandits.algorithms.exp3_ix import exp3_ix
from jaxbandits.algorithms.exp4 import exp4
from jaxbandits.algorithms.ftpl import ftpl
from jaxbandits.algorithms.htinf import htinf
from jaxbandits.algorithms.huber_ucb import huber_ucb
from jaxbandits.algorithms.isolated_linucb import isolated_linucb
from jaxbandits.algorithms.jdp_linucb import jdp_linucb
from jaxbandits.algorithms.kl_ucb import kl_ucb
from jaxbandits.algorithms.ldp_exp3 import ldp_exp3
from jaxbandits.algorithms.ldp_linucb import ldp_linucb
from jaxbandits.algorithms.ldp_ucb import ldp_ucb
from jaxbandits.algorithms.linear_thompson import linear_thompson
from jaxbandits.algorithms.linucb import linucb
from jaxbandits.algorithms.local_exp4 import local_exp4
from jaxbandits.algorithms.median_elimination import median_elimination
from jaxbandits.algorithms.moss import moss
from jaxbandits.algorithms.online_ucb import online_ucb
from jaxbandits.algorithms.oracle_linucb import oracle_linucb
from jaxbandits.algorithms.phased_elimination import phased_elimination
from jaxbandits.algorithms.private_batched import private_batched
from jaxbandits.algorithms.private_elimination import private_elimination
from jaxbandits.algorithms.prm_elimination import prm_elimination
from jaxbandits.algorithms.prm_thompson import prm_thompson
from jaxbandits.algorithms.prm_ucb import prm_ucb
from jaxbandits.algorithms.robust_elimination import robust_elimination
from jaxbandits.algorithms.robust_ucb import robust_ucb
from jaxbandits.algorithms.shuffle_linucb import shuffle_linucb
from jaxbandits.algorithms.successive_elimination import successive_elimination
from jaxbandits.algorithms.thompson import thompson
from jaxbandits.algorithms.trimmed_elimination import trimmed_elimination
from jaxbandits.algorithms.tsallis_inf import tsallis_inf
from jaxbandits.algorithms.ucb1 import ucb1
from jaxbandits.algorithms.uniform import uniform

__all__ = [
    "uniform",
    "ucb1",
    "thompson",
    "kl_ucb",
    "moss",
    "successive_elimination",
    "ldp_ucb",
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
    "linucb",
    "ldp_linucb",
    "jdp_linucb",
    "shuffle_linucb",
    "linear_thompson",
    "epsilon_greedy",
    "online_ucb",
    "doubling",
    "bandit_combiner",
    "robust_elimination",
    "phased_elimination",
    "bogunovic_elimination",
    "private_elimination",
    "median_elimination",
    "trimmed_elimination",
    "prm_elimination",
    "isolated_linucb",
    "oracle_linucb",
    "byzantine_ucb",
    "dp_se",
    "adap_ucb",
    "adap_kl_ucb",
    "dprse",
    "prm_ucb",
    "prm_thompson",
    "robust_ucb",
    "huber_ucb",
    "cr_ucb",
]

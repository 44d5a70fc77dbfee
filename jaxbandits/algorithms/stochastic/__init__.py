"""Stochastic bandits: every arm pays from one law, plain and private."""

from jaxbandits.algorithms.stochastic.adac_ucb import adac_ucb
from jaxbandits.algorithms.stochastic.adap_ucb import adap_kl_ucb, adap_ucb
from jaxbandits.algorithms.stochastic.barbar import barbar
from jaxbandits.algorithms.stochastic.dist_elimination import dist_elimination
from jaxbandits.algorithms.stochastic.dp_klucb import dp_imed, dp_klucb
from jaxbandits.algorithms.stochastic.dp_se import dp_se
from jaxbandits.algorithms.stochastic.dp_ts_ucb import dp_ts_ucb
from jaxbandits.algorithms.stochastic.gdp_thompson import gdp_thompson
from jaxbandits.algorithms.stochastic.gradient_bandit import gradient_bandit
from jaxbandits.algorithms.stochastic.kl_ucb import kl_ucb
from jaxbandits.algorithms.stochastic.lazy_dp_ts import lazy_dp_ts
from jaxbandits.algorithms.stochastic.ldp_ucb import ldp_ucb
from jaxbandits.algorithms.stochastic.moss import moss
from jaxbandits.algorithms.stochastic.multilayer_elimination import multilayer_elimination
from jaxbandits.algorithms.stochastic.stopping_elimination import stopping_elimination
from jaxbandits.algorithms.stochastic.successive_elimination import successive_elimination
from jaxbandits.algorithms.stochastic.thompson import thompson
from jaxbandits.algorithms.stochastic.ucb1 import ucb1
from jaxbandits.algorithms.stochastic.uniform import uniform

__all__ = [
    "uniform",
    "ucb1",
    "thompson",
    "gradient_bandit",
    "kl_ucb",
    "moss",
    "successive_elimination",
    "ldp_ucb",
    "dp_se",
    "adap_ucb",
    "adap_kl_ucb",
    "dp_klucb",
    "dp_imed",
    "adac_ucb",
    "dist_elimination",
    "stopping_elimination",
    "lazy_dp_ts",
    "dp_ts_ucb",
    "gdp_thompson",
    "multilayer_elimination",
    "barbar",
]

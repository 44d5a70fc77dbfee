"""Every private mechanism of the five papers that this package has, at one named epsilon."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from jaxbandits import algorithms as a
from jaxbandits import catalogue
from jaxbandits.protocol import Algorithm, Environment

DELTA = 1e-3  # of every claim that has one, but where a case says otherwise
NAMED = (0.1, 1.0, 10.0)


class Mechanism(NamedTuple):
    """A published mechanism, as a case of the catalogue."""

    algorithm: str  # its name in the catalogue
    changes: Callable[[float], dict[str, Any]]  # named epsilon -> arguments that replace the catalogue's
    environment: Callable[[], Environment] | None = None  # the rewards it is published for, where not the catalogue's

    def built(self, epsilon: float) -> tuple[Algorithm, Environment]:
        """The algorithm that is given this epsilon, and where it plays."""
        with warnings.catch_warnings():  # of what the study's table is about to say
            warnings.simplefilter("ignore", UserWarning)
            algorithm, environment = catalogue.case(self.algorithm, **self.changes(epsilon))
        return algorithm, environment if self.environment is None else self.environment()


def _pure(name: str, **more: Any) -> Mechanism:
    return Mechanism(name, lambda epsilon: {"epsilon": epsilon, **more})


def _approximate(name: str, **more: Any) -> Mechanism:
    return _pure(name, delta=DELTA, **more)


def _batches(epsilon: float) -> dict[str, Any]:
    """Above an epsilon of 1 the theorem has no window, and one play is the shortest."""
    return {"epsilon": epsilon} | ({"window": 1} if epsilon > 1 else {})


def _user(epsilon: float, **more: Any) -> Any:
    return partial(a.online_ucb, epsilon=epsilon, delta=DELTA, learner="ogd", **more)


SUB_GAUSSIAN = partial(catalogue.linear, noise="gaussian")

LOSSES = {
    "HTINF in batches": Mechanism("private_batched", _batches),
    "LDP-EXP3": _pure("ldp_exp3"),
    "experts as arms": Mechanism(
        "bandit_to_experts", lambda epsilon: {"base": partial(a.private_batched, base=a.htinf, **_batches(epsilon))}
    ),
    "local EXP4": _pure("local_exp4"),
    "batched EXP4": _approximate("batched_exp4"),
}  # Asi et al.
REWARDS = {
    "PRM elimination": _pure("prm_elimination"),
    "PRM-UCB": _pure("prm_ucb"),
    "PRM-TS": _pure("prm_thompson"),
    "DP-SE": _pure("dp_se"),
    "AdaP-UCB": _pure("adap_ucb"),
    "AdaP-KLUCB": _pure("adap_kl_ucb"),
    "DPRSE": _pure("dprse"),
    "LDP-UCB": _pure("ldp_ucb"),
    "LDP-UCB, flipped bits": _pure("ldp_ucb", mechanism="randomized_response"),
}  # Wu et al. and those it compares with
LINEAR = {
    "M1, sub-Gaussian rewards": Mechanism("robust_elimination", lambda epsilon: {"epsilon": epsilon}, SUB_GAUSSIAN),
    "M1, rewards in [-1, 1]": _pure("robust_elimination"),
    "M2, sub-Gaussian rewards": Mechanism(
        "robust_elimination", lambda epsilon: {"epsilon": epsilon, "model": "M2"}, SUB_GAUSSIAN
    ),
    "M2, rewards in [-1, 1]": _pure("robust_elimination", model="M2"),
    "phased elimination": _pure("phased_elimination"),
    "central, Laplace": _pure("private_elimination", mechanism="laplace", delta=None, num_batches=3),
    "DP-DPE, Gaussian": _approximate("private_elimination"),
    "bucket medians": _pure("median_elimination"),
    "trimmed means": _pure("trimmed_elimination"),
}  # Charisopoulos et al. and those it compares with; rewards lie in [-1, 1] where the name does not say otherwise
MESSAGES = {
    "Byzantine-UCB, printed": _approximate("byzantine_ucb", calibration="paper"),
    "Byzantine-UCB, zCDP": _approximate("byzantine_ucb", calibration="zcdp"),
    "Byzantine-UCB, exact": _approximate("byzantine_ucb"),
    "Byzantine-UCB, increments": _approximate("byzantine_ucb", privacy="increment"),
}  # Jadbabaie et al.
USERS = {
    "OnlineUCB, printed": _approximate("online_ucb", calibration="paper"),
    "OnlineUCB, published code": _approximate("online_ucb", calibration="reference"),
    "OnlineUCB, exact": _approximate("online_ucb"),
    "OnlineUCB, reward only, printed": _approximate("online_ucb", calibration="paper", private_features=False),
    "OnlineUCB, reward only, exact": _approximate("online_ucb", private_features=False),
    "doubling, exact": Mechanism("doubling", lambda epsilon: {"base": _user(epsilon)}),
    "combiner, exact": Mechanism(
        "bandit_combiner", lambda epsilon: {
            "epsilon": epsilon, "bases": [_user(epsilon), partial(a.doubling, base=_user(epsilon))],
        },
    ),
    "LDP-LinUCB": _approximate("ldp_linucb"),
    "JDP-LinUCB, published tree": _approximate("jdp_linucb", tree="simplified"),
    "JDP-LinUCB, binary tree": _approximate("jdp_linucb"),
    "SDP, amplified": _approximate("shuffle_linucb", protocol="amplified", window=20),
    "SDP, vector": _approximate("shuffle_linucb", window=20),
}  # the locally private paper and those it compares with  # fmt: skip

GROUPS = {"rewards": LOSSES | REWARDS, "linear": LINEAR | MESSAGES, "users": USERS}

# Calibrations of this package, which no paper claims anything about.
OURS = (
    "Byzantine-UCB, zCDP", "Byzantine-UCB, exact", "Byzantine-UCB, increments", "OnlineUCB, exact",
    "OnlineUCB, reward only, exact", "JDP-LinUCB, binary tree", "doubling, exact", "combiner, exact", "bucket medians",
    "trimmed means",
)  # fmt: skip
# The classic formula for Gaussian noise where its publication restricts epsilon to where it is proved, up to 1.
PROVED_TO_1 = ("DP-DPE, Gaussian",)

"""Every private mechanism of the five papers that this package has, at one named epsilon.

Each names its record in provenance.toml, from which follow what the study may hold against it and up to which epsilon.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from jaxbandits import algorithms as a
from jaxbandits import catalogue, provenance
from jaxbandits.protocol import Algorithm, Environment

DELTA = 1e-3  # of every claim that has one, but where a case says otherwise
WINDOW = 20  # users of a batch in the shuffle model, as in the code of Chowdhury and Zhou
NAMED = (0.1, 1.0, 10.0)


class Mechanism(NamedTuple):
    """A mechanism as a case of the catalogue, and whose it is."""

    source: provenance.Record
    changes: Callable[[float], dict[str, Any]]  # named epsilon -> arguments that replace the catalogue's
    environment: Callable[[], Environment] | None = None  # the rewards it is published for, where not the catalogue's

    def built(self, epsilon: float) -> tuple[Algorithm, Environment]:
        """The algorithm that is given this epsilon, and where it plays."""
        settings = {**self.source.settings, **self.changes(epsilon)}
        with warnings.catch_warnings():  # of what the study's table is about to say
            warnings.simplefilter("ignore", UserWarning)
            algorithm, environment = catalogue.case(self.source.algorithm, **settings)
        return algorithm, environment if self.environment is None else self.environment()


def _mechanism(record: str, changes: Callable[[float], dict[str, Any]], *environment: Any) -> Mechanism:
    return Mechanism(provenance.records()[record], changes, *environment)


def _pure(record: str, **more: Any) -> Mechanism:
    return _mechanism(record, lambda epsilon: {"epsilon": epsilon, **more})


def _approximate(record: str, **more: Any) -> Mechanism:
    return _pure(record, delta=DELTA, **more)


def _batches(epsilon: float) -> dict[str, Any]:
    """Above an epsilon of 1 the theorem has no window, and one play is the shortest."""
    return {"epsilon": epsilon} | ({"window": 1} if epsilon > 1 else {})


def _user(epsilon: float, **more: Any) -> Any:
    return partial(a.online_ucb, epsilon=epsilon, delta=DELTA, calibration="exact", learner="ogd", **more)


SUB_GAUSSIAN = partial(catalogue.linear, noise="gaussian")

LOSSES = {
    "HTINF in batches": _mechanism("private_batched", _batches),
    "LDP-EXP3": _pure("ldp_exp3"),
    "experts as arms": _mechanism(
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
    "M1, sub-Gaussian rewards": _mechanism("robust_elimination", lambda epsilon: {"epsilon": epsilon}, SUB_GAUSSIAN),
    "M1, rewards in [-1, 1]": _pure("robust_elimination"),
    "M2, sub-Gaussian rewards": _mechanism(
        "robust_elimination", lambda epsilon: {"epsilon": epsilon, "model": "M2"}, SUB_GAUSSIAN
    ),
    "M2, rewards in [-1, 1]": _pure("robust_elimination", model="M2"),
    "phased elimination": _pure("phased_elimination"),
    "central, Laplace": _pure("private_elimination_laplace", delta=None, num_batches=3),
    "DP-DPE, Gaussian": _approximate("private_elimination_gaussian"),
    "bucket medians": _pure("median_elimination"),
    "trimmed means": _pure("trimmed_elimination"),
}  # Charisopoulos et al. and those it compares with; rewards lie in [-1, 1] where the name does not say otherwise
MESSAGES = {
    "Byzantine-UCB, reconstructed": _approximate("byzantine_ucb_reconstructed"),
    "Byzantine-UCB, zCDP": _approximate("byzantine_ucb_ours", calibration="zcdp"),
    "Byzantine-UCB, exact": _approximate("byzantine_ucb_ours", calibration="exact"),
    "Byzantine-UCB, increments": _approximate("byzantine_ucb_ours", calibration="exact", privacy="increment"),
}  # Jadbabaie et al.
USERS = {
    "OnlineUCB, printed": _approximate("online_ucb"),
    "OnlineUCB, noise of the code's LDP": _approximate("online_ucb_comparator_noise"),
    "OnlineUCB, exact": _approximate("online_ucb_ours", calibration="exact"),
    "OnlineUCB, reward only, classic": _approximate("online_ucb_ours", calibration="paper", private_features=False),
    "OnlineUCB, reward only, exact": _approximate("online_ucb_ours", calibration="exact", private_features=False),
    "doubling, exact": _mechanism("doubling", lambda epsilon: {"base": _user(epsilon)}),
    "combiner, exact": _mechanism(
        "bandit_combiner", lambda epsilon: {
            "epsilon": epsilon, "bases": [_user(epsilon), partial(a.doubling, base=_user(epsilon))],
        },
    ),
    "LDP-LinUCB, code": _approximate("ldp_linucb_code"),
    "LDP-LinUCB, constants recalled": _approximate("ldp_linucb"),
    "JDP-LinUCB, code": _approximate("jdp_linucb_code"),
    "JDP-LinUCB, code's scale, binary tree": _approximate("jdp_linucb_binary"),
    "JDP-LinUCB, constants recalled": _approximate("jdp_linucb"),
    "SDP-Amp, code": _approximate("shuffle_linucb_code", protocol="amplified", window=WINDOW),
    "SDP-Amp, constants recalled": _approximate("shuffle_linucb", window=WINDOW),
    "SDP-Vec, code": _approximate("shuffle_linucb_code", protocol="vector", window=WINDOW),
}  # the locally private paper and those it compares with; code: that of Chowdhury and Zhou  # fmt: skip

GROUPS = {"rewards": LOSSES | REWARDS, "linear": LINEAR | MESSAGES, "users": USERS}

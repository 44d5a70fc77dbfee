"""What a run spends, release by release: `jb.privacy.ledger`, and the table of all private algorithms."""

import html
import math
import warnings
from typing import NamedTuple

import pandas as pd

from jaxbandits import catalogue
from jaxbandits.mechanisms.composition import SIMULATED, Event, claimed_epsilon, compose
from jaxbandits.protocol import Algorithm
from jaxbandits.selection import markdown as cells
from jaxbandits.sweeps.assumptions import overspent
from jaxbandits.sweeps.grid import signature_of
from jaxbandits.sweeps.simulate import built_parts

__all__ = ["Ledger", "ledger", "markdown", "table"]


class Ledger(NamedTuple):
    """The releases that one unit's data enter, and what they cost together. Prints as a table."""

    events: tuple[Event, ...]
    epsilon: float
    delta: float
    algorithm: str = ""
    model: str = ""  # "local" | "central" | "shuffle" | "federated" | "none"
    unit: str = ""  # what neighbouring inputs differ in

    def rows(self) -> pd.DataFrame:
        """A row a kind of release; `epsilon` of one, at `delta` where it has Gaussian noise."""
        rows = [
            {
                "release": event.what, "noise": event.mechanism.replace("_", " "), "sensitivity": event.sensitivity,
                "scale": event.scale, "times": event.times, "epsilon": _of_one(event, self.delta),
            }
            for event in self.events
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["release", "noise", "sensitivity", "scale", "times", "epsilon"])

    def _said(self) -> str:
        if self.model == "none":
            return f"{self.algorithm}: no guarantee"
        together = f"epsilon = {self.epsilon:.4g}, delta = {self.delta:.3g}"
        return (
            f"{self.algorithm}, {self.model} model, neighbours differ in one {self.unit.replace('_', ' ')}: {together}"
        )

    def __repr__(self) -> str:
        lines = [self._said()]
        if self.events:
            lines += self.rows().to_string(index=False, float_format="{:.4g}".format).splitlines()
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = self.rows().to_html(index=False, float_format="{:.4g}".format)
        return f"<p>{html.escape(self._said())}</p>{rows}<p><small>{html.escape(SIMULATED)}</small></p>"


def _of_one(event: Event, delta: float) -> float:
    if event.mechanism != "gaussian":
        return event.epsilon
    return compose([event._replace(times=1)], delta)[0] if delta > 0 else math.inf


def ledger(algorithm, environment=None) -> Ledger:
    """What a run of `algorithm` spends of one unit's privacy.

    algorithm: a built algorithm, or a factory (a partial with its horizon; with `environment`, what that fixes is filled in). environment:
    a called part or a factory of one; rewards that it pays beyond those a guarantee is for make epsilon and the sensitivities infinite.
    Without it they are taken to keep the guarantee's bound. An algorithm without a guarantee has no events and epsilon infinite.
    Noise in floating point simulates the mechanisms, see `docs/privacy.md`. Raises ValueError where the two do not fit.

    >>> import jaxbandits as jb
    >>> jb.privacy.ledger(jb.algorithms.private_elimination(actions=[[1, 0], [0, 1]], horizon=1000, epsilon=0.5, num_batches=3))
    private_elimination, central model, neighbours differ in one reward: epsilon = 0.5, delta = 0
                                        release   noise  sensitivity  scale  times  epsilon
     sum by arm of a batch's rewards in [-1, 1] laplace            2      4      1      0.5
    """
    algorithm, environment = built_parts(algorithm, environment)
    claim, params = algorithm.guarantee, algorithm.params
    epsilon, delta = map(float, claim.spend(params))
    events = tuple(claim.events(params))
    if not events and claim.model != "none" and epsilon > 0:  # declared as a whole
        events = (Event("other", "all that is seen", math.nan, math.nan, 1, epsilon, delta),)
    if environment is not None and overspent(algorithm, environment):
        events = tuple(event._replace(sensitivity=math.inf, epsilon=math.inf) for event in events)
        epsilon, delta = math.inf, 0.0
    return Ledger(events, epsilon, delta, algorithm.version[0], claim.model, claim.unit)


_PAPERS = {
    "Asi et al. 2025": ("private_batched", "ldp_exp3", "bandit_to_experts", "local_exp4", "batched_exp4"),
    "Wu et al. 2023": (
        "prm_elimination", "prm_ucb", "prm_thompson", "dp_se", "adap_ucb", "adap_kl_ucb", "dprse", "ldp_ucb",
    ),
    "Robust linear bandits": (
        "robust_elimination", "phased_elimination", "private_elimination", "median_elimination", "trimmed_elimination",
    ),
    "Byzantine-robust federated bandits": ("byzantine_ucb",),
    "Locally private linear bandits": (
        "online_ucb", "bandit_combiner", "doubling", "ldp_linucb", "jdp_linucb", "shuffle_linucb", "linear_thompson",
        "epsilon_greedy",
    ),
}  # fmt: skip


def _paper(name: str) -> str:
    """The paper of an algorithm, or the one that compares with it."""
    return next((paper for paper, names in _PAPERS.items() if name in names), "")


def table() -> pd.DataFrame:
    """Every private algorithm of the catalogue: the budget asked for, what its published noise delivers, and what ours does.

    `printed`: epsilon of `calibration="paper"` where there is that choice, on the paper's rewards: infinite where Laplace or Gaussian noise
    is put on unbounded ones. `here`: of the defaults, on rewards within the guarantee's bound.

    >>> table().columns.tolist()
    ['paper', 'algorithm', 'model', 'unit', 'claimed', 'printed', 'here', 'delta']
    """
    rows = []
    for name, example in catalogue.ALGORITHMS.items():
        here = catalogue.case(name)[0]
        claim = here.guarantee
        if claim.model == "none":
            continue
        printed = here
        if "calibration" in signature_of(example.algorithm)[0]:
            with warnings.catch_warnings():  # of what is about to be told
                warnings.simplefilter("ignore", UserWarning)
                printed = catalogue.case(name, calibration="paper")[0]
        spent = ledger(printed).epsilon if math.isinf(claim.bound) else math.inf
        epsilon, delta = here.guarantee.spend(here.params)
        rows.append({
            "paper": _paper(name), "algorithm": name, "model": claim.model, "unit": claim.unit, "claimed": asked(here),
            "printed": spent, "here": float(epsilon), "delta": float(delta),
        })  # fmt: skip
    order = ["", *_PAPERS]
    return pd.DataFrame(rows).sort_values(
        "paper", key=lambda names: names.map(order.index), kind="stable", ignore_index=True
    )


def asked(algorithm: Algorithm) -> float:
    """The epsilon that an algorithm, or what it wraps, was given; NaN for one that names none."""
    epsilon = claimed_epsilon(algorithm)
    return math.nan if epsilon is None else epsilon


def markdown(frame: pd.DataFrame) -> str:
    """`table()` as in the documentation.

    >>> print(markdown(table().head(1)))
    | paper | algorithm | model | neighbours differ in one | claimed ε | as printed | here | δ here |
    |---|---|---|---|---:|---:|---:|---:|
    | Asi et al. 2025 | `private_batched` | central | loss vector | 0.2 | 0.2 | 0.2 | 0 |
    <BLANKLINE>
    """
    rows = [["paper", "algorithm", "model", "neighbours differ in one", "claimed ε", "as printed", "here", "δ here"]]
    for row in frame.itertuples():
        printed = "∞" if math.isinf(row.printed) else f"{row.printed:.4g}"
        unit = row.unit.replace("_", " ")
        spent = [f"{row.claimed:.4g}", printed, f"{row.here:.4g}", f"{row.delta:.3g}"]
        rows.append([row.paper, f"`{row.algorithm}`", row.model, unit, *spent])
    return f"{cells(rows, right=4)}\n"

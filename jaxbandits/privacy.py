"""What a run spends, release by release: `jb.privacy.ledger`, and the table of all private algorithms."""

from __future__ import annotations

import html
import math
import warnings
from typing import TYPE_CHECKING, NamedTuple

from jaxbandits import catalogue
from jaxbandits.mechanisms.composition import SIMULATED, Event, claimed_epsilon, compose, gdp, zcdp
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.selection import markdown as cells
from jaxbandits.sweeps.grid import signature_of
from jaxbandits.sweeps.simulate import built_parts
from jaxbandits.sweeps.spent import overspent, spent
from jaxbandits.typing import AlgorithmFactory, EnvironmentFactory

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ledger", "ledger", "markdown", "table"]


class Ledger(NamedTuple):
    """The releases that one unit's data enter, and what they cost together. Prints as a table."""

    # the releases, each with its mechanism, its sensitivity, its noise and how often a unit enters it
    events: tuple[Event, ...]
    # what they spend together; infinite where there is no guarantee
    epsilon: float
    delta: float
    # the algorithm's name
    algorithm: str = ""
    # "local" | "central" | "shuffle" | "federated" | "none"
    model: str = ""
    # what neighbouring inputs differ in: "loss_vector" | "reward" | "user" | "message"
    unit: str = ""

    @property
    def rho(self) -> float:
        """What they cost together as zero-concentrated privacy; inf where they have none."""
        return zcdp(self.events) if self.epsilon < math.inf else math.inf

    @property
    def g(self) -> float:
        """What they cost together as Gaussian privacy; inf where noise is not Gaussian."""
        return gdp(self.events) if self.epsilon < math.inf else math.inf

    def rows(self) -> pd.DataFrame:
        """A row for each kind of release; `epsilon` is that of one release, at `delta` where it has Gaussian noise."""
        import pandas as pd

        rows = [
            {
                "release": event.what, "noise": event.mechanism.replace("_", " "), "sensitivity": event.sensitivity,
                "scale": event.scale, "times": event.times, "epsilon": _of_one(event, self.delta),
            }
            for event in self.events
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["release", "noise", "sensitivity", "scale", "times", "epsilon"])

    def _summary(self) -> str:
        if self.model == "none":
            return f"{self.algorithm}: no guarantee"
        together = f"epsilon = {self.epsilon:.4g}, delta = {self.delta:.3g}"
        for name, cost in (("rho of zCDP", self.rho), ("g of Gaussian privacy", self.g)):
            together += f", {name} = {cost:.4g}" if 0 < cost < math.inf else ""
        return (
            f"{self.algorithm}, {self.model} model, neighbours differ in one {self.unit.replace('_', ' ')}: {together}"
        )

    def __repr__(self) -> str:
        lines = [self._summary()]
        if self.events:
            lines += self.rows().to_string(index=False, float_format="{:.4g}".format).splitlines()
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = self.rows().to_html(index=False, float_format="{:.4g}".format)
        return f"<p>{html.escape(self._summary())}</p>{rows}<p><small>{html.escape(SIMULATED)}</small></p>"


def _of_one(event: Event, delta: float) -> float:
    if event.mechanism != "gaussian":
        return event.epsilon
    return compose([event._replace(times=1)], delta)[0] if delta > 0 else math.inf


def ledger(
    algorithm: Algorithm | AlgorithmFactory, environment: Environment | EnvironmentFactory | None = None
) -> Ledger:
    """What a run of an algorithm spends of one unit's privacy, release by release.

    Parameters
    ----------
    algorithm : Algorithm or factory
        A built algorithm, or a factory (a partial with its horizon); with `environment`, what that fixes is filled in.
    environment : Environment or factory, optional
        Where it plays. Rewards that it pays beyond those a guarantee is for make epsilon and the sensitivities
        infinite. Without it, rewards are taken to keep within the guarantee's bound.

    Returns
    -------
    Ledger
        The releases and what they cost together. An algorithm without a guarantee has no releases and epsilon infinite.

    Raises
    ------
    ValueError
        Where the algorithm and the environment do not fit.

    Notes
    -----
    Noise in floating point simulates the mechanisms, see `docs/privacy.md`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> algorithms, actions = jb.algorithms, [[1, 0], [0, 1]]
    >>> jb.privacy.ledger(algorithms.private_elimination(actions=actions, horizon=1000, epsilon=0.5, num_batches=3))
    private_elimination, central model, neighbours differ in one reward: epsilon = 0.5, delta = 0, rho of zCDP = 0.125
                                        release   noise  sensitivity  scale  times  epsilon
     sum by arm of a batch's rewards in [-1, 1] laplace            2      4      1      0.5
    """
    algorithm, environment = built_parts(algorithm, environment)
    claim, params = algorithm.guarantee, algorithm.params
    _, epsilon, delta = spent(algorithm, None)
    events = tuple(claim.events(params))
    if not events and claim.model != "none" and epsilon > 0:  # declared as a whole
        whole = Event(
            mechanism="other", what="all that is seen", sensitivity=math.nan, scale=math.nan, times=1, epsilon=epsilon,
            delta=delta,
        )  # fmt: skip
        events = (whole,)
    if environment is not None and overspent(algorithm, environment):
        events = tuple(event._replace(sensitivity=math.inf, epsilon=math.inf) for event in events)
        epsilon, delta = math.inf, 0.0
    return Ledger(
        events=events, epsilon=epsilon, delta=delta, algorithm=algorithm.version[0], model=claim.model, unit=claim.unit
    )


_PAPERS = {
    "Asi et al. 2025": ("private_batched", "ldp_exp3", "bandit_to_experts", "local_exp4", "batched_exp4"),
    "Wu et al. 2023": (
        "prm_elimination", "prm_ucb", "prm_thompson", "dp_se", "adap_ucb", "adap_kl_ucb", "dprse", "ldp_ucb",
    ),
    "Azize et al. 2025": ("dp_klucb", "dp_imed"),
    "Hu and Hegde 2022": ("lazy_dp_ts",),
    "Hu et al. 2025": ("dp_ts_ucb",),
    "Ou et al. 2024": ("gdp_thompson",),
    "Azize and Basu 2023": ("adac_ucb", "adac_gope", "adac_oful"),
    "Chowdhury and Zhou 2023": ("dist_elimination",),
    "Zhou and Zhang 2024 (setting)": ("local_robust_elimination",),
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
    """Every private algorithm of the catalogue: the budget asked for, and what published and own noise deliver.

    Returns
    -------
    pandas.DataFrame
        One row for each algorithm. `claimed` is the epsilon asked for. `printed` is the epsilon of
        `calibration="paper"` where there is that choice, on the paper's rewards: infinite where Laplace or Gaussian
        noise is put on unbounded ones. `here` is that of the defaults, on rewards within the guarantee's bound, at
        `delta`.

    Examples
    --------
    >>> table().columns.tolist()
    ['paper', 'algorithm', 'model', 'unit', 'claimed', 'printed', 'here', 'delta']
    """
    import pandas as pd

    rows = []
    for name, example in catalogue.ALGORITHMS.items():
        here = catalogue.case(name)[0]
        claim = here.guarantee
        if claim.model == "none":
            continue
        printed = here
        if "calibration" in signature_of(example.algorithm)[0]:
            with warnings.catch_warnings():  # the table itself says what they warn of
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
    """`table()` as Markdown, as in the documentation.

    Parameters
    ----------
    frame : pandas.DataFrame
        `table()`, or some of its rows.

    Returns
    -------
    str
        A Markdown table.

    Examples
    --------
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

"""What a run spends, release by release: `jb.privacy.ledger`, and the table of all private algorithms."""

from __future__ import annotations

import html
import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxbandits import catalogue, provenance
from jaxbandits.formatting import markdown_table as cells
from jaxbandits.mechanisms.composition import SIMULATED, Event, claimed_epsilon, compose, gdp, other_event, zcdp
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.sweeps.assumptions import overspent, privacy_spent
from jaxbandits.sweeps.simulate import build_parts
from jaxbandits.typing import AlgorithmFactory, EnvironmentFactory
from jaxbandits.validation import declare

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ledger", "ledger", "markdown", "table"]


class Ledger(NamedTuple):
    """The releases that one unit's data enter, and what they cost together. Prints as a table."""

    events: tuple[Event, ...]  # the releases: mechanism, sensitivity, noise and how often a unit enters each
    epsilon: float  # what they spend together; infinite where there is no guarantee
    delta: float
    algorithm: str = ""  # its name
    model: str = ""  # "local" | "central" | "shuffle" | "federated" | "none"
    unit: str = ""  # what neighbouring inputs differ in: "loss_vector" | "reward" | "user" | "message"

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

        rows = []
        for x in self.events:
            noise, epsilon = x.mechanism.replace("_", " "), _of_one(x, self.delta)
            rows.append((x.what, noise, x.sensitivity, x.scale, x.times, epsilon))
        return pd.DataFrame(rows, columns=["release", "noise", "sensitivity", "scale", "times", "epsilon"])

    def _summary(self) -> str:
        if self.model == "none":
            return f"{self.algorithm}: no guarantee"
        together = f"epsilon = {self.epsilon:.4g}, delta = {self.delta:.3g}"
        for name, cost in (("rho of zCDP", self.rho), ("g of Gaussian privacy", self.g)):
            together += f", {name} = {cost:.4g}" if 0 < cost < math.inf else ""
        unit = self.unit.replace("_", " ")
        return f"{self.algorithm}, {self.model} model, neighbours differ in one {unit}: {together}"

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


@declare(check=False)
def ledger(
    algorithm: Algorithm | AlgorithmFactory, environment: Environment | EnvironmentFactory | None = None
) -> Ledger:
    """What a run of an algorithm spends of one unit's privacy, release by release.

    Args:
        algorithm (Algorithm or factory): A built algorithm, or a factory (a partial with its horizon); with
            `environment`, what that fixes is filled in.
        environment (Environment or factory, optional): Where it plays. Rewards that it pays beyond those a guarantee is
            for make epsilon and the sensitivities infinite. Without it, rewards are taken to keep within the
            guarantee's bound.

    Returns:
        Ledger: The releases and what they cost together. An algorithm without a guarantee has no releases and epsilon
            infinite.

    Raises:
        ValueError: Where the algorithm and the environment do not fit.

    Note:
        Noise in floating point simulates the mechanisms, see `docs/privacy.md`.

    >>> import jaxbandits as jb
    >>> algorithms, actions = jb.algorithms, [[1, 0], [0, 1]]
    >>> jb.privacy.ledger(algorithms.private_elimination(actions=actions, horizon=1000, epsilon=0.5, num_batches=3))
    private_elimination, central model, neighbours differ in one reward: epsilon = 0.5, delta = 0, rho of zCDP = 0.125
                                        release   noise  sensitivity  scale  times  epsilon
     sum by arm of a batch's rewards in [-1, 1] laplace            2      4      1      0.5
    """
    algorithm, environment = build_parts(algorithm, environment)
    claim, params = algorithm.guarantee, algorithm.params
    _, epsilon, delta = privacy_spent(algorithm, None)
    events = tuple(claim.events(params))
    if not events and claim.model != "none" and epsilon > 0:  # declared as a whole
        events = (other_event("other", "all that is seen", epsilon, delta),)
    if environment is not None and overspent(algorithm, environment):
        events = tuple(event._replace(sensitivity=math.inf, epsilon=math.inf) for event in events)
        epsilon, delta = math.inf, 0.0
    return Ledger(events, epsilon, delta, algorithm.version[0], model=claim.model, unit=claim.unit)


@declare(check=False)
def table() -> pd.DataFrame:
    """Every private algorithm of the catalogue: the budget asked for, and what published and own noise deliver.

    Returns:
        pandas.DataFrame: One row for each algorithm, in the order of `provenance.toml`. `source` is whose algorithm it
            is. `claimed` is the epsilon asked for. `printed` is what the constants of a paper spend on that paper's
            rewards: infinite where Laplace or Gaussian noise is put on unbounded ones, NaN where nobody here has read a
            text that prints them, or where the text claims nothing about this epsilon. `here` is that of the defaults,
            on rewards within the guarantee's bound, at `delta`.

    >>> table().columns.tolist()
    ['source', 'algorithm', 'model', 'unit', 'claimed', 'printed', 'here', 'delta']
    """
    import pandas as pd

    rows = list[dict[str, Any]]()
    for name in catalogue.ALGORITHMS:
        here = catalogue.case(name)[0]
        claim = here.guarantee
        if claim.model == "none":
            continue
        epsilon, delta = here.guarantee.spend(here.params)
        rows.append({
            "source": _source(name, here.config), "algorithm": name, "model": claim.model, "unit": claim.unit,
            "claimed": epsilon_or_nan(here), "printed": _spend_as_printed(name, epsilon_or_nan(here)),
            "here": float(epsilon), "delta": float(delta),
        })  # fmt: skip
    order = list(dict.fromkeys(record.algorithm for record in provenance.records().values()))
    return pd.DataFrame(sorted(rows, key=lambda row: order.index(row["algorithm"])))


def _source(name: str, config: dict[str, Any]) -> str:
    """Whose algorithm this is: the nearest record to these arguments, what was read first, that has a publication."""

    def far(record: provenance.ProvenanceRecord) -> tuple[float, int]:
        differ = [config.get(key) != value for key, value in record.settings.items()]
        return sum(differ) / max(len(differ), 1), provenance.RECORD_KINDS.index(record.kind)

    found = sorted(provenance.of_algorithm(name), key=far)
    return next((record.source for record in found if record.source and record.kind != "code, read"), "ours")


def _spend_as_printed(name: str, epsilon: float) -> float:
    """What an algorithm of the catalogue spends with the constants that a paper prints, NaN where none does."""
    record = provenance.as_printed(name)
    if record is None or not record.within(epsilon):
        return math.nan
    with warnings.catch_warnings():  # the table itself says what they warn of
        warnings.simplefilter("ignore", UserWarning)
        printed = catalogue.case(name, **record.settings)[0]
    unlimited = record.rewards == "unbounded" and math.isfinite(printed.guarantee.bound)
    return math.inf if unlimited else ledger(printed).epsilon


def epsilon_or_nan(algorithm: Algorithm) -> float:
    """The epsilon that an algorithm, or what it wraps, was given; NaN for one that names none."""
    epsilon = claimed_epsilon(algorithm)
    return math.nan if epsilon is None else epsilon


@declare(check=False)
def markdown(frame: pd.DataFrame) -> str:
    """`table()` as Markdown, as in the documentation.

    Args:
        frame (pandas.DataFrame): `table()`, or some of its rows.

    Returns:
        str: A Markdown table.

    >>> print(markdown(table().head(1)))
    | source | algorithm | model | neighbours differ in one | claimed ε | as printed | here | δ here |
    |---|---|---|---|---:|---:|---:|---:|
    | Asi et al. 2025 | `private_batched` | central | loss vector | 0.2 | 0.2 | 0.2 | 0 |
    <BLANKLINE>
    """
    rows = [["source", "algorithm", "model", "neighbours differ in one", "claimed ε", "as printed", "here", "δ here"]]
    for row in frame.itertuples():
        printed = provenance.UNKNOWN if math.isnan(row.printed) else f"{row.printed:.4g}".replace("inf", "∞")
        spent = [f"{row.claimed:.4g}", printed, f"{row.here:.4g}", f"{row.delta:.3g}"]
        rows.append([row.source, f"`{row.algorithm}`", row.model, row.unit.replace("_", " "), *spent])
    return f"{cells(rows, right=4)}\n"

"""Late feedback: what a delay costs learners that do not know of it, and one that does."""

from functools import partial
from typing import Any

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.shared import regrets
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.reports import plot

MEANS = [0.8, 0.6, 0.5, 0.3]
LEARNERS = {
    "UCB1": partial(a.delayed, base=a.ucb1),
    "KL-UCB": partial(a.delayed, base=a.kl_ucb),
    "Thompson sampling": partial(a.delayed, base=a.thompson),
    "EXP3": partial(a.delayed, base=a.exp3),
    "Tsallis-INF": partial(a.delayed, base=a.tsallis_inf),
    "hybrid Tsallis-INF": partial(a.delayed, base=a.hybrid_tsallis_inf),
}
QUICK = ("UCB1", "Tsallis-INF", "hybrid Tsallis-INF")
LOSSES = ("EXP3", "Tsallis-INF", "hybrid Tsallis-INF")
MAX_DELAY = 1000  # of geometric delays: later feedback is lost


def sweeps(full: bool) -> dict[str, Sweep]:
    """Fixed and geometric delays of the same mean, on stochastic arms, and fixed ones where the best arm changes."""
    means = [0, 1, 10, 30, 100, 300] if full else [0, 10]
    horizon = 10_000 if full else 500
    chosen = {label: one for label, one in LEARNERS.items() if full or label in QUICK}
    common: dict[str, Any] = {"horizon": horizon, "seeds": 200 if full else 4, "checkpoints": 1}
    arms = partial(e.bernoulli_arms, means=MEANS)
    declared = {
        "fixed": Sweep(common | {"algorithms": chosen, "environment": arms, "grid": {"delay": means}}),
    }
    if full:
        late = {label: partial(one, max_delay=MAX_DELAY) for label, one in chosen.items()}
        laws = {"delay": {f"{x}": ("geometric", float(x)) for x in means}}
        declared["geometric"] = Sweep(common | {"algorithms": late, "environment": arms, "grid": laws})
        losses = {label: chosen[label] for label in LOSSES}
        changing = partial(e.switching_losses, num_arms=4, cuts=[0, horizon // 2], arms=[0, 1])
        declared["changing"] = Sweep(common | {"algorithms": losses, "environment": changing, "grid": {"delay": means}})
    return declared


def numbers(ds):
    """The Dataset with the mean delay as a number."""
    return ds.assign_coords(delay=[float(x) for x in ds["delay"].values])


def draw(name: str, what: str, results: Results, where: str = f"arms {MEANS}") -> plot.Plot:
    """Regret against the delay."""
    ds = numbers(results[name if name in results else "fixed"])
    return plot.against(ds, "delay", names={"delay": f"{what}, plays"}, caption=where, width=6.0)


def claims(results: Results) -> list[Claim]:
    """Regret by delay."""
    return [
        Claim(
            f"{name}: regret of {label}, by delay", "",
            ", ".join(f"{row['mean']:,.0f} at {row['delay']:g}" for row in part.to_dict("records")),
        )
        for name, ds in results.items()
        for label, part in regrets(numbers(ds)).groupby("algorithm", sort=False)
    ]  # fmt: skip


STUDY = Study(
    "Late feedback",
    "docs/formulas/robust_frontier.md#robust-frontier-delay",
    sweeps,
    {
        "fixed": partial(draw, "fixed", "delay"),
        "geometric": partial(draw, "geometric", "mean delay"),
        "changing": partial(draw, "changing", "delay", where="four arms; another one is the best from the middle on"),
    },
    claims,
)

"""Late feedback."""

from functools import partial

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.shared import by_algorithm, numbers
from jaxbandits.papers.study import Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot

MEANS = [0.8, 0.6, 0.5, 0.3]
BASES = {
    "UCB1": a.ucb1, "KL-UCB": a.kl_ucb, "Thompson sampling": a.thompson, "EXP3": a.exp3, "Tsallis-INF": a.tsallis_inf,
    "hybrid Tsallis-INF": a.hybrid_tsallis_inf,
}  # fmt: skip
LEARNERS = {label: partial(a.delayed, base=base) for label, base in BASES.items()}
QUICK = ("UCB1", "Tsallis-INF", "hybrid Tsallis-INF")
LOSSES = ("EXP3", "Tsallis-INF", "hybrid Tsallis-INF")
MAX_DELAY = 1000  # of geometric delays: later feedback is lost


def sweeps(full: bool) -> dict[str, Sweep]:
    """Fixed and geometric delays of the same mean, on stochastic arms, and fixed ones where the best arm changes."""
    horizon, seeds = (10_000, 200) if full else (500, 4)
    means = [0, 1, 10, 30, 100, 300] if full else [0, 10]
    chosen, arms = few(LEARNERS, full, QUICK), partial(e.bernoulli_arms, means=MEANS)
    declared = {"fixed": swept(chosen, arms, horizon, seeds, grid={"delay": means})}
    if full:
        late = {label: partial(one, max_delay=MAX_DELAY) for label, one in chosen.items()}
        laws = {f"{x}": ("geometric", float(x)) for x in means}
        declared["geometric"] = swept(late, arms, horizon, seeds, grid={"delay": laws})
        losses = {label: chosen[label] for label in LOSSES}
        changing = partial(e.switching_losses, num_arms=4, cuts=[0, horizon // 2], arms=[0, 1])
        declared["changing"] = swept(losses, changing, horizon, seeds, grid={"delay": means})
    return declared


def draw(name: str, what: str, results: Results, where: str = f"arms {MEANS}") -> plot.Plot:
    ds = numbers(results[name if name in results else "fixed"], "delay")
    return plot.against(ds, "delay", names={"delay": f"{what}, plays"}, caption=where, width=6.0)


def claims(results: Results) -> Claims:
    for name, ds in results.items():
        yield from by_algorithm(numbers(ds, "delay"), "delay", f"{name}: regret of {{}}, by delay".format)


STUDY = Study(
    __doc__, "docs/formulas/robust_frontier.md#robust-frontier-delay", sweeps,
    {
        "fixed": partial(draw, "fixed", "delay"),
        "geometric": partial(draw, "geometric", "mean delay"),
        "changing": partial(draw, "changing", "delay", where="four arms; another one is the best from the middle on"),
    },
    claims,
)  # fmt: skip

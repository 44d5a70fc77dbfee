"""Linear bandits whose rewards are attacked within a budget: weights told C, told a wrong one, told nothing."""

from functools import partial

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.robust_frontier.corruption_budgets import BUDGET, against_budget
from jaxbandits.papers.robust_frontier.heavy_linear import NOISE, SHAPE, UNBOUNDED
from jaxbandits.papers.shared import by_algorithm
from jaxbandits.papers.study import Claim, Results, Study, Sweep, swept
from jaxbandits.reports import plot

RADIUS = 0.3  # of the printed radius: at 1 all learners explore for most of these plays
TOLD, BELIEVES, AGNOSTIC = "CW-OFUL told C", "CW-OFUL believing C = 30", "CW-OFUL told nothing"
LEARNERS = {
    "OFUL": partial(a.cw_oful, corruption_budget=0.0, radius_scale=RADIUS),
    TOLD: partial(a.cw_oful, radius_scale=RADIUS),
    BELIEVES: partial(a.cw_oful, corruption_budget=30.0, radius_scale=RADIUS),
    AGNOSTIC: partial(a.cw_oful, radius_scale=RADIUS),
}


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every learner at each budget, spent early on the best arm of each play."""
    horizon, seeds = (10_000, 100) if full else (500, 4)
    budgets = [0.0, 3.0, 10.0, 30.0, 100.0, 300.0] if full else [0.0, 30.0]
    grid = {(BUDGET, f"{TOLD}.corruption_budget"): budgets}
    arms = partial(e.contextual_linear, **SHAPE, reward="gaussian", noise_scale=NOISE)
    return {"linear": swept(LEARNERS, arms, horizon, seeds, grid=grid, reward_adversary=UNBOUNDED)}


def draw(results: Results) -> plot.Plot:
    """Regret against the budget."""
    caption = f"{SHAPE['num_arms']} fresh arms a play in {SHAPE['dim']} dimensions, Gaussian noise of {NOISE:g}"
    return against_budget(results["linear"], caption)


def claims(results: Results) -> list[Claim]:
    """Regret by budget."""
    return by_algorithm(results["linear"], BUDGET, "regret of {}, by C".format)


STUDY = Study(
    "Linear bandits under a budget of corruption", "docs/formulas/robust_frontier.md#cw-oful", sweeps, {"linear": draw},
    claims,
)  # fmt: skip

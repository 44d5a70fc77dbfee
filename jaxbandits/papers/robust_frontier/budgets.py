"""Regret of arms and linear bandits against a budget or a share of corruption, told of it or not; late feedback."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import provenance
from jaxbandits.formatting import percent
from jaxbandits.papers.shared import BUDGET, against, by_algorithm, ratios, series, with_numeric_key
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval

MEANS = [0.8, 0.6, 0.5, 0.3]
ARMS = partial(e.bernoulli_arms, means=MEANS)
FORMULAS = "docs/formulas/robust_frontier.md"


def against_budget(sweep: str, caption: str) -> Callable[[Results], plot.Plot]:
    """A picture from the first budget on: the axis is logarithmic. A quick run has the first sweep alone."""
    shown = lambda results: results[sweep if sweep in results else next(iter(results))]
    data = lambda results: shown(results).sel({BUDGET: shown(results)[BUDGET] > 0})
    return against(data, BUDGET, names={BUDGET: "budget C"}, caption=caption, width=6.0)


# ---- told the budget of an attack, told a wrong one, told nothing

FAILURE: dict[str, Any] = {"failure_prob": 0.05}
BELIEVED = 100.0
TOLD, BELIEVES, AGNOSTIC = "elimination told C", "elimination believing C = 100", "elimination told nothing"
LEARNERS = {
    "UCB1": a.ucb1,
    "Tsallis-INF": a.tsallis_inf,
    TOLD: partial(a.stopping_elimination, **FAILURE),
    BELIEVES: partial(a.stopping_elimination, corruption_budget=BELIEVED, **FAILURE),
    AGNOSTIC: partial(a.stopping_elimination, **FAILURE),
    "multi-layer race of half width": partial(a.multilayer_elimination, width_scale=0.5, **FAILURE),
    "BARBAR of 1/256 length": partial(a.barbar, length_scale=1 / 256, **FAILURE),
}
ATTACKS = {
    "strong-early": partial(v.budgeted, strength="strong", schedule="early"),
    "strong-burst": partial(v.budgeted, strength="strong", schedule="burst"),
    "weak-early": partial(v.budgeted, strength="weak", schedule="early"),
}


def budget_sweeps(full: bool) -> dict[str, Sweep]:
    budgets = [0.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0] if full else [0.0, 100.0]
    horizon, seeds = (20_000, 200) if full else (1000, 4)
    grid = {(BUDGET, f"{TOLD}.corruption_budget"): budgets}
    under = partial(swept, few(LEARNERS, full, ("UCB1", TOLD, AGNOSTIC)), ARMS, horizon, seeds, grid=grid)
    return {name: under(reward_adversary=attack) for name, attack in ATTACKS.items()}


def budget_claims(results: Results) -> Claims:
    for attack, ds in results.items():
        name = attack.replace("-", ", ")
        spent = ds["corruption_spent"].sel({BUDGET: BELIEVED}).mean("seed")
        yield from by_algorithm(ds, BUDGET, f"{name}: regret of {{}}, by C".format)
        yield Claim(f"{name}: spent of a budget of {BELIEVED:g}", "", series(ds["algorithm"], spent, "{x} {y:.0f}"))
        told = ratios(final_regret(ds), AGNOSTIC, TOLD, BUDGET)
        yield Claim(f"{name}: elimination told nothing over told C", "", told)


ATTACKED = f"Bernoulli arms {MEANS}; the attack: "
PICTURES = {
    "early": against_budget("strong-early", f"{ATTACKED}strong, early"),
    "burst": against_budget("strong-burst", f"{ATTACKED}strong, burst"),
    "weak": against_budget("weak-early", f"{ATTACKED}weak, early"),
}
TITLE, BUDGETS = "Budgets of corruption: told, told wrongly, told nothing", f"{FORMULAS}#robust-frontier-budgets"
STUDY = Study(TITLE, BUDGETS, budget_sweeps, PICTURES, budget_claims)

# ---- Tsallis-INF between stochastic and adversarial rewards: what a budget adds to its regret

BETWEEN = {
    "Tsallis-INF": a.tsallis_inf, "HTINF": a.htinf, "EXP3": a.exp3, "UCB1": a.ucb1, "Thompson sampling": a.thompson,
}  # fmt: skip
STRENGTHS: tuple[Any, ...] = ("strong", "weak")


def regime_sweeps(full: bool) -> dict[str, Sweep]:
    budgets = [0.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0] if full else [0.0, 100.0]
    horizon, seeds = (50_000, 200) if full else (1000, 4)
    under = partial(swept, few(BETWEEN, full, ("Tsallis-INF", "UCB1")), ARMS, horizon, seeds)
    attacks = {strength: partial(v.budgeted, strength=strength) for strength in STRENGTHS[: 2 if full else 1]}
    return {strength: under(grid={BUDGET: budgets}, reward_adversary=attack) for strength, attack in attacks.items()}


def regime_claims(results: Results) -> Claims:
    for strength, ds in results.items():
        yield from by_algorithm(ds, BUDGET, f"{strength}: regret of {{}}, by C".format)
        ours = final_regret(ds).sel(algorithm="Tsallis-INF").transpose(BUDGET, "seed")
        budgets = ds[BUDGET].values[1:]
        added = mean_interval((ours.values[1:] - ours.values[0]) / budgets[:, None])
        measured = series(budgets, map("{:.2f} [{:.2f}, {:.2f}]".format, *added), "{y} at {x:g}")
        said = provenance.records()["tsallis_inf_corrupted"].quote_claim("of order C and √(C Σ ln T/Δ)")
        yield Claim(f"{strength}: Tsallis-INF, regret added by a unit of C", said, measured)


SPENT_EARLY = f"Bernoulli arms {MEANS}; the budget is {{}} and spent early on the best arm"
REGIME_PICTURES = {strength: against_budget(strength, SPENT_EARLY.format(strength)) for strength in STRENGTHS}
REGIME = Study(
    "Tsallis-INF between stochastic and adversarial rewards", BUDGETS, regime_sweeps, REGIME_PICTURES, regime_claims
)

# ---- a share: CRIMED, whose index knows it, against other robust indices, all told the true one

NORMAL_MEANS = [1.0, 0.0, 0.0, -1.0]
INDICES = {
    "CRIMED": a.crimed,
    "CR-UCB, trimmed": a.cr_ucb,
    "CR-UCB, shorth": partial(a.cr_ucb, estimator="shorth"),
    "Huber-UCB": a.huber_ucb,
    "UCB1": a.ucb1,
}
SIZE = 10.0
SHARE = "reward_adversary.corruption"


def share_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (3000, 200) if full else (300, 4)
    shares = [0.0, 0.02, 0.05, 0.1] if full else [0.0, 0.05]
    attack = partial(v.huber, kind="target", value=SIZE)
    learners = few(INDICES, full, ("CRIMED", "CR-UCB, trimmed", "UCB1"))
    arms, grid = partial(e.gaussian_arms, means=NORMAL_MEANS), {(SHARE, "corruption_bound"): shares}
    return {"shares": swept(learners, arms, horizon, seeds, grid=grid, reward_adversary=attack)}


CAPTION = f"Gaussian arms {NORMAL_MEANS}; a corrupted reward is {-SIZE:g} on the best arm and {SIZE:g} on others"
SHARE_PICTURE = against("shares", SHARE, names={SHARE: "share of corrupted rewards"}, caption=CAPTION, width=6.0)


def share_claims(results: Results) -> Claims:
    """Mean and median regret by share: a few runs may be bad."""
    final = final_regret(results["shares"]).transpose("algorithm", SHARE, "seed")
    for label in final["algorithm"].values:
        both = [f"{row.mean():,.0f} (median {np.median(row):,.0f})" for row in final.sel(algorithm=label).values]
        yield Claim(f"regret of {label}, by share", "", series(map(percent, final[SHARE].values), both, "{y} at {x}"))


SHARES = Study(
    "A share of corrupted rewards", f"{FORMULAS}#crimed", share_sweeps, {"shares": SHARE_PICTURE}, share_claims
)

# ---- linear bandits: weights told C, told a wrong one, told nothing

SHAPE: dict[str, Any] = {"num_arms": 10, "dim": 5}
NOISE = 0.5
UNBOUNDED = partial(v.budgeted, low=-math.inf, high=math.inf)  # linear rewards have no range
RADIUS = 0.3  # of the printed radius: at 1 all learners explore for most of these plays
WEIGHTS_TOLD = "CW-OFUL told C"
WEIGHTED = {
    "OFUL": partial(a.cw_oful, corruption_budget=0.0, radius_scale=RADIUS),
    WEIGHTS_TOLD: partial(a.cw_oful, radius_scale=RADIUS),
    "CW-OFUL believing C = 30": partial(a.cw_oful, corruption_budget=30.0, radius_scale=RADIUS),
    "CW-OFUL told nothing": partial(a.cw_oful, radius_scale=RADIUS),
}


def linear_sweeps(full: bool) -> dict[str, Sweep]:
    """Every learner at each budget, spent early on the best arm of each play."""
    horizon, seeds = (10_000, 100) if full else (500, 4)
    budgets = [0.0, 3.0, 10.0, 30.0, 100.0, 300.0] if full else [0.0, 30.0]
    grid = {(BUDGET, f"{WEIGHTS_TOLD}.corruption_budget"): budgets}
    arms = partial(e.contextual_linear, **SHAPE, reward="gaussian", noise_scale=NOISE)
    return {"linear": swept(WEIGHTED, arms, horizon, seeds, grid=grid, reward_adversary=UNBOUNDED)}


FRESH = f"{SHAPE['num_arms']} fresh arms a play in {SHAPE['dim']} dimensions"
LINEAR = Study(
    "Linear bandits under a budget of corruption",
    f"{FORMULAS}#cw-oful",
    linear_sweeps,
    {"linear": against_budget("linear", f"{FRESH}, Gaussian noise of {NOISE:g}")},
    lambda results: by_algorithm(results["linear"], BUDGET, "regret of {}, by C".format),
)

# ---- heavy-tailed noise: clipped residuals against least squares, without an attack and with one that spends its
# budget early on the best arm

ORDER = 1.5  # of the moment that the learners are told: the Student and Pareto laws have no variance
HEAVY_RADIUS = 1e-4  # the printed ones of Hvt-UCB play uniformly at these horizons
SPENT = 50.0
LAWS: dict[str, Any] = {"gaussian": {}, "student": {"df": 1.8}, "pareto": {"shape": 1.8}, "lognormal": {"sigma": 2.0}}


def heavy_sweeps(full: bool) -> dict[str, Sweep]:
    """Least squares, with weights and without, and clipped residuals, told the moment of the law."""
    horizon, seeds = (10_000, 100) if full else (300, 4)
    grid, declared = {BUDGET: [0.0, SPENT] if full else [0.0]}, {}
    for law in LAWS if full else ("student",):
        arms = e.contextual_linear(**SHAPE, reward=law, noise_scale=NOISE, **LAWS[law])  # type: ignore[arg-type]
        scale = arms.facts["noise_moment"](ORDER) ** (1 / ORDER)
        told = {"moment_order": ORDER, "moment_scale": scale, "radius_scale": HEAVY_RADIUS}
        learners = {
            "OFUL": partial(a.cw_oful, corruption_budget=0.0, radius_scale=RADIUS),
            "CW-OFUL": partial(a.cw_oful, corruption_budget=SPENT, radius_scale=RADIUS),
            "Hvt-LinUCB": partial(a.hvt_linucb, **told),
            "robust OFUL": partial(a.robust_oful, corruption_budget=SPENT, **told),
        }
        shown = few(learners, full, ("OFUL", "CW-OFUL", "Hvt-LinUCB"))
        # curves need more checkpoints than the last
        declared[law] = swept(shown, arms, horizon, seeds, grid=grid, reward_adversary=UNBOUNDED, checkpoints=200)
    return declared


def draw_heavy(law: str, results: Results) -> plot.Plot:
    shown = law if law in results else "student"
    caption = f"{FRESH}, {shown} noise, no attack"
    return plot.regret(results[shown].sel({BUDGET: 0.0}), log="none", caption=caption, width=6.0)


def heavy_claims(results: Results) -> Claims:
    for law, ds in results.items():
        final = final_regret(ds).transpose("algorithm", BUDGET, "seed")
        for label in ds["algorithm"].values:
            one = final.sel(algorithm=label)
            both = [f"{row.mean():,.0f} (largest {row.max():,.0f})" for row in one.values]
            yield Claim(f"{law}: regret of {label}, by C", "", series(one[BUDGET], both, "{y} at {x:g}"))


HEAVY_PICTURES = {law: partial(draw_heavy, law) for law in ("gaussian", "student", "pareto")}
HVT = f"{FORMULAS}#robust-frontier-hvt-ucb"
HEAVY = Study("Linear bandits with heavy-tailed noise", HVT, heavy_sweeps, HEAVY_PICTURES, heavy_claims)

# ---- late feedback: learners that do not know of it, and one that does

BASES = {
    "UCB1": a.ucb1, "KL-UCB": a.kl_ucb, "Thompson sampling": a.thompson, "EXP3": a.exp3, "Tsallis-INF": a.tsallis_inf,
    "hybrid Tsallis-INF": a.hybrid_tsallis_inf,
}  # fmt: skip
DELAYED = {label: partial(a.delayed, base=base) for label, base in BASES.items()}
LOSSES = ("EXP3", "Tsallis-INF", "hybrid Tsallis-INF")
MAX_DELAY = 1000  # of geometric delays: later feedback is lost


def late_sweeps(full: bool) -> dict[str, Sweep]:
    """Fixed and geometric delays of the same mean, on stochastic arms, and fixed ones where the best arm changes."""
    horizon, seeds = (10_000, 200) if full else (500, 4)
    means = [0, 1, 10, 30, 100, 300] if full else [0, 10]
    chosen = few(DELAYED, full, ("UCB1", "Tsallis-INF", "hybrid Tsallis-INF"))
    declared = {"fixed": swept(chosen, ARMS, horizon, seeds, grid={"delay": means})}
    if full:
        late = {label: partial(one, max_delay=MAX_DELAY) for label, one in chosen.items()}
        laws = {f"{x}": ("geometric", float(x)) for x in means}
        declared["geometric"] = swept(late, ARMS, horizon, seeds, grid={"delay": laws})
        losses = {label: chosen[label] for label in LOSSES}
        changing = partial(e.switching_losses, num_arms=4, cuts=[0, horizon // 2], arms=[0, 1])
        declared["changing"] = swept(losses, changing, horizon, seeds, grid={"delay": means})
    return declared


def draw_late(name: str, what: str, results: Results, where: str = f"arms {MEANS}") -> plot.Plot:
    ds = with_numeric_key(results[name if name in results else "fixed"], "delay")
    return plot.against(ds, "delay", names={"delay": f"{what}, plays"}, caption=where, width=6.0)


def late_claims(results: Results) -> Claims:
    for name, ds in results.items():
        yield from by_algorithm(with_numeric_key(ds, "delay"), "delay", f"{name}: regret of {{}}, by delay".format)


CHANGING = "four arms; another one is the best from the middle on"
LATE_PICTURES = {
    "fixed": partial(draw_late, "fixed", "delay"),
    "geometric": partial(draw_late, "geometric", "mean delay"),
    "changing": partial(draw_late, "changing", "delay", where=CHANGING),
}
DELAY = Study("Late feedback", f"{FORMULAS}#robust-frontier-delay", late_sweeps, LATE_PICTURES, late_claims)

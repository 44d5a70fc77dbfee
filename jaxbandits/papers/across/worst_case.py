"""The worst attack found on every robust algorithm."""

import math
from functools import partial
from typing import Any, NamedTuple

import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.formatting import brackets, format_number, percent
from jaxbandits.papers.byzantine.instance import AGGREGATES, FEDERATED
from jaxbandits.papers.private_robust_mab.experiments import PARETO, PRM
from jaxbandits.papers.robust_linear.instance import M1, M2, PRIVATE, with_batches
from jaxbandits.papers.study import Claim, Claims, Results, Search, Study, Sweep, swept
from jaxbandits.searching import WorstCase
from jaxbandits.selection import final_regret
from jaxbandits.statistics import mean_interval
from jaxbandits.sweeps import sweep

SHARE, AGENT_SHARE, EPSILON = 0.05, 0.2, 1.0
BUDGET, LINEAR_BUDGET = 100.0, 50.0
SIZES = (0.01, 1000.0, "log")
REWARDS = {"kind": ["fixed", "swapped", "sign_flip", "random_sign", "target"], "value": SIZES}
REPORTS = {"kind": ["fixed", "random_sign", "target", "in_range"], "value": SIZES}
SCHEDULES = ["early", "late", "uniform", "burst"]
PER_PLAY = {"kind": ["lower_best", "raise_worst"], "schedule": SCHEDULES, "size": (0.05, 1.0), "margin": (0.0, 0.2)}
SPENT = PER_PLAY | {"kind": ["lower_best", "raise_worst", "empirical_best"]}  # the last one needs arms that stay
AGENTS = {"kind": ["target", "sign_flip", "inner_product", "alie", "noise"], "scale": SIZES}


class AttackSetting(NamedTuple):
    """Where algorithms play, and the attacks on them."""

    algorithms: dict[str, Any]
    environment: Any
    slot: str
    adversary: Any  # with its share
    space: dict[str, Any]
    horizon: int


HUBER, BYZANTINE = partial(v.huber, corruption=SHARE), partial(v.byzantine, corruption=AGENT_SHARE)
BUDGETED = partial(v.budgeted, total=BUDGET)
UNBOUNDED = partial(v.budgeted, total=LINEAR_BUDGET, low=-math.inf, high=math.inf)
BERNOULLI = partial(e.bernoulli_arms, means=[0.8, 0.6, 0.5, 0.3])
NORMAL = partial(e.gaussian_arms, means=[1.0, 0.0, 0.0, -1.0])
CONTEXTS = partial(e.contextual_linear, num_arms=10, dim=5, reward="gaussian")
QUICK = ("UCB1", "crUCB")
# A further robust algorithm is a further entry here.
INDICES = {"UCB1": a.ucb1, "robust UCB": partial(a.robust_ucb, moment_bound=1.0)}
REREAD = {  # every reward at each play
    "crUCB": partial(a.cr_ucb, noise_scale=0.5, corruption_bound=SHARE),
    "Huber UCB": partial(a.huber_ucb, noise_scale=0.5, corruption_bound=SHARE),
}
RACES = {
    "UCB1 under a budget": a.ucb1,
    "elimination told the budget": partial(a.stopping_elimination, corruption_budget=BUDGET, failure_prob=0.05),
    "elimination told nothing": partial(a.stopping_elimination, failure_prob=0.05),
    "multi-layer race of half width": partial(a.multilayer_elimination, width_scale=0.5, failure_prob=0.05),
    "BARBAR of 1/256 length": partial(a.barbar, length_scale=1 / 256, failure_prob=0.05),
}
NORMALS = {"CRIMED": partial(a.crimed, corruption_bound=SHARE)}
TAILED = partial(a.robust_oful, moment_scale=0.5)
WEIGHTED = {
    "OFUL under a budget": partial(a.cw_oful, corruption_budget=0.0, radius_scale=0.3),
    "CW-OFUL told the budget": partial(a.cw_oful, corruption_budget=LINEAR_BUDGET, radius_scale=0.3),
    "Hvt-LinUCB under a budget": partial(a.hvt_linucb, moment_scale=0.5, radius_scale=1e-4),
    "robust OFUL told the budget": partial(TAILED, corruption_budget=LINEAR_BUDGET, radius_scale=1e-4),
}
BLOCKS = {label: partial(made, epsilon=EPSILON, corruption_bound=SHARE) for label, made in PRM.items()}
LOCAL = {"local elimination": partial(a.local_robust_elimination, epsilon=EPSILON, corruption_after=SHARE)}
LINEAR = {
    "M1": partial(M1, corruption_bound=SHARE),
    "M2": partial(M2, corruption_bound=SHARE),
    "median elimination": partial(a.median_elimination, corruption_bound=SHARE),
    "trimmed elimination": partial(a.trimmed_elimination, corruption_bound=SHARE),
    "Bogunovic et al.": a.bogunovic_elimination,
}
ROBUST_RULES = {label: rule for label, rule in AGGREGATES.items() if label != "mean"}
FEDERATED_RULES = {
    **{label: partial(rule, window=10, corruption_bound=AGENT_SHARE) for label, rule in ROBUST_RULES.items()},
    "mean of agents": partial(AGGREGATES["mean"], window=10),
}


def settings(full: bool) -> list[AttackSetting]:
    """All of them at full size; two algorithms for arms and two kinds of attack at quick size."""
    if not full:
        arms, few = {label: (INDICES | REREAD)[label] for label in QUICK}, REWARDS | {"kind": ["fixed", "target"]}
        return [AttackSetting(arms, PARETO, "reward", HUBER, few, 300)]
    return [
        AttackSetting(INDICES, PARETO, "reward", HUBER, REWARDS, 20_000),
        AttackSetting(REREAD, PARETO, "reward", HUBER, REWARDS, 2000),
        AttackSetting(NORMALS, NORMAL, "reward", HUBER, REWARDS, 2000),
        AttackSetting(RACES, BERNOULLI, "reward", BUDGETED, SPENT, 20_000),
        AttackSetting(WEIGHTED, CONTEXTS, "reward", UNBOUNDED, PER_PLAY, 2000),
        AttackSetting(BLOCKS, PARETO, "reward", HUBER, REWARDS, 100_000),
        AttackSetting(LOCAL, PARETO, "message", HUBER, REPORTS, 100_000),
        AttackSetting(with_batches(LINEAR, 10_000), PRIVATE, "reward", HUBER, REWARDS, 10_000),
        AttackSetting(FEDERATED_RULES, FEDERATED, "message", BYZANTINE, AGENTS, 1000),
    ]


def table_seeds(full: bool) -> range:
    """The seeds of the table, which no search sees."""
    return range(1000, 1200) if full else range(1000, 1016)


def sweeps(full: bool) -> dict[str, Sweep]:
    """The default attack on each algorithm."""
    seeds, declared = table_seeds(full), {}
    for one in settings(full):
        attack = {f"{one.slot}_adversary": one.adversary}
        for label, algorithm in one.algorithms.items():
            declared[label] = swept({label: algorithm}, one.environment, one.horizon, seeds, **attack)
    return declared


def searches(full: bool) -> dict[str, Search]:
    """A search for each algorithm, all of as many trials."""
    size = {"seeds": 64 if full else 8, "trials": 32 if full else 5, "report_seeds": table_seeds(full)}
    found = {}
    for one in map(AttackSetting._asdict, settings(full)):
        for label, algorithm in one.pop("algorithms").items():
            found[f"{label}, attacked"] = Search({"algorithm": {label: algorithm}} | one | size)
    return found


def again(label: str, *, full: bool = True, **attack: Any) -> xr.Dataset:
    """The sweep of an algorithm under one attack on the seeds of the table, as the table's last rows call it."""
    one = sweeps(full)[label].settings
    (slot,) = [key for key in one if key.endswith("_adversary")]
    return sweep(**one | {slot: partial(one[slot], **attack)}, progress=False)


def claims(results: Results) -> Claims:
    for label in [name for name in results if f"{name}, attacked" in results]:
        found: WorstCase = results[f"{label}, attacked"]
        about = found.trials.attrs
        attack = ", ".join(f"{key} = {x if isinstance(x, str) else f'{x:.3g}'}" for key, x in found.params.items())
        exact = [f"{key}={x!r}" for key, x in found.params.items()]
        default = final_regret(results[label]).isel(algorithm=0).values
        report = found.trials["report_regret"].values
        yield Claim(f"{label}: the worst attack found", "", f"{attack}, {_corruption_words(about)}")
        measured = "; ".join(map(_interval, (report, default, report - default)))
        yield Claim(f"{label}: regret under it; the default attack; the difference", "", measured)
        biased = format_number(float(found.trials.search_value.max()))
        yield Claim(f"{label}: search value (biased upwards)", "", biased)
        yield Claim(f"{label}: again", "", f"`{__name__}.again({', '.join([repr(label), *exact])})`")


def _corruption_words(about: dict[str, Any]) -> str:
    """How much is corrupted, and of what."""
    if about["adversary"] == "budgeted":
        return f"with a budget of {LINEAR_BUDGET if about['algorithm'] in WEIGHTED else BUDGET:g}"
    if about["adversary"] == "byzantine":
        return f"on {percent(AGENT_SHARE)} of agents"
    return f"on {percent(SHARE)} of {'rewards' if about['slot'] == 'reward' else 'reports'}"


def _interval(values: Any) -> str:
    text = lambda x: format_number(float(x)) if math.isfinite(x) else "-"
    mean, low, high = mean_interval(values)
    return f"{text(mean)} {brackets(low, high, text)}"


SOURCE = "docs/formulas/robust_frontier.md#robust-frontier-worst-case"
STUDY = Study(__doc__, SOURCE, sweeps, {}, claims, searches=searches)

"""What the bonus sets of the regret, and what the attack sets.

The radius (a tenth of the printed one, or none) and the attack (three of ten agents, or nobody) are crossed.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from jaxbandits import algorithms as a
from jaxbandits import theory
from jaxbandits.papers.byzantine.attacks import ATTACKS
from jaxbandits.papers.byzantine.instance import DIM, FEDERATED, NUM_AGENTS, RATE, honest
from jaxbandits.papers.shared import MESSAGE_SHARE, Curve, drawn, exponent, fitted, points, times
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret, grid_dims
from jaxbandits.statistics import slope

SHARE = 0.3
ATTACK = ATTACKS["vector only"]  # the attack that costs the geometric median most at this share
KNOWN = partial(a.byzantine_ucb, corruption_bound=SHARE)
BONUS, GREEDY, PRINTED = "a tenth of the bonus", "no bonus", "the printed constants"
ALGORITHMS = {
    BONUS: partial(KNOWN, radius_scale=RATE),
    GREEDY: partial(KNOWN, radius_scale=0.0),
    PRINTED: partial(KNOWN, radius_scale=1.0, ridge_scale=1.0),
}
MEDIANS = "median of means"
SMALL = 0.05  # alpha, the least share of twenty agents
GROUPED = partial(a.byzantine_ucb, aggregate="median_of_means", constants="median_of_means", radius_scale=RATE)
ATTACKED, QUIET = "attacked", "no attack"


def sweeps(full: bool) -> dict[str, Sweep]:
    ends, seeds = ([10_240, 40_960, 163_840, 1_024_000], 6) if full else ([64, 128, 256], 4)
    horizon = 20_480 if full else 128

    def one(algorithms, horizon, share=SHARE, **more) -> Sweep:
        return swept(algorithms, FEDERATED, horizon, seeds, message_adversary=partial(ATTACK, corruption=share), **more)

    declared = {name: one(ALGORITHMS, ends, share) for name, share in ((ATTACKED, SHARE), (QUIET, 0.0))}
    sizes = {"agents": ("environment.num_agents", [10, 20, 40]), "dim": ("environment.dim", [2, 4, 8])}
    for name, (key, values) in sizes.items():
        grid = {key: values if full else values[:2]}
        declared[name] = one({label: ALGORITHMS[label] for label in (BONUS, GREEDY)}, horizon, grid=grid)
    rules = {BONUS: partial(a.byzantine_ucb, radius_scale=RATE), MEDIANS: GROUPED}
    many, grid = partial(FEDERATED, num_agents=20), {MESSAGE_SHARE: [SMALL, 0.1, 0.2]}
    declared["share"] = swept(rules, many, horizon, seeds, grid=grid, message_adversary=ATTACK)
    return declared


def each(results: Results, name: str) -> np.ndarray:
    """Regret of an honest agent [algorithm, horizon, seed] with or without the attack."""
    final = final_regret(results[name]).transpose("algorithm", "horizon", "seed")
    return final.values / honest(SHARE if name == ATTACKED else 0.0)


def draw(results: Results) -> plot.Plot:
    ends = results[ATTACKED]["horizon"].values
    lines: list[Curve] = [
        (f"{label}, {name}", ends, table)
        for name in (ATTACKED, QUIET)
        for label, table in zip(ALGORITHMS, each(results, name), strict=True)
    ]
    lines += [("T^(3/4)", ends, ends**0.75), ("√T", ends, ends**0.5)]
    dotted = {f"{label}, {QUIET}": f"{label}, {ATTACKED}" for label in ALGORITHMS}
    caption = f"{SHARE:.0%} of {NUM_AGENTS} agents send false vectors, or none; dotted: no attack; d = {DIM}"
    words = {"T": "plays T", "regret": "regret of an honest agent"}
    return drawn("T", "regret", lines, dotted=dotted, names=words, caption=caption, width=6.5)


def printed_bonus(horizon: float, share: float = SHARE) -> float:
    """The printed bonus of a unit arm in the last episode, where features are spread evenly and L = sqrt(T) / 4."""
    window = max(1, round(0.25 * math.sqrt(horizon)))
    episode = math.ceil(horizon / window)
    setting: dict[str, Any] = {"num_agents": NUM_AGENTS, "horizon": horizon, "dim": DIM, "corruption_bound": share}
    gathered = theory.byzantine_ridge(episode, window=window, **setting) + horizon / DIM
    return theory.byzantine_radius(episode, window=window, **setting) / math.sqrt(gathered)


def claims(results: Results) -> Claims:
    yield from horizon_claims(results)
    yield from law_claims(results)


def horizon_claims(results: Results) -> Claims:
    """Exponents of T, what the attack adds and what the bonus adds."""
    ends = results[ATTACKED]["horizon"].values
    attacked, quiet = each(results, ATTACKED), each(results, QUIET)
    for name in (ATTACKED, QUIET):
        for label in ALGORITHMS:
            power, interval = exponent(results[name].sel(algorithm=[label]), "horizon")
            paper = "at most 3/4 (Theorem 2)" if name == ATTACKED else "1/2 is known without attackers"
            measured = f"{power:.2f}" + (f"; {interval}" if name == ATTACKED and label != PRINTED else "")
            yield Claim(f"exponent of T, {label}, {name}", paper, measured)
    for row, label in enumerate(ALGORITHMS):
        for name, table in ((ATTACKED, attacked), (QUIET, quiet)):
            measured = points(ends, table[row].mean(-1), "{y:,.0f} at {x:,}")
            yield Claim(f"regret of an honest agent, {label}, {name}", "", measured)
        measured = f"{times(attacked[row, -1], quiet[row, -1])} times the regret without an attack at the longest T"
        yield Claim(f"what the attack sets, {label}", "", measured)
    ratio = times(attacked[0, -1], attacked[1, -1], 1)
    measured = f"{ratio} times the regret without a bonus, attacked, at the longest T"
    yield Claim(f"what the bonus sets: {BONUS}", "", measured)
    tens = next(k for k in range(3, 60) if printed_bonus(10.0**k) < 2)
    measured = f"{printed_bonus(float(ends[-1])):.1f} at T = {ends[-1]:,}; below 2 from 10^{tens} plays on"
    yield Claim("the printed bonus of a unit arm in the last episode, where 2 is the largest gap", "", measured)


def law_claims(results: Results) -> Claims:
    """Exponents of N, d and alpha at one horizon."""
    laws: dict[str, tuple[str, Any, dict[str, str]]] = {  # the letter, agents at a value, and what the paper says
        "agents": (
            "N", lambda n: honest(SHARE, num_agents=int(n)),
            dict.fromkeys((BONUS, GREEDY), "N, hence 0 for one agent (Theorem 2)"),
        ),
        "dim": ("d", lambda dim: honest(SHARE), dict.fromkeys((BONUS, GREEDY), "d (Theorem 2)")),
        "share": (
            "α", lambda share: honest(float(share), num_agents=20),
            {BONUS: "hidden in constants (Theorem 2)", MEDIANS: "1/4 at most, of what exceeds √T (Theorem 7)"},
        ),
    }  # fmt: skip
    for name, (letter, of, papers) in laws.items():
        ds = results[name]
        (key,) = grid_dims(ds)
        each_agent = ds[["regret"]] / ds[key].copy(data=[of(x) for x in ds[key].values])
        for label, paper in papers.items():
            one = each_agent.sel(algorithm=[label]).assign_attrs(ds.attrs)
            regret = points(ds[key].values, final_regret(one).isel(algorithm=0).mean("seed"))
            who = "geometric median" if name == "share" and label == BONUS else label
            measured = f"{fitted(slope(one, over=key).iloc[0])}; regret {regret}"
            yield Claim(f"exponent of {letter}, an honest agent, {who}", paper, measured)


STUDY = Study(__doc__, "Theorems 2 and 7", sweeps, {"horizon": draw}, claims)

"""Every aggregation rule under every attack."""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import theory
from jaxbandits.papers import shared
from jaxbandits.papers.byzantine.instance import AGGREGATES, DIM, FEDERATED, NUM_AGENTS, RATE, honest
from jaxbandits.papers.shared import MESSAGE_SHARE, Curve, series
from jaxbandits.papers.study import Claim, Claims, Interval, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret, grid_dims
from jaxbandits.statistics import slope

WINDOW, BROKEN = 10, 2.0
CUTS = (0.0, 1.1, 1.2, 1.4, 1.7, BROKEN, 3.0, 10.0, 1000.0)  # of the colours: most ratios are between 1 and 2
ATTACKS = {
    "target": partial(v.byzantine, kind="target", scale=5.0),
    "sign flip": partial(v.byzantine, kind="sign_flip", scale=5.0),
    "inner product": partial(v.byzantine, kind="inner_product", scale=1.0),
    "ALIE": partial(v.byzantine, kind="alie", scale=1.5),
    "noise": partial(v.byzantine, kind="noise", scale=10.0),
    "constant 1e30": partial(v.byzantine, kind="constant", scale=1e30),
    "matrix only": partial(v.byzantine, kind="constant", scale=10.0, part="matrix"),
    "vector only": partial(v.byzantine, kind="constant", scale=10.0, part="vector"),
    "half the time": partial(v.byzantine, kind="target", scale=5.0, prob=0.5),
    "inf and NaN": partial(v.byzantine, kind="nonfinite"),
    "zero": partial(v.byzantine, kind="zero"),
}


def sweeps(full: bool) -> dict[str, Sweep]:
    """The median of means is run up to 1/4, where its groups hold no majority of attackers."""
    horizon, seeds = (2000, 64) if full else (200, 4)
    shares, few_shares = ([0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.2]) if full else ([0.0, 0.2], [0.0, 0.2])
    grouped = {"median of means": AGGREGATES["median of means"]}
    rest = {label: rule for label, rule in AGGREGATES.items() if label not in grouped}
    declared = {}
    for name, attack in few(ATTACKS, full, ["target"]).items():
        under = partial(swept, environment=FEDERATED, horizon=horizon, seeds=seeds, message_adversary=attack)
        declared[name] = under(rest, grid={MESSAGE_SHARE: shares, "window": [WINDOW]})
        declared[f"{name}, median of means"] = under(grouped, grid={MESSAGE_SHARE: few_shares, "window": [WINDOW]})
    return declared


def attack_ratios(results: Results) -> pd.DataFrame:
    """Regret of an honest agent in each cell, and its `ratio` to that of the mean without an attack, paired by seed."""
    first = final_regret(next(iter(results.values()))).sel(algorithm="mean").squeeze("window", drop=True)
    attack_free = first.isel(corruption_bound=0).values / honest(0.0)
    frames = []
    for name, ds in results.items():
        frame = shared.regrets(ds).rename(columns={"corruption_bound": "share"})
        attack = name.removesuffix(", median of means")
        agents = [honest(x, ATTACKS[attack].keywords.get("prob", 1.0)) for x in frame["share"]]
        final = final_regret(ds).transpose("algorithm", *grid_dims(ds), "seed").values.reshape(len(frame), -1)
        ratio, low, high = shared.ratio_interval(final / np.array(agents)[:, None], attack_free)
        frames.append(frame.assign(attack=attack, mean=frame["mean"] / agents, ratio=ratio, low=low, high=high))
    table = pd.concat(frames, ignore_index=True)
    return table.assign(broke=table["ratio"] > BROKEN, text=shared.short(table["ratio"]))


PICTURE = shared.picture(
    plot.heatmap, lambda results: shared.in_order(attack_ratios(results), AGGREGATES), "share", "attack", "ratio",
    panel="algorithm", text="text", hatched="broke", names={"share": "share of attacked agents"}, cuts=CUTS,
    hatch=f"more than {BROKEN:g} times", caption="regret of an honest agent relative to the mean without an attack",
)  # fmt: skip


def claims(results: Results) -> Claims:
    frame = attack_ratios(results)
    for (attack, label), part in frame.groupby(["attack", "algorithm"], sort=False):
        ordered = part.sort_values("share")
        measured, shares = (series(ordered["share"], ordered["ratio"], form) for form in ("{y:.2f}", "{x:g}"))
        yield Claim(f"{attack}: {label} at {shares}", "", measured)
    median = frame[(frame["algorithm"] == "geometric median") & (frame["share"] <= 0.3)]
    worst = median.loc[median["ratio"].idxmax()]
    measured = f"{worst['ratio']:.2f} at worst, {worst['attack']} at {worst['share']:g}"
    paper = "Õ(T^(3/4)) for every share below 1/2 (Theorem 2), constants hidden"
    yield Claim("geometric median against the attack-free mean, up to 30%", paper, measured)
    mean = frame[(frame["algorithm"] == "mean") & (frame["share"] > 0)]
    measured = f"more than {BROKEN:g} times the attack-free regret in {int(mean['broke'].sum())} of {len(mean)} cells"
    hardest = mean.loc[mean[mean["share"] == mean["share"].min()]["ratio"].idxmax()]
    what = f"ratio under {hardest['attack']} at {hardest['share']:g}"
    evidence = Interval(what, hardest["low"], hardest["high"], at_least=BROKEN)
    yield Claim("the mean breaks", "vulnerable to attacks on even a single agent", measured, evidence)


SOURCE = "docs/formulas/byzantine.md#attacks and docs/formulas/byzantine.md#aggregation-rules"
STUDY = Study(__doc__, SOURCE, sweeps, {"map": PICTURE}, claims)

# ---- the radius (a tenth of the printed one, or none) and the attack (three of ten agents, or nobody) are crossed

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


def price_sweeps(full: bool) -> dict[str, Sweep]:
    ends, seeds = ([10_240, 40_960, 163_840, 1_024_000], 6) if full else ([64, 128, 256], 4)
    horizon = 20_480 if full else 128

    def sweep_price(algorithms, horizon, share=SHARE, **more) -> Sweep:
        return swept(algorithms, FEDERATED, horizon, seeds, message_adversary=partial(ATTACK, corruption=share), **more)

    declared = {name: sweep_price(ALGORITHMS, ends, share) for name, share in ((ATTACKED, SHARE), (QUIET, 0.0))}
    sizes = {"agents": ("environment.num_agents", [10, 20, 40]), "dim": ("environment.dim", [2, 4, 8])}
    for name, (key, values) in sizes.items():
        grid = {key: values if full else values[:2]}
        declared[name] = sweep_price({label: ALGORITHMS[label] for label in (BONUS, GREEDY)}, horizon, grid=grid)
    rules = {BONUS: partial(a.byzantine_ucb, radius_scale=RATE), MEDIANS: GROUPED}
    many, grid = partial(FEDERATED, num_agents=20), {MESSAGE_SHARE: [SMALL, 0.1, 0.2]}
    declared["share"] = swept(rules, many, horizon, seeds, grid=grid, message_adversary=ATTACK)
    return declared


def regret_per_agent(results: Results, name: str) -> np.ndarray:
    """Regret of an honest agent [algorithm, horizon, seed] with or without the attack."""
    final = final_regret(results[name]).transpose("algorithm", "horizon", "seed")
    return final.values / honest(SHARE if name == ATTACKED else 0.0)


def draw_price(results: Results) -> plot.Plot:
    ends = results[ATTACKED]["horizon"].values
    lines: list[Curve] = [
        (f"{label}, {name}", ends, table)
        for name in (ATTACKED, QUIET)
        for label, table in zip(ALGORITHMS, regret_per_agent(results, name), strict=True)
    ]
    lines += [("T^(3/4)", ends, ends**0.75), ("√T", ends, ends**0.5)]
    dotted = {f"{label}, {QUIET}": f"{label}, {ATTACKED}" for label in ALGORITHMS}
    caption = f"{SHARE:.0%} of {NUM_AGENTS} agents send false vectors, or none; dotted: no attack; d = {DIM}"
    words = {"T": "plays T", "regret": "regret of an honest agent"}
    return shared.draw_curves("T", "regret", lines, dotted=dotted, names=words, caption=caption, width=6.5)


def paper_bonus(horizon: float, share: float = SHARE) -> float:
    """The printed bonus of a unit arm in the last episode, where features are spread evenly and L = sqrt(T) / 4."""
    window = max(1, round(0.25 * math.sqrt(horizon)))
    episode = math.ceil(horizon / window)
    setting: dict[str, Any] = {"num_agents": NUM_AGENTS, "horizon": horizon, "dim": DIM, "corruption_bound": share}
    gathered = theory.byzantine_ridge(episode, window=window, **setting) + horizon / DIM
    return theory.byzantine_radius(episode, window=window, **setting) / math.sqrt(gathered)


def price_claims(results: Results) -> Claims:
    yield from horizon_claims(results)
    yield from law_claims(results)


def horizon_claims(results: Results) -> Claims:
    """Exponents of T, what the attack adds and what the bonus adds."""
    ends = results[ATTACKED]["horizon"].values
    attacked, quiet = regret_per_agent(results, ATTACKED), regret_per_agent(results, QUIET)
    for name in (ATTACKED, QUIET):
        for label in ALGORITHMS:
            power, interval = shared.exponent(results[name].sel(algorithm=[label]), "horizon")
            paper = "at most 3/4 (Theorem 2)" if name == ATTACKED else "1/2 is known without attackers"
            measured = f"{power:.2f}" + (f"; {interval}" if name == ATTACKED and label != PRINTED else "")
            yield Claim(f"exponent of T, {label}, {name}", paper, measured)
    for row, label in enumerate(ALGORITHMS):
        for name, table in ((ATTACKED, attacked), (QUIET, quiet)):
            measured = series(ends, table[row].mean(-1), "{y:,.0f} at {x:,}")
            yield Claim(f"regret of an honest agent, {label}, {name}", "", measured)
        ratio = shared.times(attacked[row, -1], quiet[row, -1])
        measured = f"{ratio} times the regret without an attack at the longest T"
        yield Claim(f"what the attack sets, {label}", "", measured)
    ratio = shared.times(attacked[0, -1], attacked[1, -1], 1)
    measured = f"{ratio} times the regret without a bonus, attacked, at the longest T"
    yield Claim(f"what the bonus sets: {BONUS}", "", measured)
    tens = next(k for k in range(3, 60) if paper_bonus(10.0**k) < 2)
    measured = f"{paper_bonus(float(ends[-1])):.1f} at T = {ends[-1]:,}; below 2 from 10^{tens} plays on"
    yield Claim("the printed bonus of a unit arm in the last episode, where 2 is the largest gap", "", measured)


def law_claims(results: Results) -> Claims:
    """Exponents of N, d and alpha at one horizon."""
    of_agents = dict.fromkeys((BONUS, GREEDY), "N, hence 0 for one agent (Theorem 2)")
    of_share = {BONUS: "hidden in constants (Theorem 2)", MEDIANS: "1/4 at most, of what exceeds √T (Theorem 7)"}
    laws: dict[str, tuple[str, Any, dict[str, str]]] = {  # the letter, agents at a value, and what the paper says
        "agents": ("N", lambda n: honest(SHARE, num_agents=int(n)), of_agents),
        "dim": ("d", lambda dim: honest(SHARE), dict.fromkeys((BONUS, GREEDY), "d (Theorem 2)")),
        "share": ("α", lambda share: honest(float(share), num_agents=20), of_share),
    }
    for name, (letter, of, papers) in laws.items():
        ds = results[name]
        (key,) = grid_dims(ds)
        each_agent = ds[["regret"]] / ds[key].copy(data=[of(x) for x in ds[key].values])
        for label, paper in papers.items():
            one = each_agent.sel(algorithm=[label]).assign_attrs(ds.attrs)
            regret = series(ds[key].values, final_regret(one).isel(algorithm=0).mean("seed"))
            who = "geometric median" if name == "share" and label == BONUS else label
            measured = f"{shared.slope_text(slope(one, over=key).iloc[0])}; regret {regret}"
            yield Claim(f"exponent of {letter}, an honest agent, {who}", paper, measured)


TITLE = "What the bonus sets of the regret, and what the attack sets"
PRICE = Study(TITLE, "Theorems 2 and 7", price_sweeps, {"horizon": draw_price}, price_claims)

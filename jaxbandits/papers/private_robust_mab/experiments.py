"""E1 to E4: raw moments, against private and robust rivals; central moments; Bernoulli arms; beside both bounds."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import statistics, theory
from jaxbandits.formatting import percent
from jaxbandits.papers import shared
from jaxbandits.papers.shared import RATIO, REGRET, REWARD_SHARE, bound_along, horizon_of, regrets, series
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot

MEANS = [0.5, 0.1, 0.9, 0.3, 0.7]  # best in the middle: some rivals play arm by arm, and barely finish one
PARETO = partial(e.pareto_arms, means=MEANS, shape=3.5)  # E X^2 <= 0.97
PRM = {"PRM elimination": a.prm_elimination, "PRM-UCB": a.prm_ucb, "PRM-TS": a.prm_thompson}
RIVALS: dict[str, Any] = {
    "DPRSE": partial(a.dprse, moment_order=2.0, moment_bound=1.0),
    "DP-SE": a.dp_se,
    "robust UCB": partial(a.robust_ucb, moment_order=2.0, moment_bound=1.0),
}
ATTACKS = {
    "swapped": partial(v.huber, kind="swapped"),
    "replaced by 50": partial(v.huber, kind="fixed", value=50.0),
    "replaced by inf": partial(v.huber, kind="fixed", value="inf"),
}
QUICK = "replaced by inf"
ASKED_OF = {
    "DP-SE": "private, not robust",
    "robust UCB": "robust, not private",
    "DPRSE": "private, for heavy tails",
    "PRM elimination": "the paper's",
}
EPSILON, SHARE = 0.5, 0.05  # of the figures that vary something else
AXES = {"corruption_bound": "share of contaminated rewards"}


def sweeps(full: bool) -> dict[str, Sweep]:
    attacks = few(ATTACKS, full, [QUICK])
    return {name: along_both(PRM | RIVALS, PARETO, attack, full) for name, attack in attacks.items()}


def along_both(algorithms: object, environment: object, attack: object, full: bool) -> Sweep:
    """Every epsilon with every share of contaminated rewards, which the learner knows."""
    horizon, seeds = (100_000, 200) if full else (2000, 16)
    epsilons, shares = ([0.1, 0.5, 1.0], [0.0, 0.02, 0.05, 0.1]) if full else ([0.5, 1.0], [0.0, 0.05])
    more: dict[str, Any] = {"grid": {"epsilon": epsilons, REWARD_SHARE: shares}, "checkpoints": 60}
    return swept(algorithms, environment, horizon, seeds, **more, reward_adversary=attack)


def hardest_attack(results: Results) -> str:
    """The attack that is drawn: the hardest that there is."""
    return next(name for name in ATTACKS if name in results)


def order_lines(horizon: int, at: Callable[[float], tuple[float, float]]) -> dict[str, Callable[[Any], np.ndarray]]:
    """Both bounds, without their constants, as functions of an axis: `at(x)` is (epsilon, share) there."""
    sizes, gap = (len(MEANS), horizon), max(MEANS) - min(MEANS)  # cut at playing the worst arm throughout
    upper = lambda epsilon, share: theory.prm_raw_bound(*sizes, epsilon, corruption_bound=share, max_gap=gap)
    lower = lambda epsilon, share: theory.private_robust_lower_bound(*sizes, epsilon, corruption=share, max_gap=gap)
    return {"upper bound (order)": bound_along(upper, at), "lower bound (order, times 1/27)": bound_along(lower, at)}


def draw_time(results: Results) -> plot.Plot:
    name = hardest_attack(results)
    caption = f"Pareto rewards; contamination: {name}; ε = {EPSILON}"
    return plot.regret(results[name], select={"epsilon": EPSILON}, log="both", names=AXES, caption=caption)


def draw(key: str, at: Any, given: str, results: Results, select: Any = None, name: str = "") -> plot.Plot:
    """Final regret along epsilon or the share, with the bounds' orders."""
    name, reference = name or hardest_attack(results), order_lines(horizon_of(results), at)
    caption = f"Pareto rewards; {given.format(name)}"
    return plot.against(results[name], key, select=select, reference=reference, names=AXES, caption=caption, width=5.5)


def claims(results: Results) -> Claims:
    """PRM-UCB against each rival over all cells, and the regrets of everyone at one epsilon."""
    frame = pd.concat([regrets(ds).assign(attack=name) for name, ds in results.items()], ignore_index=True)
    once = frame["attack"] == hardest_attack(results)  # without contamination
    frame = frame[(frame["corruption_bound"] > 0) | once]
    cells = frame.set_index(["attack", "epsilon", "corruption_bound", "algorithm"])
    mean, low, high = (cells[column].unstack() for column in ("mean", "low", "high"))
    for rival, what in ASKED_OF.items():
        fewer = mean["PRM-UCB"] < mean[rival]
        apart = (high["PRM-UCB"] < low[rival]) | (high[rival] < low["PRM-UCB"])
        measured = f"in {int(fewer.sum())} of {len(mean)} cells; intervals overlap in {int((~apart).sum())}"
        yield Claim(f"PRM-UCB has less regret than {rival}, {what}", "", measured)
    sizes = len(MEANS), horizon_of(results)
    upper = [theory.prm_raw_bound(*sizes, epsilon, corruption_bound=share) for _, epsilon, share in mean.index]
    ratio = mean["PRM elimination"].to_numpy() / np.array(upper)
    within = int((ratio <= 1).sum())
    measured = f"{ratio.min():.2f} to {ratio.max():.2f} of it; at most 1 in {within} of {len(ratio)} cells"
    yield Claim("PRM elimination against the order of Theorem 6.2", "at most the order, constants hidden", measured)
    for (name, epsilon, share), row in mean.iterrows():
        if epsilon == EPSILON:
            attack = f"{percent(share)} {name}" if share else "no contamination"
            everyone = list(PRM | RIVALS)
            yield Claim(f"regret, ε = {epsilon:g}, {attack}", "", series(everyone, row[everyone], REGRET))


PAGE = "docs/reproductions/private_robust_mab.md"
TITLE = "Heavy tails, contamination and privacy at once: rewards with a bounded raw moment"
BY_EPSILON = partial(draw, "epsilon", lambda x: (x, SHARE), f"{SHARE:.0%} contaminated: {{}}")
BY_SHARE = partial(draw, "corruption_bound", lambda x: (EPSILON, x), f"contamination: {{}}; ε = {EPSILON}")
PICTURES: dict[str, Any] = {
    "time": draw_time,
    "epsilon": partial(BY_EPSILON, select={"corruption_bound": SHARE}),
    "share": partial(BY_SHARE, select={"epsilon": EPSILON}),
}
STUDY = Study(TITLE, f"Theorem 6.2; {PAGE}", sweeps, PICTURES, claims)

# ---- E2: rewards far from zero, of which a bound on the means and a central moment are known; Cauchy contamination

OFFSETS = np.array([-1.0, -3.0, 1.0, -2.0, 0.0])  # of the means from D / 2
RAW = "PRM elimination, raw moment"


def central_sweeps(full: bool) -> dict[str, Sweep]:
    declared = {}
    for bound in (10, 100, 1000) if full else (10,):
        means = bound / 2 + OFFSETS
        central: dict[str, Any] = {"moment": "central", "moment_bound": 1.0, "mean_bound": float(bound)}
        algorithms = {label: partial(algorithm, **central) for label, algorithm in PRM.items()}
        # all that a raw moment says of the same rewards
        algorithms[RAW] = partial(a.prm_elimination, moment_bound=1 + float(max(means)) ** 2)
        environment = partial(e.student_arms, means=means.tolist(), df=3.0, scale=3**-0.5)
        declared[f"D-{bound}"] = along_both(algorithms, environment, partial(v.huber, kind="cauchy"), full)
    return declared


def bounds_of(results: Results) -> list[int]:
    """The values of D that were run."""
    return [int(name.removeprefix("D-")) for name in results]


def draw_central_time(results: Results) -> plot.Plot:
    bounds = bounds_of(results)
    bound = bounds[len(bounds) // 2]
    caption = f"Student rewards, means near {bound / 2:g}, D = {bound}; Cauchy contamination; ε = {EPSILON}"
    return plot.regret(results[f"D-{bound}"], select={"epsilon": EPSILON}, log="both", names=AXES, caption=caption)


def draw_bound(results: Results) -> plot.Plot:
    bounds = pd.Index(np.array(bounds_of(results), float), name="mean_bound")
    joined = xr.concat([ds[["regret"]].isel(t=[-1]) for ds in results.values()], bounds)
    sizes = len(OFFSETS), int(joined.t[-1])
    top = sizes[1] * float(OFFSETS.max() - OFFSETS.min())
    order = lambda x: min(theory.prm_central_bound(*sizes, EPSILON, x, corruption_bound=SHARE), top)
    reference = {"upper bound (order)": bound_along(order, lambda x: (x,))}
    return plot.against(
        joined.assign_attrs(constant_along="{}"), "mean_bound", reference=reference, width=5.5,
        select={"epsilon": EPSILON, "corruption_bound": SHARE}, names={"mean_bound": "bound D on the means"},
        caption=f"Student rewards; {percent(SHARE)} contaminated: Cauchy; ε = {EPSILON}",
    )  # fmt: skip


def central_claims(results: Results) -> Claims:
    own = {}
    for bound in bounds_of(results):
        cells = regrets(results[f"D-{bound}"]).set_index(["epsilon", "corruption_bound", "algorithm"])
        mean, low, high = (cells[column].unstack() for column in ("mean", "low", "high"))
        own[bound] = mean["PRM elimination"]
        apart, ratio = high["PRM elimination"] < low[RAW], mean[RAW] / mean["PRM elimination"]
        measured = f"in {int(apart.sum())} of {len(mean)} cells; {ratio.min():.1f} to {ratio.max():.1f} times less"
        paper = "the upper bound adds a term in D instead of a factor D (Theorem 6.12 against 6.2)"
        yield Claim(f"D = {bound}: less regret than all that a raw moment says", paper, measured)
        for share, row in mean.loc[EPSILON].iterrows():
            attack = f"{percent(share)} Cauchy" if share else "no contamination"
            yield Claim(f"regret, D = {bound}, ε = {EPSILON:g}, {attack}", "", series(row.index, row, REGRET))
    ratio = own[max(own)] / own[min(own)]
    measured = f"{ratio.min():.2f} to {ratio.max():.2f} times the regret of PRM elimination, over the cells"
    yield Claim(f"D = {max(own)} against {min(own)}", "T₀ grows with log D, the bound with D", measured)


CENTRAL_TITLE = "Rewards far from zero: a bound on the means and a central moment"
CENTRAL_PICTURES = {"time": draw_central_time, "mean-bound": draw_bound}
CENTRAL_SOURCE = f"Theorems 6.10 and 6.12; {PAGE}"
CENTRAL = Study(CENTRAL_TITLE, CENTRAL_SOURCE, central_sweeps, CENTRAL_PICTURES, central_claims)

# ---- E3: Bernoulli arms, as in papers on private bandits, with everything that a reader would compare; what knows no
# epsilon runs once

COINS = {"one close": [0.7, 0.7, 0.75, 0.7, 0.7], "spread": [0.5, 0.25, 0.75, 0.375, 0.625]}  # best in the middle
PRIVATE = {
    "PRM elimination": a.prm_elimination, "PRM-UCB": a.prm_ucb, "PRM-TS": a.prm_thompson, "DP-SE": a.dp_se,
    "AdaP-UCB": a.adap_ucb, "AdaP-KLUCB": a.adap_kl_ucb, "LDP-UCB": a.ldp_ucb,
    "LDP-UCB, randomised response": partial(a.ldp_ucb, mechanism="randomized_response"),
}  # fmt: skip
PLAIN = {"UCB1": a.ucb1, "KL-UCB": a.kl_ucb, "Thompson": a.thompson, "MOSS": a.moss}
DRAWN = [*PRIVATE, "UCB1", "Thompson"]
QUICKLY = {*PRIVATE, *PLAIN} - {"PRM-TS", "AdaP-KLUCB", "KL-UCB"}


def bernoulli_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (100_000, 200) if full else (2000, 16)
    grid = {"environment.means": COINS, "epsilon": [0.1, 0.25, 0.5, 1.0] if full else [0.25, 1.0]}
    algorithms = few(PRIVATE | PLAIN, full, QUICKLY)
    return {"arms": swept(algorithms, e.bernoulli_arms, horizon, seeds, grid=grid, checkpoints=60)}


def draw_coins(instance, epsilon, results: Results) -> plot.Plot:
    ds = results["arms"]
    shown = shared.and_own(ds, (label for label in DRAWN if label in ds["algorithm"].values))
    select = {"environment.means": instance, "epsilon": epsilon, "algorithm": shown}
    caption = f"Bernoulli arms, {instance}: {COINS[instance]}; ε = {epsilon:g}"
    return plot.regret(ds, select=select, log="both", caption=caption, width=5.5)


def bernoulli_claims(results: Results) -> Claims:
    """Mean regrets, best first."""
    frame = regrets(results["arms"])
    private = frame[frame["algorithm"].isin(PRIVATE)]
    for (instance, epsilon), part in private.groupby(["environment.means", "epsilon"], sort=False):
        ordered = part.sort_values("mean")
        measured = series(ordered["algorithm"], ordered["mean"], REGRET)
        yield Claim(f"private algorithms by regret, {instance}, ε = {epsilon:g}", "", measured)


def draw_by_epsilon(instance, results: Results) -> plot.Plot:
    select, caption = {"environment.means": instance}, f"Bernoulli arms, {instance}: {COINS[instance]}"
    return plot.against(results["arms"], "epsilon", select=select, caption=caption, width=5.5)


BERNOULLI_PICTURES = {"time": partial(draw_coins, "spread", 1.0)}
BERNOULLI_PICTURES |= {instance.replace(" ", "-"): partial(draw_by_epsilon, instance) for instance in COINS}
BERNOULLI = Study(
    "Bernoulli arms, as in papers on private bandits", PAGE, bernoulli_sweeps, BERNOULLI_PICTURES, bernoulli_claims
)

# ---- E4: against epsilon and against the share, between the lower and the upper bound


def bound_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (100_000, 200) if full else (2000, 16)
    epsilons = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0] if full else [0.1, 1.0]
    shares = {"epsilon": [1.0], REWARD_SHARE: [0.001, 0.003, 0.01, 0.03, 0.1] if full else [0.01, 0.1]}
    prm = partial(swept, PRM, PARETO, horizon, seeds)
    return {"epsilon": prm(grid={"epsilon": epsilons}), "share": prm(grid=shares, reward_adversary=ATTACKS["swapped"])}


ALONG: dict[str, tuple[str, Any, str]] = {  # of each sweep the key, (epsilon, share) at its values, and what is given
    "epsilon": ("epsilon", lambda x: (x, 0.0), "no contamination"),
    "share": ("corruption_bound", lambda x: (1.0, x), "swapped rewards, ε = 1"),
}


def bound_claims(results: Results) -> Claims:
    exponents = {
        "epsilon": ("1/ε", -1, "1/2 (k = 2), uniformly over instances"),
        "share": ("α", 1, "1/2 (k = 2), and -1 where T₀ rules"),
    }
    for name, (what, sign, paper) in exponents.items():
        key, at, _ = ALONG[name]
        upper, lower = order_lines(horizon_of(results), at).values()
        for row in statistics.slope(results[name], over=key).itertuples():
            yield Claim(f"exponent of {what}, {row.algorithm}", paper, shared.slope_text(row, sign))
        for label, part in regrets(results[name]).groupby("algorithm", sort=False):
            x, mean = part[key].to_numpy(), part["mean"].to_numpy()
            above, ratio = int((mean >= lower(x)).sum()), mean / upper(x)
            measured = f"above the lower (times 1/27) at {above}, below the upper at {int((ratio <= 1).sum())} of "
            measured += f"{len(part)} points; {ratio.min():.2f} to {ratio.max():.2f} of the upper"
            paper = "orders, constants unspecified; the upper is proved for PRM elimination"
            yield Claim(f"between the bounds along {what}, {label}", paper, measured)


BOUND_TITLE = "Regret between the lower and the upper bound"
BOUND_PICTURES = {name: partial(draw, *axis, name=name) for name, axis in ALONG.items()}
BOUNDED = Study(BOUND_TITLE, f"Theorems 4.1 and 6.2; {PAGE}", bound_sweeps, BOUND_PICTURES, bound_claims)

# ---- rewards replaced by inf, NaN, a million or minus a million, of which the robust algorithms are told the share

VALUES: dict[str, Any] = {"inf": "inf", "NaN": "nan", "1e6": 1e6, "-1e6": -1e6}
OUTLIERS = {name: partial(v.huber, value=value) for name, value in VALUES.items()} | {"swapped": ATTACKS["swapped"]}
ALGORITHMS = {
    "PRM elimination": partial(a.prm_elimination, epsilon=1.0, corruption_bound=SHARE),
    "PRM-UCB": partial(a.prm_ucb, epsilon=1.0, corruption_bound=SHARE),
    "robust UCB, truncated mean": RIVALS["robust UCB"],
    "robust UCB, median of means": partial(RIVALS["robust UCB"], estimator="median_of_means"),
    "robust UCB, Catoni": partial(RIVALS["robust UCB"], estimator="catoni"),
    "Huber UCB": partial(a.huber_ucb, corruption_bound=SHARE),
    "crUCB, trimmed mean": partial(a.cr_ucb, corruption_bound=SHARE),
    "crUCB, shorth": partial(a.cr_ucb, estimator="shorth", corruption_bound=SHARE),
    "UCB1": a.ucb1,
}
SAID = "the order does not depend on what replaces a reward (Theorem 6.2), constants hidden"
STREAMING = ("PRM elimination", "PRM-UCB", "robust UCB, truncated mean", "UCB1")  # keep no rewards


def outlier_sweeps(full: bool) -> dict[str, Sweep]:
    """With each attack and without; algorithms that store all rewards take time as T^2: their T is short."""
    long, short, seeds = (100_000, 4000, 100) if full else (2000, 1000, 8)
    storing = {label: algorithm for label, algorithm in ALGORITHMS.items() if label not in STREAMING}
    streaming, storing = {label: ALGORITHMS[label] for label in STREAMING}, few(storing, full, list(storing)[-1:])
    grid, declared = {"reward_adversary.corruption": [0.0, SHARE]}, {}
    for group, algorithms, horizon in (("", streaming, long), ("-kept", storing, short)):
        for name, attack in few(OUTLIERS, full, ("inf", "1e6")).items():
            declared[name + group] = swept(algorithms, PARETO, horizon, seeds, grid=grid, reward_adversary=attack)
    return declared


def outlier_claims(results: Results) -> Claims:
    attacks = [name for name in results if not name.endswith("-kept")]
    for group in ("", "-kept"):
        first, keys = results[attacks[0] + group], ["reward_adversary.corruption", "algorithm"]
        means = {name: regrets(results[name + group]).set_index(keys)["mean"] for name in attacks}
        nonfinite = first["nonfinite_rewards"].isel({"reward_adversary.corruption": -1}).mean("seed")
        for label in map(str, first["algorithm"].values):
            measured = series(attacks, [means[name][SHARE, label] / means[name][0.0, label] for name in attacks], RATIO)
            measured += f"; a non-finite reward {'left out, n stays' if label in PRM else 'counts as 0'}, "
            measured += f"{float(nonfinite.sel(algorithm=label)):,.0f} of them a run"
            clean = means[attacks[0]][0.0, label]
            statement = f"{label}, T = {int(first.t[-1]):,}: regret {clean:,.0f} without; ratio with"
            yield Claim(statement, SAID if label == "PRM elimination" else "", measured)


CONTAMINATION = "docs/formulas/private_robust_mab.md#contamination"
BREAKING = Study("Five per cent of rewards replaced: who breaks", CONTAMINATION, outlier_sweeps, {}, outlier_claims)

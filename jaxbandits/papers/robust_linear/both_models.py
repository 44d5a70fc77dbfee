"""Regret of both client models against plays, privacy level and corruption."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import statistics, theory
from jaxbandits.formatting import percent
from jaxbandits.papers import shared
from jaxbandits.papers.robust_linear import instance
from jaxbandits.papers.robust_linear.instance import DIM, M1, M2, PRIVATE, gaps, join_horizons, target, with_batches
from jaxbandits.papers.shared import MESSAGE_SHARE, Curve, regrets, series
from jaxbandits.papers.study import Claim, Claims, Exact, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot

OURS = {"M1": M1, "M2": M2}
PRIVATE_RIVALS = {
    "phased elimination": a.phased_elimination,
    "central, Laplace": partial(a.private_elimination, mechanism="laplace"),
    "central, Gaussian": partial(a.private_elimination, mechanism="gaussian", calibration="paper", delta=1e-5),
}
ROBUST_RIVALS = {
    "no filter": partial(M1, variance_bound="observed", presieve=False),
    "bucket medians": a.median_elimination,
    "trimmed means": a.trimmed_elimination,
    "Bogunovic et al., C unknown": a.bogunovic_elimination,
}
EPSILON, VALUE = 1.0, 30.0


def sweeps(full: bool) -> dict[str, Sweep]:
    seeds, horizon = (200, 100_000) if full else (4, 100)  # a quick run compiles most of its time: few batches
    horizons = [1000, 10_000, 100_000, 1_000_000] if full else [50, 100]
    epsilons = {"epsilon": [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, float("inf")] if full else [1.0, float("inf")]}
    shares = {MESSAGE_SHARE: [0.0, 0.01, 0.02, 0.05, 0.1, 0.2] if full else [0.0, 0.1]}
    # M2 compiles a body for each batch
    alone, robust = few(OURS, full, ["M1"]), few(OURS | ROBUST_RIVALS, full, ["M1", "no filter"])
    private = with_batches(OURS | few(PRIVATE_RIVALS, full, ["phased elimination"]), horizon)
    robust, at_end = with_batches(robust, horizon), {"epsilon": [EPSILON, float("inf")]}
    curves = partial(swept, environment=PRIVATE, horizon=horizon, seeds=seeds, checkpoints=60)
    declared = instance.horizon_sweeps(alone, horizons, PRIVATE, seeds, at_end)
    declared["epsilon"] = curves(private, grid=epsilons)
    return declared | {"share": curves(robust, grid=shares, message_adversary=target(VALUE))}


def orders(at, shown=()):
    """Theorem 1.3's order for M1 and that of the proof for M2; `at(x)` is (horizon, epsilon, corruption) there."""
    first = lambda horizon, epsilon, share: theory.robust_linear_reward_bound(DIM, horizon, epsilon, corruption=share)
    second = lambda horizon, epsilon, _: theory.robust_linear_action_bound(DIM, horizon, epsilon)
    both = {"order, M1": shared.bound_along(first, at), "order, M2 (α = 0)": shared.bound_along(second, at)}
    return {order: both[order] for order in shown or both}


PRIVATELY = f"rewards of ±1, ε = {EPSILON:g}, no corruption"


def claims(results: Results) -> Claims:
    for row in statistics.slope(join_horizons(results), over="horizon").itertuples():
        paper = "1/2 in the upper bound, logarithms dropped"
        yield Claim(f"exponent of T, {row.algorithm}, ε = {row.epsilon:g}", paper, shared.slope_text(row))
    frame = regrets(results["epsilon"])
    cells = frame[np.isfinite(frame["epsilon"])].set_index(["epsilon", "algorithm"])["mean"].unstack()
    measured = f"at {int((cells['M2'] < cells['M1']).sum())} of {len(cells)} values of ε"
    paper = "the upper bound of M2 grows more slowly as ε falls (Theorem 1.4)"
    yield Claim("private, no corruption: M2 has less regret than M1", paper, measured)
    yield from shared.by_value(results["epsilon"], "epsilon", "regret, ε = {:g}, no corruption".format)
    statement = lambda share: f"regret, ε = ∞, {percent(share)} of ±{VALUE:g}"
    yield from shared.by_value(results["share"], "corruption_bound", statement)


STUDY = Study(
    __doc__, "Theorems 1.3, 1.4, 3.4 and 3.9", sweeps,
    {
        "horizon": shared.against(
            join_horizons, "horizon", select={"epsilon": EPSILON}, reference=orders(lambda x: (x, EPSILON, 0.0)),
            caption=PRIVATELY, width=5.5,
        ),
        "time": shared.picture(plot.regret, "epsilon", select={"epsilon": EPSILON}, log="both", caption=PRIVATELY),
        "epsilon": shared.against(
            "epsilon", "epsilon", reference=lambda ds: orders(lambda x: (int(ds.t[-1]), x, 0.0)),
            caption="rewards of ±1, no corruption", width=5.5,
        ),
        "share": shared.against(
            "share", "corruption_bound", names={"corruption_bound": "share of corrupted reports"}, width=5.5,
            reference=lambda ds: orders(lambda x: (int(ds.t[-1]), float("inf"), x), ["order, M1"]),
            caption=f"rewards of ±1, ε = ∞; corrupted reports: -{VALUE:g} on the best arm, {VALUE:g} elsewhere",
        ),
    },
    claims,
)  # fmt: skip

# ---- Figure 1, three panels: T of the left and the right one and d of the left are not in our copy

HORIZON = 10_000  # where the center panel ends, and of both other panels
CENTER_EPSILON, CENTER_DIM, CENTER_ARMS = 0.1, 50, 100
LARGEST_SHARE = 0.5  # where the right panel ends

_RNG = np.random.default_rng(50)
_ACTIONS, _THETA = (instance.unit(_RNG.normal(size=shape)) for shape in ((CENTER_ARMS, CENTER_DIM), CENTER_DIM))
CENTER = partial(e.linear_arms, actions=_ACTIONS, theta=_THETA, noise="rademacher")
CENTER_MODELS = {"M1": M1, "M2": partial(M2, weight_floor=1 / CENTER_DIM)}  # the order of M2 is that of 1/d


def figure_sweeps(full: bool) -> dict[str, Sweep]:
    """M1 over epsilon; both models over horizons in fifty dimensions; M1 over shares of corrupted reports."""
    seeds, horizon = (200, HORIZON) if full else (8, 1000)
    epsilons = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0] if full else [0.1, 1.0]
    horizons = [10, 100, 1000, 10_000] if full else [100]  # one: each compiles two programs
    shares = [0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.24] if full else [0.0, 0.1]
    right = {MESSAGE_SHARE: shares, "epsilon": [EPSILON]}
    first = partial(swept, with_batches({"M1": M1}, horizon), PRIVATE, horizon, seeds)
    return {
        "left": first(grid={"epsilon": [*epsilons, float("inf")]}),
        **instance.horizon_sweeps(CENTER_MODELS, horizons, CENTER, seeds, {"epsilon": [CENTER_EPSILON]}),
        "right": first(grid=right, message_adversary=target(VALUE)),
    }


def _regret_curve(line: str, frame: pd.DataFrame, xs: Any) -> Curve:
    return line, xs, *(frame[column] for column in ("mean", "low", "high"))


WORST = "worst arm at every play"


def panel_left(results: Results) -> list[Curve]:
    """M1 with privacy and without, against epsilon."""
    horizon = int(results["left"].t[-1])
    frame, xs = regrets(results["left"]), np.linspace(0.02, 1.0, 99)
    private, free = frame[np.isfinite(frame["epsilon"])], frame[np.isinf(frame["epsilon"])]
    ends = xs[[0, -1]]
    return [
        _regret_curve("private", private, private["epsilon"]),
        *(_regret_curve("not private", free, [x]) for x in ends),
        ("private: √(dT)(1 + 1/ε)", xs, [theory.robust_linear_reward_bound(DIM, horizon, x) for x in xs]),
        ("not private: √(dT)", ends, [theory.robust_linear_reward_bound(DIM, horizon)] * 2),
        (WORST, ends, [gaps(PRIVATE).max() * horizon] * 2),
    ]


def panel_center(results: Results) -> list[Curve]:
    """Both models at epsilon = 0.1 in fifty dimensions, against T."""
    frame = regrets(join_horizons(results))
    xs = np.unique(np.geomspace(1, frame["horizon"].max(), 41))
    parts = {label: frame[frame["algorithm"] == label] for label in CENTER_MODELS}
    action = partial(theory.robust_linear_action_bound, CENTER_DIM, epsilon=CENTER_EPSILON)
    return [
        *(_regret_curve(label, part, part["horizon"]) for label, part in parts.items()),
        ("M1: √(dT)(1 + 1/ε)", xs, [theory.robust_linear_reward_bound(CENTER_DIM, x, CENTER_EPSILON) for x in xs]),
        ("M2: d√T + d/ε", xs, [action(horizon=x, source="theorem") for x in xs]),
        ("M2, the proof's: d√T + d^(3/2) ln(T)/ε", xs, [action(horizon=x, source="proof") for x in xs]),
        (WORST, xs, gaps(CENTER).max() * xs),
    ]


def panel_right(results: Results) -> list[Curve]:
    """M1 at epsilon = 1 in five dimensions, against the share of corrupted reports."""
    horizon, xs = int(results["right"].t[-1]), np.linspace(0, LARGEST_SHARE, 51)
    frame, order = regrets(results["right"]), partial(theory.robust_linear_reward_bound, DIM, horizon, EPSILON)
    return [
        _regret_curve("M1", frame, frame["corruption_bound"]),
        ("M1: (√(dT) + T max{√(αd), αd})(1 + 1/ε)", xs, [order(corruption=x) for x in xs]),
        (WORST, xs[[0, -1]], [gaps(PRIVATE).max() * horizon] * 2),
    ]


WORDS = {"epsilon": "privacy level ε", "horizon": "horizon T (plays)"}
WORDS |= {"share": "share α of corrupted reports", "regret": "cumulative regret"}
PANELS: dict[str, tuple[Any, str, Any, dict[str, str], str]] = {  # lines, axis, its scale, what is dotted, caption
    "left": (
        panel_left, "epsilon", "y", {"private: √(dT)(1 + 1/ε)": "private", "not private: √(dT)": "not private"},
        "M1, α = 0, d = 5, T = {horizon:,}; dotted: the orders that the paper draws, constants of 1",
    ),
    "center": (
        panel_center, "horizon", "both", {"M1: √(dT)(1 + 1/ε)": "M1", "M2: d√T + d/ε": "M2"},
        "ε = 0.1, α = 0, d = 50, a sweep for each T; dotted: the orders that the paper draws, constants of 1",
    ),
    "right": (
        panel_right, "share", "y", {"M1: (√(dT) + T max{√(αd), αd})(1 + 1/ε)": "M1"},
        "M1, ε = 1, d = 5, T = {horizon:,}, corrupted reports ∓30; dotted: the order that the paper draws",
    ),
}  # fmt: skip


def draw_panel(panel, results: Results) -> plot.Plot:
    lines, x, log, dotted, caption = PANELS[panel]
    caption = caption.format(horizon=int(results["left"].t[-1]))
    return shared.draw_curves(x, "regret", lines(results), log, dotted=dotted, names=WORDS, caption=caption, width=5.5)


def figure_claims(results: Results) -> Claims:
    for panel, (lines, x, _, dotted, _) in PANELS.items():
        frame = shared.curves(x, "regret", lines(results))
        for order, line in dotted.items():
            measured, stated = frame[frame["line"] == line], frame[frame["line"] == order]
            ratio = measured["regret"].to_numpy() / np.interp(measured[x], stated[x], stated["regret"])
            spread = " to ".join(dict.fromkeys(f"{y:.2f}" for y in (ratio.min(), ratio.max())))
            yield Claim(f"{panel}, {order}: measured over it", "at most the order, constants hidden", spread)
        listed = frame[frame["line"].isin(dotted.values())]
        for line, part in listed.groupby("line", sort=False):
            across = part["regret"].nunique() == 1  # a line across the panel
            measured = f"{part['regret'].iloc[0]:,.0f}" if across else series(part[x], part["regret"])
            yield Claim(f"{panel}, {line}: regret", "", measured)
    at = CENTER_DIM, HORIZON, CENTER_EPSILON
    first = theory.robust_linear_reward_bound(*at)
    second, proof = (theory.robust_linear_action_bound(*at, source=source) for source in ("theorem", "proof"))
    measured = f"M1 {first:,.0f}; M2 {second:,.0f} by Theorem 1.4 and {proof:,.0f} by the proof"
    paper, evidence = "that of M2 (Theorem 1.4) is below that of M1", Exact(second - first, at_most=0.0)
    yield Claim(f"center, the orders at T = {HORIZON:,}", paper, measured, evidence)


TITLE = "Figure 1: the orders that the paper draws, and measured regret"
PICTURES = {panel: partial(draw_panel, panel) for panel in PANELS}
FIGURE_1 = Study(TITLE, "Figure 1", figure_sweeps, PICTURES, figure_claims)

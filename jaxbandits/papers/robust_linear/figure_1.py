"""Figure 1: the orders that the paper draws, and measured regret.

Three panels. T of the left and the right panel and d of the left are not in our copy: they are 10,000 and 5 here.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.papers.robust_linear import instance
from jaxbandits.papers.robust_linear.instance import DIM, M1, M2, PRIVATE, gaps, joined, target, unit, with_batches
from jaxbandits.papers.shared import MESSAGE_SHARE, Curve, curves, drawn, points, regrets
from jaxbandits.papers.study import Claim, Claims, Exact, Results, Study, Sweep, swept
from jaxbandits.reports import plot

HORIZON = 10_000  # where the center panel ends, and of both other panels
VALUE = 30.0  # of a corrupted report
RIGHT_EPSILON = 1.0
CENTER_EPSILON, CENTER_DIM, CENTER_ARMS = 0.1, 50, 100
LARGEST_SHARE = 0.5  # where the right panel ends

_RNG = np.random.default_rng(50)
CENTER = partial(
    e.linear_arms, actions=unit(_RNG.normal(size=(CENTER_ARMS, CENTER_DIM))), theta=unit(_RNG.normal(size=CENTER_DIM)),
    noise="rademacher",
)  # fmt: skip
CENTER_MODELS = {"M1": M1, "M2": partial(M2, weight_floor=1 / CENTER_DIM)}  # the order of M2 is that of 1/d


def sweeps(full: bool) -> dict[str, Sweep]:
    """M1 over epsilon; both models over horizons in fifty dimensions; M1 over shares of corrupted reports."""
    seeds, horizon = (200, HORIZON) if full else (8, 1000)
    epsilons = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0] if full else [0.1, 1.0]
    horizons = [10, 100, 1000, 10_000] if full else [100]  # one: each compiles two programs
    shares = [0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.24] if full else [0.0, 0.1]
    right = {MESSAGE_SHARE: shares, "epsilon": [RIGHT_EPSILON]}
    first = partial(swept, with_batches({"M1": M1}, horizon), PRIVATE, horizon, seeds)
    return {
        "left": first(grid={"epsilon": [*epsilons, float("inf")]}),
        **instance.horizon_sweeps(CENTER_MODELS, horizons, CENTER, seeds, {"epsilon": [CENTER_EPSILON]}),
        "right": first(grid=right, message_adversary=target(VALUE)),
    }


def _measured(line: str, frame: pd.DataFrame, xs: Any) -> Curve:
    return line, xs, *(frame[column] for column in ("mean", "low", "high"))


WORST = "worst arm at every play"


def left(results: Results) -> list[Curve]:
    """M1 with privacy and without, against epsilon."""
    horizon = int(results["left"].t[-1])
    frame, xs = regrets(results["left"]), np.linspace(0.02, 1.0, 99)
    private, free = frame[np.isfinite(frame["epsilon"])], frame[np.isinf(frame["epsilon"])]
    ends = xs[[0, -1]]
    return [
        _measured("private", private, private["epsilon"]),
        *(_measured("not private", free, [x]) for x in ends),
        ("private: √(dT)(1 + 1/ε)", xs, [theory.robust_linear_reward_bound(DIM, horizon, x) for x in xs]),
        ("not private: √(dT)", ends, [theory.robust_linear_reward_bound(DIM, horizon)] * 2),
        (WORST, ends, [gaps(PRIVATE).max() * horizon] * 2),
    ]


def center(results: Results) -> list[Curve]:
    """Both models at epsilon = 0.1 in fifty dimensions, against T."""
    frame = regrets(joined(results))
    xs = np.unique(np.geomspace(1, frame["horizon"].max(), 41))
    parts = {label: frame[frame["algorithm"] == label] for label in CENTER_MODELS}
    action = partial(theory.robust_linear_action_bound, CENTER_DIM, epsilon=CENTER_EPSILON)
    return [
        *(_measured(label, part, part["horizon"]) for label, part in parts.items()),
        ("M1: √(dT)(1 + 1/ε)", xs, [theory.robust_linear_reward_bound(CENTER_DIM, x, CENTER_EPSILON) for x in xs]),
        ("M2: d√T + d/ε", xs, [action(horizon=x, source="theorem") for x in xs]),
        ("M2, the proof's: d√T + d^(3/2) ln(T)/ε", xs, [action(horizon=x, source="proof") for x in xs]),
        (WORST, xs, gaps(CENTER).max() * xs),
    ]


def right(results: Results) -> list[Curve]:
    """M1 at epsilon = 1 in five dimensions, against the share of corrupted reports."""
    horizon, xs = int(results["right"].t[-1]), np.linspace(0, LARGEST_SHARE, 51)
    frame, order = regrets(results["right"]), partial(theory.robust_linear_reward_bound, DIM, horizon, RIGHT_EPSILON)
    return [
        _measured("M1", frame, frame["corruption_bound"]),
        ("M1: (√(dT) + T max{√(αd), αd})(1 + 1/ε)", xs, [order(corruption=x) for x in xs]),
        (WORST, xs[[0, -1]], [gaps(PRIVATE).max() * horizon] * 2),
    ]


WORDS = {
    "epsilon": "privacy level ε", "horizon": "horizon T (plays)", "share": "share α of corrupted reports",
    "regret": "cumulative regret",
}  # fmt: skip
PANELS: dict[str, tuple[Any, str, Any, dict[str, str], str]] = {  # lines, axis, its scale, what is dotted, caption
    "left": (
        left, "epsilon", "y", {"private: √(dT)(1 + 1/ε)": "private", "not private: √(dT)": "not private"},
        "M1, α = 0, d = 5, T = {horizon:,}; dotted: the orders that the paper draws, constants of 1",
    ),
    "center": (
        center, "horizon", "both", {"M1: √(dT)(1 + 1/ε)": "M1", "M2: d√T + d/ε": "M2"},
        "ε = 0.1, α = 0, d = 50, a sweep for each T; dotted: the orders that the paper draws, constants of 1",
    ),
    "right": (
        right, "share", "y", {"M1: (√(dT) + T max{√(αd), αd})(1 + 1/ε)": "M1"},
        "M1, ε = 1, d = 5, T = {horizon:,}, corrupted reports ∓30; dotted: the order that the paper draws",
    ),
}  # fmt: skip


def draw(panel, results: Results) -> plot.Plot:
    lines, x, log, dotted, caption = PANELS[panel]
    caption = caption.format(horizon=int(results["left"].t[-1]))
    return drawn(x, "regret", lines(results), log, dotted=dotted, names=WORDS, caption=caption, width=5.5)


def claims(results: Results) -> Claims:
    for panel, (lines, x, _, dotted, _) in PANELS.items():
        frame = curves(x, "regret", lines(results))
        for order, line in dotted.items():
            measured, stated = frame[frame["line"] == line], frame[frame["line"] == order]
            ratio = measured["regret"].to_numpy() / np.interp(measured[x], stated[x], stated["regret"])
            spread = " to ".join(dict.fromkeys(f"{y:.2f}" for y in (ratio.min(), ratio.max())))
            yield Claim(f"{panel}, {order}: measured over it", "at most the order, constants hidden", spread)
        listed = frame[frame["line"].isin(dotted.values())]
        for line, part in listed.groupby("line", sort=False):
            across = part["regret"].nunique() == 1  # a line across the panel
            measured = f"{part['regret'].iloc[0]:,.0f}" if across else points(part[x], part["regret"])
            yield Claim(f"{panel}, {line}: regret", "", measured)
    at = CENTER_DIM, HORIZON, CENTER_EPSILON
    first = theory.robust_linear_reward_bound(*at)
    second, proof = (theory.robust_linear_action_bound(*at, source=source) for source in ("theorem", "proof"))
    measured = f"M1 {first:,.0f}; M2 {second:,.0f} by Theorem 1.4 and {proof:,.0f} by the proof"
    paper, evidence = "that of M2 (Theorem 1.4) is below that of M1", Exact(second - first, at_most=0.0)
    yield Claim(f"center, the orders at T = {HORIZON:,}", paper, measured, evidence)


STUDY = Study(__doc__, "Figure 1", sweeps, {panel: partial(draw, panel) for panel in PANELS}, claims)

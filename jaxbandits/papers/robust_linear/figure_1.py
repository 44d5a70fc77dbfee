"""Figure 1: the three panels with the paper's axes and parameters, the orders that it draws and measured regret.

The paper draws orders only. Its caption gives epsilon, alpha and d where they are fixed; T of the left and the right
panel and d of the left are not in our copy: they are 10,000 and 5 here.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.papers.robust_linear.instance import (
    ACTIONS,
    DIM,
    M1,
    M2,
    PRIVATE,
    THETA,
    horizon_sweeps,
    joined,
    target,
    unit,
    with_batches,
)
from jaxbandits.papers.shared import MESSAGE_SHARE, regrets
from jaxbandits.papers.study import Claim, Exact, Results, Study, Sweep
from jaxbandits.reports import plot

HORIZON = 10_000  # where the center panel ends, and of both other panels
VALUE = 30.0  # of a corrupted report
RIGHT_EPSILON = 1.0
CENTER_EPSILON, CENTER_DIM, CENTER_ARMS = 0.1, 50, 100
LARGEST_SHARE = 0.5  # where the right panel ends

_RNG = np.random.default_rng(50)
CENTER_ACTIONS = unit(_RNG.normal(size=(CENTER_ARMS, CENTER_DIM)))
CENTER_THETA = unit(_RNG.normal(size=CENTER_DIM))
CENTER = partial(e.linear_arms, actions=CENTER_ACTIONS, theta=CENTER_THETA, noise="rademacher")
CENTER_MODELS = {"M1": M1, "M2": partial(M2, weight_floor=1 / CENTER_DIM)}  # the order of M2 is that of 1/d


def largest_gap(actions, theta) -> float:
    """The gap of the worst arm: regret is at most this a play."""
    means = actions @ theta
    return float(means.max() - means.min())


def sweeps(full: bool) -> dict[str, Sweep]:
    """M1 over epsilon; both models over horizons in fifty dimensions; M1 over shares of corrupted reports."""
    seeds, horizon = (200, HORIZON) if full else (8, 1000)
    epsilons = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0] if full else [0.1, 1.0]
    horizons = [10, 100, 1000, 10_000] if full else [100]  # one: each compiles two programs
    shares = [0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.24] if full else [0.0, 0.1]
    common = {"seeds": seeds, "horizon": horizon, "checkpoints": 1}
    here: dict[str, Any] = common | {"environment": PRIVATE, "algorithms": with_batches({"M1": M1}, horizon)}
    center = horizon_sweeps(
        CENTER_MODELS, horizons, {"environment": CENTER, "seeds": seeds, "grid": {"epsilon": [CENTER_EPSILON]}}
    )
    right = {MESSAGE_SHARE: shares, "epsilon": [RIGHT_EPSILON]}
    return {
        "left": Sweep(here | {"grid": {"epsilon": [*epsilons, float("inf")]}}),
        **center,
        "right": Sweep(here | {"grid": right, "message_adversary": target(VALUE)}),
    }


def _line(x: str, xs, values, line: str, low=None, high=None) -> pd.DataFrame:
    low, high = (values if limit is None else limit for limit in (low, high))
    return pd.DataFrame({x: xs, "regret": values, "low": low, "high": high, "line": line})


def _measured(frame, x, line) -> pd.DataFrame:
    mean, low, high = (frame[key].to_numpy() for key in ("mean", "low", "high"))
    return _line(x, frame[x].to_numpy(), mean, line, low, high)


def left(results: Results) -> pd.DataFrame:
    """M1 with privacy and without, against epsilon."""
    horizon = int(results["left"].t[-1])
    frame, xs = regrets(results["left"]), np.linspace(0.02, 1.0, 99)
    private, free = frame[np.isfinite(frame["epsilon"])], frame[np.isinf(frame["epsilon"])].iloc[0]
    orders = [theory.robust_linear_reward_bound(DIM, horizon, x) for x in xs]
    ceiling = largest_gap(ACTIONS, THETA) * horizon
    ends = np.array([xs[0], 1.0])
    return pd.concat(
        [
            _measured(private, "epsilon", "private"),
            _line("epsilon", ends, np.full(2, free["mean"]), "not private", free["low"], free["high"]),
            _line("epsilon", xs, orders, "private: √(dT)(1 + 1/ε)"),
            _line("epsilon", ends, np.full(2, theory.robust_linear_reward_bound(DIM, horizon)), "not private: √(dT)"),
            _line("epsilon", ends, np.full(2, ceiling), "worst arm at every play"),
        ],
        ignore_index=True,
    )


def center(results: Results) -> pd.DataFrame:
    """Both models at epsilon = 0.1 in fifty dimensions, against T."""
    frame = regrets(joined(results))
    xs = np.unique(np.geomspace(1, frame["horizon"].max(), 41))
    first = [theory.robust_linear_reward_bound(CENTER_DIM, x, CENTER_EPSILON) for x in xs]
    second = [theory.robust_linear_action_bound(CENTER_DIM, x, CENTER_EPSILON, source="theorem") for x in xs]
    proof = [theory.robust_linear_action_bound(CENTER_DIM, x, CENTER_EPSILON, source="proof") for x in xs]
    lines = [_measured(frame[frame["algorithm"] == label], "horizon", label) for label in CENTER_MODELS]
    lines += [_line("horizon", xs, first, "M1: √(dT)(1 + 1/ε)"), _line("horizon", xs, second, "M2: d√T + d/ε")]
    lines += [_line("horizon", xs, proof, "M2, the proof's: d√T + d^(3/2) ln(T)/ε")]
    ceiling = largest_gap(CENTER_ACTIONS, CENTER_THETA) * xs
    return pd.concat([*lines, _line("horizon", xs, ceiling, "worst arm at every play")], ignore_index=True)


def right(results: Results) -> pd.DataFrame:
    """M1 at epsilon = 1 in five dimensions, against the share of corrupted reports."""
    horizon = int(results["right"].t[-1])
    frame = regrets(results["right"]).rename(columns={"corruption_bound": "share"})
    xs = np.linspace(0, LARGEST_SHARE, 51)
    orders = [theory.robust_linear_reward_bound(DIM, horizon, RIGHT_EPSILON, corruption=x) for x in xs]
    ceiling = np.full(2, largest_gap(ACTIONS, THETA) * horizon)
    return pd.concat(
        [
            _measured(frame, "share", "M1"),
            _line("share", xs, orders, "M1: (√(dT) + T max{√(αd), αd})(1 + 1/ε)"),
            _line("share", np.array([0, LARGEST_SHARE]), ceiling, "worst arm at every play"),
        ],
        ignore_index=True,
    )


PANELS = {"left": left, "center": center, "right": right}
AXES = {"left": "epsilon", "center": "horizon", "right": "share"}
WORDS = {
    "epsilon": "privacy level ε",
    "horizon": "horizon T (plays)",
    "share": "share α of corrupted reports",
    "regret": "cumulative regret",
}
DOTTED = {
    "left": {"private: √(dT)(1 + 1/ε)": "private", "not private: √(dT)": "not private"},
    "center": {"M1: √(dT)(1 + 1/ε)": "M1", "M2: d√T + d/ε": "M2"},
    "right": {"M1: (√(dT) + T max{√(αd), αd})(1 + 1/ε)": "M1"},
}
CAPTIONS = {
    "left": "M1, α = 0, d = 5, T = {horizon:,}; dotted: the orders that the paper draws, constants of 1",
    "center": "ε = 0.1, α = 0, d = 50, a sweep for each T; dotted: the orders that the paper draws, constants of 1",
    "right": "M1, ε = 1, d = 5, T = {horizon:,}, corrupted reports ∓30; dotted: the order that the paper draws",
}


def draw(panel, results: Results) -> plot.Plot:
    """One panel."""
    horizon = int(results["left"].t[-1])
    return plot.lines(
        PANELS[panel](results), AXES[panel], "regret", line="line", log="both" if panel == "center" else "y",
        dotted=DOTTED[panel], names=WORDS, caption=CAPTIONS[panel].format(horizon=horizon), width=5.5,
    )  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """Measured regret beside each order, and the orders of the center panel where they end."""
    entries = []
    for panel, rows in PANELS.items():
        frame, x = rows(results), AXES[panel]
        for order, line in DOTTED[panel].items():
            measured, drawn = frame[frame["line"] == line], frame[frame["line"] == order]
            ratio = measured["regret"].to_numpy() / np.interp(measured[x], drawn[x], drawn["regret"])
            spread = " to ".join(dict.fromkeys(f"{y:.2f}" for y in (ratio.min(), ratio.max())))
            entries.append(Claim(f"{panel}, {order}: measured over it", "at most the order, constants hidden", spread))
        listed = frame[frame["line"].isin(DOTTED[panel].values())]
        for line, part in listed.groupby("line", sort=False):
            points = ", ".join(f"{y:,.0f} at {at:g}" for at, y in zip(part[x], part["regret"], strict=True))
            if part["regret"].nunique() == 1:  # a line across the panel
                points = f"{part['regret'].iloc[0]:,.0f}"
            entries.append(Claim(f"{panel}, {line}: regret", "", points))
    first = theory.robust_linear_reward_bound(CENTER_DIM, HORIZON, CENTER_EPSILON)
    second, proof = (
        theory.robust_linear_action_bound(CENTER_DIM, HORIZON, CENTER_EPSILON, source=source)
        for source in ("theorem", "proof")
    )
    measured = f"M1 {first:,.0f}; M2 {second:,.0f} by Theorem 1.4 and {proof:,.0f} by the proof"
    statement, paper = f"center, the orders at T = {HORIZON:,}", "that of M2 (Theorem 1.4) is below that of M1"
    return [*entries, Claim(statement, paper, measured, Exact(second - first, at_most=0.0))]


STUDY = Study(
    "Figure 1: the orders that the paper draws, and measured regret",
    "Figure 1",
    sweeps,
    {panel: partial(draw, panel) for panel in PANELS},
    claims,
)

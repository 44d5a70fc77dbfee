"""The largest epsilon at which the printed noise keeps the claim of Theorem 3.2.

What the pair of features and reward truly has is known exactly, so that no run is needed.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from jaxbandits import theory
from jaxbandits.formatting import number
from jaxbandits.papers.shared import points
from jaxbandits.papers.study import Claim, Claims, Exact, Results, Study, nothing
from jaxbandits.reports import plot

RANGES = {"y public": 0.0, "y in [0, 1]": 1.0, "y in [-1, 1], as in the paper": 2.0}  # length of the rewards' range
PAPER = list(RANGES)[-1]
DELTAS = [0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8]
CLASSICAL = 1.0  # the classical formula for Gaussian noise is proved up to this epsilon
EVERY_EPSILON = 50.0  # up to where the reach is looked for: the theorem asks for all of them


def computed(full: bool) -> dict[str, Any]:
    deltas = np.unique(np.r_[np.geomspace(DELTAS[-1], DELTAS[0], 141 if full else 29), DELTAS])
    rows = [
        {"delta": float(delta), "epsilon": theory.printed_noise_reach(delta, length), "rewards": words}
        for words, length in RANGES.items()
        for delta in deltas
    ]
    return {"reach": pd.DataFrame(rows)}


def draw(results: Results) -> plot.Plot:
    picture = plot.lines(
        results["reach"], "delta", "epsilon", line="rewards", log="x", width=6.0,
        names={"delta": "claimed δ", "epsilon": "largest ε at which the claim is true"},
        caption="Theorem 3.2: (ε, δ) is true below a curve and false above it; shaded: the classical formula is proved",
    )  # fmt: skip
    picture.figure.axes[0].axhspan(0, CLASSICAL, color="0.85", zorder=0, linewidth=0)
    return picture


def smallest_delta(epsilon: float, length: float) -> float:
    """The smallest delta in [1e-8, 0.1] from which on the reach is at least this epsilon."""
    beyond = lambda log_delta: theory.printed_noise_reach(math.exp(log_delta), length) - epsilon
    low, high = math.log(DELTAS[-1]), math.log(DELTAS[0])
    return DELTAS[-1] if beyond(low) >= 0 else math.exp(brentq(beyond, low, high))


def claims(results: Results) -> Claims:
    for words, length in RANGES.items():
        reach = [theory.printed_noise_reach(delta, length) for delta in DELTAS]
        paper, evidence = "", None
        if words == PAPER:
            paper, evidence = "(ε, δ) for every ε (Theorem 3.2)", Exact(max(reach), at_least=EVERY_EPSILON)
        measured = points(DELTAS, map(number, reach), "{y} at {x:g}")
        yield Claim(f"the claim is true up to ε at δ: {words}", paper, measured, evidence)
    for words, length in RANGES.items():
        delta = smallest_delta(CLASSICAL, length)
        measured = f"{delta:.3g}" + (", the smallest looked at" if delta == DELTAS[-1] else "")
        statement = f"smallest δ in [{DELTAS[-1]:g}, {DELTAS[0]:g}] with the claim true for all ε ≤ {CLASSICAL:g}"
        yield Claim(f"{statement}: {words}", "", measured)


SOURCE = "Theorem 3.2; docs/formulas/ldp_contextual.md#calibration"
STUDY = Study(__doc__, SOURCE, nothing, {"reach": draw}, claims, computed)

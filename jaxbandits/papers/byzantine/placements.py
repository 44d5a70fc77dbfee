"""Lemma 10 searched for a violation: how far an attacked minority moves a geometric median, over what the lemma allows.

A placement is N points, of which the first m are attacked, and a point z_0. The lemma allows the median a distance of
C_alpha (the honest points' mean distance to z_0 + epsilon) from z_0, where epsilon is what the median lacks.
"""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from jaxbandits.estimators import geometric_median
from jaxbandits.typing import Matrix, Vector

AGENTS, DIMS = (5, 10), (1, 2, 4)


def used(points: Matrix, attacked: int, origin: Vector) -> float:
    """The distance of the package's median to `origin` over what the lemma allows; epsilon is the certified gap."""
    found, points = geometric_median(points), np.asarray(points, np.float64)
    distance = np.linalg.norm(np.asarray(found.value, np.float64) - origin)
    spread = np.linalg.norm(points[attacked:] - origin, axis=1).mean() + float(found.gap)
    return float(distance / (constant(attacked, len(points)) * spread))


def constant(attacked: int, agents: int) -> Fraction:
    """C_alpha for alpha = attacked / agents."""
    alpha = Fraction(attacked, agents)
    return (2 - 2 * alpha) / (1 - 2 * alpha)


def on_a_line(attacked: int, agents: int) -> Fraction:
    """The largest ratio, exactly, of points at 0 and 1 with all attacked ones at 1, the median at 1 and z_0 at 0.

    With a honest points at 1 the median at 1 has epsilon = (N - 2 m - 2 a) / N, or 0 where that is negative.
    """
    honest = agents - attacked
    ratios = []
    for there in range(honest + 1):
        gap = max(Fraction(agents - 2 * attacked - 2 * there, agents), Fraction(0))
        ratios.append(1 / (constant(attacked, agents) * (Fraction(there, honest) + gap)))
    return max(ratios)


def random_placement(rng: np.random.Generator, attacked: int, agents: int, dim: int) -> tuple[Matrix, Vector]:
    """Honest points from a normal law; attacked ones together or apart, near or far; z_0: their mean or a point."""
    points = rng.normal(size=(agents, dim))
    away = rng.normal(size=dim) * 10 ** rng.uniform(-1, 3)
    points[:attacked] = points[:attacked] * rng.integers(2) + away
    return points, points[attacked:].mean(0) if rng.integers(2) else points[-1].copy()


def climbed(
    rng: np.random.Generator, points: Matrix, attacked: int, origin: Vector, steps: int
) -> tuple[float, Matrix]:
    """The largest ratio that random moves of all points reach, each kept if the ratio grows, and where."""
    best = used(points, attacked, origin)
    for _ in range(steps):
        moves = rng.normal(size=np.shape(points)) * (rng.random((len(points), 1)) < 0.3) * 10 ** rng.uniform(-3, 0)
        ratio = used(points + moves, attacked, origin)
        if ratio > best:
            best, points = ratio, points + moves
    return best, points


def search(placements: int, starts: int, steps: int, seed: int = 0) -> pd.DataFrame:
    """A row for every number of agents, attacked agents and dimension.

    Columns: `random`, the largest ratio of random placements, whose number is `placements`; `climbed`, the largest
    after `steps` moves from each of the `starts` worst of them, in all `moves`; `line`, that of `on_a_line`.
    """
    rng, rows = np.random.default_rng(seed), []
    for agents, dim in product(AGENTS, DIMS):
        for attacked in range(1, (agents + 1) // 2):
            drawn: list[Any] = [random_placement(rng, attacked, agents, dim) for _ in range(placements)]
            ratios = np.array([used(points, attacked, origin) for points, origin in drawn])
            worst = [drawn[i] for i in np.argsort(-ratios)[:starts]]
            after = [climbed(rng, points, attacked, origin, steps)[0] for points, origin in worst]
            rows.append({
                "agents": agents, "attacked": attacked, "dim": dim, "random": ratios.max(), "climbed": max(after),
                "line": float(on_a_line(attacked, agents)), "placements": placements, "moves": starts * steps,
            })  # fmt: skip
    return pd.DataFrame(rows)

"""The cross-entropy method: points are drawn, and the next ones are drawn like the best of them.

Ranges are searched by normal draws of their unit coordinates, lists of values by the shares of the best points that
each value has. Everything is on the host, and the draws are those of a seed. Rubinstein 1999, "The cross-entropy
method for combinatorial and continuous optimization"; the constants are ours,
`docs/formulas/robust_frontier.md#robust-frontier-worst-case`.

Axes: [D] keys of the space, [M] points of a generation.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.searching.space import Dimension, point_at
from jaxbandits.typing import Float

POPULATION = 16  # points of a generation, or an eighth of the trials where that is more
ELITE = 0.25  # the share of a generation that the next one is drawn like
STEP = 0.7  # weight of the elite against the distribution before
LEAST_SPREAD = 0.02  # of a unit coordinate, and the least share of a listed value, so that none is given up


class Distribution(NamedTuple):
    """What points are drawn from: independent along the keys."""

    mean: Float[np.ndarray, " D"]  # of unit coordinates; unused for lists
    spread: Float[np.ndarray, " D"]  # standard deviation of unit coordinates; unused for lists
    shares: tuple[np.ndarray[Any, Any], ...]  # for each key: the probability of each listed value; empty for ranges


class CrossEntropy:
    """Proposes points: `ask` draws some, `tell` gives what they cost, of which the least is sought.

    The first point is `start`, coordinates [D], where it is given. The same costs give the same points.
    """

    def __init__(
        self, dimensions: Sequence[Dimension], trials: int, start: Sequence[float] | None, seed: int = 0
    ) -> None:
        self.dimensions, self.start, self.rng = dimensions, start, np.random.default_rng(seed)
        self.size = max(POPULATION, math.ceil(trials / 8))  # points of a generation
        self.distribution: Distribution | None = None

    def ask(self, number: int) -> list[dict[Any, Any]]:
        """The next generation, or its first `number` points."""
        if self.distribution is None:
            drawn = first(self.dimensions, self.size, self.start, self.rng)
        else:
            drawn = draw(self.distribution, self.size, self.rng)
        self.coordinates = drawn[:number]
        return [point_at(self.dimensions, x) for x in self.coordinates]

    def tell(self, costs: Float[np.ndarray, " M"]) -> None:
        """What the points cost that were asked for last. NaN is above all others."""
        order = np.argsort(np.where(np.isnan(costs), np.inf, costs), kind="stable")
        best = order[: max(2, math.ceil(ELITE * self.size))]
        self.distribution = fitted(self.dimensions, self.coordinates[best], self.distribution)


def first(
    dimensions: Sequence[Dimension], size: int, start: Sequence[float] | None, rng: np.random.Generator
) -> Float[np.ndarray, "M D"]:
    """The first generation: the start, corners, then uniform points, with each listed value about equally often.

    The worst of attacks often is a corner of the ranges, which no normal distribution inside is likely to hit. Corners
    are tried with all combinations of listed values if that is at most half of the generation, else alone if they are.
    """
    coordinates = rng.random((size, len(dimensions)))
    for i, dimension in enumerate(dimensions):
        if not dimension.is_range:
            coordinates[:, i] = rng.permutation(np.arange(size) % len(dimension.values))
    filled = 0
    if start is not None:
        coordinates[0], filled = start, 1
    ranges = [i for i, dimension in enumerate(dimensions) if dimension.is_range]
    for columns in ([*range(len(dimensions))], ranges):
        ends = [(0.0, 1.0) if dimensions[i].is_range else range(len(dimensions[i].values)) for i in columns]
        if columns and math.prod(map(len, ends)) <= size // 2:
            corners = np.array(list(itertools.product(*ends)))
            coordinates[filled : filled + len(corners), columns] = corners
            break
    return coordinates


def draw(distribution: Distribution, size: int, rng: np.random.Generator) -> Float[np.ndarray, "M D"]:
    """A generation of points.

    Each listed value is drawn as often as its share says, up to one, so that few numbers of points have it: where it
    chooses a program, each number of points is a program of its own.
    """
    normal = rng.normal(size=(size, len(distribution.mean)))
    coordinates = np.clip(distribution.mean + distribution.spread * normal, 0.0, 1.0)
    for i, shares in enumerate(distribution.shares):
        if len(shares):
            at = (rng.random() + np.arange(size)) / size
            coordinates[:, i] = rng.permutation(np.searchsorted(np.cumsum(shares)[:-1], at, side="right"))
    return coordinates


def fitted(dimensions: Sequence[Dimension], elite: Float[np.ndarray, "E D"], old: Distribution | None) -> Distribution:
    """The distribution that the elite [E, D] comes from, after the first generation mixed with the old one."""
    mean, spread = elite.mean(0), elite.std(0)
    if old is not None:
        mean, spread = STEP * mean + (1 - STEP) * old.mean, STEP * spread + (1 - STEP) * old.spread
    shares = []
    for i, dimension in enumerate(dimensions):
        number = len(dimension.values)
        counts = np.bincount(elite[:, i].astype(int), minlength=number) if number else np.zeros(0)
        before = np.full(number, 1 / max(number, 1)) if old is None else old.shares[i]
        mixed = np.maximum(STEP * counts / len(elite) + (1 - STEP) * before, LEAST_SPREAD)
        shares.append(mixed / mixed.sum() if number else mixed)
    return Distribution(mean, np.maximum(spread, LEAST_SPREAD), tuple(shares))

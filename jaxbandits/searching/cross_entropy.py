"""The cross-entropy method: points are drawn, and the next ones are drawn like the best of them.

Ranges are searched by normal draws of their unit coordinates, lists of values by the shares of the best points that
each value has. Everything is on the host, and the draws are those of a seed. Rubinstein 1999, "The cross-entropy
method for combinatorial and continuous optimization"; the constants are ours,
`docs/formulas/robust_frontier.md#robust-frontier-worst-case`.

Axes: [D] keys of the space, [M] points of a generation, [R] trials.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxbandits.searching.space import Dimension, point_at
from jaxbandits.typing import Float, Int

POPULATION = 16  # points of a generation, or an eighth of the trials where that is more
ELITE = 0.25  # the share of a generation that the next one is drawn like
STEP = 0.7  # weight of the elite against the distribution before
LEAST_SPREAD = 0.02  # of a unit coordinate, and the least share of a listed value, so that none is given up

Objective: TypeAlias = "Callable[[int, list[dict[Any, Any]]], np.ndarray[Any, Any]]"
"""(generation, points [M]) -> values [M], of which the largest is sought."""


class Distribution(NamedTuple):
    """What points are drawn from: independent along the keys."""

    mean: Float[np.ndarray, " D"]  # of unit coordinates; unused for lists
    spread: Float[np.ndarray, " D"]  # standard deviation of unit coordinates; unused for lists
    shares: tuple[np.ndarray[Any, Any], ...]  # for each key: the probability of each listed value; empty for ranges


class Found(NamedTuple):
    """All trials of a search, in their order."""

    coordinates: Float[np.ndarray, "R D"]
    values: Float[np.ndarray, " R"]
    generation: Int[np.ndarray, " R"]  # from 1

    @property
    def best(self) -> int:
        """The position of the largest value, the first among equal ones. NaN is below all others."""
        return int(np.argmax(_comparable(self.values)))


def search(
    objective: Objective, dimensions: Sequence[Dimension], trials: int, start: Sequence[float] | None, seed: int = 0
) -> Found:
    """Evaluate `trials` points. The first is `start`, coordinates [D], where it is given.

    The same arguments give the same points as long as the objective gives the same values.
    """
    rng = np.random.default_rng(seed)
    size = max(POPULATION, math.ceil(trials / 8))
    points, values, generation = list[np.ndarray[Any, Any]](), list[np.ndarray[Any, Any]](), list[int]()
    distribution = None
    while len(generation) < trials:
        number = len(points) + 1
        drawn = first(dimensions, size, start, rng) if distribution is None else draw(distribution, size, rng)
        drawn = drawn[: trials - len(generation)]
        points.append(drawn)
        values.append(np.asarray(objective(number, [point_at(dimensions, x) for x in drawn]), np.float64))
        generation += [number] * len(drawn)
        if len(generation) < trials:
            best = np.argsort(-_comparable(values[-1]), kind="stable")[: max(2, math.ceil(ELITE * size))]
            distribution = fitted(dimensions, drawn[best], distribution)
    return Found(np.concatenate(points), np.concatenate(values), np.asarray(generation))


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


def _comparable(values: Float[np.ndarray, " M"]) -> Float[np.ndarray, " M"]:
    return np.where(np.isnan(values), -np.inf, values)

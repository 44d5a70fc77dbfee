"""Regret from counts of pulls, and what it is measured against, on the host."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandits.protocol import Environment
from jaxbandits.typing import Float, Int, Tensor

SUMS = 8192  # regrets that are added up together: they and their counts stay in a core's caches


def gaps_of(means: Float[Tensor, "... K"]) -> Float[np.ndarray, "... K"]:
    """What a pull of every arm costs against the best arm, in float64."""
    expected = np.asarray(means, np.float64)
    return expected.max(axis=-1, keepdims=True) - expected


# docs/decisions.md#regret-from-counts
def regret_of_counts(counts: Int[Tensor, "S ... K"], means: Float[Tensor, "... K"]) -> Float[np.ndarray, "S ..."]:
    """What the pulls of every arm cost against the best arm: exact, in float64, arms added in their order.

    means: one row, or of the last axes of `counts`, without its first.
    """
    counts, gaps = np.asarray(counts), gaps_of(means)
    regret: Any = np.zeros(counts.shape[:-1])
    costly = [arm for arm in range(gaps.shape[-1]) if gaps[..., arm].any()]
    step = max(1, SUMS * len(counts) // max(1, regret.size))
    for low in range(0, len(counts), step):
        part, total = counts[low : low + step], regret[low : low + step]
        for arm in costly:
            total += part[..., arm] * gaps[..., arm]
    return regret


def regret_words(facts: Sequence[Mapping[str, Any]]) -> str:
    """What regret is called that is loss less `World.baseline`: it may be negative. facts: of the environments."""
    rows = [one.get("regret_against") == "row" for one in facts]
    if any(rows):
        return f"regret against {'the best arm of every row' if all(rows) else 'what regret_against says'}"
    return f"regret against the best fixed {'expert' if all('num_experts' in one for one in facts) else 'arm'}"


def rival_of(words: str) -> str:
    """What regret is measured against, from what it is called: "best fixed arm" where that does not say."""
    return words.partition("against the ")[2] or "best fixed arm"


def has_best(environment: Environment) -> bool:
    """Whether `best_reward` is known."""
    return environment.world.baseline is not None or "means" in environment.facts


def best_reward(environment: Environment, seeds: Sequence[int], times: Int[Tensor, " C"]) -> Any:
    """The expected reward over plays 1..t of what regret is measured against, so that reward is this less regret.

    float64 [C], or [S, C] where it depends on the seed. None where another arm is best at every context: then only the
    differences of rewards are known. Where regret is loss less `World.baseline`, rewards are 1 - loss.
    """
    world, times = environment.world, np.asarray(times, np.int64)
    if world.baseline is not None and world.seeded:
        return np.stack([times - np.asarray(world.baseline(environment.params, seed, times)) for seed in seeds])
    if world.baseline is not None:
        return times - np.asarray(world.baseline(environment.params, 0, times), np.float64)
    means = environment.facts.get("means")
    return None if means is None else times * np.asarray(means, np.float64).max()

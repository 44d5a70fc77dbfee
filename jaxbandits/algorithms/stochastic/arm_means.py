"""What policies keep of an arm: how often it was played, and the mean of its rewards to twice the digits of a float.

A float32 mean stops learning after some million plays: what a reward adds is less than half of its last bit, for a
success sooner than for a failure, and a float32 count stops at 2^24. Here counts are int32, and what the last bit of a
mean leaves out is carried beside it.

`columns` are the form that is fastest for many lanes. Axes: [K] arms.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.numerics import columns, materialize_all, moved_mean
from jaxbandits.typing import Array, Float, Int

# The mean, or the index, of an arm before its first play: each arm is played once, in index order.
UNPLAYED = 1e30


class Means(NamedTuple):
    """Means and counts of all arms."""

    # mean reward, rounded
    mean: columns.Columns
    # what rounding left out of it
    rest: columns.Columns
    # N, int32
    pulls: columns.Columns


class Arm(NamedTuple):
    """What is known of the arm that was played."""

    mean: Float[Array, ""]
    # N
    pulls: Int[Array, ""]
    # 1 / sqrt(N)
    inverse_root: Float[Array, ""]


def no_plays(num_arms: int, dtype: Any, mean: float = UNPLAYED) -> Means:
    """Of arms that were not played. mean: what stands for a mean until an arm's first play, which replaces it."""
    return Means(
        mean=columns.full(num_arms, mean, dtype),
        rest=columns.full(num_arms, 0, dtype),
        pulls=columns.full(num_arms, 0, jnp.int32),
    )


def with_reward(means: Means, arm: Int[Array, ""], reward: Float[Array, ""]) -> tuple[Means, Arm]:
    """The means after an arm paid `reward`, and that arm."""
    mean, rest, pulls = (columns.entry(x, arm) for x in means)
    pulls = pulls + 1
    first, inverse = pulls == 1, 1 / pulls.astype(reward.dtype)
    mean, rest = moved_mean(jnp.where(first, 0, mean), jnp.where(first, 0, rest), reward, inverse)
    mean, rest, pulls, inverse_root = materialize_all([mean, rest, pulls, jnp.sqrt(inverse)])
    after = Means(*(columns.replaced(x, arm, own) for x, own in zip(means, (mean, rest, pulls), strict=True)))
    return after, Arm(mean, pulls, inverse_root)

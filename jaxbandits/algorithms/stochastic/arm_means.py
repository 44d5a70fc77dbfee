"""What policies keep of an arm: how often it was played, and the mean of its rewards to more digits than a float has.

A float32 mean stops learning after some million plays: what a reward adds is less than half of its last bit, for a
success sooner than for a failure, and a float32 count stops at 2^24. Here a count is exact up to 2^31, and a mean has
19 bits more than its float.

An index reads two numbers of every arm, the mean and 1 / sqrt(N). What these cannot hold is one int32 beside them, read
only where an arm is updated: a fourth number of every arm would cost 13% of the time of a play of UCB1 (ten arms).
`columns` are the form that is fastest for many lanes. Axes: [K] arms.
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.numerics import columns, materialize_all, moved_mean
from jaxbandits.typing import Array, DType, Float, Int

# The mean, or the index, of an arm before its first play: each arm is played once, in index order.
UNPLAYED = 1e30
COUNT_BITS = 12  # of the count, the lowest


class Means(NamedTuple):
    """Means and counts of all arms."""

    mean: columns.Columns  # mean reward, rounded
    inverse_root: columns.Columns  # 1 / sqrt(N); 0 before an arm's first play
    digits: columns.Columns  # int32: what rounding left out of the mean (upper 20 bits), and the lowest bits of N


class Arm(NamedTuple):
    """What is known of one arm."""

    mean: Float[Array, ""]
    rest: Float[Array, ""]  # what rounding left out of the mean
    pulls: Int[Array, ""]  # N


def no_plays(num_arms: int, dtype: DType, mean: float = UNPLAYED) -> Means:
    """Of arms that were not played. mean: what stands for a mean until an arm's first play, which replaces it."""
    full = partial(columns.full_for_single_writes, num_arms)
    return Means(mean=full(mean, dtype), inverse_root=full(0, dtype), digits=full(0, jnp.int32))


def _unit(mean):
    """Of what rounding leaves out of a mean, which is at most 2^18 of it."""
    return jnp.abs(mean) * (jnp.finfo(mean.dtype).eps * 2.0**-19)


def pack_arm(arm: Arm) -> tuple[Float[Array, ""], Float[Array, ""], Int[Array, ""]]:
    """An arm as `Means` keeps it."""
    unit = _unit(arm.mean)
    rest = jnp.where(unit > 0, jnp.round(arm.rest / unit), 0).astype(jnp.int32)
    digits = (rest << COUNT_BITS) | (arm.pulls & (2**COUNT_BITS - 1))
    return arm.mean, jnp.sqrt(1 / arm.pulls.astype(arm.mean.dtype)), digits


def unpack_arms(mean: Float[Array, "..."], inverse_root: Float[Array, "..."], digits: Int[Array, "..."]) -> Arm:
    """Arms from what `Means` keeps."""
    near = jnp.where(inverse_root > 0, 1 / (inverse_root * inverse_root), 0).astype(jnp.int32)
    off = (digits - near) & (2**COUNT_BITS - 1)  # N is within 2^10 of `near`
    pulls = near + jnp.where(off < 2 ** (COUNT_BITS - 1), off, off - 2**COUNT_BITS)
    return Arm(mean, (digits >> COUNT_BITS).astype(mean.dtype) * _unit(mean), pulls)


def with_reward(
    means: Means, arm: Int[Array, ""], reward: Float[Array, ""]
) -> tuple[Means, Float[Array, ""], Float[Array, ""]]:
    """The means after an arm paid `reward`; that arm's mean and 1 / sqrt(N)."""
    mean, rest, pulls = unpack_arms(*(columns.entry(x, arm) for x in means))
    pulls = pulls + 1
    first = pulls == 1
    moved = moved_mean(jnp.where(first, 0, mean), jnp.where(first, 0, rest), reward, 1 / pulls.astype(reward.dtype))
    new = materialize_all(pack_arm(Arm(*moved, pulls)))
    after = Means(*(columns.replace_entry(x, arm, own) for x, own in zip(means, new, strict=True)))
    return after, new[0], new[1]

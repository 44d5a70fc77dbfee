"""What index policies keep of a few arms, as tuples of scalars: mean reward, 1 / sqrt(N), N.

Under vmap every scalar is one contiguous array over the lanes, so that the index of an arm and a choice among arms are
loops over lanes in full vectors. The rows of `arm_rows` are read with a stride, arm after arm, which is slower up to
`UNROLL` arms (measured: UCB1 on ten arms 9.3 to 6.3 ns a play) and compiles faster beyond.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.arm_rows import UNPLAYED, counted
from jaxbandits.numerics import materialize
from jaxbandits.typing import Array, Float, Int


class Columns(NamedTuple):
    """Three tuples of K scalars."""

    # mean reward; `UNPLAYED` before the first play
    mean: tuple[Any, ...]
    # 1 / sqrt(N); 0 before the first play
    inverse_root: tuple[Any, ...]
    # N
    pulls: tuple[Any, ...]


def columns_before_play(num_arms: int, dtype: Any) -> Columns:
    """The columns of arms that were not played."""
    zero = jnp.zeros((), dtype)
    return Columns((jnp.full((), UNPLAYED, dtype),) * num_arms, (zero,) * num_arms, (zero,) * num_arms)


def leader(index: Sequence[Float[Array, ""]]) -> Int[Array, ""]:
    """The lowest arm of the largest index."""
    action, top = jnp.int32(0), index[0]
    for arm in range(1, len(index)):
        above = index[arm] > top
        action, top = jnp.where(above, arm, action), jnp.where(above, index[arm], top)
    return materialize(action.astype(jnp.int32))


def entry(column: Sequence[Float[Array, ""]], arm: Int[Array, ""]) -> Float[Array, ""]:
    """The entry of one arm."""
    value = column[0]
    for other in range(1, len(column)):
        value = jnp.where(arm == other, column[other], value)
    return value


def with_reward(columns: Columns, arm: Int[Array, ""], reward: Float[Array, ""]) -> Columns:
    """The columns after an arm paid `reward`."""
    mean = entry(columns.mean, arm)
    pulls, inverse, inverse_root = counted(entry(columns.pulls, arm))
    mean = materialize(jnp.where(pulls == 1, reward, mean + (reward - mean) * inverse))

    def replaced(column, value):
        return tuple(jnp.where(arm == other, value, old) for other, old in enumerate(column))

    return Columns(
        mean=replaced(columns.mean, mean),
        inverse_root=replaced(columns.inverse_root, inverse_root),
        pulls=replaced(columns.pulls, pulls),
    )

"""What index policies keep of a few arms, as tuples of scalars: mean reward, 1 / sqrt(N), N.

Under vmap every scalar is one contiguous array over the lanes, so that the index of an arm and a choice among arms are
loops over lanes in full vectors. The rows of `arm_rows` are read with a stride, arm after arm, which is slower up to
`UNROLL` arms (measured: UCB1 on ten arms 9.3 to 6.3 ns a play) and compiles faster beyond.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.arm_rows import UNPLAYED, counted
from jaxbandits.numerics import columns, materialize
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


def with_reward(state: Columns, arm: Int[Array, ""], reward: Float[Array, ""]) -> Columns:
    """The columns after an arm paid `reward`."""
    mean = columns.entry(state.mean, arm)
    pulls, inverse, inverse_root = counted(columns.entry(state.pulls, arm))
    mean = materialize(jnp.where(pulls == 1, reward, mean + (reward - mean) * inverse))
    return Columns(
        mean=columns.replaced(state.mean, arm, mean),
        inverse_root=columns.replaced(state.inverse_root, arm, inverse_root),
        pulls=columns.replaced(state.pulls, arm, pulls),
    )

"""What index policies keep of an arm, as one row of an array: mean reward, 1 / sqrt(N), N. A play changes one row.

Axes: [K] arms.
"""

from typing import Any

import jax.numpy as jnp

from jaxbandits.numerics import materialize
from jaxbandits.typing import Array, Float, Int

# The mean, or the index, of an arm before its first play: each arm is played once, in index order.
UNPLAYED = 1e30


def rows_before_play(num_arms: int, dtype: Any, mean: float = UNPLAYED, columns: int = 3) -> Float[Array, "K columns"]:
    """The rows of arms that were not played: `mean` in the first column, 0 in the others."""
    return jnp.zeros((num_arms, columns), dtype).at[:, 0].set(mean)


def counted(pulls: Float[Array, ""], more: Any = 1) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """The number of pulls N after `more` of them, 1 / N, and 1 / sqrt(N)."""
    pulls = materialize(pulls + more)
    inverse = materialize(1 / pulls)
    return pulls, inverse, materialize(jnp.sqrt(inverse))


def with_reward(
    rows: Float[Array, "K 3"], arm: Int[Array, ""], reward: Float[Array, ""], *, from_zero: bool = False
) -> Float[Array, "K 3"]:
    """The rows after an arm paid `reward`. from_zero: the mean before the first play is 0 rather than `UNPLAYED`."""
    mean, _, pulls = rows[arm]
    pulls, inverse, inverse_root = counted(pulls)
    after = mean + (reward - mean) * inverse
    mean = materialize(after if from_zero else jnp.where(pulls == 1, reward, after))
    return rows.at[arm].set(jnp.stack([mean, inverse_root, pulls]))

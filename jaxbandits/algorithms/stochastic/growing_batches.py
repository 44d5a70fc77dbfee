"""Private indices over batches that grow geometrically and forget nothing: what `dp_klucb` and `dp_imed` share."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.stochastic import episodes
from jaxbandits.algorithms.stochastic.private_divergence import UNBOUNDED
from jaxbandits.mechanisms.composition import laplace_event
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm, Rewards
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import choice, integer, number

INDICES = ("printed", "coupled")
# Tables are as long as the next power of two above this, so that horizons share a program.
TABLE_ROWS = 64
MOST_BATCHES = 1 << 14


class Params(NamedTuple):
    """The numbers of DP-KLUCB and DP-IMED."""

    # the privacy budget; `UNBOUNDED` without noise
    epsilon: Any
    # 1 / epsilon, 0 without noise
    noise_scale: Any
    # [m] pulls of an arm at the end of its batches
    targets: Any
    # multiplies all privacy noise
    mechanism_scale: Any


class Memory(NamedTuple):
    """What is remembered of the arms. Their sum is `whole` + `rest`, so that no reward is lost in a long one."""

    whole: Int[Array, " K"]
    # fractions below 1, and all noises
    rest: Float[Array, " K"]
    pulls: Int[Array, " K"]
    batches: Int[Array, " K"]


def targets(horizon: int, batch_ratio: float, first_batch: int) -> np.ndarray:
    """Pulls of an arm at the end of its batches: n_1, then max(n + 1, ceil(ratio n)), the first above the horizon last.

    Padded by `episodes.FOREVER` to `TABLE_ROWS`, or a power of two.
    """
    ends = [min(first_batch, episodes.FOREVER)]
    while ends[-1] <= horizon:
        ends.append(min(max(ends[-1] + 1, math.ceil(batch_ratio * ends[-1] - 1e-9)), episodes.FOREVER))
        if len(ends) > MOST_BATCHES:
            raise ValueError(
                f"batch_ratio = {batch_ratio:g} makes more than {MOST_BATCHES:,} batches of an arm: give a larger one"
            )
    size = max(TABLE_ROWS, 2 ** math.ceil(math.log2(len(ends) + 1)))
    return np.array(ends + [episodes.FOREVER] * (size - len(ends)), np.int32)


# params, clipped mean [K], pulls [K], batches [K], log t -> what is largest at the arm to play [K]
Index = Callable[[Params, Any, Any, Any, Any], Array]


@cache
def rules(num_arms: int, index: Index) -> episodes.Rules:
    """Batches of the arm of largest `index`, which is given log t of the coming play t.

    Draws: `mean`, one Laplace a batch, at its last play.
    """

    def init(params, draws):
        none = jnp.zeros(num_arms, jnp.int32)
        memory = Memory(whole=none, rest=jnp.zeros(num_arms, draws.dtype), pulls=none, batches=none)
        return memory, jnp.int32(0), jnp.asarray(params.targets)[0]

    def keep(params, memory, arm, value, present):
        return memory, episodes.clip01(value), value.dtype.type(1)

    def end(params, memory, draws, t, arm, total):
        dtype, table = total.dtype, jnp.asarray(params.targets)
        noise = params.mechanism_scale * params.noise_scale * draws.child("mean").laplace(t)
        whole = jnp.floor(total)
        memory = Memory(
            whole=memory.whole.at[arm].add(whole.astype(jnp.int32)),
            rest=memory.rest.at[arm].add(total - whole + noise),
            pulls=memory.pulls.at[arm].set(table[memory.batches[arm]]),
            batches=memory.batches.at[arm].add(1),
        )
        pulls = jnp.maximum(memory.pulls, 1).astype(dtype)
        mean = materialize(episodes.clip01(memory.whole.astype(dtype) / pulls + memory.rest / pulls))
        log_t = jnp.log((t + 1).astype(dtype))
        value = index(params, mean, pulls, memory.batches.astype(dtype), log_t)
        following = episodes.next_arm(value, memory.batches == 0)
        return memory, total + noise, following, table[memory.batches[following]] - memory.pulls[following]

    return episodes.Rules(init, keep, end)


def _events(params):
    scale = params.noise_scale * params.mechanism_scale
    return (laplace_event("sum of a batch's rewards in [0, 1]", 1.0, scale),)


def algorithm_of_index(
    name: str, indices: dict[str, Index], index: str, num_arms: int, horizon: int, epsilon: Scalar,
    batch_ratio: Scalar, first_batch: int, version: int = 1,
) -> Algorithm:  # fmt: skip
    """The algorithm that plays the arm of largest index in growing batches, its arguments validated."""
    num_arms, horizon = integer("num_arms", num_arms, 2), integer("horizon", horizon, 1, episodes.FOREVER - 1)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    batch_ratio = number("batch_ratio", batch_ratio, 1.0, open_low=True)
    choice("index", index, INDICES)
    table = targets(horizon, batch_ratio, integer("first_batch", first_batch, 1))
    params = Params(
        epsilon=min(epsilon, UNBOUNDED),
        noise_scale=0.0 if math.isinf(epsilon) else 1 / epsilon,
        targets=table,
        mechanism_scale=1.0,
    )
    return Algorithm(
        program=episodes.program(rules(num_arms, indices[index])),
        schedule=episodes.schedule(horizon, num_arms * (int(np.sum(table <= horizon)) + 1)),
        params=params,
        guarantee=episodes.claim(_events),
        version=(name, version, (num_arms, index, len(table))),
        config={},
        rewards=Rewards(0.0, 1.0, "clip"),
    )

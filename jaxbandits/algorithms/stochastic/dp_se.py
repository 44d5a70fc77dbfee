"""DP-SE (Sajed and Sheffet 2019): successive elimination in epochs of fresh pulls, with Laplace noise on every mean."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.stochastic import episodes
from jaxbandits.algorithms.stochastic.elimination import after_block, last_arm
from jaxbandits.declared import Budget, Example, FailureProb, Horizon, NumArms
from jaxbandits.mechanisms.composition import Event, laplace_event
from jaxbandits.numerics import count, materialize
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Array, Bool, Float, Int, Numeric
from jaxbandits.validation import factory

# The tables have this many rows, or a multiple: at least as many as a run can begin, so that horizons share a program.
TABLE_ROWS = 16


class Params(NamedTuple):
    """Tables [E, K]: the row is the epoch less one, the column the number of active arms less one."""

    pulls: Numeric  # int32: pulls of each active arm
    clip: Numeric  # values of larger size are rejected, unless rewards are clipped to [0, 1]
    ceiling: Numeric  # a power of two, at least the clip
    noise_scale: Any
    slack: Numeric  # an arm is dropped when the best estimate exceeds its own by more than this
    mechanism_scale: Numeric  # multiplies all privacy noise; no table


class Memory(NamedTuple):
    """What elimination remembers of the arms."""

    active: Bool[Array, " K"]
    estimate: Float[Array, " K"]  # of the running epoch
    epoch: Int[Array, ""]  # epochs finished


@cache
def epoch_rules(num_arms: int, bounded: bool) -> episodes.Rules:
    """Elimination in epochs from tables. `bounded`: rewards are clipped to [0, 1]; otherwise truncated at `clip`.

    Draws: `mean`, one Laplace an episode, at its last play.
    """

    def entry_of_epoch(params, memory):
        """The tables' row and column for the running epoch."""
        epoch = jnp.minimum(memory.epoch, params.pulls.shape[0] - 1)
        return epoch, jnp.maximum(count(memory.active) - 1, 0)

    def init(params, draws):
        active = jnp.ones(num_arms, bool)
        memory = Memory(active, jnp.zeros(num_arms, draws.dtype), jnp.int32(0))
        return memory, jnp.int32(0), jnp.asarray(params.pulls)[entry_of_epoch(params, memory)]

    def cut_rewards(params, memory, arm, value, present):
        at = entry_of_epoch(params, memory)
        if bounded:
            usable = episodes.clip01(value)
        else:
            usable = jnp.where(jnp.abs(value) <= jnp.asarray(params.clip)[at], value, 0)
        return memory, usable, jnp.asarray(params.ceiling)[at]

    def end(params, memory, draws, t, arm, total):
        at = entry_of_epoch(params, memory)
        pulls = jnp.asarray(params.pulls)[at]
        noise = params.mechanism_scale * jnp.asarray(params.noise_scale)[at] * draws.child("mean").laplace(t)
        own = materialize(total / pulls.astype(total.dtype) + noise)
        estimate = memory.estimate.at[arm].set(own)
        active, ends, following = after_block(memory.active, estimate, arm, jnp.asarray(params.slack)[at])
        memory = Memory(active, estimate, memory.epoch + ends.astype(jnp.int32))
        length = jnp.where(
            count(active) == 1, episodes.FOREVER, jnp.asarray(params.pulls)[entry_of_epoch(params, memory)]
        )
        return memory, own, following, length

    def diagnose(params, memory):
        return {"active_arms": count(memory.active), "epochs": memory.epoch}

    return episodes.Rules(init=init, keep=cut_rewards, end=end, diagnose=diagnose, rest=last_arm)


def epoch_tables(num_arms: int, horizon: int, columns_of: Callable[..., tuple[Any, ...]]) -> tuple[np.ndarray, ...]:
    """The tables [E, K] of columns_of(epoch, number of arms), with as many epochs as a run with two arms can begin.

    The first table is that of the pulls; it is cut to 32 bits.
    """
    size = TABLE_ROWS
    while columns_of(float(size), 2.0)[0] < horizon:
        size += TABLE_ROWS
    epoch, arms = np.meshgrid(np.arange(1.0, size + 1), np.arange(1.0, num_arms + 1), indexing="ij")
    pulls, *columns = columns_of(epoch, arms)
    return np.minimum(pulls, episodes.FOREVER).astype(np.int64), *columns


def events(reach: float | None, params: Params) -> tuple[Event, ...]:
    """The release of an epoch's mean of an arm. One reward moves its sum by `reach`; None is twice the clip."""
    ends = np.asarray(params.pulls) < episodes.FOREVER  # a longer epoch never ends and releases nothing
    reach = (2 * np.asarray(params.clip) if reach is None else reach) * np.ones(ends.shape)
    sensitivity, scale = reach / params.pulls, params.noise_scale * params.mechanism_scale
    return (laplace_event("mean of an arm's pulls in an epoch", sensitivity[ends], scale[ends]),)


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0}, world=("arms", {"means": [0.48, 0.6]}), horizon=3500),
    source="Sajed and Sheffet 2019; `docs/formulas/private_robust_mab.md#dp-se`.",
)
def dp_se(
    *, num_arms: NumArms, horizon: Horizon, epsilon: Budget, failure_prob: FailureProb | None = None
) -> Algorithm:
    """Eliminate arms in epochs of fresh pulls, by private means: differentially private successive elimination.

    Epoch e = 1, 2, ... pulls each of its n active arms R times, in index order, and forgets what came before. An
    arm's estimate is the mean of its R rewards plus Lap(1 / (R epsilon)). It is dropped when the best estimate
    exceeds its own by more than 2 sqrt(L / (2 R)) + 2 l / (R epsilon). The last arm is played to the horizon. With
    gap = 2^-e, L = ln(8 n e^2 / failure_prob) and l = ln(4 n e^2 / failure_prob), R = ceil(max(32 L / gap^2, 8 l /
    (epsilon gap)) + 1).

    Returns:
        Algorithm: epsilon-private in the central model for rewards that differ in one play: each reward enters one
            release. Diagnostics: `active_arms` at the horizon and `epochs` finished.

    Note:
        Rewards are clipped to [0, 1]; NaN counts as 0.

    >>> jb.algorithms.dp_se(num_arms=3, horizon=1000, epsilon=1.0, failure_prob=0.1).params.pulls[:2, 2]
    array([ 703, 3517])
    """
    failure = 1 / horizon if failure_prob is None else failure_prob
    inverse = 1 / epsilon

    def columns_of(epoch, arms):
        gap = 2.0**-epoch
        longer, shorter = np.log(8 * arms * epoch**2 / failure), np.log(4 * arms * epoch**2 / failure)
        pulls = np.ceil(np.maximum(32 * longer / gap**2, 8 * shorter * inverse / gap) + 1)
        return pulls, inverse / pulls, 2 * np.sqrt(longer / (2 * pulls)) + 2 * shorter * inverse / pulls

    pulls, noise_scale, slack = epoch_tables(num_arms, horizon, columns_of)
    one, claim = np.ones(pulls.shape), episodes.pure_claim(partial(events, 1.0))
    params = Params(pulls=pulls, clip=one, ceiling=one, noise_scale=noise_scale, slack=slack, mechanism_scale=1.0)
    return episodes.algorithm(epoch_rules(num_arms, True), horizon, pulls.size, params, claim)

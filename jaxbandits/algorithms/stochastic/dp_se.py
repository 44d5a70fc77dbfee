"""DP-SE (Sajed and Sheffet 2019): successive elimination in epochs of fresh pulls, with Laplace noise on every mean."""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.stochastic import episodes
from jaxbandits.mechanisms.composition import laplace_event
from jaxbandits.numerics import count, materialize
from jaxbandits.protocol import Algorithm, Rewards
from jaxbandits.validation import factory, integer, number

EPOCHS = 16  # rows of the tables, or a multiple: at least as many as a run can begin, so that horizons share a program


class Params(NamedTuple):
    """Tables [E, K] by epoch and by number of active arms, less one each."""

    pulls: Any  # int32, of each active arm
    clip: Any  # values beyond it are rejected, unless rewards are clipped to [0, 1]
    ceiling: Any  # power of two, at least the clip
    noise_scale: Any
    slack: Any  # an arm goes when the best estimate exceeds its own by more
    mechanism_scale: Any


class Memory(NamedTuple):
    active: Any  # [K] bool
    estimate: Any  # [K] of the epoch
    epoch: Any  # [] int32: epochs finished


@cache
def rules(num_arms: int, bounded: bool) -> episodes.Rules:
    """Elimination in epochs from tables. `bounded`: rewards are clipped to [0, 1]; otherwise truncated at `clip`.

    Draws: `mean`, one Laplace an episode, at its last play.
    """
    arms = np.arange(num_arms, dtype=np.int32)

    def row(params, memory):
        """Where the tables speak of the running epoch."""
        epoch = jnp.minimum(memory.epoch, params.pulls.shape[0] - 1)
        return epoch, jnp.maximum(count(memory.active) - 1, 0)

    def init(params, draws):
        active = jnp.ones(num_arms, bool)
        memory = Memory(active, jnp.zeros(num_arms, draws.dtype), jnp.int32(0))
        return memory, jnp.int32(0), jnp.asarray(params.pulls)[row(params, memory)]

    def keep(params, memory, arm, value, present):
        at = row(params, memory)
        if bounded:
            kept = episodes.clip01(value)
        else:
            kept = jnp.where(jnp.abs(value) <= jnp.asarray(params.clip)[at], value, 0)
        return memory, kept, jnp.asarray(params.ceiling)[at]

    def end(params, memory, draws, t, arm, total):
        at = row(params, memory)
        pulls = jnp.asarray(params.pulls)[at]
        noise = params.mechanism_scale * jnp.asarray(params.noise_scale)[at] * draws.child("mean").laplace(t)
        own = materialize(total / pulls.astype(total.dtype) + noise)
        estimate = memory.estimate.at[arm].set(own)
        following = jnp.min(jnp.where(memory.active & (arms > arm), arms, num_arms))
        ends = following == num_arms
        best = jnp.max(jnp.where(memory.active, estimate, -jnp.inf))
        keeps = memory.active & (best - estimate <= jnp.asarray(params.slack)[at])
        active = jnp.where(ends, keeps, memory.active)
        memory = Memory(active, estimate, memory.epoch + ends.astype(jnp.int32))
        first = jnp.argmax(active).astype(jnp.int32)
        length = jnp.where(count(active) == 1, episodes.FOREVER, jnp.asarray(params.pulls)[row(params, memory)])
        return memory, own, jnp.where(ends, first, following), length

    def diagnose(params, memory):
        return {"active_arms": count(memory.active), "epochs": memory.epoch}

    def rest(params, memory):
        return jnp.where(count(memory.active) == 1, jnp.argmax(memory.active), -1).astype(jnp.int32)

    return episodes.Rules(init, keep, end, diagnose, rest)


def tables(num_arms: int, horizon: int, of) -> tuple:
    """of(epoch, number of arms) -> columns [E, K], as many epochs as two arms can begin and at least the horizon's last.

    The first column is the pulls; it is cut to 32 bits.
    """
    size = EPOCHS
    while of(float(size), 2.0)[0] < horizon:
        size += EPOCHS
    epoch, arms = np.meshgrid(np.arange(1.0, size + 1), np.arange(1.0, num_arms + 1), indexing="ij")
    pulls, *columns = of(epoch, arms)
    return np.minimum(pulls, episodes.FOREVER).astype(np.int64), *columns


def events(reach, params):
    """The mean of an epoch's pulls of an arm, of which one reward moves the sum by `reach`, or None: twice the clip."""
    ends = np.asarray(params.pulls) < episodes.FOREVER  # a longer epoch never does
    reach = (2 * np.asarray(params.clip) if reach is None else reach) * np.ones(ends.shape)
    sensitivity, scale = reach / params.pulls, params.noise_scale * params.mechanism_scale
    return (laplace_event("mean of an arm's pulls in an epoch", sensitivity[ends], scale[ends]),)


def check(num_arms, horizon, epsilon, failure_prob) -> tuple[int, int, float, float]:
    """The validated common arguments; failure_prob None is 1 / horizon."""
    num_arms, horizon = integer("num_arms", num_arms, 2), integer("horizon", horizon, 1)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    if failure_prob is None:
        return num_arms, horizon, epsilon, 1 / horizon
    return num_arms, horizon, epsilon, number("failure_prob", failure_prob, 0.0, 1.0, open_low=True, open_high=True)


@factory
def dp_se(*, num_arms, horizon, epsilon, failure_prob=None) -> Algorithm:
    """Epochs e = 1, 2, ...: R fresh pulls of each of the n active arms, in index order; then drop what is clearly worse.

    R = ceil(max{32 L / gap^2, 8 l / (epsilon gap)} + 1) with gap = 2^-e, L = ln(8 n e^2 / b), l = ln(4 n e^2 / b), b = failure_prob.
    An arm's estimate is the mean of its R rewards plus Lap(1 / (R epsilon)); it goes when the best exceeds it by more than
    2 sqrt(L / (2 R)) + 2 l / (R epsilon). The last arm is played to the horizon. Rewards are clipped to [0, 1], NaN counts as 0.

    epsilon-private in the central model for rewards that differ in one play: each reward enters one release.
    num_arms >= 2 [static]; epsilon in (0, inf], inf: no noise; failure_prob in (0, 1), None: 1 / horizon. Raises ValueError outside.
    Diagnostics: `active_arms` and `epochs` (finished) at the horizon.
    Source: Sajed and Sheffet 2019, in the form of the specification of private and robust bandits, section 7.

    >>> import jaxbandits as jb
    >>> jb.algorithms.dp_se(num_arms=3, horizon=1000, epsilon=1.0, failure_prob=0.1).params.pulls[:2, 2]
    array([ 703, 3517])
    """
    num_arms, horizon, epsilon, failure = check(num_arms, horizon, epsilon, failure_prob)
    inverse = 0.0 if math.isinf(epsilon) else 1 / epsilon

    def of(epoch, arms):
        gap = 2.0**-epoch
        longer, shorter = np.log(8 * arms * epoch**2 / failure), np.log(4 * arms * epoch**2 / failure)
        pulls = np.ceil(np.maximum(32 * longer / gap**2, 8 * shorter * inverse / gap) + 1)
        return pulls, inverse / pulls, 2 * np.sqrt(longer / (2 * pulls)) + 2 * shorter * inverse / pulls

    pulls, noise_scale, slack = tables(num_arms, horizon, of)
    one = np.ones(pulls.shape)
    params = Params(pulls, one, one, noise_scale, slack, 1.0)
    return Algorithm(
        episodes.program(rules(num_arms, True)),
        episodes.schedule(horizon, pulls.size),
        params,
        episodes.claim(partial(events, 1.0)),
        ("dp_se", 1, (num_arms,)),
        {},
        rewards=Rewards(0.0, 1.0, "clip"),
    )

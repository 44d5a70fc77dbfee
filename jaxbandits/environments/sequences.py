"""The formulas of the oblivious loss sequences: what a play costs, in one lane, and what plays 1..t cost, on the host.

Axes: [P] plays of a window, [K] arms, [C] checkpoints, [S] segments. t is 1-based, arms 0-based. The host's sums are
closed forms in float64 (`docs/formulas/private_adversarial.md#loss-sequences`); only the table has size T x K.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.lane_faults import NEVER
from jaxbandits.numerics import UNROLL, count
from jaxbandits.random import to_uniform
from jaxbandits.typing import Array

# A play that no run reaches.


class Losses(NamedTuple):
    """A loss sequence; `facts["losses"]` of a loss environment, for the environments built on it."""

    # params, t[P], action[P] -> expected loss [P]
    mean: Callable[..., Array]
    # params, times[C] -> expected loss of each arm over plays 1..times [C, K], float64, on the host
    cumulative: Callable[..., np.ndarray]
    # whether mean losses change with t
    varies: bool
    # params, draws, t[P], action[P] -> loss [P]; None: the loss is its mean
    sample: Callable[..., Array] | None = None


# --- constant mean losses: fixed gap, Bernoulli


class Constant(NamedTuple):
    losses: Any  # [K]: mean losses


def _constant_mean(params, t, action):
    return params.losses[action]


def _constant_cumulative(params, times):
    return np.asarray(times, np.float64)[:, None] * np.asarray(params.losses, np.float64)


def _bernoulli(params, draws, t, action):
    # Arm i's uniform of play t has position i, so every arm's loss is defined, whichever is played.
    u = to_uniform(draws.at(t, action), draws.dtype)
    return (u < params.losses[action]).astype(draws.dtype)


FIXED = Losses(_constant_mean, _constant_cumulative, False)
BERNOULLI = Losses(_constant_mean, _constant_cumulative, False, _bernoulli)


# --- a table


class Table(NamedTuple):
    losses: Any  # [T, K]


def _table_mean(params, t, action):
    return params.losses[jnp.minimum(t - 1, params.losses.shape[0] - 1), action]


def _table_cumulative(params, times):
    table, times = np.asarray(params.losses, np.float64), np.asarray(times, np.int64)
    if times.max(initial=0) > len(table):
        raise ValueError(
            f"horizon = {times.max()} is longer than losses, which has {len(table)} rows: give more rows or play fewer"
        )
    ends, inverse = np.unique(times, return_inverse=True)
    total, out, start = np.zeros(table.shape[1]), np.empty((len(ends), table.shape[1])), 0
    for row, end in enumerate(ends):  # prefix sums are stored at the checkpoints only
        total = total + table[start:end].sum(axis=0)
        out[row], start = total, end
    return out[inverse]


TABLE = Losses(_table_mean, _table_cumulative, True)


# --- switching


class Switching(NamedTuple):
    cuts: Any  # [S] int32: plays done when each segment starts
    arms: Any  # [S] int32: the best arm of each segment
    base: Any
    gap: Any
    losses: Any  # [K] zeros: they tell the host the number of arms


def _switching_mean(params, t, action):
    cuts, arms = (jnp.asarray(x).astype(jnp.int32) for x in (params.cuts, params.arms))
    if cuts.shape[0] <= UNROLL:
        segment = count(lax.broadcast_to_rank(cuts, t.ndim + 1) < t[..., None]) - 1
    else:
        segment = jnp.searchsorted(cuts, t, side="left").astype(jnp.int32) - 1
    return params.base - params.gap * (arms[segment] == action).astype(jnp.asarray(params.base).dtype)


def _switching_cumulative(params, times):
    times = np.asarray(times, np.int64)
    cuts = np.asarray(params.cuts, np.int64)
    ends = np.append(cuts[1:], NEVER)
    best = np.zeros((len(times), len(params.losses)))
    for start, end, arm in zip(cuts, ends, np.asarray(params.arms, np.int64), strict=True):
        best[:, arm] += np.clip(np.minimum(times, end) - start, 0, None)
    return float(params.base) * times[:, None] - float(params.gap) * best


SWITCHING = Losses(_switching_mean, _switching_cumulative, True)


# --- sinusoid


class Sinusoid(NamedTuple):
    limbs: Any  # [4]: 1 / period modulo 1 as a 64-bit binary fraction, 16 bits a limb, most significant first
    period: Any
    losses: Any  # [K]: .5 + .2 i / (K - 1), the part that does not move


def _turns(limbs, t):
    """t / period modulo 1 in units of 2^-32, on integers: exact to 2^-32 at any t, where float32 loses it at 1e7."""
    a, b, c, d = (jnp.asarray(limbs)[i].astype(jnp.uint32) for i in range(4))
    t = t.astype(jnp.uint32)
    low, high = t & np.uint32(0xFFFF), t >> np.uint32(16)
    carry = (low * d >> np.uint32(16)) + (low * c & np.uint32(0xFFFF)) + (high * d & np.uint32(0xFFFF))
    carry = (carry >> np.uint32(16)) + (low * c >> np.uint32(16)) + (high * d >> np.uint32(16)) + high * c
    return t * (a << np.uint32(16) | b) + carry


def _sinusoid_mean(params, t, action):
    num_arms = params.losses.shape[0]
    shift = np.array([round(2**32 * i / num_arms) for i in range(num_arms)], np.uint32)
    turns = _turns(params.limbs, t) + jnp.asarray(shift)[action]
    still = params.losses[action]
    angle = turns.astype(jnp.int32).astype(still.dtype) * (2 * np.pi * 2.0**-32)  # half turns either side of 0
    return still + 0.3 * jnp.sin(angle)


def _sinusoid_cumulative(params, times):
    n, period = np.asarray(times, np.float64)[:, None], float(params.period)
    still = np.asarray(params.losses, np.float64)
    arm = 2 * np.pi * np.arange(len(still)) / len(still)
    if period == 1:
        wave = n * np.sin(arm)
    else:  # sum of sin(2 pi s / P + arm) over s = 1..n; fmod is exact
        half = np.pi * np.fmod(n, 2 * period) / period
        middle = np.pi * np.fmod(n + 1, 2 * period) / period
        wave = np.sin(half) / np.sin(np.pi / period) * np.sin(middle + arm)
    return n * still + 0.3 * wave


SINUSOID = Losses(_sinusoid_mean, _sinusoid_cumulative, True)


# --- Lemma 5.1


class Lemma51(NamedTuple):
    """The numbers of the two sequences of Lemma 5.1."""

    change: Any  # int32: the last play of the common part; NEVER where the sequence does not change
    losses: Any  # [2]: the losses of the common part


def _lemma51_mean(params, t, action):
    dropped = (action == 1) & (t > jnp.asarray(params.change).astype(jnp.int32))
    return jnp.where(dropped, 0, params.losses[action])


def _lemma51_cumulative(params, times):
    times = np.asarray(times, np.float64)
    return np.stack([times / 2, np.minimum(times, float(params.change))], -1)


LEMMA51 = Losses(_lemma51_mean, _lemma51_cumulative, True)

"""Oblivious loss sequences l_t(i) in [0, 1]. Rewards are 1 - loss.

Regret is against the arm best over plays 1..t. Where losses change with time the recorder stores the losses of the
played arms, and `World.baseline` gives those of the best arm. A sequence says what a play costs, in one lane, and what
plays 1..t cost, on the host: closed forms in float64 (`docs/formulas/private_adversarial.md#loss-sequences`); only the
table has size T x K. t is 1-based, arms are 0-based.

Axes: [P] plays of a window, [K] arms, [C] checkpoints, [S] segments.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.declared import HOST, LATER, Axes, Doc, Ge, Le, NumArms, Probability, Remedy
from jaxbandits.environments.arms import Means, no_context, no_state
from jaxbandits.environments.labelled_rows import Named, losses_of
from jaxbandits.environments.user_tables import of_frame
from jaxbandits.lane_faults import NEVER
from jaxbandits.numerics import UNROLL, count
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import to_uniform
from jaxbandits.typing import Array, Matrix, Numeric, Scalar
from jaxbandits.validation import array, factory, integer, is_frame, number

if TYPE_CHECKING:
    import pandas as pd

Integers = Annotated[Sequence[int] | np.ndarray, Axes(1, "sequence of int"), LATER]
Arms = Annotated[NumArms, Doc("Number of arms K.")]
OtherLoss = Annotated[Probability, Doc("What every other arm loses.")]
LossEnvironment = Annotated[Environment, Doc("Regret is against the arm best over plays 1..t.")]
Gap = Annotated[Scalar, Ge(0), LATER, Doc("The advantage of the best arm, at most `base`.")]


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


@cache
def losses_world(num_arms: int, losses: Losses) -> World:
    """A world of oblivious losses without context."""

    def reward(params, state, draws, t, context, action):
        if losses.sample is not None:
            return 1 - losses.sample(params, draws, t, action)
        return 1 - losses.mean(params, t, action)

    def score(params, state, t, context, action):
        return Score(arm=action, regret=losses.mean(params, t, action) if losses.varies else None)

    def truth(params, state, t, context):
        if not losses.varies:
            return Truth(means=1 - params.losses)
        return Truth(means=1 - jnp.stack([losses.mean(params, t, jnp.full_like(t, i)) for i in range(num_arms)], -1))

    def baseline(params, seed, times):
        return losses.cumulative(params, np.asarray(times)).min(axis=1)

    best = baseline if losses.varies else None
    return World(no_state, no_context, reward, score, truth, num_arms=num_arms, baseline=best)


def loss_environment(num_arms: int, losses: Losses, params: Any, **facts: object) -> Environment:
    """An environment of a loss sequence in [0, 1]."""
    facts = {"num_arms": num_arms, "losses": losses, "reward_range": (0.0, 1.0), "shows": "nothing", **facts}
    return Environment(losses_world(num_arms, losses), params, facts, None, {})


def _check_gap(gap: Scalar, base: Scalar) -> float:
    return number("gap", gap, 0.0, float(base), remedy="the best arm's loss is base - gap")


# --- constant mean losses: fixed gap, Bernoulli


class GivenLosses(NamedTuple):
    losses: Numeric  # [K]: mean losses, or the table [T, K]


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


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def fixed_gap_losses(
    *, num_arms: Arms, best: Annotated[int, Ge(0), LATER] = 0, base: OtherLoss = 0.5, gap: Gap = 0.3
) -> Annotated[Environment, Doc("Regret is exact: it follows from the pull counts.")]:
    """Losses that never change: one arm is better than all others by a fixed gap.

    Args:
        best: The best arm, counted from 0; it loses base - gap at every play.

    >>> jb.environments.fixed_gap_losses(num_arms=3, best=1).facts["means"].tolist()
    [0.5, 0.8, 0.5]
    """
    best = integer("best", best, 0, num_arms - 1, remedy="arms are numbered from 0")
    losses = np.full(num_arms, base)
    losses[best] = base - _check_gap(gap, base)
    return loss_environment(num_arms, FIXED, GivenLosses(losses), means=1 - losses)


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def bernoulli_losses(
    *, means: Annotated[Means, Ge(0), Le(1), Doc("Mean loss (not reward) of each arm; at least two arms.")]
) -> Annotated[Environment, Doc("What is reported is the pseudo-regret, from the pull counts.")]:
    """Losses that are 1 with a fixed probability for each arm and 0 otherwise, independent over arms and plays.

    >>> jb.environments.bernoulli_losses(means=[0.25, 0.5]).facts["means"].tolist()
    [0.75, 0.5]
    """
    means = np.asarray(means)
    if len(means) < 2:
        raise ValueError(f"means = {means.tolist()!r} must name at least two arms")
    return loss_environment(len(means), BERNOULLI, GivenLosses(means), means=1 - means, coins=means)


# --- a table


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


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def loss_table(*, losses: "Matrix | pd.DataFrame") -> Annotated[Environment, Doc("The fact `max_horizon` is T.")]:
    """Losses that are given in a table, one row for each play.

    Args:
        losses (array_like of shape (T, K) or pandas.DataFrame): Row t - 1 holds the losses of play t, each in [0, 1],
            for at least two arms. A run may not be longer than the table. The names of a DataFrame's columns, and of
            those that `read_losses` read, are the arms': the fact `arm_names`, and a coordinate of results.

    Raises:
        ValueError: Naming row and column (from 0, or as a DataFrame has them) of the first entry not in [0, 1].

    Note:
        Regret is in the unit of the table: times 1000, if losses are milliseconds / 1000, it is in milliseconds.

    >>> jb.environments.loss_table(losses=[[0.0, 1.0], [0.5, 0.5]]).facts["max_horizon"]
    2
    """
    losses = losses_of(of_frame(losses, "losses"), stacklevel=5) if is_frame(losses) else losses
    table = array(
        "losses", losses, 2, 0.0, 1.0, remedy="a row for each play, a column for each arm, scaled as losses / 1000"
    )
    if table.shape[1] < 2:
        raise ValueError(f"losses has shape {table.shape}; it must be [T, K] with T >= 1 plays and K >= 2 arms")
    names = losses.names if isinstance(losses, Named) else None
    counted = [tuple(str(k + first) for k in range(table.shape[1])) for first in (0, 1)]  # without a header
    named = {} if names in (None, *counted) else {"arm_names": names}
    return loss_environment(table.shape[1], TABLE, GivenLosses(table), max_horizon=len(table), **named)


# --- switching


class Switching(NamedTuple):
    cuts: Numeric  # [S] int32: plays done when each segment starts
    arms: Numeric  # [S] int32: the best arm of each segment
    base: Numeric
    gap: Numeric
    losses: Numeric  # [K] zeros: they tell the host the number of arms


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


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def switching_losses(
    *, num_arms: Arms, cuts: Integers, arms: Integers, base: OtherLoss = 0.6, gap: Gap = 0.4
) -> LossEnvironment:
    """Losses whose best arm changes at given plays.

    At plays cuts[k] < t <= cuts[k + 1] arm arms[k] loses base - gap and every other arm loses base.

    Args:
        cuts: How many plays are done when each segment starts: increasing, from cuts[0] = 0.
        arms: The best arm of each segment, counted from 0.

    >>> jb.environments.switching_losses(num_arms=3, cuts=[0, 500], arms=[0, 2]).facts["num_arms"]
    3
    """
    cuts, arms = (array(name, x, 1, remedy="one integer a segment") for name, x in (("cuts", cuts), ("arms", arms)))
    cuts = np.array([integer(f"cuts[{k}]", x, 0, NEVER - 1) for k, x in enumerate(cuts)], np.int32)
    if cuts[0] != 0 or (np.diff(cuts) <= 0).any():
        raise ValueError(
            f"cuts = {cuts.tolist()!r} must increase from cuts[0] = 0: the plays done when each segment starts"
        )
    arms = np.array([integer(f"arms[{k}]", x, 0, num_arms - 1) for k, x in enumerate(arms)], np.int32)
    if len(arms) != len(cuts):
        raise ValueError(f"arms has {len(arms)} entries, cuts {len(cuts)}: give one best arm for each segment")
    gap = _check_gap(gap, base)
    return loss_environment(num_arms, SWITCHING, Switching(cuts, arms, base, gap, np.zeros(num_arms)))


# --- sinusoid


class Sinusoid(NamedTuple):
    limbs: Numeric  # [4]: 1 / period modulo 1 as a 64-bit binary fraction, 16 bits a limb, most significant first
    period: Numeric
    losses: Numeric  # [K]: .5 + .2 i / (K - 1), the part that does not move


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


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def sinusoid_losses(
    *, num_arms: Arms, period: Annotated[Scalar, Ge(1), Remedy("shorter waves alias with the plays")]
) -> LossEnvironment:
    """Losses that follow a sine wave, shifted from arm to arm, so that the best arm keeps changing.

    l_t(i) = 0.5 + 0.3 sin(2 pi (t / period + i / K)) + 0.2 i / (K - 1).

    Args:
        period: Plays of one wave, not necessarily an integer.

    Note:
        The phase is reduced modulo the period on 64-bit fixed-point integers, so that float32 losses are accurate to
        1e-6 at any t below 2^31.

    >>> jb.environments.sinusoid_losses(num_arms=4, period=250.5).config["period"]
    250.5
    """
    fraction = round((Fraction(1) / Fraction(float(period)) % 1) * 2**64) % 2**64
    limbs = np.array([(fraction >> shift) & 0xFFFF for shift in (48, 32, 16, 0)], np.float64)
    still = 0.5 + 0.2 * np.arange(num_arms) / (num_arms - 1)
    return loss_environment(num_arms, SINUSOID, Sinusoid(limbs, period, still))


# --- Lemma 5.1


class Lemma51(NamedTuple):
    """The numbers of the two sequences of Lemma 5.1."""

    change: Numeric  # int32: the last play of the common part; NEVER where the sequence does not change
    losses: Numeric  # [2]: the losses of the common part


def _lemma51_mean(params, t, action):
    dropped = (action == 1) & (t > jnp.asarray(params.change).astype(jnp.int32))
    return jnp.where(dropped, 0, params.losses[action])


def _lemma51_cumulative(params, times):
    times = np.asarray(times, np.float64)
    return np.stack([times / 2, np.minimum(times, float(params.change))], -1)


LEMMA51 = Losses(_lemma51_mean, _lemma51_cumulative, True)


@factory(source="Asi, Raman and Talwar 2025, Lemma 5.1; `docs/formulas/private_adversarial.md#lower-bound`.")
def lemma51_losses(
    *,
    change: Annotated[int, Ge(0), Le(NEVER), Doc("Plays of the common part: the lemma's tau_0.")],
    primed: Annotated[bool, HOST, LATER, Doc("Whether the sequence changes.")] = False,
) -> LossEnvironment:
    """The two loss sequences of the lower bound of Asi, Raman and Talwar (2025), with two arms.

    The losses are (1/2, 1) at every play or, where `primed`, (1/2, 0) after play `change`.

    >>> jb.environments.lemma51_losses(change=100, primed=True).facts["num_arms"]
    2
    """
    if not isinstance(primed, bool | np.bool_):
        raise ValueError(f"primed = {primed!r} must be True (the sequence changes) or False")
    return loss_environment(2, LEMMA51, Lemma51(np.int32(change if primed else NEVER), np.array([0.5, 1.0])))

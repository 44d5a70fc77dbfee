"""Algorithms that play one arm for an episode of many pulls and look only when it ends.

An algorithm is a few `Rules`; what they share is here: the arm, what is left of its episode, the sum of what was kept of its
rewards, and the windows. Lanes end their episodes at different plays, so a window is used up to the episode's end only.

Sums are integers. A kept value of size at most `ceiling`, a power of two, counts in units of ceiling 2^-23 (2^-52 in
float64), the last bit of the largest: integers add up to the same bits in any order, so that an estimate depends neither on
window lengths nor on where checkpoints cut them, and one reward never moves a sum by more than its bound.
Axes: [K] arms, [P] plays of a window.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms._prm import spend
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Guarantee, Program, Report, Span

LONGEST = 128  # plays of a window: that many units of 2^23 still fit in 31 bits
FOREVER = 2**31 - 1  # the length of an episode that only the horizon ends


class Rules(NamedTuple):
    """What sets one algorithm apart. `memory` is its own state; arm and length are int32."""

    init: Callable  # params, draws -> memory, arm, length
    keep: Callable  # params, memory, arm, value[P], present[P] -> memory, kept[P] in [-ceiling, ceiling], ceiling
    end: Callable  # params, memory, draws, t, arm, total -> memory, estimate, arm, length      an episode is over at play t
    diagnose: Callable = lambda params, memory: {}
    rest: Callable | None = None  # params, memory -> the arm that only the horizon ends, or -1


class State(NamedTuple):
    memory: Any
    arm: Any  # [] int32
    left: Any  # [] int32: plays left of its episode
    high: Any  # [] the kept sum is (high + low 2^-bits) ceiling, 0 <= low < 2^bits
    low: Any


def choose(condition, new, old):
    """One of two equal trees, leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def clip01(value):
    """Rewards clipped to [0, 1]; NaN counts as 0."""
    return jnp.where(value > 0, jnp.minimum(value, 1), 0)


def next_arm(index, unplayed):
    """The lowest unplayed arm, then the arm of largest index [K], the lowest on ties."""
    return argmax(jnp.where(jnp.any(unplayed), unplayed.astype(index.dtype), index))


def power_above(bound) -> np.ndarray:
    """The smallest powers of two that are not below `bound` (> 0): ceilings, on the host."""
    mantissa, exponent = np.frexp(np.asarray(bound, np.float64))
    return np.ldexp(1.0, exponent - (mantissa == 0.5))


@cache
def program(rules: Rules) -> Program:
    def integers(dtype):
        """Bits of a unit, and the integers that hold them."""
        return jnp.finfo(dtype).nmant, jnp.int64 if dtype == jnp.float64 else jnp.int32

    def init(params, draws):
        memory, arm, length = rules.init(params, draws)
        zero = jnp.zeros((), integers(draws.dtype)[1])
        return State(memory, arm, length, zero, zero)

    def act(params, state, draws, t, context):
        return state.arm[None], jnp.minimum(state.left, t.shape[0]), ()

    def encode(params, note, draws, t, context, action, reward, play):
        return Report(reward, action, play)

    def update(params, state, draws, t, note, message, used):
        dtype = message.value.dtype
        bits, integer = integers(dtype)
        memory, kept, ceiling = rules.keep(params, state.memory, state.arm, message.value, message.present)
        units = jnp.round(kept * (2.0**bits / ceiling)).astype(integer)
        low = state.low + jnp.sum(jnp.where(message.present, units, 0), dtype=integer)
        high, low = state.high + (low >> bits), low & (2**bits - 1)
        total = (high.astype(dtype) + low.astype(dtype) * dtype.type(2.0**-bits)) * ceiling
        after, estimate, arm, length = rules.end(params, memory, draws, t, state.arm, total)
        left = state.left - used
        ended = left == 0
        fresh = State(after, arm, length, jnp.zeros_like(high), jnp.zeros_like(low))
        state = choose(ended, fresh, State(memory, state.arm, left, high, low))
        return state, jnp.where(ended, estimate, jnp.nan)

    rest = rules.rest
    return Program(
        init, act, encode, update,
        diagnose=lambda params, state: rules.diagnose(params, state.memory),
        rest=None if rest is None else lambda params, state: rest(params, state.memory),
        one_arm=True,
    )  # fmt: skip


def schedule(horizon: int, others: int) -> tuple[Span]:
    """One span with windows for all plays and for `others`: partly used ones at the ends of episodes, and those without plays.

    Long windows waste the slots behind an episode's end or a checkpoint, short ones pay a loop step more often.
    """
    slots = min(LONGEST, max(8, 2 ** round(math.log2(max(horizon, 1) / 256))))
    return (Span(slots, -(-horizon // slots) + others, full=False),)


def _view(message, released, action):
    return released


# every reward enters one release, the noisy estimate of its episode: the budget is that of a single release
GUARANTEE = Guarantee("central", "reward", spend, _view, ("mechanism_scale",))

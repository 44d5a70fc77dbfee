"""Algorithms that play one arm for an episode of many pulls and look only when it ends.

An algorithm is a few `Rules`. What all of them share is here: the arm, the plays left of its episode, the sum of its
usable rewards, and the windows. Lanes end their episodes at different plays, so a window is used up to the episode's
end only.

Sums are integers (`integer_sums`), so that an estimate depends neither on window lengths nor on where checkpoints cut
them. Axes: [K] arms, [P] plays of a window.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import integer_sums
from jaxbandits.declared import Doc, Horizon, Le
from jaxbandits.mechanisms.composition import delta_of_params, guarantee, view_released
from jaxbandits.numerics import argmax, tree_where
from jaxbandits.protocol import Algorithm, Guarantee, Hints, Program, Report, Rewards, Span
from jaxbandits.random import MAX_TRIALS
from jaxbandits.typing import Array, Bool, Float, Int

# The length of an episode that only the horizon ends.
FOREVER = 2**31 - 1
UNIT = Rewards(0.0, 1.0, "clip")
LimitedHorizon = Annotated[Horizon, Le(FOREVER - 1)]
CentralPrivate = Annotated[
    Algorithm,
    Doc("""epsilon-private in the central model for rewards that differ in one play: each reward enters one
        release."""),
]


class Rules(NamedTuple):
    """What sets one algorithm apart. `memory` is its own state; arm and length are int32."""

    # params, draws -> memory, arm, length: before the first play
    init: Callable[..., Any]
    # params, memory, arm, value[P], present[P] -> memory, usable[P] in [-ceiling, ceiling], ceiling: what counts of a
    # window
    keep: Callable[..., Any]
    # params, memory, draws, t, arm, total -> memory, released (the estimate first), arm, length: an episode ends at
    # play t
    end: Callable[..., Any]
    diagnose: Callable[..., dict[str, Any]] = lambda params, memory: {}
    # params, memory -> the arm played until the horizon, or UNDECIDED
    rest: Callable[..., Any] | None = None
    # params, memory -> what a client is told beside its arm
    note: Callable[..., Any] = lambda params, memory: ()
    # params, note, draws, t[P], value[P] -> what clients report in place of their rewards [P]
    encode: Callable[..., Any] = lambda params, note, draws, t, value: value


class State(NamedTuple):
    """The running episode, beside the algorithm's own memory."""

    memory: Any
    arm: Int[Array, ""]
    left: Int[Array, ""]  # plays left of its episode
    sum: integer_sums.Sum  # of the usable rewards


def clip01(value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Rewards clipped to [0, 1]; NaN counts as 0."""
    return jnp.where(value > 0, jnp.minimum(value, 1), 0)


def clip_rewards(params, memory, arm, value, present):
    """`Rules.keep` for rewards in [0, 1] that nothing is kept of but their sum."""
    return memory, clip01(value), value.dtype.type(1)


def next_arm(index: Float[Array, " K"], unplayed: Bool[Array, " K"]) -> Int[Array, ""]:
    """The lowest unplayed arm, then the arm of largest index [K], the lowest on ties."""
    return argmax(jnp.where(jnp.any(unplayed), unplayed.astype(index.dtype), index))


@cache
def program(rules: Rules, shortcut: bool = False) -> Program:
    """The functions of an algorithm of episodes.

    shortcut: `keep` is given the values [V] that rewards take, and as `present` how often each was paid (Hints.tally).
    """

    def init(params, draws):
        memory, arm, length = rules.init(params, draws)
        return State(memory, arm, length, integer_sums.nothing(draws.dtype))

    def act(params, state, draws, t, context):
        return state.arm[None], jnp.minimum(state.left, t.shape[0]), rules.note(params, state.memory)

    def encode(params, note, draws, t, context, action, reward, play):
        return Report(rules.encode(params, note, draws, t, reward), action, play)

    def update(params, state, draws, t, note, message, used):
        dtype = message.value.dtype
        memory, usable, ceiling = rules.keep(params, state.memory, state.arm, message.value, message.present)
        if shortcut:
            total = integer_sums.add_rewards(state.sum, usable, ceiling, message.present)
        else:
            total = integer_sums.add_rewards(state.sum, jnp.where(message.present, usable, 0), ceiling)
        usable_sum = integer_sums.sum_as_float(total, ceiling, dtype)
        after, released, arm, length = rules.end(params, memory, draws, t, state.arm, usable_sum)
        left = state.left - used
        ended = left == 0
        fresh = State(after, arm, length, integer_sums.nothing(dtype))
        state = tree_where(ended, fresh, State(memory, state.arm, left, total))
        return state, jnp.where(ended, released, jnp.nan)

    def diagnose(params, state):
        return rules.diagnose(params, state.memory)

    own = rules.rest
    rest = None if own is None else lambda params, state: own(params, state.memory)
    return Program(init, act, encode, update, diagnose=diagnose, hints=Hints(rest=rest, one_arm=True, tally=shortcut))


def schedule(horizon: int, others: int, shortcut: bool = False, most: int = integer_sums.MAX_PLAYS) -> tuple[Span, ...]:
    """One span, with windows for all plays and `others` more: partly used ones at the ends of episodes, and empty ones.

    Windows have up to `most` plays: long ones waste the slots behind an episode's end or a checkpoint, and short ones
    pay for a loop step more often. With the shortcut slots cost nothing, and a checkpoint does not cut what is drawn
    at once.
    """
    slots = MAX_TRIALS if shortcut else min(most, max(8, 2 ** round(math.log2(horizon / 256))))
    return (Span(slots, -(-horizon // slots) + others, full=False, whole=shortcut),)


def algorithm(
    rules: Rules, horizon: int, others: int, params: Any, claim: Guarantee, rewards: Rewards = UNIT, tails: Any = None
) -> Algorithm:
    """The algorithm of these rules, with `others` more windows than all plays need."""
    return Algorithm(program(rules), schedule(horizon, others), params, claim, rewards=rewards, tails=tails)


def pure_claim(events: Callable[..., Any]) -> Guarantee:
    """Every reward enters one release, the noisy estimate of its episode: `events`, params -> that one."""
    return guarantee("central", "reward", events, view_released)


def gaussian_claim(events: Callable[..., Any], params: Any) -> Guarantee:
    """Of releases with Gaussian noise: it states their (epsilon, delta) at the delta of `params`."""
    stated = guarantee("central", "reward", events, view_released, delta=delta_of_params)
    return stated._replace(claimed=stated.spend(params)[0])

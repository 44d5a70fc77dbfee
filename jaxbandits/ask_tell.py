"""A learner's functions outside of a world: it is asked for the arms of a window and told what they paid.

`window.play_without_record` is the same with a world and adversaries around it.
Axes: [P] plays of a window.
"""

import weakref
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.protocol import Context, Message, Note, Params, Program, State
from jaxbandits.random import Draws
from jaxbandits.typing import Array, DType, Float, Int, Numeric


class Behind(NamedTuple):
    """What a run's state has behind it."""

    plays: int
    seeds: range | None  # of its lanes, where its arrays have them as their first axis


# A state is a plain tree, which does not say how many plays it has behind it: {id of its first array: (array, Behind)}
_states: dict[int, tuple["weakref.ref[Any]", Behind]] = {}


def draws_of_learner(seed: Numeric, dtype: DType = jnp.float32, *, long: bool = False) -> Draws:
    """The random streams that the learner of a run of this seed has."""
    return Draws(seed, "", jnp.dtype(dtype).type, long=long).child("alg")


def ask(
    program: Program, params: Params, state: State, draws: Draws, t: Int[Array, ""], context: Context, slots: int = 1
) -> tuple[Int[Array, "P ..."], Note]:
    """The arms of the window that begins with play t, and the note for `tell`.

    slots: how many plays the window has; all of them are shown the same context.
    """
    shown = jax.tree.map(lambda x: jnp.broadcast_to(x, (slots, *jnp.shape(x))), context)
    action, _, note = ask_window(program, params, state, draws, t, shown, slots)
    return action, note


def ask_window(
    program: Program, params: Params, state: State, draws: Draws, t: Int[Array, ""], shown: Context, slots: int
) -> tuple[Int[Array, "P ..."], int | Int[Array, ""], Note]:
    """As `ask`, each play with a context of its own [P, ...]; also how many of the plays are to be made."""
    action, used, note = program.act(params, state, draws.child("act"), t + jnp.arange(slots, dtype=jnp.int32), shown)
    action = jnp.broadcast_to(action, (slots, *action.shape[1:]))
    return action, slots if used is None else used, note


def tell(
    program: Program, params: Params, state: State, draws: Draws, t: Int[Array, ""], context: Context, note: Note,
    action: Int[Array, "1 ..."], reward: Float[Array, "1 ..."],
) -> tuple[State, Message, Any]:  # fmt: skip
    """The state after play t, a window of its own; what its client sent; what the server released."""
    shown = jax.tree.map(lambda x: x[None], context)
    return tell_window(program, params, state, draws, t, shown, note, action, reward)


def tell_window(
    program: Program,
    params: Params,
    state: State,
    draws: Draws,
    t: Int[Array, ""],
    shown: Context,
    note: Note,
    action: Int[Array, "P ..."],
    reward: Float[Array, "P ..."],
    used: int | Int[Array, ""] | None = None,
) -> tuple[State, Message, Any]:
    """As `tell`, after the window that begins with play t. used: how many of its plays were made; None: all."""
    slots = action.shape[0]
    used = slots if used is None else used
    play, times = jnp.arange(slots, dtype=jnp.int32) < used, t + jnp.arange(slots, dtype=jnp.int32)
    sent, last = program.encode(params, note, draws.child("encode"), times, shown, action, reward, play), t - 1 + used
    message = program.relay(params, draws.child("relay"), last, sent, play)
    after, released = program.update(params, state, draws.child("update"), last, note, message, used)
    return after, sent, released


def note_behind(state: State, behind: Behind) -> None:
    """Note what a run's state has behind it. It is forgotten with the state's first array."""
    for key, (array, _) in list(_states.items()):
        if array() is None:
            _states.pop(key, None)
    if leaves := jax.tree.leaves(state):
        _states[id(leaves[0])] = weakref.ref(leaves[0]), behind


def behind_state(state: State) -> Behind | None:
    """What a state has behind it; None where it comes from no run of this process, or was copied."""
    leaves = jax.tree.leaves(state)
    array, behind = _states.get(id(leaves[0]), (lambda: None, None)) if leaves else (lambda: None, None)
    return behind if array() is not None else None


def play_tape(
    program: Program,
    params: Params,
    state: State,
    draws: Draws,
    first: Int[Array, ""],
    contexts: Context,
    rewards: Float[Array, "T A"],
) -> tuple[Int[Array, " T"], Message, State]:
    """Single plays from `first` on, each shown its context and paid its arm's reward: arms, messages and states."""

    def play_once(state, now):
        t, context, reward = now
        action, note = ask(program, params, state, draws, t, context)
        after, message, _ = tell(program, params, state, draws, t, context, note, action, jnp.take(reward, action))
        return after, (action[0], message, after)

    times = first + jnp.arange(len(rewards), dtype=jnp.int32)
    made: tuple[Int[Array, " T"], Message, State] = jax.lax.scan(play_once, state, (times, contexts, rewards))[1]
    return made

"""A learner's functions outside of a world, one play at a time: it is asked for an arm and told what that paid.

`window.play_without_record` is the same with a world, adversaries and windows of several plays around it.
"""

from typing import Any

import jax.numpy as jnp

from jaxbandits.protocol import Context, Message, Note, Params, Program, State
from jaxbandits.random import Draws
from jaxbandits.typing import Array, DType, Float, Int, Numeric


def draws_of_learner(seed: Numeric, dtype: DType = jnp.float32, *, long: bool = False) -> Draws:
    """The random streams that the learner of a run of this seed has."""
    return Draws(seed, "", jnp.dtype(dtype).type, long=long).child("alg")


def ask(
    program: Program, params: Params, state: State, draws: Draws, t: Int[Array, ""], context: Context, slots: int = 1
) -> tuple[Int[Array, "P ..."], Note]:
    """The arms of the window that begins with play t, and the note for `tell`.

    slots: how many plays the window has; all of them are shown the same context.
    """
    shown = jnp.broadcast_to(context, (slots, *jnp.shape(context)))
    action, _, note = program.act(params, state, draws.child("act"), t + jnp.arange(slots, dtype=jnp.int32), shown)
    return action, note


def tell(
    program: Program, params: Params, state: State, draws: Draws, t: Int[Array, ""], context: Context, note: Note,
    action: Int[Array, "1 ..."], reward: Float[Array, "1 ..."],
) -> tuple[State, Message, Any]:  # fmt: skip
    """The state after play t, a window of its own; what its client sent; what the server released."""
    play, times = jnp.ones(1, bool), t[None]
    sent = program.encode(params, note, draws.child("encode"), times, context[None], action, reward, play)
    message = program.relay(params, draws.child("relay"), t, sent, play)
    after, released = program.update(params, state, draws.child("update"), t, note, message, 1)
    return after, sent, released

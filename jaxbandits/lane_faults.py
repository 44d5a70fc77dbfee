"""What a lane notes of its own faults: the first play of each, in one integer each.

The parts do not know of it: the engine checks actions, rewards, messages and states as it reads them. Axes: [P] plays
of a window, [N] agents.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

NEVER = 2**31 - 1  # the first play of something that did not happen


class Faults(NamedTuple):
    """The first play at which something went wrong, int32, or NEVER; () where it is not watched.

    Actions are watched wherever the environment says how many arms it has. NaN is watched only in what a user wrote:
    the functions of this package pay no NaN, and go on after the NaN that adversaries put in.
    """

    action: Any  # an action outside the arms
    reward: Any  # the environment paid NaN
    message: Any  # a message with NaN, from rewards without
    # the state turned NaN after rewards and messages without; 0: it began with NaN, or an adversary's NaN came first
    state: Any


def begin(arms: int | None, own_world: bool, own_program: bool, state: object) -> Faults:
    """Before the first play. own_world, own_program: a user wrote them. A state that begins with NaN is not watched."""
    never = jnp.int32(NEVER)
    turned = jnp.where(has_nan(state), 0, never) if own_program else ()
    reward, message = never if own_world else (), never if own_program else ()
    return Faults(() if arms is None else never, reward, message, turned)


def actions(
    faults: Faults, arms: int | None, t: Int[Array, " P"], action: Int[Array, "..."], play: Bool[Array, " P"]
) -> Faults:
    """After a window's actions [P | P,N | 1]; play [P]: which of its plays are used."""
    if arms is None:
        return faults
    word = jnp.uint64 if action.dtype.itemsize > 4 else jnp.uint32
    outside = action.astype(word) >= word(arms)  # in one comparison: as an unsigned number, -1 is large
    return faults._replace(action=_first(faults.action, outside, play, t))


def rewards(faults: Faults, t: Int[Array, " P"], reward: Float[Array, "P ..."], play: Bool[Array, " P"]) -> Faults:
    """After a window's rewards [P | P,N], as the environment pays them."""
    if isinstance(faults.reward, tuple) or not jnp.issubdtype(reward.dtype, jnp.floating):
        return faults
    return faults._replace(reward=_first(faults.reward, jnp.isnan(reward), play, t))


def _first(before: Array, bad: Array, play: Array, t: Array) -> Array:
    """The first play that is bad, or the one noted before. bad: of plays or of the whole window, or of agents."""
    bad = bad.any(axis=1) if bad.ndim == 2 else bad
    rows = len(bad)
    return jnp.minimum(before, jnp.min(jnp.where(bad & play[:rows], t[:rows], NEVER)))


def spoils(reward: Float[Array, "P ..."], play: Bool[Array, " P"]) -> Bool[Array, ""]:
    """Whether any reward that was paid is not finite: what follows from it is no fault of the algorithm."""
    return jnp.any(~jnp.isfinite(reward) & play.reshape(play.shape + (1,) * (reward.ndim - 1)))


def state(
    faults: Faults,
    sent: object,
    received: object,
    after: object,
    last: Any,
    used: int | Array,
    spoiled: Callable[[], Bool[Array, ""]],
    attacked: bool = False,
) -> Faults:
    """After a window that ended at play `last` with the state `after`.

    Only the first cause is noted: after a message with NaN the state may hold NaN. sent, received: the message before
    and after adversaries and the trusted third party. attacked: whether there is an adversary for messages.
    spoiled(): whether rewards that are not finite excuse both. used: plays of the window; a message of no play is not
    read.
    """
    if isinstance(faults.state, tuple):
        return faults
    from_rewards = spoiled()
    bad = has_nan(sent) & (jnp.asarray(used) > 0) & ~from_rewards
    excused = from_rewards | has_nan(received)
    if attacked:
        excused = excused | ~_all(received, jnp.isfinite)
    turned = has_nan(after) & (faults.state == NEVER)
    message = jnp.minimum(faults.message, jnp.where(bad, last, NEVER))
    return faults._replace(message=message, state=jnp.where(turned, jnp.where(excused, 0, last), faults.state))


def has_nan(tree: object) -> Bool[Array, ""]:
    """Whether any floating-point number of a tree is NaN."""
    return ~_all(tree, lambda x: ~jnp.isnan(x))


def _all(tree: object, holds: Callable[[Any], Any]) -> Bool[Array, ""]:
    """Whether something holds of every floating-point number of a tree."""
    dtypes = [(x, x.dtype if hasattr(x, "dtype") else np.result_type(x)) for x in jax.tree.leaves(tree)]
    every = [holds(x).all() for x, dtype in dtypes if jnp.issubdtype(dtype, jnp.floating)]
    return jnp.stack(every).all() if every else jnp.bool_(True)

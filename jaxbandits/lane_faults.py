"""What a lane notes of its own faults: the first play of each, in one integer each.

Nobody who is watched knows of it: the engine asks as it reads actions, rewards, messages and states. Axes: [P] plays of a
window, [N] agents.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

NEVER = 2**31 - 1  # no play: the first play of something that did not happen


class Faults(NamedTuple):
    """The first play at which something went wrong, int32, or NEVER. () where it is not watched.

    Actions are watched wherever the environment says how many arms it has, NaN only in what a user wrote: the functions of
    this package pay no NaN and bear the NaN that adversaries put in.
    """

    action: Any  # an action outside the arms
    reward: Any  # the environment paid NaN
    message: Any  # a message with NaN, from rewards without
    state: Any  # the state turned NaN, after rewards and messages without; 0: it began so, or an adversary's NaN came first


def begin(arms: int | None, own_world: bool, own_program: bool, state) -> Faults:
    """Before the first play. own_world, own_program: whether they are a user's. A state that begins with NaN marks something by it."""
    never = jnp.int32(NEVER)
    return Faults(
        action=() if arms is None else never,
        reward=never if own_world else (),
        message=never if own_program else (),
        state=jnp.where(has_nan(state), 0, never) if own_program else (),
    )


def is_outside(action, arms: int):
    """Whether each action lies outside 0 .. arms - 1, in one comparison: as an unsigned number -1 is far above."""
    word = jnp.uint64 if action.dtype.itemsize > 4 else jnp.uint32
    return action.astype(word) >= word(arms)


def actions(faults: Faults, arms: int | None, t, action, play) -> Faults:
    """After a window's actions [P | P,N | 1]; play [P]: which of its plays are used."""
    if arms is None:
        return faults
    far = is_outside(action, arms)
    far = far.any(axis=1) if far.ndim == 2 else far
    return faults._replace(action=_first(faults.action, far & play[: len(far)], t[: len(far)]))


def rewards(faults: Faults, t, reward, play) -> Faults:
    """After a window's rewards [P | P,N], as the environment pays them."""
    if isinstance(faults.reward, tuple) or not jnp.issubdtype(reward.dtype, jnp.floating):
        return faults
    bad = jnp.isnan(reward)
    bad = bad.any(axis=1) if bad.ndim == 2 else bad
    return faults._replace(reward=_first(faults.reward, bad & play, t))


def _first(before, bad, t):
    return jnp.minimum(before, jnp.min(jnp.where(bad, t, NEVER)))


def spoils(reward, play):
    """Whether any reward that was paid is not finite: what follows from it is no fault of the algorithm."""
    return jnp.any(~jnp.isfinite(reward) & play.reshape(play.shape + (1,) * (reward.ndim - 1)))


def state(faults: Faults, sent, received, after, last, used, spoiled, attacked: bool = False) -> Faults:
    """After a window that ended at play `last` with state `after`. Only the root is noted: a NaN message excuses the state.

    sent, received: the message before and after adversaries (attacked: there is one for messages) and the trusted third
    party. spoiled(): excuses both. used: plays of the window; one without any may send anything, it is not read.
    """
    if isinstance(faults.state, tuple):
        return faults
    spoiled = spoiled()
    bad = has_nan(sent) & (jnp.asarray(used) > 0) & ~spoiled
    excused = spoiled | has_nan(received)
    if attacked:
        excused = excused | ~_all(jnp.isfinite(x) for x in _floats(received))
    turned = has_nan(after) & (faults.state == NEVER)
    return faults._replace(
        message=jnp.minimum(faults.message, jnp.where(bad, last, NEVER)),
        state=jnp.where(turned, jnp.where(excused, 0, last), faults.state),
    )


def has_nan(tree):
    """Whether any floating-point number of a tree is NaN."""
    return ~_all(~jnp.isnan(x) for x in _floats(tree))


def _floats(tree) -> list:
    dtypes = [(x, x.dtype if hasattr(x, "dtype") else np.result_type(x)) for x in jax.tree.leaves(tree)]
    return [x for x, dtype in dtypes if jnp.issubdtype(dtype, jnp.floating)]


def _all(conditions):
    every = [x.all() for x in conditions]
    return jnp.stack(every).all() if every else jnp.bool_(True)

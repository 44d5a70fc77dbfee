"""Messages on their way: a ring of the last plays' messages and notes, and which of them arrive at a play.

A play's slot is t mod [R], R a power of two, and a message stays in it for less than R plays. Messages of one due play
form a circle of slots, in the order of their plays: `last[due mod R]` is the slot of the latest of them, and
`following` leads from each slot to the next, from the latest back to the first. So a play looks at its own arrivals
only, however long the ring is.

Axes: [R] slots.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.typing import Array, Bool, Int

NONE = -1  # no message is due at a play


class Circles(NamedTuple):
    """Which messages are due when."""

    # of a due play, the slot of the latest message; NONE
    last: Int[Array, " R"]
    # of a message's slot, that of the next message of the same due play
    following: Int[Array, " R"]


def slot_of(t: Int[Array, ""], slots: int) -> Int[Array, ""]:
    """The slot of play t, or of a due play."""
    return t & jnp.int32(slots - 1)


def empty(like: Any, slots: int) -> Any:
    """A ring for trees of arrays: every leaf [R, ...], zeros."""
    return jax.tree.map(lambda x: jnp.zeros((slots, *x.shape), x.dtype), like)


def written(ring: Any, slot: Int[Array, ""], entry: Any) -> Any:
    """The ring with an entry in a slot."""
    return jax.tree.map(lambda x, y: lax.dynamic_update_index_in_dim(x, y, slot, 0), ring, entry)


def read(ring: Any, slot: Int[Array, ""]) -> Any:
    """The entry of a slot."""
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, slot, 0, keepdims=False), ring)


def no_circles(slots: int) -> Circles:
    """Nothing is on its way."""
    return Circles(jnp.full(slots, NONE, jnp.int32), jnp.zeros(slots, jnp.int32))


def sent(circles: Circles, t: Int[Array, ""], due: Int[Array, ""], comes: Bool[Array, ""], slots: int) -> Circles:
    """The circles after the message of play t was sent, which is due less than R plays later; or never comes."""
    slot, place = slot_of(t, slots), slot_of(due, slots)
    last, following = circles
    before = last[place]
    joins = comes & (before != NONE)
    first = jnp.where(joins, following[jnp.maximum(before, 0)], slot)
    following = following.at[slot].set(first)
    following = following.at[jnp.where(joins, before, slot)].set(jnp.where(joins, slot, first))
    return Circles(last.at[place].set(jnp.where(comes, slot, before)), following)


def arrivals(
    circles: Circles, t: Int[Array, ""], slots: int
) -> tuple[Circles, Int[Array, ""], Int[Array, ""]]:
    """The circles without what is due at play t, and the slots of the first and the latest of these messages.

    Both are NONE where no message is due.
    """
    place = slot_of(t, slots)
    latest = circles.last[place]
    first = jnp.where(latest == NONE, NONE, circles.following[jnp.maximum(latest, 0)])
    return circles._replace(last=circles.last.at[place].set(NONE)), first, latest


def play_of(slot: Int[Array, ""], t: Int[Array, ""], slots: int) -> Int[Array, ""]:
    """The play, at most t, whose message is in a slot."""
    return t - slot_of(t - slot, slots)

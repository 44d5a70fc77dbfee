"""Messages on their way: a ring of the last plays' messages, and which of them arrive at a play.

A play's slot is t mod R, and a message stays in it for less than R plays. Messages of one due play form a circle of
slots, in the order of their plays: `last[due mod R]` is the slot of the latest of them, and `following` leads from each
slot to the next, from the latest back to the first. So a play looks at its own arrivals only, however long the ring is.

Axes: [R] slots, [W] words of 32 bits.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.numerics import materialize
from jaxbandits.typing import Array, Bool, Int, UInt32

NONE = -1  # no message is due at a play


class Circles(NamedTuple):
    """Which messages are due when."""

    last: Int[Array, " R"]  # of a due play, the slot of the latest message; NONE
    following: Int[Array, " R"]  # of a message's slot, that of the next message of the same due play


def slot_of(t: Int[Array, ""], slots: int) -> Int[Array, ""]:
    """The slot of play t, or of a due play."""
    return lax.rem(t, jnp.int32(slots))


def play_of(slot: Int[Array, ""], t: Int[Array, ""], slots: int) -> Int[Array, ""]:
    """The play, at most t, whose message is in a slot."""
    return t - slot_of(t - slot + slots, slots)


# ---- messages: one row of words each, so that a play touches one place of a lane's memory


def tree_to_words(tree: object) -> UInt32[Array, " W"]:
    """A tree of arrays as words: the bits are kept."""
    return jnp.concatenate([_words(jnp.asarray(leaf)).reshape(-1) for leaf in jax.tree.leaves(tree)])


def words_to_tree(words: UInt32[Array, " W"], like: Any) -> Any:
    """The tree of packed words; like: a tree of its shapes and types."""
    leaves, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, like))
    found, at = [], 0
    for leaf in leaves:
        shape = jax.eval_shape(_words, leaf).shape
        number = jax.ShapeDtypeStruct(shape, words.dtype).size
        found.append(_from_words(words[at : at + number].reshape(shape), leaf.dtype))
        at += number
    return jax.tree.unflatten(structure, found)


def _words(x: Array) -> UInt32[Array, "..."]:
    if x.dtype.itemsize >= 4:
        return lax.bitcast_convert_type(x, jnp.uint32)
    return (lax.bitcast_convert_type(x, _bits(x.dtype)) if _is_real(x.dtype) else x).astype(jnp.uint32)


def _from_words(words: UInt32[Array, "..."], dtype: np.dtype[Any]) -> Array:
    if dtype.itemsize >= 4:
        return lax.bitcast_convert_type(words, dtype)
    return lax.bitcast_convert_type(words.astype(_bits(dtype)), dtype) if _is_real(dtype) else words.astype(dtype)


def _is_real(dtype: np.dtype[Any]) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating))


def _bits(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return jnp.dtype(f"uint{8 * dtype.itemsize}")


def empty_ring(like: Any, slots: int) -> UInt32[Array, "R W"]:
    """A ring for trees of these shapes and types, without messages."""
    words = jax.eval_shape(tree_to_words, like)
    return jnp.zeros((slots, *words.shape), words.dtype)


def write_message(ring: UInt32[Array, "R W"], slot: Int[Array, ""], message: Any) -> UInt32[Array, "R W"]:
    """The ring with a message in a slot."""
    return lax.dynamic_update_index_in_dim(ring, tree_to_words(message), slot, 0)


def read_message(ring: UInt32[Array, "R W"], slot: Int[Array, ""], like: Any) -> Any:
    """The message of a slot. Materialized: a CPU would look it up again for every number that depends on it."""
    return words_to_tree(materialize(lax.dynamic_index_in_dim(ring, slot, 0, keepdims=False)), like)


# ---- which are due


def no_circles(slots: int) -> Circles:
    """Nothing is on its way."""
    return Circles(jnp.full(slots, NONE, jnp.int32), jnp.zeros(slots, jnp.int32))


def link_message(
    circles: Circles, t: Int[Array, ""], due: Int[Array, ""], comes: Bool[Array, ""], slots: int
) -> Circles:
    """The circles after the message of play t was sent, which is due less than R plays later; or never comes."""
    slot, place = slot_of(t, slots), slot_of(due, slots)
    before = _at(circles.last, place)
    joins = comes & (before != NONE)
    first = jnp.where(joins, _at(circles.following, jnp.maximum(before, 0)), slot)
    following = _set(circles.following, slot, first)
    following = _set(following, jnp.where(joins, before, slot), jnp.where(joins, slot, first))
    return Circles(_set(circles.last, place, jnp.where(comes, slot, before)), following)


def arrivals(circles: Circles, t: Int[Array, ""], slots: int) -> tuple[Circles, Int[Array, ""], Int[Array, ""]]:
    """The circles without what is due at play t, and the slots of the first and the latest of these messages.

    Both are NONE where no message is due.
    """
    place = slot_of(t, slots)
    latest = _at(circles.last, place)
    first = jnp.where(latest == NONE, NONE, _at(circles.following, jnp.maximum(latest, 0)))
    nothing = jnp.minimum(latest, NONE)  # NONE, and surely computed after `latest` was read: no copy is made
    return circles._replace(last=_set(circles.last, place, nothing)), first, latest


def _at(x: Int[Array, " R"], place: Int[Array, ""]) -> Int[Array, ""]:
    """An entry, read before anything is written: the array would be copied otherwise."""
    return materialize(x.at[place].get(mode="promise_in_bounds"))


def _set(x: Int[Array, " R"], place: Int[Array, ""], value: Int[Array, ""]) -> Int[Array, " R"]:
    return x.at[place].set(value, mode="promise_in_bounds")

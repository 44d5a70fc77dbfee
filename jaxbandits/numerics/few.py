"""Costly work that few lanes need: on a CPU the lanes that do are gathered into blocks, worked on, and put back.

Under vmap a branch computes both sides for every lane. Here, inside `lanes_last`, only the lanes that want the
work cost anything. An accelerator does the work in every lane: gathering would make all lanes wait for each other.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics.fusion import materialize
from jaxbandits.numerics.sums import fixed_cumsum
from jaxbandits.typing import Array, Bool, Shaped

LANE_BLOCK = 128  # lanes worked on together, at most
WORD = 32  # flags are packed into words, so that a search goes over words and then bits


# docs/decisions.md#few
def at_the_few(
    wanted: Bool[Array, " M"], function: Callable[..., Any], x: Shaped[Array, "d M"], *args: Array
) -> Shaped[Array, "d M"]:
    """x with function(x, *args) in the lanes that are `wanted`; the lane is the last axis of x and args.

    The function is elementwise over lanes; which lanes share a block with it does not change a bit of a lane's
    result. block: how many do, at most.
    """

    def where_wanted(wanted, x, *args):
        return _in_blocks(wanted, function, x, *args)

    def everywhere(wanted, x, *args):
        return jnp.where(wanted, function(x, *args), x)

    return lax.platform_dependent(wanted, x, *args, cpu=where_wanted, default=everywhere)


def _in_blocks(wanted, function, x, *args):
    lanes = wanted.shape[0]
    block = min(LANE_BLOCK, -(-lanes // 16) * 16)
    words = -(-lanes // WORD)
    # bit b of word w is lane b * words + w: packing goes over a leading axis, elementwise
    flags = jnp.pad(wanted, (0, WORD * words - lanes)).reshape(WORD, words)
    word = sum((flags[b].astype(jnp.uint32) << b for b in range(1, WORD)), flags[0].astype(jnp.uint32))
    wanted_in_word = lax.population_count(word).astype(jnp.int32)
    upto = fixed_cumsum(wanted_in_word)

    def work(carry):
        first, x = carry
        place = first + jnp.arange(block, dtype=jnp.int32)
        at = jnp.searchsorted(upto, place, side="right", method="scan_unrolled").astype(jnp.int32)
        at = jnp.minimum(at, words - 1)
        rank = place - upto[at] + wanted_in_word[at]
        lane = materialize(jnp.where(place < upto[-1], _bit(word[at], rank) * words + at, lanes))
        existing = jnp.minimum(lane, lanes - 1)
        result = function(*(a[:, existing] for a in (x, *args)))
        return first + block, x.at[:, lane].set(result, mode="drop")

    return lax.while_loop(lambda carry: carry[0] < upto[-1], work, (jnp.int32(0), x))[1]


def _bit(word, rank):
    """Position of the set bit number `rank` (0, 1, ...) of a word: by halves."""
    position = jnp.zeros_like(rank)
    for width in (16, 8, 4, 2, 1):
        inside = lax.population_count(word & jnp.uint32((1 << width) - 1)).astype(jnp.int32)
        above = rank >= inside
        rank = jnp.where(above, rank - inside, rank)
        position = jnp.where(above, position + width, position)
        word = jnp.where(above, word >> width, word)
    return position

"""Sums and choices over the first axis of arrays whose last axis is the lane [L].

With the lane last, an operation on few numbers of many lanes fills the vector registers. What is used more than
once is materialized, since XLA would compute it again for each use.
"""

import jax.numpy as jnp

from jaxbandits.numerics import materialize, materialize_all
from jaxbandits.typing import Array, Float, Int


def sum_by_halves(x: Float[Array, "m ..."]) -> Float[Array, "..."]:
    """Sum over the first axis in a fixed order: halves are added down to eight terms, an odd last term is put aside.

    Joining that term to the halves by a concatenation costs 30 times as much: the vectorised loop becomes one of
    branches.
    """
    aside = None
    while x.shape[0] > 8:
        half = x.shape[0] // 2
        if x.shape[0] % 2:
            aside = x[-1] if aside is None else aside + x[-1]
        x = x[:half] + x[half : 2 * half]
    result = x[0]
    for i in range(1, x.shape[0]):
        result = result + x[i]
    return result if aside is None else result + aside


def ladder(scores: Float[Array, "m L"]) -> list[Float[Array, "_ L"]]:
    """The scores, their sums by eights, the sums of those by eights, and so on until at most eight are left."""
    levels = [scores]
    while levels[-1].shape[0] > 8:
        levels.append(materialize(sum_by_halves(jnp.moveaxis(_eights(levels[-1]), 1, 0))))
    return levels


def _eights(x: Float[Array, "m L"]) -> Float[Array, "_ 8 L"]:
    """Groups of eight rows, the last one filled up with zeros."""
    short = -x.shape[0] % 8
    return (jnp.pad(x, ((0, short), (0, 0))) if short else x).reshape(-1, 8, x.shape[1])


def first_above(
    levels: list[Float[Array, "_ L"]], target: Float[Array, " L"]
) -> tuple[Int[Array, " L"], Float[Array, " L"]]:
    """Lowest i with scores_0 + ... + scores_i > target, and what is left of the target before it.

    `levels` is a `ladder`. The search goes from its top down, with at most eight terms a level: a cumulative sum
    would take log2 m passes.
    """
    index = jnp.zeros(target.shape, jnp.int32)
    for level, scores in enumerate(reversed(levels)):
        if level:
            groups = _eights(scores)
            chosen = jnp.arange(groups.shape[0], dtype=jnp.int32)[:, None, None] == index[None, None]
            scores = materialize(sum_by_halves(jnp.where(chosen, groups, 0)))
        sums = [scores[0]]
        for i in range(1, scores.shape[0]):
            sums.append(sums[-1] + scores[i])
        # Rounding may put the target at the end or beyond it.
        target = jnp.minimum(target, sums[-1] * (1 - jnp.finfo(scores.dtype).eps))
        rank, before = jnp.zeros_like(index), jnp.zeros_like(target)
        for partial_sum in sums[:-1]:
            rank = rank + (partial_sum <= target).astype(jnp.int32)
            before = jnp.where(partial_sum <= target, partial_sum, before)
        index, target = materialize_all([index * 8 + rank, target - before])
    return index, target

"""Sums and choices over the first axis of arrays whose last axis is the lane [L]: an operation on few numbers of many lanes fills vectors.

What is used more than once is settled: XLA would compute it again in each use.
"""

import jax.numpy as jnp

from jaxbandits.numerics import materialize, materialize_all


def total(x):
    """Sum over the first axis in a fixed order: halves down to eight terms, an odd last one put aside.

    Joining it to the halves by a concatenation costs 30 times as much: the vectorised loop becomes one of branches.
    """
    aside = None
    while x.shape[0] > 8:
        half = x.shape[0] // 2
        if x.shape[0] % 2:
            aside = x[-1] if aside is None else aside + x[-1]
        x = x[:half] + x[half : 2 * half]
    found = x[0]
    for i in range(1, x.shape[0]):
        found = found + x[i]
    return found if aside is None else found + aside


def ladder(scores) -> list:
    """Scores [m, L], their sums by eights, the sums of those by eights, ... until at most eight are left."""
    levels = [scores]
    while levels[-1].shape[0] > 8:
        levels.append(materialize(total(jnp.moveaxis(_eights(levels[-1]), 1, 0))))
    return levels


def _eights(x):
    """[m, L] -> [m / 8, 8, L], filled up with zeros."""
    short = -x.shape[0] % 8
    return (jnp.pad(x, ((0, short), (0, 0))) if short else x).reshape(-1, 8, x.shape[1])


def first_above(levels, target):
    """Lowest i with scores_0 + ... + scores_i > target, and what of target is left before it: a ladder, target [L].

    From the top of the ladder down, at most eight terms a level: a cumulative sum would take log2 m passes.
    """
    index = jnp.zeros(target.shape, jnp.int32)
    for level, scores in enumerate(reversed(levels)):
        if level:
            groups = _eights(scores)
            mine = jnp.arange(groups.shape[0], dtype=jnp.int32)[:, None, None] == index
            scores = materialize(total(jnp.where(mine, groups, 0)))
        sums = [scores[0]]
        for i in range(1, scores.shape[0]):
            sums.append(sums[-1] + scores[i])
        # rounding may put the target at the end or beyond it
        target = jnp.minimum(target, sums[-1] * (1 - jnp.finfo(scores.dtype).eps))
        rank, before = jnp.zeros_like(index), jnp.zeros_like(target)
        for each in sums[:-1]:
            rank, before = rank + (each <= target).astype(jnp.int32), jnp.where(each <= target, each, before)
        index, target = materialize_all([index * 8 + rank, target - before])
    return index, target

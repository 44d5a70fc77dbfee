"""Lanes of calls of two sizes: the same bits where JAX keeps that promise, otherwise equal up to rounding."""

import chex
import jax

# From JAX 0.11 on XLA's code for a CPU multiplies and adds in one rounding in some loops and not in others, by their
# length (docs/determinism.md, "The promise").
KEPT = jax.__version_info__ < (0, 11)


def assert_same(few, whole, kept=KEPT) -> None:
    """few: what a call of fewer lanes gave; whole: the same lanes of a larger call."""
    if kept:
        chex.assert_trees_all_equal(few, whole)
    else:
        chex.assert_trees_all_close(few, whole, rtol=1e-4, atol=1e-5)

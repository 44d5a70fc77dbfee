"""Maler against a Numba loop of the same updates: plays x lanes per second on one core.

    python benchmarks/maler.py [LANES [PLAYS]]       lanes (1,000), plays of each (2,000)

Dimension 5, constants of T = 20,000 (19 experts), noisy linear regression, gradients clipped at G: three practical
ones and the theory's at epsilon 1. Both sides read the same cheap counter for their draws, whose time is in both.
"left": Newton steps that leave the ball. Compilation is left out, CPU seconds of one pinned core are the least of
several turns.
"""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numba_maler
import numpy as np
from measure import best_of, one_core

import jaxbandits as jb
from jaxbandits.learners.maler import num_pairs
from jaxbandits.numerics import dot, materialize, materialize_all

DIM, HORIZON = 5, 20_000
BOUNDS = {"practical, epsilon 10": 9.62, "practical, epsilon 1": 50.5, "practical, reward only": 8.5, "theory": 4376.0}


@partial(jax.jit, static_argnums=2)
def ours(seeds, G, plays, theta):
    def lane(h):
        learner = jb.learners.maler(DIM, HORIZON, 1.0, G)

        def play(carry, _):
            h, state = carry
            h = h * jnp.uint32(1664525) + jnp.uint32(1013904223)
            draws = materialize_all(
                [((h >> jnp.uint32(3 * j)) & jnp.uint32(1023)).astype(jnp.float32) for j in range(DIM + 1)]
            )
            x = jnp.stack(draws[:DIM]) / 170 - 3
            error = materialize(dot(x, learner.predict(state) - theta) + draws[DIM] / 512 - 1)
            g = 2 * x * error
            g = g * materialize(jnp.minimum(1, G / jnp.maximum(jnp.sqrt(dot(g, g)), 1e-30)))
            return (h, learner.update(state, g)), None

        return learner.predict(jax.lax.scan(play, (h, learner.init()), length=plays)[0][1])

    return jax.vmap(lane)(seeds)


def main(lanes: int, plays: int) -> None:
    one_core()
    seeds = np.random.default_rng(0).integers(0, 2**32, lanes, dtype=np.uint32)
    theta = np.array([0.5, -0.5, 0.5, 0.4, -0.3], np.float32)  # norm 1: experts leave the ball
    loop = numba_maler.compiled(DIM, num_pairs(HORIZON))
    for name, G in BOUNDS.items():
        runs = (
            lambda G=G: jax.block_until_ready(ours(seeds, G, plays, theta)),
            lambda G=G: loop(seeds, theta, plays, HORIZON, np.float32(G)),
        )
        mine, (theirs, left) = (run() for run in runs)
        difference = np.abs(np.asarray(mine) - theirs).max()
        seconds, other = best_of(5, *runs)
        print(
            f"{name:24s} {plays * lanes / seconds:.3g} plays / s, {1e6 * seconds / plays / lanes:.2f} us each; "
            f"Numba {plays * lanes / other:.3g}; ratio {other / seconds:.2f}; {left:.1%} left; "
            f"predictions differ by {difference:.1g}",
            flush=True,
        )


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]), *(1_000, 2_000)[len(sys.argv) - 1 :])

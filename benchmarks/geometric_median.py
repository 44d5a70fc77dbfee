"""The geometric median against a Numba loop: 10,000 problems of 20 points in 20 dimensions, certified, on one core.

    python benchmarks/geometric_median.py [PROBLEMS] [far]       far: a fifth of the points a thousand times as far out

Same iterations (64), same float type, both certify. The loop starts at the mean, or at the coordinatewise median like
ours ("robust"). Compilation is left out. Pin the process to one core.
"""

import sys
from functools import partial

import jax
import numba_median
import numpy as np
from measure import best_of

from jaxbandits.estimators import geometric_median

NUM_POINTS, DIM, ITERATIONS, BATCH = 20, 20, 64, 128


def main(problems: int, far: bool) -> None:
    points = np.random.default_rng(0).normal(size=(problems, NUM_POINTS, DIM)).astype(np.float32)
    if far:
        points[:, : NUM_POINTS // 5] *= 1000
    points = jax.numpy.asarray(points)
    solve = jax.jit(lambda x: jax.lax.map(partial(geometric_median, iterations=ITERATIONS), x, batch_size=BATCH))
    loop, table = numba_median.compiled(NUM_POINTS, DIM), np.asarray(points)
    runs = [
        lambda: jax.block_until_ready(solve(points)),
        lambda: loop(table, ITERATIONS, False),
        lambda: loop(table, ITERATIONS, True),
    ]
    ours, plain, robust = (run() for run in runs)
    seconds = best_of(7, *runs)
    names = ("jaxbandits", "Numba loop from the mean", "Numba loop from the robust start")
    for name, gap, s in zip(names, (np.asarray(ours.gap), plain[1], robust[1]), seconds, strict=True):
        print(
            f"{name:34s} {problems / s:.3g} problems / s, gap {np.median(gap):.2g} (largest {gap.max():.2g}), "
            f"{s / seconds[0]:.2f} x our time"
        )


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "far"]
    main(int(arguments[0]) if arguments else 10_000, "far" in sys.argv)

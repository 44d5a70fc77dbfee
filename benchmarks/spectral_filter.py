"""The spectral filter against its literal form, a Numba loop of the same blocked form, and NumPy:
microseconds a removal and lane.

    python benchmarks/spectral_filter.py [N ...]       numbers of reports (1000 4096 10000 100000)

2d arms (8 at d = 5), 5% of the reports replaced by values of size 10 to 100, so that about as many are removed; fewer
of a hundred thousand. Everything runs on one pinned core in one process, compilation left out; CPU time, the least of
several rounds in turns.
"""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numba_filter
import numpy as np
from jax import lax
from measure import best_of, one_core

from jaxbandits.estimators._top_eigenvector import top_eigenvector
from jaxbandits.estimators.spectral_filter import block_size, filter_blocks, layout

SIZES, DIMS = [1000, 4096, 10_000, 100_000], [5, 10, 50]
LANES = {1000: 256, 4096: 256, 10_000: 64, 100_000: 64}
BOUND, SHARE = 1.0, 0.05


def problem(n, d, lanes, seed=0):
    """Uniforms and reports [L, n], sorted arms [n], whitened directions [K, d]."""
    rng, num_arms = np.random.default_rng(seed), max(8, 2 * d)
    actions = rng.normal(size=(num_arms, d))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    arms = np.sort(rng.integers(num_arms, size=n)).astype(np.int32)
    whitened = np.linalg.solve(np.linalg.cholesky(actions[arms].T @ actions[arms] / n), actions.T).T.astype(np.float32)
    reports = actions[arms] @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=(lanes, n))
    outliers = rng.choice([10.0, 20.0, 50.0, 100.0], (lanes, n)) * rng.choice([-1, 1], (lanes, n))
    reports = np.where(rng.random((lanes, n)) < SHARE, outliers, reports)
    return rng.random((lanes, n), np.float32), reports.astype(np.float32), arms, whitened


def in_blocks(reports, arms, num_arms):
    """Values [L, nb, bs], NaN where a block is not full, and each block's arm."""
    size = block_size(arms.size)
    place, block_arm = map(np.asarray, jax.jit(partial(layout, num_arms=num_arms, size=size))(arms))
    values = np.full((len(reports), block_arm.size * size), np.nan, np.float32)
    values[:, place] = reports
    return values.reshape(len(reports), -1, size), block_arm


def literal(uniforms, x, limit):
    """One lane: dense covariance, eigh and a flat inverse distribution function of x [n, d] in every removal."""

    def mean_of(keep, number):
        return jnp.where(keep, x.T, 0).sum(1) / number

    def looked(keep, step):
        number = jnp.sum(keep)
        apart = jnp.where(keep[:, None], x - mean_of(keep, number), 0)
        values, vectors = jnp.linalg.eigh(apart.T @ apart / number)
        return keep, step, values[-1], (apart @ vectors[:, -1]) ** 2

    def remove(carry):
        keep, step, _, score = carry
        total = jnp.cumsum(score)
        i = jnp.searchsorted(total, uniforms[step] * total[-1], side="right")
        return looked(keep.at[i].set(False), step + 1)

    def wanted(carry):
        return (carry[2] >= 4 * BOUND) & (carry[1] < limit)

    keep, step, _, _ = lax.while_loop(wanted, remove, looked(jnp.ones(len(x), bool), 0))
    return mean_of(keep, jnp.sum(keep)), step


def in_numpy(uniforms, x, limit):
    """The literal form in NumPy, one lane: removals made."""
    keep, step = np.ones(len(x), bool), 0
    while True:
        apart = np.where(keep[:, None], x - x[keep].mean(0), 0)
        values, vectors = np.linalg.eigh(apart.T @ apart / keep.sum())
        if values[-1] < 4 * BOUND or step == limit:
            return step
        total = np.cumsum((apart @ vectors[:, -1]) ** 2)
        keep[np.searchsorted(total, uniforms[step] * total[-1], side="right")] = False
        step += 1


def case(n, d):
    """Microseconds a removal and lane of ours, Numba, literal, NumPy, and the eigen-solve alone."""
    lanes, limit = LANES[n], 2 * n if n < 100_000 else 200 if d == 50 else 1000
    uniforms, reports, arms, whitened = problem(n, d, lanes)
    values, block_arm = in_blocks(reports, arms, len(whitened))
    present, u, r = jnp.asarray(~np.isnan(values[0])), jnp.asarray(whitened), jnp.asarray(np.nan_to_num(values))

    @jax.jit
    @jax.vmap
    def ours(uniforms, values):
        found = filter_blocks(uniforms, 0, values, present, jnp.asarray(block_arm), u, BOUND, max_removals=limit)
        return found.num_removed, found.mean

    draws = jnp.asarray(uniforms)
    removed, mean = map(np.asarray, ours(draws, r))
    spoilt = [values.copy() for _ in range(5)]
    loop = partial(
        numba_filter.spectral_filter, uniforms, block_arm=block_arm, directions=whitened, bound=BOUND, limit=limit
    )
    same_mean, same_removed = loop(values=spoilt.pop())

    few, some = int(np.clip(2e9 / (n * d * d * 8), 2, 20)), min(lanes, 8)
    dense = jnp.asarray(whitened[arms] * reports[:some, :, None])
    slow = jax.jit(jax.vmap(partial(literal, limit=few)))
    made = np.asarray(slow(draws[:some], dense)[1])

    # the solve on what is left at the end, where squaring takes longest
    mine = np.arange(len(whitened))[:, None] == arms
    clean = np.where(np.abs(reports) < 5, reports, 0)
    weights = jnp.asarray((mine @ (clean**2).T).astype(np.float32) / n)
    every = jnp.broadcast_to(u[:, :, None], (*u.shape, lanes))
    centre = jnp.asarray((whitened.T @ (mine @ clean.T) / n).astype(np.float32))
    solve = jax.jit(
        lambda w: lax.fori_loop(0, 20, lambda _, w: w + 1e-30 * top_eigenvector(w, every, centre, w[0] > -1)[:1], w)
    )
    jax.block_until_ready(solve(weights))

    seconds = best_of(
        4,
        lambda: jax.block_until_ready(ours(draws, r)),
        lambda: loop(values=spoilt.pop()),
        lambda: jax.block_until_ready(slow(draws[:some], dense)),
        lambda: in_numpy(uniforms[0], np.asarray(dense[0]), few),
        lambda: jax.block_until_ready(solve(weights)),
    )
    counts = removed.sum(), same_removed.sum(), made.sum(), few, 20 * lanes
    apart = np.abs(mean - same_mean).max()
    return [1e6 * s / c for s, c in zip(seconds, counts, strict=True)], removed, same_removed, apart


def main(sizes) -> None:
    one_core()
    head = (
        "n",
        "d",
        "removals",
        "Numba's",
        "ours",
        "Numba",
        "literal",
        "NumPy",
        "Numba / ours",
        "literal / ours",
        "solve",
        "means apart",
    )
    print(" | ".join(f"{x:>9}" for x in head))
    for n in sizes:
        for d in DIMS:
            (ours, loop, slow, numpy, solve), removed, same, apart = case(n, d)
            row = (
                n,
                d,
                f"{removed.mean():.1f}",
                f"{same.mean():.1f}",
                f"{ours:.3g}",
                f"{loop:.3g}",
                f"{slow:.4g}",
                f"{numpy:.4g}",
            )
            row = (*row, f"{loop / ours:.2f}", f"{slow / ours:.0f}", f"{solve / ours:.0%}", f"{apart:.1g}")
            print(" | ".join(f"{x!s:>9}" for x in row), flush=True)


if __name__ == "__main__":
    main([int(x) for x in sys.argv[1:]] or SIZES)

"""
More seeds, and only what is new
================================

A sweep with a directory keeps every finished chunk. Asked again with more seeds or another algorithm, it computes only
what is missing, and the numbers are those of one large sweep, bit for bit.
"""

import tempfile
import time

import numpy as np

import jaxbandits as jb

store = tempfile.mkdtemp()
arms = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])
UCB1, MOSS = {"UCB1": jb.algorithms.ucb1}, {"MOSS": jb.algorithms.moss}


def sweep(algorithms, seeds, **options):
    start = time.perf_counter()
    ds = jb.sweep(algorithms, arms, horizon=2000, seeds=seeds, progress=False, **options)
    print(f"{' and '.join(algorithms)}, {seeds} seeds: {time.perf_counter() - start:.2f} s")
    return ds


first = sweep(UCB1, 512, store=store)
again = sweep(UCB1, 512, store=store)
more = sweep(UCB1 | MOSS, 1024, store=store)
assert np.array_equal(more.regret.sel(algorithm="UCB1", seed=first.seed), first.regret.sel(algorithm="UCB1"))
figure, data = jb.plot.regret(more)

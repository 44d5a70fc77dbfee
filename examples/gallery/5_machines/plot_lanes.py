"""
Ten times the seeds for less than ten times the time
====================================================

All seeds of a sweep run in one program, on whatever JAX finds: a CPU here, or an accelerator with the same code. The
first runs only pay for the loop; a processor is busy from some hundreds of runs on, an accelerator from far more.
"""

import time

import jax
import matplotlib.pyplot as plt

import jaxbandits as jb

HORIZON, SEEDS = 2000, [16, 64, 256, 1024, 4096]
arms = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])


def seconds(seeds):
    """How long a sweep takes, the second time: its program is compiled by then."""
    for _ in range(2):
        start = time.perf_counter()
        jb.sweep(jb.algorithms.ucb1, arms, horizon=HORIZON, seeds=seeds, checkpoints=10, progress=False)
    return time.perf_counter() - start


rates = [HORIZON * seeds / seconds(seeds) for seeds in SEEDS]
device = jax.devices()[0]
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(SEEDS, rates, "o-")
axes.set(xscale="log", yscale="log", xlabel="seeds in one sweep", ylabel="plays per second", title=f"on {device}")

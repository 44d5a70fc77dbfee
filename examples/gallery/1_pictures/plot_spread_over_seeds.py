"""
What a mean hides
=================

The mean regret of 2,000 runs is one number. Their distribution shows that some runs settle on the wrong arm: a greedy
algorithm often has less regret than UCB1, and sometimes ten times as much.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb

ds = jb.sweep(
    {"UCB1": jb.algorithms.ucb1, "UCB1, a tenth of the bonus": partial(jb.algorithms.ucb1, bonus_scale=0.1)},
    jb.environments.bernoulli_arms(means=[0.45, 0.55]),
    horizon=2000,
    seeds=2000,
    progress=False,
)
final = ds.regret.isel(t=-1)

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name in ds.algorithm.values:
    values = final.sel(algorithm=name)
    (patch,) = axes.hist(values, np.arange(0, 205, 5), histtype="stepfilled", alpha=0.5, label=name)[2]
    axes.axvline(float(values.mean()), color=patch.get_facecolor(), alpha=1, linestyle="--")
axes.set(xlabel="regret after 2,000 plays (dashed: the mean)", ylabel="runs")
axes.legend()

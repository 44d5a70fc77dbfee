"""
Compare on the same rewards
===========================

All algorithms of a sweep meet the same rewards, so their difference is taken seed by seed. Much of the noise cancels:
the interval of the paired difference is narrower than that of two separate experiments.
"""

import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb

ds = jb.sweep(
    {"FTPL": jb.algorithms.ftpl, "Tsallis-INF": jb.algorithms.tsallis_inf, "HTINF": jb.algorithms.htinf},
    jb.environments.bernoulli_losses(means=[0.3, 0.5, 0.5, 0.6]),
    horizon=2000,
    seeds=100,
    progress=False,
)
first, second = (ds.regret.sel(algorithm=name).isel(t=-1).values for name in ("Tsallis-INF", "HTINF"))
paired = 1.96 * (first - second).std() / np.sqrt(100)
separate = 1.96 * np.sqrt((first.var() + second.var()) / 100)

figure, axes = plt.subplots(figsize=(6, 2.4), layout="constrained")
middle = (first - second).mean()
axes.errorbar([middle, middle], [1, 0], xerr=[paired, separate], fmt="o", capsize=4)
axes.axvline(0, color="0.6")
axes.set(xlabel="regret of Tsallis-INF minus regret of HTINF, 95% interval", ylim=(-0.6, 1.6))
axes.set_yticks([1, 0], ["same rewards", "as if rewards\nwere separate"])

# %%
# :func:`jaxbandits.compare` does this for every point of a grid, and corrects for many comparisons.

jb.compare(ds, "Tsallis-INF", "HTINF")

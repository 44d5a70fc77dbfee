"""
How fast regret grows
=====================

Here logarithmic axes are worth it: a power of time is a straight line. Uniform play loses in proportion to time, MOSS
about as its root until the gap is found, and Thompson sampling bends away from every power.
"""

import numpy as np

import jaxbandits as jb

ds = jb.sweep(
    {
        "uniform play": jb.algorithms.uniform,
        "EXP3": jb.algorithms.exp3,
        "MOSS": jb.algorithms.moss,
        "Thompson sampling": jb.algorithms.thompson,
    },
    jb.environments.bernoulli_arms(means=[0.3, 0.5, 0.5, 0.6]),
    horizon=10_000,
    seeds=200,
    progress=False,
)
figure, data = jb.plot.regret(ds, log="both", bounds={"3 √t": lambda t: 3 * np.sqrt(t)})

# %%
# The slopes of the last decade, with their intervals over the seeds.

jb.slope(ds)

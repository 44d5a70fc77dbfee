"""
The price of privacy
====================

Regret against epsilon. A server that learns from batches, with one noise each, pays less than clients that add noise to
every report, the more so the smaller epsilon is. Algorithms without epsilon are run once and drawn as a line.
"""

from functools import partial

import jaxbandits as jb

ds = jb.sweep(
    {
        "noise on every report": partial(jb.algorithms.ldp_exp3, learning_rate=0.005, mixing=0.02),
        "noise on every batch": partial(
            jb.algorithms.private_batched, base=partial(jb.algorithms.exp3, learning_rate=0.02, mixing=0.02)
        ),
        "no privacy": jb.algorithms.tsallis_inf,
    },
    jb.environments.bernoulli_losses(means=[0.3, 0.5, 0.5, 0.6]),
    horizon=20_000,
    seeds=100,
    grid={"epsilon": [0.1, 0.2, 0.5, 1.0]},
    checkpoints=1,
    progress=False,
)
figure, data = jb.plot.against(ds, "epsilon")

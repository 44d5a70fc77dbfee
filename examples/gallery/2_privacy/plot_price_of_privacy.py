"""
The price of privacy
====================

Regret against epsilon. Up to 0.5 a server that learns from batches, with one noise each, pays less than clients that
add noise to every report. At 1 a batch is one play, with the same noise: there only the tuned rates differ. Algorithms
without epsilon are run once and drawn as a line.
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

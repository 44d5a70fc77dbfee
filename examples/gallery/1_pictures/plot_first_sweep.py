"""
A first sweep
=============

Four algorithms learn which of five arms pays best. The lower a curve, the less was lost while learning.
"""

import jaxbandits as jb

ds = jb.sweep(
    {
        "UCB1": jb.algorithms.ucb1,
        "MOSS": jb.algorithms.moss,
        "KL-UCB": jb.algorithms.kl_ucb,
        "Thompson sampling": jb.algorithms.thompson,
    },
    jb.environments.bernoulli_arms(means=[0.1, 0.3, 0.5, 0.7, 0.9]),
    horizon=4000,
    seeds=200,
    progress=False,
)
figure, data = jb.plot.regret(ds)

# %%
# All of them meet the same rewards, seed by seed. The table says how sure the means are.

print(jb.table(ds))

"""
Whom do you trust?
==================

With these learners the same epsilon costs more, the fewer parties see raw rewards: a server, a protocol that only shows
sums, or nobody. The radius of the elimination is 0.3 of its default, with which trusting nobody may cost less.
"""

import json
from functools import partial

import jaxbandits as jb

ds = jb.sweep(
    {
        "nobody: each client adds noise": jb.algorithms.ldp_ucb,
        "secure aggregation": partial(jb.algorithms.dist_elimination, radius_scale=0.3),
        "the server": jb.algorithms.dp_klucb,
        "everyone: no privacy": jb.algorithms.kl_ucb,
    },
    jb.environments.bernoulli_arms(means=[0.1, 0.5, 0.5, 0.9]),
    horizon=10_000,
    seeds=100,
    grid={"epsilon": [1.0]},
    progress=False,
)
figure, data = jb.plot.regret(ds, log="none")

# %%
# What each of them claims, for which neighbours, is part of the result.

for name, claim in json.loads(ds.attrs["guarantees"]).items():
    print(f"{name}: {claim['model']} model, neighbours differ in one {claim['unit']}")

"""
Private recommendations
=======================

Every play shows a user's features. LinUCB learns from all of them; its private forms protect both features and reward:
by noise at a server, in a shuffler, or at each user.
"""

from functools import partial

import jaxbandits as jb

a = jb.algorithms
ds = jb.sweep(
    {
        "each user adds noise": partial(a.ldp_linucb, radius_scale=0.1),
        "a shuffler hides who": partial(a.shuffle_linucb, radius_scale=0.1),
        "a server adds noise": partial(a.jdp_linucb, radius_scale=0.1),
        "no privacy": partial(a.linucb, radius_scale=0.1),
    },
    jb.environments.contextual_linear(num_arms=10, dim=4),
    horizon=5000,
    seeds=50,
    grid={"epsilon": [1.0]},
    progress=False,
)
figure, data = jb.plot.regret(ds, log="none")

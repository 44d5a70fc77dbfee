"""
Private recommendations
=======================

Every play shows a user's features. LinUCB learns from all of them; its private forms protect both features and reward:
by noise at a server, in a shuffler, or at each user. Who is trusted decides what privacy costs: noise at each user
leaves hardly anything to learn from in so few plays. LinUCB explores a tenth of its default (`radius_scale`), which is
cautious; the private ones have their defaults.
"""

from functools import partial

import jaxbandits as jb

a = jb.algorithms
ds = jb.sweep(
    {
        "each user adds noise": a.ldp_linucb,
        "a shuffler hides who": a.shuffle_linucb,
        "a server adds noise": a.jdp_linucb,
        "no privacy": partial(a.linucb, radius_scale=0.1),
    },
    jb.environments.contextual_linear(num_arms=10, dim=4),
    horizon=5000,
    seeds=50,
    grid={"epsilon": [1.0]},
    progress=False,
)
figure, data = jb.plot.regret(ds, log="none")

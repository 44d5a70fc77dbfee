"""
Agents that lie to their server
===============================

Ten agents learn together; two send messages that point away from the truth. Averaging fails, the geometric median
holds, and an agent on its own is slow but safe. Regret is that of the honest agents.
"""

from functools import partial

import jaxbandits as jb

a = jb.algorithms
ds = jb.sweep(
    {
        "server takes the mean": partial(a.byzantine_ucb, aggregate="mean", window=20),
        "each agent alone": partial(a.isolated_linucb, window=20),
        "server takes the geometric median": partial(a.byzantine_ucb, window=20, corruption_bound=0.2),
    },
    jb.environments.federated_linear(num_agents=10, num_arms=10, dim=4),
    horizon=400,
    seeds=16,
    message_adversary=jb.adversaries.byzantine(corruption=0.2, kind="target", scale=5.0),
    progress=False,
)
figure, data = jb.plot.regret(ds, log="none")

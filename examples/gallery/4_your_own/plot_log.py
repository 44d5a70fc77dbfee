"""
A log of choices
================

Somebody else's rule chose, and wrote down what it saw, what it chose, with which probability, and what that paid. Check
the log, fit a world to one half, ask there what privacy costs, and judge what was learned on the other half.
"""

from functools import partial

import numpy as np
import pandas as pd

import jaxbandits as jb

rng = np.random.default_rng(0)  # a made-up log; yours comes from a file
age, spent, arm = rng.normal(49, 18, 6000), np.exp(rng.normal(8, 1, 6000)), rng.integers(0, 3, 6000)
taste = np.column_stack([(49 - age) / 18, (age - 49) / 18, np.log(spent) - 8])[np.arange(6000), arm]
bought = (rng.random(6000) < 1 / (1 + np.exp(1 - taste))).astype(int)
offer = np.array(["banner", "call", "letter"])[arm]
frame = pd.DataFrame({"age": age, "spent": spent, "offer": offer, "bought": bought})

log = jb.read_logged(frame, arm="offer", reward="bought", propensity="uniform")
log.check()

# %%
# A world from one half, and the price of privacy there. How good its model is says ``world``.

train, test = log.split()
world = jb.environments.fitted(log=train)
learners = {
    "no privacy": jb.algorithms.linucb,
    "a server is trusted": jb.algorithms.jdp_linucb,
    "nobody is trusted": jb.algorithms.ldp_linucb,
}
settings = {"horizon": 3000, "seeds": 30, "checkpoints": 2, "progress": False}
ds = jb.sweep(learners, world, grid={"epsilon": [1, 3, 10]}, **settings)
figure, data = jb.plot.against(ds, "epsilon")

# %%
# What each would have earned, by the other half: an estimate with an interval, which does not believe in the model.

policies = {"as it was": test}
for label, learner in learners.items():
    learner = learner if label == "no privacy" else partial(learner, epsilon=1)
    policies[label] = jb.trained(learner, world, horizon=3000, seeds=32)
results = jb.offline(policies, test)
figure, data = jb.plot.offline(results)

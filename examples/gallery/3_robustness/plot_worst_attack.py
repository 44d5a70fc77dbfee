"""
The worst attack of a family
============================

How bad can it get? :func:`jaxbandits.worst_case` searches the parameters of an adversary for what costs an algorithm
most, and reports it on seeds that the search did not see.
"""

import matplotlib.pyplot as plt

import jaxbandits as jb

worst = jb.worst_case(
    jb.algorithms.ucb1,
    jb.environments.bernoulli_arms(means=[0.3, 0.7]),
    jb.adversaries.huber(corruption=0.1, kind="target", value=0.5),
    space={"corruption": (0.01, 0.2), "value": (0.1, 5.0, "log")},
    horizon=1000,
    seeds=range(1000, 1050),
    report_seeds=100,
    trials=64,
    progress=False,
)
print(worst)

# %%
# Every trial of the search. Generations close in on what hurts.

trials = worst.trials
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
dots = axes.scatter(trials["corruption"], trials["value"], c=trials["search_value"], s=30, cmap="viridis_r")
axes.set(xlabel="share of rewards replaced", ylabel="size of a replaced reward", yscale="log")
figure.colorbar(dots, label="regret")

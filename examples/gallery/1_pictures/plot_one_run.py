"""
One run, play by play
=====================

A sweep keeps totals. :func:`jaxbandits.simulate` with ``history=True`` keeps every play of one run: here, which arm
was played when.
"""

import matplotlib.pyplot as plt

import jaxbandits as jb

MEANS = [0.2, 0.4, 0.6, 0.8]
arms = jb.environments.bernoulli_arms(means=MEANS)
algorithms = {"UCB1": jb.algorithms.ucb1, "Thompson sampling": jb.algorithms.thompson}

figure, panels = plt.subplots(2, 1, figsize=(6, 4), sharex=True, layout="constrained")
for panel, (name, factory) in zip(panels, algorithms.items(), strict=True):
    run = jb.simulate(factory(num_arms=4, horizon=600), arms, seed=3, history=True)
    actions, times = run.history.action, run.history.t
    panel.scatter(times, actions, c=actions, cmap="viridis", s=6)
    panel.set(title=f"{name}: regret {run.regret[-1]:.0f}", ylabel="arm", yticks=range(4))
    panel.set_yticklabels([f"pays {mean}" for mean in MEANS])
panels[-1].set_xlabel("play")

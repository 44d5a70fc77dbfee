"""
A map over two parameters
=========================

A grid over two keys is one call, and numbers among them compile once. Here: the step size and the extra exploration of
EXP3, at a horizon of 2,000 plays.
"""

import jaxbandits as jb

RATES, MIXING = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0], [0.0, 0.05, 0.1, 0.2, 0.4]
ds = jb.sweep(
    jb.algorithms.exp3,
    jb.environments.bernoulli_losses(means=[0.3, 0.5, 0.5, 0.6]),
    horizon=2000,
    seeds=100,
    grid={"learning_rate": RATES, "mixing": MIXING},
    checkpoints=1,
    progress=False,
)
frame = jb.summary(ds)
frame["mixing"] = frame["mixing"].map("{:g}".format)  # names: cells of equal height
frame["learning_rate"] = frame["learning_rate"].map("{:g}".format)
frame["text"] = frame["mean"].map("{:.0f}".format)
figure, data = jb.plot.heatmap(
    frame,
    "learning_rate",
    "mixing",
    "mean",
    text="text",
    names={"learning_rate": "step size", "mixing": "share of uniform play", "mean": "regret"},
    width=6.0,
)

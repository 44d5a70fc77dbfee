"""
Feedback that comes late
========================

:func:`jaxbandits.algorithms.delayed` makes any algorithm of one play a window wait for its rewards. What 50 plays of
delay cost depends little on the horizon.
"""

from functools import partial

import jaxbandits as jb

a = jb.algorithms
ds = jb.sweep(
    {
        "EXP3": partial(a.delayed, base=partial(a.exp3, learning_rate=0.03, mixing=0.0), max_delay=200),
        "Tsallis-INF": partial(a.delayed, base=a.tsallis_inf, max_delay=200),
    },
    jb.environments.bernoulli_losses(means=[0.3, 0.5, 0.5, 0.6]),
    horizon=3000,
    seeds=100,
    grid={"delay": [0, 50, 100, 200]},
    checkpoints=1,
    progress=False,
)
figure, data = jb.plot.against(ds, "delay", names={"delay": "delay (plays)"})

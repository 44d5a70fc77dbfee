"""
One reward in twenty is a lie
=============================

Five per cent of the rewards are replaced: 10 for bad arms, -10 for the best. The mean is lost; robust estimates of
location hold.
"""

from functools import partial

import jaxbandits as jb

SHARE = 0.05
ds = jb.sweep(
    {
        "UCB1 (mean)": jb.algorithms.ucb1,
        "Huber-UCB (Huber's location)": partial(jb.algorithms.huber_ucb, corruption_bound=SHARE),
        "CR-UCB (trimmed mean)": partial(jb.algorithms.cr_ucb, corruption_bound=SHARE),
    },
    jb.environments.gaussian_arms(means=[1.0, 0.0, 0.0, -1.0]),
    horizon=1500,
    seeds=50,
    reward_adversary=jb.adversaries.huber(corruption=SHARE, kind="target", value=10.0),
    progress=False,
)
figure, data = jb.plot.regret(ds)

"""
When the best arm changes
=========================

The best arm is another one from play 1,001 and again from play 3,001. Regret is against the one arm that is best in
hindsight, so whoever follows the change does better than that: UCB1's regret falls below zero here. Algorithms for
adversarial losses promise to lose little against any one arm, whatever the losses do, and no more.
"""

from functools import partial

import jaxbandits as jb

ds = jb.sweep(
    {
        "UCB1": jb.algorithms.ucb1,
        "EXP3-IX": jb.algorithms.exp3_ix,
        "EXP3": partial(jb.algorithms.exp3, learning_rate=0.05, mixing=0.02),
        "Tsallis-INF": jb.algorithms.tsallis_inf,
    },
    jb.environments.switching_losses(num_arms=3, cuts=[0, 1000, 3000], arms=[0, 1, 2]),
    horizon=4000,
    seeds=100,
    progress=False,
)
figure, data = jb.plot.regret(ds)

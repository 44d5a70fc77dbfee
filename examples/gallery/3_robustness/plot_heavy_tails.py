"""
Rewards with heavy tails
========================

Student's t with 1.2 degrees of freedom has no variance: now and then one reward is worth a thousand others. In some
runs it makes UCB1 leave the best arm for good, which the mean over runs shows. Estimates that limit what one reward
can do stay calm.
"""

from functools import partial

import jaxbandits as jb

ds = jb.sweep(
    {
        "UCB1 (mean)": jb.algorithms.ucb1,
        "Huber-UCB (Huber's location)": jb.algorithms.huber_ucb,
        "CR-UCB (mean without the outer 20%)": partial(
            jb.algorithms.cr_ucb, corruption_bound=0.1, corruption_width=0.0
        ),
    },
    jb.environments.student_arms(means=[0.0, 0.5, 1.0], df=1.2, scale=0.3),
    horizon=2000,
    seeds=200,
    progress=False,
)
figure, data = jb.plot.regret(ds)

"""
Choose settings fairly
======================

:func:`jaxbandits.tune` chooses on some seeds and reports on others. The curve is the regret of the search; the filled
points were chosen, and the table below is what they achieve on new seeds.
"""

from functools import partial

import jaxbandits as jb

tuning = jb.tune(
    {
        "private in the local model": partial(jb.algorithms.ldp_exp3, epsilon=1.0, mixing=0.02),
        "without privacy": partial(jb.algorithms.exp3, mixing=0.02),
    },
    jb.environments.bernoulli_losses(means=[0.3, 0.5, 0.5, 0.6]),
    space={"learning_rate": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]},
    horizon=3000,
    seeds=range(10_000, 10_050),
    report_seeds=100,
    progress=False,
)
figure, data = jb.plot.response(tuning, "learning_rate")

# %%
# What was chosen, on the seeds of the report:

tuning.best[["algorithm", "regret", "interval", "default", "gain"]]

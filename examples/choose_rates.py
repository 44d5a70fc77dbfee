"""Choose learning rates for quickstart.toml and price_of_privacy.toml on seeds that these files do not use.

    python examples/choose_rates.py      prints what was chosen and the table [[tied]] of price_of_privacy.toml

Every algorithm is run over a grid of learning rates on seeds 10,000 to 10,099; the rate of lowest mean regret at the
horizon is kept, and reported on the seeds 0 to 199 of the files. The quickstart has one rate for both its privacy
levels, price_of_privacy.toml one for each.
"""

from functools import partial

import jaxbandits as jb

RATES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
a = jb.algorithms

tuning = jb.tune(
    {"local privacy": partial(a.ldp_exp3, mixing=0.02)},
    jb.environments.bernoulli_arms(means=[0.7, 0.5, 0.5, 0.4]),
    space={"learning_rate": RATES},
    over={"epsilon": [1.0, 2.0]},
    unknown=["epsilon"],
    horizon=10_000, seeds=range(10_000, 10_100), report_seeds=range(200), checkpoints=1,
)  # fmt: skip
print(tuning)

tuning = jb.tune(
    {
        "EXP3": partial(a.private_batched, base=partial(a.exp3, mixing=0.02)),
        "FTPL": partial(a.private_batched, base=a.ftpl),
        "one noise per play": partial(a.ldp_exp3, mixing=0.02),
    },
    jb.environments.bernoulli_losses(means=[0.3, 0.5, 0.5, 0.6]),
    space={
        "EXP3.base.learning_rate": RATES, "FTPL.base.learning_rate": RATES, "one noise per play.learning_rate": RATES,
    },
    over={"epsilon": [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]},
    horizon=20_000, seeds=range(10_000, 10_100), report_seeds=range(200), checkpoints=1,
)  # fmt: skip
print(tuning)
print(tuning.toml())

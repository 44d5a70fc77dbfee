"""Choose learning rates for examples/quickstart.toml on seeds that the quickstart does not use.

    python examples/choose_rates.py      about two minutes on two cores; prints the [[tied]] table of the quickstart

Every algorithm is run over a grid of learning rates at every epsilon on seeds 10,000 to 10,099; the rate of lowest mean
regret at the horizon is kept. The quickstart reports on seeds 0 to 199.
"""

from functools import partial

import jaxbandits as jb

EPSILONS = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
RATES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
a = jb.algorithms

environment = jb.environments.bernoulli_losses(means=[0.3, 0.5, 0.5, 0.6])
settings = {"horizon": 20_000, "seeds": range(10_000, 10_100), "checkpoints": 1}
batched = jb.sweep(
    {
        "EXP3": partial(a.private_batched, base=partial(a.exp3, mixing=0.02)),
        "FTPL": partial(a.private_batched, base=a.ftpl),
    },
    environment, **settings, grid={"epsilon": EPSILONS, "base.learning_rate": RATES},
)  # fmt: skip
each_play = jb.sweep(
    {"one noise per play": partial(a.ldp_exp3, mixing=0.02)},
    environment, **settings, grid={"epsilon": EPSILONS, "learning_rate": RATES},
)  # fmt: skip

chosen = {}
for ds, rate in ((batched, "base.learning_rate"), (each_play, "learning_rate")):
    mean = ds.regret.isel(t=-1).mean("seed")
    for label in ds.algorithm.values:
        chosen[str(label)] = mean.sel(algorithm=label).idxmin(rate).values.tolist()
        print(f"# {label}: lowest mean regret {mean.sel(algorithm=label).min(rate).values.round(0).tolist()}")

keys = ["epsilon", "EXP3.base.learning_rate", "FTPL.base.learning_rate", "one noise per play.learning_rate"]
print("[[tied]]")
print("keys = [" + ", ".join(f'"{key}"' for key in keys) + "]")
print("values = [")
for i, epsilon in enumerate(EPSILONS):
    print("  " + str([epsilon, *(chosen[label][i] for label in ("EXP3", "FTPL", "one noise per play"))]) + ",")
print("]")

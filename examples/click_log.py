"""A log of choices: check it, fit a world to it, ask there what privacy costs, and judge what was learned on the log.

    python examples/click_log.py [DIRECTORY]    two minutes; writes clicks.csv and click_log_*.png there (default: here)

A shop wrote down, for 8,000 customers, what it knew of them, which of three offers it made, how probable that offer
was, and whether they bought. The customers are made up, so that what a policy earns is known: the last column of the
table. Learners see the first half of the log, as a world that a model of its rewards pays; the second half judges them.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import jaxbandits as jb

OFFERS = ("banner", "call", "letter")
EPSILONS = [1, 3, 10]
ALGORITHMS = {
    "no privacy": jb.algorithms.linucb,
    "trusted server": jb.algorithms.jdp_linucb,
    "nobody trusted": jb.algorithms.ldp_linucb,
}


def customers(rows: int, seed: int):
    """What is known of customers, and how probable a purchase is after each offer [rows, 3]."""
    rng = np.random.default_rng(seed)
    age, visits = rng.integers(18, 80, rows), rng.poisson(3, rows)
    spent = np.exp(rng.normal(8, 1, rows)).round(2)
    known = pd.DataFrame({"age": age, "visits": visits, "spent": spent})
    z = np.column_stack([(age - 49) / 18, (visits - 3) / 1.7, np.log(spent) - 8])
    taste = z @ np.array([[-0.8, 0.8, 0.0], [0.8, 0.0, -0.8], [0.2, 0.2, -0.4]])
    return known, 1 / (1 + np.exp(1.2 - taste))


def write(directory: Path | str = ".", rows: int = 8000, seed: int = 0) -> None:
    """Write clicks.csv: the shop called the old, sent letters to rare visitors, and left something to chance."""
    known, buys = customers(rows, seed)
    rng = np.random.default_rng(seed + 1)
    liked = np.column_stack([np.ones(rows), 1 + (known.age > 50), 1 + (known.visits < 3)])
    chance = 0.1 + 0.7 * liked / liked.sum(axis=1, keepdims=True)  # every offer could be made to everybody
    arm = (rng.random(rows)[:, None] > chance.cumsum(axis=1)).sum(axis=1)
    shown = np.arange(rows), arm
    bought = (rng.random(rows) < buys[shown]).astype(int)
    log = known.assign(offer=np.array(OFFERS)[arm], bought=bought, chance=chance[shown].round(6))
    log.to_csv(Path(directory) / "clicks.csv", index=False)


def read(directory: Path | str = "."):
    """The two halves of the log."""
    log = jb.read_logged(Path(directory) / "clicks.csv", arm="offer", reward="bought", propensity="chance")
    print(log.check().round(3), "\n")
    return log.split()


def price_of_privacy(world, horizon: int, seeds: int = 40):
    """Regret in the fitted world, epsilon by epsilon."""
    return jb.sweep(ALGORITHMS, world, horizon=horizon, seeds=seeds, checkpoints=40, grid={"epsilon": EPSILONS})


def judge(world, test, horizon: int, seeds: int = 32):
    """What each policy would have earned on the other half, beside what it truly earns."""
    policies: dict = {"the shop's rule": test, "call everybody": "call"}
    policies["no privacy"] = jb.trained(jb.algorithms.linucb, world, horizon=horizon, seeds=seeds)
    for label in ("trusted server", "nobody trusted"):
        for epsilon in (1, 10):
            learner = partial(ALGORITHMS[label], epsilon=epsilon)
            policies[f"{label}, ε = {epsilon}"] = jb.trained(learner, world, horizon=horizon, seeds=seeds)
    found = jb.offline(policies, test)

    known, buys = customers(20_000, seed=2)
    found["truth"] = np.nan
    for label, policy in policies.items():
        if label == "call everybody":
            found.loc[label, "truth"] = buys[:, OFFERS.index("call")].mean()
        elif label != "the shop's rule":
            found.loc[label, "truth"] = (policy.probabilities(known) * buys).sum(axis=1).mean()
    return found


def draw(directory: Path) -> None:
    """Everything in turn: the log, the world, two pictures and the table."""
    write(directory)
    train, test = read(directory)
    world = jb.environments.fitted(log=train)
    print(world, "\n")
    horizon = len(train.arm)  # one pass: nobody is played twice
    ds = price_of_privacy(world, horizon)
    jb.plot.against(ds, "epsilon", path=directory / "click_log_price.png")
    print(jb.table(ds), "\n")
    found = judge(world, test, horizon)
    jb.plot.offline(found, path=directory / "click_log_offline.png")
    print(
        found[["value", "low", "high", "difference_low", "difference_high", "effective_size", "truth"]]
        .round(3)
        .to_string()
    )


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)

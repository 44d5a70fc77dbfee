"""`byzantine_ucb` by geometric median against a Numba loop, through the public `sweep`:
plays (of all agents) x lanes per second.

    python benchmarks/byzantine.py [SEEDS [all]]       SEEDS lanes (1,000)

Ten agents of ten arms in four dimensions, T = 2,000, episodes of 11 plays, no attackers. The share of the median's
iterations is that of eight against one. `all`: then other rules, both forms of privacy, and eight levels of it
together. Compilation is left out, tracing is not where a sweep repeats it. CPU seconds, the least of three turns: pin
the process to one core.
"""

import math
import sys
from functools import partial

import numba
import numba_byzantine
import numpy as np
from measure import best_of

import jaxbandits as jb

SIZES, HORIZON, WINDOW = {"num_agents": 10, "num_arms": 10, "dim": 4}, 2_000, 11


def swept(seeds: int, grid=None, **changes):
    factory = partial(jb.algorithms.byzantine_ucb, window=WINDOW, **changes)
    environment = jb.environments.federated_linear(
        **SIZES, reward="bounded" if "privacy" in changes else "gaussian", theta_norm=0.6, noise_scale=0.4
    )
    return jb.sweep(
        factory, environment, horizon=HORIZON, seeds=seeds, grid=grid or {}, checkpoints=[HORIZON], progress=False
    )


def looped(seeds: int, horizon: int = HORIZON):
    episodes = range(1, math.ceil(horizon / WINDOW) + 1)
    setting = {"window": WINDOW, "horizon": horizon, "num_agents": 10, "dim": 4}
    ridge = np.array([0.1 * jb.theory.byzantine_ridge(k, **setting) for k in episodes])
    terms = jb.algorithms.byzantine_ucb(**SIZES, horizon=horizon, window=WINDOW).params.constants
    root = np.sqrt(ridge)
    radius = 0.03 * (
        terms.lead * root + (terms.numerator * np.sqrt(np.arange(len(ridge))) + terms.excess) / root + terms.tail
    )
    return numba_byzantine.byzantine_ucb(10, 10, 4, ridge, radius, 0.4, horizon, WINDOW, 8, seeds, 1)


def main(seeds: int, everything: bool) -> None:
    jb.cores(1)
    numba.set_num_threads(1)
    eight = {"epsilon": [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, math.inf]}
    runs = {
        "Numba, geometric median": partial(looped, seeds),
        "geometric median": partial(swept, seeds),
        "one iteration": partial(swept, seeds, iterations=1),
        "mean": partial(swept, seeds, aggregate="mean"),
    }
    if everything:
        runs |= {
            "coordinate median": partial(swept, seeds, aggregate="coordinate_median"),
            "median of means": partial(swept, seeds, aggregate="median_of_means", corruption_bound=0.2),
            "Krum": partial(swept, seeds, aggregate="krum", corruption_bound=0.2),
            "tree": partial(swept, seeds, privacy="tree", epsilon=8.0),
            "tree, eight epsilons": partial(swept, seeds // 8, eight, privacy="tree"),
        }
    for run in runs.values():
        run()
    seconds = dict(zip(runs, best_of(3, *runs.values()), strict=True))
    loop, median = seconds["Numba, geometric median"], seconds["geometric median"]
    for name, spent in seconds.items():
        print(f"{name:24s} {HORIZON * seeds / spent:.3g} plays / s, {loop / spent:.2f} x Numba", flush=True)
    print(f"seven of the median's eight iterations: {1 - seconds['one iteration'] / median:.0%} of a sweep")
    print(f"the median instead of the mean: {1 - seconds['mean'] / median:.0%}")
    means = looped(seeds).mean(), float(swept(seeds).regret.mean())
    print("mean regret: {:.4g} by Numba, {:.4g}".format(*means))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000, sys.argv[2:] == ["all"])

"""PRM elimination against a pull-by-pull Numba loop, through the public `sweep`:
rewards drawn per second of one process.

    python benchmarks/robust_mab.py [SEEDS]       SEEDS lanes (84) at each of twelve points, epsilon x corruption

Five Pareto arms of shape 3.5, horizon 10^6, contamination by a point mass at 50. Both sides stop drawing when one arm
is left and only drawn rewards count. Compilation is left out. Pin the process to one core, or set jaxbandits.cores
and Numba's threads. Central moments (D = 10 and 1000) run beside raw ones.
"""

import sys
from functools import partial

import numba
import numba_robust
import numpy as np
from measure import best_of

import jaxbandits as jb

MEANS, SHAPE, HORIZON, VALUE = [0.9, 0.7, 0.5, 0.3, 0.1], 3.5, 1_000_000, 50.0
EPSILONS, CORRUPTIONS = [0.1, 0.5, 1.0], [0.0, 0.02, 0.05, 0.1]
GRID = {"epsilon": EPSILONS, ("corruption_bound", "reward_adversary.corruption"): CORRUPTIONS}


def swept(seeds: int, **changes):
    """A sweep over the grid."""
    factory = partial(jb.algorithms.prm_elimination, **changes)
    adversary = partial(jb.adversaries.huber, kind="fixed", value=VALUE)
    environment = jb.environments.pareto_arms(means=MEANS, shape=SHAPE)
    return jb.sweep(
        factory, environment, horizon=HORIZON, seeds=seeds, grid=GRID, reward_adversary=adversary, progress=False
    )


def looped(seeds: int):
    """The same lanes by the Numba loop: final regret and drawn rewards, [points, seeds]."""
    regret, drawn, gaps = [], [], max(MEANS) - np.array(MEANS)
    for epsilon in EPSILONS:
        for corruption in CORRUPTIONS:
            made = jb.algorithms.prm_elimination(
                num_arms=5, horizon=HORIZON, epsilon=epsilon, corruption_bound=corruption
            )
            pulls, plays = numba_robust.prm_elimination(MEANS, SHAPE, corruption, VALUE, made.params, HORIZON, seeds, 1)
            regret.append(pulls @ gaps)
            drawn.append(plays)
    return np.array(regret), np.array(drawn)


def main(seeds: int) -> None:
    jb.cores(1)
    numba.set_num_threads(1)
    central = {"moment": "central"}
    runs = {
        "raw": partial(swept, seeds),
        "central, D = 10": partial(swept, seeds, mean_bound=10.0, **central),
        "central, D = 1000": partial(swept, seeds, mean_bound=1000.0, **central),
    }
    found = {}
    for name, run in runs.items():
        try:
            found[name] = run()
        except ValueError as error:
            print(f"{name}: {error}")
    regret, drawn = looped(seeds)
    seconds = best_of(2, *(runs[name] for name in found), partial(looped, seeds))
    rates = [int(ds["undecided_plays"].sum()) / s for ds, s in zip(found.values(), seconds, strict=False)]
    numba_rate = drawn.sum() / seconds[-1]
    print(f"Numba loop, pull by pull     {numba_rate:.3g} rewards / s, mean regret {regret.mean():.6g}")
    for (name, ds), rate in zip(found.items(), rates, strict=True):
        mean = float(ds.regret.isel(t=-1).mean())
        print(f"{name:28s} {rate:.3g} rewards / s, {rate / numba_rate:.2f} x Numba, mean regret {mean:.6g}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 84)

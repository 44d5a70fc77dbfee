"""How well a sweep tells what it still takes: the time said after a share of the plays, over the time it then took.

    python benchmarks/remaining_time.py                all three sweeps
    python benchmarks/remaining_time.py linear cheap

Each is of algorithms whose plays cost up to a hundred times as much as each other's, on all cores, with no compiled
program on disk. Nothing is said while programs are compiled. The whole time and that of compiling are in seconds.
"""

import argparse
import os
import tempfile
import time
from functools import partial
from typing import Any
from unittest import mock

SHARES = (0.1, 0.2, 0.4, 0.6)


def sweeps() -> dict[str, tuple[dict[str, Any], Any, dict[str, int]]]:
    """Algorithms, environment, horizon and seeds."""
    import jaxbandits as jb

    a, arms = jb.algorithms, jb.environments.bernoulli_arms(means=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9])
    private = {"dp_se": partial(a.dp_se, epsilon=1.0), "prm_elimination": partial(a.prm_elimination, epsilon=1.0)}
    cheap = {"ucb1": a.ucb1, "exp3": a.exp3, "thompson": a.thompson}
    linear = {"linucb": a.linucb, "linear_thompson": a.linear_thompson, "ldp_linucb": partial(a.ldp_linucb, epsilon=1)}
    world = partial(jb.environments.contextual_linear, num_arms=10, dim=12)
    return {
        "cheap": (cheap, arms, {"horizon": 8000, "seeds": 8192}),
        "linear": (linear, world, {"horizon": 4000, "seeds": 512}),
        "stages": (cheap | private | {"kl_ucb": a.kl_ucb}, arms, {"horizon": 40_000, "seeds": 2048}),
    }


def measured(name: str) -> None:
    """Run one sweep and print what it said."""
    import jaxbandits as jb
    from jaxbandits.sweeps import estimate

    said: list[tuple[float, float, float]] = []  # when, the share of the plays, seconds
    compiled = [0.0]

    class Heard(estimate.Meter):
        def report(self, played: Any) -> None:
            super().report(played)
            seconds = self.remaining.seconds_left()
            if seconds is not None:
                said.append((time.monotonic(), self.bar.n / self.total, seconds))

        def compiling(self, done: int, of: int) -> None:
            super().compiling(done, of)
            compiled.append(time.monotonic())

    algorithms, world, settings = sweeps()[name]
    began = time.monotonic()
    with mock.patch.object(estimate, "Meter", Heard):
        jb.sweep(algorithms, world, **settings, progress=True, checkpoints=1)
    end = time.monotonic()
    first = {share: next((x for x in said if x[1] >= share), said[-1]) for share in SHARES}
    ratios = " ".join(f"{x[2] / (end - x[0]):9.2f}" for x in first.values())
    print(f"{name:8} {end - began:8.1f} {max(compiled) - began:10.1f}   {ratios}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="SWEEP")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ.update(JAXBANDITS_CACHE=cache, XDG_CACHE_HOME=cache, JAX_PLATFORMS="cpu")
        print(f"{'':8} {'seconds':>8} {'compiling':>10}   " + " ".join(f"{f'after {x}':>9}" for x in SHARES))
        for name in given.names or sweeps():
            measured(name)


if __name__ == "__main__":
    main()

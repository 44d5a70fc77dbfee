"""float32 against float64 over long horizons: 16 paired lanes of every algorithm.

    python benchmarks/long_horizons.py [--seconds 30] [--horizon 20000000] [--write PAGE] [NAME ...]

With names, rows of the page's table are added or replaced; without, all of them.

Algorithms are those of the catalogue, each in its own small world; those that play Bernoulli arms play two, of means
0.9 and 0.8: asymmetric rewards, which rounding hurts most. The horizon is 20 million plays, or what float32 plays in
`--seconds`, or the longest that the algorithm or its world has. float32 is as good where the mean regrets differ by at
most 10%, or by four standard errors of the paired differences.
"""

import argparse
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import measure
import numpy as np
import sweeps

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.formatting import markdown_table

LANES, HORIZON = 16, 20_000_000
MEANS = [0.9, 0.8]


class Row(NamedTuple):
    """One algorithm."""

    name: str
    horizon: int
    float32: float
    float64: float
    # of the mean of the paired differences
    error: float

    @property
    def equal(self) -> bool:
        """Whether float32 is as good."""
        difference = abs(self.float32 - self.float64)
        return difference <= max(0.1 * abs(self.float64), 4 * self.error)


def regrets(name: str, horizon: int, dtype: str) -> np.ndarray[Any, Any]:
    """Regret at the horizon of every lane."""
    example = catalogue.ALGORITHMS[name]
    arms = example.environment is catalogue.arms
    world = partial(jb.environments.bernoulli_arms, means=MEANS) if arms else example.environment
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the horizon is too long for float32 is what is measured
        ds = jb.sweep(
            {name: example.algorithm}, world, reward_adversary=example.reward_adversary,
            message_adversary=example.message_adversary, horizon=horizon, seeds=LANES, checkpoints=[horizon],
            dtype=dtype, progress=False,
        )  # fmt: skip
    return np.asarray(ds.regret.values, np.float64).reshape(LANES)


def affordable(name: str, seconds: float, most: int) -> int:
    """The longest horizon that float32 plays in about so many seconds, compilation apart."""
    horizon, last = min(1 << 14, most), 0
    while True:
        try:
            regrets(name, horizon, "float32")  # compiles
            began = time.process_time()
            regrets(name, horizon, "float32")
        except ValueError:  # longer than its world, or its memory, is
            return last
        spent = time.process_time() - began
        if horizon == most or spent > seconds / 2:
            return horizon
        last, horizon = horizon, min((4 if spent < seconds / 8 else 2) * horizon, most)


def row(name: str, seconds: float, most: int) -> Row:
    """An algorithm measured."""
    horizon = affordable(name, seconds, most)
    single, double = (regrets(name, horizon, dtype) for dtype in ("float32", "float64"))
    error = float(np.std(single - double, ddof=1) / np.sqrt(LANES))
    return Row(name, horizon, float(single.mean()), float(double.mean()), error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="CPU time of a float32 run, about")
    parser.add_argument("--horizon", type=int, default=HORIZON, help="the longest horizon")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into the page, at its marks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="algorithms of the catalogue; all by default")
    arguments = parser.parse_args()
    measure.one_core()
    lines = []
    for name in arguments.names or catalogue.ALGORITHMS:
        found = row(name, arguments.seconds, arguments.horizon)
        verdict = "yes" if found.equal else "**no**"
        numbers = f"{found.float32:.4g}", f"{found.float64:.4g}", f"{found.error:.2g}"
        lines.append([f"`{found.name}`", verdict, f"{found.horizon:,}", *numbers])
        print(" | ".join(lines[-1]), flush=True)
    head = ["algorithm", "as good", "plays", "float32", "float64", "error of the difference"]
    if arguments.write is not None:
        put = sweeps.put_rows if arguments.names else sweeps.put_between
        put(arguments.write, "long-horizons", markdown_table([head, *lines], right=4))


if __name__ == "__main__":
    main()

"""How often `jb.compare` finds a difference where there is none, with few seeds.

    python benchmarks/compare.py [--runs N] [--write PAGE]

Differences of the laws of `until.py`, whose mean is zero: how often each way of making p-values is below 5%. In
brackets: how often without the warning that seeds are too few or too skewed.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import measure
import numpy as np
import sweeps
import until

from jaxbandits import intervals
from jaxbandits.formatting import markdown_table

RUNS, LEVEL = 4_000, 0.05
CELLS = [("student", 8), ("student", 32), ("student", 200), ("bootstrap-t", 32), ("bootstrap-t", 200), ("anytime", 200)]


def levels(runs: int) -> Iterator[list[str]]:
    """A law each: how often a comparison of mean zero is significant, by way and seeds."""
    yield ["difference", "skewness", *(f"{way}, {seeds} seeds" for way, seeds in CELLS)]
    laws = until.laws()
    laws["fails in 1 of 100 seeds, with noise"] = lambda rng, shape: (
        laws["fails in 1 of 100 seeds"](rng, shape) + rng.normal(0, 0.1, shape)
    )
    for name, law in laws.items():
        cells = []
        for way, seeds in CELLS:
            differences = law(np.random.default_rng(0), (runs, seeds))
            wrong = intervals.of_mean(differences, way)[2] <= LEVEL
            cell = f"{until.percent(wrong.mean())}%"
            if way == "student":
                unsaid = wrong & ~(intervals.seeds_needed(differences) > seeds)
                cell += f" ({until.percent(unsaid.mean())}%)"
            cells.append(cell)
        yield [name, "none" if name == "Cauchy" else f"{round(until.skewness(law), 1) + 0.0:.1f}", *cells]


def main() -> None:
    """Simulate, print and write."""
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--runs", type=int, default=RUNS)
    reading.add_argument("--write", type=Path, metavar="PAGE")
    given = reading.parse_args()
    measure.one_core()
    rows = list(levels(given.runs))
    table = markdown_table(rows, right=len(rows[0]) - 1) + "\n"
    print(f"\n{table}", flush=True)
    if given.write is not None:
        sweeps.put_between(given.write, "compare-levels", table)


if __name__ == "__main__":
    main()

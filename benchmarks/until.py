"""How often `jb.until` decides where there is nothing to decide, and how many seeds it takes where there is.

    python benchmarks/until.py [--runs N] [--write PAGE] [nulls | family | power]

`nulls`: differences whose mean is zero, of symmetric and of skewed laws, at three sizes of the first block, and at the
level of one of fifty comparisons. Every decision is wrong; with symmetric differences a share of at most 5% of the runs
may decide, and of 0.1% in the last column.

`family`: twelve dependent comparisons on the same seeds, six of which have no difference: a share of at most 5% of a
tenth as many runs may decide any of those six.

`power`: normal differences of a mean that is known here. The seeds until the decision, beside those of a t test that is
told the mean before and finds it with a probability of 90%.
"""

import argparse
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np
import sweeps
from scipy import optimize, stats

import jaxbandits as jb
from jaxbandits.formatting import markdown_table
from jaxbandits.sweeps.until_decided import SequentialTest

RUNS, MOST, ERROR = 4_000, 10_000, 0.05
STRICT = ERROR / 50  # the level of one of fifty comparisons
BLOCKS = (16, 64, 256)
EFFECTS = (0.05, 0.1, 0.2, 0.5, 1.0)  # mean difference in standard deviations
POOL, HORIZON = 1 << 15, 1_000  # seeds and plays of the algorithms whose differences are drawn from
FAMILY = (0.0,) * 6 + (0.05, 0.1, 0.1, 0.2, 0.3, 0.5)
PAIR = [("a", "b")]


@functools.cache
def regrets() -> dict[str, np.ndarray[Any, Any]]:
    """Regret at the horizon of every seed, by algorithm."""
    a = jb.algorithms
    algorithms = {
        "UCB1": a.ucb1, "Thompson": a.thompson, "gradient": functools.partial(a.gradient_bandit, learning_rate=0.4),
        "elimination": a.successive_elimination,
    }  # fmt: skip
    arms = jb.environments.bernoulli_arms(means=[0.5, 0.6])
    ds = jb.sweep(algorithms, arms, horizon=HORIZON, seeds=POOL, checkpoints=1, progress=False)
    return {label: ds.regret.sel(algorithm=label).values[:, -1] for label in algorithms}


def pool(a: str, b: str) -> np.ndarray[Any, Any]:
    """Differences of two algorithms on the same seeds, moved to mean zero."""
    difference = regrets()[a] - regrets()[b]
    return difference - difference.mean()


def laws() -> dict[str, Callable[[Any, Any], Any]]:
    """(generator, shape) -> differences of mean zero, by name; the symmetric laws first."""
    twins = regrets()["Thompson"].reshape(-1, 2) @ [1.0, -1.0]
    return {
        "normal": lambda rng, shape: rng.standard_normal(shape),
        "signs": lambda rng, shape: 2.0 * rng.integers(0, 2, shape) - 1,
        "Cauchy": lambda rng, shape: rng.standard_cauchy(shape),
        "normal, equal in 9 of 10 seeds": lambda rng, shape: rng.standard_normal(shape) * (rng.random(shape) < 0.1),
        "Thompson sampling on two seeds": lambda rng, shape: rng.choice(np.append(twins, -twins), shape),
        "UCB1 and Thompson sampling": lambda rng, shape: rng.choice(pool("UCB1", "Thompson"), shape),
        "elimination and UCB1": lambda rng, shape: rng.choice(pool("elimination", "UCB1"), shape),
        "policy gradient and UCB1": lambda rng, shape: rng.choice(pool("gradient", "UCB1"), shape),
        "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
        "lognormal": lambda rng, shape: rng.lognormal(size=shape) - np.exp(0.5),
        "fails in 1 of 20 seeds": lambda rng, shape: np.where(rng.random(shape) < 0.05, 19.0, -1.0),
        "fails in 1 of 100 seeds": lambda rng, shape: np.where(rng.random(shape) < 0.01, 99.0, -1.0),
    }  # fmt: skip


def skewness(law: Callable[[Any, Any], Any]) -> float:
    """Of a million differences."""
    return float(stats.skew(law(np.random.default_rng(1), 1_000_000)))


def decided(
    draw: Callable[[Any], Any], runs: int, block: int, level: float = ERROR
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The sign that each of many runs decides (0: none), and after how many seeds. draw: shape -> differences."""
    test = SequentialTest(runs, level, block)
    sign, seeds = np.zeros(runs, int), np.full(runs, MOST)
    for look in jb.until(PAIR, ERROR, MOST, block=block).looks():
        test.add(draw((runs, len(look))))
        # each run is a family of its own: the p-value as it is
        new = (sign == 0) & (test.smallest <= level)
        sign[new], seeds[new] = np.sign(test.total[new]), look.stop
        if sign.all():
            break
    return sign, seeds


def share(hits: int, runs: int) -> str:
    """A share of runs with the exact 95% interval, in percent."""
    found = stats.binomtest(int(hits), runs).proportion_ci()
    return f"{percent(hits / runs)}% [{percent(found.low)}, {percent(found.high)}]"


def percent(x: float) -> str:
    """One decimal, and two below one percent."""
    return f"{100 * x:.{1 if x >= 0.01 else 2}f}"


def nulls(runs: int) -> Iterator[list[str]]:
    """A law each: how often it is decided, by the size of the first block."""
    yield ["difference", "skewness", *(f"first block {block}" for block in BLOCKS), f"64, level {100 * STRICT:g}%"]
    for name, law in laws().items():
        rng = np.random.default_rng(0)
        draw = functools.partial(law, rng)
        cells = [share(np.count_nonzero(decided(draw, runs, block)[0]), runs) for block in BLOCKS]
        cells.append(share(np.count_nonzero(decided(draw, runs, 64, STRICT)[0]), runs))
        skew = "none" if name == "Cauchy" else f"{round(skewness(law), 1) + 0.0:.1f}"
        yield [name, skew, *cells]


def family(runs: int) -> Iterator[list[str]]:
    """Wrong decisions among twelve dependent comparisons."""
    runs = max(runs // 10, 2)
    means = np.array(FAMILY)
    nothing = means == 0
    wrong, right, reversed_, rng = 0, np.zeros(len(means), int), 0, np.random.default_rng(0)
    for _ in range(runs):
        test = SequentialTest(len(means), ERROR, 64)
        for look in jb.until(PAIR, ERROR, MOST).looks():
            # a shared part: correlations of 1/2 between comparisons
            noise = rng.standard_normal((len(means), len(look))) + rng.standard_normal(len(look))
            test.add(means[:, None] + noise / np.sqrt(2))
        wrong += bool(test.decided[nothing].any())
        reversed_ += bool((test.sign[~nothing] < 0).any())
        right += test.sign > 0
    yield ["", "share of runs"]
    yield ["any of the six without a difference is decided", share(wrong, runs)]
    yield ["any direction is wrong", share(reversed_, runs)]
    for effect in dict.fromkeys(FAMILY[6:]):
        first = FAMILY.index(effect)
        yield [f"a difference of {effect:g} is decided", share(right[first], runs)]


def known(effect: float) -> int:
    """Seeds of a two-sided paired t test that finds the effect with a probability of 90%."""

    def missing(seeds: float) -> float:
        law, limit = stats.nct(seeds - 1, effect * np.sqrt(seeds)), stats.t.ppf(1 - ERROR / 2, seeds - 1)
        return float(law.sf(limit) - 0.9)

    return int(np.ceil(optimize.brentq(missing, 3, 1e6)))


def power(runs: int) -> Iterator[list[str]]:
    """Seeds until the decision."""
    runs = max(runs // 4, 2)
    yield [
        "mean / deviation", f"decided by {MOST:,}", "wrong direction", "seeds, mean", "seeds, 90% quantile",
        "t test told the mean",
    ]  # fmt: skip
    for effect in EFFECTS:
        rng = np.random.default_rng(0)
        sign, seeds = decided(lambda shape, rng=rng, mean=effect: mean + rng.standard_normal(shape), runs, 64)
        counts = share(np.count_nonzero(sign), runs), str(np.count_nonzero(sign < 0))
        sizes = f"{seeds.mean():,.0f}", f"{np.quantile(seeds, 0.9):,.0f}", f"{known(effect):,}"
        yield [f"{effect:g}", *counts, *sizes]


SECTIONS = {"nulls": nulls, "family": family, "power": power}


def main() -> None:
    """Simulate, print and write."""
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("sections", nargs="*", choices=[[], *SECTIONS], metavar="SECTION")
    reading.add_argument("--runs", type=int, default=RUNS)
    reading.add_argument("--write", type=Path, metavar="PAGE")
    given = reading.parse_args()
    measure.one_core()
    for name in given.sections or SECTIONS:
        rows = list(SECTIONS[name](given.runs))
        table = markdown_table(rows, right=len(rows[0]) - 1) + "\n"
        print(f"\n{name}\n\n{table}", flush=True)
        if given.write is not None:
            sweeps.put_between(given.write, f"until-{name}", table)


if __name__ == "__main__":
    main()

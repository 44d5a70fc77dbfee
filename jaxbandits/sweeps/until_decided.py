"""A sweep that adds seeds until its comparisons are decided (`jb.until`)."""

import itertools
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.sweeps import estimate
from jaxbandits.sweeps.dataset import Results, coordinate_values
from jaxbandits.sweeps.engines.calls import seeds_of_shard
from jaxbandits.sweeps.execution import TRIES, CheckedSweep
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.until import Until
from jaxbandits.typing import Float

if TYPE_CHECKING:
    import xarray as xr

SHOWN = 3  # open comparisons that a line of progress names


class SequentialTest:
    """What the seeds so far, [S] at a time, say of [M] comparisons. `add` takes further seeds and looks.

    `jb.until` has the law and its proof.

    >>> test = SequentialTest(number=1, error=0.05, block=8)
    >>> test.add(np.array([[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]]))
    >>> test.add(np.ones((1, 8)))
    >>> test.sign.tolist(), test.seeds.tolist()
    ([1], [16])
    """

    def __init__(self, number: int, error: float, block: int) -> None:
        self.error, self.block, self.looked_at = error, block, 0
        self.total = np.zeros(number)  # [M], S
        self.squares = np.zeros(number)  # [M], V
        self.differing = np.zeros(number, int)  # [M], seeds whose difference is not zero
        self.scale = np.full(number, np.nan)  # [M], rho; NaN until a block of differences was not zero
        self.smallest = np.ones(number)  # [M], the smallest p-value so far
        self.sign = np.zeros(number, int)  # [M], of a decided difference; 0: open
        self.seeds = np.zeros(number, int)  # [M], how many decided it; so far, where it is open

    @property
    def decided(self) -> np.ndarray[Any, Any]:
        """Which comparisons are decided, [M]."""
        return self.sign != 0

    @property
    def p_values(self) -> np.ndarray[Any, Any]:
        """P-values at any time, corrected for the number of comparisons, [M]."""
        from jaxbandits.statistics import holm  # with it come pandas and scipy

        return holm(self.smallest)

    def add(self, differences: Float[np.ndarray, "M S"]) -> None:
        """Look at the differences of further seeds."""
        self.looked_at += differences.shape[1]
        self.total += differences.sum(1)
        self.squares += (differences**2).sum(1)
        # differences of zero change neither sum: the law is that of the others alone
        self.differing += (differences != 0).sum(1)
        starts = np.isnan(self.scale) & (self.differing >= self.block)
        self.scale[starts] = self.squares[starts]
        wide = self.squares + self.scale
        log_e = 0.5 * np.log(self.scale / wide) + self.total**2 / (2 * wide)
        self.smallest = np.fmin(self.smallest, np.exp(-log_e))  # NaN where there is no scale yet
        open_before = ~self.decided
        new = open_before & (self.p_values <= self.error)
        self.sign[new] = np.sign(self.total[new])
        self.seeds[open_before] = self.looked_at


class Comparison(NamedTuple):
    """Two cells that are compared."""

    a: str
    b: str
    at: dict[str, Any]  # their point: values of the axes along which one of them changes
    cells: tuple[int, int]

    def __str__(self) -> str:
        point = "".join(f", {key} = {value}" for key, value in self.at.items())
        return f"{self.a} and {self.b}{point}"


def comparisons_of(plan: Plan, rule: Until) -> list[Comparison]:
    """Every pair at every point. Two cells that meet at several points are compared once."""
    values = [coordinate_values(axis.labels) for axis in plan.axes]
    found: dict[tuple[int, int], Comparison] = {}
    for a, b in rule.comparisons:
        for place in itertools.product(*(range(len(axis.values)) for axis in plan.axes)):
            cells = plan.places[(a, *place)], plan.places[(b, *place)]
            changing = [i for i in range(len(place)) if any(plan.cells[c].place[i] is not None for c in cells)]
            at = {plan.axes[i].name: values[i][place[i]].item() for i in changing}
            found.setdefault(cells, Comparison(a, b, at, cells))
    return list(found.values())


class UntilDecided(CheckedSweep):
    """A checked sweep whose plan has the most seeds that may run. `dataset` runs as many as it needs."""

    def dataset(self) -> "xr.Dataset":
        """Add blocks of seeds until every comparison is decided, and return everything."""
        rule, largest = Until(**self.config["until"]), self.plan
        comparisons = comparisons_of(largest, rule)
        test = SequentialTest(len(comparisons), rule.error, rule.block)
        left, right = np.array([comparison.cells for comparison in comparisons]).T
        if self.progress:
            estimate.print_progress(
                f"until: {len(comparisons):,} comparison{'s' * (len(comparisons) > 1)} at an error of "
                f"{rule.error:g}, at most {rule.most:,} seeds"
            )
        kept: list[tuple[int, int, dict[str, Any]]] = []  # without a store, (cell, first seed, arrays) of all chunks
        for seeds in rule.looks():
            self.plan = largest._replace(seeds=seeds)
            regret = self._regret_of_block(kept)
            self.announced = self.computed > 0  # later blocks have a line of their own
            test.add(regret[left] - regret[right])
            if self.progress:
                estimate.print_progress(_progress(test, comparisons))
            if test.decided.all():
                break
        self.plan = largest._replace(seeds=range(test.looked_at))
        self.config = self.config | {"seeds": [0, test.looked_at]}
        self.notes = {"decisions": json.dumps(_outcome(test, comparisons, rule))}
        if self.store is not None:
            return super().dataset()
        results = Results(self.plan, self.config, self.notes)
        while kept:
            results.put(*kept.pop())
        return results.as_dataset()

    def compute(self, shard: tuple[int, int] | None = None) -> None:
        """As `CheckedSweep.compute`, for the block of seeds that is looked at next."""
        if shard is not None:
            raise ValueError(
                "seeds = until(...): how many seeds run depends on what all of them show, and a shard sees its own "
                "alone: use `run`, or give the shards a number of seeds (--seeds N)"
            )
        super().compute()

    def _regret_of_block(self, kept: list[tuple[int, int, dict[str, Any]]]) -> np.ndarray[Any, Any]:
        """Regret at the horizon [cells, seeds] on the plan's seeds: from the store, computed where it is missing."""
        seeds = self.plan.seeds
        regret = np.full((len(self.plan.cells), len(seeds)), np.nan)

        def put_regret(cell: int, first: int, arrays: dict[str, Any]) -> None:
            last = np.asarray(arrays["regret"])[max(seeds.start - first, 0) : seeds.stop - first, -1]
            low = max(first - seeds.start, 0)
            regret[cell, low : low + len(last)] = last

        if self.store is None:
            before = len(kept)
            self._run(seeds_of_shard(self.plan), lambda *arrays: kept.append(arrays))
            for outcome in kept[before:]:
                put_regret(*outcome)
            return regret
        with self._resumable():
            for _ in range(1 + TRIES):
                if not self.fresh and self._read(self.store, put_regret):
                    return regret
                self.compute()
        raise self._damage_error(self.store)


def _progress(test: SequentialTest, comparisons: list[Comparison]) -> str:
    """A line: how many comparisons are decided, and which are not."""
    still = [str(comparison) for comparison, decided in zip(comparisons, test.decided, strict=True) if not decided]
    more = f" and {len(still) - SHOWN} more" if len(still) > SHOWN else ""
    names = f"; open: {'; '.join(still[:SHOWN])}{more}" if still else ""
    return f"until: {test.looked_at:,} seeds, {int(test.decided.sum()):,} of {len(comparisons):,} decided{names}"


def _outcome(test: SequentialTest, comparisons: list[Comparison], rule: Until) -> dict[str, Any]:
    """What `jb.decisions` reads."""
    means, p_values = test.total / test.looked_at, test.p_values
    rows = [
        {
            "a": comparison.a, "b": comparison.b, "at": comparison.at,
            "lower": {-1: comparison.a, 0: "undecided", 1: comparison.b}[int(sign)],
            "seeds": int(seeds), "difference": float(mean), "p_value": float(p),
        }
        for comparison, sign, seeds, mean, p in zip(
            comparisons, test.sign, test.seeds, means, p_values, strict=True
        )
    ]  # fmt: skip
    return {"error": rule.error, "most": rule.most, "block": rule.block, "rows": rows}

"""When the comparisons of a sweep are decided that adds seeds until they are (`jb.until`)."""

import itertools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.sweeps.dataset import coordinate_values
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.until import Until
from jaxbandits.typing import Float

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
        self.side = np.zeros(number)  # [M], the sign of S then
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
        p = np.exp(-log_e)  # NaN where there is no scale yet
        self.side = np.where(p < self.smallest, np.sign(self.total), self.side)
        self.smallest = np.fmin(self.smallest, p)
        open_before = ~self.decided
        new = open_before & (self.p_values <= self.error)
        self.sign[new] = self.side[new]  # that of the evidence: another comparison may decide it later
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


def decide(
    plan: Plan, rule: Until, regret_on: Callable[[range], Float[np.ndarray, "C S"]], say: Callable[[str], None]
) -> tuple[range, str]:
    """Look at further seeds until every comparison is decided: all of these seeds, and `jb.decisions` as JSON.

    regret_on: gives the regret at the horizon of all cells on some seeds.
    """
    comparisons = comparisons_of(plan, rule)
    test = SequentialTest(len(comparisons), rule.error, rule.block)
    left, right = np.array([comparison.cells for comparison in comparisons]).T
    number = f"{len(comparisons):,} comparison{'s' * (len(comparisons) > 1)}"
    say(f"until: {number} at an error of {rule.error:g}, at most {rule.most:,} seeds")
    for seeds in rule.looks():
        regret = regret_on(seeds)
        test.add(regret[left] - regret[right])
        say(_progress(test, comparisons))
        if test.decided.all():
            break
    return range(test.looked_at), json.dumps(_outcome(test, comparisons, rule))


def _progress(test: SequentialTest, comparisons: list[Comparison]) -> str:
    """A line: how many comparisons are decided, and which are not."""
    still = [str(comparison) for comparison, decided in zip(comparisons, test.decided, strict=True) if not decided]
    more = f" and {len(still) - SHOWN} more" if len(still) > SHOWN else ""
    names = f"; open: {'; '.join(still[:SHOWN])}{more}" if still else ""
    return f"until: {test.looked_at:,} seeds, {int(test.decided.sum()):,} of {len(comparisons):,} decided{names}"


def _outcome(test: SequentialTest, comparisons: list[Comparison], rule: Until) -> dict[str, Any]:
    """What `jb.decisions` reads."""
    means, p_values = test.total / test.looked_at, test.p_values
    rows = []
    for comparison, sign, seeds, mean, p in zip(comparisons, test.sign, test.seeds, means, p_values, strict=True):
        a, b, at, _ = comparison
        lower = {-1: a, 0: "undecided", 1: b}[int(sign)]
        numbers = {"seeds": int(seeds), "difference": float(mean), "p_value": float(p)}
        rows.append({"a": a, "b": b, "at": at, "lower": lower, **numbers})
    return {"error": rule.error, "most": rule.most, "block": rule.block, "rows": rows}

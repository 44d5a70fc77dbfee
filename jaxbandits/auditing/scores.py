"""Scores that tell two inputs apart: fitted likelihood ratios of a transcript's numbers, and the best threshold on
one of them.

With Laplace or Gaussian noise the best test is a threshold on the likelihood ratio; its centres and scales are fitted
to runs, so an algorithm need not say what noise it adds: single numbers (optimal for one release), Gaussian (linear
in the numbers, by their joint covariance: noise that cancels between releases is found) and Laplace (the sum over the
numbers). Arms and what was rounded tell more by the values that a few numbers have together: of these the shares on
either input are counted. All are fitted on one part of the search's runs, chosen with their threshold on the other.
Axes: [L] runs, [F] numbers of a transcript.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxbandits.auditing.confidence_bounds import above, log_ratio
from jaxbandits.typing import Bool, Float, Int

Numbers = Float[np.ndarray, "L F"]
NUM_SINGLE_SCORES = 8  # numbers that are looked at alone: those that differ most between the inputs
JOINT_SIZES = (4, 32, 256)  # how many numbers are looked at jointly
TABLE_COLUMNS = 128  # so many numbers may enter a table of values
TABLE_SIZE = 6  # numbers in one at most
MAX_VALUES = 32  # of a number in a table; of one that has more, the bins between 16 quantiles


class AuditScore(NamedTuple):
    """A number that tends to be larger for runs on the second input.

    kind "linear": <weights, x>; "laplace": the sum of weights (`|x - first|` - `|x - second|`).
    """

    kind: Literal["linear", "laplace"]
    columns: Int[np.ndarray, " n"]  # which numbers of a transcript are read
    weights: Float[np.ndarray, " n"]
    first: Float[np.ndarray, " n"]  # centres of the runs on the first and on the second input
    second: Float[np.ndarray, " n"]

    def __call__(self, x: Numbers) -> Float[np.ndarray, " L"]:
        """The scores [L] of transcripts [L, F]."""
        x = np.asarray(x[:, self.columns], np.float64)
        if self.kind == "linear":
            return x @ self.weights
        return (np.abs(x - self.first) - np.abs(x - self.second)) @ self.weights

    @property
    def name(self) -> str:
        """In words."""
        if len(self.columns) == 1:
            return f"number {int(self.columns[0])} of the view"
        return f"{'Gaussian' if self.kind == 'linear' else 'Laplace'} likelihood ratio of {len(self.columns)} numbers"


class TableScore(NamedTuple):
    """The log of how much more often the values that some numbers have together came up on the second input."""

    columns: Int[np.ndarray, " n"]  # which numbers of a transcript are read
    edges: tuple[np.ndarray[Any, Any], ...]  # of each, between its values
    cells: Int[np.ndarray, " m"]  # ascending
    ratios: Float[np.ndarray, " m"]

    def __call__(self, x: Numbers) -> Float[np.ndarray, " L"]:
        """The scores [L] of transcripts [L, F]; 0 for values that were not met before."""
        codes = np.zeros(len(x), np.int64)
        for column, edges in zip(self.columns, self.edges, strict=True):
            codes = codes * (len(edges) + 1) + np.searchsorted(edges, x[:, column], side="right")
        at = np.minimum(np.searchsorted(self.cells, codes), len(self.cells) - 1)
        return np.where(self.cells[at] == codes, self.ratios[at], 0.0)

    @property
    def name(self) -> str:
        """In words."""
        return f"values of {len(self.columns)} numbers together"


Score = AuditScore | TableScore


class Source(NamedTuple):
    """Where transcripts come from, and what tells two inputs apart by them."""

    draw: Callable[[Any, int], Numbers]  # the numbers of so many fresh runs on an input
    fit: Callable[[Numbers, Numbers], list[Score]]  # candidates, from runs on either input
    confidence: float  # with which events are chosen
    step: int = 1 << 16  # so many runs are counted at a time
    describe: "Callable[[ThresholdTest], str] | None" = None  # the numbers that a test reads; of one, what is counted


class ThresholdTest(NamedTuple):
    """A test: runs whose score, times `sign`, reaches `threshold` are taken for one input.

    That is the second input where `sign` is 1, and the first where it is -1.
    """

    score: Score
    sign: int
    threshold: float
    expected: float  # the log ratio on the runs it was chosen on

    def takes(self, values: Numbers) -> Bool[np.ndarray, " L"]:
        """Whether runs are counted whose number is one of some values, of a test that reads one number."""
        rows = np.zeros((len(values), int(self.score.columns[0]) + 1))
        rows[:, -1] = values
        return np.asarray(self.sign * self.score(rows) >= self.threshold)


# docs/decisions.md#fitted-ratios
def fit_scores(negative: Numbers, positive: Numbers) -> list[Score]:
    """Candidates from runs [L, F] on the first and on the second input."""
    means = negative.mean(0, dtype=np.float64), positive.mean(0, dtype=np.float64)
    spread = np.sqrt((negative.var(0, dtype=np.float64) + positive.var(0, dtype=np.float64)) / 2)
    floor = 1e-7 * (np.abs(means[0]) + np.abs(means[1])) + 1e-30  # rounding: a number without noise has some spread
    order = np.argsort(-np.abs(means[1] - means[0]) / np.maximum(spread, floor), kind="stable")
    order = order[(means[1] != means[0])[order]]
    candidates, none = list[Score](), np.zeros(1)
    for i in order[:NUM_SINGLE_SCORES]:
        candidates.append(AuditScore("linear", np.array([i]), np.sign(means[1] - means[0])[[i]], none, none))
    for size in JOINT_SIZES:
        if size > JOINT_SIZES[0] and len(order) <= size // 8:
            break
        columns = order[:size]
        if len(columns) > 1:
            candidates += [_gaussian(negative, positive, columns), _laplace(negative, positive, columns)]
    return candidates or [AuditScore("linear", np.zeros(1, int), none, none, none)]  # nothing differs


def _gaussian(negative, positive, columns) -> AuditScore:
    x, y = (np.asarray(z[:, columns], np.float64) for z in (negative, positive))
    scale = np.maximum(np.sqrt((x.var(0) + y.var(0)) / 2), 1e-12)
    x, y = x / scale, y / scale
    shift = y.mean(0) - x.mean(0)
    covariance = (np.cov(x, rowvar=False) + np.cov(y, rowvar=False)) / 2
    weights = np.linalg.solve(covariance + 1e-6 * np.eye(len(columns)), shift) / scale
    return AuditScore("linear", columns, weights, np.zeros(0), np.zeros(0))


def _laplace(negative, positive, columns) -> AuditScore:
    x, y = (np.asarray(z[:, columns], np.float64) for z in (negative, positive))
    first, second = np.median(x, 0), np.median(y, 0)
    scale = (np.abs(x - first).mean(0) + np.abs(y - second).mean(0)) / 2
    return AuditScore("laplace", columns, 1 / np.maximum(scale, 1e-12), first, second)


def fit_tables(negative: Numbers, positive: Numbers) -> list[Score]:
    """Tables of values from runs [L, F] on either input: of one number, then of more, each the one that adds most."""
    x, first = np.concatenate([negative, positive]), len(negative)
    apart = np.abs(negative.mean(0, dtype=np.float64) - positive.mean(0, dtype=np.float64))
    apart /= np.maximum(x.std(0, dtype=np.float64), 1e-30)
    varying = np.flatnonzero(np.ptp(x, axis=0) > 0)
    usable = varying[np.argsort(-apart[varying], kind="stable")[:TABLE_COLUMNS]]
    edges = {column: _edges_between(x[:, column]) for column in usable.tolist()}
    coded = {column: np.searchsorted(edges[column], x[:, column], side="right") for column in edges}
    codes, taken, found = np.zeros(len(x), np.int64), list[int](), list[Score]()

    def add_column(column: int) -> tuple[float, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """What a table with one number more tells, its cells, and their log ratios."""
        cells, inverse = np.unique(codes * (len(edges[column]) + 1) + coded[column], return_inverse=True)
        one, other = (np.bincount(part, minlength=len(cells)) for part in (inverse[:first], inverse[first:]))
        ratios = np.log((other + 0.5) / (one + 0.5) * (first / (len(x) - first)))
        gain = float(np.sum((other / (len(x) - first) - one / first) * ratios)) - 2 * len(cells) / len(x)
        return gain, cells, ratios

    while len(taken) < min(TABLE_SIZE, len(edges)):
        left = [c for c in edges if c not in taken]
        best = max(left, key=lambda c: add_column(c)[0])
        _, cells, ratios = add_column(best)
        codes, taken = codes * (len(edges[best]) + 1) + coded[best], [*taken, best]
        found.append(TableScore(np.array(taken), tuple(edges[c] for c in taken), cells, ratios))
    return found


def fit_all(negative: Numbers, positive: Numbers) -> list[Score]:
    """Candidates and tables."""
    return fit_scores(negative, positive) + fit_tables(negative, positive)


def _edges_between(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What lies between the values of a number, or between its quantiles where they are many."""
    values = np.unique(x).astype(np.float64)
    if len(values) > MAX_VALUES:
        values = np.unique(np.quantile(x, np.linspace(0, 1, 17), method="nearest")).astype(np.float64)
    return (values[1:] + values[:-1]) / 2


def choose_score(
    scores: list[Score], negative: Numbers, positive: Numbers, delta: float, confidence: float
) -> ThresholdTest:
    """The score, side and threshold that refute the largest epsilon on runs [L, F] of each input."""
    confidence = 1 - (1 - confidence) / 100  # the best of many: rare events that came up by chance should not win
    steps = np.concatenate([np.geomspace(1e-3, 0.5, 200), 1 - np.geomspace(1e-3, 0.5, 200)])
    tests = []
    for score in scores:
        for sign, others, own in ((1, negative, positive), (-1, positive, negative)):
            one, other = sign * score(own), sign * score(others)
            # halfway between runs' values: rounding of a later run's score must not decide
            values = np.unique(np.quantile(np.concatenate([one, other]), steps, method="nearest"))
            thresholds = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2])
            bound = log_ratio(above(one, thresholds), above(other, thresholds), len(one), delta, confidence)
            at = int(np.argmax(bound))
            tests.append(ThresholdTest(score, sign, float(thresholds[at]), float(bound[at])))
    return max(tests, key=lambda test: test.expected)

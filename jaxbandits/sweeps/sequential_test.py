"""Whether paired differences are decided, at any number of seeds: one process for every comparison.

Axes: [M] comparisons, [S] seeds of a block. `jb.until` has the law and its proof.
"""

from typing import Any

import numpy as np

from jaxbandits.statistics import holm
from jaxbandits.typing import Float


class SequentialTest:
    """What the seeds so far say of M comparisons. `add` takes further seeds and looks.

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

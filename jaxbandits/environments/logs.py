"""Logged choices: what was shown, which arm it got, what that paid, and how probable the arm was.

Axes: [n] rows, [p] features, [K] arms.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.validation import integer, number

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 10  # an arm with fewer is hardly known
MIN_PROPENSITY = 1e-3  # one such row counts as much as a thousand
MAX_DEVIATION = 4  # standard errors


class Log(NamedTuple):
    """A log of choices. `read_logged` makes one."""

    features: np.ndarray[Any, Any]  # [n, p]
    arm: np.ndarray[Any, Any]  # [n] int32: the arm that was shown, 0 to K - 1
    reward: np.ndarray[Any, Any]  # [n]
    propensity: np.ndarray[Any, Any] | None  # [n]: how probable the arm was that was shown; None: not known
    arm_names: tuple[str, ...]
    feature_names: tuple[str, ...]

    def split(self, share: float = 0.5, seed: int | None = 0) -> tuple["Log", "Log"]:
        """Two logs without a row in common: `share` of the rows and the others, in an order that the seed draws.

        seed None: in the order of the log, so that the second came later.
        """
        n = len(self.arm)
        share = number("share", share, 0.0, 1.0, open_low=True, open_high=True)
        cut = round(share * n)
        if not 0 < cut < n:
            raise ValueError(f"share = {share:g} of {n} rows leaves one part empty: choose something nearer 1/2")
        order = np.arange(n) if seed is None else np.random.default_rng(integer("seed", seed, 0)).permutation(n)
        return self._take(order[:cut]), self._take(order[cut:])

    def _take(self, rows: np.ndarray[Any, Any]) -> "Log":
        taken = {key: getattr(self, key)[rows] for key in ("features", "arm", "reward")}
        return self._replace(**taken, propensity=None if self.propensity is None else self.propensity[rows])

    def check(self) -> "pd.DataFrame":
        """What is known of each arm."""
        raise NotImplementedError

"""Regret from counts of pulls, on the host."""

from typing import Any

import numpy as np

from jaxbandits.typing import Float, Int, Tensor


def gaps_of(means: Float[Tensor, " K"]) -> Float[np.ndarray, " K"]:
    """What a pull of every arm costs against the best arm, in float64."""
    expected = np.asarray(means, np.float64)
    return expected.max() - expected


def regret_of_counts(counts: Int[Tensor, "... K"], means: Float[Tensor, " K"]) -> Float[np.ndarray, "..."]:
    """What the pulls of every arm cost against the best arm: exact, in float64, arms added in their order."""
    counts = np.asarray(counts)
    regret: Any = np.zeros(counts.shape[:-1])
    for arm, gap in enumerate(gaps_of(means)):
        if gap != 0:
            regret += counts[..., arm] * gap
    return regret

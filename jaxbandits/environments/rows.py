"""From features in their own units to the rows that learners see, on the host, and kept for rows that come later.

Axes: [n] rows, [p] features, [d] features of a row that is shown.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.environments.labelled_rows import read_matrix
from jaxbandits.environments.user_tables import few
from jaxbandits.validation import integer

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]


class Rows(NamedTuple):
    """How features became rows. It is computed from the data and public: no privacy guarantee covers it."""

    names: tuple[str, ...]  # of the features
    mean: Floats  # [p], subtracted
    sd: Floats  # [p]: standard deviations, divided by; 1 for a feature that is the same in every row
    axes: Floats | None  # [components, p]: the principal components that are kept; None: all features are
    bias: bool  # whether a column of ones comes last
    norm: str  # "unit": each row has norm 1; "largest": the largest has; "none"
    scale: float  # what rows are divided by, unless each by its own norm

    def apply(self, features: Any) -> Floats:
        """Other features [m, p] as rows [m, d], by the same numbers."""
        x, given = read_matrix("features", features)
        unnamed = any(names[0].startswith("features[") for names in (given, self.names))
        if len(given) != len(self.names) or (tuple(given) != self.names and not unnamed):
            raise ValueError(f"features has the columns {few(given)}; they must be {few(self.names)}, in this order")
        x = (x - self.mean) / self.sd
        x = x if self.axes is None else x @ self.axes.T
        x = np.column_stack([x, np.ones(len(x))]) if self.bias else x
        if self.norm == "unit":
            norms = np.linalg.norm(x, axis=1, keepdims=True)
            return x / np.where(norms > 0, norms, 1)
        return x / self.scale


def principal_axes(centred: Floats) -> tuple[Floats, Floats]:
    """The principal axes [p, p] of centred rows, and the variance along each [p], largest first.

    An axis' entry of largest size is positive.
    """
    n, p = centred.shape
    _, variances, axes = np.linalg.svd(np.cov(centred, rowvar=False).reshape(p, p) if n > 1 else np.eye(p))
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], 1)
    return axes * np.where(largest < 0, -1.0, 1.0), variances


def make_rows(
    features: Floats, names: Sequence[str], *, dim: int | None, standardise: bool, bias: bool, norm: str
) -> tuple[Floats, Rows]:
    """Rows [n, d] from finite features [n, p], and how to make others.

    standardise: features have mean 0 and standard deviation 1; those that are the same in every row become 0. dim: d,
    in 1 + bias to p + bias, where a smaller one keeps the first principal components and warns; None: the largest.
    bias: a column of ones comes last. norm: "unit", "largest" or "none", as `Rows` has it.
    """
    p = features.shape[1]
    most, there = p + bias, f"there are {p} features{' and a bias' if bias else ''}"
    dim = most if dim is None else integer("dim", dim, 1 + bias, most, remedy=there)
    mean, sd = np.zeros(p), np.ones(p)
    if standardise or dim < most:
        still = (features == features[:1]).all(axis=0)  # rounding gives some of them a spread
        mean = np.where(still, features[0], features.mean(axis=0))
        sd = np.where(still, 1.0, features.std(axis=0)) if standardise else sd
    if not ((sd > 0) & (sd < np.inf)).all():
        raise ValueError("features are so large or so near to each other that floating point holds no spread of them")
    rows = Rows(tuple(names), mean, sd, None, bias, norm, 1.0)
    if dim < most:
        kept = dim - bias
        axes, variances = principal_axes((features - mean) / sd)
        rows = rows._replace(axes=axes[:kept])
        share = variances[:kept].sum() / (variances.sum() or 1.0)
        warnings.warn(f"dim = {dim} keeps {kept} of {p} components, {100 * share:.0f} % of the variance", stacklevel=4)
    if norm == "largest":
        lengths = np.linalg.norm(rows._replace(norm="none").apply(features), axis=1)
        rows = rows._replace(scale=float(lengths.max()) or 1.0)
    return rows.apply(features), rows

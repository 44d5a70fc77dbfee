"""Sums, choices and small linear algebra whose results do not depend on how many lanes run side by side."""

from jaxbandits.numerics.choice import argmax, argmin, features, inverse_cdf, one_hot, pick, picked, played, tree_where
from jaxbandits.numerics.fusion import cond_any, lanes_last, materialize, materialize_all, rounded
from jaxbandits.numerics.linear_algebra import inverse_cholesky, safe_norm, sweep_inverse
from jaxbandits.numerics.sums import (
    SHORT,
    SUMMED,
    UNROLL,
    added,
    combine,
    count,
    dot,
    fixed_cumsum,
    fixed_sum,
    left_out,
    matvec,
    moved_mean,
    quadratic,
    two_sum,
)

__all__ = [
    "SHORT",
    "SUMMED",
    "UNROLL",
    "added",
    "argmax",
    "argmin",
    "combine",
    "cond_any",
    "count",
    "dot",
    "features",
    "fixed_cumsum",
    "fixed_sum",
    "inverse_cdf",
    "inverse_cholesky",
    "lanes_last",
    "left_out",
    "materialize",
    "materialize_all",
    "matvec",
    "moved_mean",
    "one_hot",
    "pick",
    "picked",
    "played",
    "quadratic",
    "rounded",
    "safe_norm",
    "sweep_inverse",
    "tree_where",
    "two_sum",
]

_RENAMED = {"settle": "materialize", "settle_all": "materialize_all", "seldom": "cond_any"}


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        raise ImportError(f"jaxbandits.numerics.{name} is called {_RENAMED[name]} since 0.2.0")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

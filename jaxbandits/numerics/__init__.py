"""Sums, choices and small linear algebra whose results do not depend on how many lanes run side by side."""

from jaxbandits.numerics.choice import argmax as argmax
from jaxbandits.numerics.choice import argmin as argmin
from jaxbandits.numerics.choice import features as features
from jaxbandits.numerics.choice import inverse_cdf as inverse_cdf
from jaxbandits.numerics.choice import one_hot as one_hot
from jaxbandits.numerics.choice import pick as pick
from jaxbandits.numerics.choice import picked as picked
from jaxbandits.numerics.choice import played as played
from jaxbandits.numerics.choice import tree_where as tree_where
from jaxbandits.numerics.fusion import cond_any as cond_any
from jaxbandits.numerics.fusion import lanes_last as lanes_last
from jaxbandits.numerics.fusion import materialize as materialize
from jaxbandits.numerics.fusion import materialize_all as materialize_all
from jaxbandits.numerics.fusion import rounded as rounded
from jaxbandits.numerics.linear_algebra import inverse_cholesky as inverse_cholesky
from jaxbandits.numerics.linear_algebra import safe_norm as safe_norm
from jaxbandits.numerics.linear_algebra import sweep_inverse as sweep_inverse
from jaxbandits.numerics.sums import SHORT as SHORT
from jaxbandits.numerics.sums import SUMMED as SUMMED
from jaxbandits.numerics.sums import UNROLL as UNROLL
from jaxbandits.numerics.sums import added as added
from jaxbandits.numerics.sums import combine as combine
from jaxbandits.numerics.sums import count as count
from jaxbandits.numerics.sums import dot as dot
from jaxbandits.numerics.sums import fixed_cumsum as fixed_cumsum
from jaxbandits.numerics.sums import fixed_sum as fixed_sum
from jaxbandits.numerics.sums import floats as floats
from jaxbandits.numerics.sums import left_out as left_out
from jaxbandits.numerics.sums import matvec as matvec
from jaxbandits.numerics.sums import moved_mean as moved_mean
from jaxbandits.numerics.sums import product as product
from jaxbandits.numerics.sums import quadratic as quadratic
from jaxbandits.numerics.sums import two_sum as two_sum

__all__ = """
    SHORT SUMMED UNROLL added argmax argmin combine cond_any count dot features fixed_cumsum fixed_sum inverse_cdf
    inverse_cholesky lanes_last left_out materialize materialize_all matvec moved_mean one_hot pick picked played
    product quadratic rounded safe_norm sweep_inverse tree_where two_sum
""".split()
_RENAMED = {"settle": "materialize", "settle_all": "materialize_all", "seldom": "cond_any"}


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        raise ImportError(f"jaxbandits.numerics.{name} is called {_RENAMED[name]} since 0.2.0")
    raise AttributeError(f"No jaxbandits.numerics attribute {name}")

"""How far two Bernoulli means are apart under privacy, and the indices made of it: `dp_klucb` and `dp_imed`.

Azize, Wu, Honda, Orabona, Ito and Basu 2025. Indices of a mean q are on the scale -log(1 - q), on which those close to
1 stay apart in float32. `epsilon` is finite here: `UNBOUNDED` stands for none.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import xlog1py, xlogy

from jaxbandits.algorithms.stochastic.bernoulli_index import LEAST_ROOM, largest_mean, rise
from jaxbandits.numerics import materialize
from jaxbandits.typing import Array, Float, Numeric

# So much privacy budget that no noise is left, while products with it stay below float32's 3e38.
UNBOUNDED = 1e20
SEARCHED = 1e8  # above it, the best rate is too small a part of epsilon for the search, and no bound but none is near
GOLDEN_STEPS = 45
Values = Float[Array, "..."]


def kl(x: Values, y: Values) -> Values:
    """The Kullback-Leibler divergence of Bernoulli laws with means x < y."""
    return xlogy(x, x) - xlogy(x, y) + xlog1py(1 - x, -x) - xlog1py(1 - x, -y)


def _log_thinning(y: Values, rate: Numeric) -> Values:
    """log(1 - y (1 - e^-rate)): the second form is for rates whose e^-rate vanishes beside 1."""
    small = jnp.log1p(y * jnp.expm1(-jnp.minimum(rate, 10.0)))
    return jnp.where(rate < 10, small, jnp.logaddexp(jnp.log1p(-y), jnp.log(y) - rate))


def divergence(x: Values, y: Values, epsilon: Numeric) -> Values:
    """d_eps(x, y), the least eps |z - x| + kl(z, y) for z between x <= y, both in [0, 1]; 0 where x >= y."""
    apart = jnp.log(y) + jnp.log1p(-x) - jnp.log(x) - jnp.log1p(-y)  # logit y - logit x
    far = -epsilon * x - _log_thinning(y, epsilon)
    return jnp.where(x < y, jnp.maximum(jnp.where(apart <= epsilon, kl(x, y), far), 0), 0)


def upper_index(p: Values, level: Values, epsilon: Numeric) -> Values:
    """-log(1 - q) for the largest q in [p, 1] with d_eps(p, q) <= level; inf where that is 1."""
    left = epsilon * (1 - p) - level
    risen = rise(p, level)
    # d_eps is kl up to logit q = logit p + eps
    near = (p > 0) & (risen <= epsilon + jnp.log(p + (1 - p) * jnp.exp(-epsilon)))
    beyond = level + epsilon * p + jnp.log(-jnp.expm1(-epsilon)) - jnp.log(-jnp.expm1(-jnp.maximum(left, 0)))
    index = jnp.where(near, risen - jnp.log(jnp.maximum(1 - p, LEAST_ROOM)), beyond)
    # stored: within the search for the largest index it would be computed without vectors (24 instead of 14 ns a play)
    return materialize(jnp.where((p < 1) & (left > 0), index, jnp.inf), long=True)


def _largest_value(function: Callable[[Array], Array], like: Values) -> Values:
    """The largest value of a function on (0, 1) that rises, then falls, elementwise: golden sections."""
    ratio = (5**0.5 - 1) / 2

    def step(_, ends):
        low, high = ends
        first, second = high - ratio * (high - low), low + ratio * (high - low)
        rises = function(first) < function(second)
        return jnp.where(rises, first, low), jnp.where(rises, high, second)

    low, high = lax.fori_loop(0, GOLDEN_STEPS, step, (jnp.zeros_like(like), jnp.ones_like(like)))
    return function((low + high) / 2)


def divergence_with_noises(x: Values, y: Values, pulls: Values, noises: Values, epsilon: Numeric) -> Values:
    """D_m(x, y; n) of n pulls whose sum carries m Laplace draws, from Chernoff's bound; 0 where x >= y."""

    def exponent(share):
        rate = share * epsilon
        return -rate * pulls * x - pulls * _log_thinning(y, rate) + noises * jnp.log1p(-share * share)

    private = jnp.maximum(_largest_value(exponent, x + y + pulls), 0)
    return jnp.where(x < y, jnp.where(epsilon < UNBOUNDED, private, pulls * kl(x, y)), 0)


def upper_index_with_noises(p: Values, level: Values, pulls: Values, noises: Values, epsilon: Numeric) -> Values:
    """-log(1 - q) for the largest q in [p, 1] with D_m(p, q; n) <= n level."""

    def below_one(share):  # 1 - q
        rate = share * epsilon
        return jnp.expm1(rate * (1 - p) - level + noises / pulls * jnp.log1p(-share * share)) / jnp.expm1(rate)

    room = jnp.clip(_largest_value(below_one, p + level + pulls), 0, 1 - p)
    return jnp.where(epsilon < UNBOUNDED, -jnp.log(room), largest_mean(p, level))

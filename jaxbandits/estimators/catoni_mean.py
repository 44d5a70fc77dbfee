"""Catoni's M-estimator of a mean (Catoni 2012, as in Bubeck, Cesa-Bianchi and Lugosi 2013, Definition 3)."""

import math

import jax
import jax.numpy as jnp

from jaxbandits.estimators._inputs import checked, decreasing_root, sample
from jaxbandits.numerics import fixed_sum


def influence(y):
    """psi(y) = sgn(y) ln(1 + |y| + y^2/2) and its derivative, elementwise."""
    size = jnp.minimum(jnp.abs(y), 1e150 if y.dtype == jnp.float64 else 1e18)  # the square stays finite
    inner = size + size * size / 2
    return jnp.sign(y) * jnp.log1p(inner), (1 + size) / (1 + inner)


def width(pulls, variance, log_term):
    """a = sqrt(2 l / (n (v + 2 v l / (n - 2 l)))) for n pulls > 2 l, l = ln(1 / failure_prob)."""
    return jnp.sqrt(2 * log_term / (pulls * variance * (1 + 2 * log_term / (pulls - 2 * log_term))))


def catoni_mean(x, variance, failure_prob):
    """The root theta of sum_i psi(a (x_i - theta)), psi(y) = sgn(y) ln(1 + |y| + y^2/2).

    x: [n], in any order; infinities and NaN count as 0. variance: v > 0, a bound on the variance; failure_prob in (0, 1): with
    l = ln(1 / failure_prob), a = sqrt(2 l / (n (v + 2 v l / (n - 2 l)))), which needs n >= 4 l. Returns []; within
    2 sqrt(v l / n) of the mean with probability 1 - 2 failure_prob. Raises ValueError for other values where they are not
    traced (a traced failure_prob below exp(-n / 4) gives NaN). Source: specification of private and robust bandits, section 7
    (Bubeck et al. 2013; recalled, not re-read).

    >>> import jax.numpy as jnp
    >>> x = jnp.array([0.0, 0.2, 0.1, 0.3, -0.1, 0.1, 0.1, 1e6])
    >>> 0.1 < float(catoni_mean(x, 1.0, 0.2)) < 20
    True
    """
    x = sample(x)
    variance = checked("variance", variance, 0.0, open_low=True)
    failure_prob = checked("failure_prob", failure_prob, 0.0, 1.0, open_low=True)
    least = -4 * math.log(failure_prob) if isinstance(failure_prob, float) else 0.0
    if x.shape[0] < least:
        raise ValueError(
            f"x has {x.shape[0]} values; failure_prob = {failure_prob:g} needs at least {math.ceil(least)}: raise failure_prob"
        )
    return _root(x, jnp.asarray(variance, x.dtype), -jnp.log(jnp.asarray(failure_prob, x.dtype)))


@jax.jit
def _root(x, variance, log_term):
    enough = x.shape[0] >= log_term * 3.9999
    a = jnp.where(enough, width(x.shape[0], variance, jnp.where(enough, log_term, 0)), jnp.nan)

    def slack(theta):
        value, slope = influence(a * (x - theta))
        return fixed_sum(value), a * fixed_sum(slope)

    return decreasing_root(slack, jnp.median(x), jnp.min(x), jnp.max(x), jnp.sqrt(variance))

"""Operations in an order that keeps few numbers alive give the same results."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from jaxbandits.kernels.liveness import alive
from jaxbandits.kernels.order import few_alive

X = jnp.asarray(np.random.default_rng(0).normal(size=4).astype(np.float32))


def array_by_array(x):
    """Eight numbers, then a function of each, then their sum."""
    shifted = [x * (i + 1) for i in range(8)]
    return sum([jnp.sin(each) for each in shifted], jnp.zeros_like(x)), x + 1


def test_an_array_is_not_made_before_its_first_element_is_read():
    traced = jax.make_jaxpr(array_by_array)(X)
    other = few_alive(traced.jaxpr)
    # as traced: x, eight multiples of it, the sum so far, and a sine
    assert alive(traced.jaxpr) == 11 and alive(other) <= 4
    assert sorted(map(id, other.eqns)) == sorted(map(id, traced.jaxpr.eqns))
    ours = jaxpr_as_fun(ClosedJaxpr(other, traced.consts))(X)
    for a, b in zip(ours, jaxpr_as_fun(traced)(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_in_a_good_order_stays():
    traced = jax.make_jaxpr(lambda x: jnp.sin(x * 2) + x)(X)
    assert few_alive(traced.jaxpr) is traced.jaxpr


def test_what_a_loop_holds_counts_beside_what_waits_for_it():
    def function(x):
        after = jax.lax.fori_loop(0, 5, lambda _, y: jnp.sin(y * 2 + jnp.cos(y)), x + 1)
        return after + x

    traced = jax.make_jaxpr(function)(X)
    assert alive(traced.jaxpr) == 1 + 3  # x waits; inside are y, two times y, and the cosine

"""Randomized response (Warner 1965)."""

import jax.numpy as jnp


def randomized_response(uniform, value, scale):
    """An unbiased, 1/scale-private report of a value in [0, 1]: a Bernoulli(value) bit, flipped with probability 1 / (1 + e^(1/scale)), debiased.

    uniform: in (0, 1), one draw has the law of both the bit and its flip. scale >= 0: 1 / epsilon; 0 flips none. Arrays broadcast.
    What uniforms of few bits spend beyond 1/scale, `response_event` tells. A simulation of the mechanism; not a certified release.

    >>> [round(float(randomized_response(u, 1.0, 1.0)), 3) for u in (0.2, 0.8)], float(randomized_response(0.2, 1.0, 0.0))
    ([1.582, -0.582], 1.0)
    """
    flip = jnp.where(scale > 0, 1 / (1 + jnp.exp(1 / jnp.maximum(scale, 1e-30))), 0)
    bit = uniform < flip + (1 - 2 * flip) * value
    return (jnp.where(bit, 1, 0) - flip) / (1 - 2 * flip)

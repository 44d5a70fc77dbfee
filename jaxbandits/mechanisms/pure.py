"""Pure privacy: the scale of Laplace noise, which `jaxbandits.random.Draws.laplace` draws, and randomized response."""

import math
from typing import Annotated

import jax.numpy as jnp

from jaxbandits.declared import Doc, Kind, Positive
from jaxbandits.mechanisms.gaussian import Epsilon
from jaxbandits.typing import Array, Float, Numeric, Scalar
from jaxbandits.validation import declare


@declare(source="Dwork, McSherry, Nissim and Smith 2006")
def laplace_scale(sensitivity: Positive, epsilon: Epsilon) -> Annotated[float, Doc("The scale b; 0.0 without noise.")]:
    """Scale of Laplace noise that makes a release epsilon-private: sensitivity / epsilon.

    Args:
        sensitivity: Largest L1 change of the release between neighbouring inputs.

    Note:
        Noise drawn in floating point simulates the mechanism; it is not a certified release.

    >>> laplace_scale(1.0, 0.5)
    2.0
    >>> laplace_scale(1.0, float("inf"))
    0.0
    """
    return 0.0 if math.isinf(epsilon) else float(sensitivity / epsilon)


ArrayOrFloat = Annotated[Numeric, Kind("array or float")]


@declare(check=False, source="Warner 1965")
def randomized_response(uniform: ArrayOrFloat, value: ArrayOrFloat, scale: ArrayOrFloat) -> Float[Array, "..."]:
    """Report a value in [0, 1] by one private bit, without bias.

    A Bernoulli(value) bit is flipped with probability 1 / (1 + e^(1/scale)), which is 1/scale-private, and then
    debiased.

    Args:
        uniform: A uniform draw in (0, 1): one draw has the law of both the bit and its flip.
        value: What is reported, in [0, 1].
        scale: 1 / epsilon, at least 0; 0 flips no bit. The three broadcast. Above 10^4 float32 rounds the chance of a
            flip to 1/2 and what is spent is another epsilon; above 10^7 nothing is left of the bit.

    Returns:
        The debiased bits; their mean is `value`.

    Note:
        A simulation of the mechanism; not a certified release. `response_event` says what uniforms of few bits spend
        beyond 1 / scale.

    >>> [round(float(randomized_response(u, 1.0, 1.0)), 3) for u in (0.2, 0.8)]
    [1.582, -0.582]
    >>> float(randomized_response(0.2, 1.0, 0.0))
    1.0
    """
    flip = jnp.where(scale > 0, 1 / (1 + jnp.exp(1 / jnp.maximum(scale, 1e-30))), 0)
    bit = uniform < flip + (1 - 2 * flip) * value
    return (jnp.where(bit, 1, 0) - flip) / (1 - 2 * flip)


def response_bound(epsilon: Scalar) -> float:
    """c = (e^epsilon + 1) / (e^epsilon - 1), the size of an unbiased bit of values in [-1, 1]; 1 without noise.

    >>> round(response_bound(1.0), 4), response_bound(float("inf"))
    (2.164, 1.0)
    """
    return 1.0 if math.isinf(epsilon) else 1 / math.tanh(epsilon / 2)

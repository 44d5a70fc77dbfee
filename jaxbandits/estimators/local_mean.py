"""The mean of locally private bits, some of them corrupted: no report counts for more than an honest one could."""

from typing import Annotated

import jax.numpy as jnp
from annotated_doc import Doc

from jaxbandits.declared import TRACED, Epsilon, Positive
from jaxbandits.estimators._inputs import Sample, floats, of_axes
from jaxbandits.numerics import fixed_sum
from jaxbandits.typing import Array, Float
from jaxbandits.validation import checked


@checked(source="`docs/formulas/private_frontier.md#local-privacy-and-corruption`.")
def local_mean(
    reports: Annotated[Sample, Doc("Any values, at least one, in units of a reward.")],
    clip: Annotated[Positive | Array, TRACED],
    epsilon: Annotated[Epsilon | Array, TRACED, Doc('Privacy budget of one report; at ``float("inf")`` c is 1.')],
) -> Annotated[Float[Array, ""], Doc("The mean of the reports clipped to [-c clip, c clip].")]:
    """The mean of private reports of one bit, each clipped to what an honest client could have sent.

    A client whose reward, truncated at `clip`, is x reports c clip with probability 1/2 + x / (2 c clip) and
    otherwise -c clip, c = (e^epsilon + 1) / (e^epsilon - 1). Such a report has mean x.

    clip: Level M at which clients truncate their rewards, in units of a reward.

    Notes: NaN counts as 0 and stays in the divisor. Without the clip one infinite report would decide the mean: what a
    client truncates before its noise does not protect from what is changed after it.

    >>> import jax.numpy as jnp
    >>> round(float(local_mean(jnp.array([jnp.inf, -1.0, jnp.nan, 0.5]), 1.0, float("inf"))), 3)
    0.125
    """
    values = floats(of_axes("reports", reports, "[n]", " with n >= 1"))
    bound = jnp.asarray(clip, values.dtype) / jnp.tanh(jnp.asarray(epsilon, values.dtype) / 2)
    return fixed_sum(within(values, bound)) / values.shape[0]


def within(reports: Float[Array, " n"], bound: Float[Array, ""]) -> Float[Array, " n"]:
    """Reports clipped to [-bound, bound]; NaN counts as 0."""
    return jnp.where(jnp.isnan(reports), 0, jnp.clip(reports, -bound, bound))

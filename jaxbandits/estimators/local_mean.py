"""The mean of locally private bits, some of them corrupted: no report counts for more than an honest one could."""

import jax.numpy as jnp

from jaxbandits.estimators._inputs import checked
from jaxbandits.numerics import fixed_sum
from jaxbandits.typing import Array, Float, Scalar, Vector


def local_mean(reports: Vector, clip: Scalar | Array, epsilon: Scalar | Array) -> Float[Array, ""]:
    """The mean of private reports of one bit, each clipped to what an honest client could have sent.

    A client whose reward, truncated at `clip`, is x reports c clip with probability 1/2 + x / (2 c clip) and
    otherwise -c clip, c = (e^epsilon + 1) / (e^epsilon - 1). Such a report has mean x.

    Parameters
    ----------
    reports : array of shape [n]
        Any values, at least one, in units of a reward.
    clip : float
        Level M at which clients truncate their rewards, in units of a reward, greater than 0. It may be traced.
    epsilon : float
        Privacy budget of one report, in (0, inf]; at ``float("inf")`` c is 1. It may be traced.

    Returns
    -------
    float array of shape []
        The mean of the reports clipped to [-c clip, c clip].

    Raises
    ------
    ValueError
        If `reports` is empty or no vector, or if a number lies outside its range.

    Notes
    -----
    NaN counts as 0 and stays in the divisor. Without the clip one infinite report would decide the mean: what a
    client truncates before its noise does not protect from what is changed after it.

    References
    ----------
    `docs/formulas/private_frontier.md#local-privacy-and-corruption`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> round(float(local_mean(jnp.array([jnp.inf, -1.0, jnp.nan, 0.5]), 1.0, float("inf"))), 3)
    0.125
    """
    reports = jnp.asarray(reports)
    if reports.ndim != 1 or reports.shape[0] == 0:
        raise ValueError(f"reports has shape {reports.shape}; it must be [n] with n >= 1: use vmap for leading axes")
    reports = reports if jnp.issubdtype(reports.dtype, jnp.floating) else reports.astype(jnp.float32)
    dtype = reports.dtype
    clip = jnp.asarray(checked("clip", clip, 0.0, open_low=True), dtype)
    if not (isinstance(epsilon, float) and epsilon == float("inf")):
        epsilon = checked("epsilon", epsilon, 0.0, open_low=True, remedy="use float('inf') for no noise")
    bound = clip / jnp.tanh(jnp.asarray(epsilon, dtype) / 2)
    return fixed_sum(within(reports, bound)) / reports.shape[0]


def within(reports: Float[Array, " n"], bound: Float[Array, ""]) -> Float[Array, " n"]:
    """Reports clipped to [-bound, bound]; NaN counts as 0."""
    return jnp.where(jnp.isnan(reports), 0, jnp.clip(reports, -bound, bound))

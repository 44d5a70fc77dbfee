"""Means of values that are cut at a bound: truncated, around the fullest of some bins, and of private bits."""

import math
from typing import Annotated, NamedTuple

import jax.numpy as jnp

from jaxbandits.declared import LATER, TRACED, Doc, Epsilon, Ge, Positive
from jaxbandits.estimators._inputs import Sample, of_axes
from jaxbandits.numerics import argmax, fixed_sum, floats
from jaxbandits.typing import Array, Bool, Float, Int, Numeric, Scalar, Vector
from jaxbandits.validation import declare, number


class HistogramMean(NamedTuple):
    """The estimate and the bin around which it was searched."""

    estimate: Float[Array, ""]
    left_edge: Float[Array, ""]  # J: the left end of the fullest bin


def bin_index(
    rewards: Float[Array, "..."], first_edge: Numeric, width: Numeric, num_bins: Numeric
) -> tuple[Int[Array, "..."], Bool[Array, "..."]]:
    """The bin of each reward, and whether it has one; infinities and NaN have none.

    Bin j is [first_edge + j width, first_edge + (j + 1) width).
    """
    place = (rewards - first_edge) / width
    inside = (place >= 0) & (place < jnp.asarray(num_bins).astype(place.dtype))
    # Infinities are replaced before the cast to integers, which is not defined for them.
    return jnp.where(inside, place, 0).astype(jnp.int32), inside


@declare(source="Wu, Zhou, Tao and Wang 2023, Algorithm 3: `docs/formulas/private_robust_mab.md#histogram-mean`.")
def histogram_mean(
    rewards: Vector,
    clip: Scalar | Array,
    mean_bound: Annotated[Scalar, LATER],
    bin_width: Annotated[Positive, Doc("Width r of a bin, in units of a reward.")],
    *,
    guard_bins: Annotated[int, Ge(0), Doc("Bins added on each side of [-D, D). The default is the printed grid.")] = 0,
) -> Annotated[HistogramMean, Doc("`estimate` and `left_edge`, the left end J of the fullest bin.")]:
    """The mean of the second half of the rewards, truncated around the fullest bin of the first half.

    Args:
        rewards (array of shape [2n]): In the order in which they came, at least two, of any value. An odd last one is
            dropped.
        clip (float): Values x of the second half with `|x - J|` above it count as J, where J is the bin's left edge. In
            units of a reward, at least 0; it may be traced.
        mean_bound: Bound D on the size of the mean, in units of a reward: the bins cover [-D, D). At least `bin_width`.

    Raises:
        ValueError: If a bound lies outside its range, or there are fewer than two rewards.

    Note:
        Values outside all bins, infinities and NaN have no bin. Ties go to the lowest bin. Changing one reward moves
        the shares of the bins by at most 2/n in total, and the truncated mean around J by at most 2 clip / n. No noise
        is added.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([5.1, 5.2, -9.0, 5.0, 6.0, jnp.inf])
    >>> [float(v) for v in histogram_mean(x, 4.0, 8.0, 2.0)]
    [5.0, 4.0]
    """
    rewards = jnp.asarray(rewards)
    width, guard = float(bin_width), guard_bins
    bound = number("mean_bound", mean_bound, width, remedy="the bins cover [-mean_bound, mean_bound)")
    half = rewards.shape[-1] // 2
    if half == 0:
        raise ValueError(f"rewards has shape {rewards.shape}: the two folds need at least two rewards")
    num_bins, first_edge = math.ceil(2 * bound / width - 1e-12) + 2 * guard, -bound - guard * width
    index, inside = bin_index(rewards[:half], first_edge, width, num_bins)
    counts = jnp.zeros(num_bins, jnp.int32).at[index].add(inside.astype(jnp.int32))
    left = first_edge + argmax(counts).astype(rewards.dtype) * width
    return HistogramMean(left + truncated_mean(rewards[half : 2 * half] - left, clip), left)


@declare(source="Wu, Zhou, Tao and Wang 2023, Algorithm 2: `docs/formulas/private_robust_mab.md#truncated-mean`.")
def truncated_mean(rewards: Vector, clip: Scalar | Array) -> Float[Array, ""]:
    """The mean of the rewards of size at most `clip`, the others counting as 0.

    Args:
        rewards (array of shape [n]): Any values, at least one.
        clip (float): Largest size of a reward that counts, itself included, in units of a reward, at least 0. It may be
            traced.

    Returns:
        (1/n) sum_i x_i 1{`|x_i|` <= clip}. Changing one reward moves it by at most 2 clip / n.

    Note:
        Rejected values, infinities and NaN count as 0 and stay in the divisor. No noise is added.

    >>> import jax.numpy as jnp
    >>> float(truncated_mean(jnp.array([1.0, 2.0, jnp.inf, jnp.nan]), 2.0))
    0.75
    """
    rewards = jnp.asarray(rewards)
    # A product with the indicator would turn infinities into NaN.
    return fixed_sum(jnp.where(jnp.abs(rewards) <= clip, rewards, 0)) / rewards.shape[-1]


@declare(source="`docs/formulas/private_frontier.md#local-privacy-and-corruption`.")
def local_mean(
    reports: Annotated[Sample, Doc("Any values, at least one, in units of a reward.")],
    clip: Annotated[Positive | Array, TRACED],
    epsilon: Annotated[Epsilon | Array, TRACED, Doc('Privacy budget of one report; at ``float("inf")`` c is 1.')],
) -> Annotated[Float[Array, ""], Doc("The mean of the reports clipped to [-c clip, c clip].")]:
    """The mean of private reports of one bit, each clipped to what an honest client could have sent.

    A client whose reward, truncated at `clip`, is x reports c clip with probability 1/2 + x / (2 c clip) and
    otherwise -c clip, c = (e^epsilon + 1) / (e^epsilon - 1). Such a report has mean x.

    Args:
        clip: Level M at which clients truncate their rewards, in units of a reward.

    Note:
        NaN counts as 0 and stays in the divisor. Without the clip one infinite report would decide the mean: what a
        client truncates before its noise does not protect from what is changed after it.

    >>> import jax.numpy as jnp
    >>> round(float(local_mean(jnp.array([jnp.inf, -1.0, jnp.nan, 0.5]), 1.0, float("inf"))), 3)
    0.125
    """
    values = floats(of_axes("reports", reports, "[n]", " with n >= 1"))
    bound = jnp.asarray(clip, values.dtype) / jnp.tanh(jnp.asarray(epsilon, values.dtype) / 2)
    return fixed_sum(clip_reports(values, bound)) / len(values)


def clip_reports(reports: Float[Array, " n"], bound: Float[Array, ""]) -> Float[Array, " n"]:
    """Reports clipped to [-bound, bound]; NaN counts as 0."""
    return jnp.where(jnp.isnan(reports), 0, jnp.clip(reports, -bound, bound))

"""Centrally private elimination: noise on what a trusted server releases.

Laplace noise on sums by arm (Hanna, Yang and Fragouli 2022), or Gaussian noise on means (DP-DPE, Li et al. 2022).

Axes: [K] arms, [d] features, [B] batches.
Draws: `close/sums` (Laplace) or `close/means` (normal), one an arm at the last play of a batch.
"""

import math
from typing import Annotated, Literal, NamedTuple, Unpack

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batches import Batch, BatchRules, Params
from jaxbandits.declared import HOST, LATER, STATIC, Doc, Epsilon, Example, Ge, Horizon, Inside, NonNegative
from jaxbandits.mechanisms.composition import gaussian_event, guarantee, laplace_event, view_released
from jaxbandits.mechanisms.gaussian import default_delta, gaussian_scale
from jaxbandits.numerics import count, dot, fixed_sum, matvec
from jaxbandits.typing import Array, Bool, Float, Numeric
from jaxbandits.validation import factory, integer, number


class Own(NamedTuple):
    """Numbers of the rule. An arm's half-width is

    sqrt(spread * variance + private_spread * squares) + private_tail k r / m_i.
    """

    sizes: Numeric  # [B], m_i
    spread: Numeric
    private_spread: Numeric
    private_tail: Numeric
    delta: Numeric  # of the guarantee, 0 with Laplace noise; no play reads it


class Influence(NamedTuple):
    """Sums over the arms a that are played of w_a(x) = <x, M^-1 a>, for every active arm x; 0 for the other x."""

    variance: Float[Array, " K"]  # sum_a n_a w_a^2 = x' M^-1 x
    squares: Float[Array, " K"]  # sum_a w_a^2


def influence(
    actions: Float[Array, "K d"], active: Bool[Array, " K"], inverse: Float[Array, "d d"], played: Bool[Array, " K"]
) -> Influence:
    """How the noise of single rewards and of sums by arm spreads to the estimates. inverse: M^-1."""

    def influence_of_arm(x):
        h = matvec(inverse, x)
        w = jnp.where(played, dot(actions, h), 0)
        return Influence(dot(x, h), fixed_sum(w * w))

    return Influence(*(jnp.where(active, x, 0) for x in lax.map(influence_of_arm, actions, batch_size=16)))


def noisy_solution(params: Params, batch: Batch, noise: Float[Array, " K"]) -> tuple[Float[Array, " d"], Influence]:
    """Least squares on sums by arm, to each of which `noise` of scale 1 is added; and its influence."""
    drawn = params.mechanism_scale * params.noise_scale * noise
    share = batch.plays.astype(drawn.dtype) / jnp.maximum(batch.finite, 1).astype(drawn.dtype)
    # least squares sees sums only: noise on a mean of n rewards is noise n times as large on their sum
    theta = batches.solution(params, batch, jnp.where(batch.counts > 0, share * batch.sums + drawn, 0))
    return theta, influence(params.actions, batch.active, batch.inverse, batch.counts > 0)


def _noisy_judge(noise):
    def judge(params, draws, t, batch):
        own = params.own
        theta, reach = noisy_solution(params, batch, noise(draws, t, batch.counts.shape))
        half = jnp.max(jnp.sqrt(own.spread * reach.variance + own.private_spread * reach.squares))
        arms_times_rank = (count(batch.counts > 0) * batch.basis.rank).astype(half.dtype)
        half = half + own.private_tail * arms_times_rank / jnp.asarray(own.sizes)[batch.number]
        return theta, 2 * half, batch.finite > 0

    return judge


LAPLACE = BatchRules(batches.counts_by_size, _noisy_judge(lambda draws, t, arms: draws.child("sums").laplace(t, arms)))
GAUSSIAN = BatchRules(
    batches.counts_by_size, _noisy_judge(lambda draws, t, shape: draws.child("means").normal(t, shape)), truncates=True
)


def _events(params):
    # batches are forgotten: a reward enters one sum of one batch, and noise on a mean is that on the sum over its plays
    event = laplace_event if float(params.own.delta) == 0 else gaussian_event
    return (event("sum by arm of a batch's rewards in [-1, 1]", 2.0, params.noise_scale * params.mechanism_scale),)


GUARANTEE = guarantee("central", "reward", _events, view_released, delta=lambda params: params.own.delta, bound=1.0)


@factory(
    plays_on="fixed set",
    example=Example(
        {"mechanism": "gaussian", "epsilon": 1.0, "delta": 0.05, "sampling_scale": 0.2, "noise_scale": 0.3},
        horizon=1000,
    ),
    source="""Hanna, Yang and Fragouli 2022; Li et al. 2022; `docs/formulas/robust_linear.md#laplace-elimination` and
        `docs/formulas/robust_linear.md#gaussian-elimination`.""",
)
def private_elimination(
    *,
    horizon: Horizon,
    epsilon: Annotated[Epsilon, Doc("Central privacy of one reward, at least 2e-12; inf: no noise.")],
    mechanism: Literal["laplace", "gaussian"] = "laplace",
    num_batches: Annotated[int | None, Ge(2), STATIC, LATER] = None,
    calibration: Annotated[Literal["exact", "paper"], HOST] = "exact",
    delta: Annotated[Inside | None, LATER, Doc('For "gaussian" only. The default: min(1e-3, 1 / horizon).')] = None,
    sampling_scale: Annotated[NonNegative, Doc('The default: 0.5 for "laplace", 1 for "gaussian".')] | None = None,
    privacy_scale: Annotated[NonNegative, Doc("Multiplies the part of the width that allows for privacy noise.")] = 1.0,
    failure_prob: Annotated[Inside, Doc(arguments.ALL_WIDTHS)] = 0.05,
    **given: Unpack[arguments.Designed],
) -> arguments.Elimination:
    """Least squares along G-optimal designs on what a trusted server releases: one noisy number an arm and batch.

    An arm goes when it is more than 2 g below the best. V = s^2 x' M^-1 x is the variance of the estimate of arm x,
    s = noise_scale.

    Args:
        mechanism: "laplace" (Hanna et al., central): batches of m_i = T^(i/B) plays, i < B, ceil(m_i w_a) of arm a;
            sums by arm + Lap(2/epsilon); g = max_x sampling_scale sqrt(2 V L) + privacy_scale k r L / (m_i epsilon),
            with k arms in the design, r its rank and L = log(2 K B / failure_prob). A batch that does not fit is not
            begun: the best estimate is played. "gaussian" (DP-DPE): m_i = 2^i, i = 1, 2, ...; means by arm + N(0,
            (sigma / n_a)^2); g = max_x sampling_scale sqrt(2 L (V + privacy_scale^2 times the noise's variance)), B
            being the batches that can begin. The batch that the horizon cuts short is not estimated.
        calibration: sigma of "gaussian". "exact": the least that spends (epsilon, delta). "paper": 2 sqrt(2
            ln(1.25/delta)) / epsilon, more noise than that for most epsilon <= 1 and less far above.
        num_batches: B, with horizon^(1/B) > 2. Needed by "laplace", refused by "gaussian".

    Raises:
        ValueError: If an argument is out of range, or does not go with the mechanism.

    Note:
        The claim is for rewards in [-1, 1] that differ in one play (`linear_arms(noise="rademacher")`; Gaussian rewards
        have no guarantee): (epsilon, 0), or (epsilon, delta). Each reward enters one release.

        Hanna's local version is `robust_elimination(variance_bound="observed")` with a finite epsilon and without
        corruption; it has no second form here. Reports that are not finite are left out of the mean, and nothing
        goes if none is left. Nothing protects it from corruption. The constants of "laplace" are recalled and
        unverified.

    >>> algorithm = jb.algorithms.private_elimination(
    ...     actions=[[1, 0], [0, 1]], horizon=1000, epsilon=0.5, num_batches=3
    ... )
    >>> algorithm.params.noise_scale, algorithm.guarantee.spend(algorithm.params)
    (4.0, (0.5, 0.0))
    """
    num_arms, dim = arguments.check_features(given).shape
    noise, b = given["noise_scale"], arguments.laplace_noise(epsilon)
    if mechanism == "laplace":
        if delta is not None:
            raise ValueError(f"delta = {delta!r}: Laplace noise is purely private; leave it out or use 'gaussian'")
        if num_batches is None:
            raise ValueError("num_batches = None: mechanism='laplace' needs the number of batches, such as 4")
        num_batches = integer("num_batches", num_batches, 2)
        sizes, rules, delta, scale = arguments.batch_sizes(horizon, num_batches), LAPLACE, 0.0, 0.5
        total, release = num_batches, b
    else:
        if num_batches is not None:
            raise ValueError(f"num_batches = {num_batches!r}: the batches of mechanism='gaussian' double; leave it out")
        sizes, rules, scale = arguments.doubling_sizes(2.0, horizon), GAUSSIAN, 1.0
        delta = number("delta", default_delta(delta, horizon), 0.0, 1.0, open_low=True, open_high=True)
        exact = gaussian_scale(2.0, epsilon, delta, "analytic")
        total, release = len(sizes), exact if calibration == "exact" else b * math.sqrt(2 * math.log(1.25 / delta))
    log_term = math.log(2 * num_arms * total / failure_prob)
    scale = scale if sampling_scale is None else sampling_scale
    wide = 2 * log_term * scale**2
    squares, tail = wide * (privacy_scale * release) ** 2, 0.0
    if mechanism == "laplace":
        squares, tail = 0.0, privacy_scale * release / 2 * log_term
    own = Own(arguments.column(sizes), wide * noise**2, squares, tail, delta)
    most_plays = sizes + arguments.support(num_arms, dim)
    return arguments.elimination_algorithm(rules, horizon, given, most_plays, own, GUARANTEE, noise_scale=release)

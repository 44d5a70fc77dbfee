"""AdaC-GOPE (Azize and Basu 2023): elimination on G-optimal designs with Gaussian noise, for concentrated privacy.

Axes: [K] arms, [d] features, [B] batches.
Draws: `close/sums`, one normal an arm at the last play of a batch.
"""

import math
from typing import Annotated, Any, NamedTuple, Unpack

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.linear import arguments
from jaxbandits.algorithms.linear.batches import BatchRules
from jaxbandits.algorithms.linear.private_elimination import GUARANTEE, influence, noisy_solution
from jaxbandits.declared import Example, Gt, Horizon, Inside, Le, Remedy, StatedDelta
from jaxbandits.estimators.g_optimal import gram, regular_inverse
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Numeric, Scalar
from jaxbandits.validation import factory


class Own(NamedTuple):
    """Numbers of the rule. An arm's half-width is sqrt(spread x' V^-1 x + private_spread sum_a (x' V^-1 a)^2)."""

    spread: Any  # [B], 2 L s^2
    private_spread: Any  # [B], 2 L times the variance of the noise
    target: Numeric  # [B], the half-width that a batch is to reach
    delta: Numeric  # of the guarantee; no play reads it


def fewest_plays(spread: Numeric, private_spread: Numeric, target: Numeric) -> Numeric:
    """The least n with spread / n + private_spread / n^2 <= target^2, before it is rounded up."""
    return (spread + jnp.hypot(spread, 2 * target * jnp.sqrt(private_spread))) / (2 * target * target)


def _counts_for_target(params, memory, design):
    own, at = params.own, memory.batch
    played = design.weights > 0
    inverse = regular_inverse(gram(params.actions, design.weights), memory.basis)
    reach = influence(params.actions, memory.active, inverse, played)
    spread = jnp.asarray(own.spread)[at] * jnp.max(reach.variance)
    private = jnp.asarray(own.private_spread)[at] * jnp.max(reach.squares)
    return jnp.ceil(fewest_plays(spread, private, jnp.asarray(own.target)[at])) * design.weights


def _judge_noisy_sums(params, draws, t, batch):
    own, at = params.own, batch.number
    theta, reach = noisy_solution(params, batch, draws.child("sums").normal(t, batch.counts.shape))
    spread, private = jnp.asarray(own.spread)[at], jnp.asarray(own.private_spread)[at]
    half = jnp.max(jnp.sqrt(spread * reach.variance + private * reach.squares))
    return theta, 2 * half, batch.finite > 0


GOPE_RULES = BatchRules(_counts_for_target, _judge_noisy_sums, truncates=True)


def most(spread: np.ndarray, private_spread: np.ndarray, target: np.ndarray, leverage: float, arms: int) -> np.ndarray:
    """The most plays that a batch can ask for, from the largest leverage and the number of arms of a design."""
    a, b = spread * leverage, private_spread * leverage**2 * arms
    return (a + np.hypot(a, 2 * target * np.sqrt(b))) / (2 * target**2) + 1


@factory(
    plays_on="fixed set",
    example=Example({"rho": 0.5, "delta": 0.01, "failure_prob": 0.3, "noise_scale": 0.3}, horizon=1000),
    source="""Azize and Basu 2023 (arXiv 2309.00557), whose constants were not readable; batches and widths are this
        package's: `docs/formulas/private_frontier.md#adac-gope`.""",
)
def adac_gope(
    *,
    horizon: Horizon,
    rho: Annotated[Scalar, Gt(0), Le(math.inf), Remedy("use float('inf') for no noise")],
    delta: StatedDelta | None = None,
    failure_prob: Inside | None = None,
    **given: Unpack[arguments.Designed],
) -> Algorithm:
    """Eliminate fixed linear arms by least squares along G-optimal designs, on sums with Gaussian noise.

    Batch l = 1, 2, ... is long enough for a half-width of 2^-l. With a design w on the remaining arms, V its moment
    matrix, g the largest b' V^-1 b, h the largest sum over its arms of (b' V^-1 a)^2 and L = ln(2 K l (l + 1) /
    failure_prob), n is the least number with 2 L (s^2 g / n + v h / n^2) <= 4^-l, s = noise_scale and v = 2 / rho the
    noise's variance. Arm a is played ceil(n w_a) times, in index order; its sum is released with N(0, v). An arm goes
    when it is further below the best than twice the half-width of the plays made. Earlier batches are forgotten.

    Args:
        rho: Budget of zero-concentrated privacy, at least 5e-25; inf: no noise.
        failure_prob: Of all widths together. The default: 1 / horizon, and 1/2 at horizon 1.

    Returns:
        rho-zCDP in the central model, exactly sqrt(2 rho)-GDP; the unit of privacy is one reward in [-1, 1].
        Diagnostics: `active_arms` and `batches` (estimated).

    Note:
        The claim is for rewards in [-1, 1] (`linear_arms(noise="rademacher")`); each enters one released sum.
        Reports that are not finite are left out of the mean. A batch that the horizon cuts is not estimated.

    >>> algorithm = jb.algorithms.adac_gope(actions=[[1, 0], [0, 1]], horizon=1000, rho=0.5)
    >>> algorithm.params.noise_scale, jb.mechanisms.zcdp(algorithm.guarantee.events(algorithm.params))
    (2.0, 0.5)
    """
    num_arms, dim = arguments.check_features(given).shape
    deviation = math.sqrt(2 / rho)
    if deviation > arguments.MAX_NOISE_SCALE:
        raise ValueError(
            f"rho = {rho!r} needs noise of scale {deviation:.3g}, whose square single precision cannot add up: use at "
            f"least {2 / arguments.MAX_NOISE_SCALE**2:g}"
        )
    delta = default_delta(delta, horizon, 1e-5)
    failure = 1 / max(horizon, 2) if failure_prob is None else failure_prob
    batch = np.arange(1, arguments.TABLE_LENGTH + 1)
    log, target = 2 * np.log(2 * num_arms * batch * (batch + 1) / failure), 2.0**-batch
    own = Own(log * given["noise_scale"] ** 2, log * deviation**2, target, delta)
    # the largest leverage and the largest sum of squares are at least 1
    num_batches = arguments.fewest(most(own.spread, own.private_spread, target, 1.0, 1) - 1, horizon)
    # a design that its last step leaves above (1 + slack) rank is far below 2 rank then
    arms = arguments.support(num_arms, dim)
    plays = most(own.spread, own.private_spread, target, (1 + max(given["design_slack"], 1.0)) * dim, arms) + arms
    plays = plays[:num_batches]
    built = arguments.elimination_algorithm(GOPE_RULES, horizon, given, plays, own, GUARANTEE, noise_scale=deviation)
    return built._replace(guarantee=GUARANTEE._replace(claimed=GUARANTEE.spend(built.params)[0]))

"""Elimination on the trimmed mean or the median of each arm's reports, then weighted least squares.

Axes: [K] arms, [d] features, [B] batches, [n] reports of a batch. Draws: `encode/noise` (one Laplace a play).
"""

import math
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batch_reports import MISSING, block_arms, block_sums
from jaxbandits.algorithms.linear.batches import Radius, Rules
from jaxbandits.estimators.trimmed_mean import left_out
from jaxbandits.numerics import count
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Matrix, Scalar
from jaxbandits.validation import choice, factory, number


class Own(NamedTuple):
    # [B], m_i
    sizes: Any
    radius: Radius
    # the share of an arm's reports that is left out at each end
    trim: Any


def _counts(params, memory, design):
    return jnp.asarray(params.own.sizes)[memory.batch] * design.weights


def _judge(median: bool):
    def judge(params, draws, t, batch):
        n, counts, arms = batch.reports.shape[0], batch.counts, batch.counts.shape[0]
        place = jnp.arange(n, dtype=jnp.int32)
        arm = jnp.where(place < batch.plays, block_arms(counts, jnp.int32(0), n), arms)
        ordered = lax.sort((arm, batch.reports), num_keys=2)[1]
        good = ordered < MISSING  # lost reports end their arm's block
        start = jnp.cumsum(counts, dtype=jnp.int32) - counts
        left = block_sums(good.astype(jnp.int32), arm, counts, jnp.int32(0), batch.plays)
        drop = jnp.maximum(left - 1, 0) // 2
        if not median:
            drop = jnp.minimum(drop, left_out(left, jnp.asarray(params.own.trim, ordered.dtype)))
        own = jnp.minimum(arm, arms - 1)
        inside = (place >= (start + drop)[own]) & (place < (start + left - drop)[own])
        total = block_sums(jnp.where(inside, ordered, 0), arm, counts, jnp.int32(0), batch.plays)
        mean = total / jnp.maximum(left - 2 * drop, 1).astype(total.dtype)
        theta = batches.solution(params, batch, counts.astype(total.dtype) * mean)
        sound = count((counts > 0) & (left == 0)) == 0
        return theta, 2 * batches.gamma(params, params.own.radius, batch), sound

    return judge


TRIMMED = Rules(_counts, _judge(median=False), private=True)
MEDIAN = Rules(_counts, _judge(median=True), private=True)


@factory
def trimmed_elimination(
    *,
    actions: Matrix,
    horizon: int,
    num_batches: int,
    estimator: Literal["trimmed", "median"] = "trimmed",
    trim_share: Scalar | None = None,
    epsilon: Scalar = math.inf,
    corruption_bound: Scalar = 0.0,
    sampling_scale: Scalar = 0.5,
    corruption_scale: Scalar = 0.5,
    bias_scale: Scalar = 1.0,
    failure_prob: Scalar = 0.05,
    noise_scale: Scalar = 1.0,
    design_slack: Scalar = 1.0,
) -> Algorithm:
    """Robust elimination under model M1 with a robust location of each arm's reports instead of the spectral filter.

    Batch i has m_i = T^(i/B) plays, ceil(m_i w_a) of arm a of the design. theta = M^-1 sum_a n_a a mu_a with M
    = sum_a n_a a a'. Arms more than twice the practical radius of `robust_elimination` below the best go.

    Parameters
    ----------
    actions : array [K, d]
        Feature vectors of at least two arms, not all zero. Filled in from the environment.
    horizon : int
        Total plays T. Filled in from the run.
    num_batches : int
        B >= 2, with horizon^(1/B) > 2 [static].
    estimator : {"trimmed", "median"}
        mu_a [static]: the arm's mean without the ceil(trim_share n_a) smallest and as many largest reports (the
        median where nothing would be left), or its median (the mean of the middle two).
    trim_share : float, optional
        In [0, 1/2), at each end; the median does not use it. None: 2 corruption_bound, as a batch may have more
        than its share of bad reports, all on one side.
    epsilon : float
        Local privacy of one reward, in [2e-12, inf]: clients add Lap(2 / epsilon) to every reward. inf: no noise.
    corruption_bound : float
        The share alpha of corrupted reports that is believed in, in [0, 1/4).
    sampling_scale, corruption_scale, bias_scale : float
        >= 0. The radius is sampling_scale max_x [sqrt(2 V L) + c L] + corruption_scale sqrt(rho^2 alpha) +
        bias_scale alpha, as in `robust_elimination`.
    failure_prob : float
        In (0, 1).
    noise_scale : float
        The rewards' sub-Gaussian scale, in [0, 1e12].
    design_slack : float
        >= 0. The design stops at leverage (1 + design_slack) rank.

    Returns
    -------
    Algorithm
        Diagnostics: `active_arms` and `batches`.

    Raises
    ------
    ValueError
        If an argument is out of range or a batch has more than 2^16 plays.

    Notes
    -----
    Each report is epsilon-private (local model) if rewards lie in [-1, 1]; Gaussian rewards have no guarantee.
    Reports are stored through a batch. Those that are not finite are left out; nothing goes where an arm has
    none left.

    References
    ----------
    `docs/formulas/robust_linear.md#trimmed-elimination`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> algorithm = jb.algorithms.trimmed_elimination(
    ...     actions=[[1, 0], [0, 1]], horizon=1000, num_batches=3, corruption_bound=0.1
    ... )
    >>> algorithm.params.own.trim, algorithm.params.own.sizes[:2].round()
    (0.2, array([ 10., 100.]))
    """
    choice("estimator", estimator, ("trimmed", "median"))
    share = None if trim_share is None else number("trim_share", trim_share, 0.0, 0.5, open_high=True)
    return arguments.stored(
        "trimmed_elimination",
        MEDIAN if estimator == "median" else TRIMMED,
        actions=actions,
        horizon=horizon,
        num_batches=num_batches,
        epsilon=epsilon,
        corruption_bound=corruption_bound,
        sampling_scale=sampling_scale,
        corruption_scale=corruption_scale,
        bias_scale=bias_scale,
        failure_prob=failure_prob,
        noise_scale=noise_scale,
        design_slack=design_slack,
        static=(estimator,),
        own=lambda sizes, radius, alpha: Own(sizes, radius, 2 * alpha if share is None else share),
    )

"""Elimination on the trimmed mean or the median of each arm's reports, then weighted least squares.

Axes: [K] arms, [d] features, [B] batches, [n] reports of a batch. Draws: `encode/noise` (one Laplace a play).
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batch_reports import MISSING, block_arms, block_sums
from jaxbandits.algorithms.linear.batches import Radius, Rules
from jaxbandits.estimators.trimmed_mean import left_out
from jaxbandits.numerics import count
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import choice, factory, number


class Own(NamedTuple):
    sizes: Any  # [B] m_i
    radius: Radius
    trim: Any  # share of an arm's reports left out at each end


def _counts(params, batch, design):
    return jnp.asarray(params.own.sizes)[batch] * design.weights


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


TRIMMED, MEDIAN = (Rules(_counts, _judge(median), private=True) for median in (False, True))


@factory
def trimmed_elimination(
    *, actions, horizon, num_batches, estimator="trimmed", trim_share=None, epsilon=math.inf, corruption_bound=0.0,
    sampling_scale=0.5, corruption_scale=0.5, bias_scale=1.0, failure_prob=0.05, noise_scale=1.0, design_slack=1.0,
) -> Algorithm:  # fmt: skip
    """The batches and the radius of `robust_elimination` under model M1, with a robust location of each arm's reports instead of its filter.

    Batches of m_i = T^(i/B) plays, ceil(m_i w_a) of arm a; theta = M^-1 sum_a n_a a mu_a, M = sum_a n_a a a'; arms more than twice the
    practical radius below the best go. mu_a is the arm's median (the mean of the middle two), or its mean without the
    ceil(trim_share n_a) smallest and as many largest reports (the median where nothing would be left).

    estimator: "trimmed" or "median". trim_share in [0, 1/2) at each end, None: 2 corruption_bound (a batch may have more than its
    share of bad reports, all on one side), unused by the median. epsilon in (0, inf]: clients add Lap(2 / epsilon) to every reward,
    which makes each report epsilon-private (local model) if rewards lie in [-1, 1]; Gaussian rewards have no guarantee.
    corruption_bound: alpha in [0, 1/4). sampling_scale, corruption_scale, bias_scale: the radius is
    sampling_scale max_x [sqrt(2 V L) + c L] + corruption_scale sqrt(rho^2 alpha) + bias_scale alpha (`robust_elimination`).
    actions: [K, d], K >= 2, not all zero. num_batches >= 2, horizon^(1/num_batches) > 2. failure_prob in (0, 1). noise_scale,
    design_slack >= 0. Reports are kept through a batch: at most 2^16 of them, else ValueError, as for values outside these ranges.
    Those that are not finite are left out; nothing goes where an arm has none left. Diagnostics: `active_arms`, `batches`.
    Source: specification of robust linear bandits, section 7.7.

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.trimmed_elimination(actions=[[1, 0], [0, 1]], horizon=1000, num_batches=3, corruption_bound=0.1)
    >>> made.params.own.trim, made.params.own.sizes[:2].round()
    (0.2, array([ 10., 100.]))
    """
    choice("estimator", estimator, ("trimmed", "median"))
    share = None if trim_share is None else number("trim_share", trim_share, 0.0, 0.5, open_high=True)
    return arguments.stored(
        "trimmed_elimination", MEDIAN if estimator == "median" else TRIMMED, actions=actions, horizon=horizon,
        num_batches=num_batches, epsilon=epsilon, corruption_bound=corruption_bound, sampling_scale=sampling_scale,
        corruption_scale=corruption_scale, bias_scale=bias_scale, failure_prob=failure_prob, noise_scale=noise_scale,
        design_slack=design_slack, static=(estimator,),
        own=lambda sizes, radius, alpha: Own(sizes, radius, 2 * alpha if share is None else share),
    )  # fmt: skip

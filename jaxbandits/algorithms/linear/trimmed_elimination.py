"""Elimination on the trimmed mean or the median of each arm's reports, then weighted least squares.

Axes: [K] arms, [d] features, [B] batches, [n] reports of a batch. Draws: `encode/noise` (one Laplace a play).
"""

from typing import Annotated, Literal, NamedTuple, Unpack

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batch_reports import MISSING, block_arms, block_sums
from jaxbandits.algorithms.linear.batches import BatchRules, Radius
from jaxbandits.declared import Ge, Horizon, Lt
from jaxbandits.estimators.trimmed_mean import count_to_trim
from jaxbandits.numerics import count
from jaxbandits.typing import Numeric, Scalar
from jaxbandits.validation import factory


class Own(NamedTuple):
    sizes: Numeric  # [B], m_i
    radius: Radius
    trim: Numeric  # the share of an arm's reports that is left out at each end


def _location_judge(median: bool):
    def judge_locations(params, draws, t, batch):
        n, counts, arms = batch.reports.shape[0], batch.counts, batch.counts.shape[0]
        place = jnp.arange(n, dtype=jnp.int32)
        arm = jnp.where(place < batch.plays, block_arms(counts, jnp.int32(0), n), arms)
        ordered = lax.sort((arm, batch.reports), num_keys=2)[1]
        good = ordered < MISSING  # lost reports end their arm's block
        start = jnp.cumsum(counts, dtype=jnp.int32) - counts
        left = block_sums(good.astype(jnp.int32), arm, counts, jnp.int32(0), batch.plays)
        drop = jnp.maximum(left - 1, 0) // 2
        if not median:
            drop = jnp.minimum(drop, count_to_trim(left, jnp.asarray(params.own.trim, ordered.dtype)))
        own = jnp.minimum(arm, arms - 1)
        inside = (place >= (start + drop)[own]) & (place < (start + left - drop)[own])
        total = block_sums(jnp.where(inside, ordered, 0), arm, counts, jnp.int32(0), batch.plays)
        mean = total / jnp.maximum(left - 2 * drop, 1).astype(total.dtype)
        theta = batches.solution(params, batch, counts.astype(total.dtype) * mean)
        sound = count((counts > 0) & (left == 0)) == 0
        return theta, 2 * batches.gamma(params, params.own.radius, batch), sound

    return judge_locations


TRIMMED = BatchRules(batches.counts_by_size, _location_judge(median=False), private=True)
MEDIAN = BatchRules(batches.counts_by_size, _location_judge(median=True), private=True)


@factory(
    plays_on="fixed set",
    example=arguments.LOCATED._replace(reward_adversary={"name": "huber", "corruption": 0.05, "value": "inf"}),
    source="`docs/formulas/robust_linear.md#trimmed-elimination`.",
)
def trimmed_elimination(
    *,
    horizon: Horizon,
    estimator: Literal["trimmed", "median"] = "trimmed",
    trim_share: Annotated[Scalar, Ge(0), Lt(0.5)] | None = None,
    **given: Unpack[arguments.Located],
) -> arguments.Elimination:
    """Robust elimination under model M1 with a robust location of each arm's reports instead of the spectral filter.

    Batch i has m_i = T^(i/B) plays, ceil(m_i w_a) of arm a of the design. theta = M^-1 sum_a n_a a mu_a with M
    = sum_a n_a a a'. Arms more than twice the practical radius of `robust_elimination` below the best go.

    Args:
        estimator: mu_a: the arm's mean without the ceil(trim_share n_a) smallest and as many largest reports (the
            median where nothing would be left), or its median (the mean of the middle two).
        trim_share: At each end; the median does not use it. The default: 2 corruption_bound, as a batch may have more
            than its share of bad reports, all on one side.

    Raises:
        ValueError: If an argument is out of range or a batch has more than 2^16 plays.

    Note:
        Each report is epsilon-private (local model) if rewards lie in [-1, 1]; Gaussian rewards have no guarantee.
        Reports are stored through a batch. Those that are not finite are left out; nothing goes where an arm has none
        left.

    >>> algorithm = jb.algorithms.trimmed_elimination(
    ...     actions=[[1, 0], [0, 1]], horizon=1000, num_batches=3, corruption_bound=0.1
    ... )
    >>> algorithm.params.own.trim, algorithm.params.own.sizes[:2].round()
    (0.2, array([ 10., 100.]))
    """

    def own(sizes, radius, alpha):
        return Own(sizes, radius, 2 * alpha if trim_share is None else trim_share)

    return arguments.location_algorithm(MEDIAN if estimator == "median" else TRIMMED, horizon, given, own)

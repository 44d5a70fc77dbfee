"""Elimination on the geometric median of least squares estimates from buckets of reports, or of single reports.

Axes: [K] arms, [d] features, [B] batches, [n] reports of a batch, [G] buckets. Draws: `encode/noise` (one
Laplace a play).
"""

from typing import Literal, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batch_reports import MISSING, block_arms, run_sums
from jaxbandits.algorithms.linear.batches import Batch, BatchRules, Params, Radius
from jaxbandits.declared import Horizon
from jaxbandits.estimators.g_optimal import gram, regular_inverse
from jaxbandits.estimators.geometric_median import plain_median
from jaxbandits.numerics import fixed_sum, matvec
from jaxbandits.typing import Array, Bool, Float, Numeric
from jaxbandits.validation import factory

BUCKETS_AT_ONCE = 16  # solved side by side: no array has size G K


class Own(NamedTuple):
    sizes: Numeric  # [B], m_i
    radius: Radius
    corruption_bound: Numeric


def bucket_estimates(params: Params, batch: Batch) -> tuple[Float[Array, "G d"], Bool[Array, " G"]]:
    """Least squares from each bucket, and which buckets have a report of every arm in the design.

    An arm's reports are cut, in order of play, into as many runs as there are buckets, the first ones longer by one.
    """
    reports, counts = batch.reports, batch.counts
    n, dtype = reports.shape[0], reports.dtype
    fewest = jnp.min(jnp.where(counts > 0, counts, n))
    wanted = jnp.ceil(2 * params.own.corruption_bound * batch.plays.astype(dtype) * (1 - 1e-6)).astype(jnp.int32) + 5
    buckets = jnp.maximum(jnp.minimum(wanted, fewest), 1)
    start = jnp.cumsum(counts, dtype=jnp.int32) - counts
    size, longer = counts // buckets, counts % buckets
    arm = block_arms(counts, jnp.int32(0), n)
    offset = jnp.arange(n, dtype=jnp.int32) - start[arm]
    short, edge = jnp.maximum(size[arm], 1), ((size + 1) * longer)[arm]
    bucket = jnp.where(offset < edge, offset // (short + 1), longer[arm] + (offset - edge) // short)
    run = jnp.where(offset < counts[arm], arm * buckets + bucket, -1)  # nothing may join a run from beyond the batch
    good = reports < MISSING
    sums = run_sums(jnp.where(good, reports, 0), run)
    finite = run_sums(good.astype(dtype), run)

    def solve_bucket(g):
        last = jnp.clip(start + (g + 1) * size + jnp.minimum(g + 1, longer) - 1, 0, n - 1)
        number, total = (jnp.where(counts > 0, x[last], 0) for x in (finite, sums))
        inverse = regular_inverse(gram(params.actions, number), batch.basis)
        theta = matvec(inverse, fixed_sum(total[:, None] * params.actions, axis=0))
        return theta, (g < buckets) & jnp.all((counts == 0) | (number > 0))

    num_groups = -(-(n // 2 + 8) // BUCKETS_AT_ONCE)  # 2 alpha n + 5 < n / 2 + 6
    groups = jnp.arange(num_groups * BUCKETS_AT_ONCE, dtype=jnp.int32).reshape(num_groups, BUCKETS_AT_ONCE)
    points, whole = lax.map(jax.vmap(solve_bucket), groups)
    return points.reshape(-1, params.actions.shape[1]), whole.reshape(-1)


def report_estimates(params: Params, batch: Batch) -> tuple[Float[Array, "n d"], Bool[Array, " n"]]:
    """Z_i = n M^-1 a_i r_i, whose mean is least squares, and which reports are finite."""
    n = batch.reports.shape[0]
    arm = block_arms(batch.counts, jnp.int32(0), n)
    good = (jnp.arange(n, dtype=jnp.int32) < batch.plays) & (batch.reports < MISSING)
    direction = batch.plays.astype(batch.reports.dtype) * matvec(batch.inverse, params.actions[:, None, :])[:, 0]
    return jnp.where(good, batch.reports, 0)[:, None] * direction[arm], good


def _median_judge(estimates):
    def judge(params, draws, t, batch):
        points, present = estimates(params, batch)
        theta = plain_median(jnp.where(present[:, None], points, 0), present)
        return theta, 2 * batches.gamma(params, params.own.radius, batch), jnp.any(present)

    return judge


BUCKETS = BatchRules(batches.counts_by_size, _median_judge(bucket_estimates), private=True)
REPORTS = BatchRules(batches.counts_by_size, _median_judge(report_estimates), private=True)


@factory(
    plays_on="fixed set",
    example=arguments.LOCATED._replace(reward_adversary={"name": "huber", "corruption": 0.05, "value": "nan"}),
    source="`docs/formulas/robust_linear.md#median-elimination`.",
)
def median_elimination(
    *, horizon: Horizon, points: Literal["buckets", "reports"] = "buckets", **given: Unpack[arguments.Located]
) -> arguments.Elimination:
    """Robust elimination under model M1 with a geometric median instead of the spectral filter.

    Batch i has m_i = T^(i/B) plays, ceil(m_i w_a) of arm a of the design, n in all. Arms more than twice the
    practical radius of `robust_elimination` below the best go.

    Args:
        points: What the median is of. "buckets": each arm's reports are cut into ceil(2 alpha n) + 5 runs (no more than
            the fewest reports of an arm in the design, so that every bucket has all of them); least squares in each
            bucket, then the geometric median of those estimates. "reports": the geometric median of Z_i = n M^-1 a_i
            r_i, the paper's straw man: their mean is least squares, their median is not near theta.

    Raises:
        ValueError: If an argument is out of range or a batch has more than 2^16 plays.

    Note:
        Each report is epsilon-private (local model) if rewards lie in [-1, 1]; Gaussian rewards have no guarantee. The
        median is 50 Weiszfeld steps from the mean, distances counting as at least 1e-8. A bucket has a bad report with
        probability 1 - (1 - alpha)^(its size), and the size is at least that of the design's support: beyond a dozen
        arms in the design few buckets stay clean at alpha = 0.05. Reports are stored through a batch. Those that are
        not finite are left out, and so are buckets without a report of some arm; nothing goes where no bucket is left.

    >>> algorithm = jb.algorithms.median_elimination(actions=[[1, 0], [0, 1]], horizon=1000, num_batches=3)
    >>> algorithm.params.own.sizes[:2].round()
    array([ 10., 100.])
    """
    return arguments.location_algorithm(REPORTS if points == "reports" else BUCKETS, horizon, given, Own)

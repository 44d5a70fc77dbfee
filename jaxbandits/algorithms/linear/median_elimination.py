"""Elimination on the geometric median of least squares estimates from buckets of reports, or of single reports.

Axes: [K] arms, [d] features, [B] batches, [n] reports of a batch, [G] buckets. Draws: `encode/noise` (one Laplace a play).
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear import arguments, batches
from jaxbandits.algorithms.linear.batch_reports import MISSING, block_arms
from jaxbandits.algorithms.linear.batches import Radius, Rules
from jaxbandits.estimators.g_optimal import gram, regular_inverse
from jaxbandits.numerics import fixed_sum, matvec
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import choice, factory

STEPS, FLOOR = 50, 1e-8  # of Weiszfeld's iteration
TOGETHER = 16  # buckets solved at a time: nothing of size G K is made


class Own(NamedTuple):
    sizes: Any  # [B] m_i
    radius: Radius
    corruption_bound: Any


def _counts(params, batch, design):
    return jnp.asarray(params.own.sizes)[batch] * design.weights


def weiszfeld(points, present):
    """Geometric median [d] of the present rows of points [N, d]; 0 where there is none.

    Plain steps, O(N d) each: the certificate of `estimators.geometric_median` costs O(N^2), too much for thousands of points.
    """
    weight = present.astype(points.dtype)

    def mean(weight):
        return fixed_sum(weight[:, None] * points, axis=0) / jnp.maximum(
            fixed_sum(weight), jnp.finfo(weight.dtype).tiny
        )

    def step(_, z):
        away = points - z
        return mean(weight / jnp.maximum(jnp.sqrt(fixed_sum(away * away)), FLOOR))

    return lax.fori_loop(0, STEPS, step, mean(weight))


def run_sums(values, run):
    """Sums of values [n] along runs of equal `run` [n], in a fixed order (doubling strides): each run's is at its last place."""
    stride = 1
    while stride < values.shape[0]:
        same = run[stride:] == run[:-stride]
        values = values.at[stride:].add(jnp.where(same, values[:-stride], 0))
        stride *= 2
    return values


def bucket_estimates(params, batch):
    """Least squares from each bucket, [G, d], and which have a report of every arm in the design, [G].

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

    def solve(g):
        last = jnp.clip(start + (g + 1) * size + jnp.minimum(g + 1, longer) - 1, 0, n - 1)
        number, total = (jnp.where(counts > 0, x[last], 0) for x in (finite, sums))
        inverse = regular_inverse(gram(params.actions, number), batch.basis)
        theta = matvec(inverse, fixed_sum(total[:, None] * params.actions, axis=0))
        return theta, (g < buckets) & jnp.all((counts == 0) | (number > 0))

    most = -(-(n // 2 + 8) // TOGETHER)  # 2 alpha n + 5 < n / 2 + 6
    groups = jnp.arange(most * TOGETHER, dtype=jnp.int32).reshape(most, TOGETHER)
    points, whole = lax.map(jax.vmap(solve), groups)
    return points.reshape(-1, params.actions.shape[1]), whole.reshape(-1)


def report_estimates(params, batch):
    """Z_i = n M^-1 a_i r_i, [n, d], whose mean is least squares, and which reports are finite, [n]."""
    n = batch.reports.shape[0]
    arm = block_arms(batch.counts, jnp.int32(0), n)
    good = (jnp.arange(n, dtype=jnp.int32) < batch.plays) & (batch.reports < MISSING)
    direction = batch.plays.astype(batch.reports.dtype) * matvec(batch.inverse, params.actions[:, None, :])[:, 0]
    return jnp.where(good, batch.reports, 0)[:, None] * direction[arm], good


def _judge(estimates):
    def judge(params, draws, t, batch):
        points, present = estimates(params, batch)
        theta = weiszfeld(jnp.where(present[:, None], points, 0), present)
        return theta, 2 * batches.gamma(params, params.own.radius, batch), jnp.any(present)

    return judge


BUCKETS, REPORTS = (Rules(_counts, _judge(each), private=True) for each in (bucket_estimates, report_estimates))


@factory
def median_elimination(
    *, actions, horizon, num_batches, points="buckets", epsilon=math.inf, corruption_bound=0.0, sampling_scale=0.5,
    corruption_scale=0.5, bias_scale=1.0, failure_prob=0.05, noise_scale=1.0, design_slack=1.0,
) -> Algorithm:  # fmt: skip
    """The batches and the radius of `robust_elimination` under model M1, with a geometric median instead of its filter.

    Batches of m_i = T^(i/B) plays, ceil(m_i w_a) of arm a, n in all; arms more than twice the practical radius below the best go.
    points "buckets": each arm's reports are cut into ceil(2 alpha n) + 5 runs (no more than the fewest reports of an arm in the
    design, so that every bucket has all of them); least squares in each bucket, then the geometric median of those estimates.
    "reports": the geometric median of Z_i = n M^-1 a_i r_i, the paper's straw man: their mean is least squares, their median is not
    near theta. 50 Weiszfeld steps from the mean, distances of at least 1e-8.

    A bucket has a bad report with probability 1 - (1 - alpha)^(its size), and the size is at least that of the design's support:
    beyond a dozen arms in the design few buckets stay clean at alpha = 0.05. epsilon in (0, inf]: clients add Lap(2 / epsilon) to
    every reward, which makes each report epsilon-private (local model) if rewards lie in [-1, 1]; Gaussian rewards have no
    guarantee. corruption_bound: alpha in [0, 1/4). sampling_scale, corruption_scale, bias_scale: the radius is
    sampling_scale max_x [sqrt(2 V L) + c L] + corruption_scale sqrt(rho^2 alpha) + bias_scale alpha (`robust_elimination`).
    actions: [K, d], K >= 2, not all zero. num_batches >= 2, horizon^(1/num_batches) > 2. failure_prob in (0, 1). noise_scale,
    design_slack >= 0. Reports are kept through a batch: at most 2^16 of them, else ValueError, as for values outside these ranges.
    Those that are not finite are left out, and so are buckets without a report of some arm; nothing goes where no bucket is left.
    Diagnostics: `active_arms`, `batches`. Source: specification of robust linear bandits, section 7.6.

    >>> import jaxbandits as jb
    >>> jb.algorithms.median_elimination(actions=[[1, 0], [0, 1]], horizon=1000, num_batches=3).params.own.sizes[:2].round()
    array([ 10., 100.])
    """
    choice("points", points, ("buckets", "reports"))
    return arguments.stored(
        "median_elimination", REPORTS if points == "reports" else BUCKETS, actions=actions, horizon=horizon,
        num_batches=num_batches, epsilon=epsilon, corruption_bound=corruption_bound, sampling_scale=sampling_scale,
        corruption_scale=corruption_scale, bias_scale=bias_scale, failure_prob=failure_prob, noise_scale=noise_scale,
        design_slack=design_slack, static=(points,), own=Own,
    )  # fmt: skip

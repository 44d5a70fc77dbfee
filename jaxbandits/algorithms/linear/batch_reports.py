"""One batch of an elimination: reports in play order, their blocks of one arm each, the filter, the estimate.

The arms of a batch are played in index order, arm a counts[a] times in a row, so that a report's place among
the plays says whose it is.

Axes: [K] arms, [d] features, [P] plays of a window, [n] plays of the largest batch, [nb] blocks, [bs] reports
of a block.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear.formulas import ClientModel
from jaxbandits.estimators.spectral_filter import block_size, filter_blocks
from jaxbandits.numerics import count, fixed_sum, materialize, matvec, sweep_inverse, two_sum
from jaxbandits.protocol import Report
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Bool, DType, Float, Int, Numeric

MISSING = 3e38  # stored for a report that is not finite: no number of the state is NaN or infinite


Counts = Int[Array, " K"]  # plays of the batch by arm


class Reports(NamedTuple):
    """A batch's reports in blocks."""

    values: Float[Array, "nb bs"]  # 0 where there is none
    present: Bool[Array, "nb bs"]  # there and finite
    arm: Int[Array, " nb"]
    lost: Int[Array, ""]  # how many are not finite


class ArmSums(NamedTuple):
    """What least squares needs of the reports: by arm, compensated."""

    high: Float[Array, " K"]
    low: Float[Array, " K"]
    finite: Int[Array, ""]  # how many reports are finite


class BatchEstimate(NamedTuple):
    """An estimate, and what became of the reports."""

    theta: Float[Array, " d"]
    removed: Int[Array, ""]  # removed by the filter
    lost: Int[Array, ""]  # reports that were not finite
    any_left: Bool[Array, ""]


def block_arms(counts: Counts, position: Int[Array, ""], slots: int) -> Int[Array, " P"]:
    """Arm of the plays position, position + 1, ... when arm a has a block of counts[a] plays in index order.

    Each block writes its arm at its first slot, a running maximum fills the rest: O(K + P), not O(K P).
    """
    start = jnp.cumsum(counts, dtype=jnp.int32) - counts - position
    begun = (counts > 0) & (start + counts > 0)
    arms = jnp.arange(counts.shape[0], dtype=jnp.int32)
    slot = jnp.where(begun, jnp.maximum(start, 0), slots)
    marked = jnp.zeros(slots, jnp.int32).at[slot].max(arms, mode="drop")
    return lax.cummax(marked)


def block_ends(counts: Counts, most: Int[Array, ""]) -> Int[Array, " K"]:
    """Where each arm's block of plays ends, at most at `most`: 32 bits hold it, however many plays are wanted."""
    return lax.associative_scan(lambda a, b: a + jnp.minimum(b, most - a), jnp.minimum(counts, most))


def run_sums(values: Array, run: Int[Array, " n"]) -> Array:
    """Sums along runs of equal `run`, in a fixed order (doubling strides): each run's sum is at its last place."""
    stride = 1
    while stride < values.shape[0]:
        same = run[stride:] == run[:-stride]
        values = values.at[stride:].add(jnp.where(same, values[:-stride], 0))
        stride *= 2
    return values


def block_sums(
    values: Array, arm: Int[Array, " P"], counts: Counts, position: Int[Array, ""], used: int | Array
) -> Array:
    """Sum of values [P] by arm [K], in the fixed order of `run_sums`."""
    values = run_sums(values, arm)
    end = jnp.cumsum(counts, dtype=jnp.int32) - position
    last = jnp.minimum(end, used) - 1
    here = (counts > 0) & (last >= 0) & (end - counts < used)
    return jnp.where(here, values[jnp.clip(last, 0, values.shape[0] - 1)], 0)


def whole_blocks(counts: Counts, position: Int[Array, ""], slots: int) -> tuple[Bool[Array, " K"], Int[Array, ""]]:
    """Which arms have their whole block among the next `slots` plays, and how many plays these take."""
    end = jnp.cumsum(counts, dtype=jnp.int32) - position
    inside = (counts > 0) & (end - counts >= 0) & (end <= slots)
    return inside, jnp.max(jnp.where(inside, end, 0))


def answers(
    counts: Counts,
    position: Int[Array, ""],
    t: Int[Array, " P"],
    reward: Float[Array, " P"],
    action: Int[Array, " P"],
    play: Bool[Array, " P"],
) -> tuple[Float[Array, " K"], Float[Array, " K"], Int[Array, " K"], Bool[Array, " K"]]:
    """What M2's clients send whose plays are over in this window.

    counts, position: the batch's plays and those done before the window. Returns, for each arm, the mean of its
    rewards, how many these are, when the last one was, and whether the client sends.
    """
    there, _ = whole_blocks(counts, position, t.shape[0])
    own = jnp.maximum(counts, 1).astype(reward.dtype)
    mean = block_sums(jnp.where(play, reward, 0), action, counts, position, count(play)) / own
    last = t[0] + jnp.where(there, jnp.cumsum(counts, dtype=jnp.int32) - position - 1, 0)
    return mean, own, last, there & play[0]


def clamp_reports(value: Float[Array, "..."], clamp: Numeric) -> Float[Array, "..."]:
    """Reports as they are stored."""
    return jnp.where(jnp.isfinite(value), jnp.clip(value, -clamp, clamp), MISSING).astype(value.dtype)


def room(largest: int, slots: int) -> int:
    """Places for `largest` reports in play order: a window may write behind the last, a block may read there."""
    return largest + max(slots, block_size(largest))


def in_blocks(stored: Float[Array, " room"], counts: Counts, largest: int, most_arms: int) -> Reports:
    """The reports of a batch, stored in play order, in blocks: at most `largest` of them, from `most_arms` arms."""
    size = block_size(largest)
    number = largest // size + most_arms
    start, blocks = jnp.cumsum(counts) - counts, -(-counts // size)
    arm = block_arms(blocks, jnp.int32(0), number)
    block = jnp.arange(number, dtype=jnp.int32)
    done = (block - (jnp.cumsum(blocks) - blocks)[arm]) * size  # reports of the arm in earlier blocks
    left = jnp.where(block < jnp.sum(blocks, dtype=jnp.int32), counts[arm] - done, 0)
    values = jax.vmap(lambda first: lax.dynamic_slice(stored, (first,), (size,)))(start[arm] + done)
    return _reports(values, jnp.arange(size, dtype=jnp.int32)[None] < left[:, None], arm)


def one_a_block(stored: Float[Array, " K"], counts: Counts) -> Reports:
    """Stored reports, one of each arm that was played."""
    return _reports(stored[:, None], (counts > 0)[:, None], jnp.arange(counts.shape[0], dtype=jnp.int32))


def _reports(values, there, arm) -> Reports:
    present = there & (values < MISSING)
    lost = jnp.sum(there & ~present, dtype=jnp.int32)
    return Reports(jnp.where(present, values, 0), present, arm, lost)


def sieve_limit(params: Any, pulls: Int[Array, " K"], model: ClientModel) -> Float[Array, " K"]:
    """Above this size the presieve drops a report of an arm: 1 + sigma sqrt(2 h / n_a) + b h / n_a, n_a = 1 in M1.

    `docs/formulas/robust_linear.md#sieve-and-refit`.
    """
    radius = params.own.radius
    own = jnp.maximum(pulls, 1) if model == "M2" else jnp.ones_like(pulls)
    reports = count(pulls > 0) if model == "M2" else jnp.sum(pulls, dtype=jnp.int32)
    own, n = own.astype(params.actions.dtype), jnp.maximum(reports, 1).astype(params.actions.dtype)
    log = jnp.log(2 * n / params.own.failure_prob)
    limit = 1 + radius.noise_scale * jnp.sqrt(2 * log / own) + radius.laplace_scale * log / own
    return jnp.where(params.own.presieve, limit, 2 * params.clamp)


def passes_sieve(reports: Reports, limit: Float[Array, " K"]) -> Bool[Array, "nb bs"]:
    """Which reports are at most the limit of their arm in size; all where none is."""
    inside = reports.present & (jnp.abs(reports.values) <= limit[reports.arm][:, None])
    return jnp.where(jnp.any(inside), inside, reports.present)


def estimate_theta(
    reports: Reports,
    present: Bool[Array, "nb bs"],
    counts: Counts,
    whiten: Float[Array, "d d"],
    actions: Float[Array, "K d"],
    threshold: Float[Array, ""] | None,
    draws: Draws,
    t: Array,
    refit: bool,
) -> BatchEstimate:
    """theta from the mean of X_j = u_a r_j over what sieve and filter leave.

    u_a = L^-1 a with L L' = M / n; n and M are those of the full batch.

    counts: reports of each arm in the full batch. whiten: L^-1. threshold: 4 n lambda; None: no filter, and
    this is least squares. refit: least squares on the reports left, where these still span what the full batch
    did.
    """
    directions = jnp.where((counts > 0)[:, None], matvec(whiten, actions), 0)
    removed = jnp.int32(0)
    if threshold is not None:
        left = filter_blocks(draws.child("filter"), t, reports.values, present, reports.arm, directions, threshold / 4)
        mean, present, removed = left.mean, left.keep, left.num_removed
    else:
        sums = fixed_sum(jnp.where(present, reports.values, 0))
        mean = fixed_sum(sums[:, None] * directions[reports.arm], axis=0)
        mean = mean / jnp.maximum(jnp.sum(present, dtype=jnp.int32), 1).astype(mean.dtype)
    if refit:
        left_by_arm = jnp.zeros_like(counts).at[reports.arm].add(count(present))
        mean = _refit_mean(mean, left_by_arm, counts, directions)
    return BatchEstimate(from_mean(mean, whiten), removed, reports.lost, jnp.any(present))


def no_sums(num_arms: int, dtype: DType) -> ArmSums:
    """Sums before the first report."""
    zero = jnp.zeros(num_arms, dtype)
    return ArmSums(zero, zero, jnp.int32(0))


def add_reports(
    sums: ArmSums, message: Report, counts: Counts, position: Int[Array, ""], used: int | Array, clamp: Any
) -> ArmSums:
    """Sums after a window's reports. While exploiting the counts are zero, and so is every sum."""
    good = message.present & jnp.isfinite(message.value)
    value = jnp.where(good, jnp.clip(message.value, -clamp, clamp), 0)
    new = block_sums(value, message.arm, counts, position, used)
    high, low = two_sum(sums.high, sums.low, new)
    return ArmSums(high, low, sums.finite + count(good))


def least_squares(
    sums: Float[Array, " K"],
    finite: Int[Array, ""],
    counts: Counts,
    whiten: Float[Array, "d d"],
    actions: Float[Array, "K d"],
) -> BatchEstimate:
    """The estimate where no report is removed.

    A report that is not finite is left out of the mean; n and M stay those of the full batch.
    """
    mean = fixed_sum(sums[:, None] * matvec(whiten, actions), axis=0)
    theta = from_mean(mean / jnp.maximum(finite, 1).astype(mean.dtype), whiten)
    lost = jnp.sum(counts, dtype=jnp.int32) - finite
    return BatchEstimate(theta, jnp.int32(0), lost, finite > 0)


def from_mean(mean: Float[Array, " d"], whiten: Float[Array, "d d"]) -> Float[Array, " d"]:
    """theta = L^-T mean."""
    return matvec(whiten.T, materialize(mean))


def _refit_mean(mean, left, counts, directions):
    """The whitened mean that least squares on left[a] of counts[a] reports gives; the old one where they span less."""
    dtype = mean.dtype

    def second(number):
        share = number.astype(dtype) / jnp.maximum(jnp.sum(number, dtype=jnp.int32), 1).astype(dtype)
        return fixed_sum(share[:, None, None] * directions[:, :, None] * directions[:, None, :], axis=0)

    # outside the span of the batch the whitened M is the identity
    matrix = second(left) - second(counts) + jnp.eye(mean.shape[0], dtype=dtype)
    inverse, pivot = sweep_inverse(matrix)
    definite = pivot > (1e-4 if dtype == jnp.float32 else 1e-9)
    return jnp.where(definite, matvec(jnp.where(definite, inverse, 0), mean), mean)

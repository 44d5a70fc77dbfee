"""Arm elimination in batches of a G-optimal design, each arm's plays made in one block: what the linear comparators share.

An algorithm is a few `Rules`. What is here: the design and the counts of a batch, its reports (private ones are noised at the
client), the span of a batch, and elimination at the batch's end, in `close`, for every lane at once.

Two ways to end: batches up to a given number, of which one that does not fit is not begun and the best estimate is played to
the horizon; or batches until the horizon, the last one truncated in index order and not estimated (`truncates`).
Axes: [K] arms, [d] features, [P] plays of a window, [n] reports of a batch.
Draws: `encode/noise` (one Laplace a play); the rules' own under `close`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear.batch_reports import added, block_arms, ends, no_sums, taken
from jaxbandits.estimators.g_optimal import Basis, design_on, gram, regular_inverse, span_basis
from jaxbandits.numerics import argmax, cond_any, count, fixed_sum, matvec, rounded
from jaxbandits.protocol import SPAN_DONE, UNDECIDED, Hints, Program, Report
from jaxbandits.theory import linear


class Params(NamedTuple):
    actions: Any  # [K, d]
    horizon: Any
    design_slack: Any
    batches: Any  # estimated at most
    clamp: Any  # largest |report| taken at face value: larger ones would overflow sums
    noise_scale: Any  # of the privacy noise
    mechanism_scale: Any
    own: Any  # the rules' numbers


class Batch(NamedTuple):
    """What the rules see of a batch that was played whole."""

    number: Any  # [] int32, from 0
    active: Any  # [K] bool
    basis: Basis
    counts: Any  # [K] int32
    plays: Any  # [] int32, their sum
    inverse: Any  # [d, d] of sum_a counts_a a a', on the span of the active arms
    sums: Any  # [K] of finite reports; () where reports are kept
    finite: Any  # [] int32: finite reports; () where reports are kept
    reports: Any  # [n] in order of play, cut at the clamp, MISSING for one that is not finite: it sorts last; () where sums are kept


class Rules(NamedTuple):
    """What sets one algorithm apart."""

    counts: Callable  # params, number, design -> [K] plays before they are rounded up, for arms in the design
    judge: Callable  # params, draws, t, batch -> theta [d], slack [], sound: arms further than slack below the best go
    private: bool = False  # clients add Laplace noise
    truncates: bool = False


class Memory(NamedTuple):
    active: Any  # [K] bool
    basis: Basis
    counts: Any  # [K] int32: the batch's plays, in arm order
    whole: Any  # [] bool: the batch fits before the horizon
    position: Any  # [] int32: plays of the batch done
    batch: Any  # [] int32: batches estimated
    best: Any  # [] int32: largest estimate of the last one
    done: Any  # [] bool: `best` is played to the horizon
    estimate: Any  # [d] theta of the last batch, NaN before one; () where clients add the noise


class State(NamedTuple):
    memory: Memory
    reports: Any  # Sums, or [n] kept reports

    @property
    def batch(self):
        """[] int32: batches estimated, as in robust elimination: what attacks on one batch look at."""
        return self.memory.batch


def solution(params, batch: Batch, sums):
    """M^-1 sum_a sums_a a [d]: least squares from sums [K] of reports by arm."""
    return matvec(batch.inverse, fixed_sum(sums[:, None] * params.actions, axis=0))


def least_squares(params, batch: Batch):
    """Ordinary least squares theta [d]. Reports that are not finite are left out; n and M stay those of the whole batch."""
    share = batch.plays.astype(batch.sums.dtype) / jnp.maximum(batch.finite, 1).astype(batch.sums.dtype)
    return share * solution(params, batch, batch.sums)


class Radius(NamedTuple):
    """What `theory.linear.gamma_practical` takes beside the batch: the radius of robust elimination under model M1."""

    log_term: Any  # L = log(2 K B / failure_prob)
    noise_scale: Any
    laplace_scale: Any
    sampling_scale: Any
    corruption_bound: Any
    corruption_scale: Any
    bias_scale: Any


def gamma(params, radius: Radius, batch: Batch):
    """The practical radius [] of a batch."""
    square = linear.mean_square(batch.counts, radius.noise_scale, radius.laplace_scale)
    return linear.gamma_practical(
        params.actions, batch.active, batch.inverse, batch.counts, square=square, **radius._asdict()
    )


@cache
def program(num_arms: int, dim: int, capacity: int, rules: Rules) -> Program:
    """capacity: reports that are kept, 0: their sums by arm are."""

    def begin_batch(params, memory: Memory, plays) -> Memory:
        """Design and counts of the next batch; none where no further batch is to be played."""
        actions = params.actions
        basis = span_basis(actions, memory.active)
        design = design_on(actions, memory.active, basis, params.design_slack, 20 * basis.rank)
        shade, floor = (1 - 2e-6, 1e-9) if actions.dtype == jnp.float32 else (1.0, 1e-9)
        wanted = jnp.ceil(rules.counts(params, memory.batch, design) * shade - floor)
        left = jnp.asarray(params.horizon).astype(jnp.int32) - plays
        wanted = jnp.where(design.weights > 0, jnp.maximum(wanted, 1), 0)
        wanted = jnp.where(wanted <= left.astype(wanted.dtype), wanted.astype(jnp.int32), left + 1)
        end = ends(wanted, left + 1)
        fits = end[-1] <= left
        end = jnp.minimum(end, left)
        counts = jnp.diff(end, prepend=jnp.zeros_like(end[:1]))
        done = memory.done | (basis.rank == 0) | (count(memory.active) == 1) | (memory.batch >= params.batches)
        done = done | (False if rules.truncates else ~fits)
        return memory._replace(
            basis=basis, counts=jnp.where(done, 0, counts), whole=fits, position=jnp.int32(0), done=done
        )

    def end_batch(params, draws, t, state: State) -> Memory:
        memory = state.memory
        inverse = regular_inverse(gram(params.actions, memory.counts.astype(params.actions.dtype)), memory.basis)
        plays = jnp.sum(memory.counts, dtype=jnp.int32)
        kept = (
            ((), (), state.reports) if capacity else (state.reports.high + state.reports.low, state.reports.finite, ())
        )
        batch = Batch(memory.batch, memory.active, memory.basis, memory.counts, plays, inverse, *kept)
        theta, slack, sound = rules.judge(params, draws, t, batch)
        value = jnp.where(memory.active, matvec(params.actions, jnp.where(sound, theta, 0)), -jnp.inf)
        stays = memory.active & ((value >= jnp.max(value) - slack) | ~sound)
        estimate = () if rules.private else theta
        return memory._replace(active=stays, best=argmax(value), batch=memory.batch + 1, estimate=estimate)

    def init(params, draws):
        none = jnp.int32(0)
        basis = Basis(jnp.zeros((dim, dim), draws.dtype), jnp.zeros(dim, jnp.int32), none)
        counts, false = jnp.zeros(num_arms, jnp.int32), jnp.zeros((), bool)
        nothing = () if rules.private else jnp.full(dim, jnp.nan, draws.dtype)
        memory = Memory(jnp.ones(num_arms, bool), basis, counts, false, none, none, none, false, nothing)
        return State(memory, empty(draws.dtype))

    def empty(dtype):
        return jnp.zeros(capacity, dtype) if capacity else no_sums(num_arms, dtype)

    def act(params, state, draws, t, context):
        memory, slots = state.memory, t.shape[0]
        arms = jnp.where(memory.done, memory.best, block_arms(memory.counts, memory.position, slots))
        left = jnp.sum(memory.counts, dtype=jnp.int32) - memory.position
        return arms, jnp.where(memory.done, slots, jnp.minimum(left, slots)), ()

    def encode(params, note, draws, t, context, action, reward, play):
        if not rules.private:
            return Report(reward, action, play)
        scale, stream = params.mechanism_scale * params.noise_scale, draws.child("noise")
        return Report(cond_any(scale > 0, noised, reward, scale, stream, t), action, play)

    def noised(value, scale, draws, t):
        return value + rounded(scale * draws.laplace(t), t)

    def update(params, state, draws, t, note, message, used):
        memory, kept = state.memory, state.reports
        if capacity:  # what lies behind the plays made is overwritten by the next window, or never read
            kept = lax.dynamic_update_slice(kept, taken(message.value, params.clamp), (memory.position,))
        else:
            kept = added(kept, message, memory.counts, memory.position, used, params.clamp)
        moved = jnp.where(memory.done, memory.position, memory.position + used).astype(jnp.int32)
        # what the last `close` released, once: everything later is played by follows from it
        released = () if rules.private else jnp.where(memory.position == 0, memory.estimate, jnp.nan)
        return State(memory._replace(position=moved), kept), released

    def close(params, state, draws, t):
        memory = state.memory
        over = ~memory.done & (memory.position == jnp.sum(memory.counts, dtype=jnp.int32))
        judged = over & memory.whole & (memory.position > 0)
        following = jax.tree.map(lambda a, b: jnp.where(judged, a, b), end_batch(params, draws, t, state), memory)
        following = begin_batch(params, following, t)
        memory = jax.tree.map(lambda a, b: jnp.where(over, a, b), following, memory)
        kept = state.reports
        if not capacity:
            kept = jax.tree.map(lambda a, b: jnp.where(over, a, b), empty(params.actions.dtype), kept)
        return State(memory, kept)

    def diagnose(params, state):
        return {"active_arms": count(state.memory.active), "batches": state.memory.batch}

    def rest(params, state):
        memory = state.memory
        waits = memory.position >= jnp.sum(memory.counts, dtype=jnp.int32)
        return jnp.where(memory.done, memory.best, jnp.where(waits, SPAN_DONE, UNDECIDED))

    return Program(init, act, encode, update, close=close, diagnose=diagnose, hints=Hints(rest=rest, kept=("reports",)))

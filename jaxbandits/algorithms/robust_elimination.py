"""Robust arm elimination (Algorithm 1 of "Robust and private stochastic linear bandits", ICML 2023, arXiv 2304.11741).

This release plays model M1 without privacy noise or corruption: the filter then removes nothing and the batch estimate is
ordinary least squares. Axes: [K] arms, [d] features, [P] plays of a window, [B] batches.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.estimators.g_optimal import Basis, design_on, gram, leverages, regular_inverse, span_basis
from jaxbandits.numerics import argmax, count, fixed_sum, matvec, two_sum
from jaxbandits.protocol import Algorithm, Guarantee, Program, Report, Span
from jaxbandits.validation import array, choice, factory, integer, number


class Params(NamedTuple):
    """Radius of a batch: sqrt(spread max leverage + flat rank / m)."""

    actions: Any  # [K, d]
    sizes: Any  # [B - 1] m_i = T^(i / B)
    horizon: Any
    slack: Any
    spread: Any
    flat: Any
    clamp: Any  # largest |reward| taken at face value: larger ones would overflow sums


class State(NamedTuple):
    active: Any  # [K] bool
    basis: Basis  # of the active arms
    counts: Any  # [K] int32: the batch's plays, in arm order; all zero once exploration has stopped
    position: Any  # [] int32: plays of the batch done
    batch: Any  # [] int32: spans closed, less one; B - 1 while exploiting
    fitted: Any  # [] int32: batches that fitted before the horizon
    high: Any  # [K] rewards of the batch, compensated sums
    low: Any  # [K]
    finite: Any  # [] int32: finite reports of the batch
    best: Any  # [] int32: the arm to exploit


def block_arms(counts, position, slots: int):
    """Arm [P] of the plays position, position + 1, ... when arm a has a block of counts[a] plays in index order.

    Each block writes its arm at its first slot, a running maximum fills the rest: O(K + P), not O(K P).
    """
    start = jnp.cumsum(counts, dtype=jnp.int32) - counts - position
    begun = (counts > 0) & (start + counts > 0)
    arms = jnp.arange(counts.shape[0], dtype=jnp.int32)
    slot = jnp.where(begun, jnp.maximum(start, 0), slots)
    marked = jnp.zeros(slots, jnp.int32).at[slot].max(arms, mode="drop")
    return lax.cummax(marked)


def block_sums(values, arm, counts, position, used):
    """Sum of values [P] by arm [K], in a fixed order: runs of equal arms are added by doubling strides."""
    slots, stride = values.shape[0], 1
    while stride < slots:
        same = arm[stride:] == arm[:-stride]
        values = values.at[stride:].add(jnp.where(same, values[:-stride], 0))
        stride *= 2
    end = jnp.cumsum(counts, dtype=jnp.int32) - position
    last = jnp.minimum(end, used) - 1
    here = (counts > 0) & (last >= 0) & (end - counts < used)
    return jnp.where(here, values[jnp.clip(last, 0, slots - 1)], 0)


@cache
def program(num_arms: int, dim: int, num_batches: int) -> Program:
    explored = num_batches - 1

    def batch_size(params, state):
        return jnp.asarray(params.sizes)[jnp.clip(state.batch, 0, explored - 1)]

    def begin_batch(params, state, plays):
        """Design and counts of the next batch; none any more if it does not fit or the arms span nothing."""
        actions = params.actions
        basis = span_basis(actions, state.active)
        design = design_on(actions, state.active, basis, params.slack, 20 * basis.rank)
        size = batch_size(params, state)
        shade, floor = (1 - 2e-6, 1e-9) if actions.dtype == jnp.float32 else (1.0, 1e-9)
        counts = jnp.where(design.weights > 0, jnp.ceil(size * design.weights * shade - floor), 0).astype(jnp.int32)
        left = jnp.asarray(params.horizon).astype(jnp.int32) - plays
        going = (state.batch < explored) & (state.fitted == state.batch)  # every earlier batch fitted
        fits = going & (basis.rank > 0) & (jnp.sum(counts, dtype=jnp.int32) <= left)
        zero = jnp.zeros(num_arms, actions.dtype)
        return state._replace(
            basis=basis, counts=jnp.where(fits, counts, 0), position=jnp.int32(0), high=zero, low=zero, finite=jnp.int32(0),
        )  # fmt: skip

    def end_batch(params, state):
        """Least squares and elimination; nothing changes where no batch was played."""
        dtype, actions = state.high.dtype, params.actions
        inverse = regular_inverse(gram(actions, state.counts.astype(dtype)), state.basis)
        total = fixed_sum((state.high + state.low)[:, None] * actions, axis=0)
        # a report that is not finite is left out of the mean while n and M stay those of the whole batch
        plays = jnp.sum(state.counts, dtype=jnp.int32)
        share = plays.astype(dtype) / jnp.maximum(state.finite, 1).astype(dtype)
        value = matvec(actions, share * matvec(inverse, total))
        leverage = jnp.max(leverages(actions, inverse, state.active))
        radius = jnp.sqrt(
            params.spread * leverage + params.flat * state.basis.rank.astype(dtype) / batch_size(params, state)
        )
        value = jnp.where(state.active, value, -jnp.inf)
        kept = state.active & ((value >= jnp.max(value) - 2 * radius) | (state.finite == 0))
        played = plays > 0
        return state._replace(
            active=jnp.where(played, kept, state.active), best=jnp.where(played, argmax(value), state.best),
            batch=state.batch + 1, fitted=state.fitted + played.astype(jnp.int32),
        )  # fmt: skip

    def init(params, draws):
        zero, none = jnp.zeros(num_arms, draws.dtype), jnp.int32(0)
        basis = Basis(jnp.zeros((dim, dim), draws.dtype), jnp.zeros(dim, jnp.int32), none)
        active, counts = jnp.ones(num_arms, bool), jnp.zeros(num_arms, jnp.int32)
        return State(active, basis, counts, none, jnp.int32(-1), none, zero, zero, none, none)

    def act(params, state, draws, t, context):
        slots = t.shape[0]
        exploring = state.batch < explored
        arms = jnp.where(exploring, block_arms(state.counts, state.position, slots), state.best)
        left = jnp.sum(state.counts, dtype=jnp.int32) - state.position
        return arms, jnp.where(exploring, jnp.minimum(left, slots), slots), ()

    def encode(params, note, draws, t, context, action, reward, play):
        return Report(reward, action, play)

    def update(params, state, draws, t, note, message, used):
        good = message.present & jnp.isfinite(message.value)
        value = jnp.where(good, jnp.clip(message.value, -params.clamp, params.clamp), 0)
        # while exploiting the counts are zero, and so is every sum
        new = block_sums(value, message.arm, state.counts, state.position, used)
        high, low = two_sum(state.high, state.low, new)
        position, finite = (state.position + used).astype(jnp.int32), state.finite + count(good)
        return state._replace(high=high, low=low, position=position, finite=finite), ()

    def close(params, state, draws, t):
        return begin_batch(params, end_batch(params, state), t)

    def diagnose(params, state):
        return {"active_arms": count(state.active), "batches": state.fitted}

    def rest(params, state):
        return jnp.where(state.batch < explored, -1, state.best)

    return Program(init, act, encode, update, close=close, diagnose=diagnose, rest=rest)


def _slots(horizon: int) -> int:
    """Plays of a window: long windows waste slots where checkpoints cut them, short ones pay a loop step more often."""
    return min(128, max(8, 2 ** round(math.log2(max(horizon, 1) / 512))))


def _schedule(horizon: int, sizes, num_arms: int, dim: int) -> tuple:
    """One span a batch, closed by the elimination, then exploitation. The first span is empty: its close makes the first
    design (in `init` it would be compiled twice). A design has at most d + 20 d arms, each rounded up by less than a play.
    """
    slots = _slots(horizon)
    most = [min(horizon, math.ceil(size * (1 + 1e-4)) + min(num_arms, 21 * dim)) for size in sizes]
    batches = (Span(slots, -(-plays // slots), full=False, close=True) for plays in most)
    return (Span(slots, 0, close=True), *batches, Span(slots, -(-horizon // slots), full=False))


@factory
def robust_elimination(
    *, actions, horizon, num_batches, model="M1", epsilon=math.inf, corruption_bound=0.0, radius="practical",
    sampling_scale=None, design_slack=1.0, failure_prob=0.05, noise_scale=1.0,
) -> Algorithm:  # fmt: skip
    """Play batches of T^(i/B) plays along a G-optimal design, i = 1..B-1; after each, drop arms by least squares.

    An arm stays when its estimate is at least the best's minus twice the radius. A batch that does not fit ends exploration;
    the best estimate is then played to the horizon (arm 0 if no batch fitted). Counts are ceil(m_i weight). Reports that are
    not finite are left out, and then nothing is dropped if none is left; others are cut at max(1e6, 100 (1 + noise_scale)).

    actions: [K, d], K >= 2, not all zero. num_batches >= 2 [static], horizon^(1/num_batches) > 2. noise_scale >= 0: the
    rewards' sub-Gaussian scale. failure_prob in (0, 1). design_slack >= 0: the design stops at leverage (1 + slack) rank.
    radius "practical": sampling_scale noise_scale sqrt(2 L max leverage), L = log(2 K B / failure_prob), sampling_scale 0.5;
    "paper": sampling_scale sqrt(2 rank L' / m_i), L' = log(K T^2 / failure_prob), sampling_scale 1, for unit noise.
    model, epsilon, corruption_bound: "M1", infinity and 0 in this release. Raises ValueError outside these ranges.
    Diagnostics: `active_arms` and `batches` (that fitted). Source: specification of robust linear bandits, sections 2 to 4.

    >>> import jaxbandits as jb
    >>> jb.algorithms.robust_elimination(actions=[[1, 0], [0, 1]], horizon=1000, num_batches=3).params.sizes.round()
    array([ 10., 100.])
    """
    actions = array("actions", actions, 2)
    num_arms, dim = actions.shape
    if num_arms < 2:
        raise ValueError(f"actions has {num_arms} row: it needs at least two arms")
    if not actions.any():
        raise ValueError("actions is all zero: no reward depends on theta; give at least one non-zero feature vector")
    horizon = integer("horizon", horizon, 1)
    num_batches = integer("num_batches", num_batches, 2)
    ratio = horizon ** (1 / num_batches)
    if ratio <= 2:
        most = math.ceil(math.log2(horizon)) - 1
        raise ValueError(
            f"num_batches = {num_batches} makes horizon^(1/num_batches) = {ratio:.3g}; it must exceed 2: "
            + (f"use at most {most} batches" if most >= 2 else "use a horizon of at least 5")
        )
    if choice("model", model, ("M1", "M2")) != "M1":
        raise ValueError(f"model = {model!r} is not in this release, which supports model 'M1'")
    if number("epsilon", epsilon, 0.0, open_low=True, finite=False) != math.inf:
        raise ValueError(f"epsilon = {epsilon!r}: this release has no privacy noise here; leave epsilon infinite")
    if number("corruption_bound", corruption_bound, 0.0, 0.25, open_high=True) != 0:
        raise ValueError(f"corruption_bound = {corruption_bound!r}: this release has no filter; leave it at 0")
    choice("radius", radius, ("practical", "paper"))
    failure = number("failure_prob", failure_prob, 0.0, 1.0, open_low=True, open_high=True)
    noise = number("noise_scale", noise_scale, 0.0)
    if sampling_scale is None:
        sampling_scale = 0.5 if radius == "practical" else 1.0
    scale = number("sampling_scale", sampling_scale, 0.0)
    if radius == "practical":
        spread, flat = (scale * noise) ** 2 * 2 * math.log(2 * num_arms * num_batches / failure), 0.0
    else:
        spread, flat = 0.0, scale**2 * 2 * math.log(num_arms * horizon**2 / failure)
    sizes = np.array([horizon ** (i / num_batches) for i in range(1, num_batches)])
    clamp = max(1e6, 100 * (1 + noise))
    params = Params(actions, sizes, horizon, number("design_slack", design_slack, 0.0), spread, flat, clamp)
    schedule = _schedule(horizon, sizes, num_arms, dim)
    version = ("robust_elimination", 1, (num_arms, dim, num_batches))
    return Algorithm(program(num_arms, dim, num_batches), schedule, params, Guarantee(), version, {})

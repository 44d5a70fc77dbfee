"""Robust arm elimination (Algorithms 1 and 2 of "Robust and private stochastic linear bandits", ICML 2023, arXiv 2304.11741).

Axes: [K] arms, [d] features, [P] plays of a window, [B] batches, [n] plays of the largest batch.
Draws: `encode/noise`, one Laplace a report at its play, in M2 at the last play of its arm; `close/filter`, one uniform a removal
at the batch's last play, position the removal's number from 0.
"""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear import arguments, batch_reports
from jaxbandits.algorithms.linear.batch_reports import block_arms, ends, taken, whole_blocks
from jaxbandits.mechanisms.composition import guarantee, laplace_event, view_message
from jaxbandits.numerics import argmax, cond_any, count, matvec, rounded
from jaxbandits.protocol import SPAN_DONE, UNDECIDED, Algorithm, Hints, Program, Report, Span
from jaxbandits.validation import choice, factory, integer, number


class Params(NamedTuple):
    actions: Any  # [K, d]
    sizes: Any  # [B - 1] m_i = T^(i / B)
    horizon: Any
    slack: Any
    weight_floor: Any
    noise_scale: Any
    laplace_scale: Any  # b = 2 / epsilon
    log_term: Any  # L = log(2 K B / failure_prob)
    paper_log: Any  # log(K T^2 / failure_prob)
    failure_prob: Any
    paper: Any  # bool: which radius
    clean: Any  # bool: which lambda
    presieve: Any  # bool
    sampling_scale: Any
    corruption_bound: Any
    corruption_scale: Any
    bias_scale: Any
    clamp: Any  # largest |report| taken at face value: the square of a larger one would overflow sums
    mechanism_scale: Any


class State(NamedTuple):
    """`threshold` and `mean_square` are what an adversary that hides from the filter needs to know."""

    active: Any  # [K] bool
    counts: Any  # [K] int32: the batch's plays, in arm order; all zero once exploration has stopped
    position: Any  # [] int32: plays of the batch done
    batch: Any  # [] int32: spans closed, less one; B - 1 while exploiting
    fitted: Any  # [] int32: batches that fitted before the horizon
    whiten: Any  # [d, d] L^-1 of L L' = M / n
    radius: Any  # [] gamma
    threshold: (
        Any  # [] 4 n lambda, the filter stops below this eigenvalue of the whitened reports' covariance; () without one
    )
    mean_square: Any  # [] rho^2
    reports: Any  # M1: [room] in play order, or sums where nothing looks at single reports; M2: [K]
    best: Any  # [] int32: the arm to exploit
    removals: Any  # [] int32
    nonfinite: Any  # [] int32: reports that were not finite


@cache
def program(
    num_arms: int, dim: int, num_batches: int, model: str, largest: int, slots: int, filtered: bool, refit: bool
) -> Program:
    """largest: plays of the largest batch, whose reports are kept (M1), 0: sums are enough. slots: of a window (M1)."""
    explored, summed = num_batches - 1, model == "M1" and largest == 0

    def begin_batch(params, state, plays):
        """The next batch; no counts any more if it does not fit or the arms span nothing."""
        size = jnp.asarray(params.sizes)[jnp.clip(state.batch, 0, explored - 1)]
        batch = batch_reports.planned(params, state.active, size, model)
        left = jnp.asarray(params.horizon).astype(jnp.int32) - plays
        going = (state.batch < explored) & (state.fitted == state.batch)  # every earlier batch fitted
        fits = going & (batch.rank > 0) & (ends(batch.pulls, left + 1)[-1] <= left)
        return state._replace(
            counts=jnp.where(fits, batch.pulls, 0), position=jnp.int32(0), whiten=batch.whiten, radius=batch.radius,
            threshold=4 * batch.bound if filtered else (), mean_square=batch.mean_square,
            reports=batch_reports.no_sums(num_arms, batch.radius.dtype) if summed else state.reports,
        )  # fmt: skip

    def estimated(params, state, draws, t):
        """The estimate from a batch that was played."""
        if summed:
            return batch_reports.least_squares(state.reports, state.counts, state.whiten, params.actions)
        if model == "M2":
            reports, counts = batch_reports.one_a_block(state.reports, state.counts), jnp.minimum(state.counts, 1)
        else:
            reports = batch_reports.in_blocks(state.reports, state.counts, largest, min(num_arms, 21 * dim))
            counts = state.counts
        inside = batch_reports.sieved(reports, batch_reports.sieve_limit(params, state.counts, model))
        threshold = state.threshold if filtered else None
        return batch_reports.estimate(reports, inside, counts, state.whiten, params.actions, threshold, draws, t, refit)

    def end_batch(params, state, draws, t):
        """The filter's estimate and elimination; nothing changes where no batch was played."""
        found = estimated(params, state, draws, t)
        value = jnp.where(state.active, matvec(params.actions, found.theta), -jnp.inf)
        kept = state.active & ((value >= jnp.max(value) - 2 * state.radius) | ~found.any_left)
        played = jnp.any(state.counts > 0)
        return state._replace(
            active=jnp.where(played, kept, state.active), best=jnp.where(played, argmax(value), state.best),
            batch=state.batch + 1, fitted=state.fitted + played.astype(jnp.int32),
            removals=state.removals + jnp.where(played, found.removed, 0),
            nonfinite=state.nonfinite + jnp.where(played, found.lost, 0),
        )  # fmt: skip

    def init(params, draws):
        zero, none = jnp.zeros((), draws.dtype), jnp.int32(0)
        if summed:
            reports: Any = batch_reports.no_sums(num_arms, draws.dtype)
        else:
            reports = jnp.zeros(num_arms if model == "M2" else batch_reports.room(largest, slots), draws.dtype)
        active, counts = jnp.ones(num_arms, bool), jnp.zeros(num_arms, jnp.int32)
        return State(
            active, counts, none, jnp.int32(-1), none, jnp.zeros((dim, dim), draws.dtype), zero, zero if filtered else (), zero,
            reports, none, none, none,
        )  # fmt: skip

    def act(params, state, draws, t, context):
        offered = t.shape[0]
        exploring = state.batch < explored
        arms = jnp.where(exploring, block_arms(state.counts, state.position, offered), state.best)
        if model == "M2":  # a client answers once, after its last play: no arm's plays are cut
            left = whole_blocks(state.counts, state.position, offered)[1]
        else:
            left = jnp.minimum(jnp.sum(state.counts, dtype=jnp.int32) - state.position, offered)
        return arms, jnp.where(exploring, left, offered), (state.counts, state.position)

    def encode(params, note, draws, t, context, action, reward, play):
        scale, stream = params.mechanism_scale * params.laplace_scale, draws.child("noise")
        if model == "M1":
            return Report(cond_any(scale > 0, noised, reward, scale, stream, t), action, play)
        counts, position = note
        mean, own, last, there = batch_reports.answers(counts, position, t, reward, action, play)
        value = cond_any(scale > 0, noised, mean, scale / own, stream, last)
        return Report(value, jnp.arange(num_arms, dtype=jnp.int32), there)

    def noised(value, scale, draws, t):
        return value + rounded(scale * draws.laplace(t), t)

    def update(params, state, draws, t, note, message, used):
        position = (state.position + used).astype(jnp.int32)
        if model == "M2":
            reports: Any = jnp.where(message.present, taken(message.value, params.clamp), state.reports)
        elif not summed:  # what lies behind the plays made is overwritten by the next window, or never read
            reports = lax.dynamic_update_slice(state.reports, taken(message.value, params.clamp), (state.position,))
        else:
            reports = batch_reports.added(state.reports, message, state.counts, state.position, used, params.clamp)
        return state._replace(reports=reports, position=position), ()

    def close(params, state, draws, t):
        return begin_batch(params, end_batch(params, state, draws, t), t)

    def diagnose(params, state):
        return {
            "active_arms": count(state.active), "batches": state.fitted, "removals": state.removals, "nonfinite_reports": state.nonfinite
        }  # fmt: skip

    def rest(params, state):
        waits = state.position >= jnp.sum(state.counts, dtype=jnp.int32)
        return jnp.where(state.batch < explored, jnp.where(waits, SPAN_DONE, UNDECIDED), state.best)

    return Program(init, act, encode, update, close=close, diagnose=diagnose, hints=Hints(rest=rest, kept=("reports",)))


def _schedule(horizon: int, sizes, num_arms: int, dim: int, model: str, weight_floor: float) -> tuple:
    """One span a batch, closed by the elimination, then exploitation. The first span is empty: its close makes the first
    design (in `init` it would be compiled twice). Each arm of a design is rounded up by less than a play.

    M2 answers at the end of an arm's plays, at most m of them: a window of m plays takes whole arms, two in a row more than m.
    """
    slots, support = arguments.slots(horizon), arguments.support(num_arms, dim)
    batches = []
    for size in sizes:
        most = math.ceil(size * arguments.SLACK) + support
        if model == "M1":
            batches.append(Span(slots, -(-min(horizon, most) // slots), full=False, close=True))
        else:
            offered = min(horizon, math.ceil(size * arguments.SLACK) + 1)
            most = min(horizon, math.ceil(most + size * weight_floor * (support - 1)))
            batches.append(Span(offered, 2 * -(-most // offered) + 1, full=False, whole=True, close=True))
    return (Span(slots, 0, close=True), *batches, Span(slots, -(-horizon // slots), full=False))


def _largest(horizon: int, sizes, num_arms: int, dim: int) -> int:
    """Plays of the largest batch at most, rounded up to three bits so that few shapes are compiled."""
    most = min(horizon, math.ceil(sizes[-1] * arguments.SLACK) + arguments.support(num_arms, dim))
    unit = 2 ** max(most.bit_length() - 3, 0)
    return -(-most // unit) * unit


def _events(model, params):
    scale = params.laplace_scale * params.mechanism_scale
    # in M2 both sensitivity and scale are divided by the plays behind a report
    what = "reward in [-1, 1] of one play" if model == "M1" else "n times the mean of an arm's n rewards in [-1, 1]"
    return (laplace_event(what, 2.0, scale),)


@factory
def robust_elimination(
    *, actions, horizon, num_batches, model="M1", epsilon=math.inf, corruption_bound=0.0, variance_bound="tight",
    radius="practical", sampling_scale=None, corruption_scale=None, bias_scale=1.0, weight_floor=0.1, design_slack=1.0,
    presieve=False, refit=False, failure_prob=0.05, noise_scale=1.0,
) -> Algorithm:  # fmt: skip
    """Play batches of m = T^(i/B) plays along a G-optimal design, i = 1..B-1; after each, estimate theta from the reports that the
    spectral filter leaves and drop arms whose estimate is below the best's minus twice the radius gamma.

    model "M1": a client a reward, report reward + Lap(2 / epsilon), counts ceil(m weight). "M2": a client an action, report the mean of
    its n_a rewards + Lap(2 / (n_a epsilon)), counts ceil(m max(weight, weight_floor)); with about d reports a batch each one removed costs a
    direction: fragile under corruption. epsilon in (0, inf]: local privacy for rewards in [-1, 1], as
    `linear_arms(noise="rademacher")` pays; Gaussian rewards have no finite epsilon and a run warns (they are not clipped: it would
    bend their means). One raw reward is protected, not a client's whole history.
    A batch that does not fit ends exploration; the best estimate is then played to the horizon (arm 0 if no batch fitted).
    Reports that are not finite are left out, and nothing is dropped if none is left; others are cut at max(1e6, 100 (1 + noise_scale + b)),
    b = 2 / epsilon.

    actions: [K, d], K >= 2, not all zero. num_batches B >= 2 [static], horizon^(1/B) > 2. corruption_bound: the share alpha of corrupted
    reports that is believed in, in [0, 1/4): enters the radius only. variance_bound: lambda of the filter, "tight" rho^2 / n, "clean"
    mu rho^2, "observed" the printed mu mean(r^2), which removes nothing whatever the data: least squares. radius: "practical", a
    Bernstein half-width, or "paper", with which nothing is dropped beyond alpha of about 1e-3 (`theory.linear.gamma_practical`,
    `gamma_paper`); sampling_scale, corruption_scale (None: 0.5, or 1 with "paper") and bias_scale are their constants, >= 0.
    weight_floor in [0, 1] (positive for M2 with "paper"). design_slack >= 0: the design stops at leverage (1 + slack) rank. presieve: first
    drop |report| > 1 + noise_scale sqrt(2 h / n_a) + b h / n_a, h = log(2 n / failure_prob), n_a = 1 in M1. refit [static]: least squares on
    what is left. failure_prob in (0, 1). noise_scale in [0, 1e12]: the rewards' sub-Gaussian scale. epsilon below 2e-12 is refused too. Raises ValueError outside these ranges.
    Diagnostics: `active_arms`, `batches` (that fitted), `removals` (by the filter), `nonfinite_reports`.
    Memory: M1 keeps a batch's reports, 4 bytes each, unless variance_bound is "observed" without presieve and refit.
    Source: specification of robust linear bandits, sections 1 to 5 and 10 (Algorithms 1 and 2).

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.robust_elimination(actions=[[1, 0], [0, 1]], horizon=1000, num_batches=3, epsilon=0.5)
    >>> made.params.sizes.round().tolist(), made.guarantee.spend(made.params)
    ([10.0, 100.0], (0.5, 0.0))
    """
    actions, horizon = arguments.checked_actions(actions), integer("horizon", horizon, 1)
    num_arms, dim = actions.shape
    sizes, num_batches = arguments.batch_sizes(horizon, num_batches), int(num_batches)
    choice("model", model, ("M1", "M2"))
    choice("variance_bound", variance_bound, ("tight", "clean", "observed"))
    paper = choice("radius", radius, ("practical", "paper")) == "paper"
    for name, flag in (("presieve", presieve), ("refit", refit)):
        if not isinstance(flag, bool):
            raise ValueError(f"{name} = {flag!r} must be True or False")
    failure, (noise, scale) = arguments.probability("failure_prob", failure_prob), arguments.noise(noise_scale, epsilon)
    remedy = "with model='M2' the paper's radius divides by it"
    floor = number("weight_floor", weight_floor, 0.0, 1.0, open_low=paper and model == "M2", remedy=remedy)
    sampling_scale, corruption_scale = (
        number(name, (1.0 if paper else 0.5) if x is None else x, 0.0)
        for name, x in (("sampling_scale", sampling_scale), ("corruption_scale", corruption_scale))
    )
    remedy = "the filter cannot tell more from the clean"
    alpha = number("corruption_bound", corruption_bound, 0.0, 0.25, open_high=True, remedy=remedy)
    params = Params(
        actions, sizes, horizon, number("design_slack", design_slack, 0.0), floor, noise, scale,
        math.log(2 * num_arms * num_batches / failure), math.log(num_arms * horizon**2 / failure), failure, paper,
        variance_bound == "clean", presieve, sampling_scale, alpha, corruption_scale, number("bias_scale", bias_scale, 0.0),
        arguments.clamp(noise, scale), 1.0,
    )  # fmt: skip
    filtered = variance_bound != "observed"
    kept = model == "M1" and (filtered or presieve or refit)
    storage = (_largest(horizon, sizes, num_arms, dim), arguments.slots(horizon)) if kept else (0, 0)
    static = (num_arms, dim, num_batches, model, *storage, filtered, refit)
    claim = guarantee("local", "reward", partial(_events, model), view_message, bound=1.0)
    schedule = _schedule(horizon, sizes, num_arms, dim, model, floor)
    return Algorithm(
        program(*static),
        schedule,
        params,
        claim,
        ("robust_elimination", 2, static),
        {},
        rewards=arguments.readable(scale),
    )

"""Arm elimination in batches of a G-optimal design, each arm's plays in one block: what robust elimination and its
comparators share.

An algorithm is a few `BatchRules`. What is here: the design and the counts of a batch (`begin_batch`), its reports
(private ones are noised at the client; of single plays, or of an arm's plays together), the span of a batch, and
elimination at the batch's end (`end_batch`), in `close`, for every lane at once.

There are two ways to end. Either batches are played up to a given number, one that does not fit before the
horizon is not begun, and the best estimate is played to the horizon. Or batches are played until the horizon;
the last one is cut short in index order and not estimated (`truncates`).

Axes: [K] arms, [d] features, [P] plays of a window, [n] reports of a batch.
Draws: `encode/noise` (one Laplace a report, at its last play); the rules' own under `close`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.linear import batch_reports, formulas
from jaxbandits.algorithms.linear.batch_reports import block_arms, clamp_reports, whole_blocks
from jaxbandits.estimators.g_optimal import Basis, Design, design_on, gram, regular_inverse, span_basis
from jaxbandits.numerics import argmax, cond_any, count, fixed_sum, matvec, rounded, tree_where
from jaxbandits.protocol import SPAN_DONE, UNDECIDED, Hints, Program, Report
from jaxbandits.typing import Array, Bool, Float, Int


class Params(NamedTuple):
    actions: Any  # [K, d]
    horizon: Any
    design_slack: Any
    batches: Any  # batches that are estimated at most
    clamp: Any  # the largest |report| taken at face value: larger ones would overflow sums
    noise_scale: Any  # of the privacy noise
    mechanism_scale: Any
    own: Any  # the rules' numbers


class Batch(NamedTuple):
    """What the rules see of a batch that was played whole."""

    # from 0
    number: Int[Array, ""]
    active: Bool[Array, " K"]
    basis: Basis
    counts: Int[Array, " K"]
    # the sum of counts
    plays: Int[Array, ""]
    # float [d, d], of sum_a counts_a a a', on the span of the active arms; () where the rules have a plan
    inverse: Any
    # of finite reports, by arm: float [K]; () where reports are stored
    sums: Any
    # int32, how many reports are finite; () where reports are stored
    finite: Any
    # float [n] in order of play, cut at the clamp, MISSING for one that is not finite (it sorts last);
    # or of arms, float [K]; () where sums are stored
    reports: Any
    # what the rules planned
    plan: Any = ()


# theta, slack, sound, and counts
Judgement = tuple[Float[Array, " d"], Float[Array, ""], Bool[Array, ""], *tuple[Int[Array, ""], ...]]


class BatchRules(NamedTuple):
    """What sets one algorithm apart."""

    # params, memory, design -> [K] plays of the coming batch before they are rounded up, for arms in the design
    counts: Callable[[Any, Any, Design], Float[Array, " K"]]
    # params, draws, t, batch -> theta [d], slack [], sound [], and a number [] for each of `counted`: where sound, arms
    # further than slack below the best go
    judge: Callable[[Any, Any, Any, Batch], Judgement]
    # clients add Laplace noise
    private: bool = False
    # the batch that the horizon cuts short is played
    truncates: bool = False
    # batches go on where one arm is left
    alone: bool = False
    # a client sends the mean of an arm's rewards, once, after the arm's last play; else each reward is sent
    answers: bool = False
    # names of diagnostics: sums over batches of what the judge says
    counted: tuple[str, ...] = ()
    # params, memory, counts [K] -> what is worked out before the batch is played and kept until its end
    plan: Callable[[Any, Any, Int[Array, " K"]], Any] = lambda params, memory, counts: ()
    # d, dtype -> the plan before the first batch
    no_plan: Callable[[int, Any], Any] = lambda dim, dtype: ()


class Memory(NamedTuple):
    active: Bool[Array, " K"]
    basis: Basis
    counts: Int[Array, " K"]  # the batch's plays, in arm order
    whole: Bool[Array, ""]  # the batch fits before the horizon
    position: Int[Array, ""]  # plays of the batch done
    batch: Int[Array, ""]  # batches estimated
    best: Int[Array, ""]  # the arm of the largest estimate of the last batch
    done: Bool[Array, ""]  # `best` is played to the horizon
    estimate: Any  # theta [d] of the last batch, NaN before one; () where clients add the noise
    counted: tuple[Int[Array, ""], ...]
    plan: Any


class State(NamedTuple):
    memory: Memory
    reports: Any  # Sums, or float [n]: the reports of plays, or float [K]: those of arms

    @property
    def batch(self) -> Int[Array, ""]:
        """Batches estimated: what attacks on one batch look at."""
        return self.memory.batch

    @property
    def threshold(self) -> Any:
        """Of the rules' filter, () where they have none: what attacks look at that hide from it."""
        return getattr(self.memory.plan, "threshold", ())

    @property
    def mean_square(self) -> Any:
        """The bound on a clean report's mean square that the filter's threshold is about."""
        return self.memory.plan.mean_square


# ---- what the rules use


def counts_by_size(params: Params, memory: Any, design: Design) -> Float[Array, " K"]:
    """Plays of the coming batch where batches have sizes of their own, `own.sizes` [B]."""
    return jnp.asarray(params.own.sizes)[memory.batch] * design.weights


def solution(params: Params, batch: Batch, sums: Float[Array, " K"]) -> Float[Array, " d"]:
    """M^-1 sum_a sums_a a: least squares from sums of reports by arm."""
    return matvec(batch.inverse, fixed_sum(sums[:, None] * params.actions, axis=0))


def least_squares(params: Params, batch: Batch) -> Float[Array, " d"]:
    """Ordinary least squares theta. Reports that are not finite are left out; n and M stay those of the whole batch."""
    share = batch.plays.astype(batch.sums.dtype) / jnp.maximum(batch.finite, 1).astype(batch.sums.dtype)
    return share * solution(params, batch, batch.sums)


class Radius(NamedTuple):
    """What `formulas.gamma_practical` takes beside the batch: the radius of robust elimination."""

    log_term: Any  # L = log(2 K B / failure_prob)
    noise_scale: Any
    laplace_scale: Any
    sampling_scale: Any
    corruption_bound: Any
    corruption_scale: Any
    bias_scale: Any


def gamma(params: Params, radius: Radius, batch: Batch) -> Float[Array, ""]:
    """The practical radius of a batch."""
    square = formulas.mean_square(batch.counts, radius.noise_scale, radius.laplace_scale)
    arms = params.actions, batch.active, batch.inverse, batch.counts
    return formulas.gamma_practical(*arms, square=square, **radius._asdict())


# ---- from batch to batch


def whole_counts(
    params: Params, wanted: Float[Array, " K"], design: Design, plays: Int[Array, ""]
) -> tuple[Int[Array, " K"], Int[Array, ""]]:
    """Plays of each arm and how many plays are left before the horizon, after `plays` plays.

    What is wanted is rounded up, to at least one play of an arm of the design, and to left + 1 where it does not fit.
    """
    shade, floor = (1 - 2e-6, 1e-9) if params.actions.dtype == jnp.float32 else (1.0, 1e-9)
    wanted = jnp.ceil(wanted * shade - floor)
    left = jnp.asarray(params.horizon).astype(jnp.int32) - plays
    wanted = jnp.where(design.weights > 0, jnp.maximum(wanted, 1), 0)
    return jnp.where(wanted <= left.astype(wanted.dtype), wanted.astype(jnp.int32), left + 1), left


def begin_batch(rules: BatchRules, params: Params, memory: Memory, plays: Int[Array, ""]) -> Memory:
    """Design and counts of the next batch, after `plays` plays; none where no further batch is to be played."""
    actions = params.actions
    basis = span_basis(actions, memory.active)
    design = design_on(actions, memory.active, basis, params.design_slack, 20 * basis.rank)
    memory = memory._replace(basis=basis)
    wanted, left = whole_counts(params, rules.counts(params, memory, design), design, plays)
    end = batch_reports.block_ends(wanted, left + 1)
    fits = end[-1] <= left
    end = jnp.minimum(end, left)
    counts = jnp.diff(end, prepend=jnp.zeros_like(end[:1]))
    done = memory.done | (basis.rank == 0) | (False if rules.alone else count(memory.active) == 1)
    done = done | (memory.batch >= params.batches) | (False if rules.truncates else ~fits)
    plan = rules.plan(params, memory, counts)
    return memory._replace(counts=jnp.where(done, 0, counts), whole=fits, position=jnp.int32(0), done=done, plan=plan)


def view_batch(params: Params, state: State) -> Batch:
    """What the rules see of the batch that was just played."""
    memory = state.memory
    inverse: Any = ()
    if not memory.plan:
        inverse = regular_inverse(gram(params.actions, memory.counts.astype(params.actions.dtype)), memory.basis)
    plays = jnp.sum(memory.counts, dtype=jnp.int32)
    if isinstance(state.reports, batch_reports.ArmSums):
        sums, finite, reports = state.reports.high + state.reports.low, state.reports.finite, ()
    else:
        sums, finite, reports = (), (), state.reports
    return Batch(
        number=memory.batch,
        active=memory.active,
        basis=memory.basis,
        counts=memory.counts,
        plays=plays,
        inverse=inverse,
        sums=sums,
        finite=finite,
        reports=reports,
        plan=memory.plan,
    )


def end_batch(rules: BatchRules, params: Params, draws: Any, t: Any, memory: Memory, batch: Batch) -> Memory:
    """Estimate and elimination."""
    theta, slack, sound, *counted = rules.judge(params, draws, t, batch)
    value = jnp.where(memory.active, matvec(params.actions, jnp.where(sound, theta, 0)), -jnp.inf)
    stays = memory.active & ((value >= jnp.max(value) - slack) | ~sound)
    estimate = () if rules.private else theta
    best, totals = argmax(value), tuple(a + b for a, b in zip(memory.counted, counted, strict=True))
    return memory._replace(active=stays, best=best, batch=memory.batch + 1, estimate=estimate, counted=totals)


def add_laplace_noise(value: Float[Array, " P"], scale: Any, draws: Any, t: Int[Array, " P"]) -> Float[Array, " P"]:
    """Reports with Laplace noise, drawn at the clients."""
    return value + rounded(scale * draws.laplace(t), t)


# ---- the seven functions


@cache
def program(num_arms: int, dim: int, capacity: int, rules: BatchRules) -> Program:
    """capacity: how many reports are stored, with `answers` one an arm; 0: their sums by arm are."""

    def no_reports(dtype):
        return jnp.zeros(capacity, dtype) if capacity else batch_reports.no_sums(num_arms, dtype)

    def init(params, draws):
        zero = jnp.int32(0)
        basis = Basis(jnp.zeros((dim, dim), draws.dtype), jnp.zeros(dim, jnp.int32), zero)
        counts, false = jnp.zeros(num_arms, jnp.int32), jnp.zeros((), bool)
        estimate = () if rules.private else jnp.full(dim, jnp.nan, draws.dtype)
        memory = Memory(
            active=jnp.ones(num_arms, bool),
            basis=basis,
            counts=counts,
            whole=false,
            position=zero,
            batch=zero,
            best=zero,
            done=false,
            estimate=estimate,
            counted=(zero,) * len(rules.counted),
            plan=rules.no_plan(dim, draws.dtype),
        )
        return State(memory, no_reports(draws.dtype))

    def act(params, state, draws, t, context):
        memory, slots = state.memory, t.shape[0]
        arms = jnp.where(memory.done, memory.best, block_arms(memory.counts, memory.position, slots))
        if rules.answers:  # a client answers after its last play: no arm's plays are cut
            left, note = whole_blocks(memory.counts, memory.position, slots)[1], (memory.counts, memory.position)
        else:
            left, note = jnp.minimum(jnp.sum(memory.counts, dtype=jnp.int32) - memory.position, slots), ()
        return arms, jnp.where(memory.done, slots, left), note

    def encode(params, note, draws, t, context, action, reward, play):
        if not rules.private:
            return Report(reward, action, play)
        scale, stream = params.mechanism_scale * params.noise_scale, draws.child("noise")
        if not rules.answers:
            return Report(cond_any(scale > 0, add_laplace_noise, reward, scale, stream, t), action, play)
        counts, position = note
        mean, own, last, there = batch_reports.answers(counts, position, t, reward, action, play)
        value = cond_any(scale > 0, add_laplace_noise, mean, scale / own, stream, last)
        return Report(value, jnp.arange(num_arms, dtype=jnp.int32), there)

    def update(params, state, draws, t, note, message, used):
        memory, reports = state.memory, state.reports
        if rules.answers:
            reports = jnp.where(message.present, clamp_reports(message.value, params.clamp), reports)
        elif capacity:  # what lies behind the plays made is overwritten by the next window, or never read
            reports = lax.dynamic_update_slice(reports, clamp_reports(message.value, params.clamp), (memory.position,))
        else:
            reports = batch_reports.add_reports(reports, message, memory.counts, memory.position, used, params.clamp)
        moved = jnp.where(memory.done, memory.position, memory.position + used).astype(jnp.int32)
        # what the last `close` released, once: everything that is played later follows from it
        released = () if rules.private else jnp.where(memory.position == 0, memory.estimate, jnp.nan)
        return State(memory._replace(position=moved), reports), released

    def close(params, state, draws, t):
        memory = state.memory
        over = ~memory.done & (memory.position == jnp.sum(memory.counts, dtype=jnp.int32))
        judged = over & memory.whole & (memory.position > 0)
        batch = view_batch(params, state)
        following = tree_where(judged, end_batch(rules, params, draws, t, memory, batch), memory)
        following = begin_batch(rules, params, following, t)
        memory = tree_where(over, following, memory)
        if capacity:
            return State(memory, state.reports)
        return State(memory, tree_where(over, no_reports(params.actions.dtype), state.reports))

    def diagnose(params, state):
        memory = state.memory
        counted = dict(zip(rules.counted, memory.counted, strict=True))
        return {"active_arms": count(memory.active), "batches": memory.batch, **counted}

    def rest(params, state):
        memory = state.memory
        waits = memory.position >= jnp.sum(memory.counts, dtype=jnp.int32)
        return jnp.where(memory.done, memory.best, jnp.where(waits, SPAN_DONE, UNDECIDED))

    return Program(init, act, encode, update, close=close, diagnose=diagnose, hints=Hints(rest=rest, kept=("reports",)))

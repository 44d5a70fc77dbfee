"""Arm elimination in batches of a G-optimal design, each arm's plays made in one block: what the linear comparators share.

An algorithm is a few `Rules`. What is here: the design and the counts of a batch, its reports (private ones are noised at the
client), the span of a batch, and elimination at the batch's end, in `close`, for every lane at once.

Two ways to end: batches up to a given number, of which one that does not fit is not begun and the best estimate is played to
the horizon; or batches until the horizon, the last one truncated in index order and not estimated (`truncates`).
Axes: [K] arms, [d] features, [P] plays of a window, [n] reports of a batch.
Draws: `encode/noise` (one Laplace a play); the rules' own under `close`.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.algorithms.robust_elimination import block_arms, block_sums
from jaxbandits.estimators.g_optimal import Basis, design_on, gram, regular_inverse, span_basis
from jaxbandits.numerics import argmax, count, dot, fixed_sum, matvec, rounded, two_sum
from jaxbandits.protocol import Algorithm, Guarantee, Program, Report, Span
from jaxbandits.validation import array, integer, number

LONGEST = 2**16  # reports of a batch that a lane may keep
ROWS = 32  # of a table by batch, so that horizons share a program: doubling batches exceed any horizon by then


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
    reports: (
        Any  # [n] in order of play, cut at the clamp, `lost(dtype)` for one that is not finite; () where sums are kept
    )


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


class Sums(NamedTuple):
    high: Any  # [K] compensated
    low: Any
    finite: Any  # [] int32


class State(NamedTuple):
    memory: Memory
    reports: Any  # Sums, or [n] kept reports


def lost(dtype):
    """Stands for a report that was not finite: larger than any clamp, so that it sorts last."""
    return jnp.finfo(dtype).max


def solution(params, batch: Batch, sums):
    """M^-1 sum_a sums_a a [d]: least squares from sums [K] of reports by arm."""
    return matvec(batch.inverse, fixed_sum(sums[:, None] * params.actions, axis=0))


def least_squares(params, batch: Batch):
    """Ordinary least squares theta [d]. Reports that are not finite are left out; n and M stay those of the whole batch."""
    share = batch.plays.astype(batch.sums.dtype) / jnp.maximum(batch.finite, 1).astype(batch.sums.dtype)
    return share * solution(params, batch, batch.sums)


class Influence(NamedTuple):
    """Of w_a(x) = <x, M^-1 a> over the arms a in the batch, for every arm x; all [K]."""

    variance: Any  # sum_a counts_a w_a^2 = x' M^-1 x
    largest: Any  # max_a |w_a|
    squares: Any  # sum_a w_a^2


def influence(params, batch: Batch) -> Influence:
    """How single reports and single arms move the estimate of every arm; zero for arms that are not active."""

    def of(x):
        h = matvec(batch.inverse, x)
        w = jnp.where(batch.counts > 0, dot(params.actions, h), 0)
        return Influence(dot(x, h), jnp.max(jnp.abs(w)), fixed_sum(w * w))

    found = lax.map(of, params.actions)
    return Influence(*(jnp.where(batch.active, x, 0) for x in found))


class Radius(NamedTuple):
    """gamma = max_x [sqrt(spread x' M^-1 x) + tail max_a |w_a(x)|] + flat: robust elimination's practical radius under M1."""

    spread: Any
    tail: Any
    flat: Any


def practical_radius(
    num_arms: int, num_batches: int, b: float, *, corruption_bound, sampling_scale, corruption_scale, bias_scale,
    failure_prob, noise_scale,
) -> Radius:  # fmt: skip
    """Section 4's constants: rho^2 = 1 + s^2 + 2 b^2, L = log(2 K B / failure_prob), flat = c sqrt(rho^2 alpha) + c_lin alpha."""
    log_term = math.log(2 * num_arms * num_batches / probability("failure_prob", failure_prob))
    scale, alpha = number("sampling_scale", sampling_scale, 0.0), float(corruption_bound)
    variance = number("noise_scale", noise_scale, 0.0) ** 2 + 2 * b**2
    flat = number("corruption_scale", corruption_scale, 0.0) * math.sqrt((1 + variance) * alpha)
    flat += number("bias_scale", bias_scale, 0.0) * alpha
    return Radius(scale**2 * 2 * log_term * variance, scale * b * log_term, flat)


def radius_of(params, radius: Radius, batch: Batch):
    """gamma [] of a batch."""
    reach = influence(params, batch)
    return jnp.max(jnp.sqrt(radius.spread * reach.variance) + radius.tail * reach.largest) + radius.flat


def run_sums(values, run):
    """Sums of values [n] along runs of equal `run` [n], in a fixed order (doubling strides): each run's is at its last place."""
    stride = 1
    while stride < values.shape[0]:
        same = run[stride:] == run[:-stride]
        values = values.at[stride:].add(jnp.where(same, values[:-stride], 0))
        stride *= 2
    return values


def corruption_share(corruption_bound) -> float:
    """alpha in [0, 1/4)."""
    return number("corruption_bound", corruption_bound, 0.0, 0.25, open_high=True)


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
        # sums saturate just above what is left: 32 bits hold them, however long the batch would be
        ends = lax.associative_scan(lambda a, b: jnp.minimum(a + b, left + 1), wanted)
        fits = ends[-1] <= left
        ends = jnp.minimum(ends, left)
        counts = jnp.diff(ends, prepend=jnp.zeros_like(ends[:1]))
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
        return memory._replace(active=stays, best=argmax(value), batch=memory.batch + 1)

    def init(params, draws):
        none = jnp.int32(0)
        basis = Basis(jnp.zeros((dim, dim), draws.dtype), jnp.zeros(dim, jnp.int32), none)
        counts, false = jnp.zeros(num_arms, jnp.int32), jnp.zeros((), bool)
        memory = Memory(jnp.ones(num_arms, bool), basis, counts, false, none, none, none, false)
        return State(memory, empty(draws.dtype))

    def empty(dtype):
        zero = jnp.zeros(capacity or num_arms, dtype)
        return zero if capacity else Sums(zero, zero, jnp.int32(0))

    def act(params, state, draws, t, context):
        memory, slots = state.memory, t.shape[0]
        arms = jnp.where(memory.done, memory.best, block_arms(memory.counts, memory.position, slots))
        left = jnp.sum(memory.counts, dtype=jnp.int32) - memory.position
        return arms, jnp.where(memory.done, slots, jnp.minimum(left, slots)), ()

    def encode(params, note, draws, t, context, action, reward, play):
        if not rules.private:
            return Report(reward, action, play)
        noise = params.mechanism_scale * params.noise_scale * rounded(draws.child("noise").laplace(t), t)
        return Report(reward + rounded(noise, t), action, play)

    def update(params, state, draws, t, note, message, used):
        memory, kept = state.memory, state.reports
        good = message.present & jnp.isfinite(message.value)
        value = jnp.clip(jnp.where(good, message.value, 0), -params.clamp, params.clamp)
        if capacity:  # what lies beyond `used` is overwritten by the next window, or is no part of the batch
            kept = lax.dynamic_update_slice(kept, jnp.where(good, value, lost(value.dtype)), (memory.position,))
        else:
            new = block_sums(value, message.arm, memory.counts, memory.position, used)
            kept = Sums(*two_sum(kept.high, kept.low, new), kept.finite + count(good))
        moved = jnp.where(memory.done, memory.position, memory.position + used).astype(jnp.int32)
        return State(memory._replace(position=moved), kept), ()

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
        return jnp.where(state.memory.done, state.memory.best, -1)

    return Program(init, act, encode, update, close=close, diagnose=diagnose, rest=rest)


def slots(horizon: int) -> int:
    """Plays of a window: long windows waste slots where checkpoints cut them, short ones pay a loop step more often."""
    return min(128, max(8, 2 ** round(math.log2(max(horizon, 1) / 512))))


def schedule(horizon: int, most: Sequence[float]) -> tuple:
    """One span a batch of at most `most` plays, closed by the elimination, then what is left. The first span is empty: its
    close makes the first design (in `init` it would be compiled twice).
    """
    offered = slots(horizon)
    plays = [min(horizon, math.ceil(n * (1 + 1e-4))) for n in most]
    batches = (Span(offered, -(-n // offered), full=False, close=True) for n in plays)
    return (Span(offered, 0, close=True), *batches, Span(offered, -(-horizon // offered), full=False))


def doubled(first: float, horizon: int) -> np.ndarray:
    """first, 2 first, 4 first, ...: as many batch lengths as can begin before the horizon."""
    return first * 2.0 ** np.arange(max(1, math.ceil(math.log2(horizon / first + 1))))


def support(num_arms: int, dim: int) -> int:
    """Arms in a design at most: a start of r arms, then at most 20 r steps of one arm each."""
    return min(num_arms, 21 * dim)


def checked_actions(actions) -> np.ndarray:
    """[K, d] features of at least two arms, not all zero, else ValueError."""
    actions = array("actions", actions, 2)
    if len(actions) < 2:
        raise ValueError(f"actions has {len(actions)} row: it needs at least two arms")
    if not actions.any():
        raise ValueError("actions is all zero: no reward depends on theta; give at least one non-zero feature vector")
    return actions


def fewest(plays: Sequence[float], horizon: int) -> int:
    """How many batches of at least so many plays can begin before the horizon."""
    return min(len(plays), 1 + int(np.searchsorted(np.cumsum(np.maximum(plays, 1)), horizon)))


def batch_sizes(horizon: int, num_batches) -> np.ndarray:
    """m_i = T^(i / B), i = 1 .. B - 1, else ValueError: T^(1 / B) must exceed 2."""
    num_batches = integer("num_batches", num_batches, 2)
    ratio = horizon ** (1 / num_batches)
    if ratio <= 2:
        most = math.ceil(math.log2(horizon)) - 1
        raise ValueError(
            f"num_batches = {num_batches} makes horizon^(1/num_batches) = {ratio:.3g}; it must exceed 2: "
            + (f"use at most {most} batches" if most >= 2 else "use a horizon of at least 5")
        )
    return np.array([horizon ** (i / num_batches) for i in range(1, num_batches)])


def report_noise(epsilon) -> float:
    """b = 2 / epsilon: Laplace noise that makes a report of a reward in [-1, 1] epsilon-private."""
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    return 0.0 if math.isinf(epsilon) else 2 / epsilon


def probability(name: str, value) -> float:
    """A number in (0, 1)."""
    return number(name, value, 0.0, 1.0, open_low=True, open_high=True)


def column(values) -> np.ndarray:
    """[ROWS] of a table by batch: the last value is repeated."""
    values = np.asarray(values, np.float64)[:ROWS]
    return np.pad(values, (0, ROWS - len(values)), mode="edge")


def room(most: Sequence[float], horizon: int) -> int:
    """Reports that a lane has room for: those of the longest batch and a window, rounded up so that few shapes are compiled."""
    longest = math.ceil(min(max(most), horizon))
    if longest > LONGEST:
        raise ValueError(
            f"horizon = {horizon} makes a batch of {longest} plays; its reports are kept, and a lane keeps at most {LONGEST}: "
            "use fewer batches (the last one has horizon^(1 - 1/num_batches) plays) or a shorter horizon"
        )
    return 1 << (longest + slots(horizon) - 1).bit_length()


def _spend(params):
    scale = float(params.noise_scale) * float(params.mechanism_scale)
    return (2 / scale if scale > 0 else math.inf, 0.0)


LOCAL = Guarantee("local", "reward", _spend, lambda message, released, action: message, ("mechanism_scale",))


def assembled(
    name: str, rules: Rules, *, actions, horizon: int, most, batches: int, design_slack, reward_scale: float,
    noise_scale: float, own, guarantee: Guarantee, capacity: int = 0, static: tuple = (),
) -> Algorithm:  # fmt: skip
    """An algorithm from its rules and numbers. most: plays of each batch at most; static: what chose the rules."""
    num_arms, dim = actions.shape
    clamp = max(1e6, 100 * (1 + reward_scale + noise_scale))
    params = Params(
        actions, horizon, number("design_slack", design_slack, 0.0), batches, clamp, noise_scale, 1.0, own
    )  # fmt: skip
    made = program(num_arms, dim, capacity, rules)
    version = (name, 1, (num_arms, dim, capacity, *static))
    return Algorithm(made, schedule(horizon, most), params, guarantee, version, {})

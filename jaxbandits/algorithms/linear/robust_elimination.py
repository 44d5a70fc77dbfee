"""Robust arm elimination: Algorithms 1 and 2 of "Robust and private stochastic linear bandits" (ICML 2023).

arXiv 2304.11741. Reads from top to bottom: numbers and state, the next batch (`begin_batch`), the end of a batch
(`estimate_batch`, `end_batch`), the seven functions (`program`), the spans, the factory. What one batch's reports go
through is in `batch_reports`, the radius in `formulas`.

Axes: [K] arms, [d] features, [P] plays of a window, [B] batches, [n] plays of the largest batch. Draws:
`encode/noise`, one Laplace a report at its play, in M2 at the last play of its arm; `close/filter`, one uniform
a removal at the batch's last play, position the removal's number from 0.
"""

import math
from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple, Unpack

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.algorithms.linear import arguments, batch_reports
from jaxbandits.algorithms.linear.batch_reports import block_arms, block_ends, clamp_reports, whole_blocks
from jaxbandits.algorithms.linear.batches import add_laplace_noise
from jaxbandits.algorithms.linear.formulas import ClientModel
from jaxbandits.declared import HOST, LATER, STATIC, Example, Ge, Horizon, Inside, Lt, NonNegative, Probability, Remedy
from jaxbandits.mechanisms.composition import guarantee, laplace_event, view_message
from jaxbandits.numerics import argmax, cond_any, count, matvec
from jaxbandits.protocol import SPAN_DONE, UNDECIDED, Algorithm, Hints, Program, Report, Span
from jaxbandits.typing import Array, Bool, Float, Int, Scalar
from jaxbandits.validation import factory, number


class Params(NamedTuple):
    actions: Any  # [K, d]
    sizes: Any  # [B - 1], m_i = T^(i / B)
    horizon: Any
    slack: Any  # of the design
    weight_floor: Any
    noise_scale: Any
    laplace_scale: Any  # b = 2 / epsilon
    log_term: Any  # L = log(2 K B / failure_prob)
    paper_log: Any  # log(K T^2 / failure_prob)
    failure_prob: Any
    paper: Any  # bool: the paper's radius instead of the practical one
    clean: Any  # bool: lambda = mu rho^2 instead of rho^2 / n
    presieve: Any  # bool
    sampling_scale: Any
    corruption_bound: Any
    corruption_scale: Any
    bias_scale: Any
    clamp: Any  # the largest |report| taken at face value: the square of a larger one would overflow sums
    mechanism_scale: Any


class State(NamedTuple):
    """`threshold` and `mean_square` are what an adversary that hides from the filter needs to know."""

    active: Bool[Array, " K"]
    # the batch's plays, in arm order; all zero once exploration has stopped
    counts: Int[Array, " K"]
    # plays of the batch done
    position: Int[Array, ""]
    # spans closed, less one; B - 1 while exploiting
    batch: Int[Array, ""]
    # batches that fitted before the horizon
    fitted: Int[Array, ""]
    # L^-1 of L L' = M / n
    whiten: Float[Array, "d d"]
    # gamma
    radius: Float[Array, ""]
    # a number, 4 n lambda: the filter stops below this eigenvalue of the whitened reports' covariance;
    # () without a filter
    threshold: Any
    # rho^2
    mean_square: Float[Array, ""]
    # M1: float [room] in play order, or Sums where nothing looks at single reports; M2: float [K]
    reports: Any
    # the arm to exploit
    best: Int[Array, ""]
    removals: Int[Array, ""]
    # reports that were not finite
    nonfinite: Int[Array, ""]


class Shape(NamedTuple):
    """What fixes the compiled program."""

    num_arms: int
    dim: int
    explored: int  # batches that explore: B - 1
    model: ClientModel
    largest: int  # plays of the largest batch, whose reports are stored (M1); 0: their sums are enough
    slots: int  # plays of a window (M1)
    filtered: bool  # the spectral filter looks at the reports
    refit: bool  # least squares once more on what the filter leaves

    @property
    def summed(self) -> bool:
        """Whether sums by arm replace the reports."""
        return self.model == "M1" and self.largest == 0


# ---- the next batch


def begin_batch(shape: Shape, params: Params, state: State, plays: Int[Array, ""]) -> State:
    """The next batch, after `plays` plays; no counts any more if it does not fit or the arms span nothing."""
    size = jnp.asarray(params.sizes)[jnp.clip(state.batch, 0, shape.explored - 1)]
    batch = batch_reports.plan_batch(params, state.active, size, shape.model)
    left = jnp.asarray(params.horizon).astype(jnp.int32) - plays
    going = (state.batch < shape.explored) & (state.fitted == state.batch)  # every earlier batch fitted
    fits = going & (batch.rank > 0) & (block_ends(batch.pulls, left + 1)[-1] <= left)
    return state._replace(
        counts=jnp.where(fits, batch.pulls, 0),
        position=jnp.int32(0),
        whiten=batch.whiten,
        radius=batch.radius,
        threshold=4 * batch.bound if shape.filtered else (),
        mean_square=batch.mean_square,
        reports=batch_reports.no_sums(shape.num_arms, batch.radius.dtype) if shape.summed else state.reports,
    )


# ---- what the server stores


def no_reports(shape: Shape, dtype: Any) -> Any:
    """The state's `reports` before the first one."""
    if shape.summed:
        return batch_reports.no_sums(shape.num_arms, dtype)
    if shape.model == "M2":
        return jnp.zeros(shape.num_arms, dtype)
    return jnp.zeros(batch_reports.room(shape.largest, shape.slots), dtype)


def store_reports(shape: Shape, params: Params, state: State, message: Report, used: Any) -> Any:
    """The state's `reports` after a window."""
    if shape.model == "M2":
        return jnp.where(message.present, clamp_reports(message.value, params.clamp), state.reports)
    if shape.summed:
        return batch_reports.add_reports(state.reports, message, state.counts, state.position, used, params.clamp)
    # what lies behind the plays made is overwritten by the next window, or never read
    return lax.dynamic_update_slice(state.reports, clamp_reports(message.value, params.clamp), (state.position,))


# ---- the end of a batch


def estimate_batch(shape: Shape, params: Params, state: State, draws: Any, t: Any) -> batch_reports.BatchEstimate:
    """The estimate from a batch that was played."""
    if shape.summed:
        return batch_reports.least_squares(state.reports, state.counts, state.whiten, params.actions)
    if shape.model == "M2":
        reports, counts = batch_reports.one_a_block(state.reports, state.counts), jnp.minimum(state.counts, 1)
    else:
        most_arms = arguments.support(shape.num_arms, shape.dim)
        reports = batch_reports.in_blocks(state.reports, state.counts, shape.largest, most_arms)
        counts = state.counts
    inside = batch_reports.passes_sieve(reports, batch_reports.sieve_limit(params, state.counts, shape.model))
    threshold = state.threshold if shape.filtered else None
    return batch_reports.estimate_theta(
        reports, inside, counts, state.whiten, params.actions, threshold, draws, t, shape.refit
    )


def end_batch(shape: Shape, params: Params, state: State, draws: Any, t: Any) -> State:
    """The filter's estimate and elimination; nothing changes where no batch was played."""
    estimate = estimate_batch(shape, params, state, draws, t)
    value = jnp.where(state.active, matvec(params.actions, estimate.theta), -jnp.inf)
    stays = state.active & ((value >= jnp.max(value) - 2 * state.radius) | ~estimate.any_left)
    played = jnp.any(state.counts > 0)
    return state._replace(
        active=jnp.where(played, stays, state.active),
        best=jnp.where(played, argmax(value), state.best),
        batch=state.batch + 1,
        fitted=state.fitted + played.astype(jnp.int32),
        removals=state.removals + jnp.where(played, estimate.removed, 0),
        nonfinite=state.nonfinite + jnp.where(played, estimate.lost, 0),
    )


# ---- the seven functions


@cache
def program(shape: Shape) -> Program:
    """The functions of one compiled shape."""
    num_arms, dim, model, filtered = shape.num_arms, shape.dim, shape.model, shape.filtered

    def init(params, draws):
        zero, none = jnp.zeros((), draws.dtype), jnp.int32(0)
        reports = no_reports(shape, draws.dtype)
        return State(
            active=jnp.ones(num_arms, bool),
            counts=jnp.zeros(num_arms, jnp.int32),
            position=none,
            batch=jnp.int32(-1),
            fitted=none,
            whiten=jnp.zeros((dim, dim), draws.dtype),
            radius=zero,
            threshold=zero if filtered else (),
            mean_square=zero,
            reports=reports,
            best=none,
            removals=none,
            nonfinite=none,
        )

    def act(params, state, draws, t, context):
        offered = t.shape[0]
        exploring = state.batch < shape.explored
        arms = jnp.where(exploring, block_arms(state.counts, state.position, offered), state.best)
        if model == "M2":  # a client answers once, after its last play: no arm's plays are cut
            left = whole_blocks(state.counts, state.position, offered)[1]
        else:
            left = jnp.minimum(jnp.sum(state.counts, dtype=jnp.int32) - state.position, offered)
        return arms, jnp.where(exploring, left, offered), (state.counts, state.position)

    def encode(params, note, draws, t, context, action, reward, play):
        scale, stream = params.mechanism_scale * params.laplace_scale, draws.child("noise")
        if model == "M1":  # every client sends one reward
            return Report(cond_any(scale > 0, add_laplace_noise, reward, scale, stream, t), action, play)
        # the client of an arm sends the mean of its rewards once, after its last play
        counts, position = note
        mean, own, last, there = batch_reports.answers(counts, position, t, reward, action, play)
        value = cond_any(scale > 0, add_laplace_noise, mean, scale / own, stream, last)
        return Report(value, jnp.arange(num_arms, dtype=jnp.int32), there)

    def update(params, state, draws, t, note, message, used):
        position = (state.position + used).astype(jnp.int32)
        return state._replace(reports=store_reports(shape, params, state, message, used), position=position), ()

    def close(params, state, draws, t):
        return begin_batch(shape, params, end_batch(shape, params, state, draws, t), t)

    def diagnose(params, state):
        return {
            "active_arms": count(state.active),
            "batches": state.fitted,
            "removals": state.removals,
            "nonfinite_reports": state.nonfinite,
        }

    def rest(params, state):
        waits = state.position >= jnp.sum(state.counts, dtype=jnp.int32)
        exploring = state.batch < shape.explored
        return jnp.where(exploring, jnp.where(waits, SPAN_DONE, UNDECIDED), state.best)

    return Program(init, act, encode, update, close=close, diagnose=diagnose, hints=Hints(rest=rest, kept=("reports",)))


# ---- the spans


def _schedule(
    horizon: int, sizes: np.ndarray, num_arms: int, dim: int, model: ClientModel, weight_floor: float
) -> tuple[Span, ...]:
    """One span a batch, closed by the elimination, then exploitation.

    The first span is empty: its close makes the first design (in `init` it would be compiled twice). Each arm
    of a design is rounded up by less than a play.

    M2 answers at the end of an arm's plays, at most m of them. A window of m plays takes whole arms, and two
    windows in a row take more than m plays.
    """
    slots, support = arguments.slots(horizon), arguments.support(num_arms, dim)
    batches = []
    for size in sizes:
        plays = math.ceil(size * arguments.COUNT_ROUNDING) + support
        if model == "M1":
            batches.append(Span(slots, -(-min(horizon, plays) // slots), full=False, close=True))
        else:
            offered = min(horizon, math.ceil(size * arguments.COUNT_ROUNDING) + 1)
            plays = min(horizon, math.ceil(plays + size * weight_floor * (support - 1)))
            batches.append(Span(offered, 2 * -(-plays // offered) + 1, full=False, whole=True, close=True))
    return (Span(slots, 0, close=True), *batches, Span(slots, -(-horizon // slots), full=False))


def _largest(horizon: int, sizes: np.ndarray, num_arms: int, dim: int) -> int:
    """Plays of the largest batch at most, rounded up to three bits so that few shapes are compiled."""
    plays = min(horizon, math.ceil(sizes[-1] * arguments.COUNT_ROUNDING) + arguments.support(num_arms, dim))
    unit = 2 ** max(plays.bit_length() - 3, 0)
    return -(-plays // unit) * unit


# ---- the factory


def _events(model, params):
    scale = params.laplace_scale * params.mechanism_scale
    # in M2 both sensitivity and scale are divided by the plays behind a report
    what = "reward in [-1, 1] of one play" if model == "M1" else "n times the mean of an arm's n rewards in [-1, 1]"
    return (laplace_event(what, 2.0, scale),)


@factory(
    plays_on="fixed set",
    example=Example(
        {"num_batches": 3, "epsilon": 4.0, "corruption_bound": 0.1},
        horizon=600,
        message_adversary={"name": "huber", "corruption": 0.1, "kind": "subthreshold", "value": 1.5},
    ),
    source=""""Robust and private stochastic linear bandits" (ICML 2023), Algorithms 1 and 2;
        `docs/formulas/robust_linear.md#elimination`, `docs/formulas/robust_linear.md#threshold`,
        `docs/formulas/robust_linear.md#radius`. Departures: `docs/deviations/robust_linear.md`.""",
)
def robust_elimination(
    *,
    horizon: Annotated[Horizon, STATIC],
    model: Literal["M1", "M2"] = "M1",
    corruption_bound: Annotated[Scalar, Ge(0), Lt(0.25), Remedy("the filter cannot tell more from the clean")] = 0.0,
    variance_bound: Literal["tight", "clean", "observed"] = "tight",
    radius: Annotated[Literal["practical", "paper"], HOST] = "practical",
    sampling_scale: NonNegative | None = None,
    corruption_scale: NonNegative | None = None,
    weight_floor: Annotated[Probability, LATER] = 0.1,
    presieve: Annotated[bool, HOST] = False,
    refit: bool = False,
    failure_prob: Inside = 0.05,
    **given: Unpack[arguments.Batched],
) -> Algorithm:
    """Robust, locally private elimination: batches along a G-optimal design, a filter that removes suspicious reports.

    Batch i = 1, ..., B - 1 has m = T^(i/B) plays along a G-optimal design. After each, theta is estimated from
    the reports that the spectral filter leaves, and arms whose estimate is below the best one's minus twice the
    radius gamma are dropped. Then the best estimate is played to the horizon.

    Args:
        model: Who is a client. "M1": a client a reward, who reports reward + Lap(2 / epsilon); arm a is played ceil(m
            weight) times. "M2": a client an action, who reports the mean of its n_a rewards + Lap(2 / (n_a epsilon));
            arm a is played ceil(m max(weight, weight_floor)) times. With about d reports a batch each one removed costs
            a direction: M2 is fragile under corruption.
        corruption_bound: The share alpha of corrupted reports that is believed in. It enters the radius only.
        variance_bound: lambda of the filter: "tight" rho^2 / n; "clean" mu rho^2; "observed" the printed mu mean(r^2),
            which removes nothing whatever the data: least squares.
        radius: "practical", a Bernstein half-width (`algorithms.linear.formulas.gamma_practical`), or "paper"
            (`gamma_paper`), with which nothing is dropped beyond alpha of about 1e-3.
        sampling_scale: Constant of the radius: of the noise. The default: 0.5, or 1 with radius "paper".
        corruption_scale: Constant of the radius: of corruption's square root. The default: 0.5, or 1 with radius
            "paper".
        weight_floor: The least weight of an arm of the design in M2; positive for M2 with radius "paper".
        presieve: Drop `|report|` > 1 + noise_scale sqrt(2 h / n_a) + b h / n_a before the filter, with h = log(2 n /
            failure_prob), b = 2 / epsilon, and n_a = 1 in M1.
        refit: Fit by least squares what the filter leaves.
        failure_prob: With the default scales it is the probability of nothing: the mean of some arm left its set in up
            to 310 of 1,000 runs at 0.05 (`docs/reproductions/across.md`, coverage).

    Returns:
        Algorithm: Diagnostics: `active_arms`, `batches` (that fitted before the horizon), `removals` (by the filter),
            `nonfinite_reports`.

    Note:
        One raw reward is protected, not a client's whole history. Rewards in [-1, 1] are what
        `linear_arms(noise="rademacher")` pays. Gaussian rewards have no finite epsilon and a run warns; they are not
        clipped, which would bend their means.

        A batch that does not fit before the horizon ends exploration; arm 0 is played if no batch fitted. Ties of
        estimates go to the lowest arm. Reports that are not finite are left out, and nothing is dropped if none is
        left; others are cut at max(1e6, 100 (1 + noise_scale + b)).

        Memory: M1 stores a batch's reports, 4 bytes each, unless variance_bound is "observed" without presieve and
        refit.

    >>> algorithm = jb.algorithms.robust_elimination(actions=[[1, 0], [0, 1]], horizon=1000, num_batches=3, epsilon=0.5)
    >>> algorithm.params.sizes.round().tolist(), algorithm.guarantee.spend(algorithm.params)
    ([10.0, 100.0], (0.5, 0.0))
    """
    features = arguments.check_features(given)
    noise, scale = float(given["noise_scale"]), arguments.laplace_noise(given["epsilon"])
    num_arms, dim = features.shape
    num_batches = given["num_batches"]
    sizes = arguments.batch_sizes(horizon, num_batches)
    paper = radius == "paper"
    remedy = "with model='M2' the paper's radius divides by it"
    floor = number("weight_floor", weight_floor, 0.0, 1.0, open_low=paper and model == "M2", remedy=remedy)
    default_scale = 1.0 if paper else 0.5
    params = Params(
        actions=features,
        sizes=sizes,
        horizon=horizon,
        slack=given["design_slack"],
        weight_floor=floor,
        noise_scale=noise,
        laplace_scale=scale,
        log_term=math.log(2 * num_arms * num_batches / failure_prob),
        paper_log=math.log(num_arms * horizon**2 / failure_prob),
        failure_prob=failure_prob,
        paper=paper,
        clean=variance_bound == "clean",
        presieve=presieve,
        sampling_scale=default_scale if sampling_scale is None else sampling_scale,
        corruption_bound=corruption_bound,
        corruption_scale=default_scale if corruption_scale is None else corruption_scale,
        bias_scale=given["bias_scale"],
        clamp=arguments.clamp(noise, scale),
        mechanism_scale=1.0,
    )
    filtered = variance_bound != "observed"
    stores_reports = model == "M1" and (filtered or presieve or refit)
    largest, slots = (_largest(horizon, sizes, num_arms, dim), arguments.slots(horizon)) if stores_reports else (0, 0)
    shape = Shape(num_arms, dim, len(sizes), model, largest, slots, filtered, refit)
    return Algorithm(
        program(shape),
        _schedule(horizon, sizes, num_arms, dim, model, floor),
        params,
        guarantee("local", "reward", partial(_events, model), view_message, bound=1.0),
        version=("robust_elimination", 2, shape),
        rewards=arguments.rewards_for_noise(scale),
    )

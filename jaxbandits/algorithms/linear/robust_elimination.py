"""Robust arm elimination: Algorithms 1 and 2 of "Robust and private stochastic linear bandits" (ICML 2023).

arXiv 2304.11741. Reads from top to bottom: numbers, what is planned of a batch, its end, M2's spans, the factory. What
is played is in `batches`, what one batch's reports go through in `batch_reports`, the radius in `formulas`.

Axes: [K] arms, [d] features, [B] batches. Draws: `encode/noise`, one Laplace a report at its play, in M2 at the last
play of its arm; `close/filter`, one uniform a removal at the batch's last play, position the removal's number from 0.
"""

import math
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Unpack

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.linear import arguments, batch_reports, batches, formulas
from jaxbandits.algorithms.linear.batches import BatchRules, Radius
from jaxbandits.algorithms.linear.formulas import ClientModel
from jaxbandits.declared import HOST, LATER, STATIC, Example, Ge, Horizon, Inside, Lt, NonNegative, Probability, Remedy
from jaxbandits.estimators.g_optimal import gram, leverages, regular, regular_inverse
from jaxbandits.mechanisms.composition import guarantee, laplace_event, view_message
from jaxbandits.numerics import count, inverse_cholesky
from jaxbandits.protocol import Algorithm, Span
from jaxbandits.typing import Array, Float, Scalar
from jaxbandits.validation import factory, number


class Own(NamedTuple):
    sizes: Any  # [B - 1], m_i = T^(i / B)
    radius: Radius  # of M1 and M2, b = 2 / epsilon
    weight_floor: Any
    paper_log: Any  # log(K T^2 / failure_prob)
    failure_prob: Any
    paper: Any  # bool: the paper's radius instead of the practical one
    clean: Any  # bool: lambda = mu rho^2 instead of rho^2 / n
    presieve: Any  # bool


class Plan(NamedTuple):
    """`threshold` and `mean_square` are what an adversary that hides from the filter needs to know."""

    # L^-1 of L L' = M / n, completed outside the span
    whiten: Float[Array, "d d"]
    # gamma
    radius: Float[Array, ""]
    # a number, 4 n lambda: the filter stops below this eigenvalue of the whitened reports' covariance;
    # () without a filter
    threshold: Any
    # rho^2
    mean_square: Float[Array, ""]


class Shape(NamedTuple):
    """What fixes the compiled program, beside the number of arms and their dimension."""

    model: ClientModel
    largest: int  # plays of the largest batch, whose reports are stored (M1); 0: their sums are enough
    filtered: bool  # the spectral filter looks at the reports
    refit: bool  # least squares once more on what the filter leaves


@cache
def filter_rules(shape: Shape) -> BatchRules:
    """What sets robust elimination apart from other eliminations in batches."""
    model, filtered = shape.model, shape.filtered

    def wanted_counts(params, memory, design):
        if model == "M1":
            return batches.counts_by_size(params, memory, design)
        return jnp.asarray(params.own.sizes)[memory.batch] * jnp.maximum(design.weights, params.own.weight_floor)

    def no_plan(dim, dtype):
        zero = jnp.zeros((), dtype)
        return Plan(jnp.zeros((dim, dim), dtype), zero, zero if filtered else (), zero)

    def plan(params, memory, counts):
        own, actions, active = params.own, params.actions, memory.active
        reports = jnp.minimum(counts, 1) if model == "M2" else counts
        n = jnp.maximum(jnp.sum(reports, dtype=jnp.int32), 1).astype(actions.dtype)
        moment = gram(actions, reports.astype(actions.dtype))
        inverse = regular_inverse(moment, memory.basis)
        scaled, level = regular(moment / n, memory.basis)
        scales = own.radius._asdict() | {"model": model}
        square = formulas.mean_square(counts, own.radius.noise_scale, own.radius.laplace_scale, model=model)
        leverage = jnp.max(leverages(actions, inverse, active))
        practical = formulas.gamma_practical(actions, active, inverse, counts, square=square, **scales)
        rank, support = (jnp.maximum(x, 1).astype(actions.dtype) for x in (memory.basis.rank, count(reports > 0)))
        del scales["noise_scale"]
        scales |= {"log_term": own.paper_log, "weight_floor": own.weight_floor}
        paper = formulas.gamma_paper(rank, jnp.asarray(own.sizes)[memory.batch], support, **scales)
        bound = n * formulas.lambda_value(square, n, leverage, clean=own.clean)
        return Plan(
            whiten=inverse_cholesky(scaled) / jnp.sqrt(level),
            radius=jnp.where(own.paper, paper, practical),
            threshold=4 * bound if filtered else (),
            mean_square=square,
        )

    def judge(params, draws, t, batch):
        counts, actions, whiten = batch.counts, params.actions, batch.plan.whiten
        if model == "M1" and shape.largest == 0:
            found = batch_reports.least_squares(batch.sums, batch.finite, counts, whiten, actions)
        else:
            if model == "M1":
                most_arms = arguments.support(*actions.shape)
                reports = batch_reports.in_blocks(batch.reports, counts, shape.largest, most_arms)
            else:
                reports = batch_reports.one_a_block(batch.reports, counts)
            inside = batch_reports.passes_sieve(reports, batch_reports.sieve_limit(params, counts, model))
            sent = counts if model == "M1" else jnp.minimum(counts, 1)
            limit = batch.plan.threshold if filtered else None
            found = batch_reports.estimate_theta(reports, inside, sent, whiten, actions, limit, draws, t, shape.refit)
        return found.theta, 2 * batch.plan.radius, found.any_left, found.removed, found.lost

    names = ("removals", "nonfinite_reports")
    return BatchRules(
        wanted_counts, judge, private=True, alone=True, answers=model == "M2", counted=names, plan=plan, no_plan=no_plan
    )


def spans_of_answers(horizon: int, sizes: np.ndarray, support: int, weight_floor: float) -> tuple[Span, ...]:
    """One span a batch of M2, whose clients answer at the end of an arm's plays, at most m of them.

    A window of m plays takes whole arms, and two windows in a row take more than m plays. Each arm of a design is
    rounded up by less than a play.
    """
    spans = []
    for size in sizes:
        most = math.ceil(size * arguments.COUNT_ROUNDING)
        plays = min(horizon, math.ceil(most + support + size * weight_floor * (support - 1)))
        offered = min(horizon, most + 1)
        spans.append(Span(offered, 2 * -(-plays // offered) + 1, full=False, whole=True, close=True))
    return tuple(spans)


def _largest(horizon: int, size: float, support: int) -> int:
    """Plays of the largest batch at most, rounded up to three bits so that few shapes are compiled."""
    plays = min(horizon, math.ceil(size * arguments.COUNT_ROUNDING) + support)
    unit = 2 ** max(plays.bit_length() - 3, 0)
    return -(-plays // unit) * unit


def _events_of_answers(params):
    # sensitivity and scale are both divided by the plays behind an answer
    scale = params.noise_scale * params.mechanism_scale
    return (laplace_event("n times the mean of an arm's n rewards in [-1, 1]", 2.0, scale),)


ANSWERS = guarantee("local", "reward", _events_of_answers, view_message, bound=1.0)


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
    >>> algorithm.params.own.sizes.round().tolist(), algorithm.guarantee.spend(algorithm.params)
    ([10.0, 100.0], (0.5, 0.0))
    """
    num_arms, dim = arguments.check_features(given).shape
    scale, num_batches = arguments.laplace_noise(given["epsilon"]), given["num_batches"]
    support = arguments.support(num_arms, dim)
    sizes = arguments.batch_sizes(horizon, num_batches)
    paper = radius == "paper"
    remedy = "with model='M2' the paper's radius divides by it"
    floor = number("weight_floor", weight_floor, 0.0, 1.0, open_low=paper and model == "M2", remedy=remedy)
    default_scale = 1.0 if paper else 0.5
    scales = Radius(
        log_term=math.log(2 * num_arms * num_batches / failure_prob),
        noise_scale=float(given["noise_scale"]),
        laplace_scale=scale,
        sampling_scale=default_scale if sampling_scale is None else sampling_scale,
        corruption_bound=corruption_bound,
        corruption_scale=default_scale if corruption_scale is None else corruption_scale,
        bias_scale=given["bias_scale"],
    )
    own = Own(
        sizes=sizes,
        radius=scales,
        weight_floor=floor,
        paper_log=math.log(num_arms * horizon**2 / failure_prob),
        failure_prob=failure_prob,
        paper=paper,
        clean=variance_bound == "clean",
        presieve=presieve,
    )
    filtered = variance_bound != "observed"
    stores_reports = model == "M1" and (filtered or presieve or refit)
    largest = _largest(horizon, sizes[-1], support) if stores_reports else 0
    shape = Shape(model, largest, filtered, refit)
    capacity = batch_reports.room(largest, arguments.slots(horizon)) if stores_reports else 0
    if model == "M2":
        capacity = num_arms
    claim = arguments.LOCAL if model == "M1" else ANSWERS
    algorithm = arguments.elimination_algorithm(
        filter_rules(shape), horizon, given, sizes + support, own, claim, noise_scale=scale, capacity=capacity
    )
    if model == "M2":
        first, *_, last = algorithm.schedule
        algorithm = algorithm._replace(schedule=(first, *spans_of_answers(horizon, sizes, support, floor), last))
    return algorithm._replace(version=("robust_elimination", 2, shape))

"""BARBAR (Gupta, Koren and Talwar 2019, arXiv 1902.08647, Algorithm 1), recalled and compared with others' code.

Axes: [K] arms, [P] plays of a window.
Draws: `act/arm`, a uniform a play.
"""

import math
from functools import cache
from typing import Annotated, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import integer_sums
from jaxbandits.declared import Example, FailureProb, Ge, Horizon, Le, NumArms
from jaxbandits.numerics import fixed_sum, inverse_cdf, materialize, tree_where
from jaxbandits.protocol import Algorithm, Program, Report, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory

LONGEST_EPOCH = 2.0**31 - 128  # a float32: no horizon is longer, so an epoch of this length never ends
LEAST_LENGTH_SCALE = 1e-9  # far below what is of use: gaps of later epochs and their squares stay float32 numbers


class Params(NamedTuple):
    pulls_scale: Numeric  # lambda: expected pulls, in an epoch, of an arm whose gap is 1


class State(NamedTuple):
    """The gaps of the running epoch m, and what it has collected."""

    gaps: Float[Array, " K"]
    sums: integer_sums.Sum  # of the epoch's rewards, one an arm
    left: Int[Array, ""]  # plays left of the epoch
    least_gap: Float[Array, ""]  # 2^-m, the least gap that the epoch can find


def _epoch(params, gaps):
    """An epoch's probabilities [K] and its length N, a float."""
    pulls = params.pulls_scale / (gaps * gaps)
    total = materialize(fixed_sum(pulls))
    return pulls / total, jnp.ceil(total)


def _plays(length):
    return jnp.minimum(length, LONGEST_EPOCH).astype(jnp.int32)


def next_gaps(
    gaps: Float[Array, " K"], sums: Float[Array, " K"], expected: Float[Array, " K"], least_gap: Float[Array, ""]
) -> Float[Array, " K"]:
    """The gaps after an epoch: of its sums of rewards, its expected pulls, and its least gap 2^-m."""
    mean = jnp.minimum(sums / expected, 1)
    return jnp.maximum(least_gap, jnp.max(mean - gaps / 16) - mean)


@cache
def program(num_arms: int) -> Program:
    """The functions of BARBAR."""

    def init(params, draws):
        gaps = jnp.ones(num_arms, draws.dtype)
        half = jnp.full((), 0.5, draws.dtype)
        none = integer_sums.nothing(draws.dtype, (num_arms,))
        return State(gaps=gaps, sums=none, left=_plays(_epoch(params, gaps)[1]), least_gap=half)

    def act(params, state, draws, t, context):
        probabilities, _ = _epoch(params, state.gaps)
        action = materialize(inverse_cdf(probabilities[None], draws.child("arm").uniform(t)))
        return action, jnp.minimum(state.left, t.shape[0]), action

    def encode(params, note, draws, t, context, action, reward, play):
        return Report(reward, action, play)

    def update(params, state, draws, t, note, message, used):
        # here and not in `encode`: reports may be corrupted on their way
        usable = message.present & jnp.isfinite(message.value)
        value = jnp.where(usable, jnp.clip(message.value, 0, 1), 0)
        one = value.dtype.type(1)
        sums = integer_sums.add_by_arm(state.sums, value, one, note)
        left = state.left - used
        probabilities, length = _epoch(params, state.gaps)
        total = integer_sums.sum_as_float(sums, one, value.dtype)
        gaps = materialize(next_gaps(state.gaps, total, length * probabilities, state.least_gap))
        none = integer_sums.nothing(value.dtype, (num_arms,))
        following = State(gaps, none, left=_plays(_epoch(params, gaps)[1]), least_gap=state.least_gap / 2)
        return tree_where(left == 0, following, state._replace(sums=sums, left=left)), ()

    def diagnose(params, state):
        return {"epochs": jnp.round(-jnp.log2(state.least_gap)).astype(jnp.int32) - 1}

    return Program(init, act, encode, update, diagnose=diagnose)


def most_epochs(num_arms: int, horizon: int, pulls_scale: Scalar) -> int:
    """The most epochs that end within the horizon: in epoch m some gap is 2^(1 - m), and none is above 1."""
    epochs, plays = 0, 0.0
    while True:
        plays += max(1.0, pulls_scale * (4.0**epochs + num_arms - 1))
        if plays > horizon + 1:
            return epochs
        epochs += 1


@factory(
    plays_on="arms",
    example=Example({"length_scale": 1 / 2048}, horizon=600),
    source="""Gupta, Koren and Talwar 2019 (arXiv 1902.08647), Algorithm 1: the abstract was read, the algorithm is
        recalled and agrees with two implementations of others, `docs/formulas/robust_frontier.md#barbar`.""",
)
def barbar(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    failure_prob: FailureProb | None = None,
    length_scale: Annotated[Scalar, Ge(LEAST_LENGTH_SCALE), Le(1e9)] = 1.0,
) -> Algorithm:
    """Draw every arm in proportion to 1 / gap^2 for an epoch, estimate the gaps anew from that epoch alone, and go on.

    Gaps are 1 at first. In epoch m = 1, 2, ... an arm of gap D has n = lambda / D^2 expected pulls, where lambda = 1024
    `length_scale` ln((8 K / failure_prob) log2 T). The epoch has N plays, the sum of all n rounded up, and each of them
    draws an arm in proportion to n. An arm's mean r is the sum of its rewards over the pulls that it was expected to
    have, at most 1. Its next gap is max(2^-m, r* - r), where r* is the largest r - D / 16. No arm is ever removed, and
    no bound on the corruption is asked for.

    Args:
        failure_prob: Probability with which an estimate may fail. The default: 1 / horizon, and 1/2 at horizon 1.
        length_scale: Multiplies the length of every epoch. At 1, the published constant, the first epoch alone takes
            1024 K ln((8 K / failure_prob) log2 T) plays, all of them uniform. For curves at T = 20,000 take 1/256, and
            say so.

    Returns:
        Algorithm: Without a privacy guarantee. Diagnostic: `epochs`, how many epochs were finished at the horizon.

    Note:
        Rewards are clipped to [0, 1]; a non-finite one counts as 0. Ties go to the lowest index. An epoch that the
        horizon cuts is played and not estimated. What is claimed is for corruption that is chosen before the arm is
        known. The listing has N without rounding; here the expected pulls are N n / sum(n), so that r stays unbiased.

    >>> algorithm = jb.algorithms.barbar(num_arms=4, horizon=20_000, failure_prob=0.05)
    >>> round(algorithm.params.pulls_scale, 6)
    9339.768904
    """
    longer = max(horizon, 2)
    failure = 1 / longer if failure_prob is None else failure_prob
    pulls_scale = length_scale * 1024 * math.log(8 * num_arms / failure * math.log2(longer))
    slots = integer_sums.MAX_PLAYS if horizon > 10_000 else 64
    windows = -(-horizon // slots) + most_epochs(num_arms, horizon, pulls_scale)
    schedule = (Span(slots, windows, full=False),)
    return Algorithm(program(num_arms), schedule, Params(pulls_scale), rewards=Rewards(0.0, 1.0, "clip"))

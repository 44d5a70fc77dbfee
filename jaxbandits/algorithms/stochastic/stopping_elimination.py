"""Elimination of arms whose intervals are widened by a budget of corruption, known or not.

SE-WR where the budget is known and PE-WR where it is not. Axes: [K] arms, [P] plays of a window, [H] phases.
"""

import math
from functools import cache
from typing import Annotated, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.stochastic import episodes
from jaxbandits.algorithms.stochastic.elimination import DROPPED, after_block, by_rounds, last_arm
from jaxbandits.algorithms.stochastic.plain_reports import cut_report
from jaxbandits.declared import Example, FailureProb, NonNegative, NumArms, Remedy
from jaxbandits.numerics import count, materialize
from jaxbandits.protocol import Algorithm, Rewards, Span
from jaxbandits.typing import Array, Bool, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory

PHASES = 32  # of the tables: as many phases as the longest horizon has, so that all horizons share a program
# The most plays of a window. Their rewards are added one after the other, so that a sum does not depend on the windows.
MOST_PLAYS = 32
Budget = Annotated[NonNegative, Remedy("the sum of what an adversary may change; leave it out where it is not known")]


class Widths(NamedTuple):
    """The numbers of the form whose budget is known."""

    width: Numeric  # noise_scale sqrt(2 ln(2 K T / failure_prob))
    corruption_budget: Numeric


class Phases(NamedTuple):
    """The numbers of the form whose budget is not known: tables [H]; the last entries repeat."""

    pulls: Numeric  # int32: fresh pulls of each active arm
    slack: Numeric  # an arm is dropped when the best mean exceeds its own by more than this: 2 r_h


class Memory(NamedTuple):
    """What the form whose budget is not known remembers of the arms."""

    active: Bool[Array, " K"]
    estimate: Float[Array, " K"]  # means of the running phase
    phase: Int[Array, ""]  # phases finished
    high: Float[Array, ""]  # of the running block's rewards: a compensated sum
    low: Float[Array, ""]


def budget_radius(params: Widths, pulls, t):
    """The r(N) of the form whose budget is known."""
    return params.width * jnp.sqrt(1 / pulls) + params.corruption_budget * (1 / pulls)


def diagnose(params, state):
    """Of the form whose budget is known."""
    return {"active_arms": count(state.mean > DROPPED), "phases": state.rounds}


@cache
def phase_rules(num_arms: int) -> episodes.Rules:
    """The rules of the form whose budget is not known: phases of fresh pulls, arm by arm."""

    def length(params, active, phase):
        pulls = jnp.asarray(params.pulls)[jnp.minimum(phase, PHASES - 1)]
        return jnp.where(count(active) == 1, episodes.FOREVER, pulls)

    def init(params, draws):
        active, nothing = jnp.ones(num_arms, bool), jnp.zeros(num_arms, draws.dtype)
        memory = Memory(active=active, estimate=nothing, phase=jnp.int32(0), high=nothing[0], low=nothing[0])
        return memory, jnp.int32(0), length(params, active, memory.phase)

    def sum_exactly(params, memory, arm, value, present):
        value = jnp.where(present, cut_report(value), 0)
        high, low = memory.high, memory.low
        # Knuth's two-sum: `low` collects what rounding takes from `high`. `numerics.two_sum` moves parts of it back to
        # `high` at each reward, which costs 9% of a play and, over long blocks, last bits.
        for i in range(len(value)):
            total = high + value[i]
            arrived = total - high
            low = low + ((high - (total - arrived)) + (value[i] - arrived))
            high = total
        return memory._replace(high=high, low=low), jnp.zeros_like(value), 1.0

    def end(params, memory, draws, t, arm, total):
        at = jnp.minimum(memory.phase, PHASES - 1)
        own = materialize((memory.high + memory.low) / jnp.asarray(params.pulls)[at].astype(memory.high.dtype))
        estimate = memory.estimate.at[arm].set(own)
        active, ends, following = after_block(memory.active, estimate, arm, jnp.asarray(params.slack)[at])
        phase, none = memory.phase + ends.astype(jnp.int32), jnp.zeros_like(own)
        memory = Memory(active=active, estimate=estimate, phase=phase, high=none, low=none)
        return memory, own, following, length(params, active, phase)

    def diagnose(params, memory):
        return {"active_arms": count(memory.active), "phases": memory.phase}

    return episodes.Rules(init=init, keep=sum_exactly, end=end, diagnose=diagnose, rest=last_arm)


def phases(num_arms: int, horizon: int, noise_scale: Scalar, failure_prob: Scalar) -> tuple[int, Phases]:
    """H, and the tables for all phases: n_h = ceil(L) 2^h pulls and 2 r_h. After H phases the last one is repeated."""
    number_of = max(math.ceil(math.log2(max(horizon / num_arms, 1.0))) + 1, 2)
    log = math.log(2 * num_arms * number_of / failure_prob)
    h = np.minimum(np.arange(PHASES), number_of - 1)
    pulls = math.ceil(log) * 2.0**h
    budget = np.minimum(math.sqrt(horizon / num_arms), 2.0 ** (number_of - h))
    radius = noise_scale * np.sqrt(2 * log / pulls) + budget / pulls
    return number_of, Phases(np.minimum(pulls, episodes.FOREVER).astype(np.int64), 2 * radius)


@factory(
    plays_on="arms",
    example=Example(
        {"noise_scale": 0.1, "failure_prob": 0.2},
        world=("gaussian_arms", {"means": [0.0, 0.34, 0.7], "scale": 0.3}),
        horizon=600,
    ),
    source="""Wang, Liu, Zuo, Liu, Lui and Hajiesmaili 2025 (arXiv 2408.08859): the abstract was read, names and rates
        in public reviews; constants and proofs are ours, `docs/formulas/robust_frontier.md#stopping-elimination`.""",
)
def stopping_elimination(
    *,
    num_arms: NumArms,
    horizon: episodes.LimitedHorizon,
    corruption_budget: Budget | None = None,
    noise_scale: NonNegative = 0.5,
    failure_prob: FailureProb | None = None,
) -> Algorithm:
    """Drop the arms that are clearly worse whatever an adversary with a budget of corruption has changed.

    With `corruption_budget` C every active arm is pulled once a round, in index order, and all rewards are kept. At a
    round's end an arm is dropped when the best mean exceeds its own by more than 2 r(N), r(N) = noise_scale sqrt(2
    ln(2 K T / failure_prob) / N) + C / N after N rounds.

    Without one, phase h = 0, 1, ... pulls every active arm n_h = ceil(L) 2^h times, arm by arm, and forgets what came
    before. It assumes the budget C_h = min(sqrt(T / K), 2^(H - h)) and drops an arm when the best mean exceeds its own
    by more than 2 r_h, r_h = noise_scale sqrt(2 L / n_h) + C_h / n_h. H = ceil(log2(max(T / K, 1))) + 1, at least 2,
    and L = ln(2 K H / failure_prob). After H phases the last one is repeated.

    The last arm is played to the horizon.

    Args:
        corruption_budget: C, in units of a reward: all that an adversary who sees the arm may add to or take from the
            rewards of the played arms, in sum of sizes. The default: not known, which is another program.
        noise_scale: Sub-Gaussian scale of the rewards; 0.5 suffices for rewards in [0, 1].

    Returns:
        Algorithm: It claims no privacy. Diagnostics at the horizon: ``active_arms``, and ``phases``, how many rounds
            (with a budget) or phases ended while two arms or more were left.

    Note:
        The comparison is strict, so equal means all stay. A reward that is not finite counts as 0; others are cut at
        1e30 in size. A phase that the horizon cuts gives no estimate. Nothing is drawn at random. The published
        variants that stop early are left out: their text was not readable.

    >>> algorithm = jb.algorithms.stopping_elimination(num_arms=4, horizon=20_000, failure_prob=0.05)
    >>> algorithm.params.pulls[:4]
    array([ 8, 16, 32, 64])
    >>> told = jb.algorithms.stopping_elimination(num_arms=4, horizon=20_000, corruption_budget=100.0)
    >>> told.params.corruption_budget, told.schedule[0].slots
    (100.0, 1)
    """
    failure = 1 / horizon if failure_prob is None else failure_prob
    if corruption_budget is not None:
        width = noise_scale * math.sqrt(2 * math.log(2 * num_arms * horizon / failure))
        functions = by_rounds(num_arms, cut_report, budget_radius, diagnose, counts_race=True)
        return Algorithm(functions, (Span(1, horizon),), Widths(width, corruption_budget), rewards=Rewards())
    number_of, tables = phases(num_arms, horizon, noise_scale, failure)
    schedule = episodes.schedule(horizon, num_arms * (number_of + 1), most=MOST_PLAYS)
    return Algorithm(episodes.program(phase_rules(num_arms)), schedule, tables, rewards=Rewards())

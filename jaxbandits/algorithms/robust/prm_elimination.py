"""Private and robust elimination (Wu, Zhou, Tao and Wang 2023, arXiv 2302.02526, Algorithm 1).

Axes: [K] arms, [P] plays of a window, [B] batches, batch b having 2^(b+1) pulls of every arm.
Draws: `act/arm` (forced exploration, at the play it is drawn for), `act/greedy`, `update/mean`, `update/bins` (see
`prm_block`).
"""

import math
from collections.abc import Sequence
from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple, Unpack

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.robust import prm_block, prm_formulas
from jaxbandits.algorithms.robust.prm_block import Bins, BlockConstants, RewardBlock, extend_block
from jaxbandits.algorithms.robust.prm_formulas import PrmArguments
from jaxbandits.algorithms.stochastic import integer_sums
from jaxbandits.declared import LATER, STATIC, Axes, Example, Ge, Horizon, Le, NonNegative, NumArms, Probability
from jaxbandits.mechanisms.composition import guarantee, view_released
from jaxbandits.numerics import argmax, count, materialize
from jaxbandits.protocol import UNDECIDED, Algorithm, Hints, Program, Report, Rewards, Span
from jaxbandits.random import MAX_TRIALS
from jaxbandits.typing import Array, Bool, Float, Int, Numeric
from jaxbandits.validation import array, factory

UNSEEN = 1e30  # the estimate of an arm before its first one: greedy exploration takes such arms first, in index order


class Params(NamedTuple):
    """Numbers of the algorithm, and tables [B] with one entry for each batch."""

    sizes: Numeric  # int32 [B]: pulls of a block
    forced: Numeric  # how many batches explore
    clip: Numeric  # [B]; see `Constants`
    ceiling: Numeric
    radius: Numeric
    noise_scale: Numeric
    count_scale: Numeric
    bins: Bins
    greedy_prob: Numeric
    forced_arms: Numeric  # int32 [n], for tests; [0] where it is not used
    mechanism_scale: Numeric


class State(NamedTuple):
    """Which arms are left, and the block that is being played."""

    active: Bool[Array, " K"]
    estimates: Float[Array, " K"]  # latest private mean of each arm
    batch: Int[Array, ""]
    arm: Int[Array, ""]  # the arm whose block it is
    block: RewardBlock
    undecided: Int[Array, ""]  # plays made with more than one arm left


@cache
def program(num_arms: int, bins: int, exploration: str, hooked: bool, shortcut: bool) -> Program:
    """The program for `bins` offered bins, 0 with raw moments.

    `hooked`: exploring batches play `forced_arms`. `shortcut`: rewards come as counts, see `Hints.tally`.
    """

    one_arm = hooked or exploration != "round"

    def constants_of_batch(params, batch):
        own = params.clip, params.ceiling, params.noise_scale, params.count_scale
        return BlockConstants(*(jnp.asarray(x)[batch] for x in own))

    def size(params, state):
        return jnp.asarray(params.sizes).astype(jnp.int32)[state.batch]

    def explores(params, state):
        return state.batch < jnp.asarray(params.forced).astype(jnp.int32)

    def any_arm(draws, t):
        return jnp.minimum((draws.child("arm").uniform(t) * num_arms).astype(jnp.int32), num_arms - 1)

    def arm_to_explore(params, state, draws, t):
        """The arm of an exploring batch that begins at play t."""
        if hooked:
            arms = jnp.asarray(params.forced_arms).astype(jnp.int32)
            return arms[state.batch % arms.shape[0]]
        if exploration != "greedy":
            return any_arm(draws, t)
        explore = draws.child("greedy").uniform(t) < params.greedy_prob
        return jnp.where(explore, any_arm(draws, t), argmax(state.estimates))

    def init(params, draws):
        estimates = jnp.full(num_arms, UNSEEN, draws.dtype)
        zero = jnp.int32(0)
        active, block = jnp.ones(num_arms, bool), prm_block.empty_block(bins, draws.dtype)
        return State(active=active, estimates=estimates, batch=zero, arm=zero, block=block, undecided=zero)

    def act(params, state, draws, t, context):
        begins = explores(params, state) & (state.block.position == 0)
        arm = materialize(jnp.where(begins, arm_to_explore(params, state, draws, t[0]), state.arm))
        used = jnp.minimum(prm_block.plays_left(state.block, size(params, state), bins), t.shape[0])
        if one_arm:
            return arm[None], used, arm
        return jnp.where(explores(params, state), any_arm(draws, t), arm), used, arm

    def encode(params, note, draws, t, context, action, reward, play):
        return Report(reward, action, play)

    def update(params, state, draws, t, note, message, used):
        arm, pulls, own = note, size(params, state), constants_of_batch(params, state.batch)
        value, play, scale = message.value, message.present, params.mechanism_scale
        block, full = extend_block(state.block, pulls, used, value, play, own, bins, params.bins, scale, draws, t)
        mean = materialize(prm_block.estimate_mean(block, pulls, own, bins, scale, draws, t))
        exploring = explores(params, state)
        counts = full if exploration == "greedy" else full & ~exploring  # else an exploring batch is discarded
        estimates = state.estimates.at[arm].set(jnp.where(counts, mean, state.estimates[arm]))
        # the next block: the next active arm's, or the first one's of the next batch
        index = jnp.arange(num_arms, dtype=jnp.int32)
        following = materialize(jnp.min(jnp.where(state.active & (index > arm), index, num_arms)))
        ends = full & (exploring | (following == num_arms))
        top = jnp.max(jnp.where(state.active, estimates, -jnp.inf))
        radius = jnp.asarray(params.radius)[state.batch]
        active = state.active & ~(ends & ~exploring & (top - estimates > 2 * radius))
        first = jnp.min(jnp.where(active, index, num_arms))
        following = jnp.where(ends, first, following)
        undecided = jnp.where((count(state.active) > 1) & (used > 0), t, state.undecided)
        batch, arm = state.batch + ends.astype(jnp.int32), materialize(jnp.where(full, following, arm))
        # J is private too, as it comes from noisy shares. The mean is released beside it: the audit needs both to
        # tell what a reward does to the mean.
        released = jnp.stack([mean, block.left_edge]) if bins else mean
        after = State(active=active, estimates=estimates, batch=batch, arm=arm, block=block, undecided=undecided)
        return after, jnp.where(counts, released, jnp.nan)

    def settle_on_arm(params, state):
        last = jnp.argmax(state.active).astype(jnp.int32)
        return jnp.where(count(state.active) == 1, last, UNDECIDED)

    def diagnose(params, state):
        return {"active_arms": count(state.active), "undecided_plays": state.undecided}

    return Program(init, act, encode, update, diagnose=diagnose, hints=Hints(settle_on_arm, one_arm, tally=shortcut))


def _events(central: bool, params: Params) -> tuple[Any, ...]:
    return prm_formulas.events(central, params.sizes, params)


def _slots(horizon: int) -> int:
    """Plays of a window: long ones waste slots in short blocks, short ones pay for a loop step more often."""
    return min(256, max(8, 2 ** round(math.log2(max(horizon, 1) / 1024))))


@factory(
    plays_on="arms",
    example=Example(
        {"moment": "central", "epsilon": 1.0, "mean_bound": 3.5, "moment_bound": 0.25, "histogram_scale": 4.0},
        horizon=400,
    ),
    source="""Wu, Zhou, Tao and Wang 2023, "On private and robust bandits", Algorithms 1 to 3 and Remark 5.1:
        `docs/formulas/private_robust_mab.md#elimination`. Constants: `docs/formulas/private_robust_mab.md#constants`,
        tried out in `docs/formulas/private_robust_mab.md#tested-defaults`.""",
)
def prm_elimination(
    *,
    num_arms: NumArms,
    horizon: Annotated[Horizon, Le(2**31 - 1), STATIC],
    sampling_scale: NonNegative = 0.5,
    privacy_scale: NonNegative = 0.75,
    corruption_scale: NonNegative = 0.5,
    exploration: Literal["batch", "round", "greedy"] = "batch",
    greedy_prob: Probability = 0.0,
    shortcut: bool = False,
    forced_arms: Annotated[Sequence[int] | np.ndarray[Any, Any] | None, Axes(1), Ge(0), STATIC, LATER] = None,
    **given: Unpack[PrmArguments],
) -> Algorithm:
    """Private and robust elimination: batches of doubling length, one private robust mean of each arm's block.

    For b = 1, 2, ... every remaining arm is pulled 2^b times. Then an arm is dropped when the largest mean exceeds
    its own by more than 2 beta(2^b), and earlier data are forgotten. A batch of fewer than T0 pulls explores
    instead, and its rewards are discarded. The last arm is played to the horizon.

    Args:
        sampling_scale: Multiplies the order radius' sampling part s sqrt(L / n), L = ln(1 / delta). The default was
            tried out: at 0.25 8% of runs lost the best arm, at 0.5 none, at 1 none with 3.4 times the regret.
        privacy_scale: Multiplies the order radius' privacy part s (L / (n min(epsilon, 1)))^(1 - 1/k). The default was
            tried out: at epsilon = 0.1, 3 to 7% of runs lost the best arm with 0.5, 1% with 0.75.
        corruption_scale: Multiplies the order radius' contamination part s alpha^(1 - 1/k). The default follows
            `sampling_scale`.
        exploration: What a batch of fewer than T0 pulls does. ``"batch"``, as in Algorithm 1: all pulls of one arm
            drawn uniformly. ``"round"``: an arm drawn uniformly at every pull. ``"greedy"``: all pulls of one arm, with
            probability `greedy_prob` a uniform one, otherwise unseen arms in index order and then the arm of largest
            latest mean; only this choice uses the means of such batches.
        greedy_prob: Probability of a uniform arm in ``exploration="greedy"``. Greater than 0 only there.
        shortcut: Draw how often each value was paid instead of every reward, by binomials: the law is the same, the
            draws are others. For arms of few values (`bernoulli_arms`) and contamination by few values; other
            environments and adversaries are an error, and so is ``exploration="round"``.
        failure_prob: Failure probability delta of one confidence bound. The default: 1 / horizon, and 1/2 at horizon 1.
            It is one with ``radius="explicit"``; at the default scales of ``"order"`` the first block's mean left its
            set in up to 565 of 1,000 runs at 0.05 (`docs/reproductions/across.md`, coverage).
        forced_arms (sequence of int, optional): For tests: exploring batch i, counted from 0, plays forced_arms[i mod
            n], n its length. Entries from 0 to num_arms - 1. Whether it is given is static. The default: arms are
            drawn.

    Returns:
        Algorithm: epsilon-private in the central model for rewards that differ in one play: each reward enters one
            release. Diagnostics at the horizon: ``active_arms``, and ``undecided_plays``, the plays made before one arm
            was left.

    Note:
        With raw moments the mean of n rewards is the truncated mean at M plus Lap(2 M / (n epsilon)). With central
        moments the first half of a block finds the bin of largest noisy share, and the second half is truncated around
        the bin's left edge. Rejected rewards, infinities and NaN among them, count as 0 and stay in the divisor. M,
        beta, T0 and the bins follow from the arguments alone, never from the data. Arms are dropped under a strict
        inequality, so tied arms stay; an arm drawn greedily on equal means is the lowest. All arguments but those
        marked [static] are data: a grid over them shares a program. Departures from the paper:
        `docs/deviations/private_robust_mab.md`.

    >>> jb.algorithms.prm_elimination(num_arms=3, horizon=1000, epsilon=0.5).params.radius[:4].round(3)
    array([2.9  , 2.051, 1.45 , 1.025])
    """
    prm = prm_formulas.check_prm(horizon, sampling_scale, privacy_scale, corruption_scale, **given)
    if greedy_prob > 0 and exploration != "greedy":
        raise ValueError(f"greedy_prob = {greedy_prob!r} needs exploration='greedy', not {exploration!r}")
    arms = np.zeros(1) if forced_arms is None else array("forced_arms", forced_arms, 1, 0, num_arms - 1)
    if (arms != np.round(arms)).any():
        raise ValueError(f"forced_arms = {forced_arms!r} must be indices of arms, integers from 0")
    # The last block is longer than the horizon, so that no table is read beyond its end.
    sizes = np.minimum(2 ** np.arange(1, horizon.bit_length() + 1, dtype=np.int64), 2**31 - 1)
    table, bins = prm_formulas.prm_tables(prm, sizes), prm_formulas.histogram(prm)
    params = Params(
        sizes=sizes,
        forced=int(np.sum(sizes < prm_formulas.threshold(prm))),
        clip=table.clip,
        ceiling=2 * integer_sums.power_above(table.clip),
        radius=table.radius,
        noise_scale=table.noise_scale,
        count_scale=table.count_scale,
        bins=Bins(*bins),
        greedy_prob=greedy_prob,
        forced_arms=arms.astype(np.int64),
        mechanism_scale=1.0,
    )
    if shortcut and exploration == "round":
        raise ValueError("shortcut=True plays one arm a window: use exploration='batch' or 'greedy'")
    slots = MAX_TRIALS if shortcut else _slots(horizon)
    folds = 2 if prm.central else 1  # each fold of a block ends in a window that is partly used
    span = Span(slots, -(-horizon // slots) + folds * num_arms * len(sizes), full=False, whole=shortcut)
    offered = prm_formulas.bins_to_offer(bins.num_bins) if prm.central else 0
    functions = program(num_arms, offered, exploration, forced_arms is not None, shortcut)
    claim = guarantee("central", "reward", partial(_events, prm.central), view_released)
    return Algorithm(functions, (span,), params, claim, rewards=Rewards(), tails=prm.tails)

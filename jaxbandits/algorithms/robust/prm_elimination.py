"""Private and robust elimination (Wu, Zhou, Tao and Wang 2023, arXiv 2302.02526, Algorithm 1): batches of doubling length, each
arm's block of pulls reduced to one private robust mean, arms far below the best one dropped, all data forgotten.

Axes: [K] arms, [P] plays of a window, [B] batches, batch b having 2^(b+1) pulls of every arm.
Draws: `act/arm` (forced exploration, at the play it is drawn for), `act/greedy`, `update/mean`, `update/bins` (see `prm_block`).
"""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.robust import prm_block, prm_formulas
from jaxbandits.algorithms.robust.prm_block import Bins, Block, Constants
from jaxbandits.algorithms.stochastic import integer_sums
from jaxbandits.mechanisms.composition import guarantee, view_released
from jaxbandits.numerics import argmax, count, materialize
from jaxbandits.protocol import UNDECIDED, Algorithm, Hints, Program, Report, Rewards, Span
from jaxbandits.random import MOST_TRIALS
from jaxbandits.validation import array, choice, factory, integer, number

UNSEEN = 1e30  # the estimate of an arm before its first: greedy exploration takes these first, in index order


class Params(NamedTuple):
    sizes: Any  # [B] int32: pulls of a block
    forced: Any  # how many batches explore
    clip: Any  # [B]
    ceiling: Any  # [B] see Constants
    radius: Any  # [B]
    noise_scale: Any  # [B]
    count_scale: Any  # [B]
    bins: Bins
    greedy_prob: Any
    forced_arms: Any  # [n] int32, test hook; [0] where it is not used
    mechanism_scale: Any


class State(NamedTuple):
    active: Any  # [K] bool
    estimates: Any  # [K] latest private mean
    batch: Any  # [] int32
    arm: Any  # [] int32: whose block it is
    block: Block
    undecided: Any  # [] int32: plays made with more than one arm left


@cache
def program(num_arms: int, bins: int, exploration: str, hooked: bool, shortcut: bool) -> Program:
    """bins: offered by the histogram, 0 with raw moments. hooked: forced batches play `forced_arms`. shortcut: see Program.tally."""

    one_arm = hooked or exploration != "round"

    def constants(params, batch):
        own = params.clip, params.ceiling, params.noise_scale, params.count_scale
        return Constants(*(jnp.asarray(x)[batch] for x in own))

    def size(params, state):
        return jnp.asarray(params.sizes).astype(jnp.int32)[state.batch]

    def explores(params, state):
        return state.batch < jnp.asarray(params.forced).astype(jnp.int32)

    def any_arm(draws, t):
        return jnp.minimum((draws.child("arm").uniform(t) * num_arms).astype(jnp.int32), num_arms - 1)

    def forced_arm(params, state, draws, t):
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
        none = jnp.int32(0)
        return State(jnp.ones(num_arms, bool), estimates, none, none, prm_block.empty(bins, draws.dtype), none)

    def act(params, state, draws, t, context):
        begins = explores(params, state) & (state.block.position == 0)
        arm = materialize(jnp.where(begins, forced_arm(params, state, draws, t[0]), state.arm))
        used = jnp.minimum(prm_block.left(state.block, size(params, state), bins), t.shape[0])
        if one_arm:
            return arm[None], used, arm
        return jnp.where(explores(params, state), any_arm(draws, t), arm), used, arm

    def encode(params, note, draws, t, context, action, reward, play):
        return Report(reward, action, play)

    def update(params, state, draws, t, note, message, used):
        arm, pulls, own = note, size(params, state), constants(params, state.batch)
        block, full = prm_block.extended(
            state.block, pulls, used, message.value, message.present, own, bins, params.bins, params.mechanism_scale, draws, t,
        )  # fmt: skip
        mean = materialize(prm_block.estimate(block, pulls, own, bins, params.mechanism_scale, draws, t))
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
        # J is private too (it comes of noisy shares), and what a reward does to the mean can be told from it only beside J
        released = jnp.stack([mean, block.left_edge]) if bins else mean
        return State(active, estimates, batch, arm, block, undecided), jnp.where(counts, released, jnp.nan)

    def rest(params, state):
        last = jnp.argmax(state.active).astype(jnp.int32)
        return jnp.where(count(state.active) == 1, last, UNDECIDED)

    def diagnose(params, state):
        return {"active_arms": count(state.active), "undecided_plays": state.undecided}

    return Program(init, act, encode, update, diagnose=diagnose, hints=Hints(rest, one_arm, tally=shortcut))


def _events(central, params):
    return prm_formulas.events(central, params.sizes, params)


def _slots(horizon: int) -> int:
    """Plays of a window: long ones waste slots in short blocks, short ones pay for a loop step more often."""
    return min(256, max(8, 2 ** round(math.log2(max(horizon, 1) / 1024))))


@factory
def prm_elimination(
    *, num_arms, horizon, epsilon, moment="raw", moment_order=2.0, moment_bound=1.0, mean_bound=None, corruption_bound=0.0,
    failure_prob=None, radius="order", clip_scale=1.0, sampling_scale=0.5, privacy_scale=0.75, corruption_scale=0.5,
    threshold_scale=1.0, histogram_scale=8.0, guard_bins=0, clip_mode="shifted", exploration="batch", greedy_prob=0.0,
    shortcut=False, forced_arms=None,
) -> Algorithm:  # fmt: skip
    """Batches of 2^b pulls of every remaining arm, b = 1, 2, ...; a private robust mean of each block; far arms are dropped.

    After a batch arm a goes when the largest mean exceeds its own by more than 2 beta(2^b); earlier data are forgotten. A batch
    of fewer than T0 pulls explores instead: 2^b pulls of a single arm, not used. The last arm is played to the horizon. The
    mean of raw moments is the truncated mean at M plus Lap(2 M / (n epsilon)); with central moments the first half of a block
    finds the fullest noisy bin of width r, the second half is truncated around it. Rejected rewards, infinities and NaN among
    them, count as 0 and stay in the divisor. M, beta, T0 and the bins follow from the arguments alone (`prm_formulas`); the default
    scales are the specification's tested ones, 1 everywhere is the plain order.

    epsilon > 0, or inf: no noise and no privacy term in an explicit radius, the rest as for epsilon 1; private for the actions when one reward changes.
    moment "raw": E|X|^k <= u, k = moment_order >= 2, u = moment_bound > 0; "central": E|X - mean|^k <= u and |mean| <= mean_bound,
    which must be at least 2 r, r = u^(1/k) iota^(1/k). corruption_bound: share of contaminated rewards the learner expects,
    in [0, 1/2), central [0, 0.133). failure_prob in (0, 1), None: 1 / horizon. radius "order": sampling_scale, privacy_scale and
    corruption_scale times its three parts; "explicit": all constants from a proof, no part of T0 for contamination. clip_scale,
    threshold_scale, histogram_scale multiply M (raw part), T0's parts ln(1/failure_prob) / corruption_bound and
    ln(mean_bound/failure_prob) / min(epsilon, 1). guard_bins: extra bins each side. clip_mode "shifted": central M = 2 r + a;
    "literal": M = a. exploration "batch": one uniform arm a batch; "round": a uniform arm every pull; "greedy": unseen arms in
    index order, then the largest mean so far, a uniform arm with probability greedy_prob; its batches' means are used for that.
    shortcut: a window's rewards are drawn as counts of their values, by binomials: same law, other draws, for arms of few
    values (`bernoulli_arms`) and point contamination; other environments and adversaries are an error.
    forced_arms: batch i explores arm forced_arms[i mod n] (for tests). Everything but strings and shapes is data.
    Raises ValueError outside these ranges. Diagnostics: `active_arms`, `undecided_plays` (made before one arm was left).
    Source: Wu, Zhou, Tao and Wang 2023, Algorithms 1 to 3, Remark 5.1; constants of the specification, sections 2 and 3.

    >>> import jaxbandits as jb
    >>> jb.algorithms.prm_elimination(num_arms=3, horizon=1000, epsilon=0.5).version[0]
    'prm_elimination'
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1, 2**31 - 1)
    prm = prm_formulas.check(
        moment=moment, epsilon=epsilon, horizon=horizon, moment_order=moment_order, moment_bound=moment_bound,
        mean_bound=mean_bound, corruption_bound=corruption_bound, failure_prob=failure_prob, radius=radius,
        clip_scale=clip_scale, sampling_scale=sampling_scale, privacy_scale=privacy_scale,
        corruption_scale=corruption_scale, threshold_scale=threshold_scale, histogram_scale=histogram_scale,
        guard_bins=guard_bins, clip_mode=clip_mode,
    )  # fmt: skip
    choice("exploration", exploration, ("batch", "round", "greedy"))
    greedy_prob = number("greedy_prob", greedy_prob, 0.0, 1.0)
    if not isinstance(shortcut, bool):
        raise ValueError(f"shortcut = {shortcut!r} must be True or False")
    if greedy_prob > 0 and exploration != "greedy":
        raise ValueError(f"greedy_prob = {greedy_prob!r} needs exploration='greedy', not {exploration!r}")
    arms = np.zeros(1) if forced_arms is None else array("forced_arms", forced_arms, 1, 0, num_arms - 1)
    if (arms != np.round(arms)).any():
        raise ValueError(f"forced_arms = {forced_arms!r} must be indices of arms, integers from 0")
    # the last block is longer than the horizon: no table is read beyond its end
    sizes = np.minimum(2 ** np.arange(1, horizon.bit_length() + 1, dtype=np.int64), 2**31 - 1)
    table, bins = prm_formulas.tables(prm, sizes), prm_formulas.histogram(prm)
    params = Params(
        sizes, int(np.sum(sizes < prm_formulas.threshold(prm))), table.clip, 2 * integer_sums.power_above(table.clip), table.radius,
        table.noise_scale, table.count_scale, Bins(*bins), greedy_prob, arms.astype(np.int64), 1.0,
    )  # fmt: skip
    if shortcut and exploration == "round":
        raise ValueError("shortcut=True plays one arm a window: use exploration='batch' or 'greedy'")
    slots = MOST_TRIALS if shortcut else _slots(horizon)
    folds = 2 if prm.central else 1  # a fold of a block ends in a window that is partly used
    span = Span(slots, -(-horizon // slots) + folds * num_arms * len(sizes), full=False, whole=bool(shortcut))
    static = (
        num_arms,
        prm_formulas.offered_bins(bins.num_bins) if prm.central else 0,
        exploration,
        forced_arms is not None,
        bool(shortcut),
    )
    claim = guarantee("central", "reward", partial(_events, prm.central), view_released)
    return Algorithm(program(*static), (span,), params, claim, ("prm_elimination", 2, static), {}, rewards=Rewards())

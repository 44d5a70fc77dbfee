"""PRM-UCB: optimism over private robust means, each arm played in episodes of doubling length.

The remark after Algorithm 1 of Wu, Zhou, Tao and Wang 2023 (arXiv 2302.02526), in the form of the specification of private and robust
bandits, section 6. Axes: [K] arms, [J] bins, [B] numbers of pulls 2, 4, 8, ...
"""

from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.robust import prm_formulas
from jaxbandits.algorithms.stochastic import episodes, integer_sums
from jaxbandits.estimators.histogram_mean import bin_index
from jaxbandits.numerics import argmax, materialize, tree_where
from jaxbandits.protocol import Algorithm, Rewards
from jaxbandits.random import to_laplace
from jaxbandits.validation import factory, integer, number

FEWEST = 16  # bins of a program: the bin width depends on the share of contamination, which a grid varies
SEARCHED = 32  # bins that a window searches: more are spread over windows without plays, as every window pays for them


class Params(NamedTuple):
    pulls: Any  # [B] int32: of an episode
    first: Any  # int32: row of an arm's first episode
    clip: Any  # [B]
    ceiling: Any  # [B] power of two, at least the clip
    radius: Any  # [B]
    noise_scale: Any  # [B] of the mean
    count_scale: Any  # [B] of each bin's share
    num_bins: Any  # int32
    first_edge: Any
    bin_width: Any
    thompson_scale: Any
    mechanism_scale: Any


class Search(NamedTuple):
    """Where the mean may be (central moments): an episode's first half fills bins, the second is averaged around the fullest."""

    counts: Any  # [J] int32
    parts: Any  # [] int32: parts of the bins searched; 0: they are being filled, all: the second half is played
    share: Any  # [] the largest noisy share so far
    left: Any  # [] left edge of its bin


class Memory(NamedTuple):
    estimate: Any  # [K]
    episodes: Any  # [K] int32: finished
    search: Any  # Search, () with raw moments


@cache
def rules(num_arms: int, bins: int, thompson: bool) -> episodes.Rules:
    """`bins`: 0 with raw moments, else a number that holds them all. `thompson`: the radius is multiplied by a normal.

    Draws: `mean`, one an estimate, at the episode's last play; `bins`, the first word at position j for bin j, at the last play of
    its first half, both Laplace; `normal` [K], one for every arm at an episode's first play.
    """
    width = min(bins, SEARCHED)
    parts = -(-bins // width) if bins else 0

    def row(params, memory, arm):
        """Where the tables speak of the arm's running or next episode."""
        return jnp.minimum(params.first + memory.episodes[arm], params.pulls.shape[0] - 1)

    def begin(params, memory, arm):
        """Length of the arm's next episode, or of its first half."""
        pulls = jnp.asarray(params.pulls)[row(params, memory, arm)]
        return pulls // 2 if bins else pulls

    def empty(dtype):
        zero = jnp.zeros((), dtype)
        return Search(jnp.zeros(bins, jnp.int32), jnp.int32(0), zero, zero) if bins else ()

    def init(params, draws):
        memory = Memory(jnp.zeros(num_arms, draws.dtype), jnp.zeros(num_arms, jnp.int32), empty(draws.dtype))
        return memory, jnp.int32(0), begin(params, memory, 0)

    def keep(params, memory, arm, value, present):
        at = row(params, memory, arm)
        clip, ceiling = jnp.asarray(params.clip)[at], jnp.asarray(params.ceiling)[at]
        if not bins:
            return memory, jnp.where(jnp.abs(value) <= clip, value, 0), ceiling
        search = memory.search
        place, inside = bin_index(value, params.first_edge, params.bin_width, params.num_bins)
        place = jnp.where(inside & (search.parts == 0), place, bins)  # beyond the last: not counted
        counts = search.counts.at[place].add(present.astype(jnp.int32), mode="drop")
        off = value - search.left
        kept = jnp.where((search.parts == parts) & (jnp.abs(off) <= clip), off, 0)
        return memory._replace(search=search._replace(counts=counts)), kept, ceiling

    def look(params, search, scale, draws, t, pulls):
        """The next part of the bins: their noisy shares of the first half."""
        place = jnp.minimum(search.parts, parts - 1) * width + jnp.arange(width, dtype=jnp.int32)
        noise = to_laplace(draws.at(t, place), draws.dtype)
        share = search.counts[place].astype(draws.dtype) / pulls + scale * noise
        share = jnp.where(place < params.num_bins, share, -jnp.inf)
        fullest = argmax(share)
        better = (search.parts == 0) | (share[fullest] > search.share)
        left = params.first_edge + place[fullest].astype(draws.dtype) * params.bin_width
        return Search(
            search.counts, search.parts + 1,
            materialize(jnp.where(better, share[fullest], search.share)), materialize(jnp.where(better, left, search.left)),
        )  # fmt: skip

    def end(params, memory, draws, t, arm, total):
        dtype, at = total.dtype, row(params, memory, arm)
        length = begin(params, memory, arm)
        noise = params.mechanism_scale * jnp.asarray(params.noise_scale)[at] * draws.child("mean").laplace(t)
        own = total / length.astype(dtype) + noise
        if bins:
            own = memory.search.left + own
        own = materialize(own)
        after = Memory(memory.estimate.at[arm].set(own), memory.episodes.at[arm].add(1), empty(dtype))
        behind = jnp.clip(params.first + after.episodes - 1, 0, params.radius.shape[0] - 1)
        radius = jnp.asarray(params.radius)[behind]
        if thompson:
            radius = radius * params.thompson_scale * draws.child("normal").normal(t + 1, (num_arms,))
        following = episodes.next_arm(after.estimate + radius, after.episodes == 0)
        fresh = begin(params, after, following)
        if not bins:
            return after, own, following, fresh
        scale = params.mechanism_scale * jnp.asarray(params.count_scale)[at]
        search = look(params, memory.search, scale, draws.child("bins"), t, length.astype(dtype))
        wait = jnp.where(search.parts == parts, length, 0)
        done = memory.search.parts == parts
        after = tree_where(done, after, memory._replace(search=search))
        # the left edge is private too: it comes of noisy shares
        released = jnp.where(done, jnp.stack([own, memory.search.left]), jnp.nan)
        return after, released, jnp.where(done, following, arm), jnp.where(done, fresh, wait)

    return episodes.Rules(init, keep, end)


def _events(central, params):
    return prm_formulas.events(central, params.pulls, params)


def made(name, thompson, num_arms, horizon, shortcut, thompson_scale, **common) -> Algorithm:
    """The algorithm, its arguments validated."""
    num_arms, horizon = integer("num_arms", num_arms, 2), integer("horizon", horizon, 1)
    if not isinstance(shortcut, bool):
        raise ValueError(f"shortcut = {shortcut!r} must be True or False")
    prm = prm_formulas.check(horizon=horizon, **common)
    pulls = 2 ** np.arange(1, 32)
    tables, histogram = prm_formulas.tables(prm, pulls), prm_formulas.histogram(prm)
    first = int(np.searchsorted(pulls[:-1], prm_formulas.threshold(prm)))
    bins = max(FEWEST, prm_formulas.offered_bins(histogram.num_bins)) if prm.central else 0
    params = Params(
        np.minimum(pulls, episodes.FOREVER), first, tables.clip, integer_sums.power_above(tables.clip), tables.radius,
        tables.noise_scale, tables.count_scale, histogram.num_bins, histogram.first_edge, histogram.width,
        number("thompson_scale", thompson_scale, 0.0), 1.0,
    )  # fmt: skip
    program = episodes.program(rules(num_arms, bins, thompson), shortcut)
    windows = 1 if not bins else 1 + max(1, bins // SEARCHED)
    schedule = episodes.schedule(horizon, windows * num_arms * horizon.bit_length(), shortcut)
    claim, version = episodes.claim(partial(_events, prm.central)), (name, 1, (num_arms, bins, shortcut))
    return Algorithm(program, schedule, params, claim, version, {}, rewards=Rewards())


@factory
def prm_ucb(
    *, num_arms, horizon, epsilon, moment="raw", moment_order=2.0, moment_bound=1.0, mean_bound=None, corruption_bound=0.0,
    failure_prob=None, radius="order", clip_scale=1.0, sampling_scale=1.0, privacy_scale=1.0, corruption_scale=1.0,
    threshold_scale=1.0, histogram_scale=8.0, guard_bins=0, clip_mode="shifted", shortcut=False,
) -> Algorithm:  # fmt: skip
    """Play the arm of largest private robust mean + radius for twice as many plays as its mean rests on, then replace the mean.

    Each arm is first played B0 times in index order, B0 the smallest power of two not below max(2, T0), T0 the threshold of
    `prm_elimination`. Each mean rests on one episode alone; ties go to the lowest index. Mean, noise, radius and arguments are
    those of `prm_elimination`; non-finite rewards are rejected by the truncation. With scales of 1/2 a few runs in a hundred end on a
    wrong arm: an unlucky estimate is never refreshed.

    epsilon-private in the central model for rewards that differ in one play: each reward enters one estimate.
    num_arms >= 2 [static]; epsilon in (0, inf], inf: no noise. moment "raw": E|X|^moment_order <= moment_bound; "central":
    E|X - mean|^moment_order <= moment_bound and |mean| <= mean_bound, at least twice the bin width r. moment_order >= 2.
    corruption_bound in [0, 1/2), central [0, 0.133): the share of replaced rewards. failure_prob in (0, 1), None: 1 / horizon.
    shortcut: rewards are drawn as counts of their values, as in `prm_elimination`: same law, other draws. Raises ValueError outside.
    Source: Wu et al. 2023, section 5, remark after Algorithm 1; details from the specification, section 6.

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.prm_ucb(num_arms=3, horizon=1000, epsilon=0.5, corruption_bound=0.1)
    >>> int(made.params.pulls[made.params.first])
    128
    """
    return made(
        "prm_ucb", False, num_arms, horizon, shortcut, 1.0, moment=moment, epsilon=epsilon, moment_order=moment_order,
        moment_bound=moment_bound, mean_bound=mean_bound, corruption_bound=corruption_bound, failure_prob=failure_prob,
        radius=radius, clip_scale=clip_scale, sampling_scale=sampling_scale, privacy_scale=privacy_scale,
        corruption_scale=corruption_scale, threshold_scale=threshold_scale, histogram_scale=histogram_scale,
        guard_bins=guard_bins, clip_mode=clip_mode,
    )  # fmt: skip

"""PRM-UCB: optimism over private robust means, each arm played in episodes of doubling length.

Axes: [K] arms, [J] bins, [B] numbers of pulls 2, 4, 8, ...
"""

from functools import cache, partial
from typing import Annotated, Any, NamedTuple, Unpack

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.robust import prm_formulas
from jaxbandits.algorithms.robust.prm_formulas import PrmArguments
from jaxbandits.algorithms.stochastic import episodes, integer_sums
from jaxbandits.declared import Doc, Example, Horizon, NonNegative, NumArms
from jaxbandits.estimators.cut_means import bin_index
from jaxbandits.numerics import argmax, materialize, tree_where
from jaxbandits.protocol import Algorithm, Rewards
from jaxbandits.random import to_laplace
from jaxbandits.typing import Array, Float, Int, Numeric
from jaxbandits.validation import factory

# A program has at least this many bins: their width depends on the share of contamination, which a grid varies.
MIN_BINS = 16
# A window searches this many bins. More are spread over windows without plays, since every window pays for the
# search.
BINS_PER_WINDOW = 32


class Params(NamedTuple):
    """Numbers of the algorithm, and tables [B] with one entry for each length of an episode."""

    pulls: Numeric  # int32 [B]: pulls of an episode
    first: Numeric  # int32: row of an arm's first episode
    clip: Numeric  # [B]
    ceiling: Numeric  # [B]: power of two, at least the clip
    radius: Numeric  # [B]
    noise_scale: Numeric  # [B]: Laplace scale of the mean
    count_scale: Numeric  # [B]: Laplace scale of each bin's share
    num_bins: Numeric  # int32
    first_edge: Numeric
    bin_width: Numeric
    thompson_scale: Numeric
    mechanism_scale: Numeric


class BinSearch(NamedTuple):
    """The search for a bin near the mean, with central moments.

    The first half of an episode fills the bins; the second half is averaged around the fullest one.
    """

    counts: Int[Array, " J"]
    # how many parts of the bins were searched; 0: they are being filled, all: the second half is played
    parts: Int[Array, ""]
    # the largest noisy share so far, and the left edge of its bin
    share: Float[Array, ""]
    left: Float[Array, ""]


class Memory(NamedTuple):
    """What is known of each arm."""

    estimate: Float[Array, " K"]
    episodes: Int[Array, " K"]  # finished episodes
    search: BinSearch | tuple[()]  # a `BinSearch`; () with raw moments


@cache
def prm_rules(num_arms: int, bins: int, thompson: bool) -> episodes.Rules:
    """The rules for at most `bins` bins, 0 with raw moments.

    `thompson`: the radius is multiplied by a normal variable.

    Draws: `mean`, a Laplace variable for each estimate, at the episode's last play; `bins`, a Laplace variable for
    each bin j, from the first word at position j, at the last play of the episode's first half; `normal` [K], one
    for every arm, at an episode's first play.
    """
    width = min(bins, BINS_PER_WINDOW)
    parts = -(-bins // width) if bins else 0

    def entry_of_arm(params, memory, arm):
        """The entry of the tables for the arm's running or next episode."""
        return jnp.minimum(params.first + memory.episodes[arm], params.pulls.shape[0] - 1)

    def begin(params, memory, arm):
        """Length of the arm's next episode, or of its first half."""
        pulls = jnp.asarray(params.pulls)[entry_of_arm(params, memory, arm)]
        return pulls // 2 if bins else pulls

    def empty_search(dtype):
        zero = jnp.zeros((), dtype)
        return BinSearch(jnp.zeros(bins, jnp.int32), jnp.int32(0), zero, zero) if bins else ()

    def init(params, draws):
        memory = Memory(jnp.zeros(num_arms, draws.dtype), jnp.zeros(num_arms, jnp.int32), empty_search(draws.dtype))
        return memory, jnp.int32(0), begin(params, memory, 0)

    def truncate_rewards(params, memory, arm, value, present):
        at = entry_of_arm(params, memory, arm)
        clip, ceiling = jnp.asarray(params.clip)[at], jnp.asarray(params.ceiling)[at]
        if not bins:
            return memory, jnp.where(jnp.abs(value) <= clip, value, 0), ceiling
        search = memory.search
        place, inside = bin_index(value, params.first_edge, params.bin_width, params.num_bins)
        place = jnp.where(inside & (search.parts == 0), place, bins)  # beyond the last: not counted
        counts = search.counts.at[place].add(present.astype(jnp.int32), mode="drop")
        off = value - search.left
        truncated = jnp.where((search.parts == parts) & (jnp.abs(off) <= clip), off, 0)
        return memory._replace(search=search._replace(counts=counts)), truncated, ceiling

    def search_part(params, search, scale, draws, t, pulls):
        """The next part of the bins: their noisy shares of the first half."""
        place = jnp.minimum(search.parts, parts - 1) * width + jnp.arange(width, dtype=jnp.int32)
        noise = to_laplace(draws.at(t, place), draws.dtype)
        share = search.counts[place].astype(draws.dtype) / pulls + scale * noise
        share = jnp.where(place < params.num_bins, share, -jnp.inf)
        fullest = argmax(share)
        better = (search.parts == 0) | (share[fullest] > search.share)
        left = params.first_edge + place[fullest].astype(draws.dtype) * params.bin_width
        return BinSearch(
            counts=search.counts,
            parts=search.parts + 1,
            share=materialize(jnp.where(better, share[fullest], search.share)),
            left=materialize(jnp.where(better, left, search.left)),
        )

    def end(params, memory, draws, t, arm, total):
        dtype, at = total.dtype, entry_of_arm(params, memory, arm)
        length = begin(params, memory, arm)
        noise = params.mechanism_scale * jnp.asarray(params.noise_scale)[at] * draws.child("mean").laplace(t)
        own = total / length.astype(dtype) + noise
        if bins:
            own = memory.search.left + own
        own = materialize(own)
        after = Memory(memory.estimate.at[arm].set(own), memory.episodes.at[arm].add(1), empty_search(dtype))
        behind = jnp.clip(params.first + after.episodes - 1, 0, params.radius.shape[0] - 1)
        radius = jnp.asarray(params.radius)[behind]
        if thompson:
            radius = radius * params.thompson_scale * draws.child("normal").normal(t + 1, (num_arms,))
        following = episodes.next_arm(after.estimate + radius, after.episodes == 0)
        fresh = begin(params, after, following)
        if not bins:
            return after, own, following, fresh
        scale = params.mechanism_scale * jnp.asarray(params.count_scale)[at]
        search = search_part(params, memory.search, scale, draws.child("bins"), t, length.astype(dtype))
        wait = jnp.where(search.parts == parts, length, 0)
        done = memory.search.parts == parts
        after = tree_where(done, after, memory._replace(search=search))
        # The left edge is private too, as it comes from noisy shares.
        released = jnp.where(done, jnp.stack([own, memory.search.left]), jnp.nan)
        return after, released, jnp.where(done, following, arm), jnp.where(done, fresh, wait)

    return episodes.Rules(init, truncate_rewards, end)


def _events(central: bool, params: Params) -> tuple[Any, ...]:
    return prm_formulas.events(central, params.pulls, params)


PLAIN = "The default is the plain order"
SamplingScale = Annotated[
    NonNegative,
    Doc(f"""Multiplies the order radius' sampling part s sqrt(L / n), L = ln(1 / delta). {PLAIN}: with scales of 1/2 an
        unlucky estimate is never refreshed, and a few runs in a hundred end on a wrong arm."""),
]
PrivacyScale = Annotated[
    NonNegative, Doc(f"Multiplies the order radius' privacy part s (L / (n min(epsilon, 1)))^(1 - 1/k). {PLAIN}.")
]
CorruptionScale = Annotated[
    NonNegative, Doc(f"Multiplies the order radius' contamination part s alpha^(1 - 1/k). {PLAIN}.")
]
Shortcut = Annotated[
    bool,
    Doc("""Draw how often each value was paid instead of every reward, by binomials: the law is the same, the draws are
        others. For arms of few values (`bernoulli_arms`) and contamination by few values; other environments and
        adversaries are an error."""),
]


def index_over_private_means(
    num_arms: int, horizon: int, shortcut: bool, thompson_scale: Any, *scales: Any, **given: Any
) -> Algorithm:
    """`prm_ucb` or, with a `thompson_scale`, `prm_thompson`; `scales` of the order radius."""
    prm = prm_formulas.check_prm(horizon, *scales, **given)
    pulls = 2 ** np.arange(1, 32)
    tables, histogram = prm_formulas.prm_tables(prm, pulls), prm_formulas.histogram(prm)
    first = int(np.searchsorted(pulls[:-1], prm_formulas.threshold(prm)))
    bins = max(MIN_BINS, prm_formulas.bins_to_offer(histogram.num_bins)) if prm.central else 0
    params = Params(
        pulls=np.minimum(pulls, episodes.FOREVER),
        first=first,
        clip=tables.clip,
        ceiling=integer_sums.power_above(tables.clip),
        radius=tables.radius,
        noise_scale=tables.noise_scale,
        count_scale=tables.count_scale,
        num_bins=histogram.num_bins,
        first_edge=histogram.first_edge,
        bin_width=histogram.width,
        thompson_scale=1.0 if thompson_scale is None else thompson_scale,
        mechanism_scale=1.0,
    )
    program = episodes.program(prm_rules(num_arms, bins, thompson_scale is not None), shortcut)
    windows = 1 if not bins else 1 + max(1, bins // BINS_PER_WINDOW)
    schedule = episodes.schedule(horizon, windows * num_arms * horizon.bit_length(), shortcut)
    claim = episodes.pure_claim(partial(_events, prm.central))
    return Algorithm(program, schedule, params, claim, rewards=Rewards(), tails=prm.tails)


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0}, horizon=600),
    source="""Wu, Zhou, Tao and Wang 2023, section 5, remark after Algorithm 1, which gives no listing:
        `docs/formulas/private_robust_mab.md#prm-ucb-and-prm-ts`. Constants:
        `docs/formulas/private_robust_mab.md#constants`.""",
)
def prm_ucb(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    sampling_scale: SamplingScale = 1.0,
    privacy_scale: PrivacyScale = 1.0,
    corruption_scale: CorruptionScale = 1.0,
    shortcut: Shortcut = False,
    **given: Unpack[PrmArguments],
) -> episodes.CentralPrivate:
    """UCB over private robust means, each arm played in episodes of doubling length.

    Every arm is first played B0 times, in index order; B0 is the smallest power of two that is at least max(2, T0),
    with the threshold T0 of `prm_elimination`. Then the arm of largest private robust mean + radius is played for
    twice as many plays as its mean rests on, and the mean of these plays replaces the old one.

    Note:
        Mean, noise and radius are those of `prm_elimination`. Each mean rests on one episode alone. Ties go to the
        lowest index. Truncation rejects rewards that are not finite: they count as 0 and stay in the divisor. T0 is the
        number below which an estimate is not reliable. Departures from the paper:
        `docs/deviations/private_robust_mab.md`.

    >>> algorithm = jb.algorithms.prm_ucb(num_arms=3, horizon=1000, epsilon=0.5, corruption_bound=0.1)
    >>> int(algorithm.params.pulls[algorithm.params.first])
    128
    """
    scales = sampling_scale, privacy_scale, corruption_scale
    return index_over_private_means(num_arms, horizon, shortcut, None, *scales, **given)

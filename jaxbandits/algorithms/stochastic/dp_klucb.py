"""DP-KLUCB and DP-IMED (Azize et al. 2025): indices by a divergence that knows the noise, over batches that grow."""

import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Required, TypedDict, Unpack

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.stochastic import episodes, private_divergence
from jaxbandits.declared import Default, Epsilon, Example, Ge, Gt, NumArms
from jaxbandits.mechanisms.composition import laplace_event
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory

# Tables are as long as the next power of two above this, so that horizons share a program.
TABLE_ROWS = 64
MOST_BATCHES = 1 << 14


class Growing(TypedDict, total=False):
    """What DP-KLUCB and DP-IMED take.

    Args:
        batch_ratio: alpha: n_(m+1) is alpha n_m, rounded up, and at least n_m + 1.
        first_batch: n_1. For figures ceil(10 / epsilon) with `batch_ratio=1.5` is advised.
        index: "coupled" replaces n d_eps(p, q) by D_m(p, q; n), which counts the m noises on the sum.
    """

    epsilon: Required[Epsilon]
    batch_ratio: Annotated[Scalar, Gt(1), Default(2.0)]
    first_batch: Annotated[int, Ge(1), Default(1)]
    index: Annotated[Literal["printed", "coupled"], Default("printed")]


class Params(NamedTuple):
    epsilon: Numeric  # the privacy budget; `UNBOUNDED` without noise
    noise_scale: Numeric  # 1 / epsilon, 0 without noise
    targets: Numeric  # [m] pulls of an arm at the end of its batches
    mechanism_scale: Numeric


class Memory(NamedTuple):
    """What is remembered of the arms. Their sum is `whole` + `rest`, so that no reward is lost in a long one."""

    whole: Int[Array, " K"]
    rest: Float[Array, " K"]  # fractions below 1, and all noises
    pulls: Int[Array, " K"]
    batches: Int[Array, " K"]


def targets(horizon: int, batch_ratio: Scalar, first_batch: int) -> np.ndarray:
    """Pulls of an arm at the end of its batches: n_1, then max(n + 1, ceil(ratio n)), the first above the horizon last.

    Padded by `episodes.FOREVER` to `TABLE_ROWS`, or a power of two.
    """
    ends = [min(first_batch, episodes.FOREVER)]
    while ends[-1] <= horizon:
        ends.append(min(max(ends[-1] + 1, math.ceil(batch_ratio * ends[-1] - 1e-9)), episodes.FOREVER))
        if len(ends) > MOST_BATCHES:
            raise ValueError(
                f"batch_ratio = {batch_ratio:g} makes more than {MOST_BATCHES:,} batches of an arm: give a larger one"
            )
    size = max(TABLE_ROWS, 2 ** math.ceil(math.log2(len(ends) + 1)))
    return np.array(ends + [episodes.FOREVER] * (size - len(ends)), np.int32)


# params, clipped mean [K], pulls [K], batches [K], log t -> what is largest at the arm to play [K]
IndexRule = Callable[[Params, Any, Any, Any, Any], Array]


@cache
def index_rules(num_arms: int, index: IndexRule) -> episodes.Rules:
    """Batches of the arm of largest `index`, which is given log t of the coming play t.

    Draws: `mean`, one Laplace a batch, at its last play.
    """

    def init(params, draws):
        none = jnp.zeros(num_arms, jnp.int32)
        memory = Memory(whole=none, rest=jnp.zeros(num_arms, draws.dtype), pulls=none, batches=none)
        return memory, jnp.int32(0), jnp.asarray(params.targets)[0]

    def end(params, memory, draws, t, arm, total):
        dtype, table = total.dtype, jnp.asarray(params.targets)
        noise = params.mechanism_scale * params.noise_scale * draws.child("mean").laplace(t)
        whole = jnp.floor(total)
        memory = Memory(
            whole=memory.whole.at[arm].add(whole.astype(jnp.int32)),
            rest=memory.rest.at[arm].add(total - whole + noise),
            pulls=memory.pulls.at[arm].set(table[memory.batches[arm]]),
            batches=memory.batches.at[arm].add(1),
        )
        pulls = jnp.maximum(memory.pulls, 1).astype(dtype)
        mean = materialize(episodes.clip01(memory.whole.astype(dtype) / pulls + memory.rest / pulls))
        log_t = jnp.log((t + 1).astype(dtype))
        value = index(params, mean, pulls, memory.batches.astype(dtype), log_t)
        following = episodes.next_arm(value, memory.batches == 0)
        return memory, total + noise, following, table[memory.batches[following]] - memory.pulls[following]

    return episodes.Rules(init, episodes.clip_rewards, end)


def _events(params):
    scale = params.noise_scale * params.mechanism_scale
    return (laplace_event("sum of a batch's rewards in [0, 1]", 1.0, scale),)


def growing(printed: IndexRule, coupled: IndexRule, num_arms: int, horizon: int, given: Growing) -> Algorithm:
    """The algorithm that plays the arm of largest index in growing batches."""
    table, epsilon = targets(horizon, given["batch_ratio"], given["first_batch"]), given["epsilon"]
    rules = index_rules(num_arms, printed if given["index"] == "printed" else coupled)
    searched = epsilon if epsilon <= private_divergence.SEARCHED else private_divergence.UNBOUNDED
    params = Params(searched, 1 / epsilon, targets=table, mechanism_scale=1.0)
    others = num_arms * (int(np.sum(table <= horizon)) + 1)
    return episodes.algorithm(rules, horizon, others, params, episodes.pure_claim(_events))


def upper(params, mean, pulls, batches, log_t):
    """The largest mean q with d_eps(p, q) <= log t / n [K], on the scale -log(1 - q)."""
    return private_divergence.upper_index(mean, log_t / pulls, params.epsilon)


def joint_upper(params, mean, pulls, batches, log_t):
    """The largest mean q with D_m(p, q; n) <= log t [K], on the scale -log(1 - q)."""
    return private_divergence.upper_index_with_noises(mean, log_t / pulls, pulls, batches, params.epsilon)


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0}, horizon=600),
    source="""Azize, Wu, Honda, Orabona, Ito and Basu 2025 (arXiv 2505.05613): the abstract was read, the index and the
        noise in a detailed summary; the batches' lengths and `index="coupled"` are ours,
        `docs/formulas/private_frontier.md#dp-klucb`.""",
)
def dp_klucb(
    *, num_arms: NumArms, horizon: episodes.LimitedHorizon, **given: Unpack[Growing]
) -> episodes.CentralPrivate:
    """Play the arm of largest private index in batches that grow, and release one noisy sum a batch.

    Each arm is played for its first batch, in index order. Then the arm of the largest q with d_eps(p, q) <= ln t / n
    is played until its pulls reach the next of n_1, n_2, ..., and the sum of the batch is released with Laplace noise.
    Sums are not forgotten: an arm's mean p is that of all its batches and noises, over its n pulls, clipped to [0, 1].

    Warning:
        The regret theorem is asymptotic in T. With a ratio near 1 and a small epsilon many early batches put many
        noises on few samples, and a run may end on a wrong arm (22% of them at epsilon = 0.1 with ratio 1.1, DP-IMED, T
        = 1e5).

    Note:
        Rewards are clipped to [0, 1]; NaN counts as 0. Ties go to the lowest index. A batch that the horizon cuts is
        played and not released.

    >>> algorithm = jb.algorithms.dp_klucb(num_arms=3, horizon=20, epsilon=0.5, batch_ratio=1.5)
    >>> [int(n) for n in algorithm.params.targets[:8]]
    [1, 2, 3, 5, 8, 12, 18, 27]
    """
    return growing(upper, joint_upper, num_arms, horizon, given)


def least(params, mean, pulls, batches, log_t):
    """What is largest at the least n d_eps(p, max p) + log n [K]."""
    return -(pulls * private_divergence.divergence(mean, jnp.max(mean), params.epsilon) + jnp.log(pulls))


def joint_least(params, mean, pulls, batches, log_t):
    """What is largest at the least D_m(p, max p; n) + log n [K]."""
    apart = private_divergence.divergence_with_noises(mean, jnp.max(mean), pulls, batches, params.epsilon)
    return -(apart + jnp.log(pulls))


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0, "batch_ratio": 1.5, "first_batch": 4}, horizon=600),
    source="""Azize, Wu, Honda, Orabona, Ito and Basu 2025 (arXiv 2505.05613): the abstract was read, the index and the
        noise in a detailed summary; the batches' lengths and `index="coupled"` are ours,
        `docs/formulas/private_frontier.md#dp-imed`.""",
)
def dp_imed(
    *, num_arms: NumArms, horizon: episodes.LimitedHorizon, **given: Unpack[Growing]
) -> episodes.CentralPrivate:
    """Play the arm of least private divergence from the best in batches that grow, and release one noisy sum a batch.

    Each arm is played for its first batch, in index order; then always the arm of the least n d_eps(p, q) + ln n for
    the best arm's q = max p. Batches, means p and noise are those of `dp_klucb`.

    Note:
        As `dp_klucb`, its warning included: many early batches with much noise may lead a run to a wrong arm.

    >>> jb.algorithms.dp_imed(num_arms=3, horizon=20, epsilon=0.5).params.noise_scale
    2.0
    """
    return growing(least, joint_least, num_arms, horizon, given)

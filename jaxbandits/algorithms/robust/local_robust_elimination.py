"""Elimination by locally private bits, with corruption before or after the clients' noise, or both.

Axes: [K] arms, [P] plays of a window, [B] batches, batch b = 1, 2, ... having 2^b pulls of every arm.
Draws: `alg/encode/bit`, one uniform a play.
"""

import math
import warnings
from functools import cache
from typing import Annotated, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.stochastic import episodes, integer_sums
from jaxbandits.algorithms.stochastic.elimination import after_block, last_arm
from jaxbandits.declared import HOST, Epsilon, Example, Ge, Horizon, Inside, Le, NonNegative, NumArms, Positive, Share
from jaxbandits.estimators.cut_means import clip_reports
from jaxbandits.mechanisms.composition import guarantee, response_event, view_message
from jaxbandits.mechanisms.pure import randomized_response, response_bound
from jaxbandits.numerics import count, materialize
from jaxbandits.protocol import Algorithm, Rewards, Tails
from jaxbandits.typing import Array, Bool, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory

# Of every table: the last batch is longer than any horizon, so that all horizons share a program.
BATCHES = 31
VACUOUS = 1e30  # a radius that no difference of estimates exceeds


class Params(NamedTuple):
    """Numbers of the algorithm, and tables [B] with one entry for each batch."""

    sizes: Numeric  # int32: pulls of a block
    clip: Numeric  # M, where clients truncate
    bound: Numeric  # c M, the size of an honest report
    ceiling: Numeric  # a power of two, at least the bound
    radius: Numeric
    noise_scale: Numeric  # 1 / epsilon, 0 without noise; no table
    mechanism_scale: Numeric  # multiplies the noise of the clients, not what the server believes; no table


class Memory(NamedTuple):
    """Which arms are left, and what is known of them."""

    active: Bool[Array, " K"]
    estimate: Float[Array, " K"]
    batch: Int[Array, ""]  # batches finished


@cache
def batch_rules(num_arms: int, truncation: str) -> episodes.Rules:
    """Elimination in batches of doubling length; a client truncates its reward and reports one private bit."""

    def init(params, draws):
        memory = Memory(jnp.ones(num_arms, bool), jnp.zeros(num_arms, draws.dtype), jnp.int32(0))
        return memory, jnp.int32(0), jnp.asarray(params.sizes)[0]

    def note(params, memory):
        return jnp.asarray(params.clip)[memory.batch]

    def encode(params, note, draws, t, value):
        if truncation == "zero":
            value = jnp.where(jnp.abs(value) <= note, value, 0)
        else:
            value = clip_reports(value, note)
        scale = params.noise_scale * params.mechanism_scale
        bit = randomized_response(draws.child("bit").uniform(t), (value + note) / (2 * note), scale)
        return note * (2 * bit - 1)

    def bound_reports(params, memory, arm, value, present):
        bound = jnp.asarray(params.bound)[memory.batch]
        return memory, clip_reports(value, bound), jnp.asarray(params.ceiling)[memory.batch]

    def end(params, memory, draws, t, arm, total):
        sizes = jnp.asarray(params.sizes)
        own = materialize(total / sizes[memory.batch].astype(total.dtype))
        estimate = memory.estimate.at[arm].set(own)
        slack = 2 * jnp.asarray(params.radius)[memory.batch]
        active, ends, following = after_block(memory.active, estimate, arm, slack)
        batch = jnp.minimum(memory.batch + ends.astype(jnp.int32), BATCHES - 1)
        length = jnp.where(count(active) == 1, episodes.FOREVER, sizes[batch])
        return Memory(active, estimate, batch), own, following, length

    def diagnose(params, memory):
        return {"active_arms": count(memory.active), "batches": memory.batch}

    return episodes.Rules(init, bound_reports, end, diagnose, last_arm, note, encode)


def _events(params):
    return (response_event("bit of one play's reward", params.noise_scale * params.mechanism_scale, bits=23),)


def clip_level(
    pulls: Numeric, c: Scalar, order: Scalar, unit: Scalar, before: Scalar, after: Scalar, log: Scalar, scale: Scalar
) -> np.ndarray:
    """M of a block of so many pulls, log = ln(1 / failure_prob)."""
    pulls = np.asarray(pulls, np.float64)
    if math.isinf(order):
        return np.full(pulls.shape, unit)
    level = (pulls / (c**2 * log)) ** (1 / (2 * order))
    if before > 0:
        level = np.minimum(level, before ** (-1 / order))
    if after > 0:
        level = np.minimum(level, (c * after) ** (-1 / order))
    return scale * unit * level


def explicit_radius(
    pulls: Numeric, clip: np.ndarray, c: Scalar, order: Scalar, unit: Scalar, before: Scalar, after: Scalar,
    failure_prob: Scalar, truncation: str,
) -> np.ndarray:  # fmt: skip
    """Which the estimate's error exceeds with probability at most `failure_prob`."""
    noise = c * clip * np.sqrt(2 * math.log(2 / failure_prob) / np.asarray(pulls, np.float64))
    tail = np.zeros(clip.shape)
    if math.isfinite(order):
        share = 1.0
        if truncation == "clip":
            share = math.exp((order - 1) * math.log(order - 1) - order * math.log(order))
        with np.errstate(over="ignore"):
            tail = np.minimum(share * unit * (clip / unit) ** (1 - order), VACUOUS)
    client = (1 - before) * tail + before * (clip + unit)
    return noise + (1 - after) * client + after * (c * clip + unit)


@factory(
    plays_on="arms",
    example=Example(
        {"epsilon": 2.0, "moment_order": math.inf, "corruption_after": 0.02},
        message_adversary={"name": "huber", "corruption": 0.02, "kind": "target", "value": "inf"},
        horizon=600,
    ),
    source="""Zhou and Zhang, NeurIPS 2024, whose algorithm was not readable; estimator, radius and constants are this
        package's: `docs/formulas/private_frontier.md#local-privacy-and-corruption`.""",
)
def local_robust_elimination(
    *,
    num_arms: NumArms,
    horizon: Annotated[Horizon, Le(episodes.FOREVER - 1)],
    epsilon: Epsilon,
    moment_order: Annotated[Scalar, Ge(2), Le(math.inf)] = 2.0,
    moment_bound: Positive = 1.0,
    corruption_before: Share = 0.0,
    corruption_after: Share = 0.0,
    failure_prob: Inside | None = None,
    radius: Annotated[Literal["order", "explicit"], HOST] = "order",
    truncation: Literal["zero", "clip"] = "zero",
    clip_scale: Positive = 1.0,
    privacy_scale: NonNegative = 0.75,
    corruption_scale: NonNegative = 0.5,
) -> Algorithm:
    """Eliminate arms by locally private bits, some rewards or reports of which may be corrupted.

    For b = 1, 2, ... every remaining arm is pulled n = 2^b times, in index order. A client truncates its reward at M
    and reports one private bit, c M or -c M, whose mean is the truncated reward; c = (e^epsilon + 1) / (e^epsilon -
    1). The server clips reports to [-c M, c M] and takes their mean. Then an arm is dropped when the largest mean
    exceeds its own by more than 2 beta, and earlier data are forgotten. The last arm is played to the horizon.

    Args:
        epsilon: Privacy budget of one play, in [0.0001, 15] or ``float("inf")``: reports are then not flipped, but
            still bits.
        moment_order: Order k of the moment that is known of an arm's rewards, E|X|^k <= u. At ``float("inf")`` rewards
            lie in [-u, u].
        moment_bound: The bound u, in units of a reward to the power k (k = inf: of a reward). s = u^(1/k), or u, is the
            unit that rewards are measured in.
        corruption_before: Largest share of rewards corrupted before the client's noise that the learner believes in.
        corruption_after: Largest share of reports corrupted on their way to the server that the learner believes in.
            From c corruption_after = 1 on the radius is at least s/2 for ever, which is warned of.
        failure_prob: Failure probability delta of one confidence bound with ``radius="explicit"``; at the default
            scales of ``"order"`` the probability of nothing. The default: 1 / horizon, and 1/2 at horizon 1.
        radius: The confidence radius beta. "order": s (privacy_scale (c sqrt(L / n))^(1 - 1/k) + corruption_scale
            (corruption_before^(1 - 1/k) + (c corruption_after)^(1 - 1/k))), L = ln(1 / delta). "explicit": with all
            constants, from a proof of this package; wider.
        truncation: What a client does with a reward of size above M: it counts as 0, or as M with its sign.
        clip_scale: Multiplies M; without effect at ``moment_order=float("inf")``, where M = s.
        privacy_scale: Multiplies the privacy part of the order radius. The default was tried out: with 0.5, 5% of
            Bernoulli runs at epsilon = 0.5 lost the best arm, with 0.75 none.
        corruption_scale: Multiplies the corruption part of the order radius. The default is this package's.

    Returns:
        Algorithm: epsilon-private in the local model; the unit of privacy is the reward of one play. Diagnostics at the
            horizon: ``active_arms``, and ``batches`` finished.

    Warns:
        UserWarning: If the radius can never drop an arm, see `corruption_after`.

    Note:
        M = clip_scale s min((n / (c^2 L))^(1 / (2k)), corruption_before^(-1/k), (c corruption_after)^(-1/k)), the last
        two where there is corruption. NaN counts as 0, of rewards and of reports. Attack rewards with an adversary as
        `reward_adversary` and reports with one as `message_adversary`; its shares are its own, and the learner's are
        what it believes. A block that the horizon cuts gives no estimate. All arguments but those marked [static] are
        data: a grid over them shares a program.

    >>> algorithm = jb.algorithms.local_robust_elimination(num_arms=3, horizon=100_000, epsilon=1.0)
    >>> round(algorithm.guarantee.spend(algorithm.params)[0], 6), round(float(algorithm.params.clip[11]), 4)
    (1.0, 2.9524)
    """
    if math.isfinite(epsilon) and not 1e-4 <= epsilon <= 15:
        raise ValueError(
            f"epsilon = {epsilon!r} must be in [0.0001, 15], or inf: the uniforms of randomized response have 23 "
            "bits, and rarer flips would never come"
        )
    order, before, after = moment_order, corruption_before, corruption_after
    failure = 1 / max(horizon, 2) if failure_prob is None else failure_prob
    c, log = response_bound(epsilon), math.log(1 / failure)
    if c * after >= 1:
        warnings.warn(
            f"local_robust_elimination: at epsilon = {epsilon:g} a share corruption_after = {after:g} of reports "
            "outweighs what honest ones say, and no arm may ever be dropped; give a larger epsilon or a smaller share",
            stacklevel=3,
        )
    unit = moment_bound if math.isinf(order) else moment_bound ** (1 / order)
    power = 1 - 1 / order
    sizes = np.minimum(2.0 ** np.arange(1, BATCHES + 1), episodes.FOREVER)
    clip = clip_level(sizes, c, order, unit, before, after, log, clip_scale)
    if radius == "order":
        private = privacy_scale * (c * np.sqrt(log / sizes)) ** power
        beta = unit * (private + corruption_scale * (before**power + (c * after) ** power))
    else:
        beta = explicit_radius(sizes, clip, c, order, unit, before, after, failure, truncation)
    params = Params(
        sizes=sizes.astype(np.int64),
        clip=clip,
        bound=c * clip,
        # an honest report may lie one rounding above the bound, and is clipped to it
        ceiling=integer_sums.power_above(c * clip),
        radius=np.minimum(beta, VACUOUS),
        noise_scale=0.0 if math.isinf(epsilon) else 1 / epsilon,
        mechanism_scale=1.0,
    )
    rules, claim = batch_rules(num_arms, truncation), guarantee("local", "reward", _events, view_message)
    rewards = Rewards(-float(moment_bound), float(moment_bound), truncation) if math.isinf(order) else Rewards()
    tails = None if math.isinf(order) else Tails(order, moment_bound)
    return episodes.algorithm(rules, horizon, num_arms * horizon.bit_length(), params, claim, rewards, tails)

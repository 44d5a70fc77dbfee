"""Distributed elimination (Chowdhury and Zhou, ICLR 2023): secure aggregation shows the server a block's noisy sum.

Axes: [K] arms, [P] plays of a window, [B] batches, batch
b = 1, 2, ... having 2^b plays of every arm. Draws: `alg/encode/round`, one uniform a play, and at a block's last play
`alg/update/plus` and `alg/update/minus` (laplace) or `alg/update/noise` (skellam).
"""

import math
from functools import cache, partial
from typing import Annotated, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.stochastic import episodes
from jaxbandits.algorithms.stochastic.elimination import after_block, last_arm
from jaxbandits.declared import HOST, ClaimedDelta, Example, FailureProb, Ge, NonNegative, NumArms, Positive, Remedy
from jaxbandits.mechanisms.composition import delta_of_params, guarantee, other_event, view_released
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.numerics import count, fixed_sum, materialize
from jaxbandits.protocol import Algorithm
from jaxbandits.theory import skellam_epsilon
from jaxbandits.typing import Array, Bool, Float, Int, Numeric, Scalar, UInt32
from jaxbandits.validation import factory

# Of every table: the last batch is longer than any horizon, so that all horizons share a program.
BATCHES = 31
LEAST_NOMINAL = 1e-6  # nominal epsilon of Skellam noise: smaller ones spend hardly less
MOST_LEVELS = 2**24  # a reward becomes an integer in [0, g], sent as a float


class Params(NamedTuple):
    """Numbers of the algorithm, and tables [B] with one entry for each batch."""

    # int32: plays of a block
    sizes: Numeric
    # g: a reward of 1 becomes the integer g
    levels: Numeric
    # int32: tau, beyond which the noise of a block rarely is
    margin: Numeric
    # int32: m, the modulus of the sums
    modulus: Numeric
    # of a sum's noise: g / epsilon, or its standard deviation's square before rounding
    spread: Numeric
    # [B, K] by the number of active arms less one: an arm is dropped when the best mean exceeds its own by more
    slack: Numeric
    # of the claim; no table
    epsilon: Numeric
    precision_scale: Numeric
    delta: Numeric
    # multiplies the noise, not what the server believes; no table
    mechanism_scale: Numeric


class Memory(NamedTuple):
    """Which arms are left, what is known of them, and the running block's sum."""

    active: Bool[Array, " K"]
    estimate: Float[Array, " K"]
    batch: Int[Array, ""]  # batches finished
    sum: UInt32[Array, ""]


def two_sided_geometric(spread: Numeric, plus: Numeric, minus: Numeric) -> Float[Array, ""]:
    """Discrete Laplace noise, P(z) proportional to exp(-|z| / spread), from two exponentials; 0 gives exactly 0."""
    return jnp.floor(spread * plus) - jnp.floor(spread * minus)


def skellam(variance: Numeric, normal: Float[Array, ""]) -> Float[Array, ""]:
    """The difference of two Poisson numbers of mean variance / 2, from one normal; 0 gives exactly 0.

    A normal, corrected for the law's kurtosis and for the rounding. Total variation to the law, measured: 7e-4 at
    variance 8, 1e-6 at 200 and falling as its square.
    """
    deviation = jnp.sqrt(jnp.maximum(variance - 1 / 12, 0))
    tail = (normal * normal * normal - 3 * normal) / (24 * jnp.maximum(variance, 1e-3))
    return jnp.where(variance > 0, jnp.round(deviation * (normal + tail)), 0)


@cache
def modulus_rules(num_arms: int, noise: str) -> episodes.Rules:
    """Elimination in batches of doubling length, on sums that a modulus hides."""

    def init(params, draws):
        active, nothing = jnp.ones(num_arms, bool), jnp.zeros(num_arms, draws.dtype)
        memory = Memory(active, nothing, jnp.int32(0), jnp.uint32(0))
        return memory, jnp.int32(0), jnp.asarray(params.sizes)[0]

    def note(params, memory):
        return jnp.asarray(params.levels)[memory.batch]

    def encode(params, note, draws, t, value):
        exact = episodes.clip01(value) * note
        low = jnp.floor(exact)
        return low + (draws.child("round").uniform(t) < exact - low).astype(value.dtype)

    def sum_levels(params, memory, arm, value, present):
        levels = jnp.asarray(params.levels)[memory.batch]
        whole = jnp.where(value > 0, jnp.minimum(jnp.round(value), levels), 0)
        total = memory.sum + fixed_sum(jnp.where(present, whole, 0).astype(jnp.uint32))
        return memory._replace(sum=total), jnp.zeros_like(value), 1.0

    def draw_noise(params, memory, draws, t):
        spread = jnp.asarray(params.spread)[memory.batch]
        if noise == "laplace":
            plus, minus = (draws.child(name).exponential(t) for name in ("plus", "minus"))
            return two_sided_geometric(params.mechanism_scale * spread, plus, minus)
        return skellam(params.mechanism_scale * params.mechanism_scale * spread, draws.child("noise").normal(t))

    def end(params, memory, draws, t, arm, total):
        sizes, at = jnp.asarray(params.sizes), memory.batch
        modulus, levels = jnp.asarray(params.modulus)[at], jnp.asarray(params.levels)[at]
        added = jnp.mod(draw_noise(params, memory, draws, t).astype(jnp.int32), modulus).astype(jnp.uint32)
        shown = ((memory.sum + added) % modulus.astype(jnp.uint32)).astype(jnp.int32)
        largest = sizes[at] * levels.astype(jnp.int32) + jnp.asarray(params.margin)[at]
        whole = jnp.where(shown > largest, shown - modulus, shown).astype(draws.dtype)
        own = materialize(whole / levels / sizes[at].astype(draws.dtype))
        estimate = memory.estimate.at[arm].set(own)
        slack = jnp.asarray(params.slack)[at, count(memory.active) - 1]
        active, ends, following = after_block(memory.active, estimate, arm, slack)
        batch = jnp.minimum(at + ends.astype(jnp.int32), BATCHES - 1)
        length = jnp.where(count(active) == 1, episodes.FOREVER, sizes[batch])
        return Memory(active, estimate, batch, jnp.uint32(0)), own, following, length

    def diagnose(params, memory):
        return {"active_arms": count(memory.active), "batches": memory.batch}

    return episodes.Rules(init, sum_levels, end, diagnose, last_arm, note, encode)


def _events(noise, params):
    what, c = "sum of a block's rewards in [0, 1]", float(params.mechanism_scale)
    epsilon = math.inf if c == 0 else float(params.epsilon) / c
    if noise == "laplace":
        return (other_event("discrete laplace", what, epsilon, sensitivity=1.0, scale=c / float(params.epsilon)),)
    spent, delta = math.inf, float(params.delta)
    if c > 0:
        spent = skellam_epsilon(epsilon, c * float(params.precision_scale), delta)
    return (other_event("skellam", what, spent, delta, sensitivity=1.0, scale=c / float(params.epsilon)),)


def nominal_epsilon(epsilon: Scalar, precision_scale: Scalar, delta: Scalar) -> float:
    """The largest nominal epsilon that spends at most `epsilon` by Skellam noise, else ValueError."""
    low, high = LEAST_NOMINAL, float(epsilon)
    if (least := skellam_epsilon(low, precision_scale, delta)) > epsilon:
        raise ValueError(
            f"epsilon = {epsilon:g}: at delta = {delta:g} Skellam noise is known to spend {least:.3g} at least: give a "
            "larger epsilon or delta, noise='laplace', or calibration='paper'"
        )
    while skellam_epsilon(high, precision_scale, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if skellam_epsilon(middle, precision_scale, delta) <= epsilon else (low, middle)
    return low


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0, "radius_scale": 0.3}, horizon=600),
    source="""Chowdhury and Zhou, Distributed differential privacy in multi-armed bandits (ICLR 2023), Algorithm 1,
        Theorems 1 and 2; the radius is that of the authors' code:
        `docs/formulas/private_frontier.md#secure-aggregation`.""",
)
def dist_elimination(
    *,
    num_arms: NumArms,
    horizon: episodes.LimitedHorizon,
    epsilon: Annotated[Positive, Remedy("for no noise use successive_elimination")],
    noise: Literal["laplace", "skellam"] = "laplace",
    calibration: Annotated[Literal["exact", "paper"], HOST] = "exact",
    precision_scale: Annotated[Scalar, Ge(1)] = 10.0,
    radius_scale: NonNegative = 1.0,
    failure_prob: FailureProb | None = None,
    delta: ClaimedDelta | None = None,
) -> Algorithm:
    """Eliminate arms by sums that secure aggregation shows: the server never sees one client's report.

    For b = 1, 2, ... every remaining arm is pulled n = 2^b times, in index order. A client rounds g times its reward to
    an integer, up or down at random and without bias. The server sees the block's sum, with integer noise, modulo m.
    Then an arm is dropped when the largest mean exceeds its own by more than 2 beta, and earlier data are forgotten.
    The last arm is played to the horizon, without releases.

    Args:
        epsilon: Privacy budget of one reward.
        noise: Of a block's sum, which its clients add together. "laplace": discrete Laplace noise of scale g / epsilon,
            g = ceil(epsilon sqrt(n)). "skellam": the difference of two Poisson numbers of mean g^2 / (2 e^2), g =
            ceil(precision_scale e sqrt(n)), with a nominal epsilon e.
        calibration: e of "skellam". "exact": the largest that spends at most (epsilon, delta) by
            `theory.skellam_epsilon`. "paper": epsilon, which spends more.
        precision_scale: s; read with "skellam" only. Larger values make the Renyi cost that of a normal, and the
            integers larger.
        radius_scale: Multiplies the radius beta.
        failure_prob: Failure probability p of one batch. The default: 1 / horizon, and 1/2 at horizon 1.
        delta: At which "skellam" states its claim. The default: min(1e-5, 1 / horizon).

    Returns:
        Algorithm: Private in the distributed model: what the aggregator hands on is covered, and the unit of privacy is
            one reward. "laplace" is epsilon-private. Diagnostics at the horizon: ``active_arms``, and ``batches``
            finished.

    Raises:
        ValueError: If an argument lies outside its range; if a block that this horizon can finish has integers beyond
            2^24, or a modulus of 2^31 or more; if no "skellam" noise spends so little.

    Note:
        m = n g + 2 tau + 1. With k active arms, beta = sqrt(ln(4 k b^2 / p) / (2 n)) + (v sqrt(l) + h l) / n, where l =
        ln(2 k b^2 / p). "laplace": tau = ceil(g / epsilon ln(2 / p)), v = sqrt(2) / epsilon, h = 1 / epsilon.
        "skellam": tau = ceil(2 g / e sqrt(ln(2 / p)) + sqrt(2) ln(2 / p)), v = 2 / e + sqrt(2) / (s e), h = 1 / (s e).

        The noise of a block is drawn at once, with the law of what its clients would add. Rewards are clipped to [0,
        1]; NaN counts as 0. A report that an attack changes is rounded and clipped to [0, g], as by an aggregator that
        checks ranges. The Skellam law is a corrected, rounded normal: total variation at most 1e-6 at the default
        precision. A block that the horizon cuts gives no estimate.

    >>> algorithm = jb.algorithms.dist_elimination(num_arms=3, horizon=100_000, epsilon=0.5, failure_prob=0.1)
    >>> algorithm.guarantee.spend(algorithm.params), int(algorithm.params.levels[9]), int(algorithm.params.modulus[9])
    ((0.5, 0.0), 16, 16577)
    """
    s, asked = precision_scale, epsilon
    delta = default_delta(delta, horizon, 1e-5) if noise == "skellam" else 0.0
    if noise == "skellam" and calibration == "exact":
        epsilon = nominal_epsilon(asked, s, delta)
    failure = 1 / max(horizon, 2) if failure_prob is None else failure_prob
    b = np.arange(1.0, BATCHES + 1)
    sizes = np.minimum(2.0**b, episodes.FOREVER)
    # before batch b two arms at least had all earlier ones: the blocks behind can end at no play of this horizon
    ends = 3 * 2.0**b - 4 <= horizon
    log = math.log(2 / failure)
    levels = np.ceil((1.0 if noise == "laplace" else s) * epsilon * np.sqrt(sizes))
    if noise == "laplace":
        margin, spread = np.ceil(levels / epsilon * log), levels / epsilon
        deviation, tail = math.sqrt(2) / epsilon, 1 / epsilon
    else:
        margin = np.ceil(2 * levels / epsilon * math.sqrt(log) + math.sqrt(2) * log)
        spread = (levels / epsilon) ** 2
        deviation, tail = 2 / epsilon + math.sqrt(2) / (s * epsilon), 1 / (s * epsilon)
    modulus = sizes * levels + 2 * margin + 1
    reach = 32 * levels / epsilon  # which no draw exceeds
    beyond = ends & ((np.maximum(modulus, reach) >= 2.0**31) | (levels > MOST_LEVELS))
    if beyond.any():
        first = int(np.argmax(beyond))
        smaller = "a smaller horizon, epsilon" + (" or precision_scale" if noise == "skellam" else "")
        raise ValueError(
            f"horizon = {horizon}, epsilon = {asked:g}: a block of {sizes[first]:.0f} plays needs integers up to "
            f"{levels[first]:.3g}, noise up to {reach[first]:.3g} and a modulus of {modulus[first]:.3g}, beyond 2^24, "
            f"2^31 and 2^31: give {'a larger epsilon' if reach[first] > sizes[first] * levels[first] else smaller}"
        )
    levels, margin, modulus = (np.where(ends, x, low) for x, low in ((levels, 1.0), (margin, 0.0), (modulus, 1.0)))
    arms = np.arange(1.0, num_arms + 1)
    private = np.log(2 * arms * b[:, None] ** 2 / failure)
    beta = np.sqrt(np.log(4 * arms * b[:, None] ** 2 / failure) / (2 * sizes[:, None]))
    beta = beta + (deviation * np.sqrt(private) + tail * private) / sizes[:, None]
    params = Params(
        sizes=sizes.astype(np.int64),
        levels=levels,
        margin=margin.astype(np.int64),
        modulus=modulus.astype(np.int64),
        spread=spread,
        slack=2 * radius_scale * beta,
        epsilon=epsilon,
        precision_scale=s,
        delta=delta,
        mechanism_scale=1.0,
    )
    claim = guarantee("shuffle", "reward", partial(_events, noise), view_released, delta=delta_of_params)
    return episodes.algorithm(modulus_rules(num_arms, noise), horizon, num_arms * horizon.bit_length(), params, claim)

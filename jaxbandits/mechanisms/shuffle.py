"""The shuffle model: what users send when a shuffler stands between them and the server, and what that delivers.

There are two protocols. "amplified": every user adds Gaussian noise and the shuffler permutes the messages of a
batch. "vector" (after Cheu, Joseph, Mao and Peng 2022): every user sends each coordinate as an integer plus
binomial noise, and only the batch's sums arrive.
"""

import functools
import math
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import Delta, Doc, Ge, Gt, Le, NonNegative, Positive
from jaxbandits.mechanisms.gaussian import Delta as GaussianDelta
from jaxbandits.mechanisms.gaussian import Deviation, Sensitivity, gaussian_epsilon
from jaxbandits.random import to_normal
from jaxbandits.typing import Array, Float, Numeric, Scalar, UInt32
from jaxbandits.validation import declare

BINOMIAL_SHARE = 0.25  # p of the binomial noise
SUPPORT_BLOCKS = 1500  # of the noise's support, over which `vector_epsilon` bounds the loss from above
MAX_BATCH_TRIALS = 2.0**53  # binomial trials of a batch: the law of so many is still computed on integers
CHERNOFF_ORDERS = np.geomspace(0.02, 300, 120)  # Chernoff exponents tried
LEAST_SLOPE = 1e-300  # above 0, so that it divides

MessageEpsilon = Annotated[Scalar, Ge(0), Le(math.inf), Doc("Epsilon e0 of a message.")]
Users = Annotated[int, Ge(1), Doc("Users of a batch, each with one message.")]
Coordinates = Annotated[int, Ge(1), Doc("Coordinates of a message.")]


@declare(check=False)
class VectorCode(NamedTuple):
    """Numbers of the vector protocol, as `vector_code` makes them.

    Args:
        bound (float): L: coordinates lie in [-L, L].
        levels (float): g: a coordinate is rounded to multiples of L / g.
        trials (float): B b: binomial trials a coordinate of a whole batch, all users together.
    """

    bound: Any
    levels: Any
    trials: Any


@declare(source="Published code of Chowdhury and Zhou 2022, repaired: docs/formulas/ldp_contextual.md#vector-code")
def vector_code(
    bound: Annotated[Scalar, Gt(0), Doc("L: coordinates lie in [-L, L].")],
    users: Users,
    dim: Annotated[int, Ge(1), Doc("Features d; not coordinates of a message.")],
    epsilon: Annotated[Scalar, Gt(0), Le(math.inf)],
    delta: Delta,
    *,
    constant: Annotated[NonNegative, Doc("c. The default: the tuned 10 for epsilon >= 1, and 1 below.")] | None = None,
    log: Annotated[NonNegative, Doc("The logarithm. The default: log(d / delta).")] | None = None,
) -> VectorCode:
    """The numbers of the vector protocol, as the published code has them.

    g = max(2 sqrt B, d, 4) levels and b = floor(c g^2 log^2(d / delta) / (epsilon^2 B)) binomial trials a user.

    They are the bound L, the levels g and the trials B b.

    Args:
        epsilon: The budget that the published formula is given; inf: b = 0. What is spent is `vector_epsilon`.

    Raises:
        ValueError: For arguments outside these ranges, and where the trials are too many to count.

    >>> [int(vector_code(1.0, 20, 5, epsilon, 0.1).trials) // 20 for epsilon in (0.2, 1.0, 10.0, float("inf"))]
    [1530, 612, 6, 0]
    """
    levels = float(max(2 * math.sqrt(users), dim, 4))
    constant = (10.0 if epsilon >= 1 else 1.0) if constant is None else constant
    log = math.log(dim / delta) if log is None else log
    root = levels * log / epsilon
    trials = constant * root * root / users
    if trials * users > MAX_BATCH_TRIALS:
        raise ValueError(f"epsilon = {epsilon:g} needs {trials:.3g} binomial trials a user: raise epsilon")
    return VectorCode(bound, levels, float(users * math.floor(trials)))


def encode(code: VectorCode, uniform: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Round (v + L) g / L up or down at random, without bias: integers as floats.

    A coordinate outside [-L, L] is cut there.

    >>> code = VectorCode(1.0, 4.0, 0.0)
    >>> encode(code, jnp.array([0.7, 0.7, 0.7]), jnp.array([-1.0, 0.2, 3.0]))
    Array([0., 5., 8.], dtype=float32)
    """
    z = (jnp.clip(value, -code.bound, code.bound) + code.bound) * (code.levels / code.bound)
    low = jnp.floor(z)
    return low + (uniform < z - low).astype(z.dtype)


def batch_noise(trials: Numeric, bits: UInt32[Array, "..."], dtype: type[Any]) -> Float[Array, "..."]:
    """Bin(trials, 1/4) less its mean, for all users of a batch at once: one value a word of `bits`.

    0 trials give exactly 0.

    A normal, corrected for the law's skewness and rounded to an integer: total variation to the binomial law
    below 1e-2 from 5 trials on, 5e-3 from 20, 1e-3 from 120 (measured). An exact sampler took ten times as long
    and knows no 1e9 trials.
    """
    trials = jnp.asarray(trials, dtype)
    mean, z = BINOMIAL_SHARE * trials, to_normal(bits, dtype)
    scale = jnp.sqrt(trials * (BINOMIAL_SHARE * (1 - BINOMIAL_SHARE)))
    part = jnp.mod(mean, 1)  # integers lie a part of 1 off the mean
    drawn = jnp.round(scale * z + (1 - 2 * BINOMIAL_SHARE) / 6 * (z * z - 1) + part) - part
    return jnp.where(trials > 0, jnp.clip(drawn, -mean, trials - mean), 0)


def decode(code: VectorCode, total: Float[Array, "..."], users: Numeric) -> Float[Array, "..."]:
    """A coordinate's sum over `users` from the sum of their integers, less the noise's mean.

    >>> code = VectorCode(1.0, 4.0, 0.0)
    >>> float(decode(code, jnp.float32(0 + 5 + 8), 3))
    0.25
    """
    return code.bound / code.levels * total - users * code.bound


@declare(source="Feldman, McMillan and Talwar 2021, Theorem 3.1 (recalled; the condition there has log(2 / delta))")
def shuffle_epsilon(local_epsilon: MessageEpsilon, users: Users, delta: Delta) -> float:
    """A bound on the epsilon of a permuted batch of purely private messages.

    log(1 + (e^e0 - 1) / (e^e0 + 1) (8 sqrt(e^e0 log(4 / delta) / n) + 8 e^e0 / n)) for e0 <= log(n / (16 log(4
    / delta))).

    It is e0 itself where the theorem is silent.

    >>> shuffle_epsilon(1.0, 20, 0.1), round(shuffle_epsilon(1.0, 10_000, 0.1), 4)
    (1.0, 0.1116)
    """
    e0, n, log = float(local_epsilon), users, math.log(4 / delta)
    if e0 > math.log(n / (16 * log)):
        return e0
    return min(e0, math.log1p(math.tanh(e0 / 2) * (8 * math.sqrt(math.exp(e0) * log / n) + 8 * math.exp(e0) / n)))


@declare(source="Feldman, McMillan and Talwar 2021; docs/formulas/ldp_contextual.md#shuffle-model")
def amplified_epsilon(
    sensitivity: Sensitivity, scale: Deviation, users: Users, coordinates: Coordinates, delta: GaussianDelta
) -> float:
    """A bound on the epsilon of a permuted batch of Gaussian messages.

    The lesser of the local guarantee and of amplification by shuffling.

    Args:
        sensitivity: Largest L2 change of a message between users, in the norm in which the noise is spherical.
        scale: Standard deviation of a coordinate's noise.

    Note:
        The local guarantee holds always, since permuting is post-processing. Amplification theorems ask for pure local
        privacy. A message cut to a ball of radius rho about the centre of the inputs has it, with e0 = sensitivity (rho
        + sensitivity / 2) / scale^2 - log(1 - q) and q the probability that a message lies outside; n users then cost
        (1 + e^epsilon) n q of delta. That bites for wide noise and thousands of users only.

        A server that sees no more than the sum learns less: `gaussian_epsilon(sensitivity, sqrt(users) scale, delta)`.

    >>> amplified_epsilon(2.1, 0.5, 20, 20, 0.1) == gaussian_epsilon(2.1, 0.5, 0.1)
    True
    """
    from scipy import stats

    local = gaussian_epsilon(sensitivity, scale, delta)
    best = local
    for q in delta / users * np.geomspace(1e-12, 0.1, 40) if 0 < local < math.inf else ():
        # the inputs lie in a ball of radius sensitivity / sqrt 2 (Jung)
        radius = sensitivity / math.sqrt(2) + scale * stats.chi(coordinates).isf(q)
        pure = sensitivity * (radius + sensitivity / 2) / scale**2 - math.log1p(-q)
        epsilon = shuffle_epsilon(pure, users, delta / 2)
        if epsilon < best and (1 + math.exp(epsilon)) * users * q <= delta / 2:
            best = epsilon
    return best


def _losses(trials: int, low: int, high: int, shifts: int) -> tuple[np.ndarray, np.ndarray]:
    """Log mass [blocks] of blocks of low <= noise <= high, and the largest loss in each: [shifts + 1, 2, blocks].

    Of shifts up and down.
    """
    from scipy import stats

    edges = np.unique(np.linspace(low, high + 1, SUPPORT_BLOCKS + 1).astype(np.int64))
    mass = np.diff(stats.binom.cdf(edges - 1.0, trials, BINOMIAL_SHARE))
    # the loss of a shift is monotone in the noise: its largest value in a block is at one end
    last, first = edges[1:] - 1.0, edges[:-1].astype(float)
    losses, odds = np.zeros((shifts + 1, 2, len(last))), math.log((1 - BINOMIAL_SHARE) / BINOMIAL_SHARE)
    for s in range(1, shifts + 1):
        losses[s, 0] = losses[s - 1, 0] + np.log((last + s) / (trials - last - s + 1)) + odds
        losses[s, 1] = losses[s - 1, 1] + np.log((trials - first + s) / (first - s + 1)) - odds
    return np.log(np.maximum(mass, 1e-300)), losses


def _log_moments(weight: np.ndarray, losses: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """log E[exp(order loss)] over blocks, from above: [2, orders, shifts + 1] for shifts up and down."""
    moments = np.zeros((2, len(orders), len(losses)))
    for s, sides in enumerate(losses):
        for side, loss in enumerate(sides):
            exponent = weight + orders[:, None] * loss
            top = exponent.max(axis=1)
            moments[side, :, s] = top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))
    return moments


@declare(source="docs/formulas/ldp_contextual.md#vector-code")
def vector_epsilon(code: VectorCode, sensitivity: Positive, coordinates: Coordinates, delta: Delta) -> float:
    """A bound on the epsilon of a batch's sums under the vector protocol: its binomial noise hides one user.

    It is inf without noise, or with too little for any claim.

    Args:
        code: The numbers of the protocol, as from `vector_code`.
        sensitivity: Largest L2 change of a message's coordinates between users.

    Note:
        Valid, not tight: the moments of the loss are bounded over the exact law of the noise. A user moves the integers
        by at most `sensitivity` g / L jointly and 2 g each, rounded at random under one common uniform. Noise outside a
        middle range, where a shift leaves the support, is charged to delta. With ample noise and small delta the bound
        is a few per cent to a third above the Gaussian limit, which itself is no bound.

    >>> round(vector_epsilon(vector_code(1.0, 20, 5, 1.0, 0.1), 4.5**0.5, 20, 0.1), 2)
    0.34
    """
    length = sensitivity * code.levels / code.bound
    return _least_epsilon(int(code.trials), math.ceil(2 * code.levels), float(length), coordinates, float(delta))


@functools.lru_cache(maxsize=256)
def _least_epsilon(trials: int, shifts: int, length: float, coordinates: int, delta: float) -> float:
    """The least bound over five middle ranges and all orders."""
    from scipy import stats

    law, best = stats.binom(trials, BINOMIAL_SHARE), math.inf
    orders = CHERNOFF_ORDERS  # (1 - e^-x)+ <= constant e^(order x)
    log_constant = orders * np.log(orders) - (1 + orders) * np.log1p(orders)
    for part in (1e-9, 1e-4, 1e-2, 0.2, 0.7):
        tail = part * delta / coordinates / 2
        low, high = max(int(law.ppf(tail)), shifts), min(int(law.isf(tail)), trials - shifts)
        cut = coordinates * float(law.cdf(low - 1) + law.sf(high))
        if low < high and cut < delta:
            weight, losses = _losses(trials, low, high, shifts)
            left = math.log(delta - cut)
            # shifts by one alone cost no more than all: an order is left out where they cost more than the best
            ones = np.maximum(_log_moments(weight, losses[:2], orders)[..., 1].max(axis=0), LEAST_SLOPE)
            least = (ones * length**2 + log_constant - left) / orders
            for tried in np.array_split(np.argsort(least), 10):
                tried = tried[least[tried] < best]
                if len(tried):
                    total = _joint_moment(_log_moments(weight, losses, orders[tried]), length, coordinates)
                    best = min(best, float(((total + log_constant[tried] - left) / orders[tried]).min()))
    return max(best, 0.0)


def _joint_moment(moments: np.ndarray, length: float, count: int) -> np.ndarray:
    """The largest log moment [orders] of `count` coordinates whose shifts have joint L2 length `length`.

    A real shift r costs at most slope r^2 + excess: between integers m and m + 1 it is a mixture of both, of
    share f = r - m, and moments are convex.
    """
    m, rise = np.arange(moments.shape[-1] - 1), np.diff(moments)
    slope = np.maximum((moments[..., 1:] / (m + 1) ** 2).max(axis=(0, 2)), LEAST_SLOPE)
    steep = rise > 200  # such an order is of no use
    gain, k = np.expm1(np.where(steep, 0, rise)), slope[:, None]
    # log(1 + f gain) - k (m + f)^2 is concave in f: its maximum is where a f^2 + b f + c = 0, or at an end
    a, b, c = 2 * k * gain, 2 * k * (1 + m * gain), 2 * k * m - gain
    root = 2 * c / (-b - np.sqrt(np.maximum(b * b - 4 * a * c, 0)))
    f = np.clip(root, 0, 1)
    excess = np.where(steep, np.inf, moments[..., :-1] + np.log1p(f * gain) - k * (m + f) ** 2).max(axis=(0, 2))
    return slope * length**2 + count * np.maximum(excess, 0)

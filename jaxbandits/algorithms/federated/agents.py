"""What the federated linear bandits share (Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits").

Axes: [L] plays of an episode, [N] agents, [A] arms, [d] features.
"""

import math
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypedDict

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.selection import TIE
from jaxbandits.declared import HOST, LATER, STATIC, Default, Doc, Ge, Horizon, Inside, NonNegative, Positive, Share
from jaxbandits.numerics import argmax, features, fixed_sum, lanes_last, materialize, played, safe_norm
from jaxbandits.numerics.packed import quadratic_form
from jaxbandits.protocol import Moments
from jaxbandits.theory.federated import terms
from jaxbandits.typing import Array, Bool, DType, Float, Int, Numeric, Scalar
from jaxbandits.validation import integer

ConstantsKind: TypeAlias = Literal["geometric_median", "dp", "median_of_means"]
AgentsHorizon = Annotated[Horizon, Doc("Plays T of every agent. Filled in from the run.")]
WidthRule = Annotated[Literal["schedule", "abbasi_yadkori"], HOST]
WindowPlays = Annotated[
    int | None,
    Ge(1),
    STATIC,
    LATER,
    Doc("Plays L of an episode, at most `horizon`. The default: max(1, round(0.25 sqrt(horizon)))."),
]

EIGENVALUE_FLOOR = 0.1  # eigenvalues of Lambda_k are raised to this share of lambda_k


class Schedule(TypedDict, total=False):
    """What the ridge lambda_k and the radius beta_k follow from."""

    corruption_bound: Annotated[Share, LATER, Default(0.0)]
    feature_spread: Annotated[NonNegative, Default(1.0), Doc("The paper's sigma.")]
    noise_scale: Annotated[NonNegative, Default(0.5), Doc("The rewards' noise, the paper's R.")]
    failure_prob: Annotated[
        Inside,
        Default(0.05),
        Doc("Of the confidence sets, at scales of 1; at the default ones the probability of nothing."),
    ]
    ridge_scale: Annotated[Positive, Default(0.1), Doc("Multiplies lambda_k.")]
    radius_scale: Annotated[NonNegative, Default(0.03), Doc("Multiplies beta_k.")]


class EpisodeConstants(NamedTuple):
    """Numbers of the ridge lambda_k and the radius beta_k of episode k.

    lambda_k = ridge_scale (shift + max(window, growth sqrt(k))) and
    beta_k = radius_scale (lead sqrt(lambda_k) + (numerator sqrt(k - 1) + excess) / sqrt(lambda_k) + tail
    + slope sqrt(offset + dim log(1 + rate (k - 1)))).
    """

    ridge_scale: Any
    radius_scale: Any
    window: Numeric = 0.0
    shift: Numeric = 0.0
    growth: Numeric = 0.0
    lead: Numeric = 0.0
    numerator: Numeric = 0.0
    excess: Numeric = 0.0
    tail: Numeric = 0.0
    slope: Numeric = 0.0
    offset: Numeric = 1.0
    dim: Numeric = 1.0
    rate: Numeric = 0.0


def constants_as_printed(
    kind: ConstantsKind, *, dim: int, window: int, ridge_scale: Numeric, radius_scale: Numeric, **setting: Any
) -> EpisodeConstants:
    """Host-side constants of `theory.byzantine_ridge` and `byzantine_radius`, and their scales."""
    printed = terms(kind, dim=dim, window=window, **setting)
    own = {"window": float(window), "lead": 3 * math.sqrt(dim), "dim": float(dim)}
    return EpisodeConstants(ridge_scale, radius_scale, **own, **printed._asdict())


def noise_ridge(
    accounting: str, num_agents: int, dim: int, node_scale: Scalar, nodes: float, failure_prob: Scalar
) -> float:
    """A ridge that the noise of a mean over all agents does not exceed, but with probability 2 `failure_prob`.

    nodes: draws in one agent's noise, at most. "claimed" counts the noise of one agent instead of all. See
    `docs/formulas/byzantine.md#noise-of-a-mean`.
    """
    level = node_scale * math.sqrt(nodes) * (2 * math.sqrt(dim) + 2 * math.sqrt(math.log(1 / failure_prob)))
    return float(level / (math.sqrt(num_agents) if accounting == "repaired" else num_agents))


def count_attackers(corruption_bound: Scalar, num_agents: int) -> int:
    """N_1 = floor(corruption_bound N + 1/2), whichever way the product was rounded: at most N / 2."""
    return min(math.floor(corruption_bound * num_agents + 0.5 + 1e-9), num_agents // 2)


def window_of(horizon: int, window: int | None) -> int:
    """Plays of an episode, checked. None: max(1, round(0.25 sqrt(horizon)))."""
    if window is None:
        window = max(1, round(0.25 * math.sqrt(horizon)))
    return integer("window", window, 1, horizon, remedy="an episode lies within the horizon")


def bytes_of(dim: int, episodes: Any, dtype: DType) -> Float[Array, ""]:
    """Bytes an agent sends in all episodes but the last, whose message is not used.

    A message is float32: d (d + 1) / 2 packed entries and d more. The result is a float, which is exact up to
    2^24 only, but never overflows.
    """
    return 4 * (dim * (dim + 1) // 2 + dim) * (jnp.asarray(episodes, dtype) - 1)


def ridge(c: EpisodeConstants, episode: Int[Array, ""], dtype: DType) -> Float[Array, ""]:
    """lambda_k of episode k >= 1."""
    return c.ridge_scale * (c.shift + jnp.maximum(c.window, c.growth * jnp.sqrt(episode.astype(dtype))))


def episode_radius(c: EpisodeConstants, episode: Int[Array, ""], dtype: DType) -> Float[Array, ""]:
    """beta_k of episode k >= 1."""
    level, earlier = ridge(c, episode, dtype), (episode - 1).astype(dtype)
    optimism = c.lead * jnp.sqrt(level) + (c.numerator * jnp.sqrt(earlier) + c.excess) / jnp.sqrt(level) + c.tail
    return c.radius_scale * (optimism + c.slope * jnp.sqrt(c.offset + c.dim * jnp.log1p(c.rate * earlier)))


def choose(
    context: Float[Array, "L N A d"], theta: Float[Array, "..."], inverse: Float[Array, "..."], width: Float[Array, ""]
) -> Int[Array, "L N"]:
    """The arms of largest <x, theta> + width sqrt(x' inverse x); ties within 1e-5, relatively, go to the lowest index.

    theta [d] and inverse [d, d], or one of each for every agent: [N, 1, d] and [N, 1, d, d]. The sums run
    feature by feature: see `federated_linear`.
    """
    d = context.shape[-1]

    def per_agent(x):  # one number, or one for each agent, beside the plays and arms
        return x.reshape(1, -1, 1)

    upper = [per_agent(inverse[..., i, j]) for i in range(d) for j in range(i, d)]
    return _choose(features(context), [per_agent(theta[..., j]) for j in range(d)], upper, per_agent(width))


@lanes_last
def _choose(x, theta, inverse, width):
    score = sum(a * b for a, b in zip(x, theta, strict=True))
    index = materialize(score + width * jnp.sqrt(jnp.maximum(quadratic_form(inverse, x), 0)))
    return materialize(argmax(index, TIE, axis=2))


def moments(
    context: Float[Array, "L N A d"], action: Int[Array, "L N"], reward: Float[Array, "L N"], play: Bool[Array, " L"]
) -> Moments:
    """Each agent's sums of x x' and x r over the episode."""
    return Moments(*_moments(played(context, action), reward, play))


@lanes_last
def _moments(x, reward, play):
    x = [jnp.where(play[:, None], a, 0) for a in x]
    reward = jnp.where(play[:, None], reward, 0)
    d = len(x)
    # the lower triangle is the upper one: an honest matrix is symmetric to the last bit
    upper = {(i, j): fixed_sum(x[i] * x[j], axis=0) for i in range(d) for j in range(i, d)}
    gram = jnp.stack([jnp.stack([upper[min(i, j), max(i, j)] for j in range(d)], 1) for i in range(d)], 1)
    return gram, jnp.stack([fixed_sum(a * reward, axis=0) for a in x], 1)


def cut(x: Float[Array, "N n ..."], limit: Float[Array, "..."]) -> Float[Array, "N n ..."]:
    """x, cut radially to norm at most `limit` along n. Its entries are finite, and may be as large as a float gets.

    `docs/formulas/byzantine.md#clamp`.
    """
    # The shrinkage is a value, not a constant: a compiler would move a constant into the division, whose reciprocal is
    # then subnormal and flushed to zero.
    huge = jnp.max(jnp.abs(x), axis=1, keepdims=True) > 1e30
    shrink = jnp.where(huge, 2.0**-32, 1.0).astype(x.dtype)
    small, least = x * shrink, limit * shrink
    size = safe_norm(small, axis=1)[:, None]
    return jnp.where(size > least, small / jnp.maximum(size, least) * limit, x)


class Accepted(NamedTuple):
    """Messages after the server's check."""

    gram: Float[Array, "N d d"]
    vector: Float[Array, "N d"]
    good: Bool[Array, " N"]  # whether a message was not counted as zero


def accept(message: Any, limit: Numeric) -> Accepted:
    """The server's check of messages with fields `gram` and `vector` (`docs/formulas/byzantine.md#message-check`).

    An agent's message that is not finite or not symmetric becomes zero as a whole. Then both parts are cut
    radially to norm `limit`, so that float32 neither overflows nor loses the honest ones.
    """
    return Accepted(*_accept(message.gram, message.vector, jnp.full((1, 1), limit, message.gram.dtype)))


@lanes_last
def _accept(gram, vector, limit):
    flat = gram.reshape(gram.shape[0], -1, *gram.shape[3:])
    finite = jnp.all(jnp.isfinite(flat), axis=1) & jnp.all(jnp.isfinite(vector), axis=1)
    skew = jnp.max(jnp.abs(gram - jnp.swapaxes(gram, 1, 2)), axis=(1, 2))
    good = finite & (skew <= 1e-5 * jnp.max(jnp.abs(flat), axis=1))
    gram = cut(jnp.where(good[:, None], flat, 0), limit).reshape(gram.shape)
    return (gram + jnp.swapaxes(gram, 1, 2)) / 2, cut(jnp.where(good[:, None], vector, 0), limit), good


def zero_large_messages(accepted: Accepted, limit: Numeric) -> Accepted:
    """The check under privacy: a message whose matrix or vector has norm above `limit` becomes zero as a whole.

    L equal unit vectors give a matrix of norm L exactly, which rounding may exceed: up to L (1 + 1e-5) a part
    is accepted and then cut to L, so that the sensitivity is L exactly.
    """
    gram, vector, good = accepted
    flat = gram.reshape(*gram.shape[:-2], -1)
    size, length = safe_norm(flat), safe_norm(vector)
    good = good & (size <= limit * (1 + 1e-5)) & (length <= limit * (1 + 1e-5))

    def shrink(norm):  # at most 1; 0 where the message is refused
        return jnp.where(good, jnp.minimum(1, limit / jnp.maximum(norm, limit)), 0)

    return Accepted(gram * shrink(size)[..., None, None], vector * shrink(length)[..., None], good)

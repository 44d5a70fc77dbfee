"""Contextual linear bandits with mean 1/2 + cos/2: the setting of the paper on locally private OnlineUCB.

The model: `docs/formulas/ldp_contextual.md#model`; the setting: `docs/formulas/ldp_contextual.md#figure-1`.
Axes: [P] plays of a window, [A] arms, [d] features.
"""

import math
from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import STATIC, Ge, Gt, Le, NumArms, Probability, Remedy
from jaxbandits.environments import heavy_tailed as laws
from jaxbandits.environments._sphere import direction, gaussian, many_features
from jaxbandits.numerics import materialize, packed, pick, rounded
from jaxbandits.numerics.packed import Vector, inner, map_features, materialize_vector, split_features, stack_features
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Int, Numeric
from jaxbandits.validation import factory

NO_THICKER = Remedy("the largest is math.sqrt(0.5), beyond which mean rewards may be below zero")


class Params(NamedTuple):
    # of Gaussian rewards the standard deviation; where tails are heavy, with what else the law needs
    noise_scale: Numeric | tuple[Numeric, ...]
    spread: Numeric | tuple[()]  # how far apart a play's arms are, from 0 (all alike) to below 1; () where independent
    thickness: Numeric | tuple[()] = ()  # norm of the features that are drawn; () where it is that of the constant one


class State(NamedTuple):
    """What is fixed for a trial."""

    theta: Vector  # d numbers, in the layout of `numerics.packed`
    arms: Any  # d features [A], likewise; () where contexts are redrawn
    means: Array | tuple[()]  # [A]; () where contexts are redrawn
    best: Array | tuple[()]  # the largest of the means; () where contexts are redrawn


def random_vectors(draws: Draws, t: Int[Array, "..."], rows: int, dim: int, unit: bool = True) -> Vector:
    """The `dim` components [..., rows] of directions, uniform on the unit sphere of R^dim, at each play t.

    Up to `MAX_UNROLLED_DIM` features, the constant one included, components are separate arrays, computed in one loop,
    so that a reader of one feature reads a contiguous array. More are one array [..., rows, dim], which is not stored:
    it is a product of what is. Where they are not `unit`, components are normal, independent and of variance
    1 / (4 dim).
    """
    t, position = jnp.asarray(t)[..., None], jnp.arange(rows, dtype=jnp.uint32)
    if dim < packed.MAX_UNROLLED_DIM:
        drawn = direction if unit else gaussian
        x = tuple(drawn(lambda k: draws.words_at(t, position + np.uint32(k * rows)), dim, draws.dtype))
    else:
        blocks = np.uint32(rows) * jnp.arange((dim + 1) // 2, dtype=jnp.uint32)
        x = many_features(*draws.words_at(t[..., None], position[:, None] + blocks[None]), dim, draws.dtype, unit)
    x = x if unit else map_features(lambda z: z / (2 * math.sqrt(dim)), x)
    return materialize_vector(x) if isinstance(x, tuple) else x


def mix_features(spread: Numeric, own: Vector, common: Vector, unit: bool) -> Vector:
    """spread * own + (1 - spread) * common, scaled to norm 1 (`unit`), or to the variance that both have."""
    mixed = map_features(lambda u, c: spread * u + (1 - spread) * c, own, common)
    square = inner(mixed, mixed) if unit else spread * spread + (1 - spread) * (1 - spread)
    scale = 1 / jnp.sqrt(jnp.maximum(square, jnp.finfo(mixed[0].dtype).tiny))
    return materialize_vector(map_features(lambda x: x * scale, mixed))


def with_constant(x: Any, value: Any) -> Vector:
    """Vectors with a constant feature after their own."""
    last = jnp.full(stack_features(x).shape[:-1], value, x[0].dtype)
    return (*x, last) if isinstance(x, tuple) else jnp.concatenate([x, last[..., None]], -1)


@cache
def contextual_world(num_arms: int, dim: int, law: str, contexts: str, features: str, independent: bool) -> World:
    """The world of contextual linear bandits; `independent`: the arms of a play have nothing in common."""
    first, last = (1.0, 1.0) if features == "reference" else (math.sqrt(0.5), math.sqrt(0.5))
    unit = features != "gaussian"

    def free_parts(params, draws, t):
        """The d - 1 features of a decision set that are drawn, [..., A] each, before `first` scales them."""
        own = random_vectors(draws, t, num_arms, dim - 1, unit)
        if not independent:
            common = random_vectors(draws.child("common"), t, 1, dim - 1, unit)
            own = mix_features(params.spread, own, common, unit)
        if not unit:  # longer ones are cut: means must stay in [0, 1]
            cut = materialize(jnp.minimum(1, 1 / jnp.sqrt(inner(own, own))))
            own = map_features(lambda x: x * cut, own)
        return own

    def arms_at(params, draws, t):
        """The d features of a decision set, [..., A] each."""
        thin = params.thickness
        size, constant = (first, last) if isinstance(thin, tuple) else (thin, jnp.sqrt(1 - thin * thin))
        x = with_constant(map_features(lambda u: size * u, free_parts(params, draws, t)), constant)
        if features == "reference":  # the published code's first d arms: e_i + e_d for i < d, then e_d
            arm, j = np.arange(num_arms)[:, None], np.arange(dim)
            heads = split_features(jnp.asarray((arm == j) | (j == dim - 1), draws.dtype))
            x = map_features(lambda x, head: jnp.where(np.arange(num_arms) < dim, head, x), x, heads)
        return x if isinstance(x, tuple) else materialize_vector(x)

    def init(params, draws):
        u = random_vectors(draws.child("theta"), jnp.int32(0), 1, dim - 1)
        scale, constant = (0.5, 0.5) if features == "reference" else (math.sqrt(0.5), math.sqrt(0.5))
        theta = jax.tree.map(lambda z: z[0], with_constant(map_features(lambda z: scale * z, u), constant))
        if contexts == "redraw":
            return State(theta, (), (), ())
        arms = materialize_vector(arms_at(params, draws.child("arms"), jnp.int32(0)))
        means = materialize(inner(arms, theta))
        return State(theta, arms, means, jnp.max(means))

    def observe(params, state, draws, t):
        if contexts == "redraw":
            return stack_features(arms_at(params, draws, t)), state
        return stack_features(map_features(lambda x: jnp.broadcast_to(x, (*t.shape, num_arms)), state.arms)), state

    def means_of(state, context):
        if contexts == "fixed":
            return jnp.broadcast_to(state.means, (len(context), num_arms))
        return inner(split_features(context), state.theta)

    def reward(params, state, draws, t, context, action):
        if contexts == "fixed":
            mean = pick(means_of(state, context), action)
        elif dim > packed.MAX_UNROLLED_DIM:  # as in `score`: XLA computes them once
            mean = pick(materialize(means_of(state, context)), action)
        else:  # `score` computes the means of all arms; here the played arm's is enough
            mean = inner(map_features(lambda x: pick(x, action), split_features(context)), state.theta)
        mean = rounded(mean, t)
        if law == "bernoulli":  # one uniform a play for every arm: counterfactual rewards are defined
            return (draws.uniform(t) < mean).astype(mean.dtype)
        return mean + laws.noise_of_law(law, params.noise_scale, draws, t)

    def score(params, state, t, context, action):
        means = materialize(means_of(state, context))
        best = state.best if contexts == "fixed" else jnp.max(means, axis=-1)
        return Score(regret=best - pick(means, action))

    def truth(params, state, t, context):
        return Truth(means=materialize(means_of(state, context)), theta=stack_features(state.theta))

    return World(init, observe, reward, score, truth)


@factory(
    source="""`docs/formulas/ldp_contextual.md#figure-1`; heavy tails:
        `docs/formulas/robust_frontier.md#heavy-tailed-noise`."""
)
def contextual_linear(
    *,
    num_arms: NumArms,
    dim: Annotated[int, Ge(2), STATIC],
    reward: Literal["bernoulli", "gaussian", "student", "pareto", "lognormal"] = "bernoulli",
    contexts: Literal["redraw", "fixed"] = "redraw",
    features: Literal["unit", "reference", "gaussian"] = "unit",
    noise_scale: laws.NoiseScale = 0.5,
    spread: Annotated[Probability, STATIC] = 1.0,
    thickness: Annotated[float, Gt(0), Le(math.sqrt(0.5)), NO_THICKER] | None = None,
    **tails: Unpack[laws.TailNumbers],
) -> Environment:
    """Every play shows a feature vector for each arm; mean rewards are inner products with an unknown theta.

    Mean rewards lie in [0, 1] and theta is drawn once per trial. Below, u is uniform on the unit sphere of R^(dim -
    1) and the constant feature comes last.

    Args:
        num_arms: Number of arms.
        dim: Number of features.
        reward: The law of a reward: 0 or 1, or the mean plus noise of mean 0, which is Gaussian or has heavy tails.
            "student": noise_scale t, with Student's t. "pareto", "lognormal": noise_scale (X - 1), with X of mean 1.
        contexts: Whether arms are fresh at every play or drawn once per trial.
        features: How arms and theta are drawn. "unit": both are (u, 1) / sqrt 2, of norm 1. "reference", as in the
            published code: arms (u, 1), of which the first dim are e_i + e_dim (i < dim) and e_dim, and theta = (u, 1)
            / 2; their norms are sqrt 2 and 1 / sqrt 2, and num_arms must be at least dim. "gaussian": as "unit", with
            arms (z, 1) / sqrt 2, where z has dim - 1 independent normal components of variance 1 / (4 (dim - 1)) and is
            scaled down to norm 1 where it is longer (0.3% of arms at dim = 5).
        spread: How far apart the arms of a play are. At 1 they are independent, which is a program of its own; at 0
            they are all alike. In between arm a has the direction of spread * u_a + (1 - spread) * u_0 in the place of
            u_a, where u_0 is drawn once a play for all arms ("gaussian": that sum of z_a and z_0, scaled to the
            variance of either). The first dim arms of "reference" stay as they are.
        thickness: With features "unit" the norm h of the part that differs between arms, which are (h u, sqrt(1 -
            h^2)): the thinner they are, the less a play tells of theta. Gaps between arms are h times as large too, so
            compare regrets of one thickness. Above the largest value means could be negative. The default: sqrt(1/2),
            that of "unit".

    Returns:
        Environment: The context of a play is [num_arms, dim]. Facts: `num_arms`, `dim`, `feature_norm` (the largest
            norm), `contexts` and `reward_range`; but for "bernoulli" ``noise_moment(order)``: E|noise|^order, inf where
            it does not exist.

    Note:
        The 32 random bits of a draw end the tails, as those of `student_arms` and `pareto_arms`; with exponents near
        1 the mean of what is drawn is then below 0.

    >>> heavy = jb.environments.contextual_linear(num_arms=100, dim=5, reward="pareto", shape=1.8)
    >>> round(heavy.facts["noise_moment"](1.5), 3), heavy.facts["noise_moment"](2)
    (0.418, inf)
    >>> jb.environments.contextual_linear(num_arms=100, dim=5).facts["feature_norm"]
    1.0
    """
    if features == "reference" and num_arms < dim:
        raise ValueError(
            f"num_arms = {num_arms} must be at least dim = {dim} with features='reference': "
            "its first dim arms are fixed"
        )
    if thickness is not None and features != "unit":
        raise ValueError(f"thickness = {thickness:g} with features = {features!r}: only features='unit' have one")
    arguments: dict[str, Any] = {"noise_scale": noise_scale, **tails}
    numbers = laws.numbers_of(reward, arguments)
    norm = math.sqrt(2) if features == "reference" else 1.0
    facts: dict[str, Any] = {"num_arms": num_arms, "dim": dim, "feature_norm": norm, "contexts": contexts}
    facts |= {"reward_range": (0.0, 1.0), "shows": "decision set"}
    if reward != "bernoulli":
        facts["reward_range"] = laws.reward_range(reward, 0.0, 1.0, arguments)
        facts["noise_moment"] = partial(laws.noise_moment, reward, arguments)
    world = contextual_world(num_arms, dim, reward, contexts, features, spread == 1)
    # independent arms have a program of their own, which draws nothing common and is faster
    params = Params(numbers, spread if spread < 1 else (), () if thickness is None else thickness)
    return Environment(world, params, facts, None, {}, version=2)

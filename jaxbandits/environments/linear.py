"""Linear arms: fixed actions a in R^d, one unknown theta, reward mean <a, theta>."""

from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple, Unpack

import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import Axes, Remedy
from jaxbandits.environments import heavy_tailed as laws
from jaxbandits.environments.arms import arms_world
from jaxbandits.protocol import Environment, World
from jaxbandits.typing import Matrix, Numeric, Vector
from jaxbandits.validation import array, factory

# A norm may exceed 1 by this much: unit vectors given in float32 have norms up to 1 + 6e-8.
NORM_TOLERANCE = 1e-6
THETA_SHAPE = "theta has one entry for each column of actions"


class Params(NamedTuple):
    means: Any  # [K]: actions @ theta
    theta: Numeric  # [d]
    noise_scale: Numeric | tuple[Numeric, ...]  # the scale, with what else the law needs where tails are heavy
    actions: Numeric | tuple[()] = ()  # [K, d]


@cache
def linear_world(num_arms: int, noise: str) -> World:
    """The world of linear arms."""

    def sample(params, draws, t, action):
        # One draw a play serves every arm, so what another arm would have paid is defined.
        mean = params.means[action]
        if noise == "rademacher":
            return jnp.where(2 * draws.uniform(t) < 1 + mean, 1.0, -1.0).astype(mean.dtype)
        return mean + laws.noise_of_law(noise, params.noise_scale, draws, t)

    def observe(params, state, draws, t):
        actions = jnp.asarray(params.actions, draws.dtype)
        return jnp.broadcast_to(actions, (*t.shape, *actions.shape)), state

    return arms_world(num_arms, sample)._replace(observe=observe)


def in_unit_ball(name: str, rows: np.ndarray) -> np.ndarray:
    """The rows of `rows` [n, d] unchanged if each has norm at most 1 (up to rounding), else ValueError."""
    norms = np.linalg.norm(rows, axis=-1)
    top = norms.max()
    if top > 1 + NORM_TOLERANCE:
        row = int(norms.argmax())
        where = f"{name}[{row}]" if len(rows) > 1 else name
        raise ValueError(f"{where} has norm {top:.6g}; the model needs at most 1: divide {name} by {top:.6g}")
    return rows


@factory(
    source="`docs/formulas/robust_linear.md#model`; heavy tails: `docs/formulas/robust_frontier.md#heavy-tailed-noise`."
)
def linear_arms(
    *,
    actions: Annotated[Matrix, Axes(2)],
    theta: Annotated[Vector, Axes(1), Remedy(THETA_SHAPE)],
    noise: Literal["gaussian", "rademacher", "student", "pareto", "lognormal"] = "gaussian",
    noise_scale: laws.NoiseScale = 1.0,
    **tails: Unpack[laws.TailNumbers],
) -> Environment:
    """Fixed arms whose mean reward is the inner product of their feature vector with one unknown parameter theta.

    Args:
        actions (array_like of shape (K, d)): One feature vector for each of at least two arms, with norms of at most 1
            and not all zero.
        theta (array_like of shape (d,)): The unknown parameter, of norm at most 1.
        noise: The law of a reward. "gaussian": mean + noise_scale N(0, 1). "rademacher": +1 or -1 with the right mean,
            bounded, so that a declared epsilon is true. The others have heavy tails and noise of mean 0: mean +
            noise_scale t with Student's t, or mean + noise_scale (X - 1) with a Pareto or log-normal X of mean 1.

    Returns:
        Environment: The context of a play is `actions`, so that learners of decision sets play the same problem, with
            the same noise, as those that are given `actions` on the host. Facts: `num_arms`, `dim`, `actions` [K, d],
            `means` [K], `feature_norm` (the largest norm), `contexts` ("fixed") and `reward_range`, which is (-1, 1)
            for "rademacher" and, with noise, infinite on one or both sides otherwise; ``noise_moment(order)``, but for
            "rademacher": E|noise|^order, inf where it does not exist. Regret is exact: it follows from the pull counts.

    Raises:
        ValueError: For other shapes, norms or numbers.

    Note:
        The 32 random bits of a draw end the tails, as those of `student_arms` and `pareto_arms`; with exponents near
        1 the mean of what is drawn is then below 0.

    >>> tails = jb.environments.linear_arms(actions=[[1, 0], [0, 1]], theta=[0.6, 0.2], noise="student", df=4.0)
    >>> round(tails.facts["noise_moment"](2), 6)
    2.0
    >>> jb.environments.linear_arms(actions=[[1, 0], [0, 1]], theta=[0.6, 0.2]).facts["means"].tolist()
    [0.6, 0.2]
    """
    actions = in_unit_ball("actions", np.asarray(actions))
    num_arms, dim = actions.shape
    if num_arms < 2:
        raise ValueError(f"actions has shape {actions.shape}; it needs at least two rows, one for each arm")
    if not actions.any():
        raise ValueError("actions are all zero: give at least one arm a non-zero feature vector")
    theta = array("theta", theta, 1, shape=(dim,), remedy=THETA_SHAPE)
    in_unit_ball("theta", theta[None])
    arguments: dict[str, Any] = {"noise_scale": noise_scale, **tails}
    params = Params(actions @ theta, theta, laws.numbers_of(noise, arguments), actions)
    means = params.means
    facts = {"num_arms": num_arms, "dim": dim, "actions": actions, "means": means, "reward_range": (-1.0, 1.0)}
    norm = float(np.linalg.norm(actions, axis=-1).max())
    norm = 1.0 if norm > 1 - NORM_TOLERANCE else norm  # of unit vectors, however they are rounded
    facts |= {"shows": "fixed set", "contexts": "fixed", "feature_norm": norm}
    if noise != "rademacher":
        facts["reward_range"] = laws.reward_range(noise, float(means.min()), float(means.max()), arguments)
        facts["noise_moment"] = partial(laws.noise_moment, noise, arguments)
    return Environment(linear_world(num_arms, noise), params, facts, None, {})

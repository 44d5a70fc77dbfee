"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002) on locally private rewards: Laplace noise or randomised response.

A comparator of our own, not a published listing.
Draws: `alg/encode` itself (one Laplace variable, or one uniform, a play).
"""

import math
from functools import cache, partial
from typing import Annotated, Literal, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic import arm_means
from jaxbandits.algorithms.stochastic.kl_ucb import unit_reward
from jaxbandits.algorithms.stochastic.plain_reports import finite
from jaxbandits.declared import Doc, Epsilon, Example, Horizon, NumArms
from jaxbandits.mechanisms.composition import guarantee, laplace_event, response_event, view_message
from jaxbandits.mechanisms.pure import randomized_response, response_bound
from jaxbandits.numerics import columns, materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Numeric
from jaxbandits.validation import factory

UNREADY = 1e30  # the index of an arm without enough pulls. Of several such arms the lowest is played.


class Params(NamedTuple):
    noise_scale: Numeric  # 1 / epsilon: the Laplace scale; the probability of a flip follows from it too
    radius_scale: Numeric  # the radius is radius_scale sqrt(ln t / N)
    min_pulls: Numeric  # an arm is ready once N >= min_pulls ln t and N >= 1
    mechanism_scale: Numeric


def _events(mechanism, params):
    scale = params.noise_scale * params.mechanism_scale
    if mechanism == "laplace":
        return (laplace_event("reward in [0, 1] of one play", 1.0, scale),)
    return (response_event("bit of one play's reward", scale, bits=23),)


@cache
def program(num_arms: int, mechanism: str) -> Program:
    """The functions of UCB on private reports."""

    def init(params, draws):
        return arm_means.no_plays(num_arms, draws.dtype, mean=0.0)

    def act(params, state, draws, t, context):
        log = jnp.log(t[0].astype(draws.dtype))
        radius = params.radius_scale * jnp.sqrt(log)
        enough = materialize(1 / jnp.sqrt(jnp.maximum(params.min_pulls * log, 1)))  # of 1 / sqrt(N), 0 without pulls

        def index_of(mean, root):
            return jnp.where((root > 0) & (root <= enough), mean + radius * root, UNREADY)

        index = columns.map_arms(index_of, state.mean, state.inverse_root)
        action = materialize(columns.argmax(index))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        reward, noise = unit_reward(reward[0]), params.mechanism_scale * params.noise_scale
        if mechanism == "laplace":
            return reward + noise * draws.laplace(t[0])
        return randomized_response(draws.uniform(t[0]), reward, noise)

    def update(params, state, draws, t, note, message, used):
        return arm_means.with_reward(state, note, finite(message))[0], ()

    return Program(init, act, encode, update)


@factory(
    plays_on="arms",
    example=Example({"epsilon": 1.0}),
    source="`docs/formulas/private_robust_mab.md#ldp-ucb`; the index is that of Auer, Cesa-Bianchi and Fischer 2002.",
)
def ldp_ucb(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    epsilon: Epsilon,
    mechanism: Literal["laplace", "randomized_response"] = "laplace",
) -> Annotated[Algorithm, Doc("epsilon-private in the local model; the unit of privacy is the reward of one play.")]:
    """UCB1 on rewards that every client randomises before it sends them: private in the local model, play by play.

    The learner sees the reports only. It plays the arm of largest index, the mean of the arm's reports plus a radius
    that is wider than UCB1's because of the noise. t is the index of the coming play and N the arm's number of pulls.

    Args:
        epsilon: Privacy budget of one play; for randomised response in [0.0001, 15] or inf. At inf there is no noise,
            but randomised response still rounds rewards to bits and "laplace" still waits for 4 ln t pulls.
        mechanism: How a reward r in [0, 1] is randomised. "laplace" sends r + Lap(1 / epsilon); the radius is sqrt(8
            (1/4 + 2 / epsilon^2) ln t / N), and an arm counts as unplayed while N < 4 ln t. "randomized_response" sends
            a bit that is 1 with probability r, flipped with probability 1 / (1 + e^epsilon) and made unbiased; the
            radius is (e^epsilon + 1) / (e^epsilon - 1) sqrt(2 ln t / N).

    Note:
        Rewards are clipped to [0, 1]; NaN counts as 0. A report that an attack makes non-finite counts as 0. Ties go to
        the lowest index. An index is below the true mean with probability at most t^-4 under randomised response
        (Hoeffding's inequality), and at most t^-3 under Laplace noise wherever N >= 4 ln t (Chernoff's bound with the
        exact Laplace transform; `docs/deviations.md`).

    >>> algorithm = jb.algorithms.ldp_ucb(num_arms=3, horizon=100, epsilon=1.0)
    >>> algorithm.guarantee.spend(algorithm.params), round(algorithm.params.radius_scale, 4)
    ((1.0, 0.0), 4.2426)
    """
    if mechanism == "randomized_response" and math.isfinite(epsilon) and not 1e-4 <= epsilon <= 15:
        raise ValueError(
            f"epsilon = {epsilon!r} must be in [0.0001, 15], or inf, for randomized response: its uniforms have 23 "
            "bits, and rarer flips would never come; use mechanism='laplace'"
        )
    scale = 1 / epsilon
    if mechanism == "laplace":
        radius_scale, min_pulls = math.sqrt(8 * (0.25 + 2 * scale**2)), 4.0
    else:
        radius_scale, min_pulls = math.sqrt(2) * response_bound(epsilon), 0.0
    params = Params(scale, radius_scale, min_pulls, mechanism_scale=1.0)
    claim, rewards = guarantee("local", "reward", partial(_events, mechanism), view_message), Rewards(0.0, 1.0, "clip")
    return Algorithm(program(num_arms, mechanism), (Span(1, horizon),), params, claim, rewards=rewards)

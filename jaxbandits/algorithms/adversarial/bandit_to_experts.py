"""Experts as arms (Asi, Raman and Talwar 2025, Algorithm 5): a bandit algorithm picks the expert whose advice is followed."""

from functools import cache

import jax.numpy as jnp

from jaxbandits.mechanisms.composition import claimed_epsilon
from jaxbandits.numerics import inverse_cdf
from jaxbandits.protocol import Algorithm, Program
from jaxbandits.validation import base_algorithm, factory, integer, shown


@cache
def program(base: Program) -> Program:
    def init(params, draws):
        return base.init(params, draws.child("base"))

    def act(params, state, draws, t, context):
        expert, used, note = base.act(params, state, draws.child("base"), t, ())
        advice = jnp.take_along_axis(context, expert[:, None, None], axis=1)[:, 0]  # [P, K]
        return inverse_cdf(advice, draws.child("action").uniform(t)), used, note

    def encode(params, note, draws, t, context, action, reward, play):
        return base.encode(params, note, draws.child("base"), t, (), action, reward, play)

    def relay(params, draws, t, message, play):
        return base.relay(params, draws.child("base"), t, message, play)

    def update(params, state, draws, t, note, message, used):
        return base.update(params, state, draws.child("base"), t, note, message, used)

    def close(params, state, draws, t):
        return base.close(params, state, draws.child("base"), t)

    return Program(init, act, encode, update, relay, close, base.diagnose)


@factory
def bandit_to_experts(*, num_arms, num_experts, horizon, base) -> Algorithm:
    """A bandit algorithm over the experts; every play draws its own action from the picked expert's advice.

    The context is the advice [P, N, K], public; the loss of the drawn action is the expert's. base: a factory or a partial of one,
    called with num_arms = num_experts and the horizon; schedule, params and guarantee are its own. With
    `base=partial(private_batched, epsilon=...)` this is the paper's private algorithm (Theorem 4.2, Corollary 4.3).
    num_experts >= 2, num_arms >= 2.

    >>> import jaxbandits as jb
    >>> from functools import partial
    >>> private = partial(jb.algorithms.private_batched, epsilon=0.1)
    >>> jb.algorithms.bandit_to_experts(num_arms=3, num_experts=5, horizon=1000, base=private).guarantee.model
    'central'
    """
    num_arms = integer("num_arms", num_arms, 2)
    num_experts = integer("num_experts", num_experts, 2)
    horizon = integer("horizon", horizon, 1)
    if not callable(base):
        raise ValueError(
            f"base = {shown(base)} must be a factory of algorithms or a partial of one: for instance algorithms.htinf"
        )
    try:
        made = base_algorithm(base, num_arms=num_experts, horizon=horizon)
    except ValueError as error:  # the base calls the experts its arms
        raise ValueError(f"{error} (here K counts the N = {num_experts} experts that are the base's arms)") from None
    version = ("bandit_to_experts", 1, (num_arms, num_experts, made.version))
    guarantee = made.guarantee._replace(claimed=claimed_epsilon(made))
    return made._replace(program=program(made.program), version=version, guarantee=guarantee)

"""Experts as arms (Asi, Raman and Talwar 2025, Algorithm 5): a bandit picks the expert whose advice is followed."""

from functools import cache

import jax.numpy as jnp

from jaxbandits.declared import Base, Example, Horizon, NumArms, NumExperts
from jaxbandits.formatting import show
from jaxbandits.mechanisms.composition import claimed_epsilon
from jaxbandits.numerics import inverse_cdf
from jaxbandits.protocol import Algorithm, Program
from jaxbandits.validation import base_algorithm, factory


@cache
def program(base: Program) -> Program:
    """The functions of `base`, whose arms are experts; the arm played is drawn from the picked expert's advice."""

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

    made = Program(init, act, encode, update, relay, close, diagnose=base.diagnose, lockstep=base.lockstep)
    return made._replace(float32_plays=base.float32_plays)


BASE = {"name": "private_batched", "epsilon": 0.2, "base": {"name": "exp3", "learning_rate": 0.05, "mixing": 0.1}}


@factory(
    plays_on="advice",
    example=Example({"base": BASE}),
    source="""Asi, Raman and Talwar 2025, Algorithm 5, Theorem 4.2, Corollary 4.3;
        `docs/formulas/private_adversarial.md#experts-as-arms`.""",
)
def bandit_to_experts(*, num_arms: NumArms, num_experts: NumExperts, horizon: Horizon, base: Base) -> Algorithm:
    """A bandit algorithm whose arms are experts; every play draws its own action from the picked expert's advice.

    The loss of the drawn action is the loss of the expert. With ``base=partial(private_batched, epsilon=...)`` this
    is the paper's private algorithm for experts.

    Args:
        base (factory or functools.partial of one): The bandit algorithm, called with ``num_arms=num_experts`` and
            `horizon`. Schedule, parameters and privacy guarantee are its own.

    Returns:
        With the guarantee of `base`. The context of a play is the advice [N, K], which is public.

    Raises:
        ValueError: For an argument outside its range, for a `base` that cannot be called, and for what `base` refuses.

    Note:
        The paper draws an action from every expert's advice. Here only the picked expert's is drawn: the others are
        never used, so the law is the same.

    >>> from functools import partial
    >>> private = partial(jb.algorithms.private_batched, epsilon=0.1)
    >>> jb.algorithms.bandit_to_experts(num_arms=3, num_experts=5, horizon=1000, base=private).guarantee.model
    'central'
    """
    if not callable(base):
        raise ValueError(
            f"base = {show(base)} must be a factory of algorithms or a partial of one: for instance algorithms.htinf"
        )
    try:
        algorithm = base_algorithm(base, num_arms=num_experts, horizon=horizon)
    except ValueError as error:  # the base speaks of arms where it means experts
        raise ValueError(f"{error} (here K counts the N = {num_experts} experts that are the base's arms)") from None
    version = ("bandit_to_experts", 1, (num_arms, num_experts, algorithm.version))
    claim = algorithm.guarantee._replace(claimed=claimed_epsilon(algorithm))
    return algorithm._replace(program=program(algorithm.program), version=version, guarantee=claim, plays_on="advice")

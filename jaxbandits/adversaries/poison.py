"""Data poisoning: attacked agents see rewards of another instance (Byzantine-robust federated linear bandits, Proposition 1,
sections 1 and 10 of the specification). Axes: [P] plays of a window, [N] agents, [A] arms.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.adversaries.byzantine import MINORITY, attackers
from jaxbandits.numerics import pick, rounded
from jaxbandits.protocol import Adversary, Attack
from jaxbandits.validation import factory, number


class Params(NamedTuple):
    corruption: Any
    prob: Any


@cache
def poison_attack() -> Attack:
    def init(params, draws):
        return ()

    def corrupt(params, state, draws, t, payload, seen):
        means = seen.truth.means
        if not hasattr(payload, "ndim") or payload.ndim != 2 or jnp.ndim(means) != 3:
            raise ValueError(
                "poison corrupts the rewards of agents: use it as reward_adversary with an environment such as federated_linear"
            )
        agents = payload.shape[1]
        hit = attackers(params.corruption, agents) & (draws.child("prob").uniform(t, (agents,)) < params.prob)
        # r = <x, theta> + eta becomes -<x, theta> + eta: the noise stays, so bounded rewards stay bounded
        mean = rounded(pick(means, seen.action), t)
        return jnp.where(hit, payload - 2 * mean, payload), hit, state

    return Attack(init, corrupt)


@factory
def poison(*, corruption=0.2, prob=1.0) -> Adversary:
    """At the floor(corruption * N + 1/2) lowest-numbered agents the reward comes from -theta, as reward_adversary.

    An attacked agent's reward of a play is -<x, theta> plus the noise that it would have had. corruption: in [0, 1/2). prob:
    in [0, 1], the chance of being attacked, drawn for each play and agent; exactly these (play, agent) pairs are left out of
    the regret. Attacked agents report honestly what they saw. For environments of several agents (`federated_linear`).
    Raises ValueError outside. Source: Byzantine-robust federated linear bandits, Proposition 1; without communication it
    costs an order of corruption * N * T.

    >>> import jaxbandits as jb
    >>> jb.adversaries.poison(corruption=0.3, prob=0.5).params.prob
    0.5
    """
    params = Params(
        number("corruption", corruption, 0.0, 0.5, open_high=True, remedy=MINORITY), number("prob", prob, 0.0, 1.0)
    )
    return Adversary(poison_attack(), params, None, {})

"""Where agents' rewards are corrupted, as `reward_adversary`: attacked agents see rewards of another instance.

Data poisoning of "Byzantine-robust federated linear bandits" (Jadbabaie, Li, Qian and Tian), Proposition 1;
`docs/formulas/byzantine.md#poisoning`.

Axes: [P] plays of a window, [N] agents, [A] arms.
"""

from functools import cache
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
from annotated_doc import Doc

from jaxbandits.adversaries.byzantine import Minority, attackers
from jaxbandits.declared import Probability
from jaxbandits.numerics import pick, rounded
from jaxbandits.protocol import Adversary, Attack
from jaxbandits.validation import factory


class Params(NamedTuple):
    corruption: Any
    prob: Any


@cache
def poison_attack() -> Attack:
    """The attack's functions. Draws: prob, at every play."""

    def init(params, draws):
        return ()

    def corrupt(params, state, draws, t, payload, view):
        means = view.truth.means
        if not hasattr(payload, "ndim") or payload.ndim != 2 or jnp.ndim(means) != 3:
            raise ValueError(
                "poison corrupts the rewards of agents: use it as reward_adversary with an environment such as "
                "federated_linear"
            )
        agents = payload.shape[1]
        hit = attackers(params.corruption, agents)[None] & (draws.child("prob").uniform(t, (agents,)) < params.prob)
        # r = <x, theta> + eta becomes -<x, theta> + eta: the noise stays, so bounded rewards stay bounded
        mean = rounded(pick(means, view.action), t)
        return jnp.where(hit, payload - 2 * mean, payload), hit, state

    return Attack(init, corrupt)


@factory(source="Jadbabaie, Li, Qian and Tian, Proposition 1; `docs/formulas/byzantine.md#poisoning`.")
def poison(
    *,
    corruption: Annotated[Minority, Doc("The share of attacked agents.")] = 0.2,
    prob: Annotated[Probability, Doc("The chance of being attacked, drawn for each play and agent.")] = 1.0,
) -> Annotated[Adversary, Doc("Exactly the attacked pairs of play and agent are left out of the regret.")]:
    """Some agents get rewards of the instance -theta; used as `reward_adversary`.

    The attacked agents are the floor(corruption * N + 1/2) lowest-numbered ones. For environments of several agents
    (`federated_linear`).

    Notes
    -----
    An attacked agent's reward of a play is -<x, theta> plus the noise that it would have had. Attacked agents
    report honestly what they saw. Without communication the attack costs an order of corruption * N * T.

    >>> jb.adversaries.poison(corruption=0.3, prob=0.5).params.prob
    0.5
    """
    return Adversary(poison_attack(), Params(corruption, prob), None, {})

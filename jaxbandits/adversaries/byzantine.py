"""Attacked agents: `byzantine` ones replace what they send in a window, and `poison` what they are paid.

"Byzantine-robust federated linear bandits" (Jadbabaie, Li, Qian and Tian): `docs/formulas/byzantine.md#attacks`, and
Proposition 1, `docs/formulas/byzantine.md#poisoning`. Honest averages run over the agents that do not attack in that
window; standard deviations divide by their number. Attackers see everything.

Axes: [P] plays of a window, [N] agents, [A] arms, [d] features.
"""

from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.adversaries.huber import no_state
from jaxbandits.declared import Doc, Probability, Remedy, Share
from jaxbandits.numerics import count, fixed_sum, matvec, pick, rounded
from jaxbandits.protocol import Adversary, AdversaryView, Attack
from jaxbandits.random import Draws, to_normal
from jaxbandits.typing import Array, Bool, Numeric, Scalar
from jaxbandits.validation import factory

Kind = Literal["sign_flip", "noise", "constant", "zero", "nonfinite", "alie", "inner_product", "target", "none"]
HALF = 0.5 + 1e-4  # in floor(corruption * N + 1/2), whichever way a product such as 0.35 * 10 was rounded
Minority = Annotated[Share, Remedy("no server can tell a majority of attackers from honest agents")]


def attackers(corruption: Numeric, num_agents: int) -> Bool[Array, " N"]:
    """The floor(corruption N + 1/2) lowest-numbered agents; below corruption 1/2 that is at most N / 2."""
    index = jnp.arange(num_agents, dtype=jnp.int32)
    return index < jnp.minimum(jnp.floor(corruption * num_agents + HALF).astype(jnp.int32), num_agents // 2)


class Params(NamedTuple):
    corruption: Numeric
    scale: Any
    prob: Numeric


def fake(
    kind: str, params: Params, draws: Draws, when: Array, message: Any, honest: Bool[Array, " N"], view: AdversaryView
) -> tuple[Any, Any]:
    """What an attacker sends: gram [N, d, d] and vector [N, d], or shapes that broadcast to them."""
    gram, vector = message.gram, message.vector
    c, plays = params.scale, count(view.play).astype(gram.dtype)
    dim = vector.shape[-1]
    if kind == "sign_flip":
        return gram, -c * vector
    if kind == "noise":
        # (G + G^T) / sqrt 2 in law, one normal for each pair of coordinates: symmetric to the last bit
        row, column = np.indices((dim, dim), dtype=np.uint32)
        pair = np.maximum(row, column) * np.uint32(dim) + np.minimum(row, column)
        agent = np.arange(len(vector), dtype=np.uint32)[:, None, None] * np.uint32(dim * dim)
        normal = to_normal(draws.child("gram").at(when, agent + pair), draws.dtype)
        g = jnp.where(row == column, 2**0.5 * normal, normal)
        return c * plays * g, c * plays * draws.child("vector").normal(when, vector.shape)
    if kind == "constant":
        return c * plays * jnp.eye(dim, dtype=gram.dtype), jnp.broadcast_to(-c * plays, (dim,))
    if kind == "zero":
        return jnp.zeros_like(gram), jnp.zeros_like(vector)
    if kind == "nonfinite":
        return jnp.full_like(gram, jnp.inf), jnp.full_like(vector, jnp.nan)

    number_honest = jnp.maximum(count(honest), 1).astype(gram.dtype)

    def average(x):  # [N, ...] -> [...]
        theirs = jnp.where(honest.reshape(honest.shape + (1,) * (x.ndim - 1)), x, 0)
        return fixed_sum(theirs, axis=0) / number_honest

    mean_gram, mean_vector = average(gram), average(vector)
    if kind == "alie":
        spread = jnp.sqrt(average((vector - mean_vector[None]) ** 2))
        return mean_gram, mean_vector - c * spread * jnp.sign(mean_vector)
    if kind == "inner_product":
        return mean_gram, -c * mean_vector
    if view.truth.theta is None:
        raise ValueError("byzantine(kind='target') needs an environment with a theta: choose another kind")
    return mean_gram, matvec(mean_gram, -c * view.truth.theta)


@cache
def byzantine_attack(kind: str, part: str) -> Attack:
    """The attack's functions. Draws: prob, gram, vector, at the first play of a window."""

    def corrupt(params, state, draws, t, payload, view):
        if not {"gram", "vector"} <= set(getattr(payload, "_fields", ())):
            raise ValueError(
                "byzantine corrupts messages with fields gram and vector, like Moments, "
                f"not {type(payload).__name__}: use huber"
            )
        agents = payload.vector.shape[0]
        when = t[0]  # a window is addressed by its first play
        if kind == "none":
            return payload, jnp.zeros(agents, bool), state
        hit = attackers(params.corruption, agents) & (draws.child("prob").uniform(when, (agents,)) < params.prob)
        gram, vector = fake(kind, params, draws, when, payload, ~hit, view)
        if part != "vector":
            payload = payload._replace(gram=jnp.where(hit[:, None, None], gram, payload.gram))
        if part != "matrix":
            payload = payload._replace(vector=jnp.where(hit[:, None], vector, payload.vector))
        return payload, hit, state

    return Attack(no_state, corrupt)


@factory(source='Baruch et al. 2019; Xie et al. 2020 ("inner_product"); `docs/formulas/byzantine.md#attacks`.')
def byzantine(
    *,
    corruption: Annotated[Minority, Doc("The share of attackers.")] = 0.2,
    kind: Kind = "target",
    scale: Annotated[Scalar, Doc("c, any finite number.")] = 1.0,
    prob: Probability = 1.0,
    part: Literal["both", "matrix", "vector"] = "both",
) -> Annotated[Adversary, Doc("Regret leaves out the agents that attack, in the windows in which they do.")]:
    """Some agents replace the message (U, u) that they send; used as `message_adversary`.

    The attackers are the floor(corruption * N + 1/2) lowest-numbered agents.

    Args:
        kind: What they send. With c = scale, L the plays of the window, bars for honest averages, s_u for the honest
            standard deviation, and g, G normal: "sign_flip": (U, -c u); "noise": (c L (G + G^T) / sqrt 2, c L g);
            "constant": (c L I, -c L 1); "zero"; "nonfinite": inf and NaN; "alie": (Ubar, ubar - c s_u sign(ubar));
            "inner_product": (Ubar, -c ubar); "target": (Ubar, -c Ubar theta); "none": no attack.
        prob: The chance that an attacker attacks in a window, drawn for each window and agent.
        part: What is replaced, the other part staying honest.

    Raises:
        ValueError: If an argument is out of range, or the attack changes nothing.

    Note:
        "alie" is a variant of Baruch et al. 2019.

    >>> jb.adversaries.byzantine(corruption=0.3, kind="alie", scale=1.5).config["kind"]
    'alie'
    """
    if kind == "sign_flip" and part == "matrix":
        raise ValueError("part = 'matrix' changes nothing with kind='sign_flip': use 'both' or 'vector'")
    return Adversary(byzantine_attack(kind, part), Params(corruption, scale, prob), None, {})


# ---- rewards of agents


class PoisonParams(NamedTuple):
    corruption: Numeric
    prob: Numeric


@cache
def poison_attack() -> Attack:
    """The attack's functions. Draws: prob, at every play."""

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

    return Attack(no_state, corrupt)


def range_of_rival(params: PoisonParams, low: float, high: float) -> tuple[float, float]:
    """The least and the largest reward after the attack: the instance -theta's."""
    return min(low, -high), max(high, -low)


@factory(source="Jadbabaie, Li, Qian and Tian, Proposition 1; `docs/formulas/byzantine.md#poisoning`.")
def poison(
    *,
    corruption: Annotated[Minority, Doc("The share of attacked agents.")] = 0.2,
    prob: Annotated[Probability, Doc("The chance of being attacked, drawn for each play and agent.")] = 1.0,
) -> Annotated[Adversary, Doc("Exactly the attacked pairs of play and agent are left out of the regret.")]:
    """Some agents get rewards of the instance -theta; used as `reward_adversary`.

    The attacked agents are the floor(corruption * N + 1/2) lowest-numbered ones. For environments of several agents
    (`federated_linear`).

    Note:
        An attacked agent's reward of a play is -<x, theta> plus the noise that it would have had. Attacked agents
        report honestly what they saw. Without communication the attack costs an order of corruption * N * T.

    >>> jb.adversaries.poison(corruption=0.3, prob=0.5).params.prob
    0.5
    """
    return Adversary(poison_attack(), PoisonParams(corruption, prob), None, {}, reward_range=range_of_rival)

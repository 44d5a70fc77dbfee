"""Byzantine agents: they replace the message of a window (Byzantine-robust federated linear bandits, sections 5 and 10).

Axes: [N] agents, [d] features. Honest averages run over the agents that do not attack in that window; standard
deviations divide by their number. Attackers see everything.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics import count, fixed_sum, matvec
from jaxbandits.protocol import Adversary, Attack
from jaxbandits.random import to_normal
from jaxbandits.validation import choice, factory, number

KINDS = ("sign_flip", "noise", "constant", "zero", "nonfinite", "alie", "inner_product", "target", "none")
HALF = 0.5 + 1e-4  # floor(corruption * N + 1/2), whichever way a product such as 0.35 * 10 was rounded
MINORITY = "no server can tell a majority of attackers from honest agents"


def attackers(corruption, num_agents: int):
    """[N] bool: the floor(corruption N + 1/2) lowest-numbered agents; below corruption 1/2 that is at most N / 2."""
    index = jnp.arange(num_agents, dtype=jnp.int32)
    return index < jnp.minimum(jnp.floor(corruption * num_agents + HALF).astype(jnp.int32), num_agents // 2)


class Params(NamedTuple):
    corruption: Any
    scale: Any
    prob: Any


@cache
def byzantine_attack(kind: str, part: str) -> Attack:
    def init(params, draws):
        return ()

    def fake(params, draws, when, message, honest, seen):
        """What an attacker sends: gram [N, d, d] and vector [N, d], or shapes that broadcast to them."""
        gram, vector = message.gram, message.vector
        c, plays = params.scale, count(seen.play).astype(gram.dtype)
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
            kept = jnp.where(honest.reshape(honest.shape + (1,) * (x.ndim - 1)), x, 0)
            return fixed_sum(kept, axis=0) / number_honest

        mean_gram, mean_vector = average(gram), average(vector)
        if kind == "alie":
            spread = jnp.sqrt(average((vector - mean_vector) ** 2))
            return mean_gram, mean_vector - c * spread * jnp.sign(mean_vector)
        if kind == "inner_product":
            return mean_gram, -c * mean_vector
        if seen.truth.theta is None:
            raise ValueError("byzantine(kind='target') needs an environment with a theta: choose another kind")
        return mean_gram, matvec(mean_gram, -c * seen.truth.theta)

    def corrupt(params, state, draws, t, payload, seen):
        if not {"gram", "vector"} <= set(getattr(payload, "_fields", ())):
            raise ValueError(
                f"byzantine corrupts messages with fields gram and vector, like Moments, not {type(payload).__name__}: use huber"
            )
        agents = payload.vector.shape[0]
        when = t[0]  # a window is addressed by its first play
        if kind == "none":
            return payload, jnp.zeros(agents, bool), state
        hit = attackers(params.corruption, agents) & (draws.child("prob").uniform(when, (agents,)) < params.prob)
        gram, vector = fake(params, draws, when, payload, ~hit, seen)
        if part != "vector":
            payload = payload._replace(gram=jnp.where(hit[:, None, None], gram, payload.gram))
        if part != "matrix":
            payload = payload._replace(vector=jnp.where(hit[:, None], vector, payload.vector))
        return payload, hit, state

    return Attack(init, corrupt)


@factory
def byzantine(*, corruption=0.2, kind="target", scale=1.0, prob=1.0, part="both") -> Adversary:
    """The floor(corruption * N + 1/2) lowest-numbered agents replace their message (U, u), as message_adversary.

    corruption: in [0, 1/2). prob: in [0, 1], the chance that such an agent attacks in a window, drawn for each window and agent;
    regret leaves out the agents that attack. part: "both", or only the "matrix" or the "vector", the other staying honest.
    With c = scale, L the plays of the window, bars honest averages, s_u the honest standard deviation, g, G normal:
    "sign_flip": (U, -c u); "noise": (c L (G + G^T) / sqrt 2, c L g); "constant": (c L I, -c L 1); "zero"; "nonfinite": inf
    and NaN; "alie": (Ubar, ubar - c s_u sign(ubar)), a variant of Baruch et al. 2019; "inner_product": (Ubar, -c ubar),
    Xie et al. 2020; "target": (Ubar, -c Ubar theta); "none": no attack. Raises ValueError outside.
    Source: Byzantine-robust federated linear bandits, sections 5 and 10 of the specification.

    >>> import jaxbandits as jb
    >>> jb.adversaries.byzantine(corruption=0.3, kind="alie", scale=1.5).config["kind"]
    'alie'
    """
    choice("kind", kind, KINDS)
    choice("part", part, ("both", "matrix", "vector"))
    if kind == "sign_flip" and part == "matrix":
        raise ValueError("part = 'matrix' changes nothing with kind='sign_flip': use 'both' or 'vector'")
    params = Params(
        number("corruption", corruption, 0.0, 0.5, open_high=True, remedy=MINORITY),
        number("scale", scale),
        number("prob", prob, 0.0, 1.0),
    )
    return Adversary(byzantine_attack(kind, part), params, None, {})

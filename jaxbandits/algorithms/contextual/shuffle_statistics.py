"""Statistics of users behind a shuffler: the server sees a batch of B users at once.

Formulas: docs/formulas/ldp_contextual.md#shuffle-model. A batch that the horizon cuts short is not relayed: no
play would use it.

Axes: [P] plays of a window, [d] features, [n] = d (d + 1) / 2 + d entries of (x x', x y): the upper triangle by
rows, then x y.

Draws: encode/noise, [n] normals at a user's t (amplified) or [n] words at the batch's last t (vector);
encode/rounding, [n] at t (vector).
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.statistics import Statistics, Sums, add_total, bounded, local, report
from jaxbandits.mechanisms.shuffle import VectorCode, batch_noise, decode, encode
from jaxbandits.numerics import fixed_sum, materialize
from jaxbandits.numerics.packed import pairs
from jaxbandits.typing import Array, Float


class VectorParams(NamedTuple):
    """Numbers of the vector protocol, and ridge rho_t = ridge + ridge_root sqrt(t)."""

    code: VectorCode
    # L: the client scales down features above it
    feature_norm: Any
    # what one unit of the code stands for, in x x' and in x y
    gram_unit: Any
    vector_unit: Any
    ridge: Any
    ridge_root: Any
    # of the guarantee; no function here reads it
    delta: Any


class Integers(NamedTuple):
    """What users send: a message's integers, and their binomial noise.

    The noise is drawn for the whole batch at once, which has the same law of the sum.
    """

    value: Float[Array, "P n"]
    # less its mean b B / 4, which everybody knows
    noise: Float[Array, " n"]


class Total(NamedTuple):
    """What the shuffler relays."""

    # sum of integers and noise
    total: Float[Array, " n"]
    # B, or 0: nothing was relayed
    users: Any


@cache
def amplified(dim: int) -> Statistics:
    """Local noise on every user's (x x', x y), as in `local`; the shuffler hides whose message is whose.

    Params are `PrivateParams`.     The server needs no more of permuted messages than their sum, so the sum
    stands for them.
    """
    single = local(dim)

    def relay(params, scale, draws, t, message, play):
        whole = jnp.all(play)

        def total(x):
            return jnp.where(whole, fixed_sum(x), 0)

        return Sums(tuple(map(total, message.gram)), tuple(map(total, message.vector)))

    def update(params, scale, state, draws, t, message, used):
        return add_total(state, message), ()

    return single._replace(relay=relay, update=update)


@cache
def vector(dim: int) -> Statistics:
    """Every user's (x x', x y) as integers with binomial noise, of which the shuffler relays the sums.

    Params are `VectorParams`.
    """
    single, entries = local(dim), len(pairs(dim)) + dim

    def encode_users(params, scale, draws, t, feature, reward, play):
        values = report(*bounded(feature, reward, params.feature_norm))
        coded = [v / params.gram_unit for v in values.gram] + [u / params.vector_unit for u in values.vector]
        uniform = draws.child("rounding").uniform(t, (entries,))
        integers = encode(params.code, uniform, jnp.stack(coded, -1))
        trials = jnp.floor(jnp.asarray(scale * scale * params.code.trials, draws.dtype))
        return Integers(integers, batch_noise(trials, draws.child("noise").bits(t[-1], (entries,)), draws.dtype))

    def relay(params, scale, draws, t, message, play):
        whole = jnp.all(play)
        total = fixed_sum(message.value, axis=0) + message.noise
        return Total(materialize(jnp.where(whole, total, 0)), jnp.where(whole, len(play), 0))

    def update(params, scale, state, draws, t, message, used):
        sums = decode(params.code, message.total, message.users.astype(message.total.dtype))
        gram = tuple(sums[k] * params.gram_unit for k in range(entries - dim))
        return add_total(
            state, Sums(gram, tuple(sums[k] * params.vector_unit for k in range(entries - dim, entries)))
        ), ()

    return single._replace(encode=encode_users, update=update, relay=relay)

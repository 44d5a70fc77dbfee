"""What an algorithm plays: the least eigenvalue of the second moment of the features played, along its run.

The server of a private algorithm never sees these features, so that this is for measurements only. Play is that of the
algorithm itself.
"""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.doubling import call
from jaxbandits.numerics.packed import full, pairs
from jaxbandits.protocol import Algorithm, Program
from jaxbandits.typing import AlgorithmFactory, Array, Float
from jaxbandits.validation import factory, integer

EPOCHS = 20  # the plays 2^k, ..., 2^(k + 1) - 1 of an epoch k; a run ends in the last one at the latest


class State(NamedTuple):
    """The algorithm's state, and the sums of each epoch."""

    base: Any
    sums: Float[Array, "epochs entries"]  # of x x' over the plays of an epoch, upper triangle by rows
    plays: Float[Array, " epochs"]  # plays of an epoch


@cache
def program(base: Program, dim: int) -> Program:
    """The algorithm's functions; the messages carry the true features along."""

    def init(params, draws):
        sums = jnp.zeros((EPOCHS, dim * (dim + 1) // 2), draws.dtype)
        return State(base.init(params, draws), sums, jnp.zeros(EPOCHS, draws.dtype))

    def act(params, state, draws, t, context):
        return base.act(params, state.base, draws, t, context)

    def encode(params, note, draws, t, context, action, reward, play):
        return base.encode(params, note, draws, t, context, action, reward, play), context[0, action[0]]

    def update(params, state, draws, t, note, message, used):
        own, x = message
        after, released = base.update(params, state.base, draws, t, note, own, used)
        now = ((t >> jnp.arange(EPOCHS, dtype=jnp.int32)) == 1).astype(x.dtype)
        products = jnp.stack([x[i] * x[j] for i, j in pairs(dim)])
        return State(after, state.sums + now[:, None] * products[None, :], state.plays + now), released

    def diagnose(params, state):
        means = state.sums / jnp.maximum(state.plays, 1)[:, None]
        moments = jnp.moveaxis(full(list(means.T), dim), -1, 0)
        least = jnp.linalg.eigvalsh(moments)[:, 0]
        found = {f"lambda_min_{k}": least[k] for k in range(EPOCHS)}
        return {**base.diagnose(params, state.base), **found}

    return Program(init, act, encode, update, diagnose=diagnose)


@factory
def watched(
    *, num_arms: int, dim: int, horizon: int, base: AlgorithmFactory, feature_norm: float | None = None
) -> Algorithm:
    """An algorithm with the diagnostics `lambda_min_0`, `lambda_min_1`, ...: one for every epoch of 2^k plays.

    The base plays one play a window; its guarantee does not cover the diagnostics.
    """
    horizon = integer("horizon", horizon, 1, 2**EPOCHS - 1, remedy="later epochs are not measured")
    fixed = {"num_arms": num_arms, "dim": dim, "horizon": horizon, "feature_norm": feature_norm}
    algorithm = call(base, fixed, {})
    return algorithm._replace(
        program=program(algorithm.program, dim), version=("watched", 1, (algorithm.version,)), config={}
    )

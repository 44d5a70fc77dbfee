"""Algorithms that are measured as they play: confidence sets beside the truth, and the features played.

They play exactly as without. A measure takes (params, before, after, draws, t, note, released) of an `update`, or
(params, state, draws, t) of a `close`, and gives the error of an estimate over the radius that its set has: a number
above 1 says that the truth lies outside. NaN: there is no new set.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.doubling import call_base
from jaxbandits.algorithms.federated import agents
from jaxbandits.algorithms.linear.batches import view_batch
from jaxbandits.algorithms.linear.robust_elimination import Shape, filter_rules
from jaxbandits.numerics.packed import full, pairs
from jaxbandits.protocol import Algorithm, Guarantee, Hints, Program
from jaxbandits.typing import AlgorithmFactory, Array, Float
from jaxbandits.validation import factory, integer


class Params(NamedTuple):
    """The algorithm's numbers, and the true parameter [d] or means [K]."""

    inner: Any
    truth: Any


class State(NamedTuple):
    """The algorithm's state, and what was measured."""

    inner: Any
    largest: Array  # error over radius, over all sets so far
    first: Array  # that of the first set; NaN before


def _note_ratio(state: State, inner: Any, ratio: Any) -> State:
    seen = jnp.isfinite(ratio)
    largest = jnp.where(seen, jnp.maximum(state.largest, ratio), state.largest)
    return State(inner, largest, jnp.where(jnp.isnan(state.first) & seen, ratio, state.first))


@cache
def program(plain: Program, updated: Callable | None, closed: Callable | None) -> Program:
    """The functions of an algorithm with a measure after each `update` or at each `close`."""

    def init(params, draws):
        return State(plain.init(params.inner, draws), jnp.zeros((), draws.dtype), jnp.full((), jnp.nan, draws.dtype))

    def act(params, state, draws, t, context):
        return plain.act(params.inner, state.inner, draws, t, context)

    def encode(params, note, draws, t, context, action, reward, play):
        return plain.encode(params.inner, note, draws, t, context, action, reward, play)

    def update(params, state, draws, t, note, message, used):
        out = plain.update(params.inner, state.inner, draws, t, note, message, used)
        after, released = out if type(out) is tuple else (out, ())
        ratio = jnp.nan if updated is None else updated(params, state.inner, after, note, released)
        return _note_ratio(state, after, ratio), released

    def close(params, state, draws, t):
        ratio = jnp.nan if closed is None else closed(params, state.inner, draws, t)
        return _note_ratio(state, plain.close(params.inner, state.inner, draws, t), ratio)

    def diagnose(params, state):
        return {"largest_error": state.largest, "first_error": state.first}

    decided = plain.hints.rest
    rest = None if decided is None else lambda params, state: decided(params.inner, state.inner)
    hints = Hints(rest=rest, one_arm=plain.hints.one_arm)
    return Program(init, act, encode, update, close=close, diagnose=diagnose, hints=hints)


def watch(algorithm: Algorithm, truth: Any, *, updated: Any = None, closed: Any = None) -> Algorithm:
    """`algorithm` with its confidence sets watched; it has no guarantee of its own."""
    functions, params = program(algorithm.program, updated, closed), Params(algorithm.params, truth)
    version = ("watched", 1, algorithm.version)
    return algorithm._replace(program=functions, params=params, guarantee=Guarantee(), version=version)


def watching(
    base: AlgorithmFactory, truth: Any, *, updated: Any = None, closed: Callable[[Algorithm], Any] | None = None
) -> AlgorithmFactory:
    """A factory with the arguments of `base`, whose algorithms are watched. closed: of an algorithm, its measure."""

    @wraps(base)
    def make_algorithm(**given: object) -> Algorithm:
        plain = base(**given)
        return watch(plain, truth, updated=updated, closed=None if closed is None else closed(plain))

    make_algorithm.__name__ = f"watched_{make_algorithm.__name__}"
    return factory(make_algorithm)


def _norm(error: Array, inverse: Array) -> Array:
    """The norm of an error [d] in the matrix whose inverse is given [d, d]."""
    return jnp.sqrt(jnp.maximum(error @ jnp.linalg.solve(inverse, error), 0))


def online_ucb_error(params, before, after, note, released):
    """The norm of theta's error in V over the width of the set."""
    theta = jnp.stack(after.theta)
    width = params.inner.radius_scale * params.inner.width
    return _norm(theta - params.truth.astype(theta.dtype), full(after.inverse, theta.shape[0])) / width


def byzantine_error(params, before, after, note, released):
    """The norm of theta's error in Lambda_k over beta_k, once an episode that is followed by another."""
    error = after.theta - params.truth.astype(after.theta.dtype)
    width = agents.episode_radius(params.inner.constants, after.episode, after.theta.dtype)
    return jnp.where(after.episode > before.episode, _norm(error, after.inverse) / width, jnp.nan)


def block_error(params, before, after, note, released):
    """The error of a block's private mean over the block's radius; a batch that explores is not measured."""
    mean = jnp.ravel(released)[0]
    radius = jnp.asarray(params.inner.radius)[before.batch].astype(mean.dtype)
    return jnp.abs(mean - params.truth.astype(mean.dtype)[note]) / radius


@cache
def batch_error(shape: Shape) -> Callable:
    """The largest error of an active arm's estimate over the batch's radius."""

    def error_at_close(params, state, draws, t):
        batch = view_batch(params.inner, state)
        theta = filter_rules(shape).judge(params.inner, draws, t, batch)[0]
        error = jnp.abs(params.inner.actions @ (theta - params.truth.astype(theta.dtype)))
        largest = jnp.max(jnp.where(batch.active, error, 0))
        return jnp.where(batch.plays > 0, largest / batch.plan.radius, jnp.nan)

    return error_at_close


# ---- the least eigenvalue of the second moment of the features played, which the server of a private algorithm never
# sees

EPOCHS = 20  # the plays 2^k, ..., 2^(k + 1) - 1 of an epoch k; a run ends in the last one at the latest


class Played(NamedTuple):
    """The algorithm's state, and the sums of each epoch."""

    base: Any
    sums: Float[Array, "epochs entries"]  # of x x' over the plays of an epoch, upper triangle by rows
    plays: Float[Array, " epochs"]  # plays of an epoch


@cache
def epoch_program(base: Program, dim: int) -> Program:
    """The algorithm's functions; the messages carry the true features along."""

    def init(params, draws):
        sums = jnp.zeros((EPOCHS, dim * (dim + 1) // 2), draws.dtype)
        return Played(base.init(params, draws), sums, jnp.zeros(EPOCHS, draws.dtype))

    def act(params, state, draws, t, context):
        return base.act(params, state.base, draws, t, context)

    def encode(params, note, draws, t, context, action, reward, play):
        return base.encode(params, note, draws, t, context, action, reward, play), context[0, action[0]]

    def update(params, state, draws, t, note, message, used):
        own, x = message
        after, released = base.update(params, state.base, draws, t, note, own, used)
        now = ((t >> jnp.arange(EPOCHS, dtype=jnp.int32)) == 1).astype(x.dtype)
        products = jnp.stack([x[i] * x[j] for i, j in pairs(dim)])
        return Played(after, state.sums + now[:, None] * products[None, :], state.plays + now), released

    def diagnose(params, state):
        means = state.sums / jnp.maximum(state.plays, 1)[:, None]
        moments = jnp.moveaxis(full(list(means.T), dim), -1, 0)
        least = jnp.linalg.eigvalsh(moments)[:, 0]
        found = {f"lambda_min_{k}": least[k] for k in range(EPOCHS)}
        return {**base.diagnose(params, state.base), **found}

    return Program(init, act, encode, update, diagnose=diagnose)


@factory
def played(
    *, num_arms: int, dim: int, horizon: int, base: AlgorithmFactory, feature_norm: float | None = None
) -> Algorithm:
    """An algorithm of one play a window with the diagnostics `lambda_min_k`, of every epoch of 2^k plays."""
    horizon = integer("horizon", horizon, 1, 2**EPOCHS - 1, remedy="later epochs are not measured")
    fixed = {"num_arms": num_arms, "dim": dim, "horizon": horizon, "feature_norm": feature_norm}
    algorithm = call_base(base, fixed, {})
    functions, version = epoch_program(algorithm.program, dim), ("watched", 1, (algorithm.version,))
    return algorithm._replace(program=functions, version=version, config={})

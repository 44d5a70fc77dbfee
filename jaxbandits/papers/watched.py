"""An algorithm whose confidence sets are compared with the truth as it plays; it plays exactly as without.

A measure takes (params, before, after, draws, t, note, released) of an `update`, or (params, state, draws, t) of a
`close`, and gives the error of an estimate over the radius that its set has: a number above 1 says that the truth lies
outside. NaN: there is no new set.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.federated import agents
from jaxbandits.algorithms.linear.robust_elimination import Shape, estimated
from jaxbandits.numerics.packed import full
from jaxbandits.protocol import Algorithm, Guarantee, Hints, Program
from jaxbandits.typing import AlgorithmFactory
from jaxbandits.validation import factory


class Params(NamedTuple):
    """The algorithm's numbers, and the true parameter [d] or means [K]."""

    inner: Any
    truth: Any


class State(NamedTuple):
    """The algorithm's state, and what was measured."""

    inner: Any
    largest: Any  # error over radius, over all sets so far
    first: Any  # that of the first set; NaN before


def _noted(state: State, inner: Any, ratio: Any) -> State:
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
        return _noted(state, after, ratio), released

    def close(params, state, draws, t):
        ratio = jnp.nan if closed is None else closed(params, state.inner, draws, t)
        return _noted(state, plain.close(params.inner, state.inner, draws, t), ratio)

    def diagnose(params, state):
        return {"largest_error": state.largest, "first_error": state.first}

    decided = plain.hints.rest
    rest = None if decided is None else lambda params, state: decided(params.inner, state.inner)
    hints = Hints(rest=rest, one_arm=plain.hints.one_arm)
    return Program(init, act, encode, update, close=close, diagnose=diagnose, hints=hints)


def watched(algorithm: Algorithm, truth: Any, *, updated: Any = None, closed: Any = None) -> Algorithm:
    """`algorithm` with its confidence sets watched; it has no guarantee of its own."""
    return algorithm._replace(
        program=program(algorithm.program, updated, closed), params=Params(algorithm.params, truth),
        guarantee=Guarantee(), version=("watched", 1, algorithm.version),
    )  # fmt: skip


def watching(
    base: AlgorithmFactory, truth: Any, *, updated: Any = None, closed: Callable[[Algorithm], Any] | None = None
) -> AlgorithmFactory:
    """A factory with the arguments of `base`, whose algorithms are watched. closed: of an algorithm, its measure."""

    @wraps(base)
    def made(**given: Any) -> Algorithm:
        plain = base(**given)
        return watched(plain, truth, updated=updated, closed=None if closed is None else closed(plain))

    made.__name__ = f"watched_{made.__name__}"
    return factory(made)


def _norm(error: Any, inverse: Any) -> Any:
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
    width = agents.radius(params.inner.constants, after.episode, after.theta.dtype)
    return jnp.where(after.episode > before.episode, _norm(error, after.inverse) / width, jnp.nan)


def block_error(params, before, after, note, released):
    """The error of a block's private mean over the block's radius; a batch that explores is not measured."""
    mean = jnp.ravel(released)[0]
    radius = jnp.asarray(params.inner.radius)[before.batch].astype(mean.dtype)
    return jnp.abs(mean - params.truth.astype(mean.dtype)[note]) / radius


@cache
def batch_error(shape: Shape) -> Callable:
    """The largest error of an active arm's estimate over the batch's radius."""

    def closed(params, state, draws, t):
        theta = estimated(shape, params.inner, state, draws, t).theta
        error = jnp.abs(params.inner.actions @ (theta - params.truth.astype(theta.dtype)))
        largest = jnp.max(jnp.where(state.active, error, 0))
        return jnp.where(jnp.any(state.counts > 0), largest / state.radius, jnp.nan)

    return closed

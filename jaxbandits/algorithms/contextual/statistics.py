"""Ways of learning V = sum x x' and u = sum x y from users: one half of a linear bandit, the other is `selection`.

Formulas: docs/formulas/ldp_contextual.md#comparators

The noise of a pair is one draw [n] of standard normals from the child "noise", times the scales of its entries.
It is drawn at the play's t under local privacy, at the t of the node's last play in the tree, and at the node's
number 0, 1, ... in the nested sums.

Axes: [P] plays of a window, [d] features, [n] = d (d + 1) / 2 + d entries of the packed pair (V, u): V's upper
triangle by rows, then u.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.mechanisms.counters.form import Given
from jaxbandits.mechanisms.tree import tree, tree_levels
from jaxbandits.numerics import added, fixed_sum, left_out, safe_norm
from jaxbandits.numerics.packed import outer, pairs, rank_one, ridge_estimate
from jaxbandits.typing import Array, Float, Int


class Estimate(NamedTuple):
    """What a selection rule reads."""

    # P = (V + ridge I)^-1: d (d + 1) / 2 scalars, upper triangle by rows; need not be definite
    inverse: Any
    # P u: d scalars
    theta: Any
    # what rounding left out of both, in a long run of statistics that keep them; otherwise ()
    rest: Any = ()


def _relay(params, scale, draws, t, message, play):
    return message


class Statistics(NamedTuple):
    """One way of learning (V, u): functions, for one lane.

    `params` are its own numbers, `scale` is Params.mechanism_scale.

    `feature` is a list of d arrays [P], the played arms'; `reward` and `play` are [P]; `t` in encode is [P], in
    relay and update the window's last play, in estimate the 1-based play (a window's first) that the estimate
    is for. `used` plays of the window count. Made only by cached builders: `linear_bandit` is cached on them.
    """

    # params, draws -> state
    init: Callable[..., Any]
    # client: params, scale, draws, t, feature, reward, play -> message
    encode: Callable[..., Any]
    # server: params, scale, state, draws, t, message, used -> state, released
    update: Callable[..., tuple[Any, Any]]
    # server, once a window: params, scale, state, t -> Estimate
    estimate: Callable[..., Estimate]
    # shuffler: params, scale, draws, t, message, play -> message
    relay: Callable[..., Any] = _relay
    # as `Program.lockstep`
    lockstep: bool = False


class Sums(NamedTuple):
    """A user's report, or what the server holds: (x x', x y) or (V, u), packed."""

    # d (d + 1) / 2 scalars, or arrays [P]
    gram: Any
    # d scalars, or arrays [P]
    vector: Any
    # what rounding left out of sums over a long run; otherwise ()
    rest: Any = ()


class NoParams(NamedTuple):
    """The number of the statistics without noise."""

    ridge: Any


class PrivateParams(NamedTuple):
    """Standard deviations of one draw of noise, and ridge rho_t = ridge + ridge_root sqrt(t)."""

    diagonal: Any
    off_diagonal: Any
    vector: Any
    ridge: Any
    ridge_root: Any
    # L: the client scales down features above it
    feature_norm: Any
    # of the guarantee; no function here reads it
    delta: Any
    # of a form of `mechanisms.counter`: its own numbers
    sums: Any = ()


class JointState(NamedTuple):
    """The true sums at a trusted server, and the noise under which they are released."""

    sums: Sums
    # what the noise is made from
    source: Any


def bounded(feature: Sequence[Array], reward: Array, norm: Any) -> tuple[list[Array], Array]:
    """(x, y) as a client whose privacy is calibrated reports them: ||x|| <= norm, y in [0, 1], not finite is 0."""
    feature = [jnp.where(jnp.isfinite(x), x, 0) for x in feature]
    size = safe_norm(jnp.stack(feature, -1))
    shrink = jnp.where(size > norm, norm / jnp.maximum(size, norm), 1)
    return [x * shrink for x in feature], jnp.where(jnp.isfinite(reward), jnp.clip(reward, 0, 1), 0)


def noisy(params: PrivateParams, scale: Any, noise: Sequence[Array], sums: Sums, dim: int) -> Sums:
    """Sums plus n standard normals times their scales; no noise at scale 0."""
    entry = scale * params.vector
    size = [scale * (params.diagonal if i == j else params.off_diagonal) for i, j in pairs(dim)]
    gram = tuple(v + size[k] * noise[k] for k, v in enumerate(sums.gram))
    return Sums(gram, tuple(u + entry * noise[len(gram) + j] for j, u in enumerate(sums.vector)))


def zeros(dim: int, draws: Any) -> Sums:
    """Sums of nothing, at the start of a run with these draws."""
    zero = jnp.zeros((), draws.dtype)
    both = (zero,) * len(pairs(dim)), (zero,) * dim
    return Sums(*both, left_out(both, draws.long))


def report(feature: Sequence[Array], reward: Array) -> Sums:
    """(x x', x y), packed."""
    return Sums(tuple(outer(feature)), tuple(x * reward for x in feature))


def add(sums: Sums, message: Sums, used: Any) -> Sums:
    """Sums with the first `used` plays of a window."""
    mask = jnp.arange(len(message.vector[0]), dtype=jnp.int32) < used

    def total(new):
        return new[0] if len(new) == 1 else fixed_sum(jnp.where(mask, new, 0))

    return add_total(sums, Sums(tuple(map(total, message.gram)), tuple(map(total, message.vector))))


def add_total(sums: Sums, new: Sums) -> Sums:
    """Sums with those of one more window."""
    (gram, vector), rest = added(sums[:2], sums.rest, new[:2])
    return Sums(gram, vector, rest)


def ridge_at(params: Any, t: Int[Array, ""], dtype: Any) -> Float[Array, ""]:
    """The ridge rho_t of play t."""
    return params.ridge + params.ridge_root * jnp.sqrt(t.astype(dtype))


@cache
def none(dim: int) -> Statistics:
    """No privacy: P by Sherman and Morrison, windows of one play; params `NoParams`. Non-finite rewards count as 0."""

    def init(params, draws):
        one, zero = 1 / jnp.asarray(params.ridge, draws.dtype), jnp.zeros((), draws.dtype)
        both = tuple(one if i == j else zero for i, j in pairs(dim)), (zero,) * dim
        return Estimate(*both, left_out(both, draws.long))

    def encode(params, scale, draws, t, feature, reward, play):
        return [x[0] for x in feature], jnp.where(jnp.isfinite(reward[0]), reward[0], 0)

    def update(params, scale, state, draws, t, message, used):
        return Estimate(*rank_one(*state, *message)), ()

    return Statistics(init, encode, update, lambda params, scale, state, t: state)


@cache
def local(dim: int) -> Statistics:
    """Local privacy: every user adds noise to (x x', x y); state `Sums`, params `PrivateParams`."""
    entries = len(pairs(dim)) + dim

    def init(params, draws):
        return zeros(dim, draws)

    def encode(params, scale, draws, t, feature, reward, play):
        feature, reward = bounded(feature, reward, params.feature_norm)
        noise = draws.child("noise").normals(t, entries)
        return noisy(params, scale, noise, report(feature, reward), dim)

    def update(params, scale, state, draws, t, message, used):
        return add(state, message, used), ()

    def estimate(params, scale, state, t):
        return Estimate(*ridge_estimate(state.gram, state.vector, ridge_at(params, t, state.vector[0].dtype)))

    return Statistics(init, encode, update, estimate)


def _tree(nodes: int, entries: int):
    """The binary tree's noise, a tree for each entry: three functions.

    start(draws) -> source; move(params, source, draws, n) -> the source after n reports; noise(params, source, n) ->
    their noise.
    """
    begin, release, noise = tree(2**nodes - 1, ())

    def start(draws):
        return (begin(draws.dtype),) * entries

    def move(params, source, draws, n):
        fresh = draws.child("noise").normals(n, entries)
        return tuple(release(sums, n, z)[0] for sums, z in zip(source, fresh, strict=True))

    return start, move, lambda params, source, n: tuple(noise(sums, n) for sums in source)


def _counter(functions: tuple[Callable[..., Any], ...], entries: int):
    """The noise of a form of `mechanisms.counter`, one for each entry; functions: its begin, move and noise."""
    begin, step, noise = functions

    def start(draws):
        return (begin((), draws.dtype),) * entries

    def move(params, source, draws, n):
        fresh = draws.child("noise").normals(n, entries)
        return tuple(step(params.sums, own, Given(z), n, ()) for own, z in zip(source, fresh, strict=True))

    return start, move, lambda params, source, n: tuple(noise(params.sums, own, n) for own in source)


def _nested(nodes: int, entries: int):
    """The published code's noise: at play t the sum of the first floor(ln t) + 1 of nodes drawn in advance."""
    starts = [math.ceil(math.exp(level)) for level in range(1, nodes)]  # the first play of every level but 0

    def start(draws):
        drawn = draws.child("noise").normal(jnp.arange(nodes, dtype=jnp.int32), (entries,))
        sums = [drawn[0]]
        for node in drawn[1:]:
            sums.append(sums[-1] + node)
        return jnp.stack(sums)

    def noise(params, source, n):
        level = sum(((n + 1 >= first).astype(jnp.int32) for first in starts), jnp.int32(0))
        return tuple(lax.dynamic_index_in_dim(source, level, keepdims=False))

    return start, lambda params, source, draws, n: source, noise


TREES: dict[str, Callable[..., Any]] = {"binary": _tree, "simplified": _nested, "counter": _counter}


def tree_nodes(form: str, horizon: int) -> int:
    """How many nodes are carried: levels of the binary tree, floor(ln T) + 1 of the simplified one."""
    return max(tree_levels(horizon), 1) if form == "binary" else math.floor(math.log(horizon)) + 1


@cache
def joint(dim: int, form: str, nodes: Any) -> Statistics:
    """Joint privacy: the server adds the noise of a running sum to (V, u).

    Windows are of one play, params are `PrivateParams`. form: a key of `TREES`; nodes: `tree_nodes`, or the functions
    of a counter.
    """
    start, move, noise = TREES[form](nodes, len(pairs(dim)) + dim)

    def init(params, draws):
        return JointState(zeros(dim, draws), start(draws))

    def encode(params, scale, draws, t, feature, reward, play):
        return report(*bounded(feature, reward, params.feature_norm))

    def released(params, scale, state, n):
        return noisy(params, scale, noise(params, state.source, n), state.sums, dim)

    def update(params, scale, state, draws, t, message, used):
        state = JointState(add(state.sums, message, used), move(params, state.source, draws, t))
        return state, released(params, scale, state, t)

    def estimate(params, scale, state, t):
        # the noise is read from what is kept, and not handed over: its draws would be computed twice
        sums = released(params, scale, state, t - 1)
        return Estimate(*ridge_estimate(sums.gram, sums.vector, ridge_at(params, t, sums.vector[0].dtype)))

    # the noise of play t is that of a sum of t - 1 messages
    return Statistics(init, encode, update, estimate, lockstep=True)

"""Ways of learning V = sum x x' and u = sum x y from users: one half of a linear bandit, the other is `selection`.

Formulas: docs/formulas/ldp_contextual.md#comparators

The noise of a pair is one draw [n] of standard normals from the child "noise", times the scales of its entries.
It is drawn at the play's t under local privacy, at the t of the node's last play in the tree, and at the node's
number 0, 1, ... in the nested sums.

With `blocks` K > 0 each of K arms has a pair of its own, with an axis [K] in front, and windows are of one play: a
feature is (x, the arm). Messages and releases have noise in every block, from one draw [K n], block after block: they
tell nothing of the arm.

Axes: [P] plays of a window, [d] features, [n] = d (d + 1) / 2 + d entries of the pair (V, u): V's upper
triangle by rows, then u. Matrices and vectors are in the layout of `numerics.packed` for their d: entries apart,
or arrays whose last axes are the features.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.mechanisms.counters.form import GivenDraw
from jaxbandits.mechanisms.tree import tree, tree_levels
from jaxbandits.numerics import added, fixed_sum, least_squares, left_out, packed, safe_norm
from jaxbandits.random import Draws
from jaxbandits.typing import Array, DType, Float, Int, Numeric


class Estimate(NamedTuple):
    """What a selection rule reads."""

    inverse: packed.Symmetric  # P = (V + ridge I)^-1; need not be definite
    theta: packed.Vector  # P u
    rest: Any = ()  # what rounding left out of both, in a long run of statistics that keep them; otherwise ()

    def to_estimate(self) -> "Estimate":
        """Itself."""
        return self

    def score_arms(self, x: packed.Vector) -> tuple[Array, Array]:
        """<x, theta> and x' P x of arms x."""
        return packed.inner(x, self.theta), packed.quadratic_form(self.inverse, x)


class Regression(NamedTuple):
    """V, u and the ridge of an `Estimate`, which a selection rule solves for what it needs."""

    gram: packed.Symmetric
    vector: packed.Vector
    ridge: Numeric

    def to_estimate(self) -> Estimate:
        """The estimate."""
        return Estimate(*least_squares.ridge_estimate(*self))

    def score_arms(self, x: packed.Vector) -> tuple[Array, Array]:
        """<x, theta> and x' P x of few arms x."""
        return least_squares.ridge_scores(*self, x)


class Statistics(NamedTuple):
    """One way of learning (V, u): functions, for one lane.

    `params` are its own numbers, `scale` is Params.mechanism_scale.

    `feature` are the d features [P] of the played arms; `reward` and `play` are [P]; `t` in encode is [P], in
    relay and update the window's last play, in estimate the 1-based play (a window's first) that the estimate
    is for. `used` plays of the window count. Made only by cached builders: `linear_bandit` is cached on them.
    """

    init: Callable[..., Any]  # params, draws -> state
    encode: Callable[..., Any]  # client: params, scale, draws, t, feature, reward, play -> message
    update: Callable[..., tuple[Any, Any]]  # server: params, scale, state, draws, t, message, used -> state, released
    estimate: Callable[..., Estimate | Regression]  # server, once a window: params, scale, state, t -> Estimate
    relay: Callable[..., Any] = lambda params, scale, draws, t, message, play: message  # shuffler
    lockstep: bool = False  # as `Program.lockstep`


class Sums(NamedTuple):
    """Users' reports [P], or what the server holds: (x x', x y) or (V, u)."""

    gram: packed.Symmetric
    vector: Any
    rest: Any = ()  # what rounding left out of sums over a long run; otherwise ()


class NoParams(NamedTuple):
    """The number of the statistics without noise."""

    ridge: Numeric


class PrivateParams(NamedTuple):
    """Standard deviations of one draw of noise, and ridge rho_t = ridge + ridge_root sqrt(t)."""

    diagonal: Numeric
    off_diagonal: Numeric
    vector: Numeric
    ridge: Numeric
    ridge_root: Numeric
    feature_norm: Numeric  # L: the client scales down features above it
    delta: Numeric  # of the guarantee; no function here reads it
    sums: Any = ()  # of a form of `mechanisms.counter`: its own numbers


class JointState(NamedTuple):
    """The true sums at a trusted server, and the noise under which they are released."""

    sums: Sums
    source: Any  # what the noise is made from


def clip_pair(feature: packed.Vector, reward: Array, norm: Numeric) -> tuple[packed.Vector, Array]:
    """(x, y) as a client whose privacy is calibrated reports them: ||x|| <= norm, y in [0, 1], not finite is 0."""
    feature = packed.map_features(lambda x: jnp.where(jnp.isfinite(x), x, 0), feature)
    size = safe_norm(packed.stack_features(feature))
    shrink = jnp.where(size > norm, norm / jnp.maximum(size, norm), 1)
    feature = packed.map_features(lambda x: x * shrink, feature)
    return feature, jnp.where(jnp.isfinite(reward), jnp.clip(reward, 0, 1), 0)


def normals_in_layout(draws: Draws, t: Int[Array, "..."], number: int, dim: int) -> Any:
    """Standard normals, in the layout of what has `dim` features."""
    return draws.normals(t, number) if dim <= packed.MAX_UNROLLED_DIM else draws.normal(t, (number,))


def noisy(params: PrivateParams, scale: Any, noise: packed.Vector, sums: Sums, dim: int) -> Sums:
    """Sums plus n standard normals times their scales; no noise at scale 0."""
    entry, (own, drawn) = scale * params.vector, packed.split_matrix_vector(noise, dim)
    if not isinstance(own, tuple):
        size = jnp.where(np.eye(dim, dtype=bool), params.diagonal, params.off_diagonal).astype(own.dtype)
        rank = (1,) * (own.ndim - 2) + size.shape
        return Sums(sums.gram + (scale * size).reshape(rank) * own, sums.vector + entry * drawn)
    size = [scale * (params.diagonal if i == j else params.off_diagonal) for i, j in packed.pairs(dim)]
    gram = tuple(v + size[k] * own[k] for k, v in enumerate(sums.gram))
    return Sums(gram, tuple(u + entry * drawn[j] for j, u in enumerate(sums.vector)))


def zeros(dim: int, draws: Draws, blocks: int = 0) -> Sums:
    """Sums of nothing, at the start of a run with these draws."""
    both = packed.identity_times(dim, jnp.zeros((), draws.dtype)), packed.zero_vector(dim, draws.dtype)
    if blocks:
        both = jax.tree.map(lambda x: jnp.zeros((blocks, *x.shape), x.dtype), both)
    gram, vector = both
    return Sums(gram, vector, left_out(both, draws.long))


def pair_products(feature: packed.Vector, reward: Array) -> Sums:
    """(x x', x y)."""
    return Sums(packed.outer(feature), packed.map_features(lambda x: x * reward, feature))


def split_user(feature: Any, blocks: int) -> tuple[packed.Vector, Array | None]:
    """The features of a user, and her arm where there are blocks."""
    return (packed.split_features(feature[0]), feature[1]) if blocks else (feature, None)


def in_block(pair: Sums, arm: Array | None, blocks: int) -> Sums:
    """A user's pair; where there are blocks in that of her arm, beside zeros in the others."""
    if arm is None:
        return pair
    own = jnp.arange(blocks, dtype=jnp.int32) == arm
    return jax.tree.map(lambda x: jnp.where(own.reshape(1, -1, *(1,) * (x.ndim - 1)), x[:, None], 0), pair)


def add(sums: Sums, message: Sums, used: int | Array) -> Sums:
    """Sums with the first `used` plays of a window."""

    def sum_used_plays(new):
        if len(new) == 1:
            return new[0]
        mask = jnp.arange(len(new), dtype=jnp.int32) < used
        return fixed_sum(jnp.where(lax.broadcast_in_dim(mask, new.shape, (0,)), new, 0), axis=0)

    return add_total(sums, jax.tree.map(sum_used_plays, message))


def add_total(sums: Sums, new: Sums) -> Sums:
    """Sums with those of one more window."""
    (gram, vector), rest = added(sums[:2], sums.rest, new[:2])
    return Sums(gram, vector, rest)


def ridge_at(params: Any, t: Int[Array, ""], dtype: DType) -> Float[Array, ""]:
    """The ridge rho_t of play t."""
    return params.ridge + params.ridge_root * jnp.sqrt(t.astype(dtype))


@cache
def none(dim: int) -> Statistics:
    """No privacy: P by Sherman and Morrison, windows of one play; params `NoParams`. Non-finite rewards count as 0."""

    def init(params, draws):
        one = 1 / jnp.asarray(params.ridge, draws.dtype)
        both = packed.identity_times(dim, one), packed.zero_vector(dim, draws.dtype)
        return Estimate(*both, left_out(both, draws.long))

    def encode(params, scale, draws, t, feature, reward, play):
        return jax.tree.map(lambda x: x[0], feature), jnp.where(jnp.isfinite(reward[0]), reward[0], 0)

    def update(params, scale, state, draws, t, message, used):
        return Estimate(*least_squares.rank_one(*state, *message)), ()

    return Statistics(init, encode, update, lambda params, scale, state, t: state)


@cache
def local(dim: int, blocks: int = 0) -> Statistics:
    """Local privacy: every user adds noise to (x x', x y); state `Sums`, params `PrivateParams`."""
    entries = packed.number_of_entries(dim)

    def init(params, draws):
        return zeros(dim, draws, blocks)

    def encode(params, scale, draws, t, feature, reward, play):
        x, arm = split_user(feature, blocks)
        x, reward = clip_pair(x, reward, params.feature_norm)
        drawn = draws.child("noise")
        noise = drawn.normal(t, (blocks, entries)) if blocks else normals_in_layout(drawn, t, entries, dim)
        return noisy(params, scale, noise, in_block(pair_products(x, reward), arm, blocks), dim)

    def update(params, scale, state, draws, t, message, used):
        return add(state, message, used), ()

    def estimate(params, scale, state, t):
        return Regression(state.gram, state.vector, ridge_at(params, t, state.vector[0].dtype))

    return Statistics(init, encode, update, estimate)


def _shape_of_source(dim: int, blocks: int) -> tuple[int, ...]:
    """Of one entry's noise, or that of all entries in one array."""
    return () if dim <= packed.MAX_UNROLLED_DIM and not blocks else ((blocks or 1) * packed.number_of_entries(dim),)


def _for_entries(dim: int, blocks: int, begin: Callable[..., Any], move: Callable[..., Any], noise: Callable[..., Any]):
    """The noise of all entries, apart or all in one array, from that of one source: three functions.

    start(draws) -> source; move(params, source, draws, n) -> the source after n reports; noise(params, source, n) ->
    their noise. blocks: of so many pairs (V, u), in one array; 0: of one.
    """
    entries, apart = (blocks or 1) * packed.number_of_entries(dim), not _shape_of_source(dim, blocks)

    def at_entries(function, *args):
        return tuple(map(function, *args)) if apart else function(*args)

    def begin_entries(draws):
        source = begin(draws.dtype)
        return (source,) * entries if apart else source

    def move_entries(params, source, draws, n):
        own_draws = draws.child("noise")
        fresh = own_draws.normals(n, entries) if apart else own_draws.normal(n, (entries,))
        return at_entries(lambda own, z: move(params, own, n, z), source, fresh)

    return begin_entries, move_entries, lambda params, source, n: at_entries(lambda own: noise(params, own, n), source)


def _tree(nodes: int, dim: int, blocks: int = 0):
    """The binary tree's noise, a tree for each entry."""
    begin, release, noise = tree(2**nodes - 1, _shape_of_source(dim, blocks))
    move, read = (lambda _, sums, n, z: release(sums, n, z)[0]), (lambda _, sums, n: noise(sums, n))
    return _for_entries(dim, blocks, begin, move, read)


def _counter(functions: tuple[Callable[..., Any], ...], dim: int, blocks: int = 0):
    """The noise of a form of `mechanisms.counter`, one for each entry; functions: its begin, move and noise."""
    begin, step, noise = functions
    shape = _shape_of_source(dim, blocks)

    def move(params, own, n, z):
        return step(params.sums, own, GivenDraw(z), n, shape)

    return _for_entries(dim, blocks, partial(begin, shape), move, lambda params, own, n: noise(params.sums, own, n))


def _node_prefixes(nodes: int, dim: int):
    """The published code's noise: at play t the sum of the first floor(ln t) + 1 of nodes drawn in advance."""
    starts = [math.ceil(math.exp(level)) for level in range(1, nodes)]  # the first play of every level but 0

    def draw_nodes(draws):
        drawn = draws.child("noise").normal(jnp.arange(nodes, dtype=jnp.int32), (packed.number_of_entries(dim),))
        sums = [drawn[0]]
        for node in drawn[1:]:
            sums.append(sums[-1] + node)
        return jnp.stack(sums)

    def noise(params, source, n):
        level = sum(((n + 1 >= first).astype(jnp.int32) for first in starts), jnp.int32(0))
        noise = lax.dynamic_index_in_dim(source, level, keepdims=False)
        return tuple(noise) if dim <= packed.MAX_UNROLLED_DIM else noise

    return draw_nodes, lambda params, source, draws, n: source, noise


TREES: dict[str, Callable[..., Any]] = {"binary": _tree, "simplified": _node_prefixes, "counter": _counter}


def tree_nodes(form: str, horizon: int) -> int:
    """How many nodes are carried: levels of the binary tree, floor(ln T) + 1 of the simplified one."""
    return max(tree_levels(horizon), 1) if form == "binary" else math.floor(math.log(horizon)) + 1


@cache
def joint(dim: int, form: str, nodes: Any, blocks: int = 0) -> Statistics:
    """Joint privacy: the server adds the noise of a running sum to (V, u).

    Windows are of one play, params are `PrivateParams`. form: a key of `TREES`; nodes: `tree_nodes`, or the functions
    of a counter.
    """
    start, move, noise = TREES[form](nodes, dim, blocks) if blocks else TREES[form](nodes, dim)

    def init(params, draws):
        return JointState(zeros(dim, draws, blocks), start(draws))

    def encode(params, scale, draws, t, feature, reward, play):
        x, arm = split_user(feature, blocks)
        return in_block(pair_products(*clip_pair(x, reward, params.feature_norm)), arm, blocks)

    def noisy_sums(params, scale, state, n):
        drawn = noise(params, state.source, n)
        return noisy(params, scale, drawn.reshape(blocks, -1) if blocks else drawn, state.sums, dim)

    def update(params, scale, state, draws, t, message, used):
        state = JointState(add(state.sums, message, used), move(params, state.source, draws, t))
        return state, noisy_sums(params, scale, state, t)

    def estimate(params, scale, state, t):
        # the noise is read from what is kept, and not handed over: its draws would be computed twice
        sums = noisy_sums(params, scale, state, t - 1)
        return Regression(sums.gram, sums.vector, ridge_at(params, t, sums.vector[0].dtype))

    # the noise of play t is that of a sum of t - 1 messages
    return Statistics(init, encode, update, estimate, lockstep=True)

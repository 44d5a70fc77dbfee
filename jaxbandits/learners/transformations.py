"""optax transformations as they are used here: examined on the host, and stepped inside a lane.

Sums are taken in an order that does not follow the number of lanes. Nothing here imports optax: a
transformation is recognised by its fields, `init` and `update`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NewType

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from jaxbandits.contract import operations
from jaxbandits.formatting import show
from jaxbandits.numerics import fixed_sum

if TYPE_CHECKING:
    import optax
    from optax import GradientTransformation
else:
    # a factory's annotations are read when it is defined, and optax is slow to import
    GradientTransformation = NewType("GradientTransformation", tuple)

RANDOM = {"random_bits", "random_gamma", "random_seed", "random_wrap", "rng_bit_generator", "threefry2x32"}
CALL_PRIMITIVES = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"}
CALL_PRIMITIVES |= {"checkpoint", "remat2"}  # the names of one in older and newer JAX
OPTAX_REMEDY = "give one that needs the gradient and the point only, such as optax.sgd(0.1) or optax.adam(0.1)"


def is_transformation(x: object) -> bool:
    """Whether x is an optax transformation: a NamedTuple of the functions `init` and `update`."""
    return isinstance(x, tuple) and getattr(x, "_fields", ()) == ("init", "update") and all(map(callable, x))


def maker(transformation: optax.GradientTransformation) -> str:
    """The function that built a transformation, such as `optax.transforms._combining.chain`.

    Its numbers are in a closure.
    """
    update = transformation.update
    name = getattr(update, "__qualname__", type(update).__name__).partition(".<locals>")[0]
    return f"{getattr(update, '__module__', '')}.{name}"


def check_transformation(
    name: str, transformation: object, dim: int, known: Sequence[str] = ()
) -> optax.GradientTransformation:
    """The transformation, if it can step a point of `dim` numbers by its gradient alone.

    ValueError where it is none, needs more than gradient and point (the value of the loss, or functions that evaluate
    it), draws random numbers of its own, or changes the shapes of its state or its point. name: of the argument; known:
    words that the argument may be instead.
    """
    if not is_transformation(transformation):
        words = "".join(f"{word!r}, " for word in known)
        remedy = f"give {words}{'or ' if words else ''}one such as optax.sgd(0.1) or optax.adam(0.1)"
        if callable(getattr(transformation, "gradient_transformation", None)):
            remedy = "give what its gradient_transformation() returns"
        elif callable(transformation):
            remedy = "call it first, as in optax.adam(0.1)"
        raise ValueError(f"{name} = {show(transformation)} is no optax transformation: {remedy}")
    fault = _fault(transformation, dim)
    if fault:
        kind = type(transformation).__name__
        raise ValueError(f"{name} = {kind} made by {maker(transformation)} cannot be used: {fault}: {OPTAX_REMEDY}")
    return transformation


@functools.cache
def _fault(transformation: optax.GradientTransformation, dim: int) -> str:
    """Why a transformation cannot be used; empty where it can."""
    from chex import assert_trees_all_equal_shapes_and_dtypes  # optax has loaded it

    point = jax.ShapeDtypeStruct((dim,), jnp.float32)
    try:
        with _own_promotion(), jax.enable_x64(False):
            before = jax.eval_shape(transformation.init, point)
            program, (change, after) = jax.make_jaxpr(transformation.update, return_shape=True)(point, before, point)
    except Exception as error:  # whatever a function that wants more arguments does without them
        reason = " ".join(str(error).split())
        return f"it fails where it is given a gradient and a point ({type(error).__name__}: {reason:.200})"
    if {one.primitive.name for one in operations(program.eqns)} & RANDOM:
        return "it draws random numbers from a seed of its own, which are the same in every lane"
    if getattr(change, "shape", None) != (dim,):
        return f"its update of a point of shape ({dim},) is {show(change)}"
    try:
        assert_trees_all_equal_shapes_and_dtypes(before, after)
    except (AssertionError, ValueError) as error:
        return f"its update changes the shapes or types of its state ({' '.join(str(error).split()):.200})"
    return ""


def program_of(transformation: optax.GradientTransformation, dim: int = 3) -> ClosedJaxpr:
    """What a transformation computes for a point of `dim` numbers, traced: its first state, and any one step."""
    point = jax.ShapeDtypeStruct((dim,), jnp.float32)

    def both(gradient, state, point):
        return transformation.init(point), transformation.update(gradient, state, point)

    with _own_promotion(), jax.enable_x64(False):
        return jax.make_jaxpr(both)(point, jax.eval_shape(transformation.init, point), point)


def begin(transformation: optax.GradientTransformation, point: jax.Array) -> Any:
    """The transformation's state at a point, in the dtypes that it chooses, none of them weak: a loop carries it."""
    with _own_promotion():
        state = transformation.init(point)
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), state)


def step(
    transformation: optax.GradientTransformation, gradient: jax.Array, state: object, point: jax.Array
) -> tuple[jax.Array, Any]:
    """The point [d] after one step down the gradient [d], and the state after it, in the dtypes that they had.

    The transformation is traced with JAX's standard promotion of dtypes (adam, adamw, yogi and
    inject_hyperparams mix integers with floats), and its float sums over axes are taken by
    `numerics.fixed_sum`: optax's norms use `jnp.sum`, whose order follows the number of lanes. What it sums
    inside its own loops stays as it is.
    """

    # A new function each time: JAX keeps the trace of a function that it knows, whatever a schedule reads by now.
    def update(*operands):
        return transformation.update(*operands)

    with _own_promotion():
        program, shapes = jax.make_jaxpr(update, return_shape=True)(gradient, state, point)
    leaves = _evaluate_jaxpr(program.jaxpr, program.consts, jax.tree.leaves((gradient, state, point)))
    change, after = jax.tree.unflatten(jax.tree.structure(shapes), leaves)
    after = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), after, state)
    return point + jnp.asarray(change, point.dtype), after


@contextlib.contextmanager
def _own_promotion() -> Iterator[None]:
    """JAX's own rules of promotion, for which optax is written, whatever those of the run."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _evaluate_jaxpr(jaxpr: Jaxpr, consts: Sequence, arguments: Sequence) -> list:
    """What a program returns, with its float sums in a fixed order."""
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *arguments), strict=True))
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        operands = [atom.val if isinstance(atom, Literal) else values[atom] for atom in equation.invars]
        of_vectors = name == "dot_general" and all(x.ndim == 1 for x in operands)
        if name == "reduce_sum" and jnp.issubdtype(operands[0].dtype, jnp.floating):
            results = [_sum_over_axes(operands[0], params["axes"])]
        elif of_vectors and params["dimension_numbers"][0] == ((0,), (0,)):
            results = [_sum_over_axes(operands[0] * operands[1], (0,))]
        elif name in CALL_PRIMITIVES:
            inner = params["jaxpr"] if "jaxpr" in params else params["call_jaxpr"]
            closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
            results = _evaluate_jaxpr(closed.jaxpr, closed.consts, operands)
        elif name == "cond":
            branches = [lambda *x, b=branch: _evaluate_jaxpr(b.jaxpr, b.consts, x) for branch in params["branches"]]
            results = jax.lax.switch(operands[0], branches, *operands[1:])
        else:
            results = equation.primitive.bind(*operands, **params)
            results = results if equation.primitive.multiple_results else [results]
        values.update(zip(equation.outvars, results, strict=True))
    return [atom.val if isinstance(atom, Literal) else values[atom] for atom in jaxpr.outvars]


def _sum_over_axes(x: jax.Array, axes: Sequence[int]) -> jax.Array:
    for axis in sorted(axes, reverse=True):
        x = fixed_sum(x, axis)
    return x

"""A one-lane function as one kernel over lanes: a thread computes it for one lane.

Lanes are the last axis of all arrays. Nothing is asked of the function: it is written as it is traced.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from jaxbandits.kernels import launch
from jaxbandits.kernels.emitter import Emitter, read_only
from jaxbandits.kernels.schedule import Fitted, fit_kernel
from jaxbandits.kernels.source import INPUT, RESULT, pointers
from jaxbandits.typing import Array


def one_lane(function: Callable[..., Any], *args: object) -> Fitted:
    """Trace a function and write its kernel. args: trees of one lane's arrays, or of their shapes."""
    leaves, treedef = jax.tree.flatten(args)
    shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves)
    return _one_lane(function, shapes, treedef, jnp.result_type(float))


@lru_cache(maxsize=256)
def _one_lane(function: Callable[..., Any], shapes: tuple[Any, ...], treedef: Any, precision: Any) -> Fitted:
    def flat(*leaves: object) -> list[Any]:
        return jax.tree.leaves(function(*jax.tree.unflatten(treedef, leaves)))

    traced = read_only(jax.make_jaxpr(flat)(*shapes))
    return fit_kernel("lanes", write_lane, traced)


def write_lane(run: Emitter, traced: ClosedJaxpr) -> list[str]:
    """Write the program of one lane, whose arrays lie in memory as rows of lanes."""
    run.add_statement("const int lanes = limits[0];")
    row = "[(size_t){} * lanes + lane]"
    given = [run.view(f"in{k}{row}", x.shape, x.dtype) for k, x in enumerate(traced.in_avals)]
    for k, x in enumerate(run.write_function(traced, map(run.hold_by_size, given))):
        run.give(f"out{k}{row}", x)
    ins, outs = pointers(INPUT, "in", traced.in_avals), pointers(RESULT, "out", traced.out_avals)
    return [INPUT.format("int", "limits"), *ins, *outs]


def by_kernel(one: Fitted, arrays: Sequence[Any], form: Any) -> list[Any]:
    """What a one-lane function gives for many lanes. arrays: its arguments, [..., L] each, as are its results."""
    assert one.source is not None, one.reason
    lanes = arrays[0].shape[-1]
    outs = [jax.ShapeDtypeStruct((*x.shape, lanes), x.dtype) for x in one.traced.out_avals]
    limits = np.array([lanes, 1], np.int32)
    return launch.call_kernel(one.source, (lanes, 1), [limits, *arrays], outs, {}, form)


def form(
    about: tuple[Callable[..., Any], int, Any], shapes: Sequence[Any], platform: str, kind: str
) -> Callable[..., list[Any]] | None:
    """The kernel of a function, as `numerics.device_forms` asks for it; None where it is no kernel.

    about: the function, how many axes of lanes its arguments have at their end, the structure of its arguments.
    """
    function, depth, treedef = about
    if not launch.wants_kernel(platform, kind) or any(0 in x.shape for x in shapes):
        return None
    lanes = shapes[0].shape[shapes[0].ndim - depth :]
    own = [jax.ShapeDtypeStruct(x.shape[: x.ndim - depth], x.dtype) for x in shapes]
    one = one_lane(function, *jax.tree.unflatten(treedef, own))
    if one.reason or prod(lanes) >= 2**31:
        return None

    def call_over_lanes(*leaves: Array) -> list[Any]:
        flat = [x.reshape(*x.shape[: x.ndim - depth], -1) for x in leaves]
        return [x.reshape(*x.shape[:-1], *lanes) for x in by_kernel(one, flat, kind)]

    return call_over_lanes

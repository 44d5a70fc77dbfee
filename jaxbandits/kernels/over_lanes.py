"""A one-lane function as one kernel over lanes: a thread computes it for one lane.

Lanes are the last axis of all arrays. Nothing is asked of the function: it is written as it is traced.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from jaxbandits.kernels import launch
from jaxbandits.kernels.arrays import Array, Index, Looped, linear
from jaxbandits.kernels.emitter import Emitter
from jaxbandits.kernels.fitting import Written, fitted
from jaxbandits.kernels.layouts import layout_of
from jaxbandits.kernels.source import Argument
from jaxbandits.kernels.text import Number, Unsupported, text_of
from jaxbandits.kernels.traced import read_only


class OneLane(NamedTuple):
    """A function of one lane, traced, and its kernel."""

    traced: ClosedJaxpr
    kernel: Written | None  # None where there is none
    reason: str  # why it is no kernel; "" where it is one


def one_lane(function: Callable[..., Any], *args: Any) -> OneLane:
    """Trace a function and write its kernel. args: trees of one lane's arrays, or of their shapes."""
    leaves, treedef = jax.tree.flatten(args)
    config: Any = jax.config
    shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves)
    return _one_lane(function, shapes, treedef, config.jax_enable_x64)


@lru_cache(maxsize=256)
def _one_lane(function: Callable[..., Any], shapes: tuple[Any, ...], treedef: Any, x64: bool) -> OneLane:
    def flat(*leaves: Any) -> list[Any]:
        return jax.tree.leaves(function(*jax.tree.unflatten(treedef, leaves)))

    traced = read_only(jax.make_jaxpr(flat)(*shapes))
    try:
        return OneLane(traced, fitted("lanes", writer(traced)), "")
    except Unsupported as error:
        return OneLane(traced, None, f"there is no rule for {error}")


def writer(traced: ClosedJaxpr) -> Callable[[Emitter], list[Argument]]:
    """What writes the kernel of a traced function."""
    return partial(_write, traced)


def _write(traced: ClosedJaxpr, run: Emitter) -> list[Argument]:
    """Write the program of one lane, whose arrays lie in memory as rows of lanes."""
    run.say("const int lanes = limits[0];")
    rows = [Looped(x.shape, x.dtype, partial(_read, run, k, x)) for k, x in enumerate(traced.in_avals)]
    found = run.closed(traced, map(run.settled, rows))
    for k, x in enumerate(found):
        _keep(run, k, x)
    ins = [Argument(f"in{k}", x.dtype) for k, x in enumerate(traced.in_avals)]
    outs = [Argument(f"out{k}", x.dtype, result=True) for k, x in enumerate(traced.out_avals)]
    return [Argument("limits", "int32"), *ins, *outs]


def _read(run: Emitter, k: int, x: Any, index: Index) -> Number:
    """An element of an argument."""
    text = f"in{k}[(size_t){linear(index, x.shape)} * lanes + lane]"
    return run.let(text + (" != 0" if x.dtype == bool else ""), x.dtype)


def _keep(run: Emitter, k: int, x: Array) -> None:
    """Write a result."""

    def write(index: Index) -> None:
        run.say(f"out{k}[(size_t){linear(index, x.shape)} * lanes + lane] = {text_of(x.at(index))};")

    layout_of(run, x).over(x.shape, write)


def by_kernel(one: OneLane, arrays: Sequence[Any], form: Any) -> list[Any]:
    """What a one-lane function gives for many lanes. arrays: its arguments, [..., L] each, as are its results."""
    assert one.kernel is not None, one.reason
    lanes = arrays[0].shape[-1]
    outs = [jax.ShapeDtypeStruct((*x.shape, lanes), x.dtype) for x in one.traced.out_avals]
    limits = np.array([lanes, 1], np.int32)
    return launch.call(one.kernel.source, (lanes, 1), [limits, *arrays], outs, {}, form)


# ---- asked by `numerics.device_forms`


def form(
    about: tuple[Callable[..., Any], int, Any], shapes: Sequence[Any], platform: str, kind: str
) -> Callable[..., list[Any]] | None:
    """The kernel of a function whose arguments have several axes of lanes at their end; None where it is no kernel.

    about: the function, how many axes of lanes there are, the structure of its arguments.
    """
    function, depth, treedef = about
    if not launch.asked(platform, kind) or any(0 in x.shape for x in shapes):
        return None
    lanes = shapes[0].shape[shapes[0].ndim - depth :]
    own = [jax.ShapeDtypeStruct(x.shape[: x.ndim - depth], x.dtype) for x in shapes]
    one = one_lane(function, *jax.tree.unflatten(treedef, own))
    if one.reason or prod(lanes) >= 2**31:
        return None

    def call(*leaves: Any) -> list[Any]:
        flat = [x.reshape(*x.shape[: x.ndim - depth], -1) for x in leaves]
        return [x.reshape(*x.shape[:-1], *lanes) for x in by_kernel(one, flat, kind)]

    return call

"""A one-lane function of few numbers as one kernel over lanes: a thread holds a lane in registers.

Lanes are the last axis of all arrays. Nothing is asked of the function: `apart` evaluates it as it is traced.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.interpreters.partial_eval import dce_jaxpr

from jaxbandits.contract import inner_programs
from jaxbandits.kernels.apart import ELEMENTWISE, Apart, Unsupported
from jaxbandits.kernels.census import LANES, Census, counted
from jaxbandits.kernels.elements import Elements, filled
from jaxbandits.kernels.engine import BLOCK, MOST_NUMBERS
from jaxbandits.kernels.forms import GPUS
from jaxbandits.kernels.lane_rows import stored_as

# A kernel that is called once may keep a few numbers in its thread's own memory, as all its arguments are read from
# there. Its compilers take about ten seconds of one core for so many operations.
MOST_ALIVE = 256
MOST_OPERATIONS = 2_500
MOST_WRITTEN_OUT = 10_000  # what looks like more is not written out to be counted, which would take long
MOST_IN_MEMORY = 2**31  # numbers of one array: places in memory are counted in int32


class OneLane(NamedTuple):
    """A function of one lane, traced, and what its kernel would hold and do."""

    traced: ClosedJaxpr
    census: Census | None  # None where it is not written out
    reason: str  # why it is no kernel; "" where it is one


def one_lane(function: Callable[..., Any], *args: Any) -> OneLane:
    """Trace and count a function. args: trees of one lane's arrays, or of their shapes."""
    leaves, treedef = jax.tree.flatten(args)
    config: Any = jax.config
    shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves)
    return _one_lane(function, shapes, treedef, config.jax_enable_x64)


@lru_cache(maxsize=256)
def _one_lane(function: Callable[..., Any], shapes: tuple[Any, ...], treedef: Any, x64: bool) -> OneLane:
    def flat(*leaves: Any) -> list[Any]:
        return jax.tree.leaves(function(*jax.tree.unflatten(treedef, leaves)))

    traced = jax.make_jaxpr(flat)(*shapes)
    read, _ = dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals), instantiate=True)  # without what nothing reads
    traced = ClosedJaxpr(read, traced.consts)
    numbers = sum(int(np.prod(x.shape)) for x in (*traced.in_avals, *traced.out_avals))
    if numbers > MOST_NUMBERS:
        return OneLane(traced, None, f"{numbers} numbers in and out, at most {MOST_NUMBERS}")
    about = written_out(traced.jaxpr)
    if about > MOST_WRITTEN_OUT:
        return OneLane(traced, None, f"about {about} operations, at most {MOST_OPERATIONS}")
    try:
        census = census_of(traced)
    except Unsupported as error:
        return OneLane(traced, None, f"{error} is not written out")
    return OneLane(traced, census, refusal(census))


def written_out(jaxpr: Jaxpr) -> int:
    """About how many operations a function has once every array element is held apart."""
    total = 0
    for eqn in jaxpr.eqns:
        # of branches, such as those for other platforms, only some are written out
        inside = (max if eqn.primitive.name == "cond" else sum)([0, *map(written_out, inner_programs(eqn))])
        if eqn.primitive.name == "scan" and any(shape_of(x) != shape_of(y) for x, y in _rows_of_scan(eqn)):
            inside *= eqn.params["length"]
        total += inside
        if eqn.primitive.name in ELEMENTWISE:
            total += int(np.prod(shape_of(eqn.outvars[0])))
    return total


def shape_of(variable: Any) -> tuple[int, ...]:
    """The shape of a traced array."""
    return tuple(variable.aval.shape)


def _rows_of_scan(eqn: Any) -> list[tuple[Any, Any]]:
    """Inputs and outputs of a scan, each beside what a step has of it."""
    inner = eqn.params["jaxpr"].jaxpr
    return [*zip(eqn.invars, inner.invars, strict=True), *zip(eqn.outvars, inner.outvars, strict=True)]


def refusal(census: Census) -> str:
    """Why a function that is written out is no kernel. Empty where it is one."""
    if census.alive > MOST_ALIVE:
        return f"{census.alive} numbers alive at once, at most {MOST_ALIVE}"
    return "" if census.operations <= MOST_OPERATIONS else f"{census.operations} operations, at most {MOST_OPERATIONS}"


def census_of(traced: ClosedJaxpr) -> Census:
    """Count what is left of one call once every array element is held apart."""

    def block(*rows: Any) -> list[Any]:
        """rows: every number of the arguments, each [LANES]."""
        left = iter(rows)
        arrays = [filled(x.shape, lambda _: next(left)) for x in traced.in_avals]
        return [row for x in Apart(LANES).closed(traced, arrays) for row in _rows(x, LANES)]

    shapes = [jax.ShapeDtypeStruct((LANES,), x.dtype) for x in traced.in_avals for _ in range(int(np.prod(x.shape)))]
    found = jax.make_jaxpr(block)(*shapes)
    read, _ = dce_jaxpr(found.jaxpr, [True] * len(found.out_avals), instantiate=True)
    return counted(read)


def _rows(x: Elements, lanes: int) -> list[Any]:
    """The elements of an array, each a vector of lanes."""
    return [jnp.broadcast_to(jnp.asarray(each), (lanes,)) for each in x.reshape(-1)]


# ---- the kernel


def by_kernel(traced: ClosedJaxpr, arrays: Sequence[Any], *, block: int = BLOCK, interpret: bool = False) -> list[Any]:
    """What a one-lane function gives for many lanes.

    Parameters
    ----------
    traced : ClosedJaxpr
        The function of one lane.
    arrays : sequence of array
        Its arguments, [..., L] each.
    block : int
        Lanes of a block of threads. The last block is filled up with copies of the last lane.
    interpret : bool
        Whether the kernel is interpreted, on any platform. Default: False.

    Returns
    -------
    list of array
        Its results, [..., L] each.
    """
    lanes = arrays[0].shape[-1]
    inputs = [as_rows(x, -lanes % block) for x in arrays]
    shapes = [(int(np.prod(x.shape)), inputs[0].shape[-1]) for x in traced.out_avals]

    def kernel(*refs: Any) -> None:
        ins, outs = refs[: len(inputs)], refs[len(inputs) :]
        operands = [read(ref, x.shape, x.dtype) for ref, x in zip(ins, traced.in_avals, strict=True)]
        for ref, x in zip(outs, Apart(block).closed(traced, operands), strict=True):
            for i, row in enumerate(_rows(x, block)):
                ref[i, :] = row.astype(ref.dtype)

    found = pl.pallas_call(
        kernel,
        grid=(inputs[0].shape[-1] // block,),
        in_specs=[of_lanes(x.shape[0], block) for x in inputs],
        out_specs=[of_lanes(rows, block) for rows, _ in shapes],
        out_shape=[
            jax.ShapeDtypeStruct(shape, stored_as(x.dtype)) for shape, x in zip(shapes, traced.out_avals, strict=True)
        ],
        compiler_params=None if interpret else triton.CompilerParams(num_warps=max(1, block // 32), num_stages=1),
        interpret=interpret,
    )(*inputs)
    return [
        x[:, :lanes].reshape(*out.shape, lanes).astype(out.dtype)
        for x, out in zip(found, traced.out_avals, strict=True)
    ]


def as_rows(x: Any, more: int) -> Any:
    """An array [..., L] as [n, L + more] of a type that memory holds; the last lane is repeated."""
    x = x.reshape(-1, x.shape[-1]).astype(stored_as(x.dtype))
    return jnp.pad(x, ((0, 0), (0, more)), mode="edge") if more else x


def read(ref: Any, shape: tuple[int, ...], dtype: Any) -> Elements:
    """An array of one lane's elements, each [block], from its rows."""
    rows = iter(range(int(np.prod(shape))))
    return filled(shape, lambda _: ref[next(rows), :].astype(dtype))


def of_lanes(rows: int, block: int) -> pl.BlockSpec:
    """A block's lanes of an array [rows, L]."""
    return pl.BlockSpec((rows, block), lambda s: (0, s))


# ---- asked by `numerics.device_forms`


def form(
    about: tuple[Callable[..., Any], int, Any], shapes: Sequence[Any], platform: str, kind: str
) -> Callable[..., list[Any]] | None:
    """The kernel of a function whose arguments have several axes of lanes at their end; None where it is no kernel.

    about: the function, how many axes of lanes there are, the structure of its arguments.
    """
    function, depth, treedef = about
    if kind == "xla" or platform not in GPUS or any(0 in x.shape for x in shapes):
        return None
    lanes = shapes[0].shape[shapes[0].ndim - depth :]
    own = [jax.ShapeDtypeStruct(x.shape[: x.ndim - depth], x.dtype) for x in shapes]
    one = one_lane(function, *jax.tree.unflatten(treedef, own))
    if one.reason or max(int(np.prod(x.shape)) for x in shapes) >= MOST_IN_MEMORY:
        return None

    def call(*leaves: Any) -> list[Any]:
        flat = [x.reshape(*x.shape[: x.ndim - depth], -1) for x in leaves]
        found = by_kernel(one.traced, flat, interpret=kind == "interpreted")
        return [x.reshape(*x.shape[:-1], *lanes) for x in found]

    return call

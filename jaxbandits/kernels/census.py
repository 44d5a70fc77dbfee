"""What a kernel will hold and do, counted before any compiler sees it."""

from collections import Counter
from typing import Any, NamedTuple

from jax.extend.core import Jaxpr, Literal

from jaxbandits.kernels.apart import Apart, dtype_of
from jaxbandits.kernels.liveness import alive, differs, inner, numbers, of_thread
from jaxbandits.kernels.traced_window import OneWindow, element_shapes, written_out

FREE = frozenset(["broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "pjit", "jit", "copy"])
LANES = 32  # of the block that is traced; the counts do not depend on it
HALVINGS = 10  # operations of adding up, or comparing, the threads of a warp


class Census(NamedTuple):
    """Counts of one window of one lane; what is written at checkpoints is not counted."""

    # On numbers that differ between lanes; those in a loop's body once. As on a GPU, bits are turned around in one
    # operation, and a product is part of the only sum that reads it.
    operations: int
    alive: int  # the most numbers of a thread that are needed at once
    carried: int  # numbers of a thread from window to window
    loops: int  # loops that are left
    branches: int  # branches that are left


def census_of(one: OneWindow) -> Census:
    """Count what is left of a window once every array element is held apart."""
    carried = sum(map(of_thread, element_shapes(one, Apart(LANES, long=one.long))))
    return counted(written_out(one, LANES).jaxpr)._replace(carried=carried)


def _operations(eqn: Any) -> int:
    """Of a thread, for an operation on vectors of lanes."""
    if eqn.primitive.name.startswith(("reduce_", "cumsum")) and len(eqn.invars[0].aval.shape) > 1:
        return numbers(eqn.invars) + HALVINGS
    return numbers(x for x in eqn.outvars if differs(x))


def counted(jaxpr: Jaxpr) -> Census:
    """Counts of a traced function of vectors of lanes."""
    operations, loops, branches = -_merged(jaxpr), 0, 0
    for eqn in jaxpr.eqns:
        inside = [counted(each) for each in inner(eqn)]
        operations += sum(each.operations for each in inside)
        loops += sum(each.loops for each in inside) + (eqn.primitive.name in ("while", "scan"))
        branches += sum(each.branches for each in inside) + (eqn.primitive.name == "cond")
        if not inside and any(map(differs, eqn.outvars)) and eqn.primitive.name not in FREE:
            operations += _operations(eqn)
    return Census(operations, alive(jaxpr), 0, loops, branches)


def _merged(jaxpr: Jaxpr) -> int:
    """Operations that a GPU does as part of the one that reads them."""
    reads = Counter(x for eqn in jaxpr.eqns for x in eqn.invars if not isinstance(x, Literal))
    reads.update(x for x in jaxpr.outvars if not isinstance(x, Literal))
    made_by = {x: eqn for eqn in jaxpr.eqns for x in eqn.outvars}
    merged = 0
    for eqn in jaxpr.eqns:
        once = [made_by[x] for x in eqn.invars if differs(x) and x in made_by and reads[x] == 1]
        names = [each.primitive.name for each in once]
        if eqn.primitive.name == "or" and sorted(names) == ["shift_left", "shift_right_logical"]:
            merged += 2 * numbers(eqn.outvars) if once[0].invars[0] is once[1].invars[0] else 0
        if eqn.primitive.name in ("add", "sub") and "mul" in names and dtype_of(eqn.outvars[0]).kind == "f":
            merged += numbers(eqn.outvars)
    return merged

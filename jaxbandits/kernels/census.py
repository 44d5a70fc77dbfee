"""What a kernel will hold and do, counted before any compiler sees it."""

from collections import Counter
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import Jaxpr, Literal
from jax.interpreters.partial_eval import dce_jaxpr

from jaxbandits.kernels.apart import Apart, dtype_of
from jaxbandits.kernels.elements import listed
from jaxbandits.kernels.stretch import OneWindow, packed_lane, played

FREE = frozenset(["broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "pjit", "jit", "copy"])
LANES = 32  # of the block that is traced; the counts do not depend on it


class Census(NamedTuple):
    """Counts of one play of one lane."""

    # On numbers that differ between lanes; those in a loop's body once. As on a GPU, bits are turned around in one
    # operation, and a product is part of the only sum that reads it.
    operations: int
    alive: int  # the most numbers of a lane that are needed at once
    carried: int  # numbers of a lane from play to play
    loops: int  # loops that are left
    branches: int  # branches that are left


def census_of(one: OneWindow) -> Census:
    """Count what is left of one play once every array element is held apart."""
    run = Apart(LANES)
    types = packed_lane(one, run).dtypes
    numbers = jax.tree.leaves(one.case)

    def play(flat: list[Any], seed: Any, before: Any, case: list[Any]) -> list[Any]:
        values = [listed(each).reshape(x.shape) for each, x in zip(case, numbers, strict=True)]
        return played(one, run, values, seed, flat, before)

    def block(dtype: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((LANES,), dtype)

    traced = jax.make_jaxpr(play)(
        [block(dtype) for dtype in types],
        block(np.uint32),
        jax.ShapeDtypeStruct((), np.int32),
        [[jax.ShapeDtypeStruct((), x.dtype)] * int(np.prod(x.shape)) for x in numbers],
    )
    read, _ = dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals), instantiate=True)
    return _counted(read)._replace(carried=len(types))


def _inner(eqn: Any) -> list[Jaxpr]:
    """The functions inside an equation: bodies of loops, branches, calls."""
    found = []
    for value in eqn.params.values():
        for each in value if isinstance(value, tuple | list) else [value]:
            if isinstance(each, Jaxpr):
                found.append(each)
            elif hasattr(each, "jaxpr") and isinstance(each.jaxpr, Jaxpr):
                found.append(each.jaxpr)
    return found


def _differs(variable: Any) -> bool:
    """Whether a variable is one number a lane."""
    return not isinstance(variable, Literal) and bool(variable.aval.shape)


def _counted(jaxpr: Jaxpr) -> Census:
    last: dict[Any, int] = {x: -1 for x in jaxpr.invars if _differs(x)}
    for k, eqn in enumerate(jaxpr.eqns):
        last |= {x: k for x in eqn.invars if _differs(x)}
    last |= {x: len(jaxpr.eqns) for x in jaxpr.outvars if _differs(x)}
    held = {x for x in jaxpr.invars if _differs(x)}
    operations, most, loops, branches = -_merged(jaxpr), len(held), 0, 0
    for k, eqn in enumerate(jaxpr.eqns):
        inside = [_counted(each) for each in _inner(eqn)]
        made = {x for x in eqn.outvars if _differs(x)}
        own = len(held | made)
        beside = len(held - {x for x in eqn.invars if _differs(x)})
        most = max([most, own, *(beside + each.alive for each in inside)])
        held = {x for x in held | made if last.get(x, -1) > k}
        operations += sum(each.operations for each in inside)
        loops += sum(each.loops for each in inside) + (eqn.primitive.name in ("while", "scan"))
        branches += sum(each.branches for each in inside) + (eqn.primitive.name == "cond")
        operations += not inside and bool(made) and eqn.primitive.name not in FREE
    return Census(operations, most, 0, loops, branches)


def _merged(jaxpr: Jaxpr) -> int:
    """Operations that a GPU does as part of the one that reads them."""
    reads = Counter(x for eqn in jaxpr.eqns for x in eqn.invars if not isinstance(x, Literal))
    reads.update(x for x in jaxpr.outvars if not isinstance(x, Literal))
    made_by = {x: eqn for eqn in jaxpr.eqns for x in eqn.outvars}
    merged = 0
    for eqn in jaxpr.eqns:
        once = [made_by[x] for x in eqn.invars if _differs(x) and x in made_by and reads[x] == 1]
        names = [each.primitive.name for each in once]
        if eqn.primitive.name == "or" and sorted(names) == ["shift_left", "shift_right_logical"]:
            merged += 2 if once[0].invars[0] is once[1].invars[0] else 0
        if eqn.primitive.name in ("add", "sub") and "mul" in names and dtype_of(eqn.outvars[0]).kind == "f":
            merged += 1
    return merged

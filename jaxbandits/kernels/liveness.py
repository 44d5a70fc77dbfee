"""How many numbers of a lane a traced function of vectors of lanes needs at once."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from jax.core import ShapedArray
from jax.extend.core import Jaxpr, Literal

WARP = 32  # threads that play a lane together where one of its axes lies across them


def alive(jaxpr: Jaxpr) -> int:
    """The most numbers of a thread that differ between lanes and are needed at once, inside loops and branches too."""
    last = {x: k for k, eqn in enumerate(jaxpr.eqns) for x in eqn.invars if differs(x)}
    last |= {x: len(jaxpr.eqns) for x in jaxpr.outvars if differs(x)}
    held = {x for x in jaxpr.invars if differs(x)}
    unread = held - last.keys()  # let go with what the first operation reads
    most = now = numbers(held)
    for k, eqn in enumerate(jaxpr.eqns):
        made = {x for x in eqn.outvars if differs(x)}
        read = {x for x in eqn.invars if differs(x)} & held
        inside = [alive(each) for each in inner(eqn)]
        most = max([most, now + numbers(made), *(now - numbers(read) + each for each in inside)])
        gone = {x for x in read | made if last.get(x, -1) <= k} | unread
        now += numbers(made) - numbers(gone)
        held |= made
        held -= gone
        unread = set()
    return most


def inner(eqn: Any) -> list[Jaxpr]:
    """The functions inside an equation: bodies of loops, branches, calls."""
    found = []
    for value in eqn.params.values():
        for each in value if isinstance(value, tuple | list) else [value]:
            if isinstance(each, Jaxpr):
                found.append(each)
            elif hasattr(each, "jaxpr") and isinstance(each.jaxpr, Jaxpr):
                found.append(each.jaxpr)
    return found


def differs(variable: Any) -> bool:
    """Whether a variable is one number a lane. A reference to memory is none."""
    return not isinstance(variable, Literal) and isinstance(variable.aval, ShapedArray) and bool(variable.aval.shape)


def numbers(variables: Iterable[Any]) -> int:
    """How many numbers of a thread some variables are."""
    return sum(of_thread(x.aval.shape) for x in variables)


def of_thread(shape: Sequence[int]) -> int:
    """How many numbers of a thread an element of a shape is."""
    return max(1, prod(shape[1:]) // WARP)

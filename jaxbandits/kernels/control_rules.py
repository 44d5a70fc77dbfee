"""Loops and branches over elements held apart."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.kernels.elements import (
    Elements,
    as_number,
    call,
    either,
    filled,
    known,
    listed,
    select,
    single,
)

Operands = list[Elements]
Shape = tuple[int, ...]
LONGEST_UNROLLED = 64  # steps of a scan that are written out, where it has inputs or outputs
SHORTEST_LOOP = 5  # steps of a scan without inputs and outputs from which it stays a loop


class Packed:
    """Arrays of elements as one flat list of arrays, each of a shape such as () or [B], and back."""

    def __init__(self, arrays: Operands) -> None:
        self.shapes = [x.shape for x in arrays]
        self.dtypes = [x.dtype for array in arrays for x in array.reshape(-1)]

    def arrays(self, flat: Any) -> Operands:
        """The arrays of a flat list."""
        found, at = [], 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            found.append(listed(flat[at : at + size]).reshape(shape))
            at += size
        return found

    def flat(self, arrays: Operands, shapes: list[Shape]) -> list[Any]:
        """The flat list of arrays, each of its shape."""
        elements = [x for array in arrays for x in array.reshape(-1)]
        return [
            jnp.broadcast_to(jnp.asarray(x, dtype), shape) if shape else _computed(x)
            for x, dtype, shape in zip(elements, self.dtypes, shapes, strict=True)
        ]


def _computed(x: Any) -> Any:
    """A number () as the result of an operation: loops of a kernel cannot carry constants."""
    if not known(x):
        return x
    zero = as_number(0, x.dtype)
    return lax.bitwise_or(x, zero) if x.dtype == bool else lax.sub(x, zero)


def varies(element: Any) -> bool:
    """Whether lanes differ in an element."""
    return bool(np.shape(element))


def shapes_of(arrays: Operands) -> list[Shape]:
    """The shapes of all elements of some arrays."""
    return [np.shape(x) for array in arrays for x in array.reshape(-1)]


def _loop(
    run: Any, start: Operands, condition: Callable[[Operands], Elements], body: Callable[[Operands], Operands]
) -> Operands:
    """Repeat a body while a condition holds, in each lane for itself.

    Where conditions are an array, as `vmap` inside of a lane makes them, each is for its own rows of the state.
    """
    packed = Packed(start)
    shapes = shapes_of(start)
    while True:  # what the body makes different between lanes differs in the next turn: until nothing new does
        found: dict[str, Any] = {}

        def trial(*flat: Any, found: dict[str, Any] = found) -> tuple[()]:
            with run.scope():
                conditions = shapes_of([condition(packed.arrays(flat))])
                found["apart"] = any(conditions)
                found["least"] = np.broadcast_shapes(*conditions)  # what is chosen by it has its shape
                found["shapes"] = shapes_of(body(packed.arrays(flat)))
            return ()

        jax.eval_shape(trial, *map(jax.ShapeDtypeStruct, shapes, packed.dtypes))
        grown = [np.broadcast_shapes(*both, found["least"]) for both in zip(shapes, found["shapes"], strict=True)]
        if grown == shapes:
            break
        shapes = grown

    def goes_on(flat: Any) -> Any:
        with run.scope():
            on = reduce(either, condition(packed.arrays(flat)).reshape(-1))
            on = on if run.long is None else run.long.inside(run, on)
            return jnp.max(on.astype(jnp.int32)) > 0 if found["apart"] else jnp.asarray(on)

    def turn(flat: Any) -> Any:
        with run.scope():
            before = packed.arrays(flat)
            after = body(before)
            on = condition(before)
            if found["apart"] or on.ndim:
                after = [_where(on, a, b) for a, b in zip(after, before, strict=True)]
            return packed.flat(after, shapes)

    # Backwards: what looks like (i, n, ...) while i < n is lowered by Triton in jax 0.10.2 as a counted loop, in which
    # a body that reads i + 1 or n finds nothing.
    begun = packed.flat(start, shapes)[::-1]
    # docs/decisions.md#backwards
    ended = lax.while_loop(lambda flat: goes_on(flat[::-1]), lambda flat: turn(flat[::-1])[::-1], begun)
    return packed.arrays(ended[::-1])


def _where(on: Elements, new: Elements, old: Elements) -> Elements:
    """`new` in the rows whose condition holds, else `old`."""
    return filled(new.shape, lambda index: select(on[index[: on.ndim]], new[index], old[index]))


def _while(run: Any, operands: Operands, eqn: Any) -> Operands:
    p = eqn.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    for_condition, for_body, start = operands[:first], operands[first:second], operands[second:]

    def condition(state: Operands) -> Elements:
        return run.closed(p["cond_jaxpr"], [*for_condition, *state])[0]

    return _loop(run, start, condition, lambda state: run.closed(p["body_jaxpr"], [*for_body, *state]))


def _scan(run: Any, operands: Operands, eqn: Any) -> Operands:
    p, length = eqn.params, eqn.params["length"]
    # inputs and outputs have an axis more than a step has; releases of JAX have other names for their numbers
    outputs = sum(x.aval.ndim > step.ndim for x, step in zip(eqn.outvars, p["jaxpr"].out_avals, strict=True))
    carried = sum(x.aval.ndim == step.ndim for x, step in zip(eqn.invars, p["jaxpr"].in_avals, strict=True))
    consts = carried - (len(eqn.outvars) - outputs)
    fixed, state, inputs = operands[:consts], operands[consts:carried], operands[carried:]
    if not inputs and not outputs and length >= SHORTEST_LOOP:

        def turn(state: Operands) -> Operands:
            return [
                single(call(lax.add, state[0][()], as_number(1, np.int32))),
                *run.closed(p["jaxpr"], [*fixed, *state[1:]]),
            ]

        def before_end(state: Operands) -> Elements:
            return single(call(lax.lt, state[0][()], as_number(length, np.int32)))

        return _loop(run, [single(as_number(0, np.int32)), *state], before_end, turn)[1:]
    if length > LONGEST_UNROLLED:
        raise run.unsupported(f"scan of {length} steps with inputs or outputs")
    if run.long is not None and length == run.long.length:
        raise run.unsupported(f"scan along an axis of {length}")
    rows: list[Any] = [None] * length
    for k in range(length)[::-1] if p["reverse"] else range(length):
        row = [x[k] if x.ndim > 1 else single(x[k]) for x in inputs]
        found = run.closed(p["jaxpr"], [*fixed, *state, *row])
        state, rows[k] = found[: len(state)], found[len(state) :]
    return [*state, *(np.stack([row[i] for row in rows]) for i in range(outputs))]


def _cond(run: Any, operands: Operands, eqn: Any) -> Operands:
    index, branches = operands[0][()], eqn.params["branches"]
    if known(index):
        return run.closed(branches[int(index)], operands[1:])
    if varies(index):  # every branch, then a choice
        results = [run.closed(branch, operands[1:]) for branch in branches]
        chosen = results[0]
        for k, other in enumerate(results[1:], 1):
            here = index if index.dtype == bool else run.compared("eq", index, k)
            chosen = [_where(single(here), b, a) for a, b in zip(chosen, other, strict=True)]
        return chosen
    return _shared_branch(run, index, branches, operands[1:])


def _shared_branch(run: Any, index: Any, branches: Any, operands: Operands) -> Operands:
    """A branch that all lanes of a block take together: only one of them is computed."""
    found: list[list[Shape]] = []
    packed: list[Packed] = []

    def looked_at(branch: Any) -> None:
        with run.scope():
            arrays = run.closed(branch, operands)
            found.append(shapes_of(arrays))
            packed.append(Packed(arrays))

    for branch in branches:
        jax.eval_shape(lambda branch=branch: looked_at(branch))
    shapes = [np.broadcast_shapes(*each) for each in zip(*found, strict=True)]

    def taken(branch: Any) -> Callable[[], list[Any]]:
        def result() -> list[Any]:
            with run.scope():
                return packed[0].flat(run.closed(branch, operands), shapes)

        return result

    return packed[0].arrays(lax.switch(index.astype(jnp.int32), [taken(branch) for branch in branches]))


RULES = {"cond": _cond, "scan": _scan, "while": _while}

"""Operations that only move elements: another way to look at an array, which costs nothing in either form."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from jaxbandits.kernels.arrays import Index, linear, plus, times

Place: TypeAlias = Callable[[Index], Index]  # where in the operand the element of the result at an index lies


def _broadcast_in_dim(eqn: Any) -> list[Place]:
    kept, sizes = eqn.params["broadcast_dimensions"], eqn.invars[0].aval.shape
    return [lambda i: [i[d] if n > 1 else 0 for d, n in zip(kept, sizes, strict=True)]]


def _reshape(eqn: Any) -> list[Place]:
    new, old = eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape

    def same_order(i: Index) -> Index:
        left = iter([k for k, n in zip(i, new, strict=True) if n > 1])
        return [next(left) if n > 1 else 0 for n in old]

    def divided(i: Index) -> Index:
        place, index = linear(i, new), []
        for n in reversed(old):
            index.append(place % n if isinstance(place, int) else f"({place} % {n})")
            place = place // n if isinstance(place, int) else f"({place} / {n})"
        return index[::-1]

    return [same_order if [n for n in new if n > 1] == [n for n in old if n > 1] else divided]


def _transpose(eqn: Any) -> list[Place]:
    order = eqn.params["permutation"]
    return [lambda i: [i[order.index(d)] for d in range(len(order))]]


def _rev(eqn: Any) -> list[Place]:
    turned, shape = eqn.params["dimensions"], eqn.invars[0].aval.shape

    def backwards(k: Any, n: int) -> Any:
        return n - 1 - k if isinstance(k, int) else f"({n - 1} - {k})"

    return [lambda i: [backwards(k, n) if d in turned else k for d, (k, n) in enumerate(zip(i, shape, strict=True))]]


def _slice(eqn: Any) -> list[Place]:
    starts, steps = eqn.params["start_indices"], eqn.params["strides"]
    steps = steps or [1] * len(starts)
    return [lambda i: [plus(times(k, step), b) for k, step, b in zip(i, steps, starts, strict=True)]]


def _split(eqn: Any) -> list[Place]:
    axis, sizes = eqn.params["axis"], eqn.params["sizes"]

    def part(begin: int) -> Place:
        return lambda i: [plus(k, begin) if d == axis else k for d, k in enumerate(i)]

    return [part(int(begin)) for begin in (0, *np.cumsum(sizes)[:-1])]


def _unstack(eqn: Any) -> list[Place]:
    axis = eqn.params["axis"]

    def row(k: int) -> Place:
        return lambda i: [*i[:axis], k, *i[axis:]]

    return [row(k) for k in range(len(eqn.outvars))]


MOVES: dict[str, Callable[[Any], list[Place]]] = {
    "broadcast_in_dim": _broadcast_in_dim, "expand_dims": _reshape, "reshape": _reshape, "rev": _rev, "slice": _slice,
    "split": _split, "squeeze": _reshape, "transpose": _transpose, "unstack": _unstack,
}  # fmt: skip

"""Operations that only move elements: they cost nothing once elements are held apart."""

from typing import Any

import numpy as np

from jaxbandits.kernels.elements import Elements, as_number, filled, held_apart, single

Operands = list[Elements]


def _same(run: Any, operands: Operands, eqn: Any) -> Operands:
    return operands


def _broadcast_in_dim(run: Any, operands: Operands, eqn: Any) -> Operands:
    shape, kept = run.held(eqn.params["shape"]), eqn.params["broadcast_dimensions"]
    x = operands[0].reshape([operands[0].shape[kept.index(d)] if d in kept else 1 for d in range(len(shape))])
    return [np.broadcast_to(x, shape)]


def _reshape(run: Any, operands: Operands, eqn: Any) -> Operands:
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if run.long is not None and _around(run, before) != _around(run, after):
        raise run.unsupported(f"another shape for an axis of {run.long.length}")
    return [operands[0].reshape(run.held(after))]


def _around(run: Any, shape: Any) -> list[int]:
    """How many elements lie before, between and behind the long axes of a shape."""
    counts = [1]
    for d, n in enumerate(shape):
        counts = [*counts, 1] if run.runs_along(shape, d) else [*counts[:-1], counts[-1] * n]
    return counts


def _apart(run: Any, eqn: Any, axis: int) -> None:
    """Raise where the axis of an operation is the long one, before or after."""
    for x in (*eqn.invars, *eqn.outvars):
        if len(x.aval.shape) > axis and run.runs_along(x.aval.shape, axis):
            raise run.unsupported(f"{eqn.primitive.name} along an axis of {run.long.length}")


def _transpose(run: Any, operands: Operands, eqn: Any) -> Operands:
    return [np.transpose(operands[0], eqn.params["permutation"])]


def _reverse(run: Any, operands: Operands, eqn: Any) -> Operands:
    for axis in eqn.params["dimensions"]:
        _apart(run, eqn, axis)
    return [np.flip(operands[0], eqn.params["dimensions"])]


def _slice(run: Any, operands: Operands, eqn: Any) -> Operands:
    steps, shape = eqn.params["strides"] or [1] * operands[0].ndim, eqn.invars[0].aval.shape
    places, picks = [], []
    for d, (start, limit, step) in enumerate(
        zip(eqn.params["start_indices"], eqn.params["limit_indices"], steps, strict=True)
    ):
        along = run.runs_along(shape, d)
        if (along and limit - start not in (1, shape[d])) or (
            run.runs_along(eqn.outvars[0].aval.shape, d) and not along
        ):
            raise run.unsupported(f"{eqn.outvars[0].aval.shape[d]} of an axis of {shape[d]}")
        picks += [start] * (along and limit - start == 1)
        places.append(slice(0, 1) if along else slice(start, limit, step))
    x = operands[0][tuple(places)]
    for start in picks:
        x = _picked(run, x, as_number(start, np.int32))
    return [x]


def _picked(run: Any, x: Elements, place: Any) -> Elements:
    """The numbers at a place of the axis that is not held apart."""
    return filled(x.shape, lambda index: run.long.picked(run, x[index], place))


def _concatenate(run: Any, operands: Operands, eqn: Any) -> Operands:
    _apart(run, eqn, eqn.params["dimension"])
    return [np.concatenate(operands, eqn.params["dimension"])]


def _stack(run: Any, operands: Operands, eqn: Any) -> Operands:
    if run.runs_along(eqn.outvars[0].aval.shape, eqn.params["axis"]):
        raise run.unsupported(f"an axis of {run.long.length} made of single numbers")
    return [np.stack(operands, eqn.params["axis"])]


def _unstack(run: Any, operands: Operands, eqn: Any) -> Operands:
    if run.runs_along(eqn.invars[0].aval.shape, eqn.params["axis"]):
        raise run.unsupported(f"single numbers of an axis of {run.long.length}")
    moved = np.moveaxis(operands[0], eqn.params["axis"], 0)
    return [moved[i] if moved.ndim > 1 else single(moved[i]) for i in range(len(moved))]


def _split(run: Any, operands: Operands, eqn: Any) -> Operands:
    _apart(run, eqn, eqn.params["axis"])
    return np.split(operands[0], np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"])


def _iota(run: Any, operands: Operands, eqn: Any) -> Operands:
    shape, along = eqn.params["shape"], eqn.params["dimension"]
    if run.runs_along(shape, along):
        places = run.long.places(run, eqn.params["dtype"])
        return [filled(run.held(shape), lambda _: places)]
    shape = run.held(shape)
    numbers = np.arange(shape[along]).astype(eqn.params["dtype"])
    return [held_apart(np.broadcast_to(np.expand_dims(numbers, [d for d in range(len(shape)) if d != along]), shape))]


def _pad(run: Any, operands: Operands, eqn: Any) -> Operands:
    x, value = operands
    for axis in range(x.ndim):
        if eqn.params["padding_config"][axis] != (0, 0, 0):
            _apart(run, eqn, axis)
    padded = filled(run.held(eqn.outvars[0].aval.shape), lambda _: value[()])
    for index in np.ndindex(x.shape):
        at = tuple(
            low + i * (1 + inner) for i, (low, _, inner) in zip(index, eqn.params["padding_config"], strict=True)
        )
        if all(0 <= i < n for i, n in zip(at, padded.shape, strict=True)):
            padded[at] = x[index]
    return [padded]


RULES = {
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "copy": _same,
    "copy_p": _same,
    "expand_dims": _reshape,
    "iota": _iota,
    "materialize": _same,
    "optimization_barrier": _same,
    "pad": _pad,
    "reshape": _reshape,
    "rev": _reverse,
    "slice": _slice,
    "split": _split,
    "squeeze": _reshape,
    "stack": _stack,
    "stop_gradient": _same,
    "transpose": _transpose,
    "unstack": _unstack,
}

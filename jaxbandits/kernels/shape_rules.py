"""Operations that only move elements: they cost nothing once elements are held apart."""

from typing import Any

import numpy as np

from jaxbandits.kernels.elements import Elements, filled, held_apart, single

Operands = list[Elements]


def _same(run: Any, operands: Operands, eqn: Any) -> Operands:
    return operands


def _broadcast_in_dim(run: Any, operands: Operands, eqn: Any) -> Operands:
    shape, kept = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    x = operands[0].reshape([operands[0].shape[kept.index(d)] if d in kept else 1 for d in range(len(shape))])
    return [np.broadcast_to(x, shape)]


def _reshape(run: Any, operands: Operands, eqn: Any) -> Operands:
    return [operands[0].reshape(eqn.outvars[0].aval.shape)]


def _transpose(run: Any, operands: Operands, eqn: Any) -> Operands:
    return [np.transpose(operands[0], eqn.params["permutation"])]


def _reverse(run: Any, operands: Operands, eqn: Any) -> Operands:
    return [np.flip(operands[0], eqn.params["dimensions"])]


def _slice(run: Any, operands: Operands, eqn: Any) -> Operands:
    steps = eqn.params["strides"] or [1] * operands[0].ndim
    return [operands[0][tuple(map(slice, eqn.params["start_indices"], eqn.params["limit_indices"], steps))]]


def _concatenate(run: Any, operands: Operands, eqn: Any) -> Operands:
    return [np.concatenate(operands, eqn.params["dimension"])]


def _stack(run: Any, operands: Operands, eqn: Any) -> Operands:
    return [np.stack(operands, eqn.params["axis"])]


def _unstack(run: Any, operands: Operands, eqn: Any) -> Operands:
    moved = np.moveaxis(operands[0], eqn.params["axis"], 0)
    return [moved[i] if moved.ndim > 1 else single(moved[i]) for i in range(len(moved))]


def _split(run: Any, operands: Operands, eqn: Any) -> Operands:
    return np.split(operands[0], np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"])


def _iota(run: Any, operands: Operands, eqn: Any) -> Operands:
    shape, along = eqn.params["shape"], eqn.params["dimension"]
    numbers = np.arange(shape[along]).astype(eqn.params["dtype"])
    return [held_apart(np.broadcast_to(np.expand_dims(numbers, [d for d in range(len(shape)) if d != along]), shape))]


def _pad(run: Any, operands: Operands, eqn: Any) -> Operands:
    x, value = operands
    padded = filled(eqn.outvars[0].aval.shape, lambda _: value[()])
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

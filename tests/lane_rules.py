"""The rules of `lane_proof`: from which places of the operands of a primitive a place of its result comes.

A rule takes the operation, the shapes of the operands and of the result, and a place of the result. It gives a place
of each operand, or None where an operand has no axis that leads there. It gives None alone where the place comes from
several places of one operand at once: lanes that lay there would be mixed.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import uncompiled
from jax.extend.core import JaxprEqn

from jaxbandits.kernels import scalars
from jaxbandits.kernels.merged import leaves
from jaxbandits.kernels.rules import JOINED, MOVED, Slices

Shape = tuple[int, ...]
Rule = Callable[[JaxprEqn, list[Shape], Shape, "Place"], "list[Place | None] | None"]


class Place(NamedTuple):
    """Where lanes lie: along an axis of length outer * size * inner, at the positions (outer, lane, inner)."""

    axis: int
    size: int
    inner: int = 1

    def at(self, axis: int) -> "Place":
        return self._replace(axis=axis)

    def covers(self, other: "Place") -> bool:
        """Whether entries that are equal from lane to lane here are so there."""
        apart = other.inner % self.inner or self.size * self.inner % (other.size * other.inner)
        return self.axis == other.axis and not apart


def _elementwise(equation: JaxprEqn, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None]:
    return [place if shape and shape[place.axis] == out[place.axis] else None for shape in shapes]


def _along(name: str) -> Rule:
    """What mixes the entries along one axis, which a parameter names."""
    mixed = lambda equation, place: place.axis in np.atleast_1d(equation.params[name])
    return lambda equation, shapes, out, place: None if mixed(equation, place) else [place] * len(shapes)


def _without(name: str) -> Rule:
    """What takes axes away, which a parameter names."""
    return lambda equation, shapes, out, place: [
        place.at([i for i in range(len(shapes[0])) if i not in np.atleast_1d(equation.params[name])][place.axis])
    ]


def _whole(last: int) -> Rule:
    """A part that is read (of operand 0) or written (operand 1). It must be all of the axis; indices come after it."""

    def rule(equation: JaxprEqn, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
        whole = shapes[last][place.axis] == out[place.axis]
        return [place if i <= last else None for i in range(len(shapes))] if whole else None

    return rule


def _keys(equation: JaxprEqn, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
    """What is drawn from keys: their axes lead."""
    return [place] * len(shapes) if all(shape[place.axis :][:1] == out[place.axis :][:1] for shape in shapes) else None


def _moved(equation: JaxprEqn, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
    """What only moves elements: as kernels do it, where the index of one side is an index of the other as it is."""
    joins, found = equation.primitive.name in JOINED, list[Place | None]()
    for k, shape in enumerate(shapes):
        given = [f"i{d}" for d in range(len(shape if joins else out))]
        index = (MOVED | JOINED)[equation.primitive.name](equation, k, given)
        to, at = (given, index[place.axis]) if joins else (index, given[place.axis])
        own = [d for d, i in enumerate(to) if i == at]
        if own and shape[own[0]] == out[place.axis]:
            found.append(place.at(own[0]))
        elif own or joins or any(at in leaves(i) for i in index):
            return None
        else:
            found.append(None)
    return found


def _gather(equation: JaxprEqn, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
    slices = Slices(shapes[0], out, equation.params["dimension_numbers"])
    windows, batching = dict(slices.windows), dict(slices.batching)
    if place.axis in windows:
        own = windows[place.axis]
        return [place.at(own), None] if out[place.axis] == shapes[0][own] else None
    row = slices.batch.index(place.axis)
    return [place.at(batching[row]) if row in batching else None, place.at(row)]


def _scatter(equation: JaxprEqn, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
    slices = Slices(out, shapes[2], equation.params["dimension_numbers"])
    windows, batching = ({k: d for d, k in pairs} for pairs in (slices.windows, slices.batching))
    if place.axis in batching:
        row = batching[place.axis]
        return [place, place.at(row), place.at(slices.batch[row])]
    update = windows.get(place.axis)
    return None if update is None or shapes[2][update] != out[place.axis] else [place, None, place.at(update)]


ELEMENTWISE = {*scalars.ELEMENTWISE, *uncompiled.ELEMENTWISE} | set(
    "acosh asinh atanh copy copy_p eq_to log2 materialize platform_index random_fold_in stop_gradient".split()
)
REDUCTIONS = "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor"
KEYS = "random_bits random_clone random_gamma random_seed random_split random_unwrap random_wrap"
RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(REDUCTIONS.split(), _without("axes")),
    **dict.fromkeys(KEYS.split(), _keys),
    **dict.fromkeys(("cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"), _along("axis")),
    **dict.fromkeys(("iota", "sort"), _along("dimension")),
    **dict.fromkeys((MOVED | JOINED).keys() - {"reshape"}, _moved),
    "pad": lambda eqn, shapes, out, place: None if any(eqn.params["padding_config"][place.axis]) else [place, None],
    "dynamic_slice": _whole(0),
    "dynamic_update_slice": _whole(1),
    "gather": _gather,
    **dict.fromkeys(("scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul"), _scatter),
}


def reshaped(place: Place, old: Shape, new: Shape) -> Place | None:
    """Where lanes lie after a reshape; None where they are torn apart."""
    stride = place.inner * math.prod(old[place.axis + 1 :])
    for axis, length in enumerate(new):
        inner, rest = divmod(stride, math.prod(new[axis + 1 :]) or 1)
        if inner and not rest and length % (inner * place.size) == 0:
            return Place(axis, place.size, inner)
    return None


def in_any_order(equation: JaxprEqn) -> bool:
    """Whether an operation adds or multiplies more than two floats in an order that XLA chooses."""
    name, params = equation.primitive.name, equation.params
    if not (equation.invars and equation.outvars and jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.inexact)):
        return False
    shape = equation.invars[0].aval.shape
    if name in ("reduce_sum", "reduce_prod"):
        return math.prod(shape[i] for i in params["axes"]) > 2
    if name in ("cumsum", "cumprod", "cumlogsumexp"):
        return shape[params["axis"]] > 2
    if name in ("scatter-add", "scatter-mul"):
        batches = params["dimension_numbers"].scatter_indices_batching_dims
        rows = [n for i, n in enumerate(equation.invars[1].aval.shape[:-1]) if i not in batches]
        return not params["unique_indices"] and math.prod(rows) > 1
    return name == "dot_general"

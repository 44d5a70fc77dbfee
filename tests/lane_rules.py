"""The rules of `lane_proof`: from which places of the operands of a primitive a place of its result comes.

A rule takes the parameters, the shapes of the operands and of the result, and a place of the result. It gives a place
of each operand, or None where an operand has no axis that leads there. It gives None alone where the place comes from
several places of one operand at once: lanes that lay there would be mixed.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.extend.core import JaxprEqn

Shape = tuple[int, ...]
Rule = Callable[[Any, list[Shape], Shape, "Place"], "list[Place | None] | None"]


class Place(NamedTuple):
    """Where lanes lie: along an axis of length outer * size * inner, at the positions (outer, lane, inner)."""

    axis: int
    size: int
    inner: int = 1

    def at(self, axis: int) -> "Place":
        return self._replace(axis=axis)

    def covers(self, other: "Place") -> bool:
        """Whether entries that are equal from lane to lane here are so there."""
        return self.axis == other.axis and not (
            other.inner % self.inner or self.size * self.inner % (other.size * other.inner)
        )


def _elementwise(params: Any, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None]:
    return [place if shape and shape[place.axis] == out[place.axis] else None for shape in shapes]


def _along(name: str) -> Rule:
    """What mixes the entries along one axis, which a parameter names."""
    return lambda params, shapes, out, place: (
        None if place.axis in np.atleast_1d(params[name]) else [place] * len(shapes)
    )


def _without(name: str) -> Rule:
    """What takes axes away, which a parameter names."""
    return lambda params, shapes, out, place: [
        place.at([i for i in range(len(shapes[0])) if i not in np.atleast_1d(params[name])][place.axis])
    ]


def _whole(last: int) -> Rule:
    """A part that is read (of operand 0) or written (operand 1). It must be all of the axis; indices come after it."""

    def rule(params: Any, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
        whole = shapes[last][place.axis] == out[place.axis]
        return [place if i <= last else None for i in range(len(shapes))] if whole else None

    return rule


def _keys(params: Any, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
    """What is drawn from keys: their axes lead."""
    return [place] * len(shapes) if all(shape[place.axis :][:1] == out[place.axis :][:1] for shape in shapes) else None


def _stack(params: Any, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
    new = params["axis"]
    return None if place.axis == new else [place.at(place.axis - (place.axis > new))] * len(shapes)


def _broadcast(params: Any, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None]:
    axes = dict(zip(params["broadcast_dimensions"], range(len(shapes[0])), strict=True))
    own = axes.get(place.axis)
    return [None if own is None or shapes[0][own] != out[place.axis] else place.at(own)]


def _gather(params: Any, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
    d, sizes = params["dimension_numbers"], params["slice_sizes"]
    if place.axis in d.offset_dims:
        window = [i for i in range(len(shapes[0])) if i not in (*d.collapsed_slice_dims, *d.operand_batching_dims)]
        own = window[list(d.offset_dims).index(place.axis)]
        return [place.at(own), None] if sizes[own] == shapes[0][own] else None
    row = [i for i in range(len(out)) if i not in d.offset_dims].index(place.axis)
    batches = dict(zip(d.start_indices_batching_dims, d.operand_batching_dims, strict=True))
    return [place.at(batches[row]) if row in batches else None, place.at(row)]


def _scatter(params: Any, shapes: list[Shape], out: Shape, place: Place) -> list[Place | None] | None:
    d = params["dimension_numbers"]
    batches = dict(zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True))
    if place.axis in batches:
        row = batches[place.axis]
        rows = [i for i in range(len(shapes[2])) if i not in d.update_window_dims]
        return [place, place.at(row), place.at(rows[row])]
    if place.axis in d.inserted_window_dims:
        return None
    window = [i for i in range(len(out)) if i not in (*d.inserted_window_dims, *batches)]
    update = d.update_window_dims[window.index(place.axis)]
    return [place, None, place.at(update)] if shapes[2][update] == out[place.axis] else None


ELEMENTWISE = (
    "abs acos acosh add add_any and asin asinh atan atan2 atanh bitcast_convert_type cbrt ceil clamp clz "
    "convert_element_type copy copy_p cos cosh digamma div eq eq_to erf erf_inv erfc exp exp2 expm1 floor ge gt "
    "integer_pow is_finite le le_to lgamma log log1p log2 logistic lt lt_to materialize max min mul ne neg nextafter "
    "not or platform_index population_count pow random_fold_in reduce_precision rem round rsqrt select_n shift_left "
    "shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor"
)
REDUCTIONS = "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor"
KEYS = "random_bits random_clone random_gamma random_seed random_split random_unwrap random_wrap"
RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE.split(), _elementwise),
    **dict.fromkeys(REDUCTIONS.split(), _without("axes")),
    **dict.fromkeys(KEYS.split(), _keys),
    **dict.fromkeys(("cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "split"), _along("axis")),
    **dict.fromkeys(("concatenate", "iota", "sort"), _along("dimension")),
    "rev": _along("dimensions"),
    "squeeze": _without("dimensions"),
    "stack": _stack,
    "unstack": _without("axis"),
    "broadcast_in_dim": _broadcast,
    "transpose": lambda params, shapes, out, place: [place.at(params["permutation"][place.axis])],
    "pad": lambda params, shapes, out, place: None if any(params["padding_config"][place.axis]) else [place, None],
    **dict.fromkeys(("slice", "dynamic_slice"), _whole(0)),
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

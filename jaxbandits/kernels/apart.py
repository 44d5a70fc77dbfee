"""A one-lane function evaluated on a block of lanes, with every array element held apart.

What is left of it is arithmetic on vectors of lanes, choices, loops and branches: what one kernel can hold in
registers. Shapes cost nothing, a position that is not known while tracing becomes a choice among all elements, and
sums are written out. Nothing is asked of the function: what a traced one-lane function does is all there is to know.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from jaxbandits.kernels import control_rules, index_rules, reduction_rules, shape_rules
from jaxbandits.kernels.elements import Elements, apply, as_number, call, filled, held_apart, known, single
from jaxbandits.kernels.long_axis import LongAxis

COMPARISONS = {"eq": lax.eq, "ge": lax.ge}
# Primitives that act on each element alone, by the name that JAX gives them.
ELEMENTWISE = frozenset(
    """abs add and atan2 bitcast_convert_type cbrt ceil clamp clz convert_element_type cos div eq erf erf_inv erfc exp
    exp2 expm1 floor ge gt integer_pow is_finite le log log1p logistic lt mul ne neg nextafter not or population_count
    pow reduce_precision rem rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin sqrt
    square sub tanh xor""".split()
)


def dtype_of(variable: Any) -> Any:
    """The type of a traced variable's numbers."""
    return variable.aval.dtype


class Unsupported(NotImplementedError):
    """A one-lane function holds an operation that is not written out."""


class Apart:
    """Evaluates traced one-lane functions.

    Parameters
    ----------
    lanes : int
        Lanes of a block, B.
    platform : str
        Which of the forms of `lax.platform_dependent` is taken: that of a GPU, also where a kernel is interpreted.
        Default: "cuda".
    long : LongAxis, optional
        The axis that is not held apart. Default: none.
    """

    def __init__(self, lanes: int, platform: str = "cuda", long: LongAxis | None = None) -> None:
        self.block, self.platform, self.long = (lanes,) if long is None else (lanes, 1), platform, long
        self._compared: dict[Any, tuple[Any, Any]] = {}
        self.extremes: dict[Any, reduction_rules.Extreme] = {}

    def closed(self, function: ClosedJaxpr, operands: Iterable[Elements]) -> list[Elements]:
        """What a traced function gives."""
        return self.inner(function.jaxpr, function.consts, operands)

    def inner(self, jaxpr: Jaxpr, consts: Sequence[Any], operands: Iterable[Elements]) -> list[Elements]:
        """What a traced function with constants beside it gives."""
        values: dict[Any, Elements] = {}

        def read(variable: Any) -> Elements:
            return (
                self.constant(variable.val, dtype_of(variable)) if isinstance(variable, Literal) else values[variable]
            )

        for variable, constant in zip(jaxpr.constvars, consts, strict=True):
            values[variable] = self.constant(constant, dtype_of(variable))
        values |= dict(zip(jaxpr.invars, operands, strict=True))
        for eqn in jaxpr.eqns:
            values |= dict(zip(eqn.outvars, self._results(eqn, [read(x) for x in eqn.invars]), strict=True))
        return [read(x) for x in jaxpr.outvars]

    def compared(self, how: str, element: Any, number: int) -> Any:
        """An element compared with a number. The same question is asked once."""
        if known(element):
            return np.bool_(element == number if how == "eq" else element >= number)
        key = how, id(element), number
        if key not in self._compared:  # the element is kept too, so that no other gets its id
            self._compared[key] = call(COMPARISONS[how], element, as_number(number, element.dtype)), element
        return self._compared[key][0]

    def held(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the elements of an array of a shape."""
        return tuple(shape) if self.long is None else self.long.held(shape)

    def element_shapes(self, shapes: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
        """The shape of every element of arrays of some shapes, where lanes differ in them."""
        return [
            self.block if self.long is None or self.long.length not in shape else (self.block[0], self.long.padded)
            for shape in shapes
            for _ in range(int(np.prod(self.held(shape))))
        ]

    def constant(self, array: Any, dtype: Any) -> Elements:
        """The elements of an array that is known while tracing."""
        return held_apart(array, dtype) if self.long is None else self.long.constant(self, np.asarray(array, dtype))

    def runs_along(self, shape: Sequence[int], axis: int) -> bool:
        """Whether an axis of an array is the one that is not held apart."""
        return self.long is not None and shape[axis] == self.long.length

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """The body of a loop or branch: what is asked inside holds inside only."""
        before = self._compared, self.extremes
        self._compared, self.extremes = dict(self._compared), dict(self.extremes)
        try:
            yield
        finally:
            self._compared, self.extremes = before

    def unsupported(self, what: str) -> Unsupported:
        """The error for something that is not written out."""
        return Unsupported(what)

    def _results(self, eqn: Any, operands: list[Elements]) -> list[Elements]:
        name, shapes = eqn.primitive.name, [x.aval.shape for x in eqn.outvars]
        if self.long is not None and not all(map(self.long.fits, shapes)):
            raise Unsupported(f"{name} with two axes of {self.long.length}")
        if name in RULES:
            found = RULES[name](self, operands, eqn)
            if self.long is not None and [x.shape for x in found] != list(map(self.held, shapes)):
                raise Unsupported(f"{name} that makes an axis of {self.long.length}")
            return found
        if name in ELEMENTWISE:
            shape = self.held(eqn.outvars[0].aval.shape)
            spread = [np.broadcast_to(x, shape) for x in operands]
            return [filled(shape, lambda index: apply(eqn.primitive, [x[index] for x in spread], **eqn.params))]
        raise Unsupported(name)


# ---- calls, and primitives that kernels lack


def _call(name: str) -> Any:
    """The rule of a primitive that calls the traced function in its parameter `name`."""
    return lambda run, operands, eqn: run.closed(eqn.params[name], operands)


def _jit(run: Apart, operands: list[Elements], eqn: Any) -> list[Elements]:
    """A traced function; sums in a fixed order along the axis that is not held apart go by their names."""
    rule = reduction_rules.BY_NAME.get(eqn.params["name"])
    if rule is not None and rule.fits(run, eqn):
        return [rule.along(run, operands[0])]
    return run.closed(eqn.params["jaxpr"], operands)


def _platform(run: Apart, operands: list[Elements], eqn: Any) -> list[Elements]:
    for i, names in enumerate(eqn.params["platforms"]):
        if names is None or run.platform in names:
            return [single(as_number(i, np.int32))]
    raise Unsupported(f"no form for {run.platform}")


def _ordered(comparison: Any) -> Any:
    """The rule of a comparison that also orders NaN; it is asked only of elements that are compared by `sort`."""

    def rule(run: Apart, operands: list[Elements], eqn: Any) -> list[Elements]:
        a, b = np.broadcast_arrays(*operands)
        return [filled(a.shape, lambda index: call(comparison, a[index], b[index]))]

    return rule


def _round(run: Apart, operands: list[Elements], eqn: Any) -> list[Elements]:
    to_even = eqn.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN

    def rounded(x: Any) -> Any:
        half = jnp.asarray(0.5, x.dtype)
        if not to_even:
            return lax.select(x < 0, -lax.floor(half - x), lax.floor(x + half))
        up = lax.floor(x + half)
        odd = up - 2 * lax.floor(up * half) != 0
        return lax.select((up - x == half) & odd, up - 1, up)

    return [filled(operands[0].shape, lambda index: call(rounded, operands[0][index]))]


RULES: dict[str, Any] = {
    **shape_rules.RULES,
    **index_rules.RULES,
    **reduction_rules.RULES,
    **control_rules.RULES,
    "closed_call": _call("call_jaxpr"),
    "custom_jvp_call": _call("call_jaxpr"),
    "custom_vmap_call": _call("call"),
    "jit": _jit,
    "le_to": _ordered(lax.le),
    "lt_to": _ordered(lax.lt),
    "pjit": _jit,
    "platform_index": _platform,
    "round": _round,
    "with_form": _call("plain"),
}

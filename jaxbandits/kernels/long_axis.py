"""An axis that is too long to be held apart: it lies across the threads of a warp, which plays one lane.

An array has one element for all of it, [B, n] with n the length filled up to a power of two. What is computed in the
places that are filled up is not looked at.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.kernels.elements import Elements, as_number, call, filled, known, select


class LongAxis(NamedTuple):
    """Every axis of this length is the long one."""

    length: int

    @property
    def padded(self) -> int:
        """The power of two that holds the axis."""
        return 1 << (self.length - 1).bit_length()

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether an array has the axis at most once."""
        return list(shape).count(self.length) <= 1

    def held(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the elements of an array of a shape."""
        return tuple(1 if n == self.length else n for n in shape)

    def places(self, run: Any, dtype: Any = np.int32) -> Any:
        """0, 1, ... along the axis."""
        return lax.broadcasted_iota(dtype, (run.block[0], self.padded), 1)

    def constant(self, run: Any, array: np.ndarray[Any, Any]) -> Elements:
        """The elements of an array that is known while tracing: equal or evenly spaced along the axis."""
        axes = [d for d, n in enumerate(array.shape) if n == self.length]
        if not axes:
            return filled(array.shape, lambda index: array[index])
        if len(axes) > 1:
            raise run.unsupported(f"two axes of {self.length}")
        rows = np.moveaxis(array, axes[0], -1)

        def element(index: tuple[int, ...]) -> Any:
            row = rows[tuple(i for d, i in enumerate(index) if d != axes[0])]
            if np.all(row == row[0]):
                return row[0]
            if row.dtype.kind in "iu" and np.all(np.diff(row) == row[1] - row[0]):
                step, first = as_number(row[1] - row[0], row.dtype), row[0]
                return call(lambda k, step, first: k * step + first, self.places(run, row.dtype), step, first)
            raise run.unsupported(f"a table of {self.length} numbers")

        return filled(self.held(array.shape), element)

    def across(self, run: Any, how: str, element: Any) -> Any:
        """The sum, the largest or the smallest along the axis, as one number a lane. NaN where one is."""
        if element.dtype == bool:  # all or any, which is what a sum of truth values is
            how = "max" if how == "sum" else how
            return self.across(run, how, call(lambda x: x.astype(jnp.int32), element)) > 0
        if how not in ("sum", "max", "min"):
            raise run.unsupported(f"a {how} along an axis of {self.length}")
        x = jnp.broadcast_to(jnp.asarray(element), (run.block[0], self.padded))
        inside = self.places(run) < self.length
        if how == "sum":
            return jnp.sum(jnp.where(inside, x, jnp.zeros_like(x)), axis=1, keepdims=True, dtype=x.dtype)
        floats = jnp.issubdtype(x.dtype, jnp.inexact)
        least, most = (-np.inf, np.inf) if floats else (jnp.iinfo(x.dtype).min, jnp.iinfo(x.dtype).max)
        empty = as_number(least if how == "max" else most, x.dtype)
        best: Callable[..., Any] = jnp.max if how == "max" else jnp.min
        found = best(jnp.where(inside, x, jnp.full_like(x, empty)), axis=1, keepdims=True)
        if not floats:
            return found
        bad = jnp.max(jnp.where(inside & (x != x), 1, 0), axis=1, keepdims=True)
        return jnp.where(bad > 0, jnp.full_like(found, np.nan), found)

    def inside(self, run: Any, condition: Any) -> Any:
        """A condition, and False in the places that are filled up."""
        if np.shape(condition)[1:] != (self.padded,):
            return condition
        return condition & (self.places(run) < self.length)

    def sums(self, run: Any, element: Any) -> Any:
        """The sums of the numbers up to each place of the axis."""
        x = jnp.broadcast_to(jnp.asarray(element), (run.block[0], self.padded))
        return jnp.cumsum(jnp.where(self.places(run) < self.length, x, jnp.zeros_like(x)), axis=1, dtype=x.dtype)

    def last(self, x: Any, begin: int) -> Any:
        """An array [..., *shape], shape after its first `begin` axes, as [..., r, n]: the axis last, filled up."""
        axis = begin + x.shape[begin:].index(self.length)
        rows = jnp.moveaxis(x, axis, -1).reshape(*x.shape[:begin], -1, self.length)
        return jnp.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, self.padded - self.length)])

    def back(self, rows: Any, shape: Sequence[int]) -> Any:
        """The array [..., *shape] of which `last` made rows [..., r, n]."""
        axis, begin = list(shape).index(self.length), rows.ndim - 2
        others = [n for d, n in enumerate(shape) if d != axis]
        cut = rows[..., : self.length].reshape(*rows.shape[:begin], *others, self.length)
        return jnp.moveaxis(cut, -1, begin + axis)

    def picked(self, run: Any, element: Any, place: Any) -> Any:
        """The number at a place of the axis, which is moved inside; other numbers may be NaN. -0.0 becomes 0.0."""
        if not np.shape(element)[1:] or np.shape(element)[1] == 1:  # the same everywhere
            return element
        if known(place):
            place = as_number(min(max(int(place), 0), self.length - 1), np.int32)
        elif np.shape(place)[1:] == (self.padded,):
            raise run.unsupported(f"another place for each of {self.length}")
        else:
            place = call(lambda x: jnp.clip(x.astype(jnp.int32), 0, self.length - 1), place)
        here = call(lambda k, place: k == place, self.places(run), place)
        return self.across(run, "sum", select(here, element, as_number(0, element.dtype)))

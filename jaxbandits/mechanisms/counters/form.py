"""What one form of noise on running sums is: functions for one lane, and numbers on the host."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.typing import Array


class Form(NamedTuple):
    """The noise of running sums, without the sums.

    `t` is 1, 2, ... in turn, int32. States are arrays with the message's shape at the end. Functions are made by cached
    builders, so that two forms that differ in numbers alone have the same ones and share a program.
    """

    # leaves: decays, weights, coefficients
    params: Any
    # shape, dtype -> state
    begin: Callable[..., Any]
    # params, state, draws, t, shape -> state after message t
    move: Callable[..., Any]
    # params, state, t -> the noise [*shape] of the sum of t messages at unit scale; 0 for t = 0
    noise: Callable[..., Any]
    # t [...] -> standard deviation of that noise [...], on the host
    deviation: Callable[..., Any]
    # the largest norm of what one unit contributes
    column_norm: float
    # numbers that the noise of one entry needs
    size: int


def rows_of_zeros(number: int) -> Callable[..., Any]:
    """A `begin` whose state is so many numbers for each entry of a message."""
    return lambda shape, dtype: jnp.zeros((number, *shape), dtype)


class GivenDraw(NamedTuple):
    """In place of `Draws`: the normal draw that a message was given already."""

    fresh: Array

    def normal(self, t: Array, shape: tuple[int, ...]) -> Array:
        """That draw."""
        return self.fresh

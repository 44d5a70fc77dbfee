"""Names for the types in signatures. Shapes are annotations for the reader: nothing checks them while a program runs.

Axes: [P] plays of a window, [K] or [A] arms, [d] features, [N] agents, [C] checkpoints, [T] plays of a run.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

if TYPE_CHECKING:
    from jaxbandits.protocol import Adversary, Algorithm, Environment

__all__ = [
    "AdversaryFactory",
    "AlgorithmFactory",
    "Array",
    "Bool",
    "EnvironmentFactory",
    "Float",
    "Int",
    "Matrix",
    "Numeric",
    "Scalar",
    "Tensor",
    "UInt32",
    "Vector",
]

Scalar: TypeAlias = float | np.floating[Any] | np.integer[Any]
"""A number on the host: Python's or NumPy's, integers included."""

Vector: TypeAlias = Sequence[float] | np.ndarray[Any, Any] | jax.Array
"""Numbers along one axis on the host: a list or an array."""

Matrix: TypeAlias = Sequence[Sequence[float]] | Sequence[np.ndarray[Any, Any]] | np.ndarray[Any, Any] | jax.Array
"""Numbers along two axes on the host: a list of rows or an array."""

Tensor: TypeAlias = Sequence[Any] | np.ndarray[Any, Any] | jax.Array
"""Numbers along any number of axes on the host: nested lists or an array."""

Numeric: TypeAlias = float | np.floating[Any] | np.integer[Any] | np.ndarray[Any, Any] | jax.Array
"""A number or an array of numbers: theory functions take both."""

AlgorithmFactory: TypeAlias = "Callable[..., Algorithm]"
EnvironmentFactory: TypeAlias = "Callable[..., Environment]"
AdversaryFactory: TypeAlias = "Callable[..., Adversary]"

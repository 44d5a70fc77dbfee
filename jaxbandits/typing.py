"""Names for the types in signatures. Shapes are annotations for the reader: `make exhaustive` alone checks them.

Axes: [P] plays of a window, [K] or [A] arms, [d] features, [N] agents, [C] checkpoints, [T] plays of a run.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np
from jaxtyping import Array as Array
from jaxtyping import Bool as Bool
from jaxtyping import Float as Float
from jaxtyping import Int as Int
from jaxtyping import Integer as Integer
from jaxtyping import Shaped as Shaped
from jaxtyping import UInt32 as UInt32

if TYPE_CHECKING:
    from jaxbandits.protocol import Adversary, Algorithm, Environment

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

DType: TypeAlias = str | type[Any] | np.dtype[Any]
"""The type of an array's entries, as JAX and NumPy take it."""

AlgorithmFactory: TypeAlias = "Callable[..., Algorithm]"
EnvironmentFactory: TypeAlias = "Callable[..., Environment]"
AdversaryFactory: TypeAlias = "Callable[..., Adversary]"

"""Regret from counts of pulls in compiled code, with the bits of `regret_of_counts`.

A count times a gap is rounded to float64 before it is added. A compiler would rather multiply and add in one rounding,
in some loops and not in others, so the top bit of the count is mixed into the product: it is always 0, which the
compiler cannot know. The arms are added one by one in their order.
"""

import threading
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.sweeps.compilation.compilation_cache import programs_on_disk
from jaxbandits.sweeps.compilation.compiled import WIDE_VECTORS
from jaxbandits.typing import Array, Float, Int

# On a CPU 0.1 to 0.5 ns a count, against 0.6 to 1.3 ns in NumPy, and 70 ms to compile for ten arms (3 ms an arm), or 7
# ms where the program is on disk.
# Of a whole sweep: below, NumPy is done in the time of compiling. Those of a GPU cross the bus first, and that takes
# longer than adding them up. A TPU has no native float64.
LEAST_COUNTS = {"cpu": 1 << 24, "gpu": 1 << 22}
MAX_ARMS = 64
SMALLEST = 2.0**-1022  # XLA on a CPU takes smaller numbers for 0
_lock = threading.Lock()


def regret_on_device(
    counts: Int[Array, "S ... C K"], gaps: Float[np.ndarray, "M K"], lanes: int
) -> Float[Array, "S M C"] | None:
    """What the pulls of every arm cost, in float64, on their device; None where the host's code is the better way.

    counts: those of one point without an axis of points. lanes: how many the whole sweep has of them.
    """
    device = next(iter(counts.devices()))
    if not saves_time(counts.shape, lanes, device):
        return None
    with jax.enable_x64(True):
        there = _on_device(gaps.tobytes(), gaps.shape, device)
        return None if there is None else program_of(counts.shape, device)(counts, there)


def saves_time(shape: tuple[int, ...], lanes: int, device: jax.Device) -> bool:
    """Whether a program for counts of a shape is the better way, as `regret_on_device` has it."""
    return lanes * shape[-2] * shape[-1] >= LEAST_COUNTS.get(device.platform, np.inf) and shape[-1] <= MAX_ARMS


def program_of(shape: tuple[int, ...], device: jax.Device) -> Any:
    """The program for counts of a shape on a device."""
    with _lock, jax.enable_x64(True):  # two threads would compile the same program
        return _program(shape, device)


@lru_cache(maxsize=64)  # calls of equal environments have equal gaps
def _on_device(content: bytes, shape: tuple[int, ...], device: jax.Device) -> Array | None:
    """Gaps on a device; None where the device would take one for 0 that is not."""
    gaps = np.frombuffer(content).reshape(shape)
    return None if np.any((gaps != 0) & (np.abs(gaps) < SMALLEST)) else jax.device_put(gaps, device)


@lru_cache(maxsize=64)
def _program(shape: tuple[int, ...], device: jax.Device) -> Any:
    """The program for counts of a shape, compiled under `jax.enable_x64`."""
    there = jax.sharding.SingleDeviceSharding(device)
    counts = jax.ShapeDtypeStruct(shape, np.int32, sharding=there)
    gaps = jax.ShapeDtypeStruct((shape[1] if len(shape) > 3 else 1, shape[-1]), np.float64, sharding=there)
    with programs_on_disk():
        lowered = jax.jit(regret_from_gaps).lower(counts, gaps)
        return lowered.compile(compiler_options=WIDE_VECTORS if device.platform == "cpu" else None)


def regret_from_gaps(counts: Int[Array, "S ... C K"], gaps: Float[Array, "M K"]) -> Float[Array, "S M C"]:
    """Sum of counts times gaps over the arms, traced in float64. Adding 0 where a gap is 0 changes no bit."""
    counts = counts.reshape(len(counts), len(gaps), *counts.shape[-2:])
    total = jnp.zeros(counts.shape[:-1], jnp.float64)
    for arm in range(counts.shape[-1]):
        count = lax.index_in_dim(counts, arm, axis=3, keepdims=False)
        gap = lax.index_in_dim(gaps, arm, axis=1, keepdims=False)
        product = lax.convert_element_type(count, np.float64) * lax.broadcast_in_dim(gap, count.shape, (1,))
        zero = lax.shift_right_logical(lax.bitcast_convert_type(count, np.uint32), np.uint32(31))
        word = lax.bitcast_convert_type(product, np.uint64) ^ lax.convert_element_type(zero, np.uint64)
        total = total + lax.bitcast_convert_type(word, np.float64)
    return total

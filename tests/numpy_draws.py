"""The simulator's addressed draws in NumPy, written from its description: for oracles, which compile nothing.

The key is (seed, crc32 of a path), the counter (play, position), the generator Threefry-2x32 with 20 rounds.
`tests/engine/test_random.py` compares them with published vectors and with `jaxbandits.random`.
"""

import math
import zlib
from typing import Any, NamedTuple

import numpy as np
from scipy import special

ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
PARITY = 0x1BD11BDA


def threefry2x32(key: Any, counter: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two uint32 words of two words of key and two of counter."""
    keys = [np.asarray(k, np.uint32) for k in key]
    keys.append(keys[0] ^ keys[1] ^ np.uint32(PARITY))
    x, y = (np.asarray(c, np.uint32) + k for c, k in zip(counter, keys[:2], strict=True))
    for block in range(5):
        for turn in ROTATIONS[block % 2]:
            x = x + y
            y = (y << np.uint32(turn) | y >> np.uint32(32 - turn)) ^ x
        x, y = x + keys[(block + 1) % 3], y + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x, y


class NumpyDraws(NamedTuple):
    """Draws of one lane under one path, as `jaxbandits.random.Draws` has them: float64 unless dtype is float32."""

    seed: int
    path: str = ""
    dtype: Any = np.float64

    def child(self, name: str) -> "NumpyDraws":
        return self._replace(path=f"{self.path}/{name}" if self.path else name)

    def words(self, t: Any, position: Any) -> tuple[np.ndarray, np.ndarray]:
        """Both words at plays t and positions, broadcast."""
        with np.errstate(over="ignore"):
            key = np.uint32(self.seed), np.uint32(zlib.crc32(self.path.encode()))
            return threefry2x32(key, (np.asarray(t).astype(np.uint32), np.asarray(position).astype(np.uint32)))

    def at(self, t: Any, position: Any) -> np.ndarray:
        return self.words(t, position)[0]

    def bits(self, t: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
        """Words [*t, *shape]: first the first words of all positions, then the second ones."""
        t, n = np.asarray(t), math.prod(shape)
        if n == 1:
            return self.at(t, 0).reshape(t.shape + tuple(shape))
        pairs = self.words(t[..., None], np.arange((n + 1) // 2))
        return np.concatenate(pairs, axis=-1)[..., :n].reshape(t.shape + tuple(shape))

    def uniform(self, t: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
        return to_uniform(self.bits(t, shape), self.dtype)

    def normal(self, t: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
        return to_normal(self.bits(t, shape), self.dtype)

    def exponential(self, t: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
        return to_exponential(self.bits(t, shape), self.dtype)

    def laplace(self, t: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
        return to_laplace(self.bits(t, shape), self.dtype)


def to_uniform(bits: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """The middle of one of 2^32 equal pieces of (0, 1); in float32 of one of 2^23."""
    if dtype == np.float64:
        return (bits + 0.5) * 2.0**-32
    return (((bits >> np.uint32(9)) + 0.5) * 2.0**-23).astype(np.float32)


def to_normal(bits: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    return (math.sqrt(2) * special.erfinv(2 * to_uniform(bits, dtype).astype(np.float64) - 1)).astype(dtype)


def to_exponential(bits: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """-log of a uniform of 31 bits, whose ends are cut off."""
    uniform = ((bits >> np.uint32(1)).astype(dtype) * dtype(2.0**-31)).astype(dtype)
    return -np.log(np.clip(uniform, 2.0**-32, 1 - 2.0 ** (-24 if dtype == np.float32 else -32))).astype(dtype)


def to_laplace(bits: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """The lowest bit is the sign."""
    return np.where(bits & np.uint32(1), -1, 1).astype(dtype) * to_exponential(bits, dtype)

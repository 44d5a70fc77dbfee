"""Counter-based random streams: every draw is addressed, never sequenced.

A draw's key is (seed, crc32 of a path such as `alg/update/base`), its counter (play index, position):
Threefry-2x32 with 20 rounds (Salmon et al. 2011), written inline so that XLA fuses it into the step. A lane's
draws therefore do not depend on windows, chunks, devices or which other lanes run beside it.

Tails, float32: uniforms lie on (k + 1/2) 2^-23, so in [6.0e-8, 1 - 6.0e-8]; normals within +-5.4; exponentials
and Laplace magnitudes in [6.0e-8, 22.2]. float64 uses the same 32 bits: uniforms on (k + 1/2) 2^-32, normals
within +-6.3.
"""

import math
import zlib
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics import columns, fixed_sum, inverse_cdf, materialize, materialize_all
from jaxbandits.typing import Array, Bool, DType, Float, Int, Numeric, Tensor, UInt32
from jaxbandits.validation import declare

# The largest number of trials of a binomial draw: the error of its float32 acceptance grows with them (measured
# on 2e6 draws: a chi-squared test finds no fault at 2^14, and has p-values of 1e-9 at 2^20).
MAX_TRIALS = 2**14
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """Threefry-2x32 with 20 rounds: two uint32 words from two key words and two counter words, broadcast."""
    k0, k1 = key
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = _round(counter[0] + k0, counter[1] + k1, 0)  # here numbers of the host are no operations of a program
    return _rounds_after_the_first(keys, x0, x1)


def _round(x0, x1, number):
    rotation = _ROTATIONS[number // 4 % 2][number % 4]
    x0 = x0 + x1
    return x0, ((x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))) ^ x0


@partial(jax.jit, inline=True)  # traced once for all draws of a shape
def _rounds_after_the_first(keys, x0, x1):
    for number in range(1, 20):
        x0, x1 = _round(x0, x1, number)
        if number % 4 == 3:
            block = number // 4
            x0 = x0 + keys[(block + 1) % 3]
            x1 = x1 + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x0, x1


def to_uniform(bits: UInt32[Array, "..."], dtype: DType = jnp.float32) -> Float[Array, "..."]:
    """uint32 -> uniform in (0, 1), never 0 or 1."""
    if dtype == jnp.float64:
        return (bits.astype(jnp.float64) + 0.5) * 2.0**-32
    one_to_two = jax.lax.bitcast_convert_type((bits >> np.uint32(9)) | np.uint32(0x3F800000), jnp.float32)
    return one_to_two - np.float32(1 - 2.0**-24)  # exact: (k + 1/2) 2^-23; (b >> 8) 2^-24 + 2^-25 would round to 1


def to_normal(bits: UInt32[Array, "..."], dtype: type[Any] = jnp.float32) -> Float[Array, "..."]:
    """uint32 -> standard normal by the inverse distribution function."""
    return dtype(math.sqrt(2)) * jax.lax.erf_inv(2 * to_uniform(bits, dtype) - 1)


def _exponential_of_31(bits31, dtype):
    u = bits31.astype(jnp.int32).astype(dtype) * dtype(2.0**-31)
    top = 1 - 2.0**-24 if dtype == jnp.float32 else 1 - 2.0**-32
    return -jnp.log(jnp.clip(u, dtype(2.0**-32), dtype(top)))


def to_exponential(bits: UInt32[Array, "..."], dtype: DType = jnp.float32) -> Float[Array, "..."]:
    """uint32 -> exponential of mean 1, never 0 or inf."""
    return _exponential_of_31(bits >> np.uint32(1), dtype)


def to_laplace(bits: UInt32[Array, "..."], dtype: DType = jnp.float32) -> Float[Array, "..."]:
    """uint32 -> Laplace of scale 1: the low bit is the sign, the other 31 the exponential magnitude."""
    magnitude = _exponential_of_31(bits >> np.uint32(1), dtype)
    return jnp.where((bits & np.uint32(1)) == 1, -magnitude, magnitude)


def _entries(words, shape):
    """The words of blocks, all first ones before all second ones, as an array of a shape."""
    words = jnp.concatenate(words, axis=-1)
    lead = words.ndim - 1
    return words[..., : math.prod(shape[lead:])].reshape(shape)


@declare(check=False)
@partial(jax.tree_util.register_dataclass, data_fields=["seed", "shift"], meta_fields=["path", "dtype", "long"])
@dataclass(frozen=True)
class Draws:
    """The random streams of one lane under one path. `child` moves to another path and costs nothing.

    Methods take play indices `t` (any integer shape [...]) and the shape of one play's draw, and return
    `[..., *shape]`. Two different draws inside one function must take two children.

    Args:
        seed (jax.Array): The lane's seed, uint32.
        path (str, optional): The stream's name, such as "alg/update".
        dtype (type, optional): Of real-valued draws: float32, the default, or float64.
        shift (int32, optional): Plays before t = 1, for a part with a clock of its own. None: 0.
        long (bool, optional): Whether the run has so many plays that sums in `dtype` should keep what rounding leaves
            out of them (`numerics.left_out`). False, the default: it has not.

    >>> draws = Draws(np.uint32(7), "alg/act")
    >>> bool(draws.uniform(np.int32(3)) == Draws(np.uint32(7), "alg").child("act").uniform(np.int32(3)))
    True
    """

    seed: Any
    path: str = ""
    dtype: type[Any] = jnp.float32
    shift: Array | None = None
    long: bool = False

    def child(self, name: str) -> "Draws":
        """The stream under `path/name`."""
        return replace(self, path=f"{self.path}/{name}" if self.path else name)

    def shifted(self, plays: Int[Array, ""]) -> "Draws":
        """The same stream for a part whose clock started `plays` plays later: its draw at t is the one at t + plays."""
        return replace(self, shift=plays if self.shift is None else self.shift + plays)

    def _play(self, t):
        t = jnp.asarray(t)
        return (t if self.shift is None else t + self.shift).astype(jnp.uint32)

    def _key(self):
        seed = jnp.asarray(self.seed)
        if not jnp.issubdtype(seed.dtype, jnp.integer):  # 0.2 and 0.7 would both be seed 0
            raise TypeError(f"seed has dtype {seed.dtype}: it must be an integer")
        return seed.astype(jnp.uint32), np.uint32(zlib.crc32(self.path.encode()))

    def words(
        self, t: Int[Array, "..."], shape: tuple[int, ...] = (), first: int = 0
    ) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
        """Two independent uint32 words at positions first, first + 1, ...: each `[..., *shape]`."""
        shape = tuple(shape)
        t = self._play(t)
        if not shape:
            return threefry2x32(self._key(), (t, np.uint32(first)))
        position = jnp.arange(first, first + math.prod(shape), dtype=jnp.uint32)
        position = position.reshape((1,) * t.ndim + shape)
        return threefry2x32(self._key(), (t.reshape(t.shape + (1,) * len(shape)), position))

    def words_at(self, t: Int[Array, "..."], position: Tensor) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
        """Both uint32 words at one (possibly traced) position: shapes of t and position broadcast."""
        plays, position = self._play(t), jnp.asarray(position).astype(jnp.uint32)
        rank = max(plays.ndim, position.ndim)
        counter = jax.lax.broadcast_to_rank(plays, rank), jax.lax.broadcast_to_rank(position, rank)
        return threefry2x32(self._key(), counter)

    def at(self, t: Int[Array, "..."], position: Tensor) -> UInt32[Array, "..."]:
        """The first of `words_at`."""
        return self.words_at(t, position)[0]

    def bits(self, t: Int[Array, "..."], shape: tuple[int, ...] = ()) -> UInt32[Array, "..."]:
        """uint32 words, both words of each block used: `[..., *shape]`."""
        shape = tuple(shape)
        if math.prod(shape) == 1:
            return self.words(t, shape)[0]
        return _entries(self.words(t, ((math.prod(shape) + 1) // 2,)), jnp.shape(t) + shape)

    def columns(self, t: Int[Array, "..."], number: int) -> Any:
        """The words of `bits(t, (number,))` apart: as many arrays of t's shape, or one array beyond `columns.UNROLL`.

        Each array is contiguous over the lanes: draws of such words are loops in full vectors.
        """
        if number > columns.UNROLL:
            return self.bits(t, (number,))
        pairs = [self.words(t, (), i) for i in range((number + 1) // 2)]
        return tuple(pair[side] for side in (0, 1) for pair in pairs)[:number]

    def uniform(self, t: Int[Array, "..."], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        """Uniform in (0, 1)."""
        return to_uniform(self.bits(t, shape), self.dtype)

    def normal(self, t: Int[Array, "..."], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        """Standard normal."""
        return materialize(to_normal(self.materialize_bits(t, shape), self.dtype), long=True)

    def materialize_bits(self, t: Int[Array, "..."], shape: tuple[int, ...] = ()) -> UInt32[Array, "..."]:
        """`bits`; many are stored, both words of a block together: a CPU would compute the blocks once for each."""
        shape = tuple(shape)
        if math.prod(shape) <= columns.UNROLL:
            return self.bits(t, shape)
        return _entries(materialize_all(self.words(t, ((math.prod(shape) + 1) // 2,))), jnp.shape(t) + shape)

    def normals(self, t: Int[Array, "..."], number: int) -> tuple[Float[Array, "..."], ...]:
        """The entries of `normal(t, (number,))`, each an array of t's shape, as `columns` draws them."""
        words = self.columns(t, number)
        if isinstance(words, tuple):
            return tuple(materialize(to_normal(word, self.dtype), long=True) for word in words)
        drawn = self.normal(t, (number,))
        return tuple(drawn[..., i] for i in range(number))

    def exponential(self, t: Int[Array, "..."], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        """Exponential of mean 1."""
        return to_exponential(self.bits(t, shape), self.dtype)

    def laplace(self, t: Int[Array, "..."], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        """Laplace of scale 1."""
        return to_laplace(self.bits(t, shape), self.dtype)

    def bernoulli(self, t: Int[Array, "..."], probability: Numeric, shape: tuple[int, ...] = ()) -> Bool[Array, "..."]:
        """True with the given probability (broadcast against the draw)."""
        return self.uniform(t, shape) < probability

    def categorical(self, t: Int[Array, "..."], probabilities: Float[Array, "... n"]) -> Int[Array, "..."]:
        """Index drawn by inverse CDF: the lowest i whose cumulative probability exceeds the uniform."""
        return inverse_cdf(probabilities, self.uniform(t))

    def multinomial(self, t: Int[Array, ""], number: Numeric, probabilities: Float[Array, " n"]) -> Int[Array, " n"]:
        """How often each of n outcomes comes up in `number` trials at one t: int32 [n].

        At most `MAX_TRIALS` trials. By binomials of what is left (`jax.random.binomial`, float32), one after
        another on children of this stream.
        """
        left, counts = jnp.asarray(number, jnp.int32), []
        for i in range(probabilities.shape[-1] - 1):
            rest = fixed_sum(probabilities[i:])  # summed anew: outcomes of probability 0 must not come up by rounding
            share = jnp.where(rest > 0, probabilities[i] / rest, 1).astype(jnp.float32)
            trials = left.astype(jnp.float32)
            drawn = jax.random.binomial(self.child(str(i)).key(t), trials, share, dtype=jnp.float32)
            drawn = jnp.where(share < 1, jnp.clip(drawn, 0, trials), trials).astype(jnp.int32)
            counts.append(drawn)
            left = left - drawn
        return jnp.stack([*counts, left])

    def key(self, t: Int[Array, "..."]) -> Array:
        """A `jax.random` key for one play: slower than the draws above, still addressed."""
        low, high = self.words(t)
        return jax.random.wrap_key_data(jnp.stack([low, high], axis=-1), impl="threefry2x32")


def bits_of_streams(*streams: tuple[Draws, int], t: Int[Array, ""]) -> UInt32[Array, " n"]:
    """The words `draws.bits(t, (n,))` of each (draws, n), one stream after the other, all drawn in one loop.

    The streams are children of one stream: they differ in their paths alone.
    """
    blocks = [(number + 1) // 2 for _, number in streams]
    seed, names = zip(*(draws._key() for draws, _ in streams), strict=True)
    counter = streams[0][0]._play(t), np.concatenate([np.arange(number, dtype=np.uint32) for number in blocks])
    words = materialize_all(threefry2x32((seed[0], np.repeat(names, blocks)), counter))
    parts = zip(*(jnp.split(word, np.cumsum(blocks)[:-1]) for word in words), strict=True)
    return jnp.concatenate([_entries(part, (number,)) for part, (_, number) in zip(parts, streams, strict=True)])

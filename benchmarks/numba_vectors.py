"""What loops over lanes in vectors share: a generator, a logarithm, an exponential.

A block of `LANES` lanes is played together, one short loop over the lanes a step, so that each compiles to vectors
and its arrays stay in the first-level cache. A branch is written as a choice between two values that were both read
before: a value read inside a branch is not vectorised. What belongs to the played arm is gathered and scattered lane
by lane, which is cheaper than a mask over all arms.
"""

import math

import numba as nb
import numpy as np
from numba_loops import _INLINE, F32, U32, U64, _mix64

I32 = np.int32
LANES = 64


@nb.njit(**_INLINE)
def seed_words(state, seed, block):
    """Fill the state [4, n] of n generators; `block` tells apart what has the same seed."""
    n = state.shape[1]
    for j in range(4):
        for i in range(n):
            place = U64((block * 4 + j) * n + i + 1)
            state[j, i] = U32(_mix64(U64(seed) * U64(0xD1342543DE82EF95) + place * U64(0x9E3779B97F4A7C15)) >> U64(32))


@nb.njit(**_INLINE)
def words(state, out):
    """One word of each of n generators xoshiro128+ (Blackman and Vigna 2018); its lowest bits are weak."""
    for i in range(out.shape[0]):
        a, b, c, d = state[0, i], state[1, i], state[2, i], state[3, i]
        out[i] = U32(a + d)
        shifted = U32(b << U32(9))
        c, d = U32(c ^ a), U32(d ^ b)
        b, a = U32(b ^ c), U32(a ^ d)
        c = U32(c ^ shifted)
        state[0, i], state[1, i], state[2, i] = a, b, c
        state[3, i] = U32(U32(d << U32(11)) | U32(d >> U32(21)))


@nb.njit(**_INLINE)
def uniform(word):
    """[0, 1) from the upper 24 bits."""
    return F32(I32(U32(word) >> U32(8))) * F32(2.0**-24)


@nb.njit(**_INLINE)
def positive_uniform(word):
    """(0, 1) from the upper 23 bits."""
    return (F32(I32(U32(word) >> U32(9))) + F32(0.5)) * F32(2.0**-23)


@nb.njit(**_INLINE)
def exp(x):
    """The exponential of a number in [-87, 87], by Cephes' polynomial."""
    scaled = x * F32(1.44269504)
    n = I32(I32(scaled + F32(192.5)) - I32(192))
    r = x - F32(n) * F32(0.693147182)
    p = F32(1.9875691500e-4)
    p = p * r + F32(1.3981999507e-3)
    p = p * r + F32(8.3334519073e-3)
    p = p * r + F32(4.1665795894e-2)
    p = p * r + F32(1.6666665459e-1)
    p = p * r + F32(5.0000001201e-1)
    p = p * r * r + r + F32(1)
    return p * I32(I32(n + I32(127)) << I32(23)).view(F32)


def whole_blocks(lanes):
    """How many blocks hold `lanes` lanes."""
    return math.ceil(lanes / LANES)

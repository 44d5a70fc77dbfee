"""The largest mean q with d(p, q) <= level, d the Kullback-Leibler divergence of Bernoulli laws."""

import jax.numpy as jnp

from jaxbandits.typing import Array, Float

# Steps of Halley's method. One leaves an error of 3e-5, two of 4e-15 in exact arithmetic, at every mean and level.
HALLEY_STEPS = 2
LEAST_ROOM = 1e-30  # in place of 1 - p where p is 1


def rise(mean: Float[Array, "..."], level: Float[Array, "..."]) -> Float[Array, "..."]:
    """-ln((1 - q) / (1 - mean)) for the largest q in [mean, 1] with d(mean, q) <= level.

    In this variable w the divergence d is convex, quadratic at 0 and linear far out, and the start is right to third
    order at 0. d is a difference of nearly equal terms, so small arguments of exp and log take their series.
    `jnp.log1p` and `jnp.expm1` would not do: their last bit may depend on how many values are computed at once.
    """
    rest, p = 1 - mean, jnp.maximum(mean, 1e-15)
    bent = (4 - 2 * mean) / 3 * level
    w = (bent + jnp.sqrt(bent * bent + 8 * rest * mean * level)) / jnp.maximum(2 * rest, 1e-30)
    for _ in range(HALLEY_STEPS):
        series = w * (1 - w * (1 / 2) * (1 - w * (1 / 3) * (1 - w * (1 / 4) * (1 - w * (1 / 5)))))
        share = jnp.where(w < 0.125, series, 1 - jnp.exp(-w))
        x = rest * share  # q - mean
        y = x / p
        power = y * (1 - y * (1 / 2 - y * (1 / 3 - y * (1 / 4 - y * (1 / 5 - y * (1 / 6 - y * (1 / 7)))))))
        value = rest * w - p * jnp.where(y < 0.125, power, jnp.log(1 + y)) - level
        slope = x / (p + x)
        bend = p * rest * (1 - share) / ((p + x) * (p + x))
        w = jnp.maximum(w - 2 * value * slope / jnp.maximum(2 * slope * slope - value * bend, 1e-30), 0)
    return w


def room_above(mean: Float[Array, "..."], level: Float[Array, "..."]) -> Float[Array, "..."]:
    """1 - q for the largest q in [mean, 1] with d(mean, q) <= level; mean in [0, 1], level >= 0, any equal shapes."""
    return (1 - mean) * jnp.exp(-rise(mean, level))


def largest_mean(p: Float[Array, "..."], level: Float[Array, "..."]) -> Float[Array, "..."]:
    """-log(1 - q) for the largest q in [p, 1] with d(p, q) <= level; p in [0, 1], inf at 1.

    On this scale indices close to 1 stay apart in float32.
    """
    return jnp.where(p < 1, rise(p, level) - jnp.log(jnp.maximum(1 - p, LEAST_ROOM)), jnp.inf)

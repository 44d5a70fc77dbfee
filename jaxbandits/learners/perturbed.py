"""How likely a perturbed leader is: the probability that arm i minimises Lhat_i + Laplace noise, by quadrature."""

import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics import fixed_sum, one_hot

EDGES = np.array([-18, -9, -5, -3, -1.5, 0, 0.75, 1.5, 3, 5, 9, 18])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def leader_probability(gaps, arm):
    """P(arm = argmin_j g_j + Lap(1)) for gaps g [K] >= 0 with minimum 0: a number in [0, 1].

    The integral of the arm's density times the other arms' survival functions, 8 Gauss nodes on each of 12 panels; the arm's own
    gap, where its density has a cusp, is a panel edge. Relative error below 2e-4 where the probability is at least 1e-4.
    """
    dtype = gaps.dtype
    cusp = jnp.minimum(gaps[arm], 18)
    low = np.concatenate([[-np.inf], EDGES]).astype(dtype)
    high = np.concatenate([EDGES, [np.inf]]).astype(dtype)
    edges = jnp.clip(cusp, low, high)  # EDGES with the cusp inserted in order
    half = (edges[1:] - edges[:-1]) / 2
    y = (edges[1:] + edges[:-1])[:, None] / 2 + half[:, None] * NODES.astype(dtype)
    weight = half[:, None] * WEIGHTS.astype(dtype)
    distance = y.reshape(-1, 1) - gaps
    tail = 0.5 * jnp.exp(-jnp.abs(distance))
    survival = jnp.where(distance < 0, 1 - tail, tail)
    factors = jnp.where(one_hot(arm, gaps.shape[-1]), tail, survival)
    return jnp.clip(fixed_sum(_product(factors) * weight.reshape(-1)), 0, 1)


def _product(x):
    """Product over the last axis in a fixed order, by halves."""
    while x.shape[-1] > 1:
        n, half = x.shape[-1], x.shape[-1] // 2
        x = (
            jnp.concatenate([x[..., :half] * x[..., half : 2 * half], x[..., 2 * half :]], axis=-1)
            if n % 2
            else x[..., :half] * x[..., half:]
        )
    return x[..., 0]

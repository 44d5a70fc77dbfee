"""How likely a perturbed leader is: the probability that arm i minimises Lhat_i + Laplace noise, by quadrature."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.numerics import UNROLL, fixed_sum, materialize
from jaxbandits.typing import Array, Float, Int

EDGES = np.array([-18, -9, -5, -3, -1.5, 0, 0.75, 1.5, 3, 5, 9, 18])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
MAX_GAP = 60  # no perturbation makes up for a gap this large, and float32 still holds its exponential


def leader_probability(gaps: Float[Array, " K"], arm: Int[Array, ""]) -> Float[Array, ""]:
    """P(arm = argmin_j g_j + Lap(1)) for gaps g >= 0 with minimum 0: a number in [0, 1].

    The integral of the arm's density times the other arms' survival functions, 8 Gauss nodes on each of 12
    panels; the arm's own gap, where its density has a cusp, is a panel edge. Relative error below 2e-4 where
    the probability is at least 1e-4.
    """
    dtype = gaps.dtype
    cusp = materialize(jnp.minimum(gaps[arm], 18))
    low = np.concatenate([[-np.inf], EDGES]).astype(dtype)
    high = np.concatenate([EDGES, [np.inf]]).astype(dtype)
    edges = jnp.clip(cusp, low, high)  # EDGES with the cusp inserted in order
    half = (edges[1:] - edges[:-1]) / 2
    y = ((edges[1:] + edges[:-1])[:, None] / 2 + half[:, None] * NODES.astype(dtype)[None]).reshape(-1)
    # exponentials of nodes and of gaps, 96 + K of them, and products of the two instead of 96 K exponentials of
    # differences
    up, gap_up = jnp.exp(y), materialize(jnp.exp(jnp.minimum(gaps, MAX_GAP)))
    down, gap_down = 1 / up, materialize(1 / gap_up)
    value = (half[:, None] * WEIGHTS.astype(dtype)[None]).reshape(-1)

    def survive(j, value):
        ratio = up * gap_down[j]  # below 1 where the node is below the gap
        tail = 0.5 * jnp.minimum(ratio, down * gap_up[j])
        return value * jnp.where(ratio < 1, 1 - tail, tail)

    if gaps.shape[0] <= UNROLL:
        for j in range(gaps.shape[0]):
            value = survive(j, value)
    else:
        value = lax.fori_loop(0, gaps.shape[0], survive, value)
    ratio = up * gap_down[arm]
    value = value * jnp.where(ratio < 1, ratio / (2 - ratio), 1)  # the arm's own: its density instead
    # two materialized stages: fused with the integrand, the sums run over lanes one by one (measured: 4 times slower)
    by_panel = materialize(fixed_sum(materialize(value.reshape(len(EDGES), len(NODES))), axis=0))
    return jnp.clip(fixed_sum(by_panel), 0, 1)

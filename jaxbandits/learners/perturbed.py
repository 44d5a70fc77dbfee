"""How likely a perturbed leader is: the probability that arm i minimises Lhat_i + Laplace noise, by quadrature.

Axes: [K] arms, [N] panels, [8] nodes of a panel, [...] lanes, last, so that every loop is one over lanes in full
vectors.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.numerics import UNROLL, columns, fixed_sum, lanes_last, materialize
from jaxbandits.numerics.few import at_the_few
from jaxbandits.typing import Array, Bool, DType, Float, Int

# Above 0, the least gap, panels lie between these; beyond the last the integrand is nothing.
EDGES = np.array([0, 0.75, 1.5, 3, 5, 9, 18])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
MAX_GAP = 60  # no perturbation makes up for a gap this large, and float32 still holds its exponential


def leader_probability(
    gaps: columns.Columns, arm: Int[Array, ""], wanted: Bool[Array, ""] | bool = True
) -> Float[Array, ""]:
    """P(arm = argmin_j g_j + Lap(1)) for gaps g >= 0 with minimum 0: a number in [0, 1], 1 where it is not `wanted`.

    The integral of the arm's density times the other arms' survival functions, 8 Gauss nodes on each panel; the arm's
    own gap, where its density has a cusp, is a panel edge. Below 0 the integrand is a polynomial in e^y of degree less
    than K, which 8 nodes integrate exactly up to 16 arms. Relative error below 2e-4 where the probability is at least
    1e-4. Only lanes that want their probability cost anything.
    """
    return _at_those(jnp.asarray(wanted), columns.from_array(gaps), arm)


@lanes_last
def _at_those(wanted, gaps, arm):
    gaps, lanes = columns.together(gaps), jnp.shape(arm)
    flat = gaps.reshape(len(gaps), -1), arm.reshape(1, -1)
    nothing = jnp.ones(flat[1].shape, gaps.dtype)
    return at_the_few(wanted.reshape(-1), _integral, nothing, *flat).reshape(lanes)


def below_zero(num_arms: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes z = e^y in (0, 1) and their weights over the measure dy: [N, 8]. Many arms leave little but small z."""
    edges = np.array([0, 1] if num_arms <= UNROLL else [0, 16 / num_arms, 1])
    half = (edges[1:] - edges[:-1])[:, None] / 2
    z = (edges[1:] + edges[:-1])[:, None] / 2 + half * NODES[None]
    return z, half * WEIGHTS[None] / z


def array_of_literals(x: np.ndarray, dtype: DType) -> Array:
    """An array out of scalar literals: an array that is itself a constant breaks `custom_vmap` inside of `lax.cond`."""
    return jnp.stack([jnp.full((), value, dtype) for value in x.ravel().tolist()]).reshape(x.shape)


def _integral(_, gaps, arm):
    """`leader_probability` [1, M] of gaps [K, M] and arms [1, M]."""
    number, dtype = len(gaps), gaps.dtype
    own = arm == lax.broadcasted_iota(jnp.int32, gaps.shape, 0)
    cusp = materialize(jnp.minimum(fixed_sum(jnp.where(own, gaps, 0), axis=0), EDGES[-1].astype(dtype)))
    gap_up = materialize(jnp.exp(jnp.minimum(gaps, MAX_GAP)))
    gap_down = materialize(0.5 / gap_up)
    own_down = materialize(fixed_sum(jnp.where(own, gap_down, 0), axis=0))

    def times_survivals(value, survival):
        """value [N, 8, M] times all arms' survival functions."""
        if number > UNROLL:
            return lax.fori_loop(0, number, lambda j, value: value * survival(j), value)
        for j in range(number):
            value = value * survival(j)
        return value

    def sum_in_stages(value):  # in two materialized stages: fused with the integrand, sums run over lanes one by one
        return fixed_sum(materialize(fixed_sum(materialize(value), axis=1)), axis=0)

    # below 0, where e^(y - g) is below 1 for all arms
    z, weights = (array_of_literals(x, dtype)[..., None] for x in below_zero(number))
    ratio = z * own_down[None, None]
    below = sum_in_stages(times_survivals(weights * ratio / (1 - ratio), lambda j: 1 - z * gap_down[j][None, None]))

    # above 0
    low = array_of_literals(np.concatenate([[-np.inf], EDGES]), dtype)[:, None]
    high = array_of_literals(np.concatenate([EDGES, [np.inf]]), dtype)[:, None]
    edges = jnp.clip(cusp[None], low, high)  # EDGES with the cusp inserted in order
    half = (edges[1:] - edges[:-1])[:, None] / 2
    y = (edges[1:] + edges[:-1])[:, None] / 2 + half * array_of_literals(NODES, dtype)[None, :, None]
    up = materialize(jnp.exp(y))
    down = 0.5 / up

    def survival(j):
        # r = e^(y - g): 1 - r / 2 where r < 1, and 1 / (2 r) elsewhere, the larger of the two when the second is cut
        # at 1 / 2
        inside, outside = 1 - up * gap_down[j][None, None], down * gap_up[j][None, None]
        outside = jnp.where(outside < 0.5, outside, 0.5)
        return jnp.where(inside > outside, inside, outside)

    ratio = up * own_down[None, None]
    density = jnp.where(ratio < 0.5, ratio / (1 - ratio), 1)  # over survival
    above = sum_in_stages(times_survivals(half * array_of_literals(WEIGHTS, dtype)[None, :, None] * density, survival))
    return jnp.clip(below + above, 0, 1)[None]

"""Groups drawn at random for a median of means."""

import jax.numpy as jnp

from jaxbandits.numerics import count
from jaxbandits.validation import integer


def random_groups(uniforms, num_groups):
    """The group of each of N points, all splits into groups of sizes within one of each other equally likely.

    uniforms: [N] independent uniforms, which decide (the caller's, addressed: nothing here draws). num_groups in [1, N], a host number.
    Returns int32 [N]: the point with the r-th smallest uniform goes to group r mod num_groups, ties to the lower index. Raises ValueError otherwise.
    Source: specification of Byzantine-robust federated bandits, section 3 (median of means: P = 3 N_1 groups, drawn once).

    >>> import jax.numpy as jnp
    >>> random_groups(jnp.array([0.9, 0.1, 0.5, 0.3, 0.7]), 2).tolist()
    [0, 0, 0, 1, 1]
    """
    uniforms = jnp.asarray(uniforms)
    if uniforms.ndim != 1 or uniforms.shape[0] == 0:
        raise ValueError(f"uniforms has shape {uniforms.shape}; it must be [N] with N >= 1: use vmap for leading axes")
    n = uniforms.shape[0]
    return groups_of(uniforms, integer("num_groups", num_groups, 1, n, remedy="a group has at least one point"))


def groups_of(uniforms, num_groups):
    """`random_groups` for step code, where the int32 number of groups is data."""
    index = jnp.arange(len(uniforms), dtype=jnp.int32)
    before = (uniforms < uniforms[:, None]) | ((uniforms == uniforms[:, None]) & (index < index[:, None]))
    return count(before) % num_groups

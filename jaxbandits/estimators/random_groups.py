"""Groups drawn at random for a median of means."""

from typing import Any

import jax.numpy as jnp

from jaxbandits.estimators._inputs import of_axes
from jaxbandits.numerics import count
from jaxbandits.typing import Array, Float, Int, Vector
from jaxbandits.validation import checked, integer


@checked(source="`docs/formulas/byzantine.md#median-of-means`.")
def random_groups(uniforms: Vector, num_groups: int) -> Int[Array, " N"]:
    """The group of each of N points, every split into groups of nearly equal sizes being equally likely.

    Parameters
    ----------
    uniforms : array of shape [N]
        Independent uniform variables, which decide. The caller draws them: nothing is drawn here.
    num_groups
        Number of groups, from 1 to N. A host number.

    Returns
    -------
    int32 array of shape [N]
        The point with the r-th smallest uniform, r counted from 0, is in group r mod num_groups. Sizes differ by at
        most one.

    Raises
    ------
    ValueError
        If `uniforms` has another shape, or `num_groups` lies outside its range.

    Notes
    -----
    Of equal uniforms that of lower index counts as smaller.

    >>> import jax.numpy as jnp
    >>> random_groups(jnp.array([0.9, 0.1, 0.5, 0.3, 0.7]), 2).tolist()
    [0, 0, 0, 1, 1]
    """
    drawn = of_axes("uniforms", uniforms, "[N]", " with N >= 1")
    most = drawn.shape[0]
    return groups_of(drawn, integer("num_groups", num_groups, 1, most, remedy="a group has at least one point"))


def groups_of(uniforms: Float[Array, " N"], num_groups: Any) -> Int[Array, " N"]:
    """`random_groups` without checks, where the int32 number of groups may be traced."""
    index = jnp.arange(len(uniforms), dtype=jnp.int32)
    row, column = (uniforms[None], index[None]), (uniforms[:, None], index[:, None])
    before = (row[0] < column[0]) | ((row[0] == column[0]) & (row[1] < column[1]))
    return count(before) % num_groups

"""The spectral filter as a kernel over lanes: one lane of XLA's form, whose arrays are written over in place."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits.estimators.spectral_filter import FilteredBlocks, as_xla, whole_batch
from jaxbandits.kernels import over_lanes


@lru_cache(maxsize=64)
def one_lane_filter(history: int) -> Callable[..., FilteredBlocks]:
    """The filter of one lane; arguments as those of `as_xla`, without the axis of lanes."""

    def of_lane(*args: Any) -> FilteredBlocks:
        found = whole_batch(history, *jax.tree.map(lambda x: x[None], args), tiles=False)
        return jax.tree.map(lambda x: x[0], found)

    return of_lane


def form(about: tuple[int, Any], shapes: Sequence[Any], platform: str, kind: str) -> Callable[..., list[Any]]:
    """The kernel on a GPU; elsewhere XLA's operations without the tiles that a CPU's cache wants.

    about: the length of the history of eigenvalues, the structure of the arguments. Lanes lead.
    """
    history, treedef = about
    behind = [jax.ShapeDtypeStruct((*x.shape[1:], x.shape[0]), x.dtype) for x in shapes]
    kernel = over_lanes.form((one_lane_filter(history), 1, treedef), behind, platform, kind)
    if kernel is None:
        function = partial(as_xla, history, tiles=False)
        return lambda *leaves: jax.tree.leaves(function(*jax.tree.unflatten(treedef, leaves)))
    return lambda *leaves: [jnp.moveaxis(x, -1, 0) for x in kernel(*(jnp.moveaxis(x, 0, -1) for x in leaves))]

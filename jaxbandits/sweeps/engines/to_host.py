"""Results on their way from a device to the host, while the device plays on.

A card copies by itself once it is asked to. Into memory that stays in its place (page-locked, JAX's kind `pinned_host`)
it does so without a copy on the way, and pages are not taken anew for every call. A machine has little of that.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

THERE = ("cpu",)  # platforms whose arrays are in the memory of the host
PINNED = "pinned_host"
PINNED_BYTES = 1 << 28  # of one call; three of a device are under way at most
_refused = set[jax.Device]()  # devices for which the machine gave none


# docs/decisions.md#results-on-their-way
def send_to_host(tree: Any, device: jax.Device) -> Callable[[], Any]:
    """Begin to copy a device's arrays to the host. What is returned waits for them: NumPy arrays, perhaps read-only."""
    if device.platform in THERE:
        return partial(jax.tree.map, np.asarray, tree)
    locked = _send_to_locked(tree, device)
    for x in jax.tree.leaves(tree if locked is None else locked):
        x.copy_to_host_async()

    def arrive() -> Any:
        if locked is not None:
            try:
                return jax.tree.map(np.asarray, locked)
            except jax.errors.JaxRuntimeError:
                _refused.add(device)
        return jax.tree.map(np.asarray, tree)

    return arrive


def _send_to_locked(tree: Any, device: jax.Device) -> Any:
    """The arrays in page-locked memory; None where they are too many, or the machine gives none."""
    kinds = {memory.kind for memory in device.addressable_memories()}
    if PINNED not in kinds or device in _refused or sum(x.nbytes for x in jax.tree.leaves(tree)) > PINNED_BYTES:
        return None
    try:
        with jax.enable_x64(True):  # otherwise float64 becomes float32
            return jax.device_put(tree, jax.sharding.SingleDeviceSharding(device, memory_kind=PINNED))
    except (ValueError, jax.errors.JaxRuntimeError):
        _refused.add(device)
        return None

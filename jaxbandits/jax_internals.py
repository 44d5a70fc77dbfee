"""Everything that comes from JAX's private rooms (`jax._src`, `jax.interpreters`), and why. No other file goes there.

A release of JAX may move any of it: `tests/engine/test_jax_internals.py` has a test for each and names what is gone.
`jax.extend` is JAX's door for libraries, and may be used anywhere.
"""

import functools
import pickle
import types
from typing import Any

import jax
from jax._src import compilation_cache

# Whether JAX was used in this process, which a process that is forked then does not survive.
from jax._src.xla_bridge import backends_are_initialized

# XLA leaves out by itself what nothing reads, but jax 0.10.2 dies of some of it (docs/decisions.md#unread).
from jax.interpreters.partial_eval import dce_jaxpr

# An operation of our own (`jax.extend.core.Primitive`) has its rules for derivatives, `vmap` and lowering nowhere else.
from jax.interpreters import ad  # isort: skip
from jax.interpreters.batching import primitive_batchers  # isort: skip
from jax.interpreters.mlir import lower_fun, register_lowering  # isort: skip

__all__ = ["ad", "backends_are_initialized", "dce_jaxpr", "lower_fun", "primitive_batchers", "register_lowering"]

# What JAX's pickle of a compiled program is made of (jax 0.10 to 0.12).
CLASSES_OF_A_PROGRAM = {
    ("jax", "P"),
    ("jax._src.core", "ManualAxisType"),
    ("jax._src.core", "MemorySpace"),
    ("jax._src.core", "ShapedArray"),
    ("jax._src.interpreters.pxla", "AllArgsInfo"),
    ("jax._src.interpreters.pxla", "UnloadedMeshExecutable"),
    ("jax._src.layout", "Layout"),
    ("jax._src.linear_util", "DebugInfo"),
    ("jax._src.mesh", "AbstractMesh"),
    ("jax._src.named_sharding", "_unpickle_named_sharding"),
    ("jax._src.sharding_impls", "_unpickle_single_device_sharding"),
    ("jax._src.stages", "ArgInfo"),
    ("jaxlib._jax", "DeviceList"),
    ("numpy", "dtype"),
}


def load_program(content: bytes, inputs: Any, outputs: Any, device: jax.Device) -> Any:
    """A compiled program that `jax.experimental.serialize_executable.serialize` has written out.

    JAX unpickles it, and a pickle calls whatever it names. So JAX's function runs with an unpickler that admits only
    `CLASSES_OF_A_PROGRAM`; UnpicklingError for others.
    """
    return _strict_loader()(content, inputs, outputs, execution_devices=[device])


@functools.cache
def _strict_loader() -> Any:
    from jax.experimental import serialize_executable  # only where programs are kept on disk

    class Unpickler(serialize_executable._JaxPjrtUnpickler):
        def find_class(self, module: str, name: str) -> Any:
            if (module, name) not in CLASSES_OF_A_PROGRAM:
                raise pickle.UnpicklingError(f"{module}.{name} is no part of a compiled program")
            return super().find_class(module, name)

    theirs = serialize_executable.deserialize_and_load
    names = vars(serialize_executable) | {"_JaxPjrtUnpickler": Unpickler}
    return types.FunctionType(theirs.__code__, names, argdefs=theirs.__defaults__)


def replace_cache(files: Any = None) -> None:
    """Let JAX's cache of compiled programs read and write through an object with `get` and `put`; None: through JAX's.

    JAX looks at its settings once, and its own would read whatever lies in a folder.
    """
    compilation_cache.reset_cache()
    if files is not None:
        compilation_cache._cache = files


def triton_calls() -> Any:
    """jaxlib's handler for the PTX of Triton's kernels, which no public module has. JAX's plugin for CUDA brings it."""
    from jax._src.lib import gpu_triton

    return gpu_triton

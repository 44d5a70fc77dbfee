"""How a kernel is called inside of a program: by one of two routes on a GPU, or by the C compiler's code on a CPU.

Route one is XLA's own target for PTX, which becomes an ordinary kernel of XLA's program. Route two is the handler that
jaxlib keeps for Triton's PTX. Neither is promised by a release, so a kernel of one line is run by each, once a process,
and the first that runs it is taken; where none does, plays are scanned.
"""

import contextlib
import logging
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.kernels import by_cc, nvrtc
from jaxbandits.kernels.forms import Form, forced_form, has_kernels
from jaxbandits.kernels.source import BLOCK, Argument, Source, kernel

Outs = Sequence[jax.ShapeDtypeStruct]
WARP = 32  # threads that a GPU starts together


class NoRoute(RuntimeError):
    """No kernel runs on this machine's GPU."""


class Launch(NamedTuple):
    """A kernel that is compiled, and how many threads run it."""

    name: str
    ptx: str
    capability: int
    blocks: int
    threads: int  # of a block


def _by_xla(launch: Launch, inputs: Sequence[Any], outs: Outs, aliases: dict[int, int]) -> list[Any]:
    sizes = {"grid_x": launch.blocks, "block_x": launch.threads, "shared_mem_bytes": 0}
    sizes |= dict.fromkeys(("grid_y", "grid_z", "block_y", "block_z"), 1)
    attributes: dict[str, Any] = {name: np.int32(size) for name, size in sizes.items()}
    attributes |= {"name": launch.name, "kernel_type": "ptx", "kernel_data": launch.ptx}
    # said outright: then no release passes a buffer once that is an operand and a result
    attributes["output_indices"] = tuple(np.int32(len(inputs) + k) for k in range(len(outs)))
    call = jax.ffi.ffi_call("__gpu$xla.gpu.ptx", list(outs), input_output_aliases=aliases)
    return list(call(*inputs, **attributes))


def _by_jaxlib(launch: Launch, inputs: Sequence[Any], outs: Outs, aliases: dict[int, int]) -> list[Any]:
    from jax._src.lib import gpu_triton  # no public module has it; it comes with JAX's plugin for CUDA

    alignment = 16  # bytes, of every buffer
    triton: Any = gpu_triton
    kernel = triton.TritonKernel(launch.name, launch.threads // WARP, 1, 0, launch.ptx, "", launch.capability)
    parameters = [triton.create_array_parameter(0, alignment)] * (len(inputs) + len(outs))
    call = triton.TritonKernelCall(kernel, launch.blocks, 1, 1, parameters)
    attributes = {"name": launch.name, "opaque": zlib.compress(call.to_proto(launch.name, b""))}
    function = jax.ffi.ffi_call("triton_kernel_call_ffi", list(outs), input_output_aliases=aliases)
    return list(function(*inputs, **attributes))


ROUTES: dict[str, Callable[[Launch, Sequence[Any], Outs, dict[int, int]], list[Any]]] = {
    "XLA's target for PTX": _by_xla, "jaxlib's handler for PTX": _by_jaxlib,
}  # fmt: skip


class Gpu(NamedTuple):
    """What kernels are compiled for, and how they are called."""

    capability: int  # 75 for 7.5
    route: str
    ptx: Callable[[str, int], str] = nvrtc.ptx

    def call(
        self, source: Source, lanes: tuple[int, int], inputs: Sequence[Any], outs: Outs, aliases: dict[int, int]
    ) -> list[Any]:
        """What a kernel gives for lanes [S, M]."""
        threads = min(BLOCK, -(-lanes[0] // WARP) * WARP)
        blocks = -(-lanes[0] // threads) * lanes[1]
        ptx = self.ptx(source.text, self.capability)
        return ROUTES[self.route](Launch(source.name, ptx, self.capability, blocks, threads), inputs, outs, aliases)


def call(
    source: Source, lanes: tuple[int, int], inputs: Sequence[Any], outs: Outs, aliases: dict[int, int], form: Form
) -> list[Any]:
    """What a kernel gives for lanes [S, M], where a program has it traced.

    aliases: which results lie in the memory of which inputs.
    """
    if form == "cc":
        return by_cc.call(source, inputs, list(outs), aliases)
    gpu = here()
    if gpu is None:
        raise NoRoute("no kernel runs on this machine")
    return gpu.call(source, lanes, [jnp.asarray(x) for x in inputs], outs, aliases)


def form_on(device: Any) -> Form:
    """The form on a device: kernels on a GPU that runs them, elsewhere the scan over plays."""
    return forced_form() or ("kernel" if has_kernels(device) and here() else "scan")


def asked(platform: str, kind: str) -> bool:
    """Whether `numerics.device_forms` asks for a kernel that can be made."""
    return kind == "cc" or (kind == "kernel" and platform == "cuda" and here() is not None)


# ---- which route

_lock = threading.Lock()
_absent: Gpu | None = None
_here: list[Gpu | None] = []


@contextlib.contextmanager
def absent_gpu(capability: int = 90, *, ptx: Callable[[str, int], str] = nvrtc.ptx) -> Iterator[None]:
    """Inside, programs are lowered for a GPU that is not here. ptx: the compiler, given a text and the capability."""
    global _absent
    before, _absent = _absent, Gpu(capability, next(iter(ROUTES)), ptx)
    try:
        yield
    finally:
        _absent = before


def here() -> Gpu | None:
    """How kernels are called on this machine's GPU, found out once; None where none runs, which is warned of once."""
    if _absent is not None:
        return _absent
    with _lock:
        if not _here:
            with ThreadPoolExecutor(1) as thread:  # another thread traces nothing now
                _here.append(thread.submit(_found).result())
    return _here[0]


def _found() -> Gpu | None:
    devices = [device for device in jax.local_devices() if has_kernels(device)]
    if not devices:
        return None
    capability = min(round(10 * float(device.compute_capability)) for device in devices)
    failed = []
    for route in ROUTES:
        gpu = Gpu(capability, route)
        try:
            if _runs(gpu, devices[0]):
                logging.getLogger(__name__).info("kernels for %s run by %s", devices[0].device_kind, route)
                return gpu
            failed.append(f"{route} gives wrong numbers")
        except Exception as error:
            failed.append(f"{route}: {(str(error).splitlines() or [type(error).__name__])[0]}")
    warnings.warn(
        f"no kernel runs on {devices[0].device_kind}, so plays are scanned, which is slower: {'; '.join(failed)}",
        RuntimeWarning, stacklevel=2,
    )  # fmt: skip
    return None


def one_line() -> Source:
    """A kernel that adds 1 to a number of every lane."""
    arguments = [Argument("limits", "int32"), Argument("x", "int32"), Argument("y", "int32", result=True)]
    return kernel("one_line", arguments, "  y[lane] = x[lane] + 1;")


def _runs(gpu: Gpu, device: jax.Device) -> bool:
    """Whether a kernel of one line gives what it should on a device."""
    x = np.arange(3 * BLOCK - 5, dtype=np.int32)
    limits = np.array([len(x), 1], np.int32)

    def program(limits: Any, x: Any) -> Any:
        return gpu.call(one_line(), (len(x), 1), [limits, x], [jax.ShapeDtypeStruct(x.shape, x.dtype)], {})[0]

    given = jax.device_put((limits, x), device)
    return np.array_equal(jax.jit(program)(*given), x + 1)

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
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.jax_internals import triton_calls
from jaxbandits.kernels import compilers
from jaxbandits.kernels.source import BLOCK, Source, kernel
from jaxbandits.typing import Array

PlayForm = Literal["kernel", "cc", "scan"]  # in which windows are played that can be kernels
Target = tuple[str, dict[str, Any]]  # what XLA calls, and what that is told
WARP = 32  # threads that a GPU starts together


class Gpu(NamedTuple):
    """What kernels are compiled for, and how they are called."""

    capability: int  # 75 for 7.5
    route: str
    ptx: Callable[[str, int], str] = compilers.ptx


def _grid(lanes: tuple[int, int]) -> tuple[int, int]:
    """Blocks, and threads of each."""
    threads = min(BLOCK, -(-lanes[0] // WARP) * WARP)
    return -(-lanes[0] // threads) * lanes[1], threads


def _by_xla(gpu: Gpu, source: Source, lanes: tuple[int, int], inputs: int, outs: int) -> Target:
    sizes = dict(zip(("grid_x", "block_x"), _grid(lanes), strict=True)) | {"shared_mem_bytes": 0}
    sizes |= dict.fromkeys(("grid_y", "grid_z", "block_y", "block_z"), 1)
    attributes: dict[str, Any] = {name: np.int32(size) for name, size in sizes.items()}
    attributes |= {"name": source.name, "kernel_type": "ptx", "kernel_data": gpu.ptx(source.text, gpu.capability)}
    # said outright: then no release passes a buffer once that is an operand and a result
    attributes["output_indices"] = tuple(np.int32(inputs + k) for k in range(outs))
    return "__gpu$xla.gpu.ptx", attributes


def _by_jaxlib(gpu: Gpu, source: Source, lanes: tuple[int, int], inputs: int, outs: int) -> Target:
    alignment = 16  # bytes, of every buffer
    blocks, threads = _grid(lanes)
    triton = triton_calls()
    ptx = gpu.ptx(source.text, gpu.capability)
    kernel = triton.TritonKernel(source.name, threads // WARP, 1, 0, ptx, "", gpu.capability)
    parameters = [triton.create_array_parameter(0, alignment)] * (inputs + outs)
    call = triton.TritonKernelCall(kernel, blocks, 1, 1, parameters)
    opaque = zlib.compress(call.to_proto(source.name, b""))
    return "triton_kernel_call_ffi", {"name": source.name, "opaque": opaque}


ROUTES: dict[str, Callable[[Gpu, Source, tuple[int, int], int, int], Target]] = {
    "XLA's target for PTX": _by_xla,
    "jaxlib's handler for PTX": _by_jaxlib,
}


def call_kernel(
    source: Source, lanes: tuple[int, int], inputs: Sequence[Any], outs: Sequence[jax.ShapeDtypeStruct],
    aliases: dict[int, int], on: PlayForm | Gpu,
) -> list[Any]:  # fmt: skip
    """What a kernel gives for lanes [S, M], where a program has it traced.

    aliases: which results lie in the memory of which inputs.
    """
    gpu = here() if on == "kernel" else on
    if gpu is None:
        raise RuntimeError("no kernel runs on this machine")
    if isinstance(gpu, Gpu):
        target, attributes = ROUTES[gpu.route](gpu, source, lanes, len(inputs), len(outs))
    else:
        target, attributes = compilers.by_cc(source), {}
    function = jax.ffi.ffi_call(target, list(outs), input_output_aliases=aliases)
    return list(function(*map(jnp.asarray, inputs), **attributes))


_form_override: PlayForm | None = None


@contextlib.contextmanager
def force_form(form: PlayForm) -> Iterator[None]:
    """Inside, every device plays in one form, to compare them.

    "cc" plays on a CPU, in code of the system's C compiler, what a GPU would play by kernels.
    """
    global _form_override
    before, _form_override = _form_override, form
    try:
        yield
    finally:
        _form_override = before


def has_kernels(device: jax.Device) -> bool:
    """Whether kernels are made for a device: a GPU that takes PTX."""
    return device.platform in ("gpu", "cuda") and "rocm" not in device.client.platform_version.lower()


def form_on(device: jax.Device) -> PlayForm:
    """The form on a device: kernels on a GPU that runs them, elsewhere the scan over plays."""
    return _form_override or ("kernel" if has_kernels(device) and here() else "scan")


def wants_kernel(platform: str, kind: str) -> bool:
    """Whether `numerics.device_forms` asks for a kernel that can be made."""
    return kind == "cc" or (kind == "kernel" and platform == "cuda" and here() is not None)


# ---- which route

_lock = threading.Lock()
_here: list[Gpu | None] = []


@contextlib.contextmanager
def absent_gpu(capability: int = 90, *, ptx: Callable[[str, int], str] = compilers.ptx) -> Iterator[None]:
    """Inside, programs are lowered for a GPU that is not here. ptx: the compiler, given a text and the capability."""
    before, _here[:] = list(_here), [Gpu(capability, next(iter(ROUTES)), ptx)]
    try:
        yield
    finally:
        _here[:] = before


def here() -> Gpu | None:
    """How kernels are called on this machine's GPU, found out once; None where none runs, which is warned of once."""
    with _lock:
        if not _here:
            with ThreadPoolExecutor(1) as thread:  # another thread traces nothing now
                _here.append(thread.submit(_find_gpu).result())
    return _here[0]


def _find_gpu() -> Gpu | None:
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
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def trial_kernel() -> Source:
    """A kernel that adds 1 to a number of every lane."""
    arguments = ["const int* __restrict__ limits", "const int* __restrict__ x", "int* y"]
    return kernel("one_line", arguments, "  y[lane] = x[lane] + 1;")


def _runs(gpu: Gpu, device: jax.Device) -> bool:
    """Whether a kernel of one line gives what it should on a device."""
    x = np.arange(3 * BLOCK - 5, dtype=np.int32)
    limits = np.array([len(x), 1], np.int32)

    def run_trial(limits: Array, x: Array) -> Array:
        outs = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
        return call_kernel(trial_kernel(), (len(x), 1), [limits, x], outs, {}, gpu)[0]

    given = jax.device_put((limits, x), device)
    return np.array_equal(jax.jit(run_trial)(*given), x + 1)

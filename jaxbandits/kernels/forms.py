"""How a device plays the windows that can be kernels. Imports nothing that a CPU would wait for."""

import contextlib
from collections.abc import Iterator
from typing import Literal

import jax

Form = Literal["kernel", "interpreted", "scan"]
GPUS = ("gpu", "cuda", "rocm")  # what JAX calls the platform of a GPU
_forced: Form | None = None


def form_on(device: jax.Device) -> Form:
    """The form on a device: kernels on a GPU, elsewhere the scan over plays."""
    return _forced or ("kernel" if device.platform in GPUS else "scan")


@contextlib.contextmanager
def forced(form: Form) -> Iterator[None]:
    """Inside, every device plays in one form, to compare them.

    "interpreted" plays on any machine what a GPU would play by kernels. It is slow.
    """
    global _forced
    before, _forced = _forced, form
    try:
        yield
    finally:
        _forced = before


def absent_gpu(kind: str = "NVIDIA H200") -> contextlib.AbstractContextManager[object]:
    """Inside, kernels are lowered for a GPU of a kind that is not here. JAX 0.11 and later ask which one."""
    device = jax.sharding.AbstractDevice(device_kind=kind, num_cores=None, platform="gpu")
    return jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device))

"""How a device plays the windows that can be kernels. Imports nothing that a CPU would wait for."""

import contextlib
from collections.abc import Iterator
from typing import Literal

import jax

Form = Literal["kernel", "interpreted", "scan"]
GPUS = ("gpu", "cuda", "rocm")  # what JAX calls the platform of a GPU
_interpreted = False


def form_on(device: jax.Device) -> Form:
    """The form on a device: kernels on a GPU, elsewhere the scan over plays."""
    if _interpreted:
        return "interpreted"
    return "kernel" if device.platform in GPUS else "scan"


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
    """Inside, sweeps on any platform play by interpreted kernels what a GPU would play by kernels. For tests: slow."""
    global _interpreted
    before, _interpreted = _interpreted, True
    try:
        yield
    finally:
        _interpreted = before

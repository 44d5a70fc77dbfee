"""In which form windows are played that can be kernels."""

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

Form = Literal["kernel", "cc", "scan"]
GPUS = ("gpu", "cuda", "rocm")  # what JAX calls the platform of a GPU
_forced: Form | None = None


def has_kernels(device: Any) -> bool:
    """Whether kernels are made for a device: a GPU that takes PTX."""
    return device.platform in GPUS and "rocm" not in f"{device.platform} {device.client.platform_version}".lower()


def forced_form() -> Form | None:
    """The form that is forced now."""
    return _forced


@contextlib.contextmanager
def forced(form: Form) -> Iterator[None]:
    """Inside, every device plays in one form, to compare them.

    "cc" plays on a CPU, in code of the system's C compiler, what a GPU would play by kernels.
    """
    global _forced
    before, _forced = _forced, form
    try:
        yield
    finally:
        _forced = before

"""PTX of CUDA C by NVRTC, the compiler in a library that `jax[cuda12]` and `jax[cuda13]` bring. It needs no device."""

import ctypes
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("nvidia.cuda_nvrtc", "nvidia.cu13")  # of the wheels for CUDA 12 and 13
# The lowest version of PTX that knows a device of a compute capability. NVRTC writes its own version, and drivers and
# assemblers refuse those newer than themselves; what kernels say is older than all of these, but for hints.
VERSIONS = {75: "6.4", 80: "7.0", 90: "7.8"}
NEWER = re.compile(r'^\s*\.pragma "used_bytes_mask.*\n', re.MULTILINE)  # hints that PTX 8.3 brought


class Missing(RuntimeError):
    """There is no NVRTC."""


def _paths() -> list[str]:
    """Where NVRTC may lie: in wheels, or where the system finds it."""
    found: list[str] = []
    for package in PACKAGES:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or []) if spec else []:
            found += sorted(map(str, (Path(folder) / "lib").glob("libnvrtc.so.*")))
    return [*found, "libnvrtc.so.13", "libnvrtc.so.12"]


@cache
def library() -> Any:
    """NVRTC."""
    for path in _paths():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise Missing("NVRTC is not installed (pip install 'jaxbandits[cuda12]' or '[cuda13]' brings it)")


def ptx(text: str, capability: int) -> str:
    """The PTX of a text, for devices of a compute capability (75: 7.5) and later ones."""
    if capability < min(VERSIONS):
        raise Missing(f"compute capability {capability / 10} is below {min(VERSIONS) / 10}")
    target = max(x for x in VERSIONS if x <= capability)
    nvrtc, program = library(), ctypes.c_void_p()

    def text_by(size_of: Any, get: Any) -> str:
        size = ctypes.c_size_t()
        size_of(program, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        get(program, found)
        return found.value.decode()

    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None):
        raise RuntimeError("NVRTC makes no program")
    try:
        options = [f"--gpu-architecture=compute_{target}".encode()]
        if nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)):
            said = text_by(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
            raise RuntimeError(f"NVRTC does not compile a kernel: {said[:2000]}")
        found = text_by(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    found = NEWER.sub("", found)
    return re.sub(r"\.version \S+", f".version {VERSIONS[target]}", found, count=1)

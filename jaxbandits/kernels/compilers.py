"""The compilers of kernels, which need no device.

NVRTC makes PTX of CUDA C; it is a library that `jax[cuda12]` and `jax[cuda13]` bring. The system's C compiler takes the
same text, to see on a CPU what a GPU would compute.
"""

import contextlib
import ctypes
import importlib.util
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax

from jaxbandits.kernels.source import Source

# The lowest version of PTX that knows a device of a compute capability. NVRTC writes its own version, and drivers and
# assemblers refuse those newer than themselves; what kernels say is older than all of these, but for hints.
VERSIONS = {75: "6.4", 80: "7.0", 90: "7.8"}
OPTIONS = ("--prec-div=false",)  # floats are divided to 2 units in the last place, as XLA does on a GPU
NEWER = re.compile(r'^\s*\.pragma "used_bytes_mask.*\n', re.MULTILINE)  # hints that PTX 8.3 brought


class Missing(RuntimeError):
    """There is no NVRTC."""


@cache
def library() -> ctypes.CDLL:
    """NVRTC, from the wheels for CUDA 12 or 13, or where the system finds it."""
    spec = importlib.util.find_spec("nvidia")
    folders = map(Path, (spec.submodule_search_locations or []) if spec else [])
    wheels = sorted((str(path) for folder in folders for path in folder.glob("*/lib/libnvrtc.so.*")), reverse=True)
    for path in [*wheels, "libnvrtc.so.13", "libnvrtc.so.12"]:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(path)
    raise Missing("NVRTC is not installed (pip install 'jaxbandits[cuda12]' or '[cuda13]' brings it)")


def ptx(text: str, capability: int) -> str:
    """The PTX of a text, for devices of a compute capability (75: 7.5) and later ones."""
    if capability < min(VERSIONS):
        raise Missing(f"compute capability {capability / 10} is below {min(VERSIONS) / 10}")
    target = max(x for x in VERSIONS if x <= capability)
    nvrtc, program = library(), ctypes.c_void_p()

    def text_by(size_of: Callable[..., Any], get: Callable[..., Any]) -> str:
        size = ctypes.c_size_t()
        size_of(program, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        get(program, found)
        return found.value.decode()

    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None):
        raise RuntimeError("NVRTC makes no program")
    try:
        asked = f"--gpu-architecture=compute_{target}", *OPTIONS
        options = (ctypes.c_char_p * len(asked))(*(x.encode() for x in asked))
        if nvrtc.nvrtcCompileProgram(program, len(options), options):
            said = text_by(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
            raise RuntimeError(f"NVRTC does not compile a kernel: {said[:2000]}")
        found = text_by(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    found = NEWER.sub("", found)
    return re.sub(r"\.version \S+", f".version {VERSIONS[target]}", found, count=1)


# ---- on a CPU

# It plays one lane after another. XLA calls a function so: docs.jax.dev/en/latest/ffi.html
ENTRY = """
#include "xla/ffi/api/c_api.h"
XLA_FFI_Error* {name}(XLA_FFI_CallFrame* frame) {{
  __typeof__(frame->extension_start) asked = frame->extension_start;
  if (asked && asked->type == XLA_FFI_Extension_Metadata) {{  /* XLA asks for which of its versions this is */
    XLA_FFI_Api_Version* version = &((XLA_FFI_Metadata_Extension*)asked)->metadata->api_version;
    version->major_version = XLA_FFI_API_MAJOR;
    version->minor_version = XLA_FFI_API_MINOR;
    return NULL;
  }}
{pointers}
  for (int point = 0; point < limits[1]; ++point)
    for (int lane = 0; lane < limits[0]; ++lane) program(lane, point, {names});
  return NULL;
}}
"""
# No product is fused with a sum, and integers and floats are those of the standard.
FLAGS = ("-std=gnu11", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-shared")
_lock = threading.Lock()


def by_cc(source: Source) -> str:
    """The name by which XLA knows a kernel, which is compiled now."""
    with _lock:  # once
        return _by_cc(source)


@cache
def _by_cc(source: Source) -> str:
    inputs = sum(x.startswith("const") for x in source.arguments)
    pointers = [
        f"  {x} = ((XLA_FFI_Buffer*)frame->{f'args.args[{k}]' if k < inputs else f'rets.rets[{k - inputs}]'})->data;"
        for k, x in enumerate(source.arguments)
    ]
    names = ", ".join(x.split()[-1] for x in source.arguments)
    with tempfile.TemporaryDirectory(prefix="jaxbandits-cc-") as folder:
        path = f"{folder}/{source.name}"
        with open(f"{path}.c", "w") as file:
            file.write(source.text + ENTRY.format(name=source.name, pointers="\n".join(pointers), names=names))
        command = ["cc", *FLAGS, f"-I{jax.ffi.include_dir()}", "-o", f"{path}.so", f"{path}.c", "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"cc does not compile a kernel: {done.stderr[:2000]}")
        function = getattr(ctypes.CDLL(f"{path}.so"), source.name)
    jax.ffi.register_ffi_target(source.name, jax.ffi.pycapsule(function), platform="cpu")
    return source.name

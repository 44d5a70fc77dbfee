"""Kernels on a CPU, by the system's C compiler: the same text, to see without a GPU what a GPU would compute."""

import ctypes
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits.kernels.source import Source

# No product is fused with a sum, and integers and floats are those of the standard.
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
"""  # as XLA calls a function: docs.jax.dev/en/latest/ffi.html
FLAGS = ("-std=gnu11", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-shared")
_lock = threading.Lock()


@cache
def compiler() -> str | None:
    """The system's C compiler."""
    return shutil.which("cc")


@cache
def _folder() -> Any:
    return tempfile.TemporaryDirectory(prefix="jaxbandits-cc-")  # as long as the process


def _entry(source: Source) -> str:
    """What XLA calls: it plays one lane after another."""
    inputs, results = ([x for x in source.arguments if x.result == result] for result in (False, True))
    pointers = [
        f"  {x} = ((XLA_FFI_Buffer*)frame->{where}[{k}])->data;"
        for where, some in (("args.args", inputs), ("rets.rets", results))
        for k, x in enumerate(some)
    ]
    names = ", ".join(x.name for x in source.arguments)
    return ENTRY.format(name=source.name, pointers="\n".join(pointers), names=names)


@cache
def _registered(source: Source) -> str:
    """The name by which XLA knows a kernel, which is compiled now."""
    path = Path(_folder().name) / source.name
    Path(f"{path}.c").write_text(source.text + _entry(source))
    include = f"-I{jax.ffi.include_dir()}"
    command = [compiler() or "cc", *FLAGS, include, "-o", f"{path}.so", f"{path}.c", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"cc does not compile a kernel: {done.stderr[:2000]}")
    function = getattr(ctypes.CDLL(f"{path}.so"), source.name)
    jax.ffi.register_ffi_target(source.name, jax.ffi.pycapsule(function), platform="cpu")
    return source.name


def call(source: Source, inputs: Any, outs: list[jax.ShapeDtypeStruct], aliases: dict[int, int]) -> list[Any]:
    """What a kernel gives, in a program for a CPU."""
    with _lock:
        name = _registered(source)
    function = jax.ffi.ffi_call(name, outs, input_output_aliases=aliases)
    return list(function(*map(jnp.asarray, inputs)))

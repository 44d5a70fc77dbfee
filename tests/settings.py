"""How tests are run: the settings of every recipe of the Makefile that tests, of CI and of a plain `pytest`.

`conftest.py` imports this file before JAX, which reads its environment once. What is set outside of it stays.
"""

import os
import sys
from importlib.metadata import version
from pathlib import Path

ENVIRONMENT = Path(__file__).parents[1] / ".venv"

# Programs of tests run for milliseconds and are compiled for seconds, so that little is optimized: LLVM's passes and
# XLA's emitters of fused loops are left out. A test of the bits of a user's programs asks for `fully_optimized`.
LITTLE_OPTIMIZED = {"xla_backend_optimization_level": 0}
FULLY_OPTIMIZED = {"xla_backend_optimization_level": 3}
if version("jaxlib").startswith("0.10."):  # a later XLA does not know this one, and ends the process
    LITTLE_OPTIMIZED["xla_cpu_use_fusion_emitters"] = False
    FULLY_OPTIMIZED["xla_cpu_use_fusion_emitters"] = True

SETTINGS = {
    # One thread of XLA and of BLAS in a process: processes are as many as there are cores.
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # XLA divides a program into 32 modules to compile them on several threads: with one thread a third dearer.
    "XLA_FLAGS": " ".join(
        ["--xla_cpu_parallel_codegen_split_count=1"]
        + [f"--{name}={str(value).lower()}" for name, value in LITTLE_OPTIMIZED.items()]
    ),
    # Compiled programs are kept on disk, small ones too: the other process and the next run take them from there.
    "JAX_COMPILATION_CACHE_DIR": str(ENVIRONMENT / "xla-cache"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "JAXBANDITS_CACHE": str(ENVIRONMENT / "xla-cache"),
    # Pictures are drawn without a screen.
    "MPLBACKEND": "Agg",
}
# Modules are compiled to bytecode once, also where the environment says that it is not to be kept: a process that reads
# all sources of JAX takes five seconds for it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)

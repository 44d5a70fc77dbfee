"""What programs depend on beside their text: the settings of JAX in this thread, and the flags of its compilers.

JAX keeps a setting for the process, and a context manager replaces it in one thread. A sweep reads the settings of the
thread that called it, and its workers take them over.
"""

import contextlib
import functools
import hashlib
import operator
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend import backend

from jaxbandits.forks import refuse_fork

# Settings that change no result: what is shown, checked or kept, and which devices there are. Promotion of types and
# ranks shows in the traced program of a user's part. A part of this package is the same under all, or refused.
_BESIDE = (
    "jax_array_garbage", "jax_captured_constants", "jax_check", "jax_compilation_cache", "jax_compiler_detailed",
    "jax_cpu_get", "jax_cross_host", "jax_cuda_visible", "jax_debug", "jax_disable_jit", "jax_distributed_debug",
    "jax_dump", "jax_enable_checks", "jax_enable_compilation_cache", "jax_enable_preemption",
    "jax_enable_recoverability", "jax_explain", "jax_hlo_source_file", "jax_include", "jax_legacy_prng_key",
    "jax_log", "jax_no_", "jax_num_cpu_devices", "jax_numpy_dtype_promotion", "jax_numpy_rank_promotion",
    "jax_oneapi_visible", "jax_persistent_cache", "jax_platform", "jax_pprint", "jax_raise_persistent_cache",
    "jax_rocm_visible", "jax_send_traceback", "jax_share_binary", "jax_source_url", "jax_thread_guard",
    "jax_traceback", "jax_tracer_error", "jax_transfer_guard", "jax_xla_backend",
)  # fmt: skip
_OF_A_SWEEP = ("jax_default_device", "jax_enable_x64")  # set by a sweep itself, see `settings_of`
# Flags of XLA that change no result, as its options are called.
_HARMLESS_FLAGS = (
    "xla_dump",
    "xla_enable_dumping",
    "xla_force_host_platform_device_count",
    "xla_gpu_force_compilation_parallelism",
)
# Variables that libraries below JAX read when they start, and do not tell again.
_VARIABLES = ("LIBTPU_INIT_ARGS", "NVIDIA_TF32_OVERRIDE")
_GUARDS = ("disallow", "disallow_explicit")
# How flags begin under which a sweep cannot work: the values that break it, what to set instead, and why.
_BREAKING: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "jax_disable_jit": ((True,), False, "programs are compiled before they run"),
    "jax_no_tracing": ((True,), False, "programs are traced before they run"),
    "jax_transfer_guard_": (_GUARDS, "allow", "numbers of the sweep go to the device and back"),
    "jax_error_checking_behavior_": (("raise",), "ignore", "its checks do not pass through vmap"),
}


def check_flags() -> None:
    """ValueError naming the first flag under which a sweep cannot work, with the call that sets it back.

    RuntimeError where no flag helps: in a process that was forked after JAX was used.
    """
    refuse_fork()
    config: Any = jax.config
    for flag in filter(operator.methodcaller("startswith", tuple(_BREAKING)), config.values):
        for beginning, (breaking, instead, why) in _BREAKING.items():
            if flag.startswith(beginning) and (value := getattr(config, flag, None)) in breaking:
                remedy = f"set jax.config.update({flag!r}, {instead!r}) for the sweep"
                raise ValueError(f"{flag} = {value!r} cannot be kept, {why}: {remedy}")


def in_force() -> str:
    """A hash of all settings of this thread, and flags of this process, that may change what a program computes."""
    config: Any = jax.config
    # an attribute gives the value of this thread; a few settings are flags without one
    settings = []
    for name, value in config.values.items():
        if not name.startswith(_BESIDE) and name not in _OF_A_SWEEP:
            settings.append((name, str(getattr(config, name, value))))
    return hashlib.sha256(repr([sorted(settings), *flags_in_force()]).encode()).hexdigest()


@functools.cache
def flags_in_force() -> tuple[Any, ...]:
    """The compiler's flags that are in force, and variables of its libraries. They are the same to the end.

    XLA reads XLA_FLAGS once: what the variable is set to later has no effect, so that the compiler is asked and not the
    environment. The libraries of a GPU and of a TPU cannot be asked. Of theirs both values count, the one that the
    process began with and the one at its first sweep.
    """
    # JAX writes its own settings into the options that it makes: those of a new object are the compiler's
    options: Any = type(backend.get_compile_options(num_replicas=1, num_partitions=1))()
    lines = repr(options.executable_build_options.debug_options).splitlines()[1:]  # without the mark of the format
    flags = [" ".join(line.split()) for line in lines if not line.strip().startswith(_HARMLESS_FLAGS)]
    try:
        beginning = os.fsdecode(Path("/proc/self/environ").read_bytes()).split("\0")
        began = dict(line.split("=", 1) for line in beginning if "=" in line)
    except OSError:  # where the system does not say
        began = dict(os.environ)
    return flags, [(name, began.get(name, ""), os.environ.get(name, "")) for name in _VARIABLES]


def of_this_thread() -> dict[str, Any]:
    """The settings that context managers have replaced in this thread, for `use_settings` in another one."""
    config: Any = jax.config
    replaced: dict[str, Any] = {}
    for name, holder in config._value_holders.items():
        # not what a sweep sets itself, nor caches
        if hasattr(holder, "get_global") and "cache" not in name and name not in _OF_A_SWEEP:
            here, usual = holder.value, holder.get_global()
            if here is not usual and not (type(here) is type(usual) and here == usual):
                replaced[name] = here
    return replaced


@contextlib.contextmanager
def use_settings(settings: Mapping[str, Any]) -> Iterator[None]:
    """Inside, this thread has settings that `of_this_thread` read in another one."""
    config: Any = jax.config
    with contextlib.ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(config._value_holders[name](value))
        yield


@contextlib.contextmanager
def settings_of(dtype: Any, device: jax.Device) -> Iterator[None]:
    """JAX's settings in which programs are traced, compiled and played. Kept programs are found by them too."""
    with jax.enable_x64(np.dtype(dtype) == np.float64), jax.default_device(device):
        yield

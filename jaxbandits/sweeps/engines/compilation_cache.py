"""Compiled programs on disk between processes: the package's own, and nobody else's."""

import contextlib
import functools
import os
import platform
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

_lock = threading.Lock()
_inside = 0  # threads that compile for the package right now
_before: dict[str, Any] = {}  # the process's own settings, while they are replaced


@contextlib.contextmanager
def programs_on_disk() -> Iterator[None]:
    """Use the package's own cache of compiled programs on disk inside the block.

    Nothing changes where the user chose a directory for JAX's cache, or JAXBANDITS_CACHE=off. JAX has one cache a
    process: what another thread compiles meanwhile goes to the same place. Afterwards the process's own settings hold
    again.
    """
    global _inside
    with _lock:
        directory = None if _inside else _directory()
        if directory is not None:
            ours = {
                "jax_compilation_cache_dir": str(directory),
                "jax_persistent_cache_min_compile_time_secs": 0.0,
                "jax_persistent_cache_min_entry_size_bytes": -1,
            }
            _before.update({name: getattr(jax.config, name) for name in ours})
            _set(ours)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _before:
                _set(_before)
                _before.clear()


def _set(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # JAX looks at its settings once


def _directory() -> Path | None:
    """Where programs are kept, or None where the package keeps none.

    There is one directory for a kind of processor: code compiled for one may not run on another, and homes are shared.
    """
    config: Any = jax.config  # its attributes are made at run time
    chosen = os.environ.get("JAXBANDITS_CACHE", "")
    if chosen == "off" or config.jax_compilation_cache_dir is not None:
        return None
    home = Path(chosen or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "jaxbandits" / "xla")
    home = home / f"{platform.machine()}-{zlib.crc32(_features().encode()):08x}"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home only costs compile time
        return None
    return home


@functools.cache
def _features() -> str:
    """The instructions this processor knows, where the system says so."""
    try:
        return next(
            line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "Features"))
        )
    except (OSError, StopIteration):
        return platform.processor()

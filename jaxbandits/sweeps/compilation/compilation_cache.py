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

from jaxbandits.forks import refuse_fork
from jaxbandits.jax_internals import replace_cache
from jaxbandits.sweeps.compilation.trusted import open_trusted
from jaxbandits.validation import path_of

_lock = threading.Lock()
_threads_inside = {"kept": 0, "apart": 0}  # threads in `programs_on_disk` and in `without_jax_cache`
_before: dict[str, Any] = {}  # the process's own settings, while they are replaced


def programs_on_disk() -> contextlib.AbstractContextManager[None]:
    """Use JAX's cache of compiled programs inside the block, in a folder of this package that is `trusted`.

    Nothing changes where the user chose a directory for JAX's cache, or JAXBANDITS_CACHE=off. JAX has one cache a
    process: what another thread compiles meanwhile goes to the same place. Afterwards the process's own settings hold
    again. RuntimeError in a process that was forked after JAX was used.
    """
    refuse_fork()
    return _settings_of("kept")


def without_jax_cache() -> contextlib.AbstractContextManager[None]:
    """Compile inside the block without JAX's cache on disk.

    An executable that came out of that cache cannot be written out again: it loads, and then lacks its functions.
    While one thread is inside, no thread uses the cache.
    """
    return _settings_of("apart")


@contextlib.contextmanager
def _settings_of(way: str) -> Iterator[None]:
    _count(way, 1)
    try:
        yield
    finally:
        _count(way, -1)


def _count(way: str, change: int) -> None:
    """Note that a thread goes in or out, and set what holds for those that are inside."""
    with _lock:
        _threads_inside[way] += change
        wanted: dict[str, Any] = {}
        if _threads_inside["apart"]:
            wanted = {"jax_enable_compilation_cache": False}
        elif _threads_inside["kept"] and (directory := _directory()) is not None:
            wanted = {
                "jax_compilation_cache_dir": str(directory),
                "jax_persistent_cache_min_compile_time_secs": 0.0,
                "jax_persistent_cache_min_entry_size_bytes": -1,
            }
        config: Any = jax.config  # its attributes are made at run time
        changed = {name: value for name, value in (_before | wanted).items() if getattr(config, name) != value}
        for name in wanted:
            _before.setdefault(name, getattr(config, name))
        if changed and "jax_compilation_cache_dir" in wanted:
            replace_cache(_Files(Path(wanted["jax_compilation_cache_dir"])))  # before JAX is told of the folder
        for name, value in changed.items():
            jax.config.update(name, value)
        for name in [name for name in _before if name not in wanted]:
            del _before[name]
        if changed and "jax_compilation_cache_dir" not in wanted:
            replace_cache()


class _Files:
    """What JAX's cache reads and writes, as its own class does, in a folder that is `trusted` each time."""

    def __init__(self, path: Path) -> None:
        self.path = self._path = path

    def get(self, key: str) -> bytes | None:
        with open_trusted(self.path) as folder:
            return None if folder is None else folder.read(f"{key}-cache")

    def put(self, key: str, value: bytes) -> None:
        with open_trusted(self.path) as folder, contextlib.suppress(OSError):  # a full disk only costs time
            if folder is not None:
                folder.write(f"{key}-cache", value)


def root() -> Path | None:
    """The folder of everything compiled that this package keeps, or None where it keeps nothing."""
    chosen = os.environ.get("JAXBANDITS_CACHE", "")
    if chosen == "off":
        return None
    try:
        return path_of(chosen or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "jaxbandits" / "xla")
    except ValueError:  # a user without a home
        return None


@functools.cache
def processor() -> str:
    """A name for this kind of processor: code compiled for one may not run on another, and homes are shared."""
    try:  # the instructions it knows, where the system says so
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        features = platform.processor()
    return f"{platform.machine()}-{zlib.crc32(features.encode()):08x}"


def _directory() -> Path | None:
    """Where JAX's cache is kept for this package, or None where it is not."""
    config: Any = jax.config
    home = root()
    chosen = _before.get("jax_compilation_cache_dir", config.jax_compilation_cache_dir)
    if home is None or chosen is not None:
        return None
    with open_trusted(home / processor()) as folder:
        return None if folder is None else folder.path

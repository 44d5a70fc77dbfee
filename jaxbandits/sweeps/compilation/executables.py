"""Compiled executables on disk: what this machine compiled before is neither traced, lowered nor compiled again.

An entry is found by what its program computes: by the name of this package's own functions (`code_names`), or by the
traced program where functions are a user's; with shapes, versions, settings of JAX and the kind of device. Nothing
else can make an entry fit, so a wrong one is never opened, and a missing one costs time only.

Entries are native code. Each begins with a checksum of the rest, and a directory that others may write is not used.
"""

import contextlib
import hashlib
import os
import pickle
import re
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np
from jax.experimental import serialize_executable

from jaxbandits.sweeps.compilation import code_names, settings
from jaxbandits.sweeps.compilation.compilation_cache import processor, root
from jaxbandits.window import Parts

LIMIT = 1 << 31  # bytes on disk, with what JAX's own cache keeps for this package; the least recently used go first
_CALLED = re.compile(r'custom_call_target="([^"]+)"')
_CHECK = hashlib.sha256().digest_size
HERE = "in this process"  # how `Parts.traced` begins where it says nothing to another process
_lock = threading.Lock()
_unlooked = LIMIT  # bytes written since the directory was last looked at: it is looked at once a process at least


def name_of_parts(parts: Parts) -> str | None:
    """What a group's functions compute, in words that hold in any process; None where there are none.

    The package's files are part of it: a traced lane does not show how the engine puts lanes together.
    """
    sources = code_names.sources()
    if sources is None or parts.traced.startswith(HERE):
        return None
    name = parts.traced or code_names.name_of(tuple(parts))
    return None if name is None else f"{sources} {name}"


def key_of(name: str | None, device: jax.Device | None, *about: Any) -> str | None:
    """The key of an entry for a device, None for any; None where the functions have no name.

    about: plain values and texts.
    """
    if name is None or jax.process_count() > 1:
        return None
    where = [] if device is None else [device.platform, device.device_kind, device.client.platform_version]
    versions = [jax.__version__, jaxlib.__version__, np.__version__, sys.version_info[:2]]
    config: Any = jax.config
    here = [settings.in_force(), config.jax_enable_x64, str(config.jax_default_device)]
    return hashlib.sha256(repr([name, where, versions, here, about]).encode()).hexdigest()


def classes_of(tree: Any) -> list[str]:
    """The classes of the nodes of a tree's structure, with their modules, which its text does not show."""
    about = tree.node_data()
    own = [] if about is None else [f"{about[0].__module__}.{about[0].__qualname__}"]
    return own + [name for child in tree.children() for name in classes_of(child)]


def executable(key: str | None, device: jax.Device, build: Callable[[], Any], structure: Any) -> Any:
    """The compiled program of a key: from disk where it is there, else built and kept.

    structure: of the arguments. Another class of the same name may have been in its place.
    """

    def load(content: bytes) -> Any:
        serialized, inputs, outputs = pickle.loads(content)
        if inputs != structure:
            raise ValueError("compiled for other classes")
        return serialize_executable.deserialize_and_load(serialized, inputs, outputs, execution_devices=[device])

    def packed(program: Any) -> bytes:
        # A process that only reads it would not have made the library ready that it calls, such as LAPACK, and would
        # die in it. What begins with two underscores is part of the compiler itself.
        called = [target for target in _CALLED.findall(program.as_text()) if not target.startswith("__")]
        if called:
            raise ValueError(f"calls {called[0]}")
        return pickle.dumps(serialize_executable.serialize(program))

    return _kept(key, build, packed, load)


def remembered(key: str | None, build: Callable[[], Any]) -> Any:
    """A plain value of a key, such as the shapes of a lane: from disk where it is there, else built and kept."""
    return _kept(key, build, pickle.dumps, pickle.loads)


def _kept(
    key: str | None, build: Callable[[], Any], pack: Callable[[Any], bytes], unpack: Callable[[bytes], Any]
) -> Any:
    home = None if key is None else directory()
    if home is None:
        return build()
    path = home / str(key)
    # damaged, or of a compiler that this one cannot read: built again
    with contextlib.suppress(Exception):
        content = path.read_bytes()
        if hashlib.sha256(content[_CHECK:]).digest() == content[:_CHECK]:
            value = unpack(content[_CHECK:])
            with contextlib.suppress(OSError):
                os.utime(path)  # used now
            return value
    value = build()
    # a full disk, or a program that cannot be written out: it only has to be built again next time
    with contextlib.suppress(Exception):
        content = pack(value)
        _write(path, hashlib.sha256(content).digest() + content)
    return value


def _write(path: Path, content: bytes) -> None:
    """Write an entry whole or not at all, and keep the directory within its limit."""
    global _unlooked
    part = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    with _lock:
        _unlooked += len(content)
        due, _unlooked = _unlooked > LIMIT // 32, 0 if _unlooked > LIMIT // 32 else _unlooked
    if due:
        prune(LIMIT)


def directory() -> Path | None:
    """Where entries are kept, one directory for a kind of processor; None where none are."""
    home = root()
    return None if home is None else _checked(home / "executables" / processor())


@cache
def _checked(home: Path) -> Path | None:
    """A directory of ours, made where it is missing; None where it cannot be used."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        about = home.stat()
    except OSError:  # a read-only home only costs time
        return None
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
        warnings.warn(
            f"compiled programs in {home} are not used, as others may write there: chmod go-w, or set JAXBANDITS_CACHE",
            UserWarning,
            stacklevel=2,
        )
        return None
    return home


def entries() -> Iterator[tuple[Path, os.stat_result]]:
    """Every file that is kept, of this package's executables and of JAX's own cache beside them."""
    home = root()
    for path in [] if home is None else home.rglob("*"):
        with contextlib.suppress(OSError):  # another process has just deleted it
            if path.is_file():
                yield path, path.stat()


def prune(limit: int) -> tuple[int, int]:
    """Delete the least recently used files beyond a number of bytes. Returns how many files and bytes went."""
    newest_first = sorted(entries(), key=lambda entry: -entry[1].st_mtime)
    total, gone, freed = 0, 0, 0
    for path, about in newest_first:
        total += about.st_size
        if total > limit:
            with contextlib.suppress(OSError):
                path.unlink()
                gone, freed = gone + 1, freed + about.st_size
    return gone, freed

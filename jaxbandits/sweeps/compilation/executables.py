"""Compiled executables on disk: what this machine compiled before is neither traced, lowered nor compiled again.

An entry is found by what its program computes: by the name of this package's own functions, or by the traced program
where functions are a user's (`program_digest`); with shapes, versions, settings of JAX and the kind of device. Nothing
else can make an entry fit, so a wrong one is never opened, and a missing one costs time only.

Entries are native code: they are read from `trusted` folders alone. Each begins with a checksum of the rest. Of the
pickle that JAX makes of a program, only the classes that it needs are admitted; everything else is plain JSON.
"""

import contextlib
import functools
import hashlib
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np
from jax.experimental import serialize_executable
from jax.tree_util import default_registry

from jaxbandits.jax_internals import load_program
from jaxbandits.sweeps.compilation import program_digest, settings, sources
from jaxbandits.sweeps.compilation.compilation_cache import processor, root
from jaxbandits.sweeps.compilation.trusted import Folder, open_trusted
from jaxbandits.window import Parts

LIMIT = 1 << 31  # bytes on disk, with what JAX's own cache keeps for this package; the least recently used go first
_CALLED = re.compile(r'custom_call_target="([^"]+)"')
_CHECK = hashlib.sha256().digest_size
_LEAF: Any = jax.tree.structure(0)
_BUILT_IN = {kind.__name__: kind for kind in (tuple, list, dict, type(None))}
HERE = "in this process"  # how `Parts.traced` begins where it says nothing to another process
_lock = threading.Lock()
_unlooked = LIMIT  # bytes written since the directory was last looked at: it is looked at once a process at least


def name_of_parts(parts: Parts, *, kernels: bool) -> str | None:
    """What a group's functions compute, in words that hold in any process; None where nothing is kept under them.

    What stands in the modules that they and the engine reach is part of it: byte code does not show what it calls, nor
    a traced lane how the engine puts lanes together. kernels: whether what is kept may hold one.
    """
    if parts.traced.startswith(HERE) or not usable():
        return None
    name = program_digest.Name(parts.traced, sources.RULES) if parts.traced else code_name(parts)
    texts = None if name is None else _sources(name.modules, kernels)
    return None if name is None or texts is None else f"{texts} {name.sha}"


@functools.lru_cache(maxsize=256)
def code_name(parts: Parts) -> program_digest.Name | None:
    """The name of a group's functions as they are written; None where one is not this package's."""
    return program_digest.name_of(tuple(parts._replace(traces=None)))


@functools.lru_cache(maxsize=1024)
def _sources(modules: frozenset[str], kernels: bool) -> str | None:
    """A hash of what functions of these modules reach; None where a file of that changed after it was loaded."""
    key = key_of(sources.state(), None, "sources", sorted(modules), kernels)
    try:
        sha, reached = load_or_build(key, functools.partial(sources.read, modules, kernels))
        sources.check_unchanged(reached)
    except sources.Changed:
        return None
    return str(sha)


def key_of(name: str | None, device: jax.Device | None, *about: Any) -> str | None:
    """The key of an entry for a device (None: any) and plain values; None where functions have no name."""
    if name is None or jax.process_count() > 1:
        return None
    where = [] if device is None else [device.platform, device.device_kind, device.client.platform_version]
    versions = [jax.__version__, jaxlib.__version__, np.__version__, sys.version_info[:2]]
    config: Any = jax.config
    here = [settings.in_force(), config.jax_enable_x64, str(config.jax_default_device)]
    return hashlib.sha256(repr([name, where, versions, here, about]).encode()).hexdigest()


def classes_of(tree: Any) -> list[str]:
    """The classes of the nodes of a tree's structure, with their modules, which its text does not show."""
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in _kinds(tree)]


def _kinds(tree: Any) -> Iterator[type]:
    if (about := tree.node_data()) is not None:
        yield about[0]
    for child in tree.children():
        yield from _kinds(child)


def executable(key: str | None, device: jax.Device, build: Callable[[], Any], structure: Any) -> Any:
    """The compiled program of a key: from disk where its arguments have the same classes, else built and kept."""

    def load(content: bytes) -> Any:
        head, _, serialized = content.partition(b"\n")
        inputs, outputs = json.loads(head)
        if inputs != structure_as_json(structure):
            raise ValueError("compiled for other classes")
        return load_program(serialized, structure, structure_from_json(outputs, structure), device)

    def pack_program(program: Any) -> bytes:
        # A process that only reads it would not have made the library ready that it calls, such as LAPACK, and would
        # die in it. What begins with two underscores is part of the compiler itself.
        called = [target for target in _CALLED.findall(program.as_text()) if not target.startswith("__")]
        if called:
            raise ValueError(f"calls {called[0]}")
        serialized, inputs, outputs = serialize_executable.serialize(program)
        return json.dumps([structure_as_json(inputs), structure_as_json(outputs)]).encode() + b"\n" + serialized

    return load_or_build(key, build, pack_program, load)


def load_or_build(
    key: str | None,
    build: Callable[[], Any],
    pack: Callable[[Any], bytes] = lambda value: json.dumps(value).encode(),
    unpack: Callable[[bytes], Any] = json.loads,
) -> Any:
    """The value of a key: from disk where it is there, else built and kept. In JSON tuples come back as lists."""
    if key is None or (home := _entry_folder()) is None:
        return build()
    # damaged, or of a compiler that this one cannot read: built again
    with open_trusted(home) as folder, contextlib.suppress(Exception):
        content = b"" if folder is None else folder.read(key) or b""
        if hashlib.sha256(content[_CHECK:]).digest() == content[:_CHECK]:
            return unpack(content[_CHECK:])
    value = build()
    # a full disk, or a program that cannot be written out: it only has to be built again next time
    with open_trusted(home) as folder, contextlib.suppress(Exception):
        if folder is not None:
            content = pack(value)
            _write_entry(folder, key, hashlib.sha256(content).digest() + content)
    return value


def _write_entry(folder: Folder, name: str, content: bytes) -> None:
    """Write an entry, and keep the directory within its limit."""
    global _unlooked
    folder.write(name, content)
    with _lock:
        _unlooked += len(content)
        due, _unlooked = _unlooked > LIMIT // 32, 0 if _unlooked > LIMIT // 32 else _unlooked
    if due:
        prune(LIMIT)


def _entry_folder() -> Path | None:
    """Where entries are kept, one folder for a kind of processor; None where none are."""
    home = root()
    return None if home is None else home / "executables" / processor()


def usable() -> bool:
    """Whether entries can be kept."""
    home = _entry_folder()
    if home is None:
        return False
    with open_trusted(home) as folder:
        return folder is not None


def files_on_disk() -> Iterator[tuple[Path, os.stat_result]]:
    """Every file that is kept, of this package's executables and of JAX's own cache beside them."""
    home = root()
    for place, _, names in os.walk(home or ""):
        for name in names:
            with contextlib.suppress(OSError):  # another process has just deleted it
                yield Path(place) / name, os.stat(Path(place) / name, follow_symlinks=False)


def prune(limit: int) -> tuple[int, int]:
    """Delete the least recently used files beyond a number of bytes. Returns how many files and bytes went."""
    newest_first = sorted(files_on_disk(), key=lambda entry: -entry[1].st_mtime)
    total, gone, freed = 0, 0, 0
    for path, about in newest_first:
        total += about.st_size
        if total > limit:
            with open_trusted(path.parent) as folder, contextlib.suppress(OSError):
                if folder is not None:  # where others may write, a name may lead anywhere by now
                    folder.delete(path.name)
                    gone, freed = gone + 1, freed + about.st_size
    return gone, freed


# ---- the structure of a tree as plain data, and back: what stands on disk beside a compiled program


def structure_as_json(tree: Any) -> Any:
    """A tree's structure as JSON has it. ValueError where that cannot be had.

    A leaf is None; a node is its class by name, the keys of a dictionary, and its children. Classes are tuples, lists,
    dictionaries, None and NamedTuples that a module holds under their own names.

    >>> structure_as_json(jax.tree.structure({"a": (1, [2])}))
    ['dict', ['a'], [['tuple', None, [None, ['list', None, [None]]]]]]
    """
    about = tree.node_data()
    if about is None:
        return None
    kind, keys = about
    name = kind.__name__
    if _BUILT_IN.get(name) is not kind:
        name = f"{kind.__module__}:{kind.__qualname__}"
        if _find_namedtuple(name) is not kind:
            raise ValueError(f"{name} is not what its module holds under that name")
        keys = None
    if keys is not None and not all(isinstance(key, str) for key in keys):
        raise ValueError(f"keys {keys} are not text")
    return [name, keys, [structure_as_json(child) for child in tree.children()]]


def structure_from_json(about: Any, call: Any) -> Any:
    """The structure that `structure_as_json` wrote down. ValueError where a class of it is not there.

    call: the structure of the arguments of the call, whose own classes come first. Nothing is imported, and no class is
    called.

    >>> tree = jax.tree.structure({"a": (1, [2])})
    >>> structure_from_json(structure_as_json(tree), jax.tree.structure(())) == tree
    True
    """
    own = {f"{kind.__module__}:{kind.__qualname__}": kind for kind in _kinds(call) if hasattr(kind, "_fields")}

    def rebuild_node(about: Any) -> Any:
        if about is None:
            return _LEAF
        name, keys, children = about
        kind = _BUILT_IN.get(name) or own.get(name) or _find_namedtuple(name)
        if kind is None:
            raise ValueError(f"there is no NamedTuple {name}")
        fields = getattr(kind, "_fields", children)
        if len(fields) != len(children):
            raise ValueError(f"{name} has {len(fields)} fields, not {len(children)}")
        data = (kind, kind if hasattr(kind, "_fields") else keys)
        return _LEAF.from_node_data_and_children(default_registry, data, [*map(rebuild_node, children)])

    return rebuild_node(about)


def _find_namedtuple(name: str) -> type | None:
    """The NamedTuple of a name, in a module that is imported already; None where there is none."""
    module, _, path = name.partition(":")
    place: Any = sys.modules.get(module)
    for part in path.split("."):
        place = vars(place).get(part) if hasattr(place, "__dict__") else None
    return place if isinstance(place, type) and issubclass(place, tuple) and hasattr(place, "_fields") else None

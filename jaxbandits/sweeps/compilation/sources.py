"""The modules of this package that a program reaches, and what stands in them, as a hash.

Of a module its syntax tree counts, without comments and docstrings. A program reaches the modules of its functions,
those of the engine, and whatever they import, anywhere in their text. Where it cannot be told which module a name comes
from, all are reached that it may come from.
"""

import ast
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jaxbandits import version
from jaxbandits.garbage import pause_collection

_PACKAGE = Path(__file__).resolve().parents[2]
_TOP = _PACKAGE.name
_ENGINE = f"{_TOP}.sweeps.compilation.compiled"
# It traces what names a group. What else it imports, such as plans, gives it parts and shapes: it is not followed.
_TRACES = f"{_TOP}.sweeps.identity"
_KERNELS = f"{_TOP}.kernels"
# A trace, by which a user's part is named, does not show rules for `vmap` of what it calls: those that no engine needs.
RULES = frozenset({f"{_TOP}.estimators.spectral_filter"})
_MODULE = re.compile(rf"{_TOP}(\.\w+)+\.?")  # a text, or the beginning of one, that names a module


# of every kind of node that has some; whether a name is read or written follows from where it stands
_NODES = [kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)]
_FIELDS = {kind: [field for field in kind._fields if field != "ctx"] for kind in _NODES}


class Changed(Exception):
    """A file changed after this process had loaded the package: what is in memory may be something else."""


class Text(NamedTuple):
    """What stands in a module."""

    sha: str
    defined: frozenset[str]  # names that it gives something new
    imported: frozenset[tuple[str, str]]  # (module, name), or (module, "*") for all that there is in it and below


@functools.cache
def files() -> dict[str, Path]:
    """The files of the package by the names of their modules."""
    paths = {path: path.relative_to(_PACKAGE.parent).with_suffix("").parts for path in _PACKAGE.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for path, parts in sorted(paths.items())}


@functools.cache
def state() -> str:
    """A name for the package's files as they lie on this disk, by sizes and times."""
    abouts = [(name, path.stat()) for name, path in files().items()]
    rows = [(name, about.st_size, about.st_mtime_ns, about.st_ctime_ns) for name, about in abouts]
    return hashlib.sha256(repr([str(_PACKAGE), rows]).encode()).hexdigest()


def read(modules: Iterable[str], kernels: bool) -> tuple[str, list[str]]:
    """The hash of what a program reaches that has functions of these modules, and the names of all that it reaches.

    kernels: whether it may hold kernels. Where it does not, what writes them is no part of it.
    """
    with pause_collection():
        reached = sorted({*_closure_of([_ENGINE, *modules], () if kernels else (_KERNELS,)), _TRACES})
        sha = hashlib.sha256(repr([(name, _text(name).sha) for name in reached]).encode()).hexdigest()
    check_unchanged(reached)
    return sha, reached


def check_unchanged(modules: Iterable[str]) -> None:
    """Changed where the file of one of these modules has changed: in content, name or place."""
    abouts = [files()[name].stat() for name in modules]
    if any(max(about.st_mtime, about.st_ctime) >= version.LOADED for about in abouts):
        raise Changed


def _closure_of(modules: Iterable[str], without: tuple[str, ...]) -> set[str]:
    """These modules, and all that is imported on the way; without those whose names begin so."""
    waiting, reached = list(modules), set[str]()
    while waiting:
        name = waiting.pop()
        if name in files() and name not in reached and not name.startswith(without):
            reached.add(name)
            waiting += [home for pair in _text(name).imported for home in _homes(*pair)]
    return reached


@functools.cache
def _homes(module: str, name: str) -> list[str]:
    """The modules that a name may come from, which is imported from a module or package."""
    if name != "*" and f"{module}.{name}" in files():
        module, name = f"{module}.{name}", "*"
    inside = [other for other in files() if other == module or other.startswith(f"{module}.")]
    if name == "*" or len(inside) == 1:
        return inside
    # a package may find its names below when they are asked for
    return [one for one in inside if name.encode() in _content(one) and name in _text(one).defined] or inside


@functools.cache
def _content(module: str) -> bytes:
    return files()[module].read_bytes()


@functools.cache
def _text(module: str) -> Text:
    tree = ast.parse(_content(module))
    leaves, imports, waiting = list[Any](), list[Any](), list[Any]([tree])
    while waiting:  # what a field holds follows from the kind of its node: the order says the rest
        x = waiting.pop()
        if isinstance(x, list):
            x = [item for item in x if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
            leaves.append(len(x))
            waiting += x
        elif fields := _FIELDS.get(type(x)):
            leaves.append(type(x).__name__)
            waiting += [getattr(x, field) for field in fields]
            if isinstance(x, ast.ImportFrom | ast.Import | ast.Constant):
                imports.append(x)
        else:
            leaves.append(type(x).__name__ if isinstance(x, ast.AST) else x)
    imported = frozenset(pair for x in imports for pair in _imports(x))
    return Text(hashlib.sha256(repr(leaves).encode()).hexdigest(), frozenset(_names_in(tree)), imported)


def _imports(x: ast.ImportFrom | ast.Import | ast.Constant) -> Iterator[tuple[str, str]]:
    """What a node imports: also a text that names a module, or begins as its name, for `import_module`."""
    if isinstance(x, ast.Constant):
        if isinstance(x.value, str) and _MODULE.fullmatch(x.value):
            yield x.value.rstrip("."), "*"
    elif isinstance(x, ast.ImportFrom) and not x.level:
        yield from ((x.module or "", alias.name) for alias in x.names)
    elif isinstance(x, ast.ImportFrom) or any(alias.name.partition(".")[0] == _TOP for alias in x.names):
        yield _TOP, "*"


def _names_in(tree: ast.Module) -> Iterator[str]:
    """The names that a module gives something new: not those that it takes from a module of the package as they are."""
    for statement in tree.body:
        whole = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for x in [statement] if whole else ast.walk(statement):
            if isinstance(x, ast.FunctionDef | ast.ClassDef):
                yield x.name
            elif isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store):
                yield x.id
            elif isinstance(x, ast.Import | ast.ImportFrom):
                ours = isinstance(x, ast.ImportFrom) and (x.module or "").partition(".")[0] == _TOP
                yield from (alias.asname or alias.name for alias in x.names if alias.asname or not ours)

"""Whether the code of this package is the code whose results were pinned, wherever its files lie.

The version number of a part speaks for its code only while nobody edits the code. What `make pins` recorded is
compared with what is installed: the same files, or files of the same definitions. Comments, docstrings, imports and
the file that holds a definition are no part of the second comparison. Where both differ, the package is treated as a
user's own code.
"""

import ast
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("pinned.json")
# Files and folders of the package that show, check or collect results and take no part in them.
_BESIDE = {
    "auditing",
    "catalogue.py",
    "checking",
    "cli.py",
    "commands",
    "papers",
    "reports",
    "selection.py",
    "statistics.py",
}


@functools.cache
def unchanged() -> bool:
    """Whether this package computes what its version numbers say. The files are read once a process."""
    try:
        record = json.loads(RECORD.read_text())
    except (OSError, ValueError):
        return False
    return record.get("files") == files() or record.get("definitions") == definitions()


def files() -> str:
    """A hash of the texts of all files that take part in results."""
    return _together(hashlib.sha256(path.read_bytes()).hexdigest() for path in _sources())


def definitions() -> str:
    """A hash of all definitions in those files. Slower, and the same after a file moved or a comment changed."""
    return _together(digest for path in _sources() for digest in _statements(path))


def record() -> None:
    """Write both hashes down: from now on version numbers speak for the code as it is."""
    RECORD.write_text(json.dumps({"files": files(), "definitions": definitions()}, indent=2) + "\n")


def _sources() -> list[Path]:
    paths = (path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in _BESIDE)
    return [path for path in paths if path.name != "version.py"]


def _together(digests: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(set(digests))).encode()).hexdigest()


def _statements(path: Path) -> Iterator[str]:
    """A hash of every statement at the top level of a file, with what the names in it stand for.

    So a file may move, and a name may not change its meaning.
    """
    for statement in _parsed(path).body:
        text = "".join(_written(statement))
        if text:
            yield _sha("\n".join([text, *sorted(set(_references(path, statement)))]))


def _references(path: Path, statement: ast.stmt) -> Iterator[str]:
    """The names in a statement, with what each stands for."""
    names = _names(path)
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id)
            if isinstance(module, Path):
                yield f"{node.value.id}.{node.attr} {_meaning(module, node.attr)}"
        elif isinstance(node, ast.Name) and node.id in names:
            yield f"{node.id} {_meaning(path, node.id)}"


@functools.cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


@functools.cache
def _names(path: Path) -> dict[str, str | Path | tuple[Path, str]]:
    """The names of a file, each with what it stands for.

    That is the hash of a definition's text, the name of something outside this package, the file of a module of this
    package, or a file of it and a name in that file.
    """
    names: dict[str, str | Path | tuple[Path, str]] = {}
    tree = _parsed(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = _file(alias.name) or alias.name
        elif isinstance(node, ast.ImportFrom):
            module = _file(node.module or "")
            for alias in node.names:
                place = f"{node.module}.{alias.name}"
                inside = place if module is None else _file(place) or (module, alias.name)
                names[alias.asname or alias.name] = inside
    for statement in tree.body:
        bound = [x.id for x in ast.walk(statement) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)]
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            bound = [statement.name]
        names |= dict.fromkeys(bound, _sha("".join(_written(statement))))
    return names


def _meaning(path: Path, name: str) -> str:
    """What a name of a file stands for, through the files that it is imported from."""
    followed = set[tuple[Path, str]]()
    while (path, name) not in followed:
        followed.add((path, name))
        target = _names(path).get(name, "")
        if isinstance(target, str):
            return target
        if isinstance(target, Path):
            return "a module"
        path, name = target
    return ""


def _file(module: str) -> Path | None:
    """The file of a module of this package."""
    top, *rest = module.split(".")
    if top != PACKAGE.name:
        return None
    place = PACKAGE.joinpath(*rest)
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _written(node: Any) -> Iterator[str]:
    """A statement as text that does not depend on the version of Python, without imports and docstrings."""
    if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
        return
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            if value is not None and value != []:  # newer versions have fields that older ones lack
                yield f" {name}="
                yield from _written(value)
        yield ")"
    elif isinstance(node, list):
        for item in node:
            yield from _written(item)
    else:
        yield repr(node)


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

"""Whether the code of this package is the code whose results were pinned, wherever its files lie.

The version number of a part speaks for its code only while nobody edits the code. What `make pins` recorded is compared with
what is installed: the same files, or files of the same definitions (comments, docstrings, imports, and the file a definition
stands in are no part of the comparison). Where both differ, the package is taken for a user's own code.
"""

import ast
import functools
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
RECORD = Path(__file__).with_name("pinned.json")
# What shows, checks or collects results and takes no part in them. A name here is a file or a folder of the package.
_BESIDE = {"auditing", "catalogue.py", "checking", "cli.py", "papers", "reports", "selection.py", "statistics.py"}


@functools.cache
def unchanged() -> bool:
    """Whether this package computes what its version numbers say. Read once a process, as Python reads the code itself."""
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


def _together(digests) -> str:
    return hashlib.sha256("\n".join(sorted(set(digests))).encode()).hexdigest()


def _statements(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_bytes())
    for statement in tree.body:
        text = "".join(_written(statement))
        if text:
            yield hashlib.sha256(text.encode()).hexdigest()
    for node in ast.walk(tree):  # where a name comes from may change as files move, what it stands for may not
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (f"{a.name} as {a.asname}" for a in node.names if a.asname not in (None, a.name))


def _written(node) -> Iterator[str]:
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


def _is_docstring(node) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

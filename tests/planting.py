"""Errors that are planted to see that a test fails. Every one is declared at the test that catches it, and
tests/planted.md is the table of them, which `make planted` writes.

A test declares errors by `pytest.mark.planted(where, *change)`: the part that is made wrong, and the text before and
after, or a few words; the name of a test's case tells where there are none. `errors` declares those in the text of an
oracle, a module of tests/reference or a function of a test, and `planted` makes the wrong oracle, in a test that the
table names for this error.
"""

import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import pytest

Oracle = TypeVar("Oracle", ModuleType, Callable[..., Any])
FILE = Path(__file__).with_name("planted.md")
HEAD = """# Planted errors

Every error that a test plants in what a check looks at, such as an oracle (tests/reference), an algorithm under audit
or a user's part, and the test that fails unless the check notices it. `make planted` writes this table from the tests'
declarations (tests/planting.py).

| planted in | error | caught by |
|---|---|---|
"""


class Error(NamedTuple):
    """A piece of an oracle's text and what takes its place, wherever it occurs."""

    oracle: ModuleType | Callable[..., Any]
    old: str
    new: str


def errors(rows, oracle: ModuleType | Callable[..., Any] | None = None) -> list:
    """Cases (*given, Error) of a test. rows: (*given, oracle, old, new), without oracle where all have the same."""
    cases = []
    for *given, old, new in rows:
        error = Error(oracle or given.pop(), old, new)
        name = ": ".join([*map(str, given), old])
        marks = pytest.mark.planted(name_of(error.oracle), old, new)
        cases.append(pytest.param(*given, error, id=name, marks=marks))
    return cases


def name_of(oracle: ModuleType | Callable[..., Any]) -> str:
    return oracle.__name__ if isinstance(oracle, ModuleType) else f"{oracle.__module__}.{oracle.__name__}"


def planted(oracle: Oracle, old: str, new: str) -> Oracle:
    """A copy of an oracle with an error in it."""
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    test = re.sub(r"@test_\w+\.py$", "", test)  # its group (cases.py)
    line = row(test, name_of(oracle), old, new)
    assert any(line in rows for rows in _rows.values()), f"declare the error at the test that plants it\n{line}"
    source, file = inspect.getsource(oracle), inspect.getsourcefile(oracle) or ""
    assert old in source, f"{old!r} does not occur in {name_of(oracle)}"
    code = compile(source.replace(old, new), file, "exec")
    if not isinstance(oracle, ModuleType):
        names = dict(oracle.__globals__)
        exec(code, names)
        return names[oracle.__name__]
    spec = importlib.util.spec_from_loader(f"{oracle.__name__}_planted", None, origin=file)
    assert spec is not None
    copy = importlib.util.module_from_spec(spec)
    copy.__package__ = oracle.__package__
    sys.modules.setdefault(copy.__name__, copy)  # NamedTuple looks its module up
    exec(code, vars(copy))
    return copy


def row(test: str, where: str, *change: str) -> str:
    """A line of the table."""
    old_and_new = " -> ".join(f"`{text}`" if len(change) > 1 else text for text in change)
    cells = [f"`{where}`" if len(change) > 1 else where, old_and_new, f"`{test}`"]
    return "| " + " | ".join(cell.replace("\n", "\\n").replace("|", "\\|") for cell in cells) + " |"


_rows: dict[Path, list[str]] = {}  # of each file that was collected


def pytest_configure():
    _rows.clear()


def pytest_itemcollected(item):
    rows = _rows.setdefault(item.path, [])
    for mark in item.iter_markers("planted"):
        where, *change = mark.args
        rows.append(row(item.nodeid, where, *(change or [item.callspec.id])))


def declared(config) -> str:
    """The table of what the tests declare. Files that this run did not collect are collected, not run."""
    files = [file for file in sorted(FILE.parent.rglob("test_*.py")) if "planted" in file.read_text()]
    kept = dict(_rows)
    found = {} if any("::" in str(place) for place in config.args) else dict(kept)  # of such a file it has a part
    missing = [str(file) for file in files if file not in found]
    if missing:
        options = ["--collect-only", "-qq", "-s", "--noconftest", "-p", __name__]
        assert pytest.main([*options, *missing]) == 0
        found |= _rows
        _rows.update(kept)  # the run inside began with none
    return HEAD + "\n".join(sorted(line for file in files for line in found[file])) + "\n"

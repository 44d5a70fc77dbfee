"""Which tests a run takes: all, but of kinds with many cases a part that changes from commit to commit.

A case with the marker `dealt(n)` runs in one of n commits: after n commits every case has run. The number of the
commit, `DEAL`, is printed and may be set, and `make exhaustive` runs all cases.
"""

import os
import subprocess
import zlib
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def turn() -> int:
    """The number of commits up to this one; where the history is not whole or not there, a number from the commit."""

    def git(*words):
        return subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()

    try:
        if git("rev-parse", "--is-shallow-repository") == "false":
            return int(git("rev-list", "--count", "HEAD"))
        return int(git("rev-parse", "HEAD")[:8], 16)
    except (OSError, subprocess.CalledProcessError):  # no git, or an archive of the sources
        return 0


def dealt(names, one_in: int, always=()) -> list:
    """Parameters of tests: `always` in every run, the others in one of `one_in` commits."""
    names = list(names)
    assert all(name in names for name in always)
    rows = [name if isinstance(name, tuple) else (name,) for name in names]
    mark = pytest.mark.dealt(one_in)
    return [name if name in always else pytest.param(*row, marks=mark) for name, row in zip(names, rows, strict=True)]


def others(names, one_in: int = 8) -> list:
    """Parameters of tests that run in one of `one_in` commits."""
    return dealt(names, one_in)


def its_turn(nodeid: str, one_in: int, deal: int) -> bool:
    return (zlib.crc32(nodeid.encode()) + deal) % one_in == 0


def pytest_addoption(parser):
    parser.addoption("--exhaustive", action="store_true", help="run every dealt case")


def pytest_configure(config):
    os.environ.setdefault("DEAL", str(turn()))  # processes of pytest-xdist inherit it


def pytest_report_header(config):
    if config.getoption("exhaustive"):
        return "every dealt case runs"
    return f"DEAL={os.environ['DEAL']} chooses among the dealt cases (tests/dealt.py)"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("exhaustive"):
        return
    deal, kept, left = int(os.environ["DEAL"]), [], []
    for item in items:
        marker = item.get_closest_marker("dealt")
        (kept if marker is None or its_turn(item.nodeid, marker.args[0], deal) else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept

"""Seconds that a store's processes have computed, in one small file each: DIR/chunks/spent/<name>.txt."""

import contextlib
import time
import uuid
from pathlib import Path

WRITE_SECONDS = 5.0  # between two writes: what is lost where the process is killed


class Spent:
    """The seconds since this object was built, written down from time to time."""

    def __init__(self, chunks: Path) -> None:
        self.path = chunks / "spent" / f"{uuid.uuid4().hex[:12]}.txt"
        self.began = self.written = time.perf_counter()

    def write(self, last: bool = False) -> None:
        """Write the seconds down if it is time; last: in any case. A full disk is no reason to stop."""
        now = time.perf_counter()
        if last or now - self.written > WRITE_SECONDS:
            self.written = now
            with contextlib.suppress(OSError):
                self.path.parent.mkdir(exist_ok=True)
                self.path.write_text(f"{now - self.began:.3f}\n")


def seconds(chunks: Path) -> float:
    """The seconds that all processes together have written down."""
    total = 0.0
    for path in chunks.glob("spent/*.txt"):
        with contextlib.suppress(OSError, ValueError):  # half written by a process that was killed
            total += float(path.read_text())
    return total


def clear(chunks: Path) -> None:
    """Delete what was written down."""
    for path in chunks.glob("spent/*.txt"):
        path.unlink(missing_ok=True)

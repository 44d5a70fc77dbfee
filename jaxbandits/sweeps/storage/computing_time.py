"""Seconds that a store's processes have computed, in one small file each: DIR/chunks/spent/<name>.txt."""

import contextlib
import time
import uuid
from pathlib import Path

EVERY = 5.0  # seconds between two writes: what a kill can lose


class Spent:
    """The seconds of this process since it was made, written down as it goes."""

    def __init__(self, chunks: Path):
        self.path = chunks / "spent" / f"{uuid.uuid4().hex[:12]}.txt"
        self.began = self.written = time.perf_counter()

    def write(self, last: bool = False) -> None:
        """Write them down if it is time, or for the last time. A disk that cannot take them is no reason to stop."""
        now = time.perf_counter()
        if last or now - self.written > EVERY:
            self.written = now
            with contextlib.suppress(OSError):
                self.path.parent.mkdir(exist_ok=True)
                self.path.write_text(f"{now - self.began:.3f}\n")


def seconds(chunks: Path) -> float:
    """The seconds of all processes."""
    total = 0.0
    for path in chunks.glob("spent/*.txt"):
        with contextlib.suppress(OSError, ValueError):  # half written by a process that was killed
            total += float(path.read_text())
    return total


def clear(chunks: Path) -> None:
    """Forget them."""
    for path in chunks.glob("spent/*.txt"):
        path.unlink(missing_ok=True)

"""Whether a result can be held at all: asked before a sweep runs, not when it fails."""

import contextlib
import os
import shutil
from pathlib import Path

from jaxbandits.formatting import size
from jaxbandits.sweeps.storage.dataset_file import CHUNKS, RESULTS


def check(need: int, directory: Path | None, seeds: int, checkpoints: int) -> None:
    """Raise ValueError where a result of `need` bytes does not fit the memory or, with a store, the disk."""
    if directory is None:
        room, where, remedy = free_memory(), "of memory are free", "give store=DIR, "
    else:
        place = next(p for p in (directory.absolute(), *directory.absolute().parents) if p.exists())
        room, where = shutil.disk_usage(place).free, f"are free on the disk of {directory}"
        remedy = "choose another disk, "
        if need > room:  # files of this run that are there already will be replaced or need not be written
            room += sum(
                p.stat().st_size for p in [directory / RESULTS, *(directory / CHUNKS).rglob("*.npz")] if p.is_file()
            )
    if need > room:
        raise ValueError(
            f"seeds = {seeds:,}: the result needs {size(need)} and {size(room)} {where}: {remedy}take fewer "
            f"checkpoints ({checkpoints:,} now) or fewer seeds (about {max(1, int(seeds * room / need * 0.9)):,} fit)"
        )


def free_memory() -> int:
    """Bytes that this process may still take: what the system says is available, and what its container leaves."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 62
    room = pages
    with contextlib.suppress(OSError, IndexError, ValueError):
        room = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) * 1024
    with contextlib.suppress(OSError, ValueError):  # "max" where there is no limit
        group = Path("/sys/fs/cgroup")
        left = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
        room = min(room, max(left, 0))
    return room

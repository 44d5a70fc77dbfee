"""A planned sweep on its way to a Dataset: what is finished is found, the rest is computed, and everything is merged."""

import errno
import json
import os
import shutil
import sys
import threading
import uuid
import warnings
from pathlib import Path
from typing import Any

import xarray as xr
from tqdm import tqdm

from jaxbandits.sweeps import estimate, tasks
from jaxbandits.sweeps.files import RESULTS, load
from jaxbandits.sweeps.identity import keys_of
from jaxbandits.sweeps.local import Chunk
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.results import Results
from jaxbandits.sweeps.store import Store, Unreadable, block_of, remedy
from jaxbandits.sweeps.tasks import Interval, Keys, Task, owned, seeds_of, without

HEADER_BYTES = 1 << 16  # of results.nc: coordinates and attributes


class SweepError(RuntimeError):
    """Some calls failed in Python; `failures` holds (label, seeds, reason, traceback). What the others computed is kept."""

    def __init__(self, failures: list[tuple[str, range, str, str]], total: int):
        self.failures = failures
        label, seeds, reason, _ = failures[0]
        super().__init__(
            f"{len(failures)} of {total} calls failed and the others are kept: mend it or leave it out and run again. The first "
            f"is {label!r}, seeds {seeds.start} to {seeds.stop - 1}: {reason}"
        )


class Job:
    """One sweep, checked: plan, engine and, where there is a directory, the store. Nothing is written before it runs."""

    def __init__(self, plan: Plan, config: dict, engine: Any, directory=None, *, progress=True, fresh=False):
        self.plan, self.config, self.engine, self.progress, self.fresh = plan, config, engine, progress, fresh
        self.directory = None if directory is None else Path(directory)
        self.shapes = tasks.shapes_of(plan)
        tasks.fitting(plan, owned(plan, 1, None), engine.machine, self.shapes)  # says now that the memory is too small
        self.store = None if self.directory is None else Store(self.directory)
        self.keys = [] if self.store is None else keys_of(plan, engine.machine.platform)
        self.block = block_of(max(len(t) for t in plan.times.values()))
        self.computed = 0  # plays of this process
        self.locked = self.store is not None and self.store.locked  # what is there can be read only

    def dataset(self) -> xr.Dataset:
        """Compute what is missing and return everything."""
        if self.store is None or self.directory is None:
            results = Results(self.plan, self.shapes, self.config)
            self._run(owned(self.plan, 1, None), lambda task, chunk: _each(task, chunk, results.put))
            return results.dataset()
        if self.locked and not self.fresh and self._finished(self.store):
            return load(self.directory)
        try:
            for _ in range(3):  # a damaged file is found when it is merged
                self.compute()
                if self._merge(self.store):
                    self._tidy(self.store)
                    return load(self.directory)
        except KeyboardInterrupt as stop:
            stop.add_note(f"everything finished is in {self.directory}: the same call goes on from there")
            raise
        hurt = ", ".join(dict.fromkeys(self.store.reported[-3:])) or "some have gone"
        raise OSError(f"{self.directory}: finished chunks are damaged again and again ({hurt}): check the disk")

    def compute(self, shard: tuple[int, int] | None = None) -> None:
        """Bring the store up to the whole sweep, or to one shard of it."""
        assert self.store is not None and self.directory is not None
        self.store.prepare()
        if self.fresh:
            self.store.clear()
            (self.directory / RESULTS).unlink(missing_ok=True)
            self.fresh = False
        self.store.claim(self.config)
        pieces = self.store.pieces(self.keys)
        wanted, seen = [], set()
        for key, mine in zip(self.keys, owned(self.plan, self.block, shard), strict=True):
            # one cell under two labels is computed once
            wanted.append([] if key in seen else without(mine, seeds_of(pieces[key])))
            seen.add(key)
        if any(wanted):
            self._run(wanted, self._write)

    def _run(self, wanted: list[list[Interval]], sink) -> None:
        plan, store, machine = self.plan, self.store, self.engine.machine
        before = []
        if store is not None:
            before = tasks.resumed(store.begun(), plan, self.keys, wanted, machine, self.shapes)
        machine, calls = tasks.fitting(plan, wanted, machine, self.shapes)
        calls = before + calls
        total = sum(tasks.weight(task, plan) for task in calls)
        failures: list = []
        if self.progress:
            estimate.announce(self, calls, machine)

        def failed(task: Task, reason: str, said: str):
            label, seeds = plan.cells[task.cells[0]].label, range(task.first, task.first + task.seeds)
            failures.append((label, seeds, reason, said))
            if len(failures) == 1:
                warnings.warn(f"{label!r} failed, the other calls go on:\n{said}", RuntimeWarning, stacklevel=2)

        lock, quiet = threading.Lock(), not sys.stderr.isatty()
        with tqdm(
            total=total, unit="play", unit_scale=True, leave=False, disable=not self.progress,
            desc=f"{sum(task.seeds * len(task.cells) for task in calls):,} lanes", mininterval=30 if quiet else 0.1,
        ) as bar:  # fmt: skip

            def report(plays):
                with lock:
                    bar.update(min(plays, total - bar.n))

            self.engine.run(
                plan, calls, machine, keys=self.keys, store=store, block=self.block, sink=sink, report=report,
                failed=None if store is None else failed,
            )  # fmt: skip
        self.computed += total
        if failures:
            raise SweepError(failures, len(calls))

    def _write(self, task: Task, chunk: Chunk | None) -> None:
        assert self.store is not None
        if chunk is not None:  # None: the engine's worker has written it
            keep_chunk(self.store, task, chunk, self.keys, self.block)

    def _merge(self, store: Store) -> bool:
        """Write results.nc from the store in the order of the plan; False where a file was damaged or has gone."""
        assert self.directory is not None
        whole, seeds = True, (self.plan.seeds.start, self.plan.seeds.stop)
        part = self.directory / f".{RESULTS}.{uuid.uuid4().hex[:8]}.part"
        need = tasks.total_bytes(self.plan, self.shapes) + HEADER_BYTES + 64 * len(self.plan.seeds)
        try:
            if shutil.disk_usage(self.directory).free < need:  # asked first: HDF5 does not take a full disk well
                raise OSError(errno.ENOSPC, f"it needs {need:,} bytes")
            results = Results(self.plan, self.shapes, self.config, part)
            pieces = store.pieces(self.keys)
            for cell, key in enumerate(self.keys):
                covered = []
                for piece in pieces[key]:
                    arrays = store.read(piece, results.expected(cell))
                    if arrays is not None:
                        results.put(cell, piece.first, arrays)
                        covered.append((piece.first, piece.stop))
                whole = whole and not without([seeds], covered)
            results.close()
            if whole:
                os.replace(part, self.directory / RESULTS)
        except Unreadable:
            raise
        except (OSError, RuntimeError) as error:  # HDF5 has its own words for a full disk
            said = f"cannot write {self.directory / RESULTS} ({str(error).splitlines()[0]})"
            raise OSError(f"{said}: {remedy(error)} and run it again, everything finished is kept") from None
        finally:
            part.unlink(missing_ok=True)
        return whole

    def _finished(self, store: Store) -> bool:
        """Whether every chunk is there, and results.nc is of this very configuration."""
        assert self.directory is not None
        if not (self.directory / RESULTS).is_file():
            return False
        pieces, seeds = store.pieces(self.keys), (self.plan.seeds.start, self.plan.seeds.stop)
        if any(without([seeds], seeds_of(pieces[key])) for key in self.keys):
            return False
        return json.loads(load(self.directory).attrs.get("config", "null")) == self.config

    def _tidy(self, store: Store) -> None:
        """Forget calls on their way that other calls have overtaken."""
        for call in store.begun():
            pieces = store.pieces(call.keys)
            span = [(call.first, call.first + call.seeds)]
            if not any(without(span, seeds_of(pieces[key])) for key in call.keys):
                store.forget_begun(call)


def _each(task: Task, chunk: Chunk, put) -> None:
    for m, c in enumerate(task.cells):
        put(c, chunk.first, chunk.of(m))


def keep_chunk(store: Store, task: Task, chunk: Chunk, keys: Keys, block: int) -> None:
    """Write a finished call as files, one a cell and block of seeds."""
    for m, c in enumerate(task.cells):
        arrays = chunk.of(m)
        for low, high in tasks.blocks(task.first, task.first + task.seeds, block):
            at = slice(low - task.first, high - task.first)
            store.write(keys[c], low, {name: x[at] for name, x in arrays.items()})
    store.forget_begun(tasks.as_begun(task, keys))

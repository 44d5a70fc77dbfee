"""From a planned sweep to a Dataset: finished chunks are looked up, the rest is computed, and everything is merged."""

import contextlib
import errno
import os
import shutil
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from jaxbandits.formatting import size
from jaxbandits.sweeps import estimate
from jaxbandits.sweeps.dataset import Results, arrays_of
from jaxbandits.sweeps.engines import calls as work
from jaxbandits.sweeps.engines.contract_faults import Fault, cells_in_breach, verdict
from jaxbandits.sweeps.engines.local import Orders
from jaxbandits.sweeps.engines.one_call import Outcome, keep_outcome
from jaxbandits.sweeps.engines.remaining import Remaining
from jaxbandits.sweeps.identity import identify_cells
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.storage.dataset_file import CHUNKS, RESULTS, describe_missing, load
from jaxbandits.sweeps.storage.store import Store, Unreadable, block_of, remedy

if TYPE_CHECKING:
    import xarray as xr


Put: TypeAlias = Callable[[int, int, dict[str, Any]], None]  # takes a cell, the first seed, arrays
HEADER_BYTES = 1 << 16  # for coordinates and attributes of results.nc
TRIES = 3  # a damaged file is noticed when it is read, and computed again


class SweepError(RuntimeError):
    """Some calls of a sweep failed in Python; what the others computed is in the store."""

    def __init__(self, failures: list[tuple[str, range, str, str]], total: int) -> None:
        # of every failed call: label, seeds, reason, traceback
        self.failures = failures
        label, seeds, reason, _ = failures[0]
        super().__init__(
            f"{len(failures)} of {total} calls failed and the others are kept: mend it or leave it out and run again. "
            f"The first is {label!r}, seeds {seeds.start} to {seeds.stop - 1}: {reason}"
        )


def check_room(need: int, directory: Path | None, seeds: int, checkpoints: int) -> None:
    """Raise ValueError where a result of `need` bytes does not fit the memory or, with a store, the disk."""
    if directory is None:
        room, where, advice = free_memory(), "of memory are free", "give store=DIR, "
    else:
        place = next(p for p in (directory.absolute(), *directory.absolute().parents) if p.exists())
        room, where = shutil.disk_usage(place).free, f"are free on the disk of {directory}"
        advice = "choose another disk, "
        if need > room:  # files of this run that are there already will be replaced or need not be written
            room += sum(
                p.stat().st_size for p in [directory / RESULTS, *(directory / CHUNKS).rglob("*.npz")] if p.is_file()
            )
    if need > room:
        raise ValueError(
            f"seeds = {seeds:,}: the result needs {size(need)} and {size(room)} {where}: {advice}take fewer "
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


class CheckedSweep:
    """A checked sweep: plan, engine and, where there is a directory, the store. Nothing is written before it runs."""

    def __init__(
        self,
        plan: Plan,
        config: dict[str, Any],
        common: dict[str, Any],
        engine: Any,
        directory: Path | None = None,
        *,
        progress: bool = True,
        fresh: bool = False,
    ) -> None:
        self.began = time.perf_counter()
        self.config, self.common, self.engine, self.directory, self.fresh = config, common, engine, directory, fresh
        self.progress = progress and sys.stderr is not None  # a process may begin with its streams closed
        work.check_parts(plan)
        self.plan, self.keys, self.nameless = identify_cells(
            plan, engine.machine.platform, stored=directory is not None
        )
        self.plan = plan = work.add_lane_shapes(self.plan)
        recorded = max(map(len, plan.times.values()))
        check_room(work.total_bytes(plan), directory, len(plan.seeds), recorded)
        self.whole = work.seeds_of_shard(plan)
        self.fitted = work.fitting(plan, self.whole, engine.machine)  # raises now where the memory is too small
        self.store = None if directory is None else Store(directory, block_of(recorded), self.began)
        if self.nameless:
            reason = next(iter(self.nameless.values()))
            warnings.warn(f"{reason}: it is computed anew in every run", UserWarning, stacklevel=2)
        self.notes: dict[str, str] = {}  # further attributes of the result
        self.announced = False  # what is computed is a further part of what was announced
        self.computed = 0  # plays of this process
        self.lanes_computed = 0  # lanes of this process
        self.lanes_stored = 0  # lanes that it was to compute and found in the store
        self.left_out = ""  # what an earlier result of this directory held and this one does not
        self.locked = self.store is not None and self.store.locked  # the store can be read and not written

    @property
    def lanes(self) -> int:
        """Lanes of the whole sweep. A cell under two labels, or repeated along an axis, counts once."""
        return len(self.plan.seeds) * (len(set(self.keys)) if self.keys else len(self.plan.cells))

    def lanes_in_words(self, computed: int) -> str:
        """How many lanes come from the store and how many are computed, as text."""
        return f"{self.lanes - computed:,} lanes from the store, {computed:,} computed"

    @property
    def replaced(self) -> str:
        """A line about what an earlier result held and this one does not; empty where it holds all of that."""
        rest = f"{self.left_out}: finished chunks of it are kept, a run that asks for it computes nothing twice"
        return f"{self.directory}/{RESULTS} no longer holds {rest}" if self.left_out else ""

    @property
    def seconds(self) -> float:
        """Seconds of this process, from the plan to the last chunk or the finished result."""
        spent = None if self.store is None else self.store.spent
        return time.perf_counter() - self.began if spent is None else spent

    def dataset(self) -> "xr.Dataset":
        """Compute what is missing and return everything."""
        if self.store is None or self.directory is None:
            results = Results(self.plan, self.config, self.notes)
            self._run(self.whole, results.put)
            return results.as_dataset()
        if self.locked and not self.fresh:  # read the chunks: results.nc may come from an earlier state of the code
            results = Results(self.plan, self.config, self.notes)
            if self._read(self.store, results.put):
                return results.as_dataset()
        with self._resumable():
            for _ in range(TRIES):
                self.compute()
                if self._merge(self.store):
                    self._tidy(self.store)
                    ds = load(self.directory)
                    if self.store.spent is not None:
                        self.store.note_seconds(last=True)
                    return ds
        raise self._damage_error(self.store)

    @contextlib.contextmanager
    def _resumable(self) -> Iterator[None]:
        """A Ctrl-C says where everything finished is."""
        try:
            yield
        except KeyboardInterrupt as stop:
            stop.add_note(f"everything finished is in {self.directory}: the same call goes on from there")
            raise

    def _damage_error(self, store: Store) -> OSError:
        hurt = ", ".join(dict.fromkeys(store.reported[-3:])) or "some have gone"
        return OSError(f"{self.directory}: finished chunks are damaged again and again ({hurt}): check the disk")

    def compute(self, shard: tuple[int, int] | None = None) -> None:
        """Compute what the store lacks of the whole sweep, or of shard (i, n) of it."""
        assert self.store is not None and self.directory is not None
        if shard is not None and self.nameless:
            raise ValueError(f"{next(iter(self.nameless.values()))}: shares of it cannot be put together, use `run`")
        self.store.prepare()
        if self.fresh:
            self.store.delete_files()
            (self.directory / RESULTS).unlink(missing_ok=True)
            self.fresh = False
        self.store.record_settings(self.config, self.common)
        chunks = self.store.chunks(self.keys)
        mine = work.seeds_of_shard(self.plan, shard, set(work.first_cells(self.keys).values()))
        wanted = [work.without(x, chunks[key]) for key, x in zip(self.keys, mine, strict=True)]
        asked, missing = (sum(high - low for x in seeds for low, high in x) for seeds in (mine, wanted))
        self.lanes_stored = asked - missing
        if any(wanted):
            try:
                self._run(wanted)
            finally:
                self.store.note_seconds(last=True)
        elif self.progress and shard is None:
            estimate.print_progress(self.lanes_in_words(self.lanes_computed))

    def _run(self, wanted: list[list[work.Interval]], put: Put | None = None) -> None:
        """Compute the wanted seeds of every cell for `put`, or for the store; afterwards raise what went wrong."""
        plan, store, machine = self.plan, self.store, self.engine.machine
        before = [] if store is None else work.calls_to_resume(store.all_begun(), plan, self.keys, wanted, machine)
        machine, calls = self.fitted if wanted is self.whole else work.fitting(plan, wanted, machine)
        if store is not None:
            calls = before + [call._replace(keys=tuple(self.keys[c] for c in call.cells)) for call in calls]
        remaining = Remaining(plan, calls, machine)
        failures: list[tuple[str, range, str, str]] = []
        seen: list[Fault] = []

        def note_failure(call: work.Call, reason: str, trace: str) -> None:
            label, seeds = plan.cells[call.cells[0]].label, range(call.first, call.first + call.seeds)
            failures.append((label, seeds, reason, trace))
            if len(failures) == 1:
                warnings.warn(f"{label!r} failed, the other calls go on: {reason}", RuntimeWarning, stacklevel=2)

        def keep_result(call: work.Call, outcome: Outcome) -> None:
            if put is not None:
                for m, arrays in outcome.sound(call):
                    put(call.cells[m], call.first, arrays)
            elif store is not None:
                if outcome.regret is not None:
                    keep_outcome(store, call, outcome)
                store.note_seconds()
            if outcome.faults:
                broken = cells_in_breach(outcome.faults)
                if broken and not cells_in_breach(seen) and len(calls) > 1:
                    label = plan.cells[min(broken)].label
                    warnings.warn(f"{label!r} broke the contract, the other calls go on", RuntimeWarning, stacklevel=2)
                seen.extend(outcome.faults)

        orders = Orders(
            store, keep_result, None if store is None else note_failure, estimate.print_progress, remaining.note_plays
        )
        if self.progress:
            lines = [] if self.announced else estimate.announcement(self, calls, machine)
            meter = estimate.Meter(plan, remaining, machine, lines)
            orders = orders._replace(
                say=meter.print_above_bar, report=meter.report, compiling=meter.compiling, compiles=meter.compiles
            )
        with contextlib.closing(meter.bar) if self.progress else contextlib.nullcontext():
            self.engine.run(plan, remaining, machine, orders)
        for call in calls:
            self.computed += work.weight(call, plan)
            self.lanes_computed += call.seeds * len(call.cells)
        failed_calls = SweepError(failures, len(calls)) if failures else None
        if seen and (error := verdict(plan.cells, plan.times, plan.dtype, seen, stacklevel=5)) is not None:
            raise error from failed_calls
        if failed_calls is not None:
            raise failed_calls

    # docs/decisions.md#damage
    def _merge(self, store: Store) -> bool:
        """Write results.nc from the store, in the order of the plan; False where a file is damaged or missing."""
        assert self.directory is not None
        part = self.directory / f".{RESULTS}.{uuid.uuid4().hex[:8]}.part"
        need = work.total_bytes(self.plan) + HEADER_BYTES + 64 * len(self.plan.seeds)
        try:
            if shutil.disk_usage(self.directory).free < need:  # checked first: HDF5 may not recover from a full disk
                raise OSError(errno.ENOSPC, f"it needs {need:,} bytes")
            results = Results(self.plan, self.config, self.notes, part)
            if whole := self._read(store, results.put):
                results.put_best()
            results.file.close()
            if whole:
                self.left_out = describe_missing(self.directory / RESULTS, part)
                os.replace(part, self.directory / RESULTS)
        except Unreadable:
            raise
        except (OSError, RuntimeError) as error:  # HDF5 has its own words for a full disk
            reason = f"cannot write {self.directory / RESULTS} ({str(error).splitlines()[0]})"
            raise OSError(f"{reason}: {remedy(error)} and run it again, everything finished is kept") from None
        finally:
            part.unlink(missing_ok=True)
        return whole

    def _read(self, store: Store, put: Put) -> bool:
        """Give `put` the arrays of the plan's chunks, in its order; False where a file is damaged or missing."""
        whole, seeds = True, self.plan.seeds
        chunks, expected = store.chunks(self.keys), arrays_of(self.plan)
        for cell, key in enumerate(self.keys):
            covered = []
            for chunk in chunks[key]:
                wanted = chunk.stop > seeds.start and chunk.first < seeds.stop
                if wanted and (arrays := store.read(chunk, expected[cell])) is not None:
                    put(cell, chunk.first, arrays)
                    covered.append(chunk)
            whole = whole and not work.without([(seeds.start, seeds.stop)], covered)
        return whole

    def _tidy(self, store: Store) -> None:
        """Delete unfinished calls whose seeds are finished by now, and chunks that no later run can find."""
        for chunks in store.chunks(self.nameless).values():
            for chunk in chunks:
                chunk.path.unlink(missing_ok=True)
        for call in store.all_begun():
            chunks = store.chunks(call.keys)
            span = [(call.first, call.first + call.seeds)]
            if not any(work.without(span, chunks[key]) for key in call.keys):
                store.forget_begun(call)

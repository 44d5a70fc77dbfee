"""From a planned sweep to a Dataset: finished chunks are looked up, the rest is computed, and everything is merged."""

import contextlib
import errno
import itertools
import os
import shutil
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from jaxbandits.contract import describe_error
from jaxbandits.formatting import size
from jaxbandits.strangers import STAND_IN
from jaxbandits.sweeps import estimate
from jaxbandits.sweeps.dataset import Results, arrays_of, plan_of_runs
from jaxbandits.sweeps.engines import calls as work
from jaxbandits.sweeps.engines.calls import Machine
from jaxbandits.sweeps.engines.contract_faults import Fault, cells_in_breach, verdict
from jaxbandits.sweeps.engines.local import Local, Orders, control_groups
from jaxbandits.sweeps.engines.one_call import Outcome, keep_outcome
from jaxbandits.sweeps.engines.remaining import Remaining
from jaxbandits.sweeps.engines.strangers import Strangers, try_out
from jaxbandits.sweeps.identity import identify_cells
from jaxbandits.sweeps.plan import Plan
from jaxbandits.sweeps.storage.dataset_file import CHUNKS, RESULTS, describe_missing, load
from jaxbandits.sweeps.storage.store import UNFINISHED, Store, Unreadable, block_of, remedy
from jaxbandits.sweeps.until import Until
from jaxbandits.sweeps.until_decided import decide

if TYPE_CHECKING:
    import xarray as xr

    from jaxbandits.sweeps.engines.ray_cluster import Ray


Computed: TypeAlias = tuple[int, int, dict[str, Any]]  # a cell, the first seed, arrays
OnChunk: TypeAlias = Callable[[Any, int, float], object]  # a Dataset of finished runs, how many so far, seconds
Put: TypeAlias = Callable[[int, int, dict[str, Any]], None]  # takes the same
Engine: TypeAlias = "Local | Ray | Strangers"
Calls: TypeAlias = list[work.Call]
HEADER_BYTES = 1 << 16  # for coordinates and attributes of results.nc
TRIES = 3  # a damaged file is noticed when it is read, and computed again


class SweepError(RuntimeError):
    """Some calls of a sweep failed in Python; what the others computed is in the store."""

    def __init__(self, failures: list[tuple[str, range, str, str]], total: int) -> None:
        # of every failed call: label, seeds, reason, traceback
        self.failures = failures
        label, seeds, reason, _ = failures[0]
        failed = f"{len(failures)} of {total} calls failed and the others are kept"
        first = f"The first is {label!r}, seeds {seeds.start} to {seeds.stop - 1}: {reason}"
        super().__init__(f"{failed}: mend it or leave it out and run again. {first}")


def check_room(need: int, directory: Path | None, seeds: int, checkpoints: int) -> None:
    """Raise ValueError where a result of `need` bytes does not fit the memory or, with a store, the disk."""
    if directory is None:
        room, where, advice = free_memory(), "of memory are free", "give store=DIR, "
    else:
        place = next(p for p in (directory.absolute(), *directory.absolute().parents) if os.path.exists(p))
        room, where = shutil.disk_usage(place).free, f"are free on the disk of {directory}"
        advice = "choose another disk, "
        if need > room:  # files of this run that are there already will be replaced or need not be written
            files = [directory / RESULTS, *(directory / CHUNKS).rglob("*.npz")]
            room += sum(p.stat().st_size for p in files if p.is_file())
    if need > room:
        fits = max(1, int(seeds * room / need * 0.9))
        fewer = f"checkpoints ({checkpoints:,} now) or fewer seeds (about {fits:,} fit)"
        lack = f"the result needs {size(need)} and {size(room)} {where}"
        raise ValueError(f"seeds = {seeds:,}: {lack}: {advice}take fewer {fewer}")


def free_memory() -> int:
    """Bytes that this process may still take: what the system says is available, and what its container leaves."""
    room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 62
    with contextlib.suppress(OSError, IndexError, ValueError):
        room = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) * 1024
    for group in control_groups("memory"):
        with contextlib.suppress(OSError, ValueError):  # "max" where there is no limit
            left = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
            with contextlib.suppress(OSError, ValueError):  # what was read from files makes room for what is asked for
                left += int(dict(map(str.split, (group / "memory.stat").read_text().splitlines()))["inactive_file"])
            room = min(room, max(left, 0))
    return room


class Prepared(NamedTuple):
    """A sweep that was checked. Nothing is written before it runs."""

    plan: Plan
    config: dict[str, Any]  # the sweep's arguments
    common: dict[str, Any]  # those of them that have no default value
    engine: "Local | Ray"
    directory: Path | None
    store: Store | None  # there
    keys: list[str]  # of the plan's cells, for the store
    nameless: dict[str, str]  # keys that no later run finds, and why
    calls: tuple[Machine, list[work.Call]]  # that compute everything, and where
    progress: bool
    fresh: bool  # whether the store is emptied first
    notes: dict[str, str]  # further attributes of the result

    @property
    def lanes(self) -> int:
        """Lanes of the whole sweep. A cell under two labels, or repeated along an axis, counts once."""
        return len(self.plan.seeds) * (len(set(self.keys)) if self.keys else len(self.plan.cells))


def check_sweep(
    plan: Plan, config: dict[str, Any], common: dict[str, Any], engine: "Local | Ray", directory: Path | None = None,
    *, progress: bool = True, fresh: bool = False,
) -> Prepared:  # fmt: skip
    """Check what a planned sweep plays, and that its results and its calls have room."""
    began = time.perf_counter()
    work.check_parts(plan)
    plan, keys, nameless = identify_cells(plan, engine.machine.platform, stored=directory is not None)
    plan = try_out(work.add_lane_shapes(plan))
    recorded = max(map(len, plan.times.values()))
    check_room(work.total_bytes(plan), directory, len(plan.seeds), recorded)
    calls = work.fitting(plan, work.seeds_of_shard(plan), engine.machine)  # raises now where the memory is too small
    for reason in list(nameless.values())[:1]:
        warnings.warn(f"{reason}: it is computed anew in every run", UserWarning, stacklevel=2)
    store = None if directory is None else Store(directory, block_of(recorded), began)
    progress = progress and sys.stderr is not None  # a process may begin with its streams closed
    return Prepared(plan, config, common, engine, directory, store, keys, nameless, calls, progress, fresh, notes={})


class SweepRun:
    """Runs a checked sweep, and counts what it does."""

    def __init__(self, sweep: Prepared, on_chunk: OnChunk | None = None) -> None:
        self.sweep = sweep  # with `until`, on the seeds that decided once that is known
        self.on_chunk, self.began, self.lanes_told = on_chunk, time.perf_counter(), 0
        self.fresh = sweep.fresh  # the store is still to be emptied
        self.computed = 0  # plays of this process
        self.lanes_computed = 0  # lanes of this process
        self.lanes_stored = 0  # lanes that it was to compute and found in the store
        self.lanes_begun = 0  # lanes that go on from where an earlier run left them
        self.config_file = b""  # written as config.toml before anything is computed, or with what it replaces
        self.left_out = ""  # what an earlier result of this directory held and this one does not

    @property
    def summary(self) -> str:
        """How many lanes come from the store and how many are computed, as text."""
        return f"{self.sweep.lanes - self.lanes_computed:,} runs from the store, {self.lanes_computed:,} computed"

    @property
    def replaced(self) -> str:
        """A line about what an earlier result held and this one does not; empty where it holds all of that."""
        rest = f"{self.left_out}: finished chunks of it are kept, a run that asks for it computes nothing twice"
        return f"{self.sweep.directory}/{RESULTS} no longer holds {rest}" if self.left_out else ""

    def dataset(self) -> "xr.Dataset":
        """Compute what is missing and return everything."""
        kept = list[Computed]()  # of the seeds that decide, where there is no store
        if until := self.sweep.config.get("until"):
            self._decide(Until(**until), kept)
        sweep, store = self.sweep, self.sweep.store
        if store is None or (store.locked and not self.fresh):
            results = Results(sweep.plan, sweep.config, sweep.notes)
            if store is None and not until:
                self._play(sweep, *sweep.calls, results.put)
            while kept:
                results.put(*kept.pop())
            # read the chunks: results.nc may come from an earlier state of the code
            if store is None or read_chunks(sweep, store, results.put):
                return results.as_dataset()
        assert store is not None
        with resumable(sweep, store):
            for _ in range(TRIES):
                self.compute()
                if self.merge(store):
                    ds = load(store.home.parent)
                    if stamp_of(store.home.parent / RESULTS) != self.written:  # another process has put its own there
                        ds.close()
                        results = Results(sweep.plan, sweep.config, sweep.notes)
                        if not read_chunks(sweep, store, results.put):
                            continue
                        ds = results.as_dataset()
                    tidy_store(sweep, store)
                    if store.spent is not None:
                        store.note_seconds(last=True)
                    return ds
        raise damage_error(store)

    def _decide(self, rule: Until, kept: list[Computed]) -> None:
        """Compute seeds until every comparison is decided: they are the sweep's from then on."""
        say = estimate.print_progress if self.sweep.progress else lambda _: None
        seeds, decisions = decide(self.sweep.plan, rule, partial(self._regret, kept), say)
        plan, config = self.sweep.plan._replace(seeds=seeds), self.sweep.config | {"seeds": [0, seeds.stop]}
        self.sweep = self.sweep._replace(plan=plan, config=config, notes={"decisions": decisions})

    def _regret(self, kept: list[Computed], seeds: range) -> np.ndarray[Any, Any]:
        """Regret at the horizon [cells, seeds], from the store or computed. Without a store `kept` gets what is."""
        sweep = self.sweep._replace(plan=self.sweep.plan._replace(seeds=seeds))
        plan, store = sweep.plan, sweep.store
        regret = np.full((len(plan.cells), len(seeds)), np.nan)

        def put(cell: int, first: int, arrays: dict[str, Any]) -> None:
            last = np.asarray(arrays["regret"])[max(seeds.start - first, 0) : seeds.stop - first, -1]
            low = max(first - seeds.start, 0)
            regret[cell, low : low + len(last)] = last
            if store is None:
                kept.append((cell, first, arrays))

        if store is None:
            self._play(sweep, *work.fitting(plan, work.seeds_of_shard(plan), sweep.engine.machine), put)
            return regret
        with resumable(sweep, store):
            for _ in range(1 + TRIES):
                if not self.fresh and read_chunks(sweep, store, put):
                    return regret
                self.compute(sweep=sweep)
        raise damage_error(store)

    def compute(self, shard: tuple[int, int] | None = None, sweep: Prepared | None = None) -> None:
        """Compute what the store lacks of the whole sweep, of shard (i, n) of it, or of one on some of its seeds."""
        sweep = sweep or self.sweep
        plan, keys, store, machine = sweep.plan, sweep.keys, sweep.store, sweep.engine.machine
        assert store is not None
        if shard is not None and "until" in sweep.config:
            why = "how many seeds run depends on what all of them show, and a shard sees its own alone"
            remedy = "use `run`, or give the shards a number of seeds (--seeds N)"
            raise ValueError(f"seeds = until(...): {why}: {remedy}")
        if shard is not None and sweep.nameless:
            raise ValueError(f"{next(iter(sweep.nameless.values()))}: shares of it cannot be put together, use `run`")
        store.prepare()
        if self.fresh:
            store.delete_files()
            (store.home.parent / RESULTS).unlink(missing_ok=True)
            self.fresh = False
        store.record_settings(sweep.config, sweep.common)
        if not (store.home.parent / RESULTS).is_file():  # an earlier result keeps its own until it is replaced
            self._write_config(store)
        chunks = store.chunks(keys)
        mine = work.seeds_of_shard(plan, shard, set(work.first_cells(keys).values()))
        wanted = [work.without(x, chunks[key]) for key, x in zip(keys, mine, strict=True)]
        asked, missing = (sum(high - low for x in seeds for low, high in x) for seeds in (mine, wanted))
        self.lanes_stored = asked - missing
        if any(wanted):
            try:
                before = work.calls_to_resume(store.all_begun(), plan, keys, wanted, machine)
                self.lanes_begun = sum(call.seeds * len(call.cells) for call in before)
                machine, calls = work.fitting(plan, wanted, machine)
                calls = [call._replace(keys=tuple(keys[c] for c in call.cells)) for call in calls]
                self._play(sweep, machine, before + calls)
            finally:
                store.note_seconds(last=True)
        elif sweep.progress and shard is None:
            estimate.print_progress(self.summary)

    def _play(self, sweep: Prepared, machine: Machine, calls: Calls, put: Put | None = None) -> None:
        """Compute calls for `put`, or for the store: foreign learners last, in processes of their own."""
        ours, theirs = Calls(), Calls()
        for call in calls:
            (theirs if sweep.plan.groups[call.group].parts.program is STAND_IN else ours).append(call)
        if not theirs:
            return self._play_on(sweep.engine, sweep, machine, calls, put)
        engine = Strangers(machine)
        try:
            if ours:
                self._play_on(sweep.engine, sweep, machine, ours, put)
        except Exception:
            self._play_on(engine, sweep, engine.machine, theirs, put)
            raise
        self._play_on(engine, sweep, engine.machine, theirs, put)

    def _play_on(self, engine: "Engine", sweep: Prepared, machine: Machine, calls: Calls, put: Put | None) -> None:
        """Compute calls on an engine; afterwards raise what went wrong."""
        plan, store = sweep.plan, sweep.store
        remaining = Remaining(plan, calls, machine)
        failures: list[tuple[str, range, str, str]] = []
        seen: list[Fault] = []

        def note_failure(call: work.Call, reason: str, trace: str) -> None:
            label, seeds = plan.cells[call.cells[0]].label, range(call.first, call.first + call.seeds)
            failures.append((label, seeds, reason, trace))
            if len(failures) == 1:
                warn_meanwhile(f"{label!r} failed, the other calls go on: {reason}")

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
                    warn_meanwhile(f"{label!r} broke the contract, the other calls go on")
                seen.extend(outcome.faults)
            if self.on_chunk is not None:
                self._show_chunk(self.on_chunk, sweep, call, outcome)

        failed = None if store is None else note_failure
        orders = Orders(store, keep_result, failed, estimate.print_progress, remaining.note_plays)
        if sweep.progress:
            further = "until" in sweep.config and self.computed  # seeds of what was announced
            lines = [] if further else estimate.announcement(sweep, self.lanes_stored, self.lanes_begun, calls, machine)
            meter = estimate.Meter(plan, remaining, machine, lines)
            orders = orders._replace(
                say=meter.print_above_bar, report=meter.report, compiling=meter.compiling, compiles=meter.compiles
            )
        with contextlib.closing(meter.bar) if sweep.progress else contextlib.nullcontext():
            engine.run(plan, remaining, machine, orders)
        for call in calls:
            self.computed += work.weight(call, plan)
            self.lanes_computed += call.seeds * len(call.cells)
        failed_calls = SweepError(failures, len(calls)) if failures else None
        if seen and (error := verdict(plan.cells, plan.times, plan.dtype, seen, stacklevel=6)) is not None:
            raise error from failed_calls
        if failed_calls is not None:
            raise failed_calls

    def _show_chunk(self, on_chunk: OnChunk, sweep: Prepared, call: work.Call, outcome: Outcome) -> None:
        """Give a user's function the runs of a call that is finished; one that fails is not called again."""
        self.lanes_told += call.seeds * len(call.cells)
        seeds = range(max(call.first, sweep.plan.seeds.start), min(call.first + call.seeds, sweep.plan.seeds.stop))
        part, cells = plan_of_runs(sweep.plan, call.cells, seeds)
        results, expected = Results(part, sweep.config, sweep.notes), arrays_of(sweep.plan)
        if outcome.regret is not None:
            for m, arrays in outcome.sound(call):
                results.put(cells.index(call.cells[m]), call.first, arrays)
        elif sweep.store is not None:  # another process has written them
            for chunk in itertools.chain(*sweep.store.chunks(call.keys).values()):
                cell = call.cells[call.keys.index(chunk.key)]
                inside = call.first <= chunk.first < call.first + call.seeds
                if inside and (arrays := sweep.store.read(chunk, expected[cell])) is not None:
                    results.put(cells.index(cell), chunk.first, arrays)
        try:
            on_chunk(results.as_dataset(), self.lanes_told, time.perf_counter() - self.began)
        except Exception as error:
            self.on_chunk = None
            why = f"on_chunk fails with {describe_error(error)}"
            warn_meanwhile(f"{why}: it is not called again, the sweep goes on")

    def _write_config(self, store: Store) -> None:
        if self.config_file:
            store.write_file(store.home.parent / "config.toml", self.config_file)

    # docs/decisions.md#damage
    def merge(self, store: Store) -> bool:
        """Write results.nc from the store, in the order of the plan; False where a file is damaged or missing."""
        sweep, directory = self.sweep, store.home.parent
        part = directory / UNFINISHED.replace("*", uuid.uuid4().hex[:8])
        need = work.total_bytes(sweep.plan) + HEADER_BYTES + 64 * len(sweep.plan.seeds)
        try:
            if shutil.disk_usage(directory).free < need:  # checked first: HDF5 may not recover from a full disk
                raise OSError(errno.ENOSPC, f"it needs {need:,} bytes")
            results = Results(sweep.plan, sweep.config, sweep.notes, part)
            with results.content, results.file:
                if whole := read_chunks(sweep, store, results.put):
                    results.put_best()
            if whole:
                self.left_out, self.written = describe_missing(directory / RESULTS, part), stamp_of(part)
                os.replace(part, directory / RESULTS)
        except Unreadable:
            raise
        except (OSError, RuntimeError) as error:  # HDF5 has its own words for a full disk
            reason = f"cannot write {directory / RESULTS} ({str(error).splitlines()[0]})"
            raise OSError(f"{reason}: {remedy(error)} and run it again, everything finished is kept") from None
        finally:
            part.unlink(missing_ok=True)
        if whole:
            self._write_config(store)
        return whole


def warn_meanwhile(text: str) -> None:
    """Warn while runs go on. Where that fails, as where warnings are errors, it is a line of progress: no run ends."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    except Exception:
        estimate.print_progress(text)


def read_chunks(sweep: Prepared, store: Store, put: Put) -> bool:
    """Give `put` the arrays of a plan's chunks, in its order; False where a file is damaged or missing."""
    whole, seeds = True, sweep.plan.seeds
    chunks, expected = store.chunks(sweep.keys), arrays_of(sweep.plan)
    for cell, key in enumerate(sweep.keys):
        covered = []
        for chunk in chunks[key]:
            wanted = chunk.stop > seeds.start and chunk.first < seeds.stop
            if wanted and (arrays := store.read(chunk, expected[cell])) is not None:
                put(cell, chunk.first, arrays)
                covered.append(chunk)
        whole = whole and not work.without([(seeds.start, seeds.stop)], covered)
    return whole


def forget_nameless(sweep: Prepared, store: Store) -> None:
    """Delete what no later run can find."""
    for chunks in store.chunks(sweep.nameless).values():
        for chunk in chunks:
            chunk.path.unlink(missing_ok=True)
    for call in store.all_begun() if sweep.nameless else ():
        if not sweep.nameless.keys().isdisjoint(call.keys):
            store.forget_begun(call)


def tidy_store(sweep: Prepared, store: Store) -> None:
    """Delete unfinished calls whose seeds are finished by now, and chunks that no later run can find."""
    forget_nameless(sweep, store)
    for call in store.all_begun():
        chunks = store.chunks(call.keys)
        span = [(call.first, call.first + call.seeds)]
        if not any(work.without(span, chunks[key]) for key in call.keys):
            store.forget_begun(call)


@contextlib.contextmanager
def resumable(sweep: Prepared, store: Store) -> Iterator[None]:
    """A Ctrl-C says where everything finished is. Whatever ends a run, nothing stays that no later one finds."""
    try:
        yield
    except BaseException as stop:
        with contextlib.suppress(OSError):  # such as the one that ends it
            forget_nameless(sweep, store)
        if isinstance(stop, KeyboardInterrupt):
            cells = zip(sweep.plan.cells, sweep.keys, strict=True)
            labels = dict.fromkeys(cell.label for cell, key in cells if key in sweep.nameless)
            but = f", and computes {', '.join(labels)} anew" if labels else ""
            stop.add_note(f"everything finished is in {store.home.parent}: the same call goes on from there{but}")
        raise


def stamp_of(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one in its place; None where there is none."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


def damage_error(store: Store) -> OSError:
    hurt = ", ".join(dict.fromkeys(store.reported[-3:])) or "some have gone"
    return OSError(f"{store.home.parent}: finished chunks are damaged again and again ({hurt}): check the disk")

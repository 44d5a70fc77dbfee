"""The compiled functions of a group: begin, advance, close and finish over [seeds, points] lanes, or [seeds].

The inner `vmap` is over points, the outer over seeds: a draw that depends on the seed alone then has no axis of
points and is drawn once for all of them. Functions are compiled ahead of time, once for a shape and device.
"""

import gc
import os
import threading
import warnings
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr

from jaxbandits import simulator
from jaxbandits.contract import first_line, operations
from jaxbandits.formatting import duration, size
from jaxbandits.garbage import pause_collection
from jaxbandits.jax_internals import dce_jaxpr
from jaxbandits.kernels.launch import PlayForm, form_on, has_kernels
from jaxbandits.numerics import columns, device_forms
from jaxbandits.protocol import Case
from jaxbandits.sweeps.compilation import executables
from jaxbandits.sweeps.compilation.caller import CallerLeft, about_to_compile, in_caller
from jaxbandits.sweeps.compilation.compilation_cache import programs_on_disk, without_jax_cache
from jaxbandits.sweeps.compilation.settings import settings_of
from jaxbandits.traced_once import without_unread
from jaxbandits.window import Lane, Parts, streams

if TYPE_CHECKING:
    from jaxbandits.kernels.schedule import Fitted

_lock = threading.Lock()
# XLA takes vectors of 256 bits by default, also where a processor has 512. A processor that has less is not affected.
# docs/decisions.md#wide-vectors
WIDE_VECTORS: dict[str, str | bool] = {"xla_cpu_prefer_vector_width": "512"}
# XLA compiles one core's program in time and memory that grow with its operations, hardly with what they are.
# Measured on one core for programs of 600 to 7,000 operations: 0.8 to 1.6 ms and 45 to 95 kB an operation.
# docs/decisions.md#compiling-time
SECONDS = 0.0011
BYTES = 70_000
LONG = 300.0  # seconds
OF_LANES = 1.2  # operations of a program of many lanes over those of one lane's window, measured: 1.1 to 1.6


class Compiled:
    """The jitted functions of one group. Lanes are [S, M, ...]; what depends on the seed alone is [S, ...].

    Of one point all are [S, ...]: JAX would carry an axis of one through every operation. marks: 0 for params that
    differ between points, -1 for those that do not.
    """

    def __init__(self, parts: Parts, marks: tuple[int, ...], treedef: Any, points: int, checkpoints: int) -> None:
        self.about = marks, str(treedef), executables.classes_of(treedef), points, checkpoints
        axes = jax.tree.unflatten(treedef, [None if mark < 0 else mark for mark in marks])
        environment_moves = any(mark >= 0 for mark in jax.tree.leaves(jax.tree.unflatten(treedef, marks).environment))
        lane_axes = Lane(*[0] * len(Lane._fields))._replace(environment=0 if environment_moves else None)

        def over_points(function, axes, out=0):
            return jax.vmap(function, axes, out, axis_size=points) if points > 1 else function

        def over_seeds(function, inner, outer, out=0):
            return jax.vmap(over_points(partial(function, parts), inner, out), outer)

        def begin(case, seeds):
            one = partial(simulator.begin, checkpoints=checkpoints)
            return over_seeds(one, (axes, None), (None, 0), lane_axes)(case, seeds)

        def advance(kind, case, seeds, lane, times, segment):
            def over_lanes(function, lane, *, beside=False, out=None):
                inside, outside = (columns.axes_of_lanes(lane, behind) for behind in (-1, 1))
                inside = inside._replace(environment=lane_axes.environment)
                inner_out, outer_out = (inside, outside) if out is None else (out, out)
                if beside:
                    inner_out, outer_out = (inner_out, None), (outer_out, None)
                inner = over_points(function, (axes, None, inside), inner_out)
                return jax.vmap(inner, (None, 0, outside), outer_out)(case, seeds, lane)

            lane = columns.lanes_behind(lane)

            if kind[1]:
                lane = simulator.advance_full(parts, kind[0], over_lanes, lane, times, segment)
                return columns.lanes_behind(lane, back=True)

            # one loop over all lanes, which ends as soon as none has a play to make
            def busy(carry):
                def moving(case, seed, lane):
                    return simulator.moves(parts, case, lane, times[-1])

                moves = over_lanes(moving, carry[1], out=0)
                return (carry[0] < segment.windows) & jnp.any(moves)

            def window(carry):
                def play_window(case, seed, lane):
                    return simulator.one_counted(parts, kind, case, seed, lane, times)[0]

                return carry[0] + 1, over_lanes(play_window, carry[1])

            # docs/decisions.md#a-loop
            lane = lax.while_loop(busy, window, (jnp.int32(0), lane))[1]
            lane = over_lanes(lambda case, seed, lane: simulator.count_rest(parts, case, lane, times), lane)
            return columns.lanes_behind(lane, back=True)

        def close(case, seeds, lane):
            return over_seeds(simulator.close, (axes, None, lane_axes), (None, 0, 0), lane_axes)(case, seeds, lane)

        def finish(case, lane):
            return over_seeds(simulator.finish, (axes, lane_axes), (None, 0))(case, lane)

        def by_kernel(kind, form, case, seeds, lane, times, segment):
            from jaxbandits.kernels import plays

            return plays.advance_by_kernel(self.fit_kernel(kind, case), marks, case, seeds, lane, times, segment, form)

        self.parts, self.marks, self.checkpoints = parts, marks, checkpoints
        self.functions = {
            "begin": jax.jit(without_unread(begin)),
            "advance": jax.jit(without_unread(advance), static_argnums=0, donate_argnums=3),
            "kernel": jax.jit(by_kernel, static_argnums=(0, 1), donate_argnums=4),
            "close": jax.jit(without_unread(close), donate_argnums=2),
            "finish": jax.jit(without_unread(finish)),
        }
        self.programs: dict[Any, Any] = {}
        self.locks: dict[Any, threading.Lock] = {}
        self.ready = set[Any]()  # device, schedule and lanes of calls whose functions are all compiled
        self.kernels = True  # until a device could not run one

    def __call__(self, name: str, device: jax.Device, *args: Any, kind: tuple[int, bool, bool] | None = None) -> Any:
        """Run one function. It is compiled on first use for these shapes on this device."""
        return self.program(name, device, *args, kind=kind)(*args)

    def program(self, name: str, device: jax.Device, *args: Any, kind: tuple[int, bool, bool] | None = None) -> Any:
        """One function, compiled. Of the arguments only shapes and dtypes matter."""
        form = "scan" if kind is None or not self.kernels else form_on(device)
        key = (name, kind, form, self.kernels, device, *((x.shape, x.dtype) for x in jax.tree.leaves(args)))
        with _lock:
            own = self.locks.setdefault(key, threading.Lock())
        with own:  # otherwise two threads would compile the same program twice; different ones compile side by side
            if key not in self.programs:
                self.programs[key] = self._build_program(name, device, kind, form, args)
            return self.programs[key]

    def _build_program(self, name: str, device: jax.Device, kind: Any, form: PlayForm, args: tuple[Any, ...]) -> Any:
        """One function as a kernel where it can be one, else as it stands."""
        if kind is not None and form != "scan":
            try:
                if not in_caller(lambda: self.fit_kernel(kind, args[0])).reason:
                    return self._executable("kernel", device, (kind, form), args)
            except CallerLeft:
                raise
            except Exception as error:  # a compiler of kernels that cannot take it: results need none
                _slower(f"no kernel could be compiled for {device.device_kind}, so plays are scanned", error)
        return self._executable(name, device, () if kind is None else (kind,), args)

    def _executable(self, function: str, device: jax.Device, static: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
        """A function of `functions`, compiled: from disk, or now, and then traced in the thread that called."""
        options = WIDE_VECTORS if device.platform == "cpu" else None
        shapes = tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(args))
        kernels = self.kernels
        written = function == "kernel" or device_forms.has_other_form(device.platform)
        about = (*self.about, function, *static, shapes, options, *(() if kernels else ("without kernels",)))
        found = executables.key_of(executables.name_of_parts(self.parts, kernels=written), device, *about)

        def trace_now():
            with settings_of(self.parts.dtype, device):
                return self.functions[function].trace(*static, *args)

        def compile_now():
            program = in_caller(trace_now)
            number = number_of(program.jaxpr)
            if device.platform == "cpu":
                warn_if_long(number)
            about_to_compile(number)
            with pause_collection():
                lowered = program.lower()
            with programs_on_disk() if found is None else without_jax_cache():
                return lowered.compile(compiler_options=options)

        def build():
            try:
                if kernels:
                    return compile_now()
            except Exception as error:  # a compiler of kernels that cannot take one of them
                if not has_kernels(device) or function == "kernel" or isinstance(error, CallerLeft):
                    raise
                _slower(f"estimators and learners have no kernels on {device.device_kind}", error)
            with device_forms.force_device_form("xla"):
                return compile_now()

        return executables.executable(found, device, build, jax.tree.structure((args, {})))

    def without_kernels(self, device: jax.Device, error: Exception) -> bool:
        """Take no kernels from now on, as a device could not run one. Gives whether it had any."""
        if form_on(device) == "scan":
            return False
        with _lock:
            first, self.kernels = self.kernels, False
        if first:
            _slower(f"a kernel did not run on {device.device_kind}, so plays are made anew without kernels", error)
        return True

    def fit_kernel(self, kind: tuple[int, bool, bool], case: Any) -> "Fitted":
        """Whether windows of a kind can be kernels, and why not. case: numbers of the points, or their shapes."""
        from jaxbandits.kernels import plays  # tracing and counting are not needed where plays are scanned

        leaves, treedef = jax.tree.flatten(case)
        one = [jax.ShapeDtypeStruct(x.shape[mark >= 0 :], x.dtype) for x, mark in zip(leaves, self.marks, strict=True)]
        with jax.enable_x64(self.parts.dtype == np.float64):
            return plays.choose_kernel(self.parts, jax.tree.unflatten(treedef, one), self.checkpoints, kind)


def _slower(text: str, error: Exception) -> None:
    """Say in one line why something is done without kernels."""
    reason = first_line(error) or type(error).__name__
    warnings.warn(f"{text}, which is slower: {reason}", RuntimeWarning, stacklevel=3)


@lru_cache(maxsize=256)
def functions_of_group(parts: Parts, marks: tuple[int, ...], treedef: Any, points: int, checkpoints: int) -> Compiled:
    """The functions of a group. Equal groups of later sweeps get the same ones, unless 256 others were used since.

    The code of a group takes 100 to 900 memory maps, and a process that asks for more than the system's limit (65,530
    on most Linux machines) dies. So at half of it the groups are let go that no call uses.
    """
    taken, limit = memory_maps()
    if taken > limit // 2 and functions_of_group.cache_info().currsize > 1:
        functions_of_group.cache_clear()
        gc.collect()  # a group's functions refer to the group
    return Compiled(parts, marks, treedef, points, checkpoints)


def memory_maps() -> tuple[int, int]:
    """How many memory maps this process has, and may have; none of any number where the system does not say."""
    try:
        taken = Path("/proc/self/maps").read_bytes().count(b"\n")
        return taken, int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return 0, 1


# ---- how large programs are, and what that takes


def number_of(program: ClosedJaxpr) -> int:
    """Operations of a program, with those of the functions and loops inside."""
    return sum(1 for _ in operations(program.jaxpr.eqns))


def compile_cost(number: int) -> tuple[float, int]:
    """Seconds and bytes that compiling so many operations takes, about."""
    return number * SECONDS, number * BYTES


def warn_if_long(number: int) -> None:
    """Say so where a program takes over five minutes or half of this machine's memory, and what helps."""
    seconds, memory = compile_cost(number)
    if seconds > LONG or 2 * memory > _memory():
        cost = f"compiling {number:,} operations takes about {duration(seconds)} and {size(memory)}"
        loops = "write Python loops over arms or features as array operations or with lax.fori_loop"
        warnings.warn(f"{cost}: {loops}, or lower those sizes", RuntimeWarning, stacklevel=2)


def _memory() -> float:
    """Bytes of this machine's memory; inf where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


class LaneShape(NamedTuple):
    """What one lane holds and gives, known before anything runs."""

    state: int  # bytes it carries from window to window
    kept: int  # of these, bytes a window only writes into (`Hints.kept`)
    record: int  # bytes of its checkpoints
    # bytes of a window's context; 0 where all lanes share one context, and where it is part of the lane's own state
    context: int
    counted: bool  # regret follows from pull counts and the arms' means
    arms: int | None  # length of the pull counts
    slots: int  # plays of its longest window
    operations: int  # about as many as a program of windows of one length has
    diagnostics: tuple[str, ...]


@lru_cache(maxsize=1024)  # tracing a window takes up to a second
def lane_shape(parts: Parts, leaves: tuple[Any, ...], treedef: Any, checkpoints: int, slots: int) -> LaneShape:
    """The sizes of a lane and the names of its diagnostics. leaves: shapes and dtypes of a case's params."""
    about = ("lane shape", [str(leaf) for leaf in leaves], str(treedef), checkpoints, slots, parts.program.hints.kept)
    build = partial(_trace_lane_shape, parts, jax.tree.unflatten(treedef, leaves), checkpoints, slots)
    key = executables.key_of(executables.name_of_parts(parts, kernels=False), None, *about)
    known = executables.load_or_build(key, build)
    return LaneShape(*known)._replace(diagnostics=tuple(known[-1]))


def _trace_lane_shape(parts: Parts, case: Case, checkpoints: int, slots: int) -> LaneShape:
    def observe(case, seed, before):
        t = before + 1 + jnp.arange(slots, dtype=jnp.int32)
        draws = streams(parts, seed)
        return parts.world.observe(case.environment, parts.world.init(case.environment, draws), draws, t)[0]

    def size_of(tree: Any) -> int:
        return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))

    seed = jax.ShapeDtypeStruct((), jnp.uint32)
    lane = jax.eval_shape(partial(simulator.begin, parts, checkpoints=checkpoints), case, seed)
    diagnostics = jax.eval_shape(partial(simulator.finish, parts), case, lane)[1]
    observed = jax.make_jaxpr(observe)(case, seed, jax.ShapeDtypeStruct((), jnp.int32))
    context = observed.out_avals
    # the context is the same for all seeds, or at all plays, where it is computed without them
    *_, by_seed, by_play = dce_jaxpr(observed.jaxpr, [True] * len(context))[1]
    if not (by_seed and by_play):
        context = ()
    record = size_of((lane.record.pulls_at, lane.record.regret_at))
    return LaneShape(
        state=size_of(lane) - record,
        kept=size_of([getattr(lane.algorithm, name) for name in parts.program.hints.kept]),
        record=record,
        context=size_of(context),
        counted=not lane.record.regret_at,
        arms=None if isinstance(lane.record.pulls, tuple) else int(lane.record.pulls.shape[-1]),
        slots=slots,
        # the largest of what a sweep traced once is a window of one play
        operations=round(OF_LANES * max((number_of(x.program) for x in (parts.traces or {}).values()), default=0)),
        diagnostics=tuple(sorted(diagnostics)),
    )

"""The compiled side of a group: begin, advance, close and finish over [seeds, points] lanes.

Parameters are vmapped inside, seeds outside: a draw that depends on the seed alone then has no parameter axis and is
made once for all of them. Functions are compiled ahead of time, once per shape and device.
"""

import threading
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import simulator
from jaxbandits.protocol import Case
from jaxbandits.sweeps.engines.compilation_cache import programs_on_disk
from jaxbandits.sweeps.engines.unread_code import without_unread
from jaxbandits.window import Lane, Parts, streams

_lock = threading.Lock()
# XLA asks for 256 bits where a processor may have 512; a narrower one is served as before
WIDE: dict[str, str | bool] = {"xla_cpu_prefer_vector_width": "512"}


def _axes(marks: tuple, treedef) -> Case:
    return jax.tree.unflatten(treedef, [None if mark < 0 else mark for mark in marks])


class Compiled:
    """Jitted functions of one group. Lanes are [S, M, ...]; what depends on the seed alone is [S, ...]."""

    def __init__(self, parts: Parts, marks: tuple, treedef, points: int, checkpoints: int):
        axes = _axes(marks, treedef)
        environment_moves = any(mark >= 0 for mark in jax.tree.leaves(jax.tree.unflatten(treedef, marks).environment))
        lane_axes = Lane(0, 0, 0 if environment_moves else None, 0, 0, 0, 0, 0, 0)

        def begin(case, seeds):
            def one(case, seed):
                return simulator.begin(parts, case, seed, checkpoints)

            inner = jax.vmap(one, (axes, None), lane_axes, axis_size=points)
            return jax.vmap(inner, (None, 0))(case, seeds)

        def advance(kind, case, seeds, lane, times, start, length, first, number):
            def each(function, lane, out=lane_axes):
                inner = jax.vmap(function, (axes, None, lane_axes), out, axis_size=points)
                return jax.vmap(inner, (None, 0, 0))(case, seeds, lane)

            if kind[1]:
                return each(
                    lambda case, seed, lane: simulator.advance(
                        parts, kind, case, seed, lane, times, start, length, first, number
                    ),
                    lane,
                )

            # one loop over all lanes, left as soon as none has a play to make
            def busy(carry):
                moves = each(lambda case, seed, lane: simulator.moves(parts, case, lane, times[-1]), carry[1], 0)
                return (carry[0] < number) & jnp.any(moves)

            def window(carry):
                def one(case, seed, lane):
                    return simulator.one_counted(parts, kind, case, seed, lane, times)[0]

                return carry[0] + 1, each(one, carry[1])

            lane = lax.while_loop(busy, window, (jnp.int32(0), lane))[1]
            return each(lambda case, seed, lane: simulator.count_rest(parts, case, lane, times), lane)

        def close(case, seeds, lane):
            inner = jax.vmap(partial(simulator.close, parts), (axes, None, lane_axes), lane_axes, axis_size=points)
            return jax.vmap(inner, (None, 0, 0))(case, seeds, lane)

        def finish(case, lane):
            inner = jax.vmap(partial(simulator.finish, parts), (axes, lane_axes), axis_size=points)
            return jax.vmap(inner, (None, 0))(case, lane)

        self.functions = {
            "begin": jax.jit(without_unread(begin)),
            "advance": jax.jit(without_unread(advance, static=(0,)), static_argnums=0, donate_argnums=3),
            "close": jax.jit(without_unread(close), donate_argnums=2),
            "finish": jax.jit(without_unread(finish)),
        }
        self.programs: dict = {}
        self.locks: dict = {}

    def __call__(self, name: str, device, *args, kind=None):
        """Run one function, compiling it on first use for these shapes on this device."""
        shapes = tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(args))
        key = (name, kind, device, shapes)
        program = self.programs.get(key)
        if program is None:
            with _lock:
                own = self.locks.setdefault(key, threading.Lock())
            with own:  # two threads would compile the same program twice; different ones compile side by side
                program = self.programs.get(key)
                if program is None:
                    static = () if kind is None else (kind,)
                    options = WIDE if device.platform == "cpu" else None
                    lowered = self.functions[name].lower(*static, *args)
                    with programs_on_disk():
                        program = lowered.compile(compiler_options=options)
                    self.programs[key] = program
        return program(*args)


# a group's code takes 100 to 160 memory maps, and a process that asks for more than the system's limit (65,530 on Linux) dies
@lru_cache(maxsize=256)
def compiled(parts: Parts, marks: tuple, treedef, points: int, checkpoints: int) -> Compiled:
    """One Compiled a program: equal groups of later sweeps find their code again, as long as it was used lately."""
    return Compiled(parts, marks, treedef, points, checkpoints)


class LaneShape(NamedTuple):
    """What one lane holds and gives, known before anything runs."""

    state: int  # bytes it carries from window to window
    kept: int  # of these, bytes a window only writes into
    record: int  # bytes of its checkpoints
    context: int  # bytes of a window's context; 0 where it is that of every lane, or lies in the lane's own state
    counted: bool  # regret follows from pull counts and the arms' means
    arms: int | None  # length of the pull counts
    diagnostics: tuple[str, ...]


def lane_shape(parts: Parts, case: Case, checkpoints: int, slots: int) -> LaneShape:
    """The sizes of a lane and the names of its diagnostics."""
    case = jax.tree.map(jax.typeof, case)
    leaves, treedef = jax.tree.flatten(case)
    return _lane_shape(parts, tuple(leaves), treedef, checkpoints, slots)


@lru_cache(maxsize=1024)  # tracing a window takes up to a second
def _lane_shape(parts: Parts, leaves: tuple, treedef, checkpoints: int, slots: int) -> LaneShape:
    case = jax.tree.unflatten(treedef, leaves)
    seed = jax.ShapeDtypeStruct((), jnp.uint32)

    def begin(case, seed):
        lane = simulator.begin(parts, case, seed, checkpoints)
        return lane, simulator.finish(parts, case, lane)[1]

    def observe(case, seed, before=0):
        t = before + 1 + jnp.arange(slots, dtype=jnp.int32)
        draws = streams(parts, seed)
        return parts.world.observe(case.environment, parts.world.init(case.environment, draws), draws, t)[0]

    lane, diagnostics = jax.eval_shape(begin, case, seed)
    context = jax.eval_shape(observe, case, seed)
    seeds, plays = jax.ShapeDtypeStruct((2,), jnp.uint32), jax.ShapeDtypeStruct((2,), jnp.int32)
    # the same for all seeds, or at all plays
    for axes, given in (((None, 0), (seeds,)), ((None, None, 0), (seed, plays))):
        try:  # vmap refuses to leave out an axis that is there
            jax.eval_shape(jax.vmap(observe, axes, None), case, *given)
            context = ()
        except ValueError:
            pass

    def size(tree):
        return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))

    record = size((lane.record.pulls_at, lane.record.regret_at))
    arms = None if isinstance(lane.record.pulls, tuple) else int(lane.record.pulls.shape[-1])
    kept = size([getattr(lane.algorithm, name) for name in parts.program.hints.kept])
    return LaneShape(
        size(lane) - record, kept, record, size(context), not lane.record.regret_at, arms, tuple(sorted(diagnostics))
    )

"""The compiled side of a group: begin, advance, close and finish over [seeds, points] lanes.

Parameters are vmapped inside, seeds outside: a draw that depends on the seed alone then has no parameter axis and is
made once for all of them. Functions are compiled ahead of time, once per shape and device, behind a lock.
"""

import threading
from functools import cache, partial

import jax
import jax.numpy as jnp

from jaxbandits import simulator
from jaxbandits.protocol import Case
from jaxbandits.simulator import Lane, Parts

_lock = threading.Lock()


def _axes(marks: tuple, treedef) -> Case:
    return jax.tree.unflatten(treedef, [None if mark < 0 else mark for mark in marks])


class Compiled:
    """Jitted functions of one group. Lanes are [S, M, ...]; what depends on the seed alone is [S, ...]."""

    def __init__(self, parts: Parts, marks: tuple, treedef, points: int, checkpoints: int):
        axes = _axes(marks, treedef)
        environment_moves = any(mark >= 0 for mark in jax.tree.leaves(jax.tree.unflatten(treedef, marks).environment))
        lane_axes = Lane(0, 0, 0 if environment_moves else None, 0, 0, 0, 0, 0)

        def begin(case, seeds):
            def one(case, seed):
                return simulator.begin(parts, case, seed, checkpoints)

            inner = jax.vmap(one, (axes, None), lane_axes, axis_size=points)
            return jax.vmap(inner, (None, 0))(case, seeds)

        def advance(kind, case, seeds, lane, times, start, length, first, number):
            def one(case, seed, lane):
                return simulator.advance(parts, kind, case, seed, lane, times, start, length, first, number)

            inner = jax.vmap(one, (axes, None, lane_axes), lane_axes, axis_size=points)
            return jax.vmap(inner, (None, 0, 0))(case, seeds, lane)

        def close(case, seeds, lane):
            inner = jax.vmap(partial(simulator.close, parts), (axes, None, lane_axes), lane_axes, axis_size=points)
            return jax.vmap(inner, (None, 0, 0))(case, seeds, lane)

        def finish(case, lane):
            inner = jax.vmap(partial(simulator.finish, parts), (axes, lane_axes), axis_size=points)
            return jax.vmap(inner, (None, 0))(case, lane)

        self.functions = {
            "begin": jax.jit(begin),
            "advance": jax.jit(advance, static_argnums=0, donate_argnums=3),
            "close": jax.jit(close, donate_argnums=2),
            "finish": jax.jit(finish),
        }
        self.programs: dict = {}

    def __call__(self, name: str, device, *args, kind=None):
        """Run one function, compiling it on first use for these shapes on this device."""
        shapes = tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(args))
        key = (name, kind, device, shapes)
        program = self.programs.get(key)
        if program is None:
            with _lock:  # two threads would compile the same program twice
                program = self.programs.get(key)
                if program is None:
                    static = () if kind is None else (kind,)
                    program = self.functions[name].lower(*static, *args).compile()
                    self.programs[key] = program
        return program(*args)


@cache
def compiled(parts: Parts, marks: tuple, treedef, points: int, checkpoints: int) -> Compiled:
    """One Compiled a program: equal groups of later sweeps find their code again."""
    return Compiled(parts, marks, treedef, points, checkpoints)


def lane_bytes(parts: Parts, case: Case, checkpoints: int, slots: int) -> tuple[int, int, int, bool]:
    """Bytes of one lane: its state, its record at the checkpoints, a window's context; and whether regret needs the means."""

    def one(case, seed):
        lane = simulator.begin(parts, case, seed, checkpoints)
        draws = simulator._streams(parts, seed)
        t = 1 + jnp.arange(slots, dtype=jnp.int32)
        return lane, parts.world.observe(case.environment, lane.environment, draws, t)[0]

    lane, context = jax.eval_shape(one, case, jax.ShapeDtypeStruct((), jnp.uint32))

    def size(tree):
        return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))

    record = size((lane.record.pulls_at, lane.record.regret_at))
    return size(lane) - record, record, size(context), not lane.record.regret_at

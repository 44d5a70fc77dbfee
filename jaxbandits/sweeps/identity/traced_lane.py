"""What a lane computes, as a hash of its traced program.

A program is traced for one lane and never compiled. Its operations, shapes, dtypes and constants enter the hash.
Names of functions, source lines, paths and the order of definitions do not. So two texts of a function that compute
the same have one hash, and an edit that changes what is computed, in whatever file, has another.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from jaxbandits import simulator
from jaxbandits.contract import inner_programs
from jaxbandits.protocol import Case
from jaxbandits.spans import Segment
from jaxbandits.sweeps.compilation.compiled import Compiled
from jaxbandits.sweeps.compilation.program_digest import fingerprint, naming
from jaxbandits.sweeps.plan import Cell, Group, host_case, stacked


def traced_now(group: Group, cell: Cell, dtype: str, *, lasting: bool, batch: bool) -> str:
    """What the program of a group computes now, as hashes.

    cell: one of the group, of whose numbers only shapes and dtypes matter. lasting: the hashes must hold in another
    process too; NoIdentity where that cannot be had. batch: where a function has a rule of its own for `vmap`, also
    trace what a batch of lanes computes. Errors inside a user's functions become a ValueError that names the cell.
    """
    case = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), stacked([host_case(cell)], dtype)[0])
    with jax.enable_x64(dtype == "float64"), naming(cell.label):
        program, results = _lane_program(group, case)
        programs = [program]
        for moves in (False, True) if batch and "custom_vmap_call" in _operations(program.jaxpr) else ():
            programs += _batch_programs(group, case, moves)
        return fingerprint(programs, results, lasting=lasting)


def _lane_program(group: Group, case: Case) -> tuple[core.ClosedJaxpr, list[Any]]:
    """The whole of one lane: begin, every kind of window, the end of a span, diagnostics; and names of the results."""
    parts, (kinds, closes) = group.parts, kinds_of(group)

    def lane(case, seed, times, segment):
        before = simulator.begin(parts, case, seed, len(group.times))
        after = [simulator.advance(parts, kind, case, seed, before, times, segment) for kind in kinds]
        closed = simulator.close(parts, case, seed, before) if closes else ()
        return before, after, closed, simulator.finish(parts, case, before)

    seed = jax.ShapeDtypeStruct((), jnp.uint32)
    program, out = jax.make_jaxpr(lane, return_shape=True)(case, seed, *_clock(group))
    record, diagnostics = out[3]
    return program, [str(jax.tree.structure(record)), sorted(diagnostics)]


def _batch_programs(group: Group, case: Case, moves: bool) -> Iterator[core.ClosedJaxpr]:
    """The engine's programs for two points and two seeds. moves: the params differ from point to point."""
    leaves, treedef = jax.tree.flatten(case)
    run = Compiled(group.parts, (0 if moves else -1,) * len(leaves), treedef, 2, len(group.times)).functions
    if moves:
        case = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape), x.dtype), case)
    seeds, (kinds, closes) = jax.ShapeDtypeStruct((2,), jnp.uint32), kinds_of(group)
    begin, lane = jax.make_jaxpr(run["begin"], return_shape=True)(case, seeds)
    yield begin
    for kind in kinds:
        yield jax.make_jaxpr(run["advance"], static_argnums=0)(kind, case, seeds, lane, *_clock(group))
    if closes:
        yield jax.make_jaxpr(run["close"])(case, seeds, lane)
    yield jax.make_jaxpr(run["finish"])(case, lane)


def kinds_of(group: Group) -> tuple[tuple[tuple[int, bool, bool], ...], bool]:
    """The kinds of windows of a group's schedule, and whether something is computed at the end of a span."""
    kinds = dict.fromkeys((span.slots, span.full, span.whole) for span in group.schedule)
    return tuple(kinds), any(span.close for span in group.schedule)


def _clock(group: Group) -> tuple[jax.ShapeDtypeStruct, Segment]:
    """The shapes of the times of checkpoints and of a segment."""
    number = jax.ShapeDtypeStruct((), jnp.int32)
    return jax.ShapeDtypeStruct(group.times.shape, jnp.int32), Segment(*(number,) * len(Segment._fields))


def _operations(jaxpr: core.Jaxpr) -> set[str]:
    """The names of all operations of a program."""
    names = {equation.primitive.name for equation in jaxpr.eqns}
    return names.union(*(_operations(inner) for equation in jaxpr.eqns for inner in inner_programs(equation)))

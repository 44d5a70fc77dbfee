"""What a lane computes, as a hash of its traced program.

A program is traced for one lane and never compiled. Its operations, shapes, dtypes and constants enter the hash.
Names of functions, source lines, paths and the order of definitions do not. So two texts of a function that compute
the same have one hash, and an edit that changes what is computed, in whatever file, has another.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxbandits import simulator
from jaxbandits.contract import inner_programs
from jaxbandits.protocol import Case, Span
from jaxbandits.spans import Segment
from jaxbandits.sweeps.compilation.compiled import Compiled
from jaxbandits.window import Parts


def lane_programs(
    parts: Parts, schedule: Sequence[Span], case: Case, checkpoints: int, batch: bool
) -> tuple[list[core.ClosedJaxpr], list[Any]]:
    """Trace the whole of one lane: begin, every kind of window, the end of a span, and diagnostics.

    Returns the programs and the names of the results. case: numbers, of which only shapes and dtypes matter. batch:
    where a function has a rule of its own for `vmap`, also trace what a batch of lanes computes. Errors inside a
    user's functions pass through.
    """
    kinds = list(dict.fromkeys((span.slots, span.full, span.whole) for span in schedule))
    closes = any(span.close for span in schedule)

    def lane(case, seed, times, segment):
        before = simulator.begin(parts, case, seed, checkpoints)
        after = [simulator.advance(parts, kind, case, seed, before, times, segment) for kind in kinds]
        closed = simulator.close(parts, case, seed, before) if closes else ()
        return before, after, closed, simulator.finish(parts, case, before)

    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype), case)
    number, seed = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((), jnp.uint32)
    times, segment = jax.ShapeDtypeStruct((checkpoints,), jnp.int32), Segment(*(number,) * len(Segment._fields))
    program, out = jax.make_jaxpr(lane, return_shape=True)(shapes, seed, times, segment)
    record, diagnostics = out[3]
    programs = [program]
    for moves in (False, True) if batch and "custom_vmap_call" in _operations(program.jaxpr) else ():
        programs += _batch_programs(parts, kinds, closes, shapes, times, segment, moves)
    return programs, [str(jax.tree.structure(record)), sorted(diagnostics)]


def _batch_programs(
    parts: Parts,
    kinds: Iterable[tuple[int, bool, bool]],
    closes: bool,
    case: Case,
    times: jax.ShapeDtypeStruct,
    segment: Segment,
    moves: bool,
) -> Iterator[core.ClosedJaxpr]:
    """The engine's programs for two points and two seeds. moves: the params differ from point to point."""
    leaves, treedef = jax.tree.flatten(case)
    run = Compiled(parts, (0 if moves else -1,) * len(leaves), treedef, 2, times.shape[0]).functions
    if moves:
        case = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape), x.dtype), case)
    seeds = jax.ShapeDtypeStruct((2,), jnp.uint32)
    begin, lane = jax.make_jaxpr(run["begin"], return_shape=True)(case, seeds)
    yield begin
    for kind in kinds:
        yield jax.make_jaxpr(run["advance"], static_argnums=0)(kind, case, seeds, lane, times, segment)
    if closes:
        yield jax.make_jaxpr(run["close"])(case, seeds, lane)
    yield jax.make_jaxpr(run["finish"])(case, lane)


def _operations(jaxpr: core.Jaxpr) -> set[str]:
    """The names of all operations of a program."""
    names = {equation.primitive.name for equation in jaxpr.eqns}
    return names.union(*(_operations(inner) for equation in jaxpr.eqns for inner in inner_programs(equation)))

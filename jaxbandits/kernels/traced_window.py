"""A window of one lane: traced, and written out with every array element held apart."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr

from jaxbandits import recorder
from jaxbandits.kernels.apart import Apart
from jaxbandits.kernels.control_rules import Packed
from jaxbandits.kernels.elements import Elements, held_apart, listed, single
from jaxbandits.kernels.long_axis import LongAxis
from jaxbandits.kernels.order import few_alive
from jaxbandits.protocol import Case
from jaxbandits.window import Lane, Parts, offer


class OneWindow(NamedTuple):
    """A window of one lane, traced. Its operands: numbers of the case, seed, lane, and numbers that say which plays.

    Of a window of one play, that is how many plays were made before. It gives the lane, and what else is asked for.
    """

    traced: ClosedJaxpr
    lane: Any  # shapes of a lane, without its rows at the checkpoints
    case: Any  # shapes of the numbers of a case
    apart: bool = False  # whether the numbers that say which plays differ between lanes
    long: LongAxis | None = None  # the axis that is not held apart


def without_rows(lane: Lane) -> Lane:
    """A lane without what is written at checkpoints only."""
    return lane._replace(record=lane.record._replace(pulls_at=(), regret_at=()))


def one_window(parts: Parts, case: Case, lane: Lane) -> OneWindow:
    """Trace a window of one play. case, lane: shapes of one lane."""
    lane = without_rows(lane)

    def play(case: Case, seed: Any, lane: Lane, before: Any) -> Lane:
        lane, window = offer(parts, case, seed, 1, lane, before, None)
        pulls, regret = recorder.add(lane.record, window, None)
        return lane._replace(record=lane.record._replace(pulls=pulls, regret=regret))

    seed, before = jax.ShapeDtypeStruct((), np.uint32), jax.ShapeDtypeStruct((), np.int32)
    traced = jax.make_jaxpr(play)(case, seed, lane, before)
    return OneWindow(read_only(traced), lane, case)


def packed_lane(one: OneWindow, run: Apart) -> Packed:
    """How the elements of a lane lie in a flat list."""
    return Packed([held_apart(np.zeros(run.held(x.shape), x.dtype)) for x in jax.tree.leaves(one.lane)])


def element_shapes(one: OneWindow, run: Apart) -> list[tuple[int, ...]]:
    """The shapes of the elements of a lane."""
    return run.element_shapes(x.shape for x in jax.tree.leaves(one.lane))


def written_out(one: OneWindow, lanes: int) -> ClosedJaxpr:
    """A window on a block of lanes with every element held apart, in an order that keeps few numbers alive.

    Its operands are the elements of the lane, seeds [B], the numbers that say which plays, and the elements of the
    case. It gives the elements of the lane, and then the others that are asked for.
    """
    run = Apart(lanes, long=one.long)
    if one.long is not None and not all(one.long.fits(x.shape) for x in one.traced.in_avals):
        raise run.unsupported(f"an array with two axes of {one.long.length}")
    packed, numbers = packed_lane(one, run), jax.tree.leaves(one.case)
    which, shapes = len(one.traced.in_avals) - len(numbers) - 1 - len(packed.shapes), element_shapes(one, run)

    def play(flat: list[Any], seed: Any, which: list[Any], case: list[list[Any]]) -> list[Any]:
        values = [listed(each).reshape(run.held(x.shape)) for each, x in zip(case, numbers, strict=True)]
        arrays = run.closed(one.traced, [*values, single(seed), *packed.arrays(flat), *map(single, which)])
        lane, others = arrays[: len(packed.shapes)], arrays[len(packed.shapes) :]
        return [*packed.flat(lane, shapes), *(x for array in others for x in array.reshape(-1))]

    traced = jax.make_jaxpr(play)(
        list(map(jax.ShapeDtypeStruct, shapes, packed.dtypes)),
        jax.ShapeDtypeStruct(run.block, np.uint32),
        [jax.ShapeDtypeStruct(run.block if one.apart else (), np.int32)] * which,
        [[shared_number(one, x)] * int(np.prod(run.held(x.shape))) for x in numbers],
    )
    return ClosedJaxpr(few_alive(read_only(traced).jaxpr), traced.consts)


def lies_along(one: OneWindow, shape: Sequence[int]) -> bool:
    """Whether an array of one lane has the axis that is not held apart."""
    return one.long is not None and one.long.length in shape


def shared_number(one: OneWindow, x: Any) -> jax.ShapeDtypeStruct:
    """The shape of an element of an array of a case, which all lanes of a block share."""
    return jax.ShapeDtypeStruct((1, one.long.padded) if one.long and lies_along(one, x.shape) else (), x.dtype)


def read_only(traced: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function without what nothing reads."""
    read, _ = dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals), instantiate=True)
    return ClosedJaxpr(read, traced.consts)


def played(step: ClosedJaxpr, case: Sequence[Elements], seed: Any, lane: list[Any], which: Sequence[Any]) -> list[Any]:
    """What a window gives that is `written_out`: the elements of its lane, then the others."""
    numbers = [x for array in case for x in array.reshape(-1)]
    found: list[Any] = jaxpr_as_fun(step)(*lane, seed, *which, *numbers)
    return found

"""Which programs of a sweep run as kernels on an accelerator, and how they fit among its other programs."""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import simulator
from jaxbandits.kernels import launch
from jaxbandits.kernels.fitting import Written, fitted, written
from jaxbandits.kernels.forms import Form
from jaxbandits.kernels.plays import Shared, writer
from jaxbandits.kernels.text import Unsupported
from jaxbandits.kernels.traced import Traced, counted_window, full_window, single_window, without_rows
from jaxbandits.protocol import Case
from jaxbandits.spans import Segment
from jaxbandits.window import Lane, Parts

LONGEST_WINDOW = 8  # plays of a counted window, which may be shorter


class Choice(NamedTuple):
    """What the windows of a span run as on a GPU."""

    window: Traced
    kernel: Written | None  # None where there is none
    reason: str  # why it is no kernel; "" where it is one


def choice(parts: Parts, case: Case, checkpoints: int, kind: tuple[int, bool, bool]) -> Choice:
    """What a span's windows run as.

    case: numbers of one point, or their shapes. kind: (slots, full, whole), as `simulator.advance` takes it.
    """
    leaves, treedef = jax.tree.flatten(jax.tree.map(jax.typeof, case))
    config: Any = jax.config
    return _choice(parts, tuple(leaves), treedef, checkpoints, kind, config.jax_enable_x64)


@lru_cache(maxsize=256)
def _choice(
    parts: Parts, leaves: tuple[Any, ...], treedef: Any, checkpoints: int, kind: tuple[int, bool, bool], x64: bool
) -> Choice:
    slots, full, whole = kind
    case = jax.tree.unflatten(treedef, leaves)
    seed = jax.ShapeDtypeStruct((), np.uint32)
    lane = jax.eval_shape(lambda case, seed: simulator.begin(parts, case, seed, checkpoints), case, seed)
    if full and slots == 1:
        return judged(single_window(parts, case, lane), lane)
    if full:
        return judged(full_window(parts, case, lane, slots), lane)
    # Checkpoints may cut these windows anywhere, so that a span of shorter ones is the same: the longest whose arrays
    # are held apart, or else single plays.
    for plays in [slots] if whole else _halvings(min(slots, LONGEST_WINDOW)):
        found = judged(counted_window(parts, case, lane, kind, plays), lane)
        if not found.kernel or found.kernel.form == "written out":
            break
    return found


def _halvings(number: int) -> list[int]:
    """A number, its half rounded up, and so on to 1."""
    return [number] if number == 1 else [number, *_halvings(-(-number // 2))]


def judged(window: Traced, lane: Lane) -> Choice:
    """A window with its kernel, or why there is none. lane: shapes of one lane."""
    alone = Shared(*((False,) * len(jax.tree.leaves(x)) for x in (window.case, window.lane)))
    try:
        return Choice(window, fitted("stretch", writer(window, lane, alone)), "")
    except Unsupported as error:
        return Choice(window, None, f"there is no rule for {error}")


def advance(
    chosen: Choice, marks: tuple[int, ...], case: Case, seeds: Any, lane: Lane, times: Any, segment: Segment, form: Form
) -> Lane:
    """The lanes [S, M, ...] after a segment of a span.

    marks: of each leaf of the case, below 0 where its numbers are the same for all points. The state of the environment
    is [S, ...] where points share it.
    """
    window, kernel = chosen.window, chosen.kernel
    assert kernel is not None, chosen.reason
    shapes, points, treedef = jax.tree.leaves(window.lane), lane.plays.shape[1], jax.tree.structure(window.lane)
    record, small = (lane.record.pulls_at, lane.record.regret_at), jax.tree.leaves(without_rows(lane))
    shared = Shared(
        tuple(mark < 0 for mark in marks), tuple(x.ndim == one.ndim + 1 for x, one in zip(small, shapes, strict=True))
    )
    tables, of_tables = jax.tree.flatten(record)
    one = lane._replace(record=lane.record._replace(
        pulls_at=jax.tree.map(_of_lane, record[0]), regret_at=jax.tree.map(_of_lane, record[1])
    ))  # fmt: skip
    source = written("stretch", writer(window, one, shared), kernel.largest).source
    numbers = (seeds.shape[0], points, times.shape[0], *segment)
    limits = jnp.stack([jnp.asarray(x, jnp.int32) for x in numbers])
    given, carried = [limits, times, seeds, *jax.tree.leaves(case)], [*small, *tables]
    outs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in carried]
    # What points share has other memory for its result: it may be written by one point while another reads it.
    alone = [*shared.lane, *[False] * len(tables)]
    aliases = {len(given) + k: k for k, by_all in enumerate(alone) if not by_all}
    found = launch.call(source, (seeds.shape[0], points), [*given, *carried], outs, aliases, form)
    after: Lane = jax.tree.unflatten(treedef, found[: len(small)])
    at = jax.tree.unflatten(of_tables, found[len(small) :])
    after = after._replace(record=after.record._replace(pulls_at=at[0], regret_at=at[1]))
    return after if window.rest is None else _at_rest(window, marks, case, after, times)


def _of_lane(x: Any) -> jax.ShapeDtypeStruct:
    """The shape of one lane's rows at the checkpoints."""
    return jax.ShapeDtypeStruct(x.shape[2:], x.dtype)


def _at_rest(window: Traced, marks: tuple[int, ...], case: Case, lane: Lane, times: Any) -> Lane:
    """Lanes whose remaining plays are counted, where they rest."""
    treedef, rest = jax.tree.structure(case), window.rest
    axes = jax.tree.unflatten(treedef, [None if mark < 0 else mark for mark in marks])

    def one(case: Case, lane: Lane) -> Lane:
        return rest(case, lane, times)  # type: ignore[misc]

    rested: Lane = jax.vmap(jax.vmap(one, (axes, 0)), (None, 0))(case, lane)
    return rested

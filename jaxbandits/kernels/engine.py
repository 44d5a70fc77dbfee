"""Which programs of a sweep run as kernels on an accelerator, and how they fit among its other programs."""

from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import simulator
from jaxbandits.kernels import stretch
from jaxbandits.kernels.apart import Unsupported
from jaxbandits.kernels.census import Census, census_of
from jaxbandits.protocol import Case
from jaxbandits.spans import Segment
from jaxbandits.window import Lane, Parts

BLOCK = 128  # lanes of a block of threads, one a thread
# A thread has 255 registers; what is alive at once beside addresses and counters must fit, or it is spilled.
MOST_ALIVE = 200
# Operations times numbers alive. The time that compilers take grows with both: about ten seconds of one core here.
MOST_WORK = 100_000
MOST_NUMBERS = 1_024  # of a case: each is held apart


class Choice(NamedTuple):
    """What the windows of a span run as on a GPU."""

    window: stretch.OneWindow | None  # a window of one play; None where a case has too many numbers
    census: Census | None  # of it; None where it is not written out
    reason: str  # why it is no kernel; "" where it is one


def refusal(census: Census) -> str:
    """Why a window that is written out is no kernel. Empty where registers hold its lane and it compiles in time."""
    if census.alive > MOST_ALIVE:
        return f"{census.alive} numbers alive at once, at most {MOST_ALIVE}"
    work = census.operations * census.alive
    return "" if work <= MOST_WORK else f"operations times numbers alive {work}, at most {MOST_WORK}"


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
    slots, full, _ = kind
    numbers = sum(int(np.prod(x.shape)) for x in leaves)
    if numbers > MOST_NUMBERS:
        return Choice(None, None, f"{numbers} numbers in a case, at most {MOST_NUMBERS}")
    case = jax.tree.unflatten(treedef, leaves)
    seed = jax.ShapeDtypeStruct((), np.uint32)
    lane = jax.eval_shape(lambda case, seed: simulator.begin(parts, case, seed, checkpoints), case, seed)
    window = stretch.one_window(parts, case, lane)
    if not full:
        return Choice(window, None, "the algorithm decides how long its windows are")
    if slots > 1:
        return Choice(window, None, f"windows of {slots} plays")
    try:
        census = census_of(window)
    except Unsupported as error:
        return Choice(window, None, f"{error} is not written out")
    return Choice(window, census, refusal(census))


def advance(
    one: stretch.OneWindow, marks: tuple[int, ...], case: Case, seeds: Any, lane: Lane, times: Any, segment: Segment, *,
    interpret: bool = False,
) -> Lane:  # fmt: skip
    """The lanes [S, M, ...] after a segment of a full span of windows of one play.

    marks: of each leaf of the case, below 0 where its numbers are the same for all points. The state of the environment
    is [S, ...] where points share it.
    """
    points, shared = lane.plays.shape[1], _shared(one, lane)
    leaves, treedef = jax.tree.flatten(case)
    numbers = jax.tree.unflatten(treedef, [x[None] if mark < 0 else x for x, mark in zip(leaves, marks, strict=True)])
    if shared:
        lane = lane._replace(environment=jax.tree.map(lambda x: jnp.repeat(x[:, None], points, 1), lane.environment))
    high = jnp.minimum(segment.before + segment.windows, times[-1])
    reached = jnp.sum(times < high, dtype=jnp.int32)
    bounds = stretch.Bounds(segment.before, high, segment.row, reached + 1 - segment.row)
    block = gcd(BLOCK, seeds.shape[0])
    after = stretch.advance(one, numbers, seeds, lane, times, bounds, block=block, interpret=interpret)
    if shared:
        after = after._replace(environment=jax.tree.map(lambda x: x[:, 0], after.environment))
    row = jnp.sum(times <= high, dtype=jnp.int32)
    return after._replace(plays=jnp.full_like(after.plays, high), next=jnp.full_like(after.next, row))


def _shared(one: stretch.OneWindow, lane: Lane) -> bool:
    """Whether points share the state of the environment, which then has no axis of points."""
    pairs = zip(jax.tree.leaves(lane.environment), jax.tree.leaves(one.lane.environment), strict=True)
    return any(x.ndim == one.ndim + 1 for x, one in pairs)

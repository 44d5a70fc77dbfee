"""Which programs of a sweep run as kernels on an accelerator, and how they fit among its other programs."""

from functools import lru_cache
from typing import Any

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
MOST_OPERATIONS = 4_000  # longer straight lines take more than ten seconds to compile
MOST_NUMBERS = 1_024  # of a case: each is held apart


def fits(census: Census) -> bool:
    """Whether one play can be a kernel that holds its lane in registers."""
    return census.alive <= MOST_ALIVE and census.operations <= MOST_OPERATIONS


@lru_cache(maxsize=256)
def _one_play(parts: Parts, leaves: tuple[Any, ...], treedef: Any, checkpoints: int) -> stretch.OnePlay | None:
    """One play of a case of these shapes, traced; None where it cannot be a kernel."""
    if sum(int(np.prod(x.shape)) for x in leaves) > MOST_NUMBERS:
        return None
    case = jax.tree.unflatten(treedef, leaves)
    seed = jax.ShapeDtypeStruct((), np.uint32)
    lane = jax.eval_shape(lambda case, seed: simulator.begin(parts, case, seed, checkpoints), case, seed)
    one = stretch.one_play(parts, case, lane)
    try:
        return one if fits(census_of(one)) else None
    except Unsupported:
        return None


def kernel_of(parts: Parts, case: Case, checkpoints: int) -> stretch.OnePlay | None:
    """One play of a case, traced, where it can be a kernel. case: numbers of one point, or their shapes."""
    leaves, treedef = jax.tree.flatten(jax.tree.map(jax.typeof, case))
    return _one_play(parts, tuple(leaves), treedef, checkpoints)


def advance(
    one: stretch.OnePlay, marks: tuple[int, ...], case: Case, seeds: Any, lane: Lane, times: Any, segment: Segment, *,
    block: int = BLOCK, platform: str = "cuda", interpret: bool = False,
) -> Lane:  # fmt: skip
    """The lanes [S, M, ...] after a segment of a full span of windows of one play.

    marks: of each leaf of the case, below 0 where its numbers are the same for all points. The state of the environment
    is [S, ...] where points share it.
    """
    points, shared = lane.plays.shape[1], _shared(one, lane)
    leaves, treedef = jax.tree.flatten(case)
    numbers = treedef.unflatten([x[None] if mark < 0 else x for x, mark in zip(leaves, marks, strict=True)])
    if shared:
        lane = lane._replace(environment=jax.tree.map(lambda x: jnp.repeat(x[:, None], points, 1), lane.environment))
    high = jnp.minimum(segment.before + segment.windows, times[-1])
    reached = jnp.sum(times < high, dtype=jnp.int32)
    bounds = stretch.Bounds(segment.before, high, segment.row, reached + 1 - segment.row)
    after = stretch.advance(
        one, numbers, seeds, lane, times, bounds, block=block, platform=platform, interpret=interpret
    )
    if shared:
        after = after._replace(environment=jax.tree.map(lambda x: x[:, 0], after.environment))
    row = jnp.sum(times <= high, dtype=jnp.int32)
    return after._replace(plays=jnp.full_like(after.plays, high), next=jnp.full_like(after.next, row))


def _shared(one: stretch.OnePlay, lane: Lane) -> bool:
    """Whether points share the state of the environment, which then has no axis of points."""
    pairs = zip(jax.tree.leaves(lane.environment), jax.tree.leaves(one.lane.environment), strict=True)
    return any(x.ndim == one.ndim + 1 for x, one in pairs)

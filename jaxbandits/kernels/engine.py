"""Which programs of a sweep run as kernels on an accelerator, and how they fit among its other programs."""

from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import simulator
from jaxbandits.kernels import counted, stretch, windows
from jaxbandits.kernels.apart import Unsupported
from jaxbandits.kernels.census import Census, census_of
from jaxbandits.kernels.counted import Counted, counted_windows
from jaxbandits.kernels.long_axis import LongAxis
from jaxbandits.kernels.traced_window import OneWindow, one_window
from jaxbandits.kernels.windows import Limits, Windows, full_windows
from jaxbandits.protocol import Case
from jaxbandits.spans import Segment
from jaxbandits.window import Lane, Parts

BLOCK = 128  # lanes of a block of threads, one a thread
# Of a block whose lanes end their loops at different windows: those of a warp, which wait for no other lane.
COUNTED_BLOCK = 32
MOST_SLOTS = 8  # plays of a window that are written out
# A thread has 255 registers; what is alive at once beside addresses and counters must fit, or it is spilled.
# docs/decisions.md#counts-not-names
MOST_ALIVE = 200
MOST_OPERATIONS = 5_000  # of a window. Compilers take a second or two of one core for a thousand
# Operations times numbers alive where a loop is left: `online_ucb` with 2,359 x 164 took 11 s to compile.
MOST_WORK_WITH_LOOP = 126_000
MOST_NUMBERS = 1_024  # elements of a case
LONGEST_APART = 32  # arms that are held apart; more lie across the threads of a warp, which plays one lane
LONG_BLOCK = 1  # lanes of a block then: a warp plays one, and waits for no other


class Choice(NamedTuple):
    """What the windows of a span run as on a GPU."""

    # a window; one of a single play where one of several is refused; None where a case has too many numbers
    window: OneWindow | Windows | Counted | None
    census: Census | None  # of it; None where it is not written out
    reason: str  # why it is no kernel; "" where it is one


def refusal(census: Census) -> str:
    """Why a window that is written out is no kernel. Empty where registers hold its lane and it compiles in time."""
    if census.alive > MOST_ALIVE:
        return f"{census.alive} numbers alive at once, at most {MOST_ALIVE}"
    work = census.operations * census.alive
    if census.loops and work > MOST_WORK_WITH_LOOP:
        return f"operations times numbers alive {work} with a loop, at most {MOST_WORK_WITH_LOOP}"
    return "" if census.operations <= MOST_OPERATIONS else f"{census.operations} operations, at most {MOST_OPERATIONS}"


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
    long = LongAxis(parts.arms) if parts.arms is not None and parts.arms > LONGEST_APART else None
    numbers = sum(int(np.prod(x.shape if long is None else long.held(x.shape))) for x in leaves)
    if numbers > MOST_NUMBERS:
        return Choice(None, None, f"{numbers} numbers in a case, at most {MOST_NUMBERS}")
    case = jax.tree.unflatten(treedef, leaves)
    seed = jax.ShapeDtypeStruct((), np.uint32)
    lane = jax.eval_shape(lambda case, seed: simulator.begin(parts, case, seed, checkpoints), case, seed)
    single = _judged(one_window(parts, case, lane), long)
    if single.reason or (full and slots == 1):  # what holds too much for one play holds too much for several
        return single
    fixed = full or whole
    if fixed and slots > MOST_SLOTS:
        return Choice(single.window, single.census, f"windows of {slots} plays, at most {MOST_SLOTS}")
    # What plays of a window share is at most half of each. Tracing tens of thousands of operations takes long.
    if fixed and single.census is not None and single.census.operations * slots > 2 * MOST_OPERATIONS:
        return single._replace(reason=f"{slots} plays of {single.census.operations} operations")
    if full:
        return _judged(full_windows(parts, case, lane, slots), long)
    # Checkpoints may cut these windows anywhere, so that a span of shorter ones is the same: the longest that fits.
    for plays in [slots] if fixed else _halvings(min(slots, MOST_SLOTS)):
        chosen = _judged(counted_windows(parts, case, lane, kind, plays), long)
        if not chosen.reason:
            break
    return chosen


def _halvings(number: int) -> list[int]:
    """A number, its half rounded up, and so on to 1."""
    return [number] if number == 1 else [number, *_halvings(-(-number // 2))]


def _judged(window: Any, long: LongAxis | None) -> Choice:
    """A window with its census, and why it is no kernel. long: the axis that lies across threads."""
    window = _along(window, long)
    try:
        census = census_of(single_of(window))
    except Unsupported as error:
        return Choice(window, None, f"{error} is not written out")
    return Choice(window, census, refusal(census))


def _along(window: Any, long: LongAxis | None) -> Any:
    """A window of any kind with an axis across threads."""
    if isinstance(window, Counted):
        return window._replace(windows=_along(window.windows, long))
    if isinstance(window, Windows):
        return window._replace(one=window.one._replace(long=long))
    return window._replace(long=long)


def single_of(window: Any) -> OneWindow:
    """What a window of any kind does, traced."""
    if isinstance(window, Counted):
        return window.windows.one
    one: OneWindow = window.one if isinstance(window, Windows) else window
    return one


def plays_of(window: Any) -> int:
    """How many plays a window of any kind has at most."""
    windows = window.windows if isinstance(window, Counted) else window
    return windows.slots if isinstance(windows, Windows) else 1


def advance(
    window: OneWindow | Windows | Counted, marks: tuple[int, ...], case: Case, seeds: Any, lane: Lane,
    times: Any, segment: Segment, *, interpret: bool = False,
) -> Lane:  # fmt: skip
    """The lanes [S, M, ...] after a segment of a span.

    marks: of each leaf of the case, below 0 where its numbers are the same for all points. The state of the environment
    is [S, ...] where points share it.
    """
    one = single_of(window)
    points, shared = lane.plays.shape[1], _shared(one, lane)
    leaves, treedef = jax.tree.flatten(case)
    numbers = jax.tree.unflatten(treedef, [x[None] if mark < 0 else x for x, mark in zip(leaves, marks, strict=True)])
    if shared:
        lane = lane._replace(environment=jax.tree.map(lambda x: jnp.repeat(x[:, None], points, 1), lane.environment))
    most = LONG_BLOCK if one.long else COUNTED_BLOCK if isinstance(window, Counted) else BLOCK
    block = gcd(most, seeds.shape[0])
    sizes: Any = {"block": block, "interpret": interpret}
    if isinstance(window, Counted):
        after = counted.advance(window, numbers, seeds, lane, times, segment.windows, **sizes)
        after = _at_rest(window, marks, case, after, times)
    elif isinstance(window, Windows):
        after = windows.advance(window, numbers, seeds, lane, times, Limits(*segment, times[-1]), **sizes)
    else:
        after = _single_plays(window, numbers, seeds, lane, times, segment, sizes)
    if shared:
        after = after._replace(environment=jax.tree.map(lambda x: x[:, 0], after.environment))
    return after


def _single_plays(
    window: OneWindow, numbers: Case, seeds: Any, lane: Lane, times: Any, segment: Segment, sizes: Any
) -> Lane:
    """Windows of one play: all lanes are at the same play."""
    high = jnp.minimum(segment.before + segment.windows, times[-1])
    reached = jnp.sum(times < high, dtype=jnp.int32)
    bounds = stretch.Bounds(segment.before, high, segment.row, reached + 1 - segment.row)
    after = stretch.advance(window, numbers, seeds, lane, times, bounds, **sizes)
    row = jnp.sum(times <= high, dtype=jnp.int32)
    return after._replace(plays=jnp.full_like(after.plays, high), next=jnp.full_like(after.next, row))


def _at_rest(window: Counted, marks: tuple[int, ...], case: Case, lane: Lane, times: Any) -> Lane:
    """Lanes whose remaining plays are counted, where they rest."""
    treedef = jax.tree.structure(case)
    axes = jax.tree.unflatten(treedef, [None if mark < 0 else mark for mark in marks])

    def one(case: Case, lane: Lane) -> Lane:
        return window.rest(case, lane, times)

    rested: Lane = jax.vmap(jax.vmap(one, (axes, 0)), (None, 0))(case, lane)
    return rested


def _shared(one: OneWindow, lane: Lane) -> bool:
    """Whether points share the state of the environment, which then has no axis of points."""
    pairs = zip(jax.tree.leaves(lane.environment), jax.tree.leaves(one.lane.environment), strict=True)
    return any(x.ndim == one.ndim + 1 for x, one in pairs)

"""One lane, span by span: its pieces, each compiled, what they come to (`play_lane`), each play (`watch_lane`)."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import simulator, spans
from jaxbandits.protocol import Case, Span
from jaxbandits.recorder import Record, Times
from jaxbandits.traced_once import without_unread
from jaxbandits.typing import Array, Numeric
from jaxbandits.window import Lane, Parts, Window


def _piece(function: Callable[..., Any], static: tuple[int, ...]) -> Callable[..., Any]:
    """The function, compiled by itself: many spans repeat few kinds of window. A caller's `jit` inlines it."""
    return jax.jit(without_unread(function), static_argnums=static)


begin_lane = _piece(simulator.begin, (0, 3))
advance_lane = _piece(simulator.advance, (0, 1))
close_span = _piece(simulator.close, (0,))
finish_lane = _piece(simulator.finish, (0,))


@partial(_piece, static=(0, 1, 2))
def watch_windows(
    parts: Parts, kind: simulator.WindowKind, windows: int, case: Case, seed: Array, lane: Lane, times: Times,
    start: Any, length: Any, first: Any,
) -> tuple[Lane, Window]:  # fmt: skip
    """Play windows of a span from the `first` on, one by one, and return all of them, stacked."""

    def play_nth_window(lane, w):
        return simulator.nth_window(parts, kind, case, seed, lane, times, start, length, w)

    return lax.scan(play_nth_window, lane, first + jnp.arange(windows, dtype=jnp.int32))


def watch_lane(
    parts: Parts, schedule: Sequence[Span], case: Case, seed: Numeric, times: np.ndarray[Any, Any],
    lane: Lane | None = None, most: int = 2**31,
) -> Iterator[tuple[Lane, Window]]:  # fmt: skip
    """Play every window of a lane, also those that a lane at rest only counts.

    Yields, for each span, the lane after it and its windows, stacked; where it has more than `most` of them, several
    times. lane: before the first play, where it has begun.
    """
    lane = begin_lane(parts, case, seed, len(times)) if lane is None else lane
    start, horizon, at = 0, int(times[-1]), jnp.asarray(times, jnp.int32)
    for span in schedule:
        kind, windows = span.kind, spans.windows_offered(span, len(times))
        where = at, jnp.int32(start), jnp.int32(spans.batch_length(span))
        for first in range(0, max(windows, 1), most):
            number = min(most, windows - first)
            lane, seen = watch_windows(parts, kind, number, case, seed, lane, *where, jnp.int32(first))
            if span.close and first + number == windows:
                lane = close_span(parts, case, seed, lane)
            yield lane, seen
        start = spans.next_start(span, start, horizon)


def play_lane(
    parts: Parts, schedule: Sequence[Span], history: bool, case: Case, seed: Numeric, times: np.ndarray[Any, Any]
) -> tuple[Record, Lane, dict[str, Any], list[Window]]:
    """The record, the lane and the diagnostics at the horizon, and with `history` the windows of each span."""
    windows = [seen for _, seen in watch_lane(parts, schedule, case, seed, times)] if history else []
    lane, start = begin_lane(parts, case, seed, len(times)), 0
    for span in schedule:
        kind, number = span.kind, spans.windows_offered(span, len(times))
        segment = spans.segment(span, start, 0, number, times)
        lane = advance_lane(parts, kind, case, seed, lane, jnp.asarray(times, jnp.int32), segment)
        lane = close_span(parts, case, seed, lane) if span.close else lane
        start = spans.next_start(span, start, int(times[-1]))
    record, diagnostics = finish_lane(parts, case, lane)
    return record, lane, diagnostics, windows

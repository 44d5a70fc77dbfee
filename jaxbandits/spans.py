"""The arithmetic of a schedule: which plays a window of a span stands for. Numbers may be traced.

A full span plays `repeats` batches of `length` plays. A batch is cut into windows of `slots` plays, the last one
shorter.
Windows of a span are numbered from 0, over all its batches.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.protocol import Span
from jaxbandits.typing import Array


class Segment(NamedTuple):
    """Where some windows of a span begin, int32 each. Spans that are not full need only their number."""

    before: Any  # plays made before
    left: Any  # plays left of the batch
    length: Any  # plays of a batch
    row: Any  # the first checkpoint after `before`
    windows: Any  # how many


def segment(span: Span, start: int, first: int, windows: int, times: np.ndarray[Any, Any]) -> Segment:
    """Windows first .. first + windows - 1 of a span that begins after `start` plays; times: checkpoints."""
    length = batch_length(span)
    before, left = place_of_window(first, start, length, span.slots) if span.full else (0, 0)
    before = min(before, int(times[-1]))
    row = np.searchsorted(times, before, side="right")
    return Segment(*(np.int32(x) for x in (before, left, length, row, windows)))


def batch_length(span: Span) -> int:
    """Plays of a batch; of a window, where batches are windows."""
    return span.length or span.slots


def windows_per_batch(length: Any, slots: int) -> Any:
    """Windows that a batch is cut into."""
    return (length + slots - 1) // slots


def windows_offered(span: Span, checkpoints: int = 0) -> int:
    """How many windows a span has. Where the algorithm says how many plays a window uses, checkpoints may cut them."""
    if span.full:
        return span.repeats * windows_per_batch(batch_length(span), span.slots)
    return span.repeats + (0 if span.whole else checkpoints)


def place_of_window(window: int | Array, start: int | Array, length: int | Array, slots: int) -> tuple[Any, Any]:
    """Plays made before a window of a full span that starts after `start` plays, and plays left of its batch."""
    per_batch = windows_per_batch(length, slots)
    batch, part = window // per_batch, window % per_batch
    return start + batch * length + part * slots, length - part * slots


def plays_of_window(left: int | Array, slots: int, before: int | Array, horizon: int | Array) -> Array:
    """Plays that a window makes: at most its slots, to the end of its batch, not beyond the horizon."""
    return jnp.minimum(jnp.clip(left, 0, slots), jnp.maximum(horizon - before, 0))


def next_start(span: Span, start: int, horizon: int) -> int:
    """Plays made before the next span. It matters to full spans only: the others count their plays as they go."""
    return min(start + span.repeats * batch_length(span), horizon) if span.full else start

"""One lane of a subject, traced and not compiled.

Tracing gives its programs, what its functions return, and which addresses they draw.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from chex import assert_trees_all_equal_shapes_and_dtypes

from jaxbandits import recorder, simulator
from jaxbandits.protocol import Case, Span
from jaxbandits.random import Draws
from jaxbandits.source_places import place_of_caller
from jaxbandits.window import Parts, offer

CHECKPOINTS = 8
MAX_WINDOW_SIZES = 6  # so many sizes of windows are traced at most


class Traces(NamedTuple):
    """What tracing one lane gave."""

    # "init", "a window of 4 plays", "close", "diagnose" -> (closed jaxpr, which inputs vary from lane to lane)
    programs: dict
    # (path, shape of one play's draw or "at", first position, place) of every draw of the largest window
    addresses: list[tuple[str, Any, Any, str]]
    shown: tuple[Any, ...]  # message, released and actions of the largest window, as shapes
    counted: bool  # whether regret follows from counts of pulls


def traced(parts: Parts, case: Case, schedule: Iterable[Span]) -> Traces:
    """Trace a lane as it is played: its beginning, a window of every size, its close and its diagnostics.

    case: the params as shapes.
    """
    programs: dict[str, Any] = {}
    addresses: list[Any] = []
    shown: tuple[Any, ...] = ()
    seed, number = jax.ShapeDtypeStruct((), jnp.uint32), jax.ShapeDtypeStruct((), jnp.int32)

    def trace(name: str, function: Any, **inputs: Any) -> Any:
        """The shapes that a function returns. Its seed and its lane vary from lane to lane."""
        closed, out = jax.make_jaxpr(function, return_shape=True)(*inputs.values())
        programs[name] = closed, [key in ("seed", "lane") for key, x in inputs.items() for _ in jax.tree.leaves(x)]
        return out

    lane = trace("init", lambda case, seed: simulator.begin(parts, case, seed, CHECKPOINTS), case=case, seed=seed)
    for slots in window_sizes(schedule):
        # as the engine plays them: full windows of one play have no limit
        free = slots == 1 and all(span.full for span in schedule)

        def window(case, seed, lane, before, limit, slots=slots, free=free):
            after, seen = offer(parts, case, seed, slots, lane, before, None if free else limit)
            return (seen.message, seen.released, seen.action), after

        addresses.clear()
        with logged_draws(addresses):
            name = f"a window of {slots} plays"
            shown, after = trace(name, window, case=case, seed=seed, lane=lane, before=number, limit=number)
        assert_trees_all_equal_shapes_and_dtypes(lane, after)  # what is carried: states, sums and counts
    if any(span.close for span in schedule):
        trace("close", partial(simulator.close, parts), case=case, seed=seed, lane=lane)
    trace("diagnose", partial(simulator.finish, parts), case=case, lane=lane)
    return Traces(programs, addresses, shown, recorder.counts(lane.record))


def window_sizes(schedule: Iterable[Span]) -> list[int]:
    """The numbers of plays that windows of a schedule offer: the smallest, the largest, and some between."""
    sizes = sorted({span.slots for span in schedule if span.repeats})
    if len(sizes) > MAX_WINDOW_SIZES:
        sizes = [sizes[i] for i in np.linspace(0, len(sizes) - 1, MAX_WINDOW_SIZES).round().astype(int)]
    return sizes


@contextmanager
def logged_draws(log: list[Any]) -> Iterator[None]:
    """Note every address that is drawn meanwhile."""
    words, at = Draws.words, Draws.at

    def logged_words(self, t, shape=(), first=0):
        log.append((self.path, tuple(shape), first, place_of_caller()))
        return words(self, t, shape, first)

    def logged_at(self, t, position):
        log.append((self.path, "at", 0, place_of_caller()))
        return at(self, t, position)

    with mock.patch.object(Draws, "words", logged_words), mock.patch.object(Draws, "at", logged_at):
        yield

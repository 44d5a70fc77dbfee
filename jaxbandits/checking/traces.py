"""One lane of a subject, traced and not compiled.

Tracing gives its programs, what its functions return, and which addresses they draw.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
from jaxbandits.sweeps.part_checks.examination import Examination
from jaxbandits.sweeps.plan import Cell, host_case, stacked
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


def walk_through(cell: Cell, dtype: str, slots: int) -> None:
    """Trace every function of a cell by itself, on windows of `slots` plays.

    Raises ValueError where one does not keep to the protocol.
    """
    claim = cell.algorithm.guarantee
    with jax.enable_x64(dtype == "float64"):
        parts, case = _given(cell, dtype)
        view, agents = None if claim.model == "none" else claim.view, cell.environment.facts.get("num_agents")
        Examination(cell.label, parts, slots, agents, unread=True).of(case, view)


def traced(cell: Cell) -> Traces:
    """Trace a lane as it is played: its beginning, a window of every size, its close and its diagnostics."""
    parts, case = _given(cell, "float32")
    programs: dict[str, Any] = {}
    addresses: list[Any] = []
    shown: tuple[Any, ...] = ()
    seed, number = jax.ShapeDtypeStruct((), jnp.uint32), jax.ShapeDtypeStruct((), jnp.int32)

    def begin(case, seed):
        return simulator.begin(parts, case, seed, CHECKPOINTS)

    def close(case, seed, lane):
        return simulator.close(parts, case, seed, lane)

    def finish(case, lane):
        return simulator.finish(parts, case, lane)

    programs["init"], lane = _program(begin, (case, seed), (False, True))
    for slots in window_sizes(cell.algorithm.schedule):
        # as the engine plays them: full windows of one play have no limit
        free = slots == 1 and all(span.full for span in cell.algorithm.schedule)
        window = _window(parts, slots, free)
        addresses.clear()
        with logged_draws(addresses):
            given, varying = (case, seed, lane, number, number), (False, True, True, False, False)
            programs[f"a window of {slots} plays"], (shown, after) = _program(window, given, varying)
        assert_trees_all_equal_shapes_and_dtypes(lane, after)  # what is carried: states, sums and counts
    if any(span.close for span in cell.algorithm.schedule):
        programs["close"], _ = _program(close, (case, seed, lane), (False, True, True))
    programs["diagnose"], _ = _program(finish, (case, lane), (False, True))
    return Traces(programs, addresses, shown, recorder.counts(lane.record))


def _given(cell: Cell, dtype: str) -> tuple[Parts, Case]:
    """The functions of a cell, and its numbers as shapes."""
    parts = simulator.parts_of(cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary, dtype)
    return parts, jax.tree.map(_shape, stacked([host_case(cell)], dtype)[0])


def _program(function, given: tuple, varying: tuple):
    """A traced function with the flags of its inputs, and the shapes of what it returns."""
    closed, out = jax.make_jaxpr(function, return_shape=True)(*given)
    flags = [vary for x, vary in zip(given, varying, strict=True) for _ in jax.tree.leaves(x)]
    return (closed, flags), out


def _window(parts: Parts, slots: int, free: bool):
    def window(case, seed, lane, before, limit):
        after, seen = offer(parts, case, seed, slots, lane, before, None if free else limit)
        return (seen.message, seen.released, seen.action), after

    return window


def _shape(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype)


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

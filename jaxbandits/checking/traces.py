"""One lane of a subject, traced and not compiled: its programs, what its functions return, and which addresses they draw."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import recorder, simulator
from jaxbandits.checking.findings import one_line, place_of_caller
from jaxbandits.checking.malformed import Malformed, Returns
from jaxbandits.random import Draws
from jaxbandits.simulator import Parts
from jaxbandits.sweeps.plan import Cell, host_case, stacked

CHECKPOINTS = 8
MOST_SIZES = 6  # of windows that are traced


class Traces(NamedTuple):
    """What tracing one lane gave."""

    programs: dict  # "init", "a window of 4 plays", "close", "diagnose" -> (closed jaxpr, which inputs vary from lane to lane)
    faults: list  # (message, where) of malformed returns
    addresses: (
        list  # (path, shape of one play's draw or "at", first position, place) of every draw of the largest window
    )
    shown: tuple  # message, released and actions of the largest window, as shapes


def traced(cell: Cell, dtype: str, *, truth: bool) -> Traces:
    """Trace a lane's beginning, a window of every size, its close and its diagnostics. truth: also what adversaries may ask for."""
    parts = simulator.parts_of(cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary, dtype)
    returns = Returns()
    watched = Parts(
        returns.program(parts.program), returns.world(parts.world), returns.attack(parts.reward_attack),
        returns.attack(parts.message_attack), parts.dtype,
    )  # fmt: skip
    programs: dict = {}
    addresses: list = []
    shown: tuple = ()
    with jax.enable_x64(dtype == "float64"):
        case = jax.tree.map(_shape, stacked([host_case(cell)], dtype)[0])
        seed, number = jax.ShapeDtypeStruct((), jnp.uint32), jax.ShapeDtypeStruct((), jnp.int32)

        def begin(case, seed):
            return simulator.begin(watched, case, seed, CHECKPOINTS)

        def close(case, seed, lane):
            return simulator.close(watched, case, seed, lane)

        def finish(case, lane):
            return simulator.finish(watched, case, lane)

        try:
            programs["init"], lane = _program(begin, (case, seed), (False, True))
            if recorder.counts(lane.record) and "means" not in cell.environment.facts:
                message = "the environment counts pulls and gives no regret: put the arms' means into facts['means']"
                returns.fault(message, parts.world.score)
            for slots in window_sizes(cell.algorithm.schedule):
                # as the engine plays them: full windows of one play have no limit
                free = slots == 1 and all(span.full for span in cell.algorithm.schedule)
                window = _window(watched, slots, free)
                addresses.clear()
                with logged_draws(addresses):
                    given, varying = (case, seed, lane, number, number), (False, True, True, False, False)
                    programs[f"a window of {slots} plays"], shown = _program(window, given, varying)
            if any(span.close for span in cell.algorithm.schedule):
                programs["close"], _ = _program(close, (case, seed, lane), (False, True, True))
            programs["diagnose"], _ = _program(finish, (case, lane), (False, True))
            if truth:
                jax.eval_shape(_truth(watched), case, seed, lane)
        except Malformed as error:
            returns.faults[(one_line(error), error.where)] = None
        except Exception:
            if not returns.faults:  # else it follows from them
                raise
    return Traces(programs, list(returns.faults), addresses, shown)


def _program(function, given: tuple, varying: tuple):
    """A traced function with the flags of its inputs, and the shapes of what it returns."""
    closed, out = jax.make_jaxpr(function, return_shape=True)(*given)
    flags = [vary for x, vary in zip(given, varying, strict=True) for _ in jax.tree.leaves(x)]
    return (closed, flags), out


def _window(parts: Parts, slots: int, free: bool):
    def window(case, seed, lane, before, limit):
        _, seen = simulator._offer(parts, case, seed, slots, lane, before, None if free else limit)
        return seen.message, seen.released, seen.action

    return window


def _truth(parts: Parts):
    def truth(case, seed, lane):
        t = jnp.ones(1, jnp.int32)
        context, state = parts.world.observe(case.environment, lane.environment, Draws(seed, "", parts.dtype), t)
        return parts.world.truth(case.environment, state, t, context)

    return truth


def _shape(x) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype)


def window_sizes(schedule) -> list[int]:
    """The numbers of plays that windows of a schedule offer: the smallest, the largest, and some between."""
    sizes = sorted({span.slots for span in schedule if span.repeats})
    if len(sizes) > MOST_SIZES:
        sizes = [sizes[i] for i in np.linspace(0, len(sizes) - 1, MOST_SIZES).round().astype(int)]
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

"""What the theorem covers, of whole runs: an algorithm's real functions on a given input, thousands of independent
runs at once.

Axes: [L] runs, [W] windows, [F] numbers of a transcript.
"""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import simulator
from jaxbandits.auditing.neighbours import RULES, Edit, Input
from jaxbandits.numerics import one_hot
from jaxbandits.protocol import Case, Hints, Program, Report, Span
from jaxbandits.random import Draws
from jaxbandits.spans import batch_length, next_start, place_of_window, plays_of_window, windows_offered
from jaxbandits.sweeps.compilation.compilation_cache import programs_on_disk
from jaxbandits.traced_once import without_unread
from jaxbandits.typing import Bool, Float, Int
from jaxbandits.window import Parts, offer

MAX_INDICATOR_ARMS = 64  # actions among more arms are plain numbers, not indicators
# Runs of a call, by kind of device, and on all other kinds.
MAX_RUNS_OF_CALL = {"cpu": 2048}
MAX_RUNS_OF_CALL_ELSEWHERE = 1 << 16


class Clients(NamedTuple):
    """Parameters of `clients_alone`."""

    params: Any  # the program's own parameters
    seed: Any  # of what clients and relay draw, uint32


# docs/decisions.md#given-the-past
@cache
def clients_alone(program: Program) -> Program:
    """The program with one public history: only clients and relay draw anew in every run.

    What a local or shuffled claim covers holds given every earlier message and action; and designs made before the
    first play are then computed once, not once a run.
    """

    def public(function):
        return lambda clients, *args: function(clients.params, *args)

    def encode(clients, note, draws, *args):
        return program.encode(clients.params, note, Draws(clients.seed, draws.path, draws.dtype), *args)

    def relay(clients, draws, *args):
        return program.relay(clients.params, Draws(clients.seed, draws.path, draws.dtype), *args)

    return Program(
        init=public(program.init), act=public(program.act), encode=encode, update=public(program.update),
        relay=relay, close=public(program.close),
        hints=Hints(one_arm=program.hints.one_arm),
    )  # fmt: skip


class Setting(NamedTuple):
    """What fixes the compiled code."""

    parts: Parts
    schedule: tuple[Span, ...]
    view: Callable[[Any, Any, Any], Any]  # message, released, action -> what the guarantee covers
    windows: int  # a transcript ends after so many windows
    horizon: int
    num_arms: int
    sent: bool  # whether the view is about messages rather than about what the server releases


def _numbers(setting: Setting, window):
    """A window's view as one vector: every number and whether it is finite, actions as indicators."""
    message = window.message
    if isinstance(message, Report):  # no client answers for a play that was offered and not made
        message = message._replace(
            value=jnp.where(message.present, message.value, 0), arm=jnp.where(message.present, message.arm, 0)
        )
    numbers = [jnp.zeros(0, setting.parts.dtype)]
    for leaf in jax.tree.leaves(setting.view(message, window.released, window.action)):
        x = jnp.asarray(leaf)
        if jnp.issubdtype(x.dtype, jnp.floating):
            numbers += [jnp.where(jnp.isfinite(x), x, 0), jnp.isfinite(x)]
        else:
            numbers += [
                one_hot(x, setting.num_arms) if x.dtype == jnp.int32 and setting.num_arms <= MAX_INDICATOR_ARMS else x
            ]
    return jnp.where(window.used > 0, jnp.concatenate([x.astype(setting.parts.dtype).ravel() for x in numbers]), 0)


def _tells(setting: Setting, window):
    """Whether the window sends or releases a number."""
    leaves = jax.tree.leaves(window.message if setting.sent else window.released)
    finite = [jnp.any(jnp.isfinite(x)) for x in map(jnp.asarray, leaves) if jnp.issubdtype(x.dtype, jnp.floating)]
    return (window.used > 0) & (jnp.any(jnp.stack(finite)) if finite else False)


def _one(setting: Setting, case: Case, seed):
    """One run: its numbers [W, F'], plays done after each window [W], and whether the window told a number [W]."""
    parts, seen_of_spans, left, start = setting.parts, [], setting.windows, 0
    lane = simulator.begin(parts, case, seed, 1)
    for span in setting.schedule:
        number = min(left, windows_offered(span))

        def play(lane, w, span=span, start=start):
            if span.full:
                before, rest = place_of_window(w, start, batch_length(span), span.slots)
                limit = None if span.slots == 1 else plays_of_window(rest, span.slots, before, setting.horizon)
            else:
                before, limit = lane.plays, setting.horizon - lane.plays
            lane, window = offer(parts, case, seed, span.slots, lane, before, limit)
            done = (before + window.used).astype(jnp.int32)
            return lane._replace(plays=done), (_numbers(setting, window), done, _tells(setting, window))

        if number:
            lane, seen = lax.scan(play, lane, jnp.arange(number, dtype=jnp.int32))
            seen_of_spans.append(seen)
        left -= number
        if left == 0:
            break
        if span.close:
            lane = simulator.close(parts, case, seed, lane)
        start = next_start(span, start, setting.horizon)
    numbers, done, tells = zip(*seen_of_spans, strict=True)
    return jnp.concatenate([x.reshape(-1) for x in numbers]), jnp.concatenate(done), jnp.concatenate(tells)


@partial(jax.jit, static_argnums=0)
# docs/decisions.md#unread
@partial(without_unread, static=(0,))
def _many(setting: Setting, params, environment, edits, seeds):
    def run(edit, seed):
        reacting = edit if setting.parts.reward_attack else ()
        case = Case(environment._replace(edit=edit), reacting, edit, Clients(params, seed) if setting.sent else params)
        return _one(setting, case, jnp.uint32(0) if setting.sent else seed)

    return jax.vmap(run)(edits, seeds)


def lanes(number: int) -> int:
    """Runs of a call: as many as fit the machine, fewer where fewer are wanted."""
    at_most = MAX_RUNS_OF_CALL.get(jax.default_backend(), MAX_RUNS_OF_CALL_ELSEWHERE)
    return min(at_most, 1 << max(3, (number - 1).bit_length()))


class Seeds:
    """Consecutive seeds: no run is repeated, whatever it is for."""

    def __init__(self, seed: int) -> None:
        self.next = int(np.random.SeedSequence(seed).generate_state(1)[0])

    def take(self, number: int) -> Int[np.ndarray, " L"]:
        start, self.next = self.next, self.next + number
        return (np.arange(number, dtype=np.uint64) + np.uint64(start)).astype(np.uint32)


class Runs(NamedTuple):
    """Makes transcripts on any edit."""

    setting: Setting
    params: Any  # of the algorithm
    environment: Input  # its parameters
    size: int  # runs of a call, so that calls for several numbers of runs share a program

    def on(
        self, edits: list[Edit], which: Int[np.ndarray, " L"], seeds: Int[np.ndarray, " L"], columns: Any = None
    ) -> tuple[Float[np.ndarray, "L F"], Int[np.ndarray, "L W"], Bool[np.ndarray, "L W"]]:
        """Runs, each on `edits[which]`: numbers, plays done after each window, and whether it told a number.

        columns: [F] of the numbers to return, all by default.
        """
        stacked, calls = _stack(edits), []
        for first in range(0, len(seeds), self.size):
            rows = np.arange(first, first + self.size) % len(seeds)  # the last call is filled up
            some = jax.tree.map(lambda x, rows=rows: x[which[rows]], stacked)
            with programs_on_disk():
                out = _many(self.setting, self.params, self.environment, some, seeds[rows])
            wanted = min(self.size, len(seeds) - first)
            numbers, done, tells = (np.asarray(x)[:wanted] for x in out)
            calls.append((numbers if columns is None else numbers[:, columns], done, tells))
        numbers, done, tells = map(np.concatenate, zip(*calls, strict=True))
        return numbers, done, tells

    def pair(self, pair: Iterable[Edit], number: int, seeds: Seeds, columns: Any) -> list[Float[np.ndarray, "L F"]]:
        """The numbers of so many runs on each edit of a pair."""
        return [self.on([edit], np.zeros(number, int), seeds.take(number), columns)[0] for edit in pair]


def _stack(edits: list[Edit]) -> Edit:
    stacked_edits = jax.tree.map(lambda *x: np.array(x, np.float32), *(edit._replace(rule=()) for edit in edits))
    rules = () if edits[0].rule == () else np.array([RULES.index(edit.rule) for edit in edits], np.int32)
    return stacked_edits._replace(play=np.array([edit.play for edit in edits], np.int32), rule=rules)

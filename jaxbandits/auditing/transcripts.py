"""What the theorem covers, of whole runs: an algorithm's real functions on a given input, thousands of independent runs at once.

Axes: [L] runs, [W] windows, [F] numbers of a transcript.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import simulator
from jaxbandits.numerics import one_hot
from jaxbandits.protocol import Case, Hints, Program, Report
from jaxbandits.random import Draws
from jaxbandits.sweeps.engines.compilation_cache import programs_on_disk
from jaxbandits.sweeps.engines.unread_code import without_unread
from jaxbandits.window import Parts, offer

MOST_ARMS = 64  # actions among more arms are plain numbers
LANES = {"cpu": 2048}  # runs of a call; elsewhere:
LANES_ELSEWHERE = 1 << 16


class Clients(NamedTuple):
    """Parameters of `clients_alone`."""

    params: Any
    seed: Any  # of what clients and relay draw


@cache
def clients_alone(program: Program) -> Program:
    """The program with one public history: only clients and relay draw anew in every run.

    What a local or shuffled claim covers holds given every earlier message and action; and designs made before the first play are
    then computed once, not once a run.
    """

    def public(function):
        return lambda clients, *args: function(clients.params, *args)

    def encode(clients, note, draws, *args):
        return program.encode(clients.params, note, Draws(clients.seed, draws.path, draws.dtype), *args)

    def relay(clients, draws, *args):
        return program.relay(clients.params, Draws(clients.seed, draws.path, draws.dtype), *args)

    return Program(
        public(program.init), public(program.act), encode, public(program.update), relay, public(program.close),
        hints=Hints(one_arm=program.hints.one_arm),
    )  # fmt: skip


class Setting(NamedTuple):
    """What fixes the compiled code."""

    parts: Parts
    schedule: tuple
    view: Callable
    windows: int  # a transcript ends after so many
    horizon: int
    num_arms: int
    sent: bool  # the view is about messages rather than what the server releases


def _numbers(setting: Setting, window):
    """A window's view as one vector: every number and whether it is finite, actions as indicators."""
    message = window.message
    if isinstance(message, Report):  # no client answers for a play that was offered and not made
        message = message._replace(
            value=jnp.where(message.present, message.value, 0), arm=jnp.where(message.present, message.arm, 0)
        )
    found = [jnp.zeros(0, setting.parts.dtype)]
    for leaf in jax.tree.leaves(setting.view(message, window.released, window.action)):
        x = jnp.asarray(leaf)
        if jnp.issubdtype(x.dtype, jnp.floating):
            found += [jnp.where(jnp.isfinite(x), x, 0), jnp.isfinite(x)]
        else:
            found += [one_hot(x, setting.num_arms) if x.dtype == jnp.int32 and setting.num_arms <= MOST_ARMS else x]
    return jnp.where(window.used > 0, jnp.concatenate([x.astype(setting.parts.dtype).ravel() for x in found]), 0)


def _tells(setting: Setting, window):
    """Whether the window sends or releases a number."""
    leaves = jax.tree.leaves(window.message if setting.sent else window.released)
    finite = [jnp.any(jnp.isfinite(x)) for x in map(jnp.asarray, leaves) if jnp.issubdtype(x.dtype, jnp.floating)]
    return (window.used > 0) & (jnp.any(jnp.stack(finite)) if finite else False)


def _one(setting: Setting, case: Case, seed):
    """One run: its numbers [W, F'], plays done after each window [W], and whether the window told a number [W]."""
    parts, kept, left, start = setting.parts, [], setting.windows, 0
    lane = simulator.begin(parts, case, seed, 1)
    for span in setting.schedule:
        length = span.length or span.slots
        per_batch = -(-length // span.slots)
        number = min(left, span.repeats * per_batch if span.full else span.repeats)

        def play(lane, w, span=span, length=length, per_batch=per_batch, start=start):
            if span.full:
                part = w % per_batch
                before = start + (w // per_batch) * length + part * span.slots
                limit = jnp.clip(jnp.minimum(length - part * span.slots, setting.horizon - before), 0, span.slots)
                limit = None if span.slots == 1 else limit
            else:
                before, limit = lane.plays, setting.horizon - lane.plays
            lane, window = offer(parts, case, seed, span.slots, lane, before, limit)
            done = (before + window.used).astype(jnp.int32)
            return lane._replace(plays=done), (_numbers(setting, window), done, _tells(setting, window))

        if number:
            lane, seen = lax.scan(play, lane, jnp.arange(number, dtype=jnp.int32))
            kept.append(seen)
        left -= number
        if left == 0:
            break
        if span.close:
            lane = simulator.close(parts, case, seed, lane)
        start = min(start + span.repeats * length, setting.horizon) if span.full else start
    numbers = jnp.concatenate([seen[0].reshape(-1) for seen in kept])
    return numbers, *(jnp.concatenate([seen[i] for seen in kept]) for i in (1, 2))


@partial(jax.jit, static_argnums=0)
@partial(without_unread, static=(0,))
def _many(setting: Setting, params, environment, edits, seeds):
    def run(edit, seed):
        case = Case(environment._replace(edit=edit), (), edit, Clients(params, seed) if setting.sent else params)
        return _one(setting, case, jnp.uint32(0) if setting.sent else seed)

    return jax.vmap(run)(edits, seeds)


def lanes(number: int) -> int:
    """Runs of a call: as many as fit the machine, fewer where fewer are wanted."""
    most = LANES.get(jax.default_backend(), LANES_ELSEWHERE)
    return min(most, 1 << max(3, (number - 1).bit_length()))


def transcripts(setting: Setting, params, environment, edits, which, seeds, columns=None, size=None):
    """[L, F] numbers of runs on edits[which] with seeds [L] (`columns` of them), and as [L, W] the plays done and the windows that told something.

    edits: a tree with a leading axis [E]; which: [L]. size: runs of a call, so that calls of several lengths share a program.
    """
    size = size or lanes(len(seeds))
    found: list[Any] = []
    for first in range(0, len(seeds), size):
        rows = np.arange(first, first + size) % len(seeds)  # the last call is filled up
        some = jax.tree.map(lambda x, rows=rows: x[np.asarray(which)[rows]], edits)
        with programs_on_disk():
            out = _many(setting, params, environment, some, np.asarray(seeds, np.uint32)[rows])
        wanted = min(size, len(seeds) - first)
        numbers = np.asarray(out[0])[:wanted]
        found.append((numbers if columns is None else numbers[:, columns], *(np.asarray(x)[:wanted] for x in out[1:])))
    return tuple(np.concatenate([part[i] for part in found]) for i in range(3))

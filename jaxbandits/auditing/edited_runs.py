"""Runs on edited inputs: what is private in them, how long their transcripts are, and which inputs to compare."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.auditing import neighbours
from jaxbandits.auditing.neighbours import REACTING_UNITS, Edit, Input
from jaxbandits.auditing.transcripts import Runs, Seeds, Setting, clients_alone, lanes
from jaxbandits.declared import told_by
from jaxbandits.mechanisms.composition import view_released
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.random import Draws
from jaxbandits.spans import windows_offered
from jaxbandits.sweeps.plan import stacked
from jaxbandits.window import Parts

TRANSCRIPT_PLAYS = 128  # a transcript ends after so many plays, unless the first release comes later
TRANSCRIPT_MESSAGES = 4  # in the local model it ends after so many messages
MAX_WINDOWS = 1 << 12  # the first release is looked for in so many windows at most
MAX_NUMBERS = 1 << 26  # numbers of the transcripts of one call, in float32, where whole runs are looked at
# So many numbers of a whole run are kept, those that differ most between the inputs: more than any score reads.
MAX_COLUMNS = 512
MAX_PAIRS = 4  # so many pairs of inputs come into the second stage of the search
PROBE_RUNS = 16  # runs on each edit in the first stage of the search


@cache
def _with_actions(view: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """A view and the arms that were played: who made the inputs react to them has seen them."""
    return lambda message, released, action: (view(message, released, action), action)


def default_environment(algorithm: Algorithm) -> Environment:
    """An environment that offers what an algorithm was built for. Its rewards are replaced, so arms do for actions."""
    from jaxbandits import catalogue  # it loads every algorithm

    config = {key: value for key, value in algorithm.config.items() if value is not None}
    kind = algorithm.plays_on or told_by(config)
    if kind == "fixed set":
        kind, config = "arms", {"num_arms": len(config["actions"])}
    return catalogue.natural(kind, config)()


def prepared(
    algorithm: Algorithm, environment: Environment, seeds: Seeds, runs: int, whole: bool, adaptive: bool = False
) -> tuple[Runs, list[int], int, int]:
    """How transcripts are made, and what may be private in them.

    Returns the runner, the plays whose input may be private, the last play seen, and the features' dimension (unit
    "user").
    """
    guarantee, world = algorithm.guarantee, environment.world
    params = stacked([algorithm.params], "float32")[0]
    public = stacked([environment.params], "float32")[0]
    draws, t = Draws(jnp.uint32(0), "environment"), jnp.ones(1, jnp.int32)
    shape = jax.eval_shape(lambda: world.observe(public, world.init(public, draws), draws, t)[0])
    user = guarantee.unit == "user"
    if user and not hasattr(shape, "shape"):
        raise ValueError(
            f"environment: unit 'user' needs contexts of features, {environment.config.get('name')} has none"
        )
    dim = shape.shape[-1] if user else 0
    attack = neighbours.MESSAGE if guarantee.unit == "message" else None
    if adaptive and guarantee.unit not in REACTING_UNITS:
        raise ValueError(
            f"adaptive = True: neighbours of {algorithm.version[0]} differ in one {guarantee.unit}, and inputs react "
            "to the arms that were played only where they differ in one reward or loss vector: leave it out"
        )
    reward_attack = neighbours.reacting(min(1.0, guarantee.bound)) if adaptive else None
    sent = guarantee.model in ("local", "shuffle") and guarantee.view is not view_released
    program = clients_alone(algorithm.program) if sent else algorithm.program
    parts = Parts(program, neighbours.world_of(world, user), reward_attack, attack, jnp.float32)
    horizon = int(algorithm.config["horizon"])
    schedule = algorithm.schedule
    windows_of_spans = [windows_offered(span) for span in schedule]
    offered = sum(windows_of_spans)
    begun = next((int(n) for n in np.cumsum(windows_of_spans) if n), 1)
    closes = any(span.close for span in schedule)  # what a close releases, the window after it tells
    # docs/decisions.md#windows-not-plays
    start = min(begun, TRANSCRIPT_MESSAGES) if sent else begun + 1 if closes else 64
    if whole:
        if offered > MAX_WINDOWS:
            raise ValueError(
                f"whole = True: a run of {algorithm.version[0]} with horizon = {horizon} has {offered} windows, and a "
                f"transcript at most {MAX_WINDOWS}: give a shorter horizon"
            )
        start = offered
    setting = Setting(
        parts=parts,
        schedule=schedule,
        view=_with_actions(guarantee.view) if adaptive else guarantee.view,
        windows=min(start, offered),
        horizon=horizon,
        num_arms=environment.facts.get("num_arms", 0),
        sent=sent,
    )
    first = neighbours.edits(guarantee.unit, [1], bound=guarantee.bound, dim=dim, adaptive=adaptive)[:1]
    probes = seeds.take(8)
    while True:  # short transcripts first: every further span is code to compile
        size = 8 if whole else lanes(runs // 16)
        runner = Runs(setting, params, Input(public, ()), size)
        numbers, done, tells = runner.on(first, np.zeros(8, int), probes)
        if tells.any() or setting.windows == min(offered, MAX_WINDOWS):
            break
        setting = setting._replace(windows=min((2 if closes else 16) * setting.windows, offered, MAX_WINDOWS))
    if not tells.any() and sent:
        raise ValueError(
            f"{algorithm.version[0]} sent no number in its first {setting.windows} windows: raise its horizon"
        )
    if whole:  # as many runs of a call as their numbers have room
        room = max(8, 1 << (MAX_NUMBERS // max(numbers.shape[1], 1)).bit_length() - 1)
        runner = runner._replace(size=min(lanes(runs // 16), room))
    at = int(np.argmax(tells.any(axis=0))) if tells.any() else 0  # actions alone: the start of the run
    last = int(done[:, at].max())
    before = int(done[:, at - 1].max()) if at else 0
    plays = sorted({before + 1, last} if sent else {1, (1 + last) // 2, max(before, 1), last})
    if whole:  # what leaks may leak late
        end = int(done.max())
        plays = sorted({*plays, *(1 + end * quarter // 4 for quarter in range(4)), end})
    if not sent and not closes and not whole:
        windows = max(
            at + 1, min(int(np.searchsorted(done.max(axis=0), min(horizon, TRANSCRIPT_PLAYS))) + 1, len(tells[0]))
        )
        if 2 * windows < setting.windows:  # else it is not worth compiling again
            runner = runner._replace(setting=setting._replace(windows=windows))
    shown = int(done[:, runner.setting.windows - 1].max())
    if adaptive:  # before the first release there is little to react to
        plays = sorted({*plays, *(1 + shown * quarter // 4 for quarter in range(1, 4)), shown})
    return runner, plays, shown, dim


def furthest(
    runner: Runs, edits: list[Edit], seeds: Seeds, whole: bool = False
) -> tuple[list[tuple[Edit, Edit]], np.ndarray[Any, Any]]:
    """The most distant pairs of edits, and the numbers of a transcript that vary.

    Distances are in units of each number's spread, over runs of common random numbers.
    """
    # docs/decisions.md#common-numbers
    which, common = np.repeat(np.arange(len(edits)), PROBE_RUNS), np.tile(seeds.take(PROBE_RUNS), len(edits))
    numbers = runner.on(edits, which, common)[0]
    columns = np.flatnonzero(np.ptp(numbers, axis=0) > 0)
    if whole and len(columns) > MAX_COLUMNS:
        columns = _most_different(numbers, len(edits), columns)
    numbers = numbers[:, columns].astype(np.float64).reshape(len(edits), PROBE_RUNS, -1)
    spread = np.sqrt(np.mean(numbers.var(axis=1), axis=0))
    spread = np.maximum(spread, 1e-6 * np.abs(numbers).max(axis=(0, 1), initial=0) + 1e-30)
    numbers = numbers / spread
    distances: dict[tuple[int, int], float] = {}  # by pair of edits
    for play, rule in sorted({(edit.play, edit.rule) for edit in edits}):
        mine = [i for i, edit in enumerate(edits) if (edit.play, edit.rule) == (play, rule)]
        for power in (1, 2):  # Laplace noise adds up distances, Gaussian noise their squares
            far = np.zeros((len(mine), len(mine)))
            for row, i in enumerate(mine):
                apart = np.abs(numbers[mine] - numbers[i]) ** power
                far[row] = np.mean(apart.sum(-1) ** (1 / power), axis=1)
            a, b = np.unravel_index(int(np.argmax(far)), far.shape)
            if far[a, b] > 0:
                pair = mine[min(a, b)], mine[max(a, b)]
                distances[pair] = max(far[a, b], distances.get(pair, 0))
    best = sorted(distances, key=lambda pair: -distances[pair])[:MAX_PAIRS]
    if not best:  # nothing told any two apart
        best = [(0, next(i for i, edit in enumerate(edits) if i and edit.play == edits[0].play))]
        columns = columns if len(columns) else np.zeros(1, int)
    return [(edits[a], edits[b]) for a, b in best], columns


def _most_different(numbers, edits: int, columns) -> np.ndarray[Any, Any]:
    """The MAX_COLUMNS numbers whose means differ most between the inputs, in units of their spread."""
    each = numbers[:, columns].astype(np.float64).reshape(edits, PROBE_RUNS, -1)
    spread = np.sqrt(np.mean(each.var(axis=1), axis=0))
    apart = np.ptp(each.mean(axis=1), axis=0) / np.maximum(spread, 1e-30)
    return np.sort(columns[np.argsort(-apart, kind="stable")[:MAX_COLUMNS]])

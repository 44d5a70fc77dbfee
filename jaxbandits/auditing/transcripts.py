"""What the theorem covers, of whole runs: an algorithm's real functions on edited inputs, thousands of independent
runs at once; what is private in them, how long their transcripts are, and which inputs to compare.

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
from jaxbandits.auditing import neighbours
from jaxbandits.auditing.neighbours import REACTING_UNITS, REACTION_RULES, Edit, Input
from jaxbandits.declared import plays_on_by_names
from jaxbandits.mechanisms.composition import view_released
from jaxbandits.numerics import one_hot
from jaxbandits.protocol import Algorithm, Case, Environment, Hints, Program, Report, Span
from jaxbandits.random import Draws
from jaxbandits.spans import batch_length, next_start, place_of_window, plays_of_window, windows_offered
from jaxbandits.sweeps.compilation.compilation_cache import programs_on_disk
from jaxbandits.sweeps.plan import stack_cases
from jaxbandits.traced_once import without_unread
from jaxbandits.typing import Bool, Float, Int, UInt32
from jaxbandits.window import Parts, offer

MAX_INDICATOR_ARMS = 64  # actions among more arms are plain numbers, not indicators
# Runs of a call, by kind of device, and on all other kinds.
MAX_RUNS_OF_CALL = {"cpu": 2048}
MAX_RUNS_OF_CALL_ELSEWHERE = 1 << 16
TRANSCRIPT_PLAYS = 128  # a transcript ends after so many plays, unless the first release comes later
TRANSCRIPT_MESSAGES = 4  # in the local model it ends after so many messages
MAX_WINDOWS = 1 << 12  # the first release is looked for in so many windows at most
MAX_TRANSCRIPT_NUMBERS = 1 << 26  # numbers of the transcripts of one call, in float32, where whole runs are looked at
# So many numbers of a whole run are kept, those that differ most between the inputs: more than any score reads.
MAX_COLUMNS = 512
MAX_PAIRS = 4  # so many pairs of inputs come into the second stage of the search
PROBE_RUNS = 16  # runs on each edit in the first stage of the search
MAX_ARM_NUMBERS = 256  # of a window; where its arms are more numbers, it is shown how often each was played
MAX_ARM_COLUMNS = 64  # so many numbers about arms are kept, those that differ most between the inputs
ARM_PAIRS = 2  # so many further pairs of inputs come into the second stage, by the arms that are played on them
SeedArray = UInt32[np.ndarray, " L"]


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

    init, act, update, close = map(public, (program.init, program.act, program.update, program.close))
    hints = Hints(one_arm=program.hints.one_arm)
    return Program(init=init, act=act, encode=encode, update=update, relay=relay, close=close, hints=hints)


class AuditSetting(NamedTuple):
    """What fixes the compiled code."""

    parts: Parts
    schedule: tuple[Span, ...]
    view: Callable[[Any, Any, Any], Any]  # message, released, action -> what the guarantee covers
    windows: int  # a transcript ends after so many windows
    horizon: int
    num_arms: int
    sent: bool  # whether the view is about messages rather than about what the server releases
    arms: bool  # whether the arms that were played are seen, but for that of the private play
    apart: bool = False  # whether what each window shows is given apart, not in a row
    chosen: int = 0  # of so many arms an edit may say which the private play plays; 0: the algorithm always does

    @property
    def closes(self) -> bool:
        """Whether something is released between two spans."""
        return any(span.close for span in self.schedule)


class Shown(NamedTuple):
    """What windows show of runs, [..., W, numbers of each]."""

    values: Any  # the numbers of the view, 0 where they are not finite
    marks: Any  # whether they are finite, and indicators of the view's integers
    arms: Any  # indicators of the arms that were played
    done: Any  # [..., W], plays done after the window
    tells: Any  # [..., W], whether it sends or releases a number


class Seen(NamedTuple):
    """Numbers of runs: first `view` ones of what the guarantee shows, then those about arms."""

    numbers: Float[np.ndarray, "L F"]
    done: Int[np.ndarray, "L W"]
    tells: Bool[np.ndarray, "L W"]
    view: int


def _show(setting: AuditSetting, window, private, done) -> Shown:
    """What a window shows. private: the play whose own arm is no part of it."""
    message = window.message
    if isinstance(message, Report):  # no client answers for a play that was offered and not made
        value, arm = (jnp.where(message.present, x, 0) for x in (message.value, message.arm))
        message = message._replace(value=value, arm=arm)
    values, marks, arms = [], [], []
    for leaf in jax.tree.leaves(setting.view(message, window.released, window.action)):
        x = jnp.asarray(leaf)
        if jnp.issubdtype(x.dtype, jnp.floating):
            values.append(jnp.where(jnp.isfinite(x), x, 0))
            marks.append(jnp.isfinite(x))
        else:
            marks.append(_indicate(setting, x))
    if setting.arms:
        seen = window.play & (window.t != private)
        played = _indicate(setting, window.action)
        mask = seen.reshape(seen.shape + (1,) * (played.ndim - 1))
        played = jnp.where(mask, played, jnp.zeros_like(played))
        arms.append(jnp.sum(played, axis=0) if played.size > MAX_ARM_NUMBERS else played)

    def join(parts):
        flat = [jnp.zeros(0, setting.parts.dtype), *(x.astype(setting.parts.dtype).ravel() for x in parts)]
        return jnp.where(window.used > 0, jnp.concatenate(flat), 0)

    return Shown(join(values), join(marks), join(arms), done, _tells(setting, window))


def _indicate(setting: AuditSetting, x):
    """Arms as indicators; other integers, and arms among very many, as they are."""
    return one_hot(x, setting.num_arms) if x.dtype == jnp.int32 and setting.num_arms <= MAX_INDICATOR_ARMS else x


def _tells(setting: AuditSetting, window):
    """Whether the window sends or releases a number."""
    leaves = jax.tree.leaves(window.message if setting.sent else window.released)
    finite = [jnp.any(jnp.isfinite(x)) for x in map(jnp.asarray, leaves) if jnp.issubdtype(x.dtype, jnp.floating)]
    return (window.used > 0) & (jnp.any(jnp.stack(finite)) if finite else False)


def _one(setting: AuditSetting, case: Case, seed) -> list[Shown]:
    """What one run shows, a row a window; spans apart."""
    parts, seen_of_spans, left, start = setting.parts, [], setting.windows, 0
    lane = simulator.begin(parts, case, seed, 1)
    for span in setting.schedule:
        number = min(left, windows_offered(span))

        def play(lane, w, span=span, start=start):
            if span.full:
                before, rest = place_of_window(w, start, batch_length(span), span.slots)
                cut = start + span.repeats * batch_length(span) > setting.horizon  # the last batch, by the run's end
                alone = span.slots == 1 and not cut
                limit = None if alone else plays_of_window(rest, span.slots, before, setting.horizon)
            else:
                before, limit = lane.plays, setting.horizon - lane.plays
            lane, window = offer(parts, case, seed, span.slots, lane, before, limit)
            done = (before + window.used).astype(jnp.int32)
            return lane._replace(plays=done), _show(setting, window, case.environment.edit.play, done)

        if number:
            lane, seen = lax.scan(play, lane, jnp.arange(number, dtype=jnp.int32))
            seen_of_spans.append(seen)
        left -= number
        if left == 0:
            break
        if span.close:
            lane = simulator.close(parts, case, seed, lane)
        start = next_start(span, start, setting.horizon)
    return seen_of_spans


def _flat(spans: list[Shown]) -> tuple[Any, ...]:
    """Numbers of the view, those about arms, plays done, and whether each window told a number."""
    view = [jnp.concatenate([span.values, span.marks], axis=-1).reshape(-1) for span in spans]
    arms = [span.arms.reshape(-1) for span in spans]
    done, tells = ([getattr(span, name) for span in spans] for name in ("done", "tells"))
    return tuple(map(jnp.concatenate, (view, arms, done, tells)))


@partial(jax.jit, static_argnums=0)
# docs/decisions.md#unread
@without_unread
def _many(setting: AuditSetting, params, environment, edits, seeds):
    def run(edit, seed):
        reacting = edit if setting.parts.reward_attack else ()
        own = neighbours.ShownArm(params, edit.play, edit.arm) if setting.chosen else params
        case = Case(environment._replace(edit=edit), reacting, edit, Clients(own, seed) if setting.sent else own)
        spans = _one(setting, case, jnp.uint32(0) if setting.sent else seed)
        return spans if setting.apart else _flat(spans)

    return jax.vmap(run)(edits, seeds)


def lanes(number: int) -> int:
    """Runs of a call: as many as fit the machine, fewer where fewer are wanted."""
    at_most = MAX_RUNS_OF_CALL.get(jax.default_backend(), MAX_RUNS_OF_CALL_ELSEWHERE)
    return min(at_most, 1 << max(3, (number - 1).bit_length()))


class Seeds:
    """Consecutive seeds: no run is repeated, whatever it is for."""

    def __init__(self, seed: int) -> None:
        self.next = int(np.random.SeedSequence(seed).generate_state(1)[0])

    def take(self, number: int) -> SeedArray:
        start, self.next = self.next, self.next + number
        return (np.arange(number, dtype=np.uint64) + np.uint64(start)).astype(np.uint32)


class Runs(NamedTuple):
    """Makes transcripts on any edit."""

    setting: AuditSetting
    params: Any  # of the algorithm
    environment: Input  # its parameters
    size: int = 0  # runs of a call of `on`, so that calls for several numbers of runs share a program

    def on(self, edits: list[Edit], which: Int[np.ndarray, " L"], seeds: SeedArray, columns: Any = None) -> Seen:
        """Runs, each on `edits[which]`. columns: [F] of the numbers to return, all by default."""
        inputs, calls = _stack(edits, self.setting.chosen), []
        for first in range(0, len(seeds), self.size):
            rows = np.arange(first, first + self.size) % len(seeds)  # the last call is filled up
            some = jax.tree.map(lambda x, rows=rows: x[which[rows]], inputs)
            with programs_on_disk():
                out = _many(self.setting, self.params, self.environment, some, seeds[rows])
            wanted = min(self.size, len(seeds) - first)
            numbers, arms, done, tells = (np.asarray(x)[:wanted] for x in out)
            view, numbers = numbers.shape[1], np.concatenate([numbers, arms], axis=1)
            calls.append((numbers if columns is None else numbers[:, columns], done, tells))
        numbers, done, tells = map(np.concatenate, zip(*calls, strict=True))
        return Seen(numbers, done, tells, view)

    def windows_on(self, edits: list[Edit], which: Int[np.ndarray, " L"], seeds: SeedArray) -> Shown:
        """What each window of runs shows, each on `edits[which]`, in one call."""
        inputs = jax.tree.map(lambda x: x[which], _stack(edits, self.setting.chosen))
        with programs_on_disk():
            spans = _many(self.setting._replace(apart=True), self.params, self.environment, inputs, seeds)

        def join(*parts):
            arrays = [np.asarray(x) for x in parts]
            most = max(x.shape[-1] for x in arrays)
            wide = [np.pad(x, ((0, 0), (0, 0), (0, most - x.shape[-1]))) if x.ndim == 3 else x for x in arrays]
            return np.concatenate(wide, axis=1)

        return Shown(*map(join, *spans))

    def pair(self, pair: Iterable[Edit], number: int, seeds: Seeds, columns: Any) -> list[Float[np.ndarray, "L F"]]:
        """The numbers of so many runs on each edit of a pair."""
        return [self.on([edit], np.zeros(number, int), seeds.take(number), columns)[0] for edit in pair]


def _stack(edits: list[Edit], chosen: int) -> Edit:
    plain = (edit._replace(rule=(), apart=(), arm=()) for edit in edits)
    stacked_edits = jax.tree.map(lambda *x: np.array(x, np.float32), *plain)
    apart = () if edits[0].apart == () else np.array([edit.apart for edit in edits], bool)
    rules = () if edits[0].rule == () else np.array([REACTION_RULES.index(edit.rule) for edit in edits], np.int32)
    plays = np.array([edit.play for edit in edits], np.int32)
    arms = np.array([-1 if edit.arm == () else edit.arm for edit in edits], np.int32) if chosen else ()
    return stacked_edits._replace(play=plays, rule=rules, apart=apart, arm=arms)


def default_environment(algorithm: Algorithm) -> Environment:
    """An environment that offers what an algorithm was built for. Its rewards are replaced, so arms do for actions."""
    from jaxbandits import catalogue  # it loads every algorithm

    config = {key: value for key, value in algorithm.config.items() if value is not None}
    kind = what_it_reads(algorithm)
    if kind == "fixed set":
        kind, config = "arms", {"num_arms": len(config["actions"])}
    return catalogue.natural(kind, config)()


def what_it_reads(algorithm: Algorithm) -> str:
    """What an algorithm plays on."""
    config = {key: value for key, value in algorithm.config.items() if value is not None}
    return algorithm.plays_on or plays_on_by_names(config)


class Transcripts(NamedTuple):
    """How transcripts are made, and what may be private in them."""

    runner: Runs
    plays: list[int]  # those whose input may be private
    last: int  # the last play that is seen
    dim: int  # of the features, where the unit is "user"


def prepare_transcripts(
    algorithm: Algorithm, environment: Environment, seeds: Seeds, runs: int, whole: bool, adaptive: bool = False
) -> Transcripts:
    """Find by a few runs how long transcripts must be, and which plays to change."""
    guarantee = algorithm.guarantee
    params, public = (stack_cases([part.params], "float32")[0] for part in (algorithm, environment))
    dim = feature_dim(environment, public) if guarantee.unit == "user" else 0
    setting = setting_of(algorithm, environment, whole, adaptive)
    runner = Runs(setting, params, Input(public, ()), 8 if whole else lanes(runs // 16))
    first = neighbours.edits(guarantee.unit, [1], bound=guarantee.bound, dim=dim, adaptive=adaptive)[:1]
    runner, (numbers, done, tells, _) = run_to_first_release(runner, first, seeds.take(8))
    if setting.sent and not tells.any():
        windows = runner.setting.windows
        raise ValueError(f"{algorithm.version[0]} sent no number in its first {windows} windows: raise its horizon")
    at = int(np.argmax(tells.any(axis=0)))  # where actions alone are seen, the start of the run
    if whole:  # as many runs of a call as their numbers have room
        room = max(8, 1 << (MAX_TRANSCRIPT_NUMBERS // max(numbers.shape[1], 1)).bit_length() - 1)
        runner = runner._replace(size=min(lanes(runs // 16), room))
    elif not setting.sent and not setting.closes:
        enough = int(np.searchsorted(done.max(axis=0), min(setting.horizon, TRANSCRIPT_PLAYS)))
        if 2 * (windows := 1 + max(at, enough)) < runner.setting.windows:  # else it is not worth compiling again
            runner = runner._replace(setting=setting._replace(windows=windows))
    last = int(done[:, runner.setting.windows - 1].max())
    before, release = int(done[:, at - 1].max()) if at else 0, int(done[:, at].max())
    plays = {before + 1, release} if setting.sent else {1, (1 + release) // 2, max(before, 1), release}
    if whole:  # what leaks may leak late
        end = int(done.max())
        plays |= {*(1 + end * quarter // 4 for quarter in range(4)), end}
    if adaptive:  # before the first release there is little to react to
        plays |= {*(1 + last * quarter // 4 for quarter in range(1, 4)), last}
    return Transcripts(runner, sorted(plays), last, dim)


def feature_dim(environment: Environment, params: Any) -> int:
    """The dimension of the features that an environment shows."""
    world, draws, t = environment.world, Draws(jnp.uint32(0), "environment"), jnp.ones(1, jnp.int32)
    shown = jax.eval_shape(lambda: world.observe(params, world.init(params, draws), draws, t)[0])
    if not hasattr(shown, "shape"):
        name = environment.config.get("name")
        raise ValueError(f"environment: unit 'user' needs contexts of features, {name} has none")
    *_, dim = shown.shape
    return int(dim)


def setting_of(algorithm: Algorithm, environment: Environment, whole: bool, adaptive: bool) -> AuditSetting:
    """The setting of an audit, with as many windows as are tried first."""
    guarantee, name = algorithm.guarantee, algorithm.version[0]
    if adaptive and guarantee.unit not in REACTING_UNITS:
        react = "inputs react to the arms that were played only where they differ in one reward or loss vector"
        what = f"neighbours of {name} differ in one {guarantee.unit}, and {react}"
        raise ValueError(f"adaptive = True: {what}: leave it out")
    attack = neighbours.MESSAGE if guarantee.unit == "message" else None
    reward_attack = neighbours.reacting(min(1.0, guarantee.bound)) if adaptive else None
    sent = guarantee.model in ("local", "shuffle") and guarantee.view is not view_released
    program = algorithm.program
    shown = guarantee.unit == "user" and what_it_reads(algorithm) in ("row", "decision set")
    if chosen := environment.facts.get("num_arms", 0) if shown else 0:
        program = neighbours.with_arm(program)
    program = clients_alone(program) if sent else program
    world = neighbours.world_of(environment.world, guarantee.unit == "user")
    parts = Parts(program, world, reward_attack, attack, jnp.float32)
    horizon, num_arms = int(algorithm.config["horizon"]), environment.facts.get("num_arms", 0)
    setting = AuditSetting(
        parts, algorithm.schedule, guarantee.view, windows=0, horizon=horizon, num_arms=num_arms, sent=sent,
        arms=adaptive or guarantee.model != "local", chosen=chosen,
    )  # fmt: skip
    windows = [windows_offered(span) for span in algorithm.schedule]
    if whole and sum(windows) > MAX_WINDOWS:
        what = f"a run of {name} with horizon = {horizon} has {sum(windows)} windows"
        raise ValueError(f"whole = True: {what}, and a transcript at most {MAX_WINDOWS}: give a shorter horizon")
    # docs/decisions.md#windows-not-plays
    begun = next(filter(None, windows), 1)
    # what a close releases, the window after it tells
    few = min(begun, TRANSCRIPT_MESSAGES) if sent else begun + 1 if setting.closes else 64
    return setting._replace(windows=sum(windows) if whole else min(few, sum(windows)))


def run_to_first_release(runner: Runs, edits: list[Edit], seeds: SeedArray) -> tuple[Runs, Seen]:
    """Runs on the first edit whose transcripts reach the first number that is told, if one is, and their runner."""
    setting = runner.setting
    most = min(sum(map(windows_offered, setting.schedule)), MAX_WINDOWS)
    seen = runner.on(edits, np.zeros(len(seeds), int), seeds)
    if seen.tells.any() or setting.windows == most:
        return runner, seen
    # short transcripts first: every further span is code to compile
    longer = setting._replace(windows=min((2 if setting.closes else 16) * setting.windows, most))
    return run_to_first_release(runner._replace(setting=longer), edits, seeds)


def furthest(
    runner: Runs, edits: list[Edit], seeds: Seeds, whole: bool = False
) -> tuple[list[tuple[Edit, Edit]], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The most distant pairs of edits, and the numbers of a transcript that vary: of the view, and about arms.

    Distances are in units of each number's spread, over runs of common random numbers.
    """
    # docs/decisions.md#common-numbers
    which, common = np.repeat(np.arange(len(edits)), PROBE_RUNS), np.tile(seeds.take(PROBE_RUNS), len(edits))
    numbers, _, _, view = runner.on(edits, which, common)
    varying = np.flatnonzero(np.ptp(numbers, axis=0) > 0)
    columns, arms = varying[varying < view], varying[varying >= view]
    if whole and len(columns) > MAX_COLUMNS:
        columns = _most_different(numbers, len(edits), columns, MAX_COLUMNS)
    if len(arms) > MAX_ARM_COLUMNS:
        arms = _most_different(numbers, len(edits), arms, MAX_ARM_COLUMNS)
    usual = [i for i, edit in enumerate(edits) if not edit.apart]
    best = _distant_pairs(numbers[:, columns], edits, usual)[:MAX_PAIRS]
    by_arms = _distant_pairs(numbers[:, arms], edits, range(len(edits)))[:ARM_PAIRS]
    best += [pair for pair in by_arms if pair not in best]
    if not best:  # nothing told any two apart
        best = [(0, next(i for i, edit in enumerate(edits) if i and edit.play == edits[0].play))]
        columns = columns if len(columns) else np.zeros(1, int)
    return [(edits[a], edits[b]) for a, b in best], columns, arms


def _distant_pairs(numbers: np.ndarray[Any, Any], edits: list[Edit], usable: Iterable[int]) -> list[tuple[int, int]]:
    """Pairs of edits whose runs' numbers differ most, the most distant first, and one at most of each play and rule."""
    numbers = numbers.astype(np.float64).reshape(len(edits), PROBE_RUNS, -1)
    spread = np.sqrt(np.mean(numbers.var(axis=1), axis=0))
    spread = np.maximum(spread, 1e-6 * np.abs(numbers).max(axis=(0, 1), initial=0) + 1e-30)
    numbers = numbers / spread
    distances: dict[tuple[int, int], float] = {}  # by pair of edits
    same: dict[Any, list[int]] = {}
    for i in usable:
        same.setdefault((edits[i].play, edits[i].rule, edits[i].apart), []).append(i)
    for mine in same.values():
        for power in (1, 2):  # Laplace noise adds up distances, Gaussian noise their squares
            apart = ((np.abs(numbers[mine] - numbers[i]) ** power).sum(-1) for i in mine)
            far = np.stack([np.mean(x ** (1 / power), axis=1) for x in apart])
            a, b = np.unravel_index(int(np.argmax(far)), far.shape)
            if far[a, b] > 0:
                pair = mine[min(a, b)], mine[max(a, b)]
                distances[pair] = max(far[a, b], distances.get(pair, 0))
    return sorted(distances, key=lambda pair: -distances[pair])


def _most_different(numbers, edits: int, columns, most: int) -> np.ndarray[Any, Any]:
    """The `most` numbers whose means differ most between the inputs, in units of their spread."""
    each = numbers[:, columns].astype(np.float64).reshape(edits, PROBE_RUNS, -1)
    spread = np.sqrt(np.mean(each.var(axis=1), axis=0))
    apart = np.ptp(each.mean(axis=1), axis=0) / np.maximum(spread, 1e-30)
    return np.sort(columns[np.argsort(-apart, kind="stable")[:most]])

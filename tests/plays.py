"""Every play of many lanes, for comparisons with transcriptions: lanes of one program are played together.

`jb.simulate` compiles its pieces anew for each of an algorithm's settings that a test changes by `_replace`, and
compiles the plays twice: once to keep them and once to count them. Here one program serves all lanes whose algorithms,
environments and adversaries differ in numbers alone.
"""

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from uncompiled import uncompiled

from jaxbandits import simulator, spans
from jaxbandits.sweeps.arguments import checkpoint_times
from jaxbandits.sweeps.compilation.compiled import WIDE_VECTORS
from jaxbandits.sweeps.engines import one_lane
from jaxbandits.sweeps.plan import cast, stack_cases
from jaxbandits.sweeps.simulate import Run, _regret, history_of_windows
from jaxbandits.traced_once import without_unread


class Lane(NamedTuple):
    """Built parts, as `jb.simulate` takes them."""

    seed: int
    algorithm: Any
    environment: Any
    reward_adversary: Any = None
    message_adversary: Any = None


def played(lanes, *, checkpoints: Any = 9, counted=False, compiled=True, dtype="float64") -> list[Run]:
    """What `jb.simulate(..., history=True)` gives for each lane, in order.

    counted: plays are counted too, as a sweep does it, where a lane that has decided makes no more plays. Without it
    pulls are None, and so is regret where it follows from pulls. compiled: False: operation by operation in NumPy
    (`uncompiled`), which is cheaper where a program is large and plays are few.
    """
    groups: dict[Any, list[int]] = {}
    cases = [jax.tree.map(lambda x: cast(x, dtype), simulator.case_of(*lane[1:])) for lane in lanes]
    for i, lane in enumerate(lanes):
        shapes = tuple((x.shape, x.dtype) for x in jax.tree.leaves(cases[i]))
        parts = simulator.parts_of(*lane[1:], dtype)
        alike = parts, tuple(lane.algorithm.schedule), lane.algorithm.config["horizon"], shapes
        groups.setdefault(alike, []).append(i)
    runs: list[Any] = [None] * len(lanes)
    for (parts, schedule, horizon, _), members in groups.items():
        times = checkpoint_times(horizon, checkpoints)
        case = jax.tree.map(lambda *xs: np.stack(xs), *(cases[i] for i in members))
        with jax.enable_x64(dtype == "float64"):
            play = _program(parts, schedule, tuple(map(int, times)), counted, compiled)
            found = jax.tree.map(np.asarray, play(case, np.array([lanes[i].seed for i in members], np.uint32)))
        for k, i in enumerate(members):
            record, state, diagnostics = jax.tree.map(lambda x, k=k: x[k], found[:3])
            windows = jax.tree.map(lambda x, k=k: x[:, k], found[3])
            if counted:
                regret = _regret(record, lanes[i].environment, parts, lanes[i].seed, times, False)
            else:
                regret = _summed(windows, times)
            runs[i] = Run(
                regret=regret, t=times, pulls=record.pulls if counted else None, state=state, diagnostics=diagnostics,
                history=history_of_windows(windows, False),
            )  # fmt: skip
    return runs


def _summed(windows, times):
    """Regret at the checkpoints, where it is known of every play."""
    if windows[0].regret is None:
        return None
    return np.cumsum(np.concatenate([w.regret[w.play].astype(np.float64) for w in windows]))[times - 1]


def of_cases(cases: Any, seeds: Any, **options: Any) -> list[list[Run]]:
    """The lanes of every case and seed, recorded at the horizon.

    cases: (algorithm, environment) and, where there are some, the adversaries of rewards and of messages. options: as
    of `played`.
    """
    runs = iter(played([Lane(seed, *case) for case in cases for seed in seeds], checkpoints=1, **options))
    return [[next(runs) for _ in seeds] for _ in cases]


def watched(
    algorithm: Any, environment: Any, seed: int = 0, dtype: str = "float64", *, checkpoints: Any = None,
    reward_adversary: Any = None, message_adversary: Any = None,
) -> Run:  # fmt: skip
    """One lane, played as `jb.simulate` plays it, to the bit. Nothing is counted, and algorithms that differ in
    numbers or in how many windows they have share what is compiled.

    checkpoints: times at which windows end, for algorithms that decide how long their windows are.
    """
    parts = simulator.parts_of(algorithm, environment, reward_adversary, message_adversary, dtype)
    case = simulator.case_of(algorithm, environment, reward_adversary, message_adversary)
    case, times = stack_cases([case], dtype)[0], np.asarray(checkpoints or [algorithm.config["horizon"]], np.int32)
    with jax.enable_x64(dtype == "float64"):
        begun = _begin(parts)(case, np.uint32(seed))
        played_spans = list(one_lane.watch_lane(parts, algorithm.schedule, case, np.uint32(seed), times, begun))
        lane, windows = played_spans[-1][0], [jax.tree.map(np.asarray, seen) for _, seen in played_spans]
        diagnostics = uncompiled(parts.program.diagnose)(case.algorithm, lane.algorithm)
    history, state = history_of_windows(windows, False), jax.tree.map(np.asarray, lane.algorithm)
    return Run(regret=None, t=times, pulls=None, state=state, diagnostics=diagnostics, history=history)


@functools.cache
def _begin(parts: Any) -> Any:
    return uncompiled(lambda case, seed: simulator.begin(parts, case, seed, 1))


def silent(algorithm: Any) -> Any:
    """Without the noise of its mechanism."""
    return algorithm._replace(params=algorithm.params._replace(mechanism_scale=0.0))


@functools.cache
def _program(parts, schedule, checkpoints, counted, compiled):
    """Loops are outside of `vmap`, under which JAX traces the body of a loop several times."""
    times = np.array(checkpoints, np.int32)
    close = jax.jit(jax.vmap(functools.partial(simulator.close, parts)))  # traced once for spans of several kinds

    def play(cases, seeds):
        lanes = counts = jax.vmap(lambda case, seed: simulator.begin(parts, case, seed, len(times)))(cases, seeds)
        windows, start = [], 0
        for kind, group in itertools.groupby(schedule, lambda span: (span.slots, span.full, span.whole)):
            rows = []
            for span in group:
                number = spans.windows_offered(span, len(times))
                rows.append((start, spans.batch_length(span), number, span.close))
                start = spans.next_start(span, start, int(times[-1]))
            counts = counts if counted else ()
            lanes, counts, seen = _spans(parts, kind, close, cases, seeds, lanes, counts, times, rows)
            windows.append(seen)
        last = counts if counted else lanes
        record, diagnostics = jax.vmap(lambda case, lane: simulator.finish(parts, case, lane))(cases, last)
        return record, last.algorithm, diagnostics, windows

    return jax.jit(without_unread(play), compiler_options=WIDE_VECTORS) if compiled else uncompiled(play)


def _spans(parts, kind, close, cases, seeds, lanes, counts, times, rows):
    """Spans of one kind, rows (start, length, windows, whether it closes): the lanes after them, the lanes whose plays
    are counted, and all windows [W, lanes, ...]."""
    times, (starts, lengths, numbers, closes) = jnp.asarray(times), map(np.array, zip(*rows, strict=True))

    def all_lanes(function, lanes):
        return jax.vmap(function)(cases, seeds, lanes)

    def window(lanes, *place):  # number, start and length
        w, *of_span = place
        nth = lambda case, seed, lane: simulator.nth_window(parts, kind, case, seed, lane, times, *of_span, w)
        return all_lanes(nth, lanes)

    def counted(case, seed, lane):
        return simulator.one_counted(parts, kind, case, seed, lane, times)[0]

    def closed(state):
        """All lanes as one batch: the work between two batches takes long to compile."""
        together = jax.tree.map(lambda *xs: jnp.concatenate(xs), *state) if state[1] else state[0]
        many = [jax.tree.map(lambda x: jnp.concatenate([x, x]) if state[1] else x, of) for of in (cases, seeds)]
        after = close(*many, together)
        half = lambda place: jax.tree.map(lambda x: jnp.split(x, 2)[place], after)
        return (half(0), half(1)) if state[1] else (after, ())

    empty = jax.eval_shape(lambda lanes: window(lanes, *(jnp.int32(0),) * 3)[1], lanes)
    empty = jax.tree.map(lambda x: jnp.zeros((max(1, sum(numbers)), *x.shape), x.dtype), empty)

    def span(state, row):
        lanes, counts, windows, offset = state
        start, length, number, closes_now = row

        def one(w, state):
            lanes, counts, windows = state
            lanes, seen = window(lanes, w, start, length)
            put = lambda xs, x: jax.lax.dynamic_update_index_in_dim(xs, x, offset + w, 0)
            return lanes, counts and all_lanes(counted, counts), jax.tree.map(put, windows, seen)

        lanes, counts, windows = jax.lax.fori_loop(0, number, one, (lanes, counts, windows))
        if counts:
            counts = all_lanes(lambda case, _, lane: simulator.count_rest(parts, case, lane, times), counts)
        if any(closes):
            lanes, counts = jax.lax.cond(closes_now, closed, lambda state: state, (lanes, counts))
        return (lanes, counts, windows, offset + number), None

    rows = starts.astype(np.int32), lengths.astype(np.int32), numbers.astype(np.int32), closes
    (lanes, counts, windows, _), _ = jax.lax.scan(span, (lanes, counts, empty, jnp.int32(0)), rows)
    return lanes, counts, windows

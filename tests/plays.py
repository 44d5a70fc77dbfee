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

from jaxbandits import simulator, spans
from jaxbandits.sweeps.checkpoints import checkpoint_times
from jaxbandits.sweeps.compilation.compiled import WIDE_VECTORS
from jaxbandits.sweeps.compilation.unread_code import without_unread
from jaxbandits.sweeps.plan import cast
from jaxbandits.sweeps.simulate import Run, _regret, flattened


class Lane(NamedTuple):
    """Built parts, as `jb.simulate` takes them."""

    seed: int
    algorithm: Any
    environment: Any
    reward_adversary: Any = None
    message_adversary: Any = None


def played(lanes, *, checkpoints: Any = 9, counted: bool = False, dtype: str = "float64") -> list[Run]:
    """What `jb.simulate(..., history=True)` gives for each lane, in order.

    counted: plays are counted too, as a sweep does it, where a lane that has decided makes no more plays. Without it
    pulls are None, and so is regret where it follows from pulls.
    """
    groups: dict[Any, list[int]] = {}
    cases = [jax.tree.map(lambda x: cast(x, dtype), simulator.case_of(*lane[1:])) for lane in lanes]
    for i, lane in enumerate(lanes):
        shapes = tuple((x.shape, x.dtype) for x in jax.tree.leaves(cases[i]))
        parts = simulator.parts_of(*lane[1:], dtype)
        groups.setdefault((parts, tuple(lane.algorithm.schedule), lane.algorithm.config["horizon"], shapes), []).append(
            i
        )
    runs: list[Any] = [None] * len(lanes)
    for (parts, schedule, horizon, _), members in groups.items():
        times = checkpoint_times(horizon, checkpoints)
        case = jax.tree.map(lambda *xs: np.stack(xs), *(cases[i] for i in members))
        with jax.enable_x64(dtype == "float64"):
            play = _program(parts, schedule, tuple(map(int, times)), counted)
            found = jax.tree.map(np.asarray, play(case, np.array([lanes[i].seed for i in members], np.uint32)))
        for k, i in enumerate(members):
            record, state, diagnostics, windows = jax.tree.map(lambda x, k=k: x[k], found)
            if counted:
                regret = _regret(record, lanes[i].environment, parts, lanes[i].seed, times, False)
            else:
                regret = _summed(windows, times)
            runs[i] = Run(
                regret=regret, t=times, pulls=record.pulls if counted else None, state=state, diagnostics=diagnostics,
                history=flattened(windows, False),
            )  # fmt: skip
    return runs


def _summed(windows, times):
    """Regret at the checkpoints, where it is known of every play."""
    if windows[0].regret is None:
        return None
    return np.cumsum(np.concatenate([w.regret[w.play].astype(np.float64) for w in windows]))[times - 1]


@functools.cache
def _program(parts, schedule, checkpoints, counted):
    times = np.array(checkpoints, np.int32)

    def play(case, seed):
        lane = watched = simulator.begin(parts, case, seed, len(times))
        windows, start = [], 0
        for kind, group in itertools.groupby(schedule, lambda span: (span.slots, span.full, span.whole)):
            rows = []
            for span in group:
                number = spans.windows_offered(span, len(times))
                segment = spans.segment(span, start, 0, number, times)
                rows.append((segment, start, spans.batch_length(span), number, span.close))
                start = spans.next_start(span, start, int(times[-1]))
            rows = jax.tree.map(lambda *xs: np.array(xs, bool if isinstance(xs[0], bool) else np.int32), *rows)
            (lane, watched), seen = _spans(parts, kind, case, seed, (lane, watched), times, rows, counted)
            windows.append(seen)
        last = lane if counted else watched
        record, diagnostics = simulator.finish(parts, case, last)
        return record, last.algorithm, diagnostics, windows

    return jax.jit(without_unread(jax.vmap(play)), compiler_options=WIDE_VECTORS)


def _spans(parts, kind, case, seed, lanes, times, rows, counted):
    """Spans of one kind: the lanes after them, counted and watched, and the windows of the watched one."""
    times, closes = jnp.asarray(times), rows[-1]

    def window(lane, w, start, length):
        return simulator.nth_window(parts, kind, case, seed, lane, times, start, length, w)

    empty = jax.eval_shape(lambda lane: window(lane, *(jnp.int32(0),) * 3)[1], lanes[1])
    empty = jax.tree.map(lambda x: jnp.zeros((max(1, sum(rows[-2])), *x.shape), x.dtype), empty)

    def span(carry, row):
        (lane, watched), windows, offset = carry
        segment, start, length, number, closing = row

        def one(w, carry):
            watched, seen = window(carry[0], w, start, length)
            put = lambda xs, x: jax.lax.dynamic_update_index_in_dim(xs, x, offset + w, 0)
            return watched, jax.tree.map(put, carry[1], seen)

        watched, windows = jax.lax.fori_loop(0, number, one, (watched, windows))
        lane = simulator.advance(parts, kind, case, seed, lane, times, segment) if counted else lane

        def closed(lanes):
            lane, watched = lanes
            lane = simulator.close(parts, case, seed, lane) if counted else lane
            return lane, simulator.close(parts, case, seed, watched)

        if closes.any():
            lane, watched = jax.lax.cond(closing, closed, lambda lanes: lanes, (lane, watched))
        return ((lane, watched), windows, offset + number), None

    (lanes, windows, _), _ = jax.lax.scan(span, (lanes, empty, jnp.int32(0)), rows)
    return lanes, windows

"""Every play of many lanes, for comparisons with transcriptions: lanes of one program are played together.

`jb.simulate` compiles its pieces anew for each of an algorithm's settings that a test changes by `_replace`, and
compiles the plays twice: once to keep them and once to count them. Here one program serves all lanes whose algorithms,
environments and adversaries differ in numbers alone.
"""

import functools
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


def played(lanes, *, checkpoints: int = 9, counted: bool = False, dtype: str = "float64") -> list[Run]:
    """What `jb.simulate(..., history=True)` gives for each lane, in order.

    counted: plays are counted too, as a sweep does it, where a lane that has decided makes no more plays. Without it
    pulls and regret are None.
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
            regret = _regret(record, lanes[i].environment, parts, lanes[i].seed, times, False) if counted else None
            runs[i] = Run(
                regret=regret, t=times, pulls=record.pulls if counted else None, state=state, diagnostics=diagnostics,
                history=flattened(windows, False),
            )  # fmt: skip
    return runs


@functools.cache
def _program(parts, schedule, checkpoints, counted):
    times = np.array(checkpoints, np.int32)

    def play(case, seed):
        lane = watched = simulator.begin(parts, case, seed, len(times))
        windows, start = [], 0
        for span in schedule:
            kind, number = (span.slots, span.full, span.whole), spans.windows_offered(span, len(times))
            where = jnp.int32(start), jnp.int32(spans.batch_length(span))

            def window(lane, w, kind=kind, where=where):
                return simulator.nth_window(parts, kind, case, seed, lane, jnp.asarray(times), *where, w)

            watched, seen = jax.lax.scan(window, watched, jnp.arange(number, dtype=jnp.int32))
            windows.append(seen)
            if counted:
                segment = spans.segment(span, start, 0, number, times)
                lane = simulator.advance(parts, kind, case, seed, lane, jnp.asarray(times), segment)
            if span.close:
                watched = simulator.close(parts, case, seed, watched)
                lane = simulator.close(parts, case, seed, lane) if counted else lane
            start = spans.next_start(span, start, int(times[-1]))
        last = lane if counted else watched
        record, diagnostics = simulator.finish(parts, case, last)
        return record, last.algorithm, diagnostics, windows

    return jax.jit(without_unread(jax.vmap(play)), compiler_options=WIDE_VECTORS)

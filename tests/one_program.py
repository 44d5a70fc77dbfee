"""Cases of one family, over some seeds, played by one compiled program, with every play of them.

`jb.simulate` compiles four programs a family and is called once a case and seed. The windows here are the simulator's
own; that its loops and records are right is for the contract's tests to see.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from uncompiled import uncompiled

from jaxbandits import simulator, spans
from jaxbandits.protocol import Span
from jaxbandits.sweeps.plan import stack_cases


class Played(NamedTuple):
    """One lane."""

    action: Any  # [T] or [T, N]
    reward: Any  # [T] or [T, N]
    message: Any  # leaves [W, ...], one entry a window
    released: Any  # leaves [W, ...]
    regret: float | None  # at the horizon; None where it follows from counts
    state: Any  # the algorithm's
    diagnostics: dict[str, Any]


@partial(jax.jit, static_argnums=(0, 1, 2))
def _windows(parts: Any, kind: Any, number: int, cases: Any, seeds: Any, lanes: Any, where: Any) -> Any:
    """The lanes after a span, and its windows."""

    def one(case, seed, lane):
        play = lambda lane, w: simulator.nth_window(parts, kind, case, seed, lane, *where, w)
        return jax.lax.scan(play, lane, jnp.arange(number, dtype=jnp.int32))

    return jax.vmap(one)(cases, seeds, lanes)


@partial(jax.jit, static_argnums=0)
def _closed(parts: Any, cases: Any, seeds: Any, lanes: Any) -> Any:
    return jax.vmap(partial(simulator.close, parts))(cases, seeds, lanes)


def _kind(span: Span) -> tuple[int, bool, bool]:
    return span.slots, span.full, span.whole


def _offered(schedule: Sequence[Span], span: Span) -> int:
    """Windows of a span. Where it is not full, as many as any span of its kind has, so that these share a program:
    windows after its last play play nothing.
    """
    if span.full:
        return spans.windows_offered(span)
    return max(spans.windows_offered(other, 1) for other in schedule if _kind(other) == _kind(span))


def played(cases: Sequence[Sequence[Any]], seeds: Sequence[int], dtype: str = "float64") -> list[list[Played]]:
    """Lanes of every case and seed.

    cases: (algorithm, environment) and, where there are some, the adversaries of rewards and of messages. They share
    their functions, shapes and schedule: only numbers differ.
    """
    cases = [(*case, None, None)[:4] for case in cases]
    schedule, horizon = cases[0][0].schedule, cases[0][0].config["horizon"]
    parts = simulator.parts_of(*cases[0], dtype)
    for case in cases[1:]:
        assert simulator.parts_of(*case, dtype) == parts and case[0].schedule == schedule
    numbers = [stack_cases([simulator.case_of(*case)], dtype)[0] for case in cases]
    given = jax.tree.map(lambda *x: np.repeat(np.stack(x), len(seeds), 0), *numbers)
    of_seed, windows, start = np.tile(np.array(seeds, np.uint32), len(cases)), [], 0
    with jax.enable_x64(dtype == "float64"):
        lanes = uncompiled(jax.vmap(lambda case, seed: simulator.begin(parts, case, seed, 1)))(given, of_seed)
        for span in schedule:
            where = np.array([horizon], np.int32), np.int32(start), np.int32(spans.batch_length(span))
            if span.repeats:
                number = _offered(schedule, span)
                lanes, found = _windows(parts, _kind(span), number, given, of_seed, lanes, where)
                windows.append(jax.tree.map(np.asarray, found))
            lanes = _closed(parts, given, of_seed, lanes) if span.close else lanes
            start = spans.next_start(span, start, horizon)
        finish, lanes = uncompiled(partial(simulator.finish, parts)), jax.tree.map(np.asarray, lanes)
        at = lambda tree, i: jax.tree.map(lambda x: x[i], tree)
        runs = [_lane(at(windows, i), at(lanes, i), finish(at(given, i), at(lanes, i))[1]) for i in range(len(of_seed))]
    return [runs[i : i + len(seeds)] for i in range(0, len(runs), len(seeds))]


def _lane(windows: Any, lane: Any, diagnostics: Any) -> Played:
    def plays(name):
        return np.concatenate([getattr(window, name)[window.play] for window in windows])

    def used(name):
        rows = [jax.tree.map(lambda x, w=window: x[w.play.any(axis=1)], getattr(window, name)) for window in windows]
        return jax.tree.map(lambda *x: np.concatenate(x), *rows)

    return Played(
        action=plays("action"), reward=plays("reward"), message=used("message"), released=used("released"),
        regret=None if windows[0].regret is None else float(plays("regret").sum(dtype=np.float64)),
        state=lane.algorithm, diagnostics=diagnostics,
    )  # fmt: skip

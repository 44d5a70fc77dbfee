"""Cases of one family, over some seeds, played in one compiled program, with every play of them.

`jb.simulate` compiles four programs a family and is called once a case and seed. The windows are the simulator's own;
that its loops and records are right is for the contract's tests to see.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from uncompiled import uncompiled

from jaxbandits import simulator, spans
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.sweeps.plan import stacked


class Played(NamedTuple):
    """One lane."""

    action: Any  # [T]
    reward: Any  # [T]
    message: Any  # leaves [W, ...], one entry a window
    released: Any  # leaves [W, ...]
    regret: float | None  # at the horizon; None where it follows from counts
    state: Any  # the algorithm's
    diagnostics: dict[str, Any]


@partial(jax.jit, static_argnums=(0, 1))
def _windows(parts: Any, schedule: Any, cases: Any, seeds: Any) -> Any:
    """The last lanes and the windows of every span, [cases, seeds, windows, ...]."""

    def lane(case, seed):
        lane, windows, start = simulator.begin(parts, case, seed, 1), [], 0
        times = jnp.array([horizon], jnp.int32)
        for span in schedule:
            kind, length = (span.slots, span.full, span.whole), jnp.int32(spans.batch_length(span))

            def one(lane, w, kind=kind, start=start, length=length):
                return simulator.nth_window(parts, kind, case, seed, lane, times, jnp.int32(start), length, w)

            lane, found = jax.lax.scan(one, lane, jnp.arange(spans.windows_offered(span, 1), dtype=jnp.int32))
            windows.append(found)
            lane = simulator.close(parts, case, seed, lane) if span.close else lane
            start = spans.next_start(span, start, horizon)
        return lane, windows

    *schedule, horizon = schedule
    return jax.vmap(lane)(cases, seeds)


def played(
    cases: Sequence[tuple[Algorithm, Environment]], seeds: Sequence[int], dtype: str = "float64"
) -> list[list[Played]]:
    """Lanes of every case and seed. The cases share their functions, shapes and horizon: only numbers differ."""
    (algorithm, environment), dtypes = cases[0], jnp.dtype(dtype)
    parts = simulator.parts_of(algorithm, environment, None, None, dtypes)
    for other in cases[1:]:
        assert simulator.parts_of(*other, None, None, dtypes) == parts and other[0].schedule == algorithm.schedule
    numbers = [simulator.case_of(*case) for case in cases]
    each = [stacked([number], dtype)[0] for number in numbers]
    lanes_of = jax.tree.map(lambda *x: np.repeat(np.stack(x), len(seeds), 0), *each)
    static = (*algorithm.schedule, algorithm.config["horizon"])
    with jax.enable_x64(dtype == "float64"):
        lanes, windows = jax.tree.map(
            np.asarray, _windows(parts, static, lanes_of, np.tile(np.array(seeds, np.uint32), len(cases)))
        )
        finish = uncompiled(partial(simulator.finish, parts))
        at = lambda tree, i: jax.tree.map(lambda x: x[i], tree)
        runs = [_lane(at(windows, i), finish, at(lanes_of, i), at(lanes, i)) for i in range(len(cases) * len(seeds))]
    return [runs[i : i + len(seeds)] for i in range(0, len(runs), len(seeds))]


def _lane(windows: Any, finish: Any, case: Any, lane: Any) -> Played:
    used = [window.play.any(axis=1) for window in windows]
    plays = lambda name: np.concatenate([getattr(window, name)[window.play] for window in windows])
    of_windows = lambda name: jax.tree.map(
        lambda *xs: np.concatenate([x[keep] for x, keep in zip(xs, used, strict=True)]),
        *(getattr(window, name) for window in windows),
    )
    regret = None if windows[0].regret is None else float(plays("regret").sum(dtype=np.float64))
    diagnostics = finish(case, lane)[1]
    return Played(
        action=plays("action"), reward=plays("reward"), message=of_windows("message"), released=of_windows("released"),
        regret=regret, state=lane.algorithm, diagnostics=diagnostics,
    )  # fmt: skip

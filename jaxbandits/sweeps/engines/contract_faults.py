"""Faults of lanes, read once at their end: lanes that broke the contract, and NaN in users' parts.

A lane carries no more than the first play of each fault. To learn which arm it was, that one lane is played again.
"""

import uuid
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import simulator
from jaxbandits.contract import ContractError
from jaxbandits.lane_faults import NEVER, Faults, is_outside
from jaxbandits.protocol import Case
from jaxbandits.spans import batch_length, next_start, windows_offered
from jaxbandits.sweeps.plan import Cell, host_case, stacked
from jaxbandits.sweeps.wording import at_line
from jaxbandits.window import Lane, Parts, Window

# Faults of a lane whose results are not stored. An earlier one explains the later ones.
BREAKING = ("action", "pulls", "regret")
NAN_FAULTS = {
    "reward": "the environment pays NaN",
    "message": "a message holds NaN",
    "state": "the algorithm's state turns NaN",
}


class Fault(NamedTuple):
    """One kind of fault in the lanes of one cell in one call."""

    cell: int
    kind: str  # one of BREAKING or NAN_FAULTS
    seed: int  # of the first such lane
    play: int
    lanes: int  # how many lanes have it


def found_in(
    cells: Sequence[int], first: int, watched: Faults, regret: Any, pulls: Any, times: Any
) -> tuple[Fault, ...]:
    """The faults of a call.

    first: the first seed. watched: arrays [S, M] or (). regret: [S, M, C]. pulls: [S, M, K] or None. times: [C].
    """
    number, faults = len(regret), list[Fault]()
    plays = {name: np.asarray(x)[:number] for name, x in watched._asdict().items() if not isinstance(x, tuple)}
    wrong = {name: (0 < x) & (x < NEVER) for name, x in plays.items()}
    clean = ~wrong["action"] if "action" in wrong else np.ones(regret.shape[:2], bool)
    if pulls is not None:
        wrong["pulls"] = clean & (np.einsum("smk->sm", pulls, dtype=np.int64) != times[-1])
        plays["pulls"] = np.full(clean.shape, times[-1])
        clean &= ~wrong["pulls"]
    if not np.isfinite(regret.sum()):  # one look at all of it costs nothing beside the plays
        infinite = ~np.isfinite(regret)
        wrong["regret"] = clean & infinite.any(axis=-1)
        plays["regret"] = np.asarray(times)[infinite.argmax(axis=-1)]
    for kind, lanes in wrong.items():
        for m, c in enumerate(cells):
            if lanes[:, m].any():
                s = int(lanes[:, m].argmax())
                faults.append(Fault(c, kind, first + s, int(plays[kind][s, m]), int(lanes[:, m].sum())))
    return tuple(faults)


def broken_cells(faults: Iterable[Fault]) -> set[int]:
    """The cells of a call whose results are not stored."""
    return {fault.cell for fault in faults if fault.kind in BREAKING}


def verdict(
    cells: Sequence[Cell], times: Mapping[int, Any], dtype: str, faults: Iterable[Fault], stacklevel: int
) -> ContractError | None:
    """Warn of NaN, once for a label and kind, and return the error of lanes that broke the contract, or None.

    The error names the first such lane of each label.
    """
    labels = list(dict.fromkeys(cell.label for cell in cells))
    lanes: dict[tuple[str, str], int] = {}
    firsts: dict[tuple[str, str], Fault] = {}
    for fault in sorted(faults, key=lambda f: (f.cell, f.seed)):
        key = cells[fault.cell].label, fault.kind
        lanes[key] = lanes.get(key, 0) + fault.lanes
        firsts.setdefault(key, fault)
    for (label, kind), fault in firsts.items():
        if kind in NAN_FAULTS:
            program, world = cells[fault.cell].algorithm.program, cells[fault.cell].environment.world
            function = {"reward": world.reward, "message": program.encode, "state": program.update}[kind]
            number = "1 lane" if lanes[label, kind] == 1 else f"{lanes[label, kind]:,} lanes"
            warnings.warn(
                f"{label}: {NAN_FAULTS[kind]} from play {fault.play} on (seed {fault.seed}; {number} in all)"
                f"{at_line(function)}",
                UserWarning,
                stacklevel=stacklevel + 1,
            )
    sentences = []
    for label in labels:
        kind = next((kind for kind in BREAKING if (label, kind) in firsts), None)
        if kind is not None:
            fault = firsts[label, kind]
            cell = cells[fault.cell]
            sentences.append(_sentence(cell, fault, times[cell.horizon], dtype, lanes[label, kind]))
    return ContractError("; ".join(sentences)) if sentences else None


def _sentence(cell: Cell, fault: Fault, times: Any, dtype: str, lanes: int) -> str:
    """How a lane broke the contract, as part of the error's text."""
    arms = simulator.arms_of(cell.environment) or 0
    seen = witness(cell, fault.seed, times, dtype)
    count = f"seed {fault.seed}" if lanes == 1 else f"seed {fault.seed}, the first of {lanes:,} lanes"
    inside = f"arms are 0..{arms - 1}"
    if fault.kind == "action":
        arm = f"arm {seen.action[1]}" if seen.action[0] == fault.play else "an arm that is not there"
        return f"{cell.label} played {arm} at play {fault.play}; {inside} ({count}; nothing of it is kept)"
    if fault.kind == "pulls":
        if seen.arm[0] < NEVER:
            what = f"the environment's score counted arm {seen.arm[1]} at play {seen.arm[0]}; {inside}"
        else:
            what = f"`rest` or `score` names no arm from some play on; {inside}"
        return f"{cell.label}'s pulls do not add up to its {fault.play} plays: {what} ({count}; nothing of it is kept)"
    if seen.regret[0] < NEVER:
        what = f"at play {seen.regret[0]}, where it played arm {seen.regret[1]}"
    else:
        what = f"at checkpoint {fault.play}"
    return f"{cell.label}'s regret is not finite {what} ({count}; nothing of it is kept)"


# ---------------------------------------------------------------------------- one lane again


class Witness(NamedTuple):
    """(play, arm) of the first fault of each kind, NEVER where there is none."""

    action: Any  # an action outside the arms
    arm: Any  # a counted arm outside those of the world
    regret: Any  # regret that is not finite, and the arm that was played


def witness(cell: Cell, seed: int, times: Any, dtype: str) -> Witness:
    """Play one lane again, window by window, until something is wrong."""
    parts = simulator.parts_of(cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary, dtype)
    # compiled anew: a value that a user's function reads may have changed since it was compiled
    parts = parts._replace(traced=uuid.uuid4().hex)
    with jax.enable_x64(dtype == "float64"):
        case, _ = stacked([host_case(cell)], dtype)
        seed, at = jnp.uint32(seed), jnp.asarray(times, jnp.int32)
        lane = jax.jit(simulator.begin, static_argnums=(0, 3))(parts, case, seed, len(times))
        seen, start, horizon = Witness(*(jnp.full(2, NEVER, jnp.int32),) * 3), 0, int(times[-1])
        for span in cell.algorithm.schedule:
            kind, windows = (span.slots, span.full, span.whole), jnp.int32(windows_offered(span, len(times)))
            length = jnp.int32(batch_length(span))
            lane, seen = _look(parts, kind, windows, case, seed, lane, seen, at, jnp.int32(start), length)
            if span.close:
                lane = jax.jit(simulator.close, static_argnums=0)(parts, case, seed, lane)
            start = next_start(span, start, horizon)
        return jax.tree.map(lambda x: tuple(map(int, x)), seen)


@partial(jax.jit, static_argnums=(0, 1))
def _look(
    parts: Parts,
    kind: tuple[int, bool, bool],
    windows: Any,
    case: Case,
    seed: Any,
    lane: Lane,
    seen: Witness,
    times: Any,
    start: Any,
    length: Any,
) -> tuple[Lane, Witness]:
    """Play the windows of a span one by one until a fault is seen."""

    def searching(carry):
        w, _, seen = carry
        return (w < windows) & (jnp.stack([x[0] for x in seen]).min() == NEVER)

    def one(carry):
        w, lane, seen = carry
        lane, window = simulator.nth_window(parts, kind, case, seed, lane, times, start, length, w)
        return w + 1, lane, _seen(parts, window, seen)

    _, lane, seen = lax.while_loop(searching, one, (jnp.int32(0), lane, seen))
    return lane, seen


def _seen(parts: Parts, window: Window, seen: Witness) -> Witness:
    """What has been seen after a further window."""
    plays = len(window.t)
    played = jnp.arange(plays, dtype=jnp.int32) < window.used
    action = window.action.astype(jnp.int32).reshape(len(window.action), -1)
    action = jnp.broadcast_to(action, (plays, action.shape[1]))

    def first(old: Any, bad: Any, values: Any) -> Any:
        """The play and value of the first true entry of `bad` [P, N] among the plays, unless there was one before."""
        bad = bad & played[:, None]
        at = jnp.argmax(bad.reshape(-1))
        row = jnp.stack([window.t[at // bad.shape[1]], values.reshape(-1)[at]]).astype(jnp.int32)
        return jnp.where(bad.any() & (old[0] == NEVER), row, old)

    if parts.arms is not None:
        seen = seen._replace(action=first(seen.action, is_outside(action, parts.arms), action))
    if window.arm is not None:
        arm = jnp.broadcast_to(window.arm.astype(jnp.int32).reshape(-1, 1), (plays, 1))
        seen = seen._replace(arm=first(seen.arm, is_outside(arm, parts.world.num_arms), arm))
    if window.regret is not None:
        infinite = ~jnp.isfinite(jnp.broadcast_to(window.regret, (plays,)))[:, None]
        seen = seen._replace(regret=first(seen.regret, infinite, action[:, :1]))
    return seen

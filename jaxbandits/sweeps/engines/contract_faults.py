"""Faults of lanes, read once at their end: lanes that broke the contract, and NaN in users' parts.

A lane carries no more than the first play of each fault. To learn which arm it was, that one lane is played again.
"""

import uuid
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import simulator
from jaxbandits.contract import ContractError, at_line
from jaxbandits.lane_faults import NEVER, Faults
from jaxbandits.sweeps.engines.one_lane import watch_lane
from jaxbandits.sweeps.plan import Cell, host_case, parts_in, stack_cases

# Faults of a lane whose results are not stored. An earlier one explains the later ones.
BREACHES = ("action", "pulls", "regret")
WINDOWS_AT_ONCE = 4096  # windows of a lane that is played again, which are looked at together
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


def find_faults(
    cells: Sequence[int], first: int, watched: Faults, regret: Any, pulls: Any, times: Any, *, finite: bool = False
) -> tuple[Fault, ...]:
    """The faults of a call from seed `first` on. Watched plays, pulls (or None) and regret are [S, M, ...].

    finite: regret is, without a look at it.
    """
    number, faults, clean = len(regret), list[Fault](), np.ones(regret.shape[:2], bool)
    plays = {kind: np.asarray(x)[:number] for kind, x in watched._asdict().items() if not isinstance(x, tuple)}
    if pulls is not None:
        lost = np.einsum("smk->sm", pulls, dtype=np.int64) != times[-1]
        plays |= {"pulls": np.where(lost, times[-1], NEVER)} if lost.any() else {}
    if not finite and not np.isfinite(regret.sum()):
        infinite = ~np.isfinite(regret)
        plays["regret"] = np.where(infinite.any(axis=-1), np.asarray(times)[infinite.argmax(axis=-1)], NEVER)
    for kind, at in plays.items():
        if at.min(initial=NEVER) == NEVER:
            continue
        lanes = (0 < at) & (at < NEVER)
        if kind in BREACHES:
            lanes, clean = lanes & clean, clean & ~lanes
        for m in map(int, np.flatnonzero(lanes.any(axis=0))):
            s = int(lanes[:, m].argmax())
            faults.append(Fault(cells[m], kind, first + s, int(at[s, m]), int(lanes[:, m].sum())))
    return tuple(faults)


def cells_in_breach(faults: Iterable[Fault]) -> set[int]:
    """The cells of a call whose results are not stored."""
    return {fault.cell for fault in faults if fault.kind in BREACHES}


def verdict(
    cells: Sequence[Cell], times: Mapping[int, Any], dtype: str, faults: Iterable[Fault], stacklevel: int
) -> ContractError | None:
    """Warn of NaN, once for a label and kind; give the error of each label's first broken lane, or None."""
    lanes, firsts = Counter[tuple[str, str]](), dict[tuple[str, str], Fault]()
    for fault in sorted(faults, key=lambda f: (f.cell, f.seed)):
        key = cells[fault.cell].label, fault.kind
        lanes[key] += fault.lanes
        firsts.setdefault(key, fault)
    for (label, kind), fault in firsts.items():
        if kind in NAN_FAULTS:
            program, world = cells[fault.cell].algorithm.program, cells[fault.cell].environment.world
            function = {"reward": world.reward, "message": program.encode, "state": program.update}[kind]
            number = "1 lane" if lanes[label, kind] == 1 else f"{lanes[label, kind]:,} lanes"
            began = f"from play {fault.play} on (seed {fault.seed}; {number} in all){at_line(function)}"
            warnings.warn(f"{label}: {NAN_FAULTS[kind]} {began}", UserWarning, stacklevel=stacklevel + 1)
    sentences = []
    for label in dict.fromkeys(cell.label for cell in cells):
        for key in [(label, kind) for kind in BREACHES if (label, kind) in firsts][:1]:
            cell = cells[firsts[key].cell]
            sentences.append(_sentence(cell, firsts[key], times[cell.horizon], dtype, lanes[key]))
    return ContractError("; ".join(sentences)) if sentences else None


def _sentence(cell: Cell, fault: Fault, times: np.ndarray[Any, Any], dtype: str, lanes: int) -> str:
    """How a lane broke the contract, as part of the error's text."""
    play, arm = _witness(cell, fault, times, dtype) or (0, 0)
    inside = f"arms are 0..{(simulator.arms_of(cell.environment) or 0) - 1}"
    if fault.kind == "action":
        played = f"arm {arm}" if play == fault.play else "an arm that is not there"
        said = f" played {played} at play {fault.play}; {inside}"
    elif fault.kind == "pulls":
        what = "`rest` or `score` names no arm from some play on"
        what = f"the environment's score counted arm {arm} at play {play}" if play else what
        said = f"'s pulls do not add up to its {fault.play} plays: {what}; {inside}"
    else:
        where = f"at play {play}, where it played arm {arm}" if play else f"at checkpoint {fault.play}"
        said = f"'s regret is not finite {where}"
    first = "" if lanes == 1 else f", the first of {lanes:,} lanes"
    return f"{cell.label}{said} (seed {fault.seed}{first}; nothing of it is kept)"


def _witness(cell: Cell, fault: Fault, times: np.ndarray[Any, Any], dtype: str) -> tuple[int, int] | None:
    """Play a lane again until its fault: the play and the arm that was played or counted; None where none is seen."""
    # compiled anew: a value that a user's function reads may have changed since it was compiled
    parts = parts_in(cell, dtype)._replace(traced=uuid.uuid4().hex)
    with jax.enable_x64(dtype == "float64"):
        case, _ = stack_cases([host_case(cell)], dtype)
        schedule, seed = cell.algorithm.schedule, jnp.uint32(fault.seed)
        for _, windows in watch_lane(parts, schedule, case, seed, times, most=WINDOWS_AT_ONCE):
            seen = jax.tree.map(np.asarray, windows)
            arm = seen.arm if fault.kind == "pulls" else seen.action
            if fault.kind == "regret":
                wrong = seen.regret is not None and ~np.isfinite(seen.regret)
            else:
                arms = parts.world.num_arms if fault.kind == "pulls" else parts.arms
                wrong = arm is not None and (arm < 0) | (arm >= arms)
            played = np.arange(seen.t.shape[1]) < seen.used[:, None]
            # of windows, plays and agents; a window of one arm has one entry for all plays
            wrong, arm = (np.reshape(x, (*np.shape(x)[:2], -1)) for x in (wrong, arm))
            for w, p, n in np.argwhere(wrong & played[..., None])[:1]:
                return int(seen.t[w, p]), int(np.broadcast_to(arm, (*played.shape, arm.shape[2]))[w, p, n])
    return None

"""One lane: windows of plays in `lax` loops, and their recorder. For one seed and one point; `vmap` is applied outside.

`begin` makes a lane, `advance` plays some windows of a span, `close` ends a span, `finish` reads diagnostics. The host
calls `advance` in segments with a donated lane. Between segments it shows progress, can stop and can save the lanes.
Axes: [P] plays of a window, [A] arms, [N] agents, [C] checkpoints.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from jaxbandits import lane_faults, recorder
from jaxbandits.contract import runs_own_code
from jaxbandits.numerics import SHORT, count
from jaxbandits.protocol import UNDECIDED, Adversary, Algorithm, Attack, Case, Environment, Program
from jaxbandits.random import Draws
from jaxbandits.recorder import Record, Times, Window
from jaxbandits.spans import Segment, place_of_window, plays_of_window
from jaxbandits.traced_once import shapes, trace_once
from jaxbandits.typing import Numeric
from jaxbandits.window import Lane, Parts, nonfinite_before, offer, play_without_record, streams

WindowKind: TypeAlias = tuple[int, bool, bool]  # (slots, full, whole) of a span: static
Attacker: TypeAlias = Adversary | None
# (function of (case, seed, lane), lane, beside=False) -> the lane after it; beside: and a number that all lanes share
OverLanes: TypeAlias = Callable[..., Any]


def parts_of(
    algorithm: Algorithm, environment: Environment, reward_adversary: Attacker, message_adversary: Attacker, dtype: Any
) -> Parts:
    """The functions of a case, which fix its compiled code."""
    return Parts(
        program=algorithm.program,
        world=environment.world,
        reward_attack=None if reward_adversary is None else reward_adversary.attack,
        message_attack=None if message_adversary is None else message_adversary.attack,
        dtype=jnp.dtype(dtype).type,
        arms=arms_of(environment),
        long=jnp.dtype(dtype) == jnp.float32 and algorithm.config.get("horizon", 0) > SHORT,
    )


def arms_of(environment: Environment) -> int | None:
    """How many arms an environment has: `facts["num_arms"]`, or else the arms its world counts; None without both."""
    return environment.facts.get("num_arms", environment.world.num_arms) or None


def case_of(
    algorithm: Algorithm,
    environment: Environment,
    reward_adversary: Attacker = None,
    message_adversary: Attacker = None,
) -> Case:
    """The params of a case, still on the host."""
    reward = () if reward_adversary is None else reward_adversary.params
    message = () if message_adversary is None else message_adversary.params
    return Case(environment.params, reward, message, algorithm.params)


def begin(parts: Parts, case: Case, seed: Array, checkpoints: int) -> Lane:
    """A lane before its first play."""
    lane = begin_without_record(parts, case, seed)
    window = shapes(play_without_record, parts, case, seed, 1, lane, jnp.int32(0), None)[1]
    return lane._replace(record=recorder.empty_record(window, parts.world.num_arms, checkpoints))


@trace_once
def begin_without_record(parts: Parts, case: Case, seed: Array) -> Lane:
    """A lane without its record."""
    root, alg = streams(parts, seed), streams(parts, seed).child("alg")

    def attacker(attack: Attack | None, params: Any, name: str) -> Any:
        return () if attack is None else attack_state(attack, params, root.child(name), parts.arms)

    state = parts.program.init(case.algorithm, alg.child("init"))
    return Lane(
        plays=jnp.int32(0),
        next=jnp.int32(0),
        environment=parts.world.init(case.environment, root.child("environment").child("instance")),
        reward_adversary=attacker(parts.reward_attack, case.reward_adversary, "contamination"),
        message_adversary=attacker(parts.message_attack, case.message_adversary, "attack"),
        algorithm=state,
        record=(),
        nonfinite=() if parts.reward_attack is None else jnp.int32(0),
        faults=lane_faults.begin(parts.arms, runs_own_code(parts.world), runs_own_code(parts.program), state),
    )


def attack_state(attack: Attack, params: Any, draws: Draws, arms: int | None) -> Any:
    """The state of an attack before the first play."""
    state = attack.init(params, draws)
    if attack.per_arm is None:
        return state
    if arms is None:
        unsaid = "the environment does not say how many it has: facts['num_arms']"
        raise ValueError(f"this adversary counts arms, and {unsaid}")
    return attack.per_arm(state, arms)


def _advance_single(parts: Parts, over: OverLanes, lane: Lane, times: Times, segment: Segment) -> tuple[Lane, Any]:
    """Full windows of one play. The outer loop is over checkpoints, so that no play tests whether it is at one."""
    low, high = segment.before, jnp.minimum(segment.before + segment.windows, times[-1])

    def one_play(before, lane):
        def play(case, seed, lane):
            lane, window = offer(parts, case, seed, 1, lane, before, None)
            pulls, regret = recorder.add(lane.record, window, None)
            return lane._replace(record=lane.record._replace(pulls=pulls, regret=regret))

        return over(play, lane)

    def up_to(k, lane):
        def write_checkpoint(case, seed, lane):
            return lane._replace(record=recorder.write_totals(lane.record, k, lane.record.pulls, lane.record.regret))

        first, last = jnp.maximum(low, jnp.where(k > 0, times[k - 1], 0)), jnp.minimum(high, times[k])
        return over(write_checkpoint, lax.fori_loop(first, last, one_play, lane))

    lane = lane._replace(record=recorder.single_plays(lane.record))
    lane = lax.fori_loop(segment.row, count(times < high) + 1, up_to, lane)
    return lane._replace(record=recorder.single_plays(lane.record, back=True)), high


def _advance_full(
    parts: Parts, slots: int, over: OverLanes, lane: Lane, times: Times, segment: Segment
) -> tuple[Lane, Any]:
    """Full windows of several plays. Play indices are the same for all lanes; a window may hold several checkpoints."""

    def one_window(_, carry):
        lane, row, before, left = carry
        limit = plays_of_window(left, slots, before, times[-1])
        last = before + limit

        def checkpoint_pending(carry):
            return (carry[1] < times.shape[0]) & (times[jnp.minimum(carry[1], times.shape[0] - 1)] <= last)

        def play(case, seed, lane):
            lane, window = offer(parts, case, seed, slots, lane, before, limit)

            def write_next_row(carry):
                record, row = carry
                keep = window.play & (window.t <= times[jnp.minimum(row, times.shape[0] - 1)])
                return recorder.write_totals(record, row, *recorder.add(record, window, keep)), row + 1

            record, after = lax.while_loop(checkpoint_pending, write_next_row, (lane.record, row))
            pulls, regret = recorder.add(record, window, window.play)
            return lane._replace(record=record._replace(pulls=pulls, regret=regret)), after

        lane, row = over(play, lane, beside=True)
        return lane, row, last, jnp.where(left > slots, left - slots, segment.length)

    lane, _, done, _ = lax.fori_loop(0, segment.windows, one_window, (lane, segment.row, segment.before, segment.left))
    return lane, done


def resting(parts: Parts, case: Case, lane: Lane) -> Int[Array, ""] | None:
    """The arm of all remaining plays, which need only be counted, or UNDECIDED, or SPAN_DONE.

    None where the program never names such an arm, regret does not follow from counts, or an attack keeps an account of
    the plays.
    """
    accounts = any(map(gives_diagnostics, (parts.reward_attack, parts.message_attack)))
    if parts.program.hints.rest is None or accounts or not recorder.counts(lane.record):
        return None
    return _rest(parts, case.algorithm, lane.algorithm)


@trace_once
def _rest(parts: Parts, params: Any, state: Any) -> Any:
    rest: Any = parts.program.hints.rest
    return rest(params, state)


def moves(parts: Parts, case: Case, lane: Lane, horizon: Numeric) -> Any:
    """Whether a lane has plays to make."""
    arm = resting(parts, case, lane)
    return (lane.plays < horizon) & (True if arm is None else arm == UNDECIDED)


def count_rest(parts: Parts, case: Case, lane: Lane, times: Times) -> Lane:
    """Count the remaining plays of a lane at rest, which is then at the horizon."""
    arm = resting(parts, case, lane)
    if arm is None:
        return lane
    rests, record = arm >= 0, recorder.write_rest(lane.record, arm, lane.plays, times)
    plays, row = jnp.where(rests, times[-1], lane.plays), jnp.where(rests, times.shape[0], lane.next)
    return lane._replace(plays=plays, next=row, record=record)


def one_counted(
    parts: Parts, kind: WindowKind, case: Case, seed: Array, lane: Lane, times: Times, rests: bool = True
) -> tuple[Lane, Window]:
    """Play a window whose length the algorithm decides. It ends at the next checkpoint, unless it is needed whole.

    A window of one arm may hold several checkpoints, since their counts follow by arithmetic. rests: a lane at rest
    plays nothing; False: it makes every play, for histories.
    """
    slots, _, whole = kind
    before, one_arm = lane.plays, parts.program.hints.one_arm and recorder.counts(lane.record)
    last_row = lane.next + (recorder.CHECKPOINTS_INSIDE - 1 if one_arm else 0)
    stop = times[-1] if whole else times[jnp.minimum(last_row, times.shape[0] - 1)]
    arm = resting(parts, case, lane) if rests else None
    if arm is not None:
        stop = jnp.where(arm >= 0, before, stop)
    old, row = lane.record, lane.next
    lane, window = offer(parts, case, seed, slots, lane, before, stop - before)
    record, row = recorder.write_window(old, window, before, row, times, whole, one_arm)
    return lane._replace(plays=before + window.used, next=row, record=record), window


def advance(parts: Parts, kind: WindowKind, case: Case, seed: Any, lane: Lane, times: Times, segment: Segment) -> Lane:
    """Play the windows of a segment. All but parts and kind may be traced."""
    if kind[1]:

        def over_one(function, lane, *, beside=False):
            return function(case, seed, lane)

        return advance_full(parts, kind[0], over_one, lane, times, segment)
    lane = lax.fori_loop(0, segment.windows, lambda _, lane: one_counted(parts, kind, case, seed, lane, times)[0], lane)
    return count_rest(parts, case, lane, times)


def advance_full(parts: Parts, slots: int, over: OverLanes, lane: Lane, times: Times, segment: Segment) -> Lane:
    """Play the windows of a segment of a full span, for all lanes together: they are at the same play.

    The loops are outside of `vmap`, under which JAX traces the body of a loop several times.
    """
    if slots == 1:
        lane, done = _advance_single(parts, over, lane, times, segment)
    else:
        lane, done = _advance_full(parts, slots, over, lane, times, segment)
    row = count(times <= done)
    return over(lambda case, seed, lane: lane._replace(plays=done, next=row), lane)


def nth_window(
    parts: Parts, kind: WindowKind, case: Case, seed: Array, lane: Lane, times: Times, start: Any, length: Any, w: Any
) -> tuple[Lane, Window]:
    """Play every play of the w-th window of a span alone. Full windows are not written into the record."""
    slots, full, _ = kind
    if not full:
        return one_counted(parts, kind, case, seed, lane, times, rests=False)
    before, left = place_of_window(w, start, length, slots)
    return offer(parts, case, seed, slots, lane, before, plays_of_window(left, slots, before, times[-1]))


def close(parts: Parts, case: Case, seed: Array, lane: Lane) -> Lane:
    """End a span with the algorithm's work at the end of a batch (filters, designs), for every lane at once."""
    state = _close_program(parts, case.algorithm, seed, lane.algorithm, lane.plays)
    faults = lane_faults.state(lane.faults, (), (), state, lane.plays, 1, lambda: nonfinite_before(lane))
    return lane._replace(algorithm=state, faults=faults)


@trace_once
def _close_program(parts: Parts, params: Any, seed: Array, state: Any, plays: Array) -> Any:
    return parts.program.close(params, state, streams(parts, seed).child("alg").child("close"), plays)


def gives_diagnostics(part: Program | Attack | None) -> bool:
    """Whether a part has diagnostics of its own."""
    return part is not None and part.diagnose is not Program._field_defaults["diagnose"]


def diagnoses(parts: Parts) -> bool:
    """Whether `finish` may give any diagnostics."""
    return parts.reward_attack is not None or any(map(gives_diagnostics, (parts.program, parts.message_attack)))


def finish(parts: Parts, case: Case, lane: Lane) -> tuple[Record | tuple[()], dict[str, Any]]:
    """The record and the diagnostics of a finished lane. ValueError where two parts give one of the same name."""
    return lane.record, _diagnose_parts(parts, case, lane._replace(record=()))


@trace_once
def _diagnose_parts(parts: Parts, case: Case, lane: Lane) -> dict[str, Any]:
    diagnostics: dict[str, Any] = {}
    owners: dict[str, str] = {}
    for owner, part, params, state in (
        ("the algorithm", parts.program, case.algorithm, lane.algorithm),
        ("reward_adversary", parts.reward_attack, case.reward_adversary, lane.reward_adversary),
        ("message_adversary", parts.message_attack, case.message_adversary, lane.message_adversary),
    ):
        for name, value in ({} if part is None else part.diagnose(params, state)).items():
            if name in owners:
                both = f"{owners[name]} and {owner} both give a diagnostic {name!r}"
                raise ValueError(f"{both}, and a result holds one of a name: call one of them otherwise")
            diagnostics[name], owners[name] = value, owner
    if parts.reward_attack is not None:
        diagnostics["nonfinite_rewards"] = lane.nonfinite
    return diagnostics

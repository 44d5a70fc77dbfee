"""What is recorded of a lane: totals and their values at the checkpoints, in memory that does not grow with plays.

The recorder sees the truth and is never seen by the learner. Axes: [P] plays of a window, [A] arms, [C] checkpoints.
"""

from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbandits.numerics import columns, count, fixed_sum, materialize_all, one_hot, two_sum

# The checkpoints that a window of one arm may hold. So many rows are written in every window; with fewer, checkpoints
# cut more windows short.
CHECKPOINTS_INSIDE = 4
IntScalar: TypeAlias = Int[Array, ""]
Times: TypeAlias = Int[Array, " C"]  # checkpoints, the last is the horizon


class Record(NamedTuple):
    """Running totals and their values at the checkpoints. Unused fields are ()."""

    pulls: Any  # [A] int32; `columns.Kept` while single plays of a few arms are counted
    regret: Any  # (high, low), a compensated sum
    pulls_at: Any  # [C, A] int32, only where regret follows from counts
    regret_at: Any  # ([C], [C])


class Window(NamedTuple):
    """What one window produced, for the recorder and for histories."""

    t: Int[Array, " P"]
    # bool [P]: whether a play was made; where rewards are tallied int32 [V]: how often each value was paid
    play: Array
    used: int | Array  # how many plays were made
    action: Int[Array, "P ..."]
    reward: Float[Array, "P ..."]
    message: Any  # after adversaries and the trusted third party
    released: Any  # what the server releases
    arm: Any  # [P] | [1] | None
    regret: Array | None  # [P] | None


def empty_record(window: Window, num_arms: int, checkpoints: int) -> Record:
    """The record before the first play. window: one of the lane, for its shapes and types."""
    pulls: Any = () if window.arm is None else jnp.zeros(num_arms, jnp.int32)
    if window.regret is None:
        return Record(pulls, (), jnp.zeros((checkpoints, *pulls.shape), jnp.int32), ())
    zero = jnp.zeros((), window.regret.dtype)
    return Record(pulls, (zero, zero), (), (jnp.zeros(checkpoints, zero.dtype),) * 2)


def counts(record: Record) -> bool:
    """Whether regret follows from pull counts."""
    return not isinstance(record.pulls_at, tuple)


def add(record: Record, window: Window, keep: Bool[Array, " P"] | None) -> tuple[Any, Any]:
    """Totals of pulls and regret after those plays of a window that `keep` marks; None for a window of one play."""
    pulls, regret = record.pulls, record.regret
    if window.arm is not None and isinstance(pulls, columns.Kept):  # `single_plays`
        pulls = columns.add_to_entry(pulls, window.arm[0], 1)
    elif window.arm is not None:  # a scatter touches one arm where a one-hot sum would touch all
        plays = 1 if keep is None else keep.astype(jnp.int32) if window.arm.shape == keep.shape else count(keep)
        pulls = pulls.at[window.arm].add(plays)
    if window.regret is not None:
        new = window.regret[0] if keep is None else fixed_sum(jnp.where(keep, window.regret, 0))
        regret = tuple(materialize_all(two_sum(regret[0], regret[1], new)))  # one loop writes both
    return pulls, regret


def single_plays(record: Record, *, back: bool = False) -> Record:
    """The record in the form that counts windows of one play faster; `back`: in its own form again."""
    pulls = record.pulls
    if back and isinstance(pulls, columns.Kept):
        pulls = columns.lanes_behind(pulls, back=True).rows
    elif not back and not isinstance(pulls, tuple) and pulls.shape[-1] <= columns.KEPT:
        pulls = columns.lanes_behind(columns.Kept(pulls))
    return record._replace(pulls=pulls)


def write_totals(record: Record, row: IntScalar, pulls: Any, regret: Any) -> Record:
    """Write totals at the checkpoint `row`; rows past the last are dropped."""
    pulls_at, regret_at = record.pulls_at, record.regret_at
    if not isinstance(pulls_at, tuple):
        pulls_at = pulls_at.at[row].set(columns.together(pulls), mode="drop")
    if regret_at:
        regret_at = tuple(column.at[row].set(x, mode="drop") for column, x in zip(regret_at, regret, strict=True))
    return record._replace(pulls_at=pulls_at, regret_at=regret_at)


def _with_plays(record: Record, arm: IntScalar, plays: Int[Array, " R"]) -> Int[Array, "R A"]:
    """Pulls after `plays` more plays of one arm; arm -1 adds none."""
    return record.pulls[None] + plays[:, None] * one_hot(arm, record.pulls.shape[0]).astype(jnp.int32)[None]


def write_rest(record: Record, arm: IntScalar, done: IntScalar, times: Times) -> Record:
    """Count the plays after `done` up to the horizon, all of one arm; arm -1 changes nothing."""
    rows = _with_plays(record, arm, jnp.maximum(times - done, 0))
    later = ((arm >= 0) & (times > done))[:, None]
    pulls, pulls_at = jnp.where(arm >= 0, rows[-1], record.pulls), jnp.where(later, rows, record.pulls_at)
    return record._replace(pulls=pulls, pulls_at=pulls_at)


def write_window(
    record: Record, window: Window, before: IntScalar, row: IntScalar, times: Times, whole: bool, one_arm: bool
) -> tuple[Record, IntScalar]:
    """The record and the next row after a window that began after `before` plays.

    one_arm: regret follows from counts and the window plays one arm. Unless `whole`, the window ends no later than at
    checkpoint `row`, with one_arm at row + CHECKPOINTS_INSIDE - 1.
    """
    done, checkpoints = before + window.used, times.shape[0]
    pulls, regret = add(record, window, window.play)
    if whole:
        inside = (times > before) & (times <= done)
        if one_arm:
            new_pulls = _with_plays(record, window.arm[0], jnp.clip(times - before, 0, window.used))
            new_regret: Any = ()
        else:  # by prefix sums over the window
            keep = window.play[None] & (window.t[None] <= times[:, None])
            new_pulls, new_regret = jax.vmap(lambda k: add(record, window, k))(keep)
        pulls_at, regret_at = record.pulls_at, record.regret_at
        if counts(record):
            pulls_at = jnp.where(inside[:, None], new_pulls, pulls_at)
        if regret_at:
            regret_at = tuple(jnp.where(inside, new, old) for new, old in zip(new_regret, regret_at, strict=True))
        record, row = record._replace(pulls_at=pulls_at, regret_at=regret_at), count(times <= done)
    elif one_arm:  # rows of checkpoints that are not reached are overwritten later
        rows = row + jnp.arange(CHECKPOINTS_INSIDE, dtype=jnp.int32)
        at = times[jnp.minimum(rows, checkpoints - 1)]
        new_pulls = _with_plays(record, window.arm[0], jnp.minimum(at - before, window.used))
        record = record._replace(pulls_at=record.pulls_at.at[rows].set(new_pulls, mode="drop"))
        row = row + count((at <= done) & (rows < checkpoints))
    else:
        record = write_totals(record, row, pulls, regret)
        row = row + (done >= times[jnp.minimum(row, checkpoints - 1)]).astype(jnp.int32)
    return record._replace(pulls=pulls, regret=regret), row.astype(jnp.int32)

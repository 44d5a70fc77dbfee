"""The rule of differences: what one unit changes in whole runs, held against the releases that an algorithm states.

Two runs of one seed draw the same noise, so that of their releases only what the unit moved differs, as long as the
same arms are played in the same windows. It may then be in as many releases as the events say, and move each by no
more than their sensitivity. That finds sums that are not reset, data used twice and missing clips, which the beginning
of a run does not show. Axes: [E] edits, [S] seeds, [W] windows, [V] numbers of a window.
"""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.auditing.neighbours import Edit, Input, edits
from jaxbandits.auditing.transcripts import MAX_WINDOWS, Runs, Shown, feature_dim, setting_of, what_it_reads
from jaxbandits.mechanisms.composition import Event
from jaxbandits.protocol import Algorithm, Environment, Span
from jaxbandits.spans import windows_offered
from jaxbandits.sweeps.plan import stack_cases

SEEDS = 8
RELEASES = 3  # so many should be compared on some seed
CLOSES = 4  # so many spans are looked at where something is released between spans: each is code to compile
SIZES = (-1024.0, -4.0, -1.0, -0.25, 0.25, 1.0, 4.0, 1024.0)  # of rewards, where a claim holds for any
# Noise that is added to the numbers whose sensitivity is stated, and the norm of that. Bits and counts are others.
NORMS = {"laplace": 1, "discrete laplace": 1, "gaussian": 2, "gaussian, shuffled": 2, "skellam": 2}
ROUNDING = 2.0**-18  # of the numbers compared, relatively, in float32


class Differences(NamedTuple):
    """What one unit changed at most, over pairs of inputs and seeds."""

    releases: tuple[int, ...]  # the plays with which a run released something, as far as it was made
    whole: bool  # whether it was made to its end
    compared: int  # releases up to which two runs were alike but for the unit, on the seed that came furthest
    changed: int  # releases that differ, or increments of running sums
    allowed: float  # how many may; inf where no number is stated
    size: float  # the largest difference of one of them
    limit: float  # what it may be; inf where no sensitivity is stated, or for noise that is not added to numbers
    fault: str  # what is refuted, in words; empty where nothing is

    def __str__(self) -> str:
        if math.isinf(self.allowed):
            return "differences: not looked at, its events state no releases"
        size = "sizes not looked at" if math.isinf(self.limit) else f"by {self.size:.4g} of {self.limit:.4g}"
        few = "" if self.compared >= RELEASES else f", fewer than {RELEASES}"
        return f"differences: {self.changed} of {self.compared} releases{few}, {size}"


def find_differences(algorithm: Algorithm, environment: Environment) -> Differences:
    """What one unit changes in runs of an algorithm, and whether its events allow it. environment: of contexts."""
    claim = algorithm.guarantee
    events = [event for event in claim.events(algorithm.params) if event.times > 0]
    params, public = (stack_cases([part.params], "float32")[0] for part in (algorithm, environment))
    dim = feature_dim(environment, public) if claim.unit == "user" else 0
    setting = setting_of(algorithm, environment, whole=False, adaptive=False)
    windows = _windows(algorithm.schedule)
    # where a message tells of an arm, later arms may follow from earlier messages, whatever the model
    arms = setting.arms or what_it_reads(algorithm) == "row"
    runner = Runs(setting._replace(windows=windows, arms=arms), params, Input(public, ()))

    def show_plays(plays: list[int]) -> tuple[list[Edit], Shown]:
        chosen = [edit for play in plays for edit in _edits(claim.unit, play, claim.bound, dim, setting.chosen)]
        which = np.repeat(np.arange(len(chosen)), SEEDS)
        shown = runner.windows_on(chosen, which, np.tile(np.arange(SEEDS, dtype=np.uint32), len(chosen)))
        return chosen, Shown(*(x.reshape(len(chosen), SEEDS, *x.shape[1:]) for x in shown))

    chosen, first = show_plays([1, 1])
    told = mark_releases(first)[0]
    most = int(told.sum(-1).argmax())  # the seed that releases most
    ends = first.done[0, most, told[most]]
    whole = windows == sum(map(windows_offered, algorithm.schedule))
    found = Differences(tuple(map(int, ends)), whole, 0, 0, math.inf, 0.0, math.inf, "")
    if not events or not len(ends) or any(math.isinf(event.sensitivity) for event in events):
        return found
    running = next((event.running for event in events if event.running is not False), False)
    found = found._replace(allowed=sum(event.times for event in events) if running is False else 1)
    last = int(first.done[0].max())
    for shown_edits, shown in ((chosen, first), show_plays([min(int(ends[0]) + 1, last), (1 + int(ends[0])) // 2])):
        for a, b in itertools.combinations(range(len(shown_edits)), 2):
            if shown_edits[a].play == shown_edits[b].play:
                one, other = (Shown(*(x[i] for x in shown)) for i in (a, b))
                found = _hold(found, one, other, shown_edits[a].play, events, running)
    return found._replace(fault=describe_fault(found, claim.unit))


def _windows(schedule: tuple[Span, ...]) -> int:
    """Windows of the runs: all, as far as a transcript may reach, and few spans where spans are closed."""
    total, closed = 0, 0
    for span in schedule:
        total, closed = total + windows_offered(span), closed + bool(span.close)
        if closed > CLOSES:
            break
    return min(total, MAX_WINDOWS)


def _edits(unit: str, play: int, bound: float, dim: int, arms: int = 0) -> list[Edit]:
    """A unit's inputs at a play, far apart and near."""
    if unit == "message":
        inside = [edit for edit in edits(unit, [play]) if edit.message[0] >= 0]  # x x' has no negative entry there
        return [edit for edit in inside if abs(edit.message[0]) != 0 or edit.message[1] == 0]
    if unit == "user":
        whole = [
            edit for edit in edits(unit, [play], bound=bound, dim=dim, arms=arms) if not edit.apart and edit.reward
        ]
        every = [edit for edit in whole if edit.arm == ()]
        angles = {tuple(edit.feature) for edit in every[:: len(every) // 6] if np.isfinite(edit.feature).all()}
        near = [edit for edit in every if tuple(edit.feature) in angles and math.isfinite(edit.reward)]
        return near + whole[len(every) :]  # last come those that say which arm is shown
    return [Edit(play, reward) for reward in (SIZES if math.isinf(bound) else (-bound, 0.0, bound))]


def mark_releases(shown: Shown) -> np.ndarray[Any, Any]:
    """Which windows release anew, [E, S, W]: what is only shown again is no release."""
    before = np.pad(shown.values, [(0, 0)] * (shown.values.ndim - 2) + [(1, 0), (0, 0)])[..., :-1, :]
    return shown.tells & (shown.values != before).any(axis=-1)


def _hold(found: Differences, one: Shown, other: Shown, play: int, events: list[Event], running: Any) -> Differences:
    """What was found, and what a pair of inputs adds: [S, W, V]."""
    here = np.argmax(one.done >= play, axis=-1)[:, None]  # the private play's window
    at = np.arange(one.done.shape[1])[None]
    alike = (one.done == other.done) & (one.tells == other.tells)
    alike &= (one.marks == other.marks).all(-1) & (one.arms == other.arms).all(-1)
    cut = np.where((~alike & (at > here)).any(-1), np.argmax(~alike & (at > here), axis=-1), alike.shape[1])[:, None]
    released = (at >= here) & (at < cut) & (mark_releases(one) | mark_releases(other))
    apart = np.where(released[..., None], one.values.astype(np.float64) - other.values, 0.0)
    scale = np.maximum(np.abs(one.values), np.abs(other.values))
    if running:  # of running sums the increments
        apart = np.stack([_increments(x, told) for x, told in zip(apart, released, strict=True)])
    norm = 2 if any(NORMS.get(event.mechanism) == 2 for event in events) else 1
    sizes = (np.abs(apart) ** norm).sum(-1) ** (1 / norm)
    rounding = ROUNDING * ((scale**norm).sum(-1) ** (1 / norm)).max(axis=-1, keepdims=True)
    counted = [event for event in events if event.mechanism in NORMS and not math.isnan(event.sensitivity)]
    limit = math.inf
    if len(counted) == len(events):
        numbers = one.values.shape[-1]
        limit = sum(_most(event) * min(event.times, numbers) ** (1 / norm) for event in counted)
    changed = sizes > rounding + 1e-6
    if running is None:
        changed &= np.cumsum(changed, axis=-1) == 1
    excess = np.where(changed, sizes - rounding, 0.0)
    most_compared, most_changed = (int(x.sum(-1).max()) for x in (released, changed))
    compared, changes = max(found.compared, most_compared), max(found.changed, most_changed)
    size = max(found.size, float(excess.max(initial=0.0)))
    return found._replace(compared=compared, changed=changes, size=size, limit=limit)


def _increments(apart: np.ndarray[Any, Any], told: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Differences of one run's releases, [W, V], less those of the release before."""
    steps = np.zeros_like(apart)
    steps[told] = np.diff(apart[told], axis=0, prepend=np.zeros((1, apart.shape[-1])))
    return steps


def _most(event: Event) -> float:
    """The largest sensitivity of a kind of releases."""
    return event.sensitivity if math.isnan(event.largest) else event.largest


def describe_fault(found: Differences, unit: str) -> str:
    """What is refuted, in words; nothing where nothing is."""
    what = f"one {unit.replace('_', ' ')}"
    if found.changed > found.allowed:
        changes = f"changes {found.changed} of {found.compared} releases of runs with the same noise and arms"
        asked = "is a sum not reset, or data used twice? (an event says running=True of sums that run on)"
        return f"{what} {changes}, and events allow {found.allowed:g}: {asked}"
    if found.size > found.limit * (1 + 1e-3):
        stated = f"events state a sensitivity of {found.limit:.4g}"
        return f"{what} changes a release by {found.size:.4g}, and {stated}: is what enters it clipped?"
    return ""

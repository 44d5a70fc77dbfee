"""What a run has left to play: the call that begins next, and how long all of them will take."""

import heapq
import itertools
import math
import threading
from collections import deque
from collections.abc import Sequence

from jaxbandits.sweeps.engines.calls import Call, Machine, weight
from jaxbandits.sweeps.engines.one_call import Progress
from jaxbandits.sweeps.plan import Plan

TASTE = 100  # the plays of a group over those of its taste, about


# docs/decisions.md#measured-time
class Remaining:
    """The calls of a run, and the speeds of their groups.

    At first one call of every group begins, small ones before large ones. Once all is compiled, a few plays of every
    group are timed (`note_taste`); from then on the longest of all calls is next, as short ones fill the cores best at
    the end.
    """

    def __init__(self, plan: Plan, calls: Sequence[Call], machine: Machine) -> None:
        self.calls, self.workers, self._lock = calls, machine.workers, threading.Lock()
        self._operations = [max(1, group.shape.operations) for group in plan.groups]
        self._weight = {call: weight(call, plan) for call in calls}
        self._begun: dict[Call, int] = {}  # plays that are not made, of calls that are not finished
        self._waiting: dict[int, deque[tuple[int, Call]]] = {}  # of every group, with places in the order at first
        self._plays: dict[int, int] = {}  # of every group
        first, others = dict[int, Call](), list[Call]()
        for call in calls:
            others += [call] if first.setdefault(call.group, call) is not call else []
        for place, call in enumerate((*sorted(first.values(), key=self._weight.__getitem__), *others)):
            self._waiting.setdefault(call.group, deque()).append((place, call))
            self._plays[call.group] = self._plays.get(call.group, 0) + self._weight[call]
        self._tasted: dict[int, float | None] = {}  # of every group, seconds a play, if that is known
        self._timed: dict[int, tuple[int, float]] = {}  # of every group: plays that were timed, and their seconds

    def take(self) -> Call:
        """The call that begins next, as often as there are calls."""
        with self._lock:
            heads = {group: calls[0] for group, calls in self._waiting.items() if calls}
            if self._all_known():
                speed = self._speeds()
                group = max(heads, key=lambda g: (self._weight[heads[g][1]] * speed[g], -heads[g][0]))
            else:
                group = min(heads, key=lambda g: heads[g][0])
            call = self._waiting[group].popleft()[1]
            self._begun[call] = self._weight[call]
            return call

    def note_compiled(self) -> list[Call]:
        """Note that all is compiled, and forget what was timed beside that. Gives a waiting call of each group.

        Of one group alone there is none: its own segments tell.
        """
        with self._lock:
            if len(self._plays) == 1:
                return []
            self._timed.clear()
            return [calls[0][1] for calls in self._waiting.values() if calls]

    def worth_a_taste(self, group: int) -> int:
        """How many plays may be made to time a group; 0 where it has been."""
        with self._lock:
            return 0 if group in self._timed else self._plays[group] // TASTE

    def note_taste(self, group: int, seconds: float | None) -> None:
        """Note what a play of a group takes, or that it is not known."""
        with self._lock:
            self._tasted[group] = seconds

    def note_plays(self, played: Progress) -> None:
        """Count what was played."""
        group = played.call.group
        with self._lock:
            left = self._begun.pop(played.call, 0) - played.plays
            if left > 0:
                self._begun[played.call] = left
            if played.seconds and played.plays:
                plays, seconds = self._timed.get(group, (0, 0.0))
                self._timed[group] = plays + played.plays, seconds + played.seconds

    def note_end(self, call: Call) -> None:
        """Note that a call is over, however it ended."""
        with self._lock:
            self._begun.pop(call, None)

    def seconds_left(self) -> float | None:
        """Seconds until all calls are played; None where some group is not known yet."""
        with self._lock:
            if not self._all_known():
                return None
            speed = self._speeds()
            begun = [plays * speed[call.group] for call, plays in self._begun.items()]
            waiting = [self._weight[call] * speed[call.group] for _, call in itertools.chain(*self._waiting.values())]
        free = [0.0] * self.workers  # when each worker has played what it has
        for seconds in itertools.chain(begun, sorted(waiting, reverse=True)):
            heapq.heapreplace(free, free[0] + seconds)
        return max(free)

    def _all_known(self) -> bool:
        """Whether every group that has calls left was timed, or could not be by a taste, and some group was."""
        left = {call.group for call in self._begun} | {group for group, calls in self._waiting.items() if calls}
        return left <= self._timed.keys() | self._tasted.keys() and bool(self._speeds_so_far())

    def _speeds_so_far(self) -> dict[int, float]:
        """Seconds a play of groups that were timed."""
        tasted = {group: seconds for group, seconds in self._tasted.items() if seconds is not None}
        return tasted | {group: seconds / plays for group, (plays, seconds) in self._timed.items()}

    def _speeds(self) -> dict[int, float]:
        """Seconds a play of every group.

        An operation of a group that was not timed is taken to be as fast as the geometric mean of the others.
        """
        known = self._speeds_so_far()
        usual = math.exp(sum(math.log(x / self._operations[group]) for group, x in known.items()) / len(known))
        return {group: known.get(group, usual * self._operations[group]) for group in self._plays}

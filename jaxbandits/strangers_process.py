"""A process that plays other people's learners: what `jaxbandits.strangers` starts, once a core. It never imports JAX.

It is run as a file, so that it imports nothing of the package either. Requests come pickled on its standard input, and
answers go to its standard output; what a learner prints goes to standard error.

Axes: [P] plays, [K] arms, [S] learners, [F] numbers of a view.
"""

import inspect
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from operator import index
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

Function: TypeAlias = Callable[..., Any]
# Pairs of methods that are looked for, in this order
METHODS = (("ask", "tell"), ("act", "update"), ("select_arm", "update"), ("predict", "partial_fit"))


class Stranger(NamedTuple):
    """How to make a learner and to play with it."""

    make: Function
    arguments: Mapping[str, Any]  # by which `make` is called
    seeded: bool  # whether it is told its seed, too
    ask: Function | None
    tell: Function | None
    diagnose: Function | None
    view: Function | None
    losses: bool  # tell 1 - reward
    contexts: bool  # show what the world shows


class Rows(NamedTuple):
    """What a world shows and would pay in consecutive plays."""

    contexts: Any  # [P, ...]; None: nothing is shown
    rewards: Any  # float64 [P, K], of every arm; [P, K, K]: by the arm of the play before, 0 before the first


class PlayError(Exception):
    """A stranger failed in a play; 0: before the first."""

    def __init__(self, play: int, reason: str) -> None:
        super().__init__(play, reason)
        self.play, self.reason = play, reason


class NoSuchArm(Exception):
    """An arm, and how many there are."""


class Player:
    """A stranger's learner of one seed, and how it is asked and told."""

    def __init__(self, stranger: Stranger, seed: int) -> None:
        self.stranger, self.plays, self.before = stranger, 0, 0
        given = {**stranger.arguments, **({"seed": seed} if stranger.seeded else {})}
        try:
            self.learner = stranger.make(**given)
            self.ask, self.tell = find_methods(self.learner, stranger)
        except Exception as error:
            raise PlayError(0, describe_failure(error)) from error

    def play(self, rows: Rows) -> tuple[list[int], list[Any]]:
        """The arms of the next plays, and what the view shows after each."""
        stranger, ask, tell, learner = self.stranger, self.ask, self.tell, self.learner
        rewards = np.ascontiguousarray(rows.rewards, np.float64)
        plays, arms, before = len(rewards), rewards.shape[-1], self.before
        paid: Any = 1 - rewards if stranger.losses else rewards
        pays, played, seen, t = memoryview(paid), list[int](), list[Any](), 0
        add, view, contexts = played.append, stranger.view, rows.contexts
        try:
            if contexts is None and view is None and rewards.ndim == 2:  # for a quick learner each look counts
                for t in range(plays):
                    arm = index(ask())
                    if not 0 <= arm < arms:
                        raise NoSuchArm(arm, arms)
                    add(arm)
                    tell(arm, pays[t, arm])
            else:
                for t in range(plays):
                    context = () if contexts is None else (contexts[t],)
                    arm = index(ask(*context))
                    if not 0 <= arm < arms:
                        raise NoSuchArm(arm, arms)
                    add(arm)
                    at = (t, arm) if rewards.ndim == 2 else (t, before, arm)
                    before = arm
                    tell(arm, pays[at], *context)
                    if view is not None:
                        seen.append(np.ravel(np.asarray(view(learner, arm, rewards[at]), np.float64)))
        except Exception as error:
            raise PlayError(self.plays + t + 1, describe_failure(error)) from error
        self.plays, self.before = self.plays + plays, before
        return played, seen

    def diagnose(self) -> dict[str, float]:
        """Numbers of the learner by name."""
        try:
            found = {} if self.stranger.diagnose is None else self.stranger.diagnose(self.learner)
            return {str(name): float(x) for name, x in found.items()}
        except Exception as error:
            raise PlayError(self.plays, f"diagnose: {describe_failure(error)}") from error


def find_methods(learner: Any, stranger: Stranger) -> tuple[Function, Function]:
    """How a learner is asked for an arm, and told what it paid: with a context where it takes one and there is one."""
    ask, tell, shown = stranger.ask, stranger.tell, stranger.contexts
    none = () if shown else (None,)
    asks: list[Any] = [None if ask is None else partial(ask, learner, *none)]
    tells: list[Any] = [None if tell is None else _bind_tell(tell, learner, shown)]
    for first, second in METHODS:
        both = hasattr(learner, first) and hasattr(learner, second)
        if both or (ask is not None and hasattr(learner, second)) or (tell is not None and hasattr(learner, first)):
            asks += [_method(learner, first, 0, shown)] if ask is None else []
            tells += [_method(learner, second, 2, shown)] if tell is None else []
            break
    found = [next((one for one in some if one is not None), None) for some in (asks, tells)]
    if None in found:
        pairs = ", ".join(f"{a} and {b}" for a, b in METHODS)
        remedy = "jb.foreign(make, ask=lambda learner, context: ..., tell=lambda learner, arm, reward, context: ...)"
        raise TypeError(f"{type(learner).__name__} has none of the pairs of methods {pairs}: say how, {remedy}")
    return cast("tuple[Function, Function]", tuple(found))


def _bind_tell(tell: Function, learner: Any, shown: bool) -> Function:
    if shown:
        return partial(tell, learner)
    return lambda arm, reward: tell(learner, arm, reward, None)


def _method(learner: Any, name: str, own: int, shown: bool) -> Function:
    """A learner's method, which takes `own` arguments and may take a context after them."""
    method = getattr(learner, name)
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):  # one that is compiled may not say what it takes
        parameters = ()
    takes = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    more = len(takes) > own or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(takes) > own and takes[own].default is inspect.Parameter.empty and not shown:
        remedy = "give plays_on='decision set' or 'row', or say how by ask= and tell="
        raise TypeError(f"{type(learner).__name__}.{name} takes {takes[own].name!r}, and no context is shown: {remedy}")
    if shown and not more:
        return (lambda _: method()) if own == 0 else (lambda arm, reward, _: method(arm, reward))
    return method


def describe_failure(error: BaseException) -> str:
    """An error in one line, with the stranger's own last line."""
    if isinstance(error, PlayError):
        return error.reason
    if isinstance(error, NoSuchArm):
        return "it chose arm {}, which is none of the {} arms that are there, counted from 0".format(*error.args)
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename != __file__]
    where = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}: {frames[-1].line})" if frames else ""
    if isinstance(error, TypeError) and not frames and "cannot be interpreted as an integer" in str(error):
        return f"it chose no arm: {error}, and an arm is one of the integers from 0"
    return f"{type(error).__name__}: {error}{where}"


def play_many(stranger: Stranger, seeds: list[int], rows: Rows) -> tuple[Any, Any]:
    """Arms [S, P] of learners of their own on the same rows, and what the view shows of each: [S, F] or None."""
    arms, seen = np.empty((len(seeds), len(rows.rewards)), np.int32), list[Any]()
    for s, seed in enumerate(seeds):
        arms[s], views = Player(stranger, seed).play(rows)
        seen.append(np.concatenate(views) if views else np.empty(0))
    if stranger.view is None:
        return arms, None
    if len({len(x) for x in seen}) > 1:  # as many numbers in every run: others are dropped
        least = min(map(len, seen))
        seen = [x[:least] for x in seen]
    return arms, np.stack(seen)


def serve(requests: Any, answers: Any) -> None:
    """Answer requests until there are no more."""
    strangers: dict[int, Stranger] = {}
    player: Player | None = None
    while True:
        try:
            kind, *about = pickle.load(requests)
        except EOFError:
            return
        try:
            if kind == "stranger":
                number, (sys.path[:], sys.argv[:]), pickled = about
                strangers[number] = Stranger(*pickle.loads(pickled))
                answer: Any = None
            elif kind == "many":
                number, seeds, rows = about
                answer = play_many(strangers[number], seeds, Rows(*rows))
            else:
                number, seed, fresh, rows, last = about
                player = Player(strangers[number], seed) if fresh or player is None else player
                arms = np.array(player.play(Rows(*rows))[0], np.int32)
                answer = arms, player.diagnose() if last else {}
            said = ("ok", answer)
        except BaseException as error:
            play, reason = (error.play, error.reason) if isinstance(error, PlayError) else (0, describe_failure(error))
            said = ("error", (play, reason, traceback.format_exc()))
        try:
            pickle.dump(said, answers, protocol=5)
            answers.flush()
        except BrokenPipeError:  # the process that asked is gone
            return


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, out)
    os._exit(0)  # nobody reads what may be left to write

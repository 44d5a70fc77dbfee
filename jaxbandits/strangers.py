"""`jb.foreign`: other people's learners, in NumPy, PyTorch or plain Python, where an algorithm's factory goes.

They are played in processes of their own, one a core, on the rewards that the world would pay an algorithm of this
package (`sweeps.engines.strangers`), and audited there (`auditing.strangers`).
"""

import contextlib
import hashlib
import inspect
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import partial, partialmethod
from importlib.machinery import PathFinder
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, NamedTuple, NoReturn

import jax.numpy as jnp
import numpy as np

from jaxbandits import strangers_process
from jaxbandits.formatting import nearest, show
from jaxbandits.protocol import Algorithm, Context, Message, Note, Params, Program, Span, State
from jaxbandits.recipe import unwrap
from jaxbandits.strangers_process import Function, Rows, Stranger
from jaxbandits.typing import Array
from jaxbandits.validation import choice, declare

IDENTITY = 3  # raised where runs of the same description are others, as when their sums are rounded otherwise
PICKLING = threading.Lock()  # cloudpickle notes what travels by value for all threads
# One thread of every library for matrices: the processes are as many as there are cores
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
READS = {"arms": "arms", "losses": "arms", "decision set": "decision set", "row": "row"}  # as `who_plays.READS`


class StrangerError(RuntimeError):
    """Someone else's learner failed while it was played."""


class Learner(NamedTuple):
    """A foreign learner with its arguments. It stands where a program has `init`."""

    foreign: "Foreign"
    arguments: Mapping[str, Any]

    def __hash__(self) -> int:
        return id(self.foreign)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __call__(self, params: Params, draws: object, /) -> NoReturn:
        played = "jb.sweep, jb.tune, jb.worst_case, jb.check and jb.audit play it"
        raise TypeError(f"{self.foreign.__name__} is a foreign learner, which cannot be compiled: {played}")

    def identity(self) -> list[Any]:
        """What its runs follow from, where nothing but its version changes; Nameless where that is not known."""
        foreign, described = self.foreign, Described()
        if foreign.version is None:
            raise Nameless("it is foreign code without a version=, which says when its runs are the same")
        made_of = foreign.make, foreign.ask, foreign.tell, foreign.diagnose, dict(self.arguments)
        shown = foreign.plays_on, foreign.plays_on_losses
        return [IDENTITY, foreign.version, *shown, described.describe(made_of)]

    def stranger(self, view: Function | None = None) -> Stranger:
        """What a process needs to play it."""
        foreign = self.foreign
        calls = foreign.ask, foreign.tell, foreign.diagnose, view
        shown = foreign.plays_on in ("row", "decision set")
        return Stranger(foreign.make, self.arguments, foreign.seeded, *calls, foreign.plays_on_losses, shown)


# ---- what is compiled in the place of a foreign learner, where sizes and names of the world around it are wanted


def _keep_nothing(params: Params, draws: object) -> tuple[()]:
    return ()


def _first_arm(
    params: Params, state: State, draws: object, t: Array, context: Context
) -> tuple[Array, None, tuple[()]]:
    return jnp.zeros_like(t), None, ()


def _send_nothing(params: Params, note: Note, draws: object, *about_plays: object) -> Message:
    return ()


def _stay(params: Params, state: State, draws: object, *about_plays: object) -> tuple[State, tuple[()]]:
    return state, ()


STAND_IN = Program(_keep_nothing, _first_arm, _send_nothing, _stay)


def learner_of(program: Program) -> Learner | None:
    """The foreign learner that a program stands for; None for a program of one's own."""
    return program.init if isinstance(program.init, Learner) else None


def _refuse_compiling(*_: object) -> NoReturn:
    raise TypeError("a foreign learner cannot be compiled: give it to jb.sweep itself, not to a conversion")


class Nameless(Exception):
    """What a learner is made of has no description that is the same in another process."""


class Described:
    """Descriptions of what a learner is made of, in lists and texts that JSON holds.

    What is met a second time goes by its number. `met` keeps these alive, as their addresses name them.
    """

    def __init__(self) -> None:
        self.met: list[Any] = []

    def describe(self, x: Any, *, inside: bool = False) -> list[Any]:
        """A value. inside: of a class, where what has no description is told by its type alone; else Nameless."""
        if x is None or isinstance(
            x, bool | int | float | complex | str | bytes | range | np.dtype | np.ufunc | PurePath
        ):
            return [type(x).__name__, str(x) if isinstance(x, PurePath) else repr(x)]
        if isinstance(x, ModuleType):
            return ["module", x.__name__]
        if (known := next((k for k, one in enumerate(self.met) if one is x), None)) is not None:
            return ["again", known]
        self.met.append(x)
        if isinstance(x, list | tuple):
            return [type(x).__name__, [self.describe(each, inside=inside) for each in x]]
        if isinstance(x, dict):
            return [
                "dict",
                [[self.describe(k, inside=inside), self.describe(each, inside=inside)] for k, each in x.items()],
            ]
        if isinstance(x, partial | partialmethod):
            return ["partial", *(self.describe(each, inside=inside) for each in (x.func, x.args, x.keywords))]
        if isinstance(x, MethodType):
            return ["method", self.describe(x.__func__, inside=inside), self.describe(x.__self__, inside=inside)]
        if isinstance(x, FunctionType):
            return self.describe_function(x, inside or _is_method(x))
        if isinstance(x, type):
            return self.describe_class(x)
        if isinstance(x, BuiltinFunctionType):
            return ["builtin", x.__module__, x.__qualname__, self.describe(x.__self__, inside=inside)]
        if callable(x) and hasattr(x, "__wrapped__"):  # compiled, or with a cache
            return ["around", type(x).__name__, self.describe(x.__wrapped__, inside=inside)]
        if hasattr(x, "__array__") and type(x).__module__.partition(".")[0] not in FRAMES:
            with contextlib.suppress(Exception):  # a tensor with a gradient, or on a card
                array = np.asarray(x)
                if array.dtype.kind in "biufcSUmM" and not isinstance(x, np.ma.MaskedArray):
                    return ["array", array.dtype.str, [*array.shape], hashlib.sha256(array.tobytes()).hexdigest()]
        if inside or type(x) is object:  # which has no more
            return ["of", type(x).__module__, type(x).__qualname__]
        named = "is no number, text, array or function, which could name its runs"
        raise Nameless(f"{show(x)} of type {type(x).__name__} {named}")

    def describe_function(self, x: FunctionType, inside: bool) -> list[Any]:
        """A function's own text, its defaults, and what it closes over."""
        found: list[Any] = ["function", x.__module__, x.__qualname__, _text_of(x.__code__)]
        if x.__name__ == "<lambda>":  # of which a line may hold two
            found.append(_code_text(x.__code__))
        found += [self.describe(each, inside=inside) for each in (x.__defaults__, x.__kwdefaults__)]
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:  # nothing is there yet
                continue
            found.append([name, self.describe(content, inside=inside or name == "__class__")])
        return found

    def describe_class(self, x: type) -> list[Any]:
        """A class's text, what it holds, functions with what they close over and values, and what it is built on."""
        found: list[Any] = ["class", x.__module__, x.__qualname__, _text_of(x)]
        for name, each in vars(x).items():
            if name in PYTHONS_OWN:
                continue
            if isinstance(each, property):
                each = [each.fget, each.fset, each.fdel]
            each = getattr(each, "__func__", each)  # of a static method or one of the class
            found.append([name, self.describe(each, inside=True)])
        found += [self.describe(base, inside=True) for base in x.__bases__ if base is not object]
        return found


FRAMES = ("pandas", "polars", "xarray")  # whose arrays have names beside the numbers
# of a class, without which it would be the same
PYTHONS_OWN = frozenset(
    """__dict__ __weakref__ __doc__ __module__ __qualname__ __firstlineno__ __static_attributes__ __annotations__
    __abstractmethods__ _abc_impl __annotate__ __annotations_cache__""".split()
)


def _is_method(x: FunctionType) -> bool:
    return "." in x.__qualname__.rpartition("<locals>.")[2]


def _text_of(x: type | CodeType) -> str:
    """A hash of the text of a class or code, or of the code where there is no text."""
    try:
        text = inspect.getsource(x)
    except (OSError, TypeError):
        text = _code_text(x if isinstance(x, CodeType) else None)
    return hashlib.sha256(text.encode()).hexdigest()


def _code_text(code: CodeType | None) -> str:
    if code is None:
        return ""
    inner = [_code_text(x) if isinstance(x, CodeType) else _constant_text(x) for x in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {inner}"


def _constant_text(x: Any) -> str:
    return repr(sorted(map(repr, x))) if isinstance(x, frozenset) else repr(x)


class Foreign:
    """A factory of someone else's learner, as `jb.foreign` returns it."""

    def __init__(
        self,
        make: Function,
        ask: Function | None,
        tell: Function | None,
        plays_on: str,
        version: int | str | None,
        diagnose: Function | None,
    ) -> None:
        self.make, self.ask, self.tell, self.version, self.diagnose = make, ask, tell, version, diagnose
        self.plays_on, self.plays_on_losses = READS[plays_on], plays_on == "losses"
        self.__name__, self.__module__ = unwrap(make).name, getattr(unwrap(make).function, "__module__", "")
        try:
            signature = inspect.signature(make)
        except (TypeError, ValueError):  # of a class that is compiled
            signature = inspect.Signature()
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        taken = {name: p for name, p in signature.parameters.items() if p.kind in named}
        self.seeded, self.names = "seed" in taken, [name for name in taken if name != "seed"]
        keywords = {name: p.replace(kind=p.KEYWORD_ONLY) for name, p in taken.items() if name != "seed"}
        keywords.setdefault("horizon", inspect.Parameter("horizon", inspect.Parameter.KEYWORD_ONLY, default=None))
        self.__signature__ = inspect.Signature(list(keywords.values()))

    def __call__(self, **arguments: Any) -> Algorithm:
        """The learner with its arguments, for a sweep to play."""
        for key in arguments.keys() - self.__signature__.parameters.keys():
            takes = ", ".join(name for name in self.names) or "nothing"
            raise TypeError(f"{self.__name__} has no argument {key!r}{nearest(key, self.names)}; it takes {takes}")
        given = {key: value for key, value in arguments.items() if key in self.names}
        program = Program(Learner(self, given), _refuse_compiling, _refuse_compiling, _refuse_compiling)
        horizon = int(arguments.get("horizon") or 1)
        name, number = self.__name__, 0 if self.version is None else self.version
        config = {"name": name, **arguments}
        return Algorithm(
            program, (Span(1, horizon),), (), version=(name, number), config=config, plays_on=self.plays_on
        )

    def __repr__(self) -> str:
        return f"jb.foreign({self.__name__})"


@declare(check=False)
def foreign(
    make: Function,
    *,
    ask: Function | None = None,
    tell: Function | None = None,
    plays_on: Literal["arms", "losses", "decision set", "row"] = "arms",
    version: int | str | None = None,
    diagnose: Function | None = None,
) -> Foreign:
    """Someone else's learner, in NumPy, PyTorch or plain Python, wherever a factory of an algorithm goes.

    Args:
        make (callable): A class or function that makes a learner. It is called once a run, by name, with what it names
            of `horizon`, `num_arms`, `dim`, `seed` (the run's number), and keys of a grid.
        ask (callable, optional): ``ask(learner, context) -> arm``: an integer from 0. The default: the learner's method
            of the first pair that it has of (`ask`, `tell`), (`act`, `update`), (`select_arm`, `update`), (`predict`,
            `partial_fit`); a method gets the context where it takes one.
        tell (callable, optional): ``tell(learner, arm, reward, context)``. The default: as for `ask`.
        plays_on ({"arms", "losses", "decision set", "row"}): "arms", which is the default: the learner sees no context,
            which is None. "losses": it is told 1 - reward. "decision set": contexts are features [num_arms, dim] of
            the arms. "row": one row [dim] for all arms. Contexts are NumPy arrays.
        version (int or str, optional): What its results are kept under in a store: raise it when the learner changes.
            The default: nothing of it is kept.
        diagnose (callable, optional): ``diagnose(learner) -> {name: number}`` at the end of a run: variables of the
            result. The default: none.

    Returns:
        Foreign: A factory of an algorithm, for `jb.sweep` and what is built on it.

    Raises:
        TypeError: For what is no function, and a `version` that is neither an integer nor text.
        ValueError: For another `plays_on`.

    Note:
        Learners are played in Python, in processes of their own, one a core. They see the rewards that other algorithms
        would see in the same run, so that `jb.compare` pairs them. A learner whose randomness follows from `seed` gives
        the same run again.

    >>> import jaxbandits as jb
    >>> class Greedy:
    ...     def __init__(self, num_arms):
    ...         self.sums, self.counts = [0.0] * num_arms, [0] * num_arms
    ...     def ask(self):
    ...         return max(range(len(self.sums)), key=lambda a: self.sums[a] / self.counts[a] if self.counts[a] else 9)
    ...     def tell(self, arm, reward):
    ...         self.sums[arm] += reward
    ...         self.counts[arm] += 1
    >>> arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    >>> ds = jb.sweep({"theirs": jb.foreign(Greedy), "ours": "ucb1"}, arms, horizon=100, seeds=8, progress=False)
    >>> int(ds.pulls.sel(algorithm="theirs").sum())
    800
    """
    for name, given in (("make", make), ("ask", ask), ("tell", tell), ("diagnose", diagnose)):
        if not callable(given) and (given is not None or name == "make"):
            raise TypeError(f"{name} = {show(given)} is no function: give a class or function, without calling it")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int | str)):
        raise TypeError(f"version = {show(version)} must be an integer or text, raised when the learner changes")
    return Foreign(make, ask, tell, choice("plays_on", plays_on, tuple(READS)), version, diagnose)


# ---- processes that play


def _pickle(stranger: Stranger) -> bytes:
    """A stranger for another process. What that cannot import by its name travels with its code."""
    with PICKLING:
        return _pickle_alone(stranger)


def _pickle_alone(stranger: Stranger) -> bytes:
    import cloudpickle

    travelling = []
    for part in (stranger.make, stranger.ask, stranger.tell, stranger.diagnose, stranger.view):
        name = getattr(unwrap(part).function, "__module__", None) or "__main__"
        if name in sys.modules and name != "__main__" and PathFinder.find_spec(name.partition(".")[0]) is None:
            travelling.append(sys.modules[name])
    try:
        for module in travelling:
            cloudpickle.register_pickle_by_value(module)
        return bytes(cloudpickle.dumps(tuple(stranger)))
    except Exception as error:
        remedy = "make it inside `make`, which is called where it is played"
        raise TypeError(f"{show(stranger.make)} cannot be sent to another process ({error}): {remedy}") from error
    finally:
        for module in travelling:
            cloudpickle.unregister_pickle_by_value(module)


def _with_line(reason: str, stranger: Stranger) -> str:
    """A reason with the stranger's own line, which code that travelled to the process does not have there."""
    found = re.search(r"\(<[^>]*>, line (\d+): \)$", reason)
    if found is None:
        return reason
    number = int(found[1])
    for part in (stranger.make, stranger.ask, stranger.tell, stranger.diagnose, stranger.view):
        inside = unwrap(part).function
        for function in vars(inside).values() if isinstance(inside, type) else [inside]:
            with contextlib.suppress(OSError, TypeError):
                lines, first = inspect.getsourcelines(function)
                if first <= number < first + len(lines):
                    return f"{reason[: found.start()]}(line {number}: {lines[number - first].strip()})"
    return reason


class StrangerProcess:
    """One process that plays strangers. A call waits for its answer."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", strangers_process.__file__]
        environment = {**os.environ, **ONE_THREAD}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=1 << 20
        )
        self.numbers: dict[int, tuple[Stranger, int]] = {}
        self.latest: Stranger | None = None
        self.owes = False  # an answer that nobody took: the next one would be taken for another's

    def send(self, *request: object) -> None:
        """Ask for something, whose answer is to be taken next."""
        assert self.process.stdin is not None
        self.owes = True
        try:
            pickle.dump(request, self.process.stdin, protocol=5)
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise StrangerError(f"the process that plays it ended with status {self.process.wait()}") from None

    def take_answer(self) -> Any:
        """The answer to what was asked."""
        assert self.process.stdout is not None
        try:
            kind, answer = pickle.load(self.process.stdout)
        except (EOFError, ValueError):
            raise StrangerError(f"the process that plays it ended with status {self.process.wait()}") from None
        self.owes = False
        if kind == "error":
            play, reason, trace = answer
            reason = _with_line(reason, self.latest) if self.latest else reason
            error = StrangerError(f"play {play}: {reason}" if play else reason)
            error.add_note(trace)
            raise error
        return answer

    def request(self, *about: object) -> Any:
        """The answer to a request."""
        self.send(*about)
        return self.take_answer()

    def number(self, stranger: Stranger) -> int:
        """What the process calls a stranger, which it is told the first time."""
        self.latest = stranger
        if id(stranger) not in self.numbers:
            number = len(self.numbers)
            self.request("stranger", number, (sys.path, sys.argv), _pickle(stranger))
            self.numbers[id(stranger)] = stranger, number  # now it knows
        return self.numbers[id(stranger)][1]

    def play_many(self, stranger: Stranger, seeds: list[int], rows: Rows) -> tuple[Any, Any]:
        """As `strangers_process.play_many`."""
        arms, seen = self.request("many", self.number(stranger), seeds, tuple(rows))
        return arms, seen

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # what was not sent yet
                stream and stream.close()
        self.process.wait()


@contextlib.contextmanager
def processes(number: int) -> Iterator[list[StrangerProcess]]:
    """So many processes, which end with the block."""
    started = [StrangerProcess() for _ in range(number)]
    try:
        yield started
    finally:
        for one in started:
            one.end()

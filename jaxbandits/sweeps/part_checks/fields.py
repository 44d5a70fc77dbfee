"""The rules about what factories return: every field is what `protocol` says of it. Nothing is traced here.

Sweeps look at them for every point before anything runs. The first that is broken raises a ValueError with the author's
file and line: a later rule may read what an earlier one asks.
"""

import functools
import inspect
import operator
from collections.abc import Callable, Collection
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin

import jax
import numpy as np

from jaxbandits.contract import a_kind, at_line, first_line, is_number, what
from jaxbandits.declared import PLAYS_ON
from jaxbandits.formatting import nearest, show
from jaxbandits.protocol import Algorithm, Attack, Environment, Program, Span, World
from jaxbandits.spans import batch_length
from jaxbandits.strangers_process import METHODS

# What fields must be, in words. The types are those of `protocol`, where also stands which fields are functions.
MUST_BE = {
    "Program.hints": "a Hints",
    "Program.lockstep": "True or False",
    "Program.float32_plays": "a number of plays or None",
    "Hints.kept": "a tuple of names",
    "Algorithm.schedule": "a tuple of Span, such as (Span(1, horizon),)",
    "Algorithm.version": "a tuple (name, version, static values)",
    "Algorithm.rewards": "a Rewards, such as Rewards(0.0, 1.0, 'clip')",
    "Algorithm.tails": "a Tails, such as Tails(2.0, 1.0)",
    "Algorithm.config": "a dict of the arguments (jaxbandits.validation.factory keeps them)",
    "Algorithm.guarantee": "a Guarantee (Guarantee() where nothing is private)",
    "Guarantee.spend": "a function of (params)",
    "Guarantee.view": "a function of (message, released, action)",
    "Guarantee.events": "a function of (params)",
    "Environment.facts": "a dict such as {'num_arms': 2}",
    "Environment.config": "a dict of the arguments",
    "Adversary.config": "a dict of the arguments",
}
IS_NONE = functools.partial(operator.is_, None)


@functools.cache
def calls_of(kind: type) -> dict[str, list[str]]:
    """The functions of a part that `protocol` has a call for, by field: what it names their arguments."""
    calls = {}
    for field, hint in kind.__annotations__.items():
        for call in (hint, *get_args(hint)):
            if getattr(call, "_is_protocol", False):
                _, *names = inspect.signature(call.__call__).parameters
                calls[field] = [name.removesuffix("_last") for name in names]
    return calls


@functools.cache
def _types(kind: type) -> dict[str, Any]:
    """The fields of a part that are looked at, with their types."""
    types: dict[str, Any] = {}
    for name, hint in kind.__annotations__.items():
        if name in calls_of(kind):
            types[name] = Callable | None if isinstance(hint, UnionType) else Callable
        elif f"{kind.__name__}.{name}" in MUST_BE:
            types[name] = hint if isinstance(hint, UnionType) else get_origin(hint) or hint
    return types


class PartRules(NamedTuple):
    """Raises the errors of a part: each begins with its label and ends with the author's line."""

    head: str
    function: Any  # whose line it is

    def must(self, holds: object, text: str, *values: object) -> None:
        """ValueError of a text, with values in its braces, unless a rule holds."""
        if not holds:
            raise ValueError(f"{self.head}{text.format(*values)}{at_line(self.function)}")

    def must_be(self, holds: object, name: str, value: object, words: str = "a function") -> None:
        """ValueError unless a field is what `MUST_BE` says."""
        if not holds:
            self.must(False, "{} must be {}, not {}", name, MUST_BE.get(name, words), what(value))

    def must_be_part(self, part: Any, kind: type, name: str) -> None:
        """It is a part of the kind, with functions for its functions, of which one gives the line."""
        self.must_be(isinstance(part, kind), name, part, a_kind(kind))
        PartRules(f"{self.head}{name}: ", next(filter(inspect.isfunction, part), None)).types(part, calls_of(kind))

    def types(self, part: Any, fields: Collection[str] = ()) -> None:
        """Fields have the types that `protocol` says: these, or all."""
        kind: Any = type(part)
        for field, types in _types(kind).items():
            if not ((fields and field not in fields) or isinstance(getattr(part, field), types)):
                self.must_be(False, f"{kind.__name__}.{field}", getattr(part, field))

    def must_be_count(self, name: str, value: Any, least: int) -> None:
        """A number of something is an integer that is large enough."""
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        self.must(whole and value >= least, "{} = {!r} must be an integer of at least {}", name, value, least)

    def must_be_numbers(self, params: Any, name: str) -> None:
        """Params are numbers."""
        if all(map(_holds_numbers, jax.tree.leaves(params, is_leaf=IS_NONE))):  # paths are slow, and points may be many
            return
        remedy = "must be a number or an array of numbers: pass text and None to the cached builder as its arguments"
        for path, value in jax.tree_util.tree_flatten_with_path(params, is_leaf=IS_NONE)[0]:
            self.must(_holds_numbers(value), "{}{} = {!r} {}", name, jax.tree_util.keystr(path), value, remedy)


def _holds_numbers(x: object) -> bool:
    if isinstance(x, int | float | jax.Array):  # a traced number is a jax.Array
        return True
    return not (x is None or isinstance(x, str | bytes) or callable(x)) and np.asarray(x).dtype.kind in "biuf"


def check_part(part: Any, kind: Any, factory: Any, label: str = "") -> None:
    """Raise ValueError unless a factory returned a part of a kind that is well formed. label: what errors call it."""
    if not isinstance(part, kind):
        who = f"{label}: its factory" if kind is Algorithm else label
        asked = any(hasattr(part, method) for method, _ in METHODS)
        learner = f": a learner of other code goes as jb.foreign({label})" if kind is Algorithm and asked else ""
        raise ValueError(f"{who} must return {a_kind(kind)}, it returned {what(part)}{at_line(factory)}{learner}")
    if isinstance(part, Algorithm):
        return _check_algorithm(part, label)
    if isinstance(part, Environment):
        return _check_environment(part)
    PartRules("", None).must_be_part(part.attack, Attack, "Adversary.attack")
    PartRules("", None).types(part)
    PartRules("", part.attack.init).must_be_numbers(part.params, "Adversary.params")


def _check_algorithm(algorithm: Algorithm, label: str) -> None:
    program, claim, read, schedule = algorithm.program, algorithm.guarantee, algorithm.rewards, algorithm.schedule
    PartRules(f"{label}: ", None).must_be_part(program, Program, "Algorithm.program")
    rules = PartRules(f"{label}: ", program.act)
    must, plays = rules.must, program.float32_plays
    for part in (program, program.hints, algorithm):
        rules.types(part)
    rules.must_be(plays is None or plays > 0, "Program.float32_plays", plays)
    rules.must_be(schedule and all(isinstance(x, Span) for x in schedule), "Algorithm.schedule", schedule)
    horizon, offered = algorithm.config.get("horizon"), 0
    for span in schedule:
        for name, least in (("slots", 1), ("repeats", 0), ("length", 0)):
            rules.must_be_count(f"Span.{name}", getattr(span, name), least)
        offered += span.repeats * batch_length(span)
    if isinstance(horizon, int) and all(span.full for span in schedule):
        must(offered >= horizon, "Algorithm.schedule offers {} plays, and the horizon is {}", offered, horizon)
    version = algorithm.version
    rules.must_be(version and isinstance(version[0], str), "Algorithm.version", version)
    rules.must_be_numbers(algorithm.params, "Algorithm.params")
    rules.types(claim)
    if read is not None:
        between = _holds_numbers(read.low) and _holds_numbers(read.high) and read.low < read.high
        must(between, "Rewards.low = {!r} must be a number below Rewards.high = {!r}", read.low, read.high)
    for part, field in ((claim, "model"), (claim, "unit"), (read, "outside"), (algorithm.tails, "of")):
        known = () if part is None else get_args(type(part).__annotations__[field])
        if known and (word := getattr(part, field)) not in known:
            words = f"{', '.join(map(repr, known))}{nearest(str(word), known)}"
            must(False, "{}.{} = {!r} must be one of {}", type(part).__name__, field, word, words)
    kind = algorithm.plays_on
    must(kind is None or kind in PLAYS_ON, "Algorithm.plays_on = {!r} must be one of {}", kind, (*PLAYS_ON,))
    fields, bound = getattr(algorithm.params, "_fields", ()), claim.bound
    example = "a tuple of names of params, such as ('mechanism_scale',)"
    must(isinstance(claim.scales, tuple), "Guarantee.scales must be {}, not {!r}", example, claim.scales)
    for name in claim.scales:
        if name not in fields:
            there = f"{nearest(str(name), fields)}, but params hold {', '.join(fields) or 'nothing'}"
            must(False, "Guarantee.scales names {!r}{}", name, there)
    must(is_number(bound) and bound > 0, "Guarantee.bound = {!r} must be a positive number, or inf", bound)


def _check_environment(part: Environment) -> None:
    PartRules("", None).must_be_part(part.world, World, "Environment.world")
    rules = PartRules("", part.world.reward)
    rules.types(part)
    rules.must_be_numbers(part.params, "Environment.params")
    facts, must, counted = part.facts, rules.must, part.world.num_arms
    arms, most = facts.get("num_arms"), facts.get("max_horizon")
    for name, value in (("World.num_arms", counted), ("facts['num_arms']", arms), ("facts['max_horizon']", most)):
        if value is not None:
            rules.must_be_count(name, value, 0 if name == "World.num_arms" else 1)
    agree = arms is None or not counted or arms == counted
    must(agree, "facts['num_arms'] = {} disagrees with World.num_arms = {}", arms, counted)
    names, pays, bound = facts.get("arm_names"), facts.get("reward_range", (0, 0)), facts.get("reward_bound", 0)
    if names is not None:
        every = isinstance(names, tuple | list) and len(names) == (arms or counted)
        must(every, "facts['arm_names'] = {} must be a name for each arm", show(names))
    pair = isinstance(pays, tuple | list | np.ndarray) and len(pays) == 2 and all(map(_holds_numbers, pays))
    words = "two numbers, (low, high) with low <= high"
    must(pair and pays[0] <= pays[1], "facts['reward_range'] = {!r} must be {}", pays, words)
    size = _holds_numbers(bound) and np.ndim(bound) == 0 and bound >= 0
    must(size, "facts['reward_bound'] = {!r} must be a number of at least 0", bound)
    shown = ("nothing", *(kind for kind in PLAYS_ON if kind != "arms"))
    must(facts.get("shows", "nothing") in shown, "facts['shows'] = {!r} must be one of {}", facts.get("shows"), shown)
    if "means" in facts:
        check_means(part)


def check_means(environment: Environment) -> None:
    """Raise ValueError unless an environment whose pulls are counted for regret gives the mean of each arm."""
    facts, rules = environment.facts, PartRules("", environment.world.score)
    remedy = "put the arms' means into its facts, facts['means']"
    rules.must("means" in facts, "the environment counts pulls and gives no regret: {}", remedy)
    arms = facts.get("num_arms", environment.world.num_arms)
    try:
        means = np.asarray(facts["means"], np.float64)
    except (TypeError, ValueError):
        means = np.empty((0, 0))
    if means.ndim != 1 or not np.isfinite(means).all() or (arms and len(means) != arms):
        wanted = f"{arms or 'as many'} finite numbers, one an arm"
        rules.must(False, "facts['means'] = {} must be {}", show(facts["means"]), wanted)


def check_claim(algorithm: Algorithm, label: str) -> None:
    """Raise ValueError unless a guarantee's `spend` and `events` return what they should on the algorithm's numbers."""
    from jaxbandits.mechanisms.composition import Event

    for name in ("events", "spend"):
        function = getattr(algorithm.guarantee, name)
        try:
            value = tuple(function(algorithm.params))
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}{at_line(error, function)}"
            raise ValueError(f"{label}: Guarantee.{name}(params) fails: {reason}") from None
        if name == "events":
            right = all(isinstance(event, Event) for event in value)
            wanted = "a tuple of Event, such as (laplace_event('reward', 1.0, scale),)"
        else:
            right = len(value) == 2 and all(np.ndim(x) == 0 and _holds_numbers(x) for x in value)
            wanted = "(epsilon, delta), two numbers"
        text = f"Guarantee.{name} must return {wanted}, not {what(value)}"
        PartRules(f"{label}: ", function).must(right, "{}", text)

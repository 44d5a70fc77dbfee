"""The rules about what factories return: every field is what `protocol` says of it. Nothing is traced here.

Sweeps look at them for every point before anything runs. The first that is broken raises a ValueError with the author's
file and line: a later rule may read what an earlier one asks.
"""

import functools
import inspect
import operator
from collections.abc import Callable
from types import UnionType
from typing import Any, get_args, get_origin

import jax
import numpy as np

from jaxbandits.protocol import (
    Adversary,
    Algorithm,
    Attack,
    Environment,
    Guarantee,
    Hints,
    Program,
    Span,
    World,
)
from jaxbandits.source_places import place_of_error, place_of_function
from jaxbandits.spans import batch_length
from jaxbandits.sweeps.wording import a_kind, at_line, first_line, in_brackets, name_of, what
from jaxbandits.validation import nearest, shown

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
OPTIONAL: Any = Callable | None
IS_NONE = functools.partial(operator.is_, None)


def _types(kind: type) -> dict[str, Any]:
    """The fields of a part that are looked at, with their types; functions are Callable, or may be None."""
    hints: dict[str, Any] = kind.__annotations__
    named = {name: hint for name, hint in hints.items() if f"{kind.__name__}.{name}" in MUST_BE}
    types = {name: hint if isinstance(hint, UnionType) else get_origin(hint) or hint for name, hint in named.items()}
    optional = dict.fromkeys(functions_of(kind, optional=True), OPTIONAL)
    return types | optional | dict.fromkeys(functions_of(kind), Callable)


def functions_of(kind: type, optional: bool = False) -> list[str]:
    """The fields of a part that must be functions, or may be: those with a call of their own in `protocol`."""
    hints = {name: get_args(hint) if optional else (hint,) for name, hint in kind.__annotations__.items()}
    return [name for name, kinds in hints.items() if any(getattr(x, "_is_protocol", False) for x in kinds)]


KINDS: tuple[type, ...] = (Program, Hints, Algorithm, Guarantee, Environment, World, Adversary, Attack)
TYPES = {kind: _types(kind) for kind in KINDS}


def check_part(part: Any, kind: type, factory: Any) -> None:
    """Raise ValueError unless the factory of an environment or adversary returned one that is well formed."""
    if not isinstance(part, kind):
        raise ValueError(f"{name_of(factory)} must return {a_kind(kind)}, it returned {what(part)}{at_line(factory)}")
    rules: dict[type, Any] = {Environment: _check_environment, Adversary: _check_adversary}
    rules[kind](part)


def check_algorithm(algorithm: Any, label: str, factory: Callable[..., Any] | None = None) -> None:
    """Raise ValueError unless a factory returned a well-formed Algorithm."""
    if not isinstance(algorithm, Algorithm):
        text = f"{label}: its factory must return an Algorithm, it returned {what(algorithm)}"
        raise ValueError(f"{text}{at_line(factory)}")
    try:
        _check_algorithm(algorithm)
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from None


def _check_environment(part: Environment) -> None:
    _check_types(part.world, World, "Environment.world")
    world, facts, where = part.world, part.facts, at_line(part.world.reward)
    _check_types(part, Environment, "", where)
    _check_numbers(part.params, "Environment.params", world.reward)
    arms, counted = facts.get("num_arms"), world.num_arms
    counts = {"facts['num_arms']": (arms, 1), "facts['max_horizon']": (facts.get("max_horizon"), 1)}
    for name, (value, least) in {"World.num_arms": (counted, 0), **counts}.items():
        if value is not None and not _is_count(value, least):
            raise ValueError(f"{name} = {value!r} must be an integer of at least {least}{where}")
    if arms is not None and counted and arms != counted:
        raise ValueError(f"facts['num_arms'] = {arms} disagrees with World.num_arms = {counted}{where}")
    names, pays, bound = facts.get("arm_names"), facts.get("reward_range", (0, 0)), facts.get("reward_bound", 0)
    if names is not None and (not isinstance(names, tuple | list) or len(names) != (arms or counted)):
        raise ValueError(f"facts['arm_names'] = {shown(names)} must be a name for each arm{where}")
    pair = isinstance(pays, tuple | list | np.ndarray) and len(pays) == 2 and all(map(_is_number, pays))
    if not pair or not pays[0] <= pays[1]:
        raise ValueError(f"facts['reward_range'] = {pays!r} must be two numbers, (low, high) with low <= high{where}")
    if not _is_number(bound) or np.ndim(bound) or not bound >= 0:
        raise ValueError(f"facts['reward_bound'] = {bound!r} must be a number of at least 0{where}")
    if "means" in facts:
        check_means(part)


def check_means(environment: Environment) -> None:
    """Raise ValueError unless an environment whose pulls are counted for regret gives the mean of each arm."""
    facts, where = environment.facts, at_line(environment.world.score)
    if "means" not in facts:
        remedy = f"put the arms' means into its facts, facts['means']{where}"
        raise ValueError(f"the environment counts pulls and gives no regret: {remedy}")
    arms = facts.get("num_arms", environment.world.num_arms)
    try:
        means = np.asarray(facts["means"], np.float64)
    except (TypeError, ValueError):
        means = np.empty((0, 0))
    if means.ndim != 1 or not np.isfinite(means).all() or (arms and len(means) != arms):
        wanted = f"{arms or 'as many'} finite numbers, one an arm"
        raise ValueError(f"facts['means'] = {shown(facts['means'])} must be {wanted}{where}")


def _check_adversary(part: Adversary) -> None:
    _check_types(part.attack, Attack, "Adversary.attack")
    _check_types(part, Adversary, "", "")
    _check_numbers(part.params, "Adversary.params", part.attack.init)


def _check_algorithm(algorithm: Algorithm) -> None:
    program, claim, read, schedule = algorithm.program, algorithm.guarantee, algorithm.rewards, algorithm.schedule
    _check_types(program, Program, "Algorithm.program")
    where = at_line(program.act)
    _check_types(program, Program, "", where)
    _check_types(program.hints, Hints, "", where)
    _check_types(algorithm, Algorithm, "", where)
    if program.float32_plays is not None and program.float32_plays <= 0:
        raise _wrong_type("Program.float32_plays", program.float32_plays, where)
    if not schedule or not all(isinstance(span, Span) for span in schedule):
        raise _wrong_type("Algorithm.schedule", schedule, where)
    for span in schedule:
        for name, least in (("slots", 1), ("repeats", 0), ("length", 0)):
            if not _is_count(getattr(span, name), least):
                raise ValueError(f"Span.{name} = {getattr(span, name)!r} must be an integer of at least {least}{where}")
    horizon, offered = algorithm.config.get("horizon"), sum(span.repeats * batch_length(span) for span in schedule)
    if isinstance(horizon, int) and all(span.full for span in schedule) and offered < horizon:
        raise ValueError(f"Algorithm.schedule offers {offered} plays, and the horizon is {horizon}{where}")
    if not (algorithm.version and isinstance(algorithm.version[0], str)):
        raise _wrong_type("Algorithm.version", algorithm.version, where)
    _check_numbers(algorithm.params, "Algorithm.params", program.act)
    _check_types(claim, Guarantee, "Algorithm.guarantee", where)
    if read is not None and not (_is_number(read.low) and _is_number(read.high) and read.low < read.high):
        raise ValueError(f"Rewards.low = {read.low!r} must be a number below Rewards.high = {read.high!r}{where}")
    for part, field in ((claim, "model"), (claim, "unit"), (read, "outside"), (algorithm.tails, "of")):
        known = () if part is None else get_args(type(part).__annotations__[field])
        if known and getattr(part, field) not in known:
            name, word = f"{type(part).__name__}.{field}", getattr(part, field)
            hint = nearest(str(word), known)
            raise ValueError(f"{name} = {word!r} must be one of {', '.join(map(repr, known))}{hint}{where}")
    scales, fields = claim.scales, getattr(algorithm.params, "_fields", ())
    if not isinstance(scales, tuple):
        example = "a tuple of names of params, such as ('mechanism_scale',)"
        raise ValueError(f"Guarantee.scales must be {example}, not {scales!r}{where}")
    for name in scales:
        if name not in fields:
            there = f"params hold {', '.join(fields) or 'nothing'}"
            raise ValueError(f"Guarantee.scales names {name!r}{nearest(str(name), fields)}, but {there}{where}")
    if isinstance(claim.bound, bool) or not isinstance(claim.bound, int | float | np.number) or not claim.bound > 0:
        raise ValueError(f"Guarantee.bound = {claim.bound!r} must be a positive number, or inf{where}")


def _check_types(part: Any, kind: Any, name: str, where: str | None = None) -> None:
    """Rules about types: that of the part, which is called `name`, and of its fields.

    where: the line of messages; None: only the functions of the part are looked at, and one of them gives the line.
    """
    if not isinstance(part, kind):
        raise _wrong_type(name, part, where or "", a_kind(kind))
    for field, types in TYPES[kind].items():
        value = getattr(part, field)
        if isinstance(value, types) or (where is None and types not in (Callable, OPTIONAL)):
            continue
        if where is None:
            place = at_line(next(filter(inspect.isfunction, part), None))
            raise ValueError(f"{name}: {_wrong_type(f'{kind.__name__}.{field}', value, place)}")
        raise _wrong_type(f"{kind.__name__}.{field}", value, where or "")


def _wrong_type(name: str, value: Any, where: str, words: str = "a function") -> ValueError:
    return ValueError(f"{name} must be {MUST_BE.get(name, words)}, not {what(value)}{where}")


def _check_numbers(params: Any, name: str, function: Callable[..., Any]) -> None:
    if all(map(_is_number, jax.tree.leaves(params, is_leaf=IS_NONE))):  # paths are slow, and points may be many
        return
    for path, value in jax.tree_util.tree_flatten_with_path(params, is_leaf=IS_NONE)[0]:
        if not _is_number(value):
            remedy = (
                "must be a number or an array of numbers: pass text and None to the cached builder as its arguments"
            )
            raise ValueError(f"{name}{jax.tree_util.keystr(path)} = {value!r} {remedy}{at_line(function)}")


def _is_number(x: Any) -> bool:
    if isinstance(x, int | float | jax.Array):  # a traced number is a jax.Array
        return True
    return not (x is None or isinstance(x, str | bytes) or callable(x)) and np.asarray(x).dtype.kind in "biuf"


def _is_count(x: Any, least: int) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool) and bool(x >= least)


def check_claim(algorithm: Algorithm, label: str) -> None:
    """Raise ValueError unless a guarantee's `spend` and `events` return what they should on the algorithm's numbers."""
    from jaxbandits.mechanisms.composition import Event

    for name in ("events", "spend"):
        function = getattr(algorithm.guarantee, name)
        try:
            value = tuple(function(algorithm.params))
        except Exception as error:
            place = in_brackets(place_of_error(error) or place_of_function(function))
            text = f"{label}: Guarantee.{name}(params) fails: {type(error).__name__}: {first_line(error)}{place}"
            raise ValueError(text) from None
        if name == "events" and not all(isinstance(event, Event) for event in value):
            example = "a tuple of Event, such as (laplace_event('reward', 1.0, scale),)"
            raise ValueError(f"{label}: Guarantee.events must return {example}, not {what(value)}{at_line(function)}")
        if name == "spend" and not (len(value) == 2 and all(np.ndim(x) == 0 and _is_number(x) for x in value)):
            text = "Guarantee.spend must return (epsilon, delta), two numbers"
            raise ValueError(f"{label}: {text}, not {what(value)}{at_line(function)}")

"""The rule about factories: what they take and what they return."""

import inspect
from collections.abc import Iterator
from numbers import Integral, Real

import jax
import numpy as np

from jaxbandits.checking.findings import name_of_part, place_of_function
from jaxbandits.checking.subject import Subject
from jaxbandits.protocol import Adversary, Algorithm, Attack, Environment, Guarantee, Program, Span, World
from jaxbandits.sweeps.grid import signature_of
from jaxbandits.sweeps.plan import FILLED

Faults = Iterator[tuple[str, str]]
REMEDY = "decorate the factory with jaxbandits.validation.factory"


def builds(subject: Subject) -> Faults:
    """Factories take named arguments, none is missing, and they return the right NamedTuple, with its arguments in `config`."""
    environment = yield from _part(subject.environment, Environment, "environment")
    for slot in ("reward_adversary", "message_adversary"):
        if getattr(subject, slot) is not None:
            yield from _part(getattr(subject, slot), Adversary, slot)
    if isinstance(subject.algorithm, Algorithm):
        yield "the algorithm is already called: give its factory, or a functools.partial of it", ""
        return
    if environment is None:
        return
    filled = {name: value for name, value in environment.facts.items() if name in FILLED} | {"horizon": subject.horizon}
    algorithm = yield from _part(subject.algorithm, Algorithm, "algorithm", filled)
    if algorithm is not None:
        where = place_of_function(subject.algorithm)
        yield from _algorithm(algorithm, list(signature_of(subject.algorithm)[0]), where)
        yield from _environment(environment, place_of_function(subject.environment))
        subject.plan.cells  # noqa: B018 - they fit each other, or this says why not


def _part(part, kind, what: str, filled=()):
    """Faults of a part's factory; returns what it builds, None where it cannot be called or builds something else."""
    if isinstance(part, kind):
        return part
    where = place_of_function(part)
    if not callable(part):
        yield f"{what} = {part!r} is no factory: give a function of named arguments, or a functools.partial of one", ""
        return None
    names, bound = signature_of(part)
    kinds = {parameter.kind for parameter in names.values()}
    if kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}:
        yield f"{what}: the factory takes *args or **kwargs: name its arguments, they are filled in by name", where
        return None
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        yield f"{what}: the factory takes positional-only arguments: make them keyword-only, a * before them", where
        return None
    needed = [name for name, parameter in names.items() if parameter.default is inspect.Parameter.empty]
    missing = [name for name in needed if name not in bound and name not in filled]
    if missing:
        values = ", ".join(f"{name}=..." for name in missing)
        places = f"; the environment fills in {', '.join(filled)}" if filled else ""
        yield (
            f"{what}: {', '.join(missing)} must be given: functools.partial({name_of_part(part)}, {values}){places}",
            where,
        )
        return None
    built = part(**{name: filled[name] for name in names if name in filled and name not in bound})
    if not isinstance(built, kind):
        yield f"{what}: the factory returned a {type(built).__name__}, not a jaxbandits.protocol.{kind.__name__}", where
        return None
    return built


def _algorithm(algorithm: Algorithm, names: list[str], where: str) -> Faults:
    if not isinstance(algorithm.program, Program):
        yield f"program is a {type(algorithm.program).__name__}, not a jaxbandits.protocol.Program", where
    else:
        functions = ("init", "act", "encode", "update", "relay", "close", "diagnose")
        yield from _functions("program", algorithm.program, functions, where)
    if not isinstance(algorithm.guarantee, Guarantee):
        yield f"guarantee is a {type(algorithm.guarantee).__name__}, not a jaxbandits.protocol.Guarantee", where
    version = algorithm.version
    if not isinstance(version, tuple) or len(version) < 2 or not isinstance(version[0], str):
        yield f"version = {version!r} must be (name, number, static values): results are stored under it", where
    if not isinstance(algorithm.config, dict) or any(name not in algorithm.config for name in names):
        yield f"config does not hold the factory's arguments ({', '.join(names)}): {REMEDY}", where
    yield from _schedule(algorithm.schedule, where)
    yield from _numbers("params", algorithm.params, where)


def _environment(environment: Environment, where: str) -> Faults:
    if not isinstance(environment.world, World):
        yield f"world is a {type(environment.world).__name__}, not a jaxbandits.protocol.World", where
        return
    yield from _functions("world", environment.world, ("init", "observe", "reward", "score", "truth"), where)
    yield from _numbers("the environment's params", environment.params, where)
    arms = environment.facts.get("num_arms")
    if environment.world.num_arms and arms is not None and arms != environment.world.num_arms:
        yield f"facts['num_arms'] = {arms} disagrees with world.num_arms = {environment.world.num_arms}", where


def _functions(what: str, part: Program | World | Attack, names, where: str) -> Faults:
    for name in names:
        if not callable(getattr(part, name)):
            yield f"{what}.{name} = {getattr(part, name)!r} is no function", where


def _schedule(schedule, where: str) -> Faults:
    if not isinstance(schedule, tuple) or not schedule or not all(isinstance(span, Span) for span in schedule):
        yield f"schedule = {schedule!r} must be a tuple of Span, such as (Span(1, horizon),)", where
        return
    for span in schedule:
        whole = all(isinstance(x, Integral | np.integer) for x in (span.slots, span.repeats, span.length))
        if not whole or span.slots < 1 or span.repeats < 0 or span.length < 0:
            yield f"{span} needs integers: slots of at least 1, repeats and length of at least 0", where


def _numbers(what: str, params, where: str) -> Faults:
    for path, leaf in jax.tree_util.tree_flatten_with_path(params, is_leaf=lambda x: x is None)[0]:
        name = what + jax.tree_util.keystr(path)
        is_array = isinstance(leaf, np.ndarray | np.generic | jax.Array) and leaf.dtype.kind in "fiub"
        if not isinstance(leaf, Real) and not is_array:
            message = f"{name} = {leaf!r} must be a number or an array"
            yield f"{message}: what is static (strings, None, functions) is an argument of the builder", where

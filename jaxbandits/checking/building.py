"""The rule about factories: what they take and what they return."""

import inspect
from collections.abc import Generator
from typing import Any

from jaxbandits.checking.findings import Faults, name_of_part, told
from jaxbandits.checking.subject import Subject
from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.source_places import place_of_function
from jaxbandits.sweeps.grid import signature_of
from jaxbandits.sweeps.part_checks.fields import check_algorithm, check_part
from jaxbandits.sweeps.plan import FILLED

REMEDY = "decorate the factory with jaxbandits.validation.factory"


def builds(subject: Subject) -> Faults:
    """Factories can be called, and return the right NamedTuple with its arguments in `config`.

    They take named arguments, and none without a default is missing.
    """
    environment = yield from _part(subject.environment, Environment, "environment")
    others = [environment]
    for slot in ("reward_adversary", "message_adversary"):
        if getattr(subject, slot) is not None:
            others.append((yield from _part(getattr(subject, slot), Adversary, slot)))
    if isinstance(subject.algorithm, Algorithm):
        yield "the algorithm is already called: give its factory, or a functools.partial of it", ""
        return
    if None in others:
        return
    filled = {name: value for name, value in environment.facts.items() if name in FILLED} | {"horizon": subject.horizon}
    algorithm = yield from _part(subject.algorithm, Algorithm, "algorithm", filled)
    if algorithm is not None:
        where = place_of_function(subject.algorithm)
        yield from _stored(algorithm, list(signature_of(subject.algorithm)[0]), where)
        yield from told(subject.label, where, lambda: subject.plan)  # they fit each other, or this says why not


def _part(part: Any, kind: Any, what: str, filled: Any = ()) -> Generator[tuple[str, str], None, Any]:
    """Faults of a part's factory; returns what it builds, None where it cannot be called or builds something else."""
    if isinstance(part, kind):
        return (yield from _well_formed(part, kind, what, part))
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
    return (yield from _well_formed(built, kind, what, part))


def _well_formed(built: Any, kind: Any, what: str, factory: Any) -> Generator[tuple[str, str], None, Any]:
    """What sweeps say of a built part; returns it, None where they would not take it."""
    look: Any = (check_algorithm, built, what, factory) if kind is Algorithm else (check_part, built, kind, factory)
    faults = list(told(what, place_of_function(factory), *look))
    yield from faults
    return None if faults else built


def _stored(algorithm: Algorithm, names: list[str], where: str) -> Faults:
    """What an algorithm is stored and repeated by."""
    version = algorithm.version
    if len(version) < 2:
        yield f"version = {version!r} must be (name, number, static values): results are stored under it", where
    if any(name not in algorithm.config for name in names):
        yield f"config does not hold the factory's arguments ({', '.join(names)}): {REMEDY}", where

"""The rules about what is built and traced, without compiling or playing anything."""

import inspect
import math
import zlib
from collections.abc import Generator
from typing import Any

from jaxbandits.checking.findings import Faults, told
from jaxbandits.checking.subject import SLOTS, Subject
from jaxbandits.environments.data import ORDER
from jaxbandits.protocol import Environment
from jaxbandits.source_places import place_of_function
from jaxbandits.sweeps.arguments import call, factory_of, part_factory, signature_of
from jaxbandits.sweeps.part_checks.fields import check_means
from jaxbandits.sweeps.plan import built, parts_in, with_horizon

REMEDY = "decorate the factory with jaxbandits.validation.factory"
ANY = "*args or **kwargs: name its arguments, they are filled in by name"
UNNAMED = {
    inspect.Parameter.VAR_POSITIONAL: ANY,
    inspect.Parameter.VAR_KEYWORD: ANY,
    inspect.Parameter.POSITIONAL_ONLY: "positional-only arguments: make them keyword-only, a * before them",
}


def builds(subject: Subject) -> Faults:
    """Factories can be called, and return the right NamedTuple with its arguments in `config`.

    They take named arguments, and none without a default is missing.
    """
    parts = {}
    for slot in SLOTS[1:]:
        if getattr(subject, slot) is not None:
            parts[slot] = yield from _built(subject, slot)
    if None in parts.values():
        return
    algorithm, where = (yield from _built(subject, "algorithm", **parts)), place_of_function(subject.algorithm)
    if algorithm is None:
        return
    version, names = algorithm.version, list(signature_of(subject.algorithm)[0])
    if len(version) < 2:
        yield f"version = {version!r} must be (name, number, static values): results are stored under it", where
    if any(name not in algorithm.config for name in names):
        yield f"config does not hold the factory's arguments ({', '.join(names)}): {REMEDY}", where
    yield from told(subject.label, where, lambda: subject.plan)  # they fit each other, or this says why not


def _built(
    subject: Subject, slot: str, environment: Environment | None = None, **others: Any
) -> Generator[tuple[str, str], None, Any]:
    """Faults of a part's factory, as a sweep tells them; returns what it builds, None where that is no such part."""
    part, horizon = getattr(subject, slot), subject.horizon
    where = place_of_function(part)
    given = (part, slot) if environment is None else (part, slot, slot)
    factory = yield from told(subject.label, where, part_factory if environment is None else factory_of, *given)
    if factory is None:
        return None
    for parameter in signature_of(factory)[0].values():
        if parameter.kind in UNNAMED:
            yield f"{slot}: the factory takes {UNNAMED[parameter.kind]}", where
            return None
    if environment is not None:
        return (yield from told(subject.label, where, built, factory, {}, environment, horizon, subject.label))
    factory = factory if slot == "environment" else with_horizon(factory, horizon, slot)
    return (yield from told(subject.label, where, call, factory, slot))


def shapes(subject: Subject) -> Faults:
    """Functions take and return what the contract says, in windows of every size, in float32 and in float64."""
    where = place_of_function(subject.algorithm)
    for dtype, slots in [*(("float32", slots) for slots in subject.sizes), *(("float64", x) for x in subject.sizes)]:
        head = "" if dtype == "float32" else f"with dtype={dtype!r}, "
        faults = [(head + text, place) for text, place in told(subject.label, where, subject.traced, slots, dtype)]
        yield from faults
        if faults:
            return
    if subject.traced(subject.sizes[-1]).counted:
        yield from told(subject.label, where, check_means, subject.cell.environment)


def traces_once(subject: Subject) -> Faults:
    """Equal arguments give the identical Program, so that a sweep over parameters compiles it once."""
    first, second = subject.cell, subject.again().cells[0]
    where = place_of_function(subject.algorithm)
    if first.algorithm.version != second.algorithm.version:
        yield "version differs between two calls with equal arguments: make it of the arguments alone", where
    one, other = parts_in(first, "float32"), parts_in(second, "float32")
    if one != other:
        same = {"Program": one.program == other.program, "World": one.world == other.world}
        names = ", ".join(name for name in same if not same[name])
        yield (
            f"two calls with equal arguments give different functions ({names or 'of an adversary'}), which compiles "
            "anew at every point of a grid: decorate the builder of hashable values with functools.cache",
            where if "Program" in names else place_of_function(subject.environment),
        )


def draws(subject: Subject) -> Faults:
    """Randomness comes from `draws`.

    There are no constant keys, and nothing is drawn while functions are traced, as np.random does.
    """
    yield from dict.fromkeys(doubt for slots in subject.sizes for doubt in subject.traced(slots).doubts)


def addresses(subject: Subject) -> Faults:
    """Within one window no address (path, play, position) is drawn twice, and no two paths share a key."""
    spans = [
        (path, first, first + (1 if shape == "at" else max(math.prod(shape), 1)), place)
        for path, shape, first, place in subject.traced(subject.sizes[-1]).addresses
        if not path.startswith(ORDER)  # a permutation, computed again wherever it is asked for
    ]
    told = set()
    for i, (path, low, high, place) in enumerate(spans):
        for other, other_low, other_high, _ in spans[:i]:
            if path == other and low < other_high and other_low < high and path not in told:
                told.add(path)
                message = f"{path} is drawn twice at one play, so both draws are the same number"
                yield f"{message}: take two children, draws.child('one') and draws.child('other')", place
    keys: dict = {}
    for path, _, _, place in spans:
        other = keys.setdefault(zlib.crc32(path.encode()), path)
        if other != path and path not in told:
            told.add(path)
            yield f"the paths {other} and {path} share a key: rename a child", place

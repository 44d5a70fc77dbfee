"""What a factory takes, from the factory itself: its signature, its checks and its docstring.

Ranges are what its checks asked for while it made a part, static arguments those whose change makes another compiled
program.
"""

import inspect
import math
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.reports.citations import one_line, sections
from jaxbandits.validation import Range, recorded

# arguments that are shapes of what an environment shows, too
SHAPE_ARGUMENTS = ("num_arms", "dim", "num_agents", "num_experts")


class Argument(NamedTuple):
    """An argument of a factory."""

    name: str
    default: Any
    required: bool
    # what the factory's checks ask of it; None: unknown
    range: Range | None
    # whether another value makes another compiled program
    static: bool
    # what the docstring says of it
    text: str


def arguments(factory: Callable[..., Any], part: Algorithm | Environment | Adversary) -> list[Argument]:
    """The arguments of a factory, in the order of its signature. part: one that the factory built."""
    given = {key: value for key, value in part.config.items() if key != "name"}
    with recorded() as ranges:
        factory(**given)
    entries = _entries(factory)
    rows = []
    for key, parameter in inspect.signature(factory).parameters.items():
        if key not in ranges and not isinstance(parameter.default, bool):
            _probe(factory, given, key, ranges)
        required = parameter.default is inspect.Parameter.empty
        rows.append(
            Argument(
                name=key,
                default=None if required else parameter.default,
                required=required,
                range=ranges.get(key),
                static=_marked(key, entries, "[static")
                or key in SHAPE_ARGUMENTS
                or (not _marked(key, entries, "[data]") and _is_static(factory, given, key, part, ranges.get(key))),
                text=entries.get(key, ("", ""))[1],
            )
        )
    return rows


def _probe(factory: Callable[..., Any], given: dict[str, Any], key: str, ranges: dict[str, Range]) -> None:
    """Find the range of an argument that is None in the catalogue, and so was not checked.

    The factory is called with a value that no check accepts; the check's range is recorded before it refuses.
    """
    with recorded() as asked:
        try:
            factory(**given | {key: object()})
        except Exception:  # whatever a factory says of nonsense: the check before it was recorded
            pass
    if key in asked:
        ranges[key] = asked[key]


def _marked(key: str, entries: dict[str, tuple[str, str]], mark: str) -> bool:
    """Whether the docstring says so: [static] fixes the compiled program, [data] does not."""
    return mark in " ".join(entries.get(key, ()))


def _is_static(factory: Callable[..., Any], given: dict[str, Any], key: str, part: Any, asked: Range | None) -> bool:
    """Whether another value makes another compiled program.

    Arrays are data, though their shapes are not. The length of a window, of which there are few, is no program of its
    own.
    """
    if asked is None and not isinstance(given.get(key), bool):
        return False
    programs = [] if given.get(key) is None else [_compiled(part)]
    tried = 0
    for value in _alternatives(given.get(key), asked):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of a value that nobody asked for
                programs.append(_compiled(factory(**given | {key: value})))
            tried += 1
        except (ValueError, TypeError):  # does not fit the other arguments
            continue
    if not tried and asked is not None and asked.kind == "choice":
        return True  # text chooses functions, unless the docstring says otherwise
    return any(program != programs[0] for program in programs)


def _alternatives(value: Any, asked: Range | None) -> list[Any]:
    """Other values of an argument. Ends of a range are left out: zero and infinity may have programs of their own."""
    if asked is None:
        return [not value]
    if asked.kind == "choice":
        return [other for other in asked.values if other != value]
    low = asked.low if math.isfinite(asked.low) else -1.0
    if asked.kind == "integer":
        start = int(low) if value is None else int(value)
        return [start + 1, start + 2, 2 * start + 1]
    if asked.kind == "number":
        high = asked.high if math.isfinite(asked.high) else low + 2.0
        known = isinstance(value, int | float) and math.isfinite(value)
        start = float(value) if known else low + (high - low) / 3
        return [start + (high - start) / 8, start + (low - start) / 8]
    return []


def _compiled(part: Any) -> tuple[Any, ...]:
    """What compiled code is made from: functions and the shapes of their numbers."""
    leaves, tree = jax.tree.flatten(part.params)
    return part[0], tree, [(np.shape(x), np.asarray(x).dtype.kind) for x in leaves]


def summary(factory: Callable[..., Any]) -> str:
    """The first paragraph of a docstring."""
    return one_line(sections(factory.__doc__)[""].partition("\n\n")[0])


def _entries(factory: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    """What a docstring's Parameters say of each argument: its type and its text."""
    entries: dict[str, tuple[str, str]] = {}
    for entry in re.split(r"\n(?=\S)", sections(factory.__doc__).get("Parameters", "").strip()):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        entries |= dict.fromkeys((name.strip() for name in names.split(",")), (one_line(kind), one_line(body)))
    return entries

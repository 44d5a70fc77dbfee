"""What a factory takes, from the factory itself: its signature, its checks and its docstring.

Ranges are what its checks asked for while it made a part, static arguments those whose change makes another compiled program.
"""

import inspect
import math
import re
import sys
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits import algorithms
from jaxbandits.sweeps.plan import FILLED
from jaxbandits.validation import Range, recorded

SHAPES = ("num_arms", "dim", "num_agents", "num_experts")  # of what an environment shows, too


class Argument(NamedTuple):
    """An argument of a factory."""

    name: str
    default: Any
    required: bool
    range: Range | None  # None: unknown
    static: bool
    text: str  # what the docstring says of it


def arguments(factory, part) -> list[Argument]:
    """The arguments of a factory, in the order of its signature. part: one that it made."""
    given = {key: value for key, value in part.config.items() if key != "name"}
    with recorded() as ranges:
        factory(**given)
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
                static=_is_static(factory, given, key, part, ranges.get(key)),
                text=_text_about(key, factory),
            )
        )
    return rows


def _probe(factory, given: dict, key: str, ranges: dict[str, Range]) -> None:
    """The range of an argument that is None in the catalogue, and so was not checked: what is asked of a value that is nothing."""
    with recorded() as asked:
        try:
            factory(**given | {key: object()})
        except Exception:  # whatever a factory says of nonsense: the check before it was recorded
            pass
    if key in asked:
        ranges[key] = asked[key]


def _is_static(factory, given: dict, key: str, part, asked: Range | None) -> bool:
    """Whether another value makes another compiled program, here or, as the docstring marks it, with other arguments.

    Arrays are data, though their shapes are not. The length of a window, of which there are few, is no program of its own.
    """
    text = " ".join(_paragraphs(factory.__doc__))
    if key in SHAPES or re.search(rf"\b{key} (?:(?:>=|<=|>|in )[^;.]*)?\[static", text):
        return True
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
        return True  # text chooses functions
    return any(program != programs[0] for program in programs)


def _alternatives(value, asked: Range | None) -> list:
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


def _compiled(part) -> tuple:
    """What compiled code is made from: functions and the shapes of their numbers."""
    leaves, tree = jax.tree.flatten(part.params)
    return part[0], tree, [(np.shape(x), np.asarray(x).dtype.kind) for x in leaves]


def _paragraphs(text: str | None) -> list[str]:
    """A docstring's paragraphs as single lines, without its examples."""
    clean = inspect.cleandoc(text or "").partition(">>>")[0]
    return [" ".join(paragraph.split()) for paragraph in clean.split("\n\n") if paragraph.strip()]


def summary(factory) -> str:
    """The first paragraph of a docstring."""
    return next(iter(_paragraphs(factory.__doc__)), "")


def _clauses(factory) -> list[str]:
    """A docstring cut at full stops and semicolons outside of brackets, the summary last."""
    first, *others = _paragraphs(factory.__doc__) or [""]
    clauses = []
    for paragraph in [*others, first]:
        depth, start = 0, 0
        paragraph = re.sub(r"\bSource: .*", "", paragraph)
        for place, letter in enumerate(paragraph):
            depth += (letter in "([") - (letter in ")]")
            if letter in ".;" and depth <= 0 and re.match(r"\s+[\w`(]", paragraph[place + 1 :]):
                clauses.append(paragraph[start:place])
                start = place + 1
        clauses.append(paragraph[start:])
    return [clause.strip().rstrip(";.") for clause in clauses]


def _text_about(key: str, factory) -> str:
    """The clause of a docstring that defines an argument, its own or that of a part which it refers to, else the first that names it.

    Nothing where that is no more than the range. What a run fills in is not explained by clauses about other arguments.
    """
    beginning, definition, mention = (
        re.compile(pattern)
        for pattern in (rf"^{key}\b", rf"(?<![\w.]){key}`?(?:,| and | >| <| in |:| \[| \")", rf"(?<![\w.]){key}(?!\w)")
    )
    own, referred = _clauses(factory), [clause for other in _referred(factory, key) for clause in _clauses(other)]
    searches = [
        (own, beginning), (referred, beginning), (own, definition), (referred, definition), (own, mention), (referred, mention),
    ]  # fmt: skip
    if key in (*FILLED, "horizon"):
        searches = searches[:2]
    text = next((clause for clauses, pattern in searches for clause in clauses if pattern.search(clause)), "")
    only_range = rf"{key}:? (?:(?:>=|<=|>|<) [\w.^/-]+|in [\[(][^\])]*[\])])(?: \[static\])?"
    return "" if re.fullmatch(only_range, text) else text


def _referred(factory, key: str) -> list:
    """The algorithms that a docstring names, and those that theirs name, which take an argument."""
    waiting, found = [factory], []
    while waiting:
        for name in re.findall(r"`(\w+)`", waiting.pop(0).__doc__ or ""):
            other = getattr(algorithms, name) if name in algorithms.__all__ else factory
            if other is not factory and other not in found and key in inspect.signature(other).parameters:
                found.append(other)
                waiting.append(other)
    return found


def paper(factory) -> str:
    """What a docstring cites: its source where that names a year, else the module's first sentence where it cites; else nothing."""
    source = re.search(r"Source: (.*?)(?: Draws: .*)?$", " ".join(_paragraphs(factory.__doc__)))
    cited = re.compile(r"\b(19|20)\d\d\b|\"|et al\.")
    if source and re.search(r"\b(19|20)\d\d\b", source[1]):
        return source[1].rstrip(".")
    for paragraph in _paragraphs(sys.modules[factory.__module__].__doc__):
        if cited.search(paragraph):
            return re.split(r" (?:Axes|Draws)\b", paragraph)[0].rstrip(".")
    return source[1].rstrip(".") if source else ""

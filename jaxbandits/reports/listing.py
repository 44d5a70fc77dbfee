"""What a part takes and what it reads: `jaxbandits list`, and the table of algorithms in the documentation.

Nothing here is written down a second time: arguments are the factory's signature, their ranges what its checks asked for while it
made the catalogue's case, static ones those whose change makes another program, and the rest is what the part itself declares.
"""

import difflib
import functools
import inspect
import json
import math
import re
import sys
import textwrap
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits import adversaries, algorithms, catalogue, environments, papers
from jaxbandits.protocol import Adversary, Algorithm, Environment, Rewards
from jaxbandits.selection import markdown as cells
from jaxbandits.sweeps.beliefs import FATES, interval
from jaxbandits.sweeps.grid import signature_of
from jaxbandits.sweeps.plan import FILLED
from jaxbandits.sweeps.results import jsonable
from jaxbandits.validation import Range, recorded

KINDS = {"algorithms": algorithms, "environments": environments, "adversaries": adversaries}
# the argument that says what an algorithm plays on, in this order
STRUCTURES = {"num_agents": "federated", "num_experts": "experts", "actions": "linear", "dim": "contextual"}
SHAPES = ("num_arms", "dim", "num_agents", "num_experts")  # of what an environment shows, too
WIDTH = 110


class Argument(NamedTuple):
    """An argument of a factory."""

    name: str
    default: Any
    required: bool
    range: Range | None  # None: unknown
    static: bool
    text: str  # what the docstring says of it


def names(kind: str) -> list[str]:
    """The parts of a kind, in the order of the documentation."""
    return list(KINDS[kind].__all__)


def kind_of(name: str) -> str:
    """The kind of a part. ValueError, with the nearest names, where there is none of that name."""
    for kind in KINDS:
        if name in names(kind):
            return kind
    known = [*KINDS, "papers", *(name for kind in KINDS for name in names(kind)), *papers.known()]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f" (did you mean {', '.join(map(repr, near))}?)" if near else ""
    raise ValueError(f"there is nothing called {name!r}{hint}: `jaxbandits list` names all there is")


def example(name: str) -> Algorithm | Environment | Adversary:
    """A part as the catalogue makes it."""
    kind = kind_of(name)
    if kind == "algorithms":
        return catalogue.case(name)[0]
    if kind == "environments":
        return catalogue.ENVIRONMENTS[name].environment()
    row = catalogue.ADVERSARIES[name]
    return (row.reward_adversary or row.message_adversary)()


def arguments(name: str) -> list[Argument]:
    """The arguments of a part, in the order of its signature."""
    factory, part = getattr(KINDS[kind_of(name)], name), example(name)
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


def structure(name: str) -> str:
    """What an algorithm plays on: "arms", "losses", "experts", "contextual", "linear" or "federated"."""
    known = inspect.signature(getattr(algorithms, name)).parameters
    for argument, kind in STRUCTURES.items():
        if argument in known:
            return kind
    return "losses" if "losses" in catalogue.case(name)[1].facts else "arms"


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


def record(name: str) -> dict:
    """All that is known of a part, as JSON: infinities are the texts "inf" and "-inf", as in a result's configuration."""
    factory, part, rows = getattr(KINDS[kind_of(name)], name), example(name), arguments(name)
    found: dict[str, Any] = {
        "name": name,
        "summary": summary(factory),
        "arguments": [
            {
                "name": row.name, "default": row.default, "range": _range_record(row.range), "static": row.static,
                "required": row.required, "text": row.text,
            }
            for row in rows
        ],
        "static": [row.name for row in rows if row.static],
        "paper": paper(factory),
    }  # fmt: skip
    if isinstance(part, Algorithm):
        claim = part.guarantee
        found |= {
            "model": claim.model,
            "unit": None if claim.model == "none" else claim.unit,
            "structure": structure(name),
        }
        found["rewards"] = None if part.rewards is None else part.rewards._asdict()
    return jsonable(found)


def _range_record(asked: Range | None) -> dict | None:
    if asked is None:
        return None
    if asked.kind == "choice":
        return {"kind": asked.kind, "values": list(asked.values)}
    return {key: value for key, value in asked._asdict().items() if key != "values"}


def listed(what: str | None) -> str:
    """What `jaxbandits list WHAT` prints. ValueError where nothing is called so."""
    if what is None:
        return "\n".join(overview(kind) for kind in (*KINDS, "papers"))
    if what in KINDS or what == "papers":
        return overview(what)
    studies = papers.known()
    return f"{what}: {studies[what].title} ({studies[what].source})" if what in studies else page(what)


def as_json(what: str | None) -> str:
    """A part, or the list of a kind's parts, as JSON. ValueError for anything else.

    >>> json.loads(as_json("kl_ucb"))["rewards"]
    {'low': 0.0, 'high': 1.0, 'outside': 'clip'}
    """
    if what is None or what == "papers" or what in papers.known():
        raise ValueError(f"--json lists {', '.join(KINDS)}, or one of them by name: name it before --json")
    found = [record(name) for name in names(what)] if what in KINDS else record(what)
    return json.dumps(found, indent=2, allow_nan=False)


def reading(rewards: Rewards | None) -> str:
    """The rewards an algorithm reads, in a few words.

    >>> reading(Rewards(0.0, 1.0, "clip")), reading(Rewards())
    ('[0, 1], clipped', 'any')
    """
    if rewards is None:
        return "not declared"
    if math.isinf(rewards.low) and math.isinf(rewards.high):
        return "any"
    outside = {"clip": ", clipped", "zero": ", else 0", "accept": ""}[rewards.outside]
    return interval(rewards.low, rewards.high) + outside


def overview(kind: str) -> str:
    """The parts of a kind, a line each: name, the rewards that an algorithm reads, first line of the docstring."""
    lines = [f"{kind}:"]
    if kind == "papers":
        return "\n".join(lines + [f"  {name:36s} {study.title}" for name, study in papers.known().items()])
    for name in names(kind):
        column = f"{reading(catalogue.case(name)[0].rewards):16s} " if kind == "algorithms" else ""
        first = (getattr(KINDS[kind], name).__doc__ or "").strip().splitlines()[0]
        lines.append(f"  {name:24s} {column}{first}")
    return "\n".join(lines)


def page(name: str) -> str:
    """All that is known of a part, as text."""
    factory, part, rows = getattr(KINDS[kind_of(name)], name), example(name), arguments(name)
    facts = {}
    if isinstance(part, Algorithm):
        claim = part.guarantee
        unit = f", neighbours differ in one {claim.unit.replace('_', ' ')}"
        bound = signature_of(catalogue.ALGORITHMS[name].algorithm)[1]
        facts["plays on"] = structure(name)
        # rewards and privacy may depend on arguments: they are this one's
        facts["example"] = f"{name}({', '.join(f'{key}={_short(value)}' for key, value in bound.items())})"
        facts["rewards"] = reading(part.rewards)
        if part.rewards is not None and facts["rewards"] != "any":
            facts["rewards"] = f"{interval(part.rewards.low, part.rewards.high)}, {FATES[part.rewards.outside]}"
        facts["privacy"] = claim.model + ("" if claim.model == "none" else unit)
    facts["static"] = ", ".join(row.name for row in rows if row.static)
    facts["paper"] = paper(factory)
    lines = [*textwrap.wrap(f"{name}: {summary(factory)}", WIDTH), ""]
    for title, text in facts.items():
        if text:
            lines += textwrap.wrap(text, WIDTH, initial_indent=f"{title:10s}", subsequent_indent=" " * 10)
    lines += ["", "arguments:"]
    shown: dict[str, str] = {}  # clauses that speak of several arguments, with the first of them
    for row in rows:
        if row.required:
            default = "from the run" if row.name in (*FILLED, "horizon") else "required"
        else:
            default = f"default {_short(row.default)}"
        about = [text for text in (default, range_text(row.range), "static" if row.static else "") if text]
        lines += textwrap.wrap(f"{row.name}: {', '.join(about)}", WIDTH, initial_indent="  ", subsequent_indent=" " * 6)
        text = f"see {shown[row.text]}" if row.text in shown else row.text
        lines += textwrap.wrap(text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
        if row.text:
            shown.setdefault(row.text, row.name)
    return "\n".join(lines)


def _short(value) -> str:
    """A value as one would write it."""
    if isinstance(value, functools.partial):
        bound = "".join(f", {key}={_short(inner)}" for key, inner in value.keywords.items())
        return f"partial({_short(value.func)}{bound})"
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return getattr(value, "__name__", None) or repr(value)


def range_text(asked: Range | None) -> str:
    """A range in words.

    >>> range_text(Range("integer", 2)), range_text(Range("number", 0.0, 1.0, open_low=True))
    ('integer >= 2', 'in (0, 1]')
    """
    if asked is None:
        return ""
    if asked.kind == "choice":
        return "one of " + ", ".join(map(repr, asked.values))
    low, high = math.isfinite(asked.low), math.isfinite(asked.high)
    if low and high:
        ends = f"in {'(' if asked.open_low else '['}{asked.low:g}, {asked.high:g}{')' if asked.open_high else ']'}"
    elif low:
        ends = f"{'>' if asked.open_low else '>='} {asked.low:g}"
    elif high:
        ends = f"{'<' if asked.open_high else '<='} {asked.high:g}"
    else:
        return asked.kind
    return ends if asked.kind == "number" else f"{asked.kind} {ends}"


def markdown() -> str:
    """The algorithms with what they play on, the rewards they read and their privacy, as in the documentation."""
    rows = [["algorithm", "plays on", "rewards read", "privacy"]]
    for name in names("algorithms"):
        part = catalogue.case(name)[0]
        rows.append([f"`{name}`", structure(name), reading(part.rewards), part.guarantee.model])
    return f"{cells(rows)}\n"

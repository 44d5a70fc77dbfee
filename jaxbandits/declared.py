"""Arguments declared once: type, range and default in the signature, what they mean in the docstring.

    def ucb1(*, num_arms: NumArms, horizon: Horizon, bonus_scale: Annotated[Scalar, Ge(0)] = 1.0) -> Algorithm:
        \"""Play the arm of largest index.

        bonus_scale: Multiplies the bonus.
        \"""

From that follow the check and its message (`validation.factory`, `validation.checked`), the docstring's Parameters,
Returns and Raises as users see them, and the ranges and static marks of `jaxbandits list`. Ranges are annotated-types'
and texts annotated-doc's `Doc`; a module takes all words of a declaration from here. What means the same in many
functions has a name for its annotation and text, such as `NumArms`; a text of one line may stand there too. Several
arguments that go together are a TypedDict, `**given: Unpack[Group]`. The decorator's `source` becomes the References,
and an example at the end of the docstring needs no title. A paragraph that begins with an argument's name and a colon
becomes an entry of the Parameters, one that begins with `Returns:`, `Raises:`, `Warns:`, `Notes:` or `Warnings:` that
section. A type that no annotation tells stands in between: `x (array of shape [n]): ...`.
"""

import functools
import inspect
import itertools
import math
import operator
import re
import textwrap
from collections.abc import Callable, Container
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NoReturn,
    NotRequired,
    Required,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

from jaxbandits.typing import AlgorithmFactory, Array, Scalar

STATIC = "static"  # a mark: another value makes another compiled program. Booleans and texts to choose from do anyway
HOST = "host"  # a mark: it does not, though it is a boolean or a text, since the host alone reads it
LATER = "later"  # a mark: the function itself checks it, since its range depends on other arguments
TRACED = "traced"  # a mark: a number, which is checked, or a traced one, whose value cannot be seen
Documented = TypeVar("Documented", bound=Callable[..., Any])
REQUIRED: Any = inspect.Parameter.empty
WIDTH = 108  # characters of a generated line of a docstring
# What a play shows an algorithm, and what `jaxbandits list` calls it
PLAYS_ON = {
    "arms": "arms", "decision set": "contextual", "fixed set": "linear", "advice": "experts", "agents": "federated",
}  # fmt: skip
# the argument that says so where a factory does not, in this order
TOLD_BY = {"num_agents": "agents", "num_experts": "advice", "actions": "fixed set", "dim": "decision set"}
UNIONS = (Union, UnionType)
NUMBER_TYPES = (float, np.floating[Any], np.integer[Any])  # of which `Scalar` is made
TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)  # of a docstring's section
SHORT_TITLE = re.compile(r"(Returns|Raises|Warns|Notes|Warnings)(?: \((.*?)\))?: ")  # and how it begins without a rule
RAISED = {"Raises": "ValueError", "Warns": "UserWarning"}
SHORT_ENTRY = re.compile(r"^(\w+(?:, \w+)*)(?: \((.*?)\))?: +", re.MULTILINE)


class Range(NamedTuple):
    """What an argument may be."""

    kind: str  # "number" | "integer" | "choice" | "array"
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    values: tuple[Any, ...] = ()  # of a choice

    def sentence(self, infinite: bool) -> str:
        """The range in a docstring; empty where there is no end or the type says it. infinite: infinity is inside."""
        if self.kind == "choice" or (math.isinf(self.low) and math.isinf(self.high)):
            return ""
        if math.isinf(self.high) and not infinite:
            return f"{'Greater than' if self.open_low else 'At least'} {self.low:g}."
        high = self.high if self.kind == "integer" else f"{self.high:g}"
        return f"In {'(' if self.open_low else '['}{self.low:g}, {high}{')' if self.open_high else ']'}."


class Default(NamedTuple):
    """The default of an argument of a TypedDict, which has no place for one."""

    value: Any


class Remedy(NamedTuple):
    """What the message about a wrong value says at its end."""

    text: str


class Axes(NamedTuple):
    """An array with so many axes; the range is that of its entries."""

    number: int
    words: str = ""  # what docstrings call it, such as "array of float [K]"


class Kind(NamedTuple):
    """What docstrings call the type, where the words for the annotation would not do."""

    words: str


class Argument(NamedTuple):
    """What a declaration says of an argument."""

    name: str
    hint: Any  # the annotation without marks
    default: Any  # REQUIRED where there is none
    marks: tuple[Any, ...]
    range: Range | None
    static: bool
    kind: str  # the type in words
    text: str  # what it means, in one or several paragraphs

    def mark(self, kind: type) -> Any:
        """The last mark of a kind, None where there is none."""
        return next((mark for mark in reversed(self.marks) if isinstance(mark, kind)), None)

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def kinds(self) -> list[Any]:
        """The types it may have but None, and but arrays where it may be traced."""
        return _alternatives(self.hint, TRACED in self.marks)

    @property
    def checked(self) -> bool:
        """Whether its declaration asks anything of a value."""
        return LATER not in self.marks and (self.range is not None or self.kinds == [bool])

    @property
    def infinite(self) -> bool:
        """Whether infinity is inside the range."""
        return any(isinstance(mark, Le) and mark.le == math.inf for mark in self.marks)

    @property
    def remedy(self) -> str:
        return getattr(self.mark(Remedy), "text", "")

    @property
    def about(self) -> str:
        """What it means, with its range and whether it is static or may be traced."""
        said = "" if self.range is None else self.range.sentence(self.infinite)
        last = "[static]" if self.static else "It may be traced." if TRACED in self.marks else ""
        first, *others = self.text.split("\n\n")
        return "\n\n".join([" ".join(filter(None, (first, said, last))), *others])

    @property
    def entry(self) -> str:
        """Its entry of a docstring's Parameters."""
        after = (
            ""
            if self.required
            else ", optional"
            if self.default is None
            else f", default {_repr_or_name(self.default)}"
        )
        paragraphs = [textwrap.fill(" ".join(text.split()), WIDTH - 4) for text in self.about.split("\n\n")]
        return f"{self.name} : {self.kind}{after}\n" + textwrap.indent("\n\n".join(paragraphs), "    ")


class Example(NamedTuple):
    """A small run: a part's case in the catalogue."""

    arguments: dict[str, Any] = {}  # noqa: RUF012 (never written into); a factory stands by its name, or {"name": ...}
    # one of the catalogue's: a name, or a name and arguments in place of its own; None: what the algorithm plays on
    world: str | tuple[str, dict[str, Any]] | None = None
    horizon: int = 96
    reward_adversary: dict[str, Any] | None = None
    message_adversary: dict[str, Any] | None = None


def plays_on_by_names(names: Container[str]) -> str:
    """What an algorithm plays on that has arguments of these names, and does not say so itself."""
    return next((kind for name, kind in TOLD_BY.items() if name in names), "arms")


def declaration(function: Callable[..., Any]) -> dict[str, Argument]:
    """The arguments of a function by name, those of a TypedDict at the place of its `**`.

    >>> def index(*, scale: Annotated[Scalar, Ge(0), Doc("Multiplies the bonus.")] = 1.0) -> None: ...
    >>> print(declaration(index)["scale"].entry)
    scale : float, default 1.0
        Multiplies the bonus. At least 0.
    """
    hints, found = hints_of(function), dict[str, Argument]()
    groups = [get_args(hint)[0] for hint in hints.values() if get_origin(hint) is Unpack]
    texts = _texts(function, {*function.__annotations__}.union(*map(_members, groups)))
    for name, parameter in inspect.signature(function).parameters.items():
        if get_origin(hints.get(name)) is Unpack:
            (group,) = get_args(hints[name])
            # of the group alone: Python 3.11 does not know its bases, whose members say with `Doc` what they mean
            about, members = _texts(group, _members(group)), get_type_hints(group, include_extras=True)
            found |= {key: _argument(key, hint, REQUIRED, about | texts) for key, hint in members.items()}
        else:
            written = Any if parameter.annotation is parameter.empty else parameter.annotation
            found[name] = _argument(name, hints.get(name, written), parameter.default, texts)
            if parameter.kind is parameter.VAR_KEYWORD:
                found[name] = found[name]._replace(name=f"**{name}")
    return found


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function; as they are written where a name is imported for type checkers alone."""
    found: dict[str, Any] = {}
    names = getattr(inspect.unwrap(function), "__globals__", {})
    for name, annotation in function.__annotations__.items():
        one = SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= get_type_hints(one, names, include_extras=True)
        except (NameError, TypeError):  # of an alias at least its marks are known
            found[name] = names.get(annotation, annotation) if isinstance(annotation, str) else annotation
    return found


def _argument(name: str, annotation: Any, default: Any, texts: dict[str, tuple[str, str]]) -> Argument:
    """What an annotation and the texts of a docstring declare."""
    hint, marks = _split_marks(annotation)
    default = next((mark.value for mark in marks if isinstance(mark, Default)), default)
    kinds = _alternatives(hint, TRACED in marks)
    options = tuple(option for kind in kinds if get_origin(kind) is Literal for option in get_args(kind))
    static = STATIC in marks or ((bool(options) or kinds == [bool]) and HOST not in marks)
    found = Argument(name, hint, default, marks, Range("choice", values=options) if options else None, static, "", "")
    doc = found.mark(Doc)
    kind, text = texts.get(name, ("", inspect.cleandoc(doc.documentation) if doc else ""))
    axes = found.mark(Axes)
    called = getattr(found.mark(Kind), "words", "") or getattr(axes, "words", "")
    found = found._replace(kind=kind or called or _in_words(kinds), text=text)
    numeric = bool(marks) and all(kind in (int, *NUMBER_TYPES) for kind in kinds)
    if options or not (numeric or axes):
        return found
    asked = "array" if axes else "integer" if kinds == [int] else "number"
    low, high = (found.mark(Gt) or found.mark(Ge)), (found.mark(Lt) or found.mark(Le))
    ends = [infinite if end is None else getattr(end, type(end).__name__.lower())
            for end, infinite in ((low, -math.inf), (high, math.inf))]  # fmt: skip
    bottom, top = ends if asked == "integer" else map(float, ends)
    return found._replace(range=Range(asked, bottom, top, isinstance(low, Gt), isinstance(high, Lt)))


def _split_marks(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """An annotation and its marks, those inside a union among them."""
    if get_origin(annotation) in (Required, NotRequired):
        return _split_marks(get_args(annotation)[0])
    if get_origin(annotation) is Annotated:
        hint, *marks = get_args(annotation)
        hint, inner = _split_marks(hint)
        return getattr(hint, "__forward_arg__", hint), (*inner, *marks)
    if get_origin(annotation) not in UNIONS:
        return annotation, ()
    hints, marked = zip(*map(_split_marks, get_args(annotation)), strict=True)
    return functools.reduce(operator.or_, hints), tuple(mark for marks in marked for mark in marks)


def _alternatives(hint: Any, traced: bool = False) -> list[Any]:
    """The types of a union but None, or the one type; traced: arrays are left out too."""
    left_out = (NoneType, Array) if traced else (NoneType,)
    return [kind for kind in get_args(hint) if kind not in left_out] if get_origin(hint) in UNIONS else [hint]


def _in_words(kinds: list[Any]) -> str:
    """Types as docstrings name them: numbers of any kind are floats, texts to choose from stand in braces."""
    words = []
    for kind in kinds:
        if get_origin(kind) is Literal:
            words.append(f"{{{', '.join(map(_repr_or_name, get_args(kind)))}}}")
        else:
            words.append(
                "float" if kind in NUMBER_TYPES else "callable" if get_origin(kind) is Callable else _type_name(kind)
            )
    return " or ".join(dict.fromkeys(words))


def _type_name(kind: Any) -> str:
    if hasattr(kind, "dim_str"):  # of jaxtyping
        return f"{kind.__name__.partition('[')[0].lower()} array of shape [{', '.join(kind.dim_str.split())}]"
    name = getattr(get_origin(kind) or kind, "__name__", str(kind))
    return name.rpartition(".")[2].replace("ndarray", "array")


def _repr_or_name(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else getattr(value, "__name__", repr(value))


# ---- docstrings


def sections(text: str | None) -> dict[str, str]:
    """The sections of a numpydoc docstring by title, "" for what stands first. An example at the end needs no title."""
    clean = inspect.cleandoc(text or "")
    if "\nExamples\n---" not in clean:
        clean = re.sub(r"\n\n(?=>>> )", "\n\nExamples\n--------\n", clean, count=1)
    first, *others = TITLE.split(clean)
    return {"": first} | dict(zip(others[::2], others[1::2], strict=True))


def _in_full(text: str | None, names: Container[str]) -> str:
    """A docstring with numpydoc's rules and types where its sections are short ones; names: the arguments'."""

    def names_arguments(entry: re.Match[str] | None) -> bool:
        return entry is not None and all(name in names for name in entry[1].split(", "))

    def in_full(entry: re.Match[str]) -> str:
        return f"{entry[1]}{f' : {entry[2]}' if entry[2] else ''}\n    " if names_arguments(entry) else entry[0]

    blocks, inside = [], False
    for block in inspect.cleandoc(text or "").split("\n\n"):
        title, begins = SHORT_TITLE.match(block), names_arguments(SHORT_ENTRY.match(block))
        if title:
            kind, body = title[2] or RAISED.get(title[1], ""), block[title.end() :]
            body = f"{kind}\n{textwrap.indent(body, '    ')}" if kind else body
            block = f"{title[1]}\n{'-' * len(title[1])}\n{body}"
        elif begins or (inside and block.startswith("    ")):
            rule = "" if inside else "Parameters\n----------\n"
            block = rule + SHORT_ENTRY.sub(in_full, block)
        inside = begins or (inside and block.startswith("    "))
        blocks.append(block)
    return "\n\n".join(blocks)


def with_sections(x: Documented) -> Documented:
    """Decorate a function or a NamedTuple that declares nothing: its docstring may have short sections too."""
    x.__doc__ = _in_full(x.__doc__, inspect.signature(x).parameters)
    return x


def _members(group: Any) -> frozenset[str]:
    """The keys of a TypedDict and its bases."""
    members: frozenset[str] = group.__required_keys__ | group.__optional_keys__
    return members


def _texts(function: Any, names: Container[str]) -> dict[str, tuple[str, str]]:
    """What a docstring's Parameters say of each argument: its type, where it is written there, and its text."""
    found: dict[str, tuple[str, str]] = {}
    written = sections(_in_full(function.__doc__, names)).get("Parameters", "")
    for entry in re.split(r"\n(?=\S)", written.strip("\n")):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        found |= {name.strip(): (kind, inspect.cleandoc(body)) for name in names.split(",")}
    return found


def write_docstring(
    function: Callable[..., Any], rows: dict[str, Argument], source: str = "", raises: str | None = None
) -> str | None:
    """A function's docstring with all sections that its declaration gives, and the import of `jb` for its example.

    Those are Parameters, Returns, Raises and, from `source`, References. raises: when there is a ValueError; None: for
    arguments that are checked.
    """
    if not function.__doc__:
        return None
    if raises is None:
        raises = "For an argument outside its range." if any(row.checked for row in rows.values()) else ""
    found = sections(_in_full(function.__doc__, rows))
    found.pop("Parameters", None)
    entries = itertools.groupby(rows.values(), lambda row: row.entry.partition(" : ")[2])
    example = found.pop("Examples", "").strip("\n")
    if "jb." in example and "jaxbandits" not in example:
        example = f">>> import jaxbandits as jb\n{example}"
    written = {
        "": found.pop(""),
        "Parameters": "\n".join(f"{', '.join(row.name for row in same)} : {about}" for about, same in entries),
        "Returns": _returns_section(function, found.pop("Returns", "")),
        "Raises": found.pop("Raises", f"ValueError\n    {raises}" if raises else ""),
        **found,
        "References": textwrap.fill(source, WIDTH, break_on_hyphens=False) or found.get("References", ""),
        "Examples": example,
    }
    written = {title: text for title, text in written.items() if text}
    rule = {title: f"{title}\n{'-' * len(title)}\n" if title else "" for title in written}
    return "\n\n".join(rule[title] + text.strip("\n") for title, text in written.items()) + "\n"


def _returns_section(function: Callable[..., Any], written: str) -> str:
    """A Returns: as written, typed; else the annotation's text, for an algorithm no guarantee, or the summary."""
    hint, marks = _split_marks(hints_of(function).get("return", Any))
    if hint is NoReturn or "\n    " in written:
        return written
    kind, summary = _in_words(_alternatives(hint)), sections(function.__doc__)[""].partition("\n\n")[0]
    default = "Without a privacy guarantee." if kind == "Algorithm" else summary
    doc = written or next((mark.documentation for mark in marks if isinstance(mark, Doc)), default)
    return f"{kind}\n" + textwrap.indent(textwrap.fill(" ".join(doc.split()), WIDTH - 4), "    ")


# ---- arguments that many factories share

Positive = Annotated[Scalar, Gt(0)]
NonNegative = Annotated[Scalar, Ge(0)]
Probability = Annotated[Scalar, Ge(0), Le(1)]
Inside = Annotated[Scalar, Gt(0), Lt(1)]  # between 0 and 1, without the ends
Share = Annotated[Scalar, Ge(0), Lt(0.5)]  # of contaminated rewards or attackers: less than half
NumArms = Annotated[int, Ge(2), STATIC, Doc("Number of arms K. Filled in from the environment.")]
Dim = Annotated[int, Ge(1), STATIC, Doc("Features d of an arm. Filled in from the environment.")]
NumAgents = Annotated[int, Ge(1), STATIC, Doc("Number of agents N. Filled in from the environment.")]
NumExperts = Annotated[int, Ge(2), STATIC, Doc("Number of experts N. Filled in from the environment.")]
Base = Annotated[AlgorithmFactory, STATIC]  # of a conversion: a factory of algorithms, or a partial of one
Horizon = Annotated[int, Ge(1), Doc("Number of plays T. Filled in from the run.")]
Budget = Annotated[Scalar, Gt(0), Le(math.inf), Doc("Privacy budget; at inf there is no noise.")]
Epsilon = Annotated[Budget, Remedy("use float('inf') for no noise")]
ClaimedDelta = Annotated[Inside, Doc("Of the claim in (epsilon, delta). The default: min(1e-5, 1 / horizon).")]
StatedDelta = Annotated[
    Inside,
    Doc("""At which `guarantee.spend` states the claim in (epsilon, delta). It changes no action. The default: min(1e-5,
        1 / horizon)."""),
]
FailureProb = Annotated[
    Inside, Doc("Probability with which the confidence intervals may fail. The default: 1 / horizon.")
]
FeatureNorm = Annotated[Scalar, Gt(0), Doc("The largest norm L of a feature.")]
Delta = Annotated[Scalar, Gt(0), Lt(1), Doc("Failure probability of the privacy claim.")]

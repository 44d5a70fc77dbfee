"""Arguments declared once: type, range and default in the signature, what they mean in the docstring.

    def ucb1(*, num_arms: NumArms, horizon: Horizon, bonus_scale: Annotated[Scalar, Ge(0)] = 1.0) -> Algorithm:
        \"""Play the arm of largest index.

        Args:
            bonus_scale: Multiplies the bonus.
        \"""

From that follow the check and its message (`validation.factory`, `validation.declare`), the docstring's Parameters,
Returns and Raises as users see them, and the ranges and static marks of `jaxbandits list`. Ranges are annotated-types'
and texts annotated-doc's `Doc`; a module takes all words of a declaration from here. What means the same in many
functions has a name for its annotation and text, such as `NumArms`; a text of one line may stand there too. Several
arguments that go together are a TypedDict, `**given: Unpack[Group]`. Docstrings have Google's sections, which editors
read; users see numpydoc's (`SECTIONS`). A type that no annotation tells is written, and stands as it is:
`x (array of shape [n], optional): ...`. The decorator's `source` becomes the References, and an example at the end of
the docstring needs no title.
"""

import ast
import builtins
import functools
import inspect
import itertools
import math
import operator
import re
import sys
import textwrap
import typing
from collections.abc import Callable, Container
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, Unpack, get_args, get_origin, get_type_hints

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt
from docstring_parser.google import GoogleParser, Section, SectionType

from jaxbandits import typing as array_types
from jaxbandits.formatting import brackets, end_of_range
from jaxbandits.typing import AlgorithmFactory, Array, Scalar

STATIC = "static"  # a mark: another value makes another compiled program. Booleans and texts to choose from do anyway
HOST = "host"  # a mark: it does not, though it is a boolean or a text, since the host alone reads it
LATER = "later"  # a mark: the function itself checks it, since its range depends on other arguments
TRACED = "traced"  # a mark: a number, which is checked, or a traced one, whose value cannot be seen
REQUIRED: Any = inspect.Parameter.empty
WIDTH = 108  # characters of a generated line of a docstring
# What a play shows an algorithm, and what `jaxbandits list` calls it
PLAYS_ON = {
    "arms": "arms", "row": "rows", "decision set": "contextual", "fixed set": "linear", "advice": "experts",
    "agents": "federated",
}  # fmt: skip
# the argument that says so where a factory does not, in this order
TOLD_BY = {"num_agents": "agents", "num_experts": "advice", "actions": "fixed set", "dim": "decision set"}
UNIONS = (typing.Union, UnionType)
NUMBER_TYPES = (float, np.floating[Any], np.integer[Any])  # of which `Scalar` is made
TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)  # of numpydoc's sections
# Google's sections, by what numpydoc calls them and help() shows: lists of entries, and prose
LISTS = {"Args": "Parameters", "Raises": "Raises", "Warns": "Warns"}
PROSE = {"Returns": "Returns", "Note": "Notes", "Warning": "Warnings", "References": "References"}
_KINDS = ((LISTS, SectionType.MULTIPLE), (PROSE, SectionType.SINGULAR))
SECTIONS = GoogleParser([Section(title, name, kind) for titles, kind in _KINDS for title, name in titles.items()])


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
            return f"{'Greater than' if self.open_low else 'At least'} {end_of_range(self.low)}."
        return f"In {brackets(self.low, self.high, end_of_range, open_low=self.open_low, open_high=self.open_high)}."


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
    after: str  # and what stands behind it: ", optional" or the default
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
        return _entry(f"{self.name} : {self.kind}{self.after}", "\n\n".join(map(_fill, self.about.split("\n\n"))))


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


class Docstring(NamedTuple):
    """A docstring, taken apart."""

    prose: str
    # argument -> its type, where it is written, and its text
    arguments: dict[str, tuple[str, str]]
    # numpydoc's title -> text
    sections: dict[str, str]


class NamedParameter(inspect.Parameter):
    """A parameter that is shown with the names of its types: `epsilon: Scalar`."""

    def __str__(self) -> str:
        hint = Words(words_of_hint(self.annotation))
        return str(inspect.Parameter(self.name, self.kind, default=self.default, annotation=hint))

    def _format(self, **_: object) -> str:  # what Python 3.14 asks
        return str(self)


class NamedSignature(inspect.Signature):
    """A signature that is shown with the names of its types."""

    def __str__(self) -> str:
        returned = self.return_annotation
        returned = returned if returned is self.empty else Words(words_of_hint(returned))
        return str(inspect.Signature([*self.parameters.values()], return_annotation=returned))

    def format(self, **_: object) -> str:  # what pydoc of Python 3.13 asks
        return str(self)


class Words(str):
    """A text that is shown without quotes."""

    __repr__ = str.__str__


@functools.cache
def named_unions() -> dict[str, tuple[Any, ...]]:
    """The unions that `jaxbandits.typing` has names for, with their members; those of most members first."""
    found = {name: get_args(hint) for name, hint in vars(array_types).items() if get_origin(hint) in UNIONS}
    return dict(sorted(found.items(), key=lambda row: -len(row[1])))


def words_of_hint(hint: Any) -> str:
    """An annotation as it is written.

    >>> words_of_hint(Scalar | None), words_of_hint(dict[str, array_types.Matrix])
    ('Scalar | None', 'dict[str, Matrix]')
    """
    origin, parts = get_origin(hint), list(get_args(hint))
    if isinstance(hint, str):
        return hint
    if isinstance(hint, list):
        return f"[{', '.join(map(words_of_hint, hint))}]"
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    if origin in UNIONS:
        names = list[str]()
        for name, members in named_unions().items():
            if all(member in parts for member in members):
                names.append(name)
                parts = [part for part in parts if part not in members]
        return " | ".join([*names, *map(words_of_hint, parts)])
    if hint in (None, NoneType, ...):
        return "..." if hint is ... else "None"
    name = str(getattr(origin if parts else hint, "__name__", hint))
    return f"{name}[{', '.join(map(words_of_hint, parts))}]" if parts else name


class Declaration(NamedTuple):
    """What the annotations of a function, or of a NamedTuple, say of it, and its docstring once that is read."""

    of: Callable[..., Any]
    written: inspect.Signature
    arguments: dict[str, Argument]
    hints: dict[str, Any]
    text: Docstring | None = None

    def read(self) -> "Declaration":
        """With what its docstring says, and those of its TypedDicts; that of what it wraps stands there already."""
        if hasattr(self.of, "arguments"):
            return self._replace(arguments=dict(self.of.arguments))
        text, texts, rows = read_docstring(self.of), dict[str, tuple[str, str]](), dict(self.arguments)
        for hint in self.hints.values():
            texts |= read_docstring(get_args(hint)[0]).arguments if get_origin(hint) is Unpack else {}
        texts |= text.arguments
        if unknown := texts.keys() - rows.keys():
            raise ValueError(f"{self.of.__qualname__}: its docstring has {', '.join(unknown)}, which is no argument")
        for name, (written, about) in texts.items():
            rows[name] = rows[name]._replace(text=about)
            if written:
                kind, *after = re.split(r"(?=, (?:optional|default ))", written, maxsplit=1)
                rows[name] = rows[name]._replace(kind=kind, after="".join(after))
        return self._replace(arguments=rows, text=text)

    def signature(self) -> inspect.Signature:
        """The signature with types alone: docstrings have the marks. A TypedDict's arguments are keywords."""
        keyword, parameters = inspect.Parameter("keyword", inspect.Parameter.KEYWORD_ONLY), []
        for key, row in self.arguments.items():
            own = self.written.parameters.get(key, keyword)
            parameters.append(NamedParameter(key, own.kind, default=row.default, annotation=row.hint))
        returned = self.hints.get("return", self.written.return_annotation)
        returned = returned.__origin__ if get_origin(returned) is Annotated else returned
        return NamedSignature(parameters, return_annotation=returned)

    def docstring(self, source: str = "", raises: str | None = None) -> str | None:
        """The docstring with all of numpydoc's sections, and the import of `jb` for its example.

        raises: when there is a ValueError; None: for arguments that are checked. source: the References.
        """
        if self.text is None or not self.of.__doc__:
            return self.of.__doc__
        if raises is None:
            raises = "For an argument outside its range." if any(r.checked for r in self.arguments.values()) else ""
        rows, found = self.arguments.values(), dict(self.text.sections)
        entries = itertools.groupby(rows, lambda row: row.entry.partition(" : ")[2])
        example = found.pop("Examples", "").strip("\n")
        if "jb." in example and "jaxbandits" not in example:
            example = f">>> import jaxbandits as jb\n{example}"
        written = {
            "": self.text.prose,
            "Parameters": "\n".join(f"{', '.join(row.name for row in same)} : {about}" for about, same in entries),
            "Returns": self._returns_section(found.pop("Returns", ""), self.text.prose.partition("\n\n")[0]),
            "Raises": found.pop("Raises", f"ValueError\n    {raises}" if raises else ""),
            **found,
            "References": textwrap.fill(source, WIDTH, break_on_hyphens=False) or found.get("References", ""),
            "Examples": example,
        }
        rule = {title: f"{title}\n{'-' * len(title)}\n" if title else "" for title in written}
        return "\n\n".join(rule[title] + text.strip("\n") for title, text in written.items() if text) + "\n"

    def _returns_section(self, written: str, summary: str) -> str:
        """The Returns: as written, where a type is; else the annotation's text, no guarantee, or the summary."""
        hint, marks = _split_marks(self.hints.get("return", Any))
        if isinstance(self.of, type) or (hint in (NoReturn, NoneType) and not written):
            return ""
        if ":" in written.partition("\n")[0]:
            entries = [entry.partition(":") for entry in re.split(r"\n(?=\S)", written)]
            if not all(colon for _, colon, _ in entries):
                raise ValueError(f"{self.of.__qualname__}: Returns begins with a type: indent the lines behind it")
            return "\n".join(_entry(kind, text) for kind, _, text in entries)
        kind = _in_words(_alternatives(hint))
        default = "Without a privacy guarantee." if kind == "Algorithm" else summary
        doc = written or next((mark.documentation for mark in marks if isinstance(mark, Doc)), default)
        return _entry(kind, _fill(doc))


def declaration(function: Callable[..., Any]) -> Declaration:
    """What a function's annotations say; a TypedDict's arguments stand at the place of its `**`.

    >>> def index(*, scale: Annotated[Scalar, Ge(0), Doc("Multiplies the bonus.")] = 1.0) -> None: ...
    >>> print(declaration(index).arguments["scale"].entry)
    scale : float, default 1.0
        Multiplies the bonus. At least 0.
    """
    hints, written, found = hints_of(function), inspect.signature(function), dict[str, Argument]()
    for name, parameter in written.parameters.items():
        if get_origin(hints.get(name)) is Unpack:
            (group,) = get_args(hints[name])
            members = get_type_hints(group, include_extras=True)
            found |= {key: _argument(key, hint, REQUIRED) for key, hint in members.items()}
        else:
            found[name] = _argument(name, hints.get(name, Any), parameter.default)
            if parameter.kind is parameter.VAR_KEYWORD:
                found[name] = found[name]._replace(name=f"**{name}")
    return Declaration(function, written, found, hints)


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function; as they are written where a name is imported for type checkers alone.

    NameError or TypeError for any other that cannot be read: its argument would not be checked.
    """
    found: dict[str, Any] = {}
    base = inspect.unwrap(function)
    names = getattr(base, "__globals__", None) or vars(sys.modules[base.__module__])
    for name, annotation in function.__annotations__.items():
        one = SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= get_type_hints(one, names, include_extras=True)
        except (NameError, TypeError) as error:
            # of an alias at least its marks are known
            found[name] = names.get(annotation, annotation) if isinstance(annotation, str) else annotation
            if not _for_type_checkers(found[name], names, error):
                error.add_note(f"in the annotation of {name}, an argument of {function.__qualname__}")
                raise
    return found


def _for_type_checkers(annotation: Any, names: dict[str, Any], error: NameError | TypeError) -> bool:
    """Whether an annotation cannot be read only for names that its module imports for type checkers alone.

    An alias that is a text has such names of its own module, and no union can be made of it.
    """
    imported = _imported_for_type_checkers(names["__name__"])
    if isinstance(annotation, str):
        if any(value is annotation for value in names.values()):  # such an alias
            return True
        used = {node.id for node in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(node, ast.Name)}
        if unknown := used - names.keys() - vars(builtins).keys():
            return unknown <= imported
        return any(isinstance(names.get(name), str) for name in used)
    aliases = " ".join(alias for alias in vars(array_types).values() if isinstance(alias, str))
    return getattr(error, "name", None) in imported.union(re.findall(r"\w+", aliases))


@functools.cache
def _imported_for_type_checkers(module: str) -> set[str]:
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):  # of a notebook's cell, say
        return set()
    blocks = re.findall(r"^if (?:typing\.)?TYPE_CHECKING:\n((?:[ \t]+.*\n|\n)+)", source, re.MULTILINE)
    nodes = [node for block in blocks for node in ast.walk(ast.parse(textwrap.dedent(block)))]
    imports = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    return {(alias.asname or alias.name).partition(".")[0] for alias in imports}


def _argument(name: str, annotation: Any, default: Any) -> Argument:
    """What an annotation declares."""
    hint, marks = _split_marks(annotation)
    default = next((mark.value for mark in marks if isinstance(mark, Default)), default)
    kinds = _alternatives(hint, TRACED in marks)
    options = tuple(option for kind in kinds if get_origin(kind) is Literal for option in get_args(kind))
    static = STATIC in marks or ((bool(options) or kinds == [bool]) and HOST not in marks)
    asked = Range("choice", values=options) if options else None
    found = Argument(name, hint, default, marks, asked, static, kind="", after="", text="")
    doc, axes = found.mark(Doc), found.mark(Axes)
    kind = getattr(found.mark(Kind), "words", "") or getattr(axes, "words", "") or _in_words(kinds)
    after = "" if found.required else ", optional" if default is None else f", default {_repr_or_name(default)}"
    found = found._replace(kind=kind, after=after, text=inspect.cleandoc(doc.documentation) if doc else "")
    numeric = bool(marks) and all(kind in (int, *NUMBER_TYPES) for kind in kinds)
    if options or not (numeric or axes):
        return found
    kind = "array" if axes else "integer" if kinds == [int] else "number"
    low, high = (found.mark(Gt) or found.mark(Ge)), (found.mark(Lt) or found.mark(Le))
    ends = [-math.inf if low is None else _end_of(low), math.inf if high is None else _end_of(high)]
    bottom, top = ends if kind == "integer" else map(float, ends)
    return found._replace(range=Range(kind, bottom, top, isinstance(low, Gt), isinstance(high, Lt)))


def _end_of(mark: Ge | Gt | Le | Lt) -> Any:
    return getattr(mark, type(mark).__name__.lower())


def _split_marks(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """An annotation and its marks, those inside a union among them."""
    if get_origin(annotation) in (typing.Required, typing.NotRequired):
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
    return " or ".join(dict.fromkeys(map(_type_name, kinds)))


def _type_name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"{{{', '.join(map(_repr_or_name, get_args(kind)))}}}"
    if kind in NUMBER_TYPES:
        return "float"
    if get_origin(kind) is Callable:
        return "callable"
    if hasattr(kind, "dim_str"):  # of jaxtyping
        return f"{kind.__name__.partition('[')[0].lower()} array of shape [{', '.join(kind.dim_str.split())}]"
    return getattr(get_origin(kind) or kind, "__name__", str(kind)).rpartition(".")[2].replace("ndarray", "array")


def _repr_or_name(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else getattr(value, "__name__", repr(value))


# ---- docstrings


@functools.cache  # the texts of shared annotations come often
def _fill(text: str) -> str:
    """A paragraph, filled anew for the lines of an entry."""
    text = " ".join(text.split())
    return text if len(text) <= WIDTH - 4 else textwrap.fill(text, WIDTH - 4)


def sections(text: str | None) -> dict[str, str]:
    """The sections of a numpydoc docstring by title, "" for what stands first. An example at the end needs no title."""
    clean = inspect.cleandoc(text or "")
    if "\nExamples\n---" not in clean:
        clean = re.sub(r"\n\n(?=>>> )", "\n\nExamples\n--------\n", clean, count=1)
    first, *others = TITLE.split(clean)
    return {"": first} | dict(zip(others[::2], others[1::2], strict=True))


def read_docstring(of: Any) -> Docstring:
    """The docstring of a function or class, taken apart. ValueError for words that are in none of its sections."""
    found = sections(of.__doc__)
    text, example = found.pop(""), found.pop("Examples", "")
    # the parser takes the indent of the other lines for that of the first one: a dot stands there
    parsed = SECTIONS.parse(re.sub(rf"^({'|'.join(PROSE)}):$", r"\g<0>\n    .", text, flags=re.MULTILINE))
    between = "\n\n" if parsed.blank_after_short_description else "\n"
    prose = between.join(filter(None, (parsed.short_description, parsed.long_description)))
    entries: dict[str, list[tuple[str, str]]] = {}
    for meta in parsed.meta:
        title, head, body = meta.args[0], ": ".join(meta.args[1:]), meta.description or ""
        first, _, rest = body.partition("\n")  # the parser drops an empty line behind the first one of an entry
        body = rest if first == "." else f"{first}\n\n{rest}" if rest and f"{head}: {first}\n\n" in text else body
        entries.setdefault(title, []).append((head, body))
    kept = " ".join([prose, *(f"{head}: {body}" if head else body for same in entries.values() for head, body in same)])
    words, there = SECTIONS.titles_re.sub("", text).split(), kept.split()
    lost = next((i for i, word in enumerate(words) if there[i : i + 1] != [word]), None)
    if found or lost is not None:
        what = next(iter(found)) if lost is None else " ".join(words[lost : lost + 8])
        rule = "each once and with a colon behind it, and an example stands last"
        known = f"they are {', '.join(SECTIONS.sections)}, {rule}"
        raise ValueError(f"{of.__qualname__}: {what!r} is in no section of its docstring: {known}")
    arguments = dict[str, tuple[str, str]]()
    for head, body in entries.pop("Parameters", ()):
        names, _, kind = head.partition(" (")
        arguments |= {name.strip(" *"): (kind.removesuffix(")"), body) for name in names.split(",")}
    texts = {title: "\n".join(_entry(*one) if one[0] else one[1] for one in same) for title, same in entries.items()}
    return Docstring(prose.strip("\n"), arguments, texts | {"Examples": example})


def _entry(head: str, body: str) -> str:
    """An entry of a numpydoc section: `name (type)` becomes `name : type`."""
    named = re.fullmatch(r"(\w+(?:, \w+)*) \((.*)\)", head)
    head = f"{named[1]} : {named[2]}" if named else head
    return f"{head}\n{textwrap.indent(inspect.cleandoc(body), '    ')}"


# ---- arguments that many factories share

Positive = Annotated[Scalar, Gt(0)]
NonNegative = Annotated[Scalar, Ge(0)]
Probability = Annotated[Scalar, Ge(0), Le(1)]
Inside = Annotated[Scalar, Gt(0), Lt(1)]  # between 0 and 1, without the ends
Share = Annotated[Scalar, Ge(0), Lt(0.5)]  # of contaminated rewards or attackers: less than half
NumArms = Annotated[int, Ge(2), STATIC, Doc("Number of arms K. Filled in from the environment.")]
Dim = Annotated[int, Ge(1), STATIC, Doc("Features d of an arm. Filled in from the environment.")]
Models = Annotated[
    Literal["shared", "per_arm"],
    Doc("""Of rewards. "shared": one theta for all arms, whose features differ. "per_arm": each arm has a theta of its
        own, for plays that show one row of features for all arms; of a decision set arm k reads its own vector. Filled
        in from the environment: "per_arm" where it shows rows."""),
]
NumAgents = Annotated[int, Ge(1), STATIC, Doc("Number of agents N. Filled in from the environment.")]
NumExperts = Annotated[int, Ge(2), STATIC, Doc("Number of experts N. Filled in from the environment.")]
Base = Annotated[AlgorithmFactory, STATIC]  # of a conversion: a factory of algorithms, or a partial of one
# Of a conversion: handed on to its base, where that names it and leaves it open
BaseModels = Annotated[
    Literal["shared", "per_arm"] | None,
    Doc("""For the base, whether all arms have one model or each has its own. Filled in where a play shows one row of
        features for all arms; the default: the base's own."""),
]
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

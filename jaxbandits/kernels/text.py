"""The text of a C program of one lane: statements in blocks, their names, and what can be counted of them.

A number of the program is known while it is written, then it is a NumPy number, or it is the `Name` of a C variable.
Types of C are named here and nowhere else.
"""

import contextlib
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxbandits.typing import DType

TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
    "int32": "int", "uint32": "unsigned", "int64": "long long", "uint64": "unsigned long long", "float32": "float",
    "float64": "double",
}  # fmt: skip
VARIABLE_NAME = re.compile(r"\b[va]\d+\b")  # variables, arrays
WORDS = re.compile(r"\b[vai]\d+\b")  # and indices of loops


class Unsupported(NotImplementedError):
    """An operation that has no rule."""


class TooLong(Exception):
    """A text has more statements than it may have."""


class Name(str):
    """A number that only the program knows: a C variable, or an expression that costs nothing."""

    dtype: np.dtype[Any]

    def __new__(cls, text: str, dtype: DType) -> "Name":
        name = super().__new__(cls, text)
        name.dtype = np.dtype(dtype)
        return name


Number: TypeAlias = Name | np.generic


def is_known(x: object) -> bool:
    """Whether a number is known while the program is written."""
    return isinstance(x, np.generic)


def host_number(value: object, dtype: DType) -> Any:
    """A known number."""
    return np.asarray(value).astype(dtype)[()]


def c_type(dtype: DType) -> str:
    """The type in C."""
    return TYPES[str(np.dtype(dtype))]


def ending(dtype: np.dtype[Any]) -> str:
    """How functions of a type end in `source.py`."""
    return f"{dtype.kind}{8 * dtype.itemsize}"


def text_of(x: Any) -> str:
    """A number as it stands in the text. Floats are written in base 16, so that none is rounded."""
    if not is_known(x):
        return str(x)
    if x.dtype.kind == "b":
        return "true" if x else "false"
    if x.dtype.kind == "f":
        if not np.isfinite(x):
            kind = ending(x.dtype)
            return f"NAN_{kind}" if np.isnan(x) else f"INF_{kind}" if x > 0 else f"(-INF_{kind})"
        text = float(x).hex() + ("f" if x.dtype.itemsize == 4 else "")
        return f"({text})" if np.signbit(x) else text
    if x.dtype.kind == "i" and x == np.iinfo(x.dtype).min:
        return f"(({c_type(x.dtype)})({int(x) + 1}ll - 1))"
    text = f"{int(x)}{'u' if x.dtype.kind == 'u' else ''}{'ll' if x.dtype.itemsize == 8 else ''}"
    return f"({text})" if x < 0 else text


class Part(NamedTuple):
    """A part of an index that is computed. left, right: numbers, indices of loops, variables, or other parts."""

    left: Any
    sign: str
    right: Any

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


class Entry(NamedTuple):
    """An element of an array in the thread's memory. place: a number, the index of a loop, a variable, or a `Part`."""

    array: str
    place: Any

    def __str__(self) -> str:
        return f"{self.array}[{self.place}]"


class Let(NamedTuple):
    """A variable, or an array of some size. `changing`: it is assigned later."""

    name: Name
    text: str | Entry
    changing: bool = False
    size: int = 0

    def __str__(self) -> str:
        kind, size = c_type(self.name.dtype), f"[{self.size}]" if self.size else ""
        return f"{'' if self.changing else 'const '}{kind} {self.name}{size}{self.text and f' = {self.text}'};"


class Assign(NamedTuple):
    """A variable, an element or a place in others' memory gets a value. before: a condition, or the type of a table."""

    to: str | Entry
    value: str
    before: str = ""

    def __str__(self) -> str:
        return f"{self.before}{self.to} = {self.value};"


class Block(NamedTuple):
    """Statements in braces. turn: the index of a loop. length: that of a loop, where it is known."""

    head: str  # "": an `if` and its `else`s, without braces around them
    body: "list[Statement]"
    turn: str = ""
    length: int | None = None


Statement: TypeAlias = Let | Assign | Block | str  # text: a statement that stays where it is


class Writer:
    """Writes statements. What is computed twice in a block is written once. most: statements, before `TooLong`."""

    def __init__(self, most: float = inf) -> None:
        self.body: list[Statement] = []
        self.most, self._written, self._numbered = most, 0, 0
        self._open, self._seen = [self.body], ChainMap[Any, Name]()

    def add_statement(self, statement: Statement) -> None:
        """Append a statement to the block that is open."""
        self._open[-1].append(statement)
        self._written += 1
        if self._written > self.most:
            raise TooLong

    def fresh(self, letter: str, dtype: DType) -> Name:
        """A name that was not given yet."""
        self._numbered += 1
        return Name(f"{letter}{self._numbered}", dtype)

    def let(self, text: str | Entry, dtype: DType) -> Name:
        """A variable for an expression."""
        key = text, np.dtype(dtype)
        if key not in self._seen:
            self._seen[key] = self.fresh("v", dtype)
            self.add_statement(Let(self._seen[key], text))
        return self._seen[key]

    def forget(self, array: Name) -> None:
        """What was read of an array is read anew: it is written over."""
        for seen in self._seen.maps:
            for key in [key for key in seen if isinstance(key[0], Entry) and key[0].array == array]:
                del seen[key]

    def variable(self, start: Number | None, dtype: DType) -> Name:
        """A variable that is assigned later. start: its first value, or None."""
        name = self.fresh("v", dtype)
        self.add_statement(Let(name, "" if start is None else text_of(start), changing=True))
        return name

    def assign(self, names: Sequence[Name], values: Sequence[Number]) -> None:
        """Assign all at once: a value may be the name of another variable that is assigned too."""
        pairs = [(name, text) for name, text in zip(names, map(text_of, values), strict=True) if text != name]
        read, before = {text for _, text in pairs}, dict[str, Name]()
        for name, _ in pairs:
            if name in read:
                before[name] = self.fresh("v", name.dtype)
                self.add_statement(Let(before[name], name))
        for name, text in pairs:
            self.add_statement(Assign(name, before.get(text, text)))

    @contextlib.contextmanager
    def block(self, head: str, *loop: Any) -> Iterator[None]:
        """Inside, statements are those of a loop or branch. loop: its index and length."""
        block = Block(head, [], *loop)
        self.add_statement(block)
        self._open.append(block.body)
        self._seen = self._seen.new_child()
        yield
        self._open.pop()
        self._seen = self._seen.parents

    @contextlib.contextmanager
    def loop(self, length: Any) -> Iterator[Name]:
        """Inside, statements are those of a loop over an index, which is given."""
        i = self.fresh("i", np.int32)
        known_length = None if isinstance(length, Part) else int(length)
        with self.block(f"ONCE for (int {i} = 0; {i} < {length}; ++{i})", i, known_length):
            yield i


def each_branch(body: Iterable[Statement]) -> Iterator[Statement]:
    """The statements, with every `if` and `else` by itself."""
    for statement in body:
        yield from [statement] if not isinstance(statement, Block) or statement.head else statement.body


def indent_lines(body: Iterable[Statement], depth: int = 1) -> Iterator[str]:
    """The lines of a text."""
    indent = "  " * depth
    for statement in each_branch(body):
        if isinstance(statement, Block):
            yield f"{indent}{statement.head} {{"
            yield from indent_lines(statement.body, depth + 1)
            yield f"{indent}}}"
        else:
            yield f"{indent}{statement}"


def flatten(body: Iterable[Statement]) -> Iterator[Statement]:
    """The statements, and those inside of them."""
    for statement in body:
        yield statement
        if isinstance(statement, Block):
            yield from flatten(statement.body)


def rewrite(body: Iterable[Statement], change: Callable[[Statement], Statement | None]) -> list[Statement]:
    """The statements as a function gives them that are no blocks, in and out of blocks, without those that are None."""
    found = [x._replace(body=rewrite(x.body, change)) if isinstance(x, Block) else change(x) for x in body]
    return [x for x in found if x is not None]


def entry(statement: Statement) -> Entry | None:
    """The element that a statement reads or assigns, if there is one."""
    found = statement.text if isinstance(statement, Let) else statement.to if isinstance(statement, Assign) else None
    return found if isinstance(found, Entry) else None


def reads(statement: Statement) -> set[str]:
    """The variables and arrays that a statement names, inside of it too, but those that it makes."""
    if isinstance(statement, Block):
        inside = set(VARIABLE_NAME.findall(statement.head)).union(*map(reads, statement.body))
        return inside - {each.name for each in statement.body if isinstance(each, Let)}
    return set(VARIABLE_NAME.findall(str(statement.text if isinstance(statement, Let) else statement)))


def changes(statement: Statement) -> set[str]:
    """The variables and arrays that a statement makes or assigns, inside of it too."""
    if isinstance(statement, Block):
        return set[str]().union(*map(changes, statement.body))
    if isinstance(statement, Assign):
        return {statement.to.array if isinstance(statement.to, Entry) else statement.to}
    return {statement.name} if isinstance(statement, Let) else set()


def rename(statement: Any, names: Mapping[str, str]) -> Any:
    """A statement with other names of variables, arrays and indices of loops."""
    if isinstance(statement, str):
        text = WORDS.sub(lambda name: names.get(name[0], name[0]), statement)
        return Name(text, statement.dtype) if isinstance(statement, Name) else text
    if isinstance(statement, list):
        return [rename(each, names) for each in statement]
    return type(statement)(*(rename(x, names) for x in statement)) if isinstance(statement, tuple) else statement

"""The text of a C program of one lane: statements in blocks, their names, and what can be counted of them.

A number of the program is known while it is written, then it is a NumPy number, or it is the `Name` of a C variable.
Types of C are named here and nowhere else.
"""

import contextlib
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np

TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
    "int32": "int", "uint32": "unsigned", "int64": "long long", "uint64": "unsigned long long", "float32": "float",
    "float64": "double",
}  # fmt: skip
VARIABLE_NAME = re.compile(r"\b[va]\d+\b")  # variables, arrays
ELEMENT = re.compile(r"(a\d+)\[([^\[\]]*)\]")  # of an array, and its place
LOOP = re.compile(r"ONCE for \(int (i\d+) = 0; i\d+ < (\d+); \+\+i\d+\)")  # of a known length
ASSIGNED = re.compile(r"^(?:if \(.*\) )?([va]\d+)(?:\[.*?\])? = ")


class Unsupported(NotImplementedError):
    """An operation that has no rule."""


class TooLong(Exception):
    """A text has more statements than it may have."""


class Name(str):
    """A number that only the program knows: a C variable, or an expression that costs nothing."""

    dtype: np.dtype[Any]

    def __new__(cls, text: str, dtype: Any) -> "Name":
        name = super().__new__(cls, text)
        name.dtype = np.dtype(dtype)
        return name


Number: TypeAlias = Any  # a Name or a NumPy number


def is_known(x: Number) -> bool:
    """Whether a number is known while the program is written."""
    return isinstance(x, np.generic)


def host_number(value: Any, dtype: Any) -> Any:
    """A known number."""
    return np.asarray(value).astype(dtype)[()]


def c_type(dtype: Any) -> str:
    """The type in C."""
    return TYPES[str(np.dtype(dtype))]


def ending(dtype: Any) -> str:
    """How functions of a type end in `source.py`."""
    return f"{dtype.kind}{8 * dtype.itemsize}"


def text_of(x: Number) -> str:
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


class Let(NamedTuple):
    """A variable, or an array of some size. `changing`: it is assigned later."""

    name: Name
    text: str
    changing: bool = False
    size: int = 0

    def __str__(self) -> str:
        kind, size = c_type(self.name.dtype), f"[{self.size}]" if self.size else ""
        return f"{'' if self.changing else 'const '}{kind} {self.name}{size}{self.text and f' = {self.text}'};"


class Block(NamedTuple):
    """Statements in braces: a loop, or what happens under a condition."""

    head: str
    body: "list[Statement]"


Statement: TypeAlias = Let | Block | str  # text: a statement that stays where it is


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

    def fresh(self, letter: str, dtype: Any) -> Name:
        """A name that was not given yet."""
        self._numbered += 1
        return Name(f"{letter}{self._numbered}", dtype)

    def let(self, text: str, dtype: Any) -> Name:
        """A variable for an expression."""
        key = text, np.dtype(dtype)
        if key not in self._seen:
            self._seen[key] = self.fresh("v", dtype)
            self.add_statement(Let(self._seen[key], text))
        return self._seen[key]

    def forget(self, array: Name) -> None:
        """What was read of an array is read anew: it is written over."""
        for seen in self._seen.maps:
            for key in [key for key in seen if f"{array}[" in key[0]]:
                del seen[key]

    def variable(self, start: Number, dtype: Any) -> Name:
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
            self.add_statement(f"{name} = {before.get(text, text)};")

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Inside, statements are those of a loop or branch."""
        block = Block(head, [])
        self.add_statement(block)
        self._open.append(block.body)
        self._seen = self._seen.new_child()
        yield
        self._open.pop()
        self._seen = self._seen.parents


def indent_lines(body: Iterable[Statement], depth: int = 1) -> Iterator[str]:
    """The lines of a text."""
    indent = "  " * depth
    for statement in body:
        if isinstance(statement, Block):
            yield f"{indent}{statement.head} {{"
            yield from indent_lines(statement.body, depth + 1)
            yield f"{indent}}}"
        else:
            yield f"{indent}{statement}"


def lines(body: Iterable[Statement]) -> Iterator[str]:
    """The texts of statements: heads of blocks, what variables begin with, and all others."""
    for statement in body:
        if isinstance(statement, Block):
            yield statement.head
            yield from lines(statement.body)
        else:
            yield statement.text if isinstance(statement, Let) else statement


def reads(statement: Statement) -> set[str]:
    """The variables and arrays that a statement names, inside of it too, but those that it makes."""
    if isinstance(statement, Block):
        inside = set(VARIABLE_NAME.findall(statement.head)).union(*map(reads, statement.body))
        return inside - {each.name for each in statement.body if isinstance(each, Let)}
    return set(VARIABLE_NAME.findall(statement.text if isinstance(statement, Let) else statement))


def changes(statement: Statement) -> set[str]:
    """The variables that a statement assigns, inside of it too."""
    if isinstance(statement, Block):
        return set().union(*map(changes, statement.body))
    found = ASSIGNED.match(statement) if isinstance(statement, str) else None
    return {found[1]} if found else set()

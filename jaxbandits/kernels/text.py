"""The text of a C program of one lane: statements in blocks, their names, and what can be counted of them.

A number of the program is known while it is written, then it is a NumPy number, or it is the `Name` of a C variable.
Types of C are named here and nowhere else.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

# Of each type of NumPy: the type in C, the unsigned one of the same size, and how functions of it end in `prelude.h`.
TYPES = {
    "bool": ("bool", "bool", "b"),
    "int8": ("signed char", "unsigned char", "i8"), "uint8": ("unsigned char", "unsigned char", "u8"),
    "int16": ("short", "unsigned short", "i16"), "uint16": ("unsigned short", "unsigned short", "u16"),
    "int32": ("int", "unsigned", "i32"), "uint32": ("unsigned", "unsigned", "u32"),
    "int64": ("long long", "unsigned long long", "i64"), "uint64": ("unsigned long long", "unsigned long long", "u64"),
    "float32": ("float", "unsigned", "f32"), "float64": ("double", "unsigned long long", "f64"),
}  # fmt: skip
NAMES = re.compile(r"\b[va]\d+\b")  # variables, arrays
ARRAY = re.compile(r"^(?P<kind>[a-z ]+) (?P<name>a\d+)\[(?P<size>\d+)\];$")  # declared
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


def known(x: Number) -> bool:
    """Whether a number is known while the program is written."""
    return isinstance(x, np.generic)


def number(value: Any, dtype: Any) -> Any:
    """A known number."""
    return np.asarray(value).astype(dtype)[()]


def c_type(dtype: Any) -> str:
    """The type in C."""
    return TYPES[str(np.dtype(dtype))][0]


def text_of(x: Number) -> str:
    """A number as it stands in the text. Floats are written in base 16, so that none is rounded."""
    if not known(x):
        return str(x)
    if x.dtype.kind == "b":
        return "true" if x else "false"
    if x.dtype.kind == "f":
        ending = "f" if x.dtype.itemsize == 4 else ""
        if not np.isfinite(x):
            kind = TYPES[str(x.dtype)][2]
            return f"NAN_{kind}" if np.isnan(x) else f"INF_{kind}" if x > 0 else f"(-INF_{kind})"
        return f"({float(x).hex()}{ending})" if np.signbit(x) else float(x).hex() + ending
    if x.dtype.kind == "i" and x == np.iinfo(x.dtype).min:
        return f"(({c_type(x.dtype)})({int(x) + 1}ll - 1))"
    text = f"{int(x)}{'u' if x.dtype.kind == 'u' else ''}{'ll' if x.dtype.itemsize == 8 else ''}"
    return f"({text})" if x < 0 else text


class Let(NamedTuple):
    """A variable. One that is assigned later is `changing`."""

    name: Name
    text: str
    changing: bool = False


class Line(NamedTuple):
    """A statement that stays where it is."""

    text: str


class Block(NamedTuple):
    """Statements in braces: a loop, or what happens under a condition."""

    head: str
    body: "list[Statement]"


Statement: TypeAlias = Let | Line | Block


class Writer:
    """Writes statements. What is computed twice in a block is written once. most: statements, before `TooLong`."""

    def __init__(self, most: int | None = None) -> None:
        self.body: list[Statement] = []
        self.most, self._written, self._numbered = most, 0, 0
        self._open, self._seen = [self.body], [dict[Any, Name]()]

    def add(self, statement: Statement) -> None:
        """Append a statement to the block that is open."""
        self._open[-1].append(statement)
        self._written += 1
        if self.most is not None and self._written > self.most:
            raise TooLong

    def say(self, text: str) -> None:
        """A statement as it stands."""
        self.add(Line(text))

    def fresh(self, letter: str, dtype: Any) -> Name:
        """A name that was not given yet."""
        self._numbered += 1
        return Name(f"{letter}{self._numbered}", dtype)

    def let(self, text: str, dtype: Any) -> Name:
        """A variable for an expression."""
        key = text, np.dtype(dtype)
        for scope in self._seen:
            if key in scope:
                return scope[key]
        name = self._seen[-1][key] = self.fresh("v", dtype)
        self.add(Let(name, text))
        return name

    def forget(self, array: Name) -> None:
        """What was read of an array is read anew: it is written over."""
        for scope in self._seen:
            for key in [key for key in scope if f"{array}[" in key[0]]:
                del scope[key]

    def variable(self, start: Number, dtype: Any) -> Name:
        """A variable that is assigned later. start: its first value, or None."""
        name = self.fresh("v", dtype)
        self.add(Let(name, "" if start is None else text_of(start), changing=True))
        return name

    def array(self, size: int, dtype: Any) -> Name:
        """An array in the thread's own memory."""
        name = self.fresh("a", dtype)
        self.say(f"{c_type(dtype)} {name}[{max(1, size)}];")
        return name

    def assign(self, names: Sequence[Name], values: Sequence[Number]) -> None:
        """Assign all at once: a value may be the name of another variable that is assigned too."""
        pairs = [(name, value) for name, value in zip(names, values, strict=True) if text_of(value) != name]
        mixed = {str(value): value for _, value in pairs} if pairs else {}
        before = {}
        for name, _ in pairs:
            if name in mixed:
                before[str(name)] = self.fresh("v", name.dtype)
                self.add(Let(before[str(name)], str(name)))
        for name, value in pairs:
            self.say(f"{name} = {before.get(text_of(value), text_of(value))};")

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Inside, statements are those of a loop or branch."""
        block = Block(head, [])
        self.add(block)
        self._open.append(block.body)
        self._seen.append({})
        try:
            yield
        finally:
            self._open.pop()
            self._seen.pop()


def printed(body: Iterable[Statement], depth: int = 1) -> list[str]:
    """The lines of a text."""
    lines = []
    for statement in body:
        if isinstance(statement, Block):
            lines += [f"{'  ' * depth}{statement.head} {{", *printed(statement.body, depth + 1), f"{'  ' * depth}}}"]
        elif isinstance(statement, Let):
            const = "" if statement.changing else "const "
            value = f" = {statement.text}" if statement.text else ""
            lines.append(f"{'  ' * depth}{const}{c_type(statement.name.dtype)} {statement.name}{value};")
        else:
            lines.append(f"{'  ' * depth}{statement.text}")
    return lines


def reads(statement: Statement) -> set[str]:
    """The variables and arrays that a statement names, inside of it too, but those that it makes."""
    if isinstance(statement, Block):
        inside = set(NAMES.findall(statement.head)).union(*map(reads, statement.body))
        return inside - {each.name for each in statement.body if isinstance(each, Let)}
    return set(NAMES.findall(statement.text))


def changes(statement: Statement) -> set[str]:
    """The variables that a statement assigns, inside of it too."""
    if isinstance(statement, Block):
        return set().union(*map(changes, statement.body))
    found = ASSIGNED.match(statement.text) if isinstance(statement, Line) else None
    return {found[1]} if found else set()

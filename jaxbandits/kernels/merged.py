"""Loops over the same indices that are written one after the other, made one.

What one of them stores and the next one loads is then a number, and an array that nothing else reads is gone: a
thread's memory is far away from it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jaxbandits.kernels.text import ELEMENT, LOOP, VARIABLE_NAME, Block, Let, Statement, changes, lines, reads

STORED = re.compile(r"(a\d+\[[^\[\]]*\]) = (.*);")
INDEX = re.compile(r"\bi\d+\b")
MERGE_DISTANCE = 500  # statements between two loops
STAYS = re.compile(r"\((at|out)\d|.*break;")  # a line that writes what others read, or ends a loop before its time


class Loop(NamedTuple):
    """A loop of a known length."""

    turn: str  # the name of its index
    length: str
    block: Block

    def rows(self, array: str) -> set[tuple[str, int]]:
        """Which elements of an array a turn has to itself, by each statement: where all begin, and how many they are.

        Of 0 elements, a turn may touch those of others.
        """
        text = "\n".join(lines([self.block]))
        inside = {index: int(length) for index, length in LOOP.findall(text)}
        one = re.compile(rf"(?:\(([^v]*) \+ )?{self.turn}\)?")
        row = re.compile(rf"\(?\({self.turn} \* (\d+)\)(?: \+ (i?\d+)\))?")
        found = set[tuple[str, int]]()
        for place in (place for name, place in ELEMENT.findall(text) if name == array):
            if here := one.fullmatch(place):
                start = here[1] or ""
                found.add((start, 0 if inside.keys() & set(INDEX.findall(start)) else 1))
            elif here := row.fullmatch(place):
                n, last = int(here[1]), here[2] or "0"
                largest = inside.get(last, n + 1) - 1 if last[0] == "i" else int(last)
                found.add(("", n if largest < n else 0))
            else:
                found.add(("", 0))
        return found


class Touched(NamedTuple):
    """A statement, what it reads, and what it makes or assigns. loop: where others may be merged with it."""

    statement: Statement
    reads: set[str]
    changes: set[str]
    loop: Loop | None = None


def effects_of(statement: Statement) -> Touched:
    """What a statement touches."""
    read, changed = reads(statement), changes(statement)
    if isinstance(statement, Let):
        return Touched(statement, read, {*changed, str(statement.name)})
    if isinstance(statement, str) and statement.startswith("TABLE"):
        return Touched(statement, read, {*changed, *VARIABLE_NAME.findall(statement)[:1]})
    head = LOOP.fullmatch(statement.head) if isinstance(statement, Block) else None
    if head is None or any(map(STAYS.match, lines(statement.body))):  # type: ignore[union-attr]
        return Touched(statement, read, changed)
    own = {each.name for each in statement.body if isinstance(each, Let)}  # type: ignore[union-attr]
    return Touched(statement, read, changed - own, Loop(head[1], head[2], statement))  # type: ignore[arg-type]


def merge_loops(body: Sequence[Statement]) -> list[Statement]:
    """The statements with loops made one where that changes no result."""
    if not any(isinstance(each, Block) for each in body):
        return list(body)
    done = list[Touched]()
    for statement in body:
        here = effects_of(
            Block(statement.head, merge_loops(statement.body)) if isinstance(statement, Block) else statement
        )
        if here.loop is None:
            done.append(here)
        else:
            done = _placed(done, here)
    return [each.statement for each in done]


def _placed(done: list[Touched], here: Touched) -> list[Touched]:
    """Statements and a loop that follows, as part of one among them where it may be."""
    read, changed, starts = set[str](), set[str](), list[int]()  # of the statements between; what the loop begins with
    own = here
    for k in range(len(done) - 1, max(-1, len(done) - 1 - MERGE_DISTANCE), -1):
        each = done[k]
        if isinstance(each.statement, str) and "break;" in each.statement:
            break
        if (one := _one(each, here)) is not None:
            if not (each.changes & (read | changed) or changed & each.reads):  # the first loop may come later
                return _placed([*done[:k], *done[k + 1 :]], one)
            if not (own.changes & (read | changed) or changed & own.reads):  # the second one may come before
                rest = [x for i, x in enumerate(done) if i > k and i not in starts]
                return [*_placed([*done[:k], *(done[i] for i in starts[::-1])], one), *rest]
        if isinstance(each.statement, Let) and each.changes <= own.changes - read - changed and not each.reads:
            starts.append(k)
            own = own._replace(reads=own.reads - each.changes, changes=own.changes - each.changes)
        read, changed = read | each.reads, changed | each.changes
    return [*done, here]


def _shared(before: Touched, after: Touched) -> set[str] | None:
    """The arrays that a loop reads of what one before it makes, or harms; None where they cannot be one."""
    first, second = before.loop, after.loop
    if first is None or second is None or first.length != second.length or not before.changes & after.reads:
        return None
    shared = before.changes & (after.reads | after.changes) | before.reads & after.changes
    rows = [first.rows(x) | second.rows(x) for x in shared]  # none of a single number
    return shared if all(len(each) == 1 and min(each)[1] for each in rows) else None


def _one(before: Touched, after: Touched) -> Touched | None:
    """Two loops as one, in which nothing is loaded that was stored in the same turn; None where they cannot be one."""
    first, second, shared = before.loop, after.loop, _shared(before, after)
    if first is None or second is None or shared is None:
        return None
    index = re.compile(rf"\b{second.turn}\b")
    stored, names, body = dict[str, str](), dict[str, str](), list[Statement]()
    renamed = [_with(each, index, {second.turn: first.turn}) for each in second.block.body]
    for statement in [*first.block.body, *renamed]:
        statement = _with(statement, VARIABLE_NAME, names)
        if isinstance(statement, Let) and not statement.changing and statement.text in stored:
            names[statement.name] = stored[statement.text]
            continue
        body.append(statement)
        store = STORED.fullmatch(statement) if isinstance(statement, str) else None
        if store is None:
            gone = changes(statement)
            stored = {place: x for place, x in stored.items() if x not in gone and place.split("[")[0] not in gone}
        elif store[1].split("[")[0] in shared:
            stored[store[1]] = store[2]
    return effects_of(
        Block(first.block.head, merge_loops(body) if any(isinstance(each, Block) for each in body) else body)
    )


def _with(statement: Statement, pattern: re.Pattern[str], names: Mapping[str, str]) -> Statement:
    """A statement with other names."""

    def new(text: str) -> str:
        return pattern.sub(lambda name: names.get(name[0], name[0]), text)

    if isinstance(statement, Block):
        return Block(new(statement.head), [_with(each, pattern, names) for each in statement.body])
    return statement._replace(text=new(statement.text)) if isinstance(statement, Let) else new(statement)


def without_unread_arrays(body: list[Statement]) -> list[Statement]:
    """The statements without arrays of a thread's memory that nothing reads."""
    texts = [(STORED.fullmatch(line), line) for line in lines(body)]
    read = {name for store, line in texts for name, _ in ELEMENT.findall(store[2] if store else line)}
    made = {store[1].split("[")[0] for store, _ in texts if store}
    return list(_without(body, made - read))


def _without(body: Iterable[Statement], arrays: set[str]) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Block):
            yield Block(statement.head, list(_without(statement.body, arrays)))
        elif not arrays & (changes(statement) | ({str(statement.name)} if isinstance(statement, Let) else set())):
            yield statement

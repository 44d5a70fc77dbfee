"""Loops over the same indices that are written one after the other, made one.

What one of them stores and the next one loads is then a number, and an array that nothing else reads is gone: a
thread's memory is far away from it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jaxbandits.kernels.text import Assign, Block, Let, Part, Statement, changes, entry, flatten, reads, rename, rewrite

MERGE_DISTANCE = 500  # statements between two loops


class Touched(NamedTuple):
    """A statement, what it reads, and what it makes or assigns. loop: where others may be merged with it."""

    statement: Statement
    reads: set[str]
    changes: set[str]
    loop: Block | None = None


def effects_of(statement: Statement) -> Touched:
    """What a statement touches."""
    found = Touched(statement, reads(statement), changes(statement))
    # a text in a loop writes what others read, or ends it before its time
    if isinstance(statement, Block) and statement.length is not None:
        return found if any(isinstance(x, str) for x in flatten([statement])) else found._replace(loop=statement)
    return found


def merge_loops(body: Sequence[Statement]) -> list[Statement]:
    """The statements with loops made one where that changes no result."""
    if not any(isinstance(each, Block) for each in body):
        return list(body)
    done = list[Touched]()
    for statement in body:
        if isinstance(statement, Block):
            statement = statement._replace(body=merge_loops(statement.body))
        here = effects_of(statement)
        done = _place_loop(done, here) if here.loop else [*done, here]
    return [each.statement for each in done]


def _place_loop(done: list[Touched], here: Touched) -> list[Touched]:
    """Statements and a loop that follows, as part of one among them where it may be."""
    read, changed, starts = set[str](), set[str](), list[int]()  # of the statements between; what the loop begins with
    own = here
    for k in range(len(done) - 1, max(-1, len(done) - 1 - MERGE_DISTANCE), -1):
        each = done[k]
        if isinstance(each.statement, str):
            break
        if (one := _one(each, here)) is not None:
            if not (each.changes & (read | changed) or changed & each.reads):  # the first loop may come later
                return _place_loop([*done[:k], *done[k + 1 :]], one)
            if not (own.changes & (read | changed) or changed & own.reads):  # the second one may come before
                rest = [x for i, x in enumerate(done) if i > k and i not in starts]
                return [*_place_loop([*done[:k], *(done[i] for i in starts[::-1])], one), *rest]
        if isinstance(each.statement, Let) and each.changes <= own.changes - read - changed and not each.reads:
            starts.append(k)
            own = own._replace(reads=own.reads - each.changes, changes=own.changes - each.changes)
        read, changed = read | each.reads, changed | each.changes
    return [*done, here]


def leaves(index: Any) -> set[str]:
    """What a part of an index is computed from."""
    return leaves(index.left) | leaves(index.right) if isinstance(index, Part) else {str(index)}


def rows_of_turns(loop: Block, array: str) -> Iterator[tuple[Any, int]]:
    """Which elements of an array a turn has to itself, by each statement: where all begin, and how many they are.

    Of 0 elements, a turn may touch those of others.
    """
    inside = {x.turn: x.length for x in flatten([loop]) if isinstance(x, Block) and x.length is not None}
    for place in [x.place for x in map(entry, flatten(loop.body)) if x and x.array == array]:
        match place:
            case Part(start, "+", loop.turn):
                yield start, all(x.isdigit() or (x[0] == "i" and x not in inside) for x in leaves(start))
            case Part(loop.turn, "*", n):
                yield 0, n
            case Part(Part(loop.turn, "*", n), "+", last):
                largest = last if isinstance(last, int) else inside.get(last, n + 1) - 1
                yield 0, n if largest < n else 0
            case _:
                yield 0, place == loop.turn


def _one(before: Touched, after: Touched) -> Touched | None:
    """Two loops as one, in which nothing is loaded that was stored in the same turn; None where they cannot be one."""
    first, second = before.loop, after.loop
    if not first or not second or first.length != second.length or not before.changes & after.reads:
        return None
    shared = before.changes & (after.reads | after.changes) | before.reads & after.changes
    rows = [{*rows_of_turns(first, x), *rows_of_turns(second, x)} for x in shared]  # none of a single number
    if not all(len(each) == 1 and min(each)[1] for each in rows):
        return None
    names, stored, body = {second.turn: first.turn}, dict[Any, str](), list[Statement]()
    for each in (*first.body, *second.body):
        statement = rename(each, names)
        if isinstance(statement, Let) and not statement.changing and statement.text in stored:
            names[statement.name] = stored[statement.text]
            continue
        body.append(statement)
        if isinstance(statement, Assign) and (place := entry(statement)) and not statement.before:
            if place.array in shared:
                stored[place] = statement.value
        else:
            gone = changes(statement)
            stored = {place: x for place, x in stored.items() if x not in gone and place.array not in gone}
    return effects_of(first._replace(body=merge_loops(body)))


def without_unread_arrays(body: list[Statement]) -> list[Statement]:
    """The statements without arrays of a thread's memory that nothing reads."""
    entries = [(x, place.array) for x in flatten(body) if (place := entry(x))]
    unread = {array for x, array in entries if isinstance(x, Assign) and not x.before}
    unread -= {array for x, array in entries if isinstance(x, Let)}
    return rewrite(body, lambda statement: None if unread & changes(statement) else statement)

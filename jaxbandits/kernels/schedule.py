"""The order of a program's statements, and what is counted of them before any compiler sees them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jaxbandits.kernels.text import ARRAY, NAMES, Block, Let, Line, Statement, changes, reads


class Census(NamedTuple):
    """Counts of a program of one lane. What is in a loop counts once."""

    operations: int  # statements that compute something
    alive: int  # the most numbers that are needed at once
    memory: int  # numbers in arrays of the thread's own memory
    loops: int


def census_of(body: Iterable[Statement]) -> Census:
    """Count the statements of a program."""
    body = list(body)
    each = list(_all(body))
    arrays = [array for x in each if isinstance(x, Line) and (array := ARRAY.match(x.text))]
    return Census(
        operations=sum(isinstance(x, Let) and not x.changing for x in each), alive=alive(body),
        memory=sum(int(array["size"]) for array in arrays),
        loops=sum(isinstance(x, Block) and "for (" in x.head for x in each),
    )  # fmt: skip


def _all(body: Iterable[Statement]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, Block):
            yield from _all(statement.body)


def alive(body: Iterable[Statement]) -> int:
    """The most variables that are needed at once. The new value of one that is assigned takes the place of the old."""
    first, last, now = dict[str, int](), dict[str, int](), 0

    def walk(body: Iterable[Statement]) -> None:
        nonlocal now
        for statement in body:
            now += 1
            needed = reads(statement)
            if isinstance(statement, Block):  # what a loop reads and leaves as it is is needed until it ends
                walk(statement.body)
                needed, now = needed - changes(statement), now + 1
            last.update((name, now) for name in needed if name in first)
            if isinstance(statement, Let):
                first[statement.name] = now

    walk(body)
    most = count = 0
    for _, change in sorted([(first[name], 1) for name in last] + [(place, -1) for place in last.values()]):
        count += change
        most = max(most, count)
    return most


class _Array(NamedTuple):
    """An array, from the statement that declares it to the last one of its block that names it."""

    kind: str
    size: int
    begin: int
    end: int


# docs/decisions.md#a-threads-memory
def sharing_memory(body: Iterable[Statement]) -> list[Statement]:
    """The statements with large arrays declared first, those in one place that are not needed at the same time."""
    body = list(body)
    arrays = {name: array for name, array in _arrays(body).items() if array.size > 1}
    places, shared = dict[str, str](), dict[str, list[_Array]]()
    for name, array in sorted(arrays.items(), key=lambda x: (-x[1].size, x[1].begin)):
        fitting = (
            place for place, others in shared.items()
            if others[0].kind == array.kind and all(x.end < array.begin or array.end < x.begin for x in others)
        )  # fmt: skip
        places[name] = next(fitting, name)
        shared.setdefault(places[name], []).append(array)
    declared = [Line(f"{others[0].kind} {place}[{others[0].size}];") for place, others in shared.items()]
    return [*declared, *_placed(body, places)]


def _arrays(body: Iterable[Statement]) -> dict[str, _Array]:
    found, now = dict[str, _Array](), 0

    def walk(body: Iterable[Statement]) -> None:
        nonlocal now
        own = dict[str, _Array]()
        for statement in body:
            now += 1
            if isinstance(statement, Block):
                walk(statement.body)
            elif isinstance(statement, Line) and (array := ARRAY.match(statement.text)):
                own[array["name"]] = _Array(array["kind"], int(array["size"]), now, now)
            own.update({name: own[name]._replace(end=now) for name in reads(statement) & own.keys()})
        found.update(own)

    walk(body)
    return found


def _placed(body: Iterable[Statement], places: dict[str, str]) -> Iterator[Statement]:
    def renamed(text: str) -> str:
        return NAMES.sub(lambda name: places.get(name[0], name[0]), text)

    for statement in body:
        array = ARRAY.match(statement.text) if isinstance(statement, Line) else None
        if array is None or array["name"] not in places:
            if isinstance(statement, Block):
                yield Block(renamed(statement.head), list(_placed(statement.body, places)))
            else:
                yield statement._replace(text=renamed(statement.text))


def without_unread(body: Iterable[Statement], needed: set[str] | None = None) -> list[Statement]:
    """The statements without variables that nothing reads. needed: what is read later."""
    needed, kept = set() if needed is None else needed, list[Statement]()
    for statement in reversed(list(body)):
        if isinstance(statement, Block):
            needed |= set(NAMES.findall(statement.head))
            statement = Block(statement.head, without_unread(statement.body, needed))
        elif isinstance(statement, Let) and not statement.changing and statement.name not in needed:
            continue
        else:
            needed |= reads(statement)
        kept.append(statement)
    return kept[::-1]


# docs/decisions.md#few-alive
def few_alive(body: Iterable[Statement]) -> list[Statement]:
    """The statements in an order in which few numbers are alive at once.

    As it is traced, a program makes every element of an array before it reads the first. Compilers mend some of that
    themselves, so another order is taken only where it spares a quarter.
    """
    body = list(body)
    other = _by_need(body)
    return other if 4 * alive(other) <= 3 * alive(body) else body


def _by_need(body: list[Statement]) -> list[Statement]:
    """Variables where they are first needed. Of what a variable needs, that comes first that needs most itself."""
    waiting, needs, heights = dict[str, Let](), dict[str, set[str]](), dict[str, int]()
    readers, done = defaultdict[str, list[str]](list), list[Statement]()

    def make(names: Iterable[str]) -> None:
        stack = sorted((name for name in names if name in waiting), key=lambda name: (heights[name], name))
        while stack:
            missing = sorted((each for each in needs[stack[-1]] if each in waiting), key=lambda x: (heights[x], x))
            if missing and stack[-1] in waiting:
                stack += missing
                continue
            if (name := stack.pop()) in waiting:
                done.append(waiting.pop(name))

    for statement in body:
        if isinstance(statement, Block):
            statement = Block(statement.head, _by_need(statement.body))
        read = reads(statement)
        if isinstance(statement, Let) and not statement.changing and "[" not in statement.text:
            operands = sorted((heights.get(name, 1) for name in read), reverse=True)
            heights[statement.name] = max([1, *(height + beside for beside, height in enumerate(operands))])
            waiting[statement.name], needs[statement.name] = statement, read
            for name in read:
                readers[name].append(statement.name)
            continue
        for name in sorted(changes(statement)):  # what is changed here is read before
            make(readers.pop(name, ()))
        make(read)
        done.append(statement)
    return done + list(waiting.values())

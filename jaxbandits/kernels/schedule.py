"""A program's statements in a good order, what is counted of them before any compiler sees them, and what follows.

How much of a program is held apart is what registers hold and compilers take in seconds.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple

from jaxbandits.kernels import text
from jaxbandits.kernels.arrays import LARGEST
from jaxbandits.kernels.emitter import Emitter
from jaxbandits.kernels.merged import merge_loops, without_unread_arrays
from jaxbandits.kernels.source import kernel
from jaxbandits.kernels.text import Block, Let, Statement, changes, flatten, indent_lines, reads, rename, rewrite

# Beyond these a program's arrays stay in memory and loops run over them, smaller and smaller ones until the program is
# within them. A thread has 255 registers, and compilers spill nearly all numbers of much longer texts. With up to
# MOST_SPILLED numbers alive the form is taken that touches memory less often. docs/decisions.md#counts-not-names
MOST_STATEMENTS, MOST_ALIVE, MOST_SPILLED = 13_000, 280, 600
HELD = 220  # numbers in registers; of others each is stored and loaded about once a play
MOST_MEMORY = 12_000  # numbers in a thread's memory from which loops are made one only where it does not grow
LONGEST_UNROLLED_LOOP = 500  # statements of a loop of which four turns are written out
APART = (LARGEST, 64, 16, 4)  # elements of the largest array that is held apart


class Census(NamedTuple):
    """Counts of a program of one lane. What is in a loop counts once."""

    operations: int  # statements that compute something
    alive: int  # the most numbers that are needed at once
    memory: int  # numbers in arrays of the thread's own memory
    loops: int
    touched: int  # how often a play touches arrays, in every turn of its loops

    @property
    def in_memory(self) -> int:
        """How often a play touches a thread's memory, about."""
        return self.touched + 2 * max(0, self.alive - HELD)


def census_of(body: list[Statement]) -> Census:
    """Count the statements of a program."""
    made = [life.let for life in _lives(body)]
    again = [x for x in body if isinstance(x, Block) and x.length is None]  # all else is run once
    return Census(
        operations=sum(not let.changing for let in made),
        alive=alive(body),
        memory=_memory(body),
        loops=sum("for (" in line for line in indent_lines(body)),
        touched=_count_touches(again or body),
    )


def _count_touches(body: Iterable[Statement]) -> int:
    def touches(x: Statement) -> int:
        if not isinstance(x, Block):
            return text.entry(x) is not None
        return (1 if x.length is None else x.length) * _count_touches(x.body)

    return sum(map(touches, body))


def unroll_inner_loops(body: Iterable[Statement]) -> Iterator[Statement]:
    """The statements, with four turns written out of loops without others in them: lanes wait for memory together."""
    for statement in body:
        if not isinstance(statement, Block):
            yield statement
        elif (
            statement.length is not None
            and len(statement.body) <= LONGEST_UNROLLED_LOOP
            and not any(isinstance(each, Block) for each in statement.body)
        ):
            yield statement._replace(head=statement.head.replace("ONCE", "FOUR"))
        else:
            yield statement._replace(body=list(unroll_inner_loops(statement.body)))


class _Life(NamedTuple):
    """A variable or an array, from the statement that makes it to the last one that needs it."""

    let: Let
    begin: int
    end: int


def _lives(body: list[Statement]) -> Iterable[_Life]:
    """What a loop reads and leaves as it is is needed until it ends, and so are the arrays that it names."""
    found, now = dict[str, _Life](), 0

    def walk(body: list[Statement]) -> None:
        nonlocal now
        for statement in text.each_branch(body):
            now += 1
            needed = reads(statement)
            if isinstance(statement, Block):
                walk(statement.body)
                now += 1
                needed -= {name for name in changes(statement) if name in found and not found[name].let.size}
            found.update({name: found[name]._replace(end=now) for name in needed & found.keys()})
            if isinstance(statement, Let):
                found[statement.name] = _Life(statement, now, now)

    walk(body)
    return found.values()


def alive(body: list[Statement]) -> int:
    """The most variables that are needed at once. The new value of one that is assigned takes the place of the old."""
    lives = [life for life in _lives(body) if not life.let.size and life.end > life.begin]
    events = sorted([(life.begin, 1) for life in lives] + [(life.end, -1) for life in lives])
    return max(accumulate(change for _, change in events), default=0)


# docs/decisions.md#a-threads-memory
def sharing_memory(body: list[Statement]) -> list[Statement]:
    """The statements with large arrays declared first, those in one place that are not needed at the same time."""
    places, shared = dict[str, str](), dict[str, list[_Life]]()
    arrays = [life for life in _lives(body) if life.let.size > 1]
    for array in sorted(arrays, key=lambda life: (-life.let.size, life.begin)):
        fitting = (
            place
            for place, others in shared.items()
            if others[0].let.name.dtype == array.let.name.dtype
            and all(x.end < array.begin or array.end < x.begin for x in others)
        )
        place = places[array.let.name] = next(fitting, array.let.name)
        shared.setdefault(place, []).append(array)
    left = rewrite(body, lambda x: None if isinstance(x, Let) and x.name in places else rename(x, places))
    return [*(others[0].let for others in shared.values()), *left]


def without_unread(body: list[Statement], needed: set[str] | None = None) -> list[Statement]:
    """The statements without variables that nothing reads. needed: what is read later."""
    needed, kept = set() if needed is None else needed, list[Statement]()
    for statement in reversed(body):
        if isinstance(statement, Block):
            needed |= set(text.VARIABLE_NAME.findall(statement.head))
            statement = statement._replace(body=without_unread(statement.body, needed))
        elif isinstance(statement, Let) and not statement.changing and statement.name not in needed:
            continue
        else:
            needed |= reads(statement)
        kept.append(statement)
    return kept[::-1]


# docs/decisions.md#few-alive
def few_alive(body: list[Statement]) -> list[Statement]:
    """The statements in an order in which few numbers are alive at once.

    As it is traced, a program makes every element of an array before it reads the first. Compilers mend some of that
    themselves, so another order is taken only where it spares a quarter.
    """
    other = _by_need(body)
    return other if 4 * alive(other) <= 3 * alive(body) else body


def _by_need(body: list[Statement]) -> list[Statement]:
    """Variables where they are first needed. Of what a variable needs, that comes first that needs most itself."""
    waiting, needs, heights = dict[str, Let](), dict[str, set[str]](), dict[str, int]()
    readers, done = defaultdict[str, list[str]](list), list[Statement]()

    def lowest_first(names: Iterable[str]) -> list[str]:
        return sorted((name for name in names if name in waiting), key=lambda name: (heights[name], name))

    def write_needed(names: Iterable[str]) -> None:
        stack = lowest_first(names)
        while stack:
            missing = lowest_first(needs[stack[-1]])
            if missing and stack[-1] in waiting:
                stack += missing
            elif (name := stack.pop()) in waiting:
                done.append(waiting.pop(name))

    for statement in body:
        if isinstance(statement, Block):
            statement = statement._replace(body=_by_need(statement.body))
        read = reads(statement)
        if isinstance(statement, Let) and not statement.changing and "[" not in str(statement.text):
            operands = sorted((heights.get(name, 1) for name in read), reverse=True)
            heights[statement.name] = max([1, *(height + beside for beside, height in enumerate(operands))])
            waiting[statement.name], needs[statement.name] = statement, read
            for name in read:
                readers[name].append(statement.name)
            continue
        for name in sorted(changes(statement)):  # what is changed here is read before
            write_needed(readers.pop(name, ()))
        write_needed(read)
        done.append(statement)
    return done + list(waiting.values())


# ---- how much is held apart


class Fitted(NamedTuple):
    """What was traced of one lane, and its kernel."""

    traced: Any
    reason: str = ""  # why it is no kernel, of which nothing else is known then
    source: Any = None  # `Source`
    census: Any = None  # `Census`
    largest: int = 0  # elements of an array that is held apart

    @property
    def form(self) -> str:
        """How its arrays are held: "written out", or "loops" where some are in memory."""
        return "loops" if self.census.memory else "written out"


Write = Callable[[Emitter, Any], list[str]]  # writes what is traced, gives the kernel's arguments


def _arrange(body: list[Statement]) -> list[Statement]:
    return sharing_memory(few_alive(body))


def _memory(body: Iterable[Statement]) -> int:
    """How many numbers a thread's memory holds."""
    return sum(x.size for x in flatten(body) if isinstance(x, Let))


def write_kernel(stem: str, write: Write, traced: Any, largest: int, most: float = inf) -> Fitted:
    """The kernel with arrays held apart up to a size. most: statements before `TooLong`."""
    run = Emitter(largest, most)
    arguments = write(run, traced)
    plain = without_unread(run.body)
    body = _arrange(without_unread(without_unread_arrays(merge_loops(plain))))
    if _memory(body) > MOST_MEMORY:  # arrays of loops that are one are needed at once
        body = min(body, _arrange(plain), key=_memory)
    lines = "\n".join(indent_lines(unroll_inner_loops(body)))
    return Fitted(traced, "", kernel(stem, arguments, lines), census_of(body), largest)


def fit_kernel(stem: str, write: Write, traced: Any) -> Fitted:
    """The kernel with the largest arrays held apart that the bounds allow."""
    spilling: Fitted | None = None
    for largest in APART:
        try:
            found = write_kernel(stem, write, traced, largest, inf if largest == APART[-1] else 1.5 * MOST_STATEMENTS)
        except text.TooLong:
            continue
        except text.Unsupported as error:
            return Fitted(traced, f"there is no rule for {error}")
        if found.census.operations <= MOST_STATEMENTS:
            if found.census.alive <= MOST_ALIVE:
                break
            if found.census.alive <= MOST_SPILLED and not spilling:
                spilling = found
    return spilling if spilling and spilling.census.in_memory < found.census.in_memory else found

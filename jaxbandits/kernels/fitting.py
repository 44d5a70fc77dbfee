"""How much of a program is held apart: as much as registers hold and compilers take in seconds."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxbandits.kernels.arrays import LARGEST
from jaxbandits.kernels.emitter import Emitter
from jaxbandits.kernels.schedule import Census, census_of, few_alive, sharing_memory, without_unread
from jaxbandits.kernels.source import Argument, Source, kernel
from jaxbandits.kernels.text import TooLong

# Beyond these a program's arrays stay in memory and loops run over them, smaller and smaller ones until the program is
# within them. A thread has 255 registers, and compilers spill nearly all numbers of much longer texts.
# docs/decisions.md#counts-not-names
MOST_STATEMENTS, MOST_ALIVE = 6_500, 280
APART = (LARGEST, 64, 16, 4)  # elements of the largest array that is held apart


class Written(NamedTuple):
    """A kernel, written."""

    source: Source
    census: Census
    largest: int  # elements of an array that is held apart

    @property
    def form(self) -> str:
        """How its arrays are held: "written out", or "loops" where some are in memory."""
        return "loops" if self.census.memory else "written out"


def fitted(stem: str, write: Callable[[Emitter], Sequence[Argument]]) -> Written:
    """The kernel with the largest arrays held apart that the bounds allow. write: writes it, gives its arguments."""
    for largest in APART:
        last = largest == APART[-1]
        try:
            found = written(stem, write, largest, None if last else 2 * MOST_STATEMENTS)
        except TooLong:
            continue
        if found.census.operations <= MOST_STATEMENTS and found.census.alive <= MOST_ALIVE:
            break
    return found


def written(
    stem: str, write: Callable[[Emitter], Sequence[Argument]], largest: int, most: int | None = None
) -> Written:
    """The kernel with arrays held apart up to a size. most: statements before `TooLong`."""
    run = Emitter(largest, most)
    arguments = write(run)
    body = sharing_memory(few_alive(without_unread(run.body)))
    return Written(kernel(stem, arguments, body), census_of(body), largest)

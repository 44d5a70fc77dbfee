"""The C text of a stretch of windows: a thread plays one lane from segment to segment, its numbers in registers.

The arguments of a kernel are pointers: what all lanes share, leaves of the case, leaves of the lanes, and the results,
which are the lanes again. Leaves lie in memory as XLA has them, [S, M, ...] or [S, ...] where points share them; each
is read once before the plays and written once after them. Rows of checkpoints are written as they are reached.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.kernels.arrays import Array, Index, linear, single
from jaxbandits.kernels.emitter import Emitter
from jaxbandits.kernels.flow import Carried, lent
from jaxbandits.kernels.layouts import layout_of
from jaxbandits.kernels.source import Argument
from jaxbandits.kernels.text import Name, text_of
from jaxbandits.kernels.traced import Traced, record_totals
from jaxbandits.window import Lane

# What the first argument of a kernel holds, int32 each.
LIMITS = ("lanes", "points", "checkpoints", "before", "left", "length", "row", "windows")
LARGEST_TABLE = 32  # elements of an array of the case that are read into registers; more stay where they lie


class Shared(NamedTuple):
    """Which leaves points share: they have no axis of points."""

    case: tuple[bool, ...]
    lane: tuple[bool, ...]


class Stretch:
    """Writes the program of one lane."""

    def __init__(self, traced: Traced, lane: Lane, shared: Shared, run: Emitter) -> None:
        self.traced, self.lane, self.shared, self.run = traced, lane, shared, run
        self.tables = jax.tree.leaves((lane.record.pulls_at, lane.record.regret_at))
        for name in LIMITS:
            self.run.say(f"const int {name} = limits[{LIMITS.index(name)}];")
        self.run.say("const int horizon = times[checkpoints - 1];")
        self.seed = single(self.run.let("seeds[lane]", np.uint32))
        self.case = [
            self._of_case(k, x, shared) for k, (x, shared) in enumerate(zip(self._case(), shared.case, strict=True))
        ]

    def _case(self) -> list[Any]:
        return jax.tree.leaves(self.traced.case)

    def _of_case(self, k: int, x: Any, shared: bool) -> Array:
        size = prod(x.shape)
        place = f"case{k}" if shared else f"(case{k} + (size_t)point * {size})"
        view = self.run.view(place, x.shape, x.dtype)
        return view if size > LARGEST_TABLE else self.run.apart(view)

    def arguments(self) -> list[Argument]:
        """The kernel's arguments: inputs, then results."""
        found = [
            Argument(name, dtype) for name, dtype in (("limits", "int32"), ("times", "int32"), ("seeds", "uint32"))
        ]
        found += [Argument(f"case{k}", x.dtype) for k, x in enumerate(self._case())]
        leaves = jax.tree.leaves(self.traced.lane)
        found += [Argument(f"in{k}", x.dtype, alone=False) for k, x in enumerate(leaves)]
        found += [Argument(f"before{k}", x.dtype, alone=False) for k, x in enumerate(self.tables)]
        found += [Argument(f"out{k}", x.dtype, result=True) for k, x in enumerate(leaves)]
        return found + [Argument(f"at{k}", x.dtype, result=True) for k, x in enumerate(self.tables)]

    def write(self) -> None:
        """The whole program."""
        run, leaves = self.run, jax.tree.leaves(self.traced.lane)
        places = (f"(in{k} + {self._place(k, prod(x.shape))})" for k, x in enumerate(leaves))
        start = [run.settled(run.view(place, x.shape, x.dtype)) for place, x in zip(places, leaves, strict=True)]
        self.state = Carried(run, leaves, start)
        ended = {"single": self._single, "full": self._full, "counted": self._counted}[self.traced.kind]()
        for k, x in enumerate(jax.tree.leaves(ended)):
            self._keep(f"(out{k} + {self._place(k, x.size)})", x)

    def _place(self, k: int, size: int) -> str:
        lane = "(size_t)lane" if self.shared.lane[k] else "((size_t)lane * points + point)"
        return f"{lane} * {size}"

    def _keep(self, place: str, x: Array) -> None:
        """Write an array into the kernel's results."""

        def write(index: Index) -> None:
            self.run.say(f"{place}[{linear(index, x.shape)}] = {text_of(x.at(index))};")

        layout_of(self.run, x).over(x.shape, write)

    def _named(self, arrays: Sequence[Array]) -> Lane:
        lane: Lane = jax.tree.unflatten(jax.tree.structure(self.traced.lane), arrays)
        return lane

    def _write_totals(self, row: Name, totals: Sequence[Array]) -> None:
        for k, x in enumerate(totals):
            self._keep(f"(at{k} + (((size_t)lane * points + point) * checkpoints + {row}) * {x.size})", x)

    def _single(self) -> Lane:
        run = self.run
        done, row = run.variable(Name("before", np.int32), np.int32), run.variable(Name("row", np.int32), np.int32)
        run.say("const int last = before + windows < horizon ? before + windows : horizon;")
        with run.block("ONCE for (;;)"):
            run.say(f"const int end = {row} < checkpoints && times[{row}] < last ? times[{row}] : last;")
            with run.block(f"ONCE for (; {done} < end; )"):
                self.state.become(
                    run.closed(self.traced.step, [*self.case, self.seed, *self.state.arrays, single(done)])
                )
                run.say(f"{done} = {done} + 1;")
            run.say(f"if ({row} == checkpoints || times[{row}] > last) break;")
            self._write_totals(row, record_totals(self.lane, self._named(lent(self.state.arrays))))
            run.say(f"{row} = {row} + 1;")
        return self._named(self.state.arrays)._replace(plays=single(done), next=single(row))

    def _window(self, which: list[Any]) -> tuple[list[Array], list[Array], list[Array]]:
        """The lane after a window, the totals before it, and what its totals at checkpoints follow from."""
        record = self._named(self.state.arrays).record
        before = jax.tree.leaves((record.pulls, record.regret))
        lane = [x if all(x is not each for each in before) else lent([x])[0] for x in self.state.arrays]
        found = self.run.closed(self.traced.step, [*self.case, self.seed, *lane, *map(single, which)])
        count = len(self.state.arrays)
        return [self.run.kept(x) for x in found[:count]], lent(before), [self.run.kept(x) for x in found[count:]]

    def _checkpoints(self, row: Name, done: Any, before: list[Array], shown: list[Array]) -> None:
        """Write the rows of the checkpoints up to a play."""
        run = self.run
        with run.block(f"ONCE for (; {row} < checkpoints && times[{row}] <= {text_of(done)}; )"):
            time = single(run.let(f"times[{row}]", np.int32))
            self._write_totals(row, run.closed(self.traced.totals, [*before, *shown, time]))
            run.say(f"{row} = {row} + 1;")

    def _full(self) -> Lane:
        run, slots = self.run, self.traced.slots
        done, row, left = (run.variable(Name(name, np.int32), np.int32) for name in ("before", "row", "left"))
        with run.block("ONCE for (int window = 0; window < windows; ++window)"):
            most = run.let(f"{left} < {slots} ? ({left} < 0 ? 0 : {left}) : {slots}", np.int32)
            rest = run.let(f"horizon > {done} ? horizon - {done} : 0", np.int32)
            made = run.op("min", most, rest)
            reached = run.op("add", done, made)
            after, before, shown = self._window([done, made])
            self._checkpoints(row, reached, before, shown)
            self.state.become(after)
            run.say(f"{done} = {reached};")
            run.say(f"{left} = {left} > {slots} ? {left} - {slots} : length;")
        return self._named(self.state.arrays)._replace(plays=single(done), next=single(row))

    def _counted(self) -> Lane:
        run, traced = self.run, self.traced
        row, horizon = self._named(self.state.arrays).next[()], single(Name("horizon", np.int32))
        with run.block(f"ONCE for (int window = windows * {traced.split}; window > 0; --window)"):
            [moves] = run.closed(traced.moves, [*self.case, *lent(self.state.arrays), horizon])
            run.say(f"if (!{text_of(moves[()])}) break;")
            stop = horizon[()]
            if traced.ahead is not None:
                place = f"{row} + {traced.ahead} < checkpoints ? {row} + {traced.ahead} : checkpoints - 1"
                stop = run.let(f"times[{place}]", np.int32)
            after, before, shown = self._window([stop])
            lane = self._named(after)
            self._checkpoints(row, lane.plays[()], before, shown)
            self.state.become(jax.tree.leaves(lane._replace(next=single(row))))
        return self._named(self.state.arrays)


def writer(traced: Traced, lane: Lane, shared: Shared) -> Callable[[Emitter], list[Argument]]:
    """What writes the kernel of a window. lane: shapes of one lane, with its rows at the checkpoints."""

    def write(run: Emitter) -> list[Argument]:
        stretch = Stretch(traced, lane, shared, run)
        stretch.write()
        return stretch.arguments()

    return write

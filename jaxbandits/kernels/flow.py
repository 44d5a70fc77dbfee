"""Loops and branches, which stay loops and branches. What they carry are variables, or memory where it is large."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbandits.kernels.arrays import Apart, Array, Looped, listed, single
from jaxbandits.kernels.layouts import Loops, layout_of
from jaxbandits.kernels.text import known, text_of

LONGEST_UNROLLED = 64  # steps of a scan that are written out, where it has inputs or outputs
SHORTEST_LOOP = 5  # steps of a scan without inputs and outputs from which it stays a loop


class Carried:
    """Arrays that are assigned: `arrays` are what they hold now. start: None where they are assigned before any use."""

    def __init__(self, run: Any, shapes: Any, start: list[Array] | None = None) -> None:
        self.run, self.arrays = run, list[Array]()
        for k, x in enumerate(shapes):
            if run.is_large(x if start is None else start[k]):
                self.arrays.append(run.memory(x.shape, x.dtype) if start is None else run.owned(start[k]))
            else:
                flat = [None] * x.size if start is None else run.apart(start[k]).reshape(-1)
                self.arrays.append(listed([run.variable(each, x.dtype) for each in flat], x.shape))

    def become(self, new: list[Array]) -> None:
        """Assign all arrays at once."""
        run, own = self.run, {x.memory for x in self.arrays if isinstance(x, Looped)}
        names, values, copies = list[Any](), list[Any](), []
        for old, x in zip(self.arrays, new, strict=True):
            if not isinstance(old, Looped):
                names, values = [*names, *old.reshape(-1)], [*values, *run.apart(x).reshape(-1)]
            elif not isinstance(x, Looped) or x.memory != old.memory:
                read = x.sources if isinstance(x, Looped) else own
                copies.append((old, run.copied(x) if read & own else x))  # before anything is written over
        for old, x in copies:
            run.store(old, x)
        run.assign(names, values)


def loop(run: Any, start: list[Array], shapes: Any, condition: Callable[..., Array], body: Callable[..., Any]) -> Any:
    """What is carried after a loop while a condition holds. Rows of a lane under `vmap` end by themselves."""
    state = Carried(run, shapes, start)
    with run.block("ONCE for (;;)"):
        on = run.apart(condition(lent(state.arrays)))
        run.say(f"if (!({' | '.join(dict.fromkeys(map(text_of, on.reshape(-1))))})) break;")
        if on.ndim:
            new = body(lent(state.arrays))
            state.become([_where(run, on, *pair) for pair in zip(new, state.arrays, strict=True)])
        else:
            state.become(body(state.arrays))
    return state.arrays


def _where(run: Any, on: Apart, new: Array, old: Array) -> Array:
    """`new` in the rows whose condition holds, else `old`."""
    layout = layout_of(run, old)
    given = list(map(layout.of, (on, new, old)))

    def element(i: Any) -> Any:
        return run.select(given[0].at(i[: on.ndim]), given[1].at(i), given[2].at(i))

    return layout.lazy(old.shape, old.dtype, element, *given)


def lent(arrays: list[Array]) -> list[Array]:
    """Arrays for somebody who does not write them over."""
    return [x.shared() if isinstance(x, Looped) else x for x in arrays]


def _lasting(run: Any, arrays: list[Array]) -> list[Array]:
    """What a loop reads again and again, and does not write over."""
    return lent(list(map(run.kept, arrays)))


def _while(run: Any, eqn: Any, x: list[Array]) -> list[Array]:
    p = eqn.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    fixed = _lasting(run, x[:second])
    return loop(
        run, x[second:], [v.aval for v in eqn.outvars],
        lambda state: run.closed(p["cond_jaxpr"], [*fixed[:first], *state])[0],
        lambda state: run.closed(p["body_jaxpr"], [*fixed[first:], *state]),
    )  # fmt: skip


def _scan(run: Any, eqn: Any, x: list[Array]) -> list[Array]:
    p, length = eqn.params, eqn.params["length"]
    # inputs and outputs have an axis more than a step has; releases of JAX have other names for their numbers
    outputs = sum(v.aval.ndim > step.ndim for v, step in zip(eqn.outvars, p["jaxpr"].out_avals, strict=True))
    carried = sum(v.aval.ndim == step.ndim for v, step in zip(eqn.invars, p["jaxpr"].in_avals, strict=True))
    consts = carried - (len(eqn.outvars) - outputs)
    fixed, state, inputs = _lasting(run, x[:consts]), x[consts:carried], _lasting(run, x[carried:])
    rows = [v.aval for v in eqn.outvars[len(eqn.outvars) - outputs :]]
    large = any(map(run.is_large, [*inputs, *rows])) or length > min(LONGEST_UNROLLED, run.largest)
    if large or (not inputs and not outputs and length >= SHORTEST_LOOP):
        return _scan_looped(
            run, p, fixed, Carried(run, [v.aval for v in eqn.outvars[: len(state)]], state), inputs, rows
        )
    found: list[Any] = [None] * length
    for k in range(length)[:: -1 if p["reverse"] else 1]:
        row = [each[k] if each.ndim > 1 else single(each[k]) for each in map(run.apart, inputs)]
        after = run.closed(p["jaxpr"], [*fixed, *state, *row])
        state, found[k] = after[: len(state)], list(map(run.apart, after[len(state) :]))
    return [*state, *(np.stack([row[i] for row in found]).view(Apart) for i in range(outputs))]


def _scan_looped(run: Any, p: Any, fixed: list[Array], state: Carried, inputs: list[Array], rows: Any) -> list[Array]:
    """A scan as a loop whose inputs and outputs lie in memory."""
    inputs, outputs = list(map(run.looped, inputs)), [run.memory(x.shape, x.dtype) for x in rows]
    k, length, count = run.fresh("i", np.int32), p["length"], len(state.arrays)
    with run.block(f"ONCE for (int {k} = 0; {k} < {length}; ++{k})"):
        here = f"({length - 1} - {k})" if p["reverse"] else str(k)
        row = [_row(run, x, here) for x in inputs]
        after = run.closed(p["jaxpr"], [*fixed, *state.arrays, *row])
        for to, x in zip(outputs, map(run.looped, after[count:]), strict=True):
            run.over(x.shape, lambda i: run.put(to, [here, *i], x.at(i)))  # noqa: B023
        state.become(after[:count])
    return [*state.arrays, *(run.settled(x) for x in outputs)]


def _row(run: Any, x: Looped, k: str) -> Array:
    return run.settled(Loops(run).lazy(x.shape[1:], x.dtype, lambda i: x.at([k, *i]), x, cheap=True))


def _cond(run: Any, eqn: Any, x: list[Array]) -> list[Array]:
    index, branches = run.apart(x[0])[()], eqn.params["branches"]
    if known(index):
        return run.closed(branches[int(index)], x[1:])
    x = [run.kept(each) for each in x[1:]]
    found = Carried(run, [v.aval for v in eqn.outvars])
    for k, branch in enumerate(branches):
        test = f"!{index}" if index.dtype == bool else f"{index} <= {k}"
        head = f"if ({test})" if k == 0 else "else" if k == len(branches) - 1 else f"else if ({test})"
        with run.block(head):
            found.become(run.closed(branch, x))
    return found.arrays


RULES = {"cond": _cond, "scan": _scan, "while": _while}

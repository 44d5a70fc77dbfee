"""Loops and branches, which stay loops and branches. What they carry are variables, or memory where it is large."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbandits.kernels.arrays import Array, Looped, filled, listed, single
from jaxbandits.kernels.text import Name, known, text_of

LONGEST_UNROLLED = 64  # steps of a scan that are written out, where it has inputs or outputs
SHORTEST_LOOP = 5  # steps of a scan without inputs and outputs from which it stays a loop


class Carried:
    """Arrays that are assigned: `arrays` are what they hold now."""

    def __init__(self, run: Any, shapes: Any, start: list[Array] | None = None) -> None:
        self.run, self.arrays, self.names = run, list[Array](), list[list[Name]]()
        for k, x in enumerate(shapes):
            if run.is_large(x if start is None else start[k]):
                memory = run.memory(x.shape, x.dtype)
                if start is not None:
                    run.store(memory, run.looped(start[k]))
                self.arrays.append(memory)
                self.names.append([])
                continue
            flat = [None] * x.size if start is None else run.apart(start[k]).reshape(-1)
            names = [run.variable(each, x.dtype) for each in flat]
            self.arrays.append(listed(names, x.shape))
            self.names.append(names)

    def become(self, new: list[Array]) -> None:
        """Assign all arrays at once."""
        run, own = self.run, {x.memory for x in self.arrays if isinstance(x, Looped)}
        flat, values, copies = list[Name](), list[Any](), []
        for old, names, x in zip(self.arrays, self.names, new, strict=True):
            if not isinstance(old, Looped):
                flat, values = [*flat, *names], [*values, *run.apart(x).reshape(-1)]
            elif not isinstance(x, Looped) or x.memory is None or x.memory in own - {old.memory}:
                copies.append((old, run.copied(x)))  # it may be computed from what is written over
            elif x.memory != old.memory:
                copies.append((old, x))
        for old, x in copies:
            run.store(old, x)
        run.assign(flat, values)


def loop(run: Any, start: list[Array], shapes: Any, condition: Callable[..., Array], body: Callable[..., Any]) -> Any:
    """What is carried after a loop while a condition holds. Rows of a lane under `vmap` end by themselves."""
    state = Carried(run, shapes, start)
    with run.block("ONCE for (;;)"):
        on = run.apart(condition(state.arrays))
        run.say(f"if (!({' | '.join(dict.fromkeys(map(text_of, on.reshape(-1))))})) break;")
        new = body([x.shared() if isinstance(x, Looped) and on.ndim else x for x in state.arrays])
        state.become([_where(run, on, a, b) for a, b in zip(new, state.arrays, strict=True)] if on.ndim else new)
    return state.arrays


def _where(run: Any, on: Array, new: Array, old: Array) -> Array:
    """`new` in the rows whose condition holds, else `old`."""
    if not isinstance(old, Looped):
        new = run.apart(new)
        return filled(new.shape, lambda i: run.select(on[i[: on.ndim]], new[i], old[i]))
    rows, new = run.looped(on), run.looped(new)
    return Looped(old.shape, old.dtype, lambda i: run.select(rows.at(i[: on.ndim]), new.at(i), old.at(i)), cheap=False)


def _lasting(run: Any, x: Array) -> Array:
    """What a loop reads again and again, and does not write over."""
    return run.kept(x).shared() if isinstance(x, Looped) else x


def _while(run: Any, eqn: Any, x: list[Array]) -> list[Array]:
    p = eqn.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    fixed = [_lasting(run, each) for each in x[:second]]
    return loop(
        run, x[second:], [v.aval for v in eqn.outvars],
        lambda state: run.closed(p["cond_jaxpr"], [*fixed[:first], *_shared(state)])[0],
        lambda state: run.closed(p["body_jaxpr"], [*fixed[first:], *state]),
    )  # fmt: skip


def _shared(arrays: list[Array]) -> list[Array]:
    return [x.shared() if isinstance(x, Looped) else x for x in arrays]


def _scan(run: Any, eqn: Any, x: list[Array]) -> list[Array]:
    p, length = eqn.params, eqn.params["length"]
    # inputs and outputs have an axis more than a step has; releases of JAX have other names for their numbers
    outputs = sum(v.aval.ndim > step.ndim for v, step in zip(eqn.outvars, p["jaxpr"].out_avals, strict=True))
    carried = sum(v.aval.ndim == step.ndim for v, step in zip(eqn.invars, p["jaxpr"].in_avals, strict=True))
    consts = carried - (len(eqn.outvars) - outputs)
    fixed, state, inputs = [_lasting(run, each) for each in x[:consts]], x[consts:carried], x[carried:]
    rows = [v.aval for v in eqn.outvars[len(eqn.outvars) - outputs :]]
    large = any(map(run.is_large, [*inputs, *rows])) or length > min(LONGEST_UNROLLED, run.largest)
    if large or (not inputs and not outputs and length >= SHORTEST_LOOP):
        shapes = [v.aval for v in eqn.outvars[: len(state)]]
        return _scan_looped(run, p, fixed, state, [_lasting(run, each) for each in inputs], shapes, rows)
    found: list[Any] = [None] * length
    for k in range(length)[:: -1 if p["reverse"] else 1]:
        row = [each[k] if each.ndim > 1 else single(each[k]) for each in map(run.apart, inputs)]
        after = run.closed(p["jaxpr"], [*fixed, *state, *row])
        state, found[k] = after[: len(state)], list(map(run.apart, after[len(state) :]))
    return [*state, *(np.stack([row[i] for row in found]) for i in range(outputs))]


def _scan_looped(
    run: Any, p: Any, fixed: list[Array], start: list[Array], inputs: list[Array], shapes: Any, rows: Any
) -> list[Array]:
    """A scan as a loop whose inputs and outputs lie in memory."""
    inputs, outputs = [run.looped(x) for x in inputs], [run.memory(x.shape, x.dtype) for x in rows]
    state, k, length = Carried(run, shapes, start), run.fresh("i", np.int32), p["length"]
    with run.block(f"ONCE for (int {k} = 0; {k} < {length}; ++{k})"):
        here = f"({length - 1} - {k})" if p["reverse"] else str(k)
        row = [run.settled(x.moved(x.shape[1:], lambda i: [here, *i])) for x in inputs]
        after = run.closed(p["jaxpr"], [*fixed, *state.arrays, *row])
        for to, x in zip(outputs, after[len(start) :], strict=True):
            one = run.looped(x)
            run.store(to, one.moved((1, *one.shape), lambda i: i[1:]), [here, *[0] * one.ndim])
        state.become(after[: len(start)])
    return [*state.arrays, *(run.settled(x) for x in outputs)]


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

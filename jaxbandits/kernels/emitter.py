"""A traced function of one lane, written as a C program.

Nothing is asked of the function: what its trace does is all there is to know. Calls are followed, and loops and
branches stay: what they carry are variables, or memory where it is large. What remains are operations on arrays
(`rules`), written out element by element where all arrays are small, and as loops over memory where one is large.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from jaxbandits.jax_internals import dce_jaxpr
from jaxbandits.kernels.arrays import Apart, Array, Looped, Loops, constant, hold_apart, minus, single
from jaxbandits.kernels.rules import C_RULES
from jaxbandits.kernels.text import Unsupported, is_known, text_of

# Primitives that call a traced function, and the parameter that holds it.
JAXPR_OF_CALL = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
    "custom_vmap_call": "call", "with_form": "plain", "write_one": "plain",
}  # fmt: skip
SAME = {"copy", "copy_p", "materialize", "optimization_barrier", "stop_gradient"}
# What writes over an operand. What it reads beside that is read before, or else copied before.
WRITES = {"dynamic_update_slice", "scatter", "scatter-add", "scatter-max", "scatter-min"}
LONGEST_UNROLLED_SCAN = 64  # steps of a scan that are written out, where it has inputs or outputs
SHORTEST_LOOP = 5  # steps of a scan without inputs and outputs from which it stays a loop


def read_only(traced: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function without what nothing reads."""
    read, _ = dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals), instantiate=True)
    return ClosedJaxpr(read, traced.consts)


class Emitter(Loops):
    """Writes traced functions of one lane. largest, most: as of `Loops` and `Writer`."""

    def write_function(self, function: ClosedJaxpr, operands: Iterable[Array]) -> list[Array]:
        """What a traced function gives."""
        return self.write_jaxpr(function.jaxpr, function.consts, operands)

    def write_jaxpr(self, jaxpr: Any, consts: Sequence[Any], operands: Iterable[Array]) -> list[Array]:
        """What a traced function with constants beside it gives. Operands with a `memory` may be written over."""
        values: dict[Any, Array] = dict(zip(jaxpr.invars, operands, strict=True))
        for variable, array in zip(jaxpr.constvars, consts, strict=True):
            values[variable] = constant(array, variable)
        used = [*(x for eqn in jaxpr.eqns for x in eqn.invars), *jaxpr.outvars]
        left = Counter(x for x in used if not isinstance(x, Literal))

        def take_operands(variables: Sequence[Any], writes: bool = False) -> list[Array]:
            """What some variables hold, with its memory where nothing reads that later, be it by way of others."""
            named = [x for x in variables if not isinstance(x, Literal)]
            given = [constant(x.val, x) if isinstance(x, Literal) else values[x] for x in variables]
            left.subtract(named)
            for variable in named:
                if not left[variable]:
                    values.pop(variable, None)
            if all(getattr(x, "memory", None) is None for x in given):
                return given
            readers = Counter(name for x in [*values.values(), *given] for name in getattr(x, "sources", ()))
            readers.subtract(name for x in given for name in getattr(x, "sources", ()) if writes)
            alone = 0 if writes else 1
            return [x.share() if isinstance(x, Looped) and readers[x.memory] > alone else x for x in given]

        for eqn in jaxpr.eqns:
            found = self.results(eqn, take_operands(eqn.invars, eqn.primitive.name in WRITES))
            for variable, x in zip(eqn.outvars, found, strict=True):
                if left[variable]:
                    values[variable] = self.compute_once(x) if left[variable] > 1 else x
        return take_operands(jaxpr.outvars, writes=True)

    def results(self, eqn: Any, x: list[Array]) -> list[Array]:
        """What an operation gives."""
        name = eqn.primitive.name
        if name in SAME:
            return x
        if name in JAXPR_OF_CALL:
            return self.write_function(eqn.params[JAXPR_OF_CALL[name]], x)
        if name in FLOW:
            return FLOW[name](self, eqn, x)
        if name not in C_RULES:
            raise Unsupported(name)
        large = any(map(self.is_large, x)) or any(v.aval.size > self.largest for v in eqn.outvars)
        layout = self if large else self.unrolled
        found = C_RULES[name](layout, eqn, *map(layout.to_layout, x))
        return [self.hold_by_size(each) for each in (found if isinstance(found, list) else [found])]


class Carried:
    """Arrays that are assigned: `arrays` are what they hold now. start: None where they are assigned before any use."""

    def __init__(self, run: Emitter, shapes: Any, start: list[Array] | None = None) -> None:
        self.run, self.arrays = run, list[Array]()
        for k, x in enumerate(shapes):
            if run.is_large(x if start is None else start[k]):
                self.arrays.append(run.each(x.shape, x.dtype) if start is None else run.make_writable(start[k]))
            else:
                flat = [None] * x.size if start is None else run.apart(start[k]).reshape(-1)
                self.arrays.append(hold_apart([run.variable(each, x.dtype) for each in flat], x.shape))

    def assign_arrays(self, new: list[Array]) -> None:
        """Assign all arrays at once."""
        run, own = self.run, {x.memory for x in self.arrays if isinstance(x, Looped)}
        names, values, copies = list[Any](), list[Any](), []
        for old, x in zip(self.arrays, new, strict=True):
            if not isinstance(old, Looped):
                names, values = [*names, *old.reshape(-1)], [*values, *run.apart(x).reshape(-1)]
            elif not isinstance(x, Looped) or x.memory != old.memory:
                read = x.sources if isinstance(x, Looped) else own
                copies.append((old, run.copy_array(x) if read & own else x))  # before anything is written over
        for old, x in copies:
            run.store(old, run.to_layout(x).at)
        run.assign(names, values)


def lend_arrays(arrays: list[Array]) -> list[Array]:
    """Arrays for somebody who does not write them over."""
    return [x.share() if isinstance(x, Looped) else x for x in arrays]


def _lasting(run: Emitter, arrays: list[Array]) -> list[Array]:
    """What a loop reads again and again, and does not write over."""
    return lend_arrays(list(map(run.compute_once, arrays)))


def _while(run: Emitter, eqn: Any, x: list[Array]) -> list[Array]:
    """A loop while a condition holds. Rows of a lane under `vmap` end by themselves."""
    p, first, second = eqn.params, eqn.params["cond_nconsts"], eqn.params["cond_nconsts"] + eqn.params["body_nconsts"]
    fixed, state = _lasting(run, x[:second]), Carried(run, [v.aval for v in eqn.outvars], x[second:])
    with run.block("ONCE for (;;)"):
        [on] = run.write_function(p["cond_jaxpr"], [*fixed[:first], *lend_arrays(state.arrays)])
        on = run.apart(on)
        run.add_statement(f"if (!({' | '.join(dict.fromkeys(map(text_of, on.reshape(-1))))})) break;")
        now = lend_arrays(state.arrays) if on.ndim else state.arrays
        new = run.write_function(p["body_jaxpr"], [*fixed[first:], *now])
        state.assign_arrays([_where(run, on, *pair) for pair in zip(new, now, strict=True)] if on.ndim else new)
    return state.arrays


def _where(run: Emitter, on: Apart, new: Array, old: Array) -> Array:
    """`new` in the rows whose condition holds, else `old`."""
    lay = run.layout(old)
    on, new, old = map(lay.to_layout, (on, new, old))
    return lay.lazy(old.shape, old.dtype, lambda i: run.select(on.at(i[: on.ndim]), new.at(i), old.at(i)), on, new, old)


def _scan(run: Emitter, eqn: Any, x: list[Array]) -> list[Array]:
    p, length = eqn.params, eqn.params["length"]
    # inputs and outputs have an axis more than a step has; releases of JAX have other names for their numbers
    outputs = sum(v.aval.ndim > step.ndim for v, step in zip(eqn.outvars, p["jaxpr"].out_avals, strict=True))
    carried = sum(v.aval.ndim == step.ndim for v, step in zip(eqn.invars, p["jaxpr"].in_avals, strict=True))
    count = len(eqn.outvars) - outputs
    fixed, state, inputs = _lasting(run, x[: carried - count]), x[carried - count : carried], _lasting(run, x[carried:])
    rows = [v.aval for v in eqn.outvars[count:]]
    large = any(map(run.is_large, [*inputs, *rows])) or length > min(LONGEST_UNROLLED_SCAN, run.largest)
    if large or (not inputs and not outputs and length >= SHORTEST_LOOP):
        return _scan_loop(run, p, fixed, Carried(run, [v.aval for v in eqn.outvars[:count]], state), inputs, rows)
    found: list[Any] = [None] * length
    for k in range(length)[:: -1 if p["reverse"] else 1]:
        row = [each[k] if each.ndim > 1 else single(each[k]) for each in map(run.apart, inputs)]
        after = run.write_function(p["jaxpr"], [*fixed, *state, *row])
        state, found[k] = after[:count], list(map(run.apart, after[count:]))
    return [*state, *(np.stack([row[i] for row in found]).view(Apart) for i in range(outputs))]


def _scan_loop(run: Emitter, p: Any, fixed: list[Array], state: Carried, inputs: list[Array], rows: Any) -> list[Array]:
    """A scan as a loop whose inputs and outputs lie in memory."""
    inputs, outputs = list(map(run.to_layout, inputs)), [run.each(x.shape, x.dtype) for x in rows]
    with run.loop(p["length"]) as k:
        here, count = minus(p["length"] - 1, k) if p["reverse"] else k, len(state.arrays)
        after = run.write_function(p["jaxpr"], [*fixed, *state.arrays, *(_row(run, x, here) for x in inputs)])
        for to, x in zip(outputs, map(run.to_layout, after[count:]), strict=True):
            run.for_each_index(x.shape, lambda i: run.set(to, [here, *i], x.at(i)))  # noqa: B023
        state.assign_arrays(after[:count])
    return [*state.arrays, *(run.hold_by_size(x) for x in outputs)]


def _row(run: Emitter, x: Array, k: Any) -> Array:
    return run.hold_by_size(run.lazy(x.shape[1:], x.dtype, lambda i: x.at([k, *i]), x, cheap=True))


def _cond(run: Emitter, eqn: Any, x: list[Array]) -> list[Array]:
    index, branches = run.apart(x[0])[()], eqn.params["branches"]
    if is_known(index):
        return run.write_function(branches[int(index)], x[1:])
    x = [run.compute_once(each) for each in x[1:]]
    found = Carried(run, [v.aval for v in eqn.outvars])
    with run.block(""):  # one statement, which orders keep together
        for k, branch in enumerate(branches):
            test = f"!{index}" if index.dtype == bool else f"{index} <= {k}"
            head = f"if ({test})" if k == 0 else "else" if k == len(branches) - 1 else f"else if ({test})"
            with run.block(head):
                found.assign_arrays(run.write_function(branch, x))
    return found.arrays


def _platform_index(run: Emitter, eqn: Any, x: list[Array]) -> list[Array]:
    """Which of the forms of `lax.platform_dependent` is taken."""
    for i, names in enumerate(eqn.params["platforms"]):
        if names is None or "cuda" in names:
            return [single(np.int32(i))]
    raise Unsupported("a form for cuda")


FLOW = {"cond": _cond, "platform_index": _platform_index, "scan": _scan, "while": _while}

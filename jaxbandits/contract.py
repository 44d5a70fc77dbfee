"""What a user's part must not do, told from its traced program: numbers that change between two traces, draws that never change.

Nothing here runs a part. The walkers take closed jaxprs, however they were obtained.
"""

import functools
import inspect
import sys
from types import FunctionType, MethodType
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

LIBRARIES = ("jaxbandits", "jax", "jaxlib", "numpy", "optax")
RANDOM = ("random_bits", "threefry2x32", "random_gamma", "rng_bit_generator")  # JAX's own draws
REMEDY = "draw from `draws`: a draw that does not depend on the play is the same at every play"


class ContractError(ValueError):
    """A lane broke the contract while it was played: an action outside the arms, lost plays, or regret that is not finite."""


@functools.lru_cache(maxsize=1024)
def is_own(part) -> bool:
    """Whether a function that a part holds, also deep inside a closure, is a user's and not this package's.

    part: a Program, World or Attack, or one function.

    >>> import jaxbandits as jb
    >>> is_own(jb.algorithms.ucb1(num_arms=2, horizon=10).program)
    False
    """
    waiting, seen = [part], set[int]()
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, FunctionType):
            if _is_users(x.__module__):
                return True
            waiting += [c.cell_contents for c in x.__closure__ or () if _is_filled(c)]
            waiting += [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
        elif isinstance(x, functools.partial):
            waiting += [x.func, *x.args, *x.keywords.values()]
        elif isinstance(x, MethodType):
            waiting += [x.__func__, x.__self__]
        elif isinstance(x, tuple | list):
            waiting += x
        elif isinstance(x, dict):
            waiting += x.values()
        elif callable(x) and not isinstance(x, type) and _is_users(type(x).__module__):
            return True
    return False


def written_at(function) -> str:
    """File and line where a function is written; nothing where it has none."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _is_filled(cell) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that is bound later
        return False


def _is_users(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    return top == "__main__" or not (top in LIBRARIES or top in sys.stdlib_module_names)


def changing_trace(first: ClosedJaxpr, second: ClosedJaxpr) -> bool:
    """Whether two traces of one function, on the same shapes, are different programs.

    Numbers from `np.random` or a clock are written into a program when it is traced: then its results are those of one
    trace, not of the function.

    >>> import jax
    >>> import numpy as np
    >>> traces = [jax.make_jaxpr(lambda x: x + np.random.rand())(1.0) for _ in range(2)]
    >>> changing_trace(*traces), changing_trace(traces[0], traces[0])
    (True, False)
    """
    same_constants = len(first.consts) == len(second.consts) and all(map(_same, first.consts, second.consts))
    return not (same_constants and _same_program(first.jaxpr, second.jaxpr))


def _same_program(a: Jaxpr, b: Jaxpr) -> bool:
    """Equal up to the names of variables."""
    if len(a.eqns) != len(b.eqns):
        return False
    numbers: tuple[dict, dict] = ({}, {})

    def variable(x, side: int):
        if isinstance(x, Literal):
            return x
        return numbers[side].setdefault(x, len(numbers[side]))

    def same(x, y) -> bool:
        x, y = variable(x, 0), variable(y, 1)
        return _same(x.val, y.val) if isinstance(x, Literal) and isinstance(y, Literal) else x is y or x == y

    def same_all(xs, ys) -> bool:
        return len(xs) == len(ys) and all(
            str(x.aval) == str(y.aval) and same(x, y) for x, y in zip(xs, ys, strict=True)
        )

    if not same_all([*a.constvars, *a.invars], [*b.constvars, *b.invars]):
        return False
    for p, q in zip(a.eqns, b.eqns, strict=True):
        if p.primitive.name != q.primitive.name or p.params.keys() != q.params.keys():
            return False
        if not (same_all(p.invars, q.invars) and same_all(p.outvars, q.outvars)):
            return False
        if not all(_same(p.params[name], q.params[name]) for name in p.params):
            return False
    return same_all(a.outvars, b.outvars)


def _same(x: Any, y: Any) -> bool:
    """Equal constants or parameters of an equation; functions are passed over: what they do is in the equations."""
    if isinstance(x, ClosedJaxpr) and isinstance(y, ClosedJaxpr):
        return not changing_trace(x, y)
    if isinstance(x, Jaxpr) and isinstance(y, Jaxpr):
        return _same_program(x, y)
    if isinstance(x, tuple | list) and isinstance(y, tuple | list):
        return len(x) == len(y) and all(map(_same, x, y))
    if hasattr(x, "__array__") and hasattr(y, "__array__"):
        x, y = np.asarray(x), np.asarray(y)
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    if isinstance(x, int | float | str | bool) and isinstance(y, int | float | str | bool):
        return x == y or (x != x and y != y)
    return type(x) is type(y)


def constant_draws(closed: ClosedJaxpr, lane_inputs: list[bool] | None = None) -> list[str]:
    """The random primitives of a program that read nothing of the lane: neither seed, state nor play.

    closed : ClosedJaxpr
        The traced program of one function of a part.
    lane_inputs : list of bool, optional
        For each input whether it is the lane's own (its seed, state, play index, context, reward). The default: all are.

    Returns the primitives' names, in order; empty where every draw depends on the lane.

    >>> import jax
    >>> constant_draws(jax.make_jaxpr(lambda t: jax.random.uniform(jax.random.key(0)) + t)(1.0)) != []
    True
    >>> constant_draws(jax.make_jaxpr(lambda t: jax.random.uniform(jax.random.key(t)))(1))
    []
    """
    inputs = [True] * len(closed.jaxpr.invars) if lane_inputs is None else lane_inputs
    found: list[str] = []
    _follow(closed.jaxpr, inputs, found)
    return found


def _follow(jaxpr: Jaxpr, inputs: list[bool], found: list[str]) -> list[bool]:
    """Which outputs depend on the marked inputs; draws that do not are appended to `found`."""
    moving = {v for v, moves in zip(jaxpr.invars, inputs, strict=True) if moves}

    def moves(x) -> bool:
        return not isinstance(x, Literal) and x in moving

    for eqn in jaxpr.eqns:
        marks = [moves(x) for x in eqn.invars]
        outputs = [any(marks)] * len(eqn.outvars)
        if eqn.primitive.name in RANDOM:
            if not any(marks):
                found.append(eqn.primitive.name)
        elif eqn.primitive.name == "while":
            conditions, bodies = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
            constants, carry = marks[conditions : conditions + bodies], marks[conditions + bodies :]
            outputs = _settled(eqn.params["body_jaxpr"].jaxpr, constants, carry, [], found)
            _follow(eqn.params["cond_jaxpr"].jaxpr, marks[:conditions] + outputs, found)
        elif eqn.primitive.name == "scan":
            constants, carries = eqn.params["num_consts"], eqn.params["num_carry"]
            carry, rows = marks[constants : constants + carries], marks[constants + carries :]
            outputs = _settled(eqn.params["jaxpr"].jaxpr, marks[:constants], carry, rows, found)
        else:
            for inner in jax.tree.leaves(eqn.params, is_leaf=_is_program):
                if _is_program(inner):
                    inner = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
                    # branches of a cond lack the index; anything else without a match is taken as all or nothing
                    passed = marks[len(marks) - len(inner.invars) :] if len(inner.invars) <= len(marks) else []
                    passed = passed if len(passed) == len(inner.invars) else [any(marks)] * len(inner.invars)
                    inside = _follow(inner, passed, found)
                    if len(inside) == len(outputs) and eqn.primitive.name in ("pjit", "jit", "closed_call"):
                        outputs = inside
        moving.update(v for v, out in zip(eqn.outvars, outputs, strict=True) if out)
    return [moves(x) for x in jaxpr.outvars]


def _is_program(x) -> bool:
    return isinstance(x, ClosedJaxpr | Jaxpr)


def _settled(body: Jaxpr, constants: list[bool], carry: list[bool], rows: list[bool], found: list[str]) -> list[bool]:
    """The outputs of a loop's body once its carry marks no longer change."""
    while True:
        inside: list[str] = []
        outputs = _follow(body, constants + carry + rows, inside)
        grown = [a or b for a, b in zip(carry, outputs[: len(carry)], strict=True)]
        if grown == carry:
            found += inside
            return grown + outputs[len(carry) :]
        carry = grown

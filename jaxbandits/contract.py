"""Which parts a user wrote, and which draws in their traced programs never change.

Nothing here runs a part. The functions that read programs take closed jaxprs, however they were obtained.
"""

import functools
import sys
from collections.abc import Sequence
from types import FunctionType, MethodType
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from jaxbandits.source_places import place_of_equation

# Functions of these packages, and of the standard library, are not a user's own.
LIBRARIES = ("jaxbandits", "jax", "jaxlib", "numpy", "optax")
# JAX's operations that draw, and how many of their first inputs are the key; None: all of them.
DRAWING_OPERATIONS = {"random_bits": 1, "random_gamma": 1, "rng_bit_generator": 1, "threefry2x32": None}
REMEDY = "draw from `draws`: a draw that does not depend on the play is the same at every play"


class ContractError(ValueError):
    """In some run an action lies outside the arms, plays were lost, or regret is not finite."""


@functools.lru_cache(maxsize=1024)
def runs_own_code(part: Any) -> bool:
    """Whether a user wrote any function that a part holds, also deep inside a closure.

    part: a Program, World or Attack, or one function. Whether only a trace says what it computes is another question:
    `sweeps.identity.keys.own_functions`.

    >>> import jaxbandits as jb
    >>> runs_own_code(jb.algorithms.ucb1(num_arms=2, horizon=10).program)
    False
    """
    waiting, seen = list[Any]([part]), set[int]()
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


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that is bound later
        return False


def _is_users(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    return top == "__main__" or not (top in LIBRARIES or top in sys.stdlib_module_names)


def constant_draws(closed: ClosedJaxpr, lane_inputs: list[bool] | None = None) -> list[str]:
    """Where a program draws with a key that depends on nothing of the lane: the same numbers in every lane.

    Parameters
    ----------
    closed : ClosedJaxpr
        The traced program of one function of a part.
    lane_inputs : list of bool, optional
        For each input, whether it differs between lanes or plays: the seed, the state, the context, the reward, or
        the play index, where a key made of that alone is meant. The default: all do.

    Returns
    -------
    list of str
        The author's lines, ``file:line``, each once; an empty string among them where a line is not known.

    Examples
    --------

    >>> import jax
    >>> len(constant_draws(jax.make_jaxpr(lambda t: jax.random.uniform(jax.random.key(0)) + t)(1.0)))
    1
    >>> constant_draws(jax.make_jaxpr(lambda t: jax.random.uniform(jax.random.key(t)))(1))
    []
    """
    inputs = [True] * len(closed.jaxpr.invars) if lane_inputs is None else lane_inputs
    moving = [isinstance(x, jax.core.Tracer) for x in closed.consts]  # of a program that is traced within another
    return list(dict.fromkeys(_follow(closed.jaxpr, moving + inputs)[1]))


def _follow(jaxpr: Jaxpr, inputs: list[bool]) -> tuple[list[bool], list[str]]:
    """Which outputs depend on the marked inputs, and the places of draws that do not."""
    variables = [*jaxpr.constvars, *jaxpr.invars]
    inputs = [False] * (len(variables) - len(inputs)) + inputs
    moving = {v for v, moves in zip(variables, inputs, strict=True) if moves}
    places: list[str] = []

    def moves(x) -> bool:
        return not isinstance(x, Literal) and x in moving

    for eqn in jaxpr.eqns:
        marks, name = [moves(x) for x in eqn.invars], eqn.primitive.name
        outputs, inside = [any(marks)] * len(eqn.outvars), list[str]()
        if name in DRAWING_OPERATIONS:
            inside = [] if any(marks[: DRAWING_OPERATIONS[name]]) else [name]
        elif name == "while":
            conditions, bodies = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
            constants, carry = marks[conditions : conditions + bodies], marks[conditions + bodies :]
            outputs, inside = _follow_loop(eqn.params["body_jaxpr"].jaxpr, constants, carry, [])
            inside += _follow(eqn.params["cond_jaxpr"].jaxpr, marks[:conditions] + outputs)[1]
        elif name == "scan":
            body = eqn.params["jaxpr"].jaxpr
            # A row has one axis less inside than outside. Versions of JAX name the counts of the other inputs
            # differently.
            carries, others = _of_one_rank(body.outvars, eqn.outvars), _of_one_rank(body.invars, eqn.invars)
            constants = others - carries
            outputs, inside = _follow_loop(body, marks[:constants], marks[constants:others], marks[others:])
        else:
            for inner in inner_programs(eqn):
                # Branches of a cond lack the index. Where the inputs do not match otherwise, all depend or none does.
                passed = marks[len(marks) - len(inner.invars) :] if len(inner.invars) <= len(marks) else []
                passed = passed if len(passed) == len(inner.invars) else [any(marks)] * len(inner.invars)
                returned, drawn = _follow(inner, passed)
                inside += drawn
                if len(returned) == len(outputs) and name in ("pjit", "jit", "closed_call", "remat", "checkpoint"):
                    outputs = returned
        if inside:  # the outermost line: an inner function is traced for its first caller, and names that one
            places.append(place_of_equation(eqn))
        moving.update(v for v, out in zip(eqn.outvars, outputs, strict=True) if out)
    return [moves(x) for x in jaxpr.outvars], places


def _of_one_rank(inner: Sequence[Any], outer: Sequence[Any]) -> int:
    """How many variables inside a loop have as many axes as outside."""
    return sum(len(x.aval.shape) == len(y.aval.shape) for x, y in zip(inner, outer, strict=True))


def inner_programs(equation: JaxprEqn) -> list[Jaxpr]:
    """The programs that an operation of a traced program holds: branches, bodies of loops, calls, expansions."""
    leaves = jax.tree.leaves(equation.params, is_leaf=is_program)
    programs = [*filter(is_program, leaves), *filter(None, [expansion(equation)])]
    return [program.jaxpr if isinstance(program, ClosedJaxpr) else program for program in programs]


def expansion(equation: JaxprEqn) -> ClosedJaxpr | None:
    """What an operation computes, where JAX keeps that as a method and traces it only when the operation is compiled.

    `jnp.searchsorted` is such an operation from jax 0.12 on. None for all other operations. A user's own are among
    these: they may compute something else for a batch.
    """
    operation: Any = equation.params.get("_prim")
    if not (hasattr(operation, "expand") and type(operation).__module__.startswith("jax.")):
        return None
    return jax.make_jaxpr(operation.expand)(*operation.in_avals)


def is_program(x: Any) -> bool:
    """Whether something is a traced program, open or closed."""
    return isinstance(x, ClosedJaxpr | Jaxpr)


def _follow_loop(
    body: Jaxpr, constants: list[bool], carry: list[bool], rows: list[bool]
) -> tuple[list[bool], list[str]]:
    """What `_follow` gives for a loop's body once its carry marks no longer change."""
    while True:
        outputs, places = _follow(body, constants + carry + rows)
        dependent = [a or b for a, b in zip(carry, outputs[: len(carry)], strict=True)]
        if dependent == carry:
            return dependent + outputs[len(carry) :], places
        carry = dependent

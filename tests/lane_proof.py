"""That lanes do not mix, read off the traced program of a batch.

The walk knows of every array along which axis its lanes lie, or that all lanes share it; the rules of `lane_rules` say
what each primitive does to that. Three things that no rule covers are allowed, and reported as exceptions, since only
playing shows that they change no lane:

- a flag "some lane wants this", as long as nothing but the condition of a loop or a branch reads it;
- the gathering of the few lanes of `at_the_few`: its work is walked in the form that does it in every lane;
- the removals of the spectral filter, which name each lane's own row by the lane's number.

Sums of floats whose order is XLA's choice are faults too: it may choose by the number of lanes.
"""

from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from lane_rules import RULES, Place, in_any_order, reshaped
from uncompiled import CALLS

import jaxbandits
from jaxbandits.contract import expansion, of_author

PACKAGE = str(Path(jaxbandits.__file__).parent)
DEVICES = {"cpu", "cuda", "rocm", "tpu"}
AT_THE_FEW = ("few.py", "at_the_few")
OWN_ROWS = {("spectral_filter.py", "whole_batch.remove", x) for x in ("concatenate", "gather", "scatter", "select_n")}
EXACT = {("g_optimal.py", "design_on")}  # of the numbers that are added to one place all but one are 0
FLAGS = {"reduce_and", "reduce_or", "reduce_max", "reduce_min"}  # of booleans


class Proof(NamedTuple):
    """What a walk found."""

    faults: list[str]
    exceptions: set[str]


class Value(NamedTuple):
    """What is known of an array."""

    # "shared" by all lanes; "lanes": each has a part; "any": a flag of all lanes together; "lost": after a fault
    kind: str
    # of lanes: where they lie; of what is shared: where all entries are equal, so that they are each lane's own
    places: frozenset[Place] = frozenset()

    def allows(self, place: Place) -> bool:
        """Whether lanes may be taken from a place."""
        return place in self.places or (self.kind == "shared" and any(own.covers(place) for own in self.places))


ANY, LOST = Value("any"), Value("lost")


def mixing(closed: ClosedJaxpr, lane_inputs: list[int | None], lane_outputs: int = 0) -> Proof:
    """Walk over a program.

    lane_inputs: of each input the axis of the lanes; None: all lanes share it. lane_outputs: their axis in all results.
    """
    walk, inputs, sizes = _Walk(), [], set()
    for var, axis in zip(closed.jaxpr.invars, lane_inputs, strict=True):
        places = [] if axis is None else [Place(axis, var.aval.shape[axis])]
        inputs.append(Value("lanes" if places else "shared", frozenset(places)))
        sizes.update(place.size for place in places)
    [size] = sizes
    for i, value in enumerate(walk.program(closed, inputs)):
        if value != LOST and not value.allows(Place(lane_outputs, size)):
            walk.faults[f"result {i} does not hold each lane's own along axis {lane_outputs}"] = None
    return Proof(list(walk.faults), walk.exceptions)


class _Walk:
    """The faults and exceptions so far. A program that is called twice alike is walked once."""

    def __init__(self) -> None:
        self.faults: dict[str, None] = {}
        self.exceptions: set[str] = set()
        self.known: dict[Any, Any] = {}
        self.inside: list[JaxprEqn] = []  # the operation at hand, after those that hold it

    def program(self, program: ClosedJaxpr | Jaxpr, inputs: list[Value]) -> list[Value]:
        """The values of a program's results."""
        key = (id(program), self.where()[:2], *inputs)
        if key not in self.known:
            jaxpr, constants = getattr(program, "jaxpr", program), getattr(program, "consts", [])
            values = dict(zip(jaxpr.constvars, map(_constant, constants), strict=True))
            values.update(zip(jaxpr.invars, inputs, strict=True))

            def value(x: Any) -> Value:
                return _constant(x.val) if isinstance(x, Literal) else values[x]

            for equation in jaxpr.eqns:
                self.inside.append(equation)
                results = self.equation(equation, [value(x) for x in equation.invars])
                values.update(zip(equation.outvars, results, strict=True))
                self.inside.pop()
            self.known[key] = program, [value(x) for x in jaxpr.outvars]  # an object that is kept keeps its id
        return self.known[key][1]

    def where(self) -> tuple[str, str, int]:
        """The innermost line of the package or of an author that made the operation: file, function and line.

        A library's function is traced for its first caller, and names that one.
        """
        found = ("", "", 0)
        for equation in self.inside:
            for frame in getattr(equation.source_info.traceback, "frames", ()):
                if _of_project(frame.file_name):
                    name = frame.function_name.replace("<locals>.", "")
                    found = (Path(frame.file_name).name, name, frame.line_num)
                    break
            if equation.primitive.name in ("jit", "pjit"):
                info = equation.params["jaxpr"].jaxpr.debug_info
                if not _of_project(info.func_src_info.partition(" at ")[2]):
                    break
        return found

    def fault(self, text: str) -> Value:
        equation, (file, function, line) = self.inside[-1], self.where()
        shapes = " ".join(x.aval.str_short() for x in equation.invars)
        self.faults[f"{equation.primitive.name} {shapes} {text}: {file}:{line} ({function})"] = None
        return LOST

    def equation(self, equation: JaxprEqn, values: list[Value]) -> list[Value]:
        name, params = equation.primitive.name, equation.params
        if in_any_order(equation) and self.where()[:2] not in EXACT:
            return [self.fault("sums floats in an order that XLA chooses")]
        if name in ("while", "scan", "cond"):
            return {"while": self.loop, "scan": self.scan, "cond": self.branch}[name](params, values)
        if name in CALLS:
            return self.program(params[CALLS[name]], values)
        if (expanded := expansion(equation)) is not None:
            return self.program(expanded, values)
        return [self.result(equation, values, x.aval.shape) for x in equation.outvars]

    def result(self, equation: JaxprEqn, values: list[Value], out: tuple[int, ...]) -> Value:
        """A result of an operation that holds no program."""
        name, shapes, kinds = equation.primitive.name, [x.aval.shape for x in equation.invars], {x.kind for x in values}
        if name != "reshape" and name not in RULES:
            return self.fault("is unknown")
        if "lost" in kinds:
            return LOST
        if kinds >= {"any", "lanes"}:
            return self.fault("tells lanes whether there is some lane of a kind")
        if name == "reshape":
            found = {reshaped(place, shapes[0], out) for place in values[0].places} - {None}
        else:
            forms = {(place.size, place.inner) for x in values for place in x.places}
            ways = [Place(i, *form) for i, n in enumerate(out) if n for form in {(n, 1), *forms} if n % prod(form) == 0]
            found = {way for way in ways if _fits(values, RULES[name](equation, shapes, out, way))}
        if "any" in kinds or ("lanes" in kinds and not found and self.is_flag(equation, values)):
            return ANY
        if "lanes" not in kinds:
            return Value("shared", frozenset(found))
        if not found and (*self.where()[:2], name) in OWN_ROWS:
            self.exceptions.add("rows by the lane's number")
            found = {p.at(0) for x in values if x.kind == "lanes" for p in x.places}
        return Value("lanes", frozenset(found)) if found else self.fault("mixes lanes")

    def is_flag(self, equation: JaxprEqn, values: list[Value]) -> bool:
        """Whether an operation asks if some lane has a property, or all have."""
        flag = equation.primitive.name in FLAGS and equation.invars[0].aval.dtype == bool
        if flag:
            self.exceptions.add("some lane: {} {}".format(*self.where()))
        return flag

    def joined(self, values: tuple[Value, ...]) -> Value:
        """What is known of an array that is one of several."""
        kinds = {value.kind for value in values}
        if "lost" in kinds:
            return LOST
        if kinds >= {"any", "lanes"}:
            return self.fault("tells lanes whether there is some lane of a kind")
        kind = "any" if "any" in kinds else "lanes" if "lanes" in kinds else "shared"
        first = next(value for value in values if value.kind == kind)
        places = frozenset(place for place in first.places if all(value.allows(place) for value in values))
        return Value(kind, places) if places or kind != "lanes" else self.fault("moves lanes, or numbers them")

    def loop(self, params: Any, values: list[Value]) -> list[Value]:
        body, condition, first = params["body_jaxpr"], params["cond_jaxpr"], params["cond_nconsts"]
        second = first + params["body_nconsts"]
        moves = [x is not y for x, y in zip(body.jaxpr.invars[second - first :], body.jaxpr.outvars, strict=True)]
        carry, before = values[second:], None
        while carry != before:
            before = carry
            carry = list(map(self.joined, zip(carry, self.program(body, values[first:second] + carry), strict=True)))
            [going_on] = self.program(condition, values[:first] + carry)
            if going_on.kind == "lanes":  # each lane keeps what it had when its own condition ended
                carry = [self.joined((x, going_on)) if move else x for x, move in zip(carry, moves, strict=True)]
        if going_on == ANY:  # how often it ran is a matter of all lanes
            carry = [ANY if x.kind == "shared" and move else x for x, move in zip(carry, moves, strict=True)]
        return carry

    def scan(self, params: Any, values: list[Value]) -> list[Value]:
        equation, body = self.inside[-1], params["jaxpr"]

        def of_one_rank(inner: Any, outer: Any) -> int:  # releases of JAX name the counts differently
            return sum(len(x.aval.shape) == len(y.aval.shape) for x, y in zip(inner, outer, strict=True))

        others = of_one_rank(body.jaxpr.invars, equation.invars)
        constants = others - of_one_rank(body.jaxpr.outvars, equation.outvars)
        if any(x.kind == "lanes" and p.axis == 0 for x in values[others:] for p in x.places):
            return [self.fault("takes one lane after another")] * len(equation.outvars)
        rows = [_shifted(x, -1) for x in values[others:]]
        carry, before = values[constants:others], None
        while carry != before:
            before, after = carry, self.program(body, values[:constants] + carry + rows)
            carry = list(map(self.joined, zip(carry, after[: len(carry)], strict=True)))
        return carry + [_shifted(x, 1) for x in after[len(carry) :]]

    def branch(self, params: Any, values: list[Value]) -> list[Value]:
        branches, few = params["branches"], self.where()[:2] == AT_THE_FEW
        platforms = params.get("branches_platforms") or [None] * len(branches)
        # of the forms for devices those that we have, and of the few lanes' work the form that does it in all
        wanted = [only is None or not (few or DEVICES.isdisjoint(only)) for only in platforms]
        results = [self.program(x, values[1:]) for x, take in zip(branches, wanted, strict=True) if take]
        found = [self.joined(every) for every in zip(*results, strict=True)]
        if few:
            self.exceptions.add("at_the_few")
            equation = self.inside[-1]
            sides = zip([*equation.invars, *equation.outvars], [*values, *found], strict=True)
            if any(p.axis != len(x.aval.shape) - 1 for x, y in sides if y.kind == "lanes" for p in y.places):
                self.fault("gathers along an axis that is not the lanes'")
        return [ANY if values[0] == ANY and x.kind == "shared" else x for x in found]


def _fits(values: list[Value], sources: list[Place | None] | None) -> bool:
    """Whether lanes of a result may lie at a place that comes from these of the operands."""
    return sources is not None and all(
        value.kind != "lanes" if source is None else value.allows(source)
        for value, source in zip(values, sources, strict=True)
    )


def _constant(x: Any) -> Value:
    x = np.asarray(x)
    alike = [i for i, n in enumerate(x.shape) if n and np.array_equal(x, np.broadcast_to(x.take([0], i), x.shape))]
    return Value("shared", frozenset(Place(i, x.shape[i]) for i in alike))


def _shifted(value: Value, by: int) -> Value:
    """A row of an array, or an array of rows."""
    places = (place.at(place.axis + by) for place in value.places)
    return value._replace(places=frozenset(place for place in places if place.axis >= 0))


def _of_project(file: str) -> bool:
    """Whether a file is of the package or of an author, not of a library."""
    return file.startswith(PACKAGE) or of_author(file)

"""What a part's functions must return, looked at while they are traced; and what a traced program must not contain."""

from collections.abc import Callable, Iterator
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.checking.findings import one_line, place_of_frames, place_of_function
from jaxbandits.protocol import Attack, Program, Score, Truth, World

# primitives of jax.random that make numbers from a key: which of their inputs is the key
_KEYED = {"random_bits": 0, "random_gamma": 0, "rng_bit_generator": 0, "threefry2x32": None}


class Malformed(Exception):
    """A function returned what the engine cannot go on with."""

    def __init__(self, message: str, where: str):
        super().__init__(message)
        self.where = where


class Returns:
    """Wraps the functions of parts, so that what they return is compared with the contract while they are traced.

    `faults` collects (message, where); what the engine cannot go on with is raised as `Malformed`.
    """

    def __init__(self) -> None:
        self.faults: dict[tuple[str, str], None] = {}  # a set in order: windows of several sizes say the same

    def fault(self, message: str, function) -> None:
        """Note a fault of a function."""
        self.faults[(one_line(message), place_of_function(function))] = None

    def _wrapped(self, function, look: Callable):
        def call(*arguments):
            out = function(*arguments)
            look(function, arguments, out)
            return out

        return call

    def program(self, program: Program) -> Program:
        """The same program, looked at."""
        looks = {
            "act": self._act,
            "update": self._update,
            "close": lambda function, given, out: self._same_state("close", function, given[1], out),
            "diagnose": self._diagnose,
        }
        return program._replace(**{name: self._wrapped(getattr(program, name), look) for name, look in looks.items()})

    def world(self, world: World) -> World:
        """The same environment, looked at."""
        looks = {"observe": self._observe, "reward": self._reward, "score": self._score, "truth": self._truth}
        return world._replace(**{name: self._wrapped(getattr(world, name), look) for name, look in looks.items()})

    def attack(self, attack: Attack | None) -> Attack | None:
        """The same adversary, looked at."""
        return attack and attack._replace(corrupt=self._wrapped(attack.corrupt, self._corrupt))

    def _act(self, function, given, out) -> None:
        plays = given[3].shape[0]
        self._length("act", function, out, 3, "(action, used, note); used=None means every play of the window")
        action, used = out[0], out[1]
        if not hasattr(action, "dtype") or not jnp.issubdtype(action.dtype, jnp.integer):
            raise Malformed(
                f"act returned {_kind(action)} as actions: return integers, arms count from 0", _at(function)
            )
        if action.ndim not in (1, 2) or action.shape[0] not in (1, plays):
            self.fault(
                f"act returned actions of shape {action.shape} for a window of {plays} plays: return [P] or [P, N], "
                "such as jnp.full(t.shape, action)",
                function,
            )
        if used is not None and (jnp.shape(used) != () or not jnp.issubdtype(jnp.result_type(used), jnp.integer)):
            self.fault(f"act returned {_kind(used)} as used: return None, or one integer, the plays it uses", function)

    def _update(self, function, given, out) -> None:
        wanted = "(state, released); released is () where nothing is released"
        if _structure(out) == _structure(given[1]):
            raise Malformed(f"update returned the state alone: return {wanted}", _at(function))
        self._length("update", function, out, 2, wanted)
        self._same_state("update", function, given[1], out[0])

    def _diagnose(self, function, given, out) -> None:
        if not isinstance(out, dict) or not all(isinstance(name, str) for name in out):
            raise Malformed(f"diagnose returned {_kind(out)}: return a dict of names and numbers", _at(function))
        for name, value in out.items():
            if jnp.shape(value) != ():
                self.fault(f"diagnose returned {name!r} of shape {jnp.shape(value)}: return single numbers", function)

    def _observe(self, function, given, out) -> None:
        self._length("observe", function, out, 2, "(context, state)")
        self._same_state("observe", function, given[1], out[1])

    def _reward(self, function, given, out) -> None:
        action = given[5]
        if not hasattr(out, "dtype") or not jnp.issubdtype(out.dtype, jnp.floating):
            raise Malformed(f"reward returned {_kind(out)}: return floats, one a play", _at(function))
        if out.ndim != action.ndim or out.shape[0] not in (1, given[3].shape[0]) or out.shape[1:] != action.shape[1:]:
            self.fault(
                f"reward returned shape {out.shape} for actions of shape {action.shape}: return the same shape",
                function,
            )

    def _score(self, function, given, out) -> None:
        if not isinstance(out, Score):
            raise Malformed(
                f"score returned {_kind(out)}: return jaxbandits.protocol.Score(arm, regret)", _at(function)
            )
        if out.arm is None and out.regret is None:
            self.fault("score returned neither arm nor regret: give one of them, or both", function)

    def _truth(self, function, given, out) -> None:
        if not isinstance(out, Truth):
            raise Malformed(
                f"truth returned {_kind(out)}: return jaxbandits.protocol.Truth(means, theta)", _at(function)
            )

    def _corrupt(self, function, given, out) -> None:
        self._length("corrupt", function, out, 3, "(payload, hit, state); hit is False where contaminated plays count")
        self._same_state("corrupt", function, given[4], out[0], "payload")
        self._same_state("corrupt", function, given[1], out[2])

    def _length(self, name: str, function, out, wanted: int, what: str) -> None:
        if not isinstance(out, tuple):
            raise Malformed(f"{name} returned {_kind(out)}: return {what}", _at(function))
        if len(out) != wanted:
            raise Malformed(f"{name} returned {len(out)} values: return {what}", _at(function))

    def _same_state(self, name: str, function, before, after, what="state") -> None:
        """Loops carry a state: its structure, shapes and dtypes must not change."""
        try:
            chex.assert_trees_all_equal_structs(before, after)
        except Exception:  # what chex raises here is not always an AssertionError
            new, old = _structure(after), _structure(before)
            raise Malformed(f"{name} returned a {what} of structure {new}, it was {old}", _at(function)) from None
        try:
            chex.assert_trees_all_equal_shapes_and_dtypes(*(jax.tree.map(_abstract, x) for x in (before, after)))
        except AssertionError:
            old, new = (jax.tree_util.tree_flatten_with_path(x)[0] for x in (before, after))
            for (path, x), (_, y) in zip(old, new, strict=True):
                if _abstract(x) != _abstract(y):
                    field = what + jax.tree_util.keystr(path)
                    self.fault(
                        f"{name} returned {field} as {_kind(y)}, it was {_kind(x)}: a loop carries it, so shape and dtype "
                        "must stay; make new floats with draws.dtype, and cast with .astype(old.dtype)",
                        function,
                    )


def _abstract(x):
    return jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))


def _structure(x) -> Any:
    return jax.tree.structure(x)


def _at(function) -> str:
    return place_of_function(function)


def _kind(x) -> str:
    """A value's type in words: float32[3], or the name of its class."""
    try:
        return f"{jnp.result_type(x)}{list(jnp.shape(x))}" if x is not None else "None"
    except (TypeError, ValueError):
        return f"a {type(x).__name__}"


def place_of_equation(equation) -> str:
    """The author's line that made an equation of a traced program."""
    frames = getattr(equation.source_info.traceback, "frames", ())
    return place_of_frames((frame.file_name, frame.line_num) for frame in reversed(list(frames)))


def constant_draws(closed, varying) -> list[str]:
    """Places where `jax.random` draws with a key that depends on none of the varying inputs: the same number in every lane.

    Parameters
    ----------
    closed : ClosedJaxpr
        A traced program.
    varying : sequence of bool
        One entry an input: whether it differs from lane to lane.
    """
    return list(dict.fromkeys(_constants(closed.jaxpr, list(varying))[1]))


def _constants(jaxpr, varying: list) -> tuple[list, list[str]]:
    """Which outputs vary, and where constant keys are used."""
    known = dict(zip(jaxpr.invars, varying, strict=True))
    places: list[str] = []

    def varies(atom) -> bool:
        return not hasattr(atom, "val") and known.get(atom, False)

    for equation in jaxpr.eqns:
        inputs = [varies(atom) for atom in equation.invars]
        name = equation.primitive.name
        outputs = [any(inputs)] * len(equation.outvars)
        keys = inputs[:1] if _KEYED.get(name) == 0 else inputs
        inner: list[str] = []
        if name in _KEYED and not any(keys):
            inner = [""]
        for body, offset in _bodies(equation):
            given = inputs[offset:]
            if len(body.invars) != len(given):
                continue
            out, inner_places = _constants(body, given)
            # a loop's carry may vary from its second round on: what varies then is found by going round until nothing changes
            while name in ("scan", "while") and (grown := _carried(equation, given, out)) != given:
                given = grown
                out, inner_places = _constants(body, given)
            inner += inner_places
            if name in ("jit", "pjit", "closed_call", "remat", "checkpoint") and len(out) == len(outputs):
                outputs = out
        places += [place_of_equation(equation)] if inner else []
        known.update(zip(equation.outvars, outputs, strict=True))
    return [varies(atom) for atom in jaxpr.outvars], places


def _bodies(equation) -> Iterator[tuple[Any, int]]:
    """The programs inside an equation, and how many of its inputs come before theirs."""
    parameters = equation.params
    if equation.primitive.name == "cond":
        yield from ((branch.jaxpr, 1) for branch in parameters["branches"])
    elif equation.primitive.name == "while":
        yield parameters["body_jaxpr"].jaxpr, parameters["cond_nconsts"]
    else:
        for value in parameters.values():
            if hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
                yield getattr(value, "jaxpr", value), 0


def _carried(equation, given: list, out: list) -> list:
    constants = equation.params["num_consts" if equation.primitive.name == "scan" else "body_nconsts"]
    number = equation.params["num_carry"] if equation.primitive.name == "scan" else len(out)
    carry = [old or new for old, new in zip(given[constants : constants + number], out[:number], strict=True)]
    return given[:constants] + carry + given[constants + number :]


def first_difference(one, other) -> str | None:
    """Where two traces of one program differ: the author's line, "" where it is not known, None where they are alike."""
    constants = zip(one.jaxpr.constvars, one.consts, other.consts, strict=False)
    differing = {variable for variable, x, y in constants if not _equal(x, y)}
    return _difference(one.jaxpr, other.jaxpr, differing)


def _difference(one, other, differing) -> str | None:
    for x, y in zip(one.eqns, other.eqns, strict=False):
        literals = zip(x.invars, y.invars, strict=False)
        alike = x.primitive is y.primitive and len(x.invars) == len(y.invars)
        alike = alike and all(
            hasattr(a, "val") == hasattr(b, "val") and (not hasattr(a, "val") or _equal(a.val, b.val))
            for a, b in literals
        )
        alike = alike and not any(not hasattr(a, "val") and a in differing for a in x.invars)
        inner = [_difference(a, b, set()) for (a, _), (b, _) in zip(_bodies(x), _bodies(y), strict=False)]
        if not alike or any(place is not None for place in inner):
            return place_of_equation(x)
    return None if len(one.eqns) == len(other.eqns) and not differing else ""


def _equal(x, y) -> bool:
    try:
        return bool(np.array_equal(np.asarray(x), np.asarray(y), equal_nan=np.asarray(x).dtype.kind == "f"))
    except (TypeError, ValueError):  # keys
        return repr(x) == repr(y)

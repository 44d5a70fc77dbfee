"""A traced function of one lane, written as a C program.

Nothing is asked of the function: what its trace does is all there is to know. Calls are followed, loops and branches
stay (`flow`), and what remains are operations on arrays, which `apart_rules` writes out element by element where arrays
are small, and `loop_rules` as loops over memory where they are large.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from jaxbandits.kernels import apart_rules, flow, loop_rules
from jaxbandits.kernels.arrays import LARGEST, Array, Arrays, Looped, constant, filled, single
from jaxbandits.kernels.moves import MOVES
from jaxbandits.kernels.scalars import ELEMENTWISE
from jaxbandits.kernels.text import Unsupported, number

# Primitives that call a traced function, and the parameter that holds it.
CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
    "custom_vmap_call": "call", "with_form": "plain", "write_one": "plain",
}  # fmt: skip
SAME = {"copy", "copy_p", "materialize", "optimization_barrier", "stop_gradient"}


class Emitter(Arrays):
    """Writes traced functions of one lane.

    Parameters
    ----------
    largest : int
        Elements of an array that is held apart. Larger ones are looped over.
    most : int or None
        Statements that may be written before `TooLong`. Default: any number.
    platform : str
        Which of the forms of `lax.platform_dependent` is taken. Default: "cuda".
    """

    def __init__(self, largest: int = LARGEST, most: int | None = None, platform: str = "cuda") -> None:
        super().__init__(largest, most)
        self.platform = platform

    def closed(self, function: ClosedJaxpr, operands: Iterable[Array]) -> list[Array]:
        """What a traced function gives."""
        return self.inner(function.jaxpr, function.consts, operands)

    def inner(self, jaxpr: Jaxpr, consts: Sequence[Any], operands: Iterable[Array]) -> list[Array]:
        """What a traced function with constants beside it gives."""
        values: dict[Any, Array] = dict(zip(jaxpr.invars, operands, strict=True))
        for variable, array in zip(jaxpr.constvars, consts, strict=True):
            values[variable] = constant(array, _dtype(variable))
        used = Counter(x for eqn in jaxpr.eqns for x in eqn.invars if not isinstance(x, Literal))
        used.update(x for x in jaxpr.outvars if not isinstance(x, Literal))

        def read(variable: Any) -> Array:
            if isinstance(variable, Literal):
                return constant(variable.val, _dtype(variable))
            x = values[variable]
            return x.shared() if isinstance(x, Looped) and used[variable] > 1 else x

        for eqn in jaxpr.eqns:
            for variable, x in zip(eqn.outvars, self.results(eqn, list(map(read, eqn.invars))), strict=True):
                values[variable] = self.kept(x) if used[variable] > 1 else x
        return [read(x) for x in jaxpr.outvars]

    def results(self, eqn: Any, x: list[Array]) -> list[Array]:
        """What an operation gives."""
        name = eqn.primitive.name
        if name in SAME:
            return x
        if name in CALLS:
            return self.closed(eqn.params[CALLS[name]], x)
        if name == "platform_index":
            return [single(self._platform(eqn.params["platforms"]))]
        if name in flow.RULES:
            return flow.RULES[name](self, eqn, x)
        if name in MOVES:
            places = zip(MOVES[name](eqn), eqn.outvars, strict=True)
            return [self.moved(x[0], v.aval.shape, place, len(eqn.outvars)) for place, v in places]
        large = any(map(self.is_large, x)) or any(v.aval.size > self.largest for v in eqn.outvars)
        if large and name in loop_rules.RULES:
            found = loop_rules.RULES[name](self, eqn, list(map(self.looped, x)))
            found = found if isinstance(found, list) else [found]
        elif large and name in ELEMENTWISE:
            found = [self._elements_looped(eqn, list(map(self.looped, x)))]
        elif name in apart_rules.RULES:
            found = apart_rules.RULES[name](self, eqn, list(map(self.apart, x)))
        elif name in ELEMENTWISE:
            found = [self._elements_apart(eqn, x)]
        else:
            raise Unsupported(name)
        return [self.settled(each) for each in found]

    def _elements_apart(self, eqn: Any, x: list[Array]) -> Array:
        shape = eqn.outvars[0].aval.shape
        spread = [np.broadcast_to(each, shape) for each in x]
        return filled(shape, lambda i: ELEMENTWISE[eqn.primitive.name](self, eqn, *(each[i] for each in spread)))

    def _elements_looped(self, eqn: Any, x: list[Looped]) -> Looped:
        out = eqn.outvars[0].aval

        def at(index: Any) -> Any:
            places = [[i if n > 1 else 0 for i, n in zip(index, each.shape, strict=False)] for each in x]
            found = [each.at(place) for each, place in zip(x, places, strict=True)]
            return ELEMENTWISE[eqn.primitive.name](self, eqn, *found)

        return Looped(out.shape, out.dtype, at, cheap=False)

    def _platform(self, platforms: Sequence[Any]) -> Any:
        for i, names in enumerate(platforms):
            if names is None or self.platform in names:
                return number(i, np.int32)
        raise Unsupported(f"a form for {self.platform}")


def _dtype(variable: Any) -> Any:
    return variable.aval.dtype

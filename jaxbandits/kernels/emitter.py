"""A traced function of one lane, written as a C program.

Nothing is asked of the function: what its trace does is all there is to know. Calls are followed, loops and branches
stay (`flow`), and what remains are operations on arrays (`rules`), written out element by element where all arrays are
small, and as loops over memory where one is large.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from jaxbandits.kernels import flow
from jaxbandits.kernels.arrays import Array, Arrays, Looped, constant, single
from jaxbandits.kernels.layouts import Loops, Unrolled
from jaxbandits.kernels.rules import RULES
from jaxbandits.kernels.text import Unsupported, number

# Primitives that call a traced function, and the parameter that holds it.
CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
    "custom_vmap_call": "call", "with_form": "plain", "write_one": "plain",
}  # fmt: skip
SAME = {"copy", "copy_p", "materialize", "optimization_barrier", "stop_gradient"}
# What writes over an operand. What it reads beside that is read before, or else copied before.
WRITES = {"dynamic_update_slice", "scatter", "scatter-add", "scatter-max", "scatter-min"}


class Emitter(Arrays):
    """Writes traced functions of one lane. largest, most: as of `Arrays` and `Writer`."""

    def closed(self, function: ClosedJaxpr, operands: Iterable[Array]) -> list[Array]:
        """What a traced function gives."""
        return self.inner(function.jaxpr, function.consts, operands)

    def inner(self, jaxpr: Jaxpr, consts: Sequence[Any], operands: Iterable[Array]) -> list[Array]:
        """What a traced function with constants beside it gives. Operands with a `memory` may be written over."""
        values: dict[Any, Array] = dict(zip(jaxpr.invars, operands, strict=True))
        for variable, array in zip(jaxpr.constvars, consts, strict=True):
            values[variable] = constant(array, _dtype(variable))
        left = Counter(x for eqn in jaxpr.eqns for x in eqn.invars if not isinstance(x, Literal))
        left.update(x for x in jaxpr.outvars if not isinstance(x, Literal))

        def read(variables: Sequence[Any], writes: bool = False) -> list[Array]:
            """What some variables hold, with its memory where nothing reads that later, be it by way of others."""
            named = [x for x in variables if not isinstance(x, Literal)]
            given = [constant(x.val, _dtype(x)) if isinstance(x, Literal) else values[x] for x in variables]
            left.subtract(named)
            for variable in named:
                if not left[variable]:
                    values.pop(variable, None)
            if all(getattr(x, "memory", None) is None for x in given):
                return given
            readers = Counter(name for x in [*values.values(), *given] for name in getattr(x, "sources", ()))
            readers.subtract(name for x in given for name in getattr(x, "sources", ()) if writes)
            alone = 0 if writes else 1
            return [x.shared() if isinstance(x, Looped) and readers[x.memory] > alone else x for x in given]

        for eqn in jaxpr.eqns:
            found = self.results(eqn, read(eqn.invars, eqn.primitive.name in WRITES))
            for variable, x in zip(eqn.outvars, found, strict=True):
                if left[variable]:
                    values[variable] = self.kept(x) if left[variable] > 1 else x
        return read(jaxpr.outvars, writes=True)

    def results(self, eqn: Any, x: list[Array]) -> list[Array]:
        """What an operation gives."""
        name = eqn.primitive.name
        if name in SAME:
            return x
        if name in CALLS:
            return self.closed(eqn.params[CALLS[name]], x)
        if name == "platform_index":
            return [single(_platform(eqn.params["platforms"]))]
        if name in flow.RULES:
            return flow.RULES[name](self, eqn, x)
        if name not in RULES:
            raise Unsupported(name)
        large = any(map(self.is_large, x)) or any(v.aval.size > self.largest for v in eqn.outvars)
        layout = Loops(self) if large else Unrolled(self)
        found = RULES[name](layout, eqn, *map(layout.of, x))
        return [self.settled(each) for each in (found if isinstance(found, list) else [found])]


def _platform(platforms: Sequence[Any]) -> Any:
    """Which of the forms of `lax.platform_dependent` is taken."""
    for i, names in enumerate(platforms):
        if names is None or "cuda" in names:
            return number(i, np.int32)
    raise Unsupported("a form for cuda")


def _dtype(variable: Any) -> Any:
    return variable.aval.dtype

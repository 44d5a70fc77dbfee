"""Functions that have another form where the device is no CPU, such as one kernel over all lanes on a GPU.

A CPU's program is the function as it stands. The other forms belong to `jaxbandits.kernels`, which builds on this
package: it is asked by name, and only when a program is lowered for another device.
"""

from collections.abc import Callable, Hashable
from functools import cache, partial
from importlib import import_module
from typing import Any, Literal, TypeVar, cast

import jax
from jax import core
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun

from jaxbandits.jax_internals import lower_fun, register_lowering
from jaxbandits.numerics.fusion import leading, move_lanes_last
from jaxbandits.typing import Array

F = TypeVar("F", bound=Callable[..., Any])
DEVICES = ("cuda", "rocm", "tpu")  # whose programs ask for another form
_forced = jax.make_user_context(None)


def has_other_form(platform: str) -> bool:
    """Whether a program that this thread compiles for a platform may be another than on a CPU."""
    return platform != "cpu" or _forced.value is not None


# docs/decisions.md#device-forms
def force_device_form(form: Literal["cc", "xla"] | None) -> Any:
    """Inside, programs that this thread compiles take one form, to compare forms and to test kernels.

    "cc" is what a GPU takes, on a CPU, with its kernels compiled by the system's C compiler. "xla" is without kernels.
    """
    return _forced(form)


def with_form(module: str, about: Hashable, function: Callable[..., Any], *args: object) -> object:
    """`function(*args)`, for which another device takes the form that a module of `jaxbandits.kernels` gives.

    The module's `form(about, shapes, platform, kind)` returns a function from the leaves of `args` to the leaves of the
    result, or None where there is no better form. shapes: of the leaves. kind: "kernel", or as
    `force_device_form` says.
    """
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
    leaves, consts = jax.tree.leaves(args), closed.consts
    plain = closed if not consts else jax.make_jaxpr(partial(_with_constants, closed))(*consts, *leaves)
    found = with_form_p.bind(*consts, *leaves, module=module, about=about, plain=plain, consts=len(consts))
    return jax.tree.unflatten(jax.tree.structure(shapes), found)


def _with_constants(closed: ClosedJaxpr, *operands: Any) -> list[Any]:
    """A program whose constants are operands, the first ones."""
    number = len(closed.consts)
    return cast(list[Any], jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, operands[:number]))(*operands[number:]))


def plain_program(call: ClosedJaxpr) -> ClosedJaxpr:
    """A program of which all is one function with another form: that function's program. Others as they are."""
    if len(call.jaxpr.eqns) == 1 and call.jaxpr.eqns[0].primitive is with_form_p:
        [equation] = call.jaxpr.eqns
        if equation.invars == call.jaxpr.invars and equation.outvars == call.jaxpr.outvars:
            return cast(ClosedJaxpr, equation.params["plain"])
    return call


def lane_kernel(function: F) -> F:
    """`lanes_last` of a function of few numbers a lane, which on a GPU is one kernel over the lanes.

    It is one under `jit` and `vmap`, made by `jaxbandits.kernels.over_lanes`. The function must not read traced numbers
    that are not among its arguments.
    """

    @cache
    def at_depth(depth: int) -> Callable[..., Any]:
        def call_with_form(*args: object) -> object:
            if depth == 0:
                return function(*args)
            about = function, depth, jax.tree.structure(args)
            return with_form("over_lanes", about, function, *args)

        mapped = jax.custom_batching.custom_vmap(call_with_form)

        @mapped.def_vmap
        def _(axis_size, batched, *args):
            return leading(at_depth(depth + 1)(*move_lanes_last(axis_size, batched, args)))

        return mapped

    return cast(F, at_depth(0))


# ---- the operation

with_form_p = Primitive("with_form")
with_form_p.multiple_results = True


def _as_it_stands(*args: Array, module: str, about: Hashable, plain: ClosedJaxpr, consts: int) -> list[Array]:
    return cast(list[Array], jaxpr_as_fun(plain)(*args))


def _on(platform: str, *args: Array, module: str, about: Hashable, plain: ClosedJaxpr, consts: int) -> list[Array]:
    """The form on a platform."""
    kind = _forced.value or "kernel"
    platform = "cuda" if kind == "cc" else platform
    if platform in DEVICES:
        shapes = [jax.typeof(x) for x in args[consts:]]
        other = import_module(f"jaxbandits.kernels.{module}").form(about, shapes, platform, kind)
        if other is not None:
            return cast(list[Array], other(*args[consts:]))
    return _as_it_stands(*args, module=module, about=about, plain=plain, consts=consts)


with_form_p.def_impl(_as_it_stands)
with_form_p.def_abstract_eval(lambda *_, plain, **about: [core.ShapedArray(x.shape, x.dtype) for x in plain.out_avals])
# From jax 0.12 on a program may hold operations that are expanded before it is lowered, and what holds such a program
# must say how. Here nothing need be said: `plain` is traced anew when this is lowered.
cast(Any, with_form_p).is_high = lambda *args, **about: False
for _platform in DEVICES:
    register_lowering(with_form_p, lower_fun(partial(_on, _platform), multiple_results=True), platform=_platform)
register_lowering(with_form_p, lower_fun(partial(_on, "cpu"), multiple_results=True))

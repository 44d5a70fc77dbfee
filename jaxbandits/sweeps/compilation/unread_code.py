"""Traced code without what nothing reads.

XLA leaves such code out by itself. But the canonicaliser of jax 0.10.2 ends in a segmentation fault on some values of
`numerics.materialize` that nothing in a loop reads. Whether anything reads them depends on the parts that meet: a
learner may ignore its context, an adversary the truth. So such code is taken out here, before XLA sees it, in
everybody's parts.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr

from jaxbandits.contract import is_program


def without_unread(function: Callable[..., Any], static: tuple[int, ...] = ()) -> Callable[..., Any]:
    """`function` as it is traced, without the operations whose results nothing reads, in loops and branches too.

    It takes arrays, or trees of them, by position; static: the positions of arguments that are not traced. The result
    is the same, bit for bit; for use under `jax.jit`.
    """

    @wraps(function)
    def lean(*args: Any) -> Any:
        def call(*args: Any) -> Any:  # another function each time: what JAX has traced before, it does not trace again
            return function(*args)

        closed, result = jax.make_jaxpr(call, static_argnums=static, return_shape=True)(*args)
        traced = [x for i, x in enumerate(args) if i not in static]
        leaves = jaxpr_as_fun(_lean(closed, {}))(*jax.tree.leaves(traced))
        return jax.tree.unflatten(jax.tree.structure(result), leaves)

    return lean


def _lean(x: Any, done: dict[int, Any]) -> Any:
    """A program without unread operations; all its inputs and outputs stay. Anything else as it is.

    done: (original, result) of programs that were treated before, by identity. What is shared stays shared and is
    compiled once.
    """
    if not is_program(x):
        return x
    if id(x) not in done:
        if isinstance(x, ClosedJaxpr) and x.jaxpr is not x:  # from jax 0.11 on programs are of one class
            lean: Any = ClosedJaxpr(_lean(x.jaxpr, done), x.consts)
        else:
            # JAX's function looks into branches, scans and calls, but not into the body of a `while` loop
            lean, _ = dce_jaxpr(x, True, True)
            inside = partial(jax.tree.map, lambda inner: _lean(inner, done), is_leaf=is_program)
            lean = lean.replace(eqns=[equation.replace(params=inside(equation.params)) for equation in lean.eqns])
        done[id(x)] = x, lean
    return done[id(x)][1]

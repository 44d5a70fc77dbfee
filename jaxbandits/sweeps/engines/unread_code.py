"""Traced code without what nothing reads.

XLA leaves such code out by itself. But the canonicaliser of jax 0.10.2 ends in a segmentation fault on some values of
`numerics.materialize` that nothing in a loop reads. Whether anything reads them depends on the parts that meet: a
learner may ignore its context, an adversary the truth. So such code is taken out here, before XLA sees it, in
everybody's parts.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr


def without_unread(function: Callable[..., Any], static: tuple[int, ...] = ()) -> Callable[..., Any]:
    """`function` as it is traced, without the operations whose results nothing reads, in loops and branches too.

    Parameters
    ----------
    function : callable
        Of arrays, or trees of them, given by position.
    static : tuple of int
        Positions of the arguments that are static.

    Returns
    -------
    callable
        With the same arguments and the same result, bit for bit; for use under `jax.jit`.
    """

    @functools.wraps(function)
    def lean(*args: Any) -> Any:
        traced = [x for i, x in enumerate(args) if i not in static]

        def call(*traced: Any) -> Any:
            rest = iter(traced)
            return function(*(x if i in static else next(rest) for i, x in enumerate(args)))

        closed, result = jax.make_jaxpr(call, return_shape=True)(*traced)
        leaves = jaxpr_as_fun(_closed(closed, {}))(*jax.tree.leaves(traced))
        return jax.tree.unflatten(jax.tree.structure(result), leaves)

    return lean


def _closed(closed: ClosedJaxpr, done: dict[int, Any]) -> ClosedJaxpr:
    """A program without unread operations.

    done: (original, result) of programs that were treated before, by identity. What is shared stays shared and is
    compiled once.
    """
    if id(closed) not in done:
        done[id(closed)] = closed, ClosedJaxpr(_open(closed.jaxpr, done), closed.consts)
    return done[id(closed)][1]


def _open(jaxpr: Jaxpr, done: dict[int, Any]) -> Jaxpr:
    """A program without unread operations; all its inputs and outputs stay."""
    if id(jaxpr) not in done:
        # JAX's function looks into branches, scans and calls, but not into the body of a `while` loop: `_equation` does
        lean, _ = dce_jaxpr(jaxpr, True, True)
        lean = lean.replace(eqns=[_equation(equation, done) for equation in lean.eqns])
        done[id(jaxpr)] = jaxpr, lean
    return done[id(jaxpr)][1]


def _equation(equation: JaxprEqn, done: dict[int, Any]) -> JaxprEqn:
    def value(x: Any) -> Any:
        if isinstance(x, ClosedJaxpr):
            return _closed(x, done)
        if isinstance(x, Jaxpr):
            return _open(x, done)
        return type(x)(map(value, x)) if type(x) in (tuple, list) else x

    return equation.replace(params={name: value(x) for name, x in equation.params.items()})

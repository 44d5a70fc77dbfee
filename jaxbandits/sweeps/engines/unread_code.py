"""Traced code without what nothing reads.

XLA leaves out by itself what nothing reads, but the canonicaliser of jax 0.10.2 dies (a segmentation fault) of some
`numerics.materialize`d values that nothing in a loop reads. Whether anything does depends on the parts that meet: a learner that ignores
its context, an adversary that ignores the truth. So such code is taken out here, before XLA sees it, whoever wrote the part.
"""

import functools
from collections.abc import Callable

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr


def without_unread(function: Callable, static: tuple[int, ...] = ()) -> Callable:
    """`function` as it is traced, less the operations whose results nothing reads, in loops and branches too.

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
    def lean(*args):
        traced = [x for i, x in enumerate(args) if i not in static]

        def call(*traced):
            rest = iter(traced)
            return function(*(x if i in static else next(rest) for i, x in enumerate(args)))

        closed, result = jax.make_jaxpr(call, return_shape=True)(*traced)
        leaves = jaxpr_as_fun(_closed(closed, {}))(*jax.tree.leaves(traced))
        return jax.tree.unflatten(jax.tree.structure(result), leaves)

    return lean


def _closed(closed: ClosedJaxpr, done: dict) -> ClosedJaxpr:
    """done: (original, treated) of what was treated already, by identity: what is shared stays shared, and is compiled once."""
    if id(closed) not in done:
        done[id(closed)] = closed, ClosedJaxpr(_open(closed.jaxpr, done), closed.consts)
    return done[id(closed)][1]


def _open(jaxpr: Jaxpr, done: dict) -> Jaxpr:
    """All inputs and outputs stay."""
    if id(jaxpr) not in done:
        # sees into branches, scans and calls, but not into what a `while` loop repeats: that is opened one by one
        lean, _ = dce_jaxpr(jaxpr, True, True)
        lean = lean.replace(eqns=[_equation(equation, done) for equation in lean.eqns])
        done[id(jaxpr)] = jaxpr, lean
    return done[id(jaxpr)][1]


def _equation(equation: JaxprEqn, done: dict) -> JaxprEqn:
    def value(x):
        if isinstance(x, ClosedJaxpr):
            return _closed(x, done)
        if isinstance(x, Jaxpr):
            return _open(x, done)
        return type(x)(map(value, x)) if type(x) in (tuple, list) else x

    return equation.replace(params={name: value(x) for name, x in equation.params.items()})

"""The order of a step's operations, so that few numbers are needed at once."""

from collections.abc import Iterable
from typing import Any

from jax.extend.core import Jaxpr, Literal

from jaxbandits.kernels.liveness import alive


# docs/decisions.md#few-alive
def few_alive(jaxpr: Jaxpr) -> Jaxpr:
    """A traced function without effects, its operations in an order in which few numbers are alive at once.

    As it is traced, a step makes every element of an array before it reads the first. Compilers for GPUs mend some of
    that themselves, so another order is taken only where it spares a quarter.
    """
    other = _by_results(jaxpr)
    return other if 4 * alive(other) <= 3 * alive(jaxpr) else jaxpr


def _by_results(jaxpr: Jaxpr) -> Jaxpr:
    """The results one after another, and before each what it needs that is not there yet.

    First comes the operand that needs most numbers at once.
    """
    made_by = {x: k for k, eqn in enumerate(jaxpr.eqns) for x in eqn.outvars}
    needs = [list(dict.fromkeys(made_by[x] for x in _variables(eqn.invars) if x in made_by)) for eqn in jaxpr.eqns]
    heights = _heights(needs)
    done: set[int] = set()
    order: list[int] = []
    for root in dict.fromkeys(made_by[x] for x in _variables(jaxpr.outvars) if x in made_by):
        stack = [root]
        while stack:
            k = stack[-1]
            missing = [i for i in needs[k] if i not in done]
            if missing:
                stack += sorted(missing, key=lambda i: heights[i])
                continue
            stack.pop()
            if k not in done:
                done.add(k)
                order.append(k)
    return jaxpr.replace(eqns=[jaxpr.eqns[k] for k in order])


def _variables(atoms: Iterable[Any]) -> list[Any]:
    return [x for x in atoms if not isinstance(x, Literal)]


def _heights(needs: list[list[int]]) -> list[int]:
    """Of each operation about how many numbers its operands need at once, were nothing shared."""
    heights: list[int] = []
    for operands in needs:
        most = sorted((heights[i] for i in operands), reverse=True)
        heights.append(max([1, *(height + beside for beside, height in enumerate(most))]))
    return heights

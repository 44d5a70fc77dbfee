"""The binary tree mechanism for running sums (Chan, Shi and Song 2011; Dwork et al. 2010), in state of logarithmic size.

The sum of the first n messages carries the noise of popcount(n) nodes: the node of level j stands for 2^j messages in a row and is drawn
when its last one arrives, so one fresh draw a message is enough.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.mechanisms.composition import Event, compose, gaussian_event
from jaxbandits.mechanisms.gaussian import gaussian_scale
from jaxbandits.validation import choice, integer, number

FORMS = ("tree", "increment")
CALIBRATIONS = ("exact", "zcdp", "paper")


class Tree(NamedTuple):
    """A mechanism for noise on running sums: functions, for one lane."""

    init: Any  # dtype -> state: [levels, *shape] latest node of each level, or [*shape] for increments
    release: Any  # state, n (int32, 1, 2, ... in turn), fresh [*shape] standard normals -> state, noise [*shape] of the sum of n


def tree_levels(num_releases, calibration="exact") -> int:
    """How many nodes a message can lie in: bit_length(n), for "paper" 1 + ceil(log2 n); 0 where nothing is released.

    num_releases >= 0: n, the number of running sums published (and messages used). Raises ValueError outside.

    >>> [tree_levels(n) for n in (0, 1, 2, 3, 4, 8, 9)], [tree_levels(n, "paper") for n in (0, 1, 2, 3, 4, 8, 9)]
    ([0, 1, 2, 2, 3, 4, 4], [0, 1, 2, 3, 3, 4, 5])
    """
    n = integer("num_releases", num_releases, 0)
    choice("calibration", calibration, CALIBRATIONS)
    return 0 if n == 0 else n.bit_length() if calibration != "paper" else 1 + (n - 1).bit_length()


def tree(num_releases, shape, form="tree") -> Tree:
    """Noise for the sums of the first 1, 2, ..., num_releases messages of `shape`.

    form: "tree", sums of popcount(n) independent nodes, state [bit_length(num_releases), *shape]; "increment", noise on every message,
    n of them in the n-th sum, state [*shape]. Fresh normals are the caller's (address them by n); their scale is `tree_scale`.
    The noise of n has popcount(n) (or n) times the variance of a fresh draw. Raises ValueError outside.
    Source: specification of Byzantine-robust federated bandits, section 4.

    >>> import jax.numpy as jnp
    >>> init, release = tree(3, ())
    >>> state = init(jnp.float32)
    >>> for n, fresh in enumerate([1.0, 10.0, 100.0], start=1):
    ...     state, noise = release(state, jnp.int32(n), jnp.float32(fresh))
    ...     print(float(noise))
    1.0
    10.0
    110.0
    """
    levels, shape = max(1, tree_levels(integer("num_releases", num_releases, 0))), tuple(shape)
    if choice("form", form, FORMS) == "increment":
        return Tree(lambda dtype: jnp.zeros(shape, dtype), lambda state, n, fresh: (state + fresh,) * 2)

    def release(state, n, fresh):
        bits = (n >> jnp.arange(levels, dtype=n.dtype)) & 1
        lowest = lax.population_count((n & -n) - 1)  # the level of the node that ends with message n
        level = jnp.arange(levels, dtype=n.dtype)
        wide = (levels,) + (1,) * len(shape)
        # levels below the lowest bit keep stale nodes: no sum reads them before they are drawn anew
        state = jnp.where((level == lowest).reshape(wide), fresh, state)
        parts = jnp.where((bits == 1).reshape(wide), state, 0)
        noise = parts[0]
        for j in range(1, levels):
            noise = noise + parts[j]
        return state, noise

    return Tree(lambda dtype: jnp.zeros((levels, *shape), dtype), release)


def _nodes(num_releases, calibration, form) -> int:
    levels = tree_levels(num_releases, calibration)
    return levels if choice("form", form, FORMS) == "tree" else min(levels, 1)


def tree_scale(bound, num_releases, epsilon, delta, *, calibration="exact", form="tree") -> float:
    """Node scale s for running sums of messages (U, u), U a symmetric matrix, ||U||_F and ||u|| at most `bound`, each a release of one agent.

    A node adds (Z' + Z'^T) / sqrt(2) to U, entries of Z' of scale s: every coordinate of `pack(U)` gets scale sqrt(2) s, every one of u
    scale s. Neighbouring inputs differ in one message, which moves the matrix [[U, u], [u^T, 0]] by at most sqrt(12) bound in each node.
    bound > 0: L. num_releases >= 0, 0: 0.0. epsilon in (0, inf], inf: 0.0; delta in (0, 1). calibration: "exact", the least that suffices
    (analytic Gaussian, all nodes jointly); "zcdp", 1.1 to 2.2 times that; "paper", 8 sqrt(m) bound ln(4 / delta) / epsilon, about ten
    times. form: as in `tree`; increments have one node a message. Raises ValueError outside.
    Source: Jadbabaie, Li, Qian and Tian, Privatize, whose scale is reconstructed from Shariff and Sheffet 2018 (recalled, not re-read);
    specification of Byzantine-robust federated bandits, section 4.

    >>> [round(tree_scale(1.0, 1, epsilon, 1e-3), 4) for epsilon in (4.0, 1.0, float("inf"))]
    [2.0161, 6.3066, 0.0]
    """
    bound = number("bound", bound, 0.0, open_low=True)
    nodes = _nodes(num_releases, calibration, form)
    rule = "zcdp" if calibration == "zcdp" else "analytic"
    per_node = gaussian_scale(
        math.sqrt(6) * bound, epsilon, delta, rule
    )  # sqrt(12) bound, over a matrix of scale sqrt(2) s
    if calibration == "paper" and per_node > 0:
        per_node = 8 * bound * math.log(4 / delta) / epsilon
    return math.sqrt(nodes) * per_node


def tree_event(bound, num_releases, scale, *, form="tree") -> Event:
    """The nodes that one message (U, u) enters; arguments as in `tree_epsilon`. In units of `scale` it moves each by sqrt(6) bound.

    >>> tree_event(1.0, 8, 2.0).times, tree_event(1.0, 8, 2.0, form="increment").times
    (4, 1)
    """
    bound = number("bound", bound, 0.0, open_low=True)
    scale = number("scale", scale, 0.0, finite=False)
    nodes = _nodes(num_releases, "exact", form)  # the nodes there are, whatever the calibration counted
    return gaussian_event("node of a binary tree" if form == "tree" else "message", math.sqrt(6) * bound, scale, nodes)


def tree_epsilon(bound, num_releases, scale, delta, *, form="tree") -> float:
    """The epsilon truly spent at `delta` by node scale s = `scale`; arguments as in `tree_scale`. Nothing released: 0.0.

    >>> [round(tree_epsilon(1.0, 8, tree_scale(1.0, 8, 4.0, 1e-3, calibration=c), 1e-3), 2) for c in CALIBRATIONS]
    [4.0, 2.96, 0.32]
    """
    return compose([tree_event(bound, num_releases, scale, form=form)], delta)[0]

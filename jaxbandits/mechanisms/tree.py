"""The binary tree mechanism for running sums, in state of logarithmic size.

Chan, Shi and Song 2011; Dwork et al. 2010. The sum of the first n messages carries the noise of popcount(n)
nodes: the node of level j stands for 2^j messages in a row and is drawn when its last one arrives, so one fresh
draw a message is enough.
"""

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.declared import Doc, Ge, Gt
from jaxbandits.mechanisms.composition import Event, compose, gaussian_event
from jaxbandits.mechanisms.gaussian import Delta, Deviation, Epsilon, gaussian_scale
from jaxbandits.typing import Array, Float, Scalar
from jaxbandits.validation import declare

CALIBRATIONS = ("exact", "zcdp", "paper")

NormBound = Annotated[
    Scalar, Gt(0), Doc("L, with ||U||_F <= L and ||u|| <= L for a message (U, u), U a symmetric matrix.")
]
NumReleases = Annotated[int, Ge(0), Doc("n, the number of running sums published and of messages used.")]
NodeScale = Annotated[Deviation, Doc("Scale s of the nodes' noise.")]
Calibration = Literal["exact", "zcdp", "paper"]
TreeForm = Annotated[Literal["tree", "increment"], Doc("As in `tree`. With increments a message lies in one node.")]


@declare(check=False)
class Tree(NamedTuple):
    """A mechanism for noise on running sums: two functions, for one lane.

    Args:
        init (callable): dtype -> state: `[levels + 1, *shape]` the latest sum that ended with each level, or `[*shape]`
            for increments.
        release (callable): state, n (int32, 1, 2, ... in turn), fresh standard normals `[*shape]` -> state, and the
            noise `[*shape]` of the sum of n.
        noise (callable): state, n -> that noise again, where n messages were released; 0 for n = 0.
    """

    init: Callable[[Any], Float[Array, "..."]]
    release: Callable[[Any, Any, Any], tuple[Float[Array, "..."], Float[Array, "..."]]]
    noise: Callable[[Any, Any], Float[Array, "..."]]


@declare
def tree_levels(num_releases: NumReleases, calibration: Calibration = "exact") -> int:
    """How many nodes of a binary tree a message can lie in.

    It is 0 where nothing is released.

    Args:
        calibration: "paper" counts as the paper does, 1 + ceil(log2 n); the others count the nodes there are,
            bit_length(n).

    >>> [tree_levels(n) for n in (0, 1, 2, 3, 4, 8, 9)], [tree_levels(n, "paper") for n in (0, 1, 2, 3, 4, 8, 9)]
    ([0, 1, 2, 2, 3, 4, 4], [0, 1, 2, 3, 3, 4, 5])
    """
    n = num_releases
    return 0 if n == 0 else n.bit_length() if calibration != "paper" else 1 + (n - 1).bit_length()


@declare(
    source="Chan, Shi and Song 2011; Dwork et al. 2010; docs/formulas/byzantine.md#tree and "
    "docs/formulas/byzantine.md#increments"
)
def tree(num_releases: NumReleases, shape: Sequence[int], form: Literal["tree", "increment"] = "tree") -> Tree:
    """Noise for the running sums of messages: the n-th sum gets the noise of popcount(n) nodes.

    Args:
        shape (sequence of int): Shape of a message.
        form: "tree": sums of popcount(n) independent nodes, in a state of shape `[bit_length(num_releases) + 1,
            *shape]`. "increment": noise on every message, n of them in the n-th sum, in a state of shape `[*shape]`.

    Returns:
        ``init(dtype) -> state``, ``release(state, n, fresh) -> state, noise`` and ``noise(state, n)``. The noise of n
        has popcount(n) (increments: n) times the variance of a fresh draw.

    Note:
        Fresh standard normals are the caller's, addressed by n; their scale is `tree_scale`.

    >>> import jax.numpy as jnp
    >>> init, release, _ = tree(3, ())
    >>> state = init(jnp.float32)
    >>> for n, fresh in enumerate([1.0, 10.0, 100.0], start=1):
    ...     state, noise = release(state, jnp.int32(n), jnp.float32(fresh))
    ...     print(float(noise))
    1.0
    10.0
    110.0
    """
    levels, shape = max(1, tree_levels(num_releases)), tuple(shape)
    if form == "increment":

        def release_increment(state, n, fresh):
            return (state + fresh,) * 2

        return Tree(lambda dtype: jnp.zeros(shape, dtype), release_increment, lambda state, n: state)

    # Kept for every level is the last sum whose lowest bit it was, and at the end 0, the sum of no message.
    def noise(state, n):
        return state[jnp.where(n == 0, levels, _lowest_bit(n))]

    def release(state, n, fresh):
        # the sum of n is that of n without its lowest bit, released earlier, and of the node that ends now
        total = noise(state, n & (n - 1)) + fresh
        return state.at[_lowest_bit(n)].set(total), total

    return Tree(lambda dtype: jnp.zeros((levels + 1, *shape), dtype), release, noise)


def _lowest_bit(n: Array) -> Array:
    """The number of the lowest bit that is set."""
    return lax.population_count((n & -n) - 1)


def _nodes(num_releases: int, calibration: Calibration, form: str) -> int:
    levels = tree_levels(num_releases, calibration)
    return levels if form == "tree" else min(levels, 1)


@declare
def node_scale(bound: NormBound, epsilon: Epsilon, delta: Delta, calibration: Calibration = "exact") -> float:
    """Scale of noise on one sum of messages (U, u) that makes it private; `bound` and the rest as in `tree_scale`."""
    rule: Literal["zcdp", "analytic"] = "zcdp" if calibration == "zcdp" else "analytic"
    # a change of sqrt(12) bound, over a matrix whose noise has scale sqrt(2) s
    per_node = gaussian_scale(math.sqrt(6) * bound, epsilon, delta, rule)
    if calibration == "paper" and per_node > 0:
        per_node = 8 * bound * math.log(4 / delta) / epsilon
    return float(per_node)


@declare(
    source='"Byzantine-robust federated linear bandits" (Jadbabaie, Li, Qian and Tian), Privatize, whose scale '
    "is reconstructed from Shariff and Sheffet 2018 (recalled, not re-read): "
    "docs/formulas/byzantine.md#calibrations"
)
def tree_scale(
    bound: NormBound,
    num_releases: NumReleases,
    epsilon: Epsilon,
    delta: Delta,
    *,
    calibration: Calibration = "exact",
    form: TreeForm = "tree",
) -> float:
    """Scale of the nodes' noise that makes running sums of messages (U, u) private, each a release of one agent.

    Args:
        calibration: "exact": the least that suffices (analytic Gaussian, all nodes jointly). "zcdp": 1.1 to 2.2 times
            that, for epsilon in [0.1, 10] and delta at most 0.001. "paper": 8 sqrt(m) bound ln(4 / delta) / epsilon, m
            the levels, 7 to 17 times there.

    Returns:
        float: The scale s; 0.0 without noise or releases. A node adds (Z' + Z'^T) / sqrt(2) to U, entries of Z' of
            scale s: every coordinate of `estimators.pack(U)` gets scale sqrt(2) s, every one of u scale s.

    Note:
        Neighbouring inputs differ in one message, which moves the matrix [[U, u], [u^T, 0]] by at most sqrt(12)
        bound in each node.

    >>> [round(tree_scale(1.0, 1, epsilon, 1e-3), 4) for epsilon in (4.0, 1.0, float("inf"))]
    [2.0161, 6.3066, 0.0]
    """
    nodes = _nodes(num_releases, calibration, form)
    return float(math.sqrt(nodes) * node_scale(bound, epsilon, delta, calibration))


@declare
def tree_event(bound: NormBound, num_releases: NumReleases, scale: NodeScale, *, form: TreeForm = "tree") -> Event:
    """The nodes that one message (U, u) enters, as an event of `compose`.

    Returns:
        Gaussian releases, one a node; the message moves each by sqrt(6) bound.

    >>> tree_event(1.0, 8, 2.0).times, tree_event(1.0, 8, 2.0, form="increment").times
    (4, 1)
    """
    nodes = _nodes(num_releases, "exact", form)  # the nodes there are, whatever the calibration counted
    what, tree = ("node of a binary tree", True) if form == "tree" else ("message", False)
    return gaussian_event(what, math.sqrt(6) * bound, scale, nodes, running=tree)


@declare
def tree_epsilon(
    bound: NormBound, num_releases: NumReleases, scale: NodeScale, delta: Scalar, *, form: TreeForm = "tree"
) -> float:
    """The epsilon truly spent by noise on running sums of messages (U, u).

    It is 0.0 where nothing is released.

    Args:
        delta: Failure probability of the privacy claim, in (0, 1).

    >>> [round(tree_epsilon(1.0, 8, tree_scale(1.0, 8, 4.0, 1e-3, calibration=c), 1e-3), 2) for c in CALIBRATIONS]
    [4.0, 2.96, 0.32]
    """
    return compose([tree_event(bound, num_releases, scale, form=form)], delta)[0]

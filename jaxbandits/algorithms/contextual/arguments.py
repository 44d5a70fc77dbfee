"""Host side of the linear bandits over users: checked arguments, statistics with their numbers and guarantee."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.algorithms.contextual.selection import Params, UcbParams, linear_bandit, ucb
from jaxbandits.algorithms.contextual.statistics import (
    NoParams,
    PrivateParams,
    Statistics,
    joint,
    local,
    none,
    tree_nodes,
)
from jaxbandits.mechanisms.composition import Event, gaussian_event, guarantee, view_message, view_released
from jaxbandits.mechanisms.counters.counter import form_of
from jaxbandits.protocol import Algorithm, Guarantee, Rewards, Span
from jaxbandits.theory.linear_widths import (
    RunningSums,
    Tuning,
    joint_tuning,
    local_tuning,
    moment_sensitivity,
    plain_tuning,
)
from jaxbandits.validation import choice, integer, number

CLIPPED = Rewards(0.0, 1.0, "clip")  # what every client reads whose privacy is calibrated
# Noise of running sums: as published, and forms of `mechanisms.counter`
PUBLISHED = ("simplified", "binary")
COUNTERS = {
    "blt": "a buffered Toeplitz counter",
    "honaker": "a tree with Honaker's estimates",
    "square_root": "the square-root Toeplitz form",
    "banded": "a banded Toeplitz form",
}
MAX_PARAMETER = 1e16  # products of two stay below float32's 3e38


class Setting(NamedTuple):
    """Checked arguments that every linear bandit over users has."""

    num_arms: int
    dim: int
    horizon: int
    epsilon: float
    delta: float
    feature_norm: float


class Part(NamedTuple):
    """A statistics module, its numbers, the width that belongs to them, and what they guarantee."""

    statistics: Statistics
    params: Any
    tuning: Tuning
    guarantee: Guarantee
    # of the version, besides num_arms and dim
    static: tuple[Any, ...]
    rewards: Rewards = CLIPPED


def setting(num_arms: Any, dim: Any, horizon: Any, epsilon: Any, delta: Any, feature_norm: Any) -> Setting:
    """The arguments that every linear bandit over users has, checked: ValueError names the first that is wrong."""
    remedy = "Gaussian noise has no pure guarantee: give delta > 0"
    return Setting(
        num_arms=integer("num_arms", num_arms, 2),
        dim=integer("dim", dim, 1),
        horizon=integer("horizon", horizon, 1),
        epsilon=number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise"),
        delta=number("delta", delta, 0.0, 1.0, open_low=True, open_high=True, remedy=remedy),
        feature_norm=number("feature_norm", feature_norm, 0.0, open_low=True),
    )


def change(params: PrivateParams) -> float:
    """The sensitivity of a user's (x x', x y), or a bound on it, in the norm in which the noise is spherical.

    Its scale there is s = `diagonal`. There is noise of scale s on the diagonal of x x', at least s / sqrt(2)
    above it and s / sqrt(k) on x y, k = (s / vector)^2.
    """
    return moment_sensitivity(float(params.feature_norm), (float(params.diagonal) / float(params.vector)) ** 2)


def events(what: str, nodes: float, params: Params) -> tuple[Event, ...]:
    """A user whose pair (x, y) lies in `nodes` Gaussian draws; inf where releases tell users apart.

    Nodes add up as one Gaussian release of sqrt(nodes) times the sensitivity.
    """
    p = params.statistics
    scale = float(p.diagonal) * float(params.mechanism_scale)
    if scale == 0 or math.isinf(nodes):
        return (gaussian_event(what, math.inf, scale),)
    return (gaussian_event(what, change(p), scale, int(nodes)),)


def claimed_delta(params: Params) -> float:
    """What a run may spend."""
    return float(params.statistics.delta)


def private_params(tuning: Tuning, s: Setting) -> PrivateParams:
    """The numbers of a private statistics module."""
    return PrivateParams(
        diagonal=tuning.diagonal,
        off_diagonal=tuning.off_diagonal,
        vector=tuning.vector,
        ridge=tuning.ridge,
        ridge_root=tuning.ridge_root,
        feature_norm=s.feature_norm,
        delta=s.delta,
    )


def none_part(preset: str, s: Setting) -> Part:
    """No privacy."""
    tuning = plain_tuning(choice("preset", preset, ("reference", "theory")), s.horizon, s.dim, s.feature_norm)
    return Part(
        statistics=none(s.dim),
        params=NoParams(tuning.ridge),
        tuning=tuning,
        guarantee=Guarantee(),
        static=(),
        rewards=Rewards(),
    )


def local_part(preset: str, s: Setting) -> Part:
    """Every user adds noise."""
    choice("preset", preset, ("reference", "theory"))
    tuning = local_tuning(preset, s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm)
    claim = guarantee("local", "user", partial(events, "a user's x x' and x y", 1), view_message, delta=claimed_delta)
    return Part(local(s.dim), private_params(tuning, s), tuning, claim, ())


def joint_part(preset: str, tree: str | None, s: Setting) -> Part:
    """The server adds noise. tree None: "simplified" with the reference preset, "binary" with theory."""
    choice("preset", preset, ("reference", "theory"))
    tree = ("simplified" if preset == "reference" else "binary") if tree is None else tree
    if choice("tree", tree, (*PUBLISHED, *COUNTERS)) in COUNTERS:
        return counted_part(preset, tree, s)
    nodes = tree_nodes(tree, s.horizon)
    tuning = joint_tuning(preset, s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm)
    # releases of the simplified tree that share their noise differ by one user's exact (x x', x y)
    draws = nodes if tree == "binary" else math.inf
    kinds = partial(events, "node of a tree over x x' and x y", draws)
    claim = guarantee("central", "user", kinds, view_released, delta=claimed_delta)
    return Part(joint(s.dim, tree, nodes), private_params(tuning, s), tuning, claim, (tree, nodes))


def counted_events(what: str, column_norm: float, params: Params) -> tuple[Event, ...]:
    """All running sums of a user's pair (x, y) as one Gaussian release."""
    p = params.statistics
    scale = float(p.diagonal) * float(params.mechanism_scale)
    return (gaussian_event(what, change(p) * column_norm if scale > 0 else math.inf, scale),)


def counted_part(preset: str, form: str, s: Setting) -> Part:
    """The server adds the noise of a form of `mechanisms.counter`, at the spend of the binary tree."""
    sums = form_of(form, s.horizon, "max", 4, 1, 1, None, None, 0.5)
    plays = np.arange(1, s.horizon + 1)
    largest = float(np.max(sums.deviation(plays)))
    levels, in_a_sum = math.sqrt(s.horizon.bit_length()), math.sqrt(np.bitwise_count(plays).max())
    noise = sums.column_norm / levels
    compared = RunningSums(noise, largest, noise * largest / in_a_sum)
    tuning = joint_tuning(preset, s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm, compared)
    what = f"running sums of x x' and x y by {COUNTERS[form]}"
    claim = guarantee(
        "central", "user", partial(counted_events, what, sums.column_norm), view_released, delta=claimed_delta
    )
    params = private_params(tuning, s)._replace(sums=sums.params)
    statistics = joint(s.dim, "counter", (sums.begin, sums.move, sums.noise))
    return Part(statistics, params, tuning, claim, (form, sums.size))


def assembled(
    name: str, version: int, part: Part, s: Setting, select: Callable[..., Any], selection: Any, window: int = 1
) -> Algorithm:
    """The statistics with a selection rule and its numbers, in windows of `window` plays."""
    schedule = (Span(1, s.horizon),) if window == 1 else (Span(window, 1, length=s.horizon),)
    key, params = (name, version, (s.num_arms, s.dim, *part.static)), Params(part.params, selection, 1.0)
    largest = max(float(np.max(np.abs(x), initial=0)) for x in jax.tree.leaves(params))
    if not largest <= MAX_PARAMETER:
        raise ValueError(
            f"epsilon = {s.epsilon:g} and feature_norm = {s.feature_norm:g} give noise, a ridge or a width of "
            f"{largest:.3g}, too much for float32: choose an epsilon nearer 1, or float('inf') for no noise"
        )
    program = linear_bandit(part.statistics, select, s.dim)
    return Algorithm(
        program=program,
        schedule=schedule,
        params=params,
        guarantee=part.guarantee,
        version=key,
        config={},
        rewards=part.rewards,
    )


def optimistic(name: str, version: int, part: Part, s: Setting, radius_scale: Any, window: int = 1) -> Algorithm:
    """The statistics with the upper-confidence rule, at the part's own width."""
    width = part.tuning.width
    selection = UcbParams(
        radius_scale=number("radius_scale", radius_scale, 0.0),
        base=width.base,
        quartic=width.quartic,
        slope=width.slope,
        offset=width.offset,
        growth=width.growth,
    )
    return assembled(name, version, part, s, ucb, selection, window)

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
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.protocol import Algorithm, Guarantee, Rewards, Span
from jaxbandits.theory.exact_presets import counter_form, exact_joint, exact_local, exact_scale, running_sums
from jaxbandits.theory.linear_widths import (
    RunningSums,
    Tuning,
    joint_tuning,
    local_tuning,
    moment_sensitivity,
    plain_tuning,
)
from jaxbandits.validation import choice, integer, number

PRESETS = ("exact", "reference", "theory")
TREE_OF = {"exact": "blt", "reference": "simplified", "theory": "binary"}  # a preset's own form of the running sums
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
    # B, which the preset "exact" reads
    theta_bound: float


class Part(NamedTuple):
    """A statistics module, its numbers, the width that belongs to them, and what they guarantee."""

    statistics: Statistics
    params: Any
    tuning: Tuning
    guarantee: Guarantee
    # of the version, besides num_arms and dim
    static: tuple[Any, ...]
    rewards: Rewards = CLIPPED


def setting(
    num_arms: Any, dim: Any, horizon: Any, epsilon: Any, delta: Any, feature_norm: Any, theta_bound: Any
) -> Setting:
    """The arguments that every linear bandit over users has, checked: ValueError names the first that is wrong.

    delta None: `default_delta`. theta_bound None: 1 / feature_norm.
    """
    remedy = "Gaussian noise has no pure guarantee: give delta > 0"
    num_arms, dim, horizon = integer("num_arms", num_arms, 2), integer("dim", dim, 1), integer("horizon", horizon, 1)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    delta = default_delta(delta, horizon)
    delta = number("delta", delta, 0.0, 1.0, open_low=True, open_high=True, remedy=remedy)
    norm = number("feature_norm", feature_norm, 0.0, open_low=True)
    bound = 1 / norm if theta_bound is None else number("theta_bound", theta_bound, 0.0, open_low=True)
    return Setting(num_arms, dim, horizon, epsilon, delta, norm, bound)


def preset_of(preset: str | None, private: bool = True) -> str:
    """A checked preset. None: "exact" of private statistics, "reference" of those without noise."""
    if preset is None:
        return "exact" if private else "reference"
    return choice("preset", preset, PRESETS if private else PRESETS[1:])


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
    tuning = plain_tuning(preset, s.horizon, s.dim, s.feature_norm)
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
    if preset == "exact":
        scale = exact_scale("local", s.dim, s.epsilon, s.delta, s.feature_norm, 1)
        tuning = exact_local(scale, s.horizon, s.dim, s.feature_norm, s.theta_bound)
    else:
        tuning = local_tuning(preset, s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm)
    claim = guarantee("local", "user", partial(events, "a user's x x' and x y", 1), view_message, delta=claimed_delta)
    return Part(local(s.dim), private_params(tuning, s), tuning, claim, ())


def joint_part(preset: str, tree: str | None, s: Setting) -> Part:
    """The server adds noise. tree None: the preset's of `TREE_OF`."""
    tree = choice("tree", TREE_OF[preset] if tree is None else tree, (*PUBLISHED, *COUNTERS))
    if preset == "exact" and tree == "simplified" and math.isfinite(s.epsilon):
        raise ValueError(
            "tree = 'simplified' with preset = 'exact': releases that share their noise tell a user's data apart, so "
            "that epsilon is infinite whatever the scale; give tree='blt' or 'binary', or preset='reference'"
        )
    if tree in COUNTERS:
        return counted_part(preset, tree, s)
    nodes = tree_nodes(tree, s.horizon)
    if preset == "exact":
        binary = running_sums("binary", s.horizon)  # the simplified tree is here without noise
        tuning = exact_joint(s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm, s.theta_bound, binary)
    else:
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
    """The server adds a counter's noise (`mechanisms.counter`). Published presets spend what they do with the tree."""
    sums, numbers = counter_form(form, s.horizon), (s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm)
    found = running_sums(form, s.horizon)
    if preset == "exact":
        tuning = exact_joint(*numbers, s.theta_bound, found)
    else:
        tree = running_sums("binary", s.horizon)
        noise = found.column_norm / tree.column_norm
        compared = RunningSums(noise, found.deviation, noise * found.deviation / tree.deviation)
        tuning = joint_tuning(preset, *numbers, compared)
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


def optimistic(
    name: str, version: int, part: Part, s: Setting, radius_scale: Any, default: float, window: int = 1
) -> Algorithm:
    """The statistics with the upper-confidence rule, at the part's own width; radius_scale None: `default`."""
    width = part.tuning.width
    selection = UcbParams(
        radius_scale=default if radius_scale is None else number("radius_scale", radius_scale, 0.0),
        base=width.base,
        quartic=width.quartic,
        slope=width.slope,
        offset=width.offset,
        growth=width.growth,
    )
    return assembled(name, version, part, s, ucb, selection, window)

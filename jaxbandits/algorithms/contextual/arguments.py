"""Host side of the linear bandits over users: checked arguments, statistics with their numbers and guarantee."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Required, TypedDict

import jax
import numpy as np

from jaxbandits import declared
from jaxbandits.algorithms.contextual import statistics
from jaxbandits.algorithms.contextual.per_arm import arms_bandit, plain_arms
from jaxbandits.algorithms.contextual.selection import Params, UcbParams, linear_bandit, ucb
from jaxbandits.algorithms.contextual.statistics import PrivateParams, Statistics
from jaxbandits.declared import HOST, LATER, STATIC, Default, Doc, Epsilon, FeatureNorm, Inside, NonNegative, Positive
from jaxbandits.mechanisms.composition import Event, gaussian_event, guarantee, view_message, view_released
from jaxbandits.mechanisms.counters.counter import form_of
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.random import Draws
from jaxbandits.theory import linear_widths, per_arm
from jaxbandits.theory.exact_presets import exact_joint, exact_local, exact_scale, running_sums
from jaxbandits.typing import Scalar

# a preset's own form of the running sums
TREE_OF = {"exact": "blt", "reference": "simplified", "theory": "binary", "disjoint": "blt"}
CLIPPED = Rewards(0.0, 1.0, "clip")  # what every client reads whose privacy is calibrated
# Forms of `mechanisms.counter`
FORMS_IN_WORDS = {
    "blt": "a buffered Toeplitz counter",
    "honaker": "a tree with Honaker's estimates",
    "square_root": "the square-root Toeplitz form",
    "banded": "a banded Toeplitz form",
}
MAX_PARAMETER = 1e16  # products of two stay below float32's 3e38
MAX_STATE = 64_000_000  # bytes of a lane above which there is a warning

# ---- arguments that the linear bandits over users share

Delta = Annotated[
    Inside | None,
    declared.Remedy("Gaussian noise has no pure guarantee: give delta > 0"),
    Doc("""The delta of the privacy claim. The default: min(1e-3, 1 / horizon), which moves with the horizon of a sweep
        over horizons: bind it to compare them."""),
]
Preset = Annotated[Literal["exact", "reference", "theory", "disjoint"] | None, HOST]
ArmRidge = Annotated[
    Scalar, declared.Ge(1e-6), declared.Le(1e6), Doc("Of one model an arm, before what noise asks for. The default: 1.")
]
Protocol = Literal["amplified", "vector"] | None
WindowPlays = Annotated[int | None, declared.Ge(1), STATIC, LATER]
TreeChoice = Literal["simplified", "binary", "blt", "honaker", "square_root", "banded"] | None
LearntAlgorithm = Annotated[Algorithm, Doc("Its guarantee is that of the statistics.")]
UsedFeatureNorm = Annotated[
    FeatureNorm, Doc("The largest norm L of a feature. Private clients scale longer features down to it.")
]


class Budget(TypedDict, total=False):
    """What the private forms of LinUCB take.

    Args:
        epsilon: Privacy budget of one user. inf: no noise, and the ridge and width that the preset has without any,
            those of `linucb` for the published ones.
        radius_scale: Multiplies the width w. The default: 1; with "exact" 0.2, and 0.05 in `jdp_linucb`.
        theta_bound: Bound B on the norm of theta; read by "exact". The default: 1 / L.
    """

    epsilon: Required[Epsilon]
    delta: Annotated[Delta, Default(None)]
    preset: Annotated[Preset, Default(None)]
    radius_scale: Annotated[NonNegative | None, Default(None)]
    theta_bound: Annotated[Positive | None, Default(None)]
    feature_norm: Annotated[UsedFeatureNorm, Default(1.0)]


class Learnt(TypedDict, total=False):
    """What a selection rule takes that learns as any of the linear bandits over users does.

    Args:
        statistics: How V = sum x x' and u = sum x y are learnt: with noise, ridge rho, clipping and guarantee of
            `linucb` (ridge 1e-4), `ldp_linucb`, `jdp_linucb` or `shuffle_linucb`.
        epsilon: Privacy budget of one user; only inf goes with `statistics="none"`. `statistics="shuffle"` spends less
            than it, as `shuffle_linucb` does.
        preset: Noise and ridge, as in `ldp_linucb`, `jdp_linucb` and `shuffle_linucb`. The default: "exact", which
            spends what it is given; "reference" with `statistics="none"`, which has no "exact"; "disjoint" with
            `models="per_arm"`, which spends what it is given and goes with all statistics but "shuffle".
        protocol: Of `shuffle_linucb`, with its default; matters for `statistics="shuffle"` only.
        window: Users of a batch, at most `horizon`, as in `shuffle_linucb`; matters for `statistics="shuffle"` only.
        tree: Of `jdp_linucb`, with its default; matters for `statistics="jdp"` only.
    """

    statistics: Annotated[Literal["none", "ldp", "jdp", "shuffle"], Default("none")]
    epsilon: Annotated[Epsilon, Default(math.inf)]
    delta: Annotated[Delta, Default(None)]
    preset: Annotated[Preset, LATER, Default(None)]
    protocol: Annotated[Protocol, Default(None)]
    window: Annotated[WindowPlays, Default(None)]
    tree: Annotated[TreeChoice, Default(None)]
    feature_norm: Annotated[UsedFeatureNorm, Default(1.0)]
    models: Annotated[declared.Models, Default("shared")]
    ridge: Annotated[ArmRidge | None, Default(None)]


class LinearSetting(NamedTuple):
    """What every linear bandit over users has."""

    num_arms: int
    dim: int
    horizon: int
    epsilon: float
    delta: float
    preset: str
    feature_norm: float
    theta_bound: float  # B, which the preset "exact" reads
    ridge: Any = None  # of one model an arm; None: all arms share one

    @property
    def blocks(self) -> int:
        """Arms with a model of their own."""
        return 0 if self.ridge is None else self.num_arms


class Part(NamedTuple):
    """A statistics module, its numbers, the width that belongs to them, and what they guarantee."""

    statistics: Statistics
    params: Any
    tuning: linear_widths.LinearTuning
    guarantee: Guarantee
    rewards: Rewards = CLIPPED


def setting(
    num_arms: int, dim: int, horizon: int, *, epsilon: Any, delta: Scalar | None, preset: str | None, feature_norm: Any,
    theta_bound: Any = None, models: str = "shared", ridge: Any = None, private: bool = True, **_: object,
) -> LinearSetting:  # fmt: skip
    """The arguments that every linear bandit over users has, with their defaults in place of None."""
    check_models(models, preset, ridge, private)
    bound = 1 / feature_norm if theta_bound is None else theta_bound
    delta = float(default_delta(delta, horizon))
    if models == "shared":
        return LinearSetting(num_arms, dim, horizon, epsilon, delta, preset or "exact", feature_norm, bound)
    ridge, preset = 1.0 if ridge is None else ridge, preset or "disjoint"
    return LinearSetting(num_arms, dim, horizon, epsilon, delta, preset, feature_norm, bound, ridge)


def check_models(models: str, preset: str | None, ridge: Any, private: bool) -> None:
    """ValueError where a preset or a ridge does not go with the models. private: of a form with noise."""
    if models == "shared" and (preset == "disjoint" or ridge is not None):
        what = "preset = 'disjoint'" if preset == "disjoint" else f"ridge = {ridge!r}"
        raise ValueError(f"{what} goes with models = 'per_arm' alone: leave it out")
    if models == "per_arm" and preset not in ((None, "disjoint") if private else (None, "disjoint", "theory")):
        why = "no bound is known with noise" if preset == "theory" else "its width is that of one theta"
        raise ValueError(f"preset = {preset!r} with models = 'per_arm': {why}: leave it out")


def change(params: PrivateParams) -> float:
    """The sensitivity of a user's (x x', x y), or a bound on it, in the norm in which the noise is spherical.

    Its scale there is s = `diagonal`. There is noise of scale s on the diagonal of x x', at least s / sqrt(2)
    above it and s / sqrt(k) on x y, k = (s / vector)^2.
    """
    ratio = (float(params.diagonal) / float(params.vector)) ** 2
    return linear_widths.moment_sensitivity(float(params.feature_norm), ratio)


def events(what: str, params: Params, *, nodes: float = 1, column_norm: float = 1.0) -> tuple[Event, ...]:
    """A user whose pair (x, y) lies in `nodes` Gaussian draws of this column norm; inf where releases tell users apart.

    Nodes add up as one Gaussian release of sqrt(nodes) times the sensitivity.
    """
    p = params.statistics
    scale = float(p.diagonal) * float(params.mechanism_scale)
    if scale == 0 or math.isinf(nodes):
        return (gaussian_event(what, math.inf, scale),)
    running = (nodes, column_norm) != (1, 1.0)
    return (gaussian_event(what, change(p) * column_norm, scale, int(nodes), running=running),)


def delta_of_claim(params: Params) -> float:
    """What a run may spend."""
    return float(params.statistics.delta)


def private_params(tuning: linear_widths.LinearTuning, s: LinearSetting) -> PrivateParams:
    """The numbers of a private statistics module."""
    noise = {name: x for name, x in tuning._asdict().items() if name in PrivateParams._fields}
    return PrivateParams(**noise, feature_norm=s.feature_norm, delta=s.delta)


def none_part(s: LinearSetting) -> Part:
    """No privacy."""
    if s.blocks:
        tuning = per_arm.plain_arm_tuning(*s[:3], s.preset, s.feature_norm, s.ridge)
    else:
        tuning = linear_widths.plain_tuning(s.preset, s.horizon, s.dim, s.feature_norm)
    learnt = plain_arms(s.num_arms, s.dim) if s.blocks else statistics.none(s.dim)
    return Part(learnt, statistics.NoParams(tuning.ridge), tuning, Guarantee(), Rewards())


def local_part(s: LinearSetting) -> Part:
    """Every user adds noise."""
    if s.blocks:
        tuning = per_arm.private_arm_tuning(*s[:5], s.feature_norm, s.ridge, None)
    elif s.preset == "exact":
        scale = exact_scale("local", s.dim, s.epsilon, s.delta, s.feature_norm, 1)
        tuning = exact_local(scale, s.horizon, s.dim, s.feature_norm, s.theta_bound)
    else:
        tuning = linear_widths.local_tuning(s.preset, s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm)
    claim = guarantee("local", "user", partial(events, "a user's x x' and x y"), view_message, delta=delta_of_claim)
    return Part(statistics.local(s.dim, s.blocks), private_params(tuning, s), tuning, claim)


def joint_part(tree: str | None, s: LinearSetting) -> Part:
    """The server adds noise. tree None: the preset's of `TREE_OF`."""
    tree, other = tree or TREE_OF[s.preset], "" if s.blocks else ", or preset='reference'"
    if tree == "simplified" and (s.blocks or (s.preset == "exact" and math.isfinite(s.epsilon))):
        raise ValueError(
            f"tree = 'simplified' with preset = {s.preset!r}: releases that share their noise tell a user's data "
            f"apart, so that epsilon is infinite whatever the scale; give tree='blt' or 'binary'{other}"
        )
    if tree in FORMS_IN_WORDS:
        return counter_part(tree, s)
    nodes = statistics.tree_nodes(tree, s.horizon)
    binary = running_sums("binary", s.horizon)
    if s.blocks:
        tuning = per_arm.private_arm_tuning(*s[:5], s.feature_norm, s.ridge, binary)
    elif s.preset == "exact":  # the simplified tree is here without noise
        tuning = exact_joint(s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm, s.theta_bound, binary)
    else:
        tuning = linear_widths.joint_tuning(s.preset, s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm)
    # releases of the simplified tree that share their noise differ by one user's exact (x x', x y)
    draws = nodes if tree == "binary" else math.inf
    kinds = partial(events, "node of a tree over x x' and x y", nodes=draws)
    claim = guarantee("central", "user", kinds, view_released, delta=delta_of_claim)
    return Part(statistics.joint(s.dim, tree, nodes, s.blocks), private_params(tuning, s), tuning, claim)


def counter_part(form: str, s: LinearSetting) -> Part:
    """The server adds a counter's noise (`mechanisms.counter`). Published presets spend what they do with the tree."""
    sums, numbers = form_of(form, s.horizon), (s.horizon, s.dim, s.epsilon, s.delta, s.feature_norm)
    found = running_sums(form, s.horizon)
    if s.blocks:
        tuning = per_arm.private_arm_tuning(*s[:5], s.feature_norm, s.ridge, found)
    elif s.preset == "exact":
        tuning = exact_joint(*numbers, s.theta_bound, found)
    else:
        tree = running_sums("binary", s.horizon)
        noise = found.column_norm / tree.column_norm
        compared = linear_widths.RunningSums(noise, found.deviation, noise * found.deviation / tree.deviation)
        tuning = linear_widths.joint_tuning(s.preset, *numbers, compared)
    what = f"running sums of x x' and x y by {FORMS_IN_WORDS[form]}"
    kinds = partial(events, what, column_norm=sums.column_norm)
    claim = guarantee("central", "user", kinds, view_released, delta=delta_of_claim)
    params = private_params(tuning, s)._replace(sums=sums.params)
    learnt = statistics.joint(s.dim, "counter", (sums.begin, sums.move, sums.noise), s.blocks)
    return Part(learnt, params, tuning, claim)


def linear_algorithm(part: Part, s: LinearSetting, select: Callable, selection: Any, window: int = 1) -> Algorithm:
    """The statistics with a selection rule and its numbers, in windows of `window` plays."""
    span = Span(1, s.horizon) if window == 1 else Span(window, 1, length=s.horizon)
    params = Params(part.params, selection, mechanism_scale=1.0)
    check_size(params, s.epsilon, s.feature_norm)
    if s.blocks:
        program = arms_bandit(part.statistics, select, s.num_arms, s.dim)
        if s.num_arms * s.dim**2 > MAX_STATE // 256:  # in less room is the state of any of them
            say_large(program, params)
        return Algorithm(program, (span,), params, part.guarantee, rewards=part.rewards, plays_on="row")
    program = linear_bandit(part.statistics, select, s.dim)
    return Algorithm(program, (span,), params, part.guarantee, rewards=part.rewards)


def say_large(program: Program, params: Params) -> None:
    """Warn where the state of a lane takes much memory."""
    state = jax.eval_shape(lambda: program.init(params, Draws(np.uint32(0))))
    if (size := sum(4 * x.size for x in jax.tree.leaves(state))) > MAX_STATE:
        warnings.warn(f"models = 'per_arm': a lane keeps {size / 1e6:.0f} MB: take fewer features", stacklevel=4)


def check_size(params: Any, epsilon: Scalar, feature_norm: Scalar, **others: Scalar) -> None:
    """ValueError where a number of a linear bandit over users is too large for float32. others: what may be why."""
    largest = max(float(np.max(np.abs(x), initial=0)) for x in jax.tree.leaves(params))
    if not largest <= MAX_PARAMETER:
        given = "".join(f", {name} = {value:g}" for name, value in others.items())
        smaller = f", or a smaller {' or '.join(others)}" if others else ""
        raise ValueError(
            f"epsilon = {epsilon:g} and feature_norm = {feature_norm:g}{given} give noise, a ridge or a width of "
            f"{largest:.3g}, too much for float32: choose an epsilon nearer 1, or float('inf') for no noise{smaller}"
        )


def ucb_algorithm(part: Part, s: LinearSetting, radius_scale: Any, default: float, window: int = 1) -> Algorithm:
    """The statistics with the upper-confidence rule, at the part's own width.

    radius_scale None: `default` with the preset "exact", 1 with the others.
    """
    if radius_scale is None:
        radius_scale = default if s.preset == "exact" else 1.0
    return linear_algorithm(part, s, ucb, UcbParams(radius_scale, **part.tuning.width._asdict()), window)

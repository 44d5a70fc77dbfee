"""OnlineUCB ("Improved rate for locally differentially private linear bandits", Algorithm 1): a learner's predictions stand in
for the rewards, whose noise then never enters the estimate.

Draws: alg/encode/feature (d normals a play), alg/encode/reward (one).
"""

import math
import warnings
from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.contextual.linucb import TIE, features_of
from jaxbandits.algorithms.contextual.statistics import bounded
from jaxbandits.learners.from_optax import from_optax
from jaxbandits.learners.maler import maler, num_pairs
from jaxbandits.learners.ogd import STEPS, ogd
from jaxbandits.learners.transformations import examined
from jaxbandits.mechanisms.composition import Event, gaussian_event, guarantee, view_message
from jaxbandits.mechanisms.gaussian import gaussian_delta
from jaxbandits.numerics import argmax, materialize
from jaxbandits.numerics.packed import pairs, quadratic_form, rank_one
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.theory.private_linear import (
    GRADIENT_BOUNDS,
    online_ucb_gradient_bound,
    online_ucb_noise,
    online_ucb_width,
)
from jaxbandits.validation import choice, factory, integer, number

LEARNERS = ("maler", "ogd")
MOST = 1e15  # largest gradient bound and width: their squares stay below float32's 3e38
LOUDEST = 1e9  # largest noise
UNHEARD = 1e22  # squared norm of a message that cannot be: honest ones stay below, and so far no product overflows


class Params(NamedTuple):
    radius_scale: Any
    width: Any  # w before radius_scale
    theta_bound: Any  # D
    gradient_bound: Any  # G: gradients are clipped to it, and the learner is told
    strong_convexity: Any  # mu = 2 (lambda_min + Delta^2), for step="strong"
    perturbation: Any  # Delta: of the features, beyond privacy; its square is not in the loss
    feature_noise: Any  # sigma on features: Sigma = feature_noise^2 I in the loss; 0 where they are public
    reward_noise: Any  # sigma on the reward
    mechanism_scale: Any  # multiplies both
    feature_norm: Any  # L: features are clipped to it at the client
    horizon: Any  # T, for Maler's step sizes
    delta: Any  # of the privacy claim


class State(NamedTuple):
    inverse: Any  # d (d + 1) / 2 scalars: (I + sum x x')^-1 of noisy x, upper triangle by rows
    theta: Any  # d scalars: that times the sum of <theta_t, x> x
    learner: Any


class Message(NamedTuple):
    """What a user sends."""

    feature: Any  # [d]
    response: Any  # []


@cache
def program(num_arms: int, dim: int, learner: Any, step: str, longest: int) -> Program:
    """step: of ogd; longest: the largest horizon that has Maler's number of experts. Both fixed for the other learners.

    learner: "maler", "ogd" or an optax transformation.
    """

    def online(params, dtype):
        if learner == "maler":
            rounds = jnp.asarray(params.horizon).astype(jnp.int32)
            return maler(dim, longest, params.theta_bound, params.gradient_bound, num_rounds=rounds, dtype=dtype)
        if learner != "ogd":
            return from_optax(learner, dim, params.theta_bound, dtype=dtype)
        return ogd(
            dim, 1, params.theta_bound, params.gradient_bound, step=step, strong_convexity=params.strong_convexity,
            dtype=dtype,
        )  # fmt: skip

    def init(params, draws):
        one, zero = jnp.ones((), draws.dtype), jnp.zeros((), draws.dtype)
        inverse = tuple(one if i == j else zero for i, j in pairs(dim))
        return State(inverse, (zero,) * dim, online(params, draws.dtype).init())

    def act(params, state, draws, t, context):
        # the joint argmax over actions and the confidence set in closed form; contexts are laid out once a seed, as in linucb
        x = [materialize(feature[0]) for feature in features_of(context, dim)]
        width = params.radius_scale * params.width
        score = sum(x[j] * state.theta[j] for j in range(dim))
        index = score + width * jnp.sqrt(jnp.maximum(quadratic_form(state.inverse, x), 0))
        return jnp.full(t.shape, materialize(argmax(index, TIE))), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        feature = context[0, action[0]]  # the guarantee holds for features of norm L: longer ones are cut, not believed
        x, y = bounded([feature[j] for j in range(dim)], reward[0], params.feature_norm)
        noise = params.mechanism_scale * params.feature_noise
        spread = jnp.sqrt(noise * noise + params.perturbation**2)  # one draw has the law of both
        z = draws.child("feature").normal(t[0], (dim,))
        y = y + params.mechanism_scale * params.reward_noise * draws.child("reward").normal(t[0])
        sent = materialize(jnp.stack([*(x[j] + spread * z[j] for j in range(dim)), y]))
        return Message(sent[:dim], sent[dim])

    def update(params, state, draws, t, note, message, used):
        x, y = [message.feature[j] for j in range(dim)], message.response
        good = sum(a * a for a in x) + y * y < UNHEARD  # false for NaN too: a message may be attacked on its way
        x = [jnp.where(good, a, 0) for a in x]
        tool = online(params, y.dtype)
        point = tool.predict(state.learner)
        guess = materialize(sum(x[j] * point[j] for j in range(dim)))

        # loss (<x, theta> - y)^2 - Sigma-norm^2: without the second term the noise on x would shrink theta
        noise = params.mechanism_scale * params.feature_noise
        gradient = [jnp.where(good, 2 * x[j] * (guess - y) - 2 * noise * noise * point[j], 0) for j in range(dim)]
        size = jnp.sqrt(sum(g * g for g in gradient))
        clip = materialize(jnp.minimum(1, params.gradient_bound / jnp.maximum(size, jnp.finfo(y.dtype).tiny)))
        after = tool.update(state.learner, jnp.stack([g * clip for g in gradient]))

        return State(*rank_one(state.inverse, state.theta, x, guess), after), ()  # the prediction, never y

    return Program(init, act, encode, update)


def ratio(private_features: bool, params: Params) -> float:
    """Sensitivity over noise of what a user sends: (2 L)^2 / (sigma^2 + Delta^2) + 1 / sigma^2 for the pair, its root."""
    sigma = float(params.mechanism_scale) * float(params.reward_noise)
    if sigma == 0:
        return math.inf
    if not private_features:
        return 1 / sigma
    noise = float(params.mechanism_scale) * float(params.feature_noise)
    return math.hypot(2 * float(params.feature_norm) / math.hypot(noise, float(params.perturbation)), 1 / sigma)


def events(private_features: bool, params: Params) -> tuple[Event, ...]:
    """A user's pair (x, y), or y alone where features are public: one Gaussian release, in the scale of its noise on y."""
    scale = float(params.mechanism_scale * params.reward_noise)
    what = "a user's x and y" if private_features else "a user's y"
    return (gaussian_event(what, ratio(private_features, params) * scale if scale > 0 else math.inf, scale),)


def claimed_delta(params: Params) -> float:
    """What a run may spend."""
    return float(params.delta)


@factory
def online_ucb(
    *, num_arms, dim, horizon, epsilon, delta=0.1, learner="maler", step="adanorm", calibration="exact",
    private_features=True, theta_bound=1.0, min_eigenvalue=None, width="scaled", radius_scale=1.0,
    gradient_bound="practical", failure_prob=None, power=0.25, feature_norm=1.0, longest=None,
) -> Algorithm:  # fmt: skip
    """Play argmax <x, theta> + w sqrt(x' V^-1 x); a user sends x~ = x + noise and y~ = y + noise, sigma N(0, I) each.

    V = I + sum x~ x~', theta = V^-1 sum <theta_t, x~> x~. theta_t is the prediction of an online learner in the ball of radius
    theta_bound, fed the gradient of (<x~, theta> - y~)^2 - sigma^2 |theta|^2 at theta_t, clipped to G: y~ reaches V and theta
    only through it. Ties go to the lowest arm within 1e-5 of the largest index, relatively. V^-1 by Sherman and Morrison.

    num_arms >= 2, dim >= 1 [static]. epsilon in (0, inf], inf: no noise, G and w without their privacy parts; delta in (0, 1).
    learner [static]: "maler", or "ogd" with step [static] "adanorm", "sqrt" or "strong" (`learners`), or an optax transformation, of
    which `learners.from_optax` makes a learner here: one object for a whole sweep, a program for each. longest >= horizon, an
    integer [static with Maler]: runs of any horizon up to it share one program (epochs); None: horizon.
    calibration: sigma by `theory.online_ucb_noise`. "exact" delivers (epsilon, delta) for a user's pair (x, y); "paper" and
    "reference" are printed forms, with a UserWarning where they do not deliver, or are used beyond epsilon = 1, where "paper"
    has no proof. private_features=False: no privacy noise on features (min_eigenvalue's stays), y alone is private (reward-only privacy).
    theta_bound > 0 (D). min_eigenvalue >= 0: lambda_min of the features' second moment; where at most horizon^-power its root
    is the spread of additional noise on features, Delta; None: no such noise (Figure 1), and 1 / dim where a value is needed.
    width, radius_scale >= 0: w = radius_scale times `theory.online_ucb_width`; "theory" is all exploration.
    gradient_bound: G of `theory.online_ucb_gradient_bound`. failure_prob in (0, 1], None: 1 / horizon. power >= 0.
    feature_norm > 0: L, to which clients cut longer features; rewards are clipped to [0, 1]. What is not finite counts as 0.
    Raises ValueError outside.
    Guarantee: local, one message a user (one reward, with private_features=False); `spend` is what the noise truly delivers at delta.
    Source: specification of locally private linear bandits, sections 2 to 4.

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.online_ucb(num_arms=100, dim=5, horizon=20_000, epsilon=1.0)
    >>> round(made.params.reward_noise, 3), [round(x, 6) for x in made.guarantee.spend(made.params)]
    (2.428, [1.0, 0.1])
    """
    num_arms, dim = integer("num_arms", num_arms, 2), integer("dim", dim, 1)
    horizon = integer("horizon", horizon, 1)
    longest = integer(
        "longest", horizon if longest is None else longest, horizon, remedy="it is the longest run's horizon"
    )
    if isinstance(learner, str):
        choice("learner", learner, LEARNERS)
    else:
        learner = examined("learner", learner, dim, LEARNERS)
    choice("step", step, STEPS)
    choice("gradient_bound", gradient_bound, GRADIENT_BOUNDS)
    if not isinstance(private_features, bool):
        raise ValueError(f"private_features = {private_features!r} must be True or False")
    scale, norm = number("radius_scale", radius_scale, 0.0), number("feature_norm", feature_norm, 0.0, open_low=True)
    bound, power = number("theta_bound", theta_bound, 0.0, open_low=True), number("power", power, 0.0)
    failure = 1 / horizon if failure_prob is None else number("failure_prob", failure_prob, 0.0, 1.0, open_low=True)
    sigma = online_ucb_noise(
        epsilon, delta, calibration=calibration, private_features=private_features, feature_norm=norm
    )
    least = 1 / dim if min_eigenvalue is None else number("min_eigenvalue", min_eigenvalue, 0.0)
    floor = horizon**-power
    extra = math.sqrt(floor) if min_eigenvalue is not None and least <= floor else 0.0
    noise, curvature = sigma if private_features else 0.0, least + extra**2
    if curvature * MOST < 1:
        raise ValueError(f"min_eigenvalue = {least:g} and power = {power:g} leave steps unbounded: lower power")
    largest = online_ucb_gradient_bound(
        noise, sigma, theta_bound=bound, perturbation=extra,
        log=math.log(2 * horizon / failure) if gradient_bound == "theory" else None,
    )  # fmt: skip
    radius = online_ucb_width(
        width, horizon, failure, epsilon=float(epsilon), delta=delta, theta_bound=bound, perturbation=extra,
        gradient_bound=largest, curvature=curvature,
    )  # fmt: skip
    if sigma > LOUDEST or not max(largest, radius) <= MOST:
        raise ValueError(
            f"epsilon = {epsilon!r} and theta_bound = {bound:g} need noise {sigma:.3g}, a gradient bound of {largest:.3g} and a "
            f"width of {radius:.3g}, too much for float32: raise epsilon or lower theta_bound"
        )
    params = Params(scale, radius, bound, largest, 2 * curvature, extra, noise, sigma, 1.0, norm, horizon, float(delta))
    if sigma > 0:
        _warn(calibration, float(epsilon), float(delta), ratio(private_features, params))
    unit = "user" if private_features else "reward"
    claim = guarantee("local", unit, partial(events, private_features), view_message, delta=claimed_delta)
    shape = ("", 4 ** (num_pairs(longest) - 1)) if learner == "maler" else (step if learner == "ogd" else "", 0)
    static = (num_arms, dim, learner, *shape)
    return Algorithm(
        program(*static),
        (Span(1, horizon),),
        params,
        claim,
        ("online_ucb", 1, static),
        {},
        rewards=Rewards(0.0, 1.0, "clip"),
    )


def _warn(calibration: str, epsilon: float, delta: float, change: float):
    """Say what printed noise delivers where it is not what is claimed, or is used beyond what its proof covers."""
    true = gaussian_delta(change, 1.0, epsilon)
    if calibration != "exact" and (true > delta or (calibration == "paper" and epsilon > 1)):
        warnings.warn(
            f"calibration = {calibration!r} at epsilon = {epsilon:g}: its noise has delta = {true:.3g}, where {delta:g} is "
            "claimed; calibration='exact' adds the least noise that delivers the claim",
            UserWarning, stacklevel=4,
        )  # fmt: skip

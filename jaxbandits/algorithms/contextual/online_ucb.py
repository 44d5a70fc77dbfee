"""OnlineUCB, Algorithm 1 of "Improved rate for locally differentially private linear bandits".

A learner's predictions stand in for the rewards, whose noise then never enters the estimate.

Draws: alg/encode/feature (d normals a play), alg/encode/reward (one).
"""

import math
import warnings
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import declared
from jaxbandits.algorithms.contextual.arguments import CLIPPED, Delta
from jaxbandits.algorithms.contextual.linucb import features_of_first_set, scores_and_squares
from jaxbandits.algorithms.contextual.selection import TIE
from jaxbandits.algorithms.contextual.statistics import clip_pair
from jaxbandits.declared import HOST, Dim, Epsilon, Example, FeatureNorm, Horizon, NonNegative, NumArms, Positive
from jaxbandits.learners.from_optax import from_optax
from jaxbandits.learners.maler import maler, num_pairs
from jaxbandits.learners.ogd import ogd
from jaxbandits.learners.transformations import check_transformation
from jaxbandits.mechanisms.composition import Event, delta_of_params, gaussian_event, guarantee, view_message
from jaxbandits.mechanisms.gaussian import default_delta, gaussian_delta
from jaxbandits.numerics import SUMMED, argmax, left_out, materialize, packed
from jaxbandits.numerics.least_squares import rank_one
from jaxbandits.numerics.packed import MAX_UNROLLED_DIM, map_features, split_features, stack_features
from jaxbandits.protocol import Algorithm, Program, Span, Unit
from jaxbandits.random import bits_of_streams, to_normal
from jaxbandits.theory.private_linear import online_ucb_gradient_bound, online_ucb_noise, online_ucb_width
from jaxbandits.typing import Array, Float, Numeric, Scalar
from jaxbandits.validation import choice, factory, integer

if TYPE_CHECKING:
    from optax import GradientTransformation
else:
    GradientTransformation = Any  # optax is loaded where it is used

LEARNERS = ("maler", "ogd")
MAX_BOUND = 1e15  # of gradients, and of the width: squares stay below float32's 3e38
MAX_NOISE_SCALE = 1e9
# Messages with a larger squared norm overflow float32 products; honest ones stay below, so these are treated as
# attacks.
MAX_SQUARED_NORM = 1e22


class Params(NamedTuple):
    radius_scale: Numeric
    width: Numeric  # w before radius_scale
    theta_bound: Numeric  # D
    gradient_bound: Numeric  # G: gradients are clipped to it, and the learner is told
    strong_convexity: Numeric  # mu = 2 (lambda_min + Delta^2), for step="strong"
    perturbation: Numeric  # Delta: of the features, beyond privacy; its square is not in the loss
    feature_noise: Numeric  # sigma on features: Sigma = feature_noise^2 I in the loss; 0 where they are public
    reward_noise: Numeric  # sigma on the reward
    mechanism_scale: Numeric
    feature_norm: Numeric  # L: features are clipped to it at the client
    horizon: Numeric  # T, for Maler's step sizes
    delta: Numeric


class State(NamedTuple):
    """The server's least squares, and the learner's state."""

    inverse: Any  # (I + sum x x')^-1 of noisy x, in the layout of `numerics.packed`
    theta: Any  # that times the sum of <theta_t, x> x
    rest: Any  # what rounding left out of both, in a long run; otherwise ()
    learner: Any


class Message(NamedTuple):
    """What a user sends."""

    feature: Float[Array, " d"]
    response: Float[Array, ""]


@cache
def program(num_arms: int, dim: int, learner: Any, step: Any, longest: int) -> Program:
    """OnlineUCB's functions.

    learner is "maler", "ogd" or an optax transformation; step is that of ogd; longest is the largest horizon
    that has Maler's number of experts. The last two are fixed for the other learners.
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
        both = packed.identity_times(dim, jnp.ones((), draws.dtype)), packed.zero_vector(dim, draws.dtype)
        return State(*both, left_out(both, draws.long), online(params, draws.dtype).init())

    def act(params, state, draws, t, context):
        # The joint argmax over actions and the confidence set in closed form. Contexts are laid out once a
        # seed, as in linucb.
        x = jax.tree.map(materialize, features_of_first_set(context, dim))
        width = params.radius_scale * params.width
        score, square = scores_and_squares(state, x)
        index = score + width * jnp.sqrt(jnp.maximum(square, 0))
        index = materialize(index) if dim > MAX_UNROLLED_DIM else index
        return jnp.full(t.shape, materialize(argmax(index, TIE))), None, ()

    def normals_of(feature, reward, t):
        """The standard normals of features, and that of the reward; of arrays all in one, which compiles once."""
        if dim <= MAX_UNROLLED_DIM:
            return feature.normals(t[0], dim), reward.normal(t[0])
        bits = bits_of_streams((feature, dim), (reward, 1), t=t[0])
        both = materialize(to_normal(bits, feature.dtype), long=True)
        return both[:dim], both[dim]

    def encode(params, note, draws, t, context, action, reward, play):
        feature = context[0, action[0]]  # the guarantee holds for features of norm L: longer ones are cut, not believed
        x, y = clip_pair(split_features(feature), reward[0], params.feature_norm)
        noise = params.mechanism_scale * params.feature_noise
        spread = jnp.sqrt(noise * noise + params.perturbation**2)  # one draw has the law of both
        z, last = normals_of(draws.child("feature"), draws.child("reward"), t)
        y = y + params.mechanism_scale * params.reward_noise * last
        x = map_features(lambda own, drawn: own + spread * drawn, x, z)
        if isinstance(x, tuple):
            sent = materialize(stack_features((*x, y)), long=True)
            return Message(sent[:dim], sent[dim])
        return Message(materialize(x, long=True), materialize(y, long=True))

    def update(params, state, draws, t, note, message, used):
        x, y = split_features(message.feature), message.response
        tool = online(params, y.dtype)
        point = split_features(tool.predict(state.learner))
        square, guess = packed.inners((x, x), (x, point))
        good = square + y * y < MAX_SQUARED_NORM  # false for NaN too: a message may be attacked on its way
        x = map_features(lambda a: jnp.where(good, a, 0), x)
        guess = materialize(jnp.where(good, guess, 0))

        # loss (<x, theta> - y)^2 - Sigma-norm^2: without the second term the noise on x would shrink theta
        noise = params.mechanism_scale * params.feature_noise
        gradient = map_features(
            lambda a, own: jnp.where(good, 2 * a * (guess - y) - 2 * noise * noise * own, 0), x, point
        )
        size = jnp.sqrt(packed.inner(gradient, gradient))
        clip = materialize(jnp.minimum(1, params.gradient_bound / jnp.maximum(size, jnp.finfo(y.dtype).tiny)))
        after = tool.update(state.learner, stack_features(map_features(lambda g: g * clip, gradient)))

        return State(*rank_one(state.inverse, state.theta, state.rest, x, guess), after), ()  # the prediction, never y

    return Program(init, act, encode, update, float32_plays=SUMMED)  # the learner keeps plain sums


def ratio(private_features: bool, params: Params) -> float:
    """Sensitivity over noise of what a user sends, for the pair (x, y) or for y alone.

    For the pair it is the root of (2 L)^2 / (sigma^2 + Delta^2) + 1 / sigma^2.
    """
    sigma = float(params.mechanism_scale) * float(params.reward_noise)
    if sigma == 0:
        return math.inf
    if not private_features:
        return 1 / sigma
    noise = float(params.mechanism_scale) * float(params.feature_noise)
    return math.hypot(2 * float(params.feature_norm) / math.hypot(noise, float(params.perturbation)), 1 / sigma)


def events(private_features: bool, params: Params) -> tuple[Event, ...]:
    """What a user releases: the pair (x, y), or y alone where features are public.

    One Gaussian release, in the scale of its noise on y.
    """
    scale = float(params.mechanism_scale * params.reward_noise)
    what = "a user's x and y" if private_features else "a user's y"
    event = gaussian_event(what, ratio(private_features, params) * scale if scale > 0 else math.inf, scale)
    return (event._replace(largest=math.hypot(2 * float(params.feature_norm) * private_features, 1.0)),)


@factory(
    plays_on="decision set",
    example=Example({"epsilon": 4.0, "min_eigenvalue": 0.1}),
    source=""""Improved rate for locally differentially private linear bandits", Algorithm 1;
        docs/formulas/ldp_contextual.md#onlineucb""",
)
def online_ucb(
    *,
    num_arms: NumArms,
    dim: Dim,
    horizon: Horizon,
    epsilon: Epsilon,
    delta: Delta = None,
    learner: Annotated[Literal["maler", "ogd"] | GradientTransformation, declared.STATIC] = "maler",
    step: Literal["adanorm", "sqrt", "strong"] = "adanorm",
    calibration: Annotated[Literal["exact", "paper", "reference"], HOST] = "exact",
    private_features: Annotated[bool, HOST] = True,
    theta_bound: Positive = 1.0,
    min_eigenvalue: NonNegative | None = None,
    width: Annotated[Literal["scaled", "theory"], HOST] = "scaled",
    radius_scale: NonNegative = 1.0,
    gradient_bound: Annotated[Literal["practical", "theory"], HOST] = "practical",
    failure_prob: Annotated[Scalar, declared.Gt(0), declared.Le(1)] | None = None,
    power: NonNegative = 0.25,
    feature_norm: FeatureNorm = 1.0,
    longest: Annotated[int | None, declared.Ge(1), declared.LATER] = None,
) -> Algorithm:
    """OnlineUCB: LinUCB under local privacy, with an online learner's predictions in place of the noisy rewards.

    The arm of the largest <x, theta> + w sqrt(x' V^-1 x) is played. A user sends x~ = x + noise and y~ = y +
    noise, sigma N(0, I) each. V = I + sum x~ x~' and theta = V^-1 sum <theta_t, x~> x~, where theta_t is the
    prediction of an online learner in the ball of radius theta_bound. The learner gets the gradient of (<x~,
    theta> - y~)^2 - sigma^2 `|theta|^2` at theta_t, clipped to G: y~ reaches V and theta only through it.

    Args:
        epsilon: Privacy budget of one user. inf: no noise, and G and w without their privacy parts.
        learner ({"maler", "ogd"} or optax.GradientTransformation, default "maler"): The online learner:
            `learners.maler`, `learners.ogd`, or what `learners.from_optax` makes of an optax transformation. Give one
            object to a whole sweep, since every object has a program of its own.
        step: The step size of `learners.ogd`; matters for `learner="ogd"` only.
        calibration: Which sigma of `theory.online_ucb_noise` to use. "exact" delivers (epsilon, delta) for a user's
            pair (x, y). "paper" and "reference" are printed forms, with a UserWarning where they do not deliver, or
            where "paper" is used beyond epsilon = 1, for which it has no proof.
        private_features: False: no privacy noise on features (that of `min_eigenvalue` stays), and y alone is private.
        theta_bound: The bound D on the norm of the true parameter.
        min_eigenvalue: The least eigenvalue lambda_min of the features' second moment. Where it is at most
            horizon^-power, additional noise Delta on features has the root of horizon^-power as its scale. The default:
            no such noise, and 1 / dim where a value is needed.
        width: Which w of `theory.online_ucb_width` to use; "theory" is all exploration, and covers nothing where
            features are perturbed (`min_eigenvalue`): there its Lemma 3.5 is false (docs/verdicts.md).
        radius_scale: Multiplies the width w.
        gradient_bound: Which G of `theory.online_ucb_gradient_bound` to use.
        failure_prob: The failure probability beta. The default: 1 / horizon. It enters the width's logarithm, and with
            the default width it is the probability of nothing: the true parameter left some set of a run in 1,000 of
            1,000 runs at 0.05 (`docs/reproductions/across.md`, coverage).
        power: The exponent of horizon^-power, with which `min_eigenvalue` is compared.
        feature_norm: The largest norm L of a feature, to which clients cut longer ones.
        longest: At least `horizon`; static with Maler. Runs of any horizon up to it share one program, such as the
            epochs of `doubling`. The default: `horizon`.

    Returns:
        Its guarantee is local, one message a user (one reward, with `private_features=False`).

    Raises:
        ValueError: For arguments outside these ranges, or that need noise or bounds too large for float32.

    Note:
        Clients clip rewards to [0, 1]; what is not finite counts as 0. Ties go to the lowest arm within 1e-5 of the
        largest index, relatively. V^-1 is updated by the formula of Sherman and Morrison. `guarantee.spend` is what the
        noise truly delivers at delta. Departures: docs/deviations.md.

    >>> algorithm = jb.algorithms.online_ucb(num_arms=100, dim=5, horizon=20_000, epsilon=1.0)
    >>> round(algorithm.params.reward_noise, 3), [round(x, 6) for x in algorithm.guarantee.spend(algorithm.params)]
    (7.504, [1.0, 5e-05])
    """
    longest = horizon if longest is None else longest
    longest = integer("longest", longest, horizon, remedy="it is the longest run's horizon")
    if isinstance(learner, str):
        choice("learner", learner, LEARNERS)
    else:
        learner = check_transformation("learner", learner, dim, LEARNERS)
    failure = 1 / horizon if failure_prob is None else failure_prob
    delta = float(default_delta(delta, horizon))
    sigma = online_ucb_noise(
        epsilon, delta, calibration=calibration, private_features=private_features, feature_norm=feature_norm
    )
    least = 1 / dim if min_eigenvalue is None else min_eigenvalue
    floor = horizon**-power
    extra = math.sqrt(floor) if min_eigenvalue is not None and least <= floor else 0.0
    noise, curvature = sigma if private_features else 0.0, least + extra**2
    if curvature * MAX_BOUND < 1:
        raise ValueError(f"min_eigenvalue = {least:g} and power = {power:g} leave steps unbounded: lower power")
    log = math.log(2 * horizon / failure) if gradient_bound == "theory" else None
    largest = online_ucb_gradient_bound(noise, sigma, theta_bound=theta_bound, perturbation=extra, log=log)
    radius = online_ucb_width(
        width, horizon, failure, epsilon=epsilon, delta=delta, theta_bound=theta_bound, perturbation=extra,
        gradient_bound=largest, curvature=curvature,
    )  # fmt: skip
    if sigma > MAX_NOISE_SCALE or not max(largest, radius) <= MAX_BOUND:
        raise ValueError(
            f"epsilon = {epsilon!r} and theta_bound = {theta_bound:g} need noise {sigma:.3g}, a gradient bound of "
            f"{largest:.3g} and a width of {radius:.3g}, too much for float32: raise epsilon or lower theta_bound"
        )
    params = Params(
        radius_scale=radius_scale,
        width=radius,
        theta_bound=theta_bound,
        gradient_bound=largest,
        strong_convexity=2 * curvature,
        perturbation=extra,
        feature_noise=noise,
        reward_noise=sigma,
        mechanism_scale=1.0,
        feature_norm=feature_norm,
        horizon=horizon,
        delta=delta,
    )
    if sigma > 0:
        _warn(calibration, float(epsilon), delta, ratio(private_features, params))
    unit: Unit = "user" if private_features else "reward"
    claim = guarantee("local", unit, partial(events, private_features), view_message, delta=delta_of_params)
    shape = ("", 4 ** (num_pairs(longest) - 1)) if learner == "maler" else (step if learner == "ogd" else "", 0)
    return Algorithm(program(num_arms, dim, learner, *shape), (Span(1, horizon),), params, claim, rewards=CLIPPED)


def _warn(calibration: str, epsilon: float, delta: float, change: float):
    """Say what printed noise delivers where it is not what is claimed, or is used beyond what its proof covers."""
    true = gaussian_delta(change, 1.0, epsilon)
    if calibration != "exact" and (true > delta or (calibration == "paper" and epsilon > 1)):
        warnings.warn(
            f"calibration = {calibration!r} at epsilon = {epsilon:g}: its noise has delta = {true:.3g}, where "
            f"{delta:g} is claimed; calibration='exact' adds the least noise that delivers the claim",
            UserWarning,
            stacklevel=4,
        )

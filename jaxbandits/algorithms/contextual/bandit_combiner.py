"""The private bandits combiner: a bandit whose arms are bandits.

The bases are tuned for different least eigenvalues of the features' second moment.

Axes: [M] bases, [E] epochs of a base.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import declared
from jaxbandits.algorithms.contextual.doubling import OGD, call_base, doubling, one_epoch, one_of, pad_epochs
from jaxbandits.algorithms.contextual.doubling import Params as Table
from jaxbandits.algorithms.contextual.online_ucb import online_ucb
from jaxbandits.declared import (
    STATIC,
    Base,
    BaseModels,
    Dim,
    Epsilon,
    Example,
    FeatureNorm,
    Horizon,
    Inside,
    NonNegative,
    NumArms,
)
from jaxbandits.mechanisms.composition import claimed_epsilon, scale_mechanism
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.numerics import argmax, count, materialize, materialize_all, moved_mean, pick, two_sum
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.random import Draws
from jaxbandits.typing import AlgorithmFactory, Array, Float, Numeric, Scalar
from jaxbandits.validation import base_arguments, factory, number

POWER = 0.125  # the paper's k: lambda_i are multiples of T^-k, and so is what bases compare them with
# A penalty that is higher than another by this much decides alone: responses without noise lie in [0, 1].
DECISIVE_PENALTY = 100.0
MAX_CONSTANT = 1e30  # constants stay below float32's 3e38, also times T


class Params(NamedTuple):
    """The bases' params, and the constants by which they are compared."""

    bases: Any  # doubling's Params, every leaf [M, ...]
    growth: Numeric  # [M] C_i
    exponent: Numeric  # [M] alpha_i
    penalty: Numeric  # [M] R_i / T
    spread: Numeric  # 1 + sigma^2
    log_term: Numeric  # log(T^3 M (1 + sigma^2) / beta)
    mechanism_scale: Numeric


class State(NamedTuple):
    """The bases' states, and what each base was paid."""

    bases: Any  # every leaf [M, ...]
    plays: Array  # int32: n_i
    mean: Float[Array, " M"]  # of the noisy responses, and what rounding left out of it
    mean_rest: Float[Array, " M"]
    deficit: Float[Array, " M"]  # sum of (mean before a response - that response), and what rounding left out of it
    deficit_rest: Float[Array, " M"]
    active: Array  # bool


def deviation_bound(params: Params, growth: Numeric, exponent: Numeric, n: Numeric) -> Numeric:
    """W(i, n) = C_i n^alpha_i + sqrt(n (1 + sigma^2) log(T^3 M log(max(n, 2)) (1 + sigma^2) / beta)), n >= 1."""
    log = jnp.maximum(params.log_term + jnp.log(jnp.log(jnp.maximum(n, 2))), 0)
    return growth * jnp.exp(exponent * jnp.log(n)) + jnp.sqrt(n * params.spread * log)


def _at(tree, i):
    return jax.tree.map(lambda x: pick(jnp.asarray(x), i, axis=0), tree)


@cache
def program(base: Program, num_bases: int) -> Program:
    """base: of `doubling`. Every base has a clock of its own, its plays so far; draws are those of the true play."""

    def init(params, draws):
        states = [base.init(_at(params.bases, i), draws.child(f"base{i + 1}")) for i in range(num_bases)]
        zeros = jnp.zeros(num_bases, draws.dtype)
        plays = jnp.zeros(num_bases, jnp.int32)
        active, bases = jnp.ones(num_bases, bool), jax.tree.map(lambda *x: jnp.stack(x), *states)
        return State(bases, plays, zeros, zeros, zeros, zeros, active)

    def params_of(params, i):
        return scale_mechanism(_at(params.bases, i), params.mechanism_scale)

    def act(params, state, draws, t, context):
        n = jnp.maximum(state.plays, 1).astype(draws.dtype)
        width = jnp.minimum(1, deviation_bound(params, params.growth, params.exponent, n) / n)
        index = state.mean + jnp.where(state.plays == 0, 1, width) - params.penalty
        i = materialize(argmax(jnp.where(state.active, index, -jnp.inf)))
        plays = materialize(pick(state.plays, i, axis=0))
        before = t[0] - 1 - plays  # plays that were not its own
        own = params_of(params, i), _at(state.bases, i)
        action, used, note = base.act(*own, draws.child("base").shifted(before), t - before, context)
        return action, used, (i, plays, note)

    def encode(params, note, draws, t, context, action, reward, play):
        i, plays, own = note
        before = t[0] - 1 - plays
        draws = draws.child("base").shifted(before)
        return base.encode(params_of(params, i), own, draws, t - before, context, action, reward, play)

    def update(params, state, draws, t, note, message, used):
        i, plays, own = note
        before = t - 1 - plays
        draws = draws.child("base").shifted(before)
        after, released = base.update(params_of(params, i), _at(state.bases, i), draws, t - before, own, message, used)
        is_it = jnp.arange(num_bases, dtype=jnp.int32) == i
        bases = jax.tree.map(
            lambda new, old: jnp.where(is_it.reshape(num_bases, *(1,) * new.ndim), new, old), after, state.bases
        )
        response = materialize(jnp.where(jnp.isfinite(message[1]), message[1], 0))
        n = (plays + 1).astype(response.dtype)
        mean, mean_rest, deficit, deficit_rest = (pick(x, i, axis=0) for x in state[2:6])
        deficit, deficit_rest = materialize_all(two_sum(deficit, deficit_rest, (mean - response) + mean_rest))
        mean, mean_rest = materialize_all(moved_mean(mean, mean_rest, response, 1 / n))
        width = deviation_bound(params, _at(params.growth, i), _at(params.exponent, i), n)
        drop = materialize((deficit >= width) & (count(state.active) > 1))  # somebody has to play
        moved = zip((mean, mean_rest, deficit, deficit_rest), state[2:6], strict=True)
        plays = state.plays + is_it.astype(jnp.int32)
        mean, mean_rest, deficit, deficit_rest = (jnp.where(is_it, new, old) for new, old in moved)
        return State(bases, plays, mean, mean_rest, deficit, deficit_rest, state.active & ~(is_it & drop)), released

    def diagnose(params, state):
        plays = {f"plays_base_{i + 1}": state.plays[i] for i in range(num_bases)}
        return {"active_bases": count(state.active), **plays}

    # the note carries a base's number of plays
    return Program(init, act, encode, update, diagnose=diagnose, lockstep=True, float32_plays=base.float32_plays)


def combiner_constants(
    num_bases: int, dim: int, horizon: int, epsilon: Scalar, failure_prob: Scalar
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C_i, alpha_i and R_i of Theorem 4.1 with P = P' = p = 1, float64 [M]: docs/formulas/ldp_contextual.md#combiner.

    At epsilon = inf they are the limits, R_i = inf for i > 1. The constants depend on x = 1 / (epsilon T^(1/8)) and on
    1 / epsilon; both are 0 at inf, and nothing else is divided by.
    """
    later, log = np.arange(num_bases) > 0, math.log(horizon) ** 1.5
    x, low = 1 / (epsilon * horizon**POWER), 2.0 ** np.arange(num_bases) * horizon**-POWER
    growth = log * math.sqrt(dim) * np.where(later, 1 / (epsilon * low), 1 + x)
    exponent = np.where(later, 0.5, 0.75)
    slowness = math.sqrt(dim * horizon) * np.where(later, log / epsilon, log + x)  # 1 / eta_i
    with np.errstate(divide="ignore", invalid="ignore"):
        rate, ratio = 1 / slowness, (1 - exponent) / exponent
        factor = (1 - exponent) ** ratio * (1 + exponent) ** (1 / exponent) / exponent**ratio
        # the middle term goes to 0 with 1 / epsilon, as 0^2 inf
        middle = np.where(growth > 0, factor * growth ** (1 / exponent) * horizon * rate**ratio, 0)
    confidence = 288 * (3 * math.log(horizon) + math.log(num_bases / failure_prob)) * horizon * rate
    penalty = growth * horizon**exponent + middle + confidence + slowness.sum() - slowness
    return growth, exponent, penalty


@cache
def _answers(base: Program, treedef, kinds: tuple, num_arms: int, dim: int) -> bool:
    """Whether a client's message is a pair whose second entry is one number."""

    def message(params):
        draws, t = Draws(jnp.uint32(0), "alg"), jnp.ones(1, jnp.int32)
        context = jnp.zeros((1, num_arms, dim))
        action, _, note = base.act(params, base.init(params, draws), draws, t, context)
        return base.encode(params, note, draws, t, context, action, jnp.zeros(1), jnp.ones(1, bool))

    sent = jax.eval_shape(message, treedef.unflatten([jax.ShapeDtypeStruct(*kind) for kind in kinds]))
    return isinstance(sent, tuple) and len(sent) == 2 and getattr(sent[1], "shape", None) == ()


def answers(base: Algorithm, num_arms: int, dim: int) -> bool:
    """Whether a base's clients say what was paid: the combiner compares bases by it."""
    leaves, treedef = jax.tree.flatten(base.params)
    kinds = tuple((np.shape(x), jnp.float32 if np.asarray(x).dtype.kind == "f" else jnp.int32) for x in leaves)
    return _answers(base.program, treedef, kinds, num_arms, dim)


def together(bases: list[Guarantee]) -> Guarantee:
    """The guarantee of the base that spends most, at the largest delta of any.

    A user's message goes to the base that played.
    """

    def bases_with_params(params):
        rows = [jax.tree.map(lambda x, i=i: np.asarray(x)[i], params.bases) for i in range(len(bases))]
        return [(base, scale_mechanism(row, params.mechanism_scale)) for base, row in zip(bases, rows, strict=True)]

    def spend(params):
        return one_of([base.spend(table) for base, table in bases_with_params(params)])

    def events(params):
        base, table = max(bases_with_params(params), key=lambda one: one[0].spend(one[1])[0])
        return base.events(table)

    return bases[0]._replace(spend=spend, events=events)


def rewards_of_bases(base: Algorithm) -> Rewards | None:
    """The rewards that the bases read, at most [0, 1]; bases share their client's code.

    An index cuts its bonus at 1, the most that a mean in [0, 1] may differ.
    """
    read = base.rewards
    inside = read is None or (read.low >= 0 and read.high <= 1)
    return read if inside else Rewards(0.0, 1.0)


def epsilon_of_base(base: Callable[..., Any]) -> float:
    """epsilon as a base's partial binds it, or as the base inside does; inf for one that has none."""
    base_arguments(base)  # refuses what is no factory
    known = inspect.signature(base).parameters  # a partial's bound arguments are its defaults
    if "epsilon" not in known and "base" in known:
        return epsilon_of_base(known["base"].default)
    value = known["epsilon"].default if "epsilon" in known else math.inf
    if value is inspect.Parameter.empty:
        raise ValueError("epsilon = None, and a base states none: give epsilon, float('inf') for no noise")
    return value


def default_bases(base: AlgorithmFactory, dim: int, horizon: int, epsilon: Scalar) -> list[AlgorithmFactory]:
    """`doubling` of the base, then the base itself, for lambda_i = 2^(i - 1) T^(-1/8).

    i is 1, 2, ..., 1 + ceil(log2(T^(1/8))).
    """
    least = [2.0**i * horizon**-POWER for i in range(1 + math.ceil(math.log2(horizon) * POWER))]
    known, bound = base_arguments(base)
    if "min_eigenvalue" in known and min(least[1:]) > 1 / dim:
        warnings.warn(
            f"horizon = {horizon}, dim = {dim}: every base but the first is tuned for a least eigenvalue of at least "
            f"{least[1]:.3g}, and features of norm 1 have at most 1 / dim = {1 / dim:.3g}; it takes "
            f"{(2 * dim) ** 8:.2g} plays for one that fits",
            UserWarning,
            stacklevel=4,
        )
    bases = []
    for value in least:
        own = {"epsilon": epsilon, "power": POWER}  # where the base's partial leaves them open
        own = {key: x for key, x in own.items() if key not in bound} | {"min_eigenvalue": value}
        bases.append(partial(base, **{key: x for key, x in own.items() if key in known}))
    return [partial(doubling, base=bases[0], power=POWER), *bases[1:]]


@factory(
    example=Example(
        {"epsilon": 4.0, "bonus_scale": 0.0, "bases": [{"name": "doubling", "base": OGD}, OGD]}, world="contexts"
    ),
    source=""""Improved rate for locally differentially private linear bandits", Algorithm 2 and Theorem 4.1; Cutkosky,
        Das and Purohit 2020; docs/formulas/ldp_contextual.md#combiner""",
)
def bandit_combiner(
    *,
    num_arms: NumArms,
    dim: Dim,
    horizon: Annotated[Horizon, declared.Ge(2), STATIC],
    epsilon: Epsilon | None = None,
    base: Base = online_ucb,
    bases: Annotated[Sequence[AlgorithmFactory] | None, STATIC] = None,
    bonus_scale: NonNegative = 1.0,
    reward_noise: NonNegative | None = None,
    failure_prob: Inside | None = None,
    feature_norm: FeatureNorm | None = None,
    models: BaseModels = None,
) -> Algorithm:
    """The private bandits combiner: a bandit that chooses at every play which of several bandits plays.

    Every play is made by the active base of the largest U(i) = mean_i + min(1, W(i, n_i) / n_i) - R_i / T. Only
    the base that plays learns and becomes n_i plays old; mean_i is that of its noisy responses (0 before the
    first, where the minimum is 1). A base is dropped when the sum of (mean before a response - that response)
    reaches W(i, n_i), unless it is the last.

    W(i, n) = C_i n^alpha_i + sqrt(n (1 + sigma^2) log(T^3 M log(max(n, 2)) (1 + sigma^2) / beta)), where sigma
    is the bases' noise on responses.

    Args:
        epsilon: Privacy budget of one user, for the default bases and in C_i and R_i. The default: the least that the
            bases' partials bind, inf where they have none.
        base: What the default bases are made of: a factory of algorithms, or a partial of one.
        bases (list of callables, optional): Factories or partials; the first counts as base 1 (alpha = 3/4), the others
            have alpha = 1/2. They are called with horizon and, where they name them, num_arms, dim, feature_norm and,
            if left open, failure_prob; everything else they bring along. All must be one program or `doubling` of it,
            for instance [partial(doubling, base=linucb), linucb], and send pairs (feature, response). The default: M =
            1 + ceil(log2(T^(1/8))) of `base`, the first in `doubling`, with this epsilon and min_eigenvalue 2^(i - 1)
            T^(-1/8).
        bonus_scale: Multiplies C_i and R_i. At 1, R_i / T is 37, 6.3 and 3.4 for epsilon = 1, T = 20,000 and d = 5, and
            decides alone.
        reward_noise: sigma. The default: the bases' largest parameter of that name, or 0.
        failure_prob: beta. The default: 1 / horizon.
        feature_norm: The largest norm L of a feature, for the bases. The default: theirs.

    Returns:
        Algorithm: Its guarantee is that of the worst of the bases; local or none. Diagnostics: `active_bases` and each
            base's plays.

    Raises:
        ValueError: For arguments outside these ranges, or where the bases do not fit together.

    Note:
        Ties go to the lowest base. A response that is not finite counts as 0. A UserWarning says where none of the
        default bases but the first is possible, which is so below (2 dim)^8 plays.

        The paper's constants P, P' and p are 1. Departures: docs/deviations.md.

    >>> from functools import partial
    >>> linucb = jb.algorithms.linucb
    >>> bases = [partial(jb.algorithms.doubling, base=linucb), linucb, partial(linucb, radius_scale=0.1)]
    >>> algorithm = jb.algorithms.bandit_combiner(num_arms=9, dim=5, horizon=20_000, epsilon=1.0, bases=bases)
    >>> algorithm.params.penalty.round(1).tolist()
    [37.1, 6.3, 3.4]
    """
    if bases is not None and (not isinstance(bases, list | tuple) or not bases):
        raise ValueError(f"bases = {bases!r} must be a list of factories, the first of which counts as base 1")
    if epsilon is None:
        stated = min(epsilon_of_base(x) for x in (bases or [base]))
        epsilon = number("epsilon", stated, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    failure_prob = 1 / horizon if failure_prob is None else failure_prob
    if bases is None:
        bases = default_bases(base, dim, horizon, epsilon)
    fixed = {"num_arms": num_arms, "dim": dim, "feature_norm": feature_norm, "horizon": horizon}
    tuning = {"failure_prob": failure_prob, "longest": horizon, "delta": default_delta(None, horizon), "models": models}
    built = [call_base(x, fixed, tuning) for x in bases]
    built = [x if isinstance(x.params, Table) else one_epoch(x) for x in built]
    first = built[0]
    kind = first.guarantee._replace(claimed=None)
    for x in built:
        if x.program is not first.program:
            raise ValueError(
                f"bases = {[x.version[0] for x in built]} run different programs: give one factory with different "
                f"numbers, and doubling of it"
            )
        if x.guarantee._replace(spend=first.guarantee.spend, events=first.guarantee.events, claimed=None) != kind:
            raise ValueError("bases claim different guarantees: give all of them the same kind of privacy")
    if first.guarantee.model not in ("local", "none"):
        raise ValueError(
            f"bases of the {first.guarantee.model} model: the combiner reads every user's response, which only local "
            f"privacy covers: for instance online_ucb"
        )
    if not answers(first, num_arms, dim):
        raise ValueError(
            f"bases = {[x.version[0] for x in built]} do not send pairs (feature, response), by which the "
            f"combiner compares them: for instance online_ucb or linucb do"
        )
    epochs = max(len(x.params.starts) for x in built)
    tables = jax.tree.map(lambda *x: np.stack(x), *(pad_epochs(x.params, epochs) for x in built))
    growth, exponent, penalty = combiner_constants(len(built), dim, horizon, epsilon, failure_prob)
    penalty = bonus_scale * penalty / horizon if bonus_scale > 0 else np.zeros(len(built))
    penalty = np.where(np.isinf(penalty), penalty[0] + DECISIVE_PENALTY, np.minimum(penalty, MAX_CONSTANT))
    noise = getattr(tables.base, "reward_noise", 0.0) if reward_noise is None else reward_noise
    spread = 1 + float(np.max(noise)) ** 2
    log_term = 3 * math.log(horizon) + math.log(len(built) * spread / failure_prob)
    params = Params(
        bases=tables,
        growth=np.minimum(bonus_scale * growth, MAX_CONSTANT),
        exponent=exponent,
        penalty=penalty,
        spread=spread,
        log_term=log_term,
        mechanism_scale=1.0,
    )
    guarantee = first.guarantee
    if guarantee.model != "none":
        given = max(claimed_epsilon(x) or 0.0 for x in built)
        if given > epsilon * (1 + 1e-9):
            raise ValueError(
                f"epsilon = {epsilon:g}, and a base is given {given:g}, which a user who meets it spends: "
                f"give the bases at most {epsilon:g}, or leave epsilon out"
            )
        guarantee = together([x.guarantee for x in built])._replace(claimed=float(epsilon))
    functions, schedule = program(first.program, len(built)), (Span(1, horizon),)
    version = ("bandit_combiner", 2, tuple(x.version for x in built))
    read = rewards_of_bases(first)
    return Algorithm(functions, schedule, params, guarantee, version, rewards=read, plays_on=first.plays_on)

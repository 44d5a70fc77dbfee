"""`jb.offline`: what policies would have earned, judged on a log of another's choices.

Axes: [n] rows of a log, [K] arms, [S] lanes, [B] stretches.
"""

import contextlib
import inspect
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from annotated_doc import Doc

from jaxbandits.declared import Epsilon, Ge, Inside, Le, Positive
from jaxbandits.environments import reward_models
from jaxbandits.environments.logs import Log, check_log
from jaxbandits.environments.rows import Floats, make_rows
from jaxbandits.environments.user_tables import few
from jaxbandits.formatting import nearest, show
from jaxbandits.mechanisms.composition import compose, response_event
from jaxbandits.mechanisms.pure import response_bound
from jaxbandits.off_policy import estimators
from jaxbandits.off_policy.estimators import Summands, half_width, standard_error
from jaxbandits.off_policy.learners import TRANSFORM, Policy, replay
from jaxbandits.random import Draws
from jaxbandits.recipe import unwrap
from jaxbandits.typing import Matrix, Scalar, Vector
from jaxbandits.validation import array, declare

if TYPE_CHECKING:
    import pandas as pd

    from jaxbandits.privacy import Ledger

LEAST_SIZE = 50  # effective rows, with fewer of which an interval is not to be trusted
MAX_DEVIATION = 4  # standard errors that a mean weight may be away from 1
ROUNDING = 1e-6  # of probabilities
LEAST_BLOCKS = 5
BESIDE = ("effective_size", "mean_weight", "largest_weight", "clipped", "bias_bound", "n", "estimator")  # in a table
RESPONSE_BITS = 32  # of the uniforms that flip bits


class Offline(NamedTuple):
    """An estimate of what a policy would have earned a row, and how far to trust it."""

    value: float
    interval: tuple[float, float]  # NaN where nothing is known of the error
    standard_error: float
    n: int  # rows that were used
    estimator: str
    # of the weights of all rows; NaN where they are not known: of a learner, without propensities, of private bits
    effective_size: float = math.nan  # (sum w)^2 / sum w^2: so many rows of equal weight would say as much
    mean_weight: float = math.nan  # before they are cut: about 1, if the propensities are right
    largest_weight: float = math.nan  # before they are cut
    clipped: float = math.nan  # the share that was cut
    bias_bound: float = 0.0  # how far off an estimate from cut weights may be: "ips" too low, for rewards of at least 0
    logged: float = math.nan  # what the logged policy earned a row
    accepted: Any = None  # of a learner: rows that it learned from, [S]
    curve: Any = None  # and the mean reward of the first 1, 2, ... of them
    ledger: "Ledger | None" = None  # of private bits: what they spend
    summands: Any = None  # [n] numbers whose mean is the value, [B] of stretches; None where no error is known
    spread: float = math.nan  # the range of these, where the interval needs it
    confidence: float = 0.95  # of the interval
    blocks: int = 1  # stretches of the log

    def __repr__(self) -> str:
        low, high = (f"{end:.4g}" for end in self.interval)
        lines = [f"{self.value:.4g} a row by {self.estimator}, interval {low} to {high}"]
        lines += [f"standard error {self.standard_error:.3g}, of {self.n:,} rows"]
        if self.ledger is not None:
            lines += [f"one private bit of a row: epsilon = {self.ledger.epsilon:.4g}"]
        elif self.accepted is not None:
            lines += [f"a learner, which learned from {', '.join(f'{x:,}' for x in self.accepted[:8])} rows"]
        else:
            cut = f", {self.clipped:.1%} cut (bias at most {self.bias_bound:.3g})" if self.clipped else ""
            lines += [f"weights: mean {self.mean_weight:.3g}, largest {self.largest_weight:.3g}{cut}"]
            lines[1] += f", worth {self.effective_size:,.0f}"
        return "\n  ".join([*lines, f"the logged policy earned {self.logged:.4g} a row"])


class Settings(NamedTuple):
    """The arguments of `offline` that all policies share."""

    log: Log
    estimator: str
    clip: float  # infinite: weights are not cut
    floor: Scalar | None
    normal: bool
    confidence: float
    reward_range: tuple[float, float] | None  # None: not known
    epsilon: Scalar | None
    seeds: range
    blocks: int
    shuffle: bool
    model: Floats | None = None  # [n, K] expected rewards

    @property
    def range(self) -> tuple[float, float]:
        """The range of rewards, where it is needed."""
        if self.reward_range is None:
            raise ValueError("reward_range is needed here, (low, high), since rewards of the log leave [0, 1]")
        return self.reward_range


@declare
def offline(
    policy: Any,
    log: Annotated[Log, Doc("What `read_logged` returns, with the propensities of the arms that were shown.")],
    *,
    estimator: Literal["dr", "ips", "snips", "dm", "replay"] = "dr",
    clip: Positive | None = None,
    floor: Annotated[Positive, Le(1)] | None = None,
    interval: Literal["normal", "bernstein"] = "normal",
    confidence: Annotated[Inside, Doc("Of the interval.")] = 0.95,
    model: Any = "ridge",
    ridge: Annotated[Positive, Doc("Of the models of rewards.")] = 1.0,
    folds: Annotated[int, Ge(2), Doc("In how many parts the rows are divided for models of rewards.")] = 5,
    rewards: Matrix | None = None,
    reward_range: Vector | None = None,
    epsilon: Epsilon | None = None,
    seeds: Annotated[int, Ge(1), Doc("Lanes of a learner.")] = 1,
    blocks: Annotated[int, Ge(1)] = 1,
    order: Literal["log", "shuffle"] = "log",
    seed: Annotated[int, Ge(0), Le(2**31 - 1), Doc("The first lane's, and of private bits.")] = 0,
) -> "Offline | pd.DataFrame":
    """Estimate what a policy would have earned a row, from a log of what another policy chose.

    Args:
        policy (int, str, array_like, callable, Policy, factory, Log, list or dict): Who is judged: an arm, by number or
            name; an arm for each row [n]; probabilities of arms [n, K]; a function of `log.features` that returns one
            of these; what `trained` returned; `log` itself, for the policy that it logged; or an algorithm's factory,
            which learns as it goes and takes the estimator "replay". Several are a list or ``{label: policy}``.
        estimator: Of w = probability / propensity of the arm shown: "ips", the mean of w times the reward, needs no
            model; "snips" divides it by the mean of w, with a bias of O(1 / n); "dm" is what a model expects, and its
            error is not known; "dr" is "dm" and "ips" of what the model misses, without bias whatever the model;
            "replay" is the mean reward of the rows whose arm the policy would have chosen.
        clip: Larger w are cut to this, for less spread and some bias. The default: none is.
        floor: A number that no propensity is below, known before the log was looked at.
        interval: "bernstein" holds for every n and is wide. It needs the estimator "replay", or `clip` or `floor` and
            "ips" or, with `rewards`, "dr".
        model (str or object, default "ridge"): For "dr" and "dm", as in `fitted`: "ridge", "logistic" or an object. It
            is fitted for each arm, and asked about rows of other folds alone: row i is in fold i mod `folds`.
        rewards (array_like of shape (n, K), optional): The expected rewards of all arms, in place of a model's.
        reward_range (sequence of 2 floats, optional): The least and the largest reward that there can be. The default:
            (0, 1) where all rewards of the log lie there, else not known.
        epsilon: Each logged user sends one bit, of this privacy budget, and nothing else of a row is read: with "ips",
            `clip`, and rewards of at least 0. Give `reward_range` too, as its default looks at all rewards. The
            default: rows are read.
        blocks: For a learner: the log is cut into so many stretches, at least 5, each replayed from the start.
        order: For a learner: rows as the log has them, or shuffled by each lane's seed.

    Returns:
        Offline or pandas.DataFrame: `value`, its `interval` and `standard_error`; `effective_size`, `mean_weight`,
            `largest_weight`, `clipped` and `bias_bound`, which say how far to trust it; `n`, the rows used. Of a
            learner also `accepted` [seeds] and `curve`. Of several policies a DataFrame with a row for each, and the
            paired `difference` to the first with its interval, NaN for "replay" with "bernstein".

    Raises:
        ValueError: For an argument outside its range, where propensities are missing, and where the log never shows
            what a policy plays.

    Warns:
        UserWarning: Fewer than 50 effective rows, a mean weight beyond 4 standard errors of 1, with "ips" a bias of cut
            weights that may exceed half of the interval, a policy that was trained on rows of this log.

    Note:
        Rows must be independent. The best of several policies looks better on the log that it was chosen by than it
        is: judge it on another part (`Log.split`).

        A learner's interval covers what this run earns. What the learner earns on average takes `blocks`, whose
        interval is Student's; more seeds narrow nothing. A horizon that is not bound is filled in, four standard
        deviations above what is expected, and ends a run; a bound one tunes the learner, and ends a private one's run.

        With `epsilon`, several policies take one bit each and their budgets add up: `ledger`, which a DataFrame has in
        its `attrs`. Two calls with the same `seed` roll the same dice, and the difference of their bits has no noise:
        judge policies in one call, or give another seed. Dudík, Langford and Li 2011; Swaminathan and Joachims 2015;
        Maurer and Pontil 2009; Li, Chu, Langford and Wang 2011.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0] * 25, "ad": ["a", "b"] * 50, "click": [0, 1, 1, 1] * 25})
    >>> log = jb.read_logged(frame, arm="ad", reward="click", propensity="uniform")
    >>> jb.offline("a", log, estimator="ips")
    0.5 a row by ips, interval 0.3294 to 0.6706
      standard error 0.087, of 100 rows, worth 50
      weights: mean 1, largest 2
      the logged policy earned 0.75 a row
    """
    check_log(log)
    log = log._replace(reward=np.asarray(log.reward, np.float64), arm=np.asarray(log.arm, np.int64))
    settings = Settings(
        log=log, estimator=estimator, clip=math.inf if clip is None else float(clip), floor=floor,
        normal=interval == "normal", confidence=float(confidence), reward_range=_range(reward_range, log),
        epsilon=epsilon, seeds=range(seed, seed + seeds), blocks=blocks, shuffle=order == "shuffle",
    )  # fmt: skip
    _check(settings, modelled=rewards is None)
    if estimator in estimators.WITH_MODEL:
        settings = settings._replace(model=_predict_rewards(settings, model, ridge, folds, rewards))
    several = _label_policies(policy, log)
    if several is None:
        return _judge(policy, settings, "policy")
    found = dict[str, Offline]()
    for label, one in several.items():
        found[label] = _judge(one, settings, label, len(found))
    frame = to_table(found)
    if epsilon is not None:
        frame.attrs["ledger"] = _ledger(epsilon, len(found))
    return frame


def _judge(policy: Any, settings: Settings, label: str, position: int = 0) -> Offline:
    """One estimate. label: what messages call the policy; position: which of several it is."""
    log, estimator, clip, probabilities = settings.log, settings.estimator, settings.clip, np.ones((1, 1))
    if _learns(policy):
        return _judge_learner(policy, settings, label)
    if isinstance(policy, Log):
        if not _are_alike(policy, log):
            raise ValueError(f"{label} is another log than the one it is judged on: give that one")
        estimator, weights, widest = "ips", np.ones(len(log.arm)), 1.0  # with these weights the mean reward
        settings = settings._replace(estimator=estimator)
    else:
        probabilities = probabilities_of(policy, log, label)
        propensity = np.nan if log.propensity is None else log.propensity
        weights = np.take_along_axis(probabilities, log.arm[:, None], 1)[:, 0] / propensity
        widest = float(probabilities.max() / settings.floor) if settings.floor else math.inf
    if settings.epsilon is not None:
        return _judge_bits(weights, settings, settings.epsilon, position)
    _check_weights(probabilities, weights, estimator, log, label)
    cut, (low, high) = np.minimum(weights, clip), settings.reward_range or (math.nan, math.nan)
    largest = max(high - low, abs(low), abs(high)) if estimator == "ips" else high - low  # "ips" misses all of a reward
    bound = max(0.0, 1 - float(cut.mean())) * largest
    result = _estimate(
        estimators.summands_of(estimator, probabilities, cut, log.arm, log.reward, settings.model), settings,
        estimators.spread_of(estimator, low, high, min(clip, widest)), mean_weight=float(weights.mean()),
        effective_size=float(cut.sum() ** 2 / (cut @ cut)) if cut.any() else 0.0, largest_weight=float(weights.max()),
        clipped=float((weights > clip).mean()), logged=float(log.reward.mean()),
        bias_bound=bound if math.isfinite(clip) and estimator in ("ips", "snips", "dr") else 0.0,
    )  # fmt: skip
    if estimator == "dm":
        result = result._replace(interval=(math.nan, math.nan), standard_error=math.nan, summands=None)
    else:
        _warn(result, standard_error(weights), settings, label)
    if isinstance(policy, Policy) and policy.log is not None and _share_rows(policy.log, log):
        warnings.warn(f"{label} was trained on rows of this log: judge it on others (Log.split)", stacklevel=4)
    return result


def _estimate(found: Summands, settings: Settings, spread: float, **told: Any) -> Offline:
    value, error = float(found.own.mean()), standard_error(found.own)
    spread = math.nan if settings.normal else spread
    half = half_width(error, len(found.own), settings.confidence, spread)
    told |= {"summands": found.every, "spread": spread, "confidence": settings.confidence}
    return Offline(value, (value - half, value + half), error, len(found.own), settings.estimator, **told)


def _judge_bits(weights: Floats, settings: Settings, epsilon: Scalar, position: int) -> Offline:
    """ips from one private bit of each row, and nothing else of the log."""
    high, rows = settings.range[1], jnp.arange(1, len(weights) + 1)
    words = Draws(np.uint32(settings.seeds.start), "offline/bit").at(rows, np.array(position))
    uniform = (np.asarray(words, np.float64) + 0.5) * 2.0**-RESPONSE_BITS
    cut = np.minimum(weights, settings.clip) * settings.log.reward
    bits = estimators.bits_of(cut, uniform, settings.clip * high, epsilon)
    spread = settings.clip * high * response_bound(epsilon)
    return _estimate(Summands(bits, bits), settings, spread, bias_bound=math.nan, ledger=_ledger(epsilon, 1))


def _ledger(epsilon: Scalar, policies: int) -> "Ledger":
    """What a logged user spends who sends a bit for each policy."""
    from jaxbandits.privacy import Ledger

    scale = 0.0 if math.isinf(epsilon) else 1 / epsilon
    event = response_event("bit of a logged row", scale, policies, RESPONSE_BITS)
    return Ledger((event,), *compose([event]), "offline", model="local", unit="user")


def _judge_learner(learner: Any, settings: Settings, label: str) -> Offline:
    log, blocks = settings.log, settings.blocks
    if settings.estimator != "replay" or not settings.normal:
        remedy = "give estimator='replay' and interval='normal'"
        raise ValueError(f"{label} = {unwrap(learner).name} learns as it goes: {remedy}")
    rows = replay(learner, log, seeds=settings.seeds, blocks=blocks, shuffle=settings.shuffle)
    paid = [[log.reward[x] for x in stretches] for stretches in rows]
    least = min(len(x) for stretches in paid for x in stretches)
    if least == 0:
        raise ValueError(f"{label}: the log never shows what the learner plays, so that it learned from no row")
    means = np.array([[x.mean() for x in stretches] for stretches in paid])  # [S, B]
    value, every = float(means.mean()), means.mean(axis=0)
    if blocks == 1:
        error = float(np.mean([standard_error(x) for (x,) in paid]))  # of one run: more lanes narrow nothing
        used = np.isin(np.arange(len(log.arm)), rows[0][0])
        every = estimators.pair_used(log.reward, used).every - means[0, 0] + value
    else:
        error = standard_error(every)
    half = half_width(error, blocks, settings.confidence, student=blocks > 1)
    accepted = np.array([sum(map(len, stretches)) for stretches in rows])
    curves = [np.cumsum(x[:least]) / np.arange(1, least + 1) for stretches in paid for x in stretches]
    return Offline(
        value, (value - half, value + half), error, round(float(accepted.mean())), "replay", accepted=accepted,
        curve=np.mean(curves, axis=0), logged=float(log.reward.mean()), summands=every,
        confidence=settings.confidence, blocks=blocks,
    )  # fmt: skip


def to_table(found: Mapping[str, Offline]) -> "pd.DataFrame":
    """A row for each policy, with its paired difference to the first."""
    import pandas as pd

    rows, first = [], next(iter(found.values()))
    for one in found.values():
        error, half, more = math.nan, math.nan, one.value - first.value
        if one.summands is not None and first.summands is not None and len(one.summands) == len(first.summands):
            apart = one.summands - first.summands
            error, spread = standard_error(apart), one.spread + first.spread
            half = half_width(error, len(apart), one.confidence, spread, student=one.blocks > 1)
            if one.estimator == "replay" and not math.isnan(spread):
                half = math.nan  # of two shares of rows: no bound holds for every n
        row = {"value": one.value, "low": one.interval[0], "high": one.interval[1]}
        row |= {"standard_error": one.standard_error, "difference": more, "difference_low": more - half}
        row |= {"difference_high": more + half, "difference_error": error}
        rows.append(row | {name: getattr(one, name) for name in BESIDE})
    frame = pd.DataFrame(rows, index=pd.Index(list(found), name="policy"))
    frame.attrs |= {"logged": first.logged, "confidence": first.confidence}
    return frame


# ---- policies in their forms


def _learns(policy: Any) -> bool:
    """Whether it is an algorithm's factory, and no function of features."""
    if not callable(policy):
        return False
    function = unwrap(policy).function
    with contextlib.suppress(TypeError, ValueError):  # a function that has no signature is none of algorithms
        return hasattr(function, "plays_on") or "horizon" in inspect.signature(function).parameters
    return False


def _label_policies(policy: Any, log: Log) -> dict[str, Any] | None:
    """Several policies by label; None for one."""
    if not isinstance(policy, Mapping):
        shapes = {(), (len(log.arm_names),)}
        if not isinstance(policy, list | tuple) or hasattr(policy, "_fields"):
            return None
        if len(policy) == len(log.arm) and all(not callable(x) and np.shape(x) in shapes for x in policy):
            return None  # an arm, or probabilities, for each row
        names = [_policy_name(one, log) for one in policy]
        labels = (name if names.count(name) == 1 else f"{name} {i + 1}" for i, name in enumerate(names))
        policy = dict(zip(labels, policy, strict=True))
    if not policy:
        raise ValueError("policy is empty: give at least one")
    return {str(label): one for label, one in policy.items()}


def _policy_name(policy: Any, log: Log) -> str:
    if isinstance(policy, int) and 0 <= policy < len(log.arm_names):
        policy = log.arm_names[policy]
    if isinstance(policy, str | int):
        return f"arm {policy}"
    if isinstance(policy, Log | Policy):
        return "logged" if isinstance(policy, Log) else str(policy.algorithm.version[0])
    return unwrap(policy).name if callable(policy) else "policy"


def probabilities_of(policy: Any, log: Log, label: str) -> Floats:
    """The probabilities [n, K] with which a policy that does not learn plays on the rows of a log."""
    n, names = len(log.arm), log.arm_names
    if isinstance(policy, Policy):
        there = policy.log.arm_names if policy.log else policy.environment.facts.get("arm_names", names)
        if tuple(there) != tuple(names):
            remedy = "read both logs with the same arms=[...]"
            raise ValueError(f"{label} plays the arms {few(there)}, and those of the log are {few(names)}: {remedy}")
        policy = policy.probabilities(log.features)
    given = _by_arm(policy(log.features) if callable(policy) else policy, names)
    if isinstance(given, int | np.integer) and str(given) in names and names.index(str(given)) != given:
        called = f"arm number {names.index(str(given))} is called {str(given)!r}"
        raise ValueError(f"{label} = {given} may be a number or a name ({called}): give the name as text")
    given = np.full(n, given) if isinstance(given, str) or np.ndim(given) == 0 else np.asarray(given)
    if given.ndim == 1:
        for name in set(given.tolist()) - set(names) if given.dtype.kind in "OU" else ():
            raise ValueError(f"{label}: {show(name)} is no arm of the log{nearest(str(name), names)}: {few(names)} are")
        numbers = [names.index(name) for name in given] if given.dtype.kind in "OU" else given
        arms = array(label, numbers, 1, 0, len(names) - 1, shape=(n,), remedy="a number of an arm for each row")
        if (arms % 1 > 0).any():
            raise ValueError(
                f"{label} holds {arms[arms % 1 > 0][0]:g}, which is no number of an arm: they are integers"
            )
        given = arms[:, None] == np.arange(len(names))
    remedy = f"an arm for each row, or probabilities of the {len(names)} arms"
    found = array(label, given, 2, 0.0, 1.0, shape=(n, len(names)), remedy=remedy)
    wrong = np.abs(found.sum(axis=1) - 1) > ROUNDING
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"{label}[{i}] sums to {found[i].sum():.6g}: give {remedy}, which sum to 1")
    return found


def _by_arm(given: Any, names: Sequence[str]) -> Any:
    """A table with its columns in the order of the arms, where they are called as these are."""
    columns = [*map(str, getattr(given, "columns", ()))]
    return np.asarray(given)[:, [columns.index(x) for x in names]] if {*columns} == {*names} else given


def _are_alike(one: Log, other: Log) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("features", "arm", "reward"))


def _share_rows(one: Log, other: Log) -> bool:
    """Whether two logs are one, or have rows in common and hardly any two rows that are alike by chance."""
    first, second = ({row.tobytes() for row in np.column_stack([x.features, x.arm, x.reward])} for x in (one, other))
    distinct = len(first) + len(second) > 0.9 * (len(one.arm) + len(other.arm))
    return _are_alike(one, other) or (distinct and len(first & second) > 0.1 * len(second))


# ---- checks and warnings


def _range(given: Vector | None, log: Log) -> tuple[float, float] | None:
    if given is None:
        return (0.0, 1.0) if 0 <= log.reward.min() and log.reward.max() <= 1 else None
    low, high = map(float, array("reward_range", given, 1, shape=(2,), remedy="give (low, high)"))
    if low >= high:
        raise ValueError(f"reward_range = {show(given)} must be (low, high) with low < high")
    return low, high


def _check(settings: Settings, modelled: bool) -> None:
    """ValueError for what does not go together. modelled: expected rewards are a model's."""
    log, estimator, clip, floor = settings.log, settings.estimator, settings.clip, settings.floor
    if log.propensity is None and estimator != "dm":
        raise ValueError(f"estimator = {estimator!r} needs propensities: read the log with them, or take 'dm'")
    if floor is not None and log.propensity is not None and log.propensity.min() < floor:
        raise ValueError(f"floor = {floor:g} is above a propensity of the log, {log.propensity.min():.4g}: lower it")
    if 1 < settings.blocks < LEAST_BLOCKS or settings.blocks > len(log.arm):
        raise ValueError(f"blocks = {settings.blocks} must be 1, or at least {LEAST_BLOCKS} and fewer than rows")
    if settings.epsilon is not None:
        if estimator != "ips" or math.isinf(clip) or settings.range[0] != 0:
            needs = "estimator='ips', clip, such as clip=8, and a reward_range that begins at 0"
            raise ValueError(f"epsilon = {settings.epsilon:g} needs {needs}")
        return
    if settings.reward_range is not None:
        array("log.reward", log.reward, 1, *settings.reward_range, remedy="which is the reward_range: widen it")
    if not settings.normal:
        if estimator in ("snips", "dm") or (estimator == "dr" and modelled):
            remedy = "take 'ips', 'replay', or 'dr' with rewards"
            raise ValueError(f"interval = 'bernstein' is not for estimator = {estimator!r}: {remedy}")
        if estimator != "replay" and floor is None and math.isinf(clip):
            raise ValueError("interval = 'bernstein' needs clip, or floor, which no propensity can be below")
        _ = settings.range


def _predict_rewards(settings: Settings, model: Any, ridge: Scalar, folds: int, rewards: Matrix | None) -> Floats:
    """The expected reward of every arm on every row [n, K], as given or by models of other rows."""
    log, num_arms = settings.log, len(settings.log.arm_names)
    if rewards is not None:
        # without bias whatever is expected: only the Bernstein bound needs its range
        low, high = (-math.inf, math.inf) if settings.normal else settings.range
        shape = (len(log.arm), num_arms)
        wanted = "the expected reward of each arm on each row"
        return array("rewards", _by_arm(rewards, log.arm_names), 2, low, high, shape=shape, remedy=wanted)
    reward_models.check_model(model, log.reward, float(ridge))
    if folds > len(log.arm):
        raise ValueError(f"folds = {folds} are more than the log's {len(log.arm)} rows: give fewer")
    rows, _ = make_rows(log.features, log.feature_names, **TRANSFORM)
    known = settings.reward_range or (float(log.reward.min()), float(log.reward.max()))
    return reward_models.cross_fit(
        model, rows, log.arm, log.reward, num_arms, ridge=float(ridge), folds=folds, reward_range=known
    )


def _check_weights(probabilities: Floats, weights: Floats, estimator: str, log: Log, label: str) -> None:
    """ValueError where the log cannot tell of a policy."""
    if estimator == "replay":
        if log.propensity is not None and np.ptp(log.propensity) > ROUNDING:
            raise ValueError(f"{label}: 'replay' needs equal propensities, and those of the log differ: take 'snips'")
        if (probabilities.max(axis=1) < 1 - ROUNDING).any():
            raise ValueError(f"{label}: 'replay' needs one arm a row, and the policy is randomised: take 'snips'")
    if estimator != "dm" and not weights.any():
        raise ValueError(f"{label}: all weights are 0: the log never shows what the policy plays, and tells nothing")


def _warn(found: Offline, error: float, settings: Settings, label: str) -> None:
    """Warn of an estimate that is not to be trusted. error: the standard error of the mean weight."""
    said = []
    if found.effective_size < LEAST_SIZE:
        said.append(f"the effective size is {found.effective_size:.3g} rows: the interval is not to be trusted")
    if abs(found.mean_weight - 1) > MAX_DEVIATION * error + ROUNDING:
        what = f"the mean weight is {found.mean_weight:.3g} +- {error:.2g}, not 1"
        said.append(f"{what}: propensities are wrong, or the log never shows some of what the policy plays")
    if settings.estimator == "ips" and found.bias_bound > found.value - found.interval[0]:
        said.append(f"clip = {settings.clip:g} may bias it by {found.bias_bound:.3g}, more than half of its interval")
    for text in said:
        warnings.warn(f"{label}: {text}", stacklevel=5)

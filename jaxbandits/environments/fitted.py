"""A log of choices as a bandit: its rows, paid by a model of its rewards.

Axes: [n] rows of the log, [d] features of a row that is shown, [K] arms.
"""

import warnings
from typing import Annotated, Any, Literal, NamedTuple, Unpack

import numpy as np

from jaxbandits.declared import STATIC, Kind, Positive
from jaxbandits.environments.data import Against, RowOptions, Shuffle, environment_of_rows, facts_of_rows
from jaxbandits.environments.heavy_tailed import reward_range
from jaxbandits.environments.logs import Log, check_log
from jaxbandits.environments.reward_models import check_model, cross_fit, fit_models, is_binary
from jaxbandits.environments.rows import Floats, make_rows
from jaxbandits.environments.user_tables import few
from jaxbandits.protocol import Environment
from jaxbandits.typing import Numeric
from jaxbandits.validation import factory

FOLDS = 5
NEVER = 1e-12  # the least probability in a log loss


class FittedParams(NamedTuple):
    """Rows with the mean rewards of all arms."""

    features: Numeric  # [n, d]
    means: Numeric  # [n, K]
    noise_scale: Numeric | tuple[()]  # standard deviation of Gaussian rewards


class Fit(NamedTuple):
    """What is known of a model of rewards; as text a line."""

    model: str
    rows: tuple[int, ...]  # [K]: of each arm
    score: str  # "R^2" | "log loss", of rows in folds that the model did not see
    value: float
    constant: float  # the same score of the mean reward of the other folds
    theta: Floats | None  # [K, d]: coefficients; None for an object of the user's

    def __str__(self) -> str:
        rows = few([f"{count:,}" for count in self.rows])
        judged = f"{self.score} {self.value:.3g}, of a constant {self.constant:.3g} ({FOLDS} folds)"
        return f"{self.model}, rows an arm {rows}; {judged}"


@factory
def fitted(
    *,
    log: Log,
    model: Annotated[Literal["ridge", "logistic"] | object, Kind('{"ridge", "logistic"} or object')] = None,
    ridge: Positive = 1.0,
    noise: Annotated[Literal["bernoulli", "gaussian"], STATIC] | None = None,
    shuffle: Shuffle = True,
    regret_against: Against = "row",
    **options: Unpack[RowOptions],
) -> Environment:
    """A simulated world from a log of choices: its rows are shown, and arms pay what a model of its rewards expects.

    Its regret is exact, and only as good as the model. What a policy would earn in the world that the log is from is
    another question, which the log's propensities answer.

    Args:
        log (Log): What `jb.read_logged` returns. Propensities are not used.
        model: A model of rewards, one an arm, fitted to its rows as they are shown. "ridge": least squares with ridge
            times the square of theta's norm. "logistic": the logarithmic loss with half of that, for rewards in [0, 1].
            An object with `fit(X, y)` and `predict` or `predict_proba` (the second class's probability), such as
            scikit-learn's, of which every arm gets a deep copy; give it a `random_state`, so that every process fits
            the same. What is expected is cut to the log's range of rewards, but for "logistic". The default: "logistic"
            where all rewards are 0 or 1, otherwise "ridge".
        ridge: Of "ridge" and "logistic"; it shrinks the bias, too.
        noise: The law of rewards. "bernoulli": 0 or 1. "gaussian": what is expected plus noise of the residuals'
            standard deviation. The default: "bernoulli" where all rewards of the log are 0 or 1.

    Returns:
        Environment: The context of a play is the row [dim], one vector for all arms. Facts: as of `contextual_table`,
            and `fit`, which the environment's repr shows: the rows of each arm, coefficients `theta` [K, dim], and the
            score of models of four folds on the fifth: R^2, or of probabilities the log loss, beside a constant's.

    Raises:
        ValueError: For an argument outside its range, and a log whose columns do not fit together.

    Warns:
        UserWarning: An arm has no rows: it is expected to pay the log's mean reward. Principal components are left out.

    Note:
        Shrinkage is real: of few rows a ridge makes small means, of the best arm too. Rows come as those of
        `classification` do; how they are made, and the model, is public.

    >>> import pandas as pd
    >>> rows = {"age": [31, 52, 44, 27] * 5, "shown": ["letter", "call"] * 10, "sale": [0, 1, 0, 0] * 5}
    >>> log = jb.read_logged(pd.DataFrame(rows), arm="shown", reward="sale")
    >>> print(jb.environments.fitted(log=log).facts["fit"])
    logistic, rows an arm 10, 10; log loss 0.262, of a constant 0.562 (5 folds)
    """
    check_log(log)
    n, num_arms = len(log.arm), len(log.arm_names)
    reward, arm = np.asarray(log.reward, np.float64), np.asarray(log.arm)
    chosen: Any = ("logistic" if is_binary(reward) else "ridge") if model is None else model
    law = ("bernoulli" if is_binary(reward) else "gaussian") if noise is None else noise
    check_model(chosen, reward, float(ridge))
    ends = float(reward.min()), float(reward.max())
    if law == "bernoulli" and not 0 <= ends[0] <= ends[1] <= 1:
        raise ValueError(f"noise = 'bernoulli' needs rewards in [0, 1], those of the log are in {list(ends)}")
    counts = tuple(np.bincount(arm, minlength=num_arms).tolist())
    if 0 in counts:
        none = few([name for name, count in zip(log.arm_names, counts, strict=True) if count == 0])
        warnings.warn(f"fitted: no row of the log shows {none}: the mean reward of the log stands for it", stacklevel=3)
    shown, rows = make_rows(np.asarray(log.features, np.float64), log.feature_names, **options)
    given: Any = (chosen, shown, arm, reward, num_arms)
    model_of_all = fit_models(*given, ridge=float(ridge), reward_range=ends)
    means = model_of_all.predict(shown)
    own = np.arange(n), arm
    judged = cross_fit(*given, ridge=float(ridge), reward_range=ends, folds=FOLDS)[own]
    facts = facts_of_rows(rows, shown) | {"reward_range": (0.0, 1.0)}
    scale: float | tuple[()] = ()
    if law == "gaussian":
        scale = float(np.std(reward - means[own]))
        facts["reward_range"] = reward_range(law, float(means.min()), float(means.max()), {"noise_scale": scale})
    facts["fit"] = _judge_model(chosen, judged, reward, counts, model_of_all.theta)
    params = FittedParams(shown, means, scale)
    return environment_of_rows(law, params, log.arm_names, facts, shuffle=shuffle, against=regret_against)


def _judge_model(model: Any, judged: Floats, reward: Floats, rows: tuple[int, ...], theta: Floats | None) -> Fit:
    """How good a model is. judged: [n] what models of the other folds expect of the arm that was shown."""
    n, fold = len(reward), np.arange(len(reward)) % FOLDS
    constant = ((reward.sum() - np.bincount(fold, reward)) / (n - np.bincount(fold)))[fold]
    name = model if isinstance(model, str) else type(model).__name__
    if name == "logistic" or hasattr(model, "predict_proba"):
        p, q = (np.clip(x, NEVER, 1 - NEVER) for x in (judged, constant))
        loss, other = (-float((reward * np.log(x) + (1 - reward) * np.log1p(-x)).mean()) for x in (p, q))
        return Fit(name, rows, "log loss", loss, other, theta)
    error, whole = (float(((reward - x) ** 2).sum()) for x in (judged, constant))
    return Fit(name, rows, "R^2", 1 - error / whole if whole > 0 else 0.0, 0.0, theta)

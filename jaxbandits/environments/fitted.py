"""A log of choices as a bandit: its rows, paid by a model of its rewards.

Axes: [n] rows of the log, [d] features of a row that is shown, [K] arms.
"""

import warnings
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from jaxbandits.declared import HOST, STATIC, Kind, Positive
from jaxbandits.environments import heavy_tailed as laws
from jaxbandits.environments.data import (
    Against,
    Bias,
    Dim,
    FittedParams,
    Norm,
    Shuffle,
    Standardise,
    check_rows,
    facts_of_rows,
    rows_world,
)
from jaxbandits.environments.logs import Log, check_log
from jaxbandits.environments.reward_models import Estimator, check_model, cross_fit, fit_models, is_binary
from jaxbandits.environments.rows import Floats, make_rows
from jaxbandits.environments.user_tables import few
from jaxbandits.protocol import Environment
from jaxbandits.validation import factory

FOLDS = 5
SURE = 1e-12  # probabilities nearer to 0 or 1 have this distance in a log loss


class Fit(NamedTuple):
    """What is known of a model of rewards; as text a line."""

    model: str
    rows: tuple[int, ...]  # [K]: of each arm
    score: str  # "R^2" | "log loss", of rows whose fold the model did not see
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
    model: Annotated[
        Literal["ridge", "logistic"] | Estimator | None, HOST, Kind('{"ridge", "logistic"} or object')
    ] = None,
    ridge: Positive = 1.0,
    noise: Annotated[Literal["bernoulli", "gaussian"], STATIC] | None = None,
    dim: Dim | None = None,
    standardise: Standardise = True,
    bias: Bias = True,
    norm: Norm = "unit",
    shuffle: Shuffle = True,
    regret_against: Against = "row",
) -> Environment:
    """A simulated world from a log of choices: its rows are shown, and arms pay what a model of its rewards expects.

    The regret is that of this world, and only as good as the model. What a policy would have earned in the world that
    the log is from is estimated from the log itself.

    Args:
        log (Log): What `jb.read_logged` returns. Propensities are not used.
        model: A model of rewards, one an arm, fitted to its rows as they are shown. "ridge": least squares with ridge
            |theta|^2. "logistic": the logarithmic loss with ridge/2 |theta|^2, for rewards in [0, 1]. An object with
            `fit(X, y)` and `predict` or `predict_proba` (the second class's probability), such as scikit-learn's: a
            deep copy of it is fitted for each arm; give it a `random_state`, so that every process fits the same. What
            a model expects is cut to the log's range of rewards. The default: "logistic" where all rewards are 0 or 1,
            otherwise "ridge".
        ridge: Of "ridge" and "logistic"; the bias is shrunk, too.
        noise: The law of rewards. "bernoulli": 0 or 1, for expected rewards in [0, 1]. "gaussian": the expected reward
            plus noise of the standard deviation of the model's residuals. The default: "bernoulli" where all rewards of
            the log are 0 or 1, otherwise "gaussian".

    Returns:
        Environment: The context of a play is the row [dim], one vector for all arms: learners have one model an arm.
            Facts: those of `contextual_table`, and `fit`, which the environment's repr shows: the rows of each arm,
            coefficients `theta` [K, dim], and the score of rows in five folds, each by models of the other four, beside
            that of a constant: R^2, or the log loss of a model of probabilities. Regret is exact, in expected rewards.

    Raises:
        ValueError: For an argument outside its range, and a log whose columns do not fit together.

    Warns:
        UserWarning: An arm has no rows: it is expected to pay the log's mean reward. Components are left out, as in
            `classification`.

    Note:
        Shrinkage is real: with few rows a ridge pulls all means towards 0, and the best arm's the most. Rows come as
        those of `classification` do, and their means, standard deviations and components are public, as the model is.

    >>> import pandas as pd
    >>> rows = {"age": [31, 52, 44, 27] * 5, "shown": ["letter", "call"] * 10, "sale": [0, 1, 0, 0] * 5}
    >>> log = jb.read_logged(pd.DataFrame(rows), arm="shown", reward="sale")
    >>> world = jb.environments.fitted(log=log)
    >>> print(world.facts["fit"])
    logistic, rows an arm 10, 10; log loss 0.378, of a constant 0.562 (5 folds)
    """
    check_log(log)
    n, num_arms = len(log.arm), len(log.arm_names)
    reward, arm = np.asarray(log.reward, np.float64), np.asarray(log.arm)
    chosen: Any = ("logistic" if is_binary(reward) else "ridge") if model is None else model
    law = ("bernoulli" if is_binary(reward) else "gaussian") if noise is None else noise
    check_model(chosen, reward, ridge)
    check_rows(n)
    lowest, highest = reward_range = float(reward.min()), float(reward.max())
    if law == "bernoulli" and not 0 <= lowest <= highest <= 1:
        raise ValueError(f"noise = 'bernoulli' needs rewards in [0, 1], and the log's are in [{lowest:g}, {highest:g}]")
    counts = np.bincount(arm, minlength=num_arms)
    if (counts == 0).any():
        none = few([name for name, count in zip(log.arm_names, counts, strict=True) if count == 0])
        warnings.warn(f"fitted: no row of the log shows {none}: the mean reward of the log stands for it", stacklevel=3)
    shown, rows = make_rows(
        np.asarray(log.features, np.float64), log.feature_names, dim=dim, standardise=standardise, bias=bias, norm=norm
    )
    how: dict[str, Any] = {"ridge": ridge, "reward_range": reward_range}
    fit = fit_models(chosen, shown, arm, reward, num_arms, **how)
    means = fit.predict(shown)
    facts = facts_of_rows(rows, shown, num_arms, regret_against) | {"reward_range": (0.0, 1.0)}
    if log.arm_names != tuple(map(str, range(num_arms))):
        facts["arm_names"] = log.arm_names
    scale: float | tuple[()] = ()
    if law == "gaussian":
        scale = float(np.std(reward - means[np.arange(n), arm]))
        facts["reward_range"] = laws.reward_range(law, float(means.min()), float(means.max()), {"noise_scale": scale})
        facts["noise_moment"] = partial(laws.noise_moment, law, {"noise_scale": scale})
    judged = cross_fit(chosen, shown, arm, reward, num_arms, folds=FOLDS, **how)[np.arange(n), arm]
    facts["fit"] = _judge_model(chosen, judged, reward, tuple(counts.tolist()), fit.theta)
    world = rows_world(n, num_arms, law, shuffle=shuffle, against=regret_against)
    return Environment(world, FittedParams(shown, means, scale), facts, None, {})


def _judge_model(model: Any, judged: Floats, reward: Floats, rows: tuple[int, ...], theta: Floats | None) -> Fit:
    """How good a model is. judged: [n] what models of the other folds expect of the arm that was shown."""
    n, fold = len(reward), np.arange(len(reward)) % FOLDS
    here = np.bincount(fold, minlength=FOLDS)
    constant = ((reward.sum() - np.bincount(fold, reward, FOLDS)) / (n - here))[fold]
    name = model if isinstance(model, str) else type(model).__name__
    if name == "logistic" or hasattr(model, "predict_proba"):
        chances = [np.clip(p, SURE, 1 - SURE) for p in (judged, constant)]
        losses = (-float((reward * np.log(p) + (1 - reward) * np.log1p(-p)).mean()) for p in chances)
        return Fit(name, rows, "log loss", *losses, theta)
    errors = [float(((reward - expected) ** 2).sum()) for expected in (judged, constant)]
    return Fit(name, rows, "R^2", 1 - errors[0] / errors[1] if errors[1] > 0 else 0.0, 0.0, theta)

"""Models of logged rewards, one an arm, fitted to rows on the host: for simulated worlds and for estimates of policies.

Axes: [n] rows of a log, [m] other rows, [d] features of a row, [K] arms.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from jaxbandits.formatting import nearest, show
from jaxbandits.validation import number

Floats = np.ndarray[Any, np.dtype[np.float64]]
MODELS = ("ridge", "logistic")
MAX_GRADIENT = 1e-10  # where Newton's steps end
MAX_STEPS = 100
ROUNDING = 1e-12  # of a loss, as a share: smaller rises are none


class Estimator(Protocol):
    """A model of the user's, such as scikit-learn's, with `predict` or `predict_proba` besides."""

    def fit(self, X: Any, y: Any, /) -> object: ...


class RewardModel(NamedTuple):
    """What is expected of every arm."""

    predict: Callable[[Floats], Floats]  # rows [m, d] -> expected rewards [m, K]
    theta: Floats | None  # [K, d]: coefficients, NaN for an arm without rows; None for an object of the user's


def is_binary(reward: Floats) -> bool:
    """Whether all rewards are 0 or 1."""
    return bool(np.isin(reward, (0.0, 1.0)).all())


def check_model(model: Any, reward: Floats, ridge: float) -> None:
    """ValueError for what is no model of these rewards."""
    number("ridge", ridge, 0.0, open_low=True)
    if isinstance(model, str):
        if model not in MODELS:
            raise ValueError(f"model = {model!r} must be one of {MODELS}, or an object{nearest(model, MODELS)}")
        if model == "logistic" and not ((reward >= 0) & (reward <= 1)).all():
            raise ValueError("model = 'logistic' needs rewards in [0, 1]: take model='ridge'")
    elif not hasattr(model, "fit") or not (hasattr(model, "predict") or hasattr(model, "predict_proba")):
        wanted = "'ridge', 'logistic', or an object with fit(X, y) and predict or predict_proba"
        raise ValueError(f"model = {show(model)} must be {wanted}, such as scikit-learn's")
    elif hasattr(model, "predict_proba") and not is_binary(reward):
        raise ValueError(
            f"model = {show(model)} tells classes apart, and rewards are not 0 and 1: give one that predicts"
        )


def fit_ridge(rows: Floats, reward: Floats, ridge: float) -> Floats:
    """theta [d] = (Z' Z + ridge I)^-1 Z' r."""
    return np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T @ reward)


def fit_logistic(rows: Floats, reward: Floats, ridge: float) -> Floats:
    """The theta [d] of least sum of log(1 + e^(z' theta)) - r z' theta, plus ridge / 2 |theta|^2: by Newton's steps."""

    def loss(theta):
        score = rows @ theta
        return (np.logaddexp(0, score) - reward * score).sum() + ridge / 2 * theta @ theta

    theta = np.zeros(rows.shape[1])
    for _ in range(MAX_STEPS):
        mean = sigmoid(rows @ theta)
        gradient = rows.T @ (mean - reward) + ridge * theta
        if np.abs(gradient).max() <= MAX_GRADIENT:
            break
        weighted = rows * (mean * (1 - mean))[:, None]
        step = np.linalg.solve(rows.T @ weighted + ridge * np.eye(len(theta)), gradient)
        most = loss(theta) * (1 + ROUNDING)
        while loss(theta - step) > most:
            step = step / 2
        theta = theta - step
    return theta


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x), for any x."""
    return np.exp(-np.logaddexp(0, -x))


def fit_models(
    model: Any, rows: Floats, arm: np.ndarray[Any, Any], reward: Floats, num_arms: int, *, ridge: float,
    reward_range: tuple[float, float],
) -> RewardModel:  # fmt: skip
    """Fit a model of every arm to its own rows; what it expects is cut to `reward_range`.

    model: "ridge", "logistic", or an object, of which each arm gets a deep copy: the second class's probability where
    it has `predict_proba`. An arm without rows is expected to pay the mean of all.
    """
    theta = np.full((num_arms, rows.shape[1]), np.nan)
    predictors = list[Callable[[Floats], Any]]()
    for k in range(num_arms):
        z, r = rows[arm == k], reward[arm == k]
        if len(r) == 0 or (hasattr(model, "predict_proba") and (r == r[0]).all()):  # there is nothing to tell apart
            predictors.append(_constant(float(r.mean() if len(r) else reward.mean())))
        elif isinstance(model, str):
            theta[k] = (fit_logistic if model == "logistic" else fit_ridge)(z, r, ridge)
            predictors.append(_linear(theta[k], model))
        else:
            own = copy.deepcopy(model)
            own.fit(z, r)
            predictors.append(_of_object(own))

    def predict(others):
        found = [np.asarray(one(others), np.float64).reshape(len(others)) for one in predictors]
        return np.clip(np.stack(found, 1), *reward_range)

    return RewardModel(predict, theta if isinstance(model, str) else None)


def _constant(value: float) -> Callable[[Floats], Floats]:
    return lambda rows: np.full(len(rows), value)


def _linear(theta: Floats, model: str) -> Callable[[Floats], Floats]:
    return lambda rows: sigmoid(rows @ theta) if model == "logistic" else rows @ theta


def _of_object(model: Any) -> Callable[[Floats], Any]:
    if hasattr(model, "predict_proba"):
        return lambda rows: np.asarray(model.predict_proba(rows))[:, 1]
    return lambda rows: model.predict(rows)


def cross_fit(
    model: Any, rows: Floats, arm: np.ndarray[Any, Any], reward: Floats, num_arms: int, *, ridge: float, folds: int,
    reward_range: tuple[float, float],
) -> Floats:  # fmt: skip
    """What rows are expected to pay [n, K], each by models of the other folds; row i is in fold i mod `folds`."""
    fold, found = np.arange(len(rows)) % folds, np.empty((len(rows), num_arms))
    for one in np.unique(fold):
        here, rest = fold == one, fold != one
        fitted = fit_models(
            model, rows[rest], arm[rest], reward[rest], num_arms, ridge=ridge, reward_range=reward_range
        )
        found[here] = fitted.predict(rows[here])
    return found

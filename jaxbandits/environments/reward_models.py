"""Models of logged rewards, one an arm, fitted to rows on the host: for simulated worlds and for estimates of policies.

Axes: [n] rows of a log, [m] other rows, [d] features of a row, [K] arms.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.environments.rows import Floats
from jaxbandits.formatting import nearest, show
from jaxbandits.validation import number

MAX_GRADIENT = 1e-10  # where Newton's steps end
MAX_STEPS = 100
ROUNDING = 1e-12  # of a loss, as a share: smaller rises are none


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
    predicts = hasattr(model, "fit") and (hasattr(model, "predict") or hasattr(model, "predict_proba"))
    predicts = predicts and not isinstance(model, type)  # a class has the methods, too
    if model not in FITS if isinstance(model, str) else not predicts:
        hint = nearest(model, FITS) if isinstance(model, str) else ""
        wanted = "'ridge', 'logistic', or an object with fit(X, y) and predict or predict_proba"
        raise ValueError(f"model = {show(model)} must be {wanted}, such as scikit-learn's{hint}")
    if model == "logistic" and not ((reward >= 0) & (reward <= 1)).all():
        raise ValueError("model = 'logistic' needs rewards in [0, 1]: take model='ridge'")
    if hasattr(model, "predict_proba") and not is_binary(reward):
        raise ValueError(f"model = {show(model)} tells classes apart, and rewards are not 0 and 1: take a regressor")


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
        step, most = np.linalg.solve(rows.T @ weighted + ridge * np.eye(len(theta)), gradient), loss(theta)
        while loss(theta - step) > most * (1 + ROUNDING):
            step = step / 2
        theta = theta - step
    return theta


FITS = {"ridge": fit_ridge, "logistic": fit_logistic}


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x), for any x."""
    return np.exp(-np.logaddexp(0, -x))


def fit_models(
    model: Any, rows: Floats, arm: np.ndarray, reward: Floats, num_arms: int, *, ridge: float, reward_range: tuple
) -> RewardModel:
    """Fit a model of every arm to its own rows; what it expects is cut to `reward_range`, unless it is "logistic".

    model: "ridge", "logistic", or an object, of which each arm gets a deep copy. An arm without rows is expected to pay
    the mean of all.
    """
    theta, learnt = np.full((num_arms, rows.shape[1]), np.nan), list[Any]()
    for k in range(num_arms):
        z, r = rows[arm == k], reward[arm == k]
        if len(r) == 0 or (hasattr(model, "predict_proba") and (r == r[0]).all()):  # there is nothing to tell apart
            learnt.append(float(r[0] if len(r) else reward.mean()))
        elif isinstance(model, str):
            theta[k] = FITS[model](z, r, ridge)
            learnt.append(theta[k])
        else:
            learnt.append(copy.deepcopy(model))
            learnt[k].fit(z, r)

    ends = (0.0, 1.0) if isinstance(model, str) and model == "logistic" else reward_range

    def predict(others):
        return np.clip(np.stack([_expect(one, model, others) for one in learnt], 1), *ends)

    return RewardModel(predict, theta if isinstance(model, str) else None)


def _expect(learnt: Any, model: Any, rows: Floats) -> Floats:
    """What one arm is expected to pay [m]: a number, by its coefficients, or as its own copy of an object says."""
    if isinstance(learnt, float):
        return np.full(len(rows), learnt)
    if isinstance(model, str):
        return sigmoid(rows @ learnt) if model == "logistic" else rows @ learnt
    found = learnt.predict_proba(rows)[:, 1] if hasattr(learnt, "predict_proba") else learnt.predict(rows)
    return np.asarray(found, np.float64).reshape(len(rows))


def cross_fit(
    model: Any, rows: Floats, arm: np.ndarray, reward: Floats, num_arms: int, *, folds: int, **how: Any
) -> Floats:
    """What rows are expected to pay [n, K], each by `fit_models` of the other folds; row i is in fold i mod `folds`."""
    fold, found = np.arange(len(rows)) % folds, np.empty((len(rows), num_arms))
    for one in np.unique(fold):
        here, rest = fold == one, fold != one
        found[here] = fit_models(model, rows[rest], arm[rest], reward[rest], num_arms, **how).predict(rows[here])
    return found

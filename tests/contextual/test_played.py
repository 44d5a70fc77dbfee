"""The least eigenvalue of what is played, against the history of a run."""

from functools import partial

import numpy as np
import pytest
from plays import of_cases

import jaxbandits as jb
from jaxbandits.papers import watched

LEARNER = partial(jb.algorithms.online_ucb, learner="ogd", epsilon=4.0)
WORLD = jb.environments.contextual_linear(num_arms=6, dim=3, contexts="fixed", spread=0.7)


def test_the_eigenvalues_are_those_of_the_features_played():
    run, plain = (
        of_cases([(algorithm(num_arms=6, dim=3, horizon=200), WORLD)], [3], dtype="float32")[0][0]
        for algorithm in (partial(watched.played, base=LEARNER), LEARNER)
    )
    np.testing.assert_array_equal(run.history.action, plain.history.action)
    assert run.regret == plain.regret
    np.testing.assert_array_equal(run.history.message[0].feature, plain.history.message.feature)
    x, t = run.history.message[1].astype(float), np.arange(1, 201)
    assert len(np.unique(x, axis=0)) > 1
    for k in range(2, 7):
        part = x[(t >= 2**k) & (t < 2 ** (k + 1))]
        least = np.linalg.eigvalsh(part.T @ part / len(part))[0]
        assert float(run.diagnostics[f"lambda_min_{k}"]) == pytest.approx(least, abs=2e-6)
    assert float(run.diagnostics["lambda_min_19"]) == 0.0
    # features are the true ones
    for arm in np.unique(run.history.action):
        assert len(np.unique(x[run.history.action == arm], axis=0)) == 1  # arms are fixed
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-5
    assert np.abs(run.history.message[0].feature - x).max() > 0.1  # what is sent is noisy


def test_a_run_that_is_too_long_says_so():
    with pytest.raises(ValueError, match=f"horizon = {2**watched.EPOCHS}"):
        watched.played(num_arms=6, dim=3, horizon=2**watched.EPOCHS, base=LEARNER)

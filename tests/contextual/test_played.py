"""The least eigenvalue of what is played, against the history of a run."""

from functools import partial

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.papers.ldp_contextual.played import EPOCHS, watched

LEARNER = partial(jb.algorithms.online_ucb, learner="ogd", epsilon=4.0)
WORLD = jb.environments.contextual_linear(num_arms=6, dim=3, contexts="fixed", spread=0.7)


def test_the_eigenvalues_are_those_of_the_features_played():
    run = jb.simulate(partial(watched, base=LEARNER, horizon=200), WORLD, seed=3, history=True)
    plain = jb.simulate(partial(LEARNER, horizon=200), WORLD, seed=3, history=True, checkpoints=run.t)
    np.testing.assert_array_equal(run.history.action, plain.history.action)
    np.testing.assert_array_equal(run.regret, plain.regret)
    np.testing.assert_array_equal(run.history.message[0].feature, plain.history.message.feature)
    x, t = np.asarray(run.history.message[1], float), np.asarray(run.history.t)
    assert len(np.unique(x, axis=0)) > 1
    for k in range(2, 7):
        part = x[(t >= 2**k) & (t < 2 ** (k + 1))]
        least = np.linalg.eigvalsh(part.T @ part / len(part))[0]
        assert float(run.diagnostics[f"lambda_min_{k}"]) == pytest.approx(least, abs=2e-6)
    assert float(run.diagnostics["lambda_min_19"]) == 0.0


def test_features_are_the_true_ones():
    run = jb.simulate(partial(watched, base=LEARNER, horizon=40), WORLD, seed=5, history=True)
    x, action = np.asarray(run.history.message[1]), np.asarray(run.history.action)
    for arm in np.unique(action):
        assert len(np.unique(x[action == arm], axis=0)) == 1  # arms are fixed
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-5
    assert np.abs(np.asarray(run.history.message[0].feature) - x).max() > 0.1  # what is sent is noisy


def test_a_run_that_is_too_long_says_so():
    with pytest.raises(ValueError, match=f"horizon = {2**EPOCHS}"):
        watched(num_arms=6, dim=3, horizon=2**EPOCHS, base=LEARNER)

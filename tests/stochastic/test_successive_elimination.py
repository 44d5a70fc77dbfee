"""Successive elimination with one arm left; tests/contextual/test_linear_reference.py compares its paths."""

import numpy as np
from plays import watched

from jaxbandits.algorithms.stochastic.successive_elimination import successive_elimination
from jaxbandits.environments.arms import bernoulli_arms

HORIZON = 3000


def test_successive_elimination_goes_on_with_one_arm():
    algorithm = successive_elimination(num_arms=4, horizon=HORIZON, noise_scale=0.0)
    run = watched(algorithm, bernoulli_arms(means=[0.0, 1.0, 0.0, 0.0]), 0, dtype="float32")
    assert np.bincount(run.history.action).tolist() == [1, HORIZON - 3, 1, 1] and run.diagnostics["active_arms"] == 1

"""Successive elimination against the literal loop on the same draws."""

import numpy as np
from against_reference import draw
from watched import watched

from jaxbandits.algorithms.stochastic.successive_elimination import successive_elimination
from jaxbandits.environments.arms import bernoulli_arms


def literal_elimination(rewards, num_arms, horizon, noise_scale):
    """rewards(t, arm) -> the arms played, float64."""
    active, sums, pulls, arms = list(range(num_arms)), np.zeros(num_arms), 0, []
    while len(arms) < horizon:
        for a in active:
            if len(arms) == horizon:
                return arms
            arms.append(a)
            sums[a] += rewards(len(arms), a)
        pulls += 1
        t = len(arms)
        width = noise_scale * np.sqrt(2 * np.log(4 * num_arms * t**2 * horizon) / pulls)
        best = max(sums[a] for a in active) / pulls
        active = [a for a in active if best - sums[a] / pulls <= 2 * width]
    return arms


K, HORIZON = 4, 3000


def played(means, seed, noise_scale):
    algorithm = successive_elimination(num_arms=K, horizon=HORIZON, noise_scale=noise_scale)
    return watched(algorithm, bernoulli_arms(means=means), seed, dtype="float32")


def test_successive_elimination_is_the_literal_loop():
    means = np.array([0.1, 0.9, 0.2, 0.85])
    for seed in range(4):
        run = played(means, seed, 0.25)
        uniform = draw(seed, "environment/reward", "uniform", np.arange(1, HORIZON + 1))
        want = literal_elimination(lambda t, a, u=uniform: float(u[t - 1] < means[a]), K, HORIZON, 0.25)
        np.testing.assert_array_equal(run.history.action, want)
        assert want[:9] == [0, 1, 2, 3, 0, 1, 2, 3, 0] and run.diagnostics["active_arms"] in (1, 2)
        doubled = literal_elimination(lambda t, a, u=uniform: float(u[t - 1] < means[a]), K, HORIZON, 0.5)
        assert (run.history.action != doubled).any()  # the comparison would see a wrong radius


def test_successive_elimination_goes_on_with_one_arm():
    run = played([0.0, 1.0, 0.0, 0.0], 0, 0.0)
    assert np.bincount(run.history.action).tolist() == [1, HORIZON - 3, 1, 1] and run.diagnostics["active_arms"] == 1

"""Successive elimination against the literal loop on the same draws."""

import numpy as np

from jaxbandits import simulate
from jaxbandits.algorithms.stochastic.successive_elimination import successive_elimination
from jaxbandits.environments.arms import bernoulli_arms
from jaxbandits.random import Draws


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


def test_successive_elimination_is_the_literal_loop():
    means, horizon = np.array([0.1, 0.9, 0.2, 0.85]), 3000
    algorithm = successive_elimination(num_arms=4, horizon=horizon, noise_scale=0.25)
    for seed in range(4):
        run = simulate(algorithm, bernoulli_arms(means=means), seed=seed, history=True)
        uniform = np.asarray(Draws(np.uint32(seed), "environment/reward").uniform(np.arange(1, horizon + 1)))
        want = literal_elimination(lambda t, a, u=uniform: float(u[t - 1] < means[a]), 4, horizon, 0.25)
        np.testing.assert_array_equal(run.history.action, want)
        assert want[:9] == [0, 1, 2, 3, 0, 1, 2, 3, 0] and run.diagnostics["active_arms"] in (1, 2)
        doubled = literal_elimination(lambda t, a, u=uniform: float(u[t - 1] < means[a]), 4, horizon, 0.5)
        assert (run.history.action != doubled).any()  # the comparison would see a wrong radius


def test_successive_elimination_goes_on_with_one_arm():
    algorithm = successive_elimination(num_arms=3, horizon=500, noise_scale=0.0)
    run = simulate(algorithm, bernoulli_arms(means=[0.0, 1.0, 0.0]))
    assert run.pulls.tolist() == [1, 498, 1] and run.diagnostics["active_arms"] == 1

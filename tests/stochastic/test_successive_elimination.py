"""Successive elimination with one arm left; tests/contextual/test_linear_reference.py compares its paths."""

from jaxbandits import simulate
from jaxbandits.algorithms.stochastic.successive_elimination import successive_elimination
from jaxbandits.environments.arms import bernoulli_arms


def test_successive_elimination_goes_on_with_one_arm():
    algorithm = successive_elimination(num_arms=3, horizon=500, noise_scale=0.0)
    run = simulate(algorithm, bernoulli_arms(means=[0.0, 1.0, 0.0]))
    assert run.pulls.tolist() == [1, 498, 1] and run.diagnostics["active_arms"] == 1

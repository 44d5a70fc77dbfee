"""AdaC-OFUL: paths, releases, numbers, limits and refusals."""

import functools
import math

import numpy as np
import pytest
from against_reference import exact_draw, exact_world, on_tape
from planting import errors, planted
from plays import of_cases
from reference import private_linear as literal
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms import adac_oful
from jaxbandits.algorithms.contextual.adac_oful import largest_eigenvalue, width_of

T, D = 300, 3
users = functools.partial(jb.environments.contextual_linear, num_arms=6, dim=D, features="unit")
CASES = {
    "defaults": {"rho": 0.5},
    "rare": {"rho": 5.0, "growth": 3.0, "ridge": 0.2, "theta_bound": 0.5, "radius_scale": 0.1, "failure": 0.2},
    "no noise": {"rho": math.inf, "growth": 0.3, "noise_scale": 0.1, "radius_scale": 0.5},
}
SEEDS = range(3)


def made(case, **more):
    given = {{"failure": "failure_prob"}.get(name, name): value for name, value in CASES[case].items()}
    return adac_oful(**{"num_arms": 6, "dim": D, "horizon": T} | given | more)


def slow(case, seed, reference=literal):
    contexts, rewards, _ = exact_world(users, seed, T)
    normal = exact_draw(seed, "alg/update/noise", "normal", np.arange(T + 1), (D,))
    return reference.adac_oful(contexts, rewards, lambda t: normal[t], **CASES[case])


@functools.cache
def lanes():
    """Of all cases, and of the last with hardly any noise in place of none."""
    algorithms = [*map(made, CASES), made("no noise", rho=1e20)]
    found = of_cases([(algorithm, users()) for algorithm in algorithms], SEEDS)
    return dict(zip([*CASES, "hardly any"], found, strict=True))


def fast(case, seed):
    run = lanes()[case][seed]
    return run, run.history.released


@pytest.mark.parametrize("case", CASES)
def test_paths_and_releases_are_the_literal_ones(case):
    for seed in SEEDS:
        run, sums = fast(case, seed)
        actions, released = slow(case, seed)
        np.testing.assert_array_equal(run.history.action, actions)
        plays = np.flatnonzero(~np.isnan(sums[:, 0])) + 1
        np.testing.assert_array_equal(plays, [t for t, _ in released])
        np.testing.assert_allclose(sums[plays - 1], [told for _, told in released], rtol=1e-7)
        assert int(run.diagnostics["releases"]) == len(released) > 5


@pytest.mark.parametrize("error", errors([
    ("> math.log(1 + growth)", "> growth"), ("m**2 / (3", "m / (3"), ("rho * smallest", "rho"),
    ("/ math.sqrt(2 * rho)", "/ math.sqrt(rho)"), ("pending, m, v0 = np.zeros(dim), m + 1, v", "m, v0 = m + 1, v"),
], literal))  # fmt: skip
def test_planted_errors_fork_the_path(error):
    wrong = planted(*error)

    def differs(case, seed):
        run, sums = fast(case, seed)
        actions, released = slow(case, seed, wrong)
        told = sums[~np.isnan(sums[:, 0])]
        want = np.array([x for _, x in released])
        return (run.history.action != actions).any() or told.shape != want.shape or not np.allclose(told, want)

    assert any(differs(case, seed) for case in ("defaults", "rare") for seed in SEEDS)


def test_the_width_is_the_specified_one():
    params = adac_oful(num_arms=2, dim=4, horizon=100, rho=0.1, failure_prob=1e-4).params
    found = uncompiled(lambda *given: width_of(*given, 4))(params, np.float32(5), np.float32(10), np.float32(1))
    assert float(found) == pytest.approx(56.370506465, rel=1e-6)
    given = {"dim": 4, "rho": 0.1, "ridge": 1.0, "noise_scale": 0.5, "theta_bound": 1.0, "failure": 1e-4}
    assert literal.confidence_width(5.0, 10, 1.0, **given) == pytest.approx(56.370506465, rel=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 5, 12])
def test_the_largest_eigenvalue(dim):
    random = np.random.default_rng(dim)
    root = random.normal(size=(dim, dim))
    flat = np.eye(dim) * 3.0 if dim > 1 else np.full((1, 1), 3.0)
    for matrix in (root @ root.T, flat, np.diag(np.linspace(1, 1.0001, dim))):
        found = float(uncompiled(largest_eigenvalue)(np.array(True), np.float32(matrix)))
        assert found == pytest.approx(np.linalg.eigvalsh(matrix)[-1], rel=1e-4)


def test_what_is_spent_and_no_noise_is_the_limit_of_little():
    algorithm = made("defaults")
    events = algorithm.guarantee.events(algorithm.params)
    assert jb.mechanisms.zcdp(events) == pytest.approx(0.5) and jb.mechanisms.gdp(events) == pytest.approx(1.0)
    assert algorithm.guarantee.spend(made("no noise").params)[0] == math.inf
    assert algorithm.guarantee.spend(algorithm.params._replace(mechanism_scale=0.0))[0] == math.inf
    for none, little in zip(lanes()["no noise"], lanes()["hardly any"], strict=True):
        np.testing.assert_array_equal(none.history.action, little.history.action)


def test_features_and_rewards_are_cut():
    context = np.full((T, 6, D), 2.0)
    rewards = np.full((T, 6), 7.0)
    rewards[3] = np.nan
    _, (x, y), states = on_tape(made("no noise"), context, rewards)
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), 1, rtol=1e-6)
    assert y[3] == 0 and set(np.unique(y)) == {0.0, 1.0} and np.isfinite(states.released.theta).all()

"""CRIMED: its divergence, literal paths, regret, invariants, limits and refusals."""

import math
from functools import cache, partial

import numpy as np
import pytest
from planting import errors, planted
from plays import Lane, played
from reference import crimed as reference

import jaxbandits as jb
from jaxbandits import theory
from jaxbandits.algorithms import crimed

MEANS = [1.0, 0.0, 0.0, -1.0]
K, T = 4, 400
ARMS = partial(jb.environments.gaussian_arms, means=MEANS)
FAR = partial(jb.adversaries.huber, corruption=0.1)
# what the factory is told, and the attack
CASES = {
    "clean": ({}, {"corruption": 0.0}),
    "infinite": ({"corruption_bound": 0.1}, {"value": "inf"}),
    "below": ({"corruption_bound": 0.1, "noise_scale": 1.5}, {"value": "-inf", "corruption": 0.3}),
    "undefined": ({"corruption_bound": 0.2, "noise_scale": 0.5}, {"value": "nan"}),
    "swapped": ({"corruption_bound": 0.0}, {"kind": "swapped"}),
}


@cache
def runs_of(case, seeds=3):
    arguments, attack = CASES[case]
    parts = crimed(num_arms=K, horizon=T, **arguments), ARMS(), FAR(**attack)
    return [run.history for run in played([Lane(seed, *parts) for seed in range(seeds)], checkpoints=1)]


def literal(case, rewards, wrong=reference):
    arguments, _ = CASES[case]
    told = {"eps": arguments.get("corruption_bound", 0.05), "sigma": arguments.get("noise_scale", 1.0)}
    return wrong.crimed(rewards, num_arms=K, horizon=T, **told)


def paid(history):
    """What the run was paid; 9 where the literal loop leaves its path."""
    return lambda t, arm: float(history.reward[t - 1]) if t and history.action[t - 1] == arm else 9.0


@pytest.mark.parametrize("case", CASES)
def test_paths_are_the_literal_ones(case):
    for history in runs_of(case):
        np.testing.assert_array_equal(history.action, literal(case, paid(history)))
        assert np.isfinite(history.reward).all() == (case in ("clean", "swapped"))


@pytest.mark.parametrize("error", errors([
    ("(best - x) / sigma", "(best - x) / (2 * sigma)"), ("rewards(t, arm)", "rewards(t - 1, arm)"),
    ("(len(ordered) - 1) // 2", "len(ordered) // 2"), (" + math.log(len(x)) for", " for"),
    ("best = max(m)", "best = sum(m) / num_arms"), ("return 0.0", "return 0.001"),
], reference))  # fmt: skip
def test_planted_errors_fork_the_path(error):
    wrong = planted(*error)

    assert any((history.action != literal("infinite", paid(history), wrong)).any() for history in runs_of("infinite"))


@pytest.mark.dealt(8)
def test_regret_is_the_specified_one():
    found = jb.sweep(crimed, ARMS, horizon=3000, seeds=64, checkpoints=1, progress=False)
    regret = np.asarray(found.regret)[0, :, -1]
    assert abs(regret.mean() - 49.0) < 4 * math.hypot(regret.std() / 8, 1.0)


def test_values_of_the_divergence():
    assert theory.median_shift(0.05) == pytest.approx(0.06601181238, rel=1e-9)
    assert theory.median_shift(0.1) == pytest.approx(0.1397102989, rel=1e-9) and theory.median_shift(0) == 0
    assert theory.contaminated_divergence([1.0], 0.05) == pytest.approx([0.2557702825], rel=1e-9)
    wanted = [0.1403562587, 0.0001081948707, 0.0]
    assert theory.contaminated_divergence([1.0, 0.3, 0.2], 0.1) == pytest.approx(wanted, rel=1e-7)
    gaps = np.linspace(0, 40, 81)
    np.testing.assert_array_equal(theory.contaminated_divergence(gaps, 0.0), gaps * gaps / 2)
    for eps in (1e-6, 1e-3, 0.05, 0.3, 0.49):
        found = theory.contaminated_divergence(gaps, eps)
        assert found == pytest.approx([reference.d(g, eps) for g in gaps], rel=1e-7, abs=1e-9)
        assert (found <= gaps * gaps / 2 + 1e-12).all() and (np.diff(found) > -1e-9).all()
        assert (found[gaps < 2 * theory.median_shift(eps)] == 0).all()
        # two neighbourhoods meet at 2 b, and total contamination tells no more than ln((1 - eps) / eps) a reward
        assert found[-1] == pytest.approx((1 - 2 * eps) * math.log((1 - eps) / eps), rel=1e-6)


@pytest.mark.parametrize(("gap", "eps"), [(1.0, 0.05), (0.3, 0.1), (2.5, 0.2), (6.0, 0.01)])
def test_the_divergence_is_that_of_the_least_favourable_pair(gap, eps):
    """By quadrature; the pair lies in both neighbourhoods, and any other pair of them is further apart."""
    c, x = reference.c_of(gap, eps), np.linspace(-12, 12 + gap, 400_001)
    normal = lambda mean: np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi)
    low, high = (1 - eps) * normal(0), (1 - eps) * normal(gap)
    first, second = np.maximum(low, high / c), np.maximum(high, low / c)
    area = lambda y: float(np.sum(y) * (x[1] - x[0]))
    assert area(first) == pytest.approx(1, abs=1e-9) == area(second)
    divergence = lambda p, q: area(np.where(p > 0, p * np.log(p / q), 0))
    least = theory.contaminated_divergence([gap], eps)[0]
    assert divergence(first, second) == pytest.approx(least, abs=1e-9)
    others = [normal(mean) for mean in (-0.5, gap / 2, gap + 0.5)]
    for one in others:
        for other in others:
            assert divergence(low + eps * one, high + eps * other) >= least


def test_a_huge_reward_counts_as_an_infinite_one():
    algorithm, attacks = crimed(num_arms=K, horizon=T), [FAR(value=value) for value in (1e9, "inf", "nan", 1e30)]
    attacks.append(FAR(corruption=1.0, value="-inf"))
    runs = played([Lane(3, algorithm, ARMS(), attack) for attack in attacks], checkpoints=1, dtype="float32")
    *actions, all_infinite = (run.history.action for run in runs)
    assert all((other == actions[0]).all() for other in actions) and np.bincount(actions[0])[0] > T / 2
    # every reward infinite: medians are equal, and arms take turns
    assert all_infinite.tolist() == [*range(K)] * (T // K)


def test_close_arms_are_explored_for_ever():
    """Gaps below 2 b have index ln N, so both arms are played alike."""
    close = partial(jb.environments.gaussian_arms, means=[0.0, 0.1])
    found = jb.sweep(partial(crimed, corruption_bound=0.3), close, horizon=500, seeds=8, progress=False)
    assert (np.asarray(found.pulls).min(axis=-1) > 200).all()


def test_the_bound_and_the_scale_are_numbers():
    made = partial(crimed, num_arms=3, horizon=100)
    assert made().program is made(corruption_bound=0.3, noise_scale=2.0).program
    assert made().program is crimed(num_arms=3, horizon=128).program
    table = made(corruption_bound=0.1).params.divergence
    assert table.shape == (4001,) and table[[100, 30, 20]] == pytest.approx([0.1403562587, 0.0001081948707, 0])
    arguments = {"environment": ARMS, "horizon": 200, "seeds": 8, "checkpoints": 2, "progress": False}
    bounds = [0.0, 0.05, 0.2]
    together = jb.sweep(crimed, grid={"corruption_bound": bounds}, **arguments)
    for i, bound in enumerate(bounds):
        alone = jb.sweep(partial(crimed, corruption_bound=bound), **arguments)
        np.testing.assert_array_equal(np.asarray(together.regret)[0, i], np.asarray(alone.regret)[0])

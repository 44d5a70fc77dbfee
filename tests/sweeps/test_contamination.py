"""Huber contamination of rewards and reports in whole runs, by every kind; none at corruption 0; what comes of it."""

from functools import partial

import jax
import numpy as np
import pytest
from dealt import dealt
from numpy_draws import NumpyDraws

import jaxbandits as jb

KINDS = ["fixed", "swapped", "gaussian", "cauchy", "sign_flip", "random_sign", "target"]
MARKS = {"reward_adversary": 77.0, "message_adversary": 88.0}  # values by which what was hit is known
MEANS = [0.2, 0.5, 0.8]
ARMS = jb.environments.gaussian_arms(means=MEANS, scale=0.3)
ALGORITHMS = {
    "ucb1": jb.algorithms.ucb1,
    "successive_elimination": partial(jb.algorithms.successive_elimination, noise_scale=0.3),
    "robust_ucb": partial(jb.algorithms.robust_ucb, moment_bound=0.8),
    "huber_ucb": partial(jb.algorithms.huber_ucb, noise_scale=0.3, min_pulls_scale=1.0),
    "cr_ucb": partial(jb.algorithms.cr_ucb, noise_scale=0.3),
}


def once(algorithm, reward=None, message=None):
    """One run under both adversaries, in one program: arguments of `huber`, the same for reports where none are given.

    {}: without adversaries.
    """
    given = {"reward_adversary": reward, "message_adversary": reward if message is None else message}
    attack = {slot: partial(jb.adversaries.huber, **arguments) for slot, arguments in given.items() if arguments}
    return jb.simulate(partial(algorithm, horizon=120), ARMS, seed=4, history=True, checkpoints=4, **attack)


def seen(run, slot):
    return run.history.reward if slot == "reward_adversary" else run.history.message


@pytest.fixture(scope="module")
def clean():
    return once(ALGORITHMS["ucb1"], {})


@pytest.mark.compiles(20)  # the first one plays without adversaries too
@pytest.mark.parametrize("kind", dealt(KINDS, 3, always=["fixed", "swapped"]))
def test_nothing_happens_at_corruption_zero(clean, kind):
    """Bit for bit: the same rewards, messages, arms and state as without an adversary."""
    run = once(ALGORITHMS["ucb1"], {"corruption": 0.0, "kind": kind})
    of_both = (jax.tree.leaves((one.history, one.state)) for one in (run, clean))
    for got, want in zip(*of_both, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_replaces_its_share_with_its_values(kind):
    run = once(ALGORITHMS["ucb1"], {"corruption": 0.3, "kind": kind})
    marked = once(ALGORITHMS["ucb1"], *({"corruption": 0.3, "value": value} for value in MARKS.values()))
    for slot, mark in MARKS.items():
        got, hit = seen(run, slot), seen(marked, slot) == mark  # the coins are those of every kind
        assert abs(hit.mean() - 0.3) < 4 * np.sqrt(0.21 / 120)
        value, arm = got[hit], run.history.action[hit]
        if slot == "message_adversary":
            np.testing.assert_array_equal(got[~hit], run.history.reward[~hit])
        if kind in ("fixed", "random_sign", "target"):
            want = np.where(arm == 2, -10.0, 10.0) if kind == "target" else 10.0
            seen_as = np.abs if kind == "random_sign" else np.asarray
            np.testing.assert_array_equal(seen_as(value), seen_as(want))
        if kind in ("random_sign", "gaussian", "cauchy"):  # what is drawn does not depend on what is hit
            assert abs((value > 0).mean() - 0.5) < 4 * np.sqrt(0.25 / hit.sum())
        elif kind == "sign_flip" and slot == "message_adversary":
            np.testing.assert_array_equal(value, -run.history.reward[hit])
        elif kind == "swapped":
            mirrored = np.array(MEANS[::-1])[arm]
            assert np.all(np.abs(value - mirrored) < 1.5)
            assert abs((value - mirrored).mean()) < 4 * 0.3 / np.sqrt(hit.sum())
            path = {"reward_adversary": "contamination/reward", "message_adversary": "attack/reward"}[slot]
            fresh = NumpyDraws(4, path, np.float32).normal(1 + np.flatnonzero(hit))
            np.testing.assert_allclose(value, mirrored + 0.3 * fresh, atol=1e-4)
        assert np.all(np.isfinite(got))


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", float("nan"), np.float32("nan"), 1e6])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_nan_reaches_the_state(name, value):
    run = once(ALGORITHMS[name], {"corruption": 0.3, "value": value})
    assert int(run.pulls.sum()) == 120
    assert not any(np.any(np.isnan(leaf)) for leaf in jax.tree.leaves(run.state))
    bad = {slot: np.sum(~np.isfinite(seen(run, slot))) for slot in MARKS}
    assert min(bad.values()) > 10 or value == 1e6
    assert run.diagnostics["nonfinite_rewards"] == bad["reward_adversary"]


@pytest.mark.compiles(20)  # two kinds are two programs
def test_a_report_where_means_change_with_the_play():
    """`target` and `swapped` read the means of the report's own play."""
    losses = jb.environments.switching_losses(num_arms=3, cuts=[0, 50], arms=[0, 2])
    for kind in ("target", "swapped"):
        run = jb.simulate(
            partial(jb.algorithms.ucb1, horizon=100), losses, history=True,
            message_adversary=partial(jb.adversaries.huber, corruption=1.0, kind=kind, value=3.0),
        )  # fmt: skip
        if kind == "target":
            best = np.where(np.arange(100) < 50, 0, 2)
            np.testing.assert_array_equal(run.history.message, np.where(run.history.action == best, -3.0, 3.0))
        assert run.history.message.shape == (100,) and int(run.pulls.sum()) == 100

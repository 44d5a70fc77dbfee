"""`linear_arms` as a decision set: learners of linear rewards play the problem of the eliminations, on its noise."""

from functools import partial

import numpy as np
import pytest
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.random import Draws
from jaxbandits.sweeps.simulate import algorithm_for

a, e = jb.algorithms, jb.environments

ACTIONS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0, -0.8], [0.6, 0.64, -0.48], [0, -0.6, 0.8]])
NEAR, FAR = [0.3, 0.5, 0.1], [0.6, 0.0, -0.8]


def test_every_play_shows_the_actions():
    world = e.linear_arms(actions=0.5 * ACTIONS[1:], theta=NEAR)
    t = np.arange(3, 7, dtype=np.int32)
    shown, state = uncompiled(world.world.observe)(world.params, (), Draws(np.uint32(1), "x", np.float32), t)
    assert state == () and shown.shape == (4, 5, 3) and shown.dtype == np.float32
    np.testing.assert_array_equal(shown, np.tile(np.float32(0.5 * ACTIONS[1:]), (4, 1, 1)))
    facts = world.facts
    assert (facts["shows"], facts["contexts"], facts["dim"], facts["num_arms"]) == ("fixed set", "fixed", 3, 5)
    short = e.linear_arms(actions=ACTIONS * np.array([0.1, 0.2, 0.3, 0.7, 0.4, 0.6])[:, None], theta=NEAR)
    assert short.facts["feature_norm"] == pytest.approx(0.7, abs=1e-12)


def test_what_is_shown_is_what_learners_are_told():
    world = e.linear_arms(actions=0.5 * ACTIONS, theta=NEAR)
    for name in ("linucb", "cw_oful"):
        found = algorithm_for(partial(getattr(a, name), horizon=9), world)
        assert found.config["contexts"] == "fixed" and found.config["feature_norm"] == pytest.approx(0.5, abs=1e-12)
    assert jb.plays(partial(a.linucb, contexts="redraw"), world)


def test_the_path_without_noise():
    """Regret and pulls of a program in float64 NumPy; with other actions shown, the arms are others."""
    algorithm = partial(a.linucb, preset="theory", radius_scale=0.3, horizon=300)
    world = e.linear_arms(actions=ACTIONS, theta=NEAR, noise_scale=0.0)
    found = jb.simulate(algorithm, world, checkpoints=[300])
    assert found.pulls.tolist() == [13, 203, 0, 0, 84, 0] and found.regret[-1] == pytest.approx(6.632, abs=1e-9)
    for wrong in (ACTIONS[::-1], 0.5 * ACTIONS):
        other = world._replace(params=world.params._replace(actions=wrong), remake=None)
        assert jb.simulate(algorithm, other, checkpoints=[300]).pulls.tolist() != found.pulls.tolist()


@pytest.mark.parametrize(
    ("algorithm", "theta", "mean", "error"),
    [
        (partial(a.linucb, preset="theory", radius_scale=1.0), NEAR, 70.8, 0.6),
        (partial(a.linear_thompson, posterior_scale=0.3), FAR, 168.3, 0.8),
    ],
    ids=["linucb", "linear_thompson"],
)
def test_regrets_of_programs_in_numpy(algorithm, theta, mean, error):
    """Mean regret and its standard error, of LinUCB and Thompson sampling written in float64 NumPy."""
    world = partial(e.linear_arms, actions=ACTIONS, theta=theta, noise_scale=0.5)
    regret = jb.sweep(algorithm, world, horizon=2000, seeds=256, checkpoints=1, progress=False).regret.values
    ours = regret.std(ddof=1) / 16
    assert ours < 1.5 and abs(regret.mean() - mean) < 4 * np.hypot(ours, error)


def test_learners_meet_the_same_noise():
    world = e.linear_arms(actions=ACTIONS, theta=NEAR, noise_scale=0.5)
    means, noise = world.facts["means"], []
    for algorithm in (a.ucb1(num_arms=6, horizon=24), partial(a.linucb, horizon=24)):
        played = jb.simulate(algorithm, world, seed=3, history=True).history
        assert len(set(played.action.tolist())) > 1
        noise.append(played.reward - means[played.action])
    np.testing.assert_allclose(*noise, atol=1e-6)

"""What float32 cannot hold is said before anything runs: equal arms, rare coins, horizons that sums do not reach."""

import warnings
from functools import partial

import numpy as np
import optax
import pytest

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.sweeps import assumptions

e, a = jb.environments, jb.algorithms
ALIKE = {
    "gaussian": e.gaussian_arms(means=[1e8, 1e8 + 1], scale=0.1),
    "timestamps": e.student_arms(means=[1.7e9, 1.7e9 + 60.0]),
    "bernoulli": e.bernoulli_arms(means=[0.5, 0.5 + 1e-9]),
    "losses": e.bernoulli_losses(means=[0.5, 0.5 + 1e-9]),
    "linear": e.linear_arms(actions=[[1.0, 0.0], [1.0 - 1e-9, 0.0], [0.0, 1.0]], theta=[1.0, 0.0]),
}
APART = {
    "usual": e.bernoulli_arms(means=[0.2, 0.5, 0.5]),
    "equal": e.gaussian_arms(means=[1e8, 1e8]),
    "large": e.gaussian_arms(means=[1e8, 1.1e8]),
    "sure": e.bernoulli_arms(means=[0.0, 1.0]),
    "rare": e.bernoulli_arms(means=[1e-4, 0.5]),
}


def told(environment, dtype="float32", algorithm=None):
    algorithm = algorithm or a.uniform(num_arms=environment.facts["num_arms"], horizon=100)
    return [text for _, _, text, _ in assumptions.doubts_of_precision(algorithm, environment, dtype)]


def test_every_cell_has_its_own_horizon_program_and_world():
    world = catalogue.ALGORITHMS["online_ucb"].environment()
    learner = partial(a.online_ucb, num_arms=3, dim=3, epsilon=1.0)
    cells = [("plain", a.uniform(num_arms=3, horizon=2**22 + 1), world, None)]
    cells += [("one", learner(horizon=horizon), world, None) for horizon in (2**22, 2**22 + 1)]
    with pytest.warns(UserWarning, match=r"^one: its float32 sums hold 4,194,304 plays.*the worst of 1 among 2 points"):
        assumptions.warn(cells, "float32", stacklevel=1)
    made = a.uniform(num_arms=2, horizon=9)
    worlds = [("x", made, one, None) for one in (e.bernoulli_arms(means=[0.2, 0.5]), ALIKE["bernoulli"])]
    with pytest.warns(UserWarning, match="^x: means of arms differ by 1e-09"):
        assumptions.warn(worlds, "float32", stacklevel=1)


@pytest.mark.parametrize("name", ALIKE)
def test_arms_that_float32_takes_for_equal_are_named(name):
    assert any("means of arms differ by" in text for text in told(ALIKE[name]))
    assert told(ALIKE[name], "float64") == []


@pytest.mark.parametrize("name", APART)
def test_nothing_is_said_of_others(name):
    assert told(APART[name]) == []


@pytest.mark.parametrize("rare", [1e-9, 3e-7, 1 - 1e-8])
def test_coins_rarer_than_the_uniforms_are_named(rare):
    for make in (e.bernoulli_arms, e.bernoulli_losses):
        assert any("is drawn as" in text for text in told(make(means=[0.5, rare])))
        assert told(make(means=[0.5, rare]), "float64") == []


def test_a_sweep_and_a_simulation_say_it_once_and_before_they_run():
    arms, learner = ALIKE["bernoulli"], partial(a.ucb1, horizon=4)
    with pytest.warns(UserWarning, match=r"differ by 1e-09, and by 0 in float32; .* dtype='float64'") as said:
        jb.simulate(learner, arms)
        jb.sweep(a.ucb1, arms, horizon=4, seeds=1, grid={"bonus_scale": [1.0, 2.0]}, progress=False)
    assert len(said) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jb.simulate(learner, arms, dtype="float64")


def test_sums_that_float32_cannot_hold_are_named():
    environment = catalogue.ALGORITHMS["online_ucb"].environment()
    learner = partial(a.online_ucb, num_arms=3, dim=3, epsilon=1.0)
    for horizon, said in ((2**22, 0), (2**22 + 1, 1)):
        assert len(told(environment, algorithm=learner(horizon=horizon))) == said
    assert told(environment, "float64", learner(horizon=2**23)) == []
    assert learner(horizon=2).program.float32_plays == 2**22 == np.float32(2**22)


def test_a_float32_of_an_optimizer_holds_fewer_plays():
    assert a.gradient_bandit(num_arms=2, horizon=9, optimizer=optax.sgd(0.1)).program.float32_plays == 2**22
    base = partial(a.gradient_bandit, optimizer=optax.sgd(0.1))
    assert a.bandit_to_experts(num_arms=2, num_experts=3, horizon=9, base=base).program.float32_plays == 2**22

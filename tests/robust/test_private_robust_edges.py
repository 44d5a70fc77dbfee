"""Edges that an independent review of the private and robust bandits found: each row failed once."""

import warnings
from functools import partial

import jax
import numpy as np
import pytest
from dealt import dealt
from plays import Lane, played

import jaxbandits as jb

a, e, v = jb.algorithms, jb.environments, jb.adversaries
STUDENT = e.student_arms(means=[0.0, 1.0, 2.0], df=3.0, scale=3**-0.5)
quiet = partial(jb.sweep, progress=False)


def test_windows_without_plays_do_not_end_a_sweep():
    """PRM-UCB searches a long histogram between two plays, all lanes at the same time."""
    made = partial(a.prm_ucb, epsilon=1.0, moment="central", mean_bound=1e4, histogram_scale=0.5)
    assert (quiet(made, STUDENT, horizon=700, seeds=8, checkpoints=3).pulls.sum("arm") == 700).all()


@pytest.mark.parametrize("kind", dealt(["swapped", "target", "fixed"], 6, always=["swapped"]))
def test_what_an_adversary_does_within_a_window_of_one_arm_does_not_depend_on_checkpoints(kind):
    world = e.switching_losses(num_arms=3, cuts=[0, 155, 301], arms=[0, 2, 1])
    attack = v.huber(kind=kind, corruption=0.9, value=1.0)
    made = partial(a.prm_ucb, epsilon=1.0)
    pulls = [quiet(made, world, horizon=400, seeds=8, checkpoints=n, reward_adversary=attack).pulls for n in (1, 400)]
    np.testing.assert_array_equal(*pulls)


@pytest.mark.parametrize(
    "name", ["barbar", "dist_elimination", "local_robust_elimination", "prm_elimination", "prm_ucb", "adac_gope"]
)
def test_a_bound_fails_once_in_a_run_and_half_the_time_in_a_run_of_one_play(name):
    own = {"adac_gope": {"actions": np.eye(2), "rho": 1.0}, "barbar": {"num_arms": 2}}
    for horizon, prob in ((1, 0.5), (800, 1 / 800)):
        made = partial(getattr(a, name), **own.get(name, {"num_arms": 2, "epsilon": 1.0}), horizon=horizon)
        jax.tree.map(np.testing.assert_array_equal, made().params, made(failure_prob=prob).params)


REPORTING = {
    "ldp_ucb": partial(a.ldp_ucb, epsilon=1.0),
    "kl_ucb": a.kl_ucb,
    "moss": a.moss,
    "thompson": a.thompson,
    "thompson, gaussian": partial(a.thompson, posterior="gaussian"),
}


@pytest.mark.parametrize("name", dealt(REPORTING, 4, always=["ldp_ucb"]))
def test_corrupted_reports_leave_the_state_finite(name):
    made, arms = REPORTING[name](num_arms=2, horizon=60), e.bernoulli_arms(means=[0.2, 0.8])
    attacks = [v.huber(value=value, corruption=0.3) for value in ("nan", "inf", "-inf")]
    for run in played([Lane(0, made, arms, None, attack) for attack in attacks], dtype="float32"):
        assert len(run.history.action) == 60 and all(np.isfinite(x).all() for x in jax.tree.leaves(run.state))


def test_moments_where_closed_forms_lose_digits():
    def raw(df):
        return e.student_arms(means=[50.0, 0.0], df=df, scale=0.5).facts["moment"](2.0)

    for df in (40.0, 200.0, 1000.0, 1e6):
        np.testing.assert_allclose(raw(df), [2500 + df / (df - 2) / 4, df / (df - 2) / 4], rtol=1e-9)
    assert np.isinf(e.gaussian_arms(means=[0.0, 1.0], scale=2.0).facts["moment"](1100.0)).all()
    with pytest.warns(UserWarning, match="moment_bound"), warnings.catch_warnings():
        warnings.simplefilter("default")
        made = partial(a.prm_elimination, epsilon=1.0, horizon=20)
        jb.simulate(made, e.student_arms(means=[50.0, 0.0], df=3000.0))

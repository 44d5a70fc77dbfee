"""Warnings where an environment's moments exceed what an algorithm declares."""

import warnings

import pytest

import jaxbandits as jb
from jaxbandits.environments import bernoulli_losses, pareto_arms, student_arms
from jaxbandits.protocol import Tails
from jaxbandits.validation import factory

HEAVY = pareto_arms(means=[0.95, 0.5])  # second moment 1.0744 and 0.2976
SETTINGS = {"horizon": 20, "seeds": 8, "checkpoints": 2, "progress": False}


@factory
def believer(*, num_arms, horizon, moment="raw", moment_order=2.0, moment_bound=1.0, mean_bound=5.0):
    """UCB1 with beliefs."""
    tails = Tails(moment_order, moment_bound, *(("X - mean", mean_bound) if moment == "central" else ()))
    return jb.algorithms.ucb1(num_arms=num_arms, horizon=horizon)._replace(tails=tails)


def said(environment=HEAVY, **beliefs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jb.simulate(believer(num_arms=2, horizon=20, **beliefs), environment)
    return [str(w.message) for w in caught]


def test_the_warning_gives_the_figure():
    (text,) = said()
    assert "ucb1: E|X|^2 of arm 0 is 1.074, above moment_bound = 1: declare at least 1.075" in text
    assert said(moment_bound=1.075) == said(moment_order=1.0) == said(pareto_arms(means=[0.916, 0.5])) == []
    assert said(moment_bound=HEAVY.facts["moment"](2)[0]) == []
    (text,) = said(moment_order=3.5, moment_bound=1e9)
    assert "is inf, above" in text and "lower moment_order" in text
    assert said(bernoulli_losses(means=[0.5, 0.9]), moment_bound=1e-3) == []  # no moments known, nothing said


def test_central_beliefs_are_about_deviations_and_the_mean():
    arms = student_arms(means=[30.0, -40.0])
    (text,) = said(arms, moment="central", moment_bound=2.9, mean_bound=50.0)
    assert "E|X - mean|^2 of arm 0 is 3, above moment_bound = 2.9" in text
    (text,) = said(arms, moment="central", moment_bound=3.0, mean_bound=39.0)
    assert "|mean| of arm 1 is 40, above mean_bound = 39: declare at least 40" in text
    (text,) = said(arms, moment="central", moment_bound=3.0, mean_bound=0.0)
    assert "|mean| of arm 1 is 40, above mean_bound = 0: declare at least 40" in text
    (text,) = said(arms, moment="central", moment_bound=2.9, mean_bound=10.0)  # 3 / 2.9 and 40 / 10
    assert "|mean| of arm 1 is 40, above mean_bound = 10" in text
    assert said(arms, moment="central", moment_bound=3.0, mean_bound=40.0) == []
    assert said(arms, moment="central", moment_bound=3.1, mean_bound=50.0) == []
    assert "E|X|^2 of arm 1 is 1603" in said(arms, moment_bound=3.1)[0]


def test_a_sweep_warns_once_a_label_before_it_runs():
    algorithms = {"one": believer, "other": believer, "plain": jb.algorithms.ucb1}
    with pytest.warns(UserWarning) as caught:
        grid = {"moment_bound": [0.5, 1.0, 2.0], "other.moment_order": [1.0, 2.0]}
        jb.sweep(algorithms, HEAVY, grid=grid, **SETTINGS)
    texts = sorted(str(w.message) for w in caught)
    assert len(texts) == 2 and caught[0].filename == __file__
    assert texts[0].startswith("one: E|X|^2 of arm 0 is 1.074, above moment_bound = 0.5")
    assert "worst of 2 among 3 points" in texts[0]
    assert texts[1].startswith("other:") and "worst of 3 among 6 points" in texts[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jb.sweep({"one": believer}, pareto_arms, grid={"environment.means": {"low": [0.9, 0.1]}}, **SETTINGS)
        with pytest.raises(UserWarning):  # and not after hours: the plan is refused as it stands
            jb.sweep({"one": believer}, HEAVY, **SETTINGS | {"horizon": 10**9, "seeds": 10**6})


def test_what_private_robust_means_assume():
    given = {"num_arms": 2, "horizon": 50, "epsilon": 1.0, "moment_bound": 1.5}
    for make in (jb.algorithms.prm_ucb, jb.algorithms.prm_thompson, jb.algorithms.prm_elimination):
        assert make(**given).tails == Tails(2.0, 1.5)
        assert make(**given, moment="central", mean_bound=10.0).tails == Tails(2.0, 1.5, "X - mean", 10.0)

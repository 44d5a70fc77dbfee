"""Environments as those of gymnasium: its own check, and the rewards and contexts that a run of ours meets."""

from functools import partial

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import catalogue

gymnasium = pytest.importorskip("gymnasium")
E, PLAYS = jb.environments, 24
WORLDS = {
    "arms": catalogue.arms, "losses": catalogue.losses, "rows": catalogue.rows, "sets": catalogue.contexts,
    "fixed": catalogue.linear, "experts": catalogue.experts,
}  # fmt: skip


@pytest.mark.parametrize("name", WORLDS)
def test_a_loop_meets_what_a_run_meets(name):
    environment = WORLDS[name]()
    loop = E.as_gymnasium(environment, horizon=PLAYS)
    run = jb.simulate(partial(jb.algorithms.uniform, horizon=PLAYS), environment, seed=5, history=True)
    arms, paid = (np.asarray(x).ravel() for x in (run.history.action, run.history.reward))
    shown, told = loop.reset(seed=5)
    assert told == {"t": 0} and loop.observation_space.contains(shown)
    lost = []
    for t, arm in enumerate(arms):
        shown, reward, ended, cut, told = loop.step(int(arm))
        assert reward == paid[t] and loop.observation_space.contains(shown)
        assert (ended, cut, told["t"]) == (False, t + 1 == PLAYS, t + 1)
        lost.append(told.get("regret"))
    if environment.world.baseline is None:
        assert sum(lost) == pytest.approx(float(run.regret[-1]), rel=1e-5)
    else:  # against the best arm of plays to come
        assert set(lost) == {None} and name in ("rows", "experts", "losses")
    first = loop.reset(seed=5)[0]
    np.testing.assert_array_equal(first, E.as_gymnasium(environment).reset(seed=5)[0])
    assert len({(loop.reset(), int(loop.seed))[1] for _ in range(3)}) == 3  # without a seed, a run of its own each time


def test_gymnasium_has_nothing_to_say(recwarn):
    from gymnasium.utils.env_checker import check_env

    check_env(E.as_gymnasium(catalogue.arms, horizon=9), skip_render_check=True)
    assert not recwarn.list


def test_what_cannot_be_played_is_said():
    loop = E.as_gymnasium(catalogue.arms)
    with pytest.raises(ValueError, match=r"step: no run has begun: call reset"):
        loop.step(0)
    loop.reset(seed=0)
    with pytest.raises(ValueError, match=r"action = 3 must be the number of an arm, 0 to 2"):
        loop.step(3)
    with pytest.raises(ValueError, match="environment has agents"):
        E.as_gymnasium(catalogue.federated)
    with pytest.raises(ValueError, match="horizon = 0"):
        E.as_gymnasium(catalogue.arms, horizon=0)


def test_a_table_has_no_more_plays_than_rows():
    table = E.loss_table(losses=[[0.0, 1.0], [0.5, 0.25], [1.0, 0.0]])
    for horizon, plays in ((None, 3), (3, 3), (2, 2)):
        loop = E.as_gymnasium(table, horizon=horizon)
        loop.reset(seed=0)
        assert [loop.step(1)[3] for _ in range(plays)] == [False] * (plays - 1) + [True]
    with pytest.raises(ValueError, match=r"horizon = 4 is longer than the environment's 3 plays"):
        E.as_gymnasium(table, horizon=4)

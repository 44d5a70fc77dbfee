"""Learners and logs: replay against an event-by-event transcription, and trained learners as policies."""

import warnings
from functools import partial

import jax
import numpy as np
import pandas as pd
import pytest
from numpy_draws import NumpyDraws
from planting import errors, planted
from reference import off_policy as literal
from reference.own_data import F, R, golden_log, play_in_order, read_golden, rows_of
from scipy import stats

import jaxbandits as jb

A = jb.algorithms
LINUCB = partial(A.linucb, radius_scale=1.0)
UNIFORM = literal.uniform_log()[1]


def read(columns, **given):
    return jb.read_logged(pd.DataFrame(columns), **{"arm": "arm", "reward": "click", "propensity": "chance"} | given)


def by_hand(log, order=None, seed=0, oracle=literal):
    """The rows that the transcription accepts, in their order; rows keep the transform of the whole log."""
    order = np.arange(len(log.arm)) if order is None else order
    coins = NumpyDraws(seed, "offline/accept", np.float32).uniform(np.arange(1, len(log.arm) + 1))
    taken = log.features, log.arm, log.reward, log.propensity, coins
    return oracle.replay(rows_of(log.features), *(x[order] for x in taken[1:]), order=order)


def test_replay_accepts_what_the_transcription_accepts():
    log = read(UNIFORM)
    found = jb.offline(partial(LINUCB, horizon=300), log, estimator="replay")
    rows, _ = by_hand(log)
    assert len(rows) == found.n == 311 and found.accepted.tolist() == [311]  # beyond its horizon, which only tunes it
    assert log.arm[rows[:12]].tolist() == [0, 1, 1, 1, 2, 1, 0, 1, 1, 0, 2, 1]
    np.testing.assert_allclose([found.value, found.standard_error], [0.5369774920, 0.0283203258], atol=1e-10)
    y = log.reward[rows]
    np.testing.assert_allclose(found.curve, np.cumsum(y) / np.arange(1, 312), rtol=1e-13)
    np.testing.assert_allclose(np.diff(found.interval), 2 * literal.normal(y), rtol=1e-10)
    # a horizon that is filled in, 300 + 4 sqrt(300), ends nothing here
    assert jb.offline(LINUCB, log, estimator="replay").n == 311


def test_unequal_propensities_are_thinned():
    """Acceptance with probability min p / p_i: the golden log has propensities from 0.1 to 0.8."""
    log = read_golden()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = jb.offline(partial(LINUCB, horizon=300), log, estimator="replay")
    rows, _ = by_hand(log)
    assert found.n == len(rows) and 20 < len(rows) < 70  # 40 are expected
    assert found.value == log.reward[rows].mean()


PLANTED = [
    ("chosen == arm[i] and ", ""),  # accepts everything
    ("coins[i] < least / propensity[i]", "True"),
    ("error, v = reward[i] - theta[chosen] @ x", "error, v = reward[i] - theta[0] @ x"),
    ("scale * sqrt(x @ inverse[a] @ x)", "scale * (x @ inverse[a] @ x)"),
]


@pytest.mark.parametrize("error", errors(PLANTED, literal))
def test_planted_errors_are_noticed(error):
    wrong = planted(*error)
    logs = read(UNIFORM), read_golden()
    assert any(by_hand(log, oracle=wrong)[0] != by_hand(log)[0] for log in logs)


def test_lanes_and_stretches():
    log = read(UNIFORM)
    found = jb.offline(partial(LINUCB, horizon=300), log, estimator="replay", seeds=3, seed=4, order="shuffle")
    orders = [np.random.default_rng(seed).permutation(900) for seed in (4, 5, 6)]
    rows = [by_hand(log, order, seed)[0] for order, seed in zip(orders, (4, 5, 6), strict=True)]
    assert found.accepted.tolist() == [len(x) for x in rows]
    paid = [log.reward[order[x]] for order, x in zip(orders, rows, strict=True)]
    np.testing.assert_allclose(found.value, np.mean([y.mean() for y in paid]), rtol=1e-13)
    # of one run: shuffles of one log narrow nothing
    error = np.mean([y.std(ddof=1) / np.sqrt(len(y)) for y in paid])
    np.testing.assert_allclose(
        [found.standard_error, np.diff(found.interval)[0]], [error, 3.919927969 * error], rtol=1e-8
    )
    least = min(map(len, paid))
    curves = [np.cumsum(y[:least]) / np.arange(1, least + 1) for y in paid]
    np.testing.assert_allclose(found.curve, np.mean(curves, axis=0), rtol=1e-13)
    assert found.n == round(np.mean([len(x) for x in rows]))
    found = jb.offline(partial(LINUCB, horizon=300), log, estimator="replay", blocks=7)  # of 129 rows and of 128
    means, total = [], 0
    for stretch in np.array_split(np.arange(900), 7):
        accepted, _ = by_hand(log, stretch)
        means.append(log.reward[stretch[accepted]].mean())
        total += len(accepted)
    assert found.accepted.tolist() == [total] and found.n == total
    np.testing.assert_allclose(found.value, np.mean(means), rtol=1e-13)
    half = stats.t.ppf(0.975, 6) * np.std(means, ddof=1) / np.sqrt(7)
    np.testing.assert_allclose(np.diff(found.interval), 2 * half, rtol=1e-9)
    paired = jb.offline(
        [*[partial(LINUCB, horizon=300)] * 2, A.uniform], log, estimator="replay", blocks=7, confidence=0.9
    )
    assert paired["difference_high"].tolist()[:2] == [0, 0]
    assert paired.index.tolist() == ["linucb 1", "linucb 2", "uniform"]
    row = paired.loc["uniform"]
    ends = (row[["difference_low", "difference_high"]] - row["difference"]) / row["difference_error"]
    np.testing.assert_allclose(ends.astype(float), np.array([-1, 1]) * stats.t.ppf(0.95, 6), rtol=1e-9)
    np.testing.assert_allclose((row["high"] - row["value"]) / row["standard_error"], stats.t.ppf(0.95, 6), rtol=1e-9)
    assert paired.attrs["confidence"] == 0.9
    told = []  # the horizon that is filled in: four deviations beyond the rows that a stretch accepts on average
    jb.offline(lambda *, num_arms, horizon: told.append(horizon) or A.uniform(num_arms=num_arms, horizon=horizon), log,
               estimator="replay", blocks=6)  # fmt: skip
    assert set(told) == {79}  # 50 + 4 sqrt(50)


def test_uniform_play_is_accepted_as_often_as_it_agrees():
    random = np.random.default_rng(0)
    log = read(literal.columns_of(random.random((3, 3000)), np.full((4, 3), 1 / 3))[1])
    found = jb.offline(A.uniform, log, estimator="replay", seeds=6)
    assert (np.abs(found.accepted - 1000) < 4 * np.sqrt(3000 * 2 / 9)).all()
    short = jb.offline(A.uniform, read(literal.uniform_log(60)[1]), estimator="replay", seeds=50, order="shuffle")
    assert short.accepted.max() <= 20 + np.ceil(4 * np.sqrt(20))
    private = partial(A.ldp_ucb, epsilon=1.0, horizon=50)
    assert jb.offline(private, log, estimator="replay").n == 50  # what a guarantee covers ends with the horizon
    larger = log._replace(reward=3 * log.reward)
    with pytest.warns(UserWarning, match=r"ldp_ucb: reads rewards in \[0, 1\] and clips others") as told:
        jb.offline(private, larger, estimator="replay")
    assert told[0].filename == __file__


def test_refusals():
    log = read(UNIFORM)
    with pytest.raises(ValueError, match="policy = dp_se plays windows or spans of its own"):
        jb.offline(partial(A.dp_se, epsilon=1.0), log, estimator="replay")
    with pytest.raises(ValueError, match="linucb learns as it goes: give estimator='replay'"):
        jb.offline(LINUCB, log)
    with pytest.raises(ValueError, match="blocks = 3 must be 1, or at least 5"):
        jb.offline(LINUCB, log, estimator="replay", blocks=3)


# ---- trained learners


def table_world(**given):
    return jb.environments.contextual_table(features=F, rewards=R, **given)


def test_a_policy_is_the_learner_as_it_stands_after_its_last_play():
    """Thompson sampling: states are those of runs, and each lane answers with its own dice of the coming play."""
    policy = jb.trained(A.thompson, table_world(), horizon=8, seeds=range(3, 67))
    first = policy.arms(F[:2])
    assert first.shape == (2, 64) and first.dtype == np.int32 and len(set(first[0].tolist())) == 3
    np.testing.assert_array_equal(first, policy.arms(F[:2]))
    np.testing.assert_array_equal(first[0], first[1])
    for lane in (0, 9):
        run, longer = (
            jb.simulate(
                A.thompson(num_arms=3, horizon=plays), table_world(), seed=3 + lane, history=True, checkpoints=1
            )
            for plays in (8, 9)
        )
        for found, want in zip(jax.tree.leaves(policy.state), jax.tree.leaves(run.state), strict=True):
            np.testing.assert_array_equal(found[lane], want)
        assert first[0, lane] == longer.history.action[8]
    np.testing.assert_allclose(policy.probabilities(F[:1])[0], np.bincount(first[0], minlength=3) / 64, rtol=1e-15)
    assert "thompson after 8 plays in 64 lanes" in repr(policy)


def test_a_policy_makes_rows_as_its_environment_does():
    world = table_world(shuffle=False)
    policy = jb.trained(LINUCB, world, horizon=60, seeds=2)
    played, (want, _) = policy.arms(F), play_in_order(rows_of(F), R, 61)
    assert (played[20] == want[60]).all() and len(np.unique(played)) > 1  # play 61 shows row 20 again
    np.testing.assert_array_equal(policy.rows.apply(F), world.params.features)


def test_an_episodic_learner_answers_with_its_next_window():
    world = jb.environments.contextual_table(features=F, rewards=np.tile([0.0, 1.0, 0.1], (40, 1)))
    policy = jb.trained(partial(A.dp_se, epsilon=float("inf")), world, horizon=8000, seeds=4)
    assert (policy.arms(F[:3]) == 1).all()


def test_trained_on_the_log_that_judges_it():
    log = read(golden_log()[1])
    world = jb.environments.fitted(log=log)
    policy = jb.trained(A.ucb1, world, horizon=50, seeds=2)
    with pytest.warns(UserWarning, match=r"policy was trained on rows of this log: judge it on others \(Log.split\)"):
        jb.offline(policy, log)
    train, test = log.split()
    policy = jb.trained(A.ucb1, jb.environments.fitted(log=train), horizon=50, seeds=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = jb.offline(policy, test, clip=20)
    arm = policy.arms(test.features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        want = np.mean([jb.offline(arm[:, lane], test, clip=20).value for lane in (0, 1)])
    np.testing.assert_allclose(found.value, want, rtol=1e-12)  # linear in the policy: the mean over lanes
    # rows that hardly ever are alike by chance
    features = np.random.default_rng(0).normal(size=(400, 2))
    whole = log._replace(features=features)
    train, test = whole.split()
    policy = policy._replace(environment=jb.environments.fitted(log=whole))
    with pytest.warns(UserWarning, match="trained on rows of this log"):
        jb.offline(policy, test, clip=20)


def test_what_cannot_be_trained():
    with pytest.raises(ValueError, match="a policy needs an environment of arms and rows of features"):
        jb.trained(A.linucb, jb.environments.contextual_linear(num_arms=2, dim=3), horizon=10)
    with pytest.raises(ValueError, match="horizon = 5 disagrees with the run's horizon 10"):
        jb.trained(partial(A.ucb1, horizon=5), table_world(), horizon=10)


def test_a_learner_is_paired_with_a_fixed_policy_row_by_row():
    """As the ratio of two means over all rows each."""
    log = read(UNIFORM)
    row = jb.offline([partial(LINUCB, horizon=300), 1], log, estimator="replay").loc["arm 1"]
    used, shown = np.isin(np.arange(900), by_hand(log)[0]), log.arm == 1
    one, other = (x * (log.reward - log.reward[x].mean()) / x.mean() for x in (used, shown))
    error, apart = (other - one).std(ddof=1) / 30, log.reward[shown].mean() - log.reward[used].mean()
    np.testing.assert_allclose(row["difference_error"], error, rtol=1e-10)
    ends = apart + np.array([-1, 1]) * 1.959963984540054 * error
    np.testing.assert_allclose(row[["difference_low", "difference_high"]].astype(float), ends, rtol=1e-9)

"""The reward beside regret: what it is measured against, its picture, and the words of the axes."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.regret import best_reward
from jaxbandits.reports.layout import plain_text
from jaxbandits.sweeps.dataset import Results, Variable

E = jb.environments
FEATURES = np.random.default_rng(0).normal(size=(12, 2))
LABELS = np.arange(12) % 3 % 2
TABLE = np.random.default_rng(1).uniform(size=(40, 3))
ROWS = E.classification(features=FEATURES, labels=LABELS)


def sweep(environment, **settings):
    settings = {"horizon": 40, "seeds": 3, "checkpoints": [1, 7, 24, 40], "progress": False} | settings
    return jb.sweep("uniform", environment, **settings)


def rewards(ds):
    return (ds.best_reward - ds.regret).isel(algorithm=0)


@pytest.mark.parametrize("environment", [ROWS, E.loss_table(losses=TABLE)], ids=["labelled rows", "table"])
def test_rewards_are_those_that_were_paid(environment):
    """No reward of these environments is drawn: what is expected is what is paid."""
    found = rewards(sweep(environment, dtype="float64"))
    for seed in range(3):
        algorithm = jb.algorithms.uniform(num_arms=environment.world.num_arms, horizon=40)
        played = jb.simulate(algorithm, environment, seed=seed, dtype="float64", history=True).history
        paid = np.cumsum(np.asarray(played.reward, np.float64))[[0, 6, 23, 39]]
        np.testing.assert_allclose(found.sel(seed=seed), paid, atol=1e-9)


def test_rewards_of_arms_follow_from_their_means_whatever_an_adversary_does():
    means, huber = [0.2, 0.9], jb.adversaries.huber(corruption=0.5, value=100.0)
    for environment, paid in ((E.bernoulli_arms(means=means), means), (E.bernoulli_losses(means=means), [0.8, 0.1])):
        ds = sweep(environment, reward_adversary=huber)
        assert ds.best_reward.dims == ("t",)
        np.testing.assert_allclose(ds.best_reward, ds.t * max(paid))
        last = (ds.pulls * np.array(paid)).sum("arm").isel(algorithm=0)
        np.testing.assert_allclose(rewards(ds).isel(t=-1), last, rtol=1e-12)


def test_only_axes_that_change_the_environment_and_seeds_that_order_rows_appear(tmp_path):
    maker = functools.partial(E.loss_table, losses=TABLE)
    tables = {"given": TABLE.tolist(), "late": TABLE[::-1].tolist()}
    grid = {"environment.losses": tables, "reward_adversary.corruption": [0, 0.5]}
    ds = sweep(maker, grid=grid, reward_adversary=jb.adversaries.huber)
    assert ds.best_reward.dims == ("environment.losses", "t")
    for name, table in tables.items():
        best = (1 - np.array(table)).cumsum(axis=0).max(axis=1)[[0, 6, 23, 39]]
        np.testing.assert_allclose(ds.best_reward.sel({"environment.losses": name}), best)
        at = {"environment.losses": name, "reward_adversary.corruption": 0}  # no adversary
        np.testing.assert_array_equal(ds.regret.sel(at), sweep(E.loss_table(losses=table)).regret)
    ds = sweep(ROWS, horizon=[7, 40], checkpoints=3, store=tmp_path)
    assert ds.best_reward.dims == ("seed", "t") and bool(ds.best_reward.notnull().all())
    assert ds.identical(sweep(ROWS, horizon=[7, 40], checkpoints=3, store=tmp_path))
    np.testing.assert_array_equal(ds.best_reward, best_reward(ROWS, range(3), ds.t.values))


def test_what_is_best_is_that_of_the_seeds_of_the_run():
    """The loss of the best arm is the seed: of plays 1..t it is paid t less the seed."""
    world = SimpleNamespace(baseline=lambda params, seed, times: np.full(len(times), seed), seeded=True)
    results = object.__new__(Results)
    results.plan, results.t, results.grid = SimpleNamespace(seeds=range(5, 8)), np.array([1, 40]), {}
    results.environments = {(): SimpleNamespace(world=world, params=None, facts={})}
    results.variables = {"best_reward": Variable(("seed", "t"), {})}
    results.arrays = {"best_reward": np.zeros((3, 2))}
    results.put_best()
    assert results.arrays["best_reward"].tolist() == [[-4, 35], [-5, 34], [-6, 33]]


@pytest.mark.parametrize("shuffles", [(False, True), (True, False)])
def test_best_rewards_have_seeds_where_any_world_orders_by_them(shuffles):
    results, shape = object.__new__(Results), SimpleNamespace(arms=2, diagnostics=())
    results.plan, results.sizes = SimpleNamespace(groups=[SimpleNamespace(shape=shape)]), {}
    worlds = [E.classification(features=FEATURES, labels=LABELS, shuffle=x) for x in shuffles]
    results.grid, results.environments = {"environment.shuffle": 2}, {(i,): x for i, x in enumerate(worlds)}
    assert results._variables()["best_reward"].dims == ("environment.shuffle", "seed", "t")


def test_every_panel_has_the_best_arm_of_its_own_world():
    coords, best = {"algorithm": ["a"], "gap": [1.0, 2.0], "t": [10, 20]}, [[6.0, 12.0], [9.0, 18.0]]
    regret = ("algorithm", "gap", "seed", "t"), np.zeros((1, 2, 3, 2))
    figure, data = jb.plot.reward(xr.Dataset({"regret": regret, "best_reward": (("gap", "t"), best)}, coords))
    for kind in ("algorithm", "best"):
        assert data[data["kind"] == kind]["centre"].tolist() == pytest.approx([0.6, 0.6, 0.9, 0.9])
    assert [[line.get_ydata()[0] for line in axes.lines] for axes in figure.axes] == [[0.6, 0.6], [0.9, 0.9]]


def test_contexts_that_decide_have_no_best_reward():
    contexts = functools.partial(E.contextual_linear, num_arms=2, dim=2)
    ds = jb.sweep("uniform", contexts, horizon=8, seeds=2, progress=False)
    assert "best_reward" not in ds and ds.regret.attrs["long_name"] == "cumulative regret"
    with pytest.raises(ValueError, match="ds has no best_reward: contexts decide"):
        jb.plot.reward(ds)


MEANS = E.bernoulli_arms(means=[0.2, 0.9])


@pytest.mark.parametrize(
    ("environment", "head", "tail", "unit"),
    [
        (ROWS, "regret", " against the best fixed arm", "right answers"),
        (E.loss_table(losses=TABLE), "regret", " against the best fixed arm", "losses"),
        (MEANS, "cumulative regret", "", "rewards"),
    ],
)
def test_axes_say_what_regret_is_against(environment, head, tail, unit):
    def label(plot):
        return " ".join(plot.figure.axes[0].get_ylabel().split())

    ds = sweep(environment, reward_adversary=jb.adversaries.huber, grid={"reward_adversary.corruption": [0, 0.5]})
    one = ds.isel({"reward_adversary.corruption": 0})
    assert ds.regret.attrs["long_name"] == head + tail and label(jb.plot.regret(one)) == f"{head}{tail} (in {unit})"
    after = label(jb.plot.against(ds, "reward_adversary.corruption"))
    assert after == f"{head} after 40 plays{tail} (in {unit})" and plain_text(after) == f"{head} after 40 plays{tail}"
    del one.regret.attrs["long_name"]  # a store of an earlier release
    assert label(jb.plot.regret(one)) == f"cumulative regret (in {unit})"


def test_a_summary_has_the_share_of_right_answers_of_labelled_rows():
    ds, two = sweep(ROWS), sweep(ROWS, horizon=[7, 40], checkpoints=3)
    paid = rewards(ds).mean("seed") / ds.t
    want = [float(paid.sel(t=t)) for t in (7, 40)]
    assert want[0] != want[1]
    np.testing.assert_allclose([*jb.summary(ds, t=7)["right_answers"], *jb.summary(ds)["right_answers"]], want)
    np.testing.assert_allclose(jb.summary(two)["right_answers"], want)
    for other in (sweep(E.loss_table(losses=TABLE)), ds.drop_vars("best_reward")):
        assert "right_answers" not in jb.summary(other)


@pytest.mark.parametrize(("spread", "begins"), [(0.74, True), (0.76, False)])
def test_rewards_that_hardly_differ_have_an_axis_without_zero(spread, begins):
    """The best arm is paid 1 a play, the learner a little more or less than three quarters of it."""
    ds = sweep(MEANS, checkpoints=[10, 40]).isel(seed=[0])
    ds = ds.assign(regret=ds.regret * 0 + (1 - spread) * ds.t, best_reward=1.0 * ds.t)
    low, _ = jb.plot.reward(ds).figure.axes[0].get_ylim()
    assert (low <= 0) == begins and (low < spread)
    assert jb.plot.reward(ds, total=True).figure.axes[0].get_ylim()[0] <= 0


def test_regret_of_advice_is_against_an_expert():
    experts = E.rotating_experts(losses=E.loss_table(losses=TABLE), num_experts=4)
    ds = sweep(experts)
    assert ds.regret.attrs["long_name"] == "regret against the best fixed expert"
    assert set(jb.plot.reward(ds).data["algorithm"]) == {"uniform", "best fixed expert"}


def test_the_picture_shows_rewards_beside_the_best_arms():
    ds = sweep(ROWS, reward_adversary=jb.adversaries.huber, grid={"reward_adversary.corruption": [0, 0.5]})
    figure, data = jb.plot.reward(ds)
    assert len(figure.axes) == 2 and jb.plot.overlaps(figure) == []
    mine = data[(data["kind"] == "algorithm") & (data["reward_adversary.corruption"] == 0.5)]
    paid = rewards(ds).sel({"reward_adversary.corruption": 0.5}) / ds.t
    np.testing.assert_allclose(mine["centre"], paid.mean("seed"))
    best = data[(data["kind"] == "best") & (data["reward_adversary.corruption"] == 0.5)]
    np.testing.assert_allclose(best["centre"], (ds.best_reward / ds.t).mean("seed"))
    total = jb.plot.reward(ds, total=True, select={"reward_adversary.corruption": 0.5}, bands="quantile").data
    mine = total[total["kind"] == "algorithm"]
    np.testing.assert_allclose(mine["centre"], (paid * ds.t).median("seed"))
    one = jb.plot.reward(ds.isel(t=-1, algorithm=0, seed=0), select={"reward_adversary.corruption": 0}).data
    assert len(one) == 2
    assert jb.plot.reward(ds.isel(seed=[0]), log="x").figure.axes[0].get_xscale() == "log"
    with pytest.raises(ValueError, match="log"):
        jb.plot.reward(ds, log="y")


RUN = """horizon = 24
seeds = 3
algorithm = "uniform"
[environment]
name = "classification"
path = "rows.csv"
label = "kind"
[figure]
reward = true
"""


def test_the_command_line_draws_rewards(tmp_path, capsys):
    rows = "".join(f"{i % 5},{['b', 'a'][i % 2]}\n" for i in range(12))
    (tmp_path / "rows.csv").write_text("x,kind\n" + rows)
    file, out = tmp_path / "run.toml", tmp_path / "out"
    file.write_text(RUN)
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 0
    assert (out / "reward.png").exists() and jb.load(out)["arm_name"].values.tolist() == ["a", "b"]
    file.write_text(RUN.replace("[figure]\nreward = true\n", ""))
    assert main(["run", str(file), "--out", str(out), "--fresh", "--quiet"]) == 0
    assert not (out / "reward.png").exists()
    assert main(["plot", str(out), "--reward"]) == 0 and (out / "reward.png").exists()
    file.write_text(RUN.replace("reward = true", "reward = 1"))
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 2
    assert "figure.reward = 1 must be true or false" in capsys.readouterr().err
    contextual = 'name = "contextual_linear"\nnum_arms = 2\ndim = 2'
    file.write_text(RUN.replace('name = "classification"\npath = "rows.csv"\nlabel = "kind"', contextual))
    assert main(["run", str(file), "--out", str(tmp_path / "other"), "--quiet"]) == 2
    assert "figure.reward: contexts decide" in capsys.readouterr().err

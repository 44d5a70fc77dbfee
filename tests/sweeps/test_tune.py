"""`jb.tune`: choices against plain sweeps, the four methods, families, what goes back into a sweep, wrong arguments."""

import functools
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.reports import tuning_plots
from jaxbandits.searching import methods, population
from jaxbandits.searching.population import disjoint
from jaxbandits.searching.space import Dimension
from jaxbandits.searching.tuning import at_edge
from jaxbandits.sweeps.engines.local import Local
from jaxbandits.sweeps.grid import axes_of
from jaxbandits.sweeps.toml_file import read_config, read_tuning

a, e = jb.algorithms, jb.environments
LOSSES = functools.partial(e.fixed_gap_losses, num_arms=3)
BATCHED = functools.partial(a.private_batched, base=functools.partial(a.exp3, mixing=0.05))
RATES = [0.001, 0.1, 5.0]
SETTINGS_OF_SWEEP = {"horizon": 60, "seeds": 8, "progress": False, "checkpoints": 2}
SETTINGS = SETTINGS_OF_SWEEP | {"seeds": range(100, 108), "report_seeds": range(8)}


@functools.cache
def grid_tuning():
    return jb.tune(
        {"EXP3": BATCHED, "UCB": a.ucb1}, LOSSES, over={"epsilon": [1.0, 0.1]},
        space={"EXP3.base.learning_rate": RATES}, **SETTINGS,
    )  # fmt: skip


@pytest.mark.parametrize("values", [[None, 0.1], [0.1, "auto"], [True, False], [2, 1]])
def test_points_are_unfolded_by_their_places(values):
    regret = (("algorithm", "point", "seed", "t"), [[[[1.0]], [[2.0]]]])
    ds = xr.Dataset({"regret": regret}, {"algorithm": ["a"], "point": [0, 1], "seed": [0], "t": [9]})
    assert population.unfold_points(ds, axes_of({"mixing": values}, None, 1)).regret.values.ravel().tolist() == [1, 2]


def test_checkpoints_are_looked_at_before_the_search(monkeypatch):
    monkeypatch.setattr(population, "evaluate", lambda *given, **more: pytest.fail("searched"))
    for checkpoints in ([20, 10], [10, 70], 0):
        with pytest.raises(ValueError, match=r"^checkpoints"):
            jb.tune("ucb1", e.bernoulli_arms(means=[0.2, 0.8]), space={"bonus_scale": [0.5, 1.0]},
                    **SETTINGS | {"checkpoints": checkpoints})  # fmt: skip


@pytest.mark.compiles(30)  # two labels of two programs, and their plain sweeps
def test_the_choice_is_that_of_a_plain_sweep_and_the_report_another_plain_sweep():
    tuning = grid_tuning()
    plain = {"horizon": 60, "progress": False, "checkpoints": 2}
    grid = {"epsilon": [1.0, 0.1], "base.learning_rate": RATES}
    tried = jb.sweep({"EXP3": BATCHED}, LOSSES, seeds=range(100, 108), **plain, grid=grid)
    regret = tried.regret.isel(t=-1, algorithm=0)
    np.testing.assert_array_equal(tuning.trials.regret.sel(algorithm="EXP3"), regret)
    assert tuning.trials.regret.dims == ("algorithm", "epsilon", "trial", "seed")
    assert tuning.trials["base.learning_rate"].sel(algorithm="EXP3").values.tolist() == RATES
    assert tuning.trials["seeds"].sel(algorithm="UCB").values.tolist() == [[8, 0, 0]] * 2
    means = regret.mean("seed")
    rows = tuning.best[tuning.best.algorithm == "EXP3"]
    assert rows["epsilon"].tolist() == [1.0, 0.1]
    assert rows["base.learning_rate"].tolist() == means.idxmin("base.learning_rate").values.tolist()
    for row in rows.to_dict("records"):
        at, rate = {"epsilon": [row["epsilon"]]}, row["base.learning_rate"]
        grids = (at | {"base.learning_rate": [rate]}, at)
        again, default = (jb.sweep({"EXP3": BATCHED}, LOSSES, seeds=8, **plain, grid=grid) for grid in grids)
        reported = tuning.report.regret.sel(epsilon=row["epsilon"])
        np.testing.assert_array_equal(reported.sel(algorithm="EXP3"), again.regret.values.reshape(8, 2))
        np.testing.assert_array_equal(reported.sel(algorithm="EXP3 (default)"), default.regret.values.reshape(8, 2))
        chosen, own = again.regret.values[..., -1].ravel(), default.regret.values[..., -1].ravel()
        assert row["regret"] == pytest.approx(chosen.mean()) and row["default"] == pytest.approx(own.mean())
        assert row["gain"] == pytest.approx((own - chosen).mean())
        half = stats.t.ppf(0.975, 7) / np.sqrt(8)
        for interval, values in (("interval", chosen), ("gain_interval", own - chosen)):
            spread = half * values.std(ddof=1)
            assert row[interval] == pytest.approx((values.mean() - spread, values.mean() + spread))
        assert row["edge"] == (rate in (0.001, 5.0))
        assert tuning.report["base.learning_rate"].sel(algorithm="EXP3", epsilon=row["epsilon"]).item() == rate


def test_an_algorithm_without_a_key_is_reported_as_it_is_and_findings_are_printed():
    tuning = grid_tuning()
    rows = tuning.best[tuning.best.algorithm == "UCB"]
    assert rows["gain"].tolist() == [0.0, 0.0] and rows["base.learning_rate"].isna().all() and not rows["edge"].any()
    assert tuning.report.algorithm.values.tolist() == ["EXP3", "EXP3 (default)", "UCB"]
    assert '"UCB": ["epsilon"]' in tuning.report.attrs["constant_along"]
    text = repr(grid_tuning())
    assert "chosen on seeds 100 to 107, reported on seeds 0 to 7" in text
    assert "EXP3, epsilon = 0.1: base.learning_rate = " in text and "UCB, epsilon = 1: nothing to choose" in text


def test_what_it_gives_goes_into_a_sweep_and_into_a_file(tmp_path):
    tuning = grid_tuning()
    both = {"EXP3": BATCHED, "UCB": a.ucb1}
    ds = jb.sweep(both, LOSSES, grid=tuning.grid(), **SETTINGS_OF_SWEEP)
    assert ds.regret.dims == ("algorithm", "epsilon", "seed", "t")
    kept = tuning.report.regret.sel(algorithm=["EXP3", "UCB"])
    np.testing.assert_array_equal(ds.regret, kept)
    rates = tuning.best["base.learning_rate"][:2].tolist()
    assert ds["EXP3.base.learning_rate"].values.tolist() == rates  # a tied key is a coordinate
    rows = jb.summary(ds).set_index("algorithm")["EXP3.base.learning_rate"]
    assert rows["EXP3"].tolist() == rates and rows["UCB"].isna().all()  # UCB takes none
    np.testing.assert_array_equal(jb.sweep(both, LOSSES, points=tuning.points(), **SETTINGS_OF_SWEEP).regret, kept)
    file = tmp_path / "sweep.toml"
    file.write_text(
        'horizon = 60\nseeds = 8\nenvironment = {name = "fixed_gap_losses", num_arms = 3}\n'
        '[[algorithm]]\nname = "private_batched"\nlabel = "EXP3"\nbase = {name = "exp3", mixing = 0.05}\n'
        f'[[algorithm]]\nname = "ucb1"\nlabel = "UCB"\n{tuning.toml()}\n'
    )
    assert {key: [list(row) for row in rows] for key, rows in read_config(file)["grid"].items()} == tuning.grid()


def test_several_keys_of_over_are_points():
    tuning = jb.tune(
        {"EXP3": BATCHED}, LOSSES, over={"epsilon": [1.0, 0.1], "environment.gap": [0.1, 0.3]},
        space={"base.learning_rate": RATES}, **SETTINGS,
    )  # fmt: skip
    assert len(tuning.best) == 4 and tuning.best.columns[:3].tolist() == ["algorithm", "epsilon", "environment.gap"]
    assert tuning.toml().count("[[points]]") == 4
    with pytest.raises(ValueError, match=r"over has 2 keys.*points=tuning\.points"):
        tuning.grid()
    ds = jb.sweep({"EXP3": BATCHED}, LOSSES, points=tuning.points(), **SETTINGS_OF_SWEEP)
    kept = tuning.report.regret.sel(algorithm="EXP3").stack(point=["epsilon", "environment.gap"])
    np.testing.assert_array_equal(ds.regret[0], kept.transpose("point", "seed", "t"))


def test_named_values_static_arguments_and_tied_keys():
    ladder = {"short": 20, "long": 40}
    batched = {"batched": functools.partial(a.private_batched, epsilon=1.0, base=a.exp3)}
    space = {"window": ladder, ("base.learning_rate", "base.mixing"): [0.01, 0.1]}
    tuning = jb.tune(batched, LOSSES, space=space, **SETTINGS)
    assert set(tuning.best.columns[1:3]) == {"window", "base.learning_rate"}
    assert set(tuning.trials["window"].values.ravel()) == {"short", "long"}
    (point,) = tuning.points()
    assert point["batched.window"] == ladder[tuning.best["window"][0]]
    assert point["batched.base.learning_rate"] == point["batched.base.mixing"]
    ds = jb.sweep(batched, LOSSES, grid=tuning.grid(), **SETTINGS_OF_SWEEP)
    np.testing.assert_array_equal(ds.regret.values[0, 0], tuning.report.regret.sel(algorithm="batched"))


def test_a_required_argument_has_no_default():
    tuning = jb.tune("ldp_exp3", LOSSES, space={"epsilon": [0.1, 1.0]}, **SETTINGS)
    assert np.isnan(tuning.best["gain"][0]) and "no default to compare with" in repr(tuning)
    assert tuning.report.algorithm.values.tolist() == ["ldp_exp3"]


def family(**changes):
    environments = {str(gap): functools.partial(LOSSES, gap=gap) for gap in (0.1, 0.5)}
    given = {"over": {"epsilon": [1.0, 0.1]}, "space": {"base.learning_rate": RATES}} | SETTINGS | changes
    return jb.tune({"EXP3": BATCHED}, environments, **given)


@pytest.mark.parametrize(("objective", "reduced"), [("mean", np.mean), ("worst", np.max), ("quantile", None)])
def test_one_setting_for_a_family(objective, reduced):
    tuning = family(objective=objective, quantile=0.75)
    assert tuning.trials.regret.dims == ("algorithm", "epsilon", "trial", "environment", "seed")
    assert tuning.report.regret.dims == ("algorithm", "epsilon", "environment", "seed", "t")
    means = tuning.trials.regret.mean("seed").transpose("algorithm", "epsilon", "trial", "environment").values
    expected = np.quantile(means, 0.75, axis=-1) if reduced is None else reduced(means, -1)
    np.testing.assert_allclose(tuning.trials.objective, expected)
    assert tuning.best["base.learning_rate"].tolist() == [RATES[i] for i in expected[0].argmin(-1)]
    final = tuning.report.regret.isel(t=-1).sel(algorithm="EXP3").mean("seed").values
    regret = np.quantile(final, 0.75, axis=-1) if reduced is None else reduced(final, -1)
    np.testing.assert_allclose(tuning.best["regret"], regret)


def test_keys_that_the_tuner_may_not_see_are_a_family():
    tuning = jb.tune(
        {"EXP3": BATCHED}, LOSSES, over={"environment.gap": [0.1, 0.5], "epsilon": [1.0, 0.1]},
        unknown=["environment.gap"], space={"base.learning_rate": RATES}, objective="worst", **SETTINGS,
    )  # fmt: skip
    other = family(objective="worst")
    pd.testing.assert_frame_equal(tuning.best, other.best)
    np.testing.assert_array_equal(tuning.report.regret, other.report.regret)
    assert tuning.report.regret.dims == ("algorithm", "epsilon", "environment.gap", "seed", "t")


def test_quasi_random_settings_cover_the_space_and_are_repeated():
    names = Dimension("n", "values", values=("a", "b"))
    dimensions = (Dimension("x", "log", 0.01, 1.0), Dimension("k", "int", 1, 4), names)
    drawn = methods.random(dimensions, 32, 3)
    assert drawn == methods.random(dimensions, 32, 3) != methods.random(dimensions, 32, 4)
    assert sorted(int(np.log(s["x"] / 0.01) / np.log(100) * 32) for s in drawn) == list(range(32))  # one a cell
    assert [sum(s["k"] == k for s in drawn) for k in (1, 2, 3, 4)] == [8] * 4
    assert sum(s["n"] == "a" for s in drawn) == 16
    few = methods.random(dimensions[1:], 32, 0)
    assert len(few) == 8 and {(s["k"], s["n"]) for s in few} == {(k, n) for k in (1, 2, 3, 4) for n in "ab"}


def test_random_and_grid_agree_on_what_a_setting_costs():
    space = {"learning_rate": (0.01, 1.0, "log")}
    tuning = jb.tune("exp3", LOSSES, space=space, method="random", trials=4, seed=1, **SETTINGS)
    rates = tuning.trials["learning_rate"].values[0].tolist()
    drawn = methods.random([Dimension("learning_rate", "log", 0.01, 1.0)], 4, 1)
    assert rates == [setting["learning_rate"] for setting in drawn]
    listed = jb.tune("exp3", LOSSES, space={"learning_rate": rates}, **SETTINGS)
    np.testing.assert_array_equal(listed.trials.regret, tuning.trials.regret)
    assert listed.best["regret"].tolist() == tuning.best["regret"].tolist()


def test_halving_gives_more_seeds_to_the_better_half():
    asked = []

    def evaluate(settings, seeds):
        asked.append(({x: [len(at) for at in s] for x, s in settings.items()}, seeds))

        def regret(at, o):
            return [[[abs(s.get("v", 0) - o) + 0.01 * seed for seed in seeds]] for s in at]

        return {x: np.array([regret(at, o) for o, at in enumerate(of)]) for x, of in settings.items()}

    plan = methods.plan_trials("halving", {"A": [Dimension("v", "values", values=range(8))], "B": []}, None, 64, 0)
    assert plan.first == {"A": [{"v": v} for v in range(8)], "B": [{}]}
    tried = methods.halving(plan, evaluate, 2, range(100, 164), lambda r: r[..., 0, :])
    counts = (~np.isnan(tried.regret["A"][:, :, 0])).sum(-1)
    assert counts.tolist() == [[64, 32, 16, 16, 8, 8, 8, 8], [32, 64, 16, 16, 8, 8, 8, 8]]
    assert [(n, seeds) for n, seeds in asked if "B" in n] == [({"B": [1, 1]}, range(100, 164))]
    assert [n["A"][0] for n, _ in asked if "A" in n] == [8, 4, 2, 1]
    assert plan.lanes == sum(n[x][0] * len(seeds) for n, seeds in asked for x in n)


def test_a_stage_judges_by_all_seeds_so_far():
    table = np.repeat(0.1 * np.arange(1.0, 9)[:, None], 64, axis=1)
    table[5] = [-10.0] * 8 + [3.0] * 56  # means -10, -3.5 and -0.25, of the new seeds alone 3

    def evaluate(settings, seeds):
        return {"A": np.array([[[table[s["v"], seeds]] for s in at] for at in settings["A"]])}

    plan = methods.plan_trials("halving", {"A": [Dimension("v", "values", values=range(8))]}, None, 64, 0)
    tried = methods.halving(plan, evaluate, 1, range(64), lambda r: r[..., 0, :])
    assert (~np.isnan(tried.regret["A"][0, :, 0])).sum(-1).tolist() == [32, 16, 16, 8, 8, 64, 8, 8]


def test_halving_finds_what_a_grid_finds_on_a_clear_problem():
    given = {"over": {"epsilon": [1.0, 0.1]}, "space": {"EXP3.base.learning_rate": RATES}} | SETTINGS
    given |= {"seeds": range(100, 132)}
    halved = jb.tune({"EXP3": BATCHED}, LOSSES, method="halving", **given)
    whole = jb.tune({"EXP3": BATCHED}, LOSSES, **given)
    seeds = halved.trials["seeds"].values
    assert seeds.min() < 32 and (seeds.max(-1) == 32).all()
    run = ~np.isnan(halved.trials.regret.values)
    np.testing.assert_array_equal(halved.trials.regret.values[run], whole.trials.regret.values[run])


def test_optuna_learns_and_repeats():
    pytest.importorskip("optuna")
    given = SETTINGS | {"space": {"learning_rate": (0.001, 10.0, "log"), "mixing": [0.0, 0.05]}, "trials": 16}
    one, two = (jb.tune("exp3", LOSSES, method="optuna", **given) for _ in range(2))
    xr.testing.assert_identical(one.trials, two.trials)
    assert one.trials.sizes["trial"] == 16 and set(one.trials["mixing"].values.ravel()) <= {0.0, 0.05}

    def evaluate(settings, seeds):
        regret = lambda s: [[(np.log(s["v"]) - 1) ** 2] * 2]
        return {x: np.array([[regret(s) for s in at] for at in of]) for x, of in settings.items()}

    found = methods.by_optuna(
        {"A": [Dimension("v", "log", 0.01, 100.0)], "B": []},
        lambda s, seeds: evaluate({x: [[{"v": 1.0, **y} for y in at] for at in of] for x, of in s.items()}, seeds),
        2, range(2), lambda r: r[..., 0, :], 64, 0,
    )  # fmt: skip
    assert found.settings["B"] == [[{}], [{}]] and (found.regret["A"].min((1, 2, 3)) < 0.05).all()
    assert np.median(found.regret["A"][:, 32:]) < np.median(found.regret["A"][:, :8])


def test_the_best_setting_is_among_the_possible_ones_in_95_of_100():
    rng = np.random.default_rng(0)
    means, missed = np.array([0.0, 0.0, 0.0, 0.2, 3.0]), 0
    for _ in range(1000):
        possible = population.could_be_best(means[:, None] + rng.normal(size=(5, 20)))
        missed += not possible[0]
        assert not possible[4]
    assert missed / 1000 < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 1000)


def test_possible_settings_by_hand():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(4, 30)) + np.array([0.0, 0.3, 0.8, 2.0])[:, None]
    limit = stats.t.ppf(1 - 0.05 / 3, 29)
    worse = [any(stats.ttest_rel(values[i], values[j]).statistic > limit for j in range(4) if j != i) for i in range(4)]
    assert population.could_be_best(values).tolist() == [not x for x in worse] and any(worse) and not all(worse)
    assert population.could_be_best(np.array([[1.0, 1.0], [2.0, 2.0]])).tolist() == [True, False]  # without spread
    values[3, 8:] = np.nan  # stopped early: fewer seeds, and twice the tests
    assert population.could_be_best(values).tolist() == [True, *(population.could_be_best(values)[1:].tolist())]
    assert population.could_be_best(np.ones((1, 1))).tolist() == [True]


def test_settings_without_effect_cannot_be_told_apart():
    given = SETTINGS | {"space": {"bonus_scale": [1.0, 1.0000001, 30.0]}, "seeds": range(100, 164)}
    tuning = jb.tune("ucb1", e.bernoulli_arms(means=[0.2, 0.8]), **given)
    assert tuning.best[["bonus_scale", "undecided"]].values.tolist() == [[1.0, 1]]
    assert tuning.undecided[["trial", "bonus_scale", "difference"]].values.tolist() == [[2, 1.0000001, 0.0]]


def test_edges():
    for dimension, inside, ends in (
        (Dimension("x", "log", 0.01, 1.0), 0.1, (0.01, 1.0, 0.011)),
        (Dimension("x", "int", 1, 3), 2, (1, 3)),
        (Dimension("x", "values", values=(None, 3.0, 2.0, 1.0)), 2.0, (1.0, 3.0)),
        (Dimension("x", "values", values=("a", "b", 1.0)), "a", ()),
    ):
        assert not at_edge(dimension, inside) and all(at_edge(dimension, end) for end in ends)


def test_a_search_goes_on_from_its_store(tmp_path, monkeypatch):
    given = SETTINGS | {"over": {"epsilon": [1.0]}, "store": tmp_path, "method": "halving", "seeds": range(100, 116)}
    one = jb.tune({"EXP3": BATCHED}, LOSSES, space={"base.learning_rate": RATES[:2]}, **given)
    chunks = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert chunks
    monkeypatch.setattr(Local, "run", lambda *args, **kwargs: pytest.fail("computed again"), raising=True)
    two = jb.tune({"EXP3": BATCHED}, LOSSES, space={"base.learning_rate": RATES[:2]}, **given)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")} == chunks
    pd.testing.assert_frame_equal(one.best, two.best)
    xr.testing.assert_identical(one.report.drop_attrs(), two.report.drop_attrs())


def test_optuna_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ValueError, match=re.escape("pip install 'jaxbandits[tune]'")):
        jb.tune("exp3", LOSSES, space={"learning_rate": RATES}, method="optuna", **SETTINGS)


FILE = """
horizon = 60
seeds = 8
checkpoints = 2
[environment]
name = "fixed_gap_losses"
num_arms = 3
[[algorithm]]
name = "private_batched"
label = "EXP3"
base = { name = "exp3", mixing = 0.05 }
[[algorithm]]
name = "ucb1"
label = "UCB"
[grid]
epsilon = [1.0, 0.1]
[tune]
seeds = [100, 108]
[tune.space]
EXP3.base.learning_rate = [0.001, 0.1, 5.0]
"""


def test_a_file_is_tuned_and_its_choice_is_run(tmp_path, capsys):
    file, out = tmp_path / "rates.toml", tmp_path / "out"
    file.write_text(FILE)
    assert main(["tune", str(file), "--out", str(out), "--quiet"]) == 0
    said = capsys.readouterr().out
    assert repr(grid_tuning()) in said
    names = {"best.csv", "undecided.csv", "trials.nc", "report.nc", "chosen.toml", "response_base_learning_rate.png"}
    assert names <= {path.name for path in out.iterdir()} and all(name in said for name in names)
    assert pd.read_csv(out / "best.csv")["regret"].tolist() == grid_tuning().best["regret"].tolist()
    np.testing.assert_array_equal(jb.load(out / "report.nc").regret, grid_tuning().report.regret)
    np.testing.assert_array_equal(jb.load(out / "trials.nc").regret, grid_tuning().trials.regret)
    chosen = file.with_name("chosen.toml")
    chosen.write_text(FILE.replace("[grid]\nepsilon = [1.0, 0.1]", (out / "chosen.toml").read_text()))
    assert main(["run", str(chosen), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    kept = grid_tuning().report.regret.sel(algorithm=["EXP3", "UCB"])
    np.testing.assert_array_equal(jb.load(tmp_path / "run").regret, kept)


def test_a_file_says_ranges_families_and_over(tmp_path):
    file = tmp_path / "rates.toml"
    more = '[tune.over]\nepsilon = [0.5]\n[tune.environments.easy]\nname = "fixed_gap_losses"\nnum_arms = 2\n'
    file.write_text(FILE.replace("[0.001, 0.1, 5.0]", '[0.001, 5.0, "log"]').replace("[100, 108]", "32") + more)
    given = read_tuning(file)
    assert given["space"] == {"EXP3.base.learning_rate": (0.001, 5.0, "log")} and given["over"] == {"epsilon": [0.5]}
    assert read_tuning(file, 4)["report_seeds"] == 4
    file.write_text(FILE)
    assert read_tuning(file)["report_seeds"] == range(8)  # the seeds that `run` plays: they meet no others
    assert given["seeds"] == range(32) and given["report_seeds"] == 8 and list(given["environment"]) == ["easy"]


SPACE = "[tune.space]\nEXP3.base.learning_rate = [0.001, 0.1, 5.0]"


def test_a_wrong_file_is_one_line(tmp_path, capsys):
    file = tmp_path / "rates.toml"
    for old, new, message in (
        (f"[tune]\nseeds = [100, 108]\n{SPACE}", "", "'tune' is missing"),
        (SPACE, "", "needs a table [tune.space]"),
        ("[tune]\n", "[tune]\ntrails = 3\n", "no key 'trails' (did you mean 'trials'?)"),
        ("learning_rate", "learning_rte", "'EXP3.base.learning_rte'"),
        ("[100, 108]", "[5, 108]\nreport_seeds = [0, 8]", "meets seeds"),
        ("[0.001, 0.1, 5.0]", "0.1", "tune.space.EXP3.base.learning_rate = 0.1 must be a list"),
    ):
        assert old in FILE
        file.write_text(FILE.replace(old, new))
        assert main(["tune", str(file), "--out", str(tmp_path / "out"), "--quiet"]) == 2
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1 and not (tmp_path / "out").exists()
    file.write_text(FILE.replace("[100, 108]", "[8, 16]"))
    assert read_tuning(file)["report_seeds"] == range(8)  # as `run` has them, which meet no others


def test_pictures_of_a_tuning(tmp_path):
    tuning = grid_tuning()
    drawn = jb.plot.response(tuning, "base.learning_rate", path=tmp_path / "response.png")
    assert len(drawn.figure.axes) == 2 and not jb.plot.overlaps(drawn.figure)
    assert drawn.figure.axes[0].get_title() == r"privacy level $\varepsilon$ = 1"
    assert drawn.data["chosen"].sum() == 2 and len(drawn.data) == 6 and (tmp_path / "response.png").exists()
    one = drawn.data[drawn.data["epsilon"] == 1.0].set_index("base.learning_rate")
    assert one["centre"].idxmin() == tuning.best.loc[0, "base.learning_rate"] == one.index[one["chosen"]].item()
    with pytest.raises(ValueError, match="fix one, such as"):
        jb.plot.parallel(tuning)
    lines = jb.plot.parallel(tuning, "EXP3", select={"epsilon": 1.0})
    assert lines.data["chosen"].tolist() == [True, False, False] and not jb.plot.overlaps(lines.figure)
    with pytest.raises(ValueError, match="algorithm = 'UCB'"):
        jb.plot.parallel(tuning, "UCB")


def test_importance_is_the_share_of_variance_that_a_key_explains():
    space = {"index_scale": [50.0, 3.0, 0.01], "epsilon": [1.0, 1.0001]}
    tuning = jb.tune("adap_ucb", e.bernoulli_arms(means=[0.2, 0.8]), space=space, **SETTINGS)
    drawn = jb.plot.importance(tuning)
    shares = drawn.data.set_index("key")["share"]
    assert shares["index_scale"] > 0.9 and shares["epsilon"] < 0.05 and not jb.plot.overlaps(drawn.figure)
    assert not drawn.figure.legends  # one algorithm is named below
    assert f"{shares['index_scale']:.0%}" in [text.get_text() for text in drawn.figure.axes[0].texts]
    # sums of squares: 28 in all and 12 inside of three pairs, whose mean is 4: (28 - 12 - 2 * 4) / 28
    values = pd.Series([1, 1, 2, 2, 3, 3]), np.array([1.0, 3, 2, 6, 5, 7])
    assert tuning_plots._variance_share(*values) == pytest.approx(2 / 7)
    # each value at the best of its trials, which is not the first
    means, keys = (x.isel(algorithm=0) for x in (tuning.trials.regret.mean("seed"), tuning.trials["epsilon"]))
    found = [means.values[keys.values == x] for x in (1.0, 1.0001)]
    assert found[0].min() < found[0][0]
    np.testing.assert_allclose(jb.plot.response(tuning, "epsilon").data["centre"], [x.min() for x in found])
    assert jb.plot.parallel(tuning).data.columns.tolist() == ["trial", "index_scale", "epsilon", "objective", "chosen"]


def test_importance_is_that_within_a_point_of_over(monkeypatch):
    rows = {"algorithm": "a", "rate": [1, 1, 2, 2, 3, 3], "untuned": False}  # 2 / 7 of the variance, as above
    frame = [
        pd.DataFrame(rows | {"epsilon": x, "objective": np.array([1.0, 3, 2, 6, 5, 7]) + 1000 * x}) for x in (0.1, 1.0)
    ]
    monkeypatch.setattr(tuning_plots, "_frame", lambda tuning: pd.concat(frame))
    tuning = SimpleNamespace(best=SimpleNamespace(attrs={"over": ["epsilon"], "chosen": ["rate"]}))
    assert jb.plot.importance(tuning).data["share"].tolist() == pytest.approx([2 / 7])


@pytest.mark.compiles(20)
def test_adversaries_and_dtype_reach_search_and_report():
    huber = functools.partial(jb.adversaries.huber, corruption=0.2)
    more = {"dtype": "float64", "reward_adversary": functools.partial(huber, value=0.0), "message_adversary": huber}
    world = e.sinusoid_losses(num_arms=3, period=7)  # whose regret is no count
    tuning = jb.tune("exp3", world, space={"learning_rate": RATES}, **more, **SETTINGS)
    plain = {"horizon": 60, "progress": False, "checkpoints": 2} | more
    tried = jb.sweep("exp3", world, grid={"learning_rate": RATES}, seeds=range(100, 108), **plain)
    np.testing.assert_array_equal(tuning.trials.regret[0], tried.regret.isel(algorithm=0, t=-1))
    own = jb.sweep("exp3", world, seeds=8, **plain)
    np.testing.assert_array_equal(tuning.report.regret.sel(algorithm="exp3 (default)"), own.regret[0])


@pytest.mark.compiles(20)
def test_a_key_of_over_that_names_a_label_reaches_its_own_values_too():
    tuning = jb.tune({"X": a.exp3}, LOSSES, over={"X.mixing": [0.05, 0.5]}, space={"learning_rate": RATES}, **SETTINGS)
    for mixing in (0.05, 0.5):
        own = jb.sweep(functools.partial(a.exp3, mixing=mixing), LOSSES, **SETTINGS_OF_SWEEP)
        at = {"algorithm": "X (default)", "X.mixing": mixing}
        np.testing.assert_array_equal(tuning.report.regret.sel(at), own.regret[0])


def test_a_count_of_report_seeds_begins_after_the_seeds_that_are_searched():
    rows = (8, 4, range(8, 12)), (range(100, 108), 4, range(108, 112)), ([3, 4], np.int64(2), range(5, 7))
    for seeds, report_seeds, reported in rows:
        assert disjoint(seeds, report_seeds, "the setting")[1] == reported
        assert disjoint(seeds, range(20, 24), "the setting")[1] == range(20, 24)

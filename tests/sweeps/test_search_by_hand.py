"""The pieces of searches on the host, by hand: spaces, plans, objectives, what may be best, tables and words."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from jaxbandits.searching import methods, population, tuning, worst_attack
from jaxbandits.searching.methods import SearchPlan, Tried
from jaxbandits.searching.population import Problem, disjoint
from jaxbandits.searching.space import Dimension, coordinate_of, dimensions_of, value_at
from jaxbandits.sweeps.grid import axes_of

NAN, INF = math.nan, math.inf
X, N = Dimension("x", "log", 0.1, 10.0), Dimension("n", "int", -1, 2)
KIND = Dimension("kind", "values", values=("a", "b", "c"), labels=("a", "b", "c"))


@pytest.mark.parametrize(("given", "told"), [
    ([], "^space = .* must be a dict that is not empty, {key: [(]low, high[)]"),
    ({}, "must be a dict that is not empty"),
    ({"x": 3}, r"^space\['x'\] = 3 must be \(low, high\), \(low, high, kind\) or a list of values$"),
    ({"x": (1.0,)}, "must be .low, high."), ({"x": (1.0, 2.0, "log", 3)}, "must be .low, high."),
    ({"x": ("a", "b")}, "must be .low, high."), ({"x": np.ones((2, 2))}, "must be .low, high."),
    ({"x": (1.0, 2.0, 3.0)}, r"must be \(low, high, kind\): values to choose from are a list, \[...\]$"),
    ({"x": (1.0, 2.0, "lin")}, r"^space\['x'\]: the kind = 'lin' must be one of 'linear', 'log', 'int'"),
    ({"x": (1, 2.5, "int")}, r"^space\['x'\]\[1\] = 2.5 must be an integer"),
    ({"x": (0.5, 2, "int")}, r"^space\['x'\]\[0\] = 0.5 must be an integer"),
    ({"x": (NAN, 2.0)}, r"^space\['x'\]\[0\] = nan must be"), ({"x": (1.0, INF)}, r"^space\['x'\]\[1\] = inf must be"),
    ({"x": (2.0, 2.0)}, r"must have low < high: a single value is a list, \[2.0\]$"),
    ({"x": (0.0, 2.0, "log")}, r"must have low above 0 for 'log': raise low, or use 'linear'$"),
    ({"x": []}, r"^space\['x'\] is empty: give at least one value$"),
    ({"x": [[1.0], 2.0]}, r"^space\['x'\] holds arrays: name them, for example"), ({"x": [(1,)]}, "holds arrays"),
    ({"x": [1, 2, 1.0]}, r"^space\['x'\] holds a value twice: \[1, 2, 1.0\]$"),
])  # fmt: skip
def test_wrong_spaces(given, told):
    with pytest.raises(ValueError, match=told):
        dimensions_of(given)


def test_coordinates_and_values():
    made = dimensions_of({"x": (0.5, 2), "r": range(2, 5), "a": np.array([1.5, 2.5]), "m": {"one": [1], "two": [2]}})
    assert made[0] == Dimension("x", "linear", 0.5, 2) and made[1] == Dimension(
        "r", "values", values=(2, 3, 4), labels=(2, 3, 4)
    )
    assert made[2].values == (1.5, 2.5) and type(made[2].values[0]) is float
    assert (made[3].values, made[3].labels) == (([1], [2]), ("one", "two"))
    assert [value_at(N, x) for x in (0.0, 0.2499, 0.25, 0.5, 0.75, 0.9999, 1.0)] == [-1, -1, 0, 1, 2, 2, 2]
    assert [coordinate_of(N, x) for x in (-1, 0, 1, 2)] == [0.125, 0.375, 0.625, 0.875]
    assert [value_at(X, x) for x in (0.0, 0.25, 1.0)] == pytest.approx([0.1, math.sqrt(0.1), 10.0], rel=1e-12)
    assert [value_at(made[0], x) for x in (0.0, 0.25, 1.0)] == [0.5, 0.875, 2] and coordinate_of(made[0], 0.875) == 0.25
    assert [coordinate_of(X, x) for x in (0.1, 1.0, 10.0)] == pytest.approx([0.0, 0.5, 1.0])
    assert (value_at(KIND, 1.9), coordinate_of(KIND, "c")) == ("b", 2.0)
    odd = Dimension("x", "log", 0.3, 0.7)
    assert all(0.3 <= value_at(odd, x) <= 0.7 for x in (1e-17, 1 - 1e-16))
    for dimension, value in ((X, 10.1), (X, 0.09), (N, 0.5), (N, 3), (made[0], 0.4)):
        with pytest.raises(ValueError, match=f"{dimension.key}'.: the value = "):
            coordinate_of(dimension, value)


def test_plans():
    """Stages begin with eight seeds at least and double; half of the settings go on, rounded up."""
    assert methods._stages(8, 64) == [(0, 8), (8, 16), (16, 32), (32, 64)]
    assert methods._stages(100, 100) == [(0, 13), (13, 25), (25, 50), (50, 100)]
    assert methods._stages(3, 64) == [(0, 32), (32, 64)] and methods._stages(1, 64) == [(0, 64)]
    assert methods._stages(64, 15) == [(0, 15)] and methods._stages(64, 16) == [(0, 8), (8, 16)]
    lists, ranges = {"A": [KIND], "B": []}, {"A": [X, KIND], "B": []}
    plan = methods.plan_trials
    optuna = SearchPlan({"A": [{"x": 0.1, "kind": "a"}, {"x": 10.0, "kind": "c"}], "B": [{}, {}]}, {}, 21 * 10)
    assert plan("optuna", ranges, 20, 10, 0) == optuna and plan("optuna", ranges, None, 10, 0).lanes == 65 * 10
    listed = SearchPlan(
        {"A": [{"kind": x} for x in "abc"], "B": [{}]}, {"A": [(0, 16), (16, 32)], "B": [(0, 32)]}, 3 * 16 + 2 * 16 + 32
    )
    assert plan("halving", lists, None, 32, 0) == listed
    whole = {"A": [(0, 32)], "B": [(0, 32)]}
    assert plan("grid", lists, None, 32, 0) == SearchPlan(listed.first, whole, 4 * 32)
    drawn = plan("random", ranges, None, 8, 5)
    assert drawn.first == {"A": methods.random([X, KIND], 64, 5), "B": [{}]} and drawn.lanes == 65 * 8
    assert plan("halving", ranges, None, 8, 5).first == drawn.first != plan("halving", ranges, None, 8, 6).first
    many = {"A": [Dimension("k", "values", values=tuple(range(70)))]}  # more than are tried without a number
    numbers = [len(plan(*given, 8, 0).first["A"]) for given in (("random", many, None), ("halving", many, None))]
    assert numbers == [64, 70] and len(plan("halving", many, 64, 8, 0).first["A"]) == 64
    five = plan("halving", {"A": [Dimension("k", "values", values=tuple(range(5)))]}, None, 32, 0)
    tried = methods.halving(
        five, lambda settings, seeds: {"A": np.array([[[[s["k"]] * len(seeds)] for s in settings["A"][0]]])}, 1,
        range(32), lambda r: r[..., 0, :],
    )  # fmt: skip
    assert (~np.isnan(tried.regret["A"][0, :, 0])).sum(-1).tolist() == [32, 32, 16, 8, 8]
    assert len(plan("halving", lists, 2, 8, 0).first["A"]) == 2  # quasi-random, as a number is given


def test_grids():
    assert methods.grid([X, KIND], None) == [{"x": x, "kind": k} for x in value_of(X, 9) for k in "abc"]
    assert [len(methods.grid([X, N, KIND], trials)) for trials in (12, 26, 27, 47, 48)] == [12, 12, 27, 27, 48]
    assert [len(methods.grid([X], trials)) for trials in (2, 64)] == [2, 64] and methods.grid([], 1) == [{}]
    cube = [Dimension(key, "linear") for key in "xyz"]  # 64^(1/3) is 3.9999999999999996 in floating point
    assert [len(methods.grid(cube, trials)) for trials in (63, 64, 125)] == [27, 64, 125]
    assert methods.grid([N], 9) == [{"n": n} for n in (-1, 0, 1, 2)] and len(methods.grid([KIND], 3)) == 3
    for dimensions, trials, least in (([X, N, KIND], 11, 12), ([KIND], 2, 3), ([X], 1, 2)):
        with pytest.raises(
            ValueError, match=f"^trials = {trials} is too few for a grid of {least} settings: give more, or"
        ):
            methods.grid(dimensions, trials)
    assert methods.random([N, KIND], 12, 0) == [{"n": n, "kind": k} for n in (-1, 0, 1, 2) for k in "abc"]
    assert len(methods.random([N, KIND], 11, 0)) == 11 and len(methods.random([X], 1, 0)) == 1


def value_of(dimension, number):
    return [value_at(dimension, x) for x in np.linspace(0, 1, number)]


def test_a_generation_learns_from_its_elite():
    """A quarter of a generation, NaN last; what is asked for is what is told about."""
    search = methods.CrossEntropy([X, KIND], 128, (0.5, 1.0), seed=3)
    assert search.size == 16 and methods.CrossEntropy([X], 137, None).size == 18
    points = search.ask(16)
    assert points[0] == {"x": pytest.approx(1.0), "kind": "b"} and len(points) == 16
    costs = np.arange(16.0)[::-1].copy()
    costs[15], costs[3] = NAN, -INF
    search.tell(costs)
    elite = search.coordinates[[3, 14, 13, 12]]
    want = methods.fit_distribution([X, KIND], elite, None)
    np.testing.assert_array_equal(search.distribution.mean, want.mean)
    np.testing.assert_array_equal(search.distribution.shares[1], want.shares[1])
    assert len(search.ask(5)) == 5
    search.tell(np.arange(5.0))
    again = methods.fit_distribution([X, KIND], search.coordinates[:4], want)
    np.testing.assert_array_equal(search.distribution.spread, again.spread)
    wide = methods.Distribution(np.array([0.0, 1.0]), np.array([5.0, 5.0]), (np.zeros(0),) * 2)
    drawn = methods.next_generation(wide, 400, np.random.default_rng(0))
    assert (drawn.min(), drawn.max()) == (0.0, 1.0) and np.all(((drawn > 0) & (drawn < 1)).any(0))
    narrow = methods.next_generation(
        wide._replace(mean=np.full(2, 0.4), spread=np.array([0.01, 0.02])), 4000, np.random.default_rng(0)
    )
    assert narrow.mean(0) == pytest.approx([0.4, 0.4], abs=2e-3) and narrow.std(0) == pytest.approx(
        [0.01, 0.02], rel=0.05
    )


def test_laws_of_optuna():
    kinds = pytest.importorskip("optuna").distributions
    import optuna

    law = lambda d: methods._law(optuna, d)
    listed = lambda *values: Dimension("x", "values", values=values)
    assert law(N) == kinds.IntDistribution(-1, 2) and law(X) == kinds.FloatDistribution(0.1, 10.0, log=True)
    assert law(Dimension("x", "linear", 0.5, 2.0)) == kinds.FloatDistribution(0.5, 2.0)
    assert law(listed(1, 2.5, 3)) == kinds.IntDistribution(0, 2)
    for values in ((3, 1), ("a", "b"), (False, True), (1, "b")):
        assert law(listed(*values)) == kinds.CategoricalDistribution(range(2))
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    proposer = methods._Optuna(study, [X, KIND], {"x": law(X), "kind": law(KIND)}, [])
    asked = proposer.ask(3)
    proposer.tell(np.array([2.0, INF, 1.0]))
    assert [trial.value for trial in study.trials] == [2.0, np.finfo(float).max, 1.0]
    assert [s["kind"] for s in asked] == ["abc"[trial.params["kind"]] for trial in study.trials]
    assert [s["x"] for s in asked] == [trial.params["x"] for trial in study.trials]


def test_a_search_by_optuna_is_silent_and_each_point_has_draws_of_its_own():
    optuna = pytest.importorskip("optuna")
    before, levels = optuna.logging.get_verbosity(), []

    def evaluate(settings, seeds):
        levels.append(optuna.logging.get_verbosity())
        return {label: np.zeros((2, len(of_label[0]), 1, 2)) for label, of_label in settings.items()}

    drawn, space = [], {"B": [], "A": [X]}
    sampler = lambda seed: drawn.append(seed) or optuna.samplers.RandomSampler(seed=seed)
    found = methods.by_optuna(space, evaluate, 2, range(2), lambda r: r[..., 0, :], None, 3, sampler)
    assert drawn == [3, 4]
    assert levels == [optuna.logging.WARNING] * 8 + [before] and optuna.logging.get_verbosity() == before
    assert list(found.settings) == list(found.regret) == ["B", "A"] and found.settings["B"] == [[{}], [{}]]
    one, other = found.settings["A"]
    assert len(one) == len(other) == 64 and one != other and found.regret["A"].shape == (2, 64, 1, 2)


def test_trials_at_points_and_on_problems_of_their_own():
    x = (Dimension("x", "linear"),)
    problem = Problem({}, {"": None}, {"B": (), "A": x}, {}, axes_of({"eps": [0.5, 2.0]}, None, 1), [], {})
    settings = {"B": [[{}], [{}]], "A": [[{"x": 0.1}, {"x": 0.2}], [{"x": 0.3}, {"x": 0.4}]]}
    tried = Tried(settings, {"B": np.zeros((2, 1, 1, 4)), "A": np.zeros((2, 2, 1, 4))})
    found = tuning.trials_dataset(problem, tried, lambda r: r[..., 0, :], range(4), {})["x"]
    assert found.sel(algorithm="A").values.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    problem = Problem({}, {"u": None, "v": None}, {"A": ()}, {}, [], axes_of({"gap": [0.1, 0.2]}, None, 1), {})
    tried = Tried({"A": [[{}]]}, {"A": np.arange(12.0).reshape(1, 1, 4, 3)})  # u at both gaps, then v
    found = tuning.trials_dataset(problem, tried, lambda r: r.mean(-2), range(3), {}).regret
    assert found.sel(algorithm="A", trial=1, environment="v", gap=0.1).values.tolist() == [6, 7, 8]
    found = tuning.trials_dataset(problem, tried, lambda r: r.mean(-2), range(3), {})
    assert found["seeds"].values.tolist() == [[3]]  # of seeds, not of seeds and problems


def test_objectives_over_a_family():
    regret = np.random.default_rng(0).normal(size=(2, 4, 9)) + np.array([3.0, 0.0, 2.0, 1.0])[:, None]
    means = regret.mean(-1)
    for objective, q, want in (
        ("mean", 0.9, means.mean(-1)), ("worst", 0.1, means.max(-1)),
        ("quantile", 0.8, np.quantile(means, 0.8, axis=-1)),
        ("quantile", 0.1, np.quantile(means, 0.1, axis=-1)), ("quantile", 0.0, means.min(-1)),
        ("quantile", 1.0, means.max(-1)), ("quantile", 2 / 3, np.quantile(means, 2 / 3, axis=-1)),
    ):  # fmt: skip
        found = population.over_family(regret, objective, q)
        assert found.shape == (2, 9)
        np.testing.assert_allclose(found.mean(-1), want, rtol=1e-12)
    np.testing.assert_array_equal(population.over_family(regret[:, :1], "worst", 0.5), regret[:, 0])
    stopped = np.array([[1.0, 5.0, NAN], [4.0, NAN, NAN], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(population.over_family(stopped, "quantile", 0.5), stopped[1])
    values = np.array([[1.0, 2.0, NAN], [NAN] * 3, [1.0, INF, 2.0], [1.0, -INF, 3.0], [4.0, 0.0, 5.0]])
    assert population.means_of(values).tolist() == [1.5, INF, INF, INF, 3.0]


def literally_possible(values):
    """Every pair, at every number of seeds at which some stopped: a one-sided paired t test at 5% over all tests."""
    run = (~np.isnan(values)).sum(-1)
    stops, possible = sorted({int(x) for x in run if x}), [True] * len(values)
    for stop in stops:
        for i in range(len(values)):
            for j in range(len(values)):
                if i != j and stop > 1 and min(run[i], run[j]) >= stop:
                    test = stats.ttest_rel(values[i, :stop], values[j, :stop], alternative="greater")
                    possible[i] &= not test.pvalue < 0.05 / ((len(values) - 1) * len(stops))
    return possible


def test_what_may_be_best_is_what_no_test_finds_worse():
    seen = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(4, 24)) + np.linspace(0, 1.5, 4)[:, None]
        values[2, 8:], values[3, 4 * (seed % 2 + 1) :] = NAN, NAN
        possible = population.could_be_best(values).tolist()
        assert possible == literally_possible(values)
        seen.add(tuple(possible))
    assert len(seen) > 4
    values[:, 1:] = NAN  # one seed shows nothing, and no seed nothing either
    assert population.could_be_best(values).all() and population.could_be_best(np.full((2, 3), NAN)).all()


def test_seeds_that_meet():
    assert disjoint(range(10, 20), range(20, 30), "x") == (range(10, 20), range(20, 30))
    assert disjoint(range(10, 20), range(0, 10), "x")[1] == range(10)
    for reported in (range(19, 30), range(0, 11), range(12, 14), range(5, 25)):
        told = (
            rf"^report_seeds = range\({reported.start}, {reported.stop}\) meets seeds = range\(10, 20\), on which the "
        )
        told += rf"attack is chosen: report on others, such as range\(20, {20 + len(reported)}\)$"
        with pytest.raises(ValueError, match=told):
            disjoint(range(10, 20), reported, "the attack")
    with pytest.raises(ValueError, match=r"^report_seeds = "):
        disjoint(range(10, 20), -1, "x")


def by_hand():
    """Two algorithms at two points: "A" has two keys, of which a list has names, "B" none."""
    named = Dimension("kind", "values", values=([1], [2], [3]), labels=("p", "q", "r"))
    dimensions = {"A": (Dimension("x", "linear", 0.0, 1.0), named), "B": ()}
    problem = Problem({}, {"": None}, dimensions, {("A", "x"): ("y",)}, axes_of({"eps": [0.5, 2.0]}, None, 1), [], {})
    of_a = [{"x": 0.02, "kind": [1]}, {"x": 0.5, "kind": [2]}, {"x": 0.6, "kind": [3]}]
    regret = np.array([
        [[5.0, 6.0, 7.0, 6.0], [1.0, 3.0, 2.0, 2.0], [1.5, 2.5, 2.0, 3.0]],
        [[1.0, 2.0, 1.0, 2.0], [9.0, 8.0, 9.0, 9.5], [0.1, 0.1, NAN, NAN]],
    ])[:, :, None]  # fmt: skip
    tried = Tried({"A": [of_a, of_a], "B": [[{}], [{}]]}, {"A": regret, "B": np.arange(8.0).reshape(2, 1, 1, 4)})
    judge = lambda r: r[..., 0, :]
    return problem, tried, judge, tuning.choices(tried, judge)


def test_tables_of_a_tuning():
    problem, tried, judge, chosen = by_hand()
    # the setting of least mean that all seeds ran: at the second point the last one stopped early
    assert [(one.trial, one.objective) for one in chosen["A"]] == [(1, 2.0), (0, 1.5)]
    assert [one.possible.tolist() for one in chosen["A"]] == [[False, True, True], [True, False, True]]
    regret = {"A": np.array([[3.0, 5.0], [4.0, 8.0]]), "B": np.array([[1.0, 1.0], [2.0, 4.0]])}
    defaults = {"A": np.array([[4.0, 9.0], [1.0, 3.0]])}
    best = tuning.best_table(problem, chosen, regret, defaults)
    columns = [
        "algorithm",
        "eps",
        "x",
        "kind",
        "regret",
        "interval",
        "default",
        "gain",
        "gain_interval",
        "undecided",
        "edge",
    ]
    assert list(best) == columns
    t = stats.t.ppf(0.975, 1)  # of two seeds: half their distance times this
    ends = lambda mean, half: pytest.approx((mean - half * t, mean + half * t))
    wanted = [
        ("A", 0.5, 0.5, "q", 4.0, ends(4.0, 1.0), 6.5, 2.5, ends(2.5, 1.5), 1, False),
        ("A", 2.0, 0.02, "p", 6.0, ends(6.0, 2.0), 2.0, -4.0, ends(-4.0, 1.0), 1, True),
    ]
    assert [tuple(row) for row in best[:2].itertuples(index=False)] == wanted
    assert best[2:][["algorithm", "eps", "regret", "undecided", "edge"]].values.tolist() == [
        ["B", 0.5, 1.0, 0, False], ["B", 2.0, 3.0, 0, False],
    ]  # fmt: skip
    assert best[2:][["x", "kind", "default", "gain"]].isna().all(axis=None)
    points = [
        {"eps": 0.5, "A.x": 0.5, "A.y": 0.5, "A.kind": [2]},
        {"eps": 2.0, "A.x": 0.02, "A.y": 0.02, "A.kind": [1]},
    ]
    assert best.attrs == {"over": {"eps": [0.5, 2.0]}, "chosen": ["x", "kind"], "points": points}
    others = tuning.table_of_undecided(problem, tried, chosen, judge)
    assert others.values.tolist() == [
        ["A", 0.5, 3, 0.6, "r", 2.25, 0.25],
        ["A", 2.0, 3, 0.6, "r", 0.1, pytest.approx(-1.4)],
    ]
    assert list(others) == ["algorithm", "eps", "trial", "x", "kind", "regret", "difference"]
    about = {"method": "grid", "objective": "mean", "horizon": 9}
    trials = tuning.trials_dataset(problem, tried, judge, range(20, 24), about)
    assert trials.regret.dims == ("algorithm", "eps", "trial", "seed") and trials["trial"].values.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(trials.regret[0], tried.regret["A"][:, :, 0])
    np.testing.assert_array_equal(trials.regret[1, :, 0], tried.regret["B"][:, 0, 0])
    assert trials["seeds"].values.tolist() == [[[4, 4, 4], [4, 4, 2]], [[4, 0, 0]] * 2]
    np.testing.assert_allclose(trials.objective[0], [[6.0, 2.0, 2.25], [1.5, 8.875, 0.1]])
    assert trials["kind"].values.tolist() == [["p", "q", "r"], ["", "", ""]] and np.isnan(trials["x"].values[1]).all()
    report = xr.Dataset(coords={"seed": [1, 2]})
    text = repr(tuning.Tuning(best, trials, report, others))
    told = "Tuning: grid, mean regret at horizon 9; chosen on seeds 20 to 23, reported on seeds 1 to 2\n"
    told += "  A, eps = 0.5: x = 0.5, kind = q: regret 4 [-8.7062, 16.7062]\n"
    told += "    default 6.5, gain 2.5 [-16.5593, 21.5593]; 1 other cannot be told apart\n"
    told += "  A, eps = 2: x = 0.02, kind = p: regret 6 [-19.4124, 31.4124]\n"
    told += (
        "    default 2, gain -4 [-16.7062, 8.7062]; 1 other cannot be told apart; AT AN EDGE of the space: widen it\n"
    )
    told += "  B, eps = 0.5: nothing to choose: regret 1 [1, 1]\n"
    told += "  B, eps = 2: nothing to choose: regret 3 [-9.7062, 15.7062]"
    assert text == told
    for number, words in ((0, "told apart from all others"), (2, "2 others cannot be told apart")):
        assert f"; {words}" in repr(tuning.Tuning(best.assign(undecided=number), trials, report, others))
    bare = best.assign(default=NAN)
    bare.attrs = best.attrs
    assert "    no default to compare with; 1 other" in repr(tuning.Tuning(bare, trials, report, others))
    found = tuning.Tuning(best, trials, report, others)
    rows = {0.5: (0.5, 0.5, 0.5, [2]), 2.0: (2.0, 0.02, 0.02, [1])}
    assert found.grid() == {("eps", "A.x", "A.y", "A.kind"): rows} and found.points() == points


def test_edges_of_ranges():
    linear = Dimension("x", "linear", 0.0, 2.0)
    assert [tuning.at_edge(linear, x) for x in (0.1, 0.101, 1.899, 1.9)] == [True, False, False, True]
    wide = Dimension("n", "int", 0, 99)
    assert [tuning.at_edge(wide, x) for x in (0, 4, 5, 94, 95, 99)] == [True, True, False, False, True, True]


def test_points_that_share_a_program_are_as_many_as_a_power_of_two(monkeypatch):
    asked = []

    def evaluate(problem, settings, seeds, store):
        ((label, (points,)),) = settings.items()
        asked.append(points)
        return {label: np.array([[[[p["v"] + seed for seed in seeds]] for p in points]])}

    monkeypatch.setattr(worst_attack, "evaluate", evaluate)
    points = [{"kind": k, "v": v} for v, k in enumerate("abaaacbaa")]
    found = worst_attack._in_few_sizes(None, {"x": [points]}, range(2), None)["x"]
    assert found[0, :, 0].tolist() == [[v, v + 1] for v in range(9)]
    (order,) = asked
    assert [p["v"] for p in order] == [0, 2, 3, 4, 7, 8, 0, 0, 1, 6, 5]


def test_the_words_of_a_worst_case():
    about = {"algorithm": "UCB", "adversary": "huber", "slot": "reward", "horizon": 50, "command": "again()"}
    trials = xr.Dataset(
        {"search_value": ("trial", [1.5, 4.25, 2.0])}, {"seed": [3, 4, 5], "report_seed": [8, 9]}, about
    )
    case = worst_attack.WorstCase({"value": 2.5, "kind": "fixed"}, 3.125, (2.5, 3.75), trials)
    told = "WorstCase: UCB under huber on rewards, horizon 50\n  attack found: value = 2.5, kind = 'fixed'\n"
    told += "  regret: 3.125, 95% interval [2.5, 3.75], on report seeds 8 to 9; that of the worst attack is no less\n"
    told += (
        "  search value (biased upwards): 4.25, the largest of 3 trials on seeds 3 to 5; trial 1, the adversary's own "
    )
    assert repr(case) == told + "values: 1.5\n  again: again()"
    assert "  search value: 1.5, of the only trial on seeds" in repr(case._replace(trials=trials.isel(trial=[0])))


def test_shares_that_are_held_above_zero_add_up_to_one():
    old = methods.Distribution(np.zeros(1), np.ones(1), (np.array([1.0, 0.0, 0.0]),))
    found = methods.fit_distribution([Dimension("k", "values", values=(5, 6, 7))], np.zeros((4, 1)), old)
    least = methods.LEAST_SPREAD
    np.testing.assert_allclose(found.shares[0], np.array([1, least, least]) / (1 + 2 * least), rtol=1e-12)


def test_a_key_belongs_to_the_longest_label_that_it_begins_with():
    for labels in (["exp3", "exp3.fast"], ["exp3.fast", "exp3"]):
        found = [population.owner_of(key, labels) for key in ("exp3.fast.mixing", "exp3.mixing", "exp3", "exp33.x")]
        assert found == ["exp3.fast", "exp3", None, None]


def test_environments_of_any_name_are_kept_beside_each_other():
    home, names = Path("s"), ["a/b", "a%2Fb", ".", "..", "...", "a.b", "%2E"]
    places = [population.below(home, name) for name in names]
    assert len({*places}) == len(names)
    assert all(place.parent == home and place.name not in (".", "..") for place in places)
    assert population.below(home, "") == home and population.below(None, "a") is None


def test_of_settings_that_all_lack_a_run_the_lowest_mean_is_chosen():
    tried = Tried({"A": [[{"x": 0.1}, {"x": 0.2}]]}, {"A": np.array([[[[NAN, 5.0]], [[NAN, 1.0]]]])})
    (one,) = tuning.choices(tried, lambda r: r[..., 0, :])["A"]
    assert (one.trial, one.setting, one.objective) == (1, {"x": 0.2}, 1.0)


def test_a_none_that_is_listed_stands_for_itself():
    built, own = SimpleNamespace(params=SimpleNamespace(v=10.0)), worst_attack._own_coordinate
    for values, at in (((3.0, 10.0, None), 2.0), ((3.0, 10.0), 1.0)):
        assert own(Dimension("v", "values", values=values, labels=values), None, built, "huber") == at
    assert own(Dimension("v", "linear", 0.0, 20.0), None, built, "huber") == 0.5

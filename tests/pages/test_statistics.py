"""Statistics on synthetic results whose true means, differences and exponents are known."""

import io
import json
import math
import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import jaxbandits as jb
from jaxbandits import intervals, selection, statistics
from jaxbandits.formatting import csv
from jaxbandits.reports.page import report
from jaxbandits.selection import TAKERS
from jaxbandits.sweeps.dataset import coordinate_values
from jaxbandits.sweeps.until_decided import SequentialTest

TIMES = np.array([10, 30, 100, 300, 1000, 3000, 10_000])


def result(means, *, seeds=200, sigma=0.3, grid=None, exponents=None, rng=None, shared=0.0, times=TIMES):
    """Lognormal final regrets with the given means `[A, <grid...>]`; regret grows as t ** exponent in every lane."""
    rng = rng or np.random.default_rng(7)
    means = np.asarray(means, float)
    noise = np.sqrt(1 - shared**2) * rng.normal(size=(*means.shape, seeds)) + shared * rng.normal(size=seeds)
    final = means[..., None] * np.exp(sigma * noise - sigma**2 / 2)
    exponents = np.full(len(means), 0.5) if exponents is None else np.asarray(exponents)
    growth = (times / times[-1]) ** exponents.reshape(-1, *[1] * means.ndim, 1)
    labels = [f"alg{i}" for i in range(len(means))]
    coords = {"algorithm": labels, **(grid or {}), "seed": np.arange(seeds), "t": times}
    return xr.Dataset({"regret": (("algorithm", *(grid or {}), "seed", "t"), final[..., None] * growth)}, coords)


def horizons():
    """Two horizons on the union of their checkpoints: NaN after a lane's own."""
    values = np.broadcast_to(TIMES**0.5, (1, 2, 4, len(TIMES))).copy()
    values[:, 0, :, TIMES > 100] = np.nan
    coords = {"algorithm": ["a"], "horizon": [100, 10_000], "t": TIMES}
    return xr.Dataset({"regret": (("algorithm", "horizon", "seed", "t"), values)}, coords)


def test_intervals_cover_their_mean_in_95_of_100_samples_and_one_seed_has_none():
    samples = np.random.default_rng(0).normal(3.0, 2.0, size=(4000, 8))
    mean, low, high = statistics.mean_interval(samples)
    # Binomial(4000, 0.95): four standard errors are 0.014. A normal interval (0.91 at 8 seeds) would fail.
    assert abs(np.mean((low < 3.0) & (high > 3.0)) - 0.95) < 0.014
    expected = stats.t.interval(0.95, 7, loc=mean[0], scale=stats.sem(samples[0]))
    np.testing.assert_allclose((low[0], high[0]), expected, rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [x.shape for x in statistics.mean_interval(np.ones((2, 3, 1)))] == [(2, 3)] * 3
        assert np.isnan(statistics.mean_interval(np.array([1.0, 2.0, np.inf]))[1:]).all()
    row = statistics.summary(result([5.0], seeds=1, sigma=0.0)).iloc[0]
    assert row["mean"] == pytest.approx(5.0) and np.isnan(row["ci_low"]) and np.isnan(row["ci_high"])


def test_every_column_of_a_summary_is_the_one_of_its_name():
    ds = result([[4.0, 2.0, 1.0], [8.0, 7.0, 6.0]], seeds=9, sigma=0.8, grid={"epsilon": [0.1, 1.0, 10.0]})
    counts = np.arange(54).reshape(2, 3, 9)
    ds["nonfinite_rewards"] = (("algorithm", "epsilon", "seed"), counts)
    ds["nonfinite_noise"] = (("seed", "algorithm"), counts[0, :2].T)
    ds["nonfinite_means"] = ("algorithm", [1, 2])  # not over seeds: no column
    ds["regret"][1, 2, 4, 2] = np.nan  # a row of its own
    spent = {"epsilon_asked": ("epsilon", [0.1, 1.0, 9.0]), "epsilon_spent": ("algorithm", [0.5, 0.7])}
    ds = ds.assign_coords(spent | {"delta_spent": (("epsilon", "algorithm"), [[1e-5, 2e-5], [3e-5, 4e-5], [0.0, 0.1]])})
    names = ["algorithm", "epsilon", "seeds", "mean", "ci_low", "ci_high", "median", "q05", "q95"]
    names += ["nonfinite_rewards", "nonfinite_noise"]
    free = ds.assign_coords(epsilon_asked=ds.epsilon_asked * np.nan, epsilon_spent=ds.epsilon_spent * np.inf)
    assert list(statistics.summary(free)) == names == list(statistics.summary(free.assign_attrs(guarantees="{}")))
    assert list(statistics.summary(ds))[len(names) :] == list(spent) + ["delta_spent"]  # whatever attributes were lost
    old = ds.drop_vars([*spent, "delta_spent"]).assign_attrs(guarantees='{"alg0": {}}')  # of an old release
    assert list(statistics.summary(old)) == names
    frame = statistics.summary(ds.assign_attrs(guarantees='{"alg0": {}}'), t=100)
    assert list(frame) == [*names, "epsilon_asked", "epsilon_spent", "delta_spent"]
    for (a, e), row in zip(np.ndindex(2, 3), frame.itertuples(index=False, name=None), strict=True):
        lane = ds["regret"].values[a, e, :, 2]
        ends = stats.t.interval(0.95, 8, loc=lane.mean(), scale=stats.sem(lane))
        quantiles = np.quantile(lane, [0.5, 0.05, 0.95])
        counted = counts[a, e].sum(), counts[0, a].sum()
        told = (0.1, 1.0, 9.0)[e], (0.5, 0.7)[a], ((1e-5, 3e-5, 0.0), (2e-5, 4e-5, 0.1))[a][e]
        assert row[0] == f"alg{a}" and len(row) == 14
        want = (10.0 ** (e - 1), 9, lane.mean(), *ends, *quantiles, *counted, *told)
        np.testing.assert_allclose(row[1:], want, rtol=1e-12)
    assert frame["mean"].isna().tolist() == [False] * 5 + [True]


def test_every_column_of_a_comparison_is_the_one_of_its_name():
    """With a tie, keys of others, a row that is not finite and one whose base is zero."""
    rng = np.random.default_rng(5)
    values = np.round(rng.lognormal(size=(3, 2, 5, 40, 1)), 1)
    values[1, 1, 2, 3], values[:, 1, 4, 8] = np.inf, np.inf
    values[1, 1, 3, :, 0] = np.tile([-1.0, 1.0], 20)
    coords = {"algorithm": ["x", "y", "z"], "noise": ["g", "l"], "window": [1, 2, 5, 9, 11], "t": [7]}
    ds = xr.Dataset({"regret": (("algorithm", "noise", "window", "seed", "t"), values)}, coords)
    of_z = xr.DataArray([1.0, 2.0, 3.0, 4.0, 5.0], dims="window", attrs={TAKERS: '["z"]'})
    of_y = xr.DataArray([5.0, 6.0, 7.0, 8.0, 9.0], dims="window", attrs={TAKERS: '["y", "z"]'})
    ds = ds.assign_coords({"z.bonus": of_z, "y.bonus": of_y})
    with pytest.warns(UserWarning, match="compare: intervals and p-values of ") as warned:
        frame = statistics.compare(ds, ("x", {"noise": "l"}), ("y", {"noise": "l"}))
    names = ["a", "b", "window", "y.bonus", "seeds", "difference", "ci_low", "ci_high", "relative", "p_value", "p_holm"]
    assert list(frame) == [*names, "share_lower", "seeds_needed"]
    p, needed = [], []
    for w, row in enumerate(frame.to_dict("records")):
        x, y = values[0, 1, w, :, 0], values[1, 1, w, :, 0]
        assert (row["a"], row["b"], row["window"], row["seeds"]) == (
            "x (noise = l)",
            "y (noise = l)",
            (1, 2, 5, 9, 11)[w],
            40,
        )
        with np.errstate(invalid="ignore"):
            test = stats.ttest_1samp(x - y, 0)
            base = y.mean() if w != 3 else np.nan
            wanted = [(x - y).mean(), *test.confidence_interval(), (x - y).mean() / base, test.pvalue, np.mean(x < y)]
            wanted = [np.nan if w == 4 or (w == 2 and 0 < i < 5) else value for i, value in enumerate(wanted)]
            needed.append(np.nan if w in (2, 4) else max(30, 25 * stats.skew(x - y) ** 2))
        found = [row[name] for name in ("difference", "ci_low", "ci_high", "relative", "p_value", "share_lower")]
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
        p.append(row["p_value"])
    np.testing.assert_allclose(frame["p_holm"], statistics.holm(p))
    np.testing.assert_allclose(frame["seeds_needed"], needed)
    few = np.array(needed) > 40
    assert 0 < few.sum() < 3
    assert np.any(values[0, 1] == values[1, 1])  # ties are on neither side
    most = np.max(np.array(needed)[few])
    told = f"of {few.sum()} of 5 rows may be wrong with 40 seeds (about {most:,.0f} seeds would make them right, "
    told += "which need not decide between a and b): run more of them, give "
    told += "interval='bootstrap-t' or 'anytime', or let seeds=jb.until(...) "
    (warned,) = [x for x in warned if x.category is UserWarning]  # infinite less infinite is told by NumPy
    assert str(warned.message) == f"compare: intervals and p-values {told}decide how many"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = statistics.compare(ds.isel(seed=[0]), ("x", {"noise": "g", "window": 5}), ["y", {"noise": "l"}])
        assert single["a"][0] == "x (noise = g, window = 5)" and np.isinf(single["seeds_needed"][0])
    fixed = ds.drop_vars(["z.bonus", "y.bonus"]).assign_attrs(constant_along='{"y": ["window"]}')
    plain = statistics.compare(fixed.isel(noise=0, drop=True), ("x", {"window": 5}), "y", interval="bootstrap-t")
    assert plain[["a", "b"]].values.tolist() == [["x (window = 5)", "y"]]
    with pytest.raises(ValueError, match=r"^interval = 'exact' must be one of 'student', 'bootstrap-t', 'anytime'"):
        statistics.compare(ds, "x", "y", interval="exact")
    for side in (("x",), ("x", "y"), 3, ("x", {}, {})):
        with pytest.raises(ValueError, match=r"^b = .* must be a label, or \(label, \{key: value\}\) for one point"):
            statistics.compare(ds, "x", side)
    with pytest.raises(ValueError, match=r"^a = 'u' must be one of 'x', 'y', 'z'"):
        statistics.compare(ds, "u", "x")


def test_tied_keys_ride_along():
    ds = result([[4.0, 2.0]], grid={"corruption_bound": [0.0, 0.1]})
    ds = ds.assign_coords({"reward_adversary.corruption": ("corruption_bound", [0.0, 0.2])})
    assert statistics.summary(ds)["reward_adversary.corruption"].tolist() == [0.0, 0.2]


def test_each_horizon_ends_at_its_own():
    ds = horizons()
    assert statistics.summary(ds)["mean"].tolist() == [10.0, 100.0]
    assert statistics.summary(ds.sel(horizon=100))["mean"].tolist() == [10.0]
    assert statistics.slope(ds, "horizon")["slope"][0] == pytest.approx(0.5)
    assert statistics.slope(ds)["points"].tolist() == [3, 3]  # 10, 30, 100 and 1,000, 3,000, 10,000
    assert statistics.summary(ds, t=100)["mean"].tolist() == [10.0, 10.0]
    with pytest.raises(ValueError, match="t = 1000 lies beyond horizon 100"):
        statistics.summary(ds, t=1000)


def test_a_comparison_is_of_the_play_that_is_asked_for():
    ds = result([4.0, 2.0], exponents=[0.5, 1.0])
    row = statistics.compare(ds, "alg0", "alg1", t=100).iloc[0]
    a, b = ds["regret"].sel(t=100).values
    assert row["difference"] == pytest.approx((a - b).mean())
    assert row["relative"] == pytest.approx((a - b).mean() / b.mean())


def test_right_answers_stand_beside_their_points():
    dims = ("algorithm", "bonus", "environment.regret_against", "seed", "t")
    paid, best = np.arange(1.0, 13).reshape(2, 3, 2, 1, 1) * np.ones((1, 1, 1, 4, 1)), np.array([100.0, 200.0])
    coords = {"algorithm": ["a", "b"], "bonus": [1, 2, 3], "environment.regret_against": ["row", "fixed"], "t": [50]}
    variables = {"regret": (dims, best[:, None, None] - paid),
                 "best_reward": (("environment.regret_against", "t"), best[:, None])}  # fmt: skip
    ds = xr.Dataset(variables, coords, {"config": json.dumps({"environment": {"name": "classification"}})})
    np.testing.assert_allclose(statistics.summary(ds)["right_answers"], np.arange(1, 13) / 50)


def test_what_an_algorithm_depends_on_is_seen_key_by_key():
    """Of two keys both depend on the second alone, as the identities say."""
    ds = result([[[4.0, 2.0]] * 2, [[8.0, 7.0]] * 2], grid={"epsilon": [0.1, 1.0], "window": [1, 5]})
    told = [[[f"w c{w} {selection.label_digest(x)}" for w in (1, 5)]] * 2 for x in ("alg0", "alg1")]
    ds = ds.assign_coords(identity=(("algorithm", "epsilon", "window"), told))
    frame = statistics.compare(ds.assign_attrs(constant_along='{"alg0": [], "alg1": []}'), "alg0", "alg1")
    assert frame["window"].tolist() == [1, 5] and "epsilon" not in frame


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, then not below 0.06.
    np.testing.assert_allclose(statistics.holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(statistics.holm([0.6, np.nan, 0.5]), [1.0, np.nan, 1.0])


def test_pairing_finds_a_difference_that_the_spread_over_seeds_hides():
    ds = result([10.0, 10.4], seeds=60, sigma=0.3, shared=0.99)
    row = statistics.compare(ds, "alg0", "alg1").iloc[0]
    assert row["p_value"] < 1e-3 and row["ci_high"] < 0 and row["share_lower"] > 0.6
    a, b = (ds["regret"].values[i, :, -1] for i in (0, 1))
    assert stats.ttest_ind(a, b).pvalue > 0.05
    assert row["p_value"] == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert row["relative"] == pytest.approx((a - b).mean() / b.mean())


def test_a_null_is_rejected_in_5_of_100_and_corrected_families_in_at_most_5():
    rng = np.random.default_rng(3)
    ds = result(np.full((2, 2000), 10.0), seeds=30, grid={"epsilon": np.arange(1.0, 2001.0)}, sigma=0.1, rng=rng)
    frame = statistics.compare(ds, "alg0", "alg1")
    assert abs((frame["p_value"] < 0.05).mean() - 0.05) < 0.02  # four standard errors of 2,000
    families = frame["p_value"].to_numpy().reshape(200, 10)
    uncorrected = (families.min(1) < 0.05).mean()
    corrected = np.mean([statistics.holm(p).min() < 0.05 for p in families])
    assert uncorrected > 0.25 and corrected < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)
    np.testing.assert_allclose(frame["p_holm"], statistics.holm(frame["p_value"].to_numpy()))


@pytest.mark.parametrize(("shift", "p_value", "share"), [(0.0, 1.0, 0.0), (-1.0, 2.0**-4, 1.0)])
def test_differences_without_variance(shift, p_value, share):
    base = np.arange(1.0, 6.0)
    values = np.stack([base + shift, base])[..., None]
    ds = xr.Dataset({"regret": (("algorithm", "seed", "t"), values)}, {"algorithm": ["a", "b"], "t": [9]})
    with pytest.warns(UserWarning, match="all differences are equal"):
        row = statistics.compare(ds, "a", "b").iloc[0]
    assert (row["difference"], row["p_value"], row["share_lower"]) == (shift, p_value, share)
    assert np.isnan(row["ci_low"]) and np.isnan(row["ci_high"]) and np.isinf(row["seeds_needed"])


def test_a_negative_regret_is_no_share_of_another():
    lanes = np.array([[-1.0, 3.0, 0.0, 2.0], [2.0, -3.0, 1.0, 2.0]])  # of a and b, at four points
    ds = xr.Dataset(
        {"regret": (("algorithm", "gap", "seed", "t"), lanes[:, :, None, None] * np.ones((1, 1, 40, 1)))},
        {"algorithm": ["a", "b"], "gap": range(4), "t": [9]},
    )
    with pytest.warns(UserWarning, match="all differences are equal"):
        frame = statistics.compare(ds, "a", "b")
    np.testing.assert_array_equal(frame["relative"], [np.nan, np.nan, -1.0, 0.0])


def test_neighbours_and_texts_of_a_grid_are_found():
    def final_at(values, value):
        ds = xr.Dataset({"regret": ("key", [5.0, 3.0])}, {"key": coordinate_values(values)})
        return float(selection.select_values(ds, {"key": value}).regret)

    for one, other in ((0.1, 0.1000000001), (10**9, 10**9 + 1), (False, True), (None, 0.1), ("a", "b")):
        assert (final_at([one, other], one), final_at([one, other], other)) == (5, 3)
    assert final_at([0.1, 0.2], 0.1 * (1 + 5e-10)) == 5
    assert final_at([0.1, 0.1 + 6e-11], 0.1 + 5e-11) == 3  # the nearer one
    for values, missing in (
        ([False, True], None),
        (np.arange(2, dtype=np.uint8), -1),
        ([0.1, 0.2], None),
        ([1, 2], "1"),
        ([1e-9, 1e-3], 3e-9),
        ([1e-9, 1e-3], 0.0),
    ):
        with pytest.raises(ValueError, match=f"key has no {missing!r}"):
            final_at(values, missing)
    mixed = xr.Dataset({"regret": ("key", [5.0, 3.0])}, {"key": np.array([None, 0.1], object)})
    assert [float(selection.select_values(mixed, {"key": x}).regret) for x in (None, 0.1)] == [5, 3]


def test_keys_called_as_columns_stay_beside_them():
    """As of a learner with a Beta prior of a and b; `median_elimination` has an argument `points`."""
    arms, given = jb.environments.bernoulli_arms(means=[0.2, 0.7]), {"horizon": 60, "seeds": 40, "progress": False}
    scaled = lambda name: jb.validation.factory(_with_argument(name))
    for name in ("a", "b", "mean", "points", "slope", "seeds"):
        ds = jb.sweep({"mine": scaled(name), "ucb1": "ucb1"}, arms, grid={name: [0.5, 2.0]}, **given)
        tables = {"mean": statistics.summary, "seeds": statistics.summary}
        tables |= {k: partial(statistics.compare, a="mine", b="ucb1") for k in ("a", "b")}
        frame = tables.get(name, partial(statistics.slope, t_min=10))(ds)
        assert frame[f"{name}_"].tolist() == [0.5, 2.0] * (len(frame) // 2)
        assert jb.plot.against(ds, name).data[name].tolist()[:2] == [0.5, 0.5]
    for name in ("low", "centre"):
        ds = jb.sweep(scaled(name), arms, grid={name: [0.5, 2.0]}, **given)
        for draw in (jb.plot.regret, partial(jb.plot.against, key=name)):
            with pytest.raises(ValueError, match=f"the key '{name}' is called as a column.*draw ds.rename"):
                draw(ds)
        assert jb.plot.regret(ds.rename({name: f"{name}_"})).data[f"{name}_"].nunique() == 2


def _with_argument(name):
    space = {"ucb1": jb.algorithms.ucb1}
    sizes = "num_arms=num_arms, horizon=horizon"
    exec(f"def mine(*, num_arms, horizon, {name}=1.0): return ucb1({sizes}, bonus_scale={name})", space)
    return space["mine"]


def test_numbers_of_a_table_are_no_formulas():
    dims, keys = ("algorithm", "shift", "kind", "epsilon", "seed", "t"), {"shift": [-1.0, 0.5], "kind": ["-x", "y"]}
    regret = np.arange(40.0).reshape(1, 2, 2, 2, 5, 1)
    ds = xr.Dataset({"regret": (dims, regret)}, {"algorithm": ["=a"], **keys, "epsilon": [0.1, 1.0], "t": [9]})
    lines = statistics.table(ds).splitlines()
    assert lines[2].startswith("| '=a | -1 | '-x | ") and lines[5].startswith("| '=a | 0.5 | y | ")


def test_grid_points_are_compared_and_other_keys_kept():
    grid = {"epsilon": [0.1, 1.0], "window": [1, 5, 9]}
    ds = result([[[8.0, 6.0, 4.0], [2.0, 3.0, 4.0]]], grid=grid, sigma=0.0)
    frame = statistics.compare(ds, ("alg0", {"epsilon": 0.1}), ("alg0", {"epsilon": 1.0}))
    assert frame["window"].tolist() == [1, 5, 9] and "epsilon" not in frame
    np.testing.assert_allclose(frame["difference"], [6.0, 3.0, 0.0], atol=1e-12)
    assert frame["a"][0] == "alg0 (epsilon = 0.1)"
    against_all = statistics.compare(ds, "alg0", ("alg0", {"epsilon": 1.0, "window": 1}))
    assert len(against_all) == 6 and against_all["difference"].iloc[0] == pytest.approx(6.0)


def test_repeated_pairs_are_one_test():
    ds = result([[4.0, 4.0], [5.0, 5.0], [3.0, 2.0]], grid={"epsilon": [0.1, 1.0]})
    ds.attrs["constant_along"] = json.dumps({"alg0": ["epsilon"], "alg1": ["epsilon"]})
    assert len(statistics.compare(ds, "alg0", "alg1")) == 1
    assert len(statistics.compare(ds, "alg0", "alg2")) == 2


def test_slope_is_the_exponent_and_a_wrong_theory_lies_outside():
    rng = np.random.default_rng(11)
    ds = result([100.0, 100.0], exponents=[0.5, 2 / 3], seeds=100, rng=rng)
    ds["regret"] = ds["regret"] * np.exp(0.2 * rng.normal(size=ds["regret"].shape))  # spread that differs between times
    frame = statistics.slope(ds, t_min=10, theory={"alg0": 0.5, "alg1": 0.5})
    assert frame["points"].tolist() == [7, 7] and frame["theory"].tolist() == [0.5, 0.5]
    inside = (frame["ci_low"] <= frame["theory"]) & (frame["theory"] <= frame["ci_high"])
    assert inside.tolist() == [True, False]
    assert frame["ci_low"][1] < 2 / 3 < frame["ci_high"][1]
    assert (frame["ci_high"] - frame["ci_low"]).between(0.001, 0.05).all()


def test_slopes_are_those_of_polyfit_on_the_points_that_are_fitted():
    """Which they are: positive and finite ones, and of plays the last decade or those from t_min on."""
    rng, x = np.random.default_rng(2), np.array([1.0, 3.0, 10.0, 30.0, 100.0])
    y = rng.lognormal(size=(6, 5))
    y[1, 0], y[2, [1, 3]], y[3, 1:], y[4] = 0.0, -1.0, 0.0, 0.0
    want = [np.polyfit(np.log(x[use]), np.log(row[use]), 1)[0] if use.sum() > 1 else np.nan
            for row, use in zip(y, y > 0, strict=True)]  # fmt: skip
    np.testing.assert_allclose(statistics.log_slopes(x, y), want, rtol=1e-10)
    with np.errstate(all="raise"):
        assert np.isnan(statistics.log_slopes(np.full(5, 4.0), y[:1])).all()  # one place
    values = rng.lognormal(size=(4, 7))
    t = TIMES.astype(float)
    for over, t_min, places, keep in (
        ("t", None, t, t >= 1000), ("t", 0, t, t > 0), ("t", 300, t, t >= 300), ("t", 301, t, t >= 1000),
        ("window", None, t, t > 0),
        ("window", None, np.array([-1.0, 0.0, 1.0, 2.0, np.inf, np.nan, 9.0]),
            [False, False, True, True, False, False, True]),
    ):  # fmt: skip
        np.testing.assert_array_equal(statistics.points_to_fit(values, places, over, t_min), keep)
    values[:, 5], values[0, 4], values[:, 3] = np.nan, np.nan, [-1.0, -1.0, 1.0, 1.0]
    assert not statistics.points_to_fit(np.full((4, 7), np.nan), t, "t").any()
    values[:, 6] = np.nan  # padded: the decade is that before 1,000, whose mean is NaN
    assert statistics.points_to_fit(values, t, "t").tolist() == [False] * 2 + [True] + [False] * 4
    assert statistics.points_to_fit(values, t, "window").tolist() == [True] * 3 + [False] * 4
    values[:, 1] -= 10.0  # below zero, before the last decade
    assert statistics.points_to_fit(values, t, "t").tolist() == [False] * 2 + [True] + [False] * 4
    assert not statistics.points_to_fit(values, t, "window").any()


def test_the_interval_of_a_slope_is_that_of_500_resamples():
    ds = result([[5.0, 3.0, 1.0], [2.0, 2.5, 1.5]], seeds=8, sigma=0.9, grid={"gap": [1, 2, 5]})
    weights = np.random.default_rng(0).multinomial(8, np.full(8, 1 / 8), size=500)
    for over, x, key in (("gap", np.array([1.0, 2.0, 5.0]), []), ("t", TIMES[4:], ["gap"])):
        frame = statistics.slope(ds, over, theory={"alg1": 0.25})
        assert list(frame) == ["algorithm", *key, "points", "seeds", "slope", "ci_low", "ci_high", "theory"]
        assert (frame["points"] == 3).all() and (frame["seeds"] == 8).all()
        curves = ds["regret"].values[..., -1] if over == "gap" else ds["regret"].values[..., 4:]
        curves = curves.transpose(0, 2, 1) if over == "gap" else curves.reshape(6, 8, 3)
        for row, values in zip(frame.to_dict("records"), curves, strict=True):
            fit = lambda y: np.polyfit(np.log(x), np.log(y), 1)[0]  # noqa: B023
            ends = np.quantile([fit(w @ values) for w in weights], [0.025, 0.975])
            np.testing.assert_allclose([row["slope"], row["ci_low"], row["ci_high"]], [fit(values.mean(0)), *ends])
            assert row["theory"] == 0.25 if row["algorithm"] == "alg1" else np.isnan(row["theory"])
    assert statistics.slope(ds.isel(seed=[0]))[["ci_low", "ci_high"]].isna().all(axis=None)
    assert statistics.slope(ds.isel(seed=[0, 1]))[["ci_low", "ci_high"]].notna().all(axis=None)
    named = ds.rename(gap="kind").assign_coords(kind=["a", "b", "c"])
    few = ds.copy(deep=True)
    few["regret"][0, 1] = -1.0
    for wrong, given, told in (
        (ds, {"over": "u"}, "^over = 'u' must be one of 't', 'gap'"),
        (ds, {"over": "gap", "t_min": 5}, r"^t_min = 5 applies to over='t' only: leave it out with over='gap'$"),
        (named, {"over": "kind"}, r"^over = 'kind' is not numeric \(a, b, c\): choose another of t, kind$"),
        (ds, {"theory": {"alg2": 1.0}}, "^a label of theory = 'alg2' must be one of 'alg0', 'alg1'"),
        (few, {}, r"^slope against 't' needs two points above zero and none below, "
            r"\{'algorithm': 'alg0', 'gap': 2\} has 0: "
            "lower t_min or run more checkpoints, or select the others first$"),
        (few.isel(gap=[1, 2]), {"over": "gap"}, r"\{'algorithm': 'alg0'\} has 0: run more values, or select"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            statistics.slope(wrong, **given)
    statistics.slope(ds.isel(gap=[1, 2]), "gap")  # two points are enough


def test_slope_leaves_out_zero_regret_and_infinite_epsilon_and_repeats():
    ds = result([[4.0, 2.0, 1.0, 0.9]], grid={"epsilon": [0.25, 0.5, 1.0, np.inf]}, sigma=0.0)
    row = statistics.slope(ds, "epsilon").iloc[0]
    assert (row["points"], row["slope"]) == (3, pytest.approx(-1.0))
    ds["regret"][..., :2] = 0.0
    assert statistics.slope(ds, t_min=1)["points"].tolist() == [5] * 4
    ds = result([100.0], seeds=20)
    ds["regret"] = ds["regret"] * np.exp(np.random.default_rng(1).normal(size=ds["regret"].shape))
    first, second = statistics.slope(ds), statistics.slope(ds)
    assert first.equals(second) and first["ci_high"][0] > first["ci_low"][0]


def test_markdown_table_has_a_column_a_value():
    ds = result([[[400.0], [2.0]], [[8.0], [8.0]]], grid={"epsilon": [0.1, 1.0], "window": [3]})
    lines = statistics.table(ds).splitlines()
    assert lines[0] == "| algorithm | epsilon = 0.1 | epsilon = 1 |" and lines[1] == "|---|---|---|"
    row = statistics.summary(ds).iloc[1]
    half = (row["ci_high"] - row["ci_low"]) / 2
    assert lines[2].endswith(f"| {row['mean']:.3f} ± {half:.3f} |")  # two digits of the half-width, 0.08
    assert lines[-1] == "Mean ± half-width of the 95% interval over 200 seeds; window = 3."


def test_tables_to_the_letter():
    """Two digits of a half-width, which is t_0.975 sqrt(2) s / sqrt(2) for the seeds m - s and m + s."""
    pairs = lambda *rows: np.array([[m - s, m + s] for m, s in rows])
    values = np.stack([
        pairs((1234.0, 10 / 12.7062), (5.0, 0.0), (0.1234567, 0.001)), pairs((3.0, 1.0), (-7.0, 100.0), (np.nan, 1.0)),
    ])  # fmt: skip
    coords = {"algorithm": ["_a", "=b"], "k|y": ["g", "l", "m"], "w": [4], "t": [9]}
    ds = xr.Dataset({"regret": (("algorithm", "k|y", "w", "seed", "t"), values[:, :, None, :, None])}, coords)
    assert statistics.table(ds).splitlines() == [
        r"| algorithm | k\|y = g | k\|y = l | k\|y = m |", "|---|---|---|---|",
        "| _a | 1,234 ± 10 | 5.0 ± 0.0 | 0.123 ± 0.013 |", "| '=b | 3 ± 13 | -7 ± 1,271 | nan |", "",
        "Mean ± half-width of the 95% interval over 2 seeds; w = 4. Of fewer than 30 seeds, intervals may miss the "
        "mean more often.",
    ]  # fmt: skip
    both = ds.isel(t=[0, 0]).rename(t="u").assign_coords(u=[1, 2]).expand_dims(t=[9]).transpose(..., "seed", "t")
    lines = statistics.table(both.isel({"k|y": [0, 1]}), "latex").splitlines()
    assert lines == [
        "% Mean and half-width of the 95% interval over 2 seeds; w = 4. Of fewer than 30 seeds, intervals may miss the "
        "mean more often.",
        r"\begin{tabular}{llrr}", r"algorithm & k\textbar y & u = 1 & u = 2 \\", r"\hline",
        r"\_a & g & $1{,}234 \pm 10$ & $1{,}234 \pm 10$ \\", r"\_a & l & $5.0 \pm 0.0$ & $5.0 \pm 0.0$ \\",
        r"=b & g & $3 \pm 13$ & $3 \pm 13$ \\", r"=b & l & $-7 \pm 1{,}271$ & $-7 \pm 1{,}271$ \\", r"\end{tabular}",
    ]  # fmt: skip
    alone = statistics.table(ds.isel(seed=[0], w=0, drop=True))
    assert alone.endswith("| '=b | 2 | -107 | nan |\n\nRegret of one seed, hence no interval.")
    assert alone._repr_markdown_() == repr(alone) == str(alone)
    latex = statistics.table(ds, "latex")
    assert latex._repr_markdown_() == f"```latex\n{latex}\n```"
    wide = lambda n: statistics.table(result(np.ones((1, n)), grid={"w": np.arange(n)})).splitlines()[0]
    assert wide(8).count("|") == 10 and wide(9) == "| algorithm | w | regret |"
    two = result(np.ones((1, 9, 2)), grid={"w": np.arange(9), "u": [1, 2]})
    assert statistics.table(two).startswith("| algorithm | w | u = 1 | u = 2 |")
    with pytest.raises(ValueError, match=r"^format = 'html' must be one of 'markdown', 'latex'"):
        statistics.table(ds, "html")


def test_a_table_doubts_its_intervals_where_seeds_are_few_or_skewed():
    rng, skewed = np.random.default_rng(0), np.where(np.arange(40) == 7, 99.0, -1.0)
    normal, constant = rng.normal(size=40), np.ones(40)
    doubt = lambda *rows: statistics._doubt(np.array(rows))
    assert doubt(normal, constant) == doubt(normal[:1]) == doubt(skewed[:30]).replace(" 1 of 1", "")[:0] == ""
    few = " Of fewer than 30 seeds, intervals may miss the mean more often."
    assert doubt(normal[:2]) == doubt(normal[:29]) == few and doubt(normal[:30]) == ""
    most = 25 * max(stats.skew(skewed), stats.skew(skewed + normal)) ** 2
    told = " 2 of 4 intervals (marked *) may be too narrow, as regret is skewed: "
    assert doubt(normal, skewed, skewed + normal, constant) == f"{told}about {most:,.0f} seeds would be enough."
    values = np.array([[normal, skewed], [skewed + normal, constant]])
    for seeds, marks in ((40, [False, True, True, False]), (29, [False] * 4)):
        ds = xr.Dataset(
            {"regret": (("algorithm", "gap", "seed", "t"), values[..., :seeds, None])},
            {"algorithm": ["a", "b"], "gap": [1, 2], "t": [9]},
        )
        rows = [line.split("|")[2:4] for line in statistics.table(ds).splitlines()[2:4]]
        assert [cell.strip().endswith("*") for row in rows for cell in row] == marks
        assert statistics.table(ds, "latex").count("$*") == sum(marks)


def test_names_that_differ_stay_apart_in_tables_and_files():
    labels = ["my ucb", "my  ucb", "a\nb", "a b"]
    ds = result(np.ones((4, 2)), grid={"k": [0.1, 0.1000001]}).assign_coords(algorithm=labels)
    file = pd.read_csv(io.StringIO(csv(jb.summary(ds))))
    assert file["algorithm"].drop_duplicates().tolist() == ["my ucb", "my  ucb", "a\\nb", "a b"]
    head, _, *rows = statistics.table(ds).split("\n\n")[0].splitlines()
    assert head == "| algorithm | k = 0.1 | k = 0.1000001 |"
    assert [row.split(" | ")[0] for row in rows] == ["| 'my ucb'", "| 'my ␣ucb'", "| 'a\\nb'", "| 'a b'"]
    one = jb.compare(ds, ("a b", {"k": 0.1}), ("a b", {"k": 0.1000001})).iloc[0]
    assert (one.a, one.b) == ("a b (k = 0.1)", "a b (k = 0.1000001)")
    long = result(np.ones((2,))).assign_coords(algorithm=["x" * 60 + end for end in "ab"])
    assert all(label in repr(jb.summary(long)) for label in long.algorithm.values)


def test_regret_that_does_not_vary_has_no_spread():
    """Thirty times 0.04 have a mean that is not 0.04 in its last bit."""
    for value, text in (
        (0.04, "0.04000 ± 0.00000"),
        (12.3, "12.3 ± 0.0"),
        (1 / 3, "0.3333 ± 0.0000"),
        (0.0, "0.0 ± 0.0"),
    ):
        for seeds in (10, 30, 50):
            ds = result([1.0], seeds=seeds)
            ds["regret"][:] = value
            assert f"| alg0 | {text} |" in statistics.table(ds)
            row = jb.summary(ds).iloc[0]
            assert row["ci_low"] == row["mean"] == row["ci_high"]


def test_a_side_of_a_comparison_is_one_point():
    ds = result(np.ones((2, 2)), grid={"epsilon": [0.1, 1.0]})
    for wrong in ([0.1, 1.0], (0.1,), np.array([1.0])):
        with pytest.raises(ValueError, match=r"^b: epsilon = .* must be one value: leave epsilon out"):
            jb.compare(ds, ("alg0", {"epsilon": 0.1}), ("alg1", {"epsilon": wrong}))


def test_labels_may_be_renamed_to_numbers():
    ds = result(np.array([1.0, 2.0]))
    texts = list(map(str, ds.algorithm.values))
    want = jb.compare(ds, *texts)
    for new in ([1, 2], [True, False], [0.5, 0.25]):
        now = ds.assign_coords(algorithm=new)
        pd.testing.assert_frame_equal(jb.compare(now, *new).drop(columns=["a", "b"]), want.drop(columns=["a", "b"]))
        assert jb.compare(now, *map(str, new)).loc[0, ["a", "b"]].tolist() == list(map(str, new))
        assert list(jb.plot.regret(now).data["algorithm"].drop_duplicates()) == list(map(str, new))
    with pytest.raises(ValueError, match="b = 3 must be a label"):
        jb.compare(ds, texts[0], 3)


def test_latex_table_escapes_labels_and_balances_and_many_values_become_rows():
    ds = result([[4000.0, 2.0], [8.0, 8.0]], grid={"noise_scale": [1, 2]})
    signs = statistics.table(result([1.0]).assign_coords(algorithm=["\\~^<>_%&#${}"]), "latex")
    assert r"\textbackslash \textasciitilde \textasciicircum \textless \textgreater \_\%\&\#\$\{\}" in signs
    rows = statistics.table(result(np.ones(2)).assign_coords(algorithm=["[x] y", "*z"]), "latex").splitlines()
    assert [row.split(" & ")[0] for row in rows if "pm" in row] == ["{[}x] y", "{*}z"]  # after \\\\ they are commands
    text = statistics.table(ds.assign_coords(algorithm=["exp3_ix", "50% & more"]), format="latex")
    assert r"exp3\_ix" in text and r"50\% \& more" in text and r"noise\_scale = 1" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 3 and all(row.replace(r"\&", "").count("&") == 2 for row in rows)
    assert r" \pm " in rows[1] and "{,}" in rows[1] and rows[1].count("$") == 4
    ds = result(np.ones((2, 9)), grid={"epsilon": np.arange(1.0, 10.0)})
    lines = statistics.table(ds).splitlines()
    assert lines[0] == "| algorithm | epsilon | regret |" and len([x for x in lines if x.startswith("| alg")]) == 19


def test_points_and_strings_are_keys_like_numbers():
    for grid, tied in (
        ({"point": [0, 1]}, {}),
        ({"point": [0, 1]}, {"epsilon": ("point", [0.1, 0.1]), "noise": ("point", ["gaussian", "laplace"])}),
        ({"noise": ["gaussian", "laplace"]}, {}),
        ({"environment.means": ["easy|flat", "hard"]}, {"environment.gap": ("environment.means", [0.1, 0.01])}),
    ):
        ((key, values),) = grid.items()
        means = [[4.0, 2.0], [8.0, 8.0]]
        ds = result(means, grid=grid, seeds=3, sigma=0.0).assign_coords(tied)
        frame = statistics.summary(ds)
        assert frame["algorithm"].tolist() == ["alg0", "alg0", "alg1", "alg1"] and frame[key].tolist() == [*values] * 2
        for name, (_, along) in tied.items():
            assert frame[name].tolist() == [*along] * 2
        np.testing.assert_allclose(frame["mean"], np.ravel(means))
        head, _, first, second, *_ = statistics.table(ds).replace("\\|", "/").splitlines()
        assert head == f"| algorithm | {key} = {values[0]} | {key} = {values[1]} |".replace("y|f", "y/f")
        assert (first, second) == ("| alg0 | 4.0 ± 0.0 | 2.0 ± 0.0 |", "| alg1 | 8.0 ± 0.0 | 8.0 ± 0.0 |")
        assert statistics.table(ds, "latex").count(r" \\") == 3
        assert statistics.table(ds.isel({key: [1]})).count(f"over 3 seeds; {key} = {values[1]}.")
        assert statistics.compare(ds, "alg0", "alg1")[key].tolist() == values


def test_points_and_strings_together_are_rows_and_columns():
    ds = result(np.arange(1.0, 13.0).reshape(2, 2, 3), grid={"noise": ["g", "l"], "point": [0, 1, 2]}, sigma=0.0)
    lines = statistics.table(ds).splitlines()
    assert lines[0] == "| algorithm | noise | point = 0 | point = 1 | point = 2 |"
    assert [x.split(" | ")[:2] for x in lines[2:6]] == [[f"| alg{i}", noise] for i in (0, 1) for noise in "gl"]
    np.testing.assert_allclose(statistics.summary(ds)["mean"], np.arange(1.0, 13.0))


def of_differences(differences):
    values = np.stack([differences, np.zeros_like(differences)])[..., None]
    return xr.Dataset({"regret": (("algorithm", "seed", "t"), values)}, {"algorithm": ["a", "b"], "t": [9]})


LAWS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "fails in 1 of 100 seeds": lambda rng, shape: np.where(rng.random(shape) < 0.01, 99.0, -1.0),
    "the same with noise": lambda rng, shape: LAWS["fails in 1 of 100 seeds"](rng, shape) + rng.normal(0, 0.1, shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape) - np.exp(0.5),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seeds", [2, 8, 32, 200])
def test_where_students_interval_is_wrong_the_seeds_say_so(law, seeds):
    """Of comparisons that are significant and wrong, what is not doubted is what no seed shows, and 5% besides."""
    differences = LAWS[law](np.random.default_rng(seeds), (4000, seeds))
    _, _, p = intervals.of_mean(differences, "student")
    doubted = intervals.seeds_needed(differences) > seeds
    wrong = (p <= 0.05) & ~doubted
    unseen = 0.99**seeds if law == "the same with noise" and seeds >= intervals.LEAST_SEEDS else 0.0
    assert wrong.mean() <= 0.07 + 1.05 * unseen
    if law == "normal":
        assert doubted.mean() == 1 if seeds < intervals.LEAST_SEEDS else doubted.mean() < 0.01  # few false alarms
    if seeds == 2:
        assert p.min() >= 0.5


def test_ways_hold_where_they_say_so_and_find_what_there_is():
    rng = np.random.default_rng(0)
    for way, law, shape, most in [
        ("student", "normal", (4000, 32), 0.05),
        ("bootstrap-t", "normal", (400, 64), 0.06),
        ("bootstrap-t", "exponential", (400, 64), 0.08),
        ("anytime", "normal", (400, 200), 0.01),
    ]:
        values = LAWS[law](rng, shape)
        low, high, p = intervals.of_mean(values, way)
        misses = (low > 0) | (high < 0)
        assert misses.mean() <= most + 4 * np.sqrt(most / len(values)), (way, law)
        np.testing.assert_array_equal(misses, p <= 0.05)  # an interval and its p-value say the same
        low, high, p = intervals.of_mean(values + 3, way)
        assert (p < 0.05).all() and (low > 0).all() and (high < 12).all()
    skewed = LAWS["exponential"](rng, (400, 64))
    student, bootstrap = (np.mean(intervals.of_mean(skewed, way)[2] <= 0.05) for way in intervals.WAYS[:2])
    assert bootstrap < student


def literal_bootstrap_t(row):
    """Student's ratio of each of 1,999 resamples, one after the other."""
    seeds = len(row)
    mean, error, ratios = row.mean(), stats.sem(row), []
    for counts in np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), size=1999):
        again = np.repeat(row, counts)
        equal, away = np.ptp(again) == 0, again.mean() - mean
        ratios.append(
            (0.0 if abs(away) < 1e-12 else math.copysign(math.inf, away))
            if equal
            else away / again.std(ddof=1) * math.sqrt(seeds)
        )
    ratios = np.sort(ratios)
    tails = np.sum(ratios <= mean / error), np.sum(ratios >= mean / error)
    p = max(min(1.0, 2 * (1 + min(tails)) / 2000), 2.0 ** (1 - np.sum(row != 0)), 0.0)
    return mean - ratios[-50] * error, mean - ratios[49] * error, p


def test_each_way_by_its_definition():
    rng = np.random.default_rng(4)
    rows = np.stack([rng.lognormal(size=12) - shift for shift in (0.2, 1.6)])
    np.testing.assert_allclose(
        intervals.of_mean(rows, "bootstrap-t"), np.transpose([literal_bootstrap_t(row) for row in rows]), rtol=1e-9
    )
    for few in ([1.0, 4.0, 2.5], [0.0, 0.0, 1.0, 3.0, 0.0]):  # resamples of one seed: ratios without a spread
        np.testing.assert_allclose(intervals.of_mean(few, "bootstrap-t"), literal_bootstrap_t(np.array(few)), rtol=1e-9)
    for row in rows:
        test = stats.ttest_1samp(row, 0)
        np.testing.assert_allclose(
            intervals.of_mean(row, "student"), (*test.confidence_interval(), test.pvalue), rtol=1e-9
        )
    shapes = [x.shape for x in intervals.of_mean(rows.reshape(2, 1, 12), "student")]
    assert shapes == [(2, 1)] * 3
    for way in intervals.WAYS:
        for wrong in ([1.0], [1.0, np.nan, 2.0], [1.0, 2.0, np.inf]):
            assert np.isnan(intervals.of_mean(wrong, way)).all()
    # no p-value is below that of the signs: 2^(1 - m)
    for row, least in (
        ([1.0, 1.0001], 0.5),
        ([1.0, 1.001, 0.999, 0.0, 0.0], 0.25),
        ([2.0] * 8, 2.0**-7),
        ([0.0] * 3, 1.0),
    ):
        *ends, p = intervals.of_mean(row, "student")
        assert p == least
        assert np.isnan(ends).all() == (np.ptp(row) == 0)
    # the ends of `anytime` are the means at which its p-value is 5%, and it falls outwards
    values = np.stack([rng.normal(0.3, 2.0, size=100), rng.lognormal(size=100), 1e4 + rng.normal(size=100)])
    low, high, p = intervals.of_mean(values, "anytime")
    level = lambda mean: intervals.of_mean(values - mean[:, None], "anytime")[2]
    for end, outwards in ((low, -1.0), (high, 1.0)):
        np.testing.assert_allclose(level(end), 0.05, rtol=1e-6)
        assert (level(end + outwards * 0.01) < 0.05).all() and (level(end - outwards * 0.01) > 0.05).all()
    assert np.isfinite(intervals.of_mean(values[:, :64], "anytime")).all()
    assert (level(low * 0)[:2] == p[:2]).all() and (level(values.mean(-1)) == 1).all()
    many = np.stack([rng.normal(size=50), rng.lognormal(size=50), np.ones(50), np.r_[np.nan, np.ones(49)]])
    want = [30.0, 25 * stats.skew(many[1]) ** 2, np.inf, np.nan]
    np.testing.assert_allclose(intervals.seeds_needed(many), want, rtol=1e-12)


def test_anytime_is_the_law_of_until():
    """At the seeds of a look, the p-value is that of the sequential test which looks once."""
    differences = np.random.default_rng(3).normal(0.2, 1.0, 200)
    test = SequentialTest(number=1, error=0.05, block=64)
    test.add(differences[None, :64])
    assert intervals.of_mean(differences[:64], "anytime")[2] == pytest.approx(test.smallest[0])
    test.smallest[:] = 1.0
    test.add(differences[None, 64:])
    assert intervals.of_mean(differences, "anytime")[2] == pytest.approx(test.smallest[0])
    assert np.isnan(intervals.of_mean(differences[:63], "anytime")[0])
    # ties decide nothing, wherever they stand
    sparse = np.zeros(400)
    sparse[::2] = differences
    assert intervals.of_mean(sparse, "anytime")[2] == pytest.approx(test.smallest[0])
    for seeds in (32, 64):
        equal = np.full(seeds, 2.0)
        test = SequentialTest(number=1, error=0.05, block=64)
        test.add(equal[None])
        assert intervals.of_mean(equal, "anytime")[2] == pytest.approx(test.smallest[0])


@pytest.mark.parametrize("way", intervals.WAYS)
def test_ties_and_two_seeds_decide_nothing(way):
    ties = ([1.0, 1.0001], 0.5), ([0.0, 0.0, 1.0, 1.1], 0.5), ([0.0] * 3, 1.0), ([2.0] * 8, 2.0**-7), ([5.0, 0, 0], 1.0)
    for differences, least in ties:
        assert least <= intervals.of_mean(np.array(differences), way)[2] <= 1


def test_compare_says_it_and_so_do_the_table_and_the_page(tmp_path):
    rng = np.random.default_rng(0)
    skewed = of_differences(np.where(np.arange(200) == 7, 99.0, -1.0) + 0.1 * rng.normal(size=200))
    with pytest.warns(UserWarning, match=r"1 of 1 rows may be wrong with 200 seeds \(about 4,.* seeds would make them"):
        row = statistics.compare(skewed, "a", "b").iloc[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = statistics.compare(skewed, "a", "b", interval="bootstrap-t").iloc[0]
        statistics.compare(of_differences(rng.normal(size=30)), "a", "b")
    assert other["ci_high"] > row["ci_high"] and row["ci_low"] != other["ci_low"]
    assert "1 of 2 intervals (marked *) may be too narrow, as regret is skewed: about " in statistics.table(skewed)
    assert "Of fewer than 30 seeds" in statistics.table(of_differences(rng.normal(size=29)))
    page = report(skewed, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "1 of 1 rows have too few seeds" in page


def test_every_column_is_printed_on_a_narrow_terminal():
    ds = of_differences(np.random.default_rng(0).normal(size=40))
    for frame in (statistics.summary(ds), statistics.compare(ds, "a", "b")):
        with pd.option_context("display.max_columns", 4, "display.width", 60):
            for shown in (frame, frame.round(3)):
                assert all(re.search(rf"\b{name}\b", f"{shown}") for name in frame.columns) and "..." not in f"{shown}"
            assert "..." in f"{pd.DataFrame(frame)}"


def test_the_interval_of_a_ratio_holds_it_in_95_of_100_and_uses_the_pairs():
    """Two means over the same seeds, of normal numbers, for which Fieller's interval is exact."""
    rng = np.random.default_rng(3)
    shared = rng.normal(size=(4_000, 12))
    a, b = 6.0 + 2.0 * shared + 0.5 * rng.normal(size=shared.shape), 3.0 + shared
    ratio, low, high = intervals.of_ratio(a, b)
    np.testing.assert_allclose(ratio, a.mean(-1) / b.mean(-1))
    np.testing.assert_allclose(intervals.of_ratio(a / 100, b / 100), (ratio, low, high), rtol=1e-9)
    for end in (low, high):  # where Student's interval of a - f b ends at zero
        away = (a - end[:, None] * b)[np.isfinite(end)]
        ends = np.abs(away.mean(-1)) / stats.sem(away, axis=-1)
        np.testing.assert_allclose(ends, stats.t.ppf(0.975, 11), rtol=1e-6)
    share = np.mean((low <= 2.0) & (2.0 <= high))
    assert abs(share - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(a)) and np.all((low <= ratio) & (ratio <= high))
    unpaired = intervals.of_ratio(a, np.roll(b, 1, axis=-1))
    assert np.median(high - low) < 0.5 * np.median(unpaired[2] - unpaired[1])
    # a denominator that may be zero or below, and one seed, have no interval
    for left, right in (([1.0, 2.0, 3.0], [-1.0, 0.5, 1.0]), ([1.0, 2.0], [-1.0, -1.1]), ([1.0], [1.0])):
        assert np.isnan(intervals.of_ratio(left, right)).all()


def test_printed_tables_hide_no_column():
    """Blocks of at most 80 characters, with each column in one of them."""
    regret = np.random.default_rng(0).normal(size=(2, 2, 40, 1))
    coordinates = {"algorithm": ["central privacy", "local privacy"], "epsilon": [0.1, 1.0], "t": [9]}
    ds = xr.Dataset({"regret": (("algorithm", "epsilon", "seed", "t"), regret)}, coordinates)
    for frame in (jb.compare(ds, "central privacy", "local privacy"), jb.summary(ds)):
        with pd.option_context("display.max_columns", 0, "display.width", 80):
            said = repr(frame)
        assert max(map(len, said.splitlines())) <= 80 and "..." not in said
        assert set(frame.columns) <= {*said.split()} and repr(frame) == str(frame)
    with pd.option_context("display.max_columns", 0, "display.width", 80):
        assert "..." in repr(pd.DataFrame(jb.summary(ds)))  # as pandas has it

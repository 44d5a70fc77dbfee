"""Statistics on synthetic results whose true means, differences and exponents are known."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import jaxbandits as jb
from jaxbandits import intervals, statistics
from jaxbandits.reports.page import report
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
    row = statistics.summary(result([5.0], seeds=1, sigma=0.0)).iloc[0]
    assert row["mean"] == pytest.approx(5.0) and np.isnan(row["ci_low"]) and np.isnan(row["ci_high"])


def test_summary_has_one_regular_row_a_point():
    ds = result([[4.0, 2.0, 1.0], [8.0, 8.0, 8.0]], grid={"epsilon": [0.1, 1.0, 10.0]})
    frame = statistics.summary(ds)
    rows = frame[["algorithm", "epsilon"]].itertuples(index=False, name=None)
    assert list(rows) == [(a, e) for a in ("alg0", "alg1") for e in (0.1, 1.0, 10.0)]
    lanes = ds["regret"].sel(algorithm="alg0", epsilon=1.0).values[:, -1]
    expected = (200, lanes.mean(), np.median(lanes), np.quantile(lanes, 0.05), np.quantile(lanes, 0.95))
    np.testing.assert_allclose(frame.loc[1, ["seeds", "mean", "median", "q05", "q95"]].astype(float), expected)
    early = statistics.summary(ds, t=100)
    np.testing.assert_allclose(early["mean"], frame["mean"] * 0.1, rtol=1e-12)  # (100 / 10,000) ** 0.5


def test_summary_counts_non_finite_rewards_and_keeps_non_finite_regret():
    ds = result([4.0, 2.0], seeds=5)
    ds["nonfinite_rewards"] = (("algorithm", "seed"), [[0, 1, 2, 0, 0], [0, 0, 0, 0, 0]])
    ds["regret"][1, 2, -1] = np.nan
    frame = statistics.summary(ds)
    assert frame["nonfinite_rewards"].tolist() == [3, 0]
    assert np.isfinite(frame["mean"][0]) and np.isnan(frame["mean"][1])


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
    with pytest.raises(ValueError, match="t = 1000 lies beyond horizon 100"):
        statistics.summary(ds, t=1000)


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


def test_bootstrap_interval_of_a_slope_covers():
    covered, widths, slopes = [], [], []
    for i in range(200):
        ds = result(100.0 * np.array([[1.0, 0.1, 0.01]]), grid={"epsilon": [0.1, 1.0, 10.0]}, seeds=40,
                    rng=np.random.default_rng(i), times=np.array([10]))  # fmt: skip
        row = statistics.slope(ds, "epsilon").iloc[0]
        covered.append(row["ci_low"] <= -1.0 <= row["ci_high"])
        widths.append(row["ci_high"] - row["ci_low"])
        slopes.append(row["slope"])
    # The percentile bootstrap of 40 seeds is a little narrow; four standard errors of 200 are 0.06.
    assert 0.87 < np.mean(covered) < 0.99
    # 3.92 standard errors wide: an interval of 90% would have 3.29
    assert np.mean(widths) / np.std(slopes) == pytest.approx(3.92, rel=0.1)


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


def test_latex_table_escapes_labels_and_balances_and_many_values_become_rows():
    ds = result([[4000.0, 2.0], [8.0, 8.0]], grid={"noise_scale": [1, 2]})
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
    with pytest.warns(UserWarning, match=r"1 of 1 rows may be wrong with 200 seeds \(4,.* seeds would do"):
        row = statistics.compare(skewed, "a", "b").iloc[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = statistics.compare(skewed, "a", "b", interval="bootstrap-t").iloc[0]
        statistics.compare(of_differences(rng.normal(size=30)), "a", "b")
    assert other["ci_high"] > row["ci_high"] and row["ci_low"] != other["ci_low"]
    assert "may miss the mean more often, as regret is skewed" in statistics.table(skewed)
    assert "Of fewer than 30 seeds" in statistics.table(of_differences(rng.normal(size=29)))
    page = report(skewed, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "1 of 1 rows have too few seeds" in page


def test_the_interval_of_a_ratio_holds_it_in_95_of_100_and_uses_the_pairs():
    """Two means over the same seeds, of normal numbers, for which Fieller's interval is exact."""
    rng = np.random.default_rng(3)
    shared = rng.normal(size=(4_000, 12))
    a, b = 6.0 + 2.0 * shared + 0.5 * rng.normal(size=shared.shape), 3.0 + shared
    ratio, low, high = intervals.of_ratio(a, b)
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

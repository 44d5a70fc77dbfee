"""Sweeps put together: what one sweep of all would give, and nothing that counts or pairs seeds wrongly."""

import json
import math
from functools import partial

import numpy as np
import pytest
import xarray as xr

import jaxbandits as jb
from jaxbandits.reports import plot

ARMS = jb.environments.bernoulli_arms(means=[0.2, 0.8])
SETTINGS = dict(horizon=50, checkpoints=2, grid={"bonus_scale": [0.5, 1.0]}, progress=False)


@pytest.fixture(scope="module")
def whole():
    return jb.sweep(["ucb1", "moss"], ARMS, seeds=6, **SETTINGS)


def of(algorithms, *seeds):
    return jb.sweep(algorithms, ARMS, seeds=range(*seeds), **SETTINGS)


def test_parts_give_what_one_sweep_of_all_gives(whole):
    def attributes(ds):
        return {k: json.loads(x) if k != "schema_version" else x for k, x in ds.attrs.items()}

    of_seeds = [of(["moss", "ucb1"], 2, 6), of(["ucb1", "moss"], 0, 2)]
    for dim, datasets in {"seed": of_seeds, "algorithm": [of("ucb1", 6), of("moss", 6)]}.items():
        joined = jb.concat(datasets, dim=dim)
        xr.testing.assert_equal(joined.sel(algorithm=whole.algorithm.values), whole)
        assert attributes(joined) == attributes(whole)
    apart = jb.concat([of("ucb1", 0, 2), of("ucb1", 4, 6)], dim="seed")
    assert json.loads(apart.attrs["config"])["seeds"] == [0, 1, 4, 5]


def test_what_one_part_says_of_itself_is_kept_or_left_out():
    private = of("moss", 2).assign_attrs(privacy="simulated")
    assert jb.concat([of("ucb1", 2), private], "algorithm").attrs["privacy"] == "simulated"
    first = of("ucb1", 0, 2)
    config = json.loads(first.attrs["config"]) | {"until": {"most": 9}}
    first = first.assign_attrs(decisions="{}", config=json.dumps(config))
    joined = jb.concat([first, of("ucb1", 2, 4)], "seed")
    assert "decisions" not in joined.attrs and "until" not in json.loads(joined.attrs["config"])


def test_a_tied_key_stands_beside_the_algorithms_that_take_it(tmp_path):
    """The rate of EXP3 is nothing that UCB1 or a pair without EXP3 was run with."""
    grid = {("exp3.learning_rate", "exp3.mixing"): [(0.1, 0.0), (0.2, 0.1)]}
    settings = SETTINGS | {"grid": grid, "seeds": 4}
    ds = jb.sweep(["ucb1", "moss", "exp3"], ARMS, **settings, store=tmp_path)
    parts = [jb.sweep(names, ARMS, **settings | {"grid": g}) for names, g in ((["exp3", "ucb1"], grid),)]
    for here in (ds, jb.load(tmp_path), *parts):
        taken = jb.summary(here).set_index("algorithm")["exp3.mixing"]
        assert taken["exp3"].tolist() == [0.0, 0.1] and taken.drop("exp3").isna().all()
    joined = jb.concat([ds.sel(algorithm=["ucb1", "moss"]), ds.sel(algorithm=["exp3"])], dim="algorithm")
    assert jb.summary(joined).equals(jb.summary(ds))
    renamed = ds.sel(algorithm=["ucb1"]).assign_coords(algorithm=["mine"])
    joined = jb.concat([renamed, ds.sel(algorithm=["exp3"])], dim="algorithm")
    taken = jb.summary(joined).set_index("algorithm")["exp3.mixing"]
    assert taken["exp3"].tolist() == [0.0, 0.1] and taken["mine"].isna().all()
    of_all = settings | {"grid": {("ucb1.bonus_scale", "environment.gap"): [(0.5, 0.1), (1.0, 0.2)]}}
    shared = jb.sweep(["ucb1", "moss"], partial(jb.environments.fixed_gap_losses, num_arms=2), **of_all)
    assert jb.summary(shared)["environment.gap"].tolist() == [0.1, 0.2] * 2
    with pytest.warns(UserWarning, match="4 seeds"):
        pairs = {b: jb.compare(ds, "ucb1", b).columns for b in ("moss", "exp3")}
    assert "exp3.mixing" in pairs["exp3"] and "exp3.mixing" not in pairs["moss"]


def test_algorithms_are_paired_on_the_seeds_that_all_have(whole):
    parts = [of("ucb1", 0, 4), of("moss", 2, 6)]
    with pytest.warns(UserWarning, match="2 seeds are in all sweeps"):
        joined = jb.concat(parts, dim="algorithm")
    row, want = (jb.compare(ds, "ucb1", "moss").iloc[0] for ds in (joined, whole.sel(seed=[2, 3])))
    assert row["seeds"] == 2 and row["difference"] == want["difference"]


def outer(*parts, dim):
    return xr.concat(parts, dim, join="outer", data_vars="all", coords="minimal", compat="override")


WRONG = {
    "other seeds": lambda: outer(of("ucb1", 0, 4), of("moss", 2, 6), dim="algorithm"),
    "disjoint seeds": lambda: outer(of("ucb1", 0, 2), of("moss", 2, 4), dim="algorithm"),
    "other algorithms": lambda: outer(of("ucb1", 0, 2), of("moss", 2, 4), dim="seed"),
    "seeds twice": lambda: outer(of(["ucb1", "moss"], 0, 4), of(["ucb1", "moss"], 2, 6), dim="seed"),
    "a label twice": lambda: outer(of(["ucb1", "moss"], 0, 4), of("ucb1", 0, 4), dim="algorithm"),
}
READERS = (
    *(jb.summary, jb.slope, jb.table, plot.regret, lambda ds: jb.compare(ds, "ucb1", "moss")),
    *(lambda ds: plot.against(ds, "bonus_scale"), lambda ds: jb.report(ds, "never.html")),
)


@pytest.mark.parametrize("wrong", WRONG)
def test_no_reader_takes_runs_that_were_joined_wrongly(wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ds = WRONG[wrong]()
    for read in READERS:
        with pytest.raises(ValueError, match=r"jb\.concat"):
            read(ds)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_joined_is_named(whole):
    other = jb.sweep("moss", jb.environments.bernoulli_arms(means=[0.3, 0.8]), seeds=6, **SETTINGS)
    for datasets, dim, says in [
        ([of("ucb1", 4), of("ucb1", 3, 6)], "seed", r"seed 3 stands in datasets\[0\] and datasets\[1\]"),
        ([whole, of("ucb1", 6)], "algorithm", "'ucb1' stands in"),
        ([of("ucb1", 6), other], "algorithm", r"environment.means\[0\] is 0.3 there, 0.2 here"),
        ([of("ucb1", 3), of("moss", 3, 6)], "seed", "algorithms"),
        ([of("ucb1", 3), of("moss", 3, 6)], "algorithm", "no seed is in all"),
        ([of("ucb1", 3)], "t", "dim = 't'"),
    ]:
        with pytest.raises(ValueError, match=says):
            jb.concat(datasets, dim=dim)
    with pytest.raises(TypeError, match="must be a list"):
        jb.concat(whole, dim="seed")


def test_nan_is_data_where_the_run_is_there_and_fills_what_is_not(whole):
    broken = whole.copy(deep=True)
    broken["regret"][0, :, 2] = np.nan  # with pulls
    row = jb.compare(broken, "ucb1", "moss").iloc[0]
    assert math.isnan(row["difference"]) and math.isnan(row["share_lower"])
    diagnosed = of("ucb1", 2).assign(extra=lambda ds: ds.regret.isel(t=-1, drop=True))
    joined = jb.concat([diagnosed, of("moss", 2)], "algorithm")
    assert np.isnan(joined.extra.sel(algorithm="moss")).all() and joined.extra.sel(algorithm="ucb1").notnull().all()

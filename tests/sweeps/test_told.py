"""What a Dataset says was computed at its points: kept by files and by xarray, and read by `concat` and by tables."""

import array
import json
import tomllib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbandits as jb
from jaxbandits import selection
from jaxbandits.protocol import Span
from jaxbandits.reports.page.runs import as_raw, runs
from jaxbandits.selection import whole
from jaxbandits.sweeps.arguments import jsonable

ARMS = jb.environments.bernoulli_arms(means=[0.2, 0.8])
SETTINGS = dict(horizon=50, checkpoints=2, progress=False)
EPSILON = {"epsilon": [0.5, 1.0, 2.0]}


def words(ds, which):
    """The digests of the world (0) or of all (1), without their axes."""
    return [text.split()[which] for text in np.ravel(ds.identity)]


@pytest.fixture(scope="module")
def private():
    return jb.sweep(["ucb1", "ldp_ucb"], ARMS, seeds=4, grid=EPSILON, **SETTINGS)


def changed(means):
    x = np.array(means)
    return ARMS._replace(params=ARMS.params._replace(means=x), facts={**ARMS.facts, "means": x})


def test_it_tells_worlds_and_algorithms_apart_and_not_seeds(private, tmp_path):
    ucb, ldp = private.identity
    assert len({*words(private, 0)}) == 1 and len({*words(private, 1)}) == 1 + len(EPSILON["epsilon"])
    assert len({*ucb.values}) == 1 and len({*ldp.values}) == len(EPSILON["epsilon"])
    more = jb.sweep(["ldp_ucb"], ARMS, seeds=range(4, 6), grid=EPSILON, store=tmp_path, **SETTINGS)
    assert more.identity.values.tolist() == [ldp.values.tolist()]
    other = jb.sweep("ucb1", changed([0.2, 0.7]), seeds=2, **SETTINGS)
    assert not {*words(other, 0)} & {*words(private, 0)} and not {*words(other, 1)} & {*words(private, 1)}
    later = jb.sweep("ucb1", ARMS, seeds=2, **SETTINGS | {"horizon": 51})
    assert not {*words(later, 0)} & {*words(private, 0)}


def test_batches_of_other_lengths_are_another_run():
    def batched(*, num_arms, horizon, length):
        made = jb.algorithms.uniform(num_arms=num_arms, horizon=horizon)
        return made._replace(schedule=(Span(2, horizon // length, length=length),))

    ds = jb.sweep(batched, ARMS, seeds=2, grid={"length": [4, 8]}, **SETTINGS | {"horizon": 40})
    assert len({*words(ds, 1)}) == 2


def test_files_and_xarray_keep_it(private, tmp_path):
    want = private.identity.values.tolist()
    parts = [jb.load(jb.save(private.sel(algorithm=[x]), tmp_path / f"{x}.nc")) for x in ("ucb1", "ldp_ucb")]
    joined = xr.concat(parts, "algorithm", data_vars="all").rename(epsilon="budget")
    assert joined.identity.dims == ("algorithm", "budget") and joined.identity.values.tolist() == want
    assert str(private.sel(algorithm="ldp_ucb", epsilon=2.0).identity.values) == want[1][2]


@pytest.fixture(scope="module")
def three():
    return jb.sweep(["ucb1", "moss", "ldp_ucb"], ARMS, seeds=4, grid=EPSILON, **SETTINGS)


@pytest.mark.filterwarnings("ignore:compare")
def test_attributes_that_are_gone_change_no_correction(three):
    """`constant_along` says which rows are one: lost, or written in names that are none now."""
    rows = lambda ds, *sides: jb.compare(ds, *(sides or ("ucb1", "moss")))["p_holm"].tolist()
    want, bare = rows(three), three.drop_vars("identity")
    assert len(want) == 1
    renamed = {"algorithm": ["UCB", "MOSS", "x"]}
    assert rows(three.drop_attrs()) == rows(bare.rename(epsilon="budget")) == want
    assert rows(bare.assign_coords(renamed), "UCB", "MOSS") == rows(three.assign_coords(renamed), "UCB", "MOSS") == want
    assert len(rows(bare.assign_coords(renamed), "UCB", "x")) == 3


def test_claims_of_algorithms_that_another_part_had_are_not_lost(private, tmp_path):
    claims = json.loads(whole(private.drop_attrs(), "").attrs["guarantees"])
    assert claims == {"ldp_ucb": {"model": "not recorded", "unit": "unit"}}
    assert json.loads(whole(private, "").attrs["guarantees"]) == {"ldp_ucb": {"model": "local", "unit": "reward"}}
    parts = [private.sel(algorithm=[x]) for x in ("ucb1", "ldp_ucb")]
    first = parts[0].assign_attrs(guarantees="{}", config=json.dumps({"algorithms": {"ucb1": {"name": "ucb1"}}}))
    joined = xr.concat([first, parts[1]], "algorithm")
    assert "epsilon_spent" in jb.summary(joined)
    page = jb.report(joined, tmp_path / "r.html").read_text()
    assert "not recorded, one unit" in page and "No algorithm here has a guarantee" not in page
    assert "<pre>[environment]" not in page and "does not say how it was computed" in page  # no file of a part
    for lost in (0, 1):
        lacking = [part.drop_attrs() if i == lost else part for i, part in enumerate(parts)]
        told = jb.concat(lacking, dim="algorithm").attrs
        kept = "ldp_ucb" if lost == 0 else "ucb1"
        assert kept in json.loads(told["constant_along"]) and kept in json.loads(told["config"])["algorithms"]


def test_renamed_labels_are_renamed_in_decisions_and_in_keys():
    seeds = jb.until([("uniform", "ucb1")])
    ds = jb.sweep(["ucb1", "uniform"], ARMS, seeds=seeds, **SETTINGS | {"horizon": 100})
    swapped = ds.assign_coords(algorithm=["uniform", "ucb1"])
    assert jb.decisions(ds)["lower"].tolist() == ["ucb1"] and jb.decisions(swapped)["lower"].tolist() == ["uniform"]
    named = jb.sweep({"a": "ldp_ucb", "a.b": "ucb1"}, ARMS, seeds=2, grid={"a.epsilon": [0.5, 1.0]}, **SETTINGS)
    (run,) = runs(named.assign_coords(algorithm=["local", "UCB"]))
    raw = tomllib.loads(run.toml)
    assert raw["grid"] == {"local.epsilon": [0.5, 1.0]} and [x["label"] for x in raw["algorithm"]] == ["local", "UCB"]
    assert run.unplanned == "" and selection.grid_dims(run.ds) == ["local.epsilon"]  # as the file gives it
    points = jb.sweep({"a": "ldp_ucb"}, ARMS, seeds=2, points=[{"a.epsilon": 0.5}, {"a.epsilon": 1.0}], **SETTINGS)
    (run,) = runs(points.assign_coords(algorithm=["local"]))
    assert tomllib.loads(run.toml)["points"] == [{"local.epsilon": 0.5}, {"local.epsilon": 1.0}]
    assert selection.relabel_key("a.epsilon+a.b.bonus_scale", {"a": "x", "a.b": "y"}) == "x.epsilon+y.bonus_scale"


def test_the_file_of_a_part_has_no_key_that_nothing_takes(private):
    part = whole(private.sel(algorithm=["ucb1"]), "")
    assert not as_raw(json.loads(part.attrs["config"]), part).get("grid")
    both = whole(private, "")
    assert as_raw(json.loads(both.attrs["config"]), both)["grid"] == EPSILON


def test_a_renamed_dimension_is_said(private):
    for ds in (private.rename(algorithm="method"), private.assign_coords(name=("algorithm", ["x", "y"]))
               .swap_dims(algorithm="name")):  # fmt: skip
        with pytest.raises(
            ValueError, match=r"summary: ds has no 'algorithm' any more: .* rename no dimension but keys"
        ):
            jb.summary(ds)


def test_one_algorithm_that_does_not_say_what_it_is_is_joined_with_a_warning(private):
    told = private.identity.values.astype(object)
    for at in np.ndindex(told[1].shape):
        world, _, label = told[1][at].split()
        told[1][at] = f"{world} -{'0' * 15} {label}"
    some = private.assign_coords(identity=(private.identity.dims, told.astype(str)))
    with pytest.warns(UserWarning, match="not all say what was computed"):
        joined = jb.concat([private.sel(seed=[0, 1]), some.sel(seed=[2, 3])], dim="seed")
    np.testing.assert_array_equal(joined.regret, private.regret)


def test_other_worlds_are_refused_where_the_arguments_look_alike(private):
    (one, other), far = (
        [jb.sweep(name, changed([x, 0.7]), seeds=2, **SETTINGS) for name, x in (("ucb1", 0.2), ("moss", 0.3))],
        jb.sweep("moss", changed([0.2, 0.9]), seeds=2, **SETTINGS),
    )
    assert json.loads(one.attrs["config"])["environment"] == json.loads(other.attrs["config"])["environment"]
    with pytest.raises(ValueError, match=r"another run.*recorded alike"):
        jb.concat([one, other], dim="algorithm")
    same = jb.sweep("moss", changed([0.2, 0.7]), seeds=2, **SETTINGS)
    assert jb.concat([one, same], dim="algorithm").identity.values.tolist() == [*one.identity, *same.identity]
    bare = other.drop_vars("identity")
    with pytest.warns(UserWarning, match="not all say what was computed") as told:
        assert "identity" not in jb.concat([one, bare, bare.assign_coords(algorithm=["b"])], dim="algorithm").coords
    assert len(told) == 1
    with pytest.warns(UserWarning, match="not all say"), pytest.raises(ValueError, match=r"other worlds.*best_reward"):
        jb.concat([one, far.drop_vars("identity")], dim="algorithm")
    newer = other.assign_attrs(versions=json.dumps({"jaxbandits": "9.0"}))
    with pytest.warns(UserWarning, match="different releases"):
        jb.concat([one, newer], dim="algorithm")


def test_a_part_of_a_published_sweep_is_joined_with_an_own_one(private):
    grid = {"environment.means": {"hard": [0.4, 0.5], "easy": [0.2, 0.8]}} | EPSILON
    published = jb.sweep("ldp_ucb", jb.environments.bernoulli_arms, seeds=4, grid=grid, **SETTINGS)
    own = private.sel(algorithm=["ucb1"], epsilon=[1.0, 2.0])
    took = {"epsilon": [1.0, 2.0]}
    joined = jb.concat([published.sel({"environment.means": "easy"} | took), own], dim="algorithm")
    want = private.sel(took)
    got = joined.sel(algorithm=want.algorithm.values).transpose(*want.regret.dims, ...)
    np.testing.assert_array_equal(got.regret, want.regret)
    assert got.identity.values.tolist() == want.identity.values.tolist()
    with pytest.raises(ValueError, match="another run"):
        jb.concat([published.sel({"environment.means": "hard"} | took), own], dim="algorithm")


@pytest.mark.filterwarnings("ignore:compare")
def test_names_that_were_changed_change_no_row_and_no_correction(private):
    want = jb.compare(private, "ucb1", "ldp_ucb")
    swapped = private.assign_coords(algorithm=["ldp_ucb", "ucb1"]).rename(epsilon="budget")
    got = jb.compare(swapped, "ldp_ucb", "ucb1")
    assert got.budget.tolist() == want.epsilon.tolist() and got.p_holm.tolist() == want.p_holm.tolist()
    idle = private.assign_coords(algorithm=["plain", "local"])
    line = jb.plot.against(idle, "epsilon").data
    assert line.shape == jb.plot.against(private, "epsilon").data.shape
    for ds in (idle, jb.concat([swapped.sel(algorithm=[x]) for x in ("ldp_ucb", "ucb1")], dim="algorithm")):
        plain, local = ("plain", "local") if ds is idle else ("ldp_ucb", "ucb1")
        attrs = {key: json.loads(whole(whole(ds, ""), "").attrs[key]) for key in ("guarantees", "config")}
        assert attrs["guarantees"].keys() == {local}
        assert {x: about["name"] for x, about in attrs["config"]["algorithms"].items()} == {
            plain: "ucb1",
            local: "ldp_ucb",
        }


def test_arrays_of_other_libraries_are_recorded_as_numbers():
    for x in (jnp.array([0.125, 0.75]), xr.DataArray([0.125, 0.75]), [jnp.float32(0.125), np.float64(0.75)]):
        assert jsonable(x) == [0.125, 0.75]
    table = np.random.default_rng(0).random((400, 4), np.float32)
    other = np.where(np.arange(400)[:, None] == 200, 1 - table, table)
    assert jsonable(jnp.asarray(table)) == jsonable(table) != jsonable(xr.DataArray(other)) == jsonable(other)
    assert isinstance(jsonable(jax.random.key(0)), str)


@pytest.mark.parametrize(
    "given",
    [xr.DataArray([0.5, 1.0]), memoryview(np.array([0.5, 1.0])), array.array("d", [0.5, 1.0]), {0.5: 0, 1.0: 0}.keys()],
)
def test_numbers_of_any_collection_are_recorded_as_numbers(given):
    ds = jb.sweep("ldp_ucb", ARMS, seeds=2, grid={"epsilon": given}, **SETTINGS)
    assert json.loads(ds.attrs["config"])["grid"]["epsilon"] == [0.5, 1.0] and ds.epsilon.values.tolist() == [0.5, 1.0]
    assert jsonable(memoryview(np.eye(40))) == jsonable(np.eye(40)) and jsonable(b"x") == "b'x'"

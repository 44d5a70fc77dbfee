"""Tables of rewards and logs of choices: what is read, refused and said, in every source."""

import bz2
import lzma
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from reference.own_data import F, R, golden_log, read_golden
from test_tables import files, refused

import jaxbandits as jb

COLUMNS = golden_log()[1]
FRAME = pd.DataFrame(COLUMNS)
read = partial(jb.read_logged, arm="arm", reward="click", propensity="chance")


class OtherTable:
    """As polars and pyarrow have it."""

    def __init__(self, frame):
        self.frame = frame

    def to_pandas(self):
        return self.frame


def test_reference_values_of_the_golden_log():
    log = read_golden()
    found = log.check()
    assert np.bincount(log.arm).tolist() == found["rows"].tolist() == [167, 94, 139] and log.reward.sum() == 135
    np.testing.assert_allclose(found["mean_weight"], [1.0641666667, 0.9125, 0.968125], atol=1e-10)
    np.testing.assert_allclose(found["mean_weight"].sum(), 2.9447916667, atol=1e-10)
    np.testing.assert_allclose((1 / log.propensity).mean(), 2.9447916667, atol=1e-10)
    weights = np.where(log.arm == 1, 1 / log.propensity, 0)
    np.testing.assert_allclose(found["standard_error"].iloc[1], weights.std(ddof=1) / 20, rtol=1e-12)
    np.testing.assert_allclose(found["mean_reward"].iloc[2], log.reward[log.arm == 2].mean())
    assert found["smallest_propensity"].tolist() == [0.1, 0.2, 0.1] and found.index.tolist() == ["0", "1", "2"]
    assert log.arm.dtype == np.int32 and log.feature_names == log.features.names == ("x", "y")
    np.testing.assert_array_equal(log.features, FRAME[["x", "y"]])


def test_every_source_gives_one_log(tmp_path):
    want = read_golden()
    texts = {name: [repr(float(x)) if name != "arm" else str(x) for x in column] for name, column in COLUMNS.items()}
    for path in files(tmp_path, texts):
        if path.suffix == ".npz":  # one array of the others, whose columns are numbered
            np.savez(path, rows=FRAME[["x", "y", "click", "chance"]].to_numpy(), arm=COLUMNS["arm"])
            found = jb.read_logged(path, arm="arm", reward=3, propensity=4)._replace(feature_names=want.feature_names)
        else:
            found = read(path)
        for mine, other in zip(found, want, strict=True):
            np.testing.assert_array_equal(mine, other)
    for found, other in zip(read(OtherTable(FRAME)), want, strict=True):
        np.testing.assert_array_equal(found, other)


def test_other_tables_are_read_by_all_readers():
    losses = pd.DataFrame({"a": [0.1, 0.5], "b": [1.0, 0.0]})
    assert jb.read_losses(OtherTable(losses)).tolist() == [[0.1, 1], [0.5, 0]]
    labelled = pd.DataFrame({"a": [0.1, 0.5], "y": ["u", "v"]})
    assert jb.read_labelled(OtherTable(labelled), label="y")[1].names == ("u", "v")
    features, rewards = jb.read_table(OtherTable(losses.assign(c=[3, 3])), rewards=["b", "a"])
    assert rewards.tolist() == [[1, 0.1], [0, 0.5]] and rewards.names == ("b", "a") and features.names == ("c",)
    refused(partial(jb.read_losses, OtherTable(losses["a"])), "type Series must be the name of a file or a pandas")

    class Broken:
        def to_pandas(self):
            raise ModuleNotFoundError("pyarrow is required")

    refused(partial(jb.read_losses, Broken()), "Broken does not become a pandas DataFrame (pyarrow is required)")


def test_only_named_columns_of_parquet_are_read(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    FRAME.assign(note="long", other=1).to_parquet(tmp_path / "log.parquet", index=False)
    asked, plain = [], parquet.read_table
    monkeypatch.setattr(
        parquet, "read_table", lambda path, columns=None: asked.append(columns) or plain(path, columns=columns)
    )
    log = read(tmp_path / "log.parquet", features=["y"])
    np.testing.assert_array_equal(log.features, FRAME[["y"]])
    assert asked.pop() == ["arm", "click", "chance", "y"]
    refused(partial(read, tmp_path / "log.parquet", features=["z"]), "there is no column 'z'", "it has x, y, arm")
    refused(partial(read, tmp_path / "log.parquet"), "column note: 'long' is not a number")


def test_columns_that_are_not_used_may_hold_anything():
    frame = FRAME.assign(note="text", when=pd.Timestamp("2024-01-01"), hole=np.nan)
    log = read(frame, features=["y", "x"])
    assert log.feature_names == ("y", "x") and len(log.arm) == 400
    refused(partial(read, frame), "column note: 'text' is not a number")


def test_arms_are_read_as_labels_are(tmp_path):
    text = "x,item,paid\n" + "".join(f"{i % 7},{['07', '7', 'a b'][i % 3]},{i % 2}\n" for i in range(60))
    (tmp_path / "log.csv").write_text(text)
    log = jb.read_logged(tmp_path / "log.csv", arm="item", reward="paid")
    assert log.arm_names == ("07", "7", "a b") and log.arm[:3].tolist() == [0, 1, 2] and log.propensity is None
    with pytest.warns(UserWarning, match="fewer than 10 rows are hardly known: new$"):
        log = jb.read_logged(tmp_path / "log.csv", arm="item", reward="paid", arms=["new", "a b", "7", "07"])
    assert log.arm_names == ("new", "a b", "7", "07") and log.arm[:3].tolist() == [3, 2, 1]
    with pytest.warns(UserWarning, match=r"not those of 2 \(1.39 .* 0 \(1.67 .* 3 \(0 \+- 0\): propensities are wrong"):
        log = read(FRAME, propensity="uniform", arms=[2, 0, 1, 3], features=["x"])
    assert log.arm_names == ("2", "0", "1", "3") and log.propensity.tolist() == [0.25] * 400


def test_wrong_cells_name_row_and_column():
    def changed(row, **cells):
        frame = FRAME.copy().astype({"arm": object}).set_index(np.arange(400) + 10)
        for name, value in cells.items():
            frame.loc[row + 9, name] = value
        return frame

    where = "the DataFrame: row 7 (index 16), column "
    for cells, texts, options in (
        ({"arm": 3}, "arm: 3 is none of the arms 0, 1, 2", {"arms": [0, 1, 2]}),
        ({"arm": None}, "arm: the cell is missing", {}),
        ({"arm": None}, "arm: the cell is missing", {"missing": "mean"}),
        ({"click": np.nan}, "click: the cell is missing", {"missing": "mean"}),
        ({"click": np.inf}, "click: inf must be finite", {}),
        ({"chance": 0.0}, "chance: 0 must be in (0, 1]", {}),
        ({"chance": 1.01}, "chance: 1.01 must be in (0, 1]", {}),
        ({"chance": np.nan}, "chance: the cell is missing", {}),
        ({"x": np.nan}, "x: the cell is missing", {}),
    ):
        refused(partial(read, changed(7, **cells), **options), where + texts)
    with pytest.warns(UserWarning, match="2 of 400 rows have a missing cell and are left out: rows 7, 8"):
        assert (
            len(read(changed(7, arm=None).assign(x=lambda f: f["x"].where(f.index != 17)), missing="drop").arm) == 398
        )
    # rows that are left out do not move the others' names
    broken = changed(9, chance=0.0)
    broken.loc[11, "x"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"row 9 \(index 18\), column chance: 0 must be"):
            read(broken, missing="drop")
    filled = read(changed(7, x=np.nan), missing="mean")
    np.testing.assert_allclose(filled.features[6, 0], np.delete(COLUMNS["x"], 6).mean())


def test_a_log_is_split_without_a_row_in_common():
    log = read_golden(features=["x", "y"])._replace(reward=np.arange(400.0))
    for share, n in ((0.5, 200), (0.3, 120)):
        first, second = log.split(share)
        assert len(first.arm) == n and sorted([*first.reward, *second.reward]) == list(range(400))
        for part in (first, second):
            at = part.reward.astype(int)
            for name in ("features", "arm", "propensity"):
                np.testing.assert_array_equal(getattr(part, name), getattr(log, name)[at])
            assert part.arm_names == log.arm_names and (np.diff(at) < 0).any()
    again, other = log.split(0.3)[0], log.split(0.3, seed=1)[0]
    assert again.reward.tolist() == first.reward.tolist() != other.reward.tolist()
    earlier, later = log._replace(propensity=None).split(0.25, seed=None)
    assert earlier.reward.tolist() == list(range(100)) and later.reward[0] == 100 and later.propensity is None
    for share in (0.001, 0.999):
        with pytest.raises(ValueError, match="leaves one part empty"):
            log.split(share)


def test_propensities_that_cannot_be_right_are_said():
    with pytest.warns(UserWarning) as caught:
        read(FRAME.assign(chance=FRAME["chance"] / 2))
    assert len(caught) == 1 and caught[0].filename == __file__
    assert r"not those of 0 (2.13 +- 0.17), 1 (1.82 +- 0.17), 2 (1.94 +- 0.21): propensities" in str(caught[0].message)
    log = read_golden()
    with pytest.warns(UserWarning, match="1 rows have a propensity below 0.001") as caught:
        log._replace(propensity=np.where(np.arange(400) == 5, 9e-4, log.propensity)).check()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():  # four standard errors are not much for small numbers of rows
        warnings.simplefilter("error")
        read(FRAME.assign(chance=FRAME["chance"] * 0.8))
        for count in (40, 80, 120):
            read(FRAME[:count])


def test_logs_that_are_changed_by_hand_are_looked_at():
    log = read_golden()
    for change, text in (
        ({"arm": log.arm[:-1]}, "log.arm has shape (399,); it must be (400,)"),
        ({"arm": np.full(400, 3)}, "log.arm must hold integers from 0 to 2, for 3 names"),
        ({"arm": log.arm + 0.5}, "log.arm must hold integers"),
        ({"reward": np.full(400, np.nan)}, "log.reward[0] = nan must be finite"),
        ({"propensity": np.zeros(400)}, "log.propensity[0]: 0 must be in (0, 1]"),
    ):
        refused(log._replace(**change).check, text)
        refused(partial(jb.environments.fitted, log=log._replace(**change)), text)


def test_tables_of_rewards(tmp_path):
    frame = pd.DataFrame(np.column_stack([F, R]), columns=["a", "b", "c", "r1", "r2", "r3"])
    texts = {name: [repr(float(x)) for x in frame[name]] for name in frame}
    for path in files(tmp_path, texts):
        names = ["4", "5", "6"] if path.suffix == ".npz" else ["r1", "r2", "r3"]
        features, rewards = jb.read_table(path, rewards=names)
        np.testing.assert_array_equal(features, F)
        np.testing.assert_array_equal(rewards, R)
    features, rewards = jb.read_table(frame, rewards=["r3", "r1"])
    assert features.names == ("a", "b", "c", "r2") and rewards[:, 0].tolist() == R[:, 2].tolist()
    world = jb.environments.contextual_table(features=frame[["a", "b", "c"]], rewards=frame[["r1", "r2"]])
    assert world.facts["arm_names"] == ("r1", "r2") and world.facts["rows"].names == ("a", "b", "c")
    assert (
        type(world.config["rewards"]) is np.ndarray
        and "arm_names" not in jb.environments.contextual_table(features=F, rewards=R).facts
    )
    first = frame.assign(a=np.r_[np.nan, F[1:, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        features, _ = jb.read_table(first, rewards=["r1", "r2", "r3"], missing="mean")
    np.testing.assert_allclose(features[0, 0], F[1:, 0].mean())
    for suffix, module in (("bz2", bz2), ("xz", lzma)):
        (tmp_path / f"small.csv.{suffix}").write_bytes(module.compress(b"a,r1,r2\n0,1,0\n2,0,1\n"))
        features, rewards = jb.read_table(tmp_path / f"small.csv.{suffix}", rewards=["r1", "r2"])
        assert (features.tolist(), rewards.tolist()) == ([[0], [2]], [[1, 0], [0, 1]])
    frame.loc[3, "r2"] = np.nan
    for missing in ("error", "mean"):
        refused(
            partial(jb.read_table, frame, rewards=["r1", "r2"], missing=missing), "row 4 (index 3), column r2: the cell"
        )
    with pytest.warns(UserWarning, match="1 of 40 rows"):
        assert len(jb.read_table(frame, rewards=["r1", "r2"], missing="drop")[0]) == 39


def test_rows_that_are_left_out_take_their_numbers_with_them():
    kept, want = np.delete(np.arange(400), [3, 200]), read_golden()
    holes = FRAME.assign(x=FRAME["x"].where(FRAME.index != 3))
    holes["arm"] = FRAME["arm"].astype(object).where(FRAME.index != 200)
    with pytest.warns(UserWarning, match="2 of 400 rows"):
        found = read(holes, missing="drop")
    for name in ("features", "arm", "reward", "propensity"):
        np.testing.assert_array_equal(getattr(found, name), getattr(want, name)[kept])
    frame = pd.DataFrame(np.column_stack([F, R]), columns=["a", "b", "c", "r1", "r2", "r3"])
    frame.loc[3, "r2"] = np.nan
    with pytest.warns(UserWarning, match="1 of 40 rows"):
        features, rewards = jb.read_table(frame, rewards=["r1", "r2", "r3"], missing="drop")
    np.testing.assert_array_equal(features, np.delete(F, 3, 0))
    np.testing.assert_array_equal(rewards, np.delete(R, 3, 0))

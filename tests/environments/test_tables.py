"""Tables of one's own: each rule in every source, for every reader and for every array that a factory takes."""

import gzip
import importlib.util
import inspect
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.sweeps.toml_file import read_config

A, E, V = jb.algorithms, jb.environments, jb.adversaries
PARQUET = importlib.util.find_spec("pyarrow") is not None


def written(path, text):
    """A file of the text, compressed where its name says so."""
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def files(folder, columns):
    """Files of every kind with these columns of texts."""
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    yield written(folder / "t.csv", "".join(",".join(row) + "\n" for row in rows))
    yield written(folder / "t.csv.gz", "".join(",".join(row) + "\r\n" for row in rows))
    yield written(folder / "t.tsv", "\ufeff" + "".join("\t".join(row) + "\n" for row in rows))
    if "y" in columns:
        features = np.array([columns[name] for name in columns if name != "y"]).T
        np.savez(folder / "t.npz", features=features, y=np.array(columns["y"]))
    else:
        np.savez(folder / "t.npz", np.array(list(columns.values())).T)
    yield folder / "t.npz"
    if PARQUET:
        pd.DataFrame(columns).to_parquet(folder / "t.parquet", index=False)
        yield folder / "t.parquet"


def message_of(call):
    """The message of the error that a call raises, of one line; nothing is announced before it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            call()
        except ValueError as error:
            assert "\n" not in str(error)
            return str(error)
    return "no error"


def refused(call, *texts):
    """Assert that a call raises a ValueError that holds the texts in this order."""
    message, place = message_of(call), 0
    for text in texts:
        place = message.find(text, place)
        assert place >= 0, f"no {text!r}, or not in this order: {message}"


IDS = ["1152921504606846977", "1152921504606846976", "9"]


@pytest.mark.filterwarnings("ignore:classification")  # which arm is which
def test_labels_are_what_is_written(tmp_path):
    for labels, in_a_file, in_python in (
        (["007", "07", "7"], ("007", "07", "7"), None),
        (["1.1", "1.10", "1"], ("1", "1.1", "1.10"), None),
        (["1_1", "11", "+11"], ("+11", "11", "1_1"), None),
        (["1e3", "1000", "-0"], ("-0", "1000", "1e3"), None),
        (["inf", "Nan", "None"], ("Nan", "None", "inf"), None),
        ([" a", "a ", "b"], ("a", "b"), None),
        (["10", " 9", "-3"], ("-3", "9", "10"), ("-3", "10", "9")),
        (IDS, tuple(sorted(IDS, key=int)), tuple(sorted(IDS))),
        (["9" * 40, "8" * 40, "5"], ("5", "8" * 40, "9" * 40), ("5", "8" * 40, "9" * 40)),
    ):
        for path in files(tmp_path, {"x": ["1", "5", "2"], "y": labels}):
            assert jb.read_labelled(path, label="y")[1].names == in_a_file, path
        frame = pd.DataFrame({"x": [1, 5, 2], "y": labels})
        assert jb.read_labelled(frame, label="y")[1].names == (in_python or in_a_file)
        for given in (labels, np.array(labels), np.array(labels, object), frame["y"], frame["y"].astype("category")):
            environment = E.classification(features=frame[["x"]], labels=given)
            assert environment.facts["arm_names"] == (in_python or in_a_file)


def test_no_text_of_python_is_a_missing_label():
    words = ["?", "NA", "nan", "NaN", "None", "null", "NaT", "inf"]
    frame = pd.DataFrame({"x": np.arange(8) % 3, "y": words})
    assert jb.read_labelled(frame, label="y")[1].names == tuple(sorted(words))
    assert E.classification(features=frame[["x"]], labels=words).facts["arm_names"] == tuple(sorted(words))


def test_integers_of_any_size_and_type_are_different_labels():
    ids = [2**60, 2**60 + 1, 2**60 + 300]
    frame = pd.DataFrame({"x": [1, 5, 2]})
    for given in (ids, np.array(ids), np.array(ids, np.uint64), pd.Series(ids), pd.array(ids, "Int64")):
        with pytest.warns(UserWarning, match=f"arm 1 is the label {2**60 + 1}"):
            assert E.classification(features=frame, labels=given).facts["arm_names"] == tuple(map(str, ids))
        assert jb.read_labelled(frame.assign(y=given), label="y")[1].names == tuple(map(str, ids))
    for ids in ([2**63, -1, 2**63 + 1], [2**70, 2**70 + 1, 5]):  # lists that NumPy makes floats or objects of
        with pytest.warns(UserWarning, match="arm 2 is the label"):
            environment = E.classification(features=frame, labels=ids)
        assert environment.facts["arm_names"] == tuple(map(str, sorted(ids)))


LOST = "labels: row 2: the label"


def test_labels_that_are_none_are_refused():
    for labels, texts in (
        (["a", None, "b"], (LOST, "None is missing")),
        (["a", " ", "b"], (LOST, "' ' is missing")),
        ([1, float("nan"), 2], (LOST, "nan is missing")),
        (pd.array([1, None, 2]), (LOST, "<NA> is missing")),
        (np.array(["2020-01-01", "NaT", "2020-01-03"], "M8[ns]"), (LOST, "is missing")),
        (np.ma.array([0, 1, 2], mask=[0, 1, 0]), ("labels has masked entries",)),
        ([1.0, 2.0**53, 3.0], (LOST, "no class")),  # its neighbours are this float, too
        ([1.0, -(2.0**53), 3.0], (LOST, "no class")),
        ([1, "1", "a"], (LOST, "one name")),
        (pd.DataFrame({"y": [0, 1, 0]}), ("labels has shape (3, 1)", "give its one column")),
    ):
        refused(partial(E.classification, features=[[1.0], [5.0], [2.0]], labels=labels), *texts)


HEADERS = [
    ("a,b\n0.1,0.2\n", 1, None),
    (" a , b \n0.1,0.2\n", 1, None),
    ("0.1,0.2\n0.3,0.4\n", 2, None),
    ("1_1,1_2\n0.3,0.4\n", 1, None),
    ("NA,NA\n0,1\n", 0, "row 1 (file line 1), column 1: the cell is missing"),
    ("?,?\n0,1\n", 0, "row 1 (file line 1), column 1: the cell is missing"),
    (",\n0,1\n", 0, "row 1 (file line 1), column 1: the cell is missing"),
    ("a,nan\n0,1\n", 0, "row 1 (file line 1), column 1: 'a' is not a number"),
    ("a,inf\n0,1\n", 0, "row 1 (file line 1), column 1: 'a' is not a number"),
    (",b\n0,1\n", 0, "column 1 ('') has no name"),
    ("a,b,\n0,1,\n", 0, "column 3 ('') has no name"),
    ("a,b,a\n0,1,0\n", 0, "two columns have the name 'a': rename or drop"),
]


@pytest.mark.parametrize(("text", "rows", "message"), HEADERS)
def test_one_rule_for_headers(tmp_path, text, rows, message):
    for name in ("t.csv", "t.tsv", "t.csv.gz"):
        path = written(tmp_path / name, text.replace(",", "\t") if name == "t.tsv" else text)
        if message is None:
            assert len(jb.read_losses(path)) == rows
        else:
            refused(partial(jb.read_losses, path), name, message)


def test_a_header_may_be_numbers(tmp_path):
    """Columns that are counted are a header where one of them has no other integer, and a doubt where all have."""
    losses = "0.1,0.5\n0.2,1\n0.3,0.25\n"
    for first in ("0,1", "1,2"):
        path = written(tmp_path / "l.csv", f"{first}\n{losses}")
        assert jb.read_losses(path).tolist() == [[0.1, 0.5], [0.2, 1], [0.3, 0.25]]
    for rows in ("0,1\n0.1,0.5\n0.2,0.9\n", f"0,1\n{losses}1,0\n"):  # few rows; an integer in each column
        with pytest.warns(UserWarning, match=r"l.csv: the first row, 0, 1, may be a header .* taken for data: name"):
            assert jb.read_losses(written(tmp_path / "l.csv", rows))[0].tolist() == [0, 1]
    for first in ("0,0", "1,0", "0,0.5", "0,1.0", "true,0"):  # none of them counts
        assert len(jb.read_losses(written(tmp_path / "l.csv", f"{first}\n{losses}"))) == 4
    # a name among them is a header where it is asked for
    path = written(tmp_path / "r.csv", "2019,2020,kind\n1,2,a\n3,4,b\n")
    features, labels = jb.read_labelled(path, label="kind")
    assert features.tolist() == [[1, 2], [3, 4]] and features.names == ("2019", "2020") and labels.names == ("a", "b")
    assert len(jb.read_labelled(path, label=3)[1]) == 3
    refused(partial(jb.read_labelled, written(path, "0.5,2,a\n3,4,b\n"), label="a"), "there is no column 'a'")


def test_an_index_is_no_column(tmp_path):
    frame = pd.DataFrame({"a": [0.1, 0.2], "b": [0.5, 0.4]}, index=[1, 0])
    frame.to_csv(tmp_path / "t.csv")
    frame.to_csv(tmp_path / "t.csv.gz")
    frame.to_csv(tmp_path / "t.tsv", sep="\t")
    sources = [tmp_path / "t.csv", tmp_path / "t.csv.gz", tmp_path / "t.tsv", pd.read_csv(tmp_path / "t.csv")]
    sources[-1].to_csv(tmp_path / "again.csv", index=False)
    sources.append(tmp_path / "again.csv")
    if PARQUET:
        frame.to_parquet(tmp_path / "t.parquet")
        sources.append(tmp_path / "t.parquet")
    for source in sources:
        for read in (jb.read_losses, partial(jb.read_labelled, label="b")):
            refused(partial(read, source), "column", "has no name", "index=False")
    (mistaken,) = (source for source in sources if isinstance(source, pd.DataFrame))
    for call in (
        partial(E.classification, features=mistaken, labels=[0, 1]),
        partial(E.loss_table, losses=mistaken),
        partial(E.linear_arms, actions=mistaken / 2, theta=[0.1, 0.1, 0.1]),
    ):
        refused(call, "column 1 ('Unnamed: 0') has no name", "index=False")
    twice = pd.concat([frame, frame[["b"]]], axis=1)
    for call in (
        partial(jb.read_losses, twice), partial(jb.read_labelled, twice, label="a"),
        partial(E.classification, features=twice, labels=[0, 1]), partial(E.loss_table, losses=twice),
    ):  # fmt: skip
        refused(call, "two columns have the name 'b': rename or drop one of them")


def test_one_rule_for_missing_cells(tmp_path):
    for word in ("", "?", "NA", "nan", "NaN", " ? "):
        for path in files(tmp_path, {"a": ["0", word, "0.5"], "b": ["1", word, "0.25"]}):
            refused(partial(jb.read_losses, path), str(path), "row 2", "the cell is missing", "missing='drop'")
            with pytest.warns(UserWarning, match="1 of 3 rows have a missing cell and are left out: rows 2$") as caught:
                assert jb.read_losses(path, missing="drop").tolist() == [[0, 1], [0.5, 0.25]]
            assert caught[0].filename == __file__
        for path in files(tmp_path, {"a": ["1", "3", word], "y": ["u", "v", "v"]}):
            refused(partial(jb.read_labelled, path, label="y"), str(path), "row 3", "the cell is missing")
            with pytest.warns(UserWarning, match="1 of 3 rows"):
                features, labels = jb.read_labelled(path, label="y", missing="drop")
            assert features.tolist() == [[1], [3]] and labels.tolist() == [0, 1]
            features, labels = jb.read_labelled(path, label="y", missing="mean")
            assert features.tolist() == [[1], [3], [2]] and labels.names == ("u", "v")
        for path in files(tmp_path, {"a": ["1", "5", "3"], "y": ["u", word, "v"]}):
            for missing in ("error", "mean"):
                read = partial(jb.read_labelled, path, label="y", missing=missing)
                refused(read, str(path), "row 2", "column y: the cell is missing")
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "y": ["u", "v", None]})
    refused(partial(jb.read_labelled, frame, label="y"), "row 2 (index 1), column a: the cell is missing")
    with pytest.warns(UserWarning, match="2 of 3 rows have a missing cell and are left out: rows 2, 3$"):
        assert jb.read_labelled(frame, label="y", missing="drop")[0].tolist() == [[1]]
    assert jb.read_labelled(frame[:2], label="y", missing="mean")[0].tolist() == [[1], [1]]
    refused(partial(E.classification, features=frame[["a"]], labels=[0, 1, 0]), "row 2 (index 1), column a: the cell")
    refused(partial(jb.read_losses, frame[1:2][["a"]], missing="drop"), "the cell is missing: complete it")


def test_words_for_missing_cells_are_chosen(tmp_path):
    path = written(tmp_path / "t.csv", "a,y\n1,NA\n-999,none\n3,u\n")
    with pytest.warns(UserWarning, match="1 of 3 rows"):
        features, labels = jb.read_labelled(path, label="y", missing="drop", missing_words=("-999", "none"))
    assert features.tolist() == [[1], [3]] and labels.names == ("NA", "u")
    for words in ("NA", None, [1]):
        refused(partial(jb.read_losses, path, missing_words=words), "missing_words =", "list of texts")
    refused(partial(jb.read_losses, path, missing="mean"), "missing = 'mean' must be one of 'error', 'drop'")
    refused(partial(jb.read_labelled, path, label="y", missing="dorp"), "missing = 'dorp'", "did you mean 'drop'")


def test_a_column_that_counts_rows_is_said(tmp_path):
    for path in files(tmp_path, {"id": ["7", "8", "9"], "x": ["1", "5", "2"], "y": ["u", "v", "v"]}):
        with pytest.warns(UserWarning, match=r"column (id|1) counts evenly and looks like an identifier") as caught:
            jb.read_labelled(path, label="y")
        assert len(caught) == 1 and caught[0].filename == __file__


def test_a_column_of_losses_that_counts_rows_is_said():
    """In ten rows any even step is, to a hundredth of it; in fewer rows one by chance is none."""
    losses = np.random.default_rng(0).uniform(size=(10, 2))
    frame = pd.DataFrame(losses, columns=["u", "v"]).assign(row=np.arange(10) / 9)
    for call in (jb.read_losses, lambda frame: E.loss_table(losses=frame)):
        with pytest.warns(UserWarning, match="column row counts evenly .* unless it is an arm") as caught:
            call(frame)
        assert len(caught) == 1 and caught[0].filename == __file__
    bent = frame["row"].to_numpy(copy=True)
    for size, said in ((0.005, 1), (0.02, 0)):  # of a step
        bent[4] = (4 + size) / 9
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            jb.read_losses(frame.assign(row=bent))
        assert len(caught) == said
    assert message_of(partial(jb.read_losses, frame[:9])) == "no error"
    assert message_of(partial(jb.read_losses, frame.assign(row=0.5))) == "no error"


def test_arms_of_a_table_have_the_names_of_its_columns(tmp_path):
    """Names are coordinates: what is computed, and where a store has it, is that of a table without."""
    frame = pd.DataFrame(np.random.default_rng(0).uniform(size=(12, 3)), columns=["near", "far", "old"])
    for path in files(tmp_path, {name: [repr(x) for x in column] for name, column in frame.items()}):
        losses, named = jb.read_losses(path), path.suffix != ".npz"
        np.testing.assert_array_equal(losses, frame.to_numpy())
        facts = E.loss_table(losses=losses).facts
        assert facts.get("arm_names") == (("near", "far", "old") if named else None)
    assert losses[::2].names == losses.names and getattr(1 - losses, "names", None) is None
    for names, arms in (([0, 1, 2], None), ([1, 2, 3], None), ([2, 3, 4], ("2", "3", "4"))):
        assert E.loss_table(losses=frame.set_axis(names, axis=1)).facts.get("arm_names") == arms
    settings = {"horizon": 12, "seeds": 3, "checkpoints": 3, "store": tmp_path / "run", "progress": False}
    plain, ds = (jb.sweep("exp3", E.loss_table(losses=x), **settings) for x in (frame.to_numpy(), frame))
    assert ds["arm_name"].values.tolist() == ["near", "far", "old"] and "arm_name" not in plain.coords
    assert ds.drop_vars("arm_name").identical(plain) and len(list((tmp_path / "run" / "chunks").rglob("*.npz"))) == 1


UNREADABLE = {
    "latin.csv": ("Größe,y\n1,a\n2,b\n".encode("latin-1"), "not in UTF-8", "pandas.read_csv(path, encoding=...)"),
    "wide.csv": ("x,y\n1,a\n2,b\n".encode("utf-16-le"), "not in UTF-8", "pandas.read_csv(path, encoding=...)"),
    "quote.csv": (b'x,y\n1,"a\n2,b\n', "not a readable table", "EOF inside string"),
    "cell.csv": (b"x" * 200_000 + b",y\n1,a\n", "file line 1: field larger than field limit"),
    "short.csv": (b"x,z,y\n1,2,a\n\n2\n", "row 2 (file line 4) has 1 columns, expected 3"),
    "long.csv": (b"x,y\n1,a\n2,b,c\n", "row 2 (file line 3) has 3 columns, expected 2"),
    "longer.csv": (b"x,y\n1,a,b\n2,b,c\n", "row 1 (file line 2) has 3 columns, expected 2"),
    "marks.csv": (b"x;y\n1;a\n", "one column, 'x;y'", "pandas.read_csv(path, sep=';')"),
    "commas.csv": (b"x;y\n1,5;a\n", "one column, 'x;y'", "pandas.read_csv(path, sep=';', decimal=',')"),
    "blanks.csv": (b"0.1 0.2\n0.3 0.4\n", "one column, '0.1 0.2'", "pandas.read_csv(path, sep='\\\\s+')"),
    "large.csv": (
        b'x,y\n"1,234",a\n',
        "'1,234' is not",
        "read_csv(path, thousands=',') or pandas.read_csv(path, sep=..., decimal=','",
    ),
    "larger.csv": (b'x,y\n"1,234.50",a\n', "not a number: read the file with pandas.read_csv(path, thousands=','), as"),
    "points.csv": (b'x,y\n"1.234,5",a\n', "pandas.read_csv(path, sep=..., thousands='.', decimal=',')"),
    "half.csv": (b'x,y\n"0,5",a\n', "not a number: read the file with pandas.read_csv(path, sep=..., decimal=','), as"),
    "marks.tsv": (b"x,y\n1,a\n", "one column, 'x,y'", "separate its cells with '\\t'"),
    "blank.csv": (b" \n\n", "no rows of data"),
    "head.csv": (b"x,y\n", "no rows of data"),
    "damaged.csv.gz": (b"x,y\n1,a\n", "cannot be read", "write it again"),
    "packed.csv.zip": (b"PK", "must end in .csv, .tsv, .npz, .parquet", "convert the file"),
    "sheet.xlsx": (b"PK", "must end in .csv", "read it with pandas and give the DataFrame"),
    "damaged.npz": (b"PK", "not a readable NPZ file"),
    "damaged.parquet": (b"PAR1", "not a readable Parquet" if PARQUET else "reading Parquet needs pyarrow"),
    "huge.csv": (b"x,y\n1" + b"0" * 400 + b",a\n2,b\n", "row 1 (file line 2), column x:"),
    "number.csv": (b"x,y\n1,a\n1_0,b\n", "row 2 (file line 3), column x: '1_0' is not a number"),
    "none.csv": (b"x,y\n1,a\n,b\n,\n", "row 2 (file line 3), column x: the cell is missing"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_names_the_file(tmp_path, name):
    content, *texts = UNREADABLE[name]
    (tmp_path / name).write_bytes(content)
    refused(partial(jb.read_labelled, tmp_path / name, label="y"), str(tmp_path / name), *texts)
    refused(partial(jb.read_losses, tmp_path / name), str(tmp_path / name))


def test_a_header_that_counts_in_floats_is_doubted(tmp_path):
    """A table that was transposed has it; a table whose numbers are all whole is data."""
    with pytest.warns(UserWarning, match=r"0\.0, 1\.0, may be a header that counts"):
        assert len(jb.read_losses(written(tmp_path / "t.csv", "0.0,1.0\n0.1,0.2\n0.3,0.4\n"))) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jb.read_losses(written(tmp_path / "t.csv", "0.0,1.0\n1.0,0.0\n0.5,1.0\n1.0,0.5\n"))
        features, rewards = jb.read_table(
            written(tmp_path / "t.csv", "0,1,letter,call\n5,1,0.5,1\n2,7,0.25,0\n4,1,0,1\n"), rewards=["letter", "call"]
        )
    assert features.tolist() == [[5, 1], [2, 7], [4, 1]] and rewards.names == ("letter", "call")


def test_decimal_commas_between_semicolons_are_no_columns(tmp_path):
    path = written(tmp_path / "t.csv", "0,1;0,2\n0,3;0,4\n")
    refused(partial(jb.read_losses, path), "'1;0' is not a number", "pandas.read_csv(path, sep=';', decimal=',')")


def test_an_identifier_may_count_down():
    newest = pd.DataFrame({"id": range(30, 0, -1), "x": np.arange(30) * 7 % 5, "k": ["a", "b"] * 15})
    with pytest.warns(UserWarning, match="column id counts evenly"):
        jb.read_labelled(newest, label="k")


def test_numbers_of_a_file_are_those_that_python_reads(tmp_path):
    x = np.random.default_rng(0).random(400).reshape(200, 2) ** 9
    text = "".join(f"{a!r},{b:.25f} \n" for a, b in x.tolist())
    want = [[float(cell) for cell in row.split(",")] for row in text.splitlines()]
    assert jb.read_losses(written(tmp_path / "t.csv", text)).tolist() == want
    assert jb.read_losses(written(tmp_path / "t.csv", "True,0\nFalse,1\n")).tolist() == [[1, 0], [0, 1]]


def test_a_file_of_settings_says_what_is_missing(tmp_path):
    written(tmp_path / "t.csv", "a,b\n0,1\nnone,0\n")
    for name, label in (("loss_table", ""), ("classification", 'label = "b"\n')):
        (tmp_path / "run.toml").write_text(
            'horizon = 1\nseeds = 1\nalgorithm = "exp3_ix"\n[environment]\n'
            f'name = "{name}"\npath = "t.csv"\n{label}missing = "drop"\nmissing_words = ["none"]\n'
        )
        with pytest.warns(UserWarning, match="1 of 2 rows"):
            (rows, *_) = read_config(tmp_path / "run.toml")["environment"].keywords.values()
        assert len(rows) == 1


# Every array that a factory takes: the factory with its other arguments, and numbers of the right shape.
NUMBERS = {
    ("bernoulli_arms", "means"): ({}, [0.1, 0.2]),
    ("gaussian_arms", "means"): ({}, [0.1, 0.2]),
    ("student_arms", "means"): ({}, [0.1, 0.2]),
    ("pareto_arms", "means"): ({}, [0.1, 0.2]),
    ("lognormal_arms", "means"): ({}, [0.1, 0.2]),
    ("bernoulli_losses", "means"): ({}, [0.1, 0.2]),
    ("linear_arms", "actions"): ({"theta": [0.1, 0.2]}, [[0.1, 0.2], [0.3, 0.4]]),
    ("linear_arms", "theta"): ({"actions": [[0.1, 0.2], [0.3, 0.4]]}, [0.1, 0.2]),
    ("loss_table", "losses"): ({}, [[0.1, 0.2], [0.3, 0.4]]),
    ("switching_losses", "cuts"): ({"num_arms": 3, "arms": [0, 1]}, [0, 5]),
    ("switching_losses", "arms"): ({"num_arms": 3, "cuts": [0, 5]}, [0, 1]),
    ("rotating_experts", "advice"): (
        {"losses": E.bernoulli_losses(means=[0.1, 0.2])}, [[0.5, 0.5], [1.0, 0.0]]
    ),
    ("classification", "features"): ({"labels": [0, 1]}, [[0.1, 0.2], [0.3, 0.1]]),
    ("classification", "labels"): ({"features": [[0.1], [0.3]]}, [0, 1]),
    ("contextual_table", "features"): ({"rewards": [[0.1, 0.2], [0.3, 0.1]]}, [[0.1, 0.2], [0.3, 0.1]]),
    ("contextual_table", "rewards"): ({"features": [[0.1], [0.3]]}, [[0.1, 0.2], [0.3, 0.1]]),
    ("delayed", "delay"): ({"base": A.exp3_ix, "num_arms": 2, "horizon": 2}, [0, 1]),
    ("prm_elimination", "forced_arms"): ({"num_arms": 2, "horizon": 9, "epsilon": 1.0}, [0, 1]),
}  # fmt: skip
NO_ARRAYS = {("bandit_combiner", "bases")}  # a list of factories


def arrays_of_factories():
    """Every argument of a public factory that may be an array, by its annotation."""
    for module in (E, A, V):
        for name in module.__all__:
            for key, parameter in inspect.signature(getattr(module, name)).parameters.items():
                kinds = str(parameter.annotation)
                if any(kind in kinds for kind in ("Vector", "Matrix", "Tensor", "Sequence", "ndarray")):
                    yield name, key


def mistaken(numbers):
    """The numbers as what is none: masked, dates, complex numbers, durations, texts, and lists of them."""
    x = np.array(numbers, float)
    masked = np.ma.array(x.astype(type(np.ravel(numbers)[0])), mask=np.arange(x.size).reshape(x.shape) == x.size - 1)
    yield masked
    yield masked.tolist() if x.ndim == 1 else list(masked)
    for kind in ("M8[D]", "M8[ns]", "m8[s]"):
        yield x.astype(int).astype(kind)
    yield x + 1j
    yield x.astype(str)
    yield x.astype(str).tolist()
    yield x.astype(str).astype(object)


def test_no_factory_takes_anything_but_numbers():
    elimination = {pair for pair in arrays_of_factories() if pair[1] == "actions" and hasattr(A, pair[0])}
    assert {*arrays_of_factories()} - NO_ARRAYS - elimination == {*NUMBERS} - {("delayed", "delay")}
    for name, _ in elimination:
        factory, _ = catalogue.ALGORITHMS[name][:2]
        NUMBERS[name, "actions"] = ({"horizon": 96, **getattr(factory, "keywords", {})}, [[0.5, 0.5], [1.0, 0.0]])
    for (name, key), (others, numbers) in NUMBERS.items():
        factory = partial(getattr(E, name, None) or getattr(A, name), **others)
        factory(**{key: numbers})
        for wrong in mistaken(numbers) if key != "labels" else [*mistaken(numbers)][:2]:
            message = message_of(partial(factory, **{key: wrong}))
            assert message.startswith(key) or message.startswith(f"{name}: {key}"), (name, key, wrong, message)

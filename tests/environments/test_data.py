"""Files, the shuffled order of rows, and classification."""

import copy
import functools
import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import jaxbandits as jb
from jaxbandits.environments.data import ORDER, classification, shuffle_position
from jaxbandits.environments.labelled_rows import read_labelled, read_losses
from jaxbandits.random import Draws
from jaxbandits.sweeps.arguments import jsonable


@functools.cache
def orders(n, seeds, turns):
    """[seeds, turns, n]: where each position lands."""

    @jax.jit
    def one(seed, turn):
        return shuffle_position(Draws(seed, ORDER), turn, jnp.arange(n, dtype=jnp.int32), n)

    over = jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))
    return np.asarray(over(jnp.arange(seeds, dtype=jnp.uint32), jnp.arange(turns, dtype=jnp.int32)))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1001])
def test_every_pass_is_a_permutation(n):
    rows = orders(n, 5, 3)
    np.testing.assert_array_equal(np.sort(rows, -1), np.broadcast_to(np.arange(n), rows.shape))
    if n > 60:
        flat = rows.reshape(15, n)
        assert len({tuple(row) for row in flat}) == 15  # seeds and passes differ


def test_permutations_are_uniform():
    n, seeds = 4, 9600
    rows = orders(n, seeds, 1)[:, 0]
    _, counts = np.unique(rows @ 4 ** np.arange(n), return_counts=True)
    assert len(counts) == 24 and stats.chisquare(counts).pvalue > 1e-3


def test_positions_are_uniform_and_neighbours_unrelated():
    n, seeds = 37, 3000
    rows = orders(n, seeds, 1)[:, 0]
    assert min(stats.chisquare(np.bincount(rows[:, j], minlength=n)).pvalue for j in range(n)) > 1e-3 / n
    step = (rows[:, 1:] - rows[:, :-1]) % n  # never 0, otherwise even
    assert stats.chisquare(np.bincount(step.ravel(), minlength=n)[1:]).pvalue > 1e-3


X = np.random.default_rng(0).normal(size=(60, 3)) @ np.diag([3.0, 1.0, 0.2])
Y = (X[:, 0] > 0.5).astype(int) + (X[:, 0] > 3)


def test_classification_shows_every_row_once_a_pass():
    environment = classification(features=X, labels=Y, view="blocks", dim=6)
    world, seed = environment.world, 11
    params = environment.params._replace(features=environment.params.features.astype(np.float32))
    root = Draws(np.uint32(seed), "environment")
    t = jnp.arange(1, 151, dtype=jnp.int32)

    @jax.jit
    def run(t, action):
        state = world.init(params, root.child("instance"))
        context, state = world.observe(params, state, root.child("context"), t)
        reward = world.reward(params, state, root.child("reward"), t, context, action)
        return context, reward, world.score(params, state, t, context, action).regret

    paid = [run(t, jnp.full(150, a, jnp.int32)) for a in range(3)]
    context, rewards = np.asarray(paid[0][0]), np.stack([p[1] for p in paid], -1)
    np.testing.assert_array_equal(rewards.sum(1), 1)
    np.testing.assert_array_equal(np.stack([p[2] for p in paid], -1), 1 - rewards)
    label = rewards.argmax(1)
    assert context.shape == (150, 3, 6)
    rows = context[:, 0, :2]
    for k in range(3):  # arm k: block k
        np.testing.assert_array_equal(context[:, k, 2 * k : 2 * k + 2], rows)
        np.testing.assert_array_equal(np.delete(context[:, k], [2 * k, 2 * k + 1], 1), 0)
    norms = np.linalg.norm(rows, axis=1)
    assert norms.max() <= 1 + 1e-6 and norms[:60].max() > 1 - 1e-6
    centred = X - X.mean(0)
    plane = np.linalg.svd(centred, full_matrices=False)[2][:2]
    gram = (centred @ plane.T) @ (centred @ plane.T).T
    gram /= gram.diagonal().max()
    for p in range(2):  # a pass is a permutation of (row, label); inner products are those of the principal plane
        order = [int(np.abs(gram.diagonal() - norms[i] ** 2).argmin()) for i in range(60 * p, 60 * p + 60)]
        assert sorted(order) == list(range(60))
        np.testing.assert_array_equal(label[60 * p : 60 * p + 60], Y[order])
        of_pass = rows[60 * p : 60 * p + 60]
        np.testing.assert_allclose(of_pass @ of_pass.T, gram[np.ix_(order, order)], atol=1e-5)
    times = np.array([1, 5, 59, 60, 61, 100, 150])
    want = np.cumsum(1 - rewards, axis=0)[times - 1].min(axis=1)
    np.testing.assert_array_equal(world.baseline(environment.params, seed, times), want)
    assert (world.baseline(environment.params, seed + 1, times) != want).any()
    np.testing.assert_array_equal(run(t[100:101], jnp.zeros(1, jnp.int32))[0][0], context[100])


GOOD = "0.1,0.2\n0.3,1\n0,0.5\n"


@pytest.mark.parametrize("text", [GOOD, "first,second\n" + GOOD, "first, second\n\n" + GOOD + "\n", "\ufeff" + GOOD])
def test_losses_from_csv(tmp_path, text):
    (tmp_path / "losses.csv").write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_losses(tmp_path / "losses.csv"), [[0.1, 0.2], [0.3, 1], [0, 0.5]])


def test_losses_from_npz(tmp_path):
    table = np.random.default_rng(0).uniform(size=(5, 3))
    np.savez(tmp_path / "a.npz", table)
    np.testing.assert_array_equal(read_losses(str(tmp_path / "a.npz")), table)
    np.savez(tmp_path / "b.npz", table, table)
    with pytest.raises(ValueError, match="one array"):
        read_losses(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", table - 0.99)
    with pytest.raises(ValueError, match=r"c.npz: row 1, column 1.*must be a number in \[0, 1\]"):
        read_losses(tmp_path / "c.npz")


def test_losses_from_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": [0.1, 0.2], "b": [0.3, 0.4]}), tmp_path / "b.parquet")
    np.testing.assert_array_equal(read_losses(tmp_path / "b.parquet"), [[0.1, 0.3], [0.2, 0.4]])


def test_labelled_rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,kind,y\n1,dog,2\n3,cat,4\n5,dog,-6e3\n")
    features, labels = read_labelled(path, label="kind")
    np.testing.assert_array_equal(features, [[1, 2], [3, 4], [5, -6000]])
    assert labels.tolist() == [1, 0, 1]
    path.write_text("1,10\n3,9\n5,10\n")
    features, labels = read_labelled(path, label=2)  # no header; numbers sort as numbers
    assert features.tolist() == [[1], [3], [5]] and labels.tolist() == [1, 0, 1]
    np.savez(tmp_path / "rows.npz", features=X, target=Y)
    features, labels = read_labelled(tmp_path / "rows.npz", label="target")
    np.testing.assert_array_equal(features, X)
    np.testing.assert_array_equal(labels, Y)


COLUMNS = {"width": [1.5, 0.5, 2.0, 3.0], "kind": ["rose", "iris", "rose", "iris"], "count": [1, 2, 3, 9]}
FRAME = pd.DataFrame(COLUMNS, index=list("abcd"))


def test_labelled_rows_of_a_frame():
    features, labels = jb.read_labelled(FRAME, label="kind")
    assert features.tolist() == [[1.5, 1], [0.5, 2], [2, 3], [3, 9]] and features.names == ("width", "count")
    assert labels.tolist() == [1, 0, 1, 0] and labels.names == ("iris", "rose") and labels.dtype == np.int64
    environment = classification(features=features, labels=labels)
    assert environment.facts["arm_names"] == ("iris", "rose")
    other = classification(features=FRAME[["width", "count"]], labels=FRAME["kind"])
    for mine, its in zip(environment.params, other.params, strict=True):
        np.testing.assert_array_equal(mine, its)
    numbers = FRAME.rename(columns={"width": 0, "kind": 1, "count": 2})
    assert jb.read_labelled(numbers, label=1)[0].names == ("0", "2")
    np.testing.assert_array_equal(jb.read_losses(FRAME[["width"]] / 3), FRAME[["width"]].to_numpy() / 3)


def test_names_stay_with_rows_and_are_forgotten_by_arithmetic():
    features, labels = jb.read_labelled(FRAME, label="kind")
    assert labels[1:].names == labels.names and copy.deepcopy(labels).names == labels.names
    assert features[:2].names == features.names and features[np.array([True, False, True, False])].names
    assert features.astype(np.float32).names == features.copy().names == copy.copy(features).names == features.names
    moved = np.take(features, [1, 0], axis=1), features.take([1, 0], axis=1), np.roll(features, 1), features[:2].T
    for plain in (labels + 1, labels == 1, features * 2, features[:, ::-1], features[:, 0], features[0, 0], *moved):
        assert getattr(plain, "names", None) is None
    assert classification(features=features, labels=labels.astype(bool)).facts["arm_names"] == ("False", "True")
    assert classification(features=features, labels=labels.astype(np.int8)).facts["arm_names"] == labels.names
    assert type(labels.sum()) is np.int64
    three = jb.read_labelled(FRAME.assign(kind=["a", "b", "c", "b"]), label="kind")[1]
    assert classification(features=np.eye(2), labels=three[:3][[0, 2]]).facts["arm_names"] == ("a", "c")


TEXT = ["no", "yes", "no", "maybe"]


def test_labels_from_python_are_those_of_a_file(tmp_path):
    for labels, names in (
        *((x, ("maybe", "no", "yes")) for x in (TEXT, np.array(TEXT), np.array(TEXT, object), pd.Series(TEXT))),
        (pd.Categorical(TEXT, ["yes", "no", "maybe", "never"], ordered=True), ("maybe", "no", "yes")),
        ([True, False, True, True], ("False", "True")),
        (pd.array([True, False, True, True]), ("False", "True")),
        (["10", "9", "10", "9.0"], ("10", "9", "9.0")),
        ([0.5, 1, "b", "b"], ("0.5", "1", "b")),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the column x, which counts up by one
            environment = classification(features=np.eye(4), labels=labels)
            assert environment.facts["arm_names"] == names and environment.facts["num_arms"] == len(names)
            (tmp_path / "rows.csv").write_text("\n".join(["x,y", *(f"{i},{x}" for i, x in enumerate(list(labels)))]))
            found = jb.read_labelled(tmp_path / "rows.csv", label="y")[1]
            np.testing.assert_array_equal(environment.params.labels, found)
            assert found.names == names


def test_labels_with_gaps_are_no_arms_of_their_own():
    said = r"2 classes are 2 arms: arm 0 is the label 0, arm 1 is the label 5 \(facts\['arm_names'\]\)"
    for labels in ([0, 5, 0, 5], np.array([0, 5, 0, 5], np.float32), pd.Series([0, 5, 0, 5])):
        with pytest.warns(UserWarning, match=said) as caught:
            environment = classification(features=np.eye(4), labels=labels)
        assert len(caught) == 1 and caught[0].filename == __file__
        assert environment.world.num_arms == 2 and environment.facts["arm_names"] == ("0", "5")
        assert environment.params.labels.tolist() == [0, 1, 0, 1] and "arm_names" in repr(environment)
    with pytest.warns(UserWarning, match=r"arm 0 is the label -1, arm 1 is the label 1 "):
        classification(features=np.eye(2), labels=[1, -1])
    with pytest.warns(UserWarning, match=r"arm 4 is the label 5, \.\.\., arm 8 is the label 9 "):
        classification(features=np.eye(9), labels=np.arange(1, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "arm_names" not in classification(features=np.eye(3), labels=[0, 1, 2]).facts


def test_constant_features_are_said_and_change_nothing():
    frame = pd.DataFrame(X, columns=list("abc")).assign(one=1.0, zero=0)
    with pytest.warns(UserWarning, match="2 of 5 features are the same in every row and say nothing: one, zero"):
        padded = classification(features=frame, labels=Y, view="blocks", dim=6)
    plain = classification(features=X, labels=Y, view="blocks", dim=6)
    np.testing.assert_allclose(padded.params.features, plain.params.features, atol=1e-12)
    with pytest.warns(UserWarning, match=r"1 of 2 features .*: features\[:, 1\]"):
        classification(features=[[0.0, 3.0], [1.0, 3.0]], labels=[0, 1])


def test_a_frame_is_recorded_as_its_numbers():
    frame, words = FRAME[["width", "count"]], FRAME["kind"]
    arrays = {"features": frame.to_numpy(np.float64), "labels": words.tolist()}
    made = [classification(features=frame, labels=words), classification(**arrays)]
    assert jsonable(made[0].config) == jsonable(made[1].config)
    unmade = functools.partial(classification, features=frame, labels=words)
    assert jsonable(unmade) == jsonable(functools.partial(classification, **arrays))
    assert json.loads(json.dumps(jsonable(made[0].config)))["labels"] == words.tolist()
    given = [[1.0], [2.0], [0.0]]  # what is plain is recorded as it was given: runs of earlier releases go on
    assert classification(features=given, labels=[0, 1, 0]).config["features"] == given
    many = pd.Series(["a", "bb"] * 600)
    assert jsonable(many) == jsonable(many.tolist()) == jsonable(np.array(many.tolist()))
    assert jsonable(many)["shape"] == [1200] and jsonable(many) != jsonable(many[::-1])


def test_a_sweep_names_its_arms(tmp_path):
    ds = jb.sweep(
        "tsallis_inf", functools.partial(classification, features=FRAME[["width", "count"]], labels=FRAME["kind"]),
        horizon=8, seeds=2, checkpoints=[4, 8], store=tmp_path / "run", progress=False,
    )  # fmt: skip
    assert ds["arm_name"].values.tolist() == ["iris", "rose"] and ds["arm"].values.tolist() == [0, 1]
    assert ds.pulls.sum("arm").values.tolist() == [[8, 8]]
    assert jb.summary(ds.isel(arm=0))["mean"].tolist() == jb.summary(ds)["mean"].tolist()

"""Losses and labelled rows from files, and classification as a bandit: the arm that is the label pays 1."""

import csv
import math
from functools import cache, lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Int, Matrix, Vector
from jaxbandits.validation import array, factory, integer, nearest, shown

# Principal components of an arm where `dim` is not given.
COMPONENTS = 4
# The path of the draws that order the rows.
ORDER = "environment/order"


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _read_csv(path: Path) -> tuple[list[str], list[Any], list[int]]:
    """Column names, rows of cells, and the file line of each row."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        rows, lines = [], []
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append([cell.strip() for cell in row])
                lines.append(reader.line_num)
    names = [f"{i + 1}" for i in range(len(rows[0]))] if rows else []
    if rows and all(_number(cell) is None for cell in rows[0]):
        names, rows, lines = rows[0], rows[1:], lines[1:]
    for i, row in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(
                f"{path}: row {i + 1} (file line {lines[i]}) has {len(row)} columns, expected {len(names)}: "
                "complete or remove it"
            )
    return names, rows, lines


def _read_parquet(path: Path) -> tuple[list[str], list[Any], list[int]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ValueError(
            f"{path}: reading Parquet needs pyarrow: pip install 'jaxbandits[data]', or convert it to CSV or NPZ"
        ) from None
    try:
        table = parquet.read_table(path)
    except Exception as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error}): write it again") from None
    columns = [column.to_pylist() for column in table.columns]
    rows = [["" if cell is None else cell for cell in row] for row in zip(*columns, strict=True)]
    return list(table.column_names), rows, []


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:
        raise ValueError(
            f"{path}: not a readable NPZ file of plain arrays ({error}): write it with numpy.savez"
        ) from None


def _existing(path: str | PathLike[str]) -> tuple[Path, str]:
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".csv", ".npz", ".parquet"):
        raise ValueError(
            f"{path}: the name must end in .csv, .npz or .parquet{nearest(kind, ('.csv', '.npz', '.parquet'))}"
        )
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file: check the path")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty")
    return path, kind


def _where(path, lines, row: int, column) -> str:
    line = f" (file line {lines[row]})" if lines else ""
    return f"{path}: row {row + 1}{line}, column {column}"


def _numbers(path, names, rows, lines, low=-math.inf, high=math.inf) -> np.ndarray:
    """Rows of cells -> float64 [n, columns], each finite and in [low, high]."""
    if len(rows) == 0 or len(names) == 0:
        raise ValueError(f"{path}: there are no rows of data")
    try:
        x = np.asarray(rows, np.float64)
    except (TypeError, ValueError):
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                if not isinstance(cell, int | float) and _number(str(cell)) is None:
                    raise ValueError(f"{_where(path, lines, i, names[j])}: {cell!r} is not a number") from None
        raise
    bad = ~(np.isfinite(x) & (x >= low) & (x <= high))
    if bad.any():
        i, j = (int(k) for k in np.argwhere(bad)[0])
        need = "finite" if math.isinf(low) else f"a number in [{low:g}, {high:g}]"
        raise ValueError(f"{_where(path, lines, i, names[j])}: {float(x[i, j])!r} must be {need}")
    return x


def read_losses(path: str | PathLike[str]) -> np.ndarray:
    """Read a table of losses from a file, for `loss_table`.

    Parameters
    ----------
    path : str or path
        A file of losses in [0, 1], one row for each play and one column for each arm: CSV (a header is optional), NPZ
        with one array, or Parquet (with pyarrow).

    Returns
    -------
    ndarray of shape (T, K)
        The losses, float64.

    Raises
    ------
    ValueError
        Naming the file, the data row (from 1), the line and the column of the first entry that is not a number in [0,
        1], or a row of another length; or saying that the file is missing, empty or not readable.

    Examples
    --------
    >>> import tempfile
    >>> import jaxbandits as jb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "losses.csv"
    ...     _ = path.write_text("a,b\\n0,1\\n0.5,0.25\\n")
    ...     jb.read_losses(path).tolist()
    [[0.0, 1.0], [0.5, 0.25]]
    """
    path, kind = _existing(path)
    if kind == ".npz":
        arrays = _read_npz(path)
        if len(arrays) != 1 or next(iter(arrays.values())).ndim != 2:
            shapes = {name: value.shape for name, value in arrays.items()}
            raise ValueError(f"{path}: it must hold one array [T, K], not {shapes}")
        rows = next(iter(arrays.values()))
        return _numbers(path, [str(i + 1) for i in range(rows.shape[1])], rows, [], 0.0, 1.0)
    return _numbers(path, *(_read_csv if kind == ".csv" else _read_parquet)(path), 0.0, 1.0)


def read_labelled(path: str | PathLike[str], *, label: str | int) -> tuple[np.ndarray, np.ndarray]:
    """Read features and labels of a classification problem from a file, for `classification`.

    Parameters
    ----------
    path : str or path
        A CSV (a header is optional), NPZ or Parquet file with one row for each example.
    label : str or int
        The name of the label column, or its number from 1 where there is no header. In an NPZ file, the name of the
        label array, beside one array of features.

    Returns
    -------
    features : ndarray of shape (n, p)
        The other columns, float64.
    labels : ndarray of shape (n,)
        int64. Labels may be numbers or words; they are numbered 0, 1, ... in sorted order.

    Raises
    ------
    ValueError
        As `read_losses`, and where the label column is unknown or a label is missing.

    Examples
    --------
    >>> import tempfile
    >>> import jaxbandits as jb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.csv"
    ...     _ = path.write_text("length,kind\\n1.5,rose\\n0.5,iris\\n")
    ...     features, labels = jb.read_labelled(path, label="kind")
    >>> features.tolist(), labels.tolist()
    ([[1.5], [0.5]], [1, 0])
    """
    path, kind = _existing(path)
    lines: list[int] = []
    if kind == ".npz":
        arrays = _read_npz(path)
        others = [name for name in arrays if name != label]
        if label not in arrays or len(others) != 1 or arrays[others[0]].ndim != 2:
            shapes = {name: value.shape for name, value in arrays.items()}
            raise ValueError(
                f"{path}: it must hold the labels {label!r} [n] and one array of features [n, p], not {shapes}"
            )
        rows, marks = arrays[others[0]], np.ravel(arrays[label]).tolist()
        names = [str(i + 1) for i in range(rows.shape[1])]
        if len(marks) != len(rows):
            raise ValueError(f"{path}: {len(marks)} labels for {len(rows)} rows of features: they must match")
    else:
        names, cells, lines = (_read_csv if kind == ".csv" else _read_parquet)(path)
        if str(label) not in names:
            hint = nearest(str(label), names)
            raise ValueError(f"{path}: there is no column {label!r}{hint}; it has {', '.join(names)}")
        at = names.index(str(label))
        marks = [row[at] for row in cells]
        rows = [[*row[:at], *row[at + 1 :]] for row in cells]
        names = names[:at] + names[at + 1 :]
    values = [_number(str(mark)) for mark in marks]
    for i, (mark, value) in enumerate(zip(marks, values, strict=True)):
        if mark == "" or (value is not None and not math.isfinite(value)):
            raise ValueError(f"{_where(path, lines, i, label)}: the label {mark!r} is missing")
    keys = np.array([str(mark) for mark in marks] if None in values else values)
    return _numbers(path, names, rows, lines), np.unique(keys, return_inverse=True)[1].astype(np.int64).reshape(-1)


def num_rounds(n: int) -> int:
    """Rounds of the shuffle: a position's law is then within n^1.5 2^(-rounds / 2) <= 2^-12 of uniform."""
    return 3 * math.ceil(math.log2(max(n, 2))) + 24


def shuffled(draws: Draws, turn: Int[Array, "..."], x: Int[Array, "..."], n: int) -> Int[Array, "..."]:
    """Where position x of pass `turn` lands under a random permutation of 0..n-1.

    The swap-or-not shuffle (Hoang, Morris and Rogaway 2012): any n, O(1) memory, every play computed on its own.
    """
    shift, swap = draws.child("shift"), draws.child("swap")

    def one(r, x):
        moved = (shift.at(turn, jnp.full_like(x, r)) % np.uint32(n)).astype(jnp.int32) - x
        partner = jnp.where(moved < 0, moved + n, moved)
        address = r.astype(jnp.uint32) * np.uint32(n) + jnp.maximum(x, partner).astype(jnp.uint32)
        return jnp.where((swap.at(turn, address) & np.uint32(1)) == 1, partner, x)

    return jax.lax.fori_loop(jnp.int32(0), jnp.int32(num_rounds(n)), one, x)


@partial(jax.jit, static_argnums=2)
def _rows(seed, turn, n):
    return shuffled(Draws(seed, ORDER), turn, jnp.arange(n, dtype=jnp.int32), n)


@lru_cache(maxsize=16)
def pass_order(seed: int, turn: int, n: int) -> np.ndarray:
    """The rows of one pass [n] in the order a seed plays them, on the host; cached for all algorithms of the seed."""
    return np.asarray(_rows(np.uint32(seed), np.int32(turn), n))


class Params(NamedTuple):
    """The rows of the data."""

    # [n, m]: scaled principal components, norms at most 1
    features: Any
    # [n] int32
    labels: Any


@cache
def classification_world(n: int, num_arms: int, per_arm: int) -> World:
    """The world of classification."""

    def row(state, t):
        return shuffled(Draws(state, ORDER), (t - 1) // n, (t - 1) % n, n)

    def label(params, state, t):
        return jnp.asarray(params.labels)[row(state, t)].astype(jnp.int32)

    def init(params, draws):
        return jnp.asarray(draws.seed).astype(jnp.uint32)  # the order is a function of the seed alone

    def observe(params, state, draws, t):
        x = jnp.asarray(params.features, draws.dtype)[row(state, t)]
        # arm k's block k holds x
        blocks = jnp.asarray(np.eye(num_arms), draws.dtype)[None, :, :, None] * x[:, None, None, :]
        return blocks.reshape(t.shape[0], num_arms, num_arms * per_arm), state

    def reward(params, state, draws, t, context, action):
        return (label(params, state, t) == action).astype(draws.dtype)

    def score(params, state, t, context, action):
        loss = label(params, state, t) != action
        return Score(arm=action, regret=loss.astype(jnp.asarray(params.features).dtype))

    def truth(params, state, t, context):
        hit = label(params, state, t)[:, None] == jnp.arange(num_arms, dtype=jnp.int32)[None]
        return Truth(means=hit.astype(jnp.asarray(params.features).dtype))

    def baseline(params, seed, times):
        times, labels = np.asarray(times, np.int64), np.asarray(params.labels, np.int64)
        whole = np.bincount(labels, minlength=num_arms)
        best, passes = np.zeros(len(times)), (times - 1) // n
        for turn in np.unique(passes):  # a whole pass sees every row once: only passes with a checkpoint are drawn
            inside = passes == turn
            stops = times[inside] - turn * n
            seen = labels[pass_order(seed, int(turn), n)[: stops.max()]]
            hits = np.stack([np.concatenate([[0], np.cumsum(seen == arm)])[stops] for arm in range(num_arms)])
            best[inside] = times[inside] - (turn * whole[:, None] + hits).max(axis=0)
        return best

    return World(
        init=init, observe=observe, reward=reward, score=score, truth=truth, num_arms=num_arms, baseline=baseline,
        seeded=True,
    )  # fmt: skip


@factory
def classification(*, features: Matrix, labels: Vector, dim: int | None = None) -> Environment:
    """A classification problem as a bandit: a play shows a row of data, and the arm that is its label pays 1.

    The other arms pay 0. Rows come in an order that depends on the seed, shuffled anew at each pass over the data.

    Parameters
    ----------
    features : array_like of shape (n, p)
        Finite numbers, one row for each example.
    labels : array_like of shape (n,)
        Integers 0..K-1 with K >= 2, every class at least once.
    dim : int, optional
        Number of features of a context, a multiple of K and at most p K. Default: K min(p, 4).

    Returns
    -------
    Environment
        The context of a play is [K, dim]: arm k has the row's first dim / K principal components in block k and zeros
        elsewhere. Rows are centred, and scaled so that the largest context has norm 1. Facts: `num_arms`, `dim` and
        `reward_range`. Algorithms without contexts see the losses alone. Regret is against the arm best over plays
        1..t.

    Raises
    ------
    ValueError
        For an argument outside its range.

    Notes
    -----
    The shuffle is the swap-or-not shuffle of Hoang, Morris and Rogaway (2012), within 2^-12 of uniform for each
    position.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.environments.classification(features=[[0.0], [1.0], [2.0]], labels=[0, 1, 1]).facts["dim"]
    2
    """
    x = array("features", features, 2)
    n, p = x.shape
    y = array("labels", labels, 1, 0.0, shape=(n,), remedy="one label 0..K-1 for each row of features")
    if (y != np.floor(y)).any() or y.max() < 1:
        raise ValueError("labels must be integers 0..K-1 of at least two classes: number them, as read_labelled does")
    num_arms = int(y.max()) + 1
    if len(np.unique(y)) < num_arms:  # an arm for a class that no row has would be no arm of the problem
        classes = shown(np.unique(y).astype(int).tolist())
        raise ValueError(
            f"labels are the classes {classes}, not 0..K-1: number them, "
            "labels=np.unique(labels, return_inverse=True)[1], as read_labelled does"
        )
    if num_rounds(n) * n >= 2**32:
        raise ValueError(f"features has {n} rows, more than the shuffle can address: take at most 40 million")
    dim = num_arms * min(p, COMPONENTS) if dim is None else integer("dim", dim, num_arms)
    if dim % num_arms or dim // num_arms > p:
        raise ValueError(
            f"dim = {dim} must be a multiple of the {num_arms} arms, at most {p * num_arms} with {p} features"
        )
    centred = x - x.mean(axis=0)
    _, _, axes = np.linalg.svd(np.cov(centred, rowvar=False).reshape(p, p) if n > 1 else np.eye(p))
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], 1)
    parts = centred @ (axes * np.where(largest < 0, -1.0, 1.0)).T[:, : dim // num_arms]  # signs fixed: reproducible
    top = np.linalg.norm(parts, axis=1).max()
    params = Params(parts / top if top > 0 else parts, y.astype(np.int32))
    facts = {"num_arms": num_arms, "dim": dim, "reward_range": (0.0, 1.0)}
    return Environment(classification_world(n, num_arms, dim // num_arms), params, facts, None, {})

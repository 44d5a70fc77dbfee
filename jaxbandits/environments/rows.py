"""Labelled rows and losses of one's own: from CSV, Parquet and NPZ files, and from a pandas DataFrame.

Errors name the source, the data row (from 1), its line in the file or its place in the index, and the column.
"""

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from jaxbandits.validation import array, nearest, path_of, shown

if TYPE_CHECKING:
    import pandas as pd

Source: TypeAlias = "str | PathLike[str] | pd.DataFrame"

MAX_NAMED = 6  # columns or classes that a message names


class Named(np.ndarray[Any, Any]):
    """Numbers with the names of what they stand for: of columns, or of the classes 0, 1, ...

    Some of its rows keep the names; arithmetic and a choice of columns forget them.
    """

    names: tuple[str, ...] | None = None

    def __array_finalize__(self, source: Any) -> None:
        alike = isinstance(source, Named) and source.ndim == self.ndim and source.shape[1:] == self.shape[1:]
        self.names = source.names if alike else None

    def __array_wrap__(self, result: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return np.asarray(result)[()] if return_scalar else np.asarray(result)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return np.asarray(found) if isinstance(key, tuple) and isinstance(found, Named) else found


def named(x: np.ndarray[Any, Any], names: Iterable[str]) -> Named:
    """An array that knows the names of its columns or classes."""
    there = x.view(Named)
    there.names = tuple(names)
    return there


class Table(NamedTuple):
    """Rows of cells and how a message finds them."""

    source: str  # a file, or the name of an argument
    names: list[str]  # of the columns
    rows: Any  # [n][p]: cells of any kind, or an array of numbers
    place: Callable[[int], str] | None = None  # where else a row is found, such as "file line 3"

    def where(self, row: int, column: str) -> str:
        """A cell in words; `row` counts from 0."""
        place = f" ({self.place(row)})" if self.place else ""
        return f"{self.source}: row {row + 1}{place}, column {column}"


class Classes(NamedTuple):
    """Labels as the arms 0..K-1."""

    codes: np.ndarray[Any, Any]  # [n] int64
    names: tuple[str, ...]  # [K]
    numbers: bool  # whether all of them are numbers


def few(items: Sequence[str]) -> str:
    """Some items in words: all of a few, otherwise the first ones and the last."""
    if len(items) > MAX_NAMED:
        items = [*items[: MAX_NAMED - 1], "...", items[-1]]
    return ", ".join(items)


def is_frame(x: Any) -> bool:
    """Whether it is a pandas DataFrame; pandas need not be loaded for that."""
    return type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "columns") and hasattr(x, "iloc")


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _read_csv(path: Path) -> Table:
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
    return Table(str(path), names, rows, lambda i: f"file line {lines[i]}")


def _read_parquet(path: Path) -> Table:
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
    return Table(str(path), list(table.column_names), rows)


def _read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:
        raise ValueError(
            f"{path}: not a readable NPZ file of plain arrays ({error}): write it with numpy.savez"
        ) from None


def _existing(path: Any) -> tuple[Path, str]:
    if not isinstance(path, str | PathLike):
        raise ValueError(
            f"path = {shown(path)} of type {type(path).__name__} must be the name of a file or a pandas DataFrame"
        )
    path = path_of(path)
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


def _of_frame(frame: Any, source: str) -> Table:
    """The cells of a DataFrame: an array of numbers, unless some column holds something else."""
    names = [str(name) for name in frame.columns]
    kinds = [getattr(dtype, "kind", "O") for dtype in frame.dtypes]
    for name, kind, dtype in zip(names, kinds, frame.dtypes, strict=True):
        if kind in "mMc":
            raise ValueError(f"{source}: column {name} holds {dtype}, which is not a number: convert or drop it")
    plain = all(kind in "biuf" for kind in kinds)
    rows = frame.to_numpy(np.float64, na_value=np.nan) if plain else frame.to_numpy(object)
    return Table(source, names, rows, lambda i: f"index {shown(frame.index[i])}")


def _numbers(table: Table, low: float = -math.inf, high: float = math.inf) -> np.ndarray[Any, Any]:
    """Rows of cells -> float64 [n, columns], each finite and in [low, high]."""
    if len(table.rows) == 0 or len(table.names) == 0:
        raise ValueError(f"{table.source}: there are no rows of data")
    try:
        x = np.asarray(table.rows, np.float64)
    except (TypeError, ValueError):
        for i, row in enumerate(table.rows):
            for name, cell in zip(table.names, row, strict=True):
                if not isinstance(cell, int | float) and _number(str(cell)) is None:
                    raise ValueError(f"{table.where(i, name)}: {shown(cell)} is not a number") from None
        raise
    bad = ~(np.isfinite(x) & (x >= low) & (x <= high))
    if bad.any():
        i, j = (int(k) for k in np.argwhere(bad)[0])
        need = "finite" if math.isinf(low) else f"a number in [{low:g}, {high:g}]"
        raise ValueError(f"{table.where(i, table.names[j])}: {float(x[i, j])!r} must be {need}")
    return x


def _classes(marks: Sequence[Any], where: Callable[[int], str]) -> Classes:
    """Labels of any kind, numbered in sorted order: as numbers where all are numbers, otherwise as text."""
    values = [_number(str(mark)) for mark in marks]
    for i, (mark, value) in enumerate(zip(marks, values, strict=True)):
        gone = mark is None or str(mark) == "" or (not isinstance(mark, str) and str(mark) in ("NaT", "<NA>"))
        if gone or (value is not None and not math.isfinite(value)):
            raise ValueError(f"{where(i)}: the label {shown(mark)} is missing")
    if None in values:
        found, codes = np.unique(np.array([str(mark) for mark in marks]), return_inverse=True)
        return Classes(codes.reshape(-1).astype(np.int64), tuple(map(str, found)), numbers=False)
    return _numbered(np.array(values, np.float64))


def _numbered(values: np.ndarray[Any, Any]) -> Classes:
    found, codes = np.unique(values, return_inverse=True)
    names = tuple(f"{int(x)}" if float(x).is_integer() else repr(float(x)) for x in found)
    return Classes(codes.reshape(-1).astype(np.int64), names, numbers=True)


def features_of(features: Any) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Features [n, p] in float64, and what messages call their columns."""
    if is_frame(features):
        table = _of_frame(features, "features")
        return _numbers(table), table.names
    if isinstance(features, Named) and features.names is not None and features.ndim == 2:
        names = list(features.names)
        return _numbers(Table("features", names, np.asarray(features))), names
    x = array("features", features, 2)
    return x, [f"features[:, {j}]" for j in range(x.shape[1])]


def labels_of(labels: Any, n: int) -> tuple[Classes, np.ndarray[Any, Any]]:
    """The labels of n rows as arms, and as a plain array: numbers as they were given, everything else as text."""
    try:
        x = np.asarray(labels)
    except ValueError:  # lists of different lengths
        x = np.zeros((0, 0))
    if x.shape != (n,):
        hint = f": it names no column, jb.read_labelled(frame, label={shown(labels)}) does"
        hint = hint if isinstance(labels, str) else ": one label for each row of features"
        raise ValueError(f"labels has shape {x.shape}; it must be ({n},){hint}")
    where = _row_of(labels)
    if x.dtype.kind not in "iuf":
        classes = _classes(x.tolist(), where)
        plain = x if x.dtype.kind == "b" else np.array([str(mark) for mark in x.tolist()])
    else:
        plain, x = x, x.astype(np.float64)
        if not np.isfinite(x).all():
            at = int(np.argmin(np.isfinite(x)))
            raise ValueError(f"{where(at)}: the label {float(x[at])!r} is missing: it must be finite")
        if (x != np.floor(x)).any():
            at = int(np.argmax(x != np.floor(x)))
            raise ValueError(
                f"{where(at)}: the label {float(x[at])!r} is no class: labels must be integers 0..K-1, other integers "
                "or text; numbers such as 0.5 name classes as text only, labels=[str(x) for x in labels]"
            )
        classes = _numbered(x)
        names = labels.names if isinstance(labels, Named) else None
        if names is not None and x.min() >= 0 and x.max() < len(names):  # the numbers that `read_labelled` gave them
            known = tuple(names[int(code)] for code in classes.names)
            classes = Classes(classes.codes, known, numbers=all(_number(name) is not None for name in known))
    if len(classes.names) < 2:
        raise ValueError(f"labels must be of at least two classes, all of them are {classes.names[0]}")
    return classes, plain


def _row_of(labels: Any) -> Callable[[int], str]:
    """How messages call a row of labels; a pandas Series knows its place in the index and its column."""
    index, name = getattr(labels, "index", None), getattr(labels, "name", None)
    if index is None or callable(index):  # `index` of a list is a method
        return lambda i: f"labels: row {i + 1}"
    column = "" if name is None else f", column {name}"
    return lambda i: f"labels: row {i + 1} (index {shown(index[i])}){column}"


def read_losses(path: Source) -> np.ndarray[Any, Any]:
    """Read a table of losses from a file or a DataFrame, for `loss_table`.

    Parameters
    ----------
    path : str, path or pandas.DataFrame
        Losses in [0, 1], one row for each play and one column for each arm: a CSV file (a header is optional), an NPZ
        file with one array, a Parquet file (with pyarrow), or a DataFrame.

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
    if is_frame(path):
        return _numbers(_of_frame(path, "the DataFrame"), 0.0, 1.0)
    path, kind = _existing(path)
    if kind == ".npz":
        arrays = _read_npz(path)
        if len(arrays) != 1 or next(iter(arrays.values())).ndim != 2:
            shapes = {name: value.shape for name, value in arrays.items()}
            raise ValueError(f"{path}: it must hold one array [T, K], not {shapes}")
        rows = next(iter(arrays.values()))
        return _numbers(Table(str(path), [str(i + 1) for i in range(rows.shape[1])], rows), 0.0, 1.0)
    return _numbers((_read_csv if kind == ".csv" else _read_parquet)(path), 0.0, 1.0)


def read_labelled(path: Source, *, label: str | int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Read features and labels of a classification problem from a file or a DataFrame, for `classification`.

    Parameters
    ----------
    path : str, path or pandas.DataFrame
        One row for each example: a CSV file (a header is optional), an NPZ or Parquet file, or a DataFrame.
    label : str or int
        The name of the label column, or its number from 1 where a file has no header. In an NPZ file, the name of the
        label array, beside one array of features.

    Returns
    -------
    features : ndarray of shape (n, p)
        The other columns, float64. `features.names` are theirs.
    labels : ndarray of shape (n,)
        int64. Labels may be numbers or words; they are numbered 0, 1, ... in sorted order. `labels.names` are the
        classes in this order: `classification` keeps them as the names of its arms.

    Raises
    ------
    ValueError
        As `read_losses`, and where the label column is unknown or a label is missing. Of a DataFrame it names the place
        in its index and the column.

    Examples
    --------
    >>> import tempfile
    >>> import jaxbandits as jb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.csv"
    ...     _ = path.write_text("length,kind\\n1.5,rose\\n0.5,iris\\n")
    ...     features, labels = jb.read_labelled(path, label="kind")
    >>> features.tolist(), labels.tolist(), labels.names
    ([[1.5], [0.5]], [1, 0], ('iris', 'rose'))
    """
    if is_frame(path):
        table, marks = _split_frame(path, label)
    else:
        path, kind = _existing(path)
        if kind == ".npz":
            table, marks = _split_arrays(path, label)
        else:
            table, marks = _split_rows((_read_csv if kind == ".csv" else _read_parquet)(path), label)
    classes = _classes(marks, lambda i: table.where(i, str(label)))
    return named(_numbers(table), table.names), named(classes.codes, classes.names)


def _split_frame(frame: Any, label: Any) -> tuple[Table, list[Any]]:
    """The features and the labels of a DataFrame."""
    at = [j for j, name in enumerate(frame.columns) if name == label or str(name) == str(label)]
    if len(at) != 1:
        names = [str(name) for name in frame.columns]
        what = "several columns" if at else "no column"
        raise ValueError(f"the DataFrame has {what} {label!r}{nearest(str(label), names)}; it has {few(names)}")
    rest = frame.iloc[:, [j for j in range(frame.shape[1]) if j != at[0]]]
    return _of_frame(rest, "the DataFrame"), frame.iloc[:, at[0]].tolist()


def _split_arrays(path: Path, label: str | int) -> tuple[Table, list[Any]]:
    """The features and the labels of an NPZ file."""
    arrays = _read_npz(path)
    others = [name for name in arrays if name != label]
    if label not in arrays or len(others) != 1 or arrays[others[0]].ndim != 2:
        shapes = {name: value.shape for name, value in arrays.items()}
        raise ValueError(
            f"{path}: it must hold the labels {label!r} [n] and one array of features [n, p], not {shapes}"
        )
    rows, marks = arrays[others[0]], np.ravel(arrays[str(label)]).tolist()
    if len(marks) != len(rows):
        raise ValueError(f"{path}: {len(marks)} labels for {len(rows)} rows of features: they must match")
    return Table(str(path), [str(i + 1) for i in range(rows.shape[1])], rows), marks


def _split_rows(table: Table, label: str | int) -> tuple[Table, list[Any]]:
    """The features and the labels of a table with a column of labels."""
    names = table.names
    if str(label) not in names:
        hint = nearest(str(label), names)
        raise ValueError(f"{table.source}: there is no column {label!r}{hint}; it has {', '.join(names)}")
    at = names.index(str(label))
    marks = [row[at] for row in table.rows]
    rows = [[*row[:at], *row[at + 1 :]] for row in table.rows]
    return table._replace(names=names[:at] + names[at + 1 :], rows=rows), marks

"""Labelled rows, losses and rewards of one's own, and labels as arms. `user_tables` reads files and DataFrames."""

import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from jaxbandits.environments.user_tables import (
    MISSING_WORDS,
    Columns,
    Table,
    TableSource,
    few,
    is_missing,
    of_frame,
    table_of,
)
from jaxbandits.formatting import show
from jaxbandits.validation import array, choice, declare, is_frame, is_masked

# Other digits, such as 007 or 1.0, are text: two labels that differ in a file are two labels.
INTEGER = re.compile(r"0|-?[1-9][0-9]*")
MAX_FLOAT_LABEL = 2**53  # neighbouring integers of this size are one float
MANY_ROWS = 10  # so many numbers are not evenly apart by chance


class Named(np.ndarray[Any, Any]):
    """Numbers with the names of what they stand for: of columns, or of the classes 0, 1, ...

    Some of its rows, a copy and another type of number keep the names. Anything else that makes an array may move
    columns and forgets them; of labels, which have no columns, it keeps them.
    """

    names: tuple[str, ...] | None = None

    def __array_finalize__(self, source: Any) -> None:
        labels = isinstance(source, Named) and source.ndim == self.ndim == 1
        self.names = source.names if labels else None

    def copy(self, order: Literal["K", "A", "C", "F"] | None = "C") -> "Named":
        return self._keep_names(super().copy(order))

    def __copy__(self) -> "Named":
        return self.copy()

    def __deepcopy__(self, memo: object) -> "Named":
        return self.copy()

    def astype(self, *given: Any, **more: Any) -> np.ndarray[Any, Any]:
        found = super().astype(*given, **more)
        return self._keep_names(found) if isinstance(found, Named) else found

    def __array_wrap__(self, result: object, context: object = None, return_scalar: bool = False) -> Any:
        return np.asarray(result)[()] if return_scalar else np.asarray(result)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if not isinstance(found, Named) or isinstance(key, tuple):
            return np.asarray(found) if isinstance(found, Named) else found
        return self._keep_names(found) if found.ndim == self.ndim else found

    def _keep_names(self, found: np.ndarray[Any, Any]) -> "Named":
        there = found.view(Named)
        there.names = self.names
        return there


def attach_names(x: np.ndarray[Any, Any], names: Iterable[str]) -> Named:
    """An array that knows the names of its columns or classes."""
    there = x.view(Named)
    there.names = tuple(names)
    return there


def say_identifiers(
    table: Table, x: np.ndarray[Any, Any], unless: str = "the order of rows is a feature", stacklevel: int = 3
) -> None:
    """Warn of columns that count the rows: by one, or in many rows by any other step."""
    step = (x[-1] - x[0]) / max(len(x) - 1, 1)
    size = np.abs(step)  # the newest row may come first
    evenly = (size > 0) & (np.abs(np.diff(x, axis=0) - step) <= size / 100).all(axis=0)
    count = [table.names[j] for j in np.flatnonzero(evenly & ((size == 1) | (len(x) >= MANY_ROWS)))]
    if count and len(x) > 2:
        warnings.warn(
            f"{table.source}: column {few(count)} counts evenly and looks like an identifier: leave it out, unless "
            f"{unless}",
            stacklevel=stacklevel,
        )


def classes_of(marks: Sequence[Any], where: Callable[[int], str]) -> tuple[np.ndarray[Any, Any], tuple[str, ...]]:
    """Labels of any kind as arms [n] and the arms' names: in sorted order, of integers where all are, or of text."""
    for i, mark in enumerate(marks):
        if is_missing(mark) or (isinstance(mark, str) and not mark.strip()) or mark in (math.inf, -math.inf):
            raise ValueError(f"{where(i)}: the label {show(mark)} is missing")
    kinds = set(map(type, marks))
    values: list[Any]
    if all(issubclass(kind, int | float) and kind is not bool for kind in kinds):
        for i, mark in enumerate(marks):
            if mark != mark // 1 or (isinstance(mark, float) and abs(mark) >= MAX_FLOAT_LABEL):
                raise ValueError(
                    f"{where(i)}: the label {mark!r} is no class: labels must be integers 0..K-1, other integers "
                    "(floats below 2^53 count) or text; numbers such as 0.5 name classes as text only, "
                    "labels=[str(x) for x in labels]"
                )
        values = [int(mark) for mark in marks]
    else:
        values = [_name(mark) for mark in marks]
        first: dict[str, Any] = {}
        for i, (name, mark) in enumerate(zip(values, marks, strict=True)):
            other = first.setdefault(name, mark)
            if isinstance(other, str) != isinstance(mark, str):
                raise ValueError(f"{where(i)}: the labels {show(other)} and {show(mark)} have one name: give text")
    distinct = sorted(set(values))
    code = {value: k for k, value in enumerate(distinct)}
    return np.array([code[value] for value in values], np.int64), tuple(map(str, distinct))


def _name(mark: object) -> str:
    return (str(mark, "utf-8", "backslashreplace") if isinstance(mark, bytes) else str(mark)).strip()


def _marks(labels: Any) -> list[Any]:
    """Labels as plain Python values."""
    if not isinstance(labels, list | tuple):
        labels = labels if hasattr(labels, "tolist") else np.asarray(labels)
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "mM":  # `tolist` makes integers of some of them
            return [None if np.isnat(mark) else str(mark) for mark in labels]
        labels = labels.tolist()
    return [mark.item() if isinstance(mark, np.generic) else mark for mark in labels]


def file_marks(table: Table) -> list[Any]:
    """The labels in a table's one column, None where one is missing; integers if all texts of a file are."""
    marks = [table.clean_cell(mark) for mark in _marks(table.frame.iloc[:, 0])]
    texts = [mark for mark in marks if mark is not None]
    if table.words is not None and all(isinstance(text, str) and INTEGER.fullmatch(text) for text in texts):
        marks = [None if mark is None else int(mark) for mark in marks]
    return marks


def read_matrix(name: str, given: object) -> tuple[np.ndarray[Any, Any], list[str]]:
    """An argument of numbers [n, p] in float64, and what messages call its columns."""
    if is_frame(given):
        table = of_frame(given, name)
        x = table.to_numbers()
        table.complete_rows(table.names, np.isnan(x), "error")
        return x, table.names
    x = array(name, given, 2)
    names = given.names if isinstance(given, Named) else None
    return x, list(names or (f"{name}[:, {j}]" for j in range(x.shape[1])))


def fill_means(features: np.ndarray[Any, Any], missing: str) -> np.ndarray[Any, Any]:
    """Features whose missing cells are the mean of their column's others where `missing` says "mean"."""
    is_empty = np.isnan(features)
    if missing != "mean" or is_empty.all(axis=0).any():
        return features
    return np.where(is_empty, np.nanmean(features, axis=0), features)


def labels_of(labels: Any, n: int) -> tuple[np.ndarray[Any, Any], tuple[str, ...], np.ndarray[Any, Any]]:
    """The labels of n rows as arms, the arms' names, and the labels as an array: of integers, otherwise of text."""
    try:
        shape = np.shape(labels)
    except ValueError:  # lists of different lengths
        shape = (0, 0)
    if shape != (n,):
        hint = "one label for each row of features"
        if isinstance(labels, str):
            hint = f"it names no column, jb.read_labelled(frame, label={show(labels)}) does"
        elif shape == (n, 1):
            hint = "give its one column, frame['label'] or labels[:, 0]"
        raise ValueError(f"labels has shape {shape}; it must be ({n},): {hint}")
    if is_masked(labels):
        raise ValueError("labels has masked entries: leave their rows out")
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":  # as below, for millions of rows
        plain = np.asarray(labels)
        distinct, codes = np.unique(plain, return_inverse=True)
        classes = tuple(map(str, distinct.tolist()))
    else:
        marks = _marks(labels)
        (codes, classes), plain = classes_of(marks, _row_of(labels)), _labels_as_array(marks)
    names = labels.names if isinstance(labels, Named) else None
    numbered = names is not None and all(map(INTEGER.fullmatch, classes))
    if names is not None and numbered and 0 <= int(classes[0]) and int(classes[-1]) < len(names):
        classes = tuple(names[int(code)] for code in classes)  # the numbers that `read_labelled` gave them
    if len(classes) < 2:
        raise ValueError(f"labels must be of at least two classes, all of them are {classes[0]}")
    return codes, classes, plain


def _labels_as_array(marks: list[Any]) -> np.ndarray[Any, Any]:
    """Labels as an array: numbers or booleans if all of them are and a type of NumPy holds them, otherwise text."""
    kinds = set(map(type, marks))
    x = np.array(marks, None if kinds == {bool} or kinds <= {int, float} else object)
    exact = x.dtype.kind in "biu" or (x.dtype.kind == "f" and np.abs(x).max() < MAX_FLOAT_LABEL)
    return x if exact else np.array([_name(mark) for mark in marks])


def _row_of(labels: object) -> Callable[[int], str]:
    """How messages call a row of labels; a pandas Series knows its place in the index and its column."""
    index, name = getattr(labels, "index", None), getattr(labels, "name", None)
    if index is None or callable(index):  # `index` of a list is a method
        return lambda i: f"labels: row {i + 1}"
    column = "" if name is None else f", column {name}"
    return lambda i: f"labels: row {i + 1} (index {show(index[i])}){column}"


@declare(check=False)
def read_losses(
    path: TableSource, *, missing: str = "error", missing_words: Sequence[str] = MISSING_WORDS
) -> np.ndarray[Any, Any]:
    """Read a table of losses from a file or a DataFrame, for `loss_table`.

    Args:
        path (str, path, pandas.DataFrame or table): Losses in [0, 1], one row for each play and one column for each
            arm: a CSV or TSV file in UTF-8 (a header is optional; also in .gz, .bz2 or .xz), an NPZ file with one
            array, a Parquet file (with pyarrow), a DataFrame, or a table with `to_pandas()`, such as polars' and
            pyarrow's.
        missing ("error" or "drop", default "error"): What happens where a cell is missing. "error", the default,
            refuses the table; "drop" leaves the row out, so that later plays move up, and warns.
        missing_words (sequence of str, default ('', '?', 'NA', 'nan', 'NaN')): The texts that stand for a missing cell
            in a file, without blanks around them. Default: "", "?", "NA", "nan" and "NaN". Texts of a DataFrame are
            never missing; None, NaN, NA and NaT are, in every source.

    Returns:
        ndarray of shape (T, K): The losses, float64. `losses.names` are those of the columns: `loss_table` keeps them.

    Raises:
        ValueError: Naming the file, the data row (from 1), the line and the column of the first entry that is not a
            number in [0, 1], or a row of another length; or saying that the file is missing, empty or not readable,
            that a column has no name of its own or that a cell is missing.

    Warns:
        UserWarning: Rows are left out: how many, and the first five. A column counts the rows.

    Note:
        The first row of a text file is its header unless one of its cells is a number or one of the missing words
        other than "". Lines without any character but blanks are skipped; a row of empty cells is missing.

    >>> import pathlib, tempfile
    >>> import jaxbandits as jb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "losses.csv"
    ...     _ = path.write_text("a,b\\n0,1\\n0.5,0.25\\n")
    ...     jb.read_losses(path).tolist()
    [[0.0, 1.0], [0.5, 0.25]]
    """
    choice("missing", missing, ("error", "drop"))
    return losses_of(table_of(path, missing_words), missing)


def losses_of(table: Table, missing: str = "error", stacklevel: int = 4) -> Named:
    """The losses of a table, with the names of its columns."""
    losses = table.to_numbers(0.0, 1.0)
    complete = table.complete_rows(table.names, np.isnan(losses), missing, stacklevel)
    say_identifiers(table, losses, "it is an arm", stacklevel)
    return attach_names(losses[complete], table.names)


@declare(check=False)
def read_labelled(
    path: TableSource, *, label: str | int, missing: str = "error", missing_words: Sequence[str] = MISSING_WORDS
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Read features and labels of a classification problem from a file or a DataFrame, for `classification`.

    Args:
        path (str, path, pandas.DataFrame or table): One row for each example, in a source as of `read_losses`.
        label (str or int): The name of the label column, or its number from 1 where a file has no header. In an NPZ
            file, the name of the label array, beside one array of features.
        missing ("error", "drop" or "mean", default "error"): What happens where a cell is missing. "error", the
            default, refuses the table; "drop" leaves the row out and warns; "mean" puts the mean of the column's other
            cells in the place of a feature, and refuses a missing label.
        missing_words (sequence of str, default ('', '?', 'NA', 'nan', 'NaN')): As in `read_losses`.

    Returns:
        features (ndarray of shape (n, p)): The other columns, float64. `features.names` are theirs.
        labels (ndarray of shape (n,)): int64. Labels are numbered 0, 1, ... in sorted order. `labels.names` are the
            classes in this order: `classification` keeps them as the names of its arms.

    Raises:
        ValueError: As `read_losses`, and where the label column is unknown. Of a DataFrame it names the place in its
            index and the column.

    Warns:
        UserWarning: As `read_losses`, and where a feature counts up by one from row to row, as an identifier does.

    Note:
        Labels of a text file are integers, of any size, if every one is written as 0, 7 or -12; otherwise they are
        text, so that 007 and 7 or 1.10 and 1.1 are two classes. Texts in a DataFrame stay text. Blanks around labels do
        not count. Headers are those of `read_losses`.

    >>> import pathlib, tempfile
    >>> import jaxbandits as jb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "flowers.csv"
    ...     _ = path.write_text("length,kind\\n1.5,rose\\n0.5,iris\\n")
    ...     features, labels = jb.read_labelled(path, label="kind")
    >>> features.tolist(), labels.tolist(), labels.names
    ([[1.5], [0.5]], [1, 0], ('iris', 'rose'))
    """
    choice("missing", missing, ("error", "drop", "mean"))
    table = table_of(path, missing_words, label)
    marks = file_marks(table.pick([label]))
    rest = table.without([label])
    features = fill_means(rest.to_numbers(), missing)
    is_empty = np.column_stack([[mark is None for mark in marks], np.isnan(features)])
    complete = table.complete_rows([str(label), *rest.names], is_empty, missing, filled=rest.names)
    rows = np.flatnonzero(complete)
    codes, classes = classes_of([marks[i] for i in rows], lambda i: table.where(int(rows[i]), str(label)))
    say_identifiers(rest, features)
    return attach_names(features[complete], rest.names), attach_names(codes, classes)


@declare(check=False)
def read_table(
    source: TableSource, *, rewards: Columns, missing: str = "error", missing_words: Sequence[str] = MISSING_WORDS
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Read features and the rewards of every arm from a file or a DataFrame, for `contextual_table`.

    Args:
        source (str, path, pandas.DataFrame or table): One row for each context, in a source as of `read_losses`; an NPZ
            file holds one array, whose columns are named 1, 2, ...
        rewards (sequence of str or int): The columns of rewards, one for each of at least two arms: their names, or
            their numbers from 1 where a file has no header.
        missing ("error", "drop" or "mean", default "error"): What happens where a cell is missing, as in
            `read_labelled`: "mean" fills in features, and refuses a missing reward.
        missing_words (sequence of str, default ('', '?', 'NA', 'nan', 'NaN')): As in `read_losses`.

    Returns:
        features (ndarray of shape (n, p)): The other columns, float64. `features.names` are theirs.
        rewards (ndarray of shape (n, K)): float64, in the order that was asked for. `rewards.names` are the columns:
            `contextual_table` keeps them as the names of its arms.

    Raises:
        ValueError: As `read_losses`, and where a column of rewards is unknown.

    Warns:
        UserWarning: As `read_labelled`.

    >>> import pandas as pd
    >>> import jaxbandits as jb
    >>> frame = pd.DataFrame({"age": [31, 52], "letter": [0.2, 0.4], "call": [0.9, 0.1]})
    >>> features, rewards = jb.read_table(frame, rewards=["letter", "call"])
    >>> features.tolist(), rewards.tolist(), rewards.names
    ([[31.0], [52.0]], [[0.2, 0.9], [0.4, 0.1]], ('letter', 'call'))
    """
    choice("missing", missing, ("error", "drop", "mean"))
    if isinstance(rewards, str) or not isinstance(rewards, Sequence) or len(rewards) < 2:
        raise ValueError(f"rewards = {show(rewards)} must name the columns of at least two arms: ['first', 'second']")
    table = table_of(source, missing_words, named=rewards)
    paid, rest = table.pick(rewards), table.without(rewards)
    features, payments = fill_means(rest.to_numbers(), missing), paid.to_numbers()
    is_empty = np.isnan(np.column_stack([payments, features]))
    complete = table.complete_rows([*paid.names, *rest.names], is_empty, missing, filled=rest.names)
    say_identifiers(rest, features)
    return attach_names(features[complete], rest.names), attach_names(payments[complete], paid.names)

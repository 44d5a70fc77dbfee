"""Tables of one's own: every source becomes the columns of a pandas DataFrame, and its cells become numbers.

Errors name the source, the data row (from 1), its line in the file or its place in the index, and the column.
"""

import bz2
import csv
import functools
import gzip
import io
import itertools
import lzma
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from jaxbandits.formatting import nearest, show
from jaxbandits.validation import column_names, is_frame, path_of

if TYPE_CHECKING:
    import pandas as pd


class OtherTable(Protocol):
    """A table of another library, such as polars' or pyarrow's."""

    def to_pandas(self) -> "pd.DataFrame": ...


TableSource: TypeAlias = "str | PathLike[str] | pd.DataFrame | OtherTable"
Columns: TypeAlias = Sequence[str | int]

MAX_NAMED = 6  # columns, rows or classes that a message names
MISSING_WORDS = ("", "?", "NA", "nan", "NaN")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
# numbers as they are written elsewhere, and what pandas calls that; 1,234 is two of them
WRITTEN = {
    r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?": "thousands=','",
    r"[-+]?\d+,\d+": "sep=..., decimal=','",
    r"[-+]?\d{1,3}(\.\d{3})+,\d+": "sep=..., thousands='.', decimal=','",
    r"[-+]?\d+(;[-+]?\d+)+": "sep=';', decimal=','",
}
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def few(items: Sequence[str]) -> str:
    """Some items in words: all of a few, otherwise the first ones and the last."""
    if len(items) > MAX_NAMED:
        items = [*items[: MAX_NAMED - 1], "...", items[-1]]
    return ", ".join(items)


def is_missing(x: object) -> bool:
    """Whether it is None, NaN, or what pandas has for a missing value."""
    return x is None or type(x).__name__ in ("NAType", "NaTType") or (isinstance(x, Real | Decimal) and x != x)


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


class Table(NamedTuple):
    """Columns of a source, and how a message finds a cell of them."""

    source: str  # a file, or the name of an argument
    names: list[str]  # of the columns
    frame: "pd.DataFrame"
    words: tuple[str, ...] | None = None  # what a file has in place of a missing cell; texts of a DataFrame stay texts
    place: Callable[[int], str] | None = None  # where else a row is found, such as "file line 3"

    def where(self, row: int, column: str) -> str:
        """A cell in words; `row` counts from 0."""
        place = f" ({self.place(row)})" if self.place else ""
        return f"{self.source}: row {row + 1}{place}, column {column}"

    def pick(self, columns: Columns) -> "Table":
        """The table of these columns, in their order; ValueError where there is no such column, or one comes twice."""
        for name in columns:
            if str(name) not in self.names:
                hint = nearest(str(name), self.names)
                raise ValueError(f"{self.source}: there is no column {name!r}{hint}; it has {few(self.names)}")
        names = [*map(str, columns)]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"{self.source}: column {twice[0]} is named twice: a column has one meaning")
        return self._replace(names=names, frame=self.frame.iloc[:, [self.names.index(name) for name in names]])

    def without(self, columns: Columns) -> "Table":
        """The table without these columns. ValueError where none is left."""
        rest = [name for name in self.names if name not in map(str, columns)]
        if not rest:
            raise ValueError(f"{self.source}: no column is left for features: a column of ones would do")
        return self.pick(rest)

    def clean_cell(self, cell: object) -> Any:
        """A cell without the blanks around it, None where it is missing."""
        cell = cell.strip() if isinstance(cell, str) else cell
        return None if is_missing(cell) or (self.words is not None and cell in self.words) else cell

    def to_numbers(self, low: float = -math.inf, high: float = math.inf) -> np.ndarray[Any, Any]:
        """The cells in float64 [n, columns], each finite and in [low, high], or NaN where it is missing."""
        if 0 in self.frame.shape:
            raise ValueError(f"{self.source}: there are no rows of data")
        x = np.empty(self.frame.shape)
        for j, name in enumerate(self.names):
            column = self.frame.iloc[:, j]
            kind = getattr(column.dtype, "kind", "O")
            if kind in "mMc":
                raise ValueError(
                    f"{self.source}: column {name} holds {column.dtype}, which is not a number: convert or drop it"
                )
            if kind in "biuf":
                x[:, j] = column.to_numpy(np.float64, na_value=np.nan)
            else:
                x[:, j] = [self._value(i, name, cell) for i, cell in enumerate(column)]
        bad = ~(np.isnan(x) | (np.isfinite(x) & (x >= low) & (x <= high)))
        if bad.any():
            i, j = (int(k) for k in np.argwhere(bad)[0])
            need = "finite" if math.isinf(low) else f"a number in [{low:g}, {high:g}]: scale all, such as losses / 1000"
            raise ValueError(f"{self.where(i, self.names[j])}: {float(x[i, j])!r} must be {need}")
        return x

    def _value(self, row: int, name: str, cell: object) -> float:
        """A cell as a number, NaN where it is missing."""
        text = self.clean_cell(cell)
        if text is None:
            return math.nan
        value: Any = text
        if isinstance(text, str) and self.words is not None:
            value = {"true": 1.0, "false": 0.0}.get(text.lower(), _number(text))
        is_number = isinstance(value, Real | Decimal)
        if not is_number or abs(value) > sys.float_info.max:
            remedy = f"encode it, such as by pandas.get_dummies(frame, columns=[{name!r}]), or leave the column out"
            if ways := [way for form, way in WRITTEN.items() if isinstance(text, str) and re.fullmatch(form, text)]:
                read = " or ".join(f"pandas.read_csv(path, {way})" for way in ways)
                remedy = f"read the file with {read}, as its numbers are meant, and give the DataFrame"
            raise ValueError(f"{self.where(row, name)}: {show(cell)} is not a number: {remedy}")
        return float(value)

    def complete_rows(
        self, names: Sequence[str], is_empty: np.ndarray[Any, Any], missing: str, stacklevel: int = 3,
        filled: Sequence[str] = (),
    ) -> np.ndarray[Any, Any]:  # fmt: skip
        """The rows [n] without a missing cell; where there is another one, an error, or a warning if they are dropped.

        names: of the columns that are used. is_empty: [n, names] whether the cell is missing. filled: the columns whose
        missing cells `missing='mean'` fills.
        """
        complete = np.logical_not(is_empty.any(axis=1))
        rows = np.flatnonzero(~complete)
        if len(rows) == 0:
            return complete
        if missing != "drop" or len(rows) == len(complete):
            row = int(rows[0])
            name = names[int(is_empty[row].argmax())]
            ways = ["'drop'"] * bool(complete.any()) + ["'mean'"] * (missing == "error" and name in filled)
            remedy = "complete it" + (f", or read the table with missing={' or '.join(ways)}" if ways else "")
            raise ValueError(f"{self.where(row, name)}: the cell is missing: {remedy}")
        warnings.warn(
            f"{self.source}: {len(rows)} of {len(complete)} rows have a missing cell and are left out: rows "
            f"{', '.join(str(row + 1) for row in rows[:5])}{', ...' if len(rows) > 5 else ''}",
            stacklevel=stacklevel,
        )
        return complete


def table_of(
    source: object, words: object, label: str | int | None = None, columns: Columns | None = None, named: Columns = ()
) -> Table:
    """The cells of a file, a DataFrame or another table. In an NPZ file `label` is an array of its own.

    columns: those that are needed, the only ones that are read of a Parquet file; None: all. named: further columns
    whose names show that the first line of a text file is its header.
    """
    if isinstance(words, str) or not isinstance(words, Iterable) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"missing_words = {show(words)} must be a list of texts, such as ['', '?']")
    if not is_frame(source) and hasattr(source, "to_pandas"):
        try:
            source = source.to_pandas()
        except Exception as error:  # polars needs pyarrow for some columns
            what = f"the {type(source).__name__} does not become a pandas DataFrame"
            raise ValueError(f"{what} ({error}): give the DataFrame") from None
    if is_frame(source):
        return of_frame(source, "the DataFrame")
    if not isinstance(source, str | PathLike):
        raise ValueError(
            f"path = {show(source)} of type {type(source).__name__} must be the name of a file or a pandas DataFrame"
        )
    path, words = path_of(source), tuple(words)
    kind = path.suffix.lower()
    if kind in OPENERS:
        kind = Path(path.stem).suffix.lower()
    known = (*SEPARATORS, *(() if path.suffix.lower() in OPENERS else (".npz", ".parquet")))
    if kind not in known:
        raise ValueError(
            f"{path}: the name must end in {', '.join(known)}{nearest(kind, known)}, .csv and .tsv also in "
            f"{', '.join(OPENERS)}: convert the file, or read it with pandas and give the DataFrame"
        )
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file: check the path")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty")
    if kind == ".npz":
        return _of_npz(path, words, label)
    if kind == ".parquet":
        return _of_parquet(path, words, None if columns is None else [*map(str, columns)])
    return _of_csv(path, SEPARATORS[kind], words, label, (label, *named))


def of_frame(frame: Any, source: str) -> Table:
    return Table(source, column_names(source, frame.columns), frame, None, lambda i: f"index {show(frame.index[i])}")


def _of_csv(
    path: Path, separator: str, words: tuple[str, ...], label: str | int | None, named: Sequence[object]
) -> Table:
    """The cells of a text file: numbers of whole columns, and otherwise text."""
    import pandas as pd

    text = _text_of(path)
    file = io.StringIO(text)
    first = next(_records(path, file, separator), ([], 0))[0]
    if not first:
        raise ValueError(f"{path}: there are no rows of data")
    header = any(first) and not any(cell and (cell in words or _number(cell) is not None) for cell in first)
    marks = {j: cell for j, cell in enumerate(first) if _number(cell) is not None}
    plain = all(map(str.isdecimal, marks.values()))  # 0.0,1.0 may be the names that a transposed table had
    # years and counts are names beside the label's
    header |= plain and any(x in first and x not in marks.values() for x in named)
    counted = [[*range(start, len(marks) + start)] for start in (0, 1)]
    alike = plain or all(re.fullmatch(r"\d+\.0", cell) for cell in marks.values())
    if not header and len(marks) > 1 and alike and [*map(float, marks.values())] in counted:
        rows = [row for row, _ in itertools.islice(_records(path, file, separator), 1000)]
        form = re.compile(r"\d+" if plain else r"\d+\.0*")
        others = not all(any(form.fullmatch(row[j]) for row in rows if j < len(row)) for j in marks)
        header = plain and len(rows) > 2 and others  # some column of numbers is written otherwise
        if not header and (plain or others):
            doubt = f"the first row, {few(first)}, may be a header that counts the columns, and is taken for data"
            warnings.warn(f"{path}: {doubt}: name the columns, or give the DataFrame of pandas.read_csv", stacklevel=4)
    other = next((mark for mark in ",;\t| " if len(first) == 1 and mark in first[0]), None)
    if other is not None:
        cut = r"\s+" if other == " " else other
        decimal = ", decimal=','" if other != "," and re.search(r"\d,\d", text) else ""
        raise ValueError(
            f"{path}: there is one column, {show(first[0])}: separate its cells with {separator!r}, or give the "
            f"DataFrame of pandas.read_csv(path, sep={cut!r}{decimal})"
        )
    file.seek(0)
    names = column_names(str(path), first) if header else [f"{j + 1}" for j in range(len(first))]
    if header:
        next(_records(path, file, separator))

    @functools.cache
    def records() -> list[tuple[list[str], int]]:  # parsed a second time, for messages alone
        return list(_records(path, io.StringIO(text), separator))[header:]

    def check_lengths() -> None:
        for i, (row, line) in enumerate(records()):
            if len(row) != len(names):
                raise ValueError(
                    f"{path}: row {i + 1} (file line {line}) has {len(row)} columns, expected {len(names)}: complete "
                    "or remove it"
                )

    # pandas before 3.1 rounds the last digit unless told not to, and later releases warn of being told
    old = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    exact: dict[str, Any] = {"float_precision": "round_trip"} if old else {}
    labels = {names.index(str(label)): object} if str(label) in names else {}
    try:
        frame = pd.read_csv(
            file, header=None, sep=separator, skipinitialspace=True, keep_default_na=False, na_values=list(words),
            dtype=labels, low_memory=False, **exact,
        )  # fmt: skip
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame(columns=range(len(names)))
    except pd.errors.ParserError as error:
        check_lengths()
        raise ValueError(f"{path}: not a readable table ({' '.join(str(error).split())}): write it again") from None
    # pandas completes a short row with empty cells
    if frame.shape[1] != len(names) or (frame.iloc[:, -1].isna() | (frame.iloc[:, -1] == "")).any():
        check_lengths()
    return Table(str(path), names, frame, words, lambda i: f"file line {records()[i][1]}")


def _text_of(path: Path) -> str:
    """A text file as a whole."""
    advice = "save it as UTF-8, or give the DataFrame of pandas.read_csv(path, encoding=...)"
    try:
        with OPENERS.get(path.suffix.lower(), open)(path, "rt", encoding="utf-8-sig") as file:
            text: str = file.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not in UTF-8 ({error.reason} at byte {error.start}): {advice}") from None
    except Exception as error:  # no permission, a damaged archive
        raise ValueError(f"{path}: cannot be read ({error}): write it again") from None
    if "\0" in text:
        raise ValueError(f"{path}: not in UTF-8 (it holds NUL): {advice}")
    return text


def _records(path: Path, file: io.StringIO, separator: str) -> Iterator[tuple[list[str], int]]:
    """The rows of a text file without blanks around their cells, and the file lines where they end."""
    reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if len(cells) > 1 or any(cells):
                yield cells, reader.line_num
    except csv.Error as error:
        raise ValueError(f"{path}: file line {reader.line_num}: {error}: mend the line") from None


def _of_parquet(path: Path, words: tuple[str, ...], columns: list[str] | None) -> Table:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ValueError(
            f"{path}: reading Parquet needs pyarrow: pip install pyarrow, or convert it to CSV or NPZ"
        ) from None
    try:
        there = parquet.read_schema(path).names
        wanted = None if columns is None or not {*columns} <= {*there} else columns
        # an index is a column as any other; integers beside missing cells do not become floats
        frame = parquet.read_table(path, columns=wanted).to_pandas(ignore_metadata=True, integer_object_nulls=True)
    except Exception as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error}): write it again") from None
    return Table(str(path), column_names(str(path), frame.columns), frame, words)


def _of_npz(path: Path, words: tuple[str, ...], label: str | int | None) -> Table:
    import pandas as pd

    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:
        raise ValueError(
            f"{path}: not a readable NPZ file of plain arrays ({error}): write it with numpy.savez"
        ) from None
    shapes = {name: value.shape for name, value in arrays.items()}
    others = [name for name in arrays if label is None or name != label]
    if len(others) != 1 or arrays[others[0]].ndim != 2 or (label is not None and label not in arrays):
        wanted = "one array [T, K]" if label is None else f"the labels {label!r} [n] and one array of features [n, p]"
        raise ValueError(f"{path}: it must hold {wanted}, not {shapes}")
    rows = arrays[others[0]]
    frame, names = pd.DataFrame(rows), [str(j + 1) for j in range(rows.shape[1])]
    if label is not None:
        marks = np.ravel(arrays[str(label)])
        if len(marks) != len(rows):
            raise ValueError(f"{path}: {len(marks)} labels for {len(rows)} rows of features: they must match")
        frame, names = pd.concat([pd.Series(marks), frame], axis=1), [str(label), *names]
    return Table(str(path), names, frame, words)

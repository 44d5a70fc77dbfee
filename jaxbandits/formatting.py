"""Numbers, values and tables as text."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MAX_SHOWN = 80  # characters of a value in a message
BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
NumberText: TypeAlias = Callable[[float], str]


def compact(x: float, digits: int | None = None) -> str:
    """Plain digits for axes and titles, at their full size: an exponent of 10 would be set below 7 points.

    digits: how many significant ones it is rounded to before.

    >>> compact(2.5e6), compact(0.0000123), compact(1234.5678, digits=2), compact(math.inf)
    ('2.5M', '1.23e-5', '1,200', '∞')
    >>> compact(-2.5e6), compact(-0.0000123), compact(-1234.5678), compact(-math.inf), compact(999_999.7)
    ('-2.5M', '-1.23e-5', '-1,234.57', '-∞', '1M')
    """
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    x = float(f"{x:.{6 if digits is None else digits}g}")
    for unit, letter in ((1e9, "G"), (1e6, "M")):
        if abs(x) >= unit:
            return f"{x / unit:g}{letter}"
    mantissa, _, exponent = f"{x:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent and abs(x) < 1 else f"{x:,.6g}"


def minus(text: str) -> str:
    """A number's text with minus signs for its hyphens."""
    return text.replace("-", "−")


def format_number(x: float) -> str:
    """Three significant digits, for tables and sentences; large numbers whole.

    >>> format_number(12345.6), format_number(0.12345), format_number(math.inf)
    ('12,346', '0.123', '∞')
    """
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def brackets(
    low: float, high: float, text: NumberText = format_number, *, open_low: bool = False, open_high: bool = False
) -> str:
    """An interval: its ends as `format_value` writes them, in brackets, or in a parenthesis at an open end.

    >>> brackets(0.0, 1234.5), brackets(0.0, math.inf, "{:g}".format, open_high=True)
    ('[0, 1,234]', '[0, inf)')
    """
    return f"{'(' if open_low else '['}{text(float(low))}, {text(float(high))}{')' if open_high else ']'}"


def end_of_range(x: float) -> str:
    """Six digits, or all where six name another number, which might itself lie outside of the range.

    >>> end_of_range(0.5), end_of_range(math.inf), end_of_range(math.sqrt(0.5)), end_of_range(2.0**31)
    ('0.5', 'inf', '0.7071067811865476', '2147483648')
    """
    return f"{x:g}" if float(f"{x:g}") == x else repr(x).removesuffix(".0")


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:g}%"


def size(number: float) -> str:
    """Bytes as text.

    >>> size(12), size(4e9), size(4e12)
    ('12 B', '4 GB', '4 TB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def duration(seconds: float) -> str:
    """Seconds as text.

    >>> duration(0.2), duration(120), duration(7200)
    ('1 s', '2 min', '2.0 h')
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def format_value(value: object) -> str:
    """A grid value as the messages and tables show it: on one line."""
    return f"{value:g}" if isinstance(value, float | np.floating) else " ".join(str(value).split())


def texts_of(values: Iterable[Any], text: Callable[[Any], str] = str) -> list[str]:
    """Values as texts, no two of which are alike: those that would be are written as Python writes them.

    >>> texts_of([0.1, 0.1000001, 2.0], format_value), texts_of(["1", 1, "a", "a  b", "a b"], format_value)
    (['0.1', '0.1000001', '2'], ["'1'", '1', 'a', "'a ␣b'", "'a b'"])
    """
    values = [x.item() if isinstance(x, np.generic) and x.dtype.kind not in "mM" else x for x in values]
    texts = list(map(text, values))
    apart = lambda x: repr(x).replace("  ", " ␣") if isinstance(x, str) else show(x)
    return [apart(x) if texts.count(shown) > 1 else shown for x, shown in zip(values, texts, strict=True)]


def show(value: object) -> str:
    """A value as a message shows it: its `repr`, on one line and not too long."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**MAX_SHOWN:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to write the longest ones
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # some dates would become integers
        value = value.item()
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def nearest(name: str, known: Iterable[Any], number: int = 1) -> str:
    """` (did you mean 'x'?)` with the known names that are most like `name`, or an empty string.

    >>> nearest("UCB1", ["exp3", "ucb1"]), nearest("x", ["exp3", "ucb1"])
    (" (did you mean 'ucb1'?)", '')
    """
    others = {str(k).casefold(): str(k) for k in known if str(k) != str(name)}
    matches = difflib.get_close_matches(str(name).casefold(), others, n=number, cutoff=0.5)
    return f" (did you mean {', '.join(repr(others[match]) for match in matches)}?)" if matches else ""


def inert(value: object) -> Any:
    """A text that no spreadsheet takes for a formula; anything else as it is.

    >>> inert("=1+1"), inert("exp3"), inert(-1.0)
    ("'=1+1", 'exp3', -1.0)
    """
    return f"'{value}" if isinstance(value, str) and value.lstrip().startswith(("=", "+", "-", "@")) else value


def csv(frame: pd.DataFrame) -> str:
    """A table as the text of a CSV file whose labels are no formulas and on one line: a line break is written \\n."""

    def inert_line(value):
        return inert(BREAKS.sub(lambda sign: repr(sign[0])[1:-1], value)) if isinstance(value, str) else value

    return frame.map(inert_line).rename(columns=inert_line).to_csv(index=False)


def markdown_table(rows: Sequence[Sequence[str]], right: int = 0) -> str:
    """Rows of cells as a Markdown table: the first is the head, the last `right` columns are aligned right.

    >>> print(markdown_table([["algorithm", "regret"], ["a", "4"]], right=1))
    | algorithm | regret |
    |---|---:|
    | a | 4 |
    """

    def escape_label(label):  # a label is no column, no line and no HTML of its own
        return re.sub("<(?=[A-Za-z/!?])", "&lt;", " ".join(label.split()).replace("|", "\\|"))

    head, *lines = ["| " + " | ".join(map(escape_label, row)) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * (len(rows[0]) - right) + "---:|" * right, *lines])


def join_values(values: Iterable[Any]) -> str:
    """Grid values, separated by commas."""
    return ", ".join(map(format_value, values))

"""A study's part of the documentation: its table and how it was run, between the study's marks, and its pictures.

A page is docs/reproductions/<paper>.md. What a study writes stands between `<!-- PAPER/FIGURE: begin -->` and
`<!-- PAPER/FIGURE: end -->`; the text around it is written by hand. Pictures and their data are
docs/figures/<PAPER>/<FIGURE>-<name>.png and .csv. What another page shows of a study is written there from that data,
between marks of its own (`QUOTED`).
"""

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits.formatting import markdown_table
from jaxbandits.papers.study import CLAIM_COLUMNS, Reproduction, Study, claims_table
from jaxbandits.searching import WorstCase
from jaxbandits.version import __version__

NUMBER = r"\d+(,\d{3})*(\.\d+)?"
ROUNDING = 1e-6  # relative: numbers that are nearer are the same


def page_of(name: str, docs: Path) -> Path:
    """The page of the study PAPER/FIGURE."""
    return docs / "reproductions" / f"{name.split('/')[0].replace('-', '_')}.md"


def marks(name: str) -> tuple[str, str]:
    """The lines between which a study writes."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def study_text(name: str, docs: Path) -> str:
    """What stands between a study's marks now.

    ValueError where there is no such page, or the marks are not there once each and in order.
    """
    page, (begin, end) = page_of(name, docs), marks(name)
    if not page.exists():
        raise ValueError(f"there is no page {page} for {name}: write one with its marks")
    text = page.read_text(encoding="utf-8")
    found = re.findall(rf"^{re.escape(begin)}$(.*?)^{re.escape(end)}$", text, flags=re.M | re.S)
    if len(found) != 1:
        raise ValueError(f"{page}: {len(found)} places for {name}: give it one pair of lines, {begin} and {end}")
    return found[0]


def replace(name: str, docs: Path, text: str) -> Path:
    """Put a text between a study's marks; the page."""
    page, (begin, end) = page_of(name, docs), marks(name)
    before = f"{begin}{study_text(name, docs)}{end}"
    page.write_text(page.read_text(encoding="utf-8").replace(before, f"{begin}{text}{end}"), encoding="utf-8")
    return page


def write_study(
    name: str, done: Reproduction, docs: Path, about: Callable[[str], str] = lambda statement: ""
) -> list[Path]:
    """Put a study's full run into its page and its pictures and their data beside; the paths written.

    `about`: the claim of a line and its word (`verdicts.word_finder`).
    """
    page = replace(name, docs, f"\n{claims_table(done.claims, about)}\n\n{how_it_was_run(name, done)}\n")
    paper, figure = name.split("/")
    directory = docs / "figures" / paper
    directory.mkdir(parents=True, exist_ok=True)
    if name in (compared := read_compared(docs)):  # that was another page
        _write_compared({other: row for other, row in compared.items() if other != name}, docs)
    pictures = [path for path in done.paths if path.stem in done.figures and path.suffix in (".png", ".csv")]
    copied = [Path(shutil.copyfile(path, directory / f"{figure}-{path.name}")) for path in pictures]
    return [page, *copied, *quote(name, docs)]


def take(name: str, done: Reproduction, docs: Path, about: Callable[[str], str] = lambda statement: "") -> list[Path]:
    """Put a run that was just compared with the page into the page, which keeps what was found; the paths written."""
    found = read_compared(docs)[name]
    paths = write_study(name, done, docs, about)
    _write_compared(read_compared(docs) | {name: found | {"taken": True}}, docs)
    return paths


class Comparison(NamedTuple):
    """What a study, computed anew, has that its page has not."""

    cells: int  # of the page: those of its table, and of its pictures' data
    moved: list[str]  # numbers that are others, and what was measured in words, a line each
    furthest: float  # the largest move of an estimate, in lengths of its interval on the page
    words: list[str]  # all else: verdicts, statements, labels, and tables of another shape


def differences(
    name: str, done: Reproduction, docs: Path, about: Callable[[str], str] = lambda statement: ""
) -> Comparison:
    """What a study's full run gives and its page or the data of its pictures do not."""
    then, now = map(_rows, (study_text(name, docs), claims_table(done.claims, about)))
    cells, furthest, moved, words = sum(map(len, then)), 0.0, list[str](), list[str]()
    if [len(then), *map(len, then)] != [len(now), *map(len, now)]:
        words.append(f"table: {len(then)} lines -> {len(now)}")
    for k, (old, new) in enumerate(zip(then, now, strict=False), 1):
        for column, a, b in zip(CLAIM_COLUMNS, old, new, strict=False):
            if a != b:  # a statement may hold what was measured, too
                numbers = not column and re.sub(NUMBER, "", a) == re.sub(NUMBER, "", b)
                where = moved if numbers or column == CLAIM_COLUMNS[2] else words
                where.append(f"table, line {k}, {column or 'statement'}: {a} -> {b}")
    paper, figure = name.split("/")
    for key in done.figures:
        page = docs / "figures" / paper / f"{figure}-{key}.csv"
        (fresh,) = (path for path in done.paths if path.name == f"{key}.csv")
        old, new = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in (page, fresh))
        cells += old.size
        if old.shape != new.shape or list(old) != list(new):
            words.append(f"{page.name}: {list(old)} x {len(old)} -> {list(new)} x {len(new)}")
            continue
        nowhere = pd.Series(np.nan, old.index)
        low, high = (pd.to_numeric(old.get(end, nowhere), errors="coerce") for end in ("low", "high"))
        for row, column in ((row, column) for row in old.index for column in old):
            a, b = old.at[row, column], new.at[row, column]
            if a == b:
                continue
            x, y = (pd.to_numeric(text, errors="coerce") for text in (a, b))
            if math.isclose(x, y, rel_tol=ROUNDING):
                continue
            is_number = not (np.isnan(x) or np.isnan(y))
            (moved if is_number else words).append(f"{page.name}, row {row + 1}, {column}: {a} -> {b}")
            if is_number and low[row] <= x <= high[row] and low[row] < high[row]:
                furthest = max(furthest, abs(y - x) / (high[row] - low[row]))
    return Comparison(cells, moved, furthest, words)


def _rows(text: str) -> list[list[str]]:
    """The cells of a table's lines, without its head."""
    lines = [line for line in text.split("\n") if line.startswith("| ")][1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def read_compared(docs: Path) -> dict[str, dict[str, Any]]:
    """What was found when each study was last computed anew: the day, how many cells were compared, what differed."""
    path = docs / "figures" / "compared.json"
    return json.loads(path.read_text()) if path.exists() else {}


def record_comparison(name: str, day: str, found: Comparison, docs: Path) -> None:
    """Write down what a comparison of a study found; of a run with the page that was taken from it, nothing."""
    last = read_compared(docs).get(name, {})
    if last.get("taken") and last["day"] == day and not (found.moved or found.words):
        return
    counts = {"cells": found.cells, "moved": len(found.moved), "furthest": round(found.furthest, 2)}
    _write_compared(read_compared(docs) | {name: {"day": day, **counts, "words": len(found.words)}}, docs)


def _write_compared(rows: dict[str, dict[str, Any]], docs: Path) -> None:
    text = ",\n".join(f"  {json.dumps(name)}: {json.dumps(rows[name])}" for name in sorted(rows))
    (docs / "figures" / "compared.json").write_text(f"{{\n{text}\n}}\n")


def comparison_text(row: dict[str, Any] | None) -> str:
    """When a study was computed anew, and what then differed from its page."""
    if row is None:
        return ""
    parts = [f"{row['cells']:,} cells" if row["moved"] or row["words"] else f"{row['cells']:,} cells, all the same"]
    if row["moved"]:
        by = f", at most by {row['furthest']:g} of an interval's length" if row["furthest"] else ""
        parts.append(f"{row['moved']:,} moved{by}")
    if row["words"]:
        parts.append(f"**{row['words']:,} differ otherwise**")
    return (
        f"{row['day']}: {', '.join(parts)}{'; the page has the new ones' if row.get('taken') and row['moved'] else ''}"
    )


def regret_by_budget(data: Path) -> str:
    """Regret at equal true budget, from the data of its picture: a row for each epsilon."""
    frame = pd.read_csv(data)
    curves = frame[frame["epsilon"].notna() & (frame["kind"] == "algorithm")]
    curves = curves.pivot_table(index="epsilon", columns="algorithm", values="centre", sort=False).dropna(axis=1)
    head = ["ε truly spent", *curves.columns]
    rows = [[f"{epsilon:g}", *(f"{x:,.0f}" for x in row)] for epsilon, *row in curves.itertuples()]
    return markdown_table([head, *rows], right=len(head))


# study -> the page that quotes it, the picture whose data it quotes, and the table made from them
QUOTED = {"ldp-contextual/equal-budget": ("privacy.md", "budget", regret_by_budget)}


OVERVIEW = "<!-- studies: begin -->", "<!-- studies: end -->"


def seconds_of(name: str, docs: Path) -> str:
    """The seconds of a study's full run as its page has them."""
    (seconds,) = re.findall(rf"`jaxbandits reproduce {name} --full`: ([\d,]+) s", study_text(name, docs))
    return str(seconds)


def overview(studies: dict[str, Study], docs: Path) -> str:
    """Every study, what of its paper it is about, the seconds of its full run, and when it was compared, with marks."""
    lines = [["study", "what it shows", "of the paper", "computed anew, and compared", "seconds at full size"]]
    compared = read_compared(docs)
    for name, study in studies.items():
        of_paper = [part for part in re.split(r"; | and (?=docs/)", study.source) if "docs/" not in part]
        page = page_of(name, docs).relative_to(docs)
        last = comparison_text(compared.get(name))
        lines.append([f"[`{name}`]({page})", study.title, "; ".join(of_paper) or "-", last, seconds_of(name, docs)])
    return f"{OVERVIEW[0]}\n{markdown_table(lines, right=1)}\n{OVERVIEW[1]}"


def write_overview(studies: dict[str, Study], docs: Path) -> Path:
    """Put the list of all studies into docs/reproductions.md; its path."""
    page, (begin, end) = docs / "reproductions.md", OVERVIEW
    text = page.read_text(encoding="utf-8")
    page.write_text(f"{text.split(begin)[0]}{overview(studies, docs)}{text.split(end)[1]}", encoding="utf-8")
    return page


def quotation(name: str, docs: Path) -> str:
    """What another page shows of a study, with its marks."""
    _, picture, table = QUOTED[name]
    begin, end = marks(f"{name}, {picture}")
    paper, figure = name.split("/")
    return f"{begin}\n{table(docs / 'figures' / paper / f'{figure}-{picture}.csv')}\n{end}"


def quote(name: str, docs: Path) -> list[Path]:
    """Put what another page shows of a study into that page; the paths written."""
    if name not in QUOTED:
        return []
    page, picture, _ = QUOTED[name]
    begin, end = (re.escape(mark) for mark in marks(f"{name}, {picture}"))
    before, found = (docs / page).read_text(encoding="utf-8"), quotation(name, docs)
    after, times = re.subn(rf"^{begin}$.*?^{end}$", lambda _: found, before, flags=re.M | re.S)
    if times != 1:
        raise ValueError(f"{docs / page}: {times} places for what it quotes of {name}: give it one pair of marks")
    (docs / page).write_text(after, encoding="utf-8")
    return [docs / page]


def how_it_was_run(name: str, done: Reproduction) -> str:
    """The command, seconds, seeds, horizons, searches, and the data of the pictures, as a paragraph of Markdown."""
    datasets = [ds for ds in done.results.values() if isinstance(ds, xr.Dataset)]
    parts = [f"{done.seconds:,.0f} s"]
    if datasets:
        seeds = sorted({f"{int(ds['seed'].min()):,} to {int(ds['seed'].max()):,}" for ds in datasets}, key=len)
        # the key `horizon` of the grid, or the last checkpoint
        horizons = np.concatenate([ds["horizon"] if "horizon" in ds.dims else ds["t"][-1:] for ds in datasets])
        ends = " to ".join(dict.fromkeys(f"{int(x):,}" for x in (horizons.min(), horizons.max())))
        parts += [f"seeds {' and '.join(seeds)}", f"T = {ends}"]
    searches = [found.trials for found in done.results.values() if isinstance(found, WorstCase)]
    for trials, first, last in sorted({(x.sizes["trial"], int(x.seed[0]), int(x.seed[-1])) for x in searches}):
        parts.append(f"attacks chosen among {trials} on seeds {first:,} to {last:,}")
    text = f"`jaxbandits reproduce {name} --full`: {', '.join(parts)}, version {__version__}."
    paper, figure = name.split("/")
    links = [f"[{key}](../figures/{paper}/{figure}-{key}.csv)" for key in done.figures]
    return f"{text} Data of the pictures: {', '.join(links)}." if links else text

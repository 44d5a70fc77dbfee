"""Run studies of the papers at full size, and put tables, pictures and verdicts into these pages.

    python docs/reproduce.py all     or names as `jaxbandits reproduce` takes them: a paper, or PAPER/FIGURE

Runs are kept in runs/reproductions/PAPER/FIGURE: what is there is not computed again.

    python docs/reproduce.py --compare all

leaves the studies' pages as they are. It computes them anew, in runs/comparison, goes on there when it was interrupted,
and lists each study's seconds and the cells of its table and of its pictures' data that are not what the page has: of
numbers those that moved by more than rounding, and all that is no number. What was found is kept in
docs/figures/compared.json and stands in the list of all studies, so that the hours can be divided: studies that were
never compared come first, the shortest of them before the others, then those compared longest ago.

    python docs/reproduce.py --take all

does the same, and then puts what was computed, pictures too, into the pages of those studies of which no word differs.
"""

import datetime
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import study_tables
import verdicts

from jaxbandits import papers

DOCS = Path(__file__).resolve().parent


def reproduce(names: list[str], docs: Path = DOCS, runs: Path = Path("runs/reproductions")) -> None:
    """ValueError, before any work, where a name is none, or a page lacks its marks."""
    studies = {name: study for given in names for name, study in papers.find(given).items()}
    for name in studies:
        study_tables.study_text(name, docs)
    for name, study in studies.items():
        print(f"{name}: {study.title} ({study.source})", flush=True)
        done = papers.reproduce(study, runs / name, full=True)
        print(papers.claims_table(done.claims))
        paths = study_tables.write_study(name, done, docs, verdicts.word_finder(name))
        print(f"{done.seconds:,.0f} s; written into {', '.join(map(str, paths))}")
    print(f"and the verdicts into {verdicts.write_verdicts(docs, papers.all_studies())[0]}")


def compare(names: list[str], docs: Path = DOCS, runs: Path = Path("runs/comparison"), *, take: bool = False) -> int:
    """Print which cells differ from the pages, and write down when and how many; how many of them are no numbers.

    `take`: pages of which no word differs get the new numbers and pictures.
    """
    known, total = study_tables.read_compared(docs), 0
    studies = {name: study for given in names for name, study in papers.find(given).items()}
    for name in sorted(studies, key=partial(longest_ago, known=known, docs=docs)):
        done = papers.reproduce(studies[name], runs / name, full=True)
        found = study_tables.differences(name, done, docs, verdicts.word_finder(name))
        study_tables.record_comparison(name, day_of(runs / name), found, docs)
        if take and not found.words:
            study_tables.take(name, done, docs, verdicts.word_finder(name))
        study_tables.write_overview(papers.all_studies(), docs)
        print(f"{name}: {done.seconds:,.0f} s; {study_tables.comparison_text(study_tables.read_compared(docs)[name])}")
        print(*(f"  {line}\n" for line in (*found.words, *found.moved)), sep="", end="", flush=True)
        total += len(found.words)
    if take:
        verdicts.write_verdicts(docs, papers.all_studies())
    return total


def longest_ago(name: str, known: dict[str, dict[str, Any]], docs: Path) -> tuple[str, float]:
    """What studies are compared in the order of: the day of the last time, then the seconds of the page."""
    return known.get(name, {"day": ""})["day"], float(study_tables.seconds_of(name, docs).replace(",", ""))


def day_of(run: Path) -> str:
    """The day on which the last chunk of a run was computed; of a run without any, today."""
    ends = [path.stat().st_mtime for path in run.rglob("*.npz")]
    return datetime.datetime.fromtimestamp(max(ends, default=time.time()), datetime.UTC).date().isoformat()


if __name__ == "__main__":
    try:
        first, *others = sys.argv[1:]
        if first in ("--compare", "--take"):
            total = compare(others, take=first == "--take")
            sys.exit(f"{total} cells differ that are no numbers" if total else None)
        reproduce([first, *others])
    except ValueError as error:
        sys.exit(f"docs/reproduce.py: {error}")

"""Run studies of the papers at full size, and put tables, pictures and verdicts into these pages.

    python docs/reproduce.py all     or names as `jaxbandits reproduce` takes them: a paper, or PAPER/FIGURE

Runs are kept in runs/reproductions/PAPER/FIGURE: what is there is not computed again.

    python docs/reproduce.py --compare all

writes nothing into the pages. It computes everything anew, in runs/comparison, goes on there when it was interrupted,
and lists each study's seconds and the cells of its table and of its pictures' data that are not what the page has.
"""

import sys
from pathlib import Path

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


def compare(names: list[str], docs: Path = DOCS, runs: Path = Path("runs/comparison")) -> int:
    """Print what differs from the pages; how many cells do."""
    total = 0
    for name, study in {name: study for given in names for name, study in papers.find(given).items()}.items():
        done = papers.reproduce(study, runs / name, full=True)
        found = study_tables.differences(name, done, docs, verdicts.word_finder(name))
        print(f"{name}: {done.seconds:,.0f} s, {len(found)} cells differ", *found, sep="\n  ", flush=True)
        total += len(found)
    return total


if __name__ == "__main__":
    try:
        first, *others = sys.argv[1:]
        if first == "--compare":
            sys.exit(f"{total} cells differ" if (total := compare(others)) else None)
        reproduce([first, *others])
    except ValueError as error:
        sys.exit(f"docs/reproduce.py: {error}")

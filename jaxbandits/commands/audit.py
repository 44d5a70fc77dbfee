"""`jaxbandits audit NAME|MODULE:FACTORY|--all`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from jaxbandits import catalogue
from jaxbandits.commands import audit_table as table
from jaxbandits.reports import plot

EXIT_REFUTED = 1


<<<<<<< HEAD:jaxbandits/auditing/command.py
def add_to(commands: Any) -> None:
    """Add the sub-command and its options to those of a parser."""
    auditing = commands.add_parser("audit", help="prove how much of a claimed privacy budget is spent")
    auditing.add_argument(
        "name", metavar="NAME", nargs="?", help="an algorithm, at the catalogue's size, or your own as MODULE:FACTORY"
    )
    auditing.add_argument("--all", action="store_true", help="every private algorithm of the catalogue")
    auditing.add_argument(
        "--runs", metavar="N", type=int, default=1_000_000, help="independent runs each (default: 1000000)"
    )
    auditing.add_argument("--confidence", type=float, default=0.95, help="of each lower bound (default: 0.95)")
    auditing.add_argument("--seed", type=int, default=0)
    auditing.add_argument("--out", metavar="DIR", type=Path, help="where to write (default: runs/audit)")
    auditing.add_argument("--format", default="png", metavar="png,pdf", help="picture formats: png, pdf, svg")


def run(given: argparse.Namespace, formats: tuple[str, ...]) -> int:
    """Write audit.csv, audit.md and a trade-off curve for each algorithm; the exit code is 1 if a claim is refuted."""
    import pandas as pd

=======
def run(given, formats: tuple[str, ...]) -> int:
    """Write audit.csv, audit.md and a trade-off curve each; exit code 1 where a claim is refuted."""
>>>>>>> main:jaxbandits/commands/audit.py
    out = given.out or Path("runs") / "audit"
    if given.all == (given.name is not None):
        raise ValueError("audit: give the name of an algorithm, or --all")
    names, rows, refuted = catalogue.private() if given.all else [given.name], [], []
    first = table.case(names[0])  # a name that is known, before a directory is made for it
    table.prepare(out)
    cases = (first if name == names[0] else table.case(name) for name in names)
    for report, algorithm in table.audits(
        cases, runs=given.runs, confidence=given.confidence, seed=given.seed, say=lambda line: print(line, flush=True)
    ):
        rows.append(table.row(report, algorithm))
        paths = table.write(pd.DataFrame(rows), out)
        for kind in formats:
            plot.trade_off(report, path=out / f"{report.algorithm}.{kind}")
        refuted += [report.algorithm] if report.refuted else []
    print(f"written to {out}: {', '.join(path.name for path in paths)} and a trade-off curve each")
    if refuted:
        print(f"jaxbandits: refuted: {', '.join(refuted)}", file=sys.stderr)
    return EXIT_REFUTED if refuted else 0

"""`jaxbandits audit NAME|MODULE:FACTORY|FILE.toml|--all`."""

import argparse
import re
import sys
from pathlib import Path

from jaxbandits import catalogue
from jaxbandits.commands import audit_table as table
from jaxbandits.reports import plot

EXIT_REFUTED = 1


def run(given: argparse.Namespace) -> int:
    """Write audit.csv, audit.md and a trade-off curve for each algorithm; the exit code is 1 if a claim is refuted."""
    import pandas as pd

    out = given.out or Path("runs") / "audit"
    if given.all == (given.name is not None):
        raise ValueError("audit: give the name of an algorithm, a TOML file, or --all")
    names, rows, refuted = catalogue.private() if given.all else [given.name], [], []
    first = table.cases(names[0])  # a name that is known, before a directory is made for it
    table.prepare(out)
    cases = (case for name in names for case in (first if name == names[0] else table.cases(name)))
    for report, algorithm in table.audits(
        cases, runs=given.runs, confidence=given.confidence, seed=given.seed, whole=given.whole,
        adaptive=given.adaptive,
        say=lambda line: print(line, flush=True),
    ):  # fmt: skip
        rows.append(table.row(report, algorithm))
        paths = table.write(pd.DataFrame(rows), out)
        for kind in given.formats:
            name = re.sub(r"[^\w.]+", "-", report.algorithm)
            plot.trade_off(report, path=out / f"{name}.{kind}")
        refuted += [report.algorithm] if report.refuted else []
    print(f"written to {out}: {', '.join(path.name for path in paths)} and a trade-off curve each")
    if refuted:
        print(f"jaxbandits: refuted: {', '.join(refuted)}", file=sys.stderr)
    return EXIT_REFUTED if refuted else 0

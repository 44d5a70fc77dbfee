"""Claimed, spent and audited privacy of a report's algorithms."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits import spending
from jaxbandits.mechanisms.composition import SIMULATED
from jaxbandits.privacy import asked, ledger
from jaxbandits.reports.page import sources
from jaxbandits.reports.page.tables import MAX_ROWS, Cell, Table, cell
from jaxbandits.sweeps.sweep import cell_words

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from jaxbandits.reports.page.runs import Run


class Privacy(NamedTuple):
    """The table, what else is to be said, and the commands that audit what is not audited."""

    table: Table
    notes: list[str]
    commands: list[str]


def privacy(runs: Sequence[Run]) -> Privacy:
    """What was asked for, what the noise delivers, and what an audit proved, for every private algorithm and point."""
    rows: list[list[Cell]] = []
    notes: list[str] = []
    commands: list[str] = []
    for run in runs:
        lines, open_claims = _lines(run)
        rows += [[Cell(run.label), *line] if len(runs) > 1 else line for line in lines]
        if open_claims:
            where = f"{run.label}: " if len(runs) > 1 else ""
            done = "No audit was found" if run.audit is None else "The audit does not cover all rows"
            notes.append(f"{where}{done}. This command attacks the claims, and the next report shows what it proves:")
            commands.append(sources.audit_command(run))
        if lines and run.unplanned and not spending.known(run.ds):
            notes.append(f"What is spent is not known here for parts that are missing: {run.unplanned}.")
    if not rows:
        return Privacy(Table([], []), ["No algorithm here has a guarantee of privacy."], [])
    heads = [
        *(["sweep"] if len(runs) > 1 else []), "algorithm", "model", "neighbours differ in one", "claimed ε", "spent ε",
        "δ", "audited ε at least", "refuted",
    ]  # fmt: skip
    note = (
        "Claimed: what the algorithm was asked for. Spent: what its noise delivers (jb.privacy.ledger). Audited: a "
        "lower confidence bound on what is truly spent, from attacks."
    )
    if len(rows) > MAX_ROWS:
        note += f" The first {MAX_ROWS} of {len(rows):,} rows."
    return Privacy(Table(heads, rows[:MAX_ROWS], note), [*notes, SIMULATED], commands)


def _lines(run: Run) -> tuple[list[list[Cell]], bool]:
    """A row for each private algorithm at each point, and whether some of them are not audited."""
    claims = json.loads(run.ds.attrs.get("guarantees", "{}"))
    audits = _audits(run.audit)
    lines, open_claims, planned = [], False, set()
    plan = run.plan
    for built in plan.cells if plan else ():
        if built.algorithm.guarantee.model == "none" or built.label not in claims:
            continue
        planned.add(built.label)
        assert plan is not None
        words = cell_words(plan, built)
        spent = ledger(built.algorithm, built.environment)
        proven, refuted = audits.get(words, (math.nan, None))
        open_claims |= refuted is None
        lines.append([
            Cell(words), Cell(spent.model), Cell(spent.unit.replace("_", " ")), cell(asked(built.algorithm)),
            cell(spent.epsilon), cell(spent.delta), cell(proven) if refuted is not None else Cell("not audited"),
            Cell("–" if refuted is None else "yes" if refuted else "no"),
        ])  # fmt: skip
    for label in map(str, run.ds["algorithm"].values):
        if label in claims and label not in planned:
            claim = claims[label]
            audited = [words for words in audits if words == label or words.startswith(f"{label}, ")]
            open_claims |= not audited
            base = [Cell(claim["model"]), Cell(claim["unit"].replace("_", " "))]
            stored = _stored(run.ds, label, claim)
            if audited and len(stored) > 1:  # which point an audit is of is not known here
                stored = [[Cell("not known")] * 3]
            for numbers in stored:
                for words in audited or [label]:
                    proven, refuted = audits.get(words, (math.nan, None))
                    end = [cell(proven) if audited else Cell("not audited"), Cell("yes" if refuted else "no")]
                    lines.append([Cell(words), *base, *numbers, end[0], end[1] if audited else Cell("–")])
    return lines, open_claims


def _stored(ds: xr.Dataset, label: str, claim: dict[str, Any]) -> list[list[Cell]]:
    """What a run asked for and spent, as its Dataset has it: each triple of numbers once."""
    if not spending.known(ds):
        unknown = Cell("not known")
        return [[unknown, Cell(claim["epsilon"]) if "epsilon" in claim else unknown, unknown]]
    found = [spending.along(ds.sel(algorithm=[label]), name) for name in spending.NAMES]
    triples = dict.fromkeys(zip(*(np.ravel(x).tolist() for x in found), strict=True))
    return [[cell(x) for x in triple] for triple in triples]


def _audits(frame: pd.DataFrame | None) -> dict[str, tuple[float, Any]]:
    """`{label and point in words: (audited epsilon, refuted)}` of a file audit.csv."""
    if frame is None or not {"algorithm", "audited", "refuted"} <= set(frame.columns):
        return {}
    rows = frame[["algorithm", "audited", "refuted"]].itertuples(index=False)
    return {str(name): (float(audited), bool(refuted)) for name, audited, refuted in rows}

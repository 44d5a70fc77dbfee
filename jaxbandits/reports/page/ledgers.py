"""Claimed, spent and audited privacy of a report's algorithms."""

import itertools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import spending
from jaxbandits.mechanisms.composition import SIMULATED
from jaxbandits.privacy import asked, ledger
from jaxbandits.reports.page.runs import Run, audit_command
from jaxbandits.reports.page.tables import MAX_ROWS, Cell, Table, cell
from jaxbandits.reports.page.words import number
from jaxbandits.sweeps.plan import cell_words

HEADS = ["algorithm", "model", "neighbours differ in one", "claimed ε", "spent ε", "δ", "audited ε at least", "refuted"]


MAX_NUMBERS = 4  # of a row on the first screen


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
    several = len(runs) > 1
    for run in runs:
        lines, open_claims = _lines(run)
        rows += [[Cell(run.label), *line] if several else line for line in lines]
        if open_claims:
            where = f"{run.label}: " if several else ""
            done = "No audit was found" if run.audit is None else "The audit does not cover all rows"
            notes.append(f"{where}{done}. This command attacks the claims, and the next report shows what it proves:")
            commands.append(audit_command(run))
        if lines and run.unplanned and not spending.known(run.ds):
            notes.append(f"What is spent is not known here for parts that are missing: {run.unplanned}.")
    if not rows:
        return Privacy(Table([], []), ["No algorithm here has a guarantee of privacy."], [])
    note = (
        "Claimed: what the algorithm was asked for. Spent: what its noise delivers (jb.privacy.ledger). Audited: a "
        "lower confidence bound on what is truly spent, from attacks."
    )
    if len(rows) > MAX_ROWS:
        note += f" The first {MAX_ROWS} of {len(rows):,} rows."
    return Privacy(Table(["sweep"] * several + HEADS, rows[:MAX_ROWS], note), [*notes, SIMULATED], commands)


def asked_and_spent(run: Run) -> Table:
    """A row for each private algorithm: what it was asked for over the grid, and what its noise spends."""
    ds, rows = run.ds, list[list[Cell]]()
    claims = json.loads(ds.attrs.get("guarantees", "{}"))
    if not spending.known(ds):
        return Table([], [])
    for label in map(str, ds["algorithm"].values):
        if label in claims:
            one = ds.sel(algorithm=[label])
            asked, spent, delta = (np.ravel(spending.along(one, name)) for name in spending.NAMES)
            other = bool(spending.other(asked, spent).any()) or bool((np.isnan(asked) & ~np.isnan(spent)).any())
            model = f"{claims[label]['model']}, one {claims[label]['unit'].replace('_', ' ')}"
            words = [label, model, _range(asked), _range(spent) if other else "as asked", _range(delta)]
            rows.append([Cell(text) for text in words])
    return Table(["algorithm", "private", "ε asked", "ε spent", "δ"], rows)


def _range(values: np.ndarray[Any, Any]) -> str:
    """A few numbers, or the ends of many."""
    found = [number(x) for x in np.unique(values)]
    return ", ".join(found) if len(found) <= MAX_NUMBERS else f"{found[0]} to {found[-1]}"


def _lines(run: Run) -> tuple[list[list[Cell]], bool]:
    """A row for each private algorithm at each point, and whether some of them are not audited."""
    claims = json.loads(run.ds.attrs.get("guarantees", "{}"))
    audits = _audits(run.audit)
    lines, planned = [], set()
    for built in run.plan.cells if run.plan else ():
        if built.algorithm.guarantee.model == "none" or built.label not in claims:
            continue
        planned.add(built.label)
        assert run.plan is not None
        words, spent = cell_words(run.plan, built), ledger(built.algorithm, built.environment)
        numbers = [cell(asked(built.algorithm)), cell(spent.epsilon), cell(spent.delta)]
        lines.append([Cell(words), *_whose(spent.model, spent.unit), *numbers, *_audited(audits.get(words))])
    for label in map(str, run.ds["algorithm"].values):
        if label in claims and label not in planned:
            claim = claims[label]
            audited = [words for words in audits if words == label or words.startswith(f"{label}, ")]
            stored = _stored(run.ds, label, claim)
            if audited and len(stored) > 1:  # which point an audit is of is not known here
                stored = [[Cell("not known")] * 3]
            for numbers, words in itertools.product(stored, audited or [label]):
                whose = _whose(claim["model"], claim["unit"])
                lines.append([Cell(words), *whose, *numbers, *_audited(audits.get(words))])
    return lines, any(line[-2] == NOT_AUDITED for line in lines)


NOT_AUDITED = Cell("not audited")


def _whose(model: str, unit: str) -> list[Cell]:
    return [Cell(model), Cell(unit.replace("_", " "))]


def _audited(found: tuple[float, bool] | None) -> list[Cell]:
    """What an audit proved, and whether it refutes the claim."""
    return [NOT_AUDITED, Cell("–")] if found is None else [cell(found[0]), Cell("yes" if found[1] else "no")]


def _stored(ds: xr.Dataset, label: str, claim: dict[str, Any]) -> list[list[Cell]]:
    """What a run asked for and spent, as its Dataset has it: each triple of numbers once."""
    if not spending.known(ds):
        unknown = Cell("not known")
        return [[unknown, Cell(claim["epsilon"]) if "epsilon" in claim else unknown, unknown]]
    found = [spending.along(ds.sel(algorithm=[label]), name) for name in spending.NAMES]
    triples = dict.fromkeys(zip(*(np.ravel(x).tolist() for x in found), strict=True))
    return [[cell(x) for x in triple] for triple in triples]


def _audits(frame: pd.DataFrame | None) -> dict[str, tuple[float, bool]]:
    """`{label and point in words: (audited epsilon, refuted)}` of a file audit.csv."""
    if frame is None or not {"algorithm", "audited", "refuted"} <= set(frame.columns):
        return {}
    rows = frame[["algorithm", "audited", "refuted"]].itertuples(index=False)
    return {str(name): (float(audited), bool(refuted)) for name, audited, refuted in rows}

"""Claimed, spent and audited privacy of a report's algorithms."""

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import spending
from jaxbandits.mechanisms.composition import SIMULATED
from jaxbandits.reports.page.runs import ReportRun, audit_command
from jaxbandits.reports.page.tables import MAX_ROWS, PageTable, TableCell, table_cell
from jaxbandits.reports.page.words import number_words
from jaxbandits.sweeps.assumptions import privacy_spent
from jaxbandits.sweeps.plan import cell_words

LEDGER_HEADS = ["algorithm", "model", "neighbours differ in one"]
LEDGER_HEADS += ["claimed ε", "spent ε", "δ", "audited ε at least", "refuted"]
NOT_AUDITED = ("not audited", "–")  # in place of what an audit proved, and of whether it refutes the claim
MAX_LISTED_NUMBERS = 4  # of a row on the first screen


def privacy(runs: Sequence[ReportRun]) -> tuple[PageTable, list[tuple[str, str]]]:
    """What was asked for, what the noise delivers, and what an audit proved, for every private algorithm and point.

    With it what else is to be said, beside the command that audits what is not audited, or "".
    """
    rows: list[list[Any]] = []
    notes: list[tuple[str, str]] = []
    several = len(runs) > 1
    for run in runs:
        lines = _lines(run)
        rows += [[run.label, *line] if several else line for line in lines]
        if any(line[-2:] == [*NOT_AUDITED] for line in lines):
            where = f"{run.label}: " if several else ""
            done = "No audit was found" if run.audit is None else "The audit does not cover all rows"
            note = f"{where}{done}. This command attacks the claims, and the next report shows what it proves:"
            notes.append((note, audit_command(run)))
        if lines and run.unplanned and not spending.has_spending(run.ds):
            notes.append((f"What is spent is not known here for parts that are missing: {run.unplanned}.", ""))
    if not rows:
        return PageTable([], []), [("No algorithm here has a guarantee of privacy.", "")]
    note = "Claimed: what the algorithm was asked for. Spent: what its noise delivers (jb.privacy.ledger). "
    note += "Audited: a lower confidence bound on what is truly spent, from attacks."
    if len(rows) > MAX_ROWS:
        note += f" The first {MAX_ROWS} of {len(rows):,} rows."
    cells = [[TableCell(x) if isinstance(x, str) else table_cell(x) for x in row] for row in rows[:MAX_ROWS]]
    return PageTable(["sweep"] * several + LEDGER_HEADS, cells, note), [*notes, (SIMULATED, "")]


def budget_table(run: ReportRun) -> PageTable:
    """A row for each private algorithm: what it was asked for over the grid, and what its noise spends."""
    ds, rows = run.ds, list[list[TableCell]]()
    claims = json.loads(ds.attrs.get("guarantees", "{}"))
    if not spending.has_spending(ds):
        return PageTable([], [])
    for label in map(str, ds["algorithm"].values):
        if label in claims:
            one = ds.sel(algorithm=[label])
            asked, spent, delta = (np.ravel(spending.coordinate_array(one, name)) for name in spending.COORDINATES)
            other = (spending.spends_differently(asked, spent) | (np.isnan(asked) & ~np.isnan(spent))).any()
            model = f"{claims[label]['model']}, one {_unit(claims[label])}"
            words = [label, model, _range(asked), _range(spent) if other else "as asked", _range(delta)]
            rows.append([TableCell(text) for text in words])
    return PageTable(["algorithm", "private", "ε asked", "ε spent", "δ"], rows)


def _unit(claim: dict[str, Any]) -> str:
    """What neighbouring inputs differ in, in words. Rows that are played several times are more than that."""
    unit, plays = str(claim["unit"]).replace("_", " "), claim.get("plays", "1")
    return f"{unit} (of one play; a row has up to {plays})" if plays != "1" else unit


def _range(values: np.ndarray[Any, Any]) -> str:
    """A few numbers, or the ends of many."""
    found = [number_words(x) for x in np.unique(values)]
    return ", ".join(found) if len(found) <= MAX_LISTED_NUMBERS else f"{found[0]} to {found[-1]}"


def _lines(run: ReportRun) -> list[list[Any]]:
    """A row for each private algorithm at each point: numbers and texts."""
    claims = json.loads(run.ds.attrs.get("guarantees", "{}"))
    audits = _audits(run.audit)
    lines, planned = [], set()
    for built in run.plan.cells if run.plan else ():
        if built.algorithm.guarantee.model == "none" or built.label not in claims:
            continue
        planned.add(built.label)
        assert run.plan is not None
        words, numbers = cell_words(run.plan, built), privacy_spent(*built[1:4])  # with what an adversary sends
        whose = built.algorithm.guarantee.model, _unit(claims[built.label])
        lines.append([words, *whose, *numbers, *audits.get(words, NOT_AUDITED)])
    for label in map(str, run.ds["algorithm"].values):
        if label in claims and label not in planned:
            claim = claims[label]
            audited = [words for words in audits if words == label or words.startswith(f"{label}, ")]
            stored = _budgets_in_dataset(run.ds, label, claim)
            if audited and len(stored) > 1:  # which point an audit is of is not known here
                stored = [("not known",) * 3]
            whose = claim["model"], _unit(claim)
            for numbers, words in itertools.product(stored, audited or [label]):
                lines.append([words, *whose, *numbers, *audits.get(words, NOT_AUDITED)])
    return lines


def _budgets_in_dataset(ds: xr.Dataset, label: str, claim: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What a run asked for and spent, as its Dataset has it: each triple of numbers once."""
    if not spending.has_spending(ds):
        return [("not known", claim.get("epsilon", "not known"), "not known")]
    found = [spending.coordinate_array(ds.sel(algorithm=[label]), name) for name in spending.COORDINATES]
    return list(dict.fromkeys(zip(*(np.ravel(x).tolist() for x in found), strict=True)))


def _audits(frame: pd.DataFrame | None) -> dict[str, tuple[float, str]]:
    """`{label and point in words: (audited epsilon, whether refuted)}` of a file audit.csv."""
    if frame is None or not {"algorithm", "audited", "refuted"} <= set(frame.columns):
        return {}
    rows = frame[["algorithm", "audited", "refuted"]].itertuples(index=False)
    return {str(name): (float(audited), "yes" if refuted else "no") for name, audited, refuted in rows}

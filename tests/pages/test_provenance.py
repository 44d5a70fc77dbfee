"""Every cell that says what a paper says has a record, and every record names things that are there."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
import study_tables as pages
from test_citations import anchors

from jaxbandits import algorithms, catalogue, papers
from jaxbandits.papers.across.named_epsilon import GROUPS
from jaxbandits.papers.verdicts import read_verdicts
from jaxbandits.provenance import READ, RECORD_KINDS, ProvenanceRecord, as_printed, of_algorithm, records
from jaxbandits.recipe import recipe_of

DOCS = Path(__file__).parents[2] / "docs"
HEADS = re.compile(r"as printed|paper says|publish|known from")
MECHANISMS = {f"ε spent by {label}": one.source for group in GROUPS.values() for label, one in group.items()}
# kind -> what the section of the formulas says, in brackets
MARKS = {
    READ: r"paper|repaired|read",
    "paper, second-hand": r"summary|abstract",
    "code, read": r"code",
    "recalled": r"recalled|cited",
    "ours": r"ours",
}


def cells(text: str):
    """Cells of columns that speak of other people: heading of the page, study, column, the whole row, the cell."""
    heading, study, head = "", "", None
    for line in text.splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        if mark := re.match(r"<!-- (\S+): (begin|end) -->", line):
            study = mark[1] if mark[2] == "begin" else ""
        if not line.strip().startswith("|"):
            head = None
            continue
        row = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
        if head is None:
            head = row
        elif not set(line) <= set("|-: "):
            for name, cell in zip(head, row, strict=True):
                if HEADS.search(name):
                    yield heading, study, name, dict(zip(head, row, strict=True)), cell


def of_row(study: str, statement: str) -> list[ProvenanceRecord]:
    """The records of a row of a study's table: one, if provenance.toml is right."""

    def is_of(record):
        patterns = record.studies.items()
        return any(fnmatch(study, name) and statement.startswith(tuple(beginnings)) for name, beginnings in patterns)

    return [record for record in records().values() if is_of(record)]


def wrong(page: str, heading: str, study: str, column: str, row: dict[str, str], cell: str) -> str:
    """What is wrong with a cell, empty where its record allows it."""
    first = next(iter(row.values()))
    if page == "privacy.md" and column == "as printed":
        record = as_printed(row["algorithm"].strip("`"))
        expected = record is not None and record.within(float(row["claimed ε"]))
        return "" if expected == (cell != "-") else f"{record} and {cell}"
    if column == "known from":
        return "" if cell in {record.kind_and_source() for record in records().values()} else f"nothing is {cell}"
    if first in MECHANISMS:
        said = MECHANISMS[first].quote_claim("at most what is named")
        verdict = row["holds"] in ("yes", "**no**")
        return "" if cell == said and (MECHANISMS[first].read or not verdict) else f"{said} is allowed, not {cell}"
    if page == "verdicts.md":
        titles = {record["title"]: name for name, record in read_verdicts().items()}
        return "" if records()[titles[heading].replace("-", "_")].read == (cell != "-") else "that paper was not read"
    if not cell:
        return ""
    found = of_row(study, first)
    if len(found) != 1:
        return f"{len(found)} records"
    return "" if found[0].read == (cell != "-") else f"{found[0].kind} and {cell}"


def test_every_cell_about_other_people_has_a_record():
    lost, seen = [], set()
    for path in [*DOCS.glob("*.md"), *(DOCS / "reproductions").glob("*.md")]:
        for heading, study, column, row, cell in cells(path.read_text(encoding="utf-8")):
            seen.add((path.name, column))
            if found := wrong(path.name, heading, study, column, row, cell):
                lost.append(f"{path.name}, {study}: {next(iter(row.values()))}: {found}")
    assert lost == []
    assert {("privacy.md", "as printed"), ("privacy.md", "known from"), ("across.md", "the paper says")} <= seen


def test_a_cell_without_a_record_is_found():
    head = "<!-- across/counting: begin -->\n| | the paper says | holds |\n|---|---|---|\n"
    table = f"{head}| a row | at most 1 | yes |\n"
    (one,) = cells(table)
    assert wrong("across.md", *one) == "0 records"
    (one,) = cells(table.replace("a row", "ε spent by DP-SE"))
    assert wrong("across.md", *one) == "- is allowed, not at most 1"
    (one,) = cells(table.replace("a row", "ε spent by DP-SE").replace("at most 1", "-"))
    assert wrong("across.md", *one) == "- is allowed, not -"  # a verdict without a paper that was read
    (one,) = cells(table.replace("across/counting", "across/before-after").replace("a row", "heavy: a row"))
    assert wrong("across.md", *one) == "paper, second-hand and at most 1"
    (one,) = cells("| algorithm | claimed ε | as printed |\n|---|---|---|\n| `median_elimination` | 8 | ∞ |\n")
    assert wrong("privacy.md", *one) == "None and ∞"


@pytest.mark.parametrize("record", records().values(), ids=lambda record: record.name)
def test_every_record_names_things_that_are_there(record: ProvenanceRecord):
    page, _, anchor = record.formulas.partition("#")
    path = DOCS / "formulas" / page
    assert anchor in anchors(path)
    below = path.read_text().split(f"({anchor})=")[1].split("\n", maxsplit=3)[3]
    section = re.split(r"^\([\w-]+\)=$", below, flags=re.M)[0]
    if not re.search(r"\*\*\(\w+\)|recalled", section):  # the statements are in its first part
        section = below.split("\n## ")[0]
    marks = re.findall(r"[\[(]([^\])]*)[\])]", section)
    assert any(re.search(rf"\b(?:{MARKS[record.kind]})\b", mark) for mark in marks), f"{record.kind}: no such mark"
    assert record.where and record.claims and (record.source or record.kind == "ours")
    assert (record.up_to is None) or record.range
    assert record.algorithm or record.studies
    if record.algorithm:
        taken = recipe_of(catalogue.ALGORITHMS[record.algorithm].algorithm).arguments
        assert set(record.settings) <= set(taken)
    known = [(name, row["statement"]) for name in papers.all_studies() for row in rows_of(name)]
    for study, beginnings in record.studies.items():
        assert all(beginnings), "an empty beginning says nothing of any line"
        for beginning in beginnings:
            assert any(fnmatch(name, study) and statement.startswith(beginning) for name, statement in known), beginning


def rows_of(study: str) -> list[dict[str, str]]:
    """The rows of a study's table on its page."""
    lines = [line for line in pages.study_text(study, DOCS).splitlines() if line.startswith("|")]
    return [{"statement": re.split(r"(?<!\\)\|", line)[1].strip()} for line in lines[2:]]


def test_every_private_algorithm_has_a_record_and_its_printed_form_is_one():
    private = [name for name in catalogue.ALGORITHMS if catalogue.case(name)[0].guarantee.model != "none"]
    assert [name for name in private if not of_algorithm(name)] == []
    assert set(RECORD_KINDS) == set(MARKS)
    for name in private:
        assert sum(record.read for record in of_algorithm(name)) <= 1, f"{name}: which of them is as printed?"


def test_figures_in_words_are_those_of_the_table():
    """What the privacy page says of the comparators' constants stands in the table of across/named-epsilon."""
    spent = pages.study_text("across/named-epsilon", DOCS)
    text = (DOCS / "privacy.md").read_text()
    for beginning in ("- **`ldp_linucb`, `jdp_linucb`, `shuffle_linucb`.**", "- **`byzantine_ucb`.** The paper does"):
        bullet = re.split(r"\n(?=[-\n])", text.split(beginning)[1])[0]
        figures = [x for x in re.findall(r"\d+\.\d+", bullet) if x != "0.001"]
        assert figures and [x for x in figures if f" {x} at 1," not in spent] == []


def test_failure_prob_says_how_often_the_truth_leaves_the_default_sets():
    study = pages.study_text("across/coverage", DOCS)
    for name, beginning in (
        ("online_ucb", "OnlineUCB: .*default width"), ("byzantine_ucb", "Byzantine-UCB: .*default"),
        ("prm_elimination", "PRM: .*default"), ("robust_elimination", "elimination: .*default"),
    ):  # fmt: skip
        text = getattr(algorithms, name).__doc__.split("failure_prob : ")[1].split(" : ")[0]
        (said,) = re.findall(r"([\d,]+)\s+of\s+1,000\s+runs", text)
        rows = re.findall(rf"^\| {beginning}.*outside in (\d+) of 1000", study, flags=re.M)
        assert int(said.replace(",", "")) == max(map(int, rows)), name

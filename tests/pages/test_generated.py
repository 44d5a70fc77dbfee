"""What stands on a page and is written from a table is what its generator writes today."""

import json
from pathlib import Path

import audit
import choosing
import comparison
import peers
import pytest
import study_tables
import verdicts

from jaxbandits import catalogue, papers, privacy
from jaxbandits.commands import listing

ROOT = Path(__file__).parents[2]
DOCS, FIGURES = ROOT / "docs", ROOT / "docs" / "figures"


def generated():
    """(page, text, what writes it): verdicts, studies, quotes of them, and the tables of the benchmarks."""
    known = papers.all_studies()
    tables = verdicts.verdict_tables(DOCS, known)
    yield DOCS / "verdicts.md", f"{verdicts.BEGIN}\n{tables}\n{verdicts.END}", "make verdicts"
    yield DOCS / "verdicts.md", "\n".join([verdicts.COUNTS[0], verdicts.verdict_counts()]), "make verdicts"
    yield DOCS / "reproductions.md", study_tables.overview(known, DOCS), "make verdicts"
    for name in known:
        begin, end = study_tables.marks(name)
        yield study_tables.page_of(name, DOCS), f"{begin}{verdicts.text_with_words(name, DOCS)}{end}", "make verdicts"
    for name, (page, *_) in study_tables.QUOTED.items():
        yield DOCS / page, study_tables.quotation(name, DOCS), f"make reproductions STUDY={name}"
    yield DOCS / "privacy.md", privacy.markdown(privacy.table()), "print(jb.privacy.markdown(jb.privacy.table()))"
    yield DOCS / "which_plays_where.md", listing.plays_text(), "jaxbandits list --plays, and copy what it prints"
    yield choosing.PAGE, choosing.section(choosing.read()), "docs/choosing.py none"
    rows = json.loads((FIGURES / "peers.json").read_text())
    for text in (peers.table(rows), peers.short_table(rows)):
        yield DOCS / "performance.md", text, "benchmarks/peers.py"
    for page in (ROOT / "README.md", DOCS / "index.md"):
        yield page, f"\n{peers.sentence(rows)}\n", "benchmarks/peers.py"
    for text in (comparison.table(comparison.rows()), comparison.sentences(), comparison.others()):
        yield DOCS / "comparison.md", text, "benchmarks/comparison.py"
    yield ROOT / "README.md", comparison.short_table(comparison.rows()), "benchmarks/comparison.py"
    audits = json.loads((FIGURES / "audit.json").read_text())
    for section, found in audits.items():
        yield DOCS / "privacy.md", audit.SECTIONS[section][1](found).strip(), f"benchmarks/audit.py {section}"


@pytest.mark.pages
def test_pages_are_what_their_generators_write():
    stale = [f"{page}: run {command}" for page, text, command in generated() if text not in page.read_text()]
    assert not stale, "\n".join(stale)


@pytest.mark.pages
def test_audits_on_the_page_are_of_the_defaults():
    rows = json.loads((FIGURES / "audit.json").read_text())["catalogue"]
    assert [row["algorithm"] for row in rows] == catalogue.private()
    for row in rows:
        algorithm, _ = catalogue.case(row["algorithm"])
        now = *algorithm.guarantee.spend(algorithm.params), privacy.epsilon_or_nan(algorithm)
        assert now == pytest.approx((row["spent"], row["delta"], row["claimed"]), rel=1e-4), row["algorithm"]

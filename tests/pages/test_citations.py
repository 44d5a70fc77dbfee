"""Every citation leads to a page or anchor that exists, and nothing cites what the repository lacks."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("jaxbandits", "tests", "benchmarks", "docs", "examples", "notebooks")
PAPERS = ("private_adversarial", "private_robust_mab", "robust_linear", "byzantine", "ldp_contextual")
FRONTIERS = ("private_frontier", "robust_frontier", "counting")

# `docs/formulas/byzantine.md#attacks` and `formulas/byzantine.md#attacks`; any other page after `docs/`. Not a part
# of a longer path
CITATION = re.compile(r"(?<![\w/.-])(?:docs/([\w/-]+\.md)|(formulas/[\w-]+\.md))(#[\w-]+)?")
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(#[^)\s]+)?\)")
SPECIFICATION = re.compile(r"\bspecifications?\b|\bspecs? (?:private_|robust_|byzantine|ldp_)", re.IGNORECASE)
# A paper's own section follows its year or the word paper: "Wu et al. 2023, section 5"
SECTION = re.compile(r"\bsections? \d")
OF_A_PAPER = re.compile(r"(?:\d{4}\)?|\bpaper(?:'s)?),? $")


def texts(*folders):
    """Every Python file, Markdown page and notebook of the folders, and README.md: path and text."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))]
    for path in [ROOT / "README.md", *paths]:
        if path.suffix in (".py", ".md", ".ipynb") and "_build" not in path.parts and path != Path(__file__):
            yield path, path.read_text(encoding="utf-8")


def slug(heading: str) -> str:
    """The anchor that GitHub and MyST give a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)  # a link: its text
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset:
    """The anchors of a page: slugs of its headings, numbered where they repeat, and explicit MyST targets `(name)=`."""
    outside_of_code = re.sub(r"^(```+|~~~+|:::+).*?^\1\s*$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found, times = set(re.findall(r"^\(([\w-]+)\)=\s*$", outside_of_code, flags=re.M)), {}
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", outside_of_code, flags=re.M):
        name = slug(heading)
        number = times[name] = times.get(name, -1) + 1
        found.add(f"{name}-{number}" if number else name)
    return frozenset(found)


def dead(page: Path, anchor: str) -> bool:
    """Whether the page, or the anchor `#name` on it, does not exist."""
    return not page.exists() or (bool(anchor) and page.suffix == ".md" and anchor[1:] not in anchors(page))


def dead_citations(text: str) -> list:
    """Citations in the text whose page or anchor does not exist."""
    return [m[0] for m in CITATION.finditer(text) if dead(ROOT / "docs" / (m[1] or m[2]), m[3] or "")]


def dead_links(path: Path, text: str) -> list:
    """Relative links of a Markdown page whose file or anchor does not exist."""
    text = re.sub(r"^```.*?^```\s*$|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", "", text, flags=re.M | re.S)
    links = [link for link in LINK.finditer(text) if link[1] or link[2]]
    return [link[0] for link in links if dead(path.parent / link[1] if link[1] else path, link[2] or "")]


def unpublished(text: str) -> list:
    """Mentions of a document that the repository does not hold: a specification, or sections of no named paper."""
    text = re.sub(r"\s*\n\s*(?:# )?", " ", text)
    sections = [match for match in SECTION.finditer(text) if not OF_A_PAPER.search(text[: match.start()][-40:])]
    return [text[max(0, m.start() - 60) : m.end() + 30] for m in (*SPECIFICATION.finditer(text), *sections)]


def test_every_paper_and_frontier_has_a_page_of_formulas():
    assert {page.stem for page in (ROOT / "docs/formulas").glob("*.md")} == {"index", *PAPERS, *FRONTIERS}


@pytest.mark.parametrize("folder", FOLDERS)
def test_citations_lead_somewhere(folder):
    lost = {str(path.relative_to(ROOT)): found for path, text in texts(folder) if (found := dead_citations(text))}
    assert lost == {}


def test_links_between_pages_lead_somewhere():
    pages = [(path, text) for path, text in texts("docs") if path.suffix == ".md"]
    lost = {str(path.relative_to(ROOT)): found for path, text in pages if (found := dead_links(path, text))}
    assert lost == {}


def test_anchors_have_one_meaning():
    """An explicit target is known to all pages, so two pages may not use one name."""
    owners: dict = {}
    for path, text in texts("docs"):
        for name in re.findall(r"^\(([\w-]+)\)=\s*$", text, flags=re.M):
            owners.setdefault(name, []).append(path.name)
    assert {name: pages for name, pages in owners.items() if len(pages) > 1} == {}


@pytest.mark.parametrize("folder", ["jaxbandits", "tests", "benchmarks", "docs"])
def test_nothing_is_cited_that_is_not_here(folder):
    lost = {str(path.relative_to(ROOT)): found for path, text in texts(folder) if (found := unpublished(text))}
    assert lost == {}


def test_dead_citations_are_found():
    assert dead_citations("see `docs/formulas/byzantine.md#attacks` and formulas/byzantine.md#byzantine-attacks.") == []
    text = "docs/formulas/byzantine.md#atacks, `docs/formulas/nobody.md` and formulas/byzantine.md#nothing"
    assert dead_citations(text) == text.replace(" and", ",").replace("`", "").split(", ")
    assert dead_citations("docs/deviations/nobody.md") == ["docs/deviations/nobody.md"]
    page = ROOT / "docs/formulas/byzantine.md"
    assert dead_links(page, "[a](#byzantine-tree) [b](index.md) [c](https://x.y/z.md) `[d](no.md)`") == []
    assert dead_links(page, "[a](#no-tree) [b](private.md)") == ["](#no-tree)", "](private.md)"]


def test_unpublished_sources_are_found():
    fine = "Blanchard et al. 2017, section 4; the paper's section 5; a specific arm; Algorithm 3"
    assert unpublished(fine) == []
    for text in (
        "Source: specification of private bandits,\n    section 7.",
        "experiment E1 of the specification",
        "(spec byzantine 6)",
        "linear bandits, sections 3\n# and 7",
    ):
        assert unpublished(text)


def test_slugs_are_those_of_the_pages():
    assert slug("PRM-UCB and PRM-TS") == "prm-ucb-and-prm-ts"
    assert slug("`raw-moments` (E1)") == "raw-moments-e1"
    assert {"prm-ucb-and-prm-ts", "private-robust-prm-ucb"} <= anchors(ROOT / "docs/formulas/private_robust_mab.md")

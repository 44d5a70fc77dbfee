"""Every public name has a docstring and is on the API page; the documentation builds without a warning."""

import importlib
import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from urllib.parse import quote, unquote, urljoin, urlparse

import browser
import pytest
from bs4 import BeautifulSoup
from PIL import Image

import jaxbandits as jb
from jaxbandits.catalogue import ALGORITHMS

ROOT = Path(__file__).parents[2]
ROOMS = "environments algorithms adversaries theory estimators learners mechanisms auditing privacy statistics"
PUBLIC = ["jaxbandits", *(f"jaxbandits.{room}" for room in ROOMS.split()), "jaxbandits.reports.plot"]


def names(module) -> list:
    """`module.__all__`, or the public functions and classes that a module without one defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return [name for name in own if not name.startswith("_")]


def undocumented(module) -> list:
    """The public names of a module without a docstring of their own."""

    def documented(name):
        value = getattr(module, name)
        if not (callable(value) or isinstance(value, ModuleType)):
            return True  # a constant; Sphinx wants a comment `#:` for it to appear on the page
        text = (value.__doc__ or "").strip()
        return bool(text) and not re.match(rf"{name}\(.*\)$", text)  # NamedTuple's own text is `Name(field, ...)`

    return [name for name in names(module) if not documented(name)]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_docstrings(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    assert undocumented(module) == []


def test_the_reference_begins_with_every_function_of_the_package():
    block = (ROOT / "docs/api.md").read_text().split(":nosignatures:\n\n")[1].split("```")[0]
    functions = [name for name in jb.__all__ if callable(getattr(jb, name)) and name.islower()]
    assert sorted(block.split()) == sorted(functions)


def test_an_undocumented_name_is_found():
    module = ModuleType("module")
    exec("def bare(): pass\ndef good():\n    'Text.'\n__all__ = ['bare', 'good']", module.__dict__)
    assert undocumented(module) == ["bare"]


def test_the_citation_has_the_version_and_links_of_the_readme_lead_somewhere():
    version = importlib.import_module("jaxbandits.version").__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "docs/changelog.md").read_text()
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text())
    assert links and [link for link in links if not (ROOT / link).exists()] == []


def test_the_table_of_the_readme_is_true():
    """What it names stands in the row and column of today. A release adds what is new (`.github/release.py`)."""
    code = "import algorithm_catalogue as c; print(c.with_table(c.README.read_text()))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "docs/_ext", capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    shown, today = (
        [[set(re.findall(r"`(\w+)`", cell)) for cell in line.split("|")] for line in text.splitlines() if "| `" in line]
        for text in (page.split("algorithms: begin")[1] for page in ((ROOT / "README.md").read_text(), ran.stdout))
    )
    shown, today = shown[: len(today)], today[:6]
    assert len(shown) >= 6 and {name for row in today for cell in row for name in cell} == set(jb.algorithms.__all__)
    for row, other in zip(shown[:6], today, strict=True):
        assert all(cell <= now for cell, now in zip(row, other, strict=True))


@pytest.fixture(scope="module")
def site():
    """The documentation, built once: every example of the gallery runs, and a warning is an error."""
    out = ROOT / "docs/_build/html"
    shutil.rmtree(out, ignore_errors=True)  # no page of an earlier build
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html", ROOT / "docs", out]
    built = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return out


def listed_names(site) -> set[str]:
    """What the site documents."""
    from sphinx.util.inventory import InventoryFile

    with open(site / "objects.inv", "rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    return {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}


@pytest.mark.pages
def test_the_documentation_builds_and_lists_every_public_name(site):
    listed, missing = listed_names(site), []
    for name in PUBLIC:
        module = importlib.import_module(name)
        wanted = [name] + [f"{name}.{each}" for each in names(module)]
        missing += [each for each in wanted if each not in listed and not _listed_module(module, each, listed)]
    assert missing == []


@pytest.mark.pages
def test_tools_of_the_package_are_listed_where_users_are_told_of_them(site):
    for name in ("protocol.Program", "protocol.Span", "numerics.argmax", "random.Draws", "checking.Check"):
        assert (site / f"api/objects/jaxbandits.{name}.html").exists(), name
    assert not (site / "api/objects/jaxbandits.numerics.sweep_inverse.html").exists()


class Crawl:
    """The pages of a built site, but for sources and what is static."""

    def __init__(self, site: Path) -> None:
        self.site = site
        places = [path.relative_to(site).as_posix() for path in site.rglob("*.html")]
        places = [place for place in places if not place.startswith("_")]
        self.pages = {place: BeautifulSoup((site / place).read_text(), "html.parser") for place in places}
        self.anchors = {place: {x["id"] for x in page.find_all(id=True)} for place, page in self.pages.items()}

    def dead(self, place: str) -> list[str]:
        """Links of a page that lead nowhere, and addresses that are none."""
        found = []
        for href in [link["href"] for link in self.pages[place].find_all("a", href=True)]:
            if re.match(r"[a-z]+:", href):
                good = re.fullmatch(r"https?://[\w.-]+\.[a-z]{2,}(/\S*)?", href)
            else:
                there = urlparse(urljoin(f"https://x.y/{place}", href))
                path = unquote(there.path[1:])
                known = there.fragment == "" or there.fragment in self.anchors.get(path, {there.fragment})
                good = (self.site / path).exists() and known
            found += [] if good else [href]
        return found

    def unlinked(self, place: str, names: set[str]) -> list[str]:
        """Public names in code marks without a link, but for the page's own."""
        article = self.pages[place].find("article")
        marks = [] if article is None else article.find_all("code")
        texts = [re.sub(r"\(.*", "", x.get_text()) for x in marks if not x.find_parent(["a", "h1", "h2", "h3", "pre"])]
        own = {f"jaxbandits.{Path(place).stem.removeprefix('jaxbandits.').removesuffix('-class')}"}
        own |= {name for name in names if name.rpartition(".")[0] in own}
        return [text for text in texts if re.sub(r"^jb\.", "jaxbandits.", text) in names - own]


@pytest.fixture(scope="module")
def crawl(site):
    return Crawl(site)


@pytest.mark.pages
def test_no_link_is_dead(crawl):
    assert len(crawl.pages) > 300
    assert {place: dead for place in crawl.pages if (dead := crawl.dead(place))} == {}


@pytest.mark.pages
def test_every_public_name_in_code_marks_is_a_link(crawl, site):
    names = listed_names(site)
    assert {place: left for place in crawl.pages if (left := crawl.unlinked(place, names))} == {}
    assert len(crawl.pages["api/objects/jaxbandits.algorithms.private_batched.html"].find("article")("a")) > 20


@pytest.mark.pages
def test_names_of_other_libraries_lead_to_their_pages(crawl):
    libraries = tomllib.loads((ROOT / "docs/_ext/elsewhere.toml").read_text()).values()
    wanted = {table["home"] + page for table in libraries for page in table["pages"].values()}
    linked = {link["href"] for page in crawl.pages.values() for link in page.find_all("a", href=True)}
    assert wanted and wanted - linked == set()


@pytest.mark.pages
def test_a_dead_link_and_a_bare_name_are_found(tmp_path):
    links = "<a href=y.html>a</a><a href=#z>b</a><a href=#x>c</a><a href=http://>d</a>"
    (tmp_path / "p.html").write_text(f"<article id=x>{links} <code>jb.sweep</code>")
    crawl = Crawl(tmp_path)
    assert crawl.dead("p.html") == ["y.html", "#z", "http://"]
    assert crawl.unlinked("p.html", {"jaxbandits.sweep"}) == ["jb.sweep"]


@pytest.mark.pages
def test_nothing_is_fetched_while_reading(crawl, site):
    """Scripts, styles, fonts and pictures are the site's own, MathJax among them."""
    for place, page in crawl.pages.items():
        loaded = [x.get("src") for x in page.find_all(["script", "img", "iframe"])]
        loaded += [x.get("href") for x in page.find_all("link", rel=["stylesheet", "preload", "icon"])]
        assert [one for one in loaded if one and re.match(r"[a-z]+:|//", one)] == [], place
    assert crawl.pages["formulas/byzantine.html"].find("script", src="../_static/mathjax/tex-chtml.js")
    assert len(list((site / "_static/mathjax/output/chtml/fonts/woff-v2").iterdir())) > 20


@pytest.mark.pages
def test_notebooks_are_pages_with_their_file(crawl, site):
    addresses = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        page = crawl.pages[f"notebooks/{path.stem}.html"]
        links = [link["href"] for link in page.find("article").find_all("a", href=True)]
        (there,) = (site / "notebooks" / href for href in links if href.endswith(f"/{path.name}") and ":" not in href)
        assert there.read_bytes() == path.read_bytes()
        assert any("colab" in href for href in links) == ("Repository" in addresses)
        assert page.find("article").find("img", alt="What the cell draws")


@pytest.mark.pages
def test_notebooks_of_the_gallery_install_the_package(site):
    first = runpy.run_path(str(ROOT / "notebooks/refresh.py"))["first_cell"]()
    files = sorted((site / "_downloads").rglob("plot_*.ipynb"))
    assert len(files) >= 16
    assert {"".join(json.loads(path.read_text())["cells"][0]["source"]) for path in files} == {first}


STUDIES = sorted(path.stem for path in (ROOT / "docs/reproductions").glob("*.md"))


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_begins_with_what_it_found(name):
    first, *_ = (ROOT / f"docs/reproductions/{name}.md").read_text().split("\n## ")
    assert 3 <= first.split("\nIn short:\n\n")[1].split("\n\n")[0].count("\n- ") + 1 <= 7


@pytest.mark.pages
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_lists_its_sections_and_folds_its_tables(crawl, name):
    page = crawl.pages[f"reproductions/{name}.html"].find("article")
    source = (ROOT / f"docs/reproductions/{name}.md").read_text()
    (said,) = (one for one in page.find_all("p") if one.get_text() == "On this page:")
    listed = [link.get_text() for link in said.find_next("ul").find_all("a")]
    assert listed == [one.replace("`", "") for one in re.findall(r"^## (.*)$", source, flags=re.MULTILINE)]
    tables = page.find_all("table", class_="study")
    assert len(tables) == source.count("| we measure |") and all(one.find_parent("details") for one in tables)
    rows = source.split("| we measure |")[1].split("\n\n")[0].count("\n| ")
    assert f": {rows} lines" in page.find("summary").get_text()


@pytest.mark.pages
def test_functions_say_what_to_see_also(crawl):
    rows = crawl.pages["api/objects/jaxbandits.algorithms.dp_klucb.html"].find("article").get_text()
    assert re.search(r"the same setting and trust: .*adap_kl_ucb.*\n.*without privacy: .*\bkl_ucb", rows)
    places = [f"api/objects/jaxbandits.algorithms.{name}.html" for name in jb.algorithms.__all__]
    assert [place for place in places if "See also" not in crawl.pages[place].get_text()] == []


@pytest.mark.pages
def test_no_page_shows_an_algorithm_that_spends_more_than_its_label(site):
    """The gallery prints the warnings of its examples. Reproductions run what others published."""
    pages = [page for page in site.rglob("*.html") if "reproductions" not in page.parts]
    assert len(pages) > 100
    assert [str(page) for page in pages if re.search(r"asked for epsilon [\d.]+, spends", page.read_text())] == []


def _listed_module(module, name, listed) -> bool:
    """A module among the public names (`jaxbandits.plot`) is on the page under its name; dunder constants need none."""
    value = getattr(module, name.rpartition(".")[2], None)
    return (isinstance(value, ModuleType) and value.__name__ in listed) or name.rpartition(".")[2].startswith("__")


def test_examples_of_the_gallery_are_short():
    examples = sorted((ROOT / "examples/gallery").rglob("plot_*.py"))
    assert len(examples) >= 16
    assert [path.name for path in examples if len(path.read_text().splitlines()) > 60] == []


@pytest.mark.pages
def test_the_catalogue_has_every_algorithm_and_its_cost(site):
    rows = re.findall(r"<tr.*?</tr>", (site / "catalogue.html").read_text(), flags=re.S)
    cells = [re.findall(r"<td.*?</td>", row, flags=re.S) for row in rows]
    found = {re.sub(r"<.*?>", "", row[0]).strip(" ()\n"): row for row in cells if row}
    assert sorted(found) == sorted(ALGORITHMS)
    assert all("api/objects/jaxbandits.algorithms." in row[0] for row in found.values())
    assert float(re.sub(r"<.*?>", "", found["ucb1"][5])) > 0


# What is typed, and the page that answers it.
ANSWERED_BY = {
    "csv": "own_data", "price of privacy": "notebooks/price_of_privacy", "GPU": "start",
    "contextual bandit": "gallery/2_privacy/plot_contexts", "epsilon": "privacy", "resume": "scaling",
    "non-stationary": "gallery/3_robustness/plot_changing_world", "own algorithm": "extending",
    "best arm identification": "comparison", "LaTeX": "report", "install": "start", "slurm": "scaling",
    "tune": "concepts",
    "pandas dataframe": "own_data", "differential privacy": "privacy", "which algorithm": "guides/choosing",
    "delayed feedback": "gallery/3_robustness/plot_delay", "outliers": "guides/robust",
    "federated learning": "guides/federated", "SMPyBandits": "coming_from", "reproducible results": "determinism",
    "sweep": "api/objects/jaxbandits.sweep",
    "t-test": "concepts", "colab": "notebooks/index", "save": "start", "memory": "faq", "delta": "privacy",
    "seed": "faq", "forged rewards": "guides/robust", "go on after a stop": "start", "glossary": "concepts",
}  # fmt: skip
FIRST_THREE = """new Promise((done) => {
    const shown = () => [...document.querySelectorAll("ul.search > li > a")].map((link) => link.getAttribute("href"));
    const look = () => shown().length > 2 || document.querySelector(".search-summary")?.innerText
        ? done(shown().slice(0, 3)) : setTimeout(look, 10);
    look();
})"""


@pytest.mark.pages
@pytest.mark.skipif(browser.CHROMIUM is None, reason=browser.WITHOUT)
def test_the_search_finds_the_page_that_answers_among_the_first_three(site):
    found = {}
    with browser.browser() as page:
        for typed in ANSWERED_BY:
            page.open(site / "search.html", query=f"?q={quote(typed)}")
            found[typed] = [href.partition(".html")[0] for href in page.run(FIRST_THREE)]
    assert {typed: first for typed, first in found.items() if ANSWERED_BY[typed] not in first} == {}


@pytest.mark.pages
def test_what_no_reader_looks_for_is_not_in_the_search(site):
    index = json.loads((site / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")"))
    titles = dict(zip(index["docnames"], index["titles"], strict=True))
    assert titles["decisions"] == titles["contributing"] == "" != titles["own_data"]
    menu = BeautifulSoup((site / "index.html").read_text(), "html.parser").find("div", class_="sidebar-tree")
    listed = {link["href"] for link in menu.find_all("a")}
    assert "extending.html" in listed and not {"decisions.html", "contributing.html"} & listed

    def pages_with(word):
        places = index["terms"].get(word, [])
        return {index["docnames"][i] for i in (places if isinstance(places, list) else [places])}

    assert not any(place.startswith("notebooks/") for place in pages_with("nvidia"))  # their install cell
    assert "own_data" in pages_with("spreadsheet")  # a word that only the table of answers has


NARROWEST = """Math.min(...[...document.querySelectorAll("table.claims img")].map(
    (image) => image.getBoundingClientRect().width))"""
PAGES = (
    "index", "start", "own_data", "concepts", "comparison", "api", "catalogue", "guides/index", "guides/choosing",
    "gallery/index", "gallery/1_pictures/plot_growth", "api/objects/jaxbandits.sweep",
)  # fmt: skip
PAPER = ("index", "comparison", "verdicts")
# whether titles are larger than what is below them, and how many lines of code wrap
CALM = """(() => {
    const sizes = (tag) => [...document.querySelectorAll(`article ${tag}`)].map(
        (one) => parseFloat(getComputedStyle(one).fontSize));
    const wrapped = [...document.querySelectorAll("article .highlight pre")].filter(
        (one) => getComputedStyle(one).whiteSpace !== "pre");
    return [Math.min(...sizes("h1")) > Math.max(0, ...sizes("h2")), wrapped.length];
})()"""
# tables that are wider than their place, and marks of code in which an option stands on two lines
UNSEEN = """[...[...document.querySelectorAll("article .table-wrapper")]
        .filter((one) => one.scrollWidth > one.clientWidth),
    ...[...document.querySelectorAll("article code .pre")].filter((one) => one.textContent.startsWith("-"))
        .filter((one) => one.getClientRects().length > 1)].map((one) => one.textContent.slice(0, 40))"""
# cells of a table of words: the column's name, how each is laid out, and by how much it is wider than the window
CARDS = """[...document.querySelectorAll("table.cards td:not(.void)")].map((cell) => [cell.dataset.label || "",
    getComputedStyle(cell).display, Math.max(0, cell.getBoundingClientRect().right - innerWidth)])"""
ON_PAPER = """(() => {
    const style = (one) => getComputedStyle(document.querySelector(one));
    return [style(".skip-to-content").display, style(".highlight pre").whiteSpace, style(".sd-card").breakInside];
})()"""
SHOWS_FOLDED = "document.querySelector('details:not([open]) li').checkVisibility()"
# the least contrast of a word of the verdicts to the page, and how many pictures are inverted: of maps, of others
DARK = """(() => {
    const luminance = (colour) => {
        const box = new OffscreenCanvas(1, 1).getContext("2d");
        box.fillStyle = colour; box.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...box.getImageData(0, 0, 1, 1).data].slice(0, 3).map((x) => x / 255)
            .map((x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = luminance(getComputedStyle(document.body).backgroundColor);
    const words = [...document.querySelectorAll("td.word strong")].map((one) => luminance(getComputedStyle(one).color));
    const contrasts = words.map((x) => (Math.max(x, ground) + 0.05) / (Math.min(x, ground) + 0.05));
    const inverted = (maps) => [...document.querySelectorAll("td.picture img")]
        .filter((one) => /map/.test(one.src) === maps && getComputedStyle(one).filter !== "none").length;
    return [Math.min(...contrasts), inverted(true), inverted(false)];
})()"""
# a click on a heading sorts up, a second one down, and a chosen model leaves its rows
SORTS = """(() => {
    const table = document.querySelector(".catalogue table"), rows = () => [...table.tBodies[0].rows];
    const heading = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "ns a play");
    const costs = () => rows().map((row) => row.cells[heading].textContent.trim()).filter((x) => x)
        .map((x) => Number(x.replaceAll(",", "")));
    const button = table.tHead.rows[0].cells[heading].querySelector("button"), sorted = (x, sign) =>
        x.every((value, i) => i === 0 || sign * (value - x[i - 1]) >= 0);
    button.click(); const up = sorted(costs(), 1);
    button.click(); const down = sorted(costs(), -1);
    const choice = [...document.querySelectorAll(".filters select")].find((x) => x.ariaLabel === "privacy");
    choice.value = "local"; choice.dispatchEvent(new Event("input", {bubbles: true}));
    const left = rows().filter((row) => !row.hidden);
    const local = left.every((row) => row.cells[2].textContent.trim() === "local");
    return [up, down, local, left.length > 0 && left.length < rows().length];
})()"""


@pytest.mark.pages
@pytest.mark.skipif(browser.CHROMIUM is None, reason=browser.WITHOUT)
def test_pages_look_right_on_a_phone_and_on_a_desk(site):
    shots = ROOT / "docs/_build/screenshots"
    shots.mkdir(exist_ok=True)
    with browser.browser() as page:
        for name in PAGES:
            for width in (390, 1280):
                page.open(site / f"{name}.html", width)
                assert browser.faults(page) == [] and page.run(CALM) == [True, 0], (name, width)
                assert width == 390 or page.run(UNSEEN) == [], name
                page.screenshot(shots / f"{name.replace('/', '-')}-{width}.png", whole=False)
        for width in (390, 1280):  # a claim is a card, and its picture can be seen
            page.open(site / "verdicts.html", width)
            assert browser.faults(page) == [] and page.run(NARROWEST) > 250, width
            page.screenshot(shots / f"verdicts-{width}.png", whole=False)
        for dark in (False, True):  # its words can be read, and a map whose caption names what is white has white
            page.open(site / "verdicts.html", dark=dark)
            contrast, maps, others = page.run(DARK)
            assert contrast >= 4.5 and maps == 0 and (others > 10) == dark
        for name in PAPER:
            page.open(site / f"{name}.html")
            page.pdf(shots / f"{name}.pdf")
        page.open(site / "catalogue.html")
        assert page.run(SORTS) == [True] * 4
        assert page.errors == []


@pytest.mark.pages
@pytest.mark.skipif(browser.CHROMIUM is None, reason=browser.WITHOUT)
def test_rows_of_words_are_cards_on_a_phone_and_a_page_can_be_printed(site):
    with browser.browser() as page:
        page.open(site / "guides/heavy_tails.html", 390)
        names, shown, beyond = zip(*page.run(CARDS), strict=True)
        assert "with privacy" in names and {*shown} == {"block"} and max(beyond) == 0
        page.open(site / "catalogue.html", 390)
        assert {"ns a play", "paper"} <= {name for name, *_ in page.run(CARDS)} and page.run(UNSEEN) == []
        assert page.run("parseFloat(getComputedStyle(document.querySelector('table.cards td')).fontSize)") >= 16
        assert page.run(SORTS) == [True] * 4  # its headings stand above the cards
        page.open(site / "comparison.html", 390)
        assert page.run(UNSEEN) == []
        page.open(site / "guides/heavy_tails.html", 1280)
        assert {layout for _, layout, _ in page.run(CARDS)} == {"table-cell"}  # a table like others
        page.open(site / "index.html")
        page.ask("Emulation.setEmulatedMedia", media="print")
        assert page.run(ON_PAPER) == ["none", "pre-wrap", "avoid"]
        page.ask("Emulation.setEmulatedMedia", media="")
        assert page.run(ON_PAPER) == ["block", "pre", "auto"]
        page.open(site / "verdicts.html")
        assert not page.run(SHOWS_FOLDED)
        page.ask("Emulation.setEmulatedMedia", media="print")
        assert page.run(SHOWS_FOLDED)
        for name in ("comparison", "performance"):  # on A4
            page.open(site / f"{name}.html", 718)
            page.ask("Emulation.setEmulatedMedia", media="print")
            assert page.run(UNSEEN) == [], name


@pytest.mark.pages
def test_every_claim_has_an_address_and_its_picture_opens(crawl):
    article = crawl.pages["verdicts.html"].find("article")
    rows = article.select("table.claims tbody tr")
    assert len(rows) == len({row["id"] for row in rows}) == int(re.search(r"of (\d+) claims", article.get_text())[1])
    for table in article.select("table.claims"):
        links = table.find_parent("div").find_previous_sibling("p").find_all("a")
        assert [x["href"] for x in links] == [f"#{row['id']}" for row in table.select("tbody tr")]
    opened = [image.find_parent("a") for image in article.select("td.picture img")]
    assert len(opened) > 30 and [x for x in opened if x["href"] != x.img["src"] or x.has_attr("download")] == []


OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
OBJECTS = 10  # one page of so many objects of the reference is looked at


@pytest.mark.pages
@pytest.mark.skipif(browser.CHROMIUM is None, reason=browser.WITHOUT)
def test_a_phone_shows_whole_words_and_pictures(crawl, site):
    """At 420 pixels: no word is broken, no picture is under 100 pixels, nothing is cut off or wider than the page."""
    objects = [place for place in crawl.pages if place.startswith("api/objects/")]
    places = [place for place in crawl.pages if place not in objects] + objects[::OBJECTS]
    found = {}
    with browser.browser() as page:
        for place in places:
            page.open(site / place, 420)
            page.run(OPEN)
            looks = (browser.faults, browser.small_pictures, browser.cut_off, browser.broken_words)
            found[place] = [*(fault for look in looks for fault in look(page)), *page.errors]
            page.errors.clear()
    assert len(found) > 80 and {place: what for place, what in found.items() if what} == {}


@pytest.mark.pages
@pytest.mark.skipif(browser.CHROMIUM is None, reason=browser.WITHOUT)
def test_a_broken_word_and_a_small_picture_are_found(tmp_path):
    Image.new("L", (1, 1)).save(tmp_path / "dot.png")
    words = "<p style='width: 5ch; overflow-wrap: anywhere'>elimination of arms</p>"
    images = "<img alt=dot src=dot.png><img class=toggler src=dot.png>"
    (tmp_path / "page.html").write_text(f"<article>{words}{images}</article>")
    with browser.browser() as page:
        page.open(tmp_path / "page.html", 420)
        assert browser.broken_words(page) == ["elimination"] and browser.faults(page) == []
        assert browser.small_pictures(page) == ["1 pixels: dot"]


@pytest.mark.pages
@pytest.mark.skipif(browser.CHROMIUM is None, reason=browser.WITHOUT)
def test_pictures_have_no_white_ground_in_the_dark_and_formulas_are_typeset(site, tmp_path):
    with browser.browser() as page:
        for dark in (False, True):
            page.open(site / "index.html", 1100, dark=dark)
            page.run("document.querySelector('article img').decode()")
            page.screenshot(tmp_path / "page.png", whole=False)
            box = "document.querySelector('article img').getBoundingClientRect()"
            left, top = (page.run(f"{box}.{side}") for side in ("left", "top"))
            shot = Image.open(tmp_path / "page.png").convert("L")
            corner, ground = (shot.getpixel((int(left) + x, int(top) + 2)) for x in (2, -8))
            assert abs(corner - ground) <= 2 and (ground < 60) == dark
        page.open(site / "api/objects/jaxbandits.algorithms.moss.html")
        assert page.run("MathJax.startup.promise.then(() => document.querySelectorAll('mjx-container').length)") > 0
        assert page.errors == []

"""Every Python and TOML block of README and docs runs, with what its page tells a reader to install and nothing else.

The Python blocks of a page run one after the other in one namespace and an empty directory, as a reader would paste
them. A TOML block goes through the command line. A block that cannot run has a line `<!-- not run: why -->` above it.
"""

import ast
import re
import runpy
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.recipe import recipe_of
from jaxbandits.sweeps.toml_file import read_config

# No page shows an algorithm that spends more than its label says.
pytestmark = [pytest.mark.pages, pytest.mark.filterwarnings("error:.*asked for epsilon .*, spends")]
ROOT = Path(__file__).parents[2]
# What a block may ask for at most, by the name of the argument: the one way in which blocks get small.
LARGEST = {"horizon": 300, "seeds": 8, "report_seeds": 8, "trials": 12, "runs": 2000}
# What is imported thanks to an extra of pyproject.toml.
BROUGHT = {
    "bench": ["numba"],
    "data": ["pyarrow", "sklearn"],
    "export": ["zarr"],
    "gym": ["gymnasium"],
    "ray": ["ray"],
    "tune": ["optuna"],
}
# Extras that bring nothing to import by a name of its own, or that only developers install.
OTHERS = {"cuda12", "cuda13", "tpu", "bench-peers", "docs", "dev"}
publish = SimpleNamespace(**runpy.run_path(str(ROOT / ".github/publish.py"), run_name="publish"))
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<why>.+) -->\n)?"
    r"^(?P<fence>```+)(?:\{code(?:-block)?\} *)?(?P<language>python|py|pycon|toml)\b.*\n"
    r"(?P<code>(?:.*\n)*?)^(?P=fence) *$",
    flags=re.MULTILINE,
)


class Block(NamedTuple):
    """A code block of a page; `why` it is not run, or None."""

    line: int
    language: str
    code: str
    why: str | None


def blocks(text: str) -> list[Block]:
    """The Python and TOML blocks of a page, at their lines."""
    found = FENCE.finditer(text)
    return [Block(text.count("\n", 0, m.start("code")), m["language"], m["code"], m["why"]) for m in found]


def pages() -> dict[str, list[Block]]:
    """The pages that have blocks, README first."""
    made = [ROOT / "docs/_build", ROOT / "docs/notebooks"]  # by the site's build
    written = [path for path in sorted((ROOT / "docs").rglob("*.md")) if not {*made} & {*path.parents}]
    paths = [ROOT / "README.md", *written]
    found = {str(path.relative_to(ROOT)): blocks(path.read_text(encoding="utf-8")) for path in paths}
    return {page: of_page for page, of_page in found.items() if of_page}


PAGES = pages()


def small(code: str) -> str:
    """The code with no number above LARGEST.

    >>> small("horizon=10_000, seeds = 200, report_seeds=range(1000, 1200)")
    'horizon=300, seeds = 8, report_seeds=range(1000, 1008)'
    """
    names = "|".join(LARGEST)

    def count(m):
        return m[1] + str(min(int(m[3].replace("_", "")), LARGEST[m[2]]))

    def interval(m):
        first, last = int(m[4].replace("_", "")), int(m[5].replace("_", ""))
        return f"{m[1]}{m[3]}{first}, {min(last, first + LARGEST[m[2]])}"

    code = re.sub(rf"(\b({names})\s*=\s*)(\d[\d_]*)\b", count, code)
    return re.sub(rf"(\b({names})\s*=\s*)(range\(|\[)(\d[\d_]*), (\d[\d_]*)", interval, code)


def test_the_extras_are_known():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(known) <= set(BROUGHT) | OTHERS


def test_blocks_are_found_and_made_small():
    text = "a\n```python\nx = 1\n```\n<!-- not run: it is half -->\n```toml\n[grid]\n```\n```sh\nls\n```\n"
    assert blocks(text) == [Block(2, "python", "x = 1\n", None), Block(6, "toml", "[grid]\n", "it is half")]
    assert small("horizon=10_000, seeds = 200, k=999") == "horizon=300, seeds = 8, k=999"
    assert small("report_seeds=range(1000, 1200)") == "report_seeds=range(1000, 1008)"
    assert small("seeds = [10000, 10100]") == "seeds = [10000, 10008]"


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    text = (ROOT / page).read_text(encoding="utf-8")
    told = set(re.findall(r"pip install '\.\[([\w,-]+)\]'", text))
    told = {extra for group in told for extra in group.split(",")}
    for extra, modules in BROUGHT.items():
        for module in modules if extra not in told else []:
            monkeypatch.setitem(sys.modules, module, None)  # an import of it raises ImportError
    if "data" in told:
        pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))  # the modules that pages speak of
    names: dict = {"__name__": "page"}
    for block in PAGES[page]:
        if block.why is not None:
            continue
        code = small(block.code)
        if block.language == "toml":
            run_file(tomllib.loads(code), code, tmp_path / f"line{block.line}")
        else:  # its lines have the numbers of the page in a traceback
            exec(compile("\n" * block.line + code, str(ROOT / page), "exec"), names)


SHOWN = re.compile(r"^```python\n(?P<code>(?:.*\n)*?)```\n\n```text\n(?P<text>(?:.*\n)*?)```$", flags=re.MULTILINE)


def test_what_stands_below_an_expression_is_its_value():
    """As the ledger of docs/privacy.md; what a block prints of runs takes these."""
    found = 0
    for page in PAGES:
        for shown in SHOWN.finditer((ROOT / page).read_text(encoding="utf-8")):
            *before, last = ast.parse(shown["code"]).body
            if not isinstance(last, ast.Expr) or "seeds" in shown["code"]:
                continue
            names: dict = {}
            exec(compile(ast.Module(before, []), page, "exec"), names)
            value = eval(compile(ast.Expression(last.value), page, "eval"), names)
            assert str(value).rstrip().split("\n") == shown["text"].rstrip().split("\n"), page
            found += 1
    assert found == 1


def run_file(settings: dict, code: str, place: Path) -> None:
    """A TOML block through the command that it is for."""
    file = place.with_suffix(".toml")
    file.write_text(code)
    command, result = ("tune", "best.csv") if "tune" in settings else ("run", "results.nc")
    assert main([command, str(file), "--out", str(place), "--quiet"]) == 0
    assert (place / result).exists()


def sized(factory):
    """An algorithm of four arms, its privacy level given where it takes one."""
    more = {"epsilon": 1.0} if "epsilon" in recipe_of(factory).arguments else {}
    return factory(num_arms=4, horizon=100, **more)


def test_the_quickstart_is_the_same_everywhere(monkeypatch):
    """In README and docs/start.md, as Python and as TOML, and in examples/quickstart.toml."""
    file = tomllib.loads((ROOT / "examples/quickstart.toml").read_text())
    settings = read_config(ROOT / "examples/quickstart.toml")
    given: dict = {}
    for page in ("README.md", "docs/start.md"):
        first = {block.language: block.code for block in reversed(PAGES[page])}
        assert tomllib.loads(first["toml"]) == file
        given.clear()
        monkeypatch.setattr(jb, "sweep", lambda algorithms, environment, **more: given.update(locals()))
        monkeypatch.setattr(jb, "table", lambda ds: "")
        monkeypatch.setattr(jb.plot, "regret", lambda ds, path: None)
        exec(first["python"], {})
        monkeypatch.undo()
        more = given["more"] | {"seeds": range(given["more"]["seeds"])}
        assert more == {key: settings[key] for key in ("horizon", "seeds", "grid")}
        here, there = (
            {label: built.config for label, built in zip(of, map(sized, of.values()), strict=True)}
            for of in (given["algorithms"], settings["algorithms"])
        )
        assert here == there
        worlds = [one() if callable(one) else one for one in (given["environment"], settings["environment"])]
        assert repr(worlds[0].config) == repr(worlds[1].config)
        assert len(re.findall(r"^.*\S", first["python"], flags=re.M)) <= 13


def own_addresses(text: str) -> list[str]:
    """Addresses of this project in a text: of its code, pages, packages and badges, wherever they claim to be."""
    found = re.findall(r"https?://[^\s)\"'<>\\\]`]+", text)
    return [one for one in found if "jaxbandits" in one or "colab.research.google.com" in one or "badge" in one]


def test_addresses_are_those_of_the_one_place():
    """`project.urls` of pyproject.toml is what the owner sets; nothing names an address of ours that is not there."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    known = tuple(urls.values()) + ((publish.colab(urls["Repository"]),) if "Repository" in urls else ())
    folders = (".github", "docs", "examples", "notebooks", "jaxbandits", "benchmarks")
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if "_build" not in path.parts]
    paths = [p for p in paths if p.suffix in (".md", ".py", ".ipynb", ".toml", ".html", ".txt", ".rst", ".yml")]
    for path in [ROOT / "README.md", ROOT / "CITATION.cff", *paths]:
        text = path.read_text(encoding="utf-8")
        invented = [one for one in own_addresses(text) if not one.startswith(known)]
        assert invented == [], f"{path}: set these in project.urls of pyproject.toml, or leave them out"
        # (an extra of what is installed already, `jaxbandits[tune]`, is no name on an index)
        index = re.findall(r"pip install [^\n]*(?<![\w/.+])jaxbandits\b(?! *@|\[)", text)
        assert index == [] or any("pypi.org" in one for one in known), f"{path}: {index}: not on a package index"


def test_an_invented_address_is_found():
    # told apart from the library of a similar name
    mine = "https://colab.research.google.com/github/someone/jaxbandits/x.ipynb"
    other = "https://github.com/StoneT2000/jax-bandits"
    badge = "https://img.shields.io/badge/x."
    assert own_addresses(f"[a]({mine}) and {other}, {badge}") == [mine, badge]

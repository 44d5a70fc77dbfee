"""Every public name has a docstring and is on the API page; the documentation builds without a warning."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PUBLIC = [
    "jaxbandits",
    "jaxbandits.environments",
    "jaxbandits.algorithms",
    "jaxbandits.adversaries",
    "jaxbandits.theory",
    "jaxbandits.estimators",
    "jaxbandits.learners",
    "jaxbandits.mechanisms",
    "jaxbandits.auditing",
    "jaxbandits.checking",
    "jaxbandits.privacy",
    "jaxbandits.statistics",
    "jaxbandits.reports.plot",
]


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


def test_an_undocumented_name_is_found():
    module = ModuleType("module")
    exec("def bare(): pass\ndef good():\n    'Text.'\n__all__ = ['bare', 'good']", module.__dict__)
    assert undocumented(module) == ["bare"]


def test_the_citation_has_the_version():
    version = importlib.import_module("jaxbandits.version").__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "docs/changelog.md").read_text()


def test_relative_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text())
    assert links and [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.slow  # builds the documentation
def test_the_documentation_builds_and_lists_every_public_name():
    from sphinx.util.inventory import InventoryFile

    out = ROOT / "docs/_build/html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html", ROOT / "docs", out]
    built = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr

    with open(out / "objects.inv", "rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    listed = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    missing = []
    for name in PUBLIC:
        module = importlib.import_module(name)
        wanted = [name] + [f"{name}.{each}" for each in names(module)]
        missing += [each for each in wanted if each not in listed and not _listed_module(module, each, listed)]
    assert missing == []


def _listed_module(module, name, listed) -> bool:
    """A module among the public names (`jaxbandits.plot`) is on the page under its own name;
    dunder constants need no entry.
    """
    value = getattr(module, name.rpartition(".")[2], None)
    return (isinstance(value, ModuleType) and value.__name__ in listed) or name.rpartition(".")[2].startswith("__")

"""The API reference: a page for each module with its objects by family, from which autosummary makes a page an object.

The pages are written before Sphinx looks for files, from the modules' own lists of public names, so that no name can
be forgotten. Of modules that are the package's tools (`Page.tools`) a page has what users are told of: what `extending`
or an example names.
"""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple


class Page(NamedTuple):
    """A module's page."""

    module: str
    title: str
    names: tuple[str, ...] = ()  # the public ones where the module has no list of its own
    text: str = ""
    tools: bool = False  # of the package: only what users are told of is listed


PAGES = (
    Page("jaxbandits", "Package"),
    Page("jaxbandits.environments", "Environments"),
    Page("jaxbandits.algorithms", "Algorithms", text="The :doc:`../catalogue` compares them."),
    Page("jaxbandits.adversaries", "Adversaries"),
    Page("jaxbandits.theory", "Theory"),
    Page(
        "jaxbandits.algorithms.linear.formulas",
        "Formulas of robust elimination",
        ("counts", "mean_square", "lambda_value", "gamma_practical", "gamma_paper"),
    ),
    Page("jaxbandits.estimators", "Estimators"),
    Page("jaxbandits.learners", "Learners"),
    Page("jaxbandits.mechanisms", "Mechanisms"),
    Page(
        "jaxbandits.privacy",
        "Privacy",
        ("Ledger", "ledger", "markdown", "table"),
        "The page :doc:`../privacy` says what the guarantees mean.",
    ),
    Page("jaxbandits.auditing", "Auditing"),
    Page("jaxbandits.statistics", "Statistics"),
    Page("jaxbandits.reports.plot", "Plots", text="These are what ``jaxbandits.plot`` has."),
    Page("jaxbandits.checking", "Checking", text="The rules that ``jaxbandits.check`` tries.", tools=True),
    Page("jaxbandits.protocol", "Protocol", (), "The page :doc:`../extending` shows how these fit together.", True),
    Page("jaxbandits.random", "Random numbers", tools=True),
    Page("jaxbandits.numerics", "Numerics", tools=True),
)
ROOT = Path(__file__).parents[2]
TOLD = (
    "docs/changelog.md", "docs/concepts.md", "docs/determinism.md", "docs/extending.md", "docs/privacy.md",
    "docs/guides/*.md", "examples/**/*.py", "notebooks/*.ipynb", "README.md",
)  # fmt: skip
FAMILIES = {
    "adversarial": "Adversarial losses, late feedback and experts",
    "stochastic": "Stochastic arms",
    "robust": "Heavy tails and corrupted rewards",
    "linear": "Fixed linear arms",
    "contextual": "Contexts",
    "federated": "Agents and a server",
}


def public(module: ModuleType) -> list[str]:
    """`module.__all__`, or the functions and classes that a module without one defines."""
    if hasattr(module, "__all__"):
        public = [*module.__all__, *getattr(module, "FURTHER", ())]
        return [name for name in public if not name.startswith("__")]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return [name for name in own if not name.startswith("_")]


@cache
def told() -> str:
    """What users are shown, as one text, with the names of the classes whose source a page shows."""
    text = "\n".join(path.read_text(encoding="utf-8") for pattern in TOLD for path in sorted(ROOT.glob(pattern)))
    shown = re.findall(r":pyobject: (\w+)", text)
    protocol = (ROOT / "jaxbandits/protocol.py").read_text(encoding="utf-8")
    for first, last in re.findall(r":start-at: (.*)\n:end-before: (.*)", text):
        shown += re.findall(r"^class (\w+)", protocol[protocol.find(first) : protocol.find(last)], re.MULTILINE)
    return "\n".join([text, *(f"`{name}`" for name in shown)])


def members(page: Page) -> list[str]:
    """The names that a page lists. The package's own are in the order of their use in what users are shown."""
    names = list(page.names) or public(_module(page))
    if page.module == "jaxbandits":
        return sorted(names, key=lambda name: -len(re.findall(rf"\bjb\.{name}\b", told())))
    if page.tools:
        room = page.module.rpartition(".")[2]
        return [
            name
            for name in names
            if re.search(rf"\b{room}\.{name}\b|jaxbandits\.{room} import .*\b{name}\b", told())
            or (name[0].isupper() and re.search(rf"`{name}\b", told()))
        ]
    return names


def families(module: ModuleType, names: list[str]) -> dict[str, list[str]]:
    """Title -> names: algorithms by the wing of the package they are in, everything else under no title."""
    if module.__name__ != "jaxbandits.algorithms":
        return {"": names}
    wings = {name: getattr(module, name).__module__.split(".")[2] for name in names}
    return {title: [name for name in names if wings[name] == wing] for wing, title in FAMILIES.items()}


def text(page: Page, listed: set[str]) -> str:
    """The page as reStructuredText."""
    module = _module(page)
    rows = [page.title, "=" * len(page.title), "", f".. automodule:: {page.module}", "", page.text, ""]
    for title, names in families(module, members(page)).items():
        rows += [title, "-" * len(title), ""] if title else []
        rows += [".. autosummary::", "   :toctree: objects", "   :nosignatures:", ""]
        for name in names:
            value = getattr(module, name)
            home = value.__name__ if inspect.ismodule(value) else f"{page.module}.{name}"
            if home not in listed:  # a module among the public names has a page of its own
                rows.append(f"   {name}")
        rows.append("")
    return "\n".join(rows)


def files_of_classes() -> dict[str, str]:
    """Object -> name of its file, for a class whose name differs from a function's only by case: there are disks
    that take `Audit.rst` and `audit.rst` for one file.
    """
    objects = [f"{page.module}.{name}" for page in PAGES for name in members(page)]
    lower = [name.lower() for name in objects]
    return {name: f"{name}-class" for name in objects if name != name.lower() and lower.count(name.lower()) > 1}


def _module(page: Page) -> ModuleType:
    return importlib.import_module(page.module)


def write(app, config) -> None:
    """Write the pages into `api/`, where they changed, and delete those of objects that are no longer listed."""
    config.autosummary_filename_map = names = files_of_classes()
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    objects = [f"{page.module}.{name}" for page in PAGES for name in members(page)]
    for file in set((folder / "objects").glob("*.rst")) - {folder / f"objects/{names.get(x, x)}.rst" for x in objects}:
        file.unlink()
    listed = {page.module for page in PAGES}
    for page in PAGES:
        file = folder / f"{page.module.removeprefix('jaxbandits.')}.rst"
        new = text(page, listed)
        if not file.exists() or file.read_text() != new:
            file.write_text(new)


def fold_menu(app, pagename, templatename, context, doctree) -> None:
    """Leave closed in the menu at the side what the page is not in: the theme opens all of it, and hundreds of names on
    hundreds of pages were half of the time that the site took to build.
    """
    whole = context.get("toctree")
    if whole:
        context["toctree"] = lambda **options: whole(**options | {"collapse": True})


def plain_defaults(app, what, name, obj, options, signature, returns):
    """`base=htinf` in place of `base=<function htinf>`."""
    return signature and re.sub(r"<(?:function|class) '?(?:[\w.]+\.)?(\w+)'?(?: at \w+)?>", r"\1", signature), returns


def setup(app):
    app.connect("config-inited", write)
    app.connect("autodoc-process-signature", plain_defaults)
    app.connect("html-page-context", fold_menu, priority=400)  # before the theme, which asks for the menu at 500
    return {"parallel_read_safe": True}

"""The API reference: a page for each module with its objects by family, from which autosummary makes a page an object.

The pages are written before Sphinx looks for files, from the modules' own lists of public names, so that no name can
be forgotten.
"""

import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import NamedTuple


class Page(NamedTuple):
    """A module's page."""

    module: str
    title: str
    names: tuple[str, ...] = ()  # the public ones where the module has no list of its own
    text: str = ""


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
    Page("jaxbandits.checking", "Checking", text="The rules that ``jaxbandits.check`` tries."),
    Page("jaxbandits.protocol", "Protocol", text="The page :doc:`../extending` shows how these fit together."),
    Page("jaxbandits.random", "Random numbers"),
    Page("jaxbandits.numerics", "Numerics"),
)
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
        return [name for name in module.__all__ if not name.startswith("__")]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return [name for name in own if not name.startswith("_")]


def families(module: ModuleType, names: list[str]) -> dict[str, list[str]]:
    """Title -> names: algorithms by the wing of the package they are in, everything else under no title."""
    if module.__name__ != "jaxbandits.algorithms":
        return {"": names}
    wings = {name: getattr(module, name).__module__.split(".")[2] for name in names}
    return {title: [name for name in names if wings[name] == wing] for wing, title in FAMILIES.items()}


def text(page: Page, listed: set[str]) -> str:
    """The page as reStructuredText."""
    module = _module(page)
    names = list(page.names) or public(module)
    rows = [page.title, "=" * len(page.title), "", f".. automodule:: {page.module}", "", page.text, ""]
    for title, members in families(module, names).items():
        rows += [title, "-" * len(title), ""] if title else []
        rows += [".. autosummary::", "   :toctree: objects", "   :nosignatures:", ""]
        for name in members:
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
    objects = [f"{page.module}.{name}" for page in PAGES for name in page.names or public(_module(page))]
    lower = [name.lower() for name in objects]
    return {name: f"{name}-class" for name in objects if name != name.lower() and lower.count(name.lower()) > 1}


def _module(page: Page) -> ModuleType:
    return importlib.import_module(page.module)


def write(app, config) -> None:
    """Write the pages into `api/`, where they changed."""
    config.autosummary_filename_map = files_of_classes()
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
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


def setup(app):
    app.connect("config-inited", write)
    app.connect("html-page-context", fold_menu, priority=400)  # before the theme, which asks for the menu at 500
    return {"parallel_read_safe": True}

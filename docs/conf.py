"""Sphinx configuration: Markdown pages, a gallery that is run, API pages from numpydoc docstrings.

Nothing is fetched while building.
"""

import importlib.util
import json
import os
import runpy
import shutil
import sys
import tomllib
from pathlib import Path

os.environ.setdefault("JAX_LOGGING_LEVEL", "WARNING")  # or JAX reports every example's cache to whoever builds
sys.path.insert(0, str(Path(__file__).parent / "_ext"))  # our own extensions

from jaxbandits.version import __version__

ROOT = Path(__file__).parents[1]
# the one place of addresses; without one nothing on the site leads to it
repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"].get("Repository")

project = "jaxbandits"
copyright = "the jaxbandits developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",  # links to the source
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "algorithm_catalogue",
    "notebook_pages",
    "claim_cards",
    "search_words",
    "study_pages",
    "typeset",
    "links",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_ext", "_templates"]
templates_path = ["_templates"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["breaks.js", "catalogue.js"]
html_search_scorer = str(Path(__file__).parent / "_static/scorer.js")
smartquotes = False  # API texts quote code
html_title = f"jaxbandits {release}"
myst_enable_extensions = [
    "dollarmath",
    "colon_fence",
    "deflist",
    "html_image",
    "substitution",
]  # html_image: thumbnails
myst_heading_anchors = 3
myst_substitutions = {"install": f"`pip install git+{repository}`" if repository else "`pip install .` in a checkout"}

# MathJax from a package: nothing is fetched while reading. Its menu would load what is not copied.
MATHJAX = Path(
    next(iter(importlib.util.find_spec("sphinx-mathjax-offline").submodule_search_locations)), "static/mathjax"
)
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"options": {"enableMenu": False}, "chtml": {"scale": 0.9}}

default_role = "literal"  # `name` in a docstring is code
autodoc_member_order = "bysource"
autodoc_preserve_defaults = False  # signatures of declared functions are made: no source says their defaults
autodoc_typehints = "none"  # types are in the docstrings, with units and ranges
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_param = False  # one list of parameters, each with its type
napoleon_use_rtype = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # left out of what is copied
copybutton_prompt_is_regexp = True

INSTALL = runpy.run_path(str(ROOT / "notebooks/refresh.py"))["first_cell"]()  # installs the package
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",  # which example uses what, for the API pages
    "doc_module": ("jaxbandits",),
    "image_scrapers": ("gallery_figures.figures",),
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "first_notebook_cell": INSTALL,
    "min_reported_time": 1e6,  # times of the machine that built the site say nothing to a reader
}


def _skip(app, what, name, obj, skip, options):
    """The fields of a NamedTuple carry a docstring that says nothing."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else skip


def _forget_old_notebooks(app, config):
    """The gallery writes a notebook when its example changes; here, when the cell that installs does, too."""
    for path in Path(app.srcdir, "gallery").rglob("*.ipynb"):
        if "".join(json.loads(path.read_text())["cells"][0]["source"]) != INSTALL:
            path.with_suffix(".py.md5").unlink(missing_ok=True)


def _serve_mathjax(app, exception):
    """Copy the one script and its fonts: the package has 24 MB."""
    if exception is None and app.builder.format == "html":
        there = Path(app.outdir, "_static/mathjax")
        fonts = "output/chtml/fonts/woff-v2"
        shutil.copytree(MATHJAX / fonts, there / fonts, dirs_exist_ok=True)
        shutil.copy(MATHJAX / "tex-chtml.js", there)


def setup(app):
    app.connect("config-inited", _forget_old_notebooks)
    app.connect("build-finished", _serve_mathjax)
    app.connect("autodoc-skip-member", _skip)

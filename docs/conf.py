"""Sphinx configuration: Markdown pages, API pages from numpydoc docstrings. Nothing is fetched while building."""

from jaxbandits.version import __version__

project = "jaxbandits"
copyright = "the jaxbandits developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
smartquotes = False  # API texts quote code
html_title = f"jaxbandits {release}"
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "html_image"]  # html_image: thumbnails
myst_heading_anchors = 3

default_role = "literal"  # `name` in a docstring is code
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # types are in the docstrings, with units and ranges
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_param = False  # one list of parameters, each with its type
napoleon_use_rtype = False


def _skip(app, what, name, obj, skip, options):
    """The fields of a NamedTuple carry a docstring that says nothing."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else skip


def setup(app):
    app.connect("autodoc-skip-member", _skip)

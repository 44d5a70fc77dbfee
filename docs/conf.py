"""Sphinx configuration: Markdown pages, API pages from docstrings. Nothing is fetched while building."""

import re
from itertools import groupby

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
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # shapes and units are in the text
napoleon_google_docstring = True
napoleon_numpy_docstring = True

_CODE = re.compile(r"``(.+?)``|`([^`]+)`", re.DOTALL)
_MARKUP = re.compile(r"([*|`\\]|(?<=\w)_(?!\w))")


def _indent(line):
    return len(line) - len(line.lstrip())


def _escape(paragraph):
    """Lines of plain text: code spans as literals, and what reStructuredText would read as other markup as written."""
    text, out, end = "\n".join(paragraph), [], 0
    for span in _CODE.finditer(text):
        out += [_MARKUP.sub(r"\\\1", text[end : span.start()]), rf"\ ``{span[1] or span[2]}``\ "]
        end = span.end()
    out.append(_MARKUP.sub(r"\\\1", text[end:]))
    return "".join(out).split("\n")


def _plain(app, what, name, obj, options, lines):
    """Docstrings are written to be read as text; this turns their two habits into markup.

    A paragraph with hanging indents becomes a list, an indented paragraph a literal block. Doctests and the sections
    that napoleon knows (a first line such as `Raises:`, or underlined) keep their lines and indents.
    """
    out, literal, underlined = [], False, False
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if blank:
            out.append("")
            continue
        first, base = paragraph[0].strip(), _indent(paragraph[0])
        hanging = any(_indent(line) > base for line in paragraph)
        title = 2 if len(paragraph) > 1 and re.fullmatch("-{3,}", paragraph[1].strip()) else 0
        underlined = underlined or bool(title)
        if underlined and not first.startswith(">>>"):  # numpydoc's sections, to the end of the docstring
            out += paragraph[:title] + (_escape(paragraph[title:]) if paragraph[title:] else [])
        elif first.startswith(">>>"):
            out += paragraph
            literal = False
        elif base > 0:
            out += [] if literal else ["::", ""]
            out += paragraph
            literal = True
        elif hanging and not first.endswith(":"):
            for line in _escape(paragraph):
                out.append(f"  {line.strip()}" if _indent(line) > base else f"* {line.strip()}")
            literal = False
        else:
            out += _escape(paragraph)
            literal = first.endswith("::")
    lines[:] = out


def _skip(app, what, name, obj, skip, options):
    """The fields of a NamedTuple carry a docstring that says nothing."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else skip


def setup(app):
    app.connect("autodoc-process-docstring", _plain, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", _skip)

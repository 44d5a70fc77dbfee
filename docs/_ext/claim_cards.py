"""On the page of verdicts a claim is a card: each row of its tables is laid out by itself (`site.css`).

The source stays a table with one row a claim. Here each cell is told which one it is, and a row which word it has.
"""

import re

from docutils import nodes
from sphinx.util import logging

PAGE = "verdicts"
PARTS = ("number", "claim", "word", "ground", "measured", "change", "picture")
LOG = logging.getLogger(__name__)


def lay_out(app, doctree, docname):
    """Give the tables of claims, their rows and their cells the classes of cards."""
    if docname != PAGE:
        return
    for table in doctree.findall(nodes.table):
        if "the paper says" not in next(table.findall(nodes.thead)).astext():
            continue  # the counts
        table["classes"].append("claims")
        for row in next(table.findall(nodes.tbody)).children:
            if len(row.children) != len(PARTS):
                LOG.warning("a row of %s has %d cells, not %d", PAGE, len(row.children), len(PARTS), location=row)
            for part, entry in zip(PARTS, row.children, strict=False):
                entry["classes"].append(part)
                if not entry.astext() and not list(entry.findall(nodes.image)):
                    entry["classes"].append("empty")
            said = next(row.children[PARTS.index("word")].findall(nodes.strong), None)
            word = said.astext() if said else ""
            row["classes"].append("said-" + re.sub(r"[^a-z]+", "-", word))


def setup(app):
    app.connect("doctree-resolved", lay_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""On the page of verdicts a claim is a card: each row of its tables is laid out by itself (`site.css`).

The source stays a table with one row a claim. Here each cell is told which one it is, and a row which word it has and
its anchor. Above a table stands a line of links to its claims, and a picture leads to itself at its full size.
"""

import re

from docutils import nodes
from sphinx.util import logging

PAGE = "verdicts"
PARTS = ("number", "claim", "word", "ground", "measured", "change", "picture")
LOG = logging.getLogger(__name__)


def link_claims(rows: list[nodes.row], paper: str) -> nodes.paragraph:
    """Give the rows anchors; the links to them."""
    links = list[nodes.Node]()
    for row in rows:
        number = row.children[PARTS.index("number")].astext()
        row["ids"].append(nodes.make_id(f"{paper} {number}"))
        links += [nodes.reference("", number, internal=True, refuri=f"#{row['ids'][0]}"), nodes.Text(" | ")]
    return nodes.paragraph("", "", *links[:-1], classes=["claim-links"])


def lay_out(app, doctree, docname):
    """Give the tables of claims, their rows and their cells the classes of cards, and what leads to them."""
    if docname != PAGE:
        return
    for table in list(doctree.findall(nodes.table)):
        if "the paper says" not in next(table.findall(nodes.thead)).astext():
            continue  # the counts
        table["classes"].append("claims")
        rows = next(table.findall(nodes.tbody)).children
        box = table.parent  # of the theme, which scrolls
        box.parent.insert(box.parent.index(box), link_claims(rows, box.parent["ids"][0]))
        for image in list(table.findall(nodes.image)):
            file = f"_images/{app.env.images[image['uri']][1]}"
            image.replace_self(nodes.reference("", "", image.deepcopy(), internal=True, refuri=file))
        for row in rows:
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

"""Pages of studies: a list of what is on them below their first lines, and tables of claims that fold.

A table of claims shows how many lines it has and how many of them hold; on a phone each of its lines is a card
(`site.css`). The source stays a plain table.
"""

from docutils import nodes

FOLDER = "reproductions/"
# Columns of a table of claims, as the class of their cells.
COLUMNS = {
    "": "line", "the paper says": "said", "we measure": "measured",
    "here": "here", "holds": "here", "the claim": "claim",
}  # fmt: skip


def contents(doctree: nodes.document) -> None:
    """Put the list of a page's sections before the first of them."""
    page = next(doctree.findall(nodes.section))
    sections = [child for child in page.children if isinstance(child, nodes.section)]
    rows = nodes.bullet_list()
    for section in sections:
        title = section.next_node(nodes.title)
        link = nodes.reference("", "", *[part.deepcopy() for part in title.children], internal=True)
        link["refuri"] = f"#{section['ids'][0]}"
        rows += nodes.list_item("", nodes.paragraph("", "", link))
    page.insert(page.index(sections[0]), nodes.container("", nodes.paragraph("", "On this page:"), rows))


def cells(row: nodes.row) -> list[str]:
    return [entry.astext() for entry in row.children]


def fold(table: nodes.table) -> None:
    """Make a table of claims one that opens."""
    head, body = next(table.findall(nodes.thead)), next(table.findall(nodes.tbody))
    columns = [COLUMNS[name] for name in cells(head.children[0])]
    table["classes"].append("study")
    for row in body.children:
        for column, entry in zip(columns, row.children, strict=True):
            entry["classes"].append(f"study-{column}" if entry.astext() else "study-empty")
    here = [cells(row)[columns.index("here")] for row in body.children]
    counts = [f"{here.count(word)} {word}" for word in ("yes", "no") if word in here]
    lines = f"{len(here)} lines" if len(here) > 1 else "1 line"
    summary = f"What the paper says and what is measured: {', '.join([lines, *counts])}"
    opened = f'<details class="study"><summary>{summary}</summary>'
    parent, place = table.parent, table.parent.index(table)
    parent.insert(place, nodes.raw("", opened, format="html"))
    parent.insert(place + 2, nodes.raw("", "</details>", format="html"))


def lay_out(app, doctree, docname) -> None:
    if not docname.startswith(FOLDER):
        return
    contents(doctree)
    for table in list(doctree.findall(nodes.table)):
        head = cells(next(table.findall(nodes.thead)).children[0])
        if set(head) <= set(COLUMNS) and "we measure" in head:
            fold(table)


def setup(app):
    app.connect("doctree-resolved", lay_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The index of the search: what pages are looked for by, beside their own words, and what is no part of a page's text.

A page's words are in `_static/scorer.js`, which also says what comes first. Output that names a temporary folder is
left out, as is what has the class `no-search`; pages with `nosearch` at their head are left out whole (Sphinx).
"""

import json
import re
from functools import cache
from pathlib import Path

from docutils import nodes

SCORER = Path(__file__).parents[1] / "_static/scorer.js"
TEMPORARY = re.compile(r"/tmp/\w")


@cache
def answers() -> dict[str, str]:
    """{page: what it answers, with commas between}."""
    found = re.search(r"const ANSWERS = (\{.*?\n\});", SCORER.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(found[1])


def index_words(app, doctree, docname) -> None:
    """Add the words of a page to what is indexed, one by one, and leave out what names a temporary folder."""
    for block in doctree.findall(nodes.literal_block):
        if TEMPORARY.search(block.astext()):
            block["classes"].append("no-search")
    words = dict.fromkeys(re.findall(r"\w+", answers().get(docname, "")))
    if words:
        doctree += nodes.meta("", name="keywords", content=", ".join(words))


def check_pages(app, env) -> None:
    """A page that is not there would never be found."""
    if missing := sorted(set(answers()) - env.found_docs):
        raise ValueError(f"docs/_static/scorer.js: no pages {', '.join(missing)}: name pages without their ending")


def setup(app):
    app.connect("env-check-consistency", check_pages)
    app.connect("doctree-resolved", index_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

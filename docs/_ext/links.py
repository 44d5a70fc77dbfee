"""Names and files in code marks become links: public names to their pages, a page's file to the page or its section,
and names of the libraries that the package builds on to their own pages (`elsewhere.toml`; nothing is fetched while
building).

A page's own name stays as it is. So does a short name that is also an argument's, such as `window`, unless it is
called or has its module before it.
"""

import importlib
import inspect
import re
import tomllib
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

from jaxbandits.commands import listing

NAME = re.compile(r"(?P<name>[A-Za-z_][\w.]*?)\.?(?P<call>\(.*\)|\[.*\])?", re.DOTALL)
FILE = re.compile(r"(?:\.\./)*(?:docs/)?(?P<page>[\w/-]+)\.(?:md|rst)(?:#(?P<anchor>[\w-]+))?")
# How readers write what the package has.
PREFIXES = ("jaxbandits.reports.", "jaxbandits.algorithms.", "jaxbandits.")
ARGUMENTS_OF = ("algorithms", "environments", "adversaries", "theory", "mechanisms", "estimators", "learners")
NEAR = 6  # names of a row of See also, at most


@cache
def elsewhere() -> dict[str, str]:
    """Name -> address, of other libraries."""
    libraries = tomllib.loads(Path(__file__).with_name("elsewhere.toml").read_text())
    return {name: table["home"] + page for table in libraries.values() for name, page in table["pages"].items()}


@cache
def argument_names() -> set[str]:
    """Names of arguments of public functions: a word in code marks may mean one of them."""
    found = {"regret", "pulls", "reward", "t", "seed", "best_reward"}  # and of variables of results
    for room in ARGUMENTS_OF:
        module = importlib.import_module(f"jaxbandits.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                found |= set(inspect.signature(value).parameters)
    return found


class Names:
    """What the site documents, by every way to write its name."""

    def __init__(self, env: Any) -> None:
        self.env, self.places, short = env, {}, {}
        for full, entry in env.domains.python_domain.objects.items():
            if entry.aliased:
                continue
            place = entry.docname, entry.node_id, full
            self.places[full] = place
            for prefix in PREFIXES:
                if full.startswith(prefix):
                    rest = full.removeprefix(prefix)
                    self.places[f"jb.{rest}"] = self.places[f"a.{rest}"] = place
                    if "." in rest:
                        self.places.setdefault(rest, place)
            short.setdefault(full.rsplit(".", 1)[-1], set()).add(place)
        package = {name.removeprefix("jaxbandits."): name for name in self.places if name.count(".") == 1}
        for name, places in short.items():
            # the package's own name, or the only one: `audit` is jb.audit, `table` is jb.table
            if name in package and package[name] in self.places:
                self.places.setdefault(name, self.places[package[name]])
            elif len(places) == 1:
                self.places.setdefault(name, next(iter(places)))

    def target(self, text: str, page: str) -> tuple[str, str] | str | None:
        """Where a text in code marks leads: a page and its anchor, an address, or nowhere."""
        if found := FILE.fullmatch(text):
            return self._section(found["page"], found["anchor"], page)
        found = NAME.fullmatch(text)
        if found is None:
            return None
        name = found["name"]
        if name in elsewhere():
            return elsewhere()[name]
        if name not in self.places or ("." not in name and not found["call"] and name in argument_names()):
            return None
        docname, anchor, _ = self.places[name]
        return None if docname == page else (docname, anchor)

    def _section(self, name: str, anchor: str | None, page: str) -> tuple[str, str] | None:
        folder = page.rsplit("/", 1)[0]
        docname = next((x for x in (name, f"{folder}/{name}") if x in self.env.found_docs), None)
        if docname is None or anchor is None:
            return docname and (docname, "")
        slugs = self.env.metadata.get(docname, {}).get("myst_slugs", {})
        if anchor in slugs:
            return docname, slugs[anchor][1]
        labels = self.env.domains.standard_domain.anonlabels
        if anchor in labels and labels[anchor][0] == docname:
            return docname, labels[anchor][1]
        return docname, anchor


def link(app, doctree, docname) -> None:
    """Make links of a page's code marks, and of the types of its arguments."""
    if not hasattr(app, "names"):
        app.names = Names(app.env)
    mark_files(doctree)
    for node in [*doctree.findall(nodes.literal), *doctree.findall(nodes.emphasis)]:
        above, inside = node.parent, False
        while above is not None and not inside:
            inside = isinstance(above, nodes.reference | nodes.title)
            above = above.parent
        if inside or (isinstance(node, nodes.emphasis) and not in_field(node)):
            continue
        if isinstance(node, nodes.literal):
            if reference := reference_to(app, node.astext(), docname, [node.deepcopy()]):
                node.replace_self(reference)
        else:
            words = re.split(r"([\w.]+)", node.astext())
            node.clear()
            node += [part for word in words for part in typed(app, word, docname)]


def mark_files(doctree) -> None:
    """Put the pages that a docstring names without code marks into such marks."""
    for description in doctree.findall(addnodes.desc_content):
        for node in [
            one for one in description.findall(nodes.Text) if "docs/" in one and one.parent.tagname == "paragraph"
        ]:
            parts = re.split(r"(\bdocs/[\w/-]+\.md(?:#[\w-]+)?)", node.astext())
            place = node.parent.index(node)
            node.parent[place : place + 1] = [
                nodes.literal("", part) if i % 2 else nodes.Text(part) for i, part in enumerate(parts) if part
            ]


def in_field(node) -> bool:
    """Whether a node is the type of an argument, of what is returned or raised."""
    while node is not None and not isinstance(node, nodes.field):
        node = node.parent
    return node is not None


def typed(app, text, docname) -> list:
    """A word of a type as a link, where it is a class."""
    class_like = "." in text or text[:1].isupper()
    reference = reference_to(app, text, docname, [nodes.Text(text)]) if class_like else None
    return [reference or nodes.Text(text)] if text else []


def reference_to(app, text, docname, children):
    """The link, or None."""
    target = app.names.target(text, docname)
    if target is None:
        return None
    if isinstance(target, str):
        return nodes.reference("", "", *children, refuri=target, classes=["elsewhere"])
    uri = app.builder.get_relative_uri(docname, target[0]) + (f"#{target[1]}" if target[1] else "")
    return nodes.reference("", "", *children, refuri=uri, internal=True)


# ---- See also


@cache
def algorithms() -> dict[str, dict[str, Any]]:
    return {name: listing.record(name) for name in listing.names("algorithms")}


def first_words(paper: str | None) -> str:
    """The first paper that is cited, by its authors and year."""
    found = re.match(r".*?\b(?:19|20)\d\d\b", paper or "")
    return found[0] if found else ""


def near(name: str) -> dict[str, list[str]]:
    """Title -> algorithms that a reader of one would look at next."""
    rooms = importlib.import_module("jaxbandits.algorithms")
    wing = lambda one: getattr(rooms, one).__module__.split(".")[2]
    # nearest first: of the same wing, then by name, as kl_ucb is near dp_klucb
    order = lambda one: (wing(one) != wing(name), -SequenceMatcher(None, one, name).ratio())
    own, others = algorithms()[name], [algorithms()[one] for one in sorted(set(algorithms()) - {name}, key=order)]
    alike = [one for one in others if one["structure"] == own["structure"]]
    rows = {
        "the same paper": [one for one in others if first_words(one["paper"]) == first_words(own["paper"]) != ""],
        "the same setting and trust": [one for one in alike if one["model"] == own["model"]],
        "without privacy": [one for one in alike if one["model"] == "none" != own["model"]],
        "with privacy": [one for one in alike if one["model"] != "none" == own["model"]],
    }
    seen: set[str] = set()
    for title, found in rows.items():
        names = [one["name"] for one in found if one["name"] not in seen][:NEAR]
        seen |= set(names)
        rows[title] = names
    return {title: names for title, names in rows.items() if names}


def siblings(full: str) -> dict[str, list[str]]:
    """Public functions that stand in the same file."""
    room, _, name = full.rpartition(".")
    module = importlib.import_module(room)
    home = getattr(getattr(module, name, None), "__module__", None)
    names = [n for n in getattr(module, "__all__", []) if getattr(getattr(module, n), "__module__", None) == home]
    names = [n for n in names if n != name and callable(getattr(module, n))]
    at = sum(n < name for n in names)
    first = max(0, min(at - NEAR // 2, len(names) - NEAR))
    return {"beside it": names[first : first + NEAR]} if names and home != "jaxbandits" else {}


def see_also(app, what, name, obj, options, lines) -> None:
    """Add what to look at next to a function's text."""
    room, _, short = name.rpartition(".")
    if what != "function" or not room.startswith("jaxbandits"):
        return
    rows = near(short) if room == "jaxbandits.algorithms" else siblings(name)
    if rows:
        lines += ["", ".. rubric:: See also", ""]
        lines += [
            f"- {title}: " + ", ".join(f":py:obj:`~{room}.{other}`" for other in names) for title, names in rows.items()
        ] + [""]


def setup(app):
    app.connect("autodoc-process-docstring", see_also, priority=900)  # after numpydoc's sections
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The directive `algorithm-catalogue`: a table of all algorithms, from the code and from the measured costs.

    python docs/_ext/algorithm_catalogue.py      write the README's table: every family, by the model of privacy

A release writes that table too, so that a new algorithm asks for no line in the README before.
"""

import json
import re
from pathlib import Path

from api_pages import FAMILIES
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import jaxbandits as jb
from jaxbandits.commands import listing
from jaxbandits.formatting import format_number, markdown_table
from jaxbandits.protocol import Rewards

HEADER = ["algorithm", "plays on", "privacy", "protects one", "rewards read", "ns a play", "static arguments", "paper"]
SHOWN_STATIC = 6  # of the static arguments; those that the environment fixes are left out
MODELS = {"none": "no privacy", "central": "a server is trusted", "local": "nobody is trusted"}
BETWEEN = "in between: shuffler, sums, agents"  # any other model
README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- algorithms: begin -->\n", "<!-- algorithms: end -->\n"
FIXED = ("num_arms", "dim", "num_agents", "num_experts", "horizon", "actions")


def linked(paper: str) -> str:
    """The paper's text with its pages of this site as links."""
    return re.sub(r"`?docs/([\w/]+\.md(?:#[\w-]+)?)`?", r"[formulas](\1)", paper)


def row(record: dict, cost: dict) -> list[str]:
    """One algorithm: its cells in Markdown."""
    rewards = record["rewards"]
    if rewards is not None:
        limits = {key: float(rewards[key]) for key in ("low", "high")}
        rewards = Rewards(**rewards | limits)
    static = [name for name in record["static"] if name not in FIXED][:SHOWN_STATIC]
    return [
        f"{{py:func}}`~jaxbandits.algorithms.{record['name']}`",
        record["structure"],
        record["model"],
        (record["unit"] or "").replace("_", " "),
        listing.reading(rewards),
        format_number(cost["play"]) if cost else "",
        ", ".join(f"`{name}`" for name in static),
        linked(record["paper"] or "").replace("|", "\\|"),
    ]


class AlgorithmCatalogue(SphinxDirective):
    """The table, in a block of its own class that `catalogue.js` finds."""

    def run(self) -> list[nodes.Node]:
        file = Path(self.env.srcdir) / "figures/performance.json"
        self.env.note_dependency(str(file))
        costs = json.loads(file.read_text())["roofline"]
        rows = [row(listing.record(name), costs.get(name, {})) for name in listing.names("algorithms")]
        block = nodes.container(classes=["catalogue"])
        block += self.parse_text_to_nodes(markdown_table([HEADER, *rows]))
        return [block]


def release_table() -> str:
    """What the README says of a release: the algorithms by family and model of privacy."""
    header = [*MODELS.values(), BETWEEN]
    cells: dict[tuple[str, str], list[str]] = {}
    for name in listing.names("algorithms"):
        family = FAMILIES[getattr(jb.algorithms, name).__module__.split(".")[2]]
        model = MODELS.get(listing.record(name)["model"], BETWEEN)
        cells.setdefault((family, model), []).append(f"`{name}`")
    rows = [[family, *(", ".join(cells.get((family, model), [])) for model in header)] for family in FAMILIES.values()]
    return markdown_table([["", *header], *rows]) + "\n"


def with_table(readme: str) -> str:
    """The README with the table of today."""
    before, rest = readme.split(BEGIN)
    return f"{before}{BEGIN}\n{release_table()}\n{END}{rest.split(END)[1]}"


def setup(app):
    app.add_directive("algorithm-catalogue", AlgorithmCatalogue)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")

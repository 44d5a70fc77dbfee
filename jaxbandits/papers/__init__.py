"""The papers' figures and tables, to be run again: `jaxbandits reproduce PAPER/FIGURE`.

One module a paper, `across` for what concerns several, `robust_frontier` for robust bandits of today. What a study
asks, and what was found, is told in its section of docs/reproductions/<paper>.md.
"""

from importlib import import_module

from jaxbandits.papers.study import Claim, Exact, Interval, Search, Study, Sweep, Tuning, claims_table, reproduce
from jaxbandits.validation import nearest

PAPERS = (
    "private_adversarial", "private_robust_mab", "robust_linear", "byzantine", "ldp_contextual", "across",
    "robust_frontier",
)  # fmt: skip

__all__ = [
    "PAPERS", "Claim", "Exact", "Interval", "Search", "Study", "Sweep", "Tuning", "claims_table", "find", "known",
    "reproduce",
]  # fmt: skip


def known() -> dict[str, Study]:
    """Every study by its name PAPER/FIGURE."""
    found = {}
    for paper in PAPERS:
        for figure, where in import_module(f"jaxbandits.papers.{paper}").STUDIES.items():
            module, _, name = where.partition(":")
            study = getattr(import_module(f"jaxbandits.papers.{paper}.{module}"), name or "STUDY")
            title = study.title.split("\n")[0].removesuffix(".")
            found[f"{paper.replace('_', '-')}/{figure}"] = study._replace(title=title)
    return found


def find(name: str) -> dict[str, Study]:
    """The study PAPER/FIGURE, all of PAPER, or "all". Dashes and underscores are equal. ValueError lists what there is.

    >>> list(find("private_adversarial/exp3_leak"))
    ['private-adversarial/exp3-leak']
    """
    studies, wanted = known(), name.strip("/").replace("_", "-").lower()
    matching = {key: study for key, study in studies.items() if wanted in ("all", key, key.split("/")[0])}
    if not matching:
        papers = list(dict.fromkeys(key.split("/")[0] for key in studies))
        raise ValueError(
            f"nothing is called {name!r}{nearest(wanted, [*studies, *papers])}: give a paper ({', '.join(papers)}), "
            f"all, or a figure ({', '.join(studies)})"
        )
    return matching

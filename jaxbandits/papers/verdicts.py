"""The page of verdicts, docs/verdicts.md: every numbered claim of the papers in one table.

The rows are in docs/verdicts.toml. What was measured is not written there: the page quotes the tables in
docs/reproductions and the audit's table in docs/privacy.md, which the studies and the audit write.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from jaxbandits import theory
from jaxbandits.papers import pages
from jaxbandits.papers.study import Study

WORDS = (
    "holds",
    "holds under a reading that the paper does not state",
    "cannot be decided at sizes that can be simulated",
    "fails",
    "not settled here",
)
BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
THUMBNAIL = 140  # pixels wide
HEADINGS = ["", "the paper says", "verdict", "why, and under which reading", "measured", ""]


class Verdict(NamedTuple):
    """One numbered claim of a paper, and what became of it."""

    number: str  # as the paper numbers it
    claim: str  # in one line
    verdict: str  # one of WORDS
    ground: str  # why; the reading that makes it true; what forbids a decision
    study: str = ""  # PAPER/FIGURE, where one measures it
    statement: str = ""  # the row of that study's table that is shown
    picture: str = ""  # of that study
    bound: str = ""  # one of `BOUNDS`
    audited: str = ""  # an algorithm whose privacy was audited
    drawn: bool = True  # whether the row that is shown comes from seeds


EPSILON, DELTA, ARMS, EXPERTS = 0.1, 1e-5, (8,), (3, 16)  # the sizes of `private-adversarial/price-of-privacy`


def _bound(
    bounds: Callable[..., dict[str, float]], sizes: tuple[int, ...], name: str, **more
) -> Callable[[int], float]:
    return lambda horizon: bounds(*sizes, horizon, EPSILON, **more)[name]


# name -> the bound with its constants as a function of T, and the sizes in words
BOUNDS = {
    name: (_bound(theory.arms_bounds, ARMS, name, corrected=False), f"K = {ARMS[0]}, ε = {EPSILON}")
    for name in ("htinf", "exp3", "ftpl")
} | {
    name: (
        _bound(theory.experts_bounds, EXPERTS, name, delta=DELTA),
        f"K = {EXPERTS[0]}, N = {EXPERTS[1]}, ε = {EPSILON}",
    )
    for name in ("bandit_to_experts", "local_exp4", "batched_exp4")
}


def rows(docs: Path) -> dict[str, tuple[str, list[Verdict]]]:
    """{paper: (title, its rows)}, from docs/verdicts.toml."""
    read = tomllib.loads((docs / "verdicts.toml").read_text(encoding="utf-8"))["paper"]
    return {paper["name"]: (paper["title"], [Verdict(**claim) for claim in paper["claim"]]) for paper in read}


def write(docs: Path, studies: dict[str, Study]) -> Path:
    """Write the tables into docs/verdicts.md, between their marks.

    Parameters
    ----------
    docs : Path
        The directory of the documentation.
    studies : dict
        All studies by name, which say their seeds.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ValueError
        The page has no marks, or a row names a study, a statement or an algorithm that is not there.
    """
    page = docs / "verdicts.md"
    text = page.read_text(encoding="utf-8")
    if len(re.findall(f"^{BEGIN}$.*^{END}$", text, flags=re.M | re.S)) != 1:
        raise ValueError(f"{page}: give it one pair of lines, {BEGIN} and {END}")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{tables(docs, studies)}\n{END}{after}", encoding="utf-8")
    return page


def tables(docs: Path, studies: dict[str, Study]) -> str:
    """A heading, a count and a table for every paper, as Markdown."""
    parts = []
    for title, claims in rows(docs).values():
        counts = "; ".join(f"{n} {word}" for word in WORDS if (n := sum(row.verdict == word for row in claims)))
        table = [HEADINGS, ["---"] * len(HEADINGS), *(cells(row, docs, studies) for row in claims)]
        lines = "\n".join(f"| {' | '.join(line)} |" for line in table)
        parts.append(f"## {title}\n\n{len(claims)} rows: {counts}.\n\n{lines}")
    return "\n\n".join(parts)


def cells(row: Verdict, docs: Path, studies: dict[str, Study]) -> list[str]:
    """The cells of a row, as Markdown with line breaks and pictures. ValueError where it names what is not there."""
    if row.verdict not in WORDS:
        raise ValueError(f"{row.number}: verdict = {row.verdict!r}: give one of {', '.join(WORDS)}")
    measured, picture = [], ""
    if row.study:
        if row.study not in studies:
            raise ValueError(f"{row.number}: there is no study {row.study!r}")
        measured.append(_measured(row, docs) + (_seeds(studies[row.study]) if row.drawn else ""))
        measured.append(f"`jaxbandits reproduce {row.study} --full`")
        if row.picture:
            paper, figure = row.study.split("/")
            place = f"figures/{paper}/{figure}-{row.picture}.png"
            if row.picture not in studies[row.study].figures:
                raise ValueError(f"{row.number}: {row.study} has no picture {row.picture!r}")
            picture = f'<img src="{place}" alt="{row.number}" width="{THUMBNAIL}">'
    if row.audited:
        measured.append(f"{_audit(row, docs)}; `jaxbandits audit {row.audited}`")
    ground = row.ground
    if row.bound:
        bound, sizes = BOUNDS[row.bound]
        plays = useful_from(bound)
        step = 10 ** max(0, len(str(plays)) - 2)
        plays += -plays % step  # two digits, rounded up
        ground += f" With constants the bound is below T only from {plays:,} plays on ({sizes})."
    texts = [text.replace("|", "\\|").replace("<", "&lt;") for text in (row.number, row.claim, row.verdict, ground)]
    return [*texts, "<br>".join(measured), picture]


def useful_from(bound: Callable[[int], float]) -> int:
    """From how many plays on a bound that grows more slowly than T is below it, to one per cent.

    >>> useful_from(lambda horizon: 100 * horizon**0.5)
    10048
    """
    low, high = 1, 2
    while bound(high) >= high:
        low, high = high, 2 * high
    while high > 1.01 * low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return high


def _measured(row: Verdict, docs: Path) -> str:
    """What the page of a study says about the row's statement."""
    for line in pages.written(row.study, docs).splitlines():
        found = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(found) == 4 and found[0] == row.statement:
            return found[2]
    raise ValueError(f"{row.number}: {pages.page_of(row.study, docs)} has no row {row.statement!r} of {row.study}")


def _seeds(study: Study) -> str:
    """How many seeds the sweeps of a study have at full size, in brackets: the fewest and the most."""
    given = [one.settings["seeds"] for one in study.sweeps(True).values()]
    numbers = sorted({x if isinstance(x, int) else len(x) for x in given})
    return f" ({' to '.join(f'{x:,}' for x in dict.fromkeys([numbers[0], numbers[-1]]))} seeds)" if numbers else ""


def _audit(row: Verdict, docs: Path) -> str:
    """The audit of an algorithm, from the table of docs/privacy.md."""
    for line in (docs / "privacy.md").read_text(encoding="utf-8").splitlines():
        found = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(found) == 8 and found[0] == f"`{row.audited}`":
            return f"audited: at least {found[6]} of a claimed ε of {found[3]} is spent (10⁶ runs, 95%)"
    raise ValueError(f"{row.number}: docs/privacy.md has no audit of {row.audited!r}")

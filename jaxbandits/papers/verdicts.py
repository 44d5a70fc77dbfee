"""What became of every numbered claim of the papers: the records of verdicts.toml, and the lines of studies they name.

A claim has two words of one list: `printed`, for what our copy of the paper prints, and `reading`, for what a reading
that is named is worth. The page docs/verdicts.md, the last column of the tables of studies and `jaxbandits reproduce`
show both.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

PROVED, REACHED, NOT_CONTRADICTED = "proved or enumerated here", "reached", "not contradicted"
MEASURED, RANGE, FAILS, OTHER = "measured here", "true from a range on", "fails", "true of another algorithm"
UNDECIDABLE, NOT_READABLE = "cannot be decided", "cannot be read from our copy"
NOT_SETTLED, NO_CLAIM = "not settled", "no claim"
DECIDED = (PROVED, REACHED, NOT_CONTRADICTED, MEASURED, RANGE, FAILS, OTHER)
WORDS = (*DECIDED, UNDECIDABLE, NOT_READABLE, NOT_SETTLED, NO_CLAIM)
STATED, UNSTATED, OURS, NONE_HELPS = "stated", "not stated", "ours", "none helps"
CONSTANTS = ("", STATED, UNSTATED, OURS, NONE_HELPS)  # of a bound; none: the claim is no bound
FILE = Path(__file__).with_suffix(".toml")


class Verdict(NamedTuple):
    """One numbered claim of a paper, and what became of it."""

    number: str  # as the paper numbers it
    claim: str  # in one line
    printed: str  # one of WORDS
    ground: str  # why that word
    reading: str = ""  # one of WORDS, of a reading; none where there is no other
    under: str = ""  # which reading, and its own evidence
    constants: str = ""  # one of CONSTANTS
    copy: str = ""  # the statement in the characters of our copy
    lost: str = ""  # what our copy of it has lost
    would_change: str = ""  # the measurement that would have changed a word
    rows: tuple[str, ...] = ()  # "PAPER/FIGURE: statement" of what is measured about it; * is any text
    study: str = ""  # PAPER/FIGURE, of the line that is shown
    statement: str = ""  # that line
    picture: str = ""  # of that study
    bound: str = ""  # one of `BOUNDS` of docs/verdicts.py
    audited: str = ""  # an algorithm whose privacy was audited
    drawn: bool = True  # whether the line that is shown comes from seeds
    figures: Mapping[str, str] = MappingProxyType({})  # {name} in ground, under, would_change -> where it is from

    @property
    def both_words(self) -> tuple[str, ...]:
        return (self.printed, self.reading) if self.reading else (self.printed,)

    def about(self, study: str, statement: str) -> bool:
        """Whether a line of a study's table is about this claim."""
        patterns = (pattern.partition(": ")[::2] for pattern in self.rows)
        likes = (".*".join(map(re.escape, text.split("*"))) for name, text in patterns if name == study)
        return any(re.fullmatch(like, statement) for like in likes)

    def say_words(self) -> str:
        """Both words, such as "fails; under a reading: cannot be decided"."""
        return "; under a reading: ".join(self.both_words)


@cache
def read_verdicts(path: Path = FILE) -> dict[str, dict]:
    """{paper: its record: title, numbered, and claim, a list of `Verdict`}."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))["paper"]
    return {paper["name"]: paper | {"claim": [Verdict(**claim) for claim in paper["claim"]]} for paper in found}


def claim_finder(study: str, path: Path = FILE) -> Callable[[str], tuple[str, Verdict] | None]:
    """A function of a line's statement: the claim it is about and that claim's name, or None.

    ValueError where there are two.
    """
    claims = [(name, row) for name, paper in read_verdicts(path).items() for row in paper["claim"]]

    def find_claim(statement: str) -> tuple[str, Verdict] | None:
        found = [(paper, row) for paper, row in claims if row.about(study, statement)]
        if len(found) > 1:
            numbers = ", ".join(row.number for _, row in found)
            raise ValueError(f"{path.name}: {numbers} name {study}: {statement!r}: leave one of them")
        of_paper = study.split("/")[0]
        names = [(row.number if paper == of_paper else f"{paper}, {row.number}", row) for paper, row in found]
        return names[0] if names else None

    return find_claim


def word_finder(study: str, path: Path = FILE, *, words: bool = True) -> Callable[[str], str]:
    """A function of a line's statement: the name of the claim it is about, with its words or without, or nothing."""
    find = claim_finder(study, path)

    def name_claim(statement: str) -> str:
        name, row = find(statement) or ("", None)
        return f"{name}: {row.say_words()}" if words and row else name

    return name_claim


def list_claims(study: str, statements: Iterable[str]) -> str:
    """The claims that lines of a study are about, each with its name, the claim and its words."""
    find = claim_finder(study)
    found = {name: row for name, row in filter(None, map(find, statements))}
    return "\n".join(f"{name}: {row.claim}\n    {row.say_words()}" for name, row in found.items())

"""Where the constants come from that this package calls somebody's: the records of provenance.toml.

Whatever a page or a table says of other people's work goes through here: `as_printed` says which constants are printed
in a text that was read, and `Record.quote_claim` what may be written under "the paper says".
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

READ = "paper, read"
RECORD_KINDS = (READ, "paper, second-hand", "code, read", "recalled", "ours")
UNKNOWN = "-"  # what a table says where nobody has read the paper


class ProvenanceRecord(NamedTuple):
    """Where one constant comes from, and what its author claims."""

    name: str
    kind: str  # one of KINDS
    source: str  # the publication or the repository; empty where there is none
    where: str  # theorem, algorithm or file
    claims: str  # what is claimed, in one line
    formulas: str  # page and section of docs/formulas
    algorithm: str = ""  # name in the catalogue; empty for a record of a study's rows
    settings: Mapping[str, Any] = MappingProxyType({})  # arguments that give these constants
    up_to: float | None = None  # the largest epsilon that is claimed, None without a limit
    range: str = ""  # the same in words
    rewards: str = "bounded"  # "unbounded": the author's rewards differ by any amount
    studies: Mapping[str, list[str]] = MappingProxyType({})  # study (`*`: any) -> beginnings of statements

    @property
    def read(self) -> bool:
        """Whether the paper's own text was read."""
        return self.kind == READ

    def within(self, epsilon: float) -> bool:
        """Whether the author's claim is about this epsilon."""
        return self.up_to is None or epsilon <= self.up_to

    def quote_claim(self, claim: str) -> str:
        """What a table may say under "the paper says": the claim and its range, nothing where it is ours, else "-".

        >>> records()["batched_exp4"].quote_claim("at most what is named")
        'at most what is named (ε ≤ 1, δ ≤ 1)'
        >>> [records()[name].quote_claim("at most what is named") for name in ("dp_se", "ldp_ucb")]
        ['-', '']
        """
        if not self.read:
            return "" if self.kind == "ours" else UNKNOWN
        return f"{claim} ({self.range})" if self.range else claim

    def kind_and_source(self) -> str:
        """Kind and source in a few words.

        >>> records()["fed_ucb_rounds"].kind_and_source()
        'recalled: Dubey and Pentland 2020'
        """
        return f"{self.kind}: {self.source}" if self.source else self.kind


@cache
def records() -> dict[str, ProvenanceRecord]:
    """Every record by its name, in the order of the file. ValueError for a kind that there is not."""
    text = (Path(__file__).parent / "provenance.toml").read_text(encoding="utf-8")
    found = {name: ProvenanceRecord(name=name, **fields) for name, fields in tomllib.loads(text).items()}
    for record in found.values():
        if record.kind not in RECORD_KINDS:
            known = ", ".join(RECORD_KINDS)
            raise ValueError(f"provenance.toml: {record.name}: kind = {record.kind!r} is none of {known}")
    return found


def of_algorithm(name: str) -> list[ProvenanceRecord]:
    """The records of an algorithm of the catalogue."""
    return [record for record in records().values() if record.algorithm == name]


def as_printed(name: str) -> ProvenanceRecord | None:
    """The record of the constants that a text prints for an algorithm, None where no such text was read.

    >>> as_printed("robust_elimination").where.split(";")[0], as_printed("median_elimination")
    ('Theorems 1.3 and 1.4', None)
    """
    return next((record for record in of_algorithm(name) if record.read), None)

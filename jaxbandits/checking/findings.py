"""The findings of a check, in words."""

import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

from jaxbandits.source_places import place_of_error

# messages of `sweeps` end with "(file:line)" or "(in Program.act, file:line)"
_WITH_PLACE = re.compile(r"(?P<text>.*) \((?:(?P<inside>in .*), )?(?P<place>[^()]+:\d+)\)")

Faults = Iterator[tuple[str, str]]  # what a rule gives: messages and places


class Finding(NamedTuple):
    """One thing that breaks the contract of a part.

    Attributes
    ----------
    rule : str
        Name of the rule that is broken, a function of `jaxbandits.checking`; its docstring says what it promises.
    message : str
        What is wrong and how to mend it, in one line.
    where : str
        ``file:line`` in the author's code, or an empty string where it is not known.
    """

    rule: str
    message: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" + (f"\n    {self.where}" if self.where else "")


class Check(NamedTuple):
    """The findings of `jaxbandits.check`. Prints as a list of findings, or as one line where there are none.

    Attributes
    ----------
    about : str
        What was checked, in words.
    findings : tuple of Finding
        Everything that breaks the contract, in the order of the rules.
    rules : tuple of str
        The rules that were looked at. Where a part cannot be built or traced, nothing of it is played.
    """

    about: str
    findings: tuple[Finding, ...]
    rules: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def __repr__(self) -> str:
        if self.passed:
            return f"{self.about}: passed, {len(self.rules)} rules"
        number = "1 finding" if len(self.findings) == 1 else f"{len(self.findings)} findings"
        return "\n".join([f"{self.about}: {number}", *(f"  {finding}" for finding in self.findings)])


def one_line(text: object) -> str:
    """A message without line breaks and without the framework's remarks about its own traceback."""
    words = " ".join(str(text).split())
    return words.split(" -------------------- For simplicity, JAX has removed")[0]


def described(error: BaseException) -> str:
    """An error as a line of text."""
    return f"{type(error).__name__}: {one_line(error)}"


def told(label: str, where: str, look: Callable[..., Any], *arguments: Any) -> Generator[tuple[str, str], None, Any]:
    """Call what raises an error about a part, as sweeps do before they run: its message, and the place that it names,
    else `where`. Returns what the call gives, None where it fails.

    label: what the message calls the algorithm; the check is about nothing else.
    """
    try:
        return look(*arguments)
    except (TypeError, ValueError) as error:
        if isinstance(error, TypeError) and place_of_error(error):  # the part's own code fails
            raise
        where = (place_of_error(error.__cause__) if error.__cause__ is not None else "") or where
        text = str(error).removeprefix(f"{label}: ").removeprefix(f"{label!r}: ").removeprefix(f"{label!r} ")
        named = _WITH_PLACE.fullmatch(one_line(text))
        if named is None:
            yield text, where
        else:
            yield named["text"] + (f" ({named['inside']})" if named["inside"] else ""), named["place"]


def found_by(rule: Callable[..., Any], *arguments: Any) -> list[Finding]:
    """Run a rule: what it yields, and the error that it stopped with, as findings.

    A part's SystemExit is an error too.
    """
    findings = []
    try:
        for message, where in rule(*arguments):
            findings.append(Finding(rule.__name__, one_line(message), where))
    except (Exception, SystemExit) as error:
        findings.append(Finding(rule.__name__, described(error), place_of_error(error)))
    return findings

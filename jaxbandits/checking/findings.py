"""The findings of a check, in words."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jaxbandits.contract import place_of

Faults = Iterator[tuple[str, Any]]  # what a rule gives: messages, and places or the functions that they are about


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


def found_by(rule: Callable[..., Any], *arguments: Any) -> list[Finding]:
    """Run a rule: what it yields, and the error that it stopped with, as findings.

    A part's SystemExit is an error too.
    """
    findings = []
    try:
        for message, where in rule(*arguments):
            findings.append(Finding(rule.__name__, one_line(message), place_of(where)))
    except (Exception, SystemExit) as error:
        findings.append(Finding(rule.__name__, described(error), place_of(error)))
    return findings

"""What a check found, and where in the author's files it is."""

import functools
import itertools
import os
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import NamedTuple

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib"))


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
    """What `jaxbandits.check` found. Prints as a list of findings, or as one line where there are none.

    Attributes
    ----------
    about : str
        What was checked, in words.
    findings : tuple of Finding
        Everything that breaks the contract, in the order in which it was found.
    rules : tuple of str
        The rules that were looked at. Where a part cannot be built or traced, nothing of it is played.
    """

    about: str
    findings: tuple[Finding, ...]
    rules: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __repr__(self) -> str:
        if self.passed:
            return f"{self.about}: passed, {len(self.rules)} rules"
        number = "1 finding" if len(self.findings) == 1 else f"{len(self.findings)} findings"
        return "\n".join([f"{self.about}: {number}", *(f"  {finding}" for finding in self.findings)])


def one_line(text) -> str:
    """A message without line breaks and without the framework's remarks about its own traceback."""
    words = " ".join(str(text).split())
    return words.split(" -------------------- For simplicity, JAX has removed")[0]


def of_author(path: str) -> bool:
    """Whether a file is neither of this package, nor of an installed or the standard library."""
    inside = path.startswith((_PACKAGE, *_LIBRARIES)) or "site-packages" in path or "dist-packages" in path
    return not inside and not path.startswith("<frozen")


def place_of_frames(frames) -> str:
    """The innermost of (file, line) pairs, the outermost first, that is the author's."""
    places = [f"{path}:{line}" for path, line in frames if of_author(path)]
    return places[-1] if places else ""


def place_of_caller() -> str:
    """The author's line that is being run, as far in as there is one."""
    frame = sys._getframe(1)
    while frame is not None and not of_author(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def place_of_error(error: BaseException) -> str:
    """Where the author's code raised an error, or called what raised it."""
    return place_of_frames((frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__))


def place_of_function(function) -> str:
    """Where an author's function, or the function a partial or a decorator wraps, is defined."""
    for _ in itertools.repeat(None, 20):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return place_of_frames([(code.co_filename, code.co_firstlineno)]) if code is not None else ""


def name_of_part(part) -> str:
    """What a factory, a partial of one or a called part is called."""
    if isinstance(part, functools.partial):
        return name_of_part(part.func)
    config = getattr(part, "config", None)
    if isinstance(config, dict) and "name" in config:
        return str(config["name"])
    return str(getattr(part, "__name__", type(part).__name__))


def described(error: BaseException) -> str:
    """An error as a line of text."""
    return f"{type(error).__name__}: {one_line(error)}"


def found_by(rule, *arguments) -> list[Finding]:
    """Run a rule: what it yields, and the error that it stopped with, as findings. A part's SystemExit is an error too."""
    findings = []
    try:
        for message, where in rule(*arguments):
            findings.append(Finding(rule.__name__, one_line(message), where))
    except (Exception, SystemExit) as error:
        findings.append(Finding(rule.__name__, described(error), place_of_error(error)))
    return findings

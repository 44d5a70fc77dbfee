"""What a part cites, from its docstring."""

import re
import sys
from collections.abc import Callable
from typing import Any

from jaxbandits.declared import sections

_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
CITED = re.compile(rf"{_YEAR.pattern}|\"|et al\\.")


def join_lines(text: str) -> str:
    return " ".join(text.split())


def paper(factory: Callable[..., Any]) -> str:
    """What a part cites.

    Its docstring's References where they name a year, without sentences at their end that cite nothing; else the first
    paragraph of its module's docstring that cites a paper.
    """
    references = join_lines(re.sub(r"\.\. \[\d+\] ", "", sections(factory.__doc__).get("References", "")))
    if not _YEAR.search(references):
        for paragraph in sections(sys.modules[factory.__module__].__doc__)[""].split("\n\n"):
            if CITED.search(paragraph):
                return re.split(r" (?:Axes|Draws)\b", join_lines(paragraph))[0].rstrip(".")
    sentences = re.split(r"(?<=[.]) (?=[A-Z])", references)
    while len(sentences) > 1 and not re.search(rf"{CITED.pattern}|docs/", sentences[-1]):
        sentences.pop()
    return " ".join(sentences).rstrip(".")

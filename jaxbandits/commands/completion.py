"""`jaxbandits completion SHELL`: a script that completes commands, options, files and names of parts."""

import argparse
from pathlib import Path
from typing import Any

import shtab

from jaxbandits import algorithms, catalogue, environments, papers
from jaxbandits.commands.listing import LISTED_KINDS


def run(given: argparse.Namespace) -> int:
    """Print the script."""
    print(script(given.shell, given.parser))
    return 0


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script of a shell, with the names of today's parts.

    shell: "bash", "zsh" or "fish". The parser's commands are completed: its actions are told what completes them.

    >>> parser = argparse.ArgumentParser("jaxbandits")
    >>> _ = parser.add_argument("--seeds")
    >>> "--seeds" in script("bash", parser)
    True
    """
    studies = papers.all_studies()
    names = {
        ("list", "what"): [*LISTED_KINDS, "papers", *algorithms.__all__, *environments.__all__],
        ("audit", "name"): list(catalogue.private()),
        ("check", "algorithm"): list(algorithms.__all__),
        ("check", "environment"): list(environments.__all__),
        ("reproduce", "own"): list(algorithms.__all__),
        ("reproduce", "name"): ["all", *studies, *dict.fromkeys(name.split("/")[0] for name in studies)],
    }
    for command, inner in _commands(parser).items():
        for action in inner._actions:
            known = names.get((command, action.dest))
            if known:
                action.choices = known
            elif action.type is Path:
                action.complete = shtab.DIRECTORY if "DIR" in str(action.metavar) else shtab.FILE
    return shtab.complete(parser, shell=shell)


def _commands(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """The parsers of the sub-commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}

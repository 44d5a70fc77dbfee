"""What the child process of a check runs."""

import json
import pickle
from pathlib import Path

from jaxbandits.checking.check import here
from jaxbandits.checking.child import enter


def main(name: str) -> None:
    """The child: read the request, look at every rule, write the result."""
    enter()
    directory = Path(name)
    request = pickle.loads((directory / "request.pickle").read_bytes())

    with open(directory / "progress", "w") as progress:

        def report(rule: str) -> None:
            print(rule, file=progress, flush=True)

        findings, rules = here(request, report)
    (directory / "result.json").write_text(json.dumps([findings, rules]))

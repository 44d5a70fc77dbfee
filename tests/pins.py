"""What every case of the catalogue computed when its results were last looked at: tests/pinned.json.

`make pins` writes the file, and the hashes of the package's code (`jaxbandits.sweeps.identity.pinned_code`), once the
results are the same as before or the version number of a part was raised. A refactored program with the same results
is so pinned anew.
"""

import hashlib
import json
from pathlib import Path

import jax
import numpy as np
from cases import programs_of

from jaxbandits.checking.subject import Subject
from jaxbandits.sweeps.compilation.program_digest import fingerprint
from jaxbandits.sweeps.identity.library_parts import Altered, describe_part, version_numbers
from jaxbandits.sweeps.plan import Cell

FILE = Path(__file__).with_name("pinned.json")
FIRST = 4  # seeds whose results are kept
TOLERANCE = 1e-6


def pinned() -> dict:
    """{"jax": version, "cases": {name: pin}}."""
    return json.loads(FILE.read_text()) if FILE.exists() else {"jax": jax.__version__, "cases": {}}


def pin(subject: Subject) -> dict:
    """The pin of a case: version numbers, the traced program, and what its first seeds did."""
    played, programs = subject.played(), programs_of(subject)
    names = " ".join([*programs, fingerprint([closed for closed, _ in programs.values()], sorted(played))])
    return {
        "versions": versions(subject.cell),
        "program": hashlib.sha256(names.encode()).hexdigest(),
        "pulls": played["pulls"][:FIRST].tolist() if "pulls" in played else None,
        "regret": played["regret"][:FIRST, -1].tolist(),
    }


def versions(cell: Cell) -> list:
    """Name and version number of every part, those inside others included."""
    parts = (cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary)
    return [_numbers(part) for part in parts]


def _numbers(part):
    if part is None:
        return None
    try:
        return describe_part(part)[:2]
    except Altered:  # an argument without a description, such as an optax transformation: names and numbers alone
        return [part.config["name"], version_numbers(part.version)]


def same_results(one: dict, other: dict) -> bool:
    """Whether two pins did the same: integers exactly, regrets to rounding."""
    return one["pulls"] == other["pulls"] and np.allclose(
        one["regret"], other["regret"], rtol=TOLERANCE, atol=TOLERANCE
    )


def fault(name: str, now: dict, before: dict | None, jax_version: str) -> str:
    """Why `now` is not what is pinned, in one line; empty where it is."""
    if before is None:
        return f"{name} is not pinned: run `make pins`"
    if now["versions"] == before["versions"] and not same_results(now, before):
        return (
            f"{name} gives other results under the same version numbers {now['versions']}: "
            "raise the version of what changed"
        )
    if now["versions"] != before["versions"]:
        return f"{name} has new version numbers: say so in the changelog and run `make pins`"
    if jax_version == jax.__version__ and now["program"] != before["program"]:
        return f"{name} has another program with the same results: run `make pins`"
    return ""


def write(found: dict) -> None:
    """Pin what was found, unless results changed under a version number that did not."""
    cases = pinned()["cases"]
    faults = [fault(name, now, cases.get(name), "") for name, now in found.items()]
    wrong = [text for text in faults if "the same version numbers" in text]
    if wrong:
        raise AssertionError("\n".join(wrong))
    lines = [f"{json.dumps(name)}: {json.dumps(now)}" for name, now in sorted(found.items())]
    FILE.write_text(f'{{"jax": "{jax.__version__}", "cases": {{\n' + ",\n".join(lines) + "\n}}\n")

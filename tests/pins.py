"""What every case of the catalogue computed when its results were last looked at: tests/pinned.json.

A chunk is found under a key that holds the traced program of one lane and its numbers. What no such trace shows, such
as regret on the host, the lowering of an operation of ours or an option of a compiler, has one number, `KEYS` in
`jaxbandits/sweeps/storage/store.py`. So results that change under the same key and the same number are a fault.

`make pins` writes the file where results are the same as before. `make pins CHANGED="ucb1,exp3"` also takes other
results of the cases that it names.
"""

import hashlib
import json
from pathlib import Path

import jax
import numpy as np
from cases import programs_of

from jaxbandits.checking.subject import Subject
from jaxbandits.sweeps.compilation.program_digest import fingerprint
from jaxbandits.sweeps.identity import digest_of_group, inputs_of_cell
from jaxbandits.sweeps.storage.store import KEYS

FILE = Path(__file__).with_name("pinned.json")
FIRST = 4  # seeds whose results are kept
TOLERANCE = 1e-6


def pinned() -> dict:
    """{"jax": version, "keys": KEYS, "cases": {name: pin}}."""
    return json.loads(FILE.read_text()) if FILE.exists() else {"jax": jax.__version__, "keys": KEYS, "cases": {}}


def pin(subject: Subject) -> dict:
    """The pin of a case: what its chunks' keys are made of, the traced call, and what its first seeds did."""
    played, programs = subject.play_seeds(), programs_of(subject)
    names = " ".join([*programs, fingerprint([closed for closed, _ in programs.values()], sorted(played))])
    return {
        "key": identity(subject),
        "program": hashlib.sha256(names.encode()).hexdigest(),
        "pulls": played["pulls"][:FIRST].tolist() if "pulls" in played else None,
        "regret": played["regret"][:FIRST, -1].tolist(),
    }


def identity(subject: Subject) -> str:
    """What tells a case's chunks from others: the traced program of a lane, its numbers, and what the host is given."""
    laid_out = subject.plan
    group, cell = laid_out.groups[0], laid_out.cells[0]
    program = digest_of_group(group, cell, laid_out.dtype, lasting=True, batch=False)
    content = [program, repr(group.schedule), *inputs_of_cell(cell, group.times, laid_out.dtype, {})]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def same_results(one: dict, other: dict) -> bool:
    """Whether two pins did the same: integers exactly, regrets to rounding."""
    near = np.allclose(one["regret"], other["regret"], rtol=TOLERANCE, atol=TOLERANCE)
    return one["pulls"] == other["pulls"] and near


def fault(name: str, now: dict, before: dict) -> str:
    """Why a case is not what is pinned, in one line; empty where it is. before: the whole file."""
    then = before["cases"].get(name)
    if then is None:
        return ""
    same_jax = before["jax"] == jax.__version__
    if not same_results(now, then):
        if same_jax and now["key"] == then["key"] and before["keys"] >= KEYS:
            return f"{name} gives other results under the same keys of chunks: raise KEYS in storage/store.py"
        return f"{name} gives other results: where they are meant, tell the changelog and `make pins CHANGED=...`"
    if same_jax and (now["program"], now["key"]) != (then["program"], then["key"]):
        return f"{name} has another program or key with the same results: run `make pins`"
    return ""


def write(found: dict, changed: list[str]) -> None:
    """Pin what was found. AssertionError where chunks would be stale, or results changed that are not named."""
    before = pinned()
    faults = {name: fault(name, now, before) for name, now in found.items()}
    wrong = [x for name, x in faults.items() if "raise KEYS" in x or ("other results" in x and name not in changed)]
    if wrong:
        raise AssertionError("\n".join(wrong))
    lines = [f"{json.dumps(name)}: {json.dumps(now)}" for name, now in sorted(found.items())]
    head = f'{{"jax": "{jax.__version__}", "keys": {KEYS}, "cases": {{\n'
    FILE.write_text(head + ",\n".join(lines) + "\n}}\n")

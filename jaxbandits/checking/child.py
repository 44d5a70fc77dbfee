"""The check in a process of its own, so that a part that kills the process is found, too.

It is used where the parts can be imported in another process.
"""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from jaxbandits.checking.findings import Finding
from jaxbandits.checking.subject import SLOTS, Subject
from jaxbandits.protocol import Adversary, Environment

TIME_LIMIT = 1800  # seconds of a whole check: a part that never comes back is a finding
START = (
    "import pickle, sys; sys.path[:], packed = pickle.load(sys.stdin.buffer); "
    "from jaxbandits.checking import check, child; child.main(packed, sys.modules['jaxbandits.checking.check'].here)"
)
# Whether this is the child: a module that checks its own part when it is imported starts no further one.
_inside = False

Found = tuple[list[Finding], list[str]]


def main(packed: bytes, here: Callable[..., Found]) -> None:
    """What the child runs: it writes a line when it begins with a rule, and at the end one with what it found."""
    global _inside
    _inside = True
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a part prints is none of these lines
    found = here(pickle.loads(packed), lambda rule: print(json.dumps(rule), file=lines))
    print(json.dumps(found), file=lines)


def in_child(subject: Subject) -> Found | None:
    """Findings and rules of `check.here`, made in a child process; None where the parts cannot be loaded there.

    A child that dies, is stopped or takes too long gives what it had reported until then, and one finding more.
    """
    packed = None if _inside or not sys.executable else _packed(subject)
    if packed is None:
        return None
    try:
        ended: Any = subprocess.run(
            [sys.executable, "-c", START],
            input=pickle.dumps(([str(entry) for entry in sys.path], packed)),
            env=os.environ | {"JAX_PLATFORMS": "cpu"},  # the parent may hold the accelerator's memory
            capture_output=True,
            timeout=TIME_LIMIT,
            check=False,
        )
        code = ended.returncode
    except subprocess.TimeoutExpired as error:
        ended, code = error, None
    rules = [json.loads(line) for line in (ended.stdout or b"").splitlines()]
    if not rules:  # it could not load the parts
        return None
    last = rules[-1]
    if code == 0 and isinstance(last, list):
        return [Finding(*finding) for finding in last[0]], last[1]
    if code is None:
        how = f"was stopped after {TIME_LIMIT} seconds"
    else:
        how = f"died with signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    output = (ended.stderr or b"").decode(errors="replace").strip().splitlines()
    said = f" It said last: {output[-1]}" if output and code is not None and code > 0 else ""
    return [Finding(last, f"the process {how} while the rule {last!r} was looked at.{said}")], rules


def _packed(subject: Subject) -> bytes | None:
    """The subject for another process; None where it holds what cannot be imported there by name."""
    subject = copy.copy(subject)
    for slot in SLOTS:
        part = getattr(subject, slot)
        if isinstance(part, Environment | Adversary) and part.remake is not None:
            setattr(subject, slot, part.remake)
    try:
        packed = pickle.dumps(subject)
    except Exception:  # a closure, a lambda, a module object: whatever its own pickling raises
        return None
    return None if b"__main__" in packed or b"__mp_main__" in packed else packed

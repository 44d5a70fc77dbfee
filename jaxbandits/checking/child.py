"""The check in a process of its own, so that a part that kills the process is found, too.

It is used where the parts can be imported in another process.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from jaxbandits.checking.findings import Finding
from jaxbandits.protocol import Adversary, Environment

TIME_LIMIT = 1800  # seconds of a whole check: a part that never comes back is a finding
START = (
    "import json, sys; sys.path[:] = json.load(open(sys.argv[1] + '/path.json')); "
    "from jaxbandits.checking.child import main; main(sys.argv[1])"
)
_inside = (
    False  # whether this is the child: a module that checks its own part when it is imported starts no further one
)


def in_child(request: Any) -> tuple[list[Finding], list[str]] | None:
    """Findings and rules of `check.here`, made in a child process; None where the parts cannot be loaded there.

    A child that dies, is stopped or takes too long gives what it had reported until then, and one finding more.
    """
    packed = None if _inside or not sys.executable else _packed(request)
    if packed is None:
        return None
    with tempfile.TemporaryDirectory(prefix="jaxbandits-check-") as name:
        directory = Path(name)
        (directory / "request.pickle").write_bytes(packed)
        (directory / "path.json").write_text(json.dumps([str(entry) for entry in sys.path]))
        command = [sys.executable, "-c", START, name]
        environment = os.environ | {"JAX_PLATFORMS": "cpu"}  # the parent may hold the accelerator's memory
        with open(directory / "output", "wb") as output:
            try:
                code = subprocess.run(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=TIME_LIMIT,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        return _read(directory, code)


def _packed(request: Any) -> bytes | None:
    """The request for another process; None where it holds what cannot be imported there by name."""
    parts = [
        part.remake if isinstance(part, Environment | Adversary) and part.remake is not None else part
        for part in request
    ]
    try:
        packed = pickle.dumps(request._replace(**dict(zip(request._fields, parts, strict=True))))
    except Exception:  # a closure, a lambda, a module object: whatever its own pickling raises
        return None
    return None if b"__main__" in packed or b"__mp_main__" in packed else packed


def _read(directory: Path, code: int | None) -> tuple[list[Finding], list[str]] | None:
    """What a child left behind."""
    result = directory / "result.json"
    if code == 0 and result.exists():
        findings, rules = json.loads(result.read_text())
        return [Finding(*finding) for finding in findings], rules
    progress = directory / "progress"
    rules = progress.read_text().split() if progress.exists() else []
    if not rules:  # it could not load the parts
        return None
    if code is None:
        how = f"was stopped after {TIME_LIMIT} seconds"
    elif code < 0:
        how = f"died with signal {signal.Signals(-code).name}"
    else:
        how = f"ended with exit code {code}"
    output = (directory / "output").read_text(errors="replace").strip().splitlines()
    last = f" It said last: {output[-1]}" if output and code is not None and code > 0 else ""
    message = f"the process {how} while the rule {rules[-1]!r} was looked at.{last}"
    return [Finding(rules[-1], message)], rules


def main(name: str) -> None:
    """The child: read the request, look at every rule, write the result."""
    global _inside
    _inside = True
    directory = Path(name)
    request = pickle.loads((directory / "request.pickle").read_bytes())

    from jaxbandits.checking.check import here

    with open(directory / "progress", "w") as progress:

        def report(rule: str) -> None:
            print(rule, file=progress, flush=True)

        findings, rules = here(request, report)
    (directory / "result.json").write_text(json.dumps([findings, rules]))

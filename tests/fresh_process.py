"""Scripts in fresh processes, without the seconds that each of them spends on imports.

`run(script)` and `start(script)` are `python -c script` in a copy (`fork`) of a server, which has imported JAX and the
package and has computed nothing: no device, no compiled program, no part that was built. Where PYTHONPATH holds another
copy of the package, that one is imported anew. What an interpreter or JAX reads when it begins (PYTHONHASHSEED,
variables JAX_...) needs a process of its own, or `config`.
"""

import atexit
import functools
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from pathlib import Path
from typing import Any

PACKAGE = "jaxbandits"
# what JAX would read when it is imported: scripts say themselves where they keep programs
NOT_PASSED_ON = ("JAX_COMPILATION", "JAX_PERSISTENT", "PYTEST")


def environment(**changes: str) -> dict[str, str]:
    """This process's environment variables, but for the tests' cache of JAX."""
    return {name: x for name, x in os.environ.items() if not name.startswith(NOT_PASSED_ON)} | changes


class Process:
    """A script that runs, as `subprocess.Popen` has it."""

    def __init__(self, script: str, arguments: Any, env: dict[str, str], cwd: Any, config: dict[str, Any]) -> None:
        self._files = tempfile.TemporaryDirectory()
        names = [str(Path(self._files.name) / name) for name in ("stdout", "stderr")]
        request = {"script": script, "arguments": [*map(str, arguments)], "env": env, "cwd": str(cwd or os.getcwd())}
        self.pid = server().ask(request | {"files": names, "config": config})
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._waited(0)

    def wait(self, timeout: float = 600) -> int:
        if (code := self._waited(timeout)) is None:
            self.kill()
            raise subprocess.TimeoutExpired("script", timeout)
        return code

    def _waited(self, seconds: float) -> int | None:
        if self.returncode is None:
            self.returncode = server().ask({"wait": self.pid, "seconds": seconds})
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    @property
    def output(self) -> list[str]:
        """What it wrote so far: to stdout, and to stderr."""
        return [(Path(self._files.name) / name).read_text() for name in ("stdout", "stderr")]


def start(script: str, *arguments: Any, env: Any = None, cwd: Any = None, config: Any = None) -> Process:
    """Begin a script. config: settings of JAX, as `jax.config.update` takes them."""
    return Process(script, arguments, environment() if env is None else env, cwd, config or {})


def run(script: str, *arguments: Any, timeout: float = 600, **options: Any) -> Any:
    """A script from its beginning to its end, as `subprocess.run` returns it."""
    process = start(script, *arguments, **options)
    return subprocess.CompletedProcess([script, *arguments], process.wait(timeout), *process.output)


class Server:
    def __init__(self) -> None:
        command = [sys.executable, __file__]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, **pipes, text=True, env=environment())
        self.lock = threading.Lock()
        atexit.register(self.close)

    def ask(self, request: dict[str, Any]) -> Any:
        with self.lock:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the server of fresh processes ended with {self.process.wait()}: see its stderr")
        return json.loads(answer)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@functools.cache
def server() -> Server:
    return Server()


# ---------------------------------------------------------------- in the server


def serve(answers: Any) -> dict[str, Any] | None:
    """Answer requests. Returns in every copy, with the request that it was made for, and at the end with None."""
    running: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = ended(request["wait"], request["seconds"])
            running -= {request["wait"]} if answer is not None else set()
        else:
            answer = os.fork()
            if not answer:
                return request
            running.add(answer)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return None


def ended(pid: int, seconds: float) -> int | None:
    """The exit code of a copy, or None where it still runs after some seconds."""
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.01)


def play(request: dict[str, Any]) -> None:
    """Become the process of a script, and run it."""
    for number, name in enumerate([os.devnull, *request["files"]]):
        opened = os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, number)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    places = [place for place in request["env"].get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:1] = ["", *places]  # the first one was this file's
    sys.argv = ["-c", *request["arguments"]]
    ours = sys.modules[PACKAGE].__path__[0]
    if next((Path(p) / PACKAGE for p in places if (Path(p) / PACKAGE).is_dir()), Path(ours)).resolve() != Path(ours):
        for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
            del sys.modules[name]
    import jax

    for name, value in request["config"].items():
        jax.config.update(name, value)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(request["script"], "<string>", "exec"), main.__dict__)


def imported() -> None:
    """Import what scripts need, and compute nothing."""
    import h5netcdf  # noqa: F401
    import pandas  # noqa: F401
    import scipy.stats  # noqa: F401
    import xarray  # noqa: F401
    from jax._src import xla_bridge

    import jaxbandits.catalogue
    import jaxbandits.cli
    import jaxbandits.sweeps.sweep  # noqa: F401

    assert not xla_bridge._backends, "an import of the package starts a device"


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that an import prints is an answer
    imported()
    gc.collect()
    gc.freeze()  # a copy does not look at what it was given
    asked = serve(answers)
    if asked is not None:
        answers.close()
        play(asked)

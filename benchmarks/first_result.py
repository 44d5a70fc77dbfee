"""What a user waits for before the first result, in fresh processes: imports, and one sweep of UCB1.

    python benchmarks/first_result.py [imports] [sweep] [--turns N]

`imports`: CPU seconds, as wall clock is mostly waiting for the disk, and the package's share of `import jax`. `sweep`:
wall clock, where an earlier process has compiled the programs. Medians of N turns (default: 3).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]

# Every child prints one line of JSON: seconds by name.
IMPORTS = """
import json, time
began = time.process_time()
import jax
between = time.process_time()
import jaxbandits as jb
jb.sweep, jb.algorithms.ucb1, jb.environments.bernoulli_arms
print(json.dumps({"import jax": between - began, "jaxbandits beside it": time.process_time() - between}))
"""
HELP = """
import contextlib, io, json, time
began = time.process_time()
from jaxbandits.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(["--help"])
print(json.dumps({"jaxbandits --help": time.process_time() - began}))
"""
SWEEP = """
import json, time
began = time.perf_counter()
import jax
imported = time.perf_counter()
import jaxbandits as jb
arms = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])
regret = jb.sweep("ucb1", arms, horizon=1000, seeds=100, progress=False).regret[0, :, -1].mean()
float(regret)
print(json.dumps({"import jax": imported - began, "from there to the result": time.perf_counter() - imported}))
"""


def child(script: str, cache: Path) -> dict[str, float]:
    """The figures that a fresh process prints, with a place of its own for compiled programs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_COMP", "JAXBANDITS"))}
    environment |= {"PYTHONPATH": str(HERE), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def medians(turns: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def imports(turns: int, cache: Path) -> dict[str, float]:
    seconds = medians([child(IMPORTS, cache) | child(HELP, cache) for _ in range(turns)])
    return seconds | {"share of import jax": seconds["jaxbandits beside it"] / seconds["import jax"]}


def sweep(turns: int, cache: Path) -> dict[str, float]:
    child(SWEEP, cache)  # compiles
    return medians([child(SWEEP, cache) for _ in range(turns)])


SECTIONS = {"imports": imports, "sweep": sweep}


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("sections", nargs="*", default=list(SECTIONS), metavar="SECTION")
    reading.add_argument("--turns", type=int, default=3)
    given = reading.parse_args()
    if unknown := set(given.sections) - set(SECTIONS):
        reading.error(f"unknown section {min(unknown)!r}: give {' or '.join(SECTIONS)}")
    for name in given.sections:
        with tempfile.TemporaryDirectory() as cache:
            figures = SECTIONS[name](given.turns, Path(cache))
        print(f"{name}: " + ", ".join(f"{what} {value:.3g}" for what, value in figures.items()), flush=True)


if __name__ == "__main__":
    main()

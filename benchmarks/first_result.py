"""What a user waits for before the first result: imports, tracing, compiling, playing and writing, in fresh processes.

    python benchmarks/first_result.py                 the quickstart on eight seeds, imports, and one sweep of UCB1
    python benchmarks/first_result.py quickstart      only that; also: imports, sweep, catalogue
    python benchmarks/first_result.py --json FILE     write the figures there too
    python benchmarks/first_result.py --against DIR   the same for the checkout in DIR, in turns, and ratios
    python benchmarks/first_result.py --turns N       turns of each side (default: 3); the median is shown

A cold run begins with an empty directory of compiled programs, a warm one with the directory that a cold run left.
Seconds are wall clock. Tracing covers lowering; where two threads trace or compile at once the time counts once.
Compiling counts where nothing is traced meanwhile, and playing is what remains of the sweep. `imports` shows CPU
seconds, as wall clock is mostly waiting for the disk. `catalogue` runs every case of the catalogue on one core, cold.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]

# What a child notes of JAX's work: seconds of wall clock, in which a moment counts once.
SPANS = """
import time
spans = {"tracing": [], "compiling": []}
kinds = {"trace": "tracing", "mlir": "tracing", "backend_compile": "compiling", "retrieval": "compiling"}
def note(event, seconds, **_):
    for word, kind in kinds.items():
        if word in event:
            spans[kind].append((time.perf_counter() - seconds, time.perf_counter()))
            return
def union(pairs):
    total, reached = 0.0, 0.0
    for first, last in sorted(pairs):
        total += max(0.0, last - max(first, reached))
        reached = max(reached, last)
    return total
"""
# Every child prints one line of JSON: seconds by name.
QUICKSTART = (
    SPANS
    + """
import json, os, sys, time
began = time.perf_counter()
import jax
jax.monitoring.register_event_duration_secs_listener(note)
written = []
replace = os.replace
def seen(source, target, **keywords):
    replace(source, target, **keywords)
    if os.path.basename(target) == "results.nc":
        written.append(time.perf_counter())
os.replace = seen
from jaxbandits.cli import main
import jaxbandits
jaxbandits.sweep, jaxbandits.algorithms.private_batched
imported = time.perf_counter()
assert main(["run", sys.argv[1], "--out", sys.argv[2], "--quiet"]) == 0
ended = time.perf_counter()
tracing = union(spans["tracing"])
compiling = union(spans["tracing"] + spans["compiling"]) - tracing
print(json.dumps({
    "import": imported - began, "tracing": tracing, "compiling": compiling,
    "playing": written[-1] - imported - tracing - compiling, "writing": ended - written[-1], "total": ended - began,
    "programs": len([1 for pair in spans["compiling"]]),
}))
"""
)
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
json.dumps(float(regret))
print(json.dumps({"import jax": imported - began, "from there to the result": time.perf_counter() - imported}))
"""
CATALOGUE = (
    SPANS
    + """
import json, os
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
import jax
import jaxbandits as jb
from jaxbandits import catalogue
jb.cores(1)
jax.block_until_ready(jax.numpy.zeros(3) + 1)
jax.monitoring.register_event_duration_secs_listener(note)
found = {"seconds": {}, "tracing": {}, "compiling": {}, "programs": {}}
for name, case in catalogue.ALGORITHMS.items():
    began, spans = time.perf_counter(), {"tracing": [], "compiling": []}
    jb.sweep(
        {name: case.algorithm}, case.environment, horizon=case.horizon, seeds=2, checkpoints=2, progress=False,
        reward_adversary=case.reward_adversary, message_adversary=case.message_adversary,
    )
    found["seconds"][name] = time.perf_counter() - began
    found["tracing"][name] = union(spans["tracing"])
    found["compiling"][name] = union(spans["tracing"] + spans["compiling"]) - found["tracing"][name]
    found["programs"][name] = len(spans["compiling"])
print(json.dumps(found))
"""
)


def child(script: str, *arguments: str, tree: Path, cache: Path) -> dict[str, float]:
    """The figures that a fresh process prints, with a checkout's package and a place of its own for programs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_COMP", "JAXBANDITS"))}
    environment |= {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(cache), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        cwd=cache,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def medians(turns: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def quickstart(trees: dict[str, Path], turns: int, room: Path) -> dict[str, dict[str, float]]:
    """Cold and warm seconds of the quickstart on eight seeds, for every checkout in turn."""
    found: dict[str, list[dict[str, float]]] = {f"{name}, {state}": [] for name in trees for state in ("cold", "warm")}
    for turn in range(turns):
        for name, tree in trees.items():
            file = room / f"{turn}-{name}.toml"
            text = (tree / "examples" / "quickstart.toml").read_text()
            file.write_text(text.replace("seeds = 200", "seeds = 8"))
            cache = room / f"cache-{turn}-{name}"
            cache.mkdir()
            for state in ("cold", "warm"):
                out = room / f"out-{turn}-{name}-{state}"
                found[f"{name}, {state}"].append(child(QUICKSTART, str(file), str(out), tree=tree, cache=cache))
            shutil.rmtree(cache)
    return {name: medians(figures) for name, figures in found.items()}


def imports(trees: dict[str, Path], turns: int, room: Path) -> dict[str, dict[str, float]]:
    """CPU seconds of imports, and of `jaxbandits --help`."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for _ in range(turns):
        for name, tree in trees.items():
            found[name].append(child(IMPORTS, tree=tree, cache=room) | child(HELP, tree=tree, cache=room))
    return {name: medians(figures) | _share(medians(figures)) for name, figures in found.items()}


def _share(figures: dict[str, float]) -> dict[str, float]:
    return {"share of import jax": figures["jaxbandits beside it"] / figures["import jax"]}


def sweep(trees: dict[str, Path], turns: int, room: Path) -> dict[str, dict[str, float]]:
    """One sweep of UCB1 in a fresh process whose programs were compiled before."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for turn in range(turns + 1):
        for name, tree in trees.items():
            cache = room / f"sweep-{name}"
            cache.mkdir(exist_ok=True)
            figures = child(SWEEP, tree=tree, cache=cache)
            if turn:
                found[name].append(figures)
    return {name: medians(figures) for name, figures in found.items()}


def catalogue(trees: dict[str, Path], turns: int, room: Path) -> dict[str, dict[str, float]]:
    """Cold seconds of every algorithm of the catalogue on one core, the slowest first, and what they went into."""
    cache = room / "catalogue"
    cache.mkdir()
    found: Any = child(CATALOGUE, tree=HERE, cache=cache)
    order = sorted(found["seconds"], key=lambda name: -found["seconds"][name])
    return {f"here, {what}": {name: values[name] for name in order} for what, values in found.items()}


SECTIONS = {"quickstart": quickstart, "imports": imports, "sweep": sweep, "catalogue": catalogue}


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("sections", nargs="*", choices=[[], *SECTIONS], metavar="SECTION")
    reading.add_argument("--json", type=Path)
    reading.add_argument("--against", type=Path)
    reading.add_argument("--turns", type=int, default=3)
    given = reading.parse_args()
    trees = {"here": HERE} | ({} if given.against is None else {"there": given.against.resolve()})
    figures = {}
    for name in given.sections or ["quickstart", "imports", "sweep"]:
        with tempfile.TemporaryDirectory() as room:
            figures[name] = SECTIONS[name](trees, given.turns, Path(room))
        for row, seconds in figures[name].items():
            print(f"{name}, {row}: " + ", ".join(f"{what} {value:.3g}" for what, value in seconds.items()), flush=True)
        for row in figures[name]:
            other = row.replace("here", "there")
            if other != row and other in figures[name]:
                ratios = {
                    what: value / x for what, value in figures[name][row].items() if (x := figures[name][other][what])
                }
                print(
                    f"{name}, {row} by {other}: " + ", ".join(f"{what} {x:.2f}" for what, x in ratios.items()),
                    flush=True,
                )
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

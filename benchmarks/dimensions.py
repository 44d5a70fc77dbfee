"""Linear learners by the number of features: what compiling takes, a play, and memory, of one core.

    python benchmarks/dimensions.py                       the configurations of `ASKED`
    python benchmarks/dimensions.py --of FOLDER           beside the checkout in FOLDER, in turns, with ratios
    python benchmarks/dimensions.py --bits                whether calls of 16, 128 and 1,024 lanes give the same bits
    python benchmarks/dimensions.py linucb:64 online_ucb:16
    python benchmarks/dimensions.py --turns N             processes of each side, of which the least counts (1)

64 lanes on ten arms that are redrawn at every play; *per arm* on labelled rows in their order, with 14 features of
three classes, else of ten. Every figure is of a process of its own on one core, with no
compiled program on disk. *compile* are the CPU seconds of its first sweep less those of another one, the least of
`REPEATS`, of which *a play* is a share. *peak* is the process's largest resident memory, imports included. `!` marks
what is above what was asked of an idle machine. Where nothing is asked of a ratio, the other checkout does not run.

Seconds were asked of a machine on which commit b8cd27a compiles `linucb` with 64 features in `ASKED_WHERE`. With --of
they are those of this machine: longer by as much as FOLDER, which is to be that commit, takes longer for that.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parents[1]
LANES, REPEATS = 64, 3
PRIVATE = {"epsilon": 1.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "linucb": {},
    "linucb per arm": {},
    "linear_thompson": {},
    "ldp_linucb": PRIVATE,
    "ldp_instrument_ucb": PRIVATE,
    "jdp_linucb": PRIVATE,
    "online_ucb": PRIVATE,
    "hvt_linucb": {"moment_scale": 1.0, "radius_scale": 1e-4},
}


PER_ARM_OF_SHARED = 1.2  # compiling one model an arm of 65 features over one for all arms of 64, at most
ASKED_WHERE = 24.5  # CPU seconds


class Asked(NamedTuple):
    """The most that is asked: seconds, megabytes, and a play over that of commit b8cd27a."""

    compile: float = float("inf")
    peak: float = float("inf")
    ratio: float = float("inf")


ASKED = {
    ("linucb", 8): Asked(ratio=1.05),
    ("linucb", 32): Asked(ratio=0.25),
    ("linucb", 64): Asked(4, 900, 0.15),
    ("linucb", 256): Asked(6),
    ("linucb per arm", 14): Asked(),
    ("linucb per arm", 65): Asked(),
    ("linear_thompson", 64): Asked(4, 900),
    ("ldp_linucb", 8): Asked(ratio=1.05),
    ("ldp_linucb", 32): Asked(ratio=0.25),
    ("ldp_linucb", 64): Asked(4, 900, 0.15),
    ("ldp_instrument_ucb", 8): Asked(),
    ("ldp_instrument_ucb", 64): Asked(),
    ("jdp_linucb", 64): Asked(4, 900),
    ("online_ucb", 8): Asked(ratio=1.05),
    ("online_ucb", 16): Asked(ratio=0.15),
    ("online_ucb", 64): Asked(4, 900),
}

CHILD = """
import json, os, resource, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
from functools import partial
import jaxbandits as jb
import numpy as np
jb.cores(1)
name, dim, settings, lanes, repeats, horizon, bits = json.loads(sys.argv[1])
name, _, per_arm = name.partition(" ")
learner = partial(getattr(jb.algorithms, name), **settings)
world = partial(jb.environments.contextual_linear, num_arms=10, dim=dim)
if per_arm:
    labels = np.arange(1000) % (3 if dim == 14 else 10)
    features = np.random.default_rng(0).normal(size=(1000, dim - 1)) + labels[:, None]
    world = partial(jb.environments.classification, features=features, labels=labels, shuffle=False)

def swept(horizon, seeds=lanes):
    began = time.process_time()
    found = jb.sweep(learner, world, horizon=horizon, seeds=seeds, progress=False, checkpoints=1)
    return time.process_time() - began, found.regret.values.ravel()

if bits:
    one, *more = (swept(60, seeds)[1][:16].tobytes() for seeds in (16, 128, 1024))
    print(json.dumps({"bits": all(one == other for other in more)}))
else:
    first = swept(horizon)[0]
    second = min(swept(horizon)[0] for _ in range(repeats))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    print(json.dumps({"compile": first - second, "play": second / horizon / lanes * 1e6, "peak": peak}))
"""


def measured(folder: Path, name: str, dim: int, bits: bool = False) -> dict[str, Any]:
    """The figures of one configuration, in a fresh process of a checkout with empty caches."""
    with tempfile.TemporaryDirectory() as cache:
        one_thread = {key: "1" for key in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        paths = {"PYTHONPATH": str(folder), "JAXBANDITS_CACHE": cache, "XDG_CACHE_HOME": cache, "JAX_PLATFORMS": "cpu"}
        given = json.dumps([name, dim, SETTINGS[name], LANES, REPEATS, _horizon(dim), bits])
        env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        run = subprocess.run(
            [sys.executable, "-c", CHILD, given], env=env | one_thread | paths, cwd=folder, text=True,
            capture_output=True,
        )  # fmt: skip
    if run.returncode:
        sys.exit(f"{name} with {dim} features in {folder}:\n{run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def _horizon(dim: int) -> int:
    """Plays that are enough to be timed."""
    return 4096 if dim <= 8 else 1024 if dim <= 32 else 256 if dim <= 64 else 64


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME:DIM")
    parser.add_argument("--of", type=Path, help="another checkout")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--bits", action="store_true")
    given = parser.parse_args(words)
    asked = [(name, int(dim)) for name, dim in (word.split(":") for word in given.names)] or list(ASKED)
    folders = [HERE, *([given.of.resolve()] if given.of else [])]
    if given.bits:
        for name, dim in asked:
            print(f"{name:16} d = {dim:3}: {'equal' if measured(HERE, name, dim, True)['bits'] else 'DIFFERENT'}")
        return
    for folder in folders:  # bytecode of modules that only a first sweep imports, which is no compiling of programs
        measured(folder, "linucb", 2)
    pace = 1.0
    if given.of:
        took = min(measured(folders[1], "linucb", 64)["compile"] for _ in range(given.turns))
        pace = took / ASKED_WHERE
        print(f"linucb with 64 features compiles in {took:.1f} s there: 4 s were asked, here that is {4 * pace:.1f}")
    print(f"{'':16} {'d':>4} {'compile, s':>11} {'a play, us':>11} {'peak, MB':>9}" + "   of --of" * bool(given.of))
    plays, compiling = dict[tuple[str, int], float](), dict[tuple[str, int], float]()
    for name, dim in asked:
        limit = ASKED.get((name, dim), Asked())
        sides = folders if given.names or limit.ratio < float("inf") else folders[:1]
        turns = [[measured(folder, name, dim) for folder in sides] for _ in range(given.turns)]
        ours, *other = [{key: min(turn[i][key] for turn in turns) for key in turns[0][0]} for i in range(len(sides))]
        plays[name, dim], compiling[name, dim] = ours["play"], ours["compile"]
        line = f"{name:16} {dim:4} {ours['compile']:10.2f}{_mark(ours['compile'], limit.compile * pace)}"
        line += f" {ours['play']:10.3f}  {ours['peak']:8.0f}{_mark(ours['peak'], limit.peak)}"
        for theirs in other:
            ratio = ours["play"] / theirs["play"]
            line += f"   play {ratio:.3f}{_mark(ratio, limit.ratio)}, compile {ours['compile'] / theirs['compile']:.3f}"
            line += f", peak {ours['peak'] / theirs['peak']:.2f}"
        print(line, flush=True)
    if {("linucb", 64), ("linucb per arm", 65)} <= plays.keys():
        ratio = compiling["linucb per arm", 65] / compiling["linucb", 64]
        print(f"linucb: compiling one model an arm over one for all: {ratio:.2f}{_mark(ratio, PER_ARM_OF_SHARED)}")
    if {("online_ucb", 8), ("online_ucb", 16)} <= plays.keys():
        ratio = plays["online_ucb", 16] / plays["online_ucb", 8]
        print(f"online_ucb: a play with 16 features over one with 8: {ratio:.2f}{_mark(ratio, 6)}")


def _mark(value: float, limit: float) -> str:
    return "!" if value > limit else " "


if __name__ == "__main__":
    main(sys.argv[1:])

"""Where the CPU time of short runs goes: many lanes of few plays, and many grid points of few seeds.

    python benchmarks/short_runs.py                 every workload, in memory and with a store, a few minutes
    python benchmarks/short_runs.py lanes-100       one of them: lanes-100, lanes-1000, points, lanes-1000-200
    python benchmarks/short_runs.py --json FILE     the same, also written as JSON

Each workload runs through the public `sweep` in a process of its own on one pinned core; programs are compiled before
anything is measured. The functions of the package are wrapped from outside, and every CPU second is charged to the
innermost wrapped function that runs. The best of several rounds is shown.
"""

import argparse
import contextlib
import importlib
import json
import os
import tempfile
import threading
import time
from collections import defaultdict
from functools import partial, wraps

import numpy as np
from engine import MEANS, apart
from measure import one_core

LANES = 100_000
SIDE, POINT_SEEDS = 100, 100  # SIDE learning rates x SIDE mixings
WARM_SIDE = 20
ASKED = 70  # percent in compiled plays
WORKLOADS = {  # name -> what `profile` is given
    "lanes-100": {"horizon": 100, "checkpoints": 50, "rounds": 20},
    "lanes-1000": {"horizon": 1_000, "checkpoints": 50, "rounds": 7},
    "lanes-1000-200": {"horizon": 1_000, "checkpoints": 200, "rounds": 3},
    "points": {"horizon": 1_000, "checkpoints": 50, "rounds": 2, "side": SIDE},
}
TITLES = {
    "lanes-100": f"UCB1, 10 arms, T = 100, {LANES:,} lanes, 50 checkpoints",
    "lanes-1000": f"UCB1, 10 arms, T = 1,000, {LANES:,} lanes, 50 checkpoints",
    "lanes-1000-200": f"UCB1, 10 arms, T = 1,000, {LANES:,} lanes, 200 checkpoints",
    "points": f"EXP3, 10 arms, T = 1,000, {SIDE**2:,} points x {POINT_SEEDS} seeds, 50 checkpoints",
}
# what a wrapped function is counted as
PLAYS, FINISH, REGRET, FAULTS = "compiled plays", "compiled finish", "regret", "looking for faults"
CALLS, DATASET, PLANNING, WRITING, MERGING = "around calls", "Dataset", "planning", "writing", "merging"
SECTIONS = (PLAYS, FINISH, REGRET, FAULTS, CALLS, DATASET, PLANNING, WRITING, MERGING)


class Meter:
    """CPU seconds of named sections. A section inside another is taken out of the outer one.

    A worker waits while XLA computes in threads of its own: a worker's clock is the CPU time of the whole process
    without that of the main thread. So there may be one worker only.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.main = time.pthread_getcpuclockid(threading.main_thread().ident)
        self.open: dict[bool, list[list]] = {True: [], False: []}  # of the main thread, and of the worker

    def clock(self, main: bool) -> float:
        own = time.clock_gettime(self.main)
        return own if main else time.process_time() - own

    @contextlib.contextmanager
    def section(self, name: str):
        main = threading.current_thread() is threading.main_thread()
        outer, began = self.open[main], self.clock(main)
        outer.append([began, 0.0])
        try:
            yield
        finally:
            began, inner = outer.pop()
            whole = self.clock(main) - began
            self.seconds[name] += whole - inner
            if outer:
                outer[-1][1] += whole

    def wrap(self, owner, attribute: str, name: str, wait=lambda result: result) -> None:
        """Count a function, or a method of a class, as a section."""
        function = getattr(owner, attribute)

        @wraps(function)
        def counted(*args, **more):
            with self.section(name(*args) if callable(name) else name):
                return wait(function(*args, **more))

        setattr(owner, attribute, counted)


def metered() -> Meter:
    """A meter with the package's functions wrapped."""
    import jax

    from jaxbandits.sweeps import execution
    from jaxbandits.sweeps.compilation.compiled import Compiled
    from jaxbandits.sweeps.engines import local, one_call
    from jaxbandits.sweeps.storage.store import Store

    sweep = importlib.import_module("jaxbandits.sweeps.sweep")  # its package has a function of this name
    meter = Meter()
    kinds = {"begin": PLAYS, "advance": PLAYS, "close": PLAYS}
    meter.wrap(Compiled, "__call__", lambda _, name, *args: kinds.get(name, FINISH), jax.block_until_ready)
    meter.wrap(one_call, "regret_of", REGRET)
    meter.wrap(one_call, "find_faults", FAULTS)
    meter.wrap(local, "play_call", CALLS)
    for method in ("__post_init__", "put", "dataset"):
        meter.wrap(execution.Results, method, DATASET)
    meter.wrap(sweep, "prepare_sweep", PLANNING)
    meter.wrap(Store, "write", WRITING)
    meter.wrap(execution.SweepRun, "merge", MERGING)
    return meter


def profile(horizon: int, checkpoints: int, rounds: int, stored: bool, side: int = 0) -> dict:
    """CPU seconds of each section in the round that took least, and lanes x plays."""
    one_core()
    import jaxbandits as jb

    arms = jb.environments.bernoulli_arms(means=MEANS)
    algorithm, seeds, grid = jb.algorithms.ucb1, LANES, None
    if side:
        algorithm, seeds = jb.algorithms.exp3, POINT_SEEDS
        grid = {"learning_rate": list(np.geomspace(1e-3, 1, side)), "mixing": list(np.geomspace(1e-3, 0.5, side))}
    run = partial(jb.sweep, algorithm, arms, horizon=horizon, checkpoints=checkpoints, progress=False)
    # compiled now, by whole calls of the same shapes
    run(seeds=seeds, grid=grid and {key: values[:WARM_SIDE] for key, values in grid.items()})
    meter, found = metered(), []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() if stored else contextlib.nullcontext() as directory:
            meter.seconds.clear()
            began, wall = time.process_time(), time.perf_counter()
            run(seeds=seeds, grid=grid, store=directory).close()
            total, wall = time.process_time() - began, time.perf_counter() - wall
        found.append({"total": total, "wall": wall, **meter.seconds})
    lanes = seeds * max(1, side**2)
    return {"plays": lanes * horizon, "lanes": lanes, "seconds": min(found, key=lambda row: row["total"])}


def show(title: str, found: dict[str, dict]) -> None:
    """Print the sections of a workload, in memory and with a store."""
    print(f"### {title}\n\n| CPU seconds (share) | {' | '.join(found)} |\n|---|{'---|' * len(found)}")

    totals = [x["seconds"]["total"] for x in found.values()]

    def row(name: str, seconds: list[float]) -> None:
        cells = [f"{x:.3g} ({100 * x / total:.1f}%)" for x, total in zip(seconds, totals, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")

    for name in SECTIONS:
        seconds = [x["seconds"].get(name, 0.0) for x in found.values()]
        if any(seconds):
            row(name, seconds)
    row("the rest", [x["seconds"]["total"] - _sections(x["seconds"]) for x in found.values()])
    row("all", totals)
    rates = (f"{x['plays'] / x['seconds']['total']:.3g}" for x in found.values())
    print(f"| plays per CPU second | {' | '.join(rates)} |")
    lanes = (f"{1e6 * x['seconds']['total'] / x['lanes']:.3g}" for x in found.values())
    print(f"| microseconds of CPU a lane | {' | '.join(lanes)} |\n", flush=True)


def _sections(seconds: dict) -> float:
    return sum(seconds.get(name, 0.0) for name in SECTIONS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", help=f"from {', '.join(WORKLOADS)}; all by default")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--memory", action="store_true", help="in memory alone, without a store")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.workloads if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload {unknown[0]!r}: choose from {', '.join(WORKLOADS)}")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"One pinned core (load {load:.2f} before)\n", flush=True)
    figures = {}
    for name in chosen.workloads or WORKLOADS:
        call = ", ".join(f"{key}={value}" for key, value in WORKLOADS[name].items())
        figures[name] = {
            where: apart(f"profile({call}, stored={stored})", module="short_runs", pinned=True)
            for where, stored in (("in memory", False), ("with a store", True))
            if not (stored and chosen.memory)
        }
        show(TITLES[name], figures[name])
        share = 100 * figures[name]["in memory"]["seconds"][PLAYS] / figures[name]["in memory"]["seconds"]["total"]
        if WORKLOADS[name]["checkpoints"] <= 50:
            met = "met" if share >= ASKED else "NOT MET"
            print(f"compiled plays, in memory: {share:.1f}%, asked at least {ASKED}%: {met}\n", flush=True)
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump({"load": load, "figures": figures}, file, indent=2)


if __name__ == "__main__":
    main()

"""What a store, many lanes and many points cost, and what one play of every algorithm costs.

    python benchmarks/sweeps.py            every figure below, about twenty minutes and 5 GB of temporary files
    python benchmarks/sweeps.py overhead   the price of privacy in memory, against a store with progress shown
    python benchmarks/sweeps.py cores      four algorithms on one pinned core and on all
    python benchmarks/sweeps.py lanes      100,000 lanes with a store, T = 10,000 and T = 100,000: time and peak memory
    python benchmarks/sweeps.py points     10,000 grid points x 100 seeds: planning, running, merging
    python benchmarks/sweeps.py costs      seconds and bytes of a play, for every algorithm of the catalogue
    python benchmarks/sweeps.py costs --write PAGE   the same, and put the table into a page between its two marks
    python benchmarks/sweeps.py costs --write PAGE --only NAME ...   rows of these algorithms alone
    python benchmarks/sweeps.py delays     late feedback: a play of `delayed` over one of its base, by law and length

Every figure is taken in a process of its own: peak memory and compiled programs do not carry over. Temporary stores lie
where `tempfile` puts them (TMPDIR chooses), so the figures hold for that disk.
"""

import argparse
import contextlib
import os
import resource
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import engine
import numpy as np
from engine import MEANS, timed
from pages import put_between, put_rows

HERE = Path(__file__).resolve().parent
PRICE = HERE.parent / "examples" / "price_of_privacy.toml"

OVERHEAD_ROUNDS = 3
CORES_LANES = {"ucb1": 16_384, "exp3": 16_384, "htinf": 16_384, "kl_ucb": 16_384}
CORES_HORIZON, CORES_ROUNDS = 10_000, 5
LANES, LANES_HORIZONS = 100_000, (10_000, 100_000)
POINTS, POINTS_SEEDS = 100, 100  # POINTS learning rates x POINTS mixings
POINTS_RUNS = ((64, 8), (256, 200))  # (horizon, checkpoints)
COST_HORIZON, COST_SECONDS, COST_LANES = 5_000, 1.0, 1 << 16
# base -> lanes; delay -> the most that its time over the base's may be, if anything is asked
DELAY_BASES, DELAY_HORIZON = {"ucb1": 1_024, "exp3": 1_024, "tsallis_inf": 1_024}, 2_000
DELAYS: dict[Any, float | None] = {
    0: 1.5, 1: 1.5, 16: 1.5, 64: 1.5, 256: None, 1_024: None, ("geometric", 10): None, ("geometric", 100): None,
}  # fmt: skip


apart = partial(engine.apart, module="sweeps")


# ---- measured in a fresh process


def busy(function) -> float:
    """Seconds of all cores that one call keeps busy: what others do on the machine enters less than into wall clock."""
    began = time.process_time()
    function()
    return time.process_time() - began


def peak() -> int:
    """Bytes this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def started() -> None:
    """JAX is up: starting it is part of no figure."""
    import jax

    jax.block_until_ready(jax.numpy.zeros(3) + 1)


def price_of_privacy():
    """examples/price_of_privacy.toml as a call of `sweep`."""
    import jaxbandits as jb
    from jaxbandits.sweeps.toml_file import read_config

    settings = read_config(PRICE)
    return partial(jb.sweep, **{key: x for key, x in settings.items() if key not in ("figure", "caption")})


def overhead(rounds: int) -> dict:
    """(seconds, seconds of cores kept busy) of examples/price_of_privacy.toml in memory without progress,
    and in a fresh store with progress.
    """
    run = price_of_privacy()

    def look(**more) -> tuple[float, float]:
        began = time.process_time()
        seconds = timed(partial(run, **more))
        return seconds, time.process_time() - began

    def kept() -> tuple[float, float]:
        with (
            tempfile.TemporaryDirectory() as directory,
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stderr(nowhere),
        ):
            return look(store=directory, progress=True)

    look(progress=False), kept()  # compiled now
    pairs = [(look(progress=False), kept()) for _ in range(rounds)]
    return dict(zip(("in memory", "in a store, progress shown"), zip(*pairs, strict=True), strict=True))


def cores(number: int, horizon: int, rounds: int) -> dict:
    """{algorithm: (plays x lanes / s of wall clock, ns of a core for a play)}, the best of some rounds each."""
    import jaxbandits as jb

    jb.cores(number)
    arms, found = jb.environments.bernoulli_arms(means=MEANS), {}
    for name, seeds in CORES_LANES.items():
        run = partial(jb.sweep, getattr(jb.algorithms, name), arms, horizon=horizon, seeds=seeds, progress=False)
        run()  # compiled now
        turns = []
        for _ in range(rounds):
            began = time.process_time()
            turns.append((timed(run), time.process_time() - began))
        wall, spent = (min(column) for column in zip(*turns, strict=True))
        found[name] = seeds * horizon / wall, 1e9 * spent / (seeds * horizon)
    return found


def lanes(horizon: int, number: int) -> dict:
    """Seconds and peak memory of EXP3 with a store."""
    import jaxbandits as jb

    arms = jb.environments.bernoulli_arms(means=MEANS)
    with tempfile.TemporaryDirectory() as directory:
        run = partial(
            jb.sweep, jb.algorithms.exp3, arms, horizon=horizon, seeds=number, store=directory, progress=False
        )
        return {"seconds": timed(run), "peak": peak(), "disk": on_disk(directory)[1]}


def on_disk(directory) -> tuple[int, int]:
    """Files and bytes below a directory."""
    sizes = [path.stat().st_size for path in Path(directory).rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def points(directory: str, side: int, seeds: int, horizon: int, checkpoints: int) -> dict:
    """Plan and run EXP3 on side x side settings; in a directory that is complete, plan and merge alone."""
    import jaxbandits as jb
    from jaxbandits.sweeps.execution import SweepRun
    from jaxbandits.sweeps.sweep import prepare_sweep

    started()
    grid = {"learning_rate": list(np.geomspace(1e-3, 1, side)), "mixing": list(np.geomspace(1e-3, 0.5, side))}
    settings = {"horizon": horizon, "seeds": seeds, "checkpoints": checkpoints, "grid": grid}
    arms, began = jb.environments.bernoulli_arms(means=MEANS), time.perf_counter()
    run = SweepRun(prepare_sweep(jb.algorithms.exp3, arms, settings, store=directory, progress=False))
    planned, before = time.perf_counter() - began, peak()
    seconds = timed(run.dataset)
    files, size = on_disk(directory)
    return {
        "plan": planned, "planned peak": before, "seconds": seconds, "peak": peak(), "files": files, "disk": size,
        "results": (Path(directory) / "results.nc").stat().st_size,
    }  # fmt: skip


def cost(name: str, example, horizon: int, target: float, most: int) -> dict:
    """Seconds of a core for a case of the catalogue, the best of three, compilation left out."""
    import parts

    from jaxbandits.sweeps.execution import SweepRun

    def ready(seeds):
        run = SweepRun(parts.sweep_of(example, horizon, seeds))
        run.dataset()  # compiled now
        return run, busy(run.dataset)

    call = parts.first_call(parts.sweep_of(example, horizon, most)).lanes  # so many lanes are compiled for, once
    number = call
    run, seconds = ready(number)
    while seconds < target / 2 and number < most:  # a time worth reading
        number = min(most, number * 2 ** max(1, int(np.log2(target / max(seconds, 1e-3)))))
        run, seconds = ready(number)
    seconds = min(seconds, busy(run.dataset), busy(run.dataset))
    plan = run.sweep.plan
    shape, cell = plan.groups[0].shape, plan.cells[0]
    facts, checkpoints = cell.environment.facts, len(plan.times[horizon])
    kept = 8 * checkpoints + 4 * (shape.arms or 0) + 8 * len(shape.diagnostics)
    sizes = [(facts.get(key), short) for key, short in FACTS.items()]
    return {
        "name": name, "case": ", ".join(f"{short}={x}" for x, short in sizes if x is not None), "lanes": number,
        "seconds": seconds, "play": seconds / (number * horizon), "carried": shape.state, "context": shape.context,
        "recorded": shape.record, "kept": kept,
    }  # fmt: skip


def costs(horizon: int, target: float, most: int, only: list[str]) -> list[dict]:
    """One row an algorithm of the catalogue, or one of those named."""
    from jaxbandits.catalogue import ALGORITHMS

    return [cost(name, ALGORITHMS[name], horizon, target, most) for name in only or ALGORITHMS]


def delays(base: str, lanes: int, horizon: int, rounds: int) -> list[float]:
    """CPU seconds of a sweep of the base alone, then under every delay, the least of turns; compilation is left out."""
    from measure import best_of

    import jaxbandits as jb

    plain = getattr(jb.algorithms, base)
    late = [partial(jb.algorithms.delayed, base=plain, delay=delay) for delay in DELAYS]
    arms = jb.environments.bernoulli_arms(means=MEANS)
    runs = [
        partial(jb.sweep, [algorithm], arms, horizon=horizon, seeds=lanes, checkpoints=8, progress=False)
        for algorithm in (plain, *late)
    ]
    for run in runs:
        run()
    return best_of(rounds, *runs)


FACTS = {"num_experts": "experts", "num_agents": "N", "num_arms": "K", "dim": "d"}


# ---- printed


def show(title: str, head: list[str], rows: list[list], claim: str = "") -> None:
    """Print a markdown table and what it should show."""
    print(f"{title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        cells = (x if isinstance(x, str) else f"{x:,}" if isinstance(x, int) else f"{x:.3g}" for x in row)
        print(f"| {' | '.join(cells)} |")
    print(f"\n{claim}\n" if claim else "", flush=True)


def asked(what: str, found: float, limit: float, at_least: bool = False, unit: str = "") -> str:
    """A claim beside what was found."""
    met = found >= limit if at_least else found <= limit
    word = "at least" if at_least else "at most"
    return f"{what}: {found:.3g}{unit}, asked {word} {limit:g}{unit}: {'met' if met else 'NOT MET'}"


def megabytes(number: float) -> str:
    return f"{number / 1e6:,.0f} MB"


def show_overhead() -> None:
    found = apart(f"overhead({OVERHEAD_ROUNDS})")
    rows = [
        [
            name,
            statistics.median(t for t, _ in turns),
            min(turns)[0],
            max(turns)[0],
            statistics.median(b for _, b in turns),
        ]
        for name, turns in found.items()
    ]
    claim = asked("a store and progress cost", 100 * (rows[1][1] / rows[0][1] - 1), 5, unit="%")
    claim += f"; of the cores' time {100 * (rows[1][4] / rows[0][4] - 1):.3g}%"
    show("The price of privacy, compiled: seconds", ["", "median", "least", "most", "of cores, median"], rows, claim)


def show_cores() -> None:
    number = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    one = apart(f"cores(1, {CORES_HORIZON}, {CORES_ROUNDS})", pinned=True)
    every = apart(f"cores({number}, {CORES_HORIZON}, {CORES_ROUNDS})")
    rows, shares = [], []
    for name in one:
        (rate, spent), (rates, spent_by_all) = one[name], every[name]
        shares.append(rates / rate / number)
        rows.append(
            [f"`{name}`", CORES_LANES[name], rate, rates, shares[-1], spent, spent_by_all, spent / spent_by_all]
        )
    head = [
        "", "lanes", "one core", f"{number} cores", f"of {number} x one core", "ns of a core, one", f"ns, {number}",
        "one / all",
    ]  # fmt: skip
    title = f"T = {CORES_HORIZON:,}, 10 arms: plays x lanes / s of wall clock, and CPU time of a play"
    claim = asked(f"{number} cores over {number} x one core", min(shares), 0.95, at_least=True)
    show(
        title,
        head,
        rows,
        claim + ". Where others use the cores, the CPU time of one core by that of all shows the same",
    )


def show_lanes() -> None:
    rows, peaks = [], []
    for horizon in LANES_HORIZONS:
        found = apart(f"lanes({horizon}, {LANES})")
        peaks.append(found["peak"])
        rate = LANES * horizon / found["seconds"]
        rows.append([f"{horizon:,}", found["seconds"], rate, megabytes(found["peak"]), megabytes(found["disk"])])
    head = ["T", "seconds, compilation included", "plays x lanes / s", "peak memory", "on disk"]
    claim = asked("peak memory", max(peaks) / 1e9, 2, unit=" GB")
    show(f"{LANES:,} lanes of EXP3, 200 checkpoints, with a store", head, rows, claim)


def show_points() -> None:
    rows, plans, grown = [], [], []
    for horizon, checkpoints in POINTS_RUNS:
        with tempfile.TemporaryDirectory() as directory:
            call = f"points({directory!r}, {POINTS}, {POINTS_SEEDS}, {horizon}, {checkpoints})"
            run, merge = apart(call), apart(call)  # the second finds everything finished
        plans += [run["plan"], merge["plan"]]
        grown.append(merge["peak"] - merge["planned peak"])
        rows.append([
            f"{horizon}, {checkpoints}", run["plan"], run["seconds"], run["files"], megabytes(run["disk"]),
            merge["seconds"], megabytes(merge["results"]), megabytes(merge["planned peak"]), megabytes(merge["peak"]),
        ])  # fmt: skip
    head = [
        "T, checkpoints", "plan, s", "run, s", "files", "on disk", "merge alone, s", "results.nc", "memory planned",
        "peak of merge",
    ]  # fmt: skip
    title = f"{POINTS**2:,} points of EXP3 x {POINTS_SEEDS} seeds = {POINTS**2 * POINTS_SEEDS:,} lanes, with a store"
    claim = asked("planning takes", max(plans), 5, unit=" s")
    claim += f"\nmerging holds {megabytes(max(grown))} more than planning, a results.nc below 1 GB read back included"
    show(title, head, rows, claim)


def cost_table(found: list[dict]) -> str:
    """The table of costs, in markdown."""
    head = ["algorithm", "ns a play", "core-hours per 10^12 plays", "case", "lanes", "carried, B a lane", "recorded"]
    head.append("kept")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in found:
        nanoseconds = 1e9 * row["play"]
        numbers = [nanoseconds, nanoseconds / 3.6, row["lanes"], row["carried"], row["recorded"], row["kept"]]
        cells = [f"{x:,}" if isinstance(x, int) else f"{x:,.0f}" if x >= 100 else f"{x:.3g}" for x in numbers]
        lines.append(f"| {' | '.join(['`' + row['name'] + '`', *cells[:2], row['case'], *cells[2:]])} |")
    return "\n".join(lines) + "\n"


def show_costs(page: Path | None = None, only: list[str] | None = None) -> None:
    table = cost_table(apart(f"costs({COST_HORIZON}, {COST_SECONDS}, {COST_LANES}, {only or []})", pinned=True))
    print(f"One core, T = {COST_HORIZON:,}, 200 checkpoints, the catalogue's cases\n\n{table}", flush=True)
    if page is not None:
        (put_rows if only else put_between)(page, "costs", table)


def show_delays() -> None:
    rows, worst = [], 0.0
    for base, lanes in DELAY_BASES.items():
        alone, *late = apart(f"delays({base!r}, {lanes}, {DELAY_HORIZON}, 3)", pinned=True)
        ratios = [seconds / alone for seconds in late]
        worst = max(worst, *(ratio for ratio, most in zip(ratios, DELAYS.values(), strict=True) if most))
        rows.append([f"`{base}`", 1e9 * alone / (lanes * DELAY_HORIZON), *(f"{ratio:.2f}" for ratio in ratios)])
    head = ["base", "ns a play, alone", *(f"{x[0]}, {x[1]}" if isinstance(x, tuple) else f"{x:,}" for x in DELAYS)]
    claim = asked("the largest ratio of a fixed delay of at most 64 plays", worst, 1.5)
    show(f"One core, ten arms, T = {DELAY_HORIZON:,}: time under a delay over the base's alone", head, rows, claim)


SECTIONS = {
    "overhead": show_overhead, "cores": show_cores, "lanes": show_lanes, "points": show_points, "costs": show_costs,
    "delays": show_delays,
}  # fmt: skip


def main(arguments: list[str]) -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("sections", nargs="*", metavar="SECTION")
    reading.add_argument("--write", type=Path, metavar="PAGE", help="a page with the marks of the table of costs")
    reading.add_argument("--only", nargs="+", metavar="NAME", help="the table of costs has these algorithms alone")
    given = reading.parse_args(arguments)
    chosen = given.sections
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"no section {unknown[0]!r}: choose from {', '.join(SECTIONS)}")
    for name in chosen or SECTIONS:
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
        print(f"## {name} (load {load:.2f} before)\n")
        SECTIONS[name](*([given.write, given.only] if name == "costs" else []))


if __name__ == "__main__":
    main(sys.argv[1:])

"""The engine against hand-tuned Numba loops: rates through the public `sweep`, side by side in one run, ratios printed.

    python benchmarks/engine.py            every figure below, a few minutes
    python benchmarks/engine.py rates      UCB1 and EXP3, 10 Bernoulli arms, T = 10,000: one pinned core and all cores
    python benchmarks/engine.py sharing    linucb: eight values of a parameter against one, on the same seeds
    python benchmarks/engine.py htinf      HTINF against EXP3; useful plays / executed slots for seven epsilons
    python benchmarks/engine.py memory     peak memory of 100,000 lanes, T = 2,000 and T = 10,000
    python benchmarks/engine.py checks     UCB1 with the check that actions are arms and without: CPU seconds, one
                                           pinned core
    python benchmarks/engine.py host       what a host does for an accelerator: CPU time of a sweep whose compiled
                                           programs give what they gave before
    python benchmarks/engine.py host --beside FOLDER     the same of another checkout, in turns in the same run

Every figure is taken in a process of its own. Rates are lanes x plays / s of wall clock, best of several rounds in
which both sides take turns; compilation is left out of rates (`first_result.py` shows it).
"""

import json
import os
import resource
import subprocess
import sys
import time
from functools import partial
from math import e, log, sqrt
from pathlib import Path

import numpy as np

MEANS = np.linspace(0.1, 0.9, 10)
HORIZON = 10_000
MIXING = min(1.0, sqrt(10 * log(10) / ((e - 1) * HORIZON)))
EPSILONS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]


def timed(function) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def rates(cores: int, lanes: int = 16_384, rounds: int = 5) -> dict:
    """UCB1 and EXP3 on `cores` cores: ours and Numba's in turn."""
    import numba
    import numba_loops

    import jaxbandits as jb

    numba.set_num_threads(cores)
    jb.cores(cores)
    arms = jb.environments.bernoulli_arms(means=MEANS)
    mixed = partial(jb.algorithms.exp3, learning_rate=MIXING / 10, mixing=MIXING)
    gains = partial(numba_loops.exp3, MEANS, HORIZON, lanes, 1)
    algorithms = {
        "ucb1": (jb.algorithms.ucb1, partial(numba_loops.ucb1_any, MEANS, HORIZON, lanes, 1)),
        "ucb1, Numba knows the number of arms": (
            jb.algorithms.ucb1,
            partial(numba_loops.ucb1, MEANS, HORIZON, lanes, 1),
        ),
        "exp3": (jb.algorithms.exp3, gains),
        "exp3, mixing in both": (mixed, gains),
    }
    found = {}
    for name, (factory, loop) in algorithms.items():
        run = partial(jb.sweep, factory, arms, horizon=HORIZON, seeds=lanes, progress=False)
        ours_regret, theirs_regret = float(run().regret[0, :, -1].mean()), float(np.mean(loop()))  # both warm now
        pairs = [(timed(run), timed(loop)) for _ in range(rounds)]
        ours, theirs = (lanes * HORIZON / min(times) for times in zip(*pairs, strict=True))
        found[name] = {"ours": ours, "numba": theirs, "ratio": ours / theirs, "regret": [ours_regret, theirs_regret]}
    return found


def sharing(seeds: int = 256, horizon: int = 2_000, rounds: int = 3) -> dict:
    """linucb on 100 redrawn contexts, d = 5, one core: one parameter value and eight."""
    import jaxbandits as jb

    jb.cores(1)
    contexts = jb.environments.contextual_linear(num_arms=100, dim=5, reward="bernoulli")
    runs = {
        n: partial(
            jb.sweep, partial(jb.algorithms.linucb, preset="theory"), contexts, horizon=horizon, seeds=seeds,
            grid={"radius_scale": list(np.linspace(0.2, 0.6, n))}, progress=False,
        )
        for n in (1, 8)
    }  # fmt: skip
    for run in runs.values():
        run()
    times = {n: min(timed(run) for _ in range(rounds)) for n, run in runs.items()}
    return {"one": times[1], "eight": times[8], "ratio": times[8] / times[1], "rate of one": seeds * horizon / times[1]}


def htinf(lanes: int = 8_192, rounds: int = 3) -> dict:
    """HTINF and EXP3 alone, K = 10, one core; and the slots a sweep over seven epsilons executes for its plays."""
    import jaxbandits as jb

    jb.cores(1)
    arms = jb.environments.bernoulli_arms(means=MEANS)
    a, found = jb.algorithms, {}
    for name in ("exp3", "htinf"):
        run = partial(jb.sweep, getattr(a, name), arms, horizon=HORIZON, seeds=lanes, progress=False)
        run()
        found[name] = lanes * HORIZON / min(timed(run) for _ in range(rounds))
    found["exp3 / htinf"] = found["exp3"] / found["htinf"]
    horizon, slots = 20_000, 0
    programs = set()
    for epsilon in EPSILONS:
        algorithm = a.private_batched(num_arms=10, horizon=horizon, epsilon=epsilon, base=a.htinf)
        programs.add(algorithm.program)
        slots += sum(s.repeats * -(-(s.length or s.slots) // s.slots) * s.slots for s in algorithm.schedule)
    found["useful plays / executed slots"] = len(EPSILONS) * horizon / slots
    found["programs for seven epsilons"] = len(programs)
    run = partial(
        jb.sweep, partial(a.private_batched, base=a.htinf), arms, horizon=horizon, seeds=512,
        grid={"epsilon": EPSILONS},
        progress=False,
    )  # fmt: skip
    run()
    found["private_batched(htinf), seven epsilons"] = 7 * 512 * horizon / min(timed(run) for _ in range(rounds))
    return found


def memory(horizon: int, lanes: int = 100_000) -> dict:
    """Peak resident memory of this process after a large sweep."""
    import jaxbandits as jb

    arms = jb.environments.bernoulli_arms(means=MEANS)
    seconds = timed(partial(jb.sweep, jb.algorithms.ucb1, arms, horizon=horizon, seeds=lanes, progress=False))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"peak GB": peak / 1e9, "seconds": seconds, "plays x lanes / s": lanes * horizon / seconds}


def checks(lanes: int = 16_384, turns: int = 20) -> dict:
    """CPU seconds of UCB1 with the engine's check of actions over those without, in turn in one process.

    The interval holds the median with 95% confidence: two order statistics of the turns (Binomial(turns, 1/2)).
    """
    from scipy.stats import binom

    import jaxbandits as jb
    from jaxbandits import simulator

    jb.cores(1)
    arms, checked = jb.environments.bernoulli_arms(means=MEANS), simulator.arms_of
    run = partial(jb.sweep, jb.algorithms.ucb1, arms, horizon=HORIZON, seeds=lanes, progress=False)

    def seconds(arms_of) -> float:
        simulator.arms_of = arms_of  # an environment that does not say how many arms it has is not checked
        began = time.process_time()
        run()
        return time.process_time() - began

    variants = [checked, lambda environment: None]
    for variant in variants:  # compiled now
        seconds(variant)
    ratios, with_check, without = [], [], []
    for turn in range(turns):
        order = variants if turn % 2 else variants[::-1]
        spent = {variant: seconds(variant) for variant in order}
        with_check.append(spent[variants[0]])
        without.append(spent[variants[1]])
        ratios.append(with_check[-1] / without[-1])
    simulator.arms_of = checked
    low = int(binom.ppf(0.025, turns, 0.5)) - 1
    ratios.sort()
    more = [100 * (ratio - 1) for ratio in ratios]
    return {
        "overhead in %": float(np.median(more)), "from": more[max(low, 0)], "to": more[min(turns - 1 - low, turns - 1)],
        "seconds with": float(np.median(with_check)), "without": float(np.median(without)), "turns": turns,
    }  # fmt: skip


ROWS_OF_A_HOST = {  # lanes of a point, plays, checkpoints, points
    "1,048,576 lanes, 50 checkpoints": (2**20, 50, 50, 1),
    "1,048,576 lanes, 200 checkpoints": (2**20, 200, 200, 1),
    "131,072 lanes, 10 plays": (2**17, 10, 10, 1),
    "64 epsilons x 1,000 seeds": (1_000, 10, 10, 64),
}


def host(turns: int = 9) -> dict:
    """Milliseconds of CPU time of UCB1's sweeps (with epsilons, LDP-UCB's), the least of some turns, in calls as an
    accelerator gets them; and the peak of memory over the size of the result.

    Every compiled program gives what it gave the first time, as if a device had played meanwhile.
    """
    import jax

    import jaxbandits as jb
    from jaxbandits.sweeps.compilation import regret_program
    from jaxbandits.sweeps.compilation.compiled import Compiled
    from jaxbandits.sweeps.engines import calls

    jb.cores(1)
    calls.CACHE_BYTES, calls.MAX_POINTS, regret_program.LEAST_COUNTS = 1 << 40, 64, {"cpu": 1 << 22}
    kept: dict = {}

    def once(program):
        def run(*args):
            key = program, tuple(x.shape for x in jax.tree.leaves(args) if getattr(x, "shape", ()))
            if key not in kept:
                kept[key] = jax.block_until_ready(program(*args))
            return kept[key]

        return run

    made, of_regret = Compiled.program, regret_program._program
    Compiled.__call__ = lambda self, name, device, *args, kind=None: once(made(self, name, device, *args, kind=kind))(
        *args
    )
    regret_program._program = lambda *args: once(of_regret(*args))
    found = {}
    for name, (seeds, horizon, checkpoints, points) in ROWS_OF_A_HOST.items():
        calls.CPU_LANES = min(2**18, -(-seeds // 16) * 16 * points)
        algorithm = jb.algorithms.ucb1 if points == 1 else jb.algorithms.ldp_ucb
        run = partial(
            jb.sweep, algorithm, jb.environments.bernoulli_arms(means=MEANS), horizon=horizon, seeds=seeds,
            grid={} if points == 1 else {"epsilon": list(np.geomspace(0.1, 10, points))}, checkpoints=checkpoints,
            progress=False,
        )  # fmt: skip
        size = run().nbytes
        before = _memory("VmRSS", anew=True)
        spent = []
        for _ in range(turns):
            began = time.process_time()
            run()
            spent.append(1e3 * (time.process_time() - began))
        found[name] = {"ms": min(spent), "peak / result": (_memory("VmHWM") - before) / size}
        kept.clear()
    return found


def _memory(kind: str, *, anew: bool = False) -> int:
    """Bytes that this process holds (VmRSS), or held at most (VmHWM) since it was last counted anew; 0 but on Linux."""
    try:
        if anew:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(kind))


def host_beside(folder: str, turns: int = 3) -> dict:
    """`host` here and of another checkout in turns: the least of each, and the ratio."""
    sides = {"here": str(Path(__file__).resolve().parents[1]), "there": folder}
    rows: dict = {side: [] for side in sides}
    for _ in range(turns):
        for side, package in sides.items():
            rows[side].append(apart("host()", pinned=True, package=package))
    found = {}
    for name in ROWS_OF_A_HOST:
        ms = {side: min(row[name]["ms"] for row in rows[side]) for side in sides}
        found[name] = ms | {"ratio": ms["here"] / ms["there"], "peak / result": rows["here"][0][name]["peak / result"]}
    return found


def apart(call: str, *, pinned: bool = False, module: str = "engine", package: str = ""):
    """Evaluate a call of this module (or another beside it) in a fresh process and return what it gives.

    package: the checkout whose package is imported.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [path for path in (package, here) if path]
    code = f"import sys, json; sys.path[:0] = {paths}; import {module}; print('::' + json.dumps({module}.{call}))"
    pin = (lambda: os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})) if pinned else None
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=pin)
    lines = [line for line in done.stdout.splitlines() if line.startswith("::")]
    if not lines:
        raise SystemExit(f"{call} failed:\n{done.stderr}")
    return json.loads(lines[-1][2:])


def show(title: str, rows: dict) -> None:
    """Print figures, one line each."""
    print(title)
    for name, row in rows.items():
        if isinstance(row, dict):
            shown = "  ".join(f"{k} {_number(v)}" for k, v in row.items())
            print(f"  {name}: {shown}")
        else:
            print(f"  {name}: {_number(row)}")
    print(flush=True)


def _number(x) -> str:
    if isinstance(x, list):
        return "/".join(_number(v) for v in x)
    return (
        f"{x:.3g}"
        if isinstance(x, float) and (abs(x) >= 1e5 or abs(x) < 100)
        else f"{x:.1f}"
        if isinstance(x, float)
        else str(x)
    )


def main(chosen: list[str]) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    everything = not chosen
    if everything or "rates" in chosen:
        show("rates, one pinned core", apart("rates(1)", pinned=True))
        show(f"rates, all {cores} cores", apart(f"rates({cores})"))
    if everything or "sharing" in chosen:
        show("linucb, 100 redrawn contexts, d = 5, one pinned core: seconds", apart("sharing()", pinned=True))
    if everything or "htinf" in chosen:
        show("htinf, 10 arms, one pinned core", apart("htinf()", pinned=True))
    if everything or "checks" in chosen:
        show("ucb1, 10 arms, one pinned core: CPU seconds with the check of actions", apart("checks()", pinned=True))
    if everything or "host" in chosen:
        beside = chosen[chosen.index("--beside") + 1] if "--beside" in chosen else None
        title = "what a host does for an accelerator, one pinned core: ms of CPU time"
        show(title, apart("host()", pinned=True) if beside is None else host_beside(beside))
    if everything or "memory" in chosen:
        for horizon in (2_000, 10_000):
            show(f"100,000 lanes of UCB1, T = {horizon:,}", apart(f"memory({horizon})"))


if __name__ == "__main__":
    main(sys.argv[1:])

"""What a GPU does, unattended: one command, the most valuable figures first, each part with a limit of its own.

    python benchmarks/gpu.py --out DIR                 ten minutes at most: DIR/report.md, DIR/report.jsonl, DIR/log.txt
    python benchmarks/gpu.py --out DIR --minutes 6     what waits for a card, alone; with less, parts that no time is
                                                       left for are named
    python benchmarks/gpu.py --out DIR --tiny          the same on this machine's CPU in tiny sizes: does it run?
    python benchmarks/gpu.py --parts rates sweeps      only these
    python benchmarks/gpu.py --rows DIR --write PAGE   put the table of rows measured before into a page

Without a GPU: one line. A sweep is run first; where that fails, nothing else is, and the status is 1. Then come, what
has changed since the last day and what is waited for (`FIRST`) before the rest (`AFTER`),

* `sweeps`: plays per second of wall clock through the public `sweep`, the second of two equal runs: of all plays, of
  ten (`pull`), and of all by scan;
* `about`: the card, its ceilings, what a launch costs, and a play whose end the host waits for;
* `rates`: plays of all lanes per second inside one call, by kernel and by scan;
* `correct`: the same seeds by both forms, a lane alone, and the mean regret of other seeds on the CPU;
* `grid`: 1,000 seeds at 64 values of epsilon, the first run, the second, and the first of a second process, which finds
  compiled programs on disk;
* `peers`: what else a person can write for a card, beside our kernel and our scan (gpu_peers.py);
* `options`: forms of kernels that wait for a card's figures, beside today's (gpu_options.py);
* `routes`: whether kernels launch by each route and play what the scan plays;
* `catalogue`: every program of the catalogue in its small case, kernel beside scan: the share of seeds with one regret;
* `estimators`: seconds a call by kernel and by XLA's operations, and how far apart the results are;
* `flags`: the scan under flags of XLA; `profile`: NVIDIA's profiler on one launch, where it is installed.

Every part is a process, so that nothing one of them does stops the others; several compile at a time and take turns on
the GPU where they time. Rows are written as they come. A part that fails is named at the end, and the status is 1.
"""

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pages import put_between

HERE = Path(__file__).resolve().parent
FILES = ("report.md", "report.jsonl", "log.txt")
WORKERS = max(4, (os.cpu_count() or 1) * 3 // 4)  # parts at a time
SHARES = 12  # of the catalogue, a process each
TINY, OUT = bool(os.environ.get("GPU_DAY_TINY")), Path(os.environ.get("GPU_DAY_OUT", "runs/gpu"))  # in a part
LEAST_SECONDS = 12  # a part is not begun with less
SLOWER = 8  # times as long as a part may take where it is tried on a CPU


class Part(NamedTuple):
    """Parts of one kind, a process each."""

    name: str
    seconds: int  # at most, of one
    about: tuple[str, ...] = ("",)  # what each of them is about
    flags: str = ""  # of XLA; a CPU's does not know them


# What changed since the last day and what is waited for come first. By the limits of these parts that ends in six
# minutes, where all names of a part are played at a time. `rates` show division to 2 units in the last place (HTINF,
# EXP3), four turns written out (LinUCB, UCB1 on 100 arms), and memory that is counted (EXP3 and HTINF on 100 arms);
# the median is a program of more than 6,500 statements.
FIRST_SECONDS = 360
FIRST = (
    Part("sweeps", 40, ("ucb1",)),
    Part("about", 25),
    Part("rates", 70, ("ucb1", "htinf", "exp3", "linucb", "ucb1-100", "exp3-100", "htinf-100")),
    Part("estimators", 30, ("geometric_median-10-10",)),
    Part("correct", 40, ("exp3", "htinf", "linucb", "ucb1-100", "exp3-100", "htinf-100")),
    Part("grid", 45, ("private_batched", "ldp_exp3")),
    Part("peers", 110, ("ucb1", "exp3")),
)
LOOPS = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUDNN,CUSTOM_CALL,WHILE,CONDITIONAL"
AFTER = (
    Part("options", 110, (
        "shared ucb1-100", "loop thompson", "launch ucb1", "shared exp3-100", "loop shared thompson", "launch exp3",
        "loop thompson-100", "shared htinf-100",
    )),
    Part("routes", 90),
    Part("rates", 110, (
        "private_batched", "thompson", "prm_elimination", "online_ucb", "byzantine_ucb", "ldp_linucb", "thompson-100",
    )),
    Part("correct", 90, (
        "ucb1", "private_batched", "prm_elimination", "moss", "thompson", "adap_ucb", "exp3_ix", "ldp_linucb",
        "robust_elimination", "online_ucb",
    )),
    Part("sweeps", 100, ("exp3", "htinf", "linucb")),
    Part("estimators", 90, (
        "warm_median", "spectral_filter", "geometric_median", "maler", "spectral_filter-10", "maler-5",
        "geometric_median-20-14", "spectral_filter-50",
    )),
    Part("catalogue", 120, tuple(f"share {k} of {SHARES}" for k in range(SHARES))),
    Part("sweeps", 100, ("thompson", "adap_ucb", "prm_elimination", "private_batched")),
    Part("flags", 45, ("loops in a command buffer",), LOOPS),
    Part("flags", 45, ("no autotuning",), "--xla_gpu_autotune_level=0"),
    Part("profile", 90, ("ucb1",)),
)  # fmt: skip
DAY = FIRST + AFTER


# ---- the day: nothing of JAX is imported here


def toolkit() -> list[str]:
    """XLA's flag for a CUDA toolkit of the system: wheels may lack the functions that it takes from there."""
    found = sorted(Path("/usr/local").glob("cuda*/nvvm/libdevice"))
    return [f"--xla_gpu_cuda_data_dir={found[-1].parents[1]}"] if found else []


def day(out: Path, seconds: float, tiny: bool, lanes: list[int], parts: list[str], cache: str) -> list[str]:
    """Run parts for so many seconds after the first sweep, and say which failed.

    cache: an empty folder for compiled programs, so that nothing which was compiled before is taken.
    """
    environment = {
        **os.environ, "GPU_DAY_OUT": str(out), "GPU_DAY_TINY": "1" if tiny else "", "PYTHONUNBUFFERED": "1",
        "GPU_DAY_LANES": " ".join(map(str, lanes)), "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAXBANDITS_CACHE": cache, "GPU_DAY_LOCK": str(Path(cache) / "lock"),
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    if tiny:
        environment["JAX_PLATFORMS"] = "cpu"
    failed: list[str] = []

    def run(part: Part, about: str, until: float = math.inf) -> bool:
        name, left = f"{part.name} {about}".strip(), until - time.monotonic()
        if left < LEAST_SECONDS:
            tell(out, part.name, about, note="no time was left")
            return True
        limit = min(part.seconds * (SLOWER if tiny else 1), left)
        flags = [os.environ.get("XLA_FLAGS", ""), *toolkit(), part.flags]
        given = environment if tiny else {**environment, "XLA_FLAGS": " ".join(filter(None, flags))}
        with (out / "log.txt").open("a") as log:
            log.write(f"== {name}, at most {limit:.0f} s\n")
            log.flush()
            command = [sys.executable, __file__, "--part", part.name, *([about] if about else [])]
            try:
                status = subprocess.run(command, env=given, stderr=log, timeout=limit).returncode
                ended = f"ended with status {status}"
            except subprocess.TimeoutExpired:
                status, ended = 1, f"was ended after {limit:.0f} s"
        if status:
            failed.append(name)
            tell(out, part.name, about, note=f"{ended}: see log.txt")
        return not status

    if not run(Part("first", 120), ""):
        return failed
    until = time.monotonic() + seconds
    for part in FIRST if seconds <= FIRST_SECONDS and not parts else DAY:
        if parts and part.name not in parts:
            continue
        names = part.about[:1] if tiny else part.about
        with ThreadPoolExecutor(1 if tiny else WORKERS) as pool:
            list(pool.map(lambda about, part=part: run(part, about, until), names))
    return failed


def tell(out: Path, part: str, name: str, **figures: Any) -> None:
    """Append a row to both files. Several processes do so at a time: a short line is written at once."""
    text = ", ".join(f"{key} {x:.4g}" if isinstance(x, float) else f"{key} {x}" for key, x in figures.items())
    row = json.dumps({"part": part, "name": name, **figures}, default=float)
    for file, line in (("report.jsonl", row), ("report.md", f"* {part} `{name}`: {text}")):
        with (out / file).open("a") as opened:
            opened.write(line + "\n")
    print(part, name, text, flush=True)


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "report.jsonl").read_text().splitlines()]


def table(rows: list[dict[str, Any]]) -> str:
    """The page's table: plays a second inside a call by kernel and by scan, and through `sweep`."""
    device = next((row for row in rows if row["part"] == "about" and row["name"] == "device"), {})
    found: dict[tuple[str, int], dict[str, float]] = {}
    for row in rows:
        if row["part"] in ("rates", "sweeps") and "lanes" in row:
            cell = found.setdefault((row["name"], row["lanes"]), {})
            form = row.get("form", "sweep")  # days before this one have one row for all forms of a sweep
            if "rate" in row:
                cell[form if row["part"] == "rates" else f"through {form}"] = row["rate"]
    lines = [
        f"{device.get('kind', 'no device')}, jax {device.get('jax', '?')}, plays/s:", "",
        "| algorithm | lanes | kernel | scan | kernel / scan | through `sweep` |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for (name, lanes), cell in found.items():
        kernel, scan = cell.get("kernel", cell.get("cc")), cell.get("scan")
        ratio = f"{kernel / scan:.1f}" if kernel and scan else "-"
        shown = [f"{x:.2g}" if x else "-" for x in (kernel, scan)]
        through = f"{cell['through sweep']:.2g}" if "through sweep" in cell else "-"
        lines.append(f"| `{name}` | {lanes:,} | {shown[0]} | {shown[1]} | {ratio} | {through} |")
    return "\n".join(lines) + "\n"


# ---- the parts, each in a process of its own


def cases() -> dict[str, tuple[Any, Any, int, int]]:
    """By name: algorithm, environment, plays, most lanes."""
    import numpy as np

    from jaxbandits import algorithms as a
    from jaxbandits import environments as e
    from jaxbandits.catalogue import ALGORITHMS

    means, many = np.linspace(0.1, 0.9, 10), np.linspace(0.1, 0.9, 100)
    arms, losses = partial(e.bernoulli_arms, means=means), partial(e.bernoulli_losses, means=means)
    contexts = partial(e.contextual_linear, num_arms=6 if TINY else 100, dim=3 if TINY else 5)
    agents = partial(e.federated_linear, num_agents=10, num_arms=10, dim=4)
    robust = ALGORITHMS["robust_elimination"]
    return {
        "ucb1": (a.ucb1, arms, 10_000, 2**20), "exp3": (a.exp3, losses, 10_000, 2**20),
        "htinf": (a.htinf, losses, 10_000, 2**20), "moss": (a.moss, arms, 10_000, 2**20),
        "exp3_ix": (a.exp3_ix, losses, 10_000, 2**20), "thompson": (a.thompson, arms, 2_000, 2**20),
        "private_batched": (partial(a.private_batched, epsilon=0.2), losses, 10_000, 2**20),
        "adap_ucb": (partial(a.adap_ucb, epsilon=1.0), arms, 10_000, 2**20),
        "prm_elimination": (partial(a.prm_elimination, epsilon=1.0), arms, 10_000, 2**20),
        "linucb": (a.linucb, contexts, 1_000, 2**20),
        "ldp_linucb": (partial(a.ldp_linucb, epsilon=10.0), contexts, 1_000, 2**20),
        "online_ucb": (partial(a.online_ucb, epsilon=10.0), contexts, 1_000, 2**17),
        "robust_elimination": (robust.algorithm, robust.environment, 2_000, 2**17),
        "byzantine_ucb": (partial(a.byzantine_ucb, window=8, privacy="tree", epsilon=4.0), agents, 400, 2**15),
        "ldp_exp3": (a.ldp_exp3, losses, 10_000, 2**20),
        "ucb1-100": (a.ucb1, partial(e.bernoulli_arms, means=many), 10_000, 2**20),
        "thompson-100": (a.thompson, partial(e.bernoulli_arms, means=many), 2_000, 2**17),
        "exp3-100": (a.exp3, partial(e.bernoulli_losses, means=many), 10_000, 2**20),
        "htinf-100": (a.htinf, partial(e.bernoulli_losses, means=many), 10_000, 2**20),
    }  # fmt: skip


def all_lanes() -> list[int]:
    return list(map(int, os.environ["GPU_DAY_LANES"].split()))


def device() -> Any:
    """The device that is measured."""
    import jax

    from jaxbandits.kernels import launch

    return jax.devices()[0] if TINY else next(filter(launch.has_kernels, jax.devices()))


def kernel_form() -> Any:
    return "cc" if TINY else "kernel"


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Nobody else times, or fills the memory, meanwhile."""
    import fcntl

    with Path(os.environ["GPU_DAY_LOCK"]).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def median_seconds(function: Callable[[], Any], times: int = 3, most: float = 2.0) -> float:
    """Seconds of a function: the median, after a first run. One that takes longer than `most` is not run again."""
    began = time.perf_counter()
    function()
    if (found := [time.perf_counter() - began])[0] > most:
        return found[0]
    found.clear()
    for _ in range(times):
        began = time.perf_counter()
        function()
        found.append(time.perf_counter() - began)
    return sorted(found)[times // 2]


def finished(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives, once it is there."""
    import jax

    return jax.block_until_ready(function(*args))


def swept(name: str, seeds: Any, horizon: int, form: Any, where: Any = None) -> Any:
    """The result of a sweep in one form, without the warnings that other rows give."""
    import jaxbandits as jb
    from jaxbandits.kernels import launch

    algorithm, environment, *_ = cases()[name]
    with launch.force_form(form), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jb.sweep({name: algorithm}, environment, horizon=horizon, seeds=seeds, checkpoints=min(50, horizon),
                        progress=False, devices=[where or device()])  # fmt: skip


def first(_: str) -> None:
    """One sweep in memory, as a user makes it. Its error ends the day."""
    import jaxbandits as jb

    algorithm, environment, *_ = cases()["ucb1"]
    ds = jb.sweep(algorithm, environment, horizon=100, seeds=128, progress=False, devices=[device()])
    assert float(ds.regret.isel(t=-1).min()) >= 0
    tell(OUT, "first", "ucb1", regret=float(ds.regret.isel(t=-1).mean()))


def about(_: str) -> None:
    import jax
    import jax.numpy as jnp

    card = device()
    memory = card.memory_stats() or {}
    smi = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
    said = ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(smi, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    tell(OUT, "about", "device", kind=card.device_kind, jax=jax.__version__, nvidia_smi=said,
         bytes=memory.get("bytes_limit"), multiprocessors=getattr(card, "core_count", None))  # fmt: skip

    def timed(function: Any, *args: Any, times: int = 5) -> float:
        return median_seconds(partial(finished, jax.jit(function), *args), times)

    with alone(), jax.default_device(card):
        n = 2**20 if TINY else 2**29
        tell(OUT, "about", "memory", bytes_a_second=8 * n / timed(lambda x: x + 1, jnp.ones(n)))
        lanes = 2**16 if TINY else 2**24

        def products(x: Any) -> Any:
            return jax.lax.fori_loop(0, 256, lambda i, x: x * 1.000001 + 0.5, x, unroll=256)

        tell(OUT, "about", "fp32", flops=2 * 256 * lanes / timed(products, jnp.ones(lanes)))
        tell(OUT, "about", "launch", us=1e6 * timed(lambda x: x + 1, jnp.ones(1024), times=50))
        plays = 200 if TINY else 2_000

        def turn(i: Any, x: Any) -> Any:
            return jnp.sin(x) + jnp.roll(x, 1)

        for size in (1024, 2**12 if TINY else 2**17):  # a loop whose length the compiler knows, and one of unknown
            x = jnp.ones(size)
            unknown = timed(lambda x, n: jax.lax.fori_loop(0, n, turn, x), x, plays)
            known = timed(lambda x: jax.lax.fori_loop(0, plays, turn, x), x)
            tell(OUT, "about", f"loop over {size}", us_unknown=1e6 * unknown / plays, us_known=1e6 * known / plays)


class Plays:
    """The compiled `begin` and `advance` of a case with some lanes, in one form."""

    def __init__(self, name: str, lanes: int, form: Any) -> None:
        import jax
        import numpy as np

        from jaxbandits.kernels import launch
        from jaxbandits.sweeps.compilation.compiled import functions_of_group
        from jaxbandits.sweeps.plan import host_case, plan, stack_cases

        algorithm, environment, self.horizon, _ = cases()[name]
        laid_out = plan({name: algorithm}, environment, horizon=self.horizon, seeds=lanes, checkpoints=20)
        (group,) = laid_out.groups
        host, marks = stack_cases([host_case(laid_out.cells[0])], laid_out.dtype)
        leaves, treedef = jax.tree.flatten(marks)
        run = functions_of_group(group.parts, tuple(leaves), treedef, 1, len(group.times))
        self.run, self.group, self.leaves = run, group, tuple(leaves)
        self.host, self.times = jax.device_put((host, group.times.astype(np.int32)), device())
        self.seeds, self.marks = np.arange(lanes, dtype=np.uint32), group.times
        self.span = max(group.schedule, key=lambda span: span.repeats)
        kind, began = (self.span.slots, self.span.full, self.span.whole), time.perf_counter()
        with launch.force_form(form):
            self.begin = run.program("begin", device(), self.host, self.seeds)
            lane = self.begin.out_info
            given = self.host, self.seeds, lane, self.times, self.segment(1)
            self.program = run.program("advance", device(), *given, kind=kind)
        self.compile_seconds, self.reason = time.perf_counter() - began, run.fit_kernel(kind, self.host).reason

    def segment(self, windows: int) -> Any:
        from jaxbandits.spans import segment

        return segment(self.span, 0, 0, windows, self.marks)

    def played(self, windows: int) -> tuple[float, float, Any]:
        """Seconds, plays a lane, and the lanes after the first windows."""
        import jax
        import numpy as np

        lane, where = jax.block_until_ready(self.begin(self.host, self.seeds)), self.segment(windows)
        began = time.perf_counter()
        lane = jax.block_until_ready(self.program(self.host, self.seeds, lane, self.times, where))
        return time.perf_counter() - began, float(np.asarray(lane.plays).mean()), lane

    def rate(self, seconds: float) -> dict[str, Any]:
        """Plays of all lanes a second, from a run of about so many seconds."""
        most = self.span.repeats if self.span.full else 10**6
        windows = min(most, 16)
        self.played(windows)
        took, plays, _ = self.played(windows)
        while took < seconds and windows < most and plays < 0.98 * self.horizon:
            windows = min(most, max(2 * windows, int(windows * min(1.2 * seconds / took, 20))))
            took, plays, _ = self.played(windows)
        again, _, _ = self.played(windows)
        return {
            "rate": len(self.seeds) * plays / took, "again": len(self.seeds) * plays / again, "plays": plays,
            "us_a_window": 1e6 * took / windows, "compile_seconds": self.compile_seconds,
        }  # fmt: skip


def routes(_: str) -> None:
    """Whether kernels launch by each route, and give what the scan gives; then the route that is taken."""
    import numpy as np

    from jaxbandits.kernels import launch

    # looked up here, so that a trial on a CPU misses them where they have other names
    kept, runs, routed, known = launch._here, launch._runs, launch.Gpu, launch.ROUTES
    most = 256 if TINY else 4_096
    _, _, scanned = Plays("ucb1", most, "scan").played(200)

    def same(lanes: int) -> dict[str, Any]:
        plays = Plays("ucb1", lanes, kernel_form())
        _, _, lane = plays.played(200)
        ours, theirs = (np.asarray(x.record.pulls)[:lanes].reshape(lanes, -1) for x in (lane, scanned))
        return {
            "equal_lanes": float(np.mean(np.all(ours == theirs, axis=1))),
            "as_many_plays": bool(np.array_equal(ours.sum(1), theirs.sum(1))), "compile_seconds": plays.compile_seconds,
        }  # fmt: skip

    if TINY:
        tell(OUT, "routes", "cc", **same(most))
        return
    card = device()
    capability = round(10 * float(card.compute_capability))
    for i, route in enumerate(known):
        gpu, began = routed(capability, route), time.perf_counter()
        try:
            figures: dict[str, Any] = {"runs": bool(runs(gpu, card)), "seconds": time.perf_counter() - began}
            kept[:] = [gpu]
            figures |= same(most - 128 * i)  # of another shape, or the program of the route before would be taken
        except Exception as error:
            figures = {"error": f"{type(error).__name__}: {error}"[:300]}
        tell(OUT, "routes", route, **figures)
    kept.clear()
    taken = launch.here()
    tell(OUT, "routes", "taken", route=taken.route if taken else "none")


def rates(name: str) -> None:
    for lanes in all_lanes():
        if lanes > cases()[name][3]:
            continue
        found = {}
        for form in (kernel_form(), "scan"):
            try:
                plays = Plays(name, lanes, form)
                if form != "scan" and plays.reason:
                    tell(OUT, "rates", name, lanes=lanes, form=form, note=f"no kernel: {plays.reason}"[:150])
                    continue
                with alone():
                    figures = plays.rate(0.05 if TINY else 0.4)
            except Exception as error:
                figures = {"error": f"{type(error).__name__}: {error}"[:300]}
            tell(OUT, "rates", name, lanes=lanes, form=form, **figures)
            found[form] = figures.get("rate")
        if all(found.get(form) for form in (kernel_form(), "scan")):
            tell(OUT, "rates", f"{name} kernel over scan", ratio=found[kernel_form()] / found["scan"])


def correct(name: str) -> None:
    import jax
    import numpy as np

    lanes, horizon = (48, 64) if TINY else (2_048, min(1_000, cases()[name][2]))

    def final(form: Any, first: int = 0, number: int = lanes, where: Any = None) -> Any:
        ds = swept(name, range(first, first + number), horizon, form, where)
        return np.asarray(ds.regret.isel(t=-1)).ravel()

    def apart(x: Any, y: Any) -> float:
        """The distance of two means in standard errors."""
        spread = math.sqrt(x.var() / x.size + y.var() / y.size)
        return float(abs(x.mean() - y.mean()) / spread) if spread else float(x.mean() != y.mean())

    scan, kernel, half = final("scan"), final(kernel_form()), final(kernel_form(), number=lanes // 2)
    cpu = final("scan", first=lanes, where=jax.devices("cpu")[0])
    figures = {
        "same": float(np.mean(scan == kernel)),
        "near": float(np.mean(np.abs(scan - kernel) <= 1e-3 * np.maximum(1, np.abs(scan)))),
        "lanes_alone": bool(np.array_equal(half, kernel[: half.size])), "finite": bool(np.all(np.isfinite(kernel))),
        "z_forms": apart(scan, kernel), "z_cpu": apart(kernel, cpu), "mean": float(kernel.mean()),
        "mean_cpu": float(cpu.mean()),
    }  # fmt: skip
    right = figures["finite"] and figures["lanes_alone"] and max(figures["z_forms"], figures["z_cpu"]) < 4
    tell(OUT, "correct", name, right=bool(right), **figures)


def catalogue(share: str) -> None:
    import jax
    import numpy as np

    import jaxbandits as jb
    from jaxbandits.catalogue import EVERYTHING
    from jaxbandits.kernels import launch

    _, first, _, shares = share.split()
    for name in list(EVERYTHING)[int(first) :: int(shares) * (SHARES if TINY else 1)]:
        case, found, figures, said = EVERYTHING[name], {}, {}, []
        for form in (kernel_form(), "scan"):
            began = time.perf_counter()
            try:
                with launch.force_form(form), warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    ds = jb.sweep({name: case.algorithm}, case.environment, horizon=case.horizon,
                                  seeds=48 if TINY else 2_048, reward_adversary=case.reward_adversary,
                                  message_adversary=case.message_adversary, progress=False,
                                  devices=[device()])  # fmt: skip
            except Exception as error:
                figures[f"error_{form}"] = f"{type(error).__name__}: {error}"[:300]
                continue
            found[form] = np.asarray(ds.regret.isel(t=-1)).ravel()
            figures[f"seconds_{form}"] = time.perf_counter() - began
            if form != "scan":
                figures |= {"said": "; ".join(str(x.message)[:120] for x in said)} if said else {}
        if len(found) == 2:
            ours, scan = found.values()
            near = np.abs(ours - scan) <= 1e-3 * np.maximum(1, np.abs(scan))
            figures |= {"same": float(np.mean(ours == scan)), "near": float(np.mean(near)),
                        "mean": float(ours.mean()), "mean_scan": float(scan.mean())}  # fmt: skip
        tell(OUT, "catalogue", name, **figures)
        jax.clear_caches()


def sweeps(name: str) -> None:
    """Most lanes first. Others time between two rows, and what takes long runs once: waiting counts in their limits."""
    for lanes in reversed(all_lanes()):
        if lanes > cases()[name][3]:
            continue
        most = 64 if TINY else cases()[name][2]
        for label, form, plays in (("sweep", kernel_form(), most), ("pull", kernel_form(), 10), ("scan", "scan", most)):
            with alone():
                seconds = median_seconds(partial(swept, name, lanes, plays, form), 1, most=15)
            tell(OUT, "sweeps", name, lanes=lanes, form=label, seconds=seconds, rate=lanes * plays / seconds)


def grid(label: str) -> None:
    import numpy as np

    import jaxbandits as jb

    name, *again = label.split()
    seeds, points, horizon = (32, 3, 64) if TINY else (1_000, 64, 10_000)
    values = {"epsilon": [float(x) for x in np.geomspace(0.05 if TINY else 0.01, 1.0, points)]}
    algorithm = getattr(jb.algorithms, name)
    for turn in ("second process",) if again else ("first", "second"):
        with alone():
            began, cpu = time.perf_counter(), time.process_time()
            jb.sweep({name: algorithm}, cases()["exp3"][1], horizon=horizon, seeds=seeds, grid=values, checkpoints=50,
                     progress=False, devices=[device()])  # fmt: skip
            took = time.perf_counter() - began
        tell(OUT, "grid", f"{name} {turn}", seconds=took, host_cpu_s=time.process_time() - cpu,
             rate=seeds * points * horizon / took)  # fmt: skip
    if not again:
        subprocess.run([sys.executable, __file__, "--part", "grid", name, "again"], check=True)


def peers(name: str) -> None:
    import gpu_peers

    gpu_peers.measure(name)


def estimators(name: str) -> None:
    import jax
    import numpy as np
    from estimator_cases import CASES

    from jaxbandits.numerics import device_forms

    stem, *sizes = name.split("-")
    case = CASES[stem](*map(int, [] if TINY else sizes))
    numbers = (64,) if TINY else (10_000, 100_000)
    found: dict[int, Any] = {}
    for form, forced in (("kernel", "cc" if TINY else None), ("xla", "xla")):  # a row each: XLA may take minutes
        for lanes in numbers:
            arrays = jax.device_put(case.arrays(lanes), device())
            began, figures = time.perf_counter(), dict[str, Any]()
            try:
                with device_forms.force_device_form(forced):
                    program = jax.jit(jax.vmap(case.function)).lower(*arrays).compile()
                figures["compile_seconds"] = time.perf_counter() - began
                with alone():
                    given = jax.block_until_ready(program(*arrays))
                    figures["seconds"] = seconds = median_seconds(partial(finished, program, *arrays))
            except Exception as error:
                tell(OUT, "estimators", name, lanes=lanes, form=form, error=f"{type(error).__name__}: {error}"[:300])
                continue
            tell(OUT, "estimators", name, lanes=lanes, form=form, **figures)
            if form == "kernel":
                found[lanes] = given, seconds
            elif lanes in found:
                ours, least = found[lanes]
                pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(given), strict=True)
                apart = [np.max(np.abs(np.float64(a) - np.float64(b)), initial=0) for a, b in pairs]
                tell(OUT, "estimators", f"{name} kernel over xla", lanes=lanes, ratio=seconds / least,
                     apart=float(max(apart)))  # fmt: skip


def flags(label: str) -> None:
    """The scan under the flags of this process: compare with `rates`."""
    for name in ("exp3",) if TINY else ("exp3", "linucb"):
        plays = Plays(name, all_lanes()[0], "scan")
        with alone():
            figures = plays.rate(0.05 if TINY else 0.4)
        tell(OUT, "flags", f"{name}, {label}", **figures)


def profile(name: str) -> None:
    """What NVIDIA's profiler says of one launch of a kernel, where it is installed."""
    ncu = shutil.which("ncu")
    if ncu is None:
        tell(OUT, "profile", name, skipped="ncu is not installed")
        return
    command = [ncu, "--clock-control", "none", "--set", "full", "-k", "regex:stretch", "-c", "1", "-o", f"{OUT}/{name}"]
    with alone():
        subprocess.run([*command, "-f", sys.executable, __file__, "--part", "once", name], check=True)
        details = [ncu, "--import", f"{OUT}/{name}.ncu-rep", "--page", "details"]
        said = subprocess.run(details, check=True, capture_output=True, text=True).stdout
    (OUT / "profile.txt").write_text(said)
    tell(OUT, "profile", name, lines=said.count("\n"))


def once(name: str) -> None:
    """One launch, for the profiler."""
    Plays(name, all_lanes()[0], kernel_form()).played(500)


def options(name: str) -> None:
    """Forms of kernels that wait for a card's figures."""
    import gpu_options

    gpu_options.time_option(name)


PARTS: dict[str, Callable[[str], None]] = {
    "first": first, "about": about, "routes": routes, "rates": rates, "correct": correct, "sweeps": sweeps,
    "catalogue": catalogue, "grid": grid, "peers": peers, "estimators": estimators, "flags": flags, "profile": profile,
    "once": once, "options": options,
}  # fmt: skip


def has_gpu() -> bool:
    """Whether there is a GPU that takes kernels, found out by a process that ends."""
    script = "import jax; from jaxbandits.kernels import launch; print(any(map(launch.has_kernels, jax.devices())))"
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    if found.returncode:
        raise SystemExit(f"gpu.py: the package cannot be imported here:\n{found.stderr}")
    return found.stdout.split()[-1] == "True"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="at most about so long (default: 10)")
    parser.add_argument("--out", metavar="DIR", default="runs/gpu", help="where the report goes (default: runs/gpu)")
    parser.add_argument("--lanes", type=int, nargs="+", help="lanes of a call (default: 131072 and 1048576)")
    parser.add_argument("--tiny", action="store_true", help="on this machine's CPU, in tiny sizes, to try it")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[], help="only these, after the first sweep")
    parser.add_argument("--rows", metavar="DIR", help="measure nothing: take the rows that lie there")
    parser.add_argument("--write", metavar="PAGE", help="put the table into a page, between its marks")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        PARTS[chosen.part[0]](" ".join(chosen.part[1:]))
        return
    out, failed = Path(chosen.rows or chosen.out).resolve(), []
    if not chosen.rows:
        if not chosen.tiny and not has_gpu():
            print("no GPU here: nothing was measured")
            return
        out.mkdir(parents=True, exist_ok=True)
        for file in FILES:
            (out / file).unlink(missing_ok=True)
        began = time.monotonic()
        lanes = chosen.lanes or ([128, 256] if chosen.tiny else [131_072, 1_048_576])
        with tempfile.TemporaryDirectory() as cache:
            failed = day(out, 60 * chosen.minutes, chosen.tiny, lanes, chosen.parts, cache)
        tell(out, "day", "took", seconds=round(time.monotonic() - began))
        if failed == ["first"]:
            raise SystemExit(f"gpu.py: no sweep runs here, so nothing was measured:\n{(out / 'log.txt').read_text()}")
    import gpu_peers

    rows = rows_of(out)
    text, beside = table(rows), gpu_peers.table(rows)
    print(text, beside, sep="\n")
    if not chosen.rows:
        with (out / "report.md").open("a") as file:
            file.write(f"\n{text}\n{beside}")
    if chosen.write:
        put_between(Path(chosen.write), "gpu-day", text)
        put_between(Path(chosen.write), "gpu-peers", beside)
    if failed:
        raise SystemExit(f"gpu.py: these parts failed, see {out / 'log.txt'}: {', '.join(failed)}")


if __name__ == "__main__":
    main()

"""Rates, correctness and transfers on a GPU, unattended, with a report. Without a GPU: one line.

    python benchmarks/gpu.py --out DIR                 ten minutes at most; writes DIR/report.md and DIR/report.json
    python benchmarks/gpu.py --out DIR --minutes 3     less: rows that no time is left for are named as missing

Every rate is plays of all lanes per second of wall clock through the public `sweep`, the second of two equal runs, so
that compilation is not in it. `scan` is the same sweep without kernels. `pull` is what is left of the time when most
plays are taken away: a sweep of ten plays. Regrets are compared with those of the CPU on as many other seeds.
Estimators and Maler (`estimator_cases.py`) are called alone: seconds a call by their kernel and by XLA's operations,
and the largest difference between the two.
"""

import argparse
import contextlib
import json
import math
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from estimator_cases import CASES

import jaxbandits as jb
from jaxbandits.kernels import forms
from jaxbandits.numerics import device_forms

MEANS = np.linspace(0.1, 0.9, 10)
ARMS = partial(jb.environments.bernoulli_arms, means=MEANS)
LOSSES = partial(jb.environments.bernoulli_losses, means=MEANS)
CONTEXTS = partial(jb.environments.contextual_linear, num_arms=6, dim=3)
# One of every family: algorithm, environment, plays.
FAMILIES: dict[str, tuple[Any, Any, int]] = {
    "ucb1": (jb.algorithms.ucb1, ARMS, 10_000),
    "exp3": (jb.algorithms.exp3, LOSSES, 10_000),
    "htinf": (jb.algorithms.htinf, LOSSES, 10_000),
    "thompson": (jb.algorithms.thompson, ARMS, 1_000),
    "private_batched": (partial(jb.algorithms.private_batched, epsilon=0.2), LOSSES, 10_000),
    "linucb": (jb.algorithms.linucb, CONTEXTS, 1_000),
    "adap_ucb": (partial(jb.algorithms.adap_ucb, epsilon=1.0), ARMS, 10_000),
    "prm_elimination": (partial(jb.algorithms.prm_elimination, epsilon=1.0), ARMS, 1_000),
}
LANES = (10_000, 100_000, 1_000_000)
ESTIMATOR_LANES = 100_000  # the most that estimators are called with
CHECKED_LANES, CHECKPOINTS = 2_000, 50
PULL = 10  # plays of a sweep whose time is mostly what is around them: batched HTINF takes no fewer at epsilon 0.2
MOST_APART = 5.0  # standard errors by which mean regrets of two devices may differ


def gpu() -> Any:
    """The first GPU; None without one."""
    return next((device for device in jax.devices() if forms.has_kernels(device)), None)


def played(name: str, lanes: int, horizon: int, device: Any, first: int = 0) -> Any:
    """The result of one sweep on one device."""
    algorithm, environment, _ = FAMILIES[name]
    return jb.sweep(
        {name: algorithm}, environment, horizon=horizon, seeds=range(first, first + lanes), checkpoints=CHECKPOINTS,
        progress=False, devices=[device],
    )  # fmt: skip


def seconds(function: Callable[[], Any]) -> float:
    """Wall clock of the second of two runs."""
    function()
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def rate(name: str, lanes: int, device: Any) -> dict[str, float]:
    """Plays a second with and without kernels, and the seconds that are no plays."""
    horizon = FAMILIES[name][2]
    with forms.forced("scan"):
        scan = seconds(partial(played, name, lanes, horizon, device))
    ours = seconds(partial(played, name, lanes, horizon, device))
    return {
        "rate": lanes * horizon / ours,
        "scan": lanes * horizon / scan,
        "pull": seconds(partial(played, name, lanes, PULL, device)),
        "seconds": ours,
    }


def checked(name: str, device: Any) -> dict[str, Any]:
    """Whether a device's regrets have the CPU's mean, and whether a lane depends on the lanes beside it."""
    horizon = min(FAMILIES[name][2], 1_000)

    def final(where: Any, first: int, lanes: int = CHECKED_LANES) -> np.ndarray[Any, Any]:
        return np.asarray(played(name, lanes, horizon, where, first).regret.isel(t=-1)).ravel()

    here, cpu = final(device, 0), final(jax.devices("cpu")[0], CHECKED_LANES)
    spread = math.sqrt(here.var() / here.size + cpu.var() / cpu.size)
    apart = abs(here.mean() - cpu.mean()) / spread if spread else float(here.mean() != cpu.mean())
    alone = final(device, 0, CHECKED_LANES // 4)
    return {
        "mean": here.mean(), "mean_cpu": cpu.mean(), "standard_errors": apart, "agrees": bool(apart < MOST_APART),
        "lanes_alone": bool(np.array_equal(alone, here[: alone.size])),
    }  # fmt: skip


def estimated(name: str, lanes: int, device: Any) -> dict[str, float]:
    """Seconds a call of an estimator, by its kernel and in XLA's operations, and how far their results lie apart."""
    case = CASES[name]()
    arrays = jax.device_put(case.arrays(lanes), device)
    found, took = {}, {}
    for form in ("kernel", "xla"):
        with device_forms.forced(None if form == "kernel" else "xla"):
            program = jax.jit(jax.vmap(case.function)).lower(*arrays).compile()
        found[form] = jax.block_until_ready(program(*arrays))
        took[form] = seconds(lambda program=program: jax.block_until_ready(program(*arrays)))
    pairs = zip(jax.tree.leaves(found["kernel"]), jax.tree.leaves(found["xla"]), strict=True)
    apart = [np.max(np.abs(np.float64(a) - np.float64(b)), initial=0) for a, b in pairs]
    return {**took, "ratio": took["xla"] / took["kernel"], "apart": float(max(apart))}


def about(device: Any) -> dict[str, Any]:
    """The device, its memory, and its power where nvidia-smi says it."""
    memory = device.memory_stats() or {}
    found = {"device": device.device_kind, "jax": jax.__version__, "most_bytes": memory.get("peak_bytes_in_use")}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader"]
        found["power"] = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    return found


def measured(device: Any, until: float, lanes: tuple[int, ...]) -> Iterator[tuple[str, str, Any]]:
    """(section, row, figures), what matters most first; None for a row that no time was left for."""
    jobs: list[tuple[str, str, Callable[[], Any]]] = [
        ("correct", name, partial(checked, name, device)) for name in FAMILIES
    ]
    jobs += [
        ("estimators", f"{name} {many}", partial(estimated, name, many, device))
        for many in lanes
        if many <= ESTIMATOR_LANES
        for name in CASES
    ]
    jobs += [("rates", f"{name} {many}", partial(rate, name, many, device)) for many in lanes for name in FAMILIES]
    for section, row, job in jobs:
        if time.monotonic() > until:
            yield section, row, None
            continue
        try:
            yield section, row, job()
        except Exception as error:  # the other rows are still worth having
            yield section, row, {"error": f"{type(error).__name__}: {error}"[:300]}


def report(found: dict[str, Any]) -> str:
    """The figures as a page."""
    lines = ["# On a GPU", ""]
    lines += [f"* {name}: {value}" for name, value in found["about"].items()]
    for section in ("correct", "estimators", "rates"):
        lines += ["", f"## {section}", ""]
        for row, figures in found[section].items():
            shown = "no time was left" if figures is None else ", ".join(f"{k} {_shown(v)}" for k, v in figures.items())
            lines.append(f"* `{row}`: {shown}")
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="at most about so long (default: 10)")
    parser.add_argument("--out", metavar="DIR", default="runs/gpu", help="where the report goes (default: runs/gpu)")
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES, help="lanes of a sweep")
    parser.add_argument("--anywhere", action="store_true", help="on this machine's device, whatever it is")
    chosen = parser.parse_args()
    device = jax.devices()[0] if chosen.anywhere else gpu()
    if device is None:
        print("no GPU here: nothing was measured")
        return
    until, folder = time.monotonic() + 60 * chosen.minutes, Path(chosen.out)
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"about": about(device), "correct": {}, "estimators": {}, "rates": {}}
    for section, row, figures in measured(device, until, tuple(chosen.lanes)):
        found[section][row] = figures
        found["about"] = about(device)
        print(section, row, figures, flush=True)
        (folder / "report.json").write_text(json.dumps(found, indent=2, default=float) + "\n")
        (folder / "report.md").write_text(report(found))


if __name__ == "__main__":
    main()

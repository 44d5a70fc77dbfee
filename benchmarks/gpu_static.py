"""What every algorithm of the catalogue would do on a GPU, found without one.

    python benchmarks/gpu_static.py                     every algorithm, and some with ten arms (ucb1-10) or 100
    python benchmarks/gpu_static.py ucb1 exp3           only these
    python benchmarks/gpu_static.py spectral_filter     or geometric_median, warm_median, maler
    python benchmarks/gpu_static.py --target a100       for another device: h200 (default), a100, t4, tpu_v5e
    python benchmarks/gpu_static.py --json FILE         write the figures there too

Nothing here was measured on a GPU. A row says whether plays run as one kernel or as XLA compiles them, and how the
kernel holds arrays: written out, each element a number, or some of them in memory with loops over them. Statements a
play and numbers alive are the package's own counts, what is in a loop once. Where a window holds several plays, its
counts are shared out among them, as if every window were full. The modelled rate takes every operation for an integer
one, of which a multiprocessor starts 64 a cycle (of mixed kinds it starts up to 128), blocks of 128 lanes spread
evenly, and memory at the vendor's bandwidth. Launches and the host are not in it.

Where NVRTC and ptxas are installed (`jax[cuda12]` and `jax[cuda13]` bring both), kernels are compiled for the device,
which need not be there: registers, spills, seconds of one core, and instructions in the loop over plays (these with
`nvidia-cuda-nvdisasm`). Then the rate is modelled from instructions. With JAX's CUDA plugin the whole programs are
compiled too, and their kernels a play counted. With `libtpu` installed, that is done for a TPU, where XLA makes all
kernels. What is not known is null in the file and a dash in the table.

A second table holds estimators and Maler (`estimator_cases.py`), each one kernel over lanes: its counts, and the
kernels of the same function in XLA's operations.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PLAYS, ROWS = 10_000, 200  # of the stretch whose bytes a play are shown: plays, checkpoints written
LANES = {"100,000": 100_000, "1,000,000": 1_000_000}
COMPILED_LANES = 131_072
PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")
TPU_PLUGINS = ("libtpu",)


class Target(NamedTuple):
    """A device as its vendor describes it."""

    title: str
    capability: tuple[int, int]
    multiprocessors: int
    integers: int  # operations that a multiprocessor starts a cycle
    clock: float  # cycles a second under load
    bandwidth: float  # bytes a second
    memory: int  # bytes
    cache: int  # bytes of the second level
    shared: int  # bytes of a multiprocessor's shared memory
    threads: int  # of a multiprocessor


TARGETS: dict[str, Target | None] = {
    "h200": Target("NVIDIA H200", (9, 0), 132, 64, 1.755e9, 4.8e12, 150_000_000_000, 62_914_560, 233_472, 2048),
    "a100": Target("NVIDIA A100", (8, 0), 108, 64, 1.41e9, 1.555e12, 42_000_000_000, 41_943_040, 167_936, 2048),
    "t4": Target("Tesla T4", (7, 5), 40, 64, 1.59e9, 3.2e11, 15_800_000_000, 4_194_304, 65_536, 1024),
    "tpu_v5e": None,  # no kernels there: every program runs as XLA compiles it, and no rate is modelled
}
TPU = "v5e:2x2"  # as `libtpu` names it


def cases() -> dict[str, Any]:
    """The catalogue's cases, and further ones with ten arms, 100 arms, and 100 arms that are drawn anew."""
    from functools import partial

    import numpy as np

    from jaxbandits import algorithms as a
    from jaxbandits import environments as e
    from jaxbandits.catalogue import ALGORITHMS, SmallSweep

    means = np.linspace(0.1, 0.9, 10)
    arms, losses = partial(e.bernoulli_arms, means=means), partial(e.bernoulli_losses, means=means)
    hundred = np.linspace(0.1, 0.9, 100)
    many, many_losses = partial(e.bernoulli_arms, means=hundred), partial(e.bernoulli_losses, means=hundred)
    contexts = partial(e.contextual_linear, num_arms=100, dim=5, reward="bernoulli")
    return {
        **ALGORITHMS,
        "ucb1-10": SmallSweep(a.ucb1, arms),
        "moss-10": SmallSweep(a.moss, arms),
        "exp3-10": SmallSweep(a.exp3, losses),
        "exp3-mixing-10": SmallSweep(partial(a.exp3, learning_rate=0.05, mixing=0.1), losses),
        "htinf-10": SmallSweep(a.htinf, losses),
        "ucb1-100": SmallSweep(a.ucb1, many),
        "kl_ucb-100": ALGORITHMS["kl_ucb"]._replace(environment=many),
        "thompson-100": SmallSweep(a.thompson, many),
        "exp3-100": SmallSweep(a.exp3, many_losses),
        "htinf-100": SmallSweep(a.htinf, many_losses),
        "private_batched-100": ALGORITHMS["private_batched"]._replace(environment=many_losses),
        "prm_elimination-100": ALGORITHMS["prm_elimination"]._replace(environment=many),
        "linucb-100": SmallSweep(a.linucb, contexts),
    }


def laid_out(name: str) -> tuple[Any, Any, Any, Any]:
    """The group of an algorithm's case, its compiled functions, and its numbers as shapes, without a device."""
    import jax

    from jaxbandits.sweeps.compilation.compiled import compiled
    from jaxbandits.sweeps.plan import host_case, plan, stacked

    row = cases()[name]
    laid_out = plan(
        {name: row.algorithm}, row.environment, horizon=row.horizon, seeds=16, grid=None, points=None,
        reward_adversary=row.reward_adversary, message_adversary=row.message_adversary, checkpoints=8, dtype="float32",
    )  # fmt: skip
    group = laid_out.groups[0]
    host, marks = stacked([host_case(laid_out.cells[0])], laid_out.dtype)
    marked, treedef = jax.tree.flatten(marks)
    run = compiled(group.parts, tuple(marked), treedef, 1, len(group.times))
    return group, run, jax.tree.map(jax.typeof, host), max(group.schedule, key=lambda span: span.repeats)


def counted(name: str, target: str) -> dict[str, Any]:
    """A row without a compiler."""
    import jax
    import numpy as np

    group, run, case, span = laid_out(name)
    choice = run.choice((span.slots, span.full, span.whole), case)
    reason = choice.reason if TARGETS[target] else "kernels are for GPUs"
    kernel, single = choice.kernel, choice.window.kind == "single"
    census = kernel and kernel.census
    row: dict[str, Any] = {
        "name": name, "form": "xla" if reason else "kernel", "reason": reason,
        "plays_per_window": None if single else choice.window.slots, "arrays": kernel and kernel.form,
        "operations_per_play": census and -(-census.operations // choice.window.slots),
        "numbers_alive": census and census.alive, "loops": census and census.loops,
        "kernels_per_play": None, "host_syncs_per_segment": None, "registers": None,
        "spills": None, "instructions_per_play": None, "compile_seconds": None, "bytes_per_play": None,
        "modelled_plays_per_second": None,
    }  # fmt: skip
    if not reason:
        lane = jax.eval_shape(run.functions["begin"], case, np.zeros(1, np.uint32))
        record = lane.record
        kept = bytes_of((record.pulls_at, record.regret_at))
        moved = 2 * (bytes_of(lane) - kept) + ROWS * kept // len(group.times)
        row |= {"kernels_per_play": 1 / PLAYS, "host_syncs_per_segment": 0, "bytes_per_play": moved / PLAYS}
        row |= machine_code(kernel.source, TARGETS[target], row["plays_per_window"])
    return row


def bytes_of(tree: Any) -> int:
    """Bytes of some arrays."""
    import jax

    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def modelled(row: dict[str, Any], target: Target) -> dict[str, float]:
    """Plays a second of all lanes, by the number of lanes."""
    work = row["instructions_per_play"] or row["operations_per_play"]
    rates = {}
    for title, lanes in LANES.items():
        blocks = -(-lanes // 128)
        busiest = -(-blocks // target.multiprocessors)  # blocks of the multiprocessor that has most
        arithmetic = lanes * target.integers * target.clock / (busiest * 128 * work)
        rates[title] = min(arithmetic, target.bandwidth / row["bytes_per_play"])
    return rates


# ---- compiled for a device that need not be there


def description(target: Target) -> str:
    """A device in the words of XLA's compiler."""
    major, minor = target.capability
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: {target.shared} threads_per_core_limit: {target.threads}
  core_count: {target.multiprocessors} fpus_per_core: {target.integers}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {int(target.bandwidth)} l2_cache_size: {target.cache} clock_rate_ghz: {target.clock / 1e9}
  device_memory_size: {target.memory} shared_memory_per_block_optin: {target.shared - 1024}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 }}
runtime_version {{ major: 12 minor: 9 patch: 0 }}
device_description_str: "{target.title}"
"""


def absent(target: Target | None) -> Any:
    """A device that need not be there, as the place of arrays."""
    import jax
    from jax.experimental import topologies

    if target is None:
        topology = topologies.get_topology_desc(TPU, platform="tpu")
    else:
        topology = topologies.get_topology_desc(platform="cuda", target_config=description(target), topology="1x1x1")
    return jax.sharding.SingleDeviceSharding(topology.devices[0])


def compile_here(name: str, target: Target | None, form: str) -> None:
    """Compile one program for the device, and print its kernels. XLA_FLAGS says where its machine code is left."""
    import jax
    import numpy as np

    from jaxbandits.kernels.launch import absent_gpu
    from jaxbandits.spans import segment

    device = absent(target)
    group, run, case, span = laid_out(name)
    kind = span.slots, span.full, span.whole

    def there(tree: Any) -> Any:
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype, sharding=device), tree)

    case, seeds = there(case), there(np.zeros(COMPILED_LANES, np.uint32))
    lane = there(run.functions["begin"].trace(case, seeds).out_info)
    given = case, seeds, lane, there(group.times.astype(np.int32)), there(segment(span, 0, 0, 1, group.times))
    function, static = ("kernel", (kind, "kernel")) if form == "kernel" else ("advance", (kind,))
    with absent_gpu(capability_of(target)) if target else contextlib.nullcontext():
        text = run.functions[function].lower(*static, *given).compile().as_text()
    print(json.dumps({"kernels": kernels_in(text)}))


def compile_estimator(name: str, target: Target, form: str) -> None:
    """The same for one function of `estimator_cases`."""
    import jax
    import numpy as np
    from estimator_cases import CASES

    from jaxbandits.kernels.launch import absent_gpu
    from jaxbandits.numerics import device_forms

    device, case = absent(target), CASES[name]
    given = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((COMPILED_LANES, *np.shape(x)[1:]), x.dtype, sharding=device), case.arrays(1)
    )
    with absent_gpu(capability_of(target)), device_forms.forced("xla" if form == "xla" else None):
        text = jax.jit(jax.vmap(case.function)).lower(*given).compile().as_text()
    print(json.dumps({"kernels": kernels_in(text)}))


def capability_of(target: Target) -> int:
    """The compute capability as kernels name it: 75 for 7.5."""
    return 10 * target.capability[0] + target.capability[1]


def kernels_in(text: str) -> int:
    """Kernels of the part of a compiled program that has most of them: what is repeated, or all of it."""
    parts = re.split(r"\n(?=\S.*\{$)", text)
    return max(len(re.findall(r"^ .* (?:fusion|custom-call|sort)\(", part, re.MULTILINE)) for part in parts)


def compiled_for(row: dict[str, Any], name: str, target: str) -> dict[str, Any]:
    """What the compiler says of a row; {} where it fails, with a line that says so."""
    kernels = compiled_apart(name, target, row["form"])
    if row["form"] == "kernel" and kernels is not None:
        kernels /= PLAYS
    return {} if kernels is None else {"kernels_per_play": kernels}


def compiled_apart(name: str, target: str, form: str) -> Any:
    """How many kernels a program is, by a process of its own; None where it fails."""
    done = subprocess.run(
        [sys.executable, __file__, "--compile", form, "--target", target, name],
        env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        print(f"{name}: {(done.stderr.strip() or 'no message').splitlines()[-1][:150]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])["kernels"]


def machine_code(source: Any, target: Target | None, plays: int | None) -> dict[str, Any]:
    """Registers, spilled bytes and instructions a play, of a kernel that holds one loop over plays or windows.

    plays: of a window; None where single plays lie between checkpoints. {} without NVRTC and ptxas.
    """
    from jaxbandits.kernels import nvrtc

    ptxas, nvdisasm = tool("ptxas"), tool("nvdisasm")
    if ptxas is None or target is None:
        return {}
    began, (major, minor) = time.perf_counter(), target.capability
    with tempfile.TemporaryDirectory() as folder:
        ptx, found = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        try:
            ptx.write_text(nvrtc.ptx(source.text, capability_of(target)))
        except nvrtc.Missing:
            return {}
        command = [ptxas, f"-arch=sm_{major}{minor}", "-v", "-O3", "-o", str(found), str(ptx)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        spills = sum(map(int, re.findall(r"(\d+) bytes spill", said)))
        row: dict[str, Any] = {"registers": int(re.findall(r"Used (\d+) registers", said)[0]), "spills": spills}
        row["compile_seconds"] = time.perf_counter() - began
        if nvdisasm is not None:
            text = subprocess.run([nvdisasm, "-c", str(found)], capture_output=True, text=True, check=True).stdout
            row["instructions_per_play"] = -(-loop_over_plays(text, plays is None) // (plays or 1))
            row["instructions"] = len(instructions_of(text))
    return row


def instructions_of(text: str) -> list[str]:
    """The instructions of disassembled machine code, without those that do nothing."""
    found = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", text)
    return [each for each in found if "NOP" not in each]


def loop_over_plays(text: str, single: bool = True) -> int:
    """Instructions of the longest loop, which is over windows.

    single: whether it is over checkpoints, and the loop over plays is the longest one inside of it.
    """
    labels, instructions = {}, 0
    loops: list[tuple[int, int]] = []
    for line in text.splitlines():
        if label := re.match(r"\s*\.(L_x_\d+):", line):
            labels[label[1]] = instructions
        if code := re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            back = re.search(r"BRA.*`\(\.(L_x_\d+)\)", code[1])
            if back and labels.get(back[1], instructions) < instructions:
                loops.append((labels[back[1]], instructions))
            instructions += "NOP" not in code[1]
    first, last = max(loops, key=lambda loop: loop[1] - loop[0])
    inside = [b - a + 1 for a, b in loops if (a, b) != (first, last) and first <= a and b <= last]
    return max(inside if single else [], default=last - first + 1)


def tool(name: str) -> str | None:
    """A program of the CUDA toolkit, from the package that brings it."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return next((str(path) for folder in folders for path in Path(folder).glob(f"*/bin/{name}")), None)


# ---- the table


def rows(names: list[str], target: str) -> Iterator[dict[str, Any]]:
    device = TARGETS[target]
    compiles = any(map(importlib.util.find_spec, TPU_PLUGINS if device is None else PLUGINS))
    for name in names:
        row = counted(name, target)
        if compiles:
            row |= compiled_for(row, name, target)
        if row["form"] == "kernel":
            row["modelled_plays_per_second"] = modelled(row, device)
        yield row


def estimator_rows(names: list[str], target: str) -> Iterator[dict[str, Any]]:
    from estimator_cases import CASES

    device = TARGETS[target]
    compiles = device is not None and any(importlib.util.find_spec(plugin) for plugin in PLUGINS)
    for name in names:
        kernel = CASES[name].kernel()
        row: dict[str, Any] = {
            "name": name, "title": CASES[name].title, "arrays": kernel.form, "operations": kernel.census.operations,
            "numbers_alive": kernel.census.alive, "registers": None, "spills": None, "instructions": None,
            "compile_seconds": None, "kernels_of_xla": None,
        }  # fmt: skip
        found = machine_code(kernel.source, device, 1)
        row |= {key: found.get(key) for key in ("registers", "spills", "instructions", "compile_seconds")}
        if compiles:
            row["kernels_of_xla"] = compiled_apart(name, target, "xla")
        yield row


def estimator_line(row: dict[str, Any]) -> str:
    """A row of the second table."""
    figures = [cell(value) for key, value in row.items() if key not in ("name", "title")]
    return f"| {' | '.join([row['title'], *figures])} |"


def cell(value: Any) -> str:
    """A figure of a table."""
    if isinstance(value, str):
        return value
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.2g}"


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    names = (
        "arrays", "plays_per_window", "operations_per_play", "numbers_alive", "loops", "kernels_per_play",
        "host_syncs_per_segment", "registers", "spills", "instructions_per_play", "compile_seconds", "bytes_per_play",
    )  # fmt: skip
    rates = (row["modelled_plays_per_second"] or dict.fromkeys(LANES)).values()
    form = row["form"] if not row["reason"] else f"{row['form']}: {row['reason']}"
    return " | ".join(
        ["", f"`{row['name']}`", form, *(cell(row[name]) for name in names), *map(cell, rates), ""]
    ).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="algorithms of the catalogue; all by default")
    parser.add_argument("--target", choices=TARGETS, default="h200", help="the device (default: h200)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--compile", choices=("kernel", "xla"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"  # before JAX is loaded: nothing is computed, and no device is asked for
    from estimator_cases import CASES

    algorithms = cases()
    unknown = [name for name in chosen.names if name not in {**algorithms, **CASES}]
    if unknown:
        parser.error(f"no algorithm {unknown[0]!r}: choose from {', '.join([*algorithms, *CASES])}")
    if chosen.compile:
        compile_one = compile_estimator if chosen.names[0] in CASES else compile_here
        compile_one(chosen.names[0], TARGETS[chosen.target], chosen.compile)
        return
    names = chosen.names or [*algorithms, *CASES]
    print(
        "| algorithm | form | arrays | plays a window | operations a play | numbers alive | loops | kernels a play "
        "| host waits a segment | registers | spilled bytes | instructions a play | seconds of compiling "
        f"| bytes a play | modelled plays/s, 100,000 lanes | 1,000,000 lanes |\n|{'---|' * 16}"
    )
    found, of_estimators = [], []
    for row in rows([name for name in names if name in algorithms], chosen.target):
        found.append(row)
        print(line(row), flush=True)
    estimators = [name for name in names if name in CASES]
    if estimators:
        heads = (
            "one call | arrays | operations | numbers alive | registers | spilled bytes | instructions "
            "| seconds of compiling | kernels of XLA's form"
        )
        print(f"\n| {heads} |\n|{'---|' * 9}")
    for row in estimator_rows(estimators, chosen.target):
        of_estimators.append(row)
        print(estimator_line(row), flush=True)
    if chosen.json:
        found_there = {"target": chosen.target, "rows": found, "estimators": of_estimators}
        Path(chosen.json).write_text(json.dumps(found_there, indent=2) + "\n")


if __name__ == "__main__":
    main()

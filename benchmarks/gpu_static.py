"""What every algorithm of the catalogue would do on a GPU, found without one.

    python benchmarks/gpu_static.py                     every algorithm, and many at the papers' sizes
    python benchmarks/gpu_static.py ucb1 exp3           only these
    python benchmarks/gpu_static.py ucb1-100 linucb-100-5    on 100 arms; on 100 arms of five features
    python benchmarks/gpu_static.py byzantine_ucb-10    with ten agents
    python benchmarks/gpu_static.py spectral_filter-50 geometric_median-20-14 maler-5    estimators and Maler
    python benchmarks/gpu_static.py --target a100       for another device: h200 (default), h100, a100, t4, tpu_v5e
    python benchmarks/gpu_static.py --json FILE         write the figures there too
    python benchmarks/gpu_static.py --write PAGE        put the table into a page, between its marks

Nothing here was measured on a GPU. A row says whether plays run as one kernel or as XLA compiles them, and how the
kernel holds arrays: written out, each element a number, or some of them in memory with loops over them. Statements a
play and numbers alive are the package's own counts, what is in a loop once; times in memory are loads and stores of a
thread's memory in every turn of the loops, and of numbers that will find no register. Where a window holds several
plays, its counts are shared out among them, as if every window were full. A row of an estimator (`estimator_cases.py`)
is about one call where others are about one play.

Where NVRTC and ptxas are installed (`jax[cuda12]` and `jax[cuda13]` bring both), kernels are compiled for the device,
which need not be there: registers, spilled bytes, memory of a thread, seconds of one core; and with
`nvidia-cuda-nvdisasm` instructions in the loop over plays, by the unit that carries them out. With JAX's CUDA plugin
the whole programs are compiled too, and their kernels and the loops that a host waits for are counted. With `libtpu`
installed, that is done for a TPU, where XLA makes all kernels. What is not known is null in the file and a dash in
the table.

The modelled rate takes both sides of every branch, as many blocks of 128 lanes as registers allow on a multiprocessor,
what its vendor says that a unit takes, and an instruction every four cycles from a warp. The bound takes the shortest
way through the loop at the fullest of its units, whatever the registers: what no play can pass. Both count the body of
a loop inside as often as the loop turns, where its text says how often that is (by how much statements of the text
become more when they are repeated so), and else once: rejection, as in Thompson sampling, takes longer. Launches, the
time that memory of a thread takes, and the host are in neither.
"""

import argparse
import contextlib
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from pages import put_between

PLAYS, ROWS = 10_000, 200  # of the stretch whose bytes a play are shown: plays, checkpoints written
LANES = {"100,000": 100_000, "1,000,000": 1_000_000}
COMPILED_LANES = 131_072
BLOCK = 128  # threads
REGISTERS = 65_536  # of a multiprocessor
BETWEEN_STARTS = 4  # cycles until a warp starts an instruction that needs the last one's result
PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")
TPU_PLUGINS = ("libtpu",)


class Target(NamedTuple):
    """A device as its vendor describes it."""

    title: str
    capability: tuple[int, int]
    multiprocessors: int
    units: dict[str, int]  # threads whose instruction a unit of a multiprocessor takes a cycle
    clock: float  # cycles a second at its highest
    bandwidth: float  # bytes a second
    memory: int  # bytes
    cache: int  # bytes of the second level
    shared: int  # bytes of a multiprocessor's shared memory
    threads: int  # of a multiprocessor


def units(fused: int, double: int, memory: int) -> dict[str, int]:
    """Of all devices here, and what they differ in: products and sums of float32, float64, loads and stores."""
    return {"start": 128, "integer": 64, "product": fused, "special": 16, "double": double, "memory": memory}


HOPPER = units(fused=128, double=64, memory=32)
TARGETS: dict[str, Target | None] = {
    "h200": Target("NVIDIA H200", (9, 0), 132, HOPPER, 1.98e9, 4.8e12, 150_000_000_000, 62_914_560, 233_472, 2048),
    "h100": Target("NVIDIA H100", (9, 0), 132, HOPPER, 1.98e9, 3.35e12, 84_000_000_000, 52_428_800, 233_472, 2048),
    "a100": Target(
        "NVIDIA A100", (8, 0), 108, units(64, 32, 32), 1.41e9, 1.555e12, 42_000_000_000, 41_943_040, 167_936, 2048
    ),
    "t4": Target("Tesla T4", (7, 5), 40, units(64, 2, 16), 1.59e9, 3.2e11, 15_800_000_000, 4_194_304, 65_536, 1024),
    "tpu_v5e": None,  # no kernels there: every program runs as XLA compiles it, and no rate is modelled
}
TPU = "v5e:2x2"  # as `libtpu` names it

# The unit of an instruction, by how its name begins. Others are started and take no unit that could be full.
UNITS = {
    "product": ("FFMA", "FMUL", "FADD", "IMAD", "FSWZADD", "HFMA", "HMUL", "HADD", "IDP"),
    "special": ("MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "I2I"),
    "double": ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX"),
    "memory": ("LD", "ST", "ATOM", "RED", "SHFL"),
    "integer": (
        "IADD", "LOP", "SHF", "ISETP", "FSETP", "SEL", "FSEL", "MNMX", "IMNMX", "FMNMX", "VIMNMX", "VIADD", "LEA",
        "PRMT", "PLOP", "MOV", "I2FP", "F2FP", "IABS", "VABSDIFF", "VOTE", "BMSK", "P2R", "R2P", "FCHK", "CS2R", "SGXT",
        "SHL", "SHR", "BFE", "BFI", "FSET", "ICMP",
    ),
}  # fmt: skip

# What is shown beside the catalogue: ten arms, 100 arms, and the sizes of the papers' figures.
SIZES = (
    "ucb1-10", "moss-10", "exp3-10", "htinf-10", "thompson-10", "thompson-32", "ucb1-100", "kl_ucb-100", "thompson-100",
    "exp3-100", "htinf-100", "private_batched-100", "prm_elimination-100", "linucb-10-8", "linucb-10-32",
    "linucb-100-5", "linucb per arm-3-5", "linear_thompson per arm-3-5", "ldp_linucb per arm-3-5",
    "jdp_linucb per arm-3-5", "linucb per arm-10-65", "online_ucb-6-3", "online_ucb-100-5", "byzantine_ucb-5",
    "byzantine_ucb-10",
    "spectral_filter-3", "spectral_filter-10", "spectral_filter-50", "geometric_median-5-3", "geometric_median-10-4",
    "geometric_median-10-10", "geometric_median-20-14", "geometric_median-64-64", "warm_median-5-9",
    "warm_median-10-14", "warm_median-20-14", "warm_median-64-64", "maler-3", "maler-5", "maler-8", "maler-16",
)  # fmt: skip


def split(name: str) -> tuple[str, tuple[int, ...]]:
    """A name without its sizes, and these."""
    stem, *sizes = name.split("-")
    return stem, tuple(map(int, sizes))


def program(name: str) -> Any:
    """The catalogue's case of an algorithm, on arms or agents of the sizes in its name. ValueError, KeyError: none."""
    from functools import partial

    import numpy as np

    from jaxbandits.catalogue import ALGORITHMS, PER_ARM

    stem, sizes = split(name)
    row = (ALGORITHMS | PER_ARM)[stem]
    if not sizes:
        return row
    if stem in PER_ARM:
        return row._replace(environment=partial(row.environment, *sizes), horizon=PLAYS)
    keywords = getattr(row.environment, "keywords", {})
    if "means" in keywords:
        (arms,) = sizes
        changes: dict[str, Any] = {"means": np.linspace(0.1, 0.9, arms)}
    else:
        first = "num_agents" if "num_agents" in keywords else "num_arms"
        if first not in keywords or len(sizes) > 2:
            raise ValueError(f"{stem} has no sizes to choose")
        changes = dict(zip((first, "dim"), sizes, strict=False))
    return row._replace(environment=partial(row.environment, **changes), horizon=PLAYS)


def estimator(name: str) -> Any:
    """The case of an estimator at the sizes in its name. KeyError, TypeError: there is none."""
    from estimator_cases import CASES

    stem, sizes = split(name)
    return CASES[stem](*sizes)


def is_estimator(name: str) -> bool:
    from estimator_cases import CASES

    return name.split("-")[0] in CASES


def laid_out(name: str) -> tuple[Any, Any, Any, Any]:
    """The group of an algorithm's case, its compiled functions, and its numbers as shapes, without a device."""
    import jax

    from jaxbandits.sweeps.compilation.compiled import functions_of_group
    from jaxbandits.sweeps.plan import host_case, plan, stack_cases

    row = program(name)
    laid_out = plan(
        {name: row.algorithm}, row.environment, horizon=row.horizon, seeds=16, grid=None, points=None,
        reward_adversary=row.reward_adversary, message_adversary=row.message_adversary, checkpoints=8, dtype="float32",
    )  # fmt: skip
    group = laid_out.groups[0]
    host, marks = stack_cases([host_case(laid_out.cells[0])], laid_out.dtype)
    marked, treedef = jax.tree.flatten(marks)
    run = functions_of_group(group.parts, tuple(marked), treedef, 1, len(group.times))
    return group, run, jax.tree.map(jax.typeof, host), max(group.schedule, key=lambda span: span.repeats)


# ---- a row


class Counted(NamedTuple):
    """What a row is made from: a kernel, or why there is none."""

    kernel: Any
    reason: str
    plays: int | None  # of a window; None where single plays lie between checkpoints
    bytes: float  # read and written a play
    of: str  # "play" or "call"


def counted(name: str) -> Counted:
    import jax
    import numpy as np

    if is_estimator(name):
        one = estimator(name).kernel()
        moved = bytes_of((one.traced.in_avals, one.traced.out_avals))
        return Counted(None if one.reason else one, one.reason, 1, moved, "call")
    group, run, case, span = laid_out(name)
    choice = run.fit_kernel(span.kind, case)
    lane = jax.eval_shape(run.functions["begin"], case, np.zeros(1, np.uint32))
    record = lane.record
    kept = bytes_of((record.pulls_at, record.regret_at))
    moved = 2 * (bytes_of(lane) - kept) + ROWS * kept // len(group.times)
    plays = None if choice.traced.kind == "single" else choice.traced.slots
    return Counted(None if choice.reason else choice, choice.reason, plays, moved / PLAYS, "play")


def bytes_of(tree: Any) -> int:
    """Bytes of some arrays."""
    import jax

    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def row_of(name: str, target: str, compiler: "Compiler | None") -> dict[str, Any]:
    """All that is known of a program."""
    device, found = TARGETS[target], counted(name)
    reason = found.reason if device else "kernels are for GPUs"
    census = found.kernel and found.kernel.census
    plays = found.plays or 1
    row: dict[str, Any] = {
        "name": name, "of": found.of, "form": "xla" if reason else "kernel", "reason": reason,
        "plays_per_window": found.plays if found.of == "play" else None, "arrays": found.kernel and found.kernel.form,
        "operations_per_play": census and -(-census.operations // plays), "numbers_alive": census and census.alive,
        "loops": census and census.loops, "in_memory_per_play": census and -(-census.in_memory // plays),
        "kernels_per_play": None, "host_syncs_per_segment": None, "registers": None, "spills": None, "stack": None,
        "instructions_per_play": None, "least_instructions_per_play": None, "repeats": None, "units_per_play": None,
        "compile_seconds": None, "bytes_per_play": None, "bound": None, "bound_plays_per_second": None,
        "modelled_plays_per_second": None, "kernels_of_xla": None,
    }  # fmt: skip
    if not reason:
        once = 1 / PLAYS if found.of == "play" else 1
        row |= {"kernels_per_play": once, "host_syncs_per_segment": 0, "bytes_per_play": found.bytes}
        code = machine_code(found.kernel.source, device, found.plays, found.of) if device else None
        row |= {**(code.figures if code else {}), "repeats": repeats(found.kernel.source.text, found.of == "play")}
        row |= modelled(row, code, device)
    if compiler:
        made = compiler.ask(row["form"], name)
        if made:
            share = PLAYS if found.of == "play" and not reason else 1
            row["kernels_per_play"] = made["kernels"] / share
            row["host_syncs_per_segment"] = made["waits"] if not reason else None
        if found.of == "call" and device:
            row["kernels_of_xla"] = (compiler.ask("xla", name) or {}).get("kernels")
    return row


# ---- the model


def modelled(row: dict[str, Any], code: "Code | None", target: Target) -> dict[str, Any]:
    """Plays a second of all lanes by the number of lanes, and the bound with the unit that sets it.

    Without machine code each of the package's operations counts as an instruction of the unit for integers.
    """
    work, often = row["operations_per_play"], row["repeats"]
    every = code.every if code else {"start": work, "integer": work}
    every, least = (
        {unit: often * number for unit, number in counts.items()} for counts in (every, code.least if code else every)
    )
    resident = target.threads // BLOCK
    if code:
        resident = max(1, min(resident, REGISTERS // (BLOCK * -(-row["registers"] // 8) * 8)))
    rates = {}
    for title, lanes in LANES.items():
        blocks = -(-lanes // BLOCK)
        busiest = -(-blocks // target.multiprocessors)  # blocks of the multiprocessor that has most
        cycles = 0.0  # for a play of all of them
        while busiest > 0:
            together, busiest = min(resident, busiest), busiest - resident
            cycles += max(together * BLOCK * needed(every, target)[0], BETWEEN_STARTS * every["start"])
        rates[title] = min(lanes * target.clock / cycles, target.bandwidth / row["bytes_per_play"])
    cycles, unit = needed(least, target)
    bound = target.multiprocessors * target.clock / cycles
    if bound > target.bandwidth / row["bytes_per_play"]:
        bound, unit = target.bandwidth / row["bytes_per_play"], "bandwidth"
    return {"modelled_plays_per_second": rates, "bound": unit, "bound_plays_per_second": bound}


def repeats(text: str, of_play: bool) -> float:
    """How many times as many statements are run as there are, by the loops whose number of turns the text says.

    of_play: whether only what is inside of a loop counts, as the loop over plays is.
    """
    once, run = 0, 0
    turns, copies = [0 if of_play else 1], [1]  # of the loops and branches around a statement
    for statement in map(str.strip, text[text.index("void program(") :].splitlines()[1:]):
        if statement.startswith("#"):
            break
        if statement.startswith("}") and len(turns) > 1:
            turns.pop(), copies.pop()
        if statement.endswith("{"):
            known = re.search(r"\bfor \(.*; \w+ < (\d+);", statement)
            loop = re.search(r"\b(for|while|do)\b", statement)
            turns.append(int(known[1]) * turns[-1] if known else turns[-1] or int(bool(loop)))
            copies.append((4 if statement.startswith("FOUR") else 1) * copies[-1])
        elif statement.endswith(";"):
            once, run = once + (turns[-1] > 0) * copies[-1], run + turns[-1]
    return run / once if once else 1.0


def needed(counts: dict[str, float], target: Target) -> tuple[float, str]:
    """Cycles of a multiprocessor that a thread's instructions take at the fullest unit, and which that is."""
    return max((number / target.units[unit], unit) for unit, number in counts.items())


def unit_of(instruction: str) -> str:
    """The unit of an instruction; "other" where it only takes a start."""
    name = re.sub(r"^@\S+ ", "", instruction)
    fitting = {prefix: unit for unit, prefixes in UNITS.items() for prefix in prefixes if name.startswith(prefix)}
    return fitting[max(fitting, key=len)] if fitting else "other"


class Code(NamedTuple):
    """Machine code: figures of a row, and instructions a play by unit."""

    figures: dict[str, Any]
    every: dict[str, float]  # both sides of branches, what is in a loop once
    least: dict[str, float]  # the shortest way


def machine_code(source: Any, target: Target, plays: int | None, of: str) -> Code | None:
    """The machine code of a kernel that holds one loop over plays or windows, or one call.

    plays: of a window; None where single plays lie between checkpoints. None without NVRTC, ptxas and nvdisasm.
    """
    from jaxbandits.kernels import compilers

    ptxas, nvdisasm = tool("ptxas"), tool("nvdisasm")
    if ptxas is None or nvdisasm is None:
        return None
    began, (major, minor) = time.process_time() + children(), target.capability
    with tempfile.TemporaryDirectory() as folder:
        ptx, found = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        try:
            ptx.write_text(compilers.ptx(source.text, capability_of(target)))
        except compilers.Missing:
            return None
        command = [ptxas, f"-arch=sm_{major}{minor}", "-v", "-O3", "-o", str(found), str(ptx)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        seconds = time.process_time() + children() - began
        text = subprocess.run([nvdisasm, "-c", str(found)], capture_output=True, text=True, check=True).stdout
    code = instructions_of(text)
    first, last = loop_over_plays(code, plays is None) if of == "play" else (0, len(code.lines) - 1)
    every, least = (
        by_unit([code.lines[i] for i in some], plays or 1)
        for some in (range(first, last + 1), shortest_way(code, first, last))
    )
    figures = {
        "registers": int(re.findall(r"Used (\d+) registers", said)[0]),
        "spills": sum(map(int, re.findall(r"(\d+) bytes spill", said))),
        "stack": int(re.findall(r"(\d+) bytes stack frame", said)[0]), "compile_seconds": seconds,
        "instructions_per_play": -int(-every["start"] // 1), "least_instructions_per_play": -int(-least["start"] // 1),
        "units_per_play": every,
    }  # fmt: skip
    return Code(figures, every, least)


def children() -> float:
    """CPU seconds of processes that ended."""
    times = os.times()
    return times.children_user + times.children_system


def by_unit(instructions: list[str], plays: int) -> dict[str, float]:
    """Instructions a play by unit; "start" is all of them."""
    found = Counter(map(unit_of, instructions))
    del found["other"]
    return {"start": len(instructions) / plays, **{unit: number / plays for unit, number in sorted(found.items())}}


class Lines(NamedTuple):
    """Disassembled machine code."""

    lines: list[str]  # its instructions, without those that do nothing
    labels: dict[str, int]  # the instruction that follows each label


def instructions_of(text: str) -> Lines:
    found = Lines([], {})
    for line in text.splitlines():
        if label := re.match(r"\s*\.(L_x_\d+):", line):
            found.labels[label[1]] = len(found.lines)
        code = re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", line)
        if code and "NOP" not in code[1]:
            found.lines.append(code[1].strip())
    return found


def branch_of(code: Lines, i: int) -> int | None:
    """Where an instruction branches to."""
    found = re.search(r"BRA.*`\(\.(L_x_\d+)\)", code.lines[i])
    return code.labels.get(found[1]) if found else None


def loop_over_plays(code: Lines, single: bool = True) -> tuple[int, int]:
    """The first and the last instruction of the longest loop, which is over windows.

    single: whether it is over checkpoints, and the loop over plays is the longest one inside of it.
    """
    loops = [(to, i) for i in range(len(code.lines)) if (to := branch_of(code, i)) is not None and to < i]
    first, last = max(loops, key=lambda loop: loop[1] - loop[0])
    inside = [(a, b) for a, b in loops if (a, b) != (first, last) and first <= a and b <= last]
    return max(inside, key=lambda loop: loop[1] - loop[0], default=(first, last)) if single else (first, last)


def shortest_way(code: Lines, first: int, last: int) -> list[int]:
    """The fewest instructions that lead from one to another; both are among them."""
    before, reached = {first: first}, [first]
    for i in reached:  # it grows: every instruction costs the same, so what is reached first is reached soonest
        if i == last:
            break
        text, to = code.lines[i], branch_of(code, i)
        always = text.startswith(("BRA ", "EXIT", "RET", "BRX")) and not text.startswith("BRA.DIV")
        for j in [*([] if always else [i + 1]), *([] if to is None else [to])]:
            if j not in before and first <= j <= last:
                before[j] = i
                reached.append(j)
    if last not in before:  # such as a call's, which ends before the text does
        return list(range(first, last + 1))
    way = [last]
    while way[-1] != first:
        way.append(before[way[-1]])
    return way


def tool(name: str) -> str | None:
    """A program of the CUDA toolkit, from the package that brings it."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return next((str(path) for folder in folders for path in Path(folder).glob(f"*/bin/{name}")), None)


# ---- compiled for a device that need not be there


def description(target: Target) -> str:
    """A device in the words of XLA's compiler."""
    major, minor = target.capability
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: {target.shared} threads_per_core_limit: {target.threads}
  core_count: {target.multiprocessors} fpus_per_core: {target.units["product"]}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {int(target.bandwidth)} l2_cache_size: {target.cache} clock_rate_ghz: {target.clock / 1e9}
  device_memory_size: {target.memory} shared_memory_per_block_optin: {target.shared - 1024}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: {REGISTERS} registers_per_block_limit: {REGISTERS}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 }}
runtime_version {{ major: 12 minor: 9 patch: 0 }}
device_description_str: "{target.title}"
"""


@functools.cache
def absent(target: str) -> Any:
    """A device that need not be there, as the place of arrays."""
    import jax
    from jax.experimental import topologies

    device = TARGETS[target]
    if device is None:
        topology = topologies.get_topology_desc(TPU, platform="tpu")
    else:
        topology = topologies.get_topology_desc(platform="cuda", target_config=description(device), topology="1x1x1")
    return jax.sharding.SingleDeviceSharding(topology.devices[0])


def capability_of(target: Target) -> int:
    """The compute capability as kernels name it: 75 for 7.5."""
    return 10 * target.capability[0] + target.capability[1]


def compiled_text(name: str, target: str, form: str) -> str:
    """A program as XLA compiles it for a device."""
    import jax
    import numpy as np

    from jaxbandits.kernels.launch import absent_gpu
    from jaxbandits.numerics import device_forms
    from jaxbandits.spans import segment

    place, device = absent(target), TARGETS[target]

    def there(tree: Any) -> Any:
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype, sharding=place), tree)

    # all of it: what is traced outside may look for a device, too
    with absent_gpu(capability_of(device)) if device else contextlib.nullcontext():
        if is_estimator(name):
            case = estimator(name)
            lanes = [
                jax.ShapeDtypeStruct((COMPILED_LANES, *np.shape(x)[1:]), x.dtype, sharding=place)
                for x in jax.tree.leaves(case.arrays(1))
            ]
            given = jax.tree.unflatten(jax.tree.structure(case.arrays(1)), lanes)
            with device_forms.force_device_form("xla" if form == "xla" else None):
                return jax.jit(jax.vmap(case.function)).lower(*given).compile().as_text()
        group, run, case, span = laid_out(name)
        kind = span.kind
        case, seeds = there(case), there(np.zeros(COMPILED_LANES, np.uint32))
        lane = there(run.functions["begin"].trace(case, seeds).out_info)
        given = case, seeds, lane, there(group.times.astype(np.int32)), there(segment(span, 0, 0, 1, group.times))
        function, static = ("kernel", (kind, "kernel")) if form == "kernel" else ("advance", (kind,))
        return run.functions[function].lower(*static, *given).compile().as_text()


def kernels_in(text: str) -> int:
    """Kernels of the part of a compiled program that has most of them: what is repeated, or all of it."""
    parts = re.split(r"\n(?=\S.*\{$)", text)
    return max(len(re.findall(r"^ .* (?:fusion|custom-call|sort)\(", part, re.MULTILINE)) for part in parts)


def waits_in(text: str) -> int:
    """Loops whose end the host has to wait for: their number of turns is not known."""
    return sum(" while(" in line and "known_trip_count" not in line for line in text.splitlines())


def compile_what_is_asked(target: str) -> None:
    """Answer lines of form and name with a line of what is in the compiled program, or of what went wrong."""
    import jax

    for line in sys.stdin:
        form, name = line.strip().split(maxsplit=1)
        try:
            text = compiled_text(name, target, form)
            answer: dict[str, Any] = {"kernels": kernels_in(text), "waits": waits_in(text)}
        except Exception as error:
            lines = str(error).splitlines() or [""]
            answer = {"error": f"{type(error).__name__}: {lines[0]}"[:200]}
        print(json.dumps(answer), flush=True)
        jax.clear_caches()


class Compiler:
    """A process that compiles programs for a device. Where one ends it, the next is compiled by another."""

    def __init__(self, target: str) -> None:
        self.target, self.process, self.failed = target, None, list[str]()

    def ask(self, form: str, name: str) -> dict[str, Any] | None:
        """What is in a compiled program; None where it does not compile, with a line that says so."""
        if self.process is None:
            command = [sys.executable, __file__, "--compile", "--target", self.target]
            environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        self.process.stdin.write(f"{form} {name}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            found, self.process = {"error": f"the compiler ended with {self.process.wait()}"}, None
        else:
            found = json.loads(answer)
        if "error" in found:
            self.failed.append(f"{name} ({form}): {found['error']}")
            print(self.failed[-1], file=sys.stderr)
            return None
        return found

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


# ---- the table

HEADS = {
    "arrays": "arrays", "plays_per_window": "plays a window", "operations_per_play": "operations",
    "numbers_alive": "numbers alive", "loops": "loops",
    "in_memory_per_play": "times in memory", "kernels_per_play": "kernels a play",
    "host_syncs_per_segment": "host waits a segment", "registers": "registers", "spills": "spilled bytes",
    "stack": "bytes of a thread", "instructions_per_play": "instructions",
    "least_instructions_per_play": "at least", "compile_seconds": "seconds of compiling",
    "bytes_per_play": "bytes moved", "bound": "fullest unit", "bound_plays_per_second": "bound, plays/s",
}  # fmt: skip
PAGE = (
    "arrays", "plays_per_window", "registers", "spills", "stack", "instructions_per_play",
    "least_instructions_per_play", "compile_seconds", "bound_plays_per_second",
)  # fmt: skip


def cell(value: Any) -> str:
    """A figure of a table."""
    if isinstance(value, str):
        return value
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.2g}"


def heads(columns: Any, lanes: Any = LANES) -> str:
    """The first two lines of a table."""
    names = ["program", "form", *(HEADS[x] for x in columns), *(f"modelled, {title} lanes" for title in lanes)]
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def line(row: dict[str, Any], columns: Any = tuple(HEADS), lanes: Any = LANES) -> str:
    """A row of a table."""
    rates = row["modelled_plays_per_second"] or {}
    form = row["form"] if not row["reason"] else f"{row['form']}: {row['reason']}"
    cells = [f"`{row['name']}`", form, *(cell(row[x]) for x in columns), *(cell(rates.get(x)) for x in lanes)]
    return f"| {' | '.join(cells)} |"


def page_table(rows: list[dict[str, Any]]) -> str:
    most = list(LANES)[-1:]
    return "\n".join([heads(PAGE, most), *(line(row, PAGE, most) for row in rows)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="algorithms and estimators, with sizes; all by default")
    parser.add_argument("--target", choices=TARGETS, default="h200", help="the device (default: h200)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--write", metavar="PAGE", help="put the table into a page, between its marks")
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"  # before JAX is loaded: nothing is computed, and no device is asked for
    if chosen.compile:
        compile_what_is_asked(chosen.target)
        return
    from estimator_cases import CASES

    from jaxbandits.catalogue import ALGORITHMS

    for name in chosen.names:
        try:
            estimator(name) if is_estimator(name) else program(name)
        except (KeyError, TypeError, ValueError):
            known = ", ".join([*ALGORITHMS, *CASES])
            parser.error(f"no algorithm {name!r}: choose from {known}; with sizes as in {', '.join(SIZES)}")
    plugins = TPU_PLUGINS if TARGETS[chosen.target] is None else PLUGINS
    compiler = Compiler(chosen.target) if any(map(importlib.util.find_spec, plugins)) else None
    found = []
    print(heads(HEADS))
    for name in chosen.names or [*ALGORITHMS, *SIZES]:
        found.append(row_of(name, chosen.target, compiler))
        print(line(found[-1]), flush=True)
    if compiler:
        compiler.close()
    if chosen.json:
        Path(chosen.json).write_text(json.dumps({"target": chosen.target, "rows": found}, indent=2) + "\n")
    if chosen.write:
        put_between(Path(chosen.write), "gpu", page_table(found))
    if compiler and compiler.failed:
        raise SystemExit(f"gpu_static.py: {len(compiler.failed)} programs did not compile")


if __name__ == "__main__":
    main()

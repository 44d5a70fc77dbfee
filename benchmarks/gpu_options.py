"""Forms of kernels that wait for a card's figures, beside today's; nothing of the package takes them.

    python benchmarks/gpu.py --out DIR --parts options      plays a second of each form and of today's
    python benchmarks/gpu_options.py                        registers and memory of each, compiled for an H200 that is
                                                            not here (NVRTC, ptxas and nvdisasm as for `gpu_static.py`)

* `shared NAME`: arrays of which a play reads or writes every element lie in the block's shared memory, not in the
  thread's own, which is global memory behind two caches;
* `loop NAME`: Thompson sampling draws its gamma variables in one loop of tries, first ones and repeated ones, so that a
  thread goes on to its next arm while others of its warp repeat theirs; `loop shared NAME`: with its arrays there too;
* `launch NAME`: a kernel begins its lanes and plays them to the last checkpoint, where today one program begins them
  and others play segment after segment, between which the host looks at the plays made.

Each draws the same numbers and computes as today's form: `tests/kernels/test_options.py` plays both by the system's C
compiler, bit for bit.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

import gpu
import gpu_static
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import simulator
from jaxbandits.algorithms.stochastic import thompson
from jaxbandits.kernels import compilers, launch, plays
from jaxbandits.kernels.emitter import Carried, Emitter, read_only
from jaxbandits.kernels.launch import WARP, Gpu, Target
from jaxbandits.kernels.schedule import Fitted, fit_kernel, write_kernel
from jaxbandits.kernels.source import BLOCK, INPUT, RESULT, Source, pointers
from jaxbandits.spans import segment
from jaxbandits.sweeps.engines.one_call import FIRST_SEGMENT, segments

# ---- arrays in shared memory

# Element k of a thread lies at [k * WARP + thread], so that the threads of a warp are at 32 different banks whatever
# elements they ask for. Blocks are single warps. A multiprocessor of an H200 has 233,472 bytes, of which each block
# takes 1,024 more than it asks for, and a block has at most 232,448. UCB1 on K arms keeps means, inverse roots and
# indices there, 12 K bytes a lane: of 48 arms 12 warps are resident, of 100 arms 5 of 64 (38,400 + 1,024 bytes each),
# of 200 arms 3. Counts and pulls, of which a play touches one element, stay in the thread's memory. So few warps do not
# hide that a load takes some 30 cycles, and leave registers: ten turns of a loop are written out instead of four.
MULTIPROCESSOR, OF_BLOCK, LARGEST_BLOCK = 233_472, 1_024, 232_448
SHARED = "arrays in shared memory"
ARRAY = re.compile(r"^  (float|int|unsigned) (a\d+)\[(\d+)\];\n", re.MULTILINE)  # of four bytes an element
PLAY = re.compile(r"^( *)ONCE for \(; \w+ < end; \) \{\n(.*?)\n\1\}$", re.MULTILINE | re.DOTALL)
MEMORY = """#ifdef __CUDACC__
  extern __shared__ float shared[];
#else
  static float shared[{}];
#endif
{}
"""


def touches(text: str) -> Counter[str]:
    """How often a play touches each array. In a loop of which nobody knows the turns, without end."""
    found, turns = Counter[str](), [1.0]
    for line in PLAY.search(text)[2].splitlines():
        for name in re.findall(r"\b(a\d+)\[", line):
            found[name] += turns[-1]
        if line.endswith("{"):
            known = re.search(r"; \w+ < (\d+);", line)
            turns.append(turns[-1] * (float(known[1]) if known else float("inf") if "for (" in line else 1))
        elif line.endswith("}"):
            turns.pop()
    return found


def in_shared_memory(source: Source) -> tuple[Source, int]:
    """A kernel of windows of one play with its arrays in shared memory, and the bytes of a block.

    A C compiler gets an array in place of a block's memory, in which the lanes of a block have the places of its
    threads and are played one after the other.
    """
    text, often, numbers, lines = source.text, touches(source.text), 0, list[str]()
    for kind, name, size in ARRAY.findall(text):
        if often[name] >= int(size):
            lines.append(f"  {kind}* const {name} = ({kind}*)shared + {numbers * WARP} + lane % {WARP};")
            text = text.replace(f"  {kind} {name}[{size}];\n", "")
            text = re.sub(rf"\b{name}\[([^\]]+)\]", rf"{name}[(\1) * {WARP}]", text)
            numbers += int(size)
    block = 4 * numbers * WARP
    if block > LARGEST_BLOCK:
        raise ValueError(f"{block:,} bytes of a block: shared memory has {LARGEST_BLOCK:,}")
    memory = MEMORY.format(numbers * WARP, "\n".join(lines))
    text = re.sub(r"void program\(.*\{\n", lambda head: head[0] + memory, text)
    name = f"{source.name}_shared"
    text = text.replace(source.name, name).replace(f"__launch_bounds__({BLOCK})", f"__launch_bounds__({WARP})")
    text = text.replace('"unroll 4"', '"unroll 10"')
    return source._replace(name=name, text=text), block


def by_shared_memory(card: Gpu, source: Source, lanes: tuple[int, int], inputs: int, outs: int) -> Target:
    """A route of `launch.ROUTES`. Capability 0: by the system's C compiler."""
    source, block = in_shared_memory(source)
    if not card.capability:
        return compilers.by_cc(source), {}
    target, told = launch.ROUTES["XLA's target for PTX"](card, source, lanes, inputs, outs)
    sizes = {"grid_x": -(-lanes[0] // WARP) * lanes[1], "block_x": WARP, "shared_mem_bytes": block}
    return target, told | {name: np.int32(size) for name, size in sizes.items()}


def shared_form(form: Any) -> Gpu:
    """The form of a kernel with its arrays in shared memory, in place of "kernel" or "cc"."""
    here = launch.here() if form == "kernel" else Gpu(0, "")
    return here._replace(route=SHARED)


with_route = partial(mock.patch.dict, launch.ROUTES, {SHARED: by_shared_memory})  # while a program is traced


# ---- one loop of tries


def gammas_in_one_loop(draws: Any, t: Any, shapes: Any) -> Any:
    """`thompson.gammas`, with the same words for the same tries."""
    first, again = draws.child("gamma"), draws.child("again")

    def attempt(carry: Any) -> Any:
        value, i, tries, refused = carry
        words = lax.cond(
            refused,
            lambda: tuple(again.child(name).at(t, tries) for name in ("normal", "exponential")),
            lambda: tuple(first.words_at(t, i)),
        )
        new, accepted = thompson._attempt(shapes[i], *words)
        value = value.at[i].set(new)
        i, tries = i + accepted.astype(jnp.int32), tries + refused.astype(jnp.int32)
        return value, i, tries, ~accepted

    start = jnp.zeros_like(shapes), jnp.int32(0), jnp.int32(0), jnp.bool_(False)
    return lax.while_loop(lambda carry: carry[1] < shapes.size, attempt, start)[0]


def in_one_loop(parts: Any, today: Fitted) -> Fitted:
    """Windows of Thompson sampling with one loop of tries."""
    lane = plays.with_rows(today.traced.lane, *today.traced.rows)
    with mock.patch.object(thompson, "gammas", gammas_in_one_loop):
        window = plays.single_window(parts._replace(traces=None), today.traced.case, lane)
    return fit_kernel("stretch", plays.write_stretch, window)


# ---- one launch


def as_one_launch(parts: Any, today: Fitted, checkpoints: int) -> Fitted:
    """The kernel of a schedule that is one span of full windows, from a lane's beginning to the last checkpoint."""
    kind, _, case, lane, rows, *_ = today.traced
    if kind == "counted":
        raise ValueError("counted windows: what remains of lanes at rest is counted after the kernel")

    def begin(case: Any, seed: Any) -> list[Any]:
        return jax.tree.leaves(plays.with_rows(simulator.begin(parts, case, seed, checkpoints)))

    begun = read_only(jax.make_jaxpr(begin)(case, plays.SEED))
    own, lanes, written = map(jax.tree.leaves, (case, lane, rows))

    def write(run: Emitter, traced: Any) -> list[str]:
        stretch = plays.Stretch(run, traced, (range(len(own)), ()))
        stretch.state = Carried(run, lanes, run.write_function(begun, [*stretch.case, stretch.seed]))
        ended = stretch._single() if kind == "single" else stretch._full()
        for k, x in enumerate(jax.tree.leaves(ended)):
            run.give(stretch._memory_place("out", k, x), x, stays=True)
        results = *pointers(RESULT, "out", lanes), *pointers(RESULT, "at", written)
        return [*plays.FIRST_PARAMETERS, *pointers(INPUT, "case", own), *results]

    return write_kernel("run", write, today.traced, today.largest)


def play_whole(fit: Fitted, case: Any, seeds: Any, times: Any, segment: Any, form: Any) -> Any:
    """The lanes [S, ...] of one point after all of a segment, from their beginning."""
    window = fit.traced
    limits = jnp.stack([jnp.asarray(x, jnp.int32) for x in (seeds.shape[0], 1, times.shape[0], *segment)])
    shapes, treedef = jax.tree.flatten((window.lane, window.rows))
    outs = [jax.ShapeDtypeStruct((seeds.shape[0], *x.shape), x.dtype) for x in shapes]
    given = [limits, times, seeds, *jax.tree.leaves(case)]
    lane, rows = jax.tree.unflatten(treedef, launch.call_kernel(fit.source, (seeds.shape[0], 1), given, outs, {}, form))
    return plays.with_rows(lane, *rows)


# ---- beside today's forms, on a card or compiled for one


def fit_option(option: str, parts: Any, today: Fitted, checkpoints: int) -> Fitted:
    """What a form is written from. option: the words of its name before the algorithm's."""
    if option == "launch":
        return as_one_launch(parts, today, checkpoints)
    fit = in_one_loop(parts, today) if "loop" in option else today
    if "shared" not in option:
        return fit
    return write_kernel("stretch", plays.write_stretch, fit.traced, 16 if "loop" in option else 47)


def time_option(name: str) -> None:
    """The rows of a day for one of its names."""
    option, case = name.rsplit(maxsplit=1)
    for lanes in gpu.all_lanes():
        if lanes <= gpu.cases()[case][3]:
            one = gpu.Plays(case, lanes, gpu.kernel_form())
            today = one.run.fit_kernel(one.span.kind, one.host)
            fit = fit_option(option, one.group.parts, today, len(one.times))
            for form, figures in (time_launches if option == "launch" else time_windows)(one, fit, "shared" in option):
                gpu.tell(gpu.OUT, "options", name, lanes=lanes, form=form, **figures)


def equal_lanes(ours: Any, wanted: Any) -> float:
    """The share of lanes that have played all arms as often."""
    return float(np.mean(np.all(ours == wanted, axis=-1)))


def time_windows(one: Any, fit: Fitted, shared: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Plays a second inside one call, by today's form and another."""
    seconds, some = (0.05, 50) if gpu.TINY else (0.4, 500)
    with gpu.alone():
        figures, wanted = one.rate(seconds), np.asarray(one.played(some)[2].record.pulls)
    yield "today", figures
    form, began = shared_form(gpu.kernel_form()) if shared else gpu.kernel_form(), time.perf_counter()
    advance = jax.jit(partial(plays.advance_by_kernel, fit, one.leaves, form=form), donate_argnums=2)
    with with_route():
        given = one.host, one.seeds, one.begin.out_info, one.times, one.segment(1)
        one.program = advance.lower(*given).compile()
    one.compile_seconds = time.perf_counter() - began
    with gpu.alone():
        figures, ours = one.rate(seconds), np.asarray(one.played(some)[2].record.pulls)
    yield "option", {**figures, "same": equal_lanes(ours, wanted)}


def time_launches(one: Any, fit: Fitted, shared: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Seconds from the beginning of all lanes to their end, without their way to the host."""
    windows, where = one.span.repeats, one.segment(one.span.repeats)
    begun = partial(one.begin, one.host, one.seeds)

    def by_segments() -> Any:
        lane = begun()
        for first, count in segments(windows, FIRST_SEGMENT):
            part = segment(one.span, 0, first, count, one.marks)
            lane = one.program(one.host, one.seeds, lane, one.times, part)
            np.asarray(lane.plays)  # as a sweep looks at them
        return lane

    forms = {
        "today, in segments": by_segments,
        "today, one segment": lambda: one.program(one.host, one.seeds, begun(), one.times, where),
    }
    for title, form in (("", gpu.kernel_form()), (", blocks of a warp", shared_form(gpu.kernel_form()))):
        with with_route():
            whole = jax.jit(partial(play_whole, fit, form=form)).lower(one.host, one.seeds, one.times, where).compile()
        forms[f"one launch{title}"] = partial(whole, one.host, one.seeds, one.times, where)
    wanted = None
    for title, play in forms.items():
        with gpu.alone():
            seconds = gpu.median_seconds(partial(gpu.finished, play), 1 if gpu.TINY else 5)
            ours = np.asarray(play().record.pulls)
        wanted = ours if wanted is None else wanted
        rate = len(one.seeds) * windows / seconds
        yield title, {"seconds": seconds, "rate": rate, "same": equal_lanes(ours, wanted)}


def main() -> None:
    """What ptxas makes of each form for an H200."""
    jax.config.update("jax_platforms", "cpu")
    for name in next(part.about for part in gpu.DAY if part.name == "options"):
        option, case = name.rsplit(maxsplit=1)
        group, run, numbers, span = gpu_static.laid_out(case if "-" in case else f"{case}-10")
        today = run.fit_kernel(span.kind, numbers)
        fit = fit_option(option, group.parts, today, len(group.times))
        ours, block = in_shared_memory(fit.source) if "shared" in option else (fit.source, 0)
        for title, source, asked in (("today", today.source, 0), (name, ours, block)):
            code = gpu_static.machine_code(source, gpu_static.TARGETS["h200"], None, "play")
            if code is None:
                raise SystemExit("gpu_options.py: NVRTC, ptxas or nvdisasm is missing")
            known = {key: code.figures[key] for key in ("registers", "spills", "stack", "instructions_per_play")}
            by_memory, threads = MULTIPROCESSOR // (asked + OF_BLOCK), WARP if asked else BLOCK
            blocks = min(32, by_memory, gpu_static.REGISTERS // (threads * -(-known["registers"] // 8) * 8))
            print(f"{title}: {known}, {asked} shared bytes a block, {blocks * threads // WARP} warps", flush=True)


if __name__ == "__main__":
    main()

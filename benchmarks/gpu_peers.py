"""What else a person can write for a card, beside this package: the part `peers` of gpu.py.

Each peer is all that its author writes to have the regrets of UCB1 or EXP3 on ten Bernoulli arms at twenty
checkpoints: loops in `jax.numpy` with `jax.random`, a kernel of Numba, and CUDA's C by CuPy. They are written to be
fast: a draw for the played arm alone, comparisons in place of gathers, float32 throughout. Where they were written
there was no card: Numba's kernels were run by its simulator, CuPy's by a C compiler. What a library lacks is a row that
says so.

A peer takes the means of arms, lanes and plays. It gives a function that plays, one that waits for what that gave, and
one that makes it a NumPy array [checkpoints, lanes].
"""

import importlib
import inspect
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gpu
import numpy as np

MEANS = np.linspace(0.1, 0.9, 10)
CHECKPOINTS = 20
Played = tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]


# ---- plain JAX


def jax_ucb1(means: Any, lanes: int, plays: int, random: str) -> Played:
    import jax
    import jax.numpy as jnp

    arms, means, gaps = jnp.arange(10), jnp.float32(means), jnp.float32(means.max() - means)

    def play(state, t):
        key, counts, sums, regret = state
        bonus = jnp.sqrt(2 * jnp.log(t) / jnp.maximum(counts, 1))
        index = jnp.where(counts == 0, jnp.inf, sums / jnp.maximum(counts, 1) + bonus)
        played = arms == jnp.argmax(index)
        mean, gap = jnp.sum(jnp.where(played, means, 0)), jnp.sum(jnp.where(played, gaps, 0))
        reward = jax.random.uniform(jax.random.fold_in(key, t.astype(int))) < mean
        return (key, counts + played, sums + played * reward, regret + gap), None

    def lane(key):
        def stretch(state, times):
            state, _ = jax.lax.scan(play, state, times)
            return state, state[-1]

        times = jnp.arange(1, plays + 1, dtype=jnp.float32).reshape(20, -1)
        return jax.lax.scan(stretch, (key, jnp.zeros(10), jnp.zeros(10), jnp.float32(0)), times)[1]

    program = jax.jit(jax.vmap(lane, out_axes=1))
    keys = jax.random.split(jax.random.key(0, impl=random), lanes)
    return lambda: program(keys), jax.block_until_ready, np.asarray


def jax_exp3(means: Any, lanes: int, plays: int, random: str) -> Played:
    import jax
    import jax.numpy as jnp

    arms, means, gaps = jnp.arange(10), jnp.float32(means), jnp.float32(means - means.min())
    rate = np.sqrt(2 * np.log(10) / (10 * plays)).astype(np.float32)

    def play(state, t):
        key, logs, regret = state
        p = jax.nn.softmax(logs)
        draw, coin = jax.random.uniform(jax.random.fold_in(key, t), (2,))
        played = arms == jnp.minimum(jnp.sum(jnp.cumsum(p) <= draw), 9)
        mean, gap, chance = (jnp.sum(jnp.where(played, x, 0)) for x in (means, gaps, p))
        loss = coin < mean
        return (key, logs - played * rate * loss / chance, regret + gap), None

    def lane(key):
        def stretch(state, times):
            state, _ = jax.lax.scan(play, state, times)
            return state, state[-1]

        times = jnp.arange(plays).reshape(20, -1)
        return jax.lax.scan(stretch, (key, jnp.zeros(10), jnp.float32(0)), times)[1]

    program = jax.jit(jax.vmap(lane, out_axes=1))
    keys = jax.random.split(jax.random.key(0, impl=random), lanes)
    return lambda: program(keys), jax.block_until_ready, np.asarray


# ---- a kernel of Numba


def numba_ucb1(means: Any, lanes: int, plays: int) -> Played:
    import math

    from numba import cuda, float32
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def kernel(means, plays, states, out):
        lane = cuda.grid(1)
        if lane >= out.shape[1]:
            return
        counts, sums = cuda.local.array(10, float32), cuda.local.array(10, float32)
        for arm in range(10):
            counts[arm] = sums[arm] = float32(0)
        regret = t = float32(0)
        for checkpoint in range(20):
            for _ in range(plays // 20):
                t += float32(1)
                bonus = float32(2) * math.log(t)
                chosen, best = 0, float32(-1)
                for arm in range(10):
                    index = float32(math.inf)
                    if counts[arm] > 0:
                        index = sums[arm] / counts[arm] + math.sqrt(bonus / counts[arm])
                    if index > best:
                        chosen, best = arm, index
                reward = float32(xoroshiro128p_uniform_float32(states, lane) < means[chosen])
                for arm in range(10):
                    if arm == chosen:
                        counts[arm] += float32(1)
                        sums[arm] += reward
                regret += means[9] - means[chosen]
            out[checkpoint, lane] = regret

    out = cuda.device_array((20, lanes), np.float32)
    states = create_xoroshiro128p_states(lanes, seed=0)
    given = cuda.to_device(np.float32(means))

    def play():
        kernel[(lanes + 127) // 128, 128](given, plays, states, out)
        return out

    return play, lambda _: cuda.synchronize(), lambda out: out.copy_to_host()


def numba_exp3(means: Any, lanes: int, plays: int) -> Played:
    import math

    from numba import cuda, float32
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def kernel(means, rate, plays, states, out):
        lane = cuda.grid(1)
        if lane >= out.shape[1]:
            return
        weights = cuda.local.array(10, float32)
        for arm in range(10):
            weights[arm] = float32(1)
        regret = float32(0)
        for checkpoint in range(20):
            for _ in range(plays // 20):
                total = so_far = float32(0)
                for arm in range(10):
                    total += weights[arm]
                left = xoroshiro128p_uniform_float32(states, lane) * total
                chosen = 0
                for arm in range(9):
                    so_far += weights[arm]
                    if so_far <= left:
                        chosen = arm + 1
                loss = xoroshiro128p_uniform_float32(states, lane) < means[chosen]
                for arm in range(10):
                    if loss and arm == chosen:
                        weights[arm] *= math.exp(-rate * total / weights[arm])
                regret += means[chosen] - means[0]
            out[checkpoint, lane] = regret

    out = cuda.device_array((20, lanes), np.float32)
    states = create_xoroshiro128p_states(lanes, seed=0)
    given, rate = cuda.to_device(np.float32(means)), np.float32(np.sqrt(2 * np.log(10) / (10 * plays)))

    def play():
        kernel[(lanes + 127) // 128, 128](given, rate, plays, states, out)
        return out

    return play, lambda _: cuda.synchronize(), lambda out: out.copy_to_host()


# ---- CUDA's C by CuPy

PHILOX = """
__device__ uint4 philox(uint4 x, unsigned a, unsigned b) {
  for (int round = 0; round < 10; round++, a += 0x9E3779B9u, b += 0xBB67AE85u) {
    unsigned long long p = 0xD2511F53ull * x.x, q = 0xCD9E8D57ull * x.z;
    x = make_uint4((unsigned)(q >> 32) ^ x.y ^ a, (unsigned)q, (unsigned)(p >> 32) ^ x.w ^ b, (unsigned)p);
  }
  return x;
}
__device__ float uniform(unsigned bits) { return (bits >> 8) * 5.9604645e-8f; }
"""
UCB1 = """
extern "C" __global__ void play(const float *means, int plays, unsigned seed, int lanes, float *out) {
  int lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= lanes) return;
  float counts[10] = {0}, sums[10] = {0}, regret = 0;
  for (int checkpoint = 0, t = 1; checkpoint < 20; checkpoint++) {
    for (int end = t + plays / 20; t < end; t++) {
      float bonus = 2 * logf((float)t), best = -1;
      int chosen = 0;
      #pragma unroll
      for (int arm = 0; arm < 10; arm++) {
        float index = counts[arm] > 0 ? sums[arm] / counts[arm] + sqrtf(bonus / counts[arm]) : 1e30f;
        if (index > best) { best = index; chosen = arm; }
      }
      bool reward = uniform(philox(make_uint4(t, lane, 0, 0), seed, 0).x) < means[chosen];
      #pragma unroll
      for (int arm = 0; arm < 10; arm++) { counts[arm] += arm == chosen; sums[arm] += arm == chosen && reward; }
      regret += means[9] - means[chosen];
    }
    out[checkpoint * lanes + lane] = regret;
  }
}
"""
EXP3 = """
extern "C" __global__ void play(const float *means, int plays, unsigned seed, int lanes, float *out) {
  int lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= lanes) return;
  float weights[10], regret = 0, rate = sqrtf(2 * logf(10.0f) / (10.0f * plays));
  for (int arm = 0; arm < 10; arm++) weights[arm] = 1;
  for (int checkpoint = 0, t = 1; checkpoint < 20; checkpoint++) {
    for (int end = t + plays / 20; t < end; t++) {
      uint4 bits = philox(make_uint4(t, lane, 0, 0), seed, 0);
      float total = 0, so_far = 0, weight = weights[0];
      #pragma unroll
      for (int arm = 0; arm < 10; arm++) total += weights[arm];
      float left = uniform(bits.x) * total;
      int chosen = 0;
      #pragma unroll
      for (int arm = 0; arm < 9; arm++) {
        so_far += weights[arm];
        if (so_far <= left) { chosen = arm + 1; weight = weights[arm + 1]; }
      }
      float factor = uniform(bits.y) < means[chosen] ? expf(-rate * total / weight) : 1;
      #pragma unroll
      for (int arm = 0; arm < 10; arm++) if (arm == chosen) weights[arm] *= factor;
      regret += means[chosen] - means[0];
    }
    out[checkpoint * lanes + lane] = regret;
  }
}
"""


def cupy_kernel(text: str, means: Any, lanes: int, plays: int) -> Played:
    import cupy

    kernel = cupy.RawKernel(PHILOX + text, "play")
    out, given = cupy.empty((20, lanes), cupy.float32), cupy.asarray(means, cupy.float32)

    def play():
        kernel(((lanes + 127) // 128,), (128,), (given, np.int32(plays), np.uint32(0), np.int32(lanes), out))
        return out

    return play, lambda _: cupy.cuda.get_current_stream().synchronize(), cupy.asnumpy


# ---- ours


def our_ucb1(means: Any, lanes: int, plays: int) -> Any:
    import jaxbandits as jb

    world = jb.environments.bernoulli_arms(means=means)
    return jb.sweep(jb.algorithms.ucb1, world, horizon=plays, seeds=lanes, checkpoints=20).regret


def our_exp3(means: Any, lanes: int, plays: int) -> Any:
    import jaxbandits as jb

    world = jb.environments.bernoulli_losses(means=means)
    return jb.sweep(jb.algorithms.exp3, world, horizon=plays, seeds=lanes, checkpoints=20).regret


# ---- what is measured


class Peer(NamedTuple):
    library: str
    begin: Callable[..., Played]
    wrote: tuple[Any, ...]  # functions and texts that their author wrote


def peers(name: str) -> dict[str, Peer]:
    """Those of an algorithm, by name."""
    numba, plain = {"ucb1": (numba_ucb1, jax_ucb1), "exp3": (numba_exp3, jax_exp3)}[name]
    text = {"ucb1": UCB1, "exp3": EXP3}[name]
    return {
        "JAX, threefry": Peer("jax", partial(plain, random="threefry2x32"), (plain,)),
        "JAX, rbg": Peer("jax", partial(plain, random="rbg"), (plain,)),
        # last: after an error of theirs on the card nothing of this process may play there
        "Numba, xoroshiro128p": Peer("numba.cuda", numba, (numba,)),
        "CuPy, Philox": Peer("cupy", partial(cupy_kernel, text), (PHILOX, text, cupy_kernel)),
    }


def count_lines(wrote: tuple[Any, ...]) -> int:
    """Lines of code of functions and texts: neither blank nor comment."""
    texts = [text if isinstance(text, str) else inspect.getsource(text) for text in wrote]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return sum(bool(line) and not line.startswith(("#", "//")) for line in lines)


def why_missing(library: str) -> str:
    """Why a library cannot be used here; nothing where it can."""
    try:
        found = importlib.import_module(library)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if library == "numba.cuda" and not found.is_available():
        return " ".join(str(found.cuda_error() or "numba finds no card").split())
    return ""


def measure_peer(peer: Peer, lanes: int, plays: int) -> tuple[dict[str, float], Any]:
    """Seconds of a peer, and its last regrets. What takes more than a second runs twice in all."""
    began = time.perf_counter()
    play, wait, fetch = peer.begin(MEANS, lanes, plays)
    regret = fetch(play())
    first, turns = time.perf_counter() - began, []
    while len(turns) < 3 and sum(to_numpy for _, to_numpy in turns) < 1:
        began = time.perf_counter()
        wait(out := play())
        inside = time.perf_counter() - began
        fetch(out)
        turns.append((inside, time.perf_counter() - began))
    inside, to_numpy = map(statistics.median, zip(*turns, strict=True))
    return {"first": first, "inside": inside, "to_numpy": to_numpy}, regret[-1]


def measure_ours(name: str, form: Any, lanes: int, plays: int) -> tuple[dict[str, float], Any]:
    """The same of one of our programs, to NumPy by a sweep."""
    from jaxbandits.kernels import launch

    ours = partial({"ucb1": our_ucb1, "exp3": our_exp3}[name], MEANS, lanes, plays)
    with launch.force_form(form), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        regret = ours()
        first = time.perf_counter() - began
        to_numpy = gpu.median_seconds(ours, 1, most=1)
    inside = lanes * plays / gpu.Plays(name, lanes, form).rate(0.05 if gpu.TINY else 0.4)["rate"]
    return {"first": first, "inside": inside, "to_numpy": to_numpy}, np.asarray(regret.isel(t=-1)).ravel()


def measure(name: str) -> None:
    """Rows of an algorithm: our two programs and its peers, where their mean regret is near that of our kernel."""
    lines, plays = count_lines(({"ucb1": our_ucb1, "exp3": our_exp3}[name],)), 500 if gpu.TINY else 10_000
    os.environ["JAXBANDITS_CACHE"] = tempfile.mkdtemp(dir=os.environ["JAXBANDITS_CACHE"])  # nothing compiled before
    gpu.device(), gpu.cases()  # imports and the card's start count in no first call
    runs = {
        "our kernel": ("jax", partial(measure_ours, name, gpu.kernel_form()), lines),
        "our scan": ("jax", partial(measure_ours, name, "scan"), lines),
        **{by: (x.library, partial(measure_peer, x), count_lines(x.wrote)) for by, x in peers(name).items()},
    }
    ours: dict[int, Any] = {}
    for by, (library, run, written) in runs.items():
        for lanes in [4_096] if gpu.TINY else gpu.all_lanes():
            row: dict[str, Any] = {"lanes": lanes, "by": by, "lines": written}
            if missing := why_missing(library):
                gpu.tell(gpu.OUT, "peers", name, **row, missing=missing[:150])
                break
            try:
                with gpu.alone():
                    seconds, regret = run(lanes, plays)
            except Exception as error:
                gpu.tell(gpu.OUT, "peers", name, **row, error=f"{type(error).__name__}: {error}"[:300])
                continue
            if by.startswith("our "):
                ours.setdefault(lanes, regret)
            row |= {"regret": float(regret.mean()), "same_game": lanes in ours and agree(regret, ours[lanes])}
            row |= {"rate": lanes * plays / seconds["inside"], "to_numpy": lanes * plays / seconds["to_numpy"]}
            gpu.tell(gpu.OUT, "peers", name, **row, first=seconds["first"])


def agree(x: Any, y: Any) -> bool:
    """Whether means of regret are within five standard errors and a hundredth: float32 breaks ties in its own way."""
    apart = abs(float(x.mean()) - float(y.mean()))
    return apart <= 5 * float(np.sqrt(x.var() / x.size + y.var() / y.size)) + 0.01 * float(y.mean())


# ---- the page


MEASURES = {"rate": "inside a call", "to_numpy": "to NumPy", "first": "to the end of its first call"}


def table(rows: list[dict[str, Any]]) -> str:
    """Rows of a day as the page shows them, and what others are faster at; a line where there are none."""
    rows = [row for row in rows if row["part"] == "peers" and "by" in row]
    rows.sort(key=lambda row: (row["name"], row["lanes"]))
    found = [row for row in rows if row.get("same_game")]
    if not found:
        return "No card has played these yet: their rows are to come.\n"
    lines = [
        "| algorithm | lanes | by | plays/s inside a call | plays/s to NumPy | first call, s | lines of code |",
        "|---|---|---|---|---|---|---|",
    ]
    faster = []
    ours = {(row["name"], row["lanes"]): row for row in found if row["by"] == "our kernel"}
    for row in rows:
        head = f"| `{row['name']}` | {row['lanes']:,} | {row['by']} |"
        if row not in found:
            why = row.get("missing") or row.get("error") or "plays something else"
            lines.append(f"{head} {' '.join(why.split()).replace('|', '/')} | - | - | {row['lines']} |")
            continue
        lines.append(f"{head} {row['rate']:.2g} | {row['to_numpy']:.2g} | {row['first']:.2g} | {row['lines']} |")
        beside = ours.get((row["name"], row["lanes"]))
        if beside is None or row["by"].startswith("our "):
            continue
        for key, words in MEASURES.items():
            times = beside[key] / row[key] if key == "first" else row[key] / beside[key]
            if times > 1:
                faster.append(f"{row['by']} {words} ({times:.1f} times, `{row['name']}`, {row['lanes']:,} lanes)")
    said = f"Faster than our kernel: {'; '.join(faster)}." if faster else "None of these is faster than our kernel."
    if not ours:
        said = "Our kernel has no row here."
    return "\n".join([*lines, "", said]) + "\n"

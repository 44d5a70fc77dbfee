"""Algorithms with expert advice against hand-tuned Numba loops:
rates through the public `sweep`, side by side, ratios printed.

    python benchmarks/experts.py       EXP4 and batched EXP4, 64 experts, 10 Bernoulli losses, one pinned core

The loops keep what is best for them: shapes fixed at compilation, advice stored by arm so that both the mixture and the
played arm's column are contiguous, tables of advice made once for every ten rotations, a generator of two words.
"""

import math
from functools import cache, partial

import numba as nb
import numpy as np
from engine import apart, show, timed
from numba_loops import F32, U64, _advanced, _seeded

MEANS = np.linspace(0.1, 0.9, 10)
EXPERTS, ROTATION, SPREAD = 64, 100, 0.2
_LOOP = {"parallel": True, "fastmath": True}


def advice_tables(num_experts: int, num_arms: int) -> np.ndarray:
    """What `rotating_experts` advises, one table a turn, by arm: [K, K, N]."""
    turn, expert = np.arange(num_arms)[:, None], np.arange(num_experts)
    lean = (expert + turn * (expert >= num_arms)) % num_arms  # [turn, N]
    tables = (1 - SPREAD) * (lean[:, None] == np.arange(num_arms)[:, None]) + SPREAD / num_arms
    return np.ascontiguousarray(tables, F32)


@cache
def _exp4(arms: int, experts: int, skip: bool):
    @nb.njit(**_LOOP)
    def loop(means, tables, rate, horizon, lanes, seed):
        loss = np.zeros(lanes)
        for lane in nb.prange(lanes):
            s0, s1 = _seeded(seed, lane)
            weight, q = np.full(experts, F32(1 / experts)), np.zeros(arms, F32)
            total, lost = F32(1), 0.0
            for t in range(horizon):
                table = tables[(t // ROTATION) % arms]
                word = s0 + s1
                s0, s1 = _advanced(s0, s1)
                choice = F32(word >> U64(40)) * F32(2.0**-24)
                coin = F32((word >> U64(16)) & U64(0xFFFFFF)) * F32(2.0**-24)
                for k in range(arms):
                    mass = F32(0)
                    for n in range(experts):
                        mass += weight[n] * table[k, n]
                    q[k] = mass
                left, a = choice * total, arms - 1
                for k in range(arms - 1):
                    left -= q[k]
                    if left < 0:
                        a = k
                        break
                lost += means[a]
                x = F32(1) if coin < means[a] else F32(0)
                if not skip or x != 0:
                    step = -rate * x * total / q[a]
                    total = F32(0)
                    for n in range(experts):
                        weight[n] *= math.exp(step * table[a, n])
                        total += weight[n]
                    if total < F32(1e-6):
                        scale, total = 1 / total, F32(0)
                        for n in range(experts):
                            weight[n] *= scale
                            total += weight[n]
            loss[lane] = lost
        return loss

    return loop


def exp4(horizon: int, lanes: int, seed: int = 1, skip: bool = True):
    """EXP4 without mixing on rotating advice and Bernoulli losses; `skip`: a loss of 0 costs no update.

    Summed mean losses [lanes].
    """
    rate = F32(math.sqrt(2 * math.log(EXPERTS) / (len(MEANS) * horizon)))
    tables = advice_tables(EXPERTS, len(MEANS))
    return _exp4(len(MEANS), EXPERTS, skip)(MEANS.astype(F32), tables, rate, horizon, lanes, seed)


@cache
def _batched_exp4(arms: int, experts: int):
    @nb.njit(**_LOOP)
    def loop(means, tables, rate, mixing, window, scale, horizon, lanes, seed):
        loss = np.zeros(lanes)
        for lane in nb.prange(lanes):
            s0, s1 = _seeded(seed, lane)
            logs, weight, q = np.zeros(experts, F32), np.full(experts, F32(1 / experts)), np.zeros(arms, F32)
            sums = np.zeros(experts, F32)
            lost, done = 0.0, 0
            for t in range(horizon):
                table = tables[(t // ROTATION) % arms]
                word = s0 + s1
                s0, s1 = _advanced(s0, s1)
                left = F32(word >> U64(40)) * F32(2.0**-24)
                coin = F32((word >> U64(16)) & U64(0xFFFFFF)) * F32(2.0**-24)
                for k in range(arms):
                    mass = F32(0)
                    for n in range(experts):
                        mass += weight[n] * table[k, n]
                    q[k] = (1 - mixing) * mass + mixing / arms
                a = arms - 1
                for k in range(arms - 1):
                    left -= q[k]
                    if left < 0:
                        a = k
                        break
                lost += means[a]
                if coin < means[a]:
                    estimate = 1 / q[a]
                    for n in range(experts):
                        sums[n] += table[a, n] * estimate
                done += 1
                if done == window:
                    done, top, total = 0, F32(-1e30), F32(0)
                    for n in range(experts):
                        word = s0 + s1
                        s0, s1 = _advanced(s0, s1)
                        noise = -math.log((F32(word >> U64(40)) + F32(0.5)) * F32(2.0**-24))
                        noise = noise if word & U64(1) else -noise
                        logs[n] -= rate * (sums[n] / window + scale * noise)
                        sums[n] = F32(0)
                        top = max(top, logs[n])
                    for n in range(experts):
                        logs[n] -= top
                        weight[n] = math.exp(logs[n])
                        total += weight[n]
                    total = 1 / total
                    for n in range(experts):
                        weight[n] *= total
            loss[lane] = lost
        return loss

    return loop


def batched_exp4(horizon: int, lanes: int, seed: int = 1, *, learning_rate, mixing, window, noise_scale):
    """Batched EXP4 on rotating advice and Bernoulli losses; a loss of 0 costs no update. Summed mean losses [lanes]."""
    tables = advice_tables(EXPERTS, len(MEANS))
    loop = _batched_exp4(len(MEANS), EXPERTS)
    numbers = F32(learning_rate), F32(mixing), window, F32(noise_scale)
    return loop(MEANS.astype(F32), tables, *numbers, horizon, lanes, seed)


def rates(horizon: int = 10_000, lanes: int = 1_024, rounds: int = 3) -> dict:
    """Ours and Numba's in turn, and the mean losses both end with."""
    import jaxbandits as jb

    nb.set_num_threads(1)
    jb.cores(1)
    a, losses = jb.algorithms, jb.environments.bernoulli_losses(means=MEANS)
    world = jb.environments.rotating_experts(losses=losses, num_experts=EXPERTS, spread=SPREAD, rotation=ROTATION)
    given = {"learning_rate": 0.3, "mixing": 0.2, "window": 100}
    private = partial(a.batched_exp4, epsilon=20.0, delta=0.1, **given)
    made = private(num_arms=len(MEANS), num_experts=EXPERTS, horizon=horizon)
    best = world.world.baseline(world.params, 0, np.array([horizon]))[0]
    found = {}
    for name, factory, loop in (
        ("exp4", a.exp4, partial(exp4, horizon, lanes, skip=False)),
        ("exp4, Numba updates after a loss only", a.exp4, partial(exp4, horizon, lanes)),
        ("batched_exp4", private, partial(batched_exp4, horizon, lanes, noise_scale=made.params.noise_scale, **given)),
    ):
        run = partial(jb.sweep, factory, world, horizon=horizon, seeds=lanes, progress=False)
        regrets = [float(run().regret[0, :, -1].mean()), float(np.mean(loop())) - best]  # both warm now
        pairs = [(timed(run), timed(loop)) for _ in range(rounds)]
        ours, theirs = (lanes * horizon / min(times) for times in zip(*pairs, strict=True))
        found[name] = {"ours": ours, "numba": theirs, "ratio": ours / theirs, "regret": regrets}
    return found


def ftpl(horizon: int = 4_000, lanes: int = 512, arms: int = 8) -> dict:
    """Updates per second of FTPL inside the private conversion, batches of one play.

    No Numba loop: the quadrature is the point.
    """
    import jaxbandits as jb

    jb.cores(1)
    a, world = jb.algorithms, jb.environments.fixed_gap_losses(num_arms=arms)
    private = partial(a.private_batched, base=a.ftpl, epsilon=1.0)
    run = partial(jb.sweep, private, world, horizon=horizon, seeds=lanes, checkpoints=1, progress=False)
    run()
    return {"updates/s": lanes * horizon / min(timed(run) for _ in range(3))}


def memory(windows=(100, 17_888), horizon: int = 1_000_000, lanes: int = 32) -> dict:
    """Peak megabytes of batched EXP4 by its window, each in a process of its own."""
    return {f"window {w}": apart(f"peak({w}, {horizon}, {lanes})", pinned=True, module="experts") for w in windows}


def peak(window: int, horizon: int, lanes: int) -> dict:
    """Peak megabytes of this process after one run."""
    import resource

    import jaxbandits as jb

    losses = jb.environments.bernoulli_losses(means=MEANS)
    world = jb.environments.rotating_experts(losses=losses, num_experts=EXPERTS, spread=SPREAD, rotation=ROTATION)
    given = {"epsilon": 0.5, "delta": 0.1, "learning_rate": 1.0, "mixing": 0.3, "window": window}
    private = partial(jb.algorithms.batched_exp4, **given)
    jb.sweep(private, world, horizon=horizon, seeds=lanes, checkpoints=10, progress=False)
    return {"MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


if __name__ == "__main__":
    show("FTPL in batches of one play, 8 arms, one pinned core", apart("ftpl()", pinned=True, module="experts"))
    show("batched EXP4, T = 1,000,000, 32 lanes", memory())
    show("64 experts, 10 Bernoulli losses, one pinned core", apart("rates()", pinned=True, module="experts"))

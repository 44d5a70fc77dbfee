"""Contextual linear bandits, 100 arms, d = 5, through the public `sweep`; `linucb` against Numba loops on one core.

    python benchmarks/contextual.py linucb            plays x lanes / s, fixed and redrawn arms, each generator of
                                                      `numba_contextual`
    python benchmarks/contextual.py learners          online_ucb with OGD and with Maler over linucb, redrawn arms
    python benchmarks/contextual.py sharing [full]    five algorithms x three epsilons in one sweep against each point
                                                      alone
    python benchmarks/contextual.py drift             float32 against float64: the inverse, fixed arms' scores and
                                                      widths, regrets

Without a mode: all of them at sizes that take about three minutes. Both sides are in one process pinned to one core
(`sharing`: two cores) and run in turns; CPU seconds, compilation left out. `full`: 1,000 seeds and T = 20,000.
"""

import itertools
import sys
import time
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numba_contextual
import numpy as np
from measure import best_of, one_core
from scipy import stats

import jaxbandits as jb
from jaxbandits import simulator
from jaxbandits.window import offer

ARMS, DIM, HORIZON = 100, 5, 20_000
EPSILONS = [0.2, 1.0, 10.0]
a = jb.algorithms
# label -> factory: what `learners` and `drift` may be asked for
FACTORIES = {
    "linucb": a.linucb,
    "linucb, ridge 1": partial(a.linucb, preset="theory"),
    "online_ucb, OGD": partial(a.online_ucb, epsilon=1.0, learner="ogd"),
    "online_ucb, Maler": partial(a.online_ucb, epsilon=1.0, learner="maler"),
}
FIVE = {
    "linucb": a.linucb,
    "ldp_linucb": a.ldp_linucb,
    "jdp_linucb": a.jdp_linucb,
    "shuffle_linucb": partial(a.shuffle_linucb, protocol="amplified"),
    "online_ucb": a.online_ucb,
}


def world(contexts: str):
    """The environment of every figure."""
    return jb.environments.contextual_linear(num_arms=ARMS, dim=DIM, contexts=contexts)


def run(label: str, contexts: str, seeds: int, horizon: int = HORIZON, **changes):
    """A sweep of one algorithm."""
    return partial(jb.sweep, FACTORIES[label], world(contexts), horizon=horizon, seeds=seeds, progress=False, **changes)


def linucb(seeds: int = 128) -> None:
    """Fixed and redrawn arms against every Numba loop."""
    one_core()
    for contexts, generators in {"fixed": ("circles",), "redraw": numba_contextual.GENERATORS}.items():
        ours = run("linucb", contexts, seeds)
        mean = float(ours().regret[0, :, -1].mean())
        loops = [partial(numba_contextual.linucb, ARMS, DIM, HORIZON, seeds, 0, contexts, name) for name in generators]
        regrets = [loop().mean() for loop in loops]
        rates = [seeds * HORIZON / s for s in best_of(3, ours, *loops)]
        print(f"{contexts}: {rates[0]:.3g} plays/s, mean regret {mean:.1f}", flush=True)
        for name, rate, regret in zip(generators, rates[1:], regrets, strict=True):
            label = "rank-one widths" if contexts == "fixed" else name
            print(f"  Numba, {label}: {rate:.3g} plays/s, mean regret {regret:.1f}; ours / Numba {rates[0] / rate:.2f}")


def learners(seeds: int = 128, horizon: int = HORIZON) -> None:
    """CPU seconds of online_ucb over those of linucb on redrawn arms, in turns on one core."""
    one_core()
    labels = ["linucb", "online_ucb, OGD", "online_ucb, Maler"]
    runs = [run(label, "redraw", seeds, horizon) for label in labels]
    for one in runs:
        one()
    seconds = best_of(3, *runs)
    for label, s in zip(labels, seconds, strict=True):
        print(f"{label}: {seeds * horizon / s:.3g} plays/s, {s / seconds[0]:.2f} times linucb", flush=True)


def sharing(seeds: int = 128, horizon: int = 2_000) -> None:
    """Fifteen points on the same seeds in one sweep and one by one, on two cores.
    linucb has no epsilon: its point is run three times.

    Points of one program share a seed's contexts; the programs of different algorithms are other calls and draw their
    own.
    """
    jb.cores(2)

    def swept(factories, epsilons):
        grid = {} if list(factories) == ["linucb"] else {"grid": {"epsilon": epsilons}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what each of the noises truly delivers
            jb.sweep(factories, world("redraw"), horizon=horizon, seeds=seeds, progress=False, **grid)

    def one_by_one(*labels):
        for label in labels or FIVE:
            for epsilon in EPSILONS:
                swept({label: FIVE[label]}, [epsilon])

    for label in FIVE:
        together, alone = partial(swept, {label: FIVE[label]}, EPSILONS), partial(one_by_one, label)
        together(), alone()  # compiled
        report(label, together, alone)
    report("all five", partial(swept, FIVE, EPSILONS), one_by_one)


def report(label: str, together, alone) -> None:
    """CPU seconds and wall clock of both."""
    (x, clock), (y, other) = spent(together), spent(alone)
    clocks = f"wall clock {clock:.1f} and {other:.1f} s"
    print(f"{label}: {x:.2f} CPU s together, {y:.2f} one by one, {1 - x / y:.0%} saved; {clocks}", flush=True)


def spent(function) -> tuple[float, float]:
    """CPU seconds of all threads, and wall clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    function()
    return time.process_time() - cpu, time.perf_counter() - wall


def drift(seeds: int = 256, horizon: int = HORIZON) -> None:
    """float32 against float64 on the same seeds:
    the inverse, fixed arms' scores and widths, and regrets (Kolmogorov-Smirnov).
    """
    for label in ("linucb", "linucb, ridge 1", "online_ucb, OGD"):
        for contexts in ("redraw", "fixed"):
            print(f"{label}, {contexts} arms", flush=True)
            errors(label, contexts, horizon)
            values = [
                run(label, contexts, seeds, horizon, dtype=kind)().regret[0, :, -1] for kind in ("float32", "float64")
            ]
            x, y = (np.asarray(v) for v in values)
            p = stats.ks_2samp(x, y).pvalue
            print(f"  regret {x.mean():.1f} in float32, {y.mean():.1f} in float64, KS p = {p:.3f}", flush=True)


def errors(label: str, contexts: str, horizon: int, seeds: int = 8) -> None:
    """Print the largest errors of a float32 run's last state against float64 on the features and rewards
    that it saw.
    """
    rank_one = label.startswith("linucb") and contexts == "fixed"
    # the last play before scores and widths are computed anew, where their errors are largest
    for plays in (127, horizon - horizon % 64 - 1) if rank_one else (horizon,):
        algorithm, x, y, state, world_state = played(label, contexts, plays, seeds)
        gram = np.einsum("stj,stk->sjk", x, x) + float(getattr(algorithm.params, "ridge", 1.0)) * np.eye(DIM)
        exact, inverse = np.linalg.inv(gram), full(state.inverse)
        size = np.linalg.norm(exact, axis=(1, 2))
        worst = (np.linalg.norm(inverse - exact, axis=(1, 2)) / size).max()
        print(f"  after {plays} plays: inverse {worst:.1e} relatively", end="\n" if not rank_one else "; ")
        if rank_one:
            arms = np.stack([np.asarray(z, float) for z in world_state.arms], -1)  # [seeds, A, d]
            v, shrink, error = (np.asarray(z, float) for z in state.last)
            z = np.einsum("sad,sd->sa", arms, v)
            score = np.asarray(state.score, float) + z * error[:, None]
            square = np.asarray(state.square, float) - z * z * shrink[:, None]
            theta = np.einsum("sij,stj,st->si", exact, x, y)
            width = np.sqrt(np.einsum("sad,sde,sae->sa", arms, exact, arms))
            s = np.abs(score - np.einsum("sad,sd->sa", arms, theta)).max()
            w = np.abs(np.sqrt(np.maximum(square, 0)) / width - 1).max()
            print(f"scores {s:.1e}, sqrt(x' P x) {w:.1e} relatively")


def full(inverse):
    """[seeds, d, d] from the upper triangle by rows, or as it is."""
    if not isinstance(inverse, tuple):
        return np.asarray(inverse, float)
    matrix = np.empty((len(inverse[0]), DIM, DIM))
    for value, (i, j) in zip(inverse, itertools.combinations_with_replacement(range(DIM), 2), strict=True):
        matrix[:, i, j] = matrix[:, j, i] = np.asarray(value, float)
    return matrix


def played(label: str, contexts: str, plays: int, seeds: int):
    """The algorithm, and per seed the features [T, d] and responses [T] it was sent,
    its last state and the environment's.
    """
    environment, sizes = world(contexts), {"num_arms": ARMS, "dim": DIM, "horizon": HORIZON}
    algorithm = FACTORIES[label](**sizes, **({"contexts": contexts} if label.startswith("linucb") else {}))
    parts = simulator.parts_of(algorithm, environment, None, None, "float32")
    case = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), simulator.case_of(algorithm, environment))

    def lane(seed):
        def play(lane, before):
            lane, window = offer(parts, case, seed, 1, lane, before, None)
            return lane, tuple(window.message)

        return jax.lax.scan(play, simulator.begin(parts, case, seed, 1), jnp.arange(plays, dtype=jnp.int32))

    last, (x, y) = jax.jit(jax.vmap(lane))(jnp.arange(seeds, dtype=jnp.uint32))
    return algorithm, np.asarray(x, float), np.asarray(y, float), last.algorithm, last.environment


def main(mode: str = "", size: str = "") -> None:
    """One mode, or all of them small."""
    if mode == "sharing" and size == "full":
        return sharing(1_000, HORIZON)
    modes = {"linucb": linucb, "learners": learners, "sharing": sharing, "drift": drift}
    if mode:
        return modes[mode]()
    sharing()
    drift(64, 2_000)
    learners(64, 5_000)  # pinned from here on
    linucb(64)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""One row for each family of algorithms: the public `sweep` against the best loop that we can write in Numba.

    python benchmarks/families.py [--json FILE] [--cores N] [--turns N] [--lanes N] [NAME ...]
    python benchmarks/families.py --costs [--json FILE] [--write PAGE] [--turns N] [--lanes N] [--horizon N] [NAME ...]

A row plays one instance on both sides: the same arms, horizon, number of lanes and parameters, draws of their own. Both
take turns in one process, after a first call that compiles. With one core (the default) the process is pinned to it and
CPU seconds count; with `--cores N` wall clock. Printed are plays of all lanes per second (medians of the turns), the
loop's time over ours, so above 1 we are faster, and the mean final regrets with their standard errors. A `!` marks
regrets that differ by more than four joint standard errors. `--lanes` replaces every row's number of lanes.

`--costs` prints instead what a play of a row costs us and what its parts take, in ns (see `parts.py`), for rows and, by
their cases of the catalogue, for every other algorithm that takes more than 100 ns a play; a NAME may be one of the
catalogue then. The least of the turns counts. The parts are measured alone and need not add up to the whole: *rest* is
what they leave, and is below 0 where they overlap.

    rewards         the environment, played by `sweep` under a learner that goes round the arms
    draws, functions, linear algebra, by index, stored once
                    what the learner adds: operations counted while it runs, at the machine's best speed
    passes          what the learner's kernels read and write besides, at the speed of the second-level cache
    launches        what does not grow with the lanes of a call, without the environment's share
    bound           the fewest of the first four parts that alone take longer than the loop, and the ratio that would be
                    reached if nothing else were left; `none` where all four together take less than the loop

The loops are in `numba_*.py` beside this file; those that play blocks of lanes in vectors say how in `numba_vectors`.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import measure
import numpy as np

# name -> (horizon, lanes): at most about twenty seconds a row, compilation included
SIZES = {
    "ucb1": (10_000, 8_192),
    "ucb1-lane-by-lane": (10_000, 8_192),
    "kl_ucb": (10_000, 1_024),
    "thompson": (10_000, 256),
    "dp_se": (500_000, 256),
    "exp3": (10_000, 8_192),
    "exp3-mixing": (10_000, 8_192),
    "htinf": (10_000, 4_096),
    "private_batched": (20_000, 4_096),
    "ftpl": (4_000, 256),
    "ftpl-coins": (4_000, 256),
    "exp4": (10_000, 1_024),
    "batched_exp4": (10_000, 1_024),
    "linucb-fixed": (20_000, 128),
    "linucb-redrawn": (20_000, 128),
    "ldp_linucb": (5_000, 256),
    "robust_elimination": (20_000, 2_048),
    "prm_elimination": (1_000_000, 512),
    "prm_elimination-central": (1_000_000, 256),
    "byzantine_ucb": (2_000, 1_024),
}
MEANS = np.linspace(0.1, 0.9, 10)
# gaps at which DP-SE drops an arm in its second or in its third epoch by chance
CLOSE_MEANS = 0.8 - np.array([0, 1, 2, 3, 4]) / 32
ONE_BETTER = np.full(8, 0.5)  # the losses of `fixed_gap_losses`
ONE_BETTER[0] = 0.2
TURNS = 5
TOLERATED = 4  # joint standard errors between the regrets of both sides


class Row(NamedTuple):
    """Both sides of a row. Each is called once a turn."""

    # the arguments of `sweep`, without horizon and seeds
    ours: dict[str, Any]
    # the final regrets [lanes] of the loop
    loop: Callable[[], np.ndarray]


# ---- the rows: horizon and lanes -> Row


def _bernoulli(factory, loop, means=MEANS):
    """A row on Bernoulli arms; `loop` takes means, horizon, lanes and seed."""
    import jaxbandits as jb

    def row(horizon, lanes):
        world = jb.environments.bernoulli_arms(means=means)
        return Row({"algorithms": factory, "environment": world}, partial(loop, means, horizon, lanes, 1))

    return row


def _with_params(factory, loop, means=MEANS):
    """A row on Bernoulli arms; `loop` takes the params of the algorithm too."""

    def row(horizon, lanes):
        params = factory(num_arms=len(means), horizon=horizon).params
        return _bernoulli(factory, lambda m, t, n, seed: loop(m, params, t, n, seed), means)(horizon, lanes)

    return row


def _ftpl(world, losses, coins):
    import numba_adversarial

    import jaxbandits as jb

    def row(horizon, lanes):
        params = jb.algorithms.ftpl(num_arms=len(losses), horizon=horizon).params
        loop = partial(numba_adversarial.ftpl, losses, params, horizon, lanes, 1, coins)
        return Row({"algorithms": jb.algorithms.ftpl, "environment": world}, loop)

    return row


def _experts(name):
    import experts

    import jaxbandits as jb

    def row(horizon, lanes):
        losses = jb.environments.bernoulli_losses(means=experts.MEANS)
        world = jb.environments.rotating_experts(
            losses=losses, num_experts=experts.EXPERTS, spread=experts.SPREAD, rotation=experts.ROTATION
        )
        least = world.world.baseline(world.params, 0, np.array([horizon]))[0]
        if name == "exp4":
            factory, loop = jb.algorithms.exp4, partial(experts.exp4, horizon, lanes)
        else:
            given = {"learning_rate": 0.3, "mixing": 0.2, "window": 100}
            factory = partial(jb.algorithms.batched_exp4, epsilon=20.0, delta=0.1, **given)
            sizes = {"num_arms": len(experts.MEANS), "num_experts": experts.EXPERTS, "horizon": horizon}
            scale = factory(**sizes).params.noise_scale
            loop = partial(experts.batched_exp4, horizon, lanes, noise_scale=scale, **given)
        return Row({"algorithms": factory, "environment": world}, lambda: loop() - least)

    return row


def _linucb(contexts):
    import numba_contextual

    import jaxbandits as jb

    def row(horizon, lanes):
        world = jb.environments.contextual_linear(num_arms=100, dim=5, contexts=contexts)
        loop = partial(numba_contextual.linucb, 100, 5, horizon, lanes, 0, contexts)
        return Row({"algorithms": jb.algorithms.linucb, "environment": world}, loop)

    return row


def _ldp_linucb(horizon, lanes):
    import numba_contextual

    import jaxbandits as jb

    sizes = {"num_arms": 100, "dim": 5}
    factory = partial(jb.algorithms.ldp_linucb, epsilon=1.0, preset="reference", delta=0.1)
    params = factory(**sizes, horizon=horizon).params
    loop = partial(numba_contextual.ldp_linucb, 100, 5, params, horizon, lanes, 1)
    world = jb.environments.contextual_linear(**sizes, contexts="redraw")
    return Row({"algorithms": factory, "environment": world}, loop)


def _robust_elimination(horizon, lanes):
    import numba_linear

    import jaxbandits as jb

    corruption, value = 0.02, 30.0
    numbers = np.random.default_rng(1)
    actions = numbers.normal(size=(50, 5))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    theta = 0.9 * actions[0]
    factory = partial(jb.algorithms.robust_elimination, num_batches=4, epsilon=8.0, corruption_bound=corruption)
    params = factory(actions=actions, horizon=horizon).params
    loop = partial(
        numba_linear.robust_elimination, actions, actions @ theta, params, corruption, value, horizon, lanes, 1
    )
    world = jb.environments.linear_arms(actions=actions, theta=theta, noise="rademacher")
    adversary = jb.adversaries.huber(corruption=corruption, kind="fixed", value=value)
    return Row({"algorithms": factory, "environment": world, "reward_adversary": adversary}, loop)


def _prm(moment):
    import numba_robust
    import robust_mab

    import jaxbandits as jb

    def row(horizon, lanes):
        epsilon, corruption, means = 0.5, 0.05, np.array(robust_mab.MEANS)
        factory = partial(jb.algorithms.prm_elimination, epsilon=epsilon, corruption_bound=corruption, **moment)
        params = factory(num_arms=len(means), horizon=horizon).params
        world = jb.environments.pareto_arms(means=means, shape=robust_mab.SHAPE)
        adversary = jb.adversaries.huber(corruption=corruption, kind="fixed", value=robust_mab.VALUE)

        def loop():
            setting = robust_mab.SHAPE, corruption, robust_mab.VALUE, params, horizon, lanes, 1, bool(moment)
            return numba_robust.prm_elimination(means, *setting)[0] @ (means.max() - means)

        return Row({"algorithms": factory, "environment": world, "reward_adversary": adversary}, loop)

    return row


def _byzantine(horizon, lanes):
    import byzantine

    import jaxbandits as jb

    world = jb.environments.federated_linear(**byzantine.SIZES, reward="gaussian", theta_norm=0.6, noise_scale=0.4)
    factory = partial(jb.algorithms.byzantine_ucb, window=byzantine.WINDOW)
    return Row({"algorithms": factory, "environment": world}, partial(byzantine.looped, lanes, horizon))


def rows() -> dict[str, Callable[[int, int], Row]]:
    """Every row by name. Modules are imported here, so that an unknown name is refused at once."""
    import engine
    import numba_adversarial
    import numba_loops
    import numba_stochastic

    import jaxbandits as jb

    a, e = jb.algorithms, jb.environments
    mixed = partial(a.exp3, learning_rate=engine.MIXING / len(MEANS), mixing=engine.MIXING)
    return {
        "ucb1": _bernoulli(a.ucb1, numba_stochastic.ucb1),
        "ucb1-lane-by-lane": _bernoulli(a.ucb1, numba_loops.ucb1),
        "kl_ucb": _bernoulli(a.kl_ucb, numba_stochastic.kl_ucb),
        "thompson": _bernoulli(a.thompson, numba_stochastic.thompson),
        "dp_se": _with_params(partial(a.dp_se, epsilon=1.0), numba_stochastic.dp_se, CLOSE_MEANS),
        "exp3": _with_params(a.exp3, numba_adversarial.exp3),
        "exp3-mixing": _with_params(mixed, numba_adversarial.exp3),
        "htinf": _with_params(a.htinf, numba_adversarial.htinf),
        "private_batched": _with_params(partial(a.private_batched, epsilon=0.1), numba_adversarial.private_htinf),
        "ftpl": _ftpl(e.fixed_gap_losses(num_arms=len(ONE_BETTER)), ONE_BETTER, False),
        "ftpl-coins": _ftpl(e.bernoulli_losses(means=MEANS[:8]), MEANS[:8], True),
        "exp4": _experts("exp4"),
        "batched_exp4": _experts("batched_exp4"),
        "linucb-fixed": _linucb("fixed"),
        "linucb-redrawn": _linucb("redraw"),
        "ldp_linucb": _ldp_linucb,
        "robust_elimination": _robust_elimination,
        "prm_elimination": _prm({}),
        "prm_elimination-central": _prm({"moment": "central", "mean_bound": 10.0}),
        "byzantine_ucb": _byzantine,
    }


# ---- measuring


def seconds(clock: Callable[[], float], function: Callable[[], Any]) -> float:
    """What one call takes by a clock."""
    began = clock()
    function()
    return clock() - began


def mean_and_error(regret: np.ndarray) -> tuple[float, float]:
    """The mean over lanes and its standard error."""
    return float(regret.mean()), float(regret.std() / math.sqrt(len(regret)))


def measured(name: str, row: Row, horizon: int, lanes: int, turns: int, clock: Callable[[], float]) -> dict[str, Any]:
    """The figures of one row."""
    import jaxbandits as jb

    sweep = partial(jb.sweep, **row.ours, horizon=horizon, seeds=lanes, progress=False)
    ours_regret, ours_error = mean_and_error(sweep().regret.values[0, :, -1])  # compiled now
    numba_regret, numba_error = mean_and_error(np.asarray(row.loop(), float))
    taken = [(seconds(clock, sweep), seconds(clock, row.loop)) for _ in range(turns)]
    ours, loop = (statistics.median(side) for side in zip(*taken, strict=True))
    plays = horizon * lanes
    return {
        "name": name, "ours": plays / ours, "numba": plays / loop, "ratio": loop / ours,
        "regret_ours": ours_regret, "regret_ours_se": ours_error,
        "regret_numba": numba_regret, "regret_numba_se": numba_error,
        "horizon": horizon, "lanes": lanes,
    }  # fmt: skip


def agree(found: dict[str, Any]) -> bool:
    """Whether both sides' mean regrets lie within `TOLERATED` joint standard errors."""
    error = math.hypot(found["regret_ours_se"], found["regret_numba_se"])
    return abs(found["regret_ours"] - found["regret_numba"]) <= TOLERATED * error + 1e-9


def line(found: dict[str, Any]) -> str:
    """A row of the printed table."""
    regrets = [f"{found['regret_' + side]:.5g} +- {found['regret_' + side + '_se']:.2g}" for side in ("ours", "numba")]
    cells = [
        found["name"], f"{found['horizon']:,}", f"{found['lanes']:,}", f"{found['ours']:.3g}", f"{found['numba']:.3g}",
        f"{found['ratio']:.2f}", *regrets,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |" + ("" if agree(found) else " !")


# ---- the parts of a play

COSTLY = 100  # ns a play: from there on every algorithm of the catalogue is shown
CASE_HORIZON = 5_000  # of the catalogue's cases
NEEDED = ("rewards", "draws", "functions", "linear algebra")  # what no other arrangement of a step saves


def case_of(row: Row) -> Any:
    """The arguments of `sweep` of a row."""
    import parts

    return parts.Case(row.ours["algorithms"], row.ours["environment"], row.ours.get("reward_adversary"))


def bound(taken: dict[str, float], loop: float) -> str:
    """The fewest parts without which the loop could not be reached, and the ratio that they leave; ns."""
    spent, named = 0.0, []
    for part in sorted(NEEDED, key=lambda part: -taken[part]):
        spent, named = spent + taken[part], [*named, part]
        if spent > loop:
            return f"{' + '.join(named)}: {loop / spent:.2f}"
    return f"none: {loop / spent:.2f}"


def parts_of_row(name: str, horizon: int | None, lanes: int | None, turns: int) -> dict[str, Any] | None:
    """What a play of a row, or of a case of the catalogue, costs and what its parts take. None below `COSTLY`."""
    import parts
    import sweeps

    from jaxbandits.catalogue import ALGORITHMS

    loop = None
    if name in SIZES:
        length, number = SIZES[name]
        length, number = horizon or length, lanes or number
        row = rows()[name](length, number)
        row.loop()  # compiled now
        loop = 1e9 * min(seconds(time.process_time, row.loop) for _ in range(turns)) / (length * number)
        case = case_of(row)
    else:
        case, length, number = ALGORITHMS[name], horizon or CASE_HORIZON, lanes
        if number is None:
            found = sweeps.cost(name, case, length, sweeps.COST_SECONDS, sweeps.COST_LANES)
            number = found["lanes"]
            if 1e9 * found["play"] < COSTLY:
                return None
    found = parts.costs_of(case, length, number, turns)
    taken = {"rewards": found.rewards, **found.parts}
    counts = {kind: list(map(float, both)) for kind, both in zip(parts.KINDS, found.counts.T, strict=True)}
    return {
        "name": name, "horizon": length, "lanes": found.lanes, "kernels": found.kernels, "bytes": found.bytes,
        "play": found.play, "loop": loop, "parts": taken, "rest": found.rest, "counts": counts,
        "bound": "" if loop is None else bound(taken, loop),
    }  # fmt: skip


def print_costs(names: list[str], options: argparse.Namespace) -> None:
    """The tables of parts: of rows, and of other algorithms."""
    import sweeps

    from jaxbandits.catalogue import ALGORITHMS

    measure.one_core()
    rest = [name for name in ALGORITHMS if name not in SIZES]
    tables = {"rows": [n for n in names if n in SIZES], "others": [n for n in names if n not in SIZES]}
    tables = tables if names else {"rows": list(SIZES), "others": rest}
    found = []
    print(f"ns of a play and lane, CPU seconds of one pinned core; load {os.getloadavg()[0]:.2f} before", flush=True)
    for table, listed in tables.items():
        if not listed:
            continue
        lines = _cost_head(table == "rows")
        print("", *lines, sep="\n", flush=True)
        for name in listed:
            row = parts_of_row(name, options.horizon, options.lanes, options.turns)
            if row is None:
                continue
            found.append(row)
            lines.append(cost_line(row))
            print(lines[-1], flush=True)
            if options.json:
                with open(options.json, "w", encoding="utf-8") as file:
                    json.dump(found, file, indent=1)
        if options.write:
            put = sweeps.put_rows if names else sweeps.put_between
            put(options.write, table, "\n".join(lines) + "\n")


COLUMNS = (*NEEDED, "by index", "stored once", "passes", "launches")


def _cost_head(looped: bool) -> list[str]:
    """The head of a table of parts. looped: whether there are loops beside it."""
    head = ["row" if looped else "algorithm", "lanes a call", "kernels", "ours", *["loop"] * looped, *COLUMNS, "rest"]
    head += ["bound"] * looped
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]


def cost_line(row: dict[str, Any]) -> str:
    """A line of a table of parts."""
    looped = row["loop"] is not None
    times = [row["play"], *[row["loop"]] * looped, *(row["parts"][part] for part in COLUMNS), row["rest"]]
    cells = [
        f"`{row['name']}`",
        f"{row['lanes']:,}",
        f"{row['kernels']:.0f}",
        *map(_ns, times),
        *[row["bound"]] * looped,
    ]
    return f"| {' | '.join(cells)} |"


def _ns(nanoseconds: float) -> str:
    """Nanoseconds in about three digits."""
    size = abs(nanoseconds)
    return f"{nanoseconds:,.0f}" if size >= 100 else f"{nanoseconds:.1f}" if size >= 10 else f"{nanoseconds:.2f}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], prog="families.py")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"rows: {', '.join(SIZES)}")
    parser.add_argument("--json", metavar="FILE", help="also write the rows there")
    parser.add_argument("--cores", type=int, default=1, metavar="N")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help="timed calls of each side")
    parser.add_argument("--lanes", type=int, metavar="N", help="of every row, instead of its own number")
    parser.add_argument("--costs", action="store_true", help="what a play costs and what its parts take")
    parser.add_argument(
        "--write",
        type=Path,
        metavar="PAGE",
        help="with --costs: a page with the tables' marks; of NAMEs their rows",
    )
    parser.add_argument("--horizon", type=int, metavar="N", help="with --costs: of every row, instead of its own")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in SIZES]
    if unknown and options.costs:
        from jaxbandits.catalogue import ALGORITHMS

        unknown = [name for name in unknown if name not in ALGORITHMS]
    if unknown:
        print(f"families.py: no row {unknown[0]!r}; the rows are {', '.join(SIZES)}", file=sys.stderr)
        return 2
    if min(options.cores, options.turns, *(1 if x is None else x for x in (options.lanes, options.horizon))) < 1:
        print("families.py: --cores, --turns, --lanes and --horizon must be at least 1", file=sys.stderr)
        return 2
    if options.costs:
        print_costs(options.names, options)
        return 0
    if options.cores == 1:
        measure.one_core()
    else:
        measure.several_cores(options.cores)
    clock = time.process_time if options.cores == 1 else time.perf_counter
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    unit = "CPU seconds of one pinned core" if options.cores == 1 else f"wall clock on {options.cores} cores"
    print(f"plays of all lanes per second, {unit}, median of {options.turns} turns; load {load:.2f} before\n")
    print("| row | T | lanes | ours | Numba | ratio | regret, ours | regret, Numba |\n|" + "---|" * 8, flush=True)
    found, known = [], rows()
    for name in options.names or SIZES:
        horizon, lanes = SIZES[name]
        lanes = lanes if options.lanes is None else options.lanes
        found.append(measured(name, known[name](horizon, lanes), horizon, lanes, options.turns, clock))
        print(line(found[-1]), flush=True)
        if options.json:  # after every row, so that what was measured is kept
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

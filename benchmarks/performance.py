"""How fast this machine is, how rates depend on the size of a problem, and how near the algorithms come to the machine.

    python benchmarks/performance.py                  everything below, about twelve minutes on one core
    python benchmarks/performance.py machine          Threefry blocks, functions and bytes a second
    python benchmarks/performance.py curves           rates against lanes, horizon, checkpoints, arms, dimension, agents
    python benchmarks/performance.py roofline         every algorithm of the catalogue: time needed and time taken
    python benchmarks/performance.py --out DIR        where the figures go (default: docs/figures)
    python benchmarks/performance.py --write PAGE     also put the tables into a page, between their marks
    python benchmarks/performance.py --small          tiny sizes and few algorithms: does it run?
    python benchmarks/performance.py roofline --only NAME ...   these algorithms anew, the others as measured before
    python benchmarks/performance.py --redraw         pictures and tables of the figures measured before

The process is pinned to one core, and CPU seconds count. Rates are plays of all lanes per second through the public
`sweep`, compilation left out, the better of two calls. Figures are written to `performance.json`, and drawn in
`performance-*.png` beside it.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import measure
import numpy as np

HERE = Path(__file__).resolve().parent
FIGURES = HERE.parent / "docs" / "figures"
SMALL_ALGORITHMS = ("ucb1", "exp3", "linucb")  # what --small looks at
BYTES_OF = {"first-level cache": 16_384, "second-level cache": 524_288, "memory": 268_435_456}  # of an array
SHOWN = (  # of the machine, in the order of the table
    "threefry", "exp", "log", "log1p", "power", "sine", "erf_inv", "gamma", "sqrt", "division", "arithmetic",
    "reduction", "gather", "scatter", "materialize",
)  # fmt: skip
WORDS = {
    "threefry": "Threefry block, 64 random bits", "exp": "exp", "log": "log", "log1p": "log(1 + x)",
    "power": "x to the y", "sine": "sine", "erf_inv": "inverse error function", "gamma": "log of the gamma function",
    "sqrt": "square root", "division": "division", "arithmetic": "sum or product",
    "reduction": "number of a maximum over a row of ten", "gather": "number read by its index in a row of ten",
    "scatter": "number added to by its index in a row of ten", "materialize": "number computed once and stored",
}  # fmt: skip


# ---- the machine


def machine(small: bool) -> dict[str, Any]:
    """Seconds of one operation, and bytes a second that a loop reads and writes."""
    import jax.numpy as jnp
    import parts

    def rate(size: int) -> float:
        x = jnp.ones(min(size, 65_536 if small else size) // 4, jnp.float32)
        return 2 * x.nbytes / parts.seconds_of_turn(lambda _, x: x * np.float32(0.5) + np.float32(1), x)

    return {
        "operations": {kind: parts.unit_cost(kind) for kind in SHOWN},
        "bytes a second": {name: rate(size) for name, size in BYTES_OF.items()},
    }


# ---- curves


class Curve(NamedTuple):
    """A picture: what changes along its axis, and for every line the sizes of its points."""

    axis: str
    title: str
    # label -> (what the number on the axis gives for `rate`, numbers)
    lines: dict[str, tuple[Callable[[int], dict[str, Any]], tuple[int, ...]]]


def bandit(name: str, arms: int = 10, **size: Any) -> dict[str, Any]:
    """UCB1 or EXP3 on Bernoulli arms."""
    import jaxbandits as jb

    world = jb.environments.bernoulli_arms(means=np.linspace(0.1, 0.9, arms))
    return {"algorithms": getattr(jb.algorithms, name), "environment": world} | size


def contextual(dim: int, **size: Any) -> dict[str, Any]:
    """LinUCB on twenty arms, redrawn in every play."""
    import jaxbandits as jb

    world = jb.environments.contextual_linear(num_arms=20, dim=dim, contexts="redraw")
    return {"algorithms": jb.algorithms.linucb, "environment": world} | size


def fixed_actions(dim: int, **size: Any) -> dict[str, Any]:
    """Robust elimination on fifty actions."""
    import jaxbandits as jb

    actions = np.random.default_rng(1).normal(size=(50, dim))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    world = jb.environments.linear_arms(actions=actions, theta=0.9 * actions[0], noise="rademacher")
    factory = partial(jb.algorithms.robust_elimination, num_batches=4, epsilon=8.0, corruption_bound=0.02)
    return {"algorithms": factory, "environment": world} | size


def federated(agents: int, **size: Any) -> dict[str, Any]:
    """Byzantine-UCB by geometric median, ten arms, d = 4."""
    import jaxbandits as jb

    sizes = {"num_agents": agents, "num_arms": 10, "dim": 4}
    world = jb.environments.federated_linear(**sizes, reward="gaussian", theta_norm=0.6, noise_scale=0.4)
    return {"algorithms": partial(jb.algorithms.byzantine_ucb, window=11), "environment": world} | size


def curves() -> dict[str, Curve]:
    """Every picture of rates."""
    two = ("ucb1", "exp3")

    def of(sizes: Callable[[int], dict[str, Any]], numbers: tuple[int, ...]) -> dict[str, Any]:
        return {name: (lambda n, name=name: bandit(name, **sizes(n)), numbers) for name in two}

    # as many lanes as plays fit the time, so that every point takes about as long
    return {
        "lanes": Curve(
            "lanes", "10 arms, T = 10,000",
            of(lambda n: {"seeds": n, "horizon": 10_000}, (16, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192)),
        ),
        "horizon": Curve(
            "horizon T", "10 arms, 2,048 lanes, 200 checkpoints",
            of(lambda n: {"seeds": 2_048, "horizon": n}, (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)),
        ),
        "checkpoints": Curve(
            "checkpoints", "10 arms, 2,048 lanes, T = 10,000",
            of(lambda n: {"seeds": 2_048, "horizon": 10_000, "checkpoints": n}, (1, 10, 50, 200, 1_000, 5_000)),
        ),
        "arms": Curve(
            "arms K", "4,096 lanes, T = 2,000, 20 checkpoints",
            of(
                lambda n: {"arms": n, "seeds": 4_096, "horizon": 2_000, "checkpoints": 20},
                (2, 5, 10, 20, 50, 100, 200),
            ),
        ),
        "dimension": Curve(
            "dimension d", "512 lanes, 20 checkpoints; LinUCB 20 arms, T = 1,000; elimination 50 actions, T = 20,000",
            {
                "linucb": (
                    lambda n: contextual(n, seeds=512, horizon=1_000, checkpoints=20), (2, 3, 5, 8, 12, 16, 24),
                ),
                "robust_elimination": (
                    lambda n: fixed_actions(n, seeds=512, horizon=20_000, checkpoints=20), (2, 5, 10),
                ),
            },
        ),
        "agents": Curve(
            "agents N", "ten arms, d = 4, T = 500, 128 lanes",
            {"byzantine_ucb": (lambda n: federated(n, seeds=128, horizon=500, checkpoints=20), (2, 5, 10, 20))},
        ),
    }  # fmt: skip


def rate(arguments: dict[str, Any], small: bool) -> float:
    """Plays of all lanes per second."""
    import jaxbandits as jb

    if small:
        arguments = arguments | {"seeds": min(arguments["seeds"], 16), "horizon": min(arguments["horizon"], 200)}
        arguments["checkpoints"] = 2
    run = partial(jb.sweep, **arguments, progress=False)
    run()  # compiled now
    return arguments["seeds"] * arguments["horizon"] / min(measure.best_of(2, run))


def curves_measured(small: bool) -> dict[str, Any]:
    """Rates: picture -> line -> [[number, plays a second]]."""
    found: dict[str, Any] = {}
    for picture, curve in curves().items():
        found[picture] = {}
        for label, (arguments, numbers) in curve.lines.items():
            points = [[n, rate(arguments(n), small)] for n in (numbers[:2] if small else numbers)]
            found[picture][label] = points
            print(f"rate against {picture}, {label}: " + ", ".join(f"{n:,}: {r:.3g}" for n, r in points), flush=True)
    return found


# ---- the roofline


def family(name: str) -> str:
    """The family of an algorithm: the folder of its module."""
    import jaxbandits as jb

    return getattr(jb.algorithms, name).__module__.split(".")[2]


def roofline(small: bool, only: list[str] | None = None) -> dict[str, Any]:
    """Every algorithm of the catalogue, or those named: ns of a play, and ns that its parts take at best."""
    import parts
    import sweeps

    from jaxbandits.catalogue import ALGORITHMS

    horizon = 200 if small else sweeps.COST_HORIZON
    found = {}
    for name in only or (SMALL_ALGORITHMS if small else ALGORITHMS):
        case = ALGORITHMS[name]
        cost = sweeps.cost(name, case, horizon, 0.0 if small else sweeps.COST_SECONDS / 2, sweeps.COST_LANES)
        counts = parts.counted(parts.sweep_of(case, horizon, min(cost["lanes"], parts.COUNTED_LANES)))
        needed = parts.parts_of(counts.sum(0))
        found[name] = {
            "family": family(name), "cost": cost, "play": 1e9 * cost["play"], "needed": needed,
            "counts": dict(zip(parts.KINDS, map(float, counts.sum(0)), strict=True)),
        }  # fmt: skip
        print(f"{name}: {found[name]['play']:.4g} ns, needed {needed_ns(found[name]):.3g} ns", flush=True)
    return found


NEEDED = ("draws", "functions", "linear algebra")


def needed_ns(row: dict[str, Any]) -> float:
    """ns that draws, functions and sums of a play take at best."""
    return sum(row["needed"][part] for part in NEEDED)


# ---- tables


def machine_table(found: dict[str, Any]) -> str:
    """Operations a second, and bytes."""
    lines = ["| one core | ns | a second |", "|---|---|---|"]
    for kind, seconds in found["operations"].items():
        lines.append(f"| {WORDS[kind]} | {1e9 * seconds:.2g} | {1 / seconds:.2g} |")
    for name, speed in found["bytes a second"].items():
        lines.append(f"| byte read or written, {name} | {1e9 / speed:.2g} | {speed:.2g} |")
    return "\n".join(lines) + "\n"


def roofline_table(found: dict[str, Any]) -> str:
    """What a play needs and takes, the cheapest first."""
    head = ["algorithm", "case", *NEEDED, "needed, ns", "taken, ns", "taken / needed"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, row in sorted(found.items(), key=lambda pair: pair[1]["play"]):
        needed = needed_ns(row)
        numbers = [*(row["needed"][part] for part in NEEDED), needed, row["play"], row["play"] / needed]
        cells = [f"{x:,.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}" for x in numbers]
        lines.append(f"| {' | '.join(['`' + name + '`', row['cost']['case'], *cells])} |")
    return "\n".join(lines) + "\n"


# ---- pictures


def draw_curve(name: str, lines: dict[str, Any], path: Path) -> None:
    """A picture of rates."""
    from matplotlib.figure import Figure

    from jaxbandits.reports import layout

    curve = curves()[name]
    with layout.style():
        figure = Figure(figsize=(4.2, 2.7), layout="constrained")
        axes = figure.subplots()
        for (label, points), colour, marker in zip(lines.items(), layout.COLOURS, "os^", strict=False):
            axes.plot(*zip(*points, strict=True), label=label, color=colour, marker=marker)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(curve.axis)
        axes.set_ylabel("plays of all lanes / s, one core")
        axes.set_title("\n".join(curve.title.split("; ")))
        ticks = sorted({n for points in lines.values() for n, _ in points})
        axes.set_xticks(ticks, [f"{n:,}" for n in ticks], rotation=0 if ticks[-1] < 1000 else 35)
        axes.minorticks_off()
        rates = [r for points in lines.values() for _, r in points]
        steps = [m * 10.0**e for e in range(3, 10) for m in (1, 2, 5)]
        inside = [s for s in steps if min(rates) / 2.6 <= s <= max(rates) * 2.6]
        axes.set_yticks(inside, [short(s) for s in inside])
        axes.grid(alpha=0.25, linewidth=0.5)
        axes.legend(frameon=False)
        layout.save(figure, path)


def short(rate: float) -> str:
    """A rate in words, such as 50 M."""
    return f"{rate / 1e6:g} M" if rate >= 1e6 else f"{rate / 1e3:g} k"


def draw_roofline(found: dict[str, Any], path: Path) -> None:
    """Time taken against time needed, every algorithm a named point."""
    from matplotlib.figure import Figure

    from jaxbandits.reports import layout

    families = sorted({row["family"] for row in found.values()})
    with layout.style():
        figure = Figure(figsize=(8.5, 8.5), layout="constrained")
        axes = figure.subplots()
        for number, kind in enumerate(families):
            points = [(needed_ns(row), row["play"]) for row in found.values() if row["family"] == kind]
            colour, marker = layout.COLOURS[number % len(layout.COLOURS)], "os^Dvph"[number % 7]
            axes.plot(*zip(*points, strict=True), linestyle="", color=colour, marker=marker, label=kind)
        needed, taken = [needed_ns(row) for row in found.values()], [row["play"] for row in found.values()]
        ends = np.array([min(needed) / 1.6, max(needed) * 2.2])
        for factor, style in ((1, "-"), (3, "--"), (10, ":"), (30, "-.")):
            word = "needed" if factor == 1 else f"{factor} times needed"
            axes.plot(ends, factor * ends, color="0.6", linestyle=style, linewidth=0.8, zorder=0, label=word)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(*ends)
        axes.set_ylim(min(taken) / 2, max(taken) * 2)
        axes.set_xlabel("ns a play that its draws, functions and sums need at the best speed of the machine")
        axes.set_ylabel("ns a play and lane, measured")
        axes.set_title("The catalogue's cases, T = 5,000, one core")
        axes.grid(alpha=0.2, linewidth=0.5)
        axes.legend(frameon=False, loc="lower right", ncols=2)
        name_points(figure, axes, {name: (needed_ns(row), row["play"]) for name, row in found.items()})
        layout.save(figure, path)


def name_points(figure: Any, axes: Any, points: dict[str, tuple[float, float]]) -> None:
    """Write names beside points, each at the first place around its point that is still free."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    renderer = figure.canvas.get_renderer()
    marks = [axes.transData.transform(point) for point in points.values()]
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in marks] + [axes.get_legend().get_window_extent(renderer).extents]
    inside = axes.get_window_extent(renderer).extents
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    places = [(r * np.cos(a), r * np.sin(a)) for r in (6, 11, 17, 24, 32, 42, 55, 70) for a in angles]
    for name, point in sorted(points.items(), key=lambda pair: -pair[1][1]):
        for right, up in places:
            sides = {"ha": "left" if right > 1 else "right" if right < -1 else "center", "va": "center"}
            text = axes.annotate(
                name, point, (right, up), textcoords="offset points", fontsize=5.5, **sides,
                arrowprops={"arrowstyle": "-", "linewidth": 0.3, "color": "0.5", "shrinkA": 0, "shrinkB": 2},
            )  # fmt: skip
            text.set_in_layout(False)
            text.update_positions(renderer)
            x0, y0, x1, y1 = Text.get_window_extent(text, renderer).extents  # without the line to its point
            free = inside[0] < x0 and x1 < inside[2] and inside[1] < y0 and y1 < inside[3]
            if free and not any(x0 < b[2] and b[0] < x1 and y0 < b[3] and b[1] < y1 for b in taken):
                break
            text.remove()
        else:
            text = axes.annotate(name, point, fontsize=5.5)
        taken.append(Text.get_window_extent(text, renderer).extents)


# ---- all of it

SECTIONS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "machine": machine, "curves": curves_measured, "roofline": roofline,
}  # fmt: skip


def main(arguments: list[str]) -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("sections", nargs="*", choices=[[], *SECTIONS], metavar="SECTION")
    reading.add_argument("--out", type=Path, default=FIGURES, metavar="DIR")
    reading.add_argument("--write", type=Path, metavar="PAGE")
    reading.add_argument("--small", action="store_true")
    reading.add_argument("--redraw", action="store_true")
    reading.add_argument("--only", nargs="+", metavar="NAME", help="roofline: measure these algorithms anew")
    given = reading.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "performance.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    if not given.redraw:
        measure.one_core()
        for name in given.sections or SECTIONS:
            load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
            print(f"\n## {name} (load {load:.2f} before)\n", flush=True)
            if name == "roofline" and given.only:
                found[name] |= roofline(given.small, given.only)
            else:
                found[name] = SECTIONS[name](given.small) | {"load": load}
            file.write_text(json.dumps(found, indent=1) + "\n")  # after every section, so that what is measured is kept
    tables = {}
    for name, measured in found.items():
        rows = {key: value for key, value in measured.items() if key != "load"}
        if name == "machine":
            tables[name] = machine_table(rows)
        elif name == "curves":
            for picture, lines in rows.items():
                draw_curve(picture, lines, given.out / f"performance-{picture}.png")
        else:
            tables[name] = roofline_table(rows)
            draw_roofline(rows, given.out / "performance-roofline.png")
    for name, table in tables.items():
        print(f"\n{table}", flush=True)
        if given.write is not None:
            import sweeps

            sweeps.put_between(given.write, name, table)


if __name__ == "__main__":
    main(sys.argv[1:])

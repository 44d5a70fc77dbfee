"""Other bandit libraries beside ours: the same problem, CPU seconds in turns, and the regrets of both.

    python -m venv peers && peers/bin/pip install -e '.[bench-peers]'      an environment of its own
    peers/bin/python benchmarks/peers.py [NAME ...]                        problems or libraries; all without a NAME
    ... --write docs/performance.md docs/index.md README.md     put tables and a sentence between their marks, and draw
    ... --json FILE --out DIR                       where the figures and the picture go (default: docs/figures)
    ... --turns N --seconds S --lanes N --horizon N --redraw

A library that is not installed gets a line and is left out; so does one that cannot be imported or fails, with its
error. GOBRec is not in the extra, since it installs PyTorch: `pip install gobrec==1.0.8` adds it.

Both sides play the same law of rewards with draws of their own, pinned to one core. In a turn the peer plays for about
`--seconds`, at least four runs, and ours its lanes; CPU seconds of the process and its children count, and who begins
changes from turn to turn. What compiles was compiled before. The ratio is ours over theirs in plays per CPU second, the
geometric mean of the turns with Student's 95% interval. Regrets are means over all runs with standard errors; `agree`
is no where Welch's test finds a difference at the level 1e-4.

Rates are those of one library's way of running many runs, not of its best use: PyMAB and SMPyBandits keep what every
play did, ours 200 checkpoints; MABWiser, river and GOBRec are made for decisions one at a time and are called so.
"""

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import math
import os
import resource
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import measure
import numpy as np
import peer_worlds
import sweeps
from peer_libraries import GAMMA, LIBRARIES, MEANS, NOISE_SCALE, PLAYS, RIDGE, THETA, WIDTH

import jaxbandits as jb

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
LEVEL = 1e-4  # of the test that regrets differ
LEAST_RUNS = 4  # of a peer in a turn
BLOCK = 64  # lanes that our Numba loops play together


class Problem(NamedTuple):
    """Our side of a problem."""

    horizon: int
    lanes: int
    algorithm: Any
    environment: Callable[[], Any]
    # what is the same on both sides, for the page
    words: str


def problems() -> dict[str, Problem]:
    """Every problem, by the names of `peer_libraries.PLAYS`."""
    a, arms = jb.algorithms, partial(jb.environments.bernoulli_arms, means=MEANS)
    exp3 = partial(a.exp3, learning_rate=GAMMA / len(MEANS), mixing=GAMMA)
    linucb = partial(peer_worlds.plain_linucb, width=WIDTH, ridge=RIDGE)
    models = partial(peer_worlds.linear_models, THETA, NOISE_SCALE)
    return {
        "UCB1": Problem(10_000, 4_096, a.ucb1, arms, "index mean + √(2 ln t / N)"),
        "KL-UCB": Problem(10_000, 1_024, a.kl_ucb, arms, "N kl(mean, q) ≤ ln t"),
        "Thompson": Problem(10_000, 256, a.thompson, arms, "Beta(1, 1) priors"),
        "EXP3, gains": Problem(
            10_000, 4_096, exp3, partial(peer_worlds.bernoulli_gains, MEANS), "γ = 0.05, rate γ / K, rewards as gains"
        ),
        "EXP3, losses": Problem(10_000, 4_096, exp3, arms, "the same with losses, our own form"),
        "LinUCB, a context an arm": Problem(
            2_000, 512, linucb, partial(models, shared=False), "width 1, ridge 1, a model of three features an arm"
        ),
        "LinUCB, one context": Problem(
            2_000, 512, linucb, partial(models, shared=True), "the same, all arms see one context"
        ),
    }


# ---- measuring


def cpu_seconds() -> float:
    """Of this process and of its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(function: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """CPU seconds of a call, and the regrets that it returns."""
    began = cpu_seconds()
    regrets = function()
    return cpu_seconds() - began, np.asarray(regrets, float)


def mean_and_error(regrets: np.ndarray) -> tuple[float, float]:
    """The mean of runs and its standard error."""
    return float(regrets.mean()), float(regrets.std(ddof=1) / math.sqrt(len(regrets)))


def geometric_mean(ratios: list[float]) -> tuple[float, float, float]:
    """With Student's 95% interval over turns; an interval of one turn is unknown."""
    from scipy import stats

    logs = np.log(ratios)
    if len(logs) == 1:
        return ratios[0], float("nan"), float("nan")
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    return tuple(float(x) for x in np.exp([logs.mean(), logs.mean() - half, logs.mean() + half]))


def absent(library: str) -> str:
    """Why a library cannot be run, or nothing."""
    if importlib.util.find_spec(LIBRARIES[library][0]) is None:
        how = "pip install gobrec==1.0.8" if library == "GOBRec" else "pip install '.[bench-peers]'"
        return f"not installed, left out: {how}"
    return ""


def version(library: str) -> str:
    """The version of a library."""
    try:
        return importlib.metadata.version(LIBRARIES[library][1])
    except importlib.metadata.PackageNotFoundError:
        return ""


def runs_of_turn(play: Callable, horizon: int, seconds: float, least: int) -> int:
    """As many runs of a peer as take about `seconds`, found by trying: a multiple of `least`."""
    runs = least
    while True:
        taken, _ = timed(partial(play, horizon, runs, 0))
        if taken >= seconds / 8 or runs >= 8_192:
            wanted = min(8_192, runs * seconds / max(taken, 1e-9))
            return least * max(1, round(wanted / least))
        runs *= 4


def measured(name: str, library: str, problem: Problem, turns: int, seconds: float) -> dict[str, Any]:
    """The figures of a problem with a library; `error` where it does not run."""
    found: dict[str, Any] = {"problem": name, "library": library, "version": version(library)}
    play, (horizon, lanes) = PLAYS[name][library], problem[:2]
    try:
        play(horizon, LEAST_RUNS, 0)  # imported and compiled now
        runs = runs_of_turn(play, horizon, seconds, BLOCK if LIBRARIES[library][0] == "numba" else LEAST_RUNS)
    except Exception as error:  # whatever a library raises is what its row says
        text = str(error).splitlines()[0] if str(error) else ""
        return found | {"error": f"{type(error).__name__}: {text}".rstrip(": ")}
    sweep = partial(jb.sweep, problem.algorithm, problem.environment(), horizon=horizon, seeds=lanes, progress=False)

    def ours():
        return sweep().regret.values[0, :, -1]

    regret_ours, taken = ours(), []
    for turn in range(turns):
        sides = [ours, partial(play, horizon, runs, turn + 1)]
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        taken.append(dict((side, timed(sides[side])) for side in order))
    rates = [(horizon * lanes / turn[0][0], horizon * runs / turn[1][0]) for turn in taken]
    ratio, low, high = geometric_mean([a / b for a, b in rates])
    mean, error = mean_and_error(regret_ours)
    peer_mean, peer_error = mean_and_error(np.concatenate([turn[1][1] for turn in taken]))
    return found | {
        "horizon": horizon, "lanes": lanes, "runs": runs * turns, "turns": turns,
        "ours": statistics.median(a for a, _ in rates), "theirs": statistics.median(b for _, b in rates),
        "ratio": ratio, "low": low, "high": high,
        "regret": mean, "regret_se": error, "peer_regret": peer_mean, "peer_regret_se": peer_error,
    }  # fmt: skip


def agree(row: dict[str, Any]) -> bool:
    """Whether Welch's test finds no difference of both mean regrets at `LEVEL`."""
    from scipy import stats

    sides = [(row["regret"], row["regret_se"], row["lanes"]), (row["peer_regret"], row["peer_regret_se"], row["runs"])]
    moments = [x for mean, error, runs in sides for x in (mean, error * math.sqrt(runs), runs)]
    return bool(stats.ttest_ind_from_stats(*moments, equal_var=False).pvalue >= LEVEL)


# ---- tables


def short(number: float) -> str:
    """About three digits, such as 1,230 or 0.43."""
    if not math.isfinite(number) or number == 0:
        return "?"
    digits = max(0, 2 - math.floor(math.log10(abs(number))))
    rounded = round(number, 2 - math.floor(math.log10(abs(number))))
    return f"{rounded:,.{digits}f}"


def times(row: dict[str, Any]) -> str:
    """A ratio with its interval."""
    return f"{short(row['ratio'])} ({short(row['low'])} to {short(row['high'])})"


def regrets(row: dict[str, Any]) -> list[str]:
    """Our mean regret and theirs, with standard errors, and whether they agree."""
    pairs = [(row[kind], row[kind + "_se"]) for kind in ("regret", "peer_regret")]
    return [f"{mean:.4g} ± {error:.2g}" for mean, error in pairs] + ["yes" if agree(row) else "no"]


def printed(row: dict[str, Any]) -> str:
    """A row as it is measured, with rates."""
    start = f"{row['problem']}, {row['library']} {row['version']}: "
    if "error" in row:
        return start + f"does not run ({row['error']})"
    ours, theirs, agreed = regrets(row)
    rates = f"ours {row['ours']:.3g} plays per CPU second, theirs {row['theirs']:.3g}, ratio {times(row)}"
    return start + f"{rates}; regret ours {ours}, theirs {theirs}, agree: {agreed}; {row['runs']:,} of their runs"


def table(rows: list[dict[str, Any]]) -> str:
    """Ratios and regrets, a line a problem and library."""
    head = ["problem", "library", "ours / theirs, plays per CPU second", "regret, ours", "theirs", "agree", "runs"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [row["problem"], f"{row['library']} {row['version']}"]
        if "error" in row:
            cells += [f"does not run: `{row['error']}`", "", "", "", ""]
        else:
            cells += [times(row), *regrets(row), f"{row['lanes']:,} and {row['runs']:,}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def short_table(rows: list[dict[str, Any]]) -> str:
    """One line a library, one column a problem: ratios alone."""
    names = list(dict.fromkeys(row["problem"] for row in rows))
    libraries = list(dict.fromkeys(f"{row['library']} {row['version']}" for row in rows))
    lines = [f"| ours / theirs | {' | '.join(names)} |", "|" + "---|" * (len(names) + 1)]
    for library in libraries:
        found = {row["problem"]: row for row in rows if f"{row['library']} {row['version']}" == library}
        cells = [_cell(found.get(name)) for name in names]
        lines.append(f"| {library} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def sentence(rows: list[dict[str, Any]]) -> str:
    """Our plays beside two libraries' and our loop by hand, for the first page."""
    found = {row["library"]: row["ratio"] for row in rows if row["problem"] == "UCB1" and "error" not in row}
    ratios = sorted(row["ratio"] for row in rows if row["library"] == "PyMAB" and "error" not in row)
    range_of_them = f"{len(ratios)} algorithms run {short(ratios[0])} to {short(ratios[-1])} times as fast as PyMAB's"
    return (
        f"On one CPU core {range_of_them}, "
        f"and UCB1 on ten arms {short(found['SMPyBandits'])} times as fast as SMPyBandits', at equal regret. "
        f"A loop written by hand for UCB1 alone is {1 / found['Numba']:.1f} times as fast as this package "
        f"where it plays 64 runs together in vectors, {1 / found['Numba (lane by lane)']:.2f} times run by run.\n"
    )


def _cell(row: dict[str, Any] | None) -> str:
    """A ratio, marked where the regrets differ."""
    if row is None:
        return ""
    return "does not run" if "error" in row else short(row["ratio"]) + ("" if agree(row) else " (regrets differ)")


def put(page: Path, rows: list[dict[str, Any]]) -> None:
    """Write the tables whose marks a page has."""
    text = page.read_text(encoding="utf-8")
    known = {"peers": table, "peers-short": short_table, "peers-sentence": sentence}
    marked = [name for name in known if f"<!-- {name}: begin -->\n" in text]
    if not marked:
        raise SystemExit(f"peers.py: {page} has no marks <!-- {' or '.join(known)}: begin -->")
    for name in marked:
        sweeps.put_between(page, name, known[name](rows))


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Ratios with their intervals, a line a problem and library."""
    from matplotlib.figure import Figure

    from jaxbandits.reports import layout

    rows = [row for row in rows if "error" not in row]
    names = list(dict.fromkeys(row["problem"] for row in rows))
    with layout.style():
        figure = Figure(figsize=(6.4, 0.9 + 0.16 * (len(rows) + len(names))), layout="constrained")
        axes = figure.subplots()
        place, ticks = 0.0, []
        for number, name in enumerate(names):
            for row in [row for row in rows if row["problem"] == name]:
                place -= 1
                colour = layout.COLOURS[number % len(layout.COLOURS)]
                low, high = (row["ratio"] if math.isnan(row[end]) else row[end] for end in ("low", "high"))
                axes.plot([low, high], [place, place], color=colour, linewidth=2.5)
                axes.plot([row["ratio"]], [place], "o" if agree(row) else "x", color=colour, markersize=5)
                ticks.append((place, f"{name}: {row['library']}"))
            place -= 0.6
        axes.axvline(1, color="0.6", linewidth=0.8, zorder=0)
        axes.set_xscale("log")
        axes.set_yticks([place for place, _ in ticks], [text for _, text in ticks])
        marks = [10.0**e for e in range(-1, 5)]
        axes.set_xticks(marks, [f"{mark:,g}" for mark in marks])
        axes.minorticks_off()
        axes.margins(y=0.02)
        axes.set_xlabel("plays per CPU second, ours over theirs; right of the line ours is faster")
        axes.grid(axis="x", alpha=0.25, linewidth=0.5)
        layout.save(figure, path)


# ---- command line


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], prog="peers.py")
    parser.add_argument("names", nargs="*", metavar="NAME", help="problems or libraries")
    parser.add_argument("--turns", type=int, default=5, metavar="N")
    parser.add_argument("--seconds", type=float, default=1.5, metavar="S", help="of a peer in a turn")
    parser.add_argument("--lanes", type=int, metavar="N", help="of ours, instead of the problem's own")
    parser.add_argument("--horizon", type=int, metavar="N", help="instead of the problem's own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures (default: peers.json in --out)")
    parser.add_argument("--out", type=Path, default=FIGURES, metavar="DIR", help="where the picture goes")
    parser.add_argument(
        "--write", type=Path, nargs="+", default=[], metavar="PAGE", help="pages with the tables' marks"
    )
    parser.add_argument("--redraw", action="store_true", help="table and picture of the figures measured before")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in PLAYS and name not in LIBRARIES]
    if unknown:
        known = ", ".join(map(repr, [*PLAYS, *LIBRARIES]))
        print(f"peers.py: no problem or library {unknown[0]!r}; there are {known}", file=sys.stderr)
        return 2
    file = options.json or options.out / "peers.json"
    rows = json.loads(file.read_text()) if options.redraw else measure_all(options, file)
    if options.write:
        for page in options.write:
            put(page, rows)
        draw(rows, options.out / "performance-peers.png")
    else:
        print("\n" + table(rows), end="")
    return 0


def measure_all(options: argparse.Namespace, file: Path) -> list[dict[str, Any]]:
    """Every row that was asked for, written down as it is found where a file was named or pages are written."""
    measure.one_core()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"one pinned core, CPU seconds in {options.turns} turns; load {load:.1f} before", flush=True)
    for library in LIBRARIES:
        if absent(library) and (not options.names or library in options.names):
            print(f"{library}: {absent(library)}", flush=True)
    rows = []
    for name, problem in problems().items():
        problem = problem._replace(horizon=options.horizon or problem.horizon, lanes=options.lanes or problem.lanes)
        for library in PLAYS.get(name, {}):
            if absent(library) or (options.names and not {name, library} & set(options.names)):
                continue
            rows.append(measured(name, library, problem, options.turns, options.seconds))
            print(printed(rows[-1]), flush=True)
            if options.json or options.write:
                file.write_text(json.dumps(rows, indent=1) + "\n")
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

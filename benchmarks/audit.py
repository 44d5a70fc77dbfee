"""How often the audit errs, and how much it finds.

    python benchmarks/audit.py [--seeds N] [--out DIR] [--write PAGE] [nulls | power | published | catalogue | adaptive]

`nulls`: audits of identical inputs. Nothing is spent between them, so whatever an audit claims to have proven is a
false alarm; a share of at most 1 - confidence may be.

`power`: a Laplace mechanism that spends x% more than it claims, audited with n runs: how many audits refute the claim,
of an eighth as many seeds.

`published`: noise of papers, of published code and as recalled that does not keep what it is given, with where it is
known from (`jaxbandits/provenance.toml`), what its releases spend, what an audit of 1,000,000 runs proves, and what
repairs it.

`catalogue`: `jaxbandits audit --all`, as a table. It takes about a minute for each of 37 algorithms.

`adaptive`: `jaxbandits audit NAME --adaptive` of the algorithms for losses, likewise.

Figures are written to `audit.json` and drawn in `audit-power.png`.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import measure
import numpy as np
import pandas as pd
import sweeps
from scipy.stats import binomtest

import jaxbandits as jb
from jaxbandits import provenance
from jaxbandits.auditing import Edit
from jaxbandits.commands.audit import audit_table
from jaxbandits.protocol import Algorithm
from jaxbandits.reports import layout

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
SEEDS = 400
NULL_RUNS = 4000
LEAKS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
POWER_RUNS = (2_000, 8_000, 32_000, 128_000)
a, SMALL = jb.algorithms, {"num_arms": 2, "horizon": 40}
USER = Edit(1, 0.5, [1.0, 0.0])
# label -> what is audited, and the edit that is compared with itself
NULLS = {
    "ldp_ucb": (partial(a.ldp_ucb, **SMALL, epsilon=1.0), Edit(1)),
    "ldp_exp3": (partial(a.ldp_exp3, **SMALL, epsilon=1.0), Edit(1)),
    "private_batched": (partial(a.private_batched, **SMALL, epsilon=1.0, window=4), Edit(1)),
    "dp_klucb": (partial(a.dp_klucb, **SMALL, epsilon=1.0), Edit(1)),
    "prm_elimination": (partial(a.prm_elimination, **SMALL, epsilon=1.0), Edit(1)),
    "online_ucb": (partial(a.online_ucb, **SMALL, dim=2, epsilon=1.0, delta=0.01), USER),
}
CLAIM = (1.0, 0.0)
OF_LOSSES = ("private_batched", "bandit_to_experts", "ldp_exp3", "local_exp4", "batched_exp4")
PUBLISHED_RUNS = 1_000_000


class Published(NamedTuple):
    """A claim, on an algorithm with the noise that is to keep it."""

    algorithm: Algorithm
    # its name in provenance.toml
    source: str
    # (epsilon, delta)
    claimed: tuple[float, float]
    # epsilon at that delta, by the ledger
    spent: float
    repair: str
    whole: bool = False


def claiming(
    made: Algorithm, source: str, epsilon: float, delta: float, repair: str, whole: bool = False, **guarantee: Any
) -> Published:
    """The claim, put on an algorithm that spends something else. guarantee: fields of its `Guarantee`, replaced."""
    spent = made.guarantee.spend(made.params)[0]
    claim = made.guarantee._replace(spend=lambda params: (epsilon, delta), **guarantee)
    return Published(made._replace(guarantee=claim), source, (epsilon, delta), float(spent), repair, whole)


def published() -> dict[str, Published]:
    """What is audited, by name."""
    users, linear = {"num_arms": 4, "dim": 2}, {"actions": np.eye(2), "horizon": 400, "noise_scale": 0.3}
    agents = {
        "num_agents": 1, "num_arms": 4, "dim": 2, "horizon": 40, "window": 1, "aggregate": "mean", "privacy": "tree",
        "epsilon": 1.0, "delta": 1e-3,
    }  # fmt: skip
    published = {"horizon": 40, "preset": "reference", "delta": 0.1}
    asked = a.byzantine_ucb(**agents, schedule="determinant", threshold=4.0)
    asked = asked._replace(guarantee=a.byzantine_ucb(**agents).guarantee)
    noiseless = a.dist_elimination(num_arms=4, horizon=400, epsilon=1.0)
    noiseless = noiseless._replace(params=noiseless.params._replace(mechanism_scale=0.016 / 2.83))
    unbounded = a.robust_elimination(**linear, num_batches=3, epsilon=1.0)
    return {
        "FedUCB: rounds when the determinant has grown": Published(
            asked, "fed_ucb_rounds", (1.0, 1e-3), math.inf, "`byzantine_ucb(schedule=\"fixed\")`"
        ),
        "JDP: simplified tree": claiming(
            a.jdp_linucb(**users, **published, epsilon=1.0, tree="simplified"),
            "jdp_linucb_code", 1.0, 0.1, "`jdp_linucb(preset=\"exact\")`", whole=True,
        ),
        "Robust elimination: Laplace noise on rewards without a bound": claiming(
            unbounded, "robust_elimination", 1.0, 0.0, "bounded rewards: `linear_arms(noise=\"rademacher\")`",
            bound=math.inf,
        )._replace(spent=math.inf),
        # not the code's law, which is a two-sided geometric: docs/privacy.md
        "Dist-DP-SE: our noise at the deviation of the code's": claiming(
            noiseless, "dist_elimination_rescaled", 1.0, 0.0, "`dist_elimination`, whose noise has the paper's law"
        ),
        "LDP-LinUCB: reference preset": claiming(
            a.ldp_linucb(**users, **published, epsilon=1.0), "ldp_linucb_code", 1.0, 0.1,
            "`ldp_linucb(preset=\"exact\")`",
        ),
        "JDP: reference preset on a binary tree": claiming(
            a.jdp_linucb(**users, **published, epsilon=2.0, tree="binary"),
            "jdp_linucb_binary", 2.0, 0.1, "`jdp_linucb(preset=\"exact\")`",
        ),
        "OnlineUCB: Algorithm 1's noise at a large ε": claiming(
            a.online_ucb(**users, horizon=40, epsilon=10.0, delta=0.1, calibration="paper"), "online_ucb", 10.0, 0.1,
            "`online_ucb(calibration=\"exact\")`",
        ),
    }  # fmt: skip


def audited(seeds: int) -> dict[str, Any]:
    """What is asked, spent and proven, noise by noise. One audit each, whatever `seeds`."""
    found = {}
    for name, one in published().items():
        told = jb.audit(one.algorithm, runs=PUBLISHED_RUNS, whole=one.whole)
        found[name] = {
            "source": one.source,
            "claimed": one.claimed,
            "spent": one.spent if math.isfinite(one.spent) else "inf",
            "proven": told.epsilon_lower,
            "refuted": told.refuted,
            "repair": one.repair,
        }
        print(name, found[name], flush=True)
    return found


def share(hits: int, seeds: int) -> dict[str, Any]:
    """How many of the audits, and the exact interval of 95% of their share."""
    found = binomtest(hits, seeds).proportion_ci()
    return {"hits": hits, "seeds": seeds, "low": found.low, "high": found.high}


def nulls(seeds: int) -> dict[str, Any]:
    """False alarms of audits of identical inputs, at the default confidence of 0.95."""
    found = {}
    for name, (factory, edit) in NULLS.items():
        made = factory()
        told = [jb.audit(made, runs=NULL_RUNS, seed=seed, pairs=[(edit, edit)]).epsilon_lower for seed in range(seeds)]
        found[name] = share(sum(lower > 0 for lower in told), seeds) | {"largest": max(told)}
        print(name, found[name], flush=True)
    return found


def leaking(leak: float) -> Any:
    """Laplace reports of epsilon = 1 + leak that claim epsilon = 1."""
    made = a.ldp_ucb(**SMALL, epsilon=1.0)
    params = made.params._replace(mechanism_scale=1 / (1 + leak))
    return made._replace(params=params, guarantee=made.guarantee._replace(spend=lambda params: CLAIM))


def power(seeds: int) -> dict[str, Any]:
    """Audits that refute the claim, by leak and runs."""
    found: dict[str, Any] = {}
    for runs in POWER_RUNS:
        for leak in LEAKS:
            told = [jb.audit(leaking(leak), runs=runs, seed=seed).refuted for seed in range(max(seeds // 8, 2))]
            found.setdefault(str(runs), {})[str(leak)] = share(sum(told), len(told))
        print(runs, {leak: row["hits"] for leak, row in found[str(runs)].items()}, flush=True)
    return found


def command_rows(*arguments: str) -> list[dict[str, Any]]:
    """The rows of a call of `jaxbandits audit`."""
    with tempfile.TemporaryDirectory() as out:
        if subprocess.run([sys.executable, "-m", "jaxbandits", "audit", *arguments, "--out", out]).returncode:
            raise SystemExit("a claim of the catalogue is refuted")
        return json.loads(pd.read_csv(Path(out) / "audit.csv").to_json(orient="records"))


def catalogue_rows(seeds: int) -> list[dict[str, Any]]:
    """The rows of `jaxbandits audit --all`. One audit each, whatever `seeds`."""
    return command_rows("--all")


def adaptive_rows(seeds: int) -> list[dict[str, Any]]:
    """Those of `jaxbandits audit NAME --adaptive` of the algorithms for losses."""
    return [row for name in OF_LOSSES for row in command_rows(name, "--adaptive")]


def catalogue_table(found: list[dict[str, Any]]) -> str:
    """What was proven of every private algorithm."""
    return f"{audit_table(pd.DataFrame(found))}\n"


def nulls_table(found: dict[str, Any]) -> str:
    """False alarms."""
    lines = ["| algorithm | audits | false alarms | share, 95% | largest bound |", "|---|---:|---:|---:|---:|"]
    for name, row in found.items():
        interval = f"[{100 * row['low']:.1f}%, {100 * row['high']:.1f}%]"
        lines.append(f"| `{name}` | {row['seeds']:,} | {row['hits']} | {interval} | {row['largest']:.3f} |")
    return "\n".join(lines) + "\n"


def power_table(found: dict[str, Any]) -> str:
    """Shares of audits that refute."""
    head = [f"{100 * float(leak):.0f}% more" for leak in next(iter(found.values()))]
    lines = [f"| runs | {' | '.join(head)} |", "|---:" * (len(head) + 1) + "|"]
    for runs, row in found.items():
        shares = (f"{100 * cell['hits'] / cell['seeds']:.0f}%" for cell in row.values())
        lines.append(f"| {int(runs):,} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def published_table(found: dict[str, Any]) -> str:
    """Noise that does not keep what it is given."""
    lines = [
        "| noise | known from | asked ε | δ | spent ε | audited ε at least | the audit | repair |",
        "|---|---|---:|---:|---:|---:|---|---|",
    ]
    for name, row in found.items():
        epsilon, delta = row["claimed"]
        spent = "∞" if row["spent"] == "inf" else f"{row['spent']:.4g}"
        says = "**refutes**" if row["refuted"] else "does not refute"
        known = provenance.records()[row["source"]].kind_and_source()
        cells = (name, known, f"{epsilon:g}", f"{delta:g}", spent, f"{row['proven']:.2f}", says, row["repair"])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(found: dict[str, Any], path: Path) -> None:
    """Share of audits that refute against the leak, a line for each number of runs."""
    from matplotlib.figure import Figure

    with layout.style():
        figure = Figure(figsize=(4.8, 3.0), layout="constrained")
        axes = figure.subplots()
        for (runs, row), colour, marker in zip(found.items(), layout.COLOURS, "os^v", strict=False):
            leaks = [100 * float(leak) for leak in row]
            middle = [100 * cell["hits"] / cell["seeds"] for cell in row.values()]
            axes.plot(leaks, middle, label=f"{int(runs):,} runs", color=colour, marker=marker)
            low, high = ([100 * cell[end] for cell in row.values()] for end in ("low", "high"))
            axes.fill_between(leaks, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_xlabel("spent beyond the claim, %")
        axes.set_ylabel("audits that refute the claim, %")
        axes.set_title("Laplace reports that claim epsilon = 1")
        axes.grid(alpha=0.25, linewidth=0.5)
        axes.legend(frameon=False)
        layout.save(figure, path)


SECTIONS = {
    "nulls": (nulls, nulls_table),
    "power": (power, power_table),
    "published": (audited, published_table),
    "catalogue": (catalogue_rows, catalogue_table),
    "adaptive": (adaptive_rows, catalogue_table),
}


def main() -> None:
    """Measure, print and write."""
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("sections", nargs="*", choices=[[], *SECTIONS], metavar="SECTION")
    reading.add_argument("--seeds", type=int, default=SEEDS)
    reading.add_argument("--out", type=Path, default=FIGURES, metavar="DIR")
    reading.add_argument("--write", type=Path, metavar="PAGE")
    given = reading.parse_args()
    measure.one_core()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "audit.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    for name in given.sections or SECTIONS:
        measured, table = SECTIONS[name]
        found[name] = measured(given.seeds)
        file.write_text(json.dumps(found, indent=1) + "\n")
        print(f"\n{table(found[name])}", flush=True)
        if name == "power":
            draw(found[name], given.out / "audit-power.png")
        if given.write is not None:
            sweeps.put_between(given.write, f"audit-{name}", table(found[name]))


if __name__ == "__main__":
    main()

"""The audit of many algorithms as a table, one row for each: what `jaxbandits audit` writes."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxbandits import catalogue
from jaxbandits.auditing.audit import Audit, audit
from jaxbandits.checking.findings import described
from jaxbandits.checking.lookup import here_first, imported, small_environment
from jaxbandits.formatting import markdown as cells
from jaxbandits.mechanisms.composition import SIMULATED
from jaxbandits.privacy import asked
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.sweeps.sweep import built_cells
from jaxbandits.sweeps.toml_file import read_config

if TYPE_CHECKING:
    import pandas as pd

OWN_HORIZON = 256  # plays of an algorithm that is not in the catalogue


def case(name: str) -> tuple[Algorithm, Environment]:
    """An algorithm and its environment: of the catalogue by name, or the user's own by `module:factory`.

    The user's own algorithm plays a small environment that fits its arguments. Raises ValueError where there is no
    such algorithm, and where the factory needs arguments that the environment does not fill in.
    """
    if ":" not in name:
        return catalogue.case(name)
    here_first()
    factory = imported("audit", name)
    if not callable(factory):
        raise ValueError(
            f"audit = {name!r} is no factory: name a function that returns an Algorithm, or a partial of one"
        )
    environment = small_environment(factory)()
    try:
        algorithm = algorithm_for(partial(factory, horizon=OWN_HORIZON), environment)
    except Exception as error:
        remedy = f"`jaxbandits check {name}` says more"
        raise ValueError(f"audit = {name!r} cannot be built: {described(error)}; {remedy}") from error
    if algorithm.guarantee.model == "none":
        raise ValueError(f"audit = {name!r} has no guarantee: an audit needs a private algorithm")
    return algorithm, environment


def cases(name: str) -> list[tuple[str, Algorithm, Environment]]:
    """What a name stands for: one algorithm, or all private ones of a sweep in a TOML file, at every point of its grid.

    Raises ValueError where there is none.
    """
    if not name.endswith(".toml"):
        algorithm, environment = case(name)
        return [(algorithm.version[0], algorithm, environment)]
    here_first()
    arguments = {key: x for key, x in read_config(name).items() if key not in ("figure", "caption", "memory")}
    private = [cell for cell in built_cells(**arguments) if cell[1].guarantee.model != "none"]
    if not private:
        raise ValueError(f"audit = {name!r}: no algorithm of this sweep has a guarantee: an audit needs a private one")
    return private


def audits(
    cases: Iterable[tuple[str, Algorithm, Environment]],
    *,
    runs: int,
    confidence: float,
    seed: int,
    whole: bool = False,
    adaptive: bool = False,
    say: Callable[[Audit], Any] = print,
) -> Iterator[tuple[Audit, Algorithm]]:
    """One audit after another of algorithms in their environments, by label.

    `say` is called with each audit as soon as it is done.
    """
    for label, algorithm, environment in cases:
        report = audit(
            algorithm, runs=runs, confidence=confidence, seed=seed, environment=environment, whole=whole,
            adaptive=adaptive,
        )  # fmt: skip
        report = report._replace(algorithm=label)
        say(report)
        yield report, algorithm


def row(report: Audit, algorithm: Algorithm) -> dict[str, Any]:
    """One row of the table.

    `claimed` is what was asked for, `spent` what the noise delivers, `audited` what was proven spent.
    """
    return {
        "algorithm": report.algorithm,
        "model": report.model,
        "unit": report.unit,
        "claimed": asked(algorithm),
        "spent": report.claimed[0],
        "delta": report.delta,
        "audited": report.epsilon_lower,
        "ratio": report.ratio,
        "refuted": report.refuted,
        "event": report.event.score,
        "true_positives": report.event.true_positives,
        "false_positives": report.event.false_positives,
        "trials": report.event.trials,
        "runs": report.runs,
        "confidence": report.confidence,
        "seed": report.seed,
        "adaptive": report.adaptive,
    }


def markdown(frame: pd.DataFrame) -> str:
    """The table of the documentation."""
    rows = [
        [
            "algorithm",
            "model",
            "neighbours differ in one",
            "claimed ε",
            "spent ε",
            "δ",
            "audited ε at least",
            "of spent",
        ]
    ]
    for line in frame.itertuples():
        claimed = "" if math.isnan(line.claimed) else f"{line.claimed:.4g}"
        share = "" if math.isnan(line.ratio) else f"{line.ratio:.0%}"
        audited = f"{line.audited:.3f}{' **refuted**' if line.refuted else ''}"
        unit = line.unit.replace("_", " ")
        rows.append(
            [f"`{line.algorithm}`", line.model, unit, claimed, f"{line.spent:.4g}", f"{line.delta:.3g}", audited, share]
        )
    first = frame.iloc[0]
    method = (
        f"{first.runs:,} runs each, half of them to choose an event; lower bounds of confidence "
        f"{first.confidence:.6g}; seed {first.seed}."
        + (" Inputs react to the arms that were played." if first.adaptive else "")
    )
    return f"{cells(rows, right=5)}\n\n{method}\n"


def prepare(directory: Path) -> None:
    """Make a directory. Raises ValueError where it cannot be written: before an audit's minutes, not after them."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise ValueError(
            f"--out {directory}: cannot write there ({error.strerror}): choose a directory that can be written"
        ) from None


def write(frame: pd.DataFrame, directory: Path) -> list[Path]:
    """Write audit.csv and audit.md into a directory; returns their paths."""
    paths = [directory / "audit.csv", directory / "audit.md"]
    frame.to_csv(paths[0], index=False)
    paths[1].write_text(f"{markdown(frame)}\n{SIMULATED}\n", encoding="utf-8")
    return paths

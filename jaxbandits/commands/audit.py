"""`jaxbandits audit NAME|MODULE:FACTORY|FILE.toml|--all`: audits of algorithms, and a table with a row for each."""

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from jaxbandits import catalogue
from jaxbandits.auditing.audit import Audit, audit
from jaxbandits.auditing.differences import RELEASES, find_differences
from jaxbandits.auditing.transcripts import MAX_WINDOWS
from jaxbandits.checking.check import small_environment
from jaxbandits.contract import describe_error
from jaxbandits.formatting import markdown_table as cells
from jaxbandits.mechanisms.composition import SIMULATED
from jaxbandits.privacy import epsilon_or_nan
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.recipe import unwrap
from jaxbandits.reports import plot
from jaxbandits.reports.output import prepare_directory, stem_of, write_text
from jaxbandits.spans import windows_offered
from jaxbandits.strangers import Foreign, foreign, learner_of
from jaxbandits.sweeps.arguments import here_first, own_factory
from jaxbandits.sweeps.plan import cell_words, plan
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.sweeps.toml_file import read_config, read_settings
from jaxbandits.validation import integer

EXIT_REFUTED = 1
RUNS, THEIR_RUNS = 1_000_000, 60_000  # of algorithms of this package, and of other people's learners
OWN_HORIZON = 256  # plays of an algorithm that is not in the catalogue


def run(given: argparse.Namespace) -> int:
    """Write audit.csv, audit.md and a trade-off curve for each algorithm; the exit code is 1 if a claim is refuted."""
    out = given.out or Path("runs") / "audit"
    if given.all == (given.name is not None):
        raise ValueError("audit: give the name of an algorithm, a TOML file, or --all")
    names = catalogue.private() if given.all else [given.name]
    if given.horizon is not None:
        integer("--horizon", given.horizon, 1)
        if names[0].endswith(".toml"):
            raise ValueError(f"--horizon {given.horizon}: a sweep in a file has its own: leave it out")
    settings = read_settings(given.set)
    if settings and (given.all or names[0].endswith(".toml")):
        raise ValueError(f"--set {given.set[0]}: it is for one algorithm that is named: leave it out")
    built = partial(cases, horizon=given.horizon, whole=given.whole, settings=settings)
    if claim := claim_of(given):
        first: list[tuple[str, Any, Any]] = [(names[0], _theirs(names[0], settings), given.environment)]
    else:
        first = built(names[0])  # a name that is known, before a directory is made for it
    prepare_directory(out)
    runs = given.runs if given.runs is not None else THEIR_RUNS if claim else RUNS
    rows, refuted, names_taken = [], [], dict[str, str]()
    for label, algorithm, environment in chain(first, chain.from_iterable(map(built, names[1:]))):
        report = audit(
            algorithm, runs=runs, confidence=given.confidence,
            seed=given.seed, environment=environment, whole=given.whole, adaptive=given.adaptive, **claim,
        )._replace(algorithm=label)  # fmt: skip
        print(report, flush=True)
        rows.append(audit_row(report, given.epsilon if claim else epsilon_or_nan(algorithm)))
        frame = pd.DataFrame(rows)
        write_text(out / "audit.csv", frame.to_csv(index=False))
        write_text(out / "audit.md", f"{audit_table(frame)}\n{SIMULATED}\n")
        name = stem_of(label, names_taken)
        for kind in given.formats:
            plot.trade_off(report, path=out / f"{name}.{kind}")
        refuted += [label] if report.refuted else []
    print(f"written to {out}: audit.csv, audit.md and a trade-off curve each")
    if refuted:
        print(f"jaxbandits: refuted: {', '.join(refuted)}", file=sys.stderr)
    return EXIT_REFUTED if refuted else 0


def claim_of(given: argparse.Namespace) -> dict[str, Any]:
    """What is claimed of someone else's learner, as arguments of an audit; empty for an algorithm of this package."""
    named = {key: getattr(given, key) for key in ("delta", "unit", "model", "view", "environment")}
    named = {key: value for key, value in named.items() if value is not None}
    if given.epsilon is None:
        if named:
            key, value = next(iter(named.items()))
            raise ValueError(
                f"--{key} {value}: it is for other people's learners: give --epsilon, too, or leave it out"
            )
        return {}
    if given.all or ":" not in given.name:
        what = "--all" if given.all else given.name
        raise ValueError(f"--epsilon {given.epsilon:g}: {what} is no MODULE:CLASS of someone else: leave it out")
    here_first()
    named.pop("environment", None)
    view = {"view": own_factory(given.view, Path())} if given.view else {}
    return named | {"epsilon": given.epsilon, "horizon": given.horizon} | view


def _theirs(name: str, settings: Mapping[str, Any]) -> Callable[..., Any]:
    """A factory of someone else's learner by `module:class`, with arguments of it."""
    factory = own_factory(name, Path())
    return partial(factory if isinstance(unwrap(factory).function, Foreign) else foreign(factory), **settings)


def cases(
    name: str, horizon: int | None = None, whole: bool = False, settings: Mapping[str, Any] = MappingProxyType({})
) -> list[tuple[str, Algorithm, Environment]]:
    """What a name stands for, by label: one algorithm, of the catalogue or the user's own by `module:factory`, or all
    private ones of a sweep in a TOML file, at every point of its grid.

    horizon: of an algorithm that is named. None: the catalogue's, or `OWN_HORIZON`; for `whole` runs it is doubled
    until they release something three times, if they do. settings: further arguments of one algorithm. Raises
    ValueError where there is none.
    """
    if name.endswith(".toml"):
        here_first()
        arguments = {key: x for key, x in read_config(name).items() if key not in ("figure", "caption", "memory")}
        laid_out = plan(**arguments)
        private = [cell for cell in laid_out.cells if cell.algorithm.guarantee.model != "none"]
        if not private:
            lacks = "no algorithm of this sweep has a guarantee"
            raise ValueError(f"audit = {name!r}: {lacks}: an audit needs a private one")
        if strangers := {c.label: None for c in laid_out.cells if learner_of(c.algorithm.program)}:
            how = "jaxbandits audit MODULE:CLASS --epsilon E --horizon T"
            print(
                f"left out, foreign learners, which state no guarantee: {', '.join(strangers)} ({how})", file=sys.stderr
            )
        return [(cell_words(laid_out, cell), cell.algorithm, cell.environment) for cell in private]
    build: Any = partial(_own if ":" in name else catalogue.case, **settings)
    algorithm, environment = build(name) if horizon is None else build(name, horizon=horizon)
    if whole and horizon is None:
        plays = int(algorithm.config["horizon"])
        while len(find_differences(algorithm, environment).releases) < RELEASES:
            plays *= 2
            longer, _ = build(name, horizon=plays)
            if sum(map(windows_offered, longer.schedule)) > MAX_WINDOWS:
                break
            algorithm = longer
    return [(algorithm.version[0], algorithm, environment)]


def _own(name: str, horizon: int = OWN_HORIZON, **settings: Any) -> tuple[Algorithm, Environment]:
    """The user's own algorithm and a small environment that fits its arguments.

    Raises ValueError where there is no such algorithm, and where the factory needs arguments that the environment does
    not fill in.
    """
    here_first()
    factory = partial(own_factory(name, Path()), **settings)
    environment = small_environment(factory)()
    try:
        algorithm = algorithm_for(partial(factory, horizon=horizon), environment)
    except Exception as error:
        remedy = f"`jaxbandits check {name}` says more"
        raise ValueError(f"audit = {name!r} cannot be built: {describe_error(error)}; {remedy}") from error
    if algorithm.guarantee.model == "none":
        raise ValueError(f"audit = {name!r} has no guarantee: an audit needs a private algorithm")
    return algorithm, environment


def audit_row(report: Audit, claimed: float) -> dict[str, Any]:
    """One row of the table.

    `claimed` is what was asked for (NaN: nothing), `spent` what the noise delivers, `audited` what was proven spent.
    """
    event = report.event
    return {
        "algorithm": report.algorithm, "model": report.model, "unit": report.unit, "claimed": claimed,
        "spent": report.claimed[0], "delta": report.delta, "audited": report.epsilon_lower, "ratio": report.ratio,
        "refuted": report.refuted, "event": event.score, "true_positives": event.true_positives,
        "false_positives": event.false_positives, "trials": event.trials, "runs": report.runs,
        "confidence": report.confidence, "seed": report.seed, "adaptive": report.adaptive,
        "looked_at": report.looked_at, "differences": report.fault or str(report.differences or ""),
    }  # fmt: skip


def audit_table(frame: pd.DataFrame) -> str:
    """The table of the documentation."""
    head = ["algorithm", "model", "neighbours differ in one", "claimed ε", "spent ε", "δ", "audited ε at least"]
    rows = [[*head, "of spent"]]
    for line in frame.itertuples():
        claimed = "" if math.isnan(line.claimed) else f"{line.claimed:.4g}"
        share = "" if math.isnan(line.ratio) else f"{line.ratio:.0%}"
        audited = f"{line.audited:.3f}{' **refuted**' if line.refuted else ''}"
        who = [f"`{line.algorithm}`", line.model, line.unit.replace("_", " ")]
        rows.append([*who, claimed, f"{line.spent:.4g}", f"{line.delta:.3g}", audited, share])
    first = frame.iloc[0]
    method = f"{first.runs:,} runs each, half of them to choose an event; lower bounds of confidence "
    method += f"{first.confidence:.6g}; seed {first.seed}."
    method += " Inputs react to the arms that were played." if first.adaptive else ""
    return f"{cells(rows, right=5)}\n\n{method}\n"

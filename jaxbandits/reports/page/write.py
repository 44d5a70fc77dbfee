"""`jb.report`: one HTML page about one or several sweeps."""

import base64
import hashlib
import importlib.resources
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import jinja2
import numpy as np
import xarray as xr

from jaxbandits import spending, statistics
from jaxbandits.reports.output import regret_digest
from jaxbandits.reports.page import curves, runs, tables
from jaxbandits.reports.page.headline import headline
from jaxbandits.reports.page.ledgers import budget_table, privacy
from jaxbandits.reports.page.words import key_name, listing
from jaxbandits.selection import ANSWERS, grid_dims, unit_of
from jaxbandits.sweeps.storage.store import write_whole
from jaxbandits.validation import declare, path_of
from jaxbandits.version import __version__

Result: TypeAlias = xr.Dataset | str | os.PathLike[str]

SCRIPTS = ("uplot/uPlot.iife.min.js", "page.js")
STYLES = ("uplot/uPlot.min.css", "page.css")
PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader(__name__, ""), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
    lstrip_blocks=True, keep_trailing_newline=True,
)  # fmt: skip


@declare(check=False)
def report(
    ds: Result | Sequence[Result] | Mapping[str, Result], path: str | os.PathLike[str], *, title: str | None = None
) -> Path:
    """Write a report of one sweep, or of several side by side: one HTML page that needs nothing beside it.

    The page has the question in words, regret against plays and against every key of the grid, paired differences,
    the distribution over seeds, pulls, slopes beside those of the bounds, heat maps, sortable tables, claimed, spent
    and audited privacy, the configuration, provenance, what to cite, and the commands that make it again.

    Args:
        ds (xarray.Dataset, str or path, dict or list): What `sweep` or `load` returned, the directory of a finished
            run, ``{label: either}`` for several, or a list of directories. A directory also says its provenance, and
            its audit where `jaxbandits audit` wrote one into its folder `audit`.
        path (str or path): Where to write, ending in `.html`. Directories on the way are made, an earlier page is
            replaced.
        title: The head of the page. The default: the labels.

    Returns:
        pathlib.Path: The path.

    Raises:
        ValueError: The path has another ending or cannot be written, a directory holds no finished run, or a Dataset is
            no longer whole.
        TypeError: `ds` is no sweep's Dataset, or `path` no name of a file.

    Note:
        The page loads nothing from a network, which its content security policy also forbids. The same results give
        the same page. No code of a user is run: what algorithms of the user's own spend is read from the results.

    >>> import jaxbandits as jb, tempfile, xarray as xr
    >>> dims = ("algorithm", "seed", "t")
    >>> ds = xr.Dataset({"regret": (dims, np.arange(8.0).reshape(1, 4, 2))}, {"algorithm": ["a"], "t": [1, 9]})
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = jb.report(ds, f"{directory}/first.html")
    ...     path.name, "How much regret does a have over 9 plays?" in path.read_text(encoding="utf-8")
    ('first.html', True)
    """
    path = _writable(path)
    text = _page(runs.runs(ds), path, title)
    write_whole(path, text.encode(), "and write it again")
    return path


def _writable(given: object) -> Path:
    """The path, if a page can be written there: said before the work, not after it."""
    path = path_of(given, "report: path")
    if path.suffix.lower() != ".html":
        raise ValueError(f"path = {str(given)!r} does not end in .html: a report is one HTML page, such as first.html")
    if path.is_dir():
        raise ValueError(f"path = {str(given)!r} is a directory: give the name of a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        why = f"cannot write there ({error.strerror})"
        raise ValueError(f"path = {str(given)!r}: {why}: choose another place") from None
    return path


def _page(said: list[runs.ReportRun], path: Path, title: str | None) -> str:
    charts: list[curves.Chart] = []

    def add_chart(chart: curves.Chart) -> int:
        charts.append(chart)
        return len(charts) - 1

    def charts_against(key: str) -> list[tuple[str, int]]:
        return [(run.label, add_chart(curves.against(run.ds, key))) for run, has in sides if key in has]

    reported = [run for run in said if run.ds]
    sides = [(run, [d for d in grid_dims(run.ds) if run.ds.sizes[d] > 1]) for run in reported]
    keys = dict.fromkeys(d for _, has in sides for d in has)
    several_seeds = [run for run in reported if run.ds.sizes["seed"] > 1]
    of_arms = [run for run in reported if "pulls" in run.ds and "arm" in run.ds["pulls"].dims]
    about = {
        "title": title or listing([run.label for run in said]), "several": len(said) > 1, **_judgements(said),
        "runs": [
            {
                "label": run.label, "question": runs.question(run), "answer": headline(run),
                "spent": budget_table(run), "otherwise": spending.sentence(run.ds),
                "caption": run.caption, "markdown": statistics.table(run.ds),
                "latex": statistics.table(run.ds, "latex"),
                "toml": run.toml, "json": json.dumps(run.config, indent=2, ensure_ascii=False) if run.config else "",
                "own": run.unplanned, "facts": _facts(run), "command": runs.run_again(run),
                "file": bool(run.kept),
            }
            for run in reported
        ],
        "regret": [(run.label, add_chart(curves.regret_over_plays(run.ds))) for run in reported],
        "answers": [(run.label, *curves.right_answers(run.ds)) for run in reported if unit_of(run.ds) == ANSWERS],
        "against": [(key_name(key), charts_against(key)) for key in keys],
        "distribution": [(run.label, add_chart(curves.distribution(run.ds))) for run in several_seeds],
        "pulls": [(run.label, add_chart(curves.pulls(run.ds))) for run in of_arms],
        "maps": [(run.label, *picture) for run in reported for picture in curves.heatmaps(run.ds)],
        "summary": tables.summaries(reported),
        "paired": tables.differences(reported),
        "slopes": tables.slopes(reported),
        "diagnostics": tables.diagnostics(reported),
        "privacy": privacy(reported),
        "software": runs.SOFTWARE,
        "cited": runs.citations_of(reported),
        "again": runs.page_again(said, path), "version": __version__,
    }  # fmt: skip
    scripts, styles = ([_resource(name) for name in names] for names in (SCRIPTS, STYLES))
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    return PAGES.get_template("template.html").render(
        about, charts=charts, scripts=scripts, styles=styles, license=_resource("uplot/LICENSE"),
        digests=" ".join(f"'sha256-{digest}'" for digest in digests),
    )  # fmt: skip


def _judgements(said: list[runs.ReportRun]) -> dict[str, object]:
    """What `jaxbandits offline` found and drew: the table, and pictures as addresses that hold them."""
    shown = []
    for run in said:
        file = run.directory / "offline.png" if run.directory and run.offline is not None else Path("no file")
        if file.is_file():
            data = base64.b64encode(file.read_bytes()).decode()
            words = "Mean reward of a row with its interval; dashed: the logged policy."
            shown.append((run.label, f"data:image/png;base64,{data}", words))
    return {"judged": tables.judgements(said), "judgements": shown}


def _facts(run: runs.ReportRun) -> list[tuple[str, str]]:
    """Where a result comes from, line by line."""
    ds, kept = run.ds, run.provenance
    versions = json.loads(ds.attrs.get("versions", "{}"))
    seeds = ds["seed"].values if "seed" in ds.coords else np.arange(ds.sizes["seed"])
    facts = {
        "directory": str(run.directory) if run.directory else "",
        "seeds": f"{len(seeds):,}, from {seeds[0]} to {seeds[-1]}",
        "checkpoints": f"{ds.sizes['t']:,}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "computed by": " ".join(map(str, kept.get("command", []))),
        "finished": str(kept.get("finished", "")),
        "seconds": f"{kept['seconds']:,.1f}" if isinstance(kept.get("seconds"), int | float) else "",
        "machine": ", ".join(f"{name} {value}" for name, value in dict(kept.get("machine", {})).items()),
    }
    facts["SHA-256 of regret"] = regret_digest(ds)
    written = dict(kept.get("sha256", {})).get("regret", facts["SHA-256 of regret"])
    if written != facts["SHA-256 of regret"]:
        facts["SHA-256 in provenance.json"] = f"{written}: another one, so that it describes another result"
    return [(name, text) for name, text in facts.items() if text]


def _resource(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")

"""Own algorithms beside a study's: `jaxbandits reproduce PAPER/FIGURE --with module:factory`.

They are labels of every sweep in which they play. What a study says of its own labels is computed without them.
"""

import contextlib
import re
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pandas as pd
import xarray as xr

from jaxbandits.checking.check import look_up_part
from jaxbandits.formatting import brackets, format_number, format_value, markdown_table
from jaxbandits.papers.study import Reproduction, Study, Sweep, reproduce, run_sweep, write_figures
from jaxbandits.recipe import Recipe
from jaxbandits.reports import plot
from jaxbandits.searching.population import concerning, cross, owner_of
from jaxbandits.selection import grid_dims
from jaxbandits.statistics import summary
from jaxbandits.sweeps.arguments import factory_of, here_first
from jaxbandits.sweeps.grid import Axis, axes_of
from jaxbandits.sweeps.storage.dataset_file import RESULTS
from jaxbandits.sweeps.sweep import prepare_sweep
from jaxbandits.validation import same

Entries: TypeAlias = dict[str, dict[str, Recipe]]
"""Of every sweep of a study in which own algorithms play, these by their labels."""


class Beside(NamedTuple):
    """A reproduction, and what own algorithms add to it."""

    published: Reproduction  # as it is without them
    figures: dict[str, plot.Plot]
    without: list[str]  # names of figures that have no place for further lines
    table: str  # their regret at every point, and their place
    paths: list[Path]


def enter_own(given: Sequence[str], studies: Mapping[str, Study], full: bool) -> tuple[dict[str, Entries], list[str]]:
    """Where own algorithms play, by study, and in words where they do not. Nothing is computed.

    given: `module:factory`, or names of the package. ValueError where one of them plays nowhere.
    """
    here_first()
    sweeps = {(study, sweep): one for study in studies for sweep, one in studies[study].sweeps(full).items()}
    taken, refusals = {label for one in sweeps.values() for label in one.settings["algorithms"]}, list[str]()
    entries = defaultdict[str, Entries](lambda: defaultdict(dict))
    for text in given:
        label = text if text.rpartition(":")[2] in taken else text.rpartition(":")[2]
        recipe, reasons = factory_of(look_up_part("algorithm", text), "algorithm", f"--with {text}"), list[str]()
        for (study, sweep), one in sweeps.items():
            try:
                check_entry(one, label, recipe)
            except (ValueError, TypeError) as error:
                reasons.append(f"{label} does not play in {study}, {sweep}: {error}")
            else:
                entries[study][sweep][label] = recipe
        if len(reasons) == len(sweeps):
            why = reasons[0] if reasons else "nothing is simulated there: take a figure of algorithms"
            raise ValueError(f"--with {text} plays nowhere in {', '.join(studies)}: {why}")
        taken.add(label)
        refusals += reasons
    return entries, refusals


def check_entry(one: Sweep, label: str, recipe: Recipe) -> None:
    """What a sweep says of this algorithm alone before anything runs: ValueError or TypeError where it cannot play."""
    alone: dict[str, Any] = {label: recipe}
    settings = dict(widen_sweep(one, alone).settings)
    rows = [concerning(row, alone, alone) for row in cross(_axes(settings))]
    rest = {key: x for key, x in settings.items() if key not in ("algorithms", "environment", "grid")}
    with warnings.catch_warnings():  # the sweep says them again
        warnings.simplefilter("ignore")
        prepare_sweep(alone, settings["environment"], rest | {"points": rows if rows[0] else None}, progress=False)


def _axes(settings: Mapping[str, Any]) -> list[Axis]:
    """The axes of a sweep without that of horizons."""
    return axes_of(settings.get("grid"), settings.get("points"), 1)


def widen_sweep(one: Sweep, own: Mapping[str, Recipe]) -> Sweep:
    """The sweep with further labels.

    A key without a label reaches whom it names, as in every sweep. They also get what stands under the label of a
    published algorithm, `LABEL.key`, where they take `key`, nothing else gives it, and no two labels differ in it.
    """
    settings, grid = dict(one.settings), dict[Any, Any]()
    axes, published = _axes(settings), settings["algorithms"]
    plain = [key for axis in axes for key in axis.keys]
    for axis in axes:
        columns = defaultdict[str, list[int]](list)
        for (label, recipe), (j, key) in product(own.items(), enumerate(axis.keys)):
            inner = key[len(owner_of(key, published) or key) + 1 :]
            if inner and inner not in plain and recipe.takes(inner):
                columns[f"{label}.{inner}"].append(j)
        alike = {
            key: at for key, at in columns.items() if all(same(row[j], row[at[0]]) for row in axis.values for j in at)
        }
        keys = (*axis.keys, *alike)
        rows = [(*row, *(row[j] for j, *_ in alike.values())) for row in axis.values]
        if settings.get("points"):
            settings["points"] = [dict(zip(keys, row, strict=True)) for row in rows]
        else:
            values = rows if len(keys) > 1 else [row[0] for row in rows]
            grid[keys] = dict(zip(axis.labels, values, strict=True))
    return one._replace(settings=settings | {"algorithms": published | dict(own), "grid": grid})


def reproduce_beside(
    study: Study, directory: Path, entries: Entries, *, full: bool, formats: Sequence[str] = ("png",), progress: bool
) -> Beside:
    """Run a study as `reproduce` does, and its sweeps with own algorithms, which are all that is computed then.

    Pictures and tables with them are written into a directory of their own, beside those of the study.
    """
    sweeps, labels = study.sweeps(full), list(dict.fromkeys(label for one in entries.values() for label in one))
    home = Path(directory) / ("full" if full else "quick")
    finished = all(any((home / "sweeps" / name).rglob(RESULTS)) for name in sweeps)
    done = reproduce(study, directory, full=full, formats=formats, progress=progress and not finished)
    wide = dict[str, xr.Dataset]()
    for name, own in entries.items():
        wide[name], _ = run_sweep(widen_sweep(sweeps[name], own), home / "sweeps" / name, progress=progress)
        wide[name]["regret"].attrs["long_name"] = "cumulative regret"
        wide[name].attrs["own"] = list(own)
    figures, without = draw_beside(study, done, wide, labels)
    home /= "with-" + "-".join(re.sub(r"[^\w.]+", "-", label) for label in labels)
    home.mkdir(exist_ok=True)
    table, paths = place_table(wide, labels), [home / "own.csv", home / "own.md"]
    pd.concat([summary(ds).assign(sweep=name) for name, ds in wide.items()]).to_csv(paths[0], index=False)
    paths[1].write_text(f"{table}\n", encoding="utf-8")
    return Beside(done, figures, without, table, paths + write_figures(figures, home, formats))


def draw_beside(
    study: Study, done: Reproduction, wide: dict[str, xr.Dataset], labels: Sequence[str]
) -> tuple[dict[str, plot.Plot], list[str]]:
    """The study's figures that take further lines, and the names of the others, which are not drawn again.

    Where none does, a picture of each sweep: final regret against the first key of its grid that has several numbers.
    """
    figures = dict[str, plot.Plot]()
    for name, draw in study.figures.items():
        with contextlib.suppress(Exception):  # some can draw their own labels alone
            picture = draw(done.results | wide)
            if takes_lines(picture.data, done.figures[name].data, labels):
                figures[name] = picture
    without = [name for name in study.figures if name not in figures]
    for name, ds in wide.items() if not figures else ():
        last = {key: ds[key].values[-1] for key in grid_dims(ds) if ds.sizes[key] > 1}
        number = next((key for key in last if ds[key].dtype.kind in "iuf"), None)
        rest = {key: x for key, x in last.items() if key != number}
        if number is not None:
            figures[f"regret-{name}"] = plot.against(ds, number, select=rest, caption=name)
        elif ds.sizes["t"] > 1:
            figures[f"regret-{name}"] = plot.regret(ds, select=rest, caption=name)
    return figures, without


def takes_lines(data: pd.DataFrame, published: pd.DataFrame, labels: Sequence[str]) -> bool:
    """Whether a picture's table is the published one and rows that name own labels."""
    texts, names = data.astype(str), "|".join(map(re.escape, labels))
    own = texts.apply(lambda column: column.str.contains(rf"(?<!\w)(?:{names})(?!\w)")).any(axis=1)
    return bool(own.any()) and texts[~own].reset_index(drop=True).equals(published.astype(str).reset_index(drop=True))


def place_table(wide: Mapping[str, xr.Dataset], labels: Sequence[str]) -> str:
    """Own algorithms at every point of every sweep: mean regret with its 95% interval, place, and the least regret."""
    rows = [["own algorithm", "sweep", "at", "regret", "place", "least of the published"]]
    for name, ds in wide.items():
        frame, keys = summary(ds), grid_dims(ds)
        for at, part in frame.groupby(keys, sort=False) if keys else [((), frame)]:
            point = ", ".join(f"{key} = {format_value(value)}" for key, value in zip(keys, at, strict=True))
            first = part[~part["algorithm"].isin(labels)].sort_values("mean").iloc[0]
            least = f"{first['algorithm']} {format_number(first['mean'])}"
            for row in part[part["algorithm"].isin(labels)].itertuples():
                measured = f"{format_number(row.mean)} {brackets(row.ci_low, row.ci_high)}"
                place = f"{1 + int((part['mean'] < row.mean).sum())} of {len(part)}"
                rows.append([str(row.algorithm), name, point, measured, place, least])
    return markdown_table(rows)

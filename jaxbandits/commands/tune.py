"""`jaxbandits tune FILE`."""

import argparse
from pathlib import Path

from jaxbandits.formatting import csv
from jaxbandits.reports import plot
from jaxbandits.reports.output import stem_of, write_text
from jaxbandits.searching import Tuning, tune
from jaxbandits.sweeps import save
from jaxbandits.sweeps.toml_file import name_file_in_errors, read_tuning


def run(given: argparse.Namespace) -> int:
    """Choose what the file's table `[tune]` asks for, write tables, Datasets and pictures, and print the result."""
    arguments = read_tuning(given.file, given.seeds)
    with name_file_in_errors(given.file, arguments):
        tuning = tune(**arguments, store=given.out, progress=not given.quiet)
    print(tuning)
    names = [path.name for path in write_tuning(tuning, given.out, given.formats)]
    print(f"written to {given.out}: {', '.join(names)}")
    return 0


def write_tuning(tuning: Tuning, directory: Path, formats: tuple[str, ...]) -> list[Path]:
    """Write a tuning into a directory: tables, Datasets, the chosen values as TOML, and its pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    written = [directory / name for name in ("best.csv", "undecided.csv", "trials.nc", "report.nc")]
    write_text(written[0], csv(tuning.best))
    write_text(written[1], csv(tuning.undecided))
    save(tuning.trials, written[2])
    save(tuning.report, written[3])
    try:
        chosen = tuning.toml()
    except ValueError:  # a value that TOML cannot write, such as a factory: best.csv names it
        pass
    else:
        written.append(directory / "chosen.toml")
        write_text(written[-1], f"{chosen}\n")
    shares = plot.importance(tuning)
    pictures = {"importance": shares} if shares.data.groupby("algorithm").size().max() > 1 else {}
    # what a picture has room for: six values of the first key of `over`, one of each other
    over = {key: list(dict.fromkeys(tuning.trials[key].values.tolist())) for key in tuning.best.attrs["over"]}
    select = {key: values[:1] if i else values[:6] for i, (key, values) in enumerate(over.items())}
    taken = dict[str, str]()
    for key in tuning.best.attrs["chosen"]:
        if tuning.trials[key].dtype.kind in "iuf":
            pictures[stem_of(f"response_{key.replace('.', '_')}", taken)] = plot.response(tuning, key, select=select)
    for name, picture in pictures.items():
        for suffix in formats:
            written.append(directory / f"{name}.{suffix}")
            plot.save(picture, written[-1])
    return written

"""`jaxbandits offline FILE`: algorithms learn on a part of a log, and are judged on the rest of it."""

import argparse
from pathlib import Path
from typing import Any

from jaxbandits.environments import fitted
from jaxbandits.environments.logs import Log
from jaxbandits.formatting import csv, nearest, show
from jaxbandits.off_policy.learners import train
from jaxbandits.off_policy.offline import offline
from jaxbandits.recipe import recipe_of
from jaxbandits.reports import plot
from jaxbandits.reports.output import prepare_directory, write_text
from jaxbandits.sweeps.arguments import seed_range
from jaxbandits.sweeps.plan import cell_words, plan
from jaxbandits.sweeps.toml_file import config_arguments, name_file_in_errors, parse_toml

KEYS = ("share", "seed", "estimator", "clip", "floor", "interval", "confidence", "model", "ridge", "folds")
IN_ORDER = "in order"  # a seed: the log is not shuffled before it is divided
SHOWN = ["value", "low", "high", "difference", "difference_low", "difference_high", "effective_size", "n"]


def run(given: argparse.Namespace) -> int:
    """Train every algorithm at every point of the grid, write table and picture, and print the table."""
    settings, how, train_log, test_log = _read(given.file, given.seeds)
    prepare_directory(given.out)
    seeds = seed_range(settings.pop("seeds"))
    with name_file_in_errors(given.file, settings):
        laid_out = plan(**settings, seeds=seeds)
        policies: dict[str, Any] = {"logged policy": test_log}
        for cell in laid_out.cells:
            policies[cell_words(laid_out, cell)] = train(cell, seeds)
        frame: Any = offline(policies, test_log, **how)
    by, parts = how.get("estimator", "dr"), [f"{len(log.arm):,}" for log in (train_log, test_log)]
    print(f"trained on {parts[0]} rows of the log, judged on {parts[1]} by {by}")
    print(f"trained in a world of the model {laid_out.cells[0].environment.facts['fit']}")
    print(frame[SHOWN].to_string(index_names=False, float_format="{:.4g}".format))
    names = ["offline.csv", *(f"offline.{suffix}" for suffix in given.formats)]  # after the table: a disk may be full
    write_text(given.out / names[0], csv(frame.reset_index()))
    for name in names[1:]:
        plot.offline(frame, path=given.out / name)
    print(f"written to {given.out}: {', '.join(names)}")
    return 0


def _read(file: Path, seeds: int | None) -> tuple[dict[str, Any], dict[str, Any], Log, Log]:
    """Arguments of `plan` with a world that is fitted on a part of the log, those of `offline`, and both parts."""
    raw = parse_toml(file)
    settings, how = config_arguments(raw, file), raw.get("offline", {})
    for key in ("figure", "caption", "memory"):
        settings.pop(key, None)
    if seeds is not None:
        settings["seeds"] = seeds
    world = recipe_of(settings["environment"])
    if world.function is not fitted or not isinstance(world.bound.get("log"), Log):
        raise ValueError(f"{file}: environment must be 'fitted', with a table [environment.log]: it is {world.name!r}")
    if not isinstance(how, dict):
        raise ValueError(f"{file}: offline = {show(how)} must be a table, [offline]")
    for key in how:
        if key not in KEYS:
            raise ValueError(f"{file}: offline has no key {key!r}{nearest(key, KEYS)}; known keys: {', '.join(KEYS)}")
    if how.get("estimator") == "replay":
        raise ValueError(f"{file}: offline.estimator = 'replay' takes one arm a row, and lanes differ: take 'dr'")
    share, seed = how.pop("share", 0.5), how.pop("seed", 0)
    with name_file_in_errors(file, settings):
        parts = world.bound["log"].split(share, None if seed == IN_ORDER else seed)
        offline(parts[1], parts[1], **how)  # says what is wrong before anything is trained
    return settings | {"environment": world.bind({"log": parts[0]}).factory}, how, *parts

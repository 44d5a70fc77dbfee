"""Arguments that all searches have: seeds to search and to report on, and where sweeps are kept."""

import os
from pathlib import Path
from typing import Any

from jaxbandits.sweeps.arguments import seed_range
from jaxbandits.validation import shown


def disjoint(seeds: Any, report_seeds: Any, what: str) -> tuple[range, range]:
    """Both as ranges. ValueError where they meet. what: what is chosen on the first ones, such as `the attack`."""
    searched, reported = seed_range(seeds), named_seeds("report_seeds", report_seeds)
    if max(searched.start, reported.start) < min(searched.stop, reported.stop):
        raise ValueError(
            f"report_seeds = {shown(reported)} meets seeds = {shown(searched)}, on which {what} is chosen: report "
            f"on others, such as range({searched.stop}, {searched.stop + len(reported)})"
        )
    return searched, reported


def named_seeds(name: str, seeds: Any) -> range:
    """Seeds as a range, under the name of their argument."""
    try:
        return seed_range(seeds)
    except ValueError as error:
        raise ValueError(str(error).replace("seeds", name, 1)) from None


def directory(store: Any) -> Path | None:
    """A store's directory. ValueError for what is no name."""
    if store is None:
        return None
    if not isinstance(store, os.PathLike | str) or str(store) == "" or "\0" in str(store):
        raise ValueError(f"store = {shown(store)} must be a directory's name")
    return Path(store)

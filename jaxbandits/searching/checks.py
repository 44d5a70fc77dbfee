"""Arguments that all searches have: seeds to search and to report on, and where sweeps are kept."""

from typing import Any

import numpy as np

from jaxbandits.sweeps.arguments import seed_range
from jaxbandits.validation import shown


def disjoint(seeds: Any, report_seeds: Any, what: str) -> tuple[range, range]:
    """Both as ranges: a count of report seeds begins after the seeds that are searched.

    ValueError where they meet. what: what is chosen on the first ones, such as `the attack`.
    """
    searched, reported = seed_range(seeds), named_seeds("report_seeds", report_seeds)
    if np.ndim(report_seeds) == 0 and not isinstance(report_seeds, range):
        reported = named_seeds("report_seeds", range(searched.stop, searched.stop + len(reported)))
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

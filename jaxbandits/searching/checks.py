"""Arguments that all searches have: seeds to search and to report on, and where sweeps are kept."""

from typing import Any

import numpy as np

from jaxbandits.sweeps.arguments import seed_range
from jaxbandits.validation import shown


def disjoint(seeds: Any, report_seeds: Any, what: str) -> tuple[range, range]:
    """Both as ranges: a count of report seeds begins after the seeds that are searched.

    ValueError where they meet. what: what is chosen on the first ones, such as `the attack`.
    """
    searched = seed_range(seeds)
    try:
        reported = seed_range(report_seeds)
        if np.ndim(report_seeds) == 0 and not isinstance(report_seeds, range):
            reported = seed_range(range(searched.stop, searched.stop + len(reported)))
    except ValueError as error:
        raise ValueError(str(error).replace("seeds", "report_seeds", 1)) from None
    if max(searched.start, reported.start) < min(searched.stop, reported.stop):
        raise ValueError(
            f"report_seeds = {shown(reported)} meets seeds = {shown(searched)}, on which {what} is chosen: report "
            f"on others, such as range({searched.stop}, {searched.stop + len(reported)})"
        )
    return searched, reported

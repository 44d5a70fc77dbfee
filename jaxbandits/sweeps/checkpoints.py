"""The plays after which a sweep writes down where its lanes stand."""

from typing import Any

import numpy as np

from jaxbandits.validation import integer, shown

MAX_CHECKPOINTS = 10**6


def checkpoint_times(horizon: int, checkpoints: Any) -> np.ndarray[Any, Any]:
    """Strictly increasing plays, the last of which is the horizon.

    checkpoints: the plays, or how many, spaced evenly in the logarithm; where rounding makes some equal, others are
    added.
    """
    if isinstance(checkpoints, int | float | np.number):
        remedy = f"for every play give checkpoints={horizon}, the horizon" if horizon <= MAX_CHECKPOINTS else ""
        number = min(integer("checkpoints", checkpoints, 1, remedy=remedy), horizon)
        if number > MAX_CHECKPOINTS:
            raise ValueError(f"checkpoints = {number} are more than {MAX_CHECKPOINTS:,}: give fewer")
        if number == 1:
            return np.array([horizon])
        target = number  # more points are asked for until enough survive the rounding
        while len(times := np.unique(np.round(np.geomspace(1, horizon, target)).astype(np.int64))) < number:
            if target > 64 * number + horizon:
                times = np.unique(np.concatenate([times, np.arange(1, number + 1)]))
                break
            target = int(target * 1.3) + 1
        return times[np.round(np.linspace(0, len(times) - 1, number)).astype(int)]
    try:
        times = np.asarray(list(checkpoints))
    except (TypeError, ValueError):
        times = np.empty(0)
    if times.ndim != 1 or times.dtype.kind not in "iuf" or not times.size or not np.all(times == np.round(times)):
        raise ValueError(
            f"checkpoints = {shown(checkpoints)} must be a count or a list of plays: for every play give "
            f"checkpoints={horizon}, the horizon"
        )
    if times[0] < 1 or np.any(np.diff(times) <= 0) or times[-1] > horizon:
        raise ValueError(
            f"checkpoints must increase from at least 1 to at most the horizon {horizon}, got {shown(times.tolist())}"
        )
    times = times.astype(np.int64)
    return times if times[-1] == horizon else np.append(times, horizon)

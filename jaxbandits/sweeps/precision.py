"""What a run's dtype cannot hold: arms that it takes for equal, rare rewards that it cannot draw, horizons too long."""

from typing import Any

import numpy as np

from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.regret import gaps_of

LARGEST_CHANGE = 0.01  # of a gap between arms, or of a probability, as a share
# Spacing of the uniforms that rewards are drawn from (`jaxbandits.random`).
GRID = {"float32": 2.0**-23, "float64": 2.0**-52}


def doubts(algorithm: Algorithm, environment: Environment, dtype: str) -> list[tuple[str, float, str, str]]:
    """Doubts (subject, how large, text, what follows) about running these two in a dtype."""
    means = environment.facts.get("means")
    found = [] if means is None else _gaps(np.asarray(means, np.float64), dtype)
    found += _rare(environment.facts.get("coins", ()), dtype)
    horizon, plays = algorithm.config.get("horizon", 0), algorithm.program.float32_plays
    if dtype == "float32" and plays is not None and horizon > plays:
        text = (
            f"its float32 sums hold {plays:,} plays, and horizon = {horizon:,}: "
            "what later plays add is rounded away, and it stops learning from them"
        )
        found.append(("horizon", horizon / plays, text, "run it with dtype='float64'"))
    return found


def _gaps(means: np.ndarray[Any, Any], dtype: str) -> list[tuple[str, float, str, str]]:
    """Whether arms whose means differ are further apart or nearer once their means are rounded."""
    exact, rounded = gaps_of(means), gaps_of(means.astype(dtype))
    exact, rounded = exact[exact > 0], rounded[exact > 0]
    changes = np.abs(rounded - exact) / exact
    if not changes.size or changes.max() <= LARGEST_CHANGE:
        return []
    worst = changes.argmax()
    text = f"means of arms differ by {exact[worst]:.4g}, and by {rounded[worst]:.4g} in {dtype}"
    return [("gaps", float(changes.max()), text, _remedy("move or scale the means", dtype))]


def _rare(coins: Any, dtype: str) -> list[tuple[str, float, str, str]]:
    """Whether coins are so rare, or so sure, that a uniform does not draw them as often as they say."""
    means = np.asarray(coins, np.float64)
    rare = np.minimum(means, 1 - means)
    rare = rare[rare > 0]
    drawn = np.round(rare / GRID[dtype]) * GRID[dtype]
    changes = np.abs(drawn - rare) / rare
    if not changes.size or changes.max() <= LARGEST_CHANGE:
        return []
    worst = changes.argmax()
    text = (
        f"a probability of {rare[worst]:.3g} is drawn as {drawn[worst]:.3g}: "
        f"uniforms of {dtype} are multiples of {GRID[dtype]:.2g}"
    )
    return [("coins", float(changes.max()), text, _remedy("give means further from 0 and 1", dtype))]


def _remedy(text: str, dtype: str) -> str:
    return text + (", or run it with dtype='float64'" if dtype == "float32" else "")

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
    found, means = list[tuple[str, float, str, str]](), environment.facts.get("means")
    if means is not None:  # arms whose means differ may be further apart or nearer once their means are rounded
        exact = np.asarray(means, np.float64)
        text = f"means of arms differ by {{:.4g}}, and by {{:.4g}} in {dtype}"
        found += _changed("gaps", gaps_of(exact), gaps_of(exact.astype(dtype)), text, "move or scale the means", dtype)
    # coins may be so rare, or so sure, that a uniform does not draw them as often as they say
    coins = np.asarray(environment.facts.get("coins", ()), np.float64)
    rare = np.minimum(coins, 1 - coins)
    drawn = np.round(rare / GRID[dtype]) * GRID[dtype]
    text = f"a probability of {{:.3g}} is drawn as {{:.3g}}: uniforms of {dtype} are multiples of {GRID[dtype]:.2g}"
    found += _changed("coins", rare, drawn, text, "give means further from 0 and 1", dtype)
    horizon, plays = algorithm.config.get("horizon", 0), algorithm.program.float32_plays
    if dtype == "float32" and plays is not None and horizon > plays:
        text = (
            f"its float32 sums hold {plays:,} plays, and horizon = {horizon:,}: "
            "what later plays add is rounded away, and it stops learning from them"
        )
        found.append(("horizon", horizon / plays, text, "run it with dtype='float64'"))
    return found


def _changed(
    subject: str, exact: np.ndarray[Any, Any], held: np.ndarray[Any, Any], text: str, remedy: str, dtype: str
) -> list[tuple[str, float, str, str]]:
    """A doubt where a positive number changes by more than `LARGEST_CHANGE`. text: of the one that changes most."""
    exact, held = exact[exact > 0], held[exact > 0]
    changes = np.abs(held - exact) / exact
    if not changes.size or changes.max() <= LARGEST_CHANGE:
        return []
    worst = changes.argmax()
    remedy += ", or run it with dtype='float64'" if dtype == "float32" else ""
    return [(subject, float(changes.max()), text.format(exact[worst], held[worst]), remedy)]

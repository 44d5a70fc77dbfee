"""The instance of this paper's studies: twenty unit arms in five dimensions, rewards of plus or minus one."""

from functools import partial
from typing import Any

import numpy as np

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.study import Sweep, over_horizons, swept
from jaxbandits.recipe import recipe_of

NUM_ARMS, DIM = 20, 5
GROWTH = 10  # of batches: horizon^(1 / num_batches) where the horizon is a power of ten


def unit(x):
    """Rows of norm 1."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def gaps(environment) -> np.ndarray:
    """Of all arms of an instance; uniform play costs their mean a play."""
    means = environment.keywords["actions"] @ environment.keywords["theta"]
    return means.max() - means


_RNG = np.random.default_rng(2023)
ACTIONS = unit(_RNG.normal(size=(NUM_ARMS, DIM)))
THETA = unit(_RNG.normal(size=DIM))
GAUSSIAN = partial(e.linear_arms, actions=ACTIONS, theta=THETA)
PRIVATE = partial(GAUSSIAN, noise="rademacher")  # |r| <= 1: the claimed epsilon is true

M1 = partial(a.robust_elimination, model="M1", presieve=True)
M2 = partial(a.robust_elimination, model="M2", presieve=True)


def batches(horizon) -> int:
    """Batches that grow about tenfold."""
    return max(2, round(np.log10(horizon)))


def target(value):
    """The omniscient attack: -value on the best arm, value on every other, after the client's noise."""
    return partial(v.huber, kind="target", value=value)


def with_batches(algorithms, horizon) -> dict[str, Any]:
    """Algorithms bound to the number of batches of a horizon, where they take one."""
    doubling = lambda recipe: recipe.bound.get("mechanism") == "gaussian"  # of its own choice
    takes = lambda recipe: recipe.takes("num_batches") and not doubling(recipe)
    bind = lambda one: partial(one, num_batches=batches(horizon)) if takes(recipe_of(one)) else one
    return {label: bind(one) for label, one in algorithms.items()}


def horizon_sweeps(algorithms, horizons, environment, seeds, grid) -> dict[str, Sweep]:
    """A sweep a horizon, since the number of batches follows it; `join_horizons` puts them together."""
    named = {f"horizon-{horizon}": horizon for horizon in horizons}
    return {name: swept(with_batches(algorithms, t), environment, t, seeds, grid=grid) for name, t in named.items()}


def join_horizons(results):
    """The sweeps of `horizon_sweeps` as one Dataset with the dimension `horizon`."""
    return over_horizons([ds for name, ds in results.items() if name.startswith("horizon-")])

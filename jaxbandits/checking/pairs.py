"""`jaxbandits.plays`: whether an algorithm plays in an environment, before anything is run."""

from __future__ import annotations

from typing import Any

from jaxbandits import catalogue
from jaxbandits.checking.check import look_up_part
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.recipe import recipe_of, unwrap
from jaxbandits.sweeps.arguments import PART_KINDS, factory_of
from jaxbandits.sweeps.simulate import environment_of
from jaxbandits.sweeps.who_plays import Plays, judge_pair
from jaxbandits.typing import AlgorithmFactory, EnvironmentFactory
from jaxbandits.validation import declare

__all__ = ["Plays", "plays"]


@declare(check=False)
def plays(algorithm: AlgorithmFactory | Algorithm | str, environment: EnvironmentFactory | Environment | str) -> Plays:
    """Say whether an algorithm plays in an environment. Nothing is traced, and the algorithm is not built.

    An algorithm plays where the environment offers what it reads. Every environment but one with agents offers arms.
    One row of features for all arms is read by learners with one model for each arm (``models="per_arm"``), a vector
    for each arm by other learners of linear rewards too. Actions that never change are such vectors, and alone fit
    algorithms that plan with them. `sweep`, `simulate` and `check` ask first and raise ValueError with the reason.

    Args:
        algorithm (factory, functools.partial of one, Algorithm or str): Who plays. Arguments may be missing. A
            conversion without its base stands for its case in the catalogue.
        environment (factory, functools.partial, Environment or str): Where. A name, or a factory of the package with
            nothing bound, stands for its case in the catalogue; another factory is called.

    Returns:
        Plays: `ok`, and `reason`, which is empty where it plays. Otherwise it names three algorithms that do play
            there, and the environment where this one does. In an ``if`` it counts as its `ok`.

    Raises:
        ValueError or TypeError: For a name that is not known, and for an environment that cannot be called.

    >>> jb.plays("linucb", "linear_arms").ok
    True
    >>> jb.plays("ucb1", "federated_linear").reason.partition(":")[0]
    'ucb1 plays one arm at a time, and federated_linear has agents, of which each plays an arm'
    """
    given = example_of("algorithm", algorithm)
    given = given if isinstance(given, Algorithm) else factory_of(given, "algorithm", "algorithm")
    return judge_pair(given, environment_of(example_of("environment", environment)))


def example_of(slot: str, part: Any) -> Any:
    """A part; for one of the package with nothing bound its case in the catalogue, if it says nothing by itself."""
    if isinstance(part, Algorithm | Environment) or (isinstance(part, str) and ":" in part):
        return look_up_part(slot, part)
    known: Any = catalogue.ALGORITHMS if slot == "algorithm" else catalogue.ENVIRONMENTS
    name = part if isinstance(part, str) else unwrap(part).name
    factory = getattr(PART_KINDS[slot][0], name, None)
    silent = slot == "environment" or (factory is not None and "base" in recipe_of(factory).arguments)
    ours = (isinstance(part, str) or part is factory) and name in known
    return getattr(known[name], slot) if ours and silent else part

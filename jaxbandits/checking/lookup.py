"""Parts by name: of the package, or `module:factory` of the user's own."""

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits import catalogue
from jaxbandits.declared import told_by
from jaxbandits.sweeps.arguments import factory_of, signature_of
from jaxbandits.sweeps.own_factory import own_factory
from jaxbandits.typing import EnvironmentFactory
from jaxbandits.validation import plays_on

# What of an algorithm's bound arguments is a small environment's too, by what the algorithm plays on.
SHARED = {
    "agents": ("num_agents", "num_arms", "dim"), "advice": (), "fixed set": ("actions",),
    "decision set": ("num_arms", "dim"), "arms": ("num_arms",),
}  # fmt: skip


def looked_up(slot: str, part: Any) -> Any:
    """A part as it is, or the one that a name stands for: an environment or adversary of the package at the
    catalogue's size.

    Raises ValueError for a name that is not known, and where `module:factory` cannot be loaded.
    """
    if not isinstance(part, str):
        return part
    if ":" in part:
        return own_factory(part, Path())
    factory, example = factory_of(part, slot, slot), catalogue.ADVERSARIES.get(part)
    if part in catalogue.ENVIRONMENTS:
        return catalogue.ENVIRONMENTS[part].environment
    return factory if example is None else example.reward_adversary or example.message_adversary


def here_first() -> None:
    """Let modules of the working directory be imported, as `python -m` does."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def small_environment(algorithm: Any) -> EnvironmentFactory:
    """A small environment of the catalogue of the kind that an algorithm plays on.

    Numbers that the factory binds are the environment's too.
    """
    try:
        kind, (names, bound) = plays_on(algorithm), signature_of(algorithm)
        if callable(bound.get("base")):  # a conversion may hand on what its base does not name
            own = [name for name, parameter in names.items() if parameter.default is not None]
            kind = told_by([*own, *signature_of(bound["base"])[0]])
    except (TypeError, ValueError):  # no factory: that is a finding
        return catalogue.arms
    given, environment = {name: bound[name] for name in SHARED[kind] if name in bound}, catalogue.NATURAL[kind]
    if kind == "arms" and given:
        many = isinstance(given["num_arms"], int) and given["num_arms"] > 1
        given = {"means": np.linspace(0.2, 0.8, given["num_arms"])} if many else {}
    return functools.partial(catalogue.WORLDS[environment], **given) if given else catalogue.WORLDS[environment]

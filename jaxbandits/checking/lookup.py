"""Parts by name: of the package, or `module:factory` of the user's own."""

import contextlib
import functools
import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

from jaxbandits import catalogue
from jaxbandits.checking.findings import described
from jaxbandits.sweeps.grid import signature_of
from jaxbandits.typing import EnvironmentFactory
from jaxbandits.validation import nearest


def looked_up(what: str, part: Any, module: ModuleType) -> Any:
    """A part as it is, or the one that a name stands for: an environment or adversary of the package at the
    catalogue's size.

    Raises ValueError for a name that is not known, and where `module:factory` cannot be imported.
    """
    if not isinstance(part, str):
        return part
    if ":" in part:
        return imported(what, part)
    if part not in module.__all__:
        raise ValueError(
            f"{what} = {part!r}: no {what.rpartition('_')[2]} of the package has that name"
            f"{nearest(part, module.__all__)}; your own is named 'module:factory'"
        )
    if part in catalogue.ENVIRONMENTS:
        return catalogue.ENVIRONMENTS[part].environment
    if part in catalogue.ADVERSARIES:
        example = catalogue.ADVERSARIES[part]
        return example.reward_adversary or example.message_adversary
    return getattr(module, part)


def imported(what: str, name: str) -> Any:
    """The factory that `module:factory` names. ValueError where it cannot be imported."""
    module_name, _, attribute = name.partition(":")
    importlib.invalidate_caches()
    try:
        part = importlib.import_module(module_name)
        for step in attribute.split("."):
            part = getattr(part, step)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{what} = {name!r} cannot be imported: {described(error)}") from None
    return part


def here_first() -> None:
    """Let modules of the working directory be imported, as `python -m` does."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def small_environment(algorithm: Any) -> EnvironmentFactory:
    """A small environment of the catalogue that offers what a factory names.

    Numbers that the factory binds are the environment's too.
    """
    try:
        names, bound = signature_of(algorithm)
    except (TypeError, ValueError):  # no factory: that is a finding
        return catalogue.arms
    if callable(bound.get("base")):  # a conversion may hand on what its base does not name
        with contextlib.suppress(TypeError, ValueError):
            own = signature_of(bound["base"])[0]
            names = {key: given for key, given in names.items() if given.default is not None or key in own}
    for key, environment, numbers in (
        ("num_agents", catalogue.federated, ("num_agents", "num_arms", "dim")),
        ("num_experts", catalogue.experts, ()),
        ("actions", catalogue.linear, ("actions",)),
        ("dim", catalogue.contexts, ("num_arms", "dim")),
    ):
        if key in names:
            given = {name: bound[name] for name in numbers if name in bound}
            return functools.partial(environment, **given) if given else environment
    if isinstance(bound.get("num_arms"), int) and bound["num_arms"] > 1:
        return functools.partial(catalogue.arms, means=np.linspace(0.2, 0.8, bound["num_arms"]))
    return catalogue.arms

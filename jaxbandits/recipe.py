"""What a factory is, looked at once: the function inside its partials, what they bind, and what it takes."""

import functools
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxbandits.formatting import show

BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Unwrapped(NamedTuple):
    """A factory, or a called part, without the partials around it."""

    function: Any
    bound: dict[str, Any]  # the keyword arguments that the partials bind; an outer one wins
    name: str


class Recipe(NamedTuple):
    """A factory of algorithms, environments or adversaries, also one inside partials."""

    function: Any  # these three as in `Unwrapped`
    bound: dict[str, Any]
    name: str
    arguments: dict[str, inspect.Parameter]  # what the function takes, bound or not
    base: Any  # the factory that a conversion converts, as it was given; None where there is none
    factory: Any  # all of it, to be called

    def __reduce__(self) -> tuple[Any, ...]:
        return recipe_of, (self.factory,)  # annotations of a user's function need not be picklable

    @property
    def needed(self) -> list[str]:
        """The arguments without a default that are not bound yet by their names."""
        left = self.arguments.keys() - self.bound.keys()
        return [k for k, p in self.arguments.items() if k in left and p.default is p.empty and p.kind in BY_NAME]

    def takes(self, key: str) -> bool:
        """Whether a (possibly dotted) key reaches an argument that is not bound yet."""
        head, _, rest = key.partition(".")
        if rest:
            return head == "base" and self.base is not None and recipe_of(self.base).takes(rest)
        return key in self.arguments and key not in self.bound

    def known_keys(self) -> list[str]:
        """Every key that `takes` accepts."""
        keys = [name for name in self.arguments if name not in self.bound]
        return keys if self.base is None else keys + [f"base.{key}" for key in recipe_of(self.base).known_keys()]

    def bind(self, values: Mapping[str, Any]) -> "Recipe":
        """The recipe with arguments bound, by keys that may be dotted."""
        own, of_base = dict[str, Any](), dict[str, Any]()
        for key, value in values.items():
            head, _, rest = key.partition(".")
            (of_base if rest else own)[rest or head] = value
        base = own.get("base", self.base)
        if of_base:
            own["base"] = base = recipe_of(base).bind(of_base).factory
        return self._replace(bound=self.bound | own, base=base, factory=functools.partial(self.factory, **own))


def recipe_of(factory: Any) -> Recipe:
    """What a factory is. ValueError for anything else.

    >>> import jaxbandits as jb
    >>> recipe = recipe_of(functools.partial(functools.partial(jb.algorithms.ucb1, horizon=9), num_arms=2))
    >>> recipe.name, recipe.bound, list(recipe.arguments)
    ('ucb1', {'horizon': 9, 'num_arms': 2}, ['num_arms', 'horizon', 'bonus_scale'])
    """
    function, bound, name = unwrap(factory)
    try:
        arguments = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        remedy = "give a function of keyword arguments or a functools.partial of one"
        raise ValueError(f"{show(function)} is not a factory: {remedy}") from None
    default = arguments["base"].default if "base" in arguments else None
    base = bound.get("base", None if default is inspect.Parameter.empty else default)
    return Recipe(function, bound, name, arguments, base, factory)


def unwrap(factory: Any) -> Unwrapped:
    """What is inside any number of partials, the keyword arguments that they bind, and what it is called.

    >>> unwrap(functools.partial(functools.partial(max, key=abs), default=0))[1:]
    ({'key': <built-in function abs>, 'default': 0}, 'max')
    """
    bound: dict[str, Any] = {}
    while isinstance(factory, functools.partial):
        bound = {**factory.keywords, **bound}
        factory = factory.func
    name, config = getattr(factory, "__name__", type(factory).__name__), getattr(factory, "config", None)
    if isinstance(config, dict):
        name = config.get("name", name)
    return Unwrapped(factory, bound, str(name))

"""How errors about parts name shapes, values and lines, and the small questions that the checks ask of a value."""

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.source_places import place_of_function
from jaxbandits.validation import unwrapped


def is_array(x: Any) -> bool:
    """Whether it has a shape and a type."""
    return hasattr(x, "shape") and hasattr(x, "dtype")


def is_traceable(x: Any) -> bool:
    """Whether JAX takes it as numbers."""
    return isinstance(x, jax.Array | np.ndarray | np.generic | int | float | complex)


def is_scalar(x: Any, kind: Any) -> bool:
    """Whether it is one number of a kind, such as `jnp.integer`."""
    x = np.asarray(x) if isinstance(x, bool | int | float) else x
    return is_array(x) and x.shape == () and jnp.issubdtype(x.dtype, kind)


def fits(x: Any, slots: int, agents: int | None, many: bool) -> bool:
    """Whether x has one entry for each play, or one for the window; many: also one for each agent."""
    if not is_array(x) or len(x.shape) != (2 if many else 1):
        return False
    return x.shape[0] in (slots, 1) and (not many or agents is None or x.shape[1] == agents)


def as_arrays(tree: Any) -> Any:
    """The tree with its numbers as arrays: what is carried from play to play becomes an array."""
    return jax.tree.map(lambda x: x if is_array(x) else jnp.asarray(x), tree)


def row_text(slots: int, agents: int | None) -> str:
    """The shape of one value a play, or one a play and agent."""
    return f"shape [P] (here {slots})" if agents is None else f"shape [P, N] (here {slots}, {agents})"


def array_text(x: Any) -> str:
    """The type and shape of an array, such as `float32[3,2]`."""
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"


def shape_text(tree: Any) -> str:
    """The types and shapes of a tree's arrays, as short text."""
    if is_array(tree):
        return array_text(tree)
    if hasattr(tree, "_fields"):
        inside = ", ".join(f"{name}={shape_text(x)}" for name, x in zip(tree._fields, tree, strict=True))
        return f"{type(tree).__name__}({inside})"
    if isinstance(tree, tuple | list):
        return f"({', '.join(map(shape_text, tree))})"
    if isinstance(tree, dict) and any(map(is_array, tree.values())):
        return f"{{{', '.join(f'{key!r}: {shape_text(x)}' for key, x in tree.items())}}}"
    return what(tree)


def what(x: Any) -> str:
    """A value as a message names it."""
    if x is None:
        return "None"
    if is_array(x):
        return f"an array {array_text(x)}"
    if hasattr(x, "_fields"):
        return f"{a_kind(type(x))} alone"
    if inspect.isfunction(x):
        return f"the function {x.__name__}"
    text = repr(x)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(x).__name__})"


def a_kind(kind: type) -> str:
    """The name of a type after its article, such as `an Algorithm`."""
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def name_of(part: Any) -> str:
    """What a factory, a partial of one or a called part is called."""
    part = unwrapped(part).function
    config = getattr(part, "config", None)
    if isinstance(config, dict) and "name" in config:
        return str(config["name"])
    return str(getattr(part, "__name__", type(part).__name__))


def at_line(function: Any) -> str:
    """` (file:line)` of a user's function, or nothing."""
    place = "" if function is None else place_of_function(function)
    return f" ({place})" if place else ""


def in_brackets(place: str) -> str:
    """A place as the end of a message; nothing where it is not known."""
    return f" ({place})" if place else ""


def not_traced(label: str, error: BaseException, where: str) -> ValueError:
    """The error about a part that fails while it is traced, to be raised."""
    return ValueError(f"{label!r} cannot be traced: {type(error).__name__}: {first_line(error)}{in_brackets(where)}")


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).splitlines() or [""])[0]

"""How errors about parts name shapes, values and lines."""

import inspect
from typing import Any

from jaxbandits.contract import place_of
from jaxbandits.traced_once import is_array as is_array
from jaxbandits.validation import unwrapped


def shape_text(tree: Any) -> str:
    """The types and shapes of a tree's arrays, as short text, such as `float32[3,2]`."""
    if is_array(tree):
        return f"{tree.dtype}[{','.join(map(str, tree.shape))}]"
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
        return f"an array {shape_text(x)}"
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


def at_line(*about: Any) -> str:
    """` (file:line)` of the first of these that has a place, as the end of a message; nothing where none has."""
    place = place_of(*about)
    return f" ({place})" if place else ""


def not_traced(label: str, error: BaseException, where: Any) -> ValueError:
    """The error about a part that fails while it is traced, to be raised."""
    return ValueError(f"{label!r} cannot be traced: {type(error).__name__}: {first_line(error)}{at_line(where)}")


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).splitlines() or [""])[0]


def one_line(text: object) -> str:
    """A message without line breaks and without the framework's remarks about its own traceback."""
    words = " ".join(str(text).split())
    return words.split(" -------------------- For simplicity, JAX has removed")[0]


def described(error: BaseException) -> str:
    """An error as a line of text."""
    return f"{type(error).__name__}: {one_line(error)}"

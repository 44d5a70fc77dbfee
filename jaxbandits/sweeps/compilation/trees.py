"""The structure of a tree as plain data, and back: what stands on disk beside a compiled program."""

import sys
from typing import Any

import jax
from jax.tree_util import default_registry

_LEAF: Any = jax.tree.structure(0)
_BUILT_IN = {kind.__name__: kind for kind in (tuple, list, dict, type(None))}


def described(tree: Any) -> Any:
    """A tree's structure as JSON has it. ValueError where that cannot be had.

    A leaf is None; a node is its class by name, the keys of a dictionary, and its children. Classes are tuples, lists,
    dictionaries, None and NamedTuples that a module holds under their own names.

    >>> described(jax.tree.structure({"a": (1, [2])}))
    ['dict', ['a'], [['tuple', None, [None, ['list', None, [None]]]]]]
    """
    about = tree.node_data()
    if about is None:
        return None
    kind, keys = about
    name = kind.__name__
    if _BUILT_IN.get(name) is not kind:
        name = f"{kind.__module__}:{kind.__qualname__}"
        if _named_tuple(name) is not kind:
            raise ValueError(f"{name} is not what its module holds under that name")
        keys = None
    if keys is not None and not all(isinstance(key, str) for key in keys):
        raise ValueError(f"keys {keys} are not text")
    return [name, keys, [described(child) for child in tree.children()]]


def rebuilt(about: Any, call: Any) -> Any:
    """The structure that `described` wrote down. ValueError where a class of it is not there.

    call: the structure of the arguments of the call, whose own classes come first. Nothing is imported, and no class is
    called.

    >>> tree = jax.tree.structure({"a": (1, [2])})
    >>> rebuilt(described(tree), jax.tree.structure(())) == tree
    True
    """
    return _rebuilt(about, dict(_named_tuples(call)))


def _rebuilt(about: Any, known: dict[str, type]) -> Any:
    if about is None:
        return _LEAF
    name, keys, children = about
    kind = _BUILT_IN.get(name) or known.get(name) or _named_tuple(name)
    if kind is None:
        raise ValueError(f"there is no NamedTuple {name}")
    fields = getattr(kind, "_fields", children)
    if len(fields) != len(children):
        raise ValueError(f"{name} has {len(fields)} fields, not {len(children)}")
    data = (kind, kind if hasattr(kind, "_fields") else keys)
    return _LEAF.from_node_data_and_children(default_registry, data, [_rebuilt(child, known) for child in children])


def _named_tuples(tree: Any) -> Any:
    about = tree.node_data()
    if about is not None and hasattr(about[0], "_fields"):
        yield f"{about[0].__module__}:{about[0].__qualname__}", about[0]
    for child in tree.children():
        yield from _named_tuples(child)


def _named_tuple(name: str) -> type | None:
    """The NamedTuple of a name, in a module that is imported already; None where there is none."""
    module, _, path = name.partition(":")
    place: Any = sys.modules.get(module)
    for part in path.split("."):
        place = vars(place).get(part) if hasattr(place, "__dict__") else None
    return place if isinstance(place, type) and issubclass(place, tuple) and hasattr(place, "_fields") else None

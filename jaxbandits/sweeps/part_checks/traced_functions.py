"""Traces the functions of a user's part on abstract values.

Errors name arguments that a function does not take and results of a wrong form. Doubts name what runs and can still
not be meant, such as a draw that is the same at every play.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from jaxbandits.contract import REMEDY, constant_draws, runs_own_code
from jaxbandits.source_places import place_of_error, place_of_function
from jaxbandits.sweeps.compilation.program_digest import first_difference
from jaxbandits.sweeps.wording import (
    abstract,
    array_text,
    as_arrays,
    at_line,
    first_line,
    in_brackets,
    is_traceable,
    shape_text,
    what,
)

# The arguments of each function, and the results of those that return several.
ARGUMENTS = {
    "Program.init": "params, draws",
    "Program.act": "params, state, draws, t, context",
    "Program.encode": "params, note, draws, t, context, action, reward, play",
    "Program.relay": "params, draws, t, message, play",
    "Program.update": "params, state, draws, t, note, message, used",
    "Program.close": "params, state, draws, t",
    "Program.diagnose": "params, state",
    "Hints.rest": "params, state",
    "World.init": "params, draws",
    "World.observe": "params, state, draws, t",
    "World.reward": "params, state, draws, t, context, action",
    "World.score": "params, state, t, context, action",
    "World.truth": "params, state, t, context",
    "Attack.init": "params, draws",
    "Attack.corrupt": "params, state, draws, t, payload, view",
    "Attack.diagnose": "params, state",
    "Attack.per_arm": "state, arms",
    "Guarantee.view": "message, released, action",
}
RESULTS = {
    "Program.act": ("action", "used", "note"),
    "Program.update": ("state", "released"),
    "World.observe": ("context", "state"),
    "Attack.corrupt": ("payload", "hit", "state"),
}
# These may draw from a key that never changes: an instance or a set of contexts may be drawn once and for all.
MAY_DRAW_ONCE = ("Program.init", "Attack.init", "World.init", "World.observe", "World.truth", "World.score")


class Examination:
    """Traces the functions of a case one after another, each on what the ones before it return."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.doubts: list[str] = []
        # Where the last traced function of the user is defined: later errors inside this package name it.
        self.latest = ""

    def __call__(
        self, name: str, function: Callable[..., Any], *args: Any, follows: Callable[..., Any] | None = None
    ) -> Any:
        """The abstract values that `function` returns on abstract arguments. follows: what is traced in its place."""
        takes = ARGUMENTS[name].split(", ")
        try:
            inspect.signature(function).bind(*takes)
        except TypeError:
            raise self.wrong(
                name, function, f"must take ({ARGUMENTS[name]}), it takes {inspect.signature(function)}"
            ) from None
        except ValueError:  # no signature: a builtin
            pass
        traced, result = follows or function, []
        leaves, treedef = jax.tree.flatten(args)
        shapes = [x for x in leaves if isinstance(x, jax.ShapeDtypeStruct)]

        def whole(*arrays):
            """The call of `traced`. What is no array, such as a number inside a note, is passed as it is."""
            remaining = iter(arrays)
            full = [next(remaining) if isinstance(x, jax.ShapeDtypeStruct) else x for x in leaves]
            result.append(traced(*jax.tree.unflatten(treedef, full)))
            return [x for x in jax.tree.leaves(result[-1]) if is_traceable(x)]

        try:
            closed = jax.make_jaxpr(whole)(*shapes)
        except Exception as error:
            latest = place_of_function(function) if runs_own_code(function) else self.latest
            where = place_of_error(error) or latest
            inside = f"in {name}, {where}" if where else f"in {name}"
            raise ValueError(
                f"{self.label!r} cannot be traced: {type(error).__name__}: {first_line(error)} ({inside})"
            ) from error
        if runs_own_code(function):
            self.latest = f"it was given what {name} returns, {place_of_function(function)}"
            lane = [  # `Attack.corrupt` is given more, all of it the lane's
                i >= len(takes) or takes[i] != "params"
                for i, arg in enumerate(args)
                for x in jax.tree.leaves(arg)
                if isinstance(x, jax.ShapeDtypeStruct)
            ]
            # The lambda makes JAX trace once more: a function that it has seen before is answered from its cache.
            again = jax.make_jaxpr(lambda *arrays: whole(*arrays))(*shapes)
            self.doubtful(name, function, closed, again, lane)
        returned = result[0]
        # A note never leaves the window, so it may hold anything.
        outside = returned[:2] if name == "Program.act" and isinstance(returned, tuple) else returned
        bad = next((x for x in jax.tree.leaves(outside) if not is_traceable(x)), None)
        if bad is not None:
            raise self.wrong(name, function, f"must return numbers and arrays, it returns {what(bad)} among them")
        wanted = RESULTS.get(name)
        if wanted is not None:
            listed = ", ".join(wanted)
            if not isinstance(returned, tuple | list) or hasattr(returned, "_fields") or len(returned) != len(wanted):
                plain = isinstance(returned, tuple | list) and not hasattr(returned, "_fields")
                got = f"{len(returned)} value{'' if len(returned) == 1 else 's'}" if plain else what(returned)
                hint = (
                    ": return () as `released` when nothing beyond the actions is released"
                    if name == "Program.update"
                    else ""
                )
                hint = ": return None as `used` when the whole window is used" if name == "Program.act" else hint
                raise self.wrong(name, function, f"must return ({listed}), it returns {got}{hint}")
        return jax.tree.map(abstract, returned)

    def doubtful(
        self, name: str, function: Callable[..., Any], closed: ClosedJaxpr, again: ClosedJaxpr, lane: list[bool]
    ) -> None:
        """Note draws that differ from trace to trace, and draws that are the same at every play.

        closed, again: two traces of the function. lane: for each input, whether it depends on the lane.
        """
        changes, constant = first_difference(closed, again), constant_draws(closed, lane)
        written = place_of_function(function)
        if changes is not None:
            self.doubts.append(
                f"{self.label}: {name} is another program every time it is traced: it calls np.random or reads "
                f"a clock, so that all lanes and plays share one number; {REMEDY}{in_brackets(changes or written)}"
            )
        elif name not in MAY_DRAW_ONCE and constant:
            self.doubts.append(
                f"{self.label}: {name} draws with a key that depends neither on the lane's seed nor on the play, "
                f"such as PRNGKey(0): every lane and play meets the same numbers; {REMEDY}"
                f"{in_brackets(constant[0] or written)}"
            )

    def wrong(self, name: str, function: Callable[..., Any], text: str) -> ValueError:
        """An error about a function, to be raised: the label, the function's name, the text, the author's line."""
        return ValueError(f"{self.label!r}: {name} {text}{at_line(function)}")

    def same_state(self, name: str, function: Callable[..., Any], first: str, before: Any, after: Any) -> None:
        """Raise ValueError unless `after` has the fields, shapes and types of `before`, which `first` returned."""
        after = as_arrays(after)
        home = type(before).__name__ if hasattr(before, "_fields") else "the state"
        olds, _ = jax.tree_util.tree_flatten_with_path(before)
        news, _ = jax.tree_util.tree_flatten_with_path(after)
        if str(jax.tree.structure(before)) != str(jax.tree.structure(after)):
            raise self.wrong(
                name, function,
                f"must return a state of the fields that {first} returns: {shape_text(before)}, "
                f"not {shape_text(after)}",
            )  # fmt: skip
        for (path, old), (_, new) in zip(olds, news, strict=True):
            at = jax.tree_util.keystr(path)
            field = f"{home}{at}"
            value = at.rsplit(".", 1)[-1] if "." in at else "x"
            if old.shape != new.shape:
                raise self.wrong(
                    name, function,
                    f"must keep the state's shapes: {field} is {array_text(old)} from {first} and "
                    f"{array_text(new)} from {name.split('.')[1]}",
                )  # fmt: skip
            # a weak type takes on the other, as in `lax` loops
            if old.dtype != new.dtype and not old.weak_type:
                raise self.wrong(
                    name, function,
                    f"must keep the state's types: {field} is {old.dtype} from {first} and {new.dtype} from "
                    f"{name.split('.')[1]}: return {value}.astype(state{at}.dtype), or begin with {new.dtype} "
                    f"in {first}",
                )  # fmt: skip

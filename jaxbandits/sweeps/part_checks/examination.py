"""The rules about functions of parts: what each takes and returns, told while the engine traces a window of a lane.

Nothing is compiled and nothing is played. Every function is put into the engine's own window with its rules around it
(`Examination`): errors name arguments that it does not take and results of a wrong form. Doubts name what runs and can
still not be meant, such as a draw that is the same at every play.
"""

import contextlib
import functools
import inspect
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from jaxbandits import simulator
from jaxbandits.contract import REMEDY, constant_draws, runs_own_code
from jaxbandits.protocol import Attack, Case, Guarantee, Hints, Program, Score, Truth, World
from jaxbandits.random import Draws
from jaxbandits.source_places import place_of_caller, place_of_error, place_of_function
from jaxbandits.sweeps.compilation.program_digest import first_difference
from jaxbandits.sweeps.part_checks.fields import check_claim, functions_of
from jaxbandits.sweeps.wording import (
    array_text,
    as_arrays,
    at_line,
    fits,
    in_brackets,
    is_array,
    is_scalar,
    is_traceable,
    not_traced,
    row_text,
    shape_text,
    what,
)
from jaxbandits.window import Parts, offer

# Names of results, where a function returns several.
RESULTS = {
    "Program.act": ("action", "used", "note"),
    "Program.update": ("state", "released"),
    "World.observe": ("context", "state"),
    "Attack.corrupt": ("payload", "hit", "state"),
}
NOTHING = {  # what to return where there is nothing to say
    "Program.act": ": return None as `used` when the whole window is used",
    "Program.update": ": return () as `released` when nothing beyond the actions is released",
}
# These may draw from a key that never changes: an instance or a set of contexts may be drawn once and for all.
MAY_DRAW_ONCE = ("Program.init", "Attack.init", "World.init", "World.observe", "World.truth", "World.score")
# A result has variables and axes of these names already: no diagnostic may be called so.
RESERVED_NAMES = (
    "regret", "pulls", "best_reward", "algorithm", "seed", "t", "arm", "arm_name", "horizon", "point",
    "nonfinite_rewards",
)  # fmt: skip
KINDS = {kind.__name__: kind for kind in (Program, Hints, World, Attack, Guarantee)}


@functools.cache
def arguments_of(name: str) -> str:
    """The arguments of a function of a part, such as "Program.act", as `protocol` names them.

    >>> arguments_of("Program.close")
    'params, state, draws, t'
    """
    kind, field = name.split(".")
    hint = KINDS[kind].__annotations__[field]
    (call,) = (x for x in (hint, *typing.get_args(hint)) if getattr(x, "_is_protocol", False))
    _, *parameters = inspect.signature(call.__call__).parameters
    return ", ".join(parameter.removesuffix("_last") for parameter in parameters)


class Examination:
    """The functions of a cell in one window of `slots` plays, each with its rules around it.

    checked: for checks, look at what this case does not need and others may, such as truths that nobody reads, rewards
    that are no floats, and draws that are the same in every lane alone, in functions of this package too. repeated:
    whether functions are traced twice, which tells what is doubtful about them.
    """

    def __init__(self, cell: Any, parts: Parts, slots: int, *, checked: bool = False, repeated: bool = True) -> None:
        self.label, self.slots, self.checked, self.repeated = cell.label, slots, checked, repeated
        self.agents, self.claim = cell.environment.facts.get("num_agents"), cell.algorithm.guarantee
        self.given: Any = parts
        self.doubts: list[tuple[str, str]] = []  # text and place
        self.programs: dict[str, ClosedJaxpr] = {}  # of the functions that were traced twice, by name
        # (path, shape of one play's draw or "at", first position, place) of what a checked window draws
        self.addresses: list[tuple[str, Any, int, str]] = []
        self.counted = False  # whether regret follows from counts of pulls
        self.diagnostics, self.seen = list[str](), set[Any]()
        # The user's function that was traced last, by part, and "" of any: later errors inside this package name it.
        self.latest: dict[str, str] = {}
        self.parts = parts._replace(
            program=self._with_rules(parts.program),
            world=self._with_rules(parts.world),
            reward_attack=parts.reward_attack and self._with_rules(parts.reward_attack, "rewards"),
            message_attack=parts.message_attack and self._with_rules(parts.message_attack, "messages"),
        )

    def of(self, case: Case) -> "Examination":
        """Itself, with what was found; ValueError with label, function and line where something is malformed.

        case: the params, of which only shapes matter.
        """
        numbers = [jax.ShapeDtypeStruct((), dtype) for dtype in (jnp.uint32, jnp.int32, jnp.int32)]
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), jax.tree.map(jax.typeof, case))
        # message, released and actions, as shapes
        self.shown = jax.eval_shape(self._window, shapes, *numbers)
        return self

    def _window(self, case: Case, seed: Any, before: Any, limit: Any) -> Any:
        parts = self.parts
        lane = as_arrays(simulator.begun(parts, case, seed))
        with logged_draws(self.addresses) if self.checked else contextlib.nullcontext():
            after, seen = offer(parts, case, seed, self.slots, lane, before, None if self.slots == 1 else limit)
        simulator.finish(parts, case, after)
        simulator.close(parts, case, seed, lane)
        self.counted, shown = seen.regret is None, (seen.message, seen.released, seen.action)
        if _has_view(self.claim, self.checked):
            self._look("Guarantee.view", self.claim.view)(*shown)
        return shown

    def _with_rules(self, part: Any, slot: str = "") -> Any:
        """The part, each of whose functions is looked at when it is first called. slot: what an attack attacks."""
        kind, names = type(part).__name__, functions_of(type(part))
        names += ["per_arm"] if getattr(part, "per_arm", None) is not None else []
        return part._replace(**{x: self._look(f"{kind}.{x}", getattr(part, x), part, slot) for x in names})

    def _look(self, name: str, function: Callable[..., Any], part: Any = None, slot: str = "") -> Callable[..., Any]:
        """The function with its rules around it. They are its own form, its results, and those of `RULES`."""

        def call(*args: Any) -> Any:
            if (name, slot) in self.seen:  # an attack asks what another arm would pay
                return function(*args)
            self.seen.add((name, slot))
            returned = self._traced(name, function, args)
            for rule in RULES.get(name, ()):
                rule(Call(self, part, slot, args, returned, functools.partial(self.wrong, name, function)))
            return returned

        return call

    def wrong(self, name: str, function: Callable[..., Any], text: str) -> ValueError:
        """An error about a function, to be raised: the label, the function's name, the text, the author's line."""
        return ValueError(f"{self.label!r}: {name} {text}{at_line(function)}")

    def _traced(self, name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """What the function returns, as the engine goes on with it."""
        takes, own, (kind, field) = arguments_of(name), runs_own_code(function), name.split(".")
        giver = kind if field == "diagnose" else ""  # of the state it is given
        try:
            inspect.signature(function).bind(*args)
        except TypeError:
            raise self.wrong(name, function, f"must take ({takes}), it takes {inspect.signature(function)}") from None
        except ValueError:  # no signature: a builtin
            pass
        try:
            repeated = self.repeated and (own or self.checked)
            returned = self._twice(name, function, args) if repeated else function(*args)
        except Exception as error:
            where = place_of_error(error) or (place_of_function(function) if own else self.latest.get(giver, ""))
            raise not_traced(self.label, error, f"in {name}, {where}" if where else f"in {name}") from error
        if own and field not in ("diagnose", "rest"):  # what these return is given to nobody
            self.latest[kind] = self.latest[""] = f"it was given what {name} returns, {place_of_function(function)}"
        # A note never leaves the window, so it may hold anything.
        outside = returned[:2] if name == "Program.act" and isinstance(returned, tuple) else returned
        for x in jax.tree.leaves(outside):
            if not is_traceable(x):
                raise self.wrong(name, function, f"must return numbers and arrays, it returns {what(x)} among them")
        names = RESULTS.get(name)
        plain = isinstance(returned, tuple | list) and not hasattr(returned, "_fields")
        if names is not None and not (plain and len(returned) == len(names)):
            got = f"{len(returned)} value{'' if len(returned) == 1 else 's'}" if plain else what(returned)
            text = f"must return ({', '.join(names)}), it returns {got}{NOTHING.get(name, '')}"
            raise self.wrong(name, function, text)
        return returned

    def _twice(self, name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """What a function returns; doubts about draws that differ from trace to trace or are always the same."""
        leaves, treedef = jax.tree.flatten(args)
        arrays, result = [x for x in leaves if is_array(x)], list[Any]()

        def whole(*arrays: Any) -> list[Any]:
            """The call. What is no array, such as a number inside a note, is passed as it is."""
            remaining = iter(arrays)
            full = [next(remaining) if is_array(x) else x for x in leaves]
            result.append(function(*jax.tree.unflatten(treedef, full)))
            return [x for x in jax.tree.leaves(result[-1]) if is_array(x)]

        # The lambda makes JAX trace once more: a function that it has seen before is answered from its cache.
        closed, drawn = jax.make_jaxpr(whole)(*arrays), len(self.addresses)
        again = jax.make_jaxpr(lambda *xs: whole(*xs))(*arrays)
        self.programs[name], takes = closed, arguments_of(name).split(", ")

        def constant(*fixed: str) -> list[str]:
            """Places of draws whose key depends on the arguments called so alone, which all lanes share."""
            moving = [takes[i] not in fixed for i, arg in enumerate(args) for x in jax.tree.leaves(arg) if is_array(x)]
            return constant_draws(closed, moving)

        changes = first_difference(closed, again)
        if changes is not None:
            text, places = (
                "is another program every time it is traced: it calls np.random or reads a clock, so that "
                "all lanes and plays share one number",
                [changes],
            )
        elif name not in MAY_DRAW_ONCE and (places := constant("params")):
            text = (
                "draws with a key that depends neither on the lane's seed nor on the play, such as "
                "PRNGKey(0): every lane and play meets the same numbers"
            )
        elif self.checked and (places := constant("params", "t")):
            text = "draws with a key that is the same in every lane"
        else:
            places = []
        self.doubts += [(f"{name} {text}; {REMEDY}", place or place_of_function(function)) for place in places[:1]]
        del self.addresses[drawn:]  # those of the first trace are enough
        outputs = iter(jaxpr_as_fun(closed)(*arrays))
        return jax.tree.map(lambda x: next(outputs) if is_array(x) else x, result[0])


@contextlib.contextmanager
def logged_draws(log: list[Any]) -> Iterator[None]:
    """Note every address that is drawn meanwhile."""
    words, at = Draws.words, Draws.at

    def logged_words(self: Draws, t: Any, shape: Any = (), first: int = 0) -> Any:
        log.append((self.path, tuple(shape), first, place_of_caller()))
        return words(self, t, shape, first)

    def logged_at(self: Draws, t: Any, position: Any) -> Any:
        log.append((self.path, "at", 0, place_of_caller()))
        return at(self, t, position)

    with mock.patch.object(Draws, "words", logged_words), mock.patch.object(Draws, "at", logged_at):
        yield


class Call(NamedTuple):
    """A call of a function in a window, which rules look at."""

    examination: Examination
    part: Any
    slot: str  # of an attack: "rewards" or "messages"
    args: tuple[Any, ...]
    returned: Any
    wrong: Callable[..., ValueError]  # a text -> the error, to be raised

    @property
    def sizes(self) -> tuple[int, int | None, bool]:
        """Of what is given an action last: plays, agents, and whether there are any."""
        action = self.args[-1]
        many = len(action.shape) == 2
        return self.examination.slots, action.shape[1] if many else None, many


# ---------------------------------------------------------------------------- the rules: call -> nothing, or they raise


def keeps_state(name: str, before: int, after: int | None) -> Callable[[Call], None]:
    """The state has the fields, shapes and types of the one that `init` returned. before: the argument, after: the
    result that holds it; None: the result is the state.
    """

    def rule(call: Call) -> None:
        old_state = call.args[before]
        state = as_arrays(call.returned if after is None else call.returned[after])
        home = type(old_state).__name__ if hasattr(old_state, "_fields") else "the state"
        olds, structure = jax.tree_util.tree_flatten_with_path(old_state)
        news, _ = jax.tree_util.tree_flatten_with_path(state)
        if str(structure) != str(jax.tree.structure(state)):
            text = f"must return a state of the fields that init returns: {shape_text(old_state)}"
            raise call.wrong(f"{text}, not {shape_text(state)}")
        for (path, old), (_, new) in zip(olds, news, strict=True):
            at = jax.tree_util.keystr(path)
            value = at.rsplit(".", 1)[-1] if "." in at else "x"
            if old.shape != new.shape:
                text = f"must keep the state's shapes: {home}{at} is {array_text(old)} from init"
                raise call.wrong(f"{text} and {array_text(new)} from {name}")
            if old.dtype != new.dtype and not old.weak_type:  # a weak type takes on the other, as in `lax` loops
                text = f"must keep the state's types: {home}{at} is {old.dtype} from init and {new.dtype} from {name}"
                remedy = f"return {value}.astype(state{at}.dtype), or begin with {new.dtype} in init"
                raise call.wrong(f"{text}: {remedy}")

    return rule


def truth_is_told(call: Call) -> None:
    one = call.examination
    if one.checked or one.given.reward_attack is not None or one.given.message_attack is not None:
        params, _, _, t = call.args
        one.parts.world.truth(params, call.returned[1], t, call.returned[0])


def returns_truth(call: Call) -> None:
    if not isinstance(call.returned, Truth):
        raise call.wrong(f"must return a Truth, it returns {what(call.returned)}")


def returns_arms(call: Call) -> None:
    one, (action, used, _) = call.examination, call.returned
    rows = f"[P] (here {one.slots}){'' if one.agents is None else f', [P, N] (here {one.slots}, {one.agents})'} or [1]"
    many = is_array(action) and len(action.shape) == 2
    if not fits(action, one.slots, one.agents, many):
        raise call.wrong(f"must return actions of shape {rows}, it returns {shape_text(action)}")
    if not jnp.issubdtype(action.dtype, jnp.integer):
        text = f"must return arms as integers, it returns actions of {action.dtype}"
        raise call.wrong(f"{text}: .astype(jnp.int32)")
    if used is not None and not is_scalar(used, jnp.integer):
        text = "must return as `used` None or how many plays it uses, one int32"
        raise call.wrong(f"{text}, it returns {shape_text(used)}")
    if many and one.agents is None and not runs_own_code(one.given.world.score):
        text = f"returns actions {array_text(action)}, and this environment has no agents"
        raise call.wrong(f"{text}: return one action a play, [P] or [1]")


def hints_hold(call: Call) -> None:
    one, hints, (params, state, *_) = call.examination, call.part.hints, call.args
    for field in hints.kept:
        if not hasattr(state, field):
            text = f"names {field!r}, but the state that init returns is {shape_text(state)}"
            raise one.wrong("Hints.kept", one.given.program.init, text)
    if hints.rest is not None:
        arm = one._look("Hints.rest", hints.rest)(params, state)
        if not is_scalar(arm, jnp.integer):
            text = f"must return one arm, int32, it returns {shape_text(arm)}"
            raise one.wrong("Hints.rest", hints.rest, text)


def diagnoses(call: Call) -> None:
    """Diagnostics are numbers under names that nothing else of the run has."""
    if not isinstance(call.returned, dict):
        raise call.wrong(f"must return a dict of numbers, not {what(call.returned)}")
    for key, value in call.returned.items():
        if key in RESERVED_NAMES or (isinstance(key, str) and (not key.strip() or "/" in key)):
            raise call.wrong(f"gives {key!r}, which a result cannot hold under that name: call it otherwise")
        if key in call.examination.diagnostics:
            raise call.wrong(f"gives {key!r}, and so does another part of this run: call one of them otherwise")
        if not isinstance(key, str) or not (is_scalar(value, jnp.number) or is_scalar(value, jnp.bool_)):
            raise call.wrong(f"must return {{name: number}}, its entry {key!r} is {shape_text(value)}")
    call.examination.diagnostics += call.returned


def pays_rewards(call: Call) -> None:
    one, reward, (slots, agents, many) = call.examination, call.returned, call.sizes
    if not fits(reward, slots, agents, many):
        if not runs_own_code(one.given.world.reward):
            text = f"returns actions {array_text(call.args[-1])}, for which this environment pays {shape_text(reward)}"
            remedy = "where there are agents it must be one action for each of them, [P, N]"
            raise one.wrong("Program.act", one.given.program.act, f"{text}: {remedy}")
        raise call.wrong(f"must return rewards of {row_text(slots, agents)}, it returns {shape_text(reward)}")
    if one.checked and not jnp.issubdtype(reward.dtype, jnp.floating):
        raise call.wrong(f"must return floats, it returns {shape_text(reward)}: .astype(draws.dtype)")


def scores(call: Call) -> None:
    score, (slots, agents, _) = call.returned, call.sizes
    if not isinstance(score, Score):
        raise call.wrong(f"must return a Score, it returns {what(score)}")
    if score.arm is None and score.regret is None:
        raise call.wrong("must give arm, regret or both, it gives neither")
    wanted: Any = (
        ("arm", score.arm, jnp.integer, "integers", None),
        ("regret", score.regret, jnp.number, "numbers", agents),
    )
    for name, value, kind, words, teams in wanted:
        right = is_array(value) and value.shape[:1] in ((slots,), (1,)) and jnp.issubdtype(value.dtype, kind)
        if value is not None and not (right and len(value.shape) <= (1 if teams is None else 2)):
            raise call.wrong(f"must give {name} of {row_text(slots, teams)}, {words}, it gives {shape_text(value)}")
    if score.arm is not None and not call.part.num_arms:
        raise call.wrong("gives arms to count, but World.num_arms is 0: say how many arms there are")


def counts_arms(call: Call) -> None:
    one, per_arm = call.examination, call.part.per_arm
    if per_arm is not None and one.given.arms is None:
        text = "counts arms, and the environment does not say how many it has: facts['num_arms']"
        raise one.wrong("Attack.per_arm", per_arm, text)


def keeps_payload(call: Call) -> None:
    payload, (after, hit, _) = call.args[4], call.returned
    if shape_text(as_arrays(after)) != shape_text(as_arrays(payload)):
        text = f"must return {call.slot} as it receives them, {shape_text(payload)}, it returns {shape_text(after)}"
        raise call.wrong(text)
    if not (isinstance(hit, bool) or (is_array(hit) and hit.dtype == jnp.bool_)):
        text = "must return as `hit` False or a mask of agents, booleans"
        raise call.wrong(f"{text}, it returns {shape_text(hit)}")


RULES: dict[str, tuple[Callable[[Call], None], ...]] = {
    "World.observe": (keeps_state("observe", 1, 1), truth_is_told),
    "World.truth": (returns_truth,),
    "World.reward": (pays_rewards,),
    "World.score": (scores,),
    "Program.act": (returns_arms, hints_hold),
    "Program.update": (keeps_state("update", 1, 0),),
    "Program.close": (keeps_state("close", 1, None),),
    "Program.diagnose": (diagnoses,),
    "Attack.init": (counts_arms,),
    "Attack.corrupt": (keeps_payload, keeps_state("corrupt", 1, 2)),
    "Attack.diagnose": (diagnoses,),
}


# ---------------------------------------------------------------------------- what a sweep says before it runs


def doubts_of(cell: Any, parts: Parts, case: Case) -> list[str]:
    """What is doubtful about a user's functions, a line each; empty for parts of this package.

    ValueError where a function or a guarantee is malformed. cell: algorithm, environment and label.
    """
    algorithm, claim = cell.algorithm, cell.algorithm.guarantee
    own_claim = runs_own_code(claim.spend) or runs_own_code(claim.events)
    if own_claim and not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(algorithm.params)):
        check_claim(algorithm, cell.label)
    functions = (parts.program, parts.world, parts.reward_attack, parts.message_attack)
    if not _has_view(claim) and not any(map(runs_own_code, functions)):
        return []
    # a lane is begun from the shapes of a window of one play
    sizes = sorted({1, max(span.slots for span in algorithm.schedule)})
    looks = [Examination(cell, parts, size).of(case) for size in sizes]
    return [f"{cell.label}: {text}{in_brackets(place)}" for look in looks for text, place in look.doubts]


def _has_view(claim: Guarantee, checked: bool = False) -> bool:
    """Whether a guarantee's view is to be looked at."""
    return claim.model != "none" and (checked or runs_own_code(claim.view))


def doubts_of_builders(cells: Iterable[Any]) -> list[str]:
    """A line for every label whose program is built anew at every point, and would be compiled again at each."""
    programs: dict[tuple[str, str], dict[Program, None]] = {}
    for cell in cells:
        if runs_own_code(cell.algorithm.program):
            key = cell.label, repr(cell.algorithm.version)
            programs.setdefault(key, {})[cell.algorithm.program] = None
    return [
        f"{label}: {len(known)} programs of one version {version}, compiled {len(known)} times: decorate the builder "
        f"with functools.cache, and name in `version` the static values that it takes{at_line(next(iter(known)).act)}"
        for (label, version), known in programs.items()
        if len(known) > 1
    ]


def warn(doubts: list[str], stacklevel: int) -> None:
    """Give one warning for each different line."""
    for line in dict.fromkeys(doubts):
        warnings.warn(line, UserWarning, stacklevel=stacklevel + 1)

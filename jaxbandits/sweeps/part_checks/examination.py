"""The rules about functions of parts: what each takes and returns, told while the engine traces a window of a lane.

Nothing is compiled and nothing is played. Every function is put into the engine's own window with its rules around it
(`Examination`): errors name arguments that it does not take and results of a wrong form. Doubts name what runs and can
still not be meant, such as a draw that is the same at every play.
"""

import collections
import dataclasses
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import contract, simulator
from jaxbandits.contract import at_line, is_array, not_traced, place_of, runs_own_code, shape_text, what
from jaxbandits.protocol import Case, Program, Score, Truth
from jaxbandits.random import Draws
from jaxbandits.selection import BESIDE
from jaxbandits.sweeps.compilation.program_digest import first_difference
from jaxbandits.sweeps.part_checks.fields import calls_of, check_claim
from jaxbandits.traced_once import trace
from jaxbandits.typing import Array
from jaxbandits.window import Parts, offer

# Of functions that return several values: their names, and what to return where there is nothing to say.
RESULT_NAMES: dict[str, tuple[list[str], str]] = {
    "Program.act": (["action", "used", "note"], ": return None as `used` when the whole window is used"),
    "Program.update": (["state", "released"], ": return () as `released` when nothing beyond the actions is released"),
    "World.observe": (["context", "state"], ""),
    "Attack.corrupt": (["payload", "hit", "state"], ""),
}
ONE_RESULT: tuple[list[str], str] = ([], "")
# These may draw from a key that never changes: an instance or a set of contexts may be drawn once and for all.
MAY_DRAW_ONCE = ("Program.init", "Attack.init", "World.init", "World.observe", "World.truth", "World.score")
# A result has variables and axes of these names already: no diagnostic may be called so.
RESERVED_DIAGNOSTICS = (
    "regret", "pulls", "best_reward", "algorithm", "seed", "t", "arm", "arm_name", "horizon", "point",
    "nonfinite_rewards", *BESIDE,
)  # fmt: skip
TAKEN = "a result cannot hold under that name: call it otherwise"
_SHARED = "so that all lanes and plays share one number"
ANOTHER_PROGRAM = f"is another program every time it is traced: it calls np.random or reads a clock, {_SHARED}"
_ALIKE = "every lane and play meets the same numbers"
NO_SEED = f"draws with a key that depends neither on the lane's seed nor on the play, such as PRNGKey(0): {_ALIKE}"
ONE_KEY = "draws with a key that is the same in every lane"
DRAWS_REMEDY = "draw from `draws`: a draw that does not depend on the play is the same at every play"


def is_taken(name: object) -> bool:
    """Whether no diagnostic may be called so."""
    return name in RESERVED_DIAGNOSTICS or (isinstance(name, str) and (not name.strip() or "/" in name))


class Examination:
    """The functions of a cell in one window of `slots` plays, each with its rules around it, traced and not compiled.

    ValueError with label, function and line where something is malformed. case: the params, of which only shapes
    matter. checked: for checks, look at what this case does not need and others may, such as truths that nobody reads,
    rewards that are no floats, and draws that are the same in every lane alone, in functions of this package too.
    """

    def __init__(self, cell: Any, parts: Parts, slots: int, case: Case, *, checked: bool = False) -> None:
        self.label, self.slots, self.checked = cell.label, slots, checked
        self.agents, self.claim = cell.environment.facts.get("num_agents"), cell.algorithm.guarantee
        self.given: Any = parts
        self.doubts: list[tuple[str, str]] = []  # text and place
        # (path, positions from, to, place) of what one play of a checked window draws
        self.addresses: list[tuple[str, int, int, str]] = []
        self.counted = False  # whether regret follows from counts of pulls
        self.diagnostics, self.seen = list[str](), set[Any]()
        # The user's function that was traced last, by part, and "" of any: later errors inside this package name it.
        self.latest: dict[str, str] = {}
        program, world = self._with_rules(parts.program), self._with_rules(parts.world)
        rewards = parts.reward_attack and self._with_rules(parts.reward_attack, "rewards")
        messages = parts.message_attack and self._with_rules(parts.message_attack, "messages")
        self.parts = parts._replace(program=program, world=world, reward_attack=rewards, message_attack=messages)
        # message, released and actions, as shapes
        self.shown = jax.eval_shape(self._window, case, np.uint32(0), np.int32(0), np.int32(slots))

    def _window(self, case: Case, seed: Array, before: Any, limit: Any) -> Any:
        parts = self.parts
        lane = as_arrays(simulator.begin_without_record(parts, case, seed))
        watched = parts._replace(draws=partial(LoggedDraws, note=self.addresses.append)) if self.checked else parts
        after, seen = offer(watched, case, seed, self.slots, lane, before, None if self.slots == 1 else limit)
        simulator.finish(parts, case, after)
        simulator.close(parts, case, seed, lane)
        self.counted, shown = seen.regret is None, (seen.message, seen.released, seen.action)
        if self.claim.model != "none" and (self.checked or runs_own_code(self.claim.view)):
            self.examine(self.claim, "view", "", *shown)
        return shown

    def _with_rules(self, part: Any, slot: str = "") -> Any:
        """The part, each of whose functions is looked at when it is first called. slot: what an attack attacks."""
        fields = [field for field in calls_of(part.__class__) if getattr(part, field) is not None]
        return part._replace(**{field: partial(self.examine, part, field, slot) for field in fields})

    def examine(self, part: Any, field: str, slot: str, *args: object) -> Any:
        """What a function of a part returns, after a look at its form, at its results and by `FUNCTION_RULES`."""
        if (type(part), field, slot) in self.seen:  # an attack asks what another arm would pay
            return getattr(part, field)(*args)
        self.seen.add((type(part), field, slot))
        return PartCall(self, part, field, slot, args).returned


class PartCall:
    """A function of a part in a window, what it is given and what it returned, which its rules have looked at."""

    def __init__(self, of: Examination, part: Any, field: str, slot: str, args: tuple[Any, ...]) -> None:
        self.of, self.part, self.field, self.slot, self.args = of, part, field, slot, args
        self.kind, self.function = type(part).__name__, getattr(part, field)
        self.name, self.takes = f"{self.kind}.{field}", calls_of(part.__class__)[field]  # and its arguments' names
        self.returned: Any = self.result()
        for rule in FUNCTION_RULES.get(self.name, ()):
            rule(self)

    @property
    def agents(self) -> int | None:
        """How many agents play, where the last argument is an action."""
        shape = self.args[-1].shape
        return shape[1] if len(shape) == 2 else None

    def require(self, holds: object, text: str, name: str = "", function: object = None) -> None:
        """ValueError about this function, or another one, unless a rule holds: label, name, text, the author's line."""
        if not holds:
            raise ValueError(f"{self.of.label!r}: {name or self.name} {text}{at_line(function or self.function)}")

    def result(self) -> Any:
        """What the function returns, as the engine goes on with it."""
        one, name, function, args, own = self.of, self.name, self.function, self.args, runs_own_code(self.function)
        giver = self.kind if self.field == "diagnose" else ""  # of the state it is given
        try:
            inspect.signature(function).bind(*args)
        except TypeError:
            self.require(False, f"must take ({', '.join(self.takes)}), it takes {inspect.signature(function)}")
        except ValueError:  # no signature: a builtin
            pass
        # checks look at float64 after float32, where they trace functions twice
        twice = own if not one.checked else one.given.dtype == np.float32
        try:
            returned = self._twice() if twice else function(*args)
        except Exception as error:
            where = place_of(error, function if own else one.latest.get(giver, ""))
            raise not_traced(one.label, error, f"in {name}, {where}" if where else f"in {name}") from error
        if own and self.field not in ("diagnose", "rest"):  # what these return is given to nobody
            one.latest[self.kind] = one.latest[""] = f"it was given what {name} returns, {place_of(function)}"
        # A note never leaves the window, so it may hold anything.
        outside = returned[:2] if name == "Program.act" and isinstance(returned, tuple) else returned
        for x in jax.tree.leaves(outside):
            numbers = isinstance(x, jax.Array | np.ndarray | np.generic | int | float | complex)
            self.require(numbers, f"must return numbers and arrays, it returns {what(x)} among them")
        names, remedy = RESULT_NAMES.get(name, ONE_RESULT)
        plain = isinstance(returned, tuple | list) and not hasattr(returned, "_fields")
        if names and not (plain and len(returned) == len(names)):
            got = f"{len(returned)} value{'' if len(returned) == 1 else 's'}" if plain else what(returned)
            self.require(False, f"must return ({', '.join(names)}), it returns {got}{remedy}")
        return returned

    def _twice(self) -> Any:
        """What a function returns; a doubt about draws that differ from trace to trace or are always the same."""
        one, first, drawn = self.of, trace(self.function, *self.args), len(self.of.addresses)
        changes = first_difference(first.program, trace(self.function, *self.args).program)
        found = [] if changes is None else [(ANOTHER_PROGRAM, changes)]
        alike: list[tuple[str, tuple[str, ...]]] = [] if self.name in MAY_DRAW_ONCE else [(NO_SEED, ("params",))]
        alike += [(ONE_KEY, ("params", "t"))] if one.checked else []
        for text, fixed in alike:  # draws whose key depends on these arguments alone, which all lanes share
            pairs = zip(self.takes, self.args, strict=False)
            moving = [name not in fixed for name, arg in pairs for x in jax.tree.leaves(arg) if is_array(x)]
            found = found or [(text, place) for place in contract.constant_draws(first.program, moving)]
        for text, place in found[:1]:
            one.doubts.append((f"{self.name} {text}; {DRAWS_REMEDY}", place_of(place, self.function)))
        del one.addresses[drawn:]  # those of the first trace are enough
        return first(*self.args)

    # ---- the rules: they raise, or nothing

    def keeps_state(self) -> None:
        """The state has the fields, shapes and types of the one that `init` returned."""
        names, _ = RESULT_NAMES.get(self.name, ONE_RESULT)
        old_state, state = self.args[1], as_arrays(self.returned[names.index("state")] if names else self.returned)
        home = type(old_state).__name__ if hasattr(old_state, "_fields") else "the state"
        olds, structure = jax.tree_util.tree_flatten_with_path(old_state)
        text = f"must return a state of the fields that init returns: {shape_text(old_state)}, not {shape_text(state)}"
        self.require(str(structure) == str(jax.tree.structure(state)), text)
        for (path, old), new in zip(olds, jax.tree.leaves(state), strict=True):
            at, name = jax.tree_util.keystr(path), self.field
            shapes = f"{home}{at} is {shape_text(old)} from init and {shape_text(new)} from {name}"
            self.require(old.shape == new.shape, f"must keep the state's shapes: {shapes}")
            types = f"{home}{at} is {old.dtype} from init and {new.dtype} from {name}"
            value = at.rsplit(".", 1)[-1] if "." in at else "x"
            remedy = f"return {value}.astype(state{at}.dtype), or begin with {new.dtype} in init"
            # a weak type takes on the other, as in `lax` loops
            self.require(old.dtype == new.dtype or old.weak_type, f"must keep the state's types: {types}: {remedy}")

    def truth_is_told(self) -> None:
        one = self.of
        if one.checked or one.given.reward_attack is not None or one.given.message_attack is not None:
            params, _, _, t = self.args
            one.parts.world.truth(params, self.returned[1], t, self.returned[0])

    def returns_truth(self) -> None:
        self.require(isinstance(self.returned, Truth), f"must return a Truth, it returns {what(self.returned)}")

    def returns_arms(self) -> None:
        one, (action, used, _) = self.of, self.returned
        agents = "" if one.agents is None else f", [P, N] (here {one.slots}, {one.agents})"
        many, shape = is_array(action) and len(action.shape) == 2, shape_text(action)
        text = f"must return actions of shape [P] (here {one.slots}){agents} or [1], it returns {shape}"
        self.require(fits(action, one.slots, one.agents, many), text)
        text = f"must return arms as integers, it returns actions of {action.dtype}: .astype(jnp.int32)"
        self.require(jnp.issubdtype(action.dtype, jnp.integer), text)
        text = f"must return as `used` None or how many plays it uses, one int32, it returns {shape_text(used)}"
        self.require(used is None or is_scalar(used, jnp.integer), text)
        text = f"returns actions {shape}, and this environment has no agents: return one action a play, [P] or [1]"
        self.require(not many or one.agents is not None or runs_own_code(one.given.world.score), text)

    def hints_hold(self) -> None:
        one, hints, (params, state, *_) = self.of, self.part.hints, self.args
        for field in hints.kept:
            text = f"names {field!r}, but the state that init returns is {shape_text(state)}"
            self.require(hasattr(state, field), text, "Hints.kept", one.given.program.init)
        if hints.rest is not None:
            arm = one.examine(hints, "rest", "", params, state)
            text = f"must return one arm, int32, it returns {shape_text(arm)}"
            self.require(is_scalar(arm, jnp.integer), text, "Hints.rest", hints.rest)

    def diagnoses(self) -> None:
        """Diagnostics are numbers under names that nothing else of the run has."""
        self.require(isinstance(self.returned, dict), f"must return a dict of numbers, not {what(self.returned)}")
        for key, value in self.returned.items():
            self.require(not is_taken(key), f"gives {key!r}, which {TAKEN}")
            twice = f"gives {key!r}, and so does another part of this run: call one of them otherwise"
            self.require(key not in self.of.diagnostics, twice)
            right = isinstance(key, str) and (is_scalar(value, jnp.number) or is_scalar(value, jnp.bool_))
            self.require(right, f"must return {{name: number}}, its entry {key!r} is {shape_text(value)}")
        self.of.diagnostics += self.returned

    def pays_rewards(self) -> None:
        one, reward, agents = self.of, self.returned, self.agents
        right, shape = fits(reward, one.slots, agents, agents is not None), shape_text(reward)
        if not right and not runs_own_code(one.given.world.reward):
            text = f"returns actions {shape_text(self.args[-1])}, for which this environment pays {shape}"
            remedy = "where there are agents it must be one action for each of them, [P, N]"
            self.require(False, f"{text}: {remedy}", "Program.act", one.given.program.act)
        self.require(right, f"must return rewards of {row_text(one.slots, agents)}, it returns {shape}")
        floats = not one.checked or jnp.issubdtype(reward.dtype, jnp.floating)
        self.require(floats, f"must return floats, it returns {shape}: .astype(draws.dtype)")

    def returns_score(self) -> None:
        score, slots = self.returned, self.of.slots
        self.require(isinstance(score, Score), f"must return a Score, it returns {what(score)}")
        neither = score.arm is None and score.regret is None
        self.require(not neither, "must give arm, regret or both, it gives neither")
        arm: Any = ("arm", score.arm, jnp.integer, "integers", None)
        for name, value, kind, words, teams in (arm, ("regret", score.regret, jnp.number, "numbers", self.agents)):
            right = is_array(value) and value.shape[:1] in ((slots,), (1,)) and jnp.issubdtype(value.dtype, kind)
            right = value is None or (right and len(value.shape) <= (1 if teams is None else 2))
            self.require(right, f"must give {name} of {row_text(slots, teams)}, {words}, it gives {shape_text(value)}")
        text = "gives arms to count, but World.num_arms is 0: say how many arms there are"
        self.require(score.arm is None or self.part.num_arms, text)

    def counts_arms(self) -> None:
        per_arm = self.part.per_arm
        text = "counts arms, and the environment does not say how many it has: facts['num_arms']"
        self.require(per_arm is None or self.of.given.arms is not None, text, "Attack.per_arm", per_arm)

    def keeps_payload(self) -> None:
        before, (after, hit, _) = shape_text(as_arrays(self.args[4])), self.returned
        text = f"must return {self.slot} as it receives them, {before}, it returns {shape_text(after)}"
        self.require(shape_text(as_arrays(after)) == before, text)
        mask = isinstance(hit, bool) or (is_array(hit) and hit.dtype == jnp.bool_)
        self.require(mask, f"must return as `hit` False or a mask of agents, booleans, it returns {shape_text(hit)}")


@partial(jax.tree_util.register_dataclass, data_fields=["seed", "shift"], meta_fields=["path", "dtype", "long", "note"])
@dataclasses.dataclass(frozen=True)
class LoggedDraws(Draws):
    """Random streams that note what is drawn: path, positions from and to, and place."""

    note: Callable[[Any], None] = dataclasses.field(kw_only=True)

    def words(self, t: Any, shape: Any = (), first: int = 0) -> Any:
        self.note((self.path, first, first + max(math.prod(shape), 1), place_of(sys._getframe())))
        return super().words(t, shape, first)

    def at(self, t: Any, position: Any) -> Any:
        self.note((self.path, 0, 1, place_of(sys._getframe())))
        return super().at(t, position)


def is_scalar(x: Any, kind: type) -> bool:
    """Whether it is one number of a kind, such as `jnp.integer`."""
    x = np.asarray(x) if isinstance(x, bool | int | float) else x
    return is_array(x) and x.shape == () and jnp.issubdtype(x.dtype, kind)


def fits(x: Any, slots: int, agents: int | None, many: bool) -> bool:
    """Whether x has one entry for each play, or one for the window; many: also one for each agent."""
    if not is_array(x) or len(x.shape) != (2 if many else 1):
        return False
    return x.shape[0] in (slots, 1) and (not many or agents is None or x.shape[1] == agents)


def as_arrays(tree: object) -> Any:
    """The tree with its numbers as arrays: what is carried from play to play becomes an array."""
    return jax.tree.map(lambda x: x if is_array(x) else jnp.asarray(x), tree)


def row_text(slots: int, agents: int | None) -> str:
    """The shape of one value a play, or one a play and agent."""
    return f"shape [P] (here {slots})" if agents is None else f"shape [P, N] (here {slots}, {agents})"


FUNCTION_RULES: dict[str, tuple[Callable[[PartCall], None], ...]] = {
    "World.observe": (PartCall.keeps_state, PartCall.truth_is_told),
    "World.truth": (PartCall.returns_truth,),
    "World.reward": (PartCall.pays_rewards,),
    "World.score": (PartCall.returns_score,),
    "Program.act": (PartCall.returns_arms, PartCall.hints_hold),
    "Program.update": (PartCall.keeps_state,),
    "Program.close": (PartCall.keeps_state,),
    "Program.diagnose": (PartCall.diagnoses,),
    "Attack.init": (PartCall.counts_arms,),
    "Attack.corrupt": (PartCall.keeps_payload, PartCall.keeps_state),
    "Attack.diagnose": (PartCall.diagnoses,),
}


# ---------------------------------------------------------------------------- what a sweep says before it runs


def doubts_of(cell: Any, parts: Parts, case: Case) -> list[str]:
    """What is doubtful about a user's functions, a line each. ValueError where a part of the cell is malformed."""
    algorithm, claim = cell.algorithm, cell.algorithm.guarantee
    own_claim = runs_own_code(claim.spend) or runs_own_code(claim.events)
    if own_claim and not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(algorithm.params)):
        check_claim(algorithm, cell.label)
    view = claim.view if claim.model != "none" else None
    if not any(map(runs_own_code, (parts.program, parts.world, parts.reward_attack, parts.message_attack, view))):
        return []
    # a lane is begun from the shapes of a window of one play
    sizes = sorted({1, max(span.slots for span in algorithm.schedule)})
    looks = [Examination(cell, parts, size, case) for size in sizes]
    return [f"{cell.label}: {text}{at_line(place)}" for look in looks for text, place in look.doubts]


def doubts_of_builders(cells: Iterable[Any]) -> Iterator[str]:
    """A line for every label whose program is built anew at every point, and would be compiled again at each."""
    programs = collections.defaultdict[tuple[str, str], dict[Program, None]](dict)
    for cell in cells:
        if runs_own_code(cell.algorithm.program):
            programs[cell.label, repr(cell.algorithm.version)][cell.algorithm.program] = None
    for (label, version), known in programs.items():
        if len(known) > 1:
            times = f"{len(known)} programs of one version {version}, compiled {len(known)} times"
            remedy = "decorate the builder with functools.cache, and name in `version` the static values that it takes"
            yield f"{label}: {times}: {remedy}{at_line(next(iter(known)).act)}"


def warn(doubts: list[str], stacklevel: int) -> None:
    """Give one warning for each different line."""
    for line in dict.fromkeys(doubts):
        warnings.warn(line, UserWarning, stacklevel=stacklevel + 1)

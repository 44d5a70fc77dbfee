"""Parts that do not keep to the protocol, named in its words before anything runs, with the author's file and line.

First what factories return is looked at, then every function of a user's part is traced on abstract values: nothing is
compiled and nothing is played. Parts of this package are not traced here.
"""

import functools
import inspect
import traceback
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import simulator
from jaxbandits.contract import REMEDY, changing_trace, constant_draws, is_own, written_at
from jaxbandits.protocol import (
    Adversary,
    Algorithm,
    Attack,
    Case,
    Environment,
    Guarantee,
    Program,
    Score,
    Seen,
    Span,
    World,
)
from jaxbandits.simulator import Parts
from jaxbandits.validation import nearest

MODELS = ("none", "local", "central", "shuffle", "federated")
UNITS = ("loss_vector", "reward", "user", "message")
PACKAGE = str(Path(__file__).parents[1])
# what each function takes, and what it returns
TAKES = {
    "Program.init": "params, draws",
    "Program.act": "params, state, draws, t, context",
    "Program.encode": "params, note, draws, t, context, action, reward, play",
    "Program.relay": "params, draws, t, message, play",
    "Program.update": "params, state, draws, t, note, message, used",
    "Program.close": "params, state, draws, t",
    "Program.diagnose": "params, state",
    "Program.rest": "params, state",
    "World.init": "params, draws",
    "World.observe": "params, state, draws, t",
    "World.reward": "params, state, draws, t, context, action",
    "World.score": "params, state, t, context, action",
    "World.truth": "params, state, t, context",
    "Attack.init": "params, draws",
    "Attack.corrupt": "params, state, draws, t, payload, seen",
    "Guarantee.view": "message, released, action",
}
RETURNS = {
    "Program.act": ("action", "used", "note"),
    "Program.update": ("state", "released"),
    "World.observe": ("context", "state"),
    "Attack.corrupt": ("payload", "hit", "state"),
}
# an instance or a set of contexts may be drawn once and for all
FIXED = ("Program.init", "Attack.init", "World.init", "World.observe", "World.truth", "World.score")


# ---------------------------------------------------------------------------- what factories return


def check_part(part, kind: type, factory) -> None:
    """That a factory of an environment or adversary returned one, and that it is well formed. ValueError otherwise."""
    if not isinstance(part, kind):
        raise ValueError(f"{_named(factory)} must return {_a(kind)}, it returned {_what(part)}{_at(factory)}")
    if isinstance(part, Environment):
        _check_environment(part)
    elif isinstance(part, Adversary):
        _check_functions(part.attack, Attack, "Adversary.attack", ("law",))
        _check_config(part, "Adversary")
        _check_numbers(part.params, "Adversary.params", part.attack.init)


def _check_environment(part: Environment) -> None:
    _check_functions(part.world, World, "Environment.world", ("num_arms", "baseline", "seeded", "law"))
    where = _at(part.world.reward)
    if not isinstance(part.facts, dict):
        raise ValueError(f"Environment.facts must be a dict such as {{'num_arms': 2}}, not {_what(part.facts)}{where}")
    _check_config(part, "Environment")
    _check_numbers(part.params, "Environment.params", part.world.reward)
    counted, arms = part.world.num_arms, part.facts.get("num_arms")
    for name, value, least in (("World.num_arms", counted, 0), ("facts['num_arms']", arms, 1)):
        if value is not None and (not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least):
            raise ValueError(f"{name} = {value!r} must be an integer of at least {least}{where}")
    if arms is not None and counted and arms != counted:
        raise ValueError(f"facts['num_arms'] = {arms} disagrees with World.num_arms = {counted}{where}")


def check_algorithm(algorithm, label: str, factory=None) -> None:
    """That a factory returned an Algorithm, and that it is well formed as far as can be seen without a trace."""
    if not isinstance(algorithm, Algorithm):
        raise ValueError(f"{label}: its factory must return an Algorithm, it returned {_what(algorithm)}{_at(factory)}")
    _check_functions(algorithm.program, Program, f"{label}: Algorithm.program", ("rest", "one_arm", "tally", "kept"))
    where = _at(algorithm.program.act)
    if not isinstance(algorithm.program.kept, tuple):
        raise ValueError(f"{label}: Program.kept must be a tuple of names, not {_what(algorithm.program.kept)}{where}")
    schedule = algorithm.schedule
    if not isinstance(schedule, tuple) or not schedule or not all(isinstance(span, Span) for span in schedule):
        raise ValueError(
            f"{label}: Algorithm.schedule must be a tuple of Span, such as (Span(1, horizon),), not {_what(schedule)}{where}"
        )
    for span in schedule:
        for name, least in (("slots", 1), ("repeats", 0), ("length", 0)):
            value = getattr(span, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise ValueError(f"{label}: Span.{name} = {value!r} must be an integer of at least {least}{where}")
    version = algorithm.version
    if not (isinstance(version, tuple) and version and isinstance(version[0], str)):
        raise ValueError(
            f"{label}: Algorithm.version must be a tuple (name, version, static values), not {_what(version)}{where}"
        )
    if not isinstance(algorithm.config, dict):
        raise ValueError(
            f"{label}: Algorithm.config must be a dict of the arguments (jaxbandits.validation.factory keeps them), not "
            f"{_what(algorithm.config)}{where}"
        )
    _check_numbers(algorithm.params, f"{label}: Algorithm.params", algorithm.program.act)
    _check_guarantee(algorithm, label, where)


def _check_guarantee(algorithm: Algorithm, label: str, where: str) -> None:
    guarantee = algorithm.guarantee
    if not isinstance(guarantee, Guarantee):
        raise ValueError(
            f"{label}: Algorithm.guarantee must be a Guarantee (Guarantee() where nothing is private), not "
            f"{_what(guarantee)}{where}"
        )
    for name, known in (("model", MODELS), ("unit", UNITS)):
        value = getattr(guarantee, name)
        if value not in known:
            choices = ", ".join(map(repr, known))
            raise ValueError(
                f"{label}: Guarantee.{name} = {value!r} must be one of {choices}{nearest(str(value), known)}{where}"
            )
    for name, takes in (("spend", "params"), ("view", "message, released, action"), ("events", "params")):
        value = getattr(guarantee, name)
        if not callable(value):
            raise ValueError(f"{label}: Guarantee.{name} must be a function of ({takes}), not {_what(value)}{where}")
    fields = getattr(algorithm.params, "_fields", ())
    if not isinstance(guarantee.scales, tuple):
        raise ValueError(
            f"{label}: Guarantee.scales must be a tuple of names of params, such as ('mechanism_scale',), not "
            f"{guarantee.scales!r}{where}"
        )
    for name in guarantee.scales:
        if name not in fields:
            known = ", ".join(map(str, fields)) or "nothing"
            raise ValueError(
                f"{label}: Guarantee.scales names {name!r}{nearest(str(name), fields)}, but params hold {known}{where}"
            )
    bound = guarantee.bound
    if isinstance(bound, bool) or not isinstance(bound, int | float | np.number) or not bound > 0:
        raise ValueError(f"{label}: Guarantee.bound = {bound!r} must be a positive number, or inf{where}")


def check_claim(algorithm: Algorithm, label: str) -> None:
    """That `spend` and `events` of a user's guarantee return what they should, on the numbers of the algorithm."""
    from jaxbandits.mechanisms.composition import Event

    guarantee = algorithm.guarantee
    if not (is_own(guarantee.spend) or is_own(guarantee.events)):
        return
    for name, function in (("events", guarantee.events), ("spend", guarantee.spend)):
        try:
            value = function(algorithm.params)
            value = tuple(value)
        except Exception as error:
            raise ValueError(
                f"{label}: Guarantee.{name}(params) fails: {type(error).__name__}: {_first_line(error)} "
                f"({_own_line(error) or written_at(function)})"
            ) from error
        if name == "events" and not all(isinstance(event, Event) for event in value):
            raise ValueError(
                f"{label}: Guarantee.events must return a tuple of Event, such as (laplace_event('reward', 1.0, scale),), "
                f"not {_what(value)}{_at(function)}"
            )
        if name == "spend" and not (len(value) == 2 and all(np.ndim(x) == 0 and _is_number(x) for x in value)):
            raise ValueError(
                f"{label}: Guarantee.spend must return (epsilon, delta), two numbers, not {_what(value)}{_at(function)}"
            )


def _check_functions(part, kind: type, name: str, others: tuple) -> None:
    if not isinstance(part, kind):
        raise ValueError(f"{name} must be {_a(kind)}, not {_what(part)}")
    fields: Any = part
    written = next((f for f in fields if inspect.isfunction(f)), None)
    for field in fields._fields:
        value = getattr(fields, field)
        if not callable(value) and field not in others:
            raise ValueError(f"{name}: {kind.__name__}.{field} must be a function, not {_what(value)}{_at(written)}")


def _check_config(part, name: str) -> None:
    if not isinstance(part.config, dict):
        raise ValueError(f"{name}.config must be a dict of the arguments, not {_what(part.config)}")


def _check_numbers(params, name: str, function) -> None:
    leaves = jax.tree.leaves(params, is_leaf=lambda x: x is None)
    if all(map(_is_number, leaves)):
        return
    paths, _ = jax.tree_util.tree_flatten_with_path(params, is_leaf=lambda x: x is None)
    path, value = next((path, value) for path, value in paths if not _is_number(value))
    raise ValueError(
        f"{name}{jax.tree_util.keystr(path)} = {value!r} must be a number or an array of numbers: what is text or None "
        f"belongs into the arguments of the cached builder{_at(function)}"
    )


def _is_number(x) -> bool:
    if isinstance(x, int | float | jax.Array):  # a traced number is a jax.Array
        return True
    if x is None or isinstance(x, str | bytes) or callable(x):
        return False
    return np.asarray(x).dtype.kind in "biuf"


# ---------------------------------------------------------------------------- what functions return


class Examination:
    """Traces the functions of a case one after another, each on what the ones before it return."""

    def __init__(self, label: str):
        self.label = label
        self.doubts: list[str] = []
        self.latest = ""  # the last of the user's functions that was traced, for errors that come later

    def __call__(self, name: str, function, *args, follows=None):
        """The abstract values that `function` returns on abstract arguments. follows: what is traced in its stead."""
        takes = TAKES[name].split(", ")
        try:
            inspect.signature(function).bind(*takes)
        except TypeError:
            raise self.wrong(
                name, function, f"must take ({TAKES[name]}), it takes {inspect.signature(function)}"
            ) from None
        except ValueError:  # no signature: a builtin
            pass
        traced, result = follows or function, []
        leaves, treedef = jax.tree.flatten(args)
        shapes = [x for x in leaves if isinstance(x, jax.ShapeDtypeStruct)]

        def whole(*arrays):
            """The call with what is no array, such as a number inside a note, as it is."""
            arrived = iter(arrays)
            full = [next(arrived) if isinstance(x, jax.ShapeDtypeStruct) else x for x in leaves]
            result.append(traced(*jax.tree.unflatten(treedef, full)))
            return [x for x in jax.tree.leaves(result[-1]) if _is_traceable(x)]

        try:
            closed = jax.make_jaxpr(whole)(*shapes)
        except Exception as error:
            where = _own_line(error) or (self.latest if not is_own(function) else written_at(function))
            raise ValueError(
                f"{self.label!r} cannot be traced: {type(error).__name__}: {_first_line(error)} (in {name}, {where})"
            ) from error
        if is_own(function):
            self.latest = f"it was given what {name} returns, {written_at(function)}"
            lane = [  # `Attack.corrupt` is given more, all of it the lane's
                i >= len(takes) or takes[i] != "params"
                for i, arg in enumerate(args)
                for x in jax.tree.leaves(arg)
                if isinstance(x, jax.ShapeDtypeStruct)
            ]
            # traced once more from the start: a function JAX has seen before would be answered from its cache
            again = jax.make_jaxpr(lambda *arrays: whole(*arrays))(*shapes)
            self.doubtful(name, function, closed, again, lane)
        returned = result[0]
        # a note never leaves the window: it may hold anything
        outside = returned[:2] if name == "Program.act" and isinstance(returned, tuple) else returned
        bad = next((x for x in jax.tree.leaves(outside) if not _is_traceable(x)), None)
        if bad is not None:
            raise self.wrong(name, function, f"must return numbers and arrays, it returns {_what(bad)} among them")
        wanted = RETURNS.get(name)
        if wanted is not None:
            listed = ", ".join(wanted)
            if not isinstance(returned, tuple | list) or hasattr(returned, "_fields") or len(returned) != len(wanted):
                plain = isinstance(returned, tuple | list) and not hasattr(returned, "_fields")
                got = f"{len(returned)} values" if plain else _what(returned)
                hint = ": `released` is () where nothing beyond the actions is" if name == "Program.update" else ""
                hint = ": `used` is None where all plays are" if name == "Program.act" else hint
                raise self.wrong(name, function, f"must return ({listed}), it returns {got}{hint}")
        return jax.tree.map(_abstract, returned)

    def doubtful(self, name: str, function, closed, again, lane: list[bool]) -> None:
        """Note what is traced fine and still cannot be meant."""
        if changing_trace(closed, again):
            self.doubts.append(
                f"{self.label}: {name} is another program every time it is traced: numbers from np.random or a clock are "
                f"written into it once, and every lane and play then meets the same; {REMEDY}{_at(function)}"
            )
        elif name not in FIXED and constant_draws(closed, lane):
            self.doubts.append(
                f"{self.label}: {name} draws with a key that depends neither on the lane's seed nor on the play, such as "
                f"PRNGKey(0): every lane and play meets the same numbers; {REMEDY}{_at(function)}"
            )

    def wrong(self, name: str, function, text: str) -> ValueError:
        """The error about a function."""
        return ValueError(f"{self.label!r}: {name} {text}{_at(function)}")

    def same_state(self, name: str, function, first: str, before, after) -> None:
        """That a state keeps its fields, shapes and types; `first` names the function that made the one before."""
        after = _arrays(after)
        home = type(before).__name__ if hasattr(before, "_fields") else "the state"
        olds, _ = jax.tree_util.tree_flatten_with_path(before)
        news, _ = jax.tree_util.tree_flatten_with_path(after)
        if str(jax.tree.structure(before)) != str(jax.tree.structure(after)):
            raise self.wrong(
                name, function,
                f"must return a state of the fields that {first} returns: {_shape_text(before)}, not {_shape_text(after)}",
            )  # fmt: skip
        for (path, old), (_, new) in zip(olds, news, strict=True):
            at = jax.tree_util.keystr(path)
            field = f"{home}{at}"
            value = at.rsplit(".", 1)[-1] if "." in at else "x"
            if old.shape != new.shape:
                raise self.wrong(
                    name, function,
                    f"must keep the state's shapes: {field} is {_array(old)} from {first} and {_array(new)} from "
                    f"{name.split('.')[1]}",
                )  # fmt: skip
            if old.dtype != new.dtype and not old.weak_type:  # a weak type takes on the other, as in `lax` loops
                raise self.wrong(
                    name, function,
                    f"must keep the state's types: {field} is {old.dtype} from {first} and {new.dtype} from "
                    f"{name.split('.')[1]}: return {value}.astype(state{at}.dtype), or begin with {new.dtype} in {first}",
                )  # fmt: skip


def check_functions(
    label: str, parts: Parts, case: Case, slots: int, view=None, agents: int | None = None
) -> list[str]:
    """Trace every function of a case on windows of `slots` plays and look at what it returns. ValueError with label and line.

    Returns what is doubtful, a line each.

    case: abstract values. view: of a guarantee, where it is a user's. agents: how many, where the environment has them.
    """
    trace, program, world = Examination(label), parts.program, parts.world
    draws = simulator._streams(parts, jax.ShapeDtypeStruct((), jnp.uint32))
    alg, outer = draws.child("alg"), draws.child("environment")
    whole = jax.ShapeDtypeStruct((), jnp.int32)
    t, play = jax.ShapeDtypeStruct((slots,), jnp.int32), jax.ShapeDtypeStruct((slots,), jnp.bool_)

    params = case.environment
    first = _arrays(trace("World.init", world.init, params, outer.child("instance")))
    context, inner = trace("World.observe", world.observe, params, first, outer.child("context"), t)
    trace.same_state("World.observe", world.observe, "init", first, inner)

    state = _arrays(trace("Program.init", program.init, case.algorithm, alg.child("init")))
    action, used, note = trace("Program.act", program.act, case.algorithm, state, alg.child("act"), t, context)
    _check_action(trace, program.act, action, used, slots, agents)
    if program.rest is not None:
        arm = trace("Program.rest", program.rest, case.algorithm, state)
        if not _is_scalar(arm, jnp.integer):
            raise trace.wrong(
                "Program.rest", program.rest, f"must return one arm, int32, it returns {_shape_text(arm)}"
            )
    _check_diagnostics(trace, program, case.algorithm, state)
    if program.tally:  # such rewards come as counts of values, from the environment's law
        return trace.doubts

    reward = trace("World.reward", world.reward, params, inner, outer.child("reward"), t, context, action)
    many = len(action.shape) == 2
    agents = action.shape[1] if many else None
    if not _fits(reward, slots, agents, many):
        wanted = _row(slots, agents)
        raise trace.wrong(
            "World.reward", world.reward, f"must return rewards of {wanted}, it returns {_shape_text(reward)}"
        )
    score = trace("World.score", world.score, params, inner, t, context, action)
    _check_score(trace, world, score, slots, agents)
    reward = jax.ShapeDtypeStruct((slots, *reward.shape[1:]), reward.dtype)
    action = jax.ShapeDtypeStruct((slots, *action.shape[1:]), action.dtype)

    def corrupted(attack: Attack, numbers, payload, stream, slot: str):
        truth = trace("World.truth", world.truth, params, inner, t, context)
        attacker = _arrays(trace("Attack.init", attack.init, numbers, stream))

        def corrupt(numbers, attacker, stream, t, payload, *rest):
            params, inner, context, action, play, truth, algorithm, state, note = rest

            def sample(other):
                return world.reward(params, inner, stream.child("reward"), t, context, other)

            seen = Seen(t, context, action, play, truth, algorithm, state, note, sample)
            return attack.corrupt(numbers, attacker, stream, t, payload, seen)

        rest = (params, inner, context, action, play, truth, case.algorithm, state, note)
        after, hit, attacker_after = trace(
            "Attack.corrupt", attack.corrupt, numbers, attacker, stream, t, payload, *rest, follows=corrupt
        )
        if jax.tree.map(lambda x: x.shape, after) != jax.tree.map(lambda x: x.shape, payload):
            raise trace.wrong(
                "Attack.corrupt", attack.corrupt,
                f"must return {slot} as it receives them, {_shape_text(payload)}, it returns {_shape_text(after)}",
            )  # fmt: skip
        if not (isinstance(hit, bool) or (_is_array(hit) and hit.dtype == jnp.bool_)):
            raise trace.wrong(
                "Attack.corrupt", attack.corrupt,
                f"must return as `hit` False or a mask of agents, booleans, it returns {_shape_text(hit)}",
            )  # fmt: skip
        trace.same_state("Attack.corrupt", attack.corrupt, "init", attacker, attacker_after)
        return after

    if parts.reward_attack is not None:
        reward = corrupted(parts.reward_attack, case.reward_adversary, reward, draws.child("contamination"), "rewards")
    message = trace(
        "Program.encode", program.encode, case.algorithm, note, alg.child("encode"), t, context, action, reward, play
    )
    if parts.message_attack is not None:
        message = corrupted(parts.message_attack, case.message_adversary, message, draws.child("attack"), "messages")
    message = trace("Program.relay", program.relay, case.algorithm, alg.child("relay"), whole, message, play)
    given = (case.algorithm, state, alg.child("update"), whole, note, message)
    if used is None and slots == 1:  # the engine passes the number itself
        after, released = trace("Program.update", program.update, *given, follows=lambda *xs: program.update(*xs, 1))
    else:
        after, released = trace("Program.update", program.update, *given, whole)
    trace.same_state("Program.update", program.update, "init", state, after)
    after = trace("Program.close", program.close, case.algorithm, state, alg.child("close"), whole)
    trace.same_state("Program.close", program.close, "init", state, after)
    if view is not None:
        trace("Guarantee.view", view, message, released, action)
    return trace.doubts


def _check_action(trace: Examination, act, action, used, slots: int, agents: int | None) -> None:
    rows = f"[P] (here {slots}){'' if agents is None else f', [P, N] (here {slots}, {agents})'} or [1]"
    if not _fits(action, slots, agents, _is_array(action) and len(action.shape) == 2):
        raise trace.wrong("Program.act", act, f"must return actions of shape {rows}, it returns {_shape_text(action)}")
    if not jnp.issubdtype(action.dtype, jnp.integer):
        raise trace.wrong(
            "Program.act", act,
            f"must return arms as integers, it returns actions of {action.dtype}: .astype(jnp.int32)",
        )  # fmt: skip
    if used is not None and not _is_scalar(used, jnp.integer):
        raise trace.wrong(
            "Program.act", act,
            f"must return as `used` None or how many plays it uses, one int32, it returns {_shape_text(used)}",
        )  # fmt: skip


def _check_score(trace: Examination, world: World, score, slots: int, agents: int | None) -> None:
    if not isinstance(score, Score):
        raise trace.wrong("World.score", world.score, f"must return a Score, it returns {_what(score)}")
    if score.arm is None and score.regret is None:
        raise trace.wrong("World.score", world.score, "must give arm, regret or both, it gives neither")
    kinds: dict[str, Any] = {"arm": jnp.integer, "regret": jnp.number}
    for name, kind in kinds.items():
        value = getattr(score, name)
        if value is None:
            continue
        right = _is_array(value) and value.shape[:1] in ((slots,), (1,)) and jnp.issubdtype(value.dtype, kind)
        if not right or len(value.shape) > (1 if name == "arm" or agents is None else 2):
            words = "integers" if name == "arm" else "numbers"
            wanted = _row(slots, None if name == "arm" else agents)
            raise trace.wrong(
                "World.score", world.score, f"must give {name} of {wanted}, {words}, it gives {_shape_text(value)}"
            )
    if score.arm is not None and not world.num_arms:
        raise trace.wrong(
            "World.score", world.score, "gives arms to count, but World.num_arms is 0: say how many arms there are"
        )


def _check_diagnostics(trace: Examination, program: Program, params, state) -> None:
    found = trace("Program.diagnose", program.diagnose, params, state)
    if not isinstance(found, dict):
        raise trace.wrong("Program.diagnose", program.diagnose, f"must return a dict of numbers, not {_what(found)}")
    for name, value in found.items():
        if not isinstance(name, str) or not (_is_scalar(value, jnp.number) or _is_scalar(value, jnp.bool_)):
            raise trace.wrong(
                "Program.diagnose", program.diagnose,
                f"must return {{name: number}}, its entry {name!r} is {_shape_text(value)}",
            )  # fmt: skip


# ---------------------------------------------------------------------------- one group or one lane


def checked(
    label: str, algorithm: Algorithm, environment: Environment, parts: Parts, case: Case, schedule
) -> list[str]:
    """What is doubtful about a user's functions, a line each, after ValueError where one is malformed. Nothing for parts of this package."""
    claim = algorithm.guarantee
    if not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(algorithm.params)):
        check_claim(algorithm, label)
    view = claim.view if claim.model != "none" and is_own(claim.view) else None
    if view is None and not any(map(is_own, (parts.program, parts.world, parts.reward_attack, parts.message_attack))):
        return []
    leaves, treedef = jax.tree.flatten(jax.tree.map(jax.typeof, case))
    slots, agents = max(span.slots for span in schedule), environment.facts.get("num_agents")
    return _doubts(label, parts, tuple(leaves), treedef, slots, view, agents)


@functools.lru_cache(maxsize=1024)
def _doubts(label: str, parts: Parts, leaves: tuple, treedef, slots: int, view, agents) -> list[str]:
    case = jax.tree.unflatten(treedef, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves])
    if slots > 1:  # a lane is begun from the shapes of a window of one play
        check_functions(label, parts, case, 1, view, agents)
    return check_functions(label, parts, case, slots, view, agents)


def rebuilt(cells) -> list[str]:
    """Labels whose algorithms are built anew at every point, a line each: each would be compiled again."""
    programs: dict = {}
    for cell in cells:
        if not is_own(cell.algorithm.program):
            continue
        known = programs.setdefault((cell.label, repr(cell.algorithm.version)), {})
        known.setdefault(cell.algorithm.program, cell.algorithm)
    found = {}
    for (label, _), known in programs.items():
        if len(known) > 1:
            algorithm = next(iter(known.values()))
            found[label] = (
                f"{label}: {len(known)} programs of one version {algorithm.version}, compiled {len(known)} times: decorate the "
                f"builder with functools.cache, and name in `version` the static values that it takes"
                f"{_at(algorithm.program.act)}"
            )
    return list(found.values())


def warn(doubts: list[str], stacklevel: int) -> None:
    """One warning a line."""
    for line in dict.fromkeys(doubts):
        warnings.warn(line, UserWarning, stacklevel=stacklevel + 1)


# ---------------------------------------------------------------------------- words


def _is_array(x) -> bool:
    return hasattr(x, "shape") and hasattr(x, "dtype")


def _is_traceable(x) -> bool:
    return isinstance(x, jax.Array | np.ndarray | np.generic | int | float | complex)


def _is_scalar(x, kind) -> bool:
    x = np.asarray(x) if isinstance(x, bool | int | float) else x
    return _is_array(x) and x.shape == () and jnp.issubdtype(x.dtype, kind)


def _fits(x, slots: int, agents: int | None, many: bool) -> bool:
    """Whether x has one entry for each play, or one for the window; many: one for each agent, too."""
    if not _is_array(x) or len(x.shape) != (2 if many else 1):
        return False
    return x.shape[0] in (slots, 1) and (not many or agents is None or x.shape[1] == agents)


def _abstract(x):
    if not _is_array(x):  # a number of Python stays what it is: it may be a shape
        return x
    aval = jax.typeof(x)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def _arrays(tree):
    """A tree whose numbers are arrays, as what is carried from play to play becomes one."""
    return jax.tree.map(lambda x: x if _is_array(x) else jax.eval_shape(lambda: jnp.asarray(x)), tree)


def _row(slots: int, agents: int | None) -> str:
    return f"shape [P] (here {slots})" if agents is None else f"shape [P, N] (here {slots}, {agents})"


def _array(x) -> str:
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"


def _shape_text(tree) -> str:
    """Types and shapes of a tree, short."""
    if _is_array(tree):
        return _array(tree)
    if hasattr(tree, "_fields"):
        inside = ", ".join(f"{name}={_shape_text(x)}" for name, x in zip(tree._fields, tree, strict=True))
        return f"{type(tree).__name__}({inside})"
    if isinstance(tree, tuple | list):
        return f"({', '.join(map(_shape_text, tree))})"
    return _what(tree)


def _what(x) -> str:
    """A value as a message names it."""
    if x is None:
        return "None"
    if _is_array(x):
        return f"an array {_array(x)}"
    if hasattr(x, "_fields"):
        return f"{_a(type(x))} alone"
    if inspect.isfunction(x):
        return f"the function {x.__name__}"
    text = repr(x)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(x).__name__})"


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _named(factory) -> str:
    while isinstance(factory, functools.partial):
        factory = factory.func
    return getattr(factory, "__name__", repr(factory))


def _at(function) -> str:
    where = "" if function is None else written_at(function)
    return f" ({where})" if where else ""


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def _own_line(error: BaseException) -> str:
    """The last line of a user's file in a traceback; nothing where it never was in one."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and not frame.filename.startswith((PACKAGE, "<"))
    ]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""

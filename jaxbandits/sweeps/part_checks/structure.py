"""Errors about parts that break the protocol, raised before anything runs, with the author's file and line.

First the fields of what factories return are checked. Then every function of a user's part is traced on abstract
values: nothing is compiled and nothing is played. Parts of this package are not traced here.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits.contract import runs_own_code
from jaxbandits.protocol import (
    Adversary,
    Algorithm,
    Attack,
    Case,
    Environment,
    Guarantee,
    Hints,
    Program,
    Rewards,
    Span,
    World,
)
from jaxbandits.source_places import place_of_error, place_of_function
from jaxbandits.spans import batch_length
from jaxbandits.sweeps.part_checks.one_window import check_functions
from jaxbandits.sweeps.wording import a_kind, at_line, first_line, in_brackets, named, what
from jaxbandits.validation import nearest, shown
from jaxbandits.window import Parts

# The words that Guarantee.model, Guarantee.unit and Rewards.outside may hold.
MODELS = ("none", "local", "central", "shuffle", "federated")
UNITS = ("loss_vector", "reward", "user", "message")
OUTSIDE_RULES = ("clip", "zero", "accept")


def check_part(part: Any, kind: type, factory: Any) -> None:
    """Raise ValueError unless the factory of an environment or adversary returned one that is well formed."""
    if not isinstance(part, kind):
        raise ValueError(f"{named(factory)} must return {a_kind(kind)}, it returned {what(part)}{at_line(factory)}")
    if isinstance(part, Environment):
        _check_environment(part)
    elif isinstance(part, Adversary):
        _check_functions(part.attack, Attack, "Adversary.attack", ("law", "per_arm"))
        _check_config(part, "Adversary")
        _check_numbers(part.params, "Adversary.params", part.attack.init)


def _check_environment(part: Environment) -> None:
    _check_functions(part.world, World, "Environment.world", ("num_arms", "baseline", "seeded", "law"))
    where = at_line(part.world.reward)
    if not isinstance(part.facts, dict):
        raise ValueError(f"Environment.facts must be a dict such as {{'num_arms': 2}}, not {what(part.facts)}{where}")
    _check_config(part, "Environment")
    _check_numbers(part.params, "Environment.params", part.world.reward)
    counted, arms = part.world.num_arms, part.facts.get("num_arms")
    for name, value, least in (("World.num_arms", counted, 0), ("facts['num_arms']", arms, 1)):
        if value is not None and (not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least):
            raise ValueError(f"{name} = {value!r} must be an integer of at least {least}{where}")
    if arms is not None and counted and arms != counted:
        raise ValueError(f"facts['num_arms'] = {arms} disagrees with World.num_arms = {counted}{where}")
    limit = part.facts.get("max_horizon")
    if limit is not None and (not isinstance(limit, int | np.integer) or isinstance(limit, bool) or limit < 1):
        raise ValueError(f"facts['max_horizon'] = {limit!r} must be an integer of at least 1{where}")
    names = part.facts.get("arm_names")
    if names is not None and (not isinstance(names, tuple | list) or len(names) != (arms or counted)):
        raise ValueError(f"facts['arm_names'] = {shown(names)} must be a name for each arm{where}")
    _check_range(part.facts, where)
    if "means" in part.facts:
        check_means(part)


def _check_range(facts: dict[str, Any], where: str) -> None:
    """Check the facts `reward_range`, (low, high), and `reward_bound`, the largest size of a reward."""
    pays, bound = facts.get("reward_range", (0.0, 0.0)), facts.get("reward_bound", 0.0)
    pair = isinstance(pays, tuple | list | np.ndarray) and len(pays) == 2 and all(map(_is_number, pays))
    if not pair or not pays[0] <= pays[1]:
        raise ValueError(f"facts['reward_range'] = {pays!r} must be two numbers, (low, high) with low <= high{where}")
    if not _is_number(bound) or np.ndim(bound) or not bound >= 0:
        raise ValueError(f"facts['reward_bound'] = {bound!r} must be a number of at least 0{where}")


def check_means(environment: Environment) -> None:
    """Raise ValueError unless an environment whose pulls are counted for regret gives the mean of each arm."""
    facts, world = environment.facts, environment.world
    arms = facts.get("num_arms", world.num_arms)
    if "means" in facts:
        try:
            means = np.asarray(facts["means"], np.float64)
        except (TypeError, ValueError):
            means = np.empty((0, 0))
        if means.ndim != 1 or not np.isfinite(means).all() or (arms and len(means) != arms):
            raise ValueError(
                f"facts['means'] = {shown(facts['means'])} must be {arms or 'as many'} finite numbers, one an arm"
                f"{at_line(world.score)}"
            )
    else:
        raise ValueError(
            "the environment counts pulls and gives no regret: put the arms' means into its facts, facts['means']"
            f"{at_line(environment.world.score)}"
        )


def check_algorithm(algorithm: Any, label: str, factory: Callable[..., Any] | None = None) -> None:
    """Raise ValueError unless a factory returned a well-formed Algorithm. Nothing is traced here."""
    if not isinstance(algorithm, Algorithm):
        raise ValueError(
            f"{label}: its factory must return an Algorithm, it returned {what(algorithm)}{at_line(factory)}"
        )
    _check_functions(algorithm.program, Program, f"{label}: Algorithm.program", ("hints", "lockstep", "float32_plays"))
    where = at_line(algorithm.program.act)
    if not isinstance(algorithm.program.hints, Hints):
        raise ValueError(f"{label}: Program.hints must be a Hints, not {what(algorithm.program.hints)}{where}")
    if not isinstance(algorithm.program.lockstep, bool):
        raise ValueError(
            f"{label}: Program.lockstep must be True or False, not {what(algorithm.program.lockstep)}{where}"
        )
    plays = algorithm.program.float32_plays
    if plays is not None and not (isinstance(plays, int) and plays > 0):
        raise ValueError(f"{label}: Program.float32_plays must be a number of plays or None, not {what(plays)}{where}")
    if not isinstance(algorithm.program.hints.kept, tuple):
        raise ValueError(
            f"{label}: Hints.kept must be a tuple of names, not {what(algorithm.program.hints.kept)}{where}"
        )
    schedule = algorithm.schedule
    if not isinstance(schedule, tuple) or not schedule or not all(isinstance(span, Span) for span in schedule):
        raise ValueError(
            f"{label}: Algorithm.schedule must be a tuple of Span, such as (Span(1, horizon),), "
            f"not {what(schedule)}{where}"
        )
    for span in schedule:
        for name, least in (("slots", 1), ("repeats", 0), ("length", 0)):
            value = getattr(span, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise ValueError(f"{label}: Span.{name} = {value!r} must be an integer of at least {least}{where}")
    horizon = algorithm.config.get("horizon") if isinstance(algorithm.config, dict) else None
    offered = sum(span.repeats * batch_length(span) for span in schedule)
    if isinstance(horizon, int) and all(span.full for span in schedule) and offered < horizon:
        raise ValueError(f"{label}: Algorithm.schedule offers {offered} plays, and the horizon is {horizon}{where}")
    version = algorithm.version
    if not (isinstance(version, tuple) and version and isinstance(version[0], str)):
        raise ValueError(
            f"{label}: Algorithm.version must be a tuple (name, version, static values), not {what(version)}{where}"
        )
    read = algorithm.rewards
    if read is not None and not isinstance(read, Rewards):
        raise ValueError(
            f"{label}: Algorithm.rewards must be a Rewards, such as Rewards(0.0, 1.0, 'clip'), not {what(read)}{where}"
        )
    if read is not None and not (_is_number(read.low) and _is_number(read.high) and read.low < read.high):
        raise ValueError(
            f"{label}: Rewards.low = {read.low!r} must be a number below Rewards.high = {read.high!r}{where}"
        )
    if read is not None and read.outside not in OUTSIDE_RULES:
        choices = ", ".join(map(repr, OUTSIDE_RULES))
        hint = nearest(str(read.outside), OUTSIDE_RULES)
        raise ValueError(f"{label}: Rewards.outside = {read.outside!r} must be one of {choices}{hint}{where}")
    if not isinstance(algorithm.config, dict):
        raise ValueError(
            f"{label}: Algorithm.config must be a dict of the arguments (jaxbandits.validation.factory keeps them), "
            f"not {what(algorithm.config)}{where}"
        )
    _check_numbers(algorithm.params, f"{label}: Algorithm.params", algorithm.program.act)
    _check_guarantee(algorithm, label, where)


def _check_guarantee(algorithm: Algorithm, label: str, where: str) -> None:
    guarantee = algorithm.guarantee
    if not isinstance(guarantee, Guarantee):
        raise ValueError(
            f"{label}: Algorithm.guarantee must be a Guarantee (Guarantee() where nothing is private), not "
            f"{what(guarantee)}{where}"
        )
    for name, known in (("model", MODELS), ("unit", UNITS)):
        value = getattr(guarantee, name)
        if value not in known:
            choices, hint = ", ".join(map(repr, known)), nearest(str(value), known)
            raise ValueError(f"{label}: Guarantee.{name} = {value!r} must be one of {choices}{hint}{where}")
    for name, takes in (("spend", "params"), ("view", "message, released, action"), ("events", "params")):
        value = getattr(guarantee, name)
        if not callable(value):
            raise ValueError(f"{label}: Guarantee.{name} must be a function of ({takes}), not {what(value)}{where}")
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
    """Raise ValueError unless a guarantee's `spend` and `events` return what they should on the algorithm's numbers."""
    from jaxbandits.mechanisms.composition import Event

    guarantee = algorithm.guarantee
    for name, function in (("events", guarantee.events), ("spend", guarantee.spend)):
        try:
            value = function(algorithm.params)
            value = tuple(value)
        except Exception as error:
            raise ValueError(
                f"{label}: Guarantee.{name}(params) fails: {type(error).__name__}: {first_line(error)}"
                f"{in_brackets(place_of_error(error) or place_of_function(function))}"
            ) from error
        if name == "events" and not all(isinstance(event, Event) for event in value):
            raise ValueError(
                f"{label}: Guarantee.events must return a tuple of Event, such as "
                f"(laplace_event('reward', 1.0, scale),), not {what(value)}{at_line(function)}"
            )
        if name == "spend" and not (len(value) == 2 and all(np.ndim(x) == 0 and _is_number(x) for x in value)):
            raise ValueError(
                f"{label}: Guarantee.spend must return (epsilon, delta), two numbers, not {what(value)}"
                f"{at_line(function)}"
            )


def _check_functions(part: Any, kind: type, name: str, others: tuple[str, ...]) -> None:
    """Raise ValueError unless `part` is of that kind and all its fields but `others` are functions."""
    if not isinstance(part, kind):
        raise ValueError(f"{name} must be {a_kind(kind)}, not {what(part)}")
    fields: Any = part
    some_function = next((f for f in fields if inspect.isfunction(f)), None)
    for field in fields._fields:
        value = getattr(fields, field)
        if not callable(value) and field not in others:
            raise ValueError(
                f"{name}: {kind.__name__}.{field} must be a function, not {what(value)}{at_line(some_function)}"
            )


def _check_config(part: Any, name: str) -> None:
    if not isinstance(part.config, dict):
        raise ValueError(f"{name}.config must be a dict of the arguments, not {what(part.config)}")


def _check_numbers(params: Any, name: str, function: Callable[..., Any]) -> None:
    leaves = jax.tree.leaves(params, is_leaf=lambda x: x is None)
    if all(map(_is_number, leaves)):
        return
    paths, _ = jax.tree_util.tree_flatten_with_path(params, is_leaf=lambda x: x is None)
    path, value = next((path, value) for path, value in paths if not _is_number(value))
    raise ValueError(
        f"{name}{jax.tree_util.keystr(path)} = {value!r} must be a number or an array of numbers: pass text and None "
        f"to the cached builder as its arguments{at_line(function)}"
    )


def _is_number(x: Any) -> bool:
    if isinstance(x, int | float | jax.Array):  # a traced number is a jax.Array
        return True
    if x is None or isinstance(x, str | bytes) or callable(x):
        return False
    return np.asarray(x).dtype.kind in "biuf"


def checked(
    label: str, algorithm: Algorithm, environment: Environment, parts: Parts, case: Case, schedule: Sequence[Span]
) -> list[str]:
    """What is doubtful about a user's functions, a line each; empty for parts of this package.

    ValueError where a function or a guarantee is malformed.
    """
    claim = algorithm.guarantee
    own_claim = runs_own_code(claim.spend) or runs_own_code(claim.events)
    if own_claim and not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(algorithm.params)):
        check_claim(algorithm, label)
    view = claim.view if claim.model != "none" and runs_own_code(claim.view) else None
    if view is None and not any(
        map(runs_own_code, (parts.program, parts.world, parts.reward_attack, parts.message_attack))
    ):
        return []
    leaves, treedef = jax.tree.flatten(jax.tree.map(jax.typeof, case))
    slots, agents = max(span.slots for span in schedule), environment.facts.get("num_agents")
    return _doubts(label, parts, tuple(leaves), treedef, slots, view, agents)


def _doubts(
    label: str,
    parts: Parts,
    leaves: tuple[Any, ...],
    treedef: Any,
    slots: int,
    view: Callable[..., Any] | None,
    agents: int | None,
) -> list[str]:
    case = jax.tree.unflatten(treedef, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves])
    if slots > 1:  # a lane is begun from the shapes of a window of one play
        check_functions(label, parts, case, 1, view, agents)
    return check_functions(label, parts, case, slots, view, agents)


def rebuilt(cells: Iterable[Any]) -> list[str]:
    """A line for every label whose program is built anew at every point, and would be compiled again at each."""
    programs: dict[tuple[str, str], dict[Program, Algorithm]] = {}
    for cell in cells:
        if not runs_own_code(cell.algorithm.program):
            continue
        known = programs.setdefault((cell.label, repr(cell.algorithm.version)), {})
        known.setdefault(cell.algorithm.program, cell.algorithm)
    lines = {}
    for (label, _), known in programs.items():
        if len(known) > 1:
            algorithm = next(iter(known.values()))
            lines[label] = (
                f"{label}: {len(known)} programs of one version {algorithm.version}, compiled {len(known)} times: "
                f"decorate the builder with functools.cache, and name in `version` the static values that it takes"
                f"{at_line(algorithm.program.act)}"
            )
    return list(lines.values())


def warn(doubts: list[str], stacklevel: int) -> None:
    """Give one warning for each different line."""
    for line in dict.fromkeys(doubts):
        warnings.warn(line, UserWarning, stacklevel=stacklevel + 1)

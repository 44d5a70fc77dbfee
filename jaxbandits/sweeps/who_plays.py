"""Which algorithm plays where: what it reads, as its factory declares it, against what an environment offers.

Nothing is built or traced. `jaxbandits.plays` answers for names as well.
"""

from functools import cache
from typing import Any, NamedTuple

from jaxbandits import algorithms
from jaxbandits.declared import plays_on_by_names
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.recipe import Recipe, recipe_of

# What an environment shows -> what it offers an algorithm, the nearest first, and that in words
OFFERS: dict[str, tuple[tuple[str, ...], str]] = {
    "nothing": (("arms",), "shows nothing before a play"),
    "row": (("row", "arms"), "shows one row of features for all arms"),
    "decision set": (("decision set", "arms"), "shows features of each arm"),
    "fixed set": (("fixed set", "decision set", "arms"), "shows actions that never change"),
    "advice": (("advice", "arms"), "shows the advice of experts"),
    "agents": (("agents",), "has agents, of which each plays an arm"),
}
# What an algorithm reads -> that in words, and the environments that fit
READS = {
    "arms": ("plays one arm at a time", "bernoulli_arms"),
    "row": ("reads one row of features for all arms", "classification"),
    "decision set": ("reads dim features of each arm", "contextual_linear and linear_arms"),
    "fixed set": ("plans with actions that never change", "linear_arms"),
    "advice": ("reads the advice of num_experts experts", "rotating_experts"),
    "agents": ("plays for num_agents agents", "federated_linear"),
}
BOUND_KINDS = ("num_agents", "num_experts")  # arguments that tell what is read also where they are given
SUGGESTED = 3  # algorithms that a refusal names


class Plays(NamedTuple):
    """Whether an algorithm plays in an environment. It is true or false as `ok` is."""

    ok: bool
    reason: str  # why not, who does play there, and where the algorithm would; empty where it plays

    def __bool__(self) -> bool:
        return self.ok


def what_is_shown(environment: Environment) -> str:
    """A key of `OFFERS`: as the environment's facts say, or by the names of the others."""
    kind = environment.facts.get("shows") or plays_on_by_names(environment.facts)
    return "nothing" if kind == "arms" else kind


def what_is_read(given: Recipe | Algorithm) -> tuple[str, ...]:
    """Keys of `READS`, the likeliest first: an environment must offer one of them.

    What is declared counts, then what a conversion's base reads, then the names of arguments that must be given. Of a
    user's own part without such names nothing is known.
    """
    if isinstance(given, Algorithm):
        kind, config = given.plays_on, given.config
        if kind is None:
            kind = plays_on_by_names([name for name in BOUND_KINDS if config.get(name) is not None])
            return tuple(READS) if kind == "arms" else (kind,)
        more = {"fixed set": ["arms"], "row": ["decision set"] if "models" in config else []}
        return (kind, *more.get(kind, []))
    kind, takes, bound = getattr(given.function, "plays_on", None), given.arguments, given.bound
    if not isinstance(kind, str):
        kind = plays_on_by_names([*given.needed, *(name for name in BOUND_KINDS if bound.get(name) is not None)])
        if kind == "arms":
            return _read_by_base(given) if "base" in takes else tuple(dict.fromkeys((plays_on_by_names(takes), *READS)))
    if kind == "fixed set" and bound.get("actions") is not None:
        return kind, "arms"  # it is told what it would read
    shared = bound.get("models") == "shared" or bound.get("statistics") == "shuffle"  # a shuffler has one for all arms
    if "models" not in takes or shared or "row" not in _read_by_base(given):
        return (kind,)
    return ("row", kind) if bound.get("models") == "per_arm" else (kind, "row")


def _read_by_base(given: Recipe) -> tuple[str, ...]:
    """What the base of a conversion reads; everything where there is none."""
    bases = given.bound.get("bases")
    base = bases[0] if isinstance(bases, list | tuple) and bases else given.base
    reads = what_is_read(recipe_of(base)) if callable(base) else tuple(READS)
    tells = "models" in given.arguments and given.bound.get("models") != "shared"
    # a base that is told nothing, and binds nothing, has one model for all arms
    return reads if tells or reads[0] == "row" else tuple(kind for kind in reads if kind != "row")


def offers(shown: str, reads: tuple[str, ...]) -> bool:
    """Whether there is, where this is shown, one of the things that an algorithm reads."""
    return not set(reads).isdisjoint(OFFERS[shown][0])


@cache
def players(shown: str) -> tuple[str, ...]:
    """The algorithms that play where this is shown: those that read the most of it first, then those that ask least."""
    offered, found = OFFERS[shown][0], list[Any]()
    for name in algorithms.__all__:
        recipe = recipe_of(getattr(algorithms, name))
        ranks = [offered.index(kind) for kind in what_is_read(recipe) if kind in offered]
        if ranks and "base" not in recipe.arguments:
            found.append((min(ranks), len(recipe.needed), len(recipe.arguments), name))
    return tuple(name for *_, name in sorted(found))


def judge_pair(given: Recipe | Algorithm, environment: Environment) -> Plays:
    """Whether an algorithm plays in an environment; the reason says what to change."""
    name = given.name if isinstance(given, Recipe) else given.config.get("name") or given.version[0]
    facts, shown, reads = environment.facts, what_is_shown(environment), what_is_read(given)
    if not offers(shown, reads):
        (needs, fitting), where = READS[reads[0]], environment.config.get("name", "this environment")
        words = OFFERS[shown][1]
        told = "" if "shows" in facts else ", as its facts say, of which none is 'shows'"
        first, second, third = players(shown)[:SUGGESTED]
        remedy = f"{name} plays on {fitting}"
        if shown == "row" and "decision set" in reads:
            told = ", so that one model for all arms would give each the same index"
            there = f"{name} plays on classification with view='blocks', {fitting}"
            remedy = f"give models='per_arm' to a learner that takes it; {there}"
        reason = f"{name} {needs}, and {where} {words}{told}: {remedy}; {first}, {second} and {third} play there"
        return Plays(False, reason)
    counted = environment.world.num_arms or facts.get("num_arms")
    if not counted and isinstance(given, Recipe) and "num_arms" in given.needed:
        remedy = "Environment.facts = {'num_arms': ...}"
        return Plays(False, f"{name} needs num_arms, and the environment's facts do not hold it: {remedy}")
    return Plays(True, "")

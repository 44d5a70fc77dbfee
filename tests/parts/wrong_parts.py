"""Wrong parts of every kind, and all that a sweep and `jb.check` say of each of them before anything is played."""

import itertools
import linecache
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from jaxbandits import checking, protocol
from jaxbandits.checking.check import findings_of
from jaxbandits.checking.subject import Subject
from jaxbandits.mechanisms import guarantee, laplace_event
from jaxbandits.mechanisms.composition import view_message
from jaxbandits.sweeps.engines import calls
from jaxbandits.sweeps.plan import plan
from jaxbandits.validation import factory

HORIZON = 20


class Params(NamedTuple):
    noise: Any = 1.0
    mechanism_scale: Any = 1.0


class State(NamedTuple):
    mean: Any  # [K]
    pulls: Any  # [K] int32


# ---------------------------------------------------------------------------- sound parts


def init(params, draws):
    return State(jnp.zeros(3, draws.dtype), jnp.zeros(3, jnp.int32))


def act(params, state, draws, t, context):
    arm = (draws.uniform(t[0]) * 3).astype(jnp.int32)
    return jnp.full(t.shape, arm), None, arm


def encode(params, note, draws, t, context, action, reward, play):
    return jnp.clip(reward[0], 0, 1) + params.noise * params.mechanism_scale * draws.laplace(t[0])


def update(params, state, draws, t, note, message, used):
    return State(state.mean.at[note].add(message), state.pulls.at[note].add(1)), ()


def relay(params, draws, t, message, play):
    return message * 1


def close(params, state, draws, t):
    return state._replace(mean=state.mean * 1)


def diagnose(params, state):
    return {"best": state.mean.max()}


def rest(params, state):
    return jnp.where(state.pulls.sum() > 9, 0, -1).astype(jnp.int32)


def world_init(params, draws):
    return jnp.int32(0)


def observe(params, state, draws, t):
    return (), state


def reward(params, state, draws, t, context, action):
    return (draws.uniform(t) < jnp.asarray(params)[action]).astype(draws.dtype)


def score(params, state, t, context, action):
    return protocol.Score(arm=action)


def truth(params, state, t, context):
    return protocol.Truth(means=jnp.asarray(params))


def attack_init(params, draws):
    return jnp.int32(0)


def corrupt(params, state, draws, t, payload, view):
    return payload, False, state


def attack_diagnose(params, state):
    return {"hits": state}


def per_arm(state, arms):
    return state


def spend(params):
    return 1.0 / params.mechanism_scale, 0.0


def events(params):
    return (laplace_event("reward", 1.0, params.noise * params.mechanism_scale),)


def view(message, released, action):
    return message


CLAIM = guarantee("local", "reward", events, view_message)
PROGRAM = protocol.Program(
    init=init, act=act, encode=encode, update=update, relay=relay, close=close, diagnose=diagnose,
    hints=protocol.Hints(rest=rest),
)  # fmt: skip
ALGORITHM = protocol.Algorithm(PROGRAM, (), Params(), CLAIM, ("own", 1, ()), {}, protocol.Rewards(0.0, 1.0, "clip"))
WORLD = protocol.World(init=world_init, observe=observe, reward=reward, score=score, truth=truth, num_arms=3)
MEANS = np.array([0.2, 0.5, 0.8])
ENVIRONMENT = protocol.Environment(WORLD, MEANS, {"num_arms": 3, "means": MEANS, "reward_range": (0.0, 1.0)}, None, {})
ATTACK = protocol.Attack(attack_init, corrupt, diagnose=attack_diagnose, per_arm=per_arm)
ADVERSARY = protocol.Adversary(ATTACK, (), None, {})
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"Program.{x.__name__}": x for x in (init, act, encode, update, relay, close, diagnose)},
    "Hints.rest": rest, "World.init": world_init,
    **{f"World.{x.__name__}": x for x in (observe, reward, score, truth)},
    "Attack.init": attack_init, "Attack.corrupt": corrupt, "Attack.diagnose": attack_diagnose,
    "Attack.per_arm": per_arm, "Guarantee.spend": spend, "Guarantee.events": events, "Guarantee.view": view,
}  # fmt: skip


class Wrong(NamedTuple):
    """A wrong part, and what it stands beside."""

    algorithm: Any
    environment: Any = jb.environments.bernoulli_arms(means=MEANS)
    others: Any = MappingProxyType({})  # adversaries


def own(schedule=None, **changes):
    """A factory of the sound algorithm with some of its fields replaced, as a user writes it."""

    def own(*, num_arms, horizon):
        spans = (protocol.Span(1, horizon),) if schedule is None else schedule
        return ALGORITHM._replace(**{"schedule": spans, **changes})

    return factory(own)


def with_function(name: str, function: Any, slot: str = "reward_adversary") -> Wrong:
    """Sound parts but for one function of one of them."""
    kind, field = name.split(".")
    if kind == "Program":
        return Wrong(own(program=PROGRAM._replace(**{field: function})))
    if kind == "Hints":
        return Wrong(own(program=PROGRAM._replace(hints=protocol.Hints(rest=function))))
    if kind == "Guarantee":
        return Wrong(own(guarantee=CLAIM._replace(**{field: function})))
    if kind == "World":
        return Wrong(own(), ENVIRONMENT._replace(world=WORLD._replace(**{field: function})))
    attack = ADVERSARY.attack._replace(**{field: function})
    return Wrong(own(), ENVIRONMENT, {slot: ADVERSARY._replace(attack=attack)})


# ---------------------------------------------------------------------------- what may be wrong with a function

SLOTTED = {  # of a schedule with windows of several plays
    "one action too few": ("Program.act", lambda *given: (jnp.zeros(len(given[3]) - 1, jnp.int32), None, 0)),
    "floats": ("Program.act", lambda *given: (given[3].astype(jnp.float32), None, 0)),
    "all rewards": ("Program.encode", lambda *given: given[6]),
    "one reward": ("World.reward", lambda *given: jnp.zeros(1)),
    "a context of one play": ("World.observe", lambda *given: (given[3][:1], given[1])),
    "no score": ("World.score", lambda *given: protocol.Score()),
    "a float arm": ("World.score", lambda *given: protocol.Score(arm=given[4] / 2)),
    "regret of nothing": ("World.score", lambda *given: protocol.Score(arm=given[4], regret=jnp.zeros(()))),
    "an unread truth": ("World.truth", lambda *given: None),
    "used a mask": ("Program.act", lambda *given: (given[3] % 3, given[3] > 0, 0)),
}


def returning(function: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *given: change(function(*given))


def results(function: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The function with another result."""
    for name, value in {
        "None": None, "text": "text", "a number": 1.5, "a dict": {"x": "y"}, "a taken name": {"regret": 1.0},
        "seven": np.zeros(7, np.float32), "a table": np.zeros((1, 3), np.int32),
    }.items():  # fmt: skip
        yield f"returns {name}", lambda *given, value=value: value


def components(function: Callable[..., Any], number: int) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The function with one of its results replaced, one too few, and one too many."""
    yield "one result too few", returning(function, lambda values: values[:-1])
    yield "one result too many", returning(function, lambda values: (*values, 0))
    yield "a list of results", returning(function, list)
    for i, (name, value) in itertools.product(range(number), {
        "None": None, "text": "text", "a number": 1.5, "a mask": np.ones(1, bool), "seven": np.zeros(7, np.int32),
        "a table": np.zeros((1, 1), np.int32),
    }.items()):  # fmt: skip
        yield f"result {i} is {name}", returning(function, lambda v, i=i, x=value: (*v[:i], x, *v[i + 1 :]))


def drifts(function: Callable[..., Any], part: Callable[[Any], Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The function with a state of another form. part: the results with a changed state."""
    for name, change in {
        "half precision": lambda x: jax.tree.map(lambda y: y.astype(jnp.float16), x),
        "other integers": lambda x: jax.tree.map(lambda y: y.astype(jnp.uint8), x),
        "a further axis": lambda x: jax.tree.map(lambda y: y[None], x),
        "a bare tuple": lambda x: tuple(jax.tree.leaves(x)),
        "Python's number": lambda x: 0,
    }.items():
        yield f"state: {name}", returning(function, lambda v, change=change: part(v, change))


def impure(function: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The function with something in it that no lane owns, or that fails."""
    number = itertools.count()

    def with_noise(values, noise):
        return jax.tree.map(lambda x: x + jnp.asarray(noise).astype(jnp.asarray(x).dtype), values)

    def numpy_noise(*given):
        return with_noise(function(*given), np.random.rand() * 1e8)

    def counter(*given):
        return with_noise(function(*given), next(number))

    def constant_key(*given):
        return with_noise(function(*given), 5 * jax.random.uniform(jax.random.key(0)))

    def key_in_a_loop(*given):
        def more(i, total):
            return total + jax.random.uniform(jax.random.fold_in(jax.random.key(3), i))

        return with_noise(function(*given), jax.lax.fori_loop(0, 3, more, jnp.float32(0)))

    def key_beside_a_carry(*given):
        leaves = [jnp.asarray(x, jnp.float32).sum() for x in jax.tree.leaves(given) if hasattr(x, "dtype")]

        def more(carry):
            return carry[0] + 1, carry[1] + jax.random.normal(jax.random.key(7))

        drawn = jax.lax.while_loop(lambda carry: carry[0] < 3, more, (jnp.int32(0), sum(leaves, jnp.float32(0))))[1]
        return with_noise(function(*given), drawn)

    def attribute(*given):
        return function(*given).nothing_of_that_name

    def branches(*given):
        return function(*given) if jnp.asarray(jax.tree.leaves(given)[0]) > 3 else None

    def raises(*given):
        raise ValueError("a message\nof two lines")

    for wrong in (numpy_noise, counter, constant_key, key_in_a_loop, key_beside_a_carry, attribute, branches, raises):
        yield wrong.__name__, wrong


def of_functions() -> Iterator[tuple[str, Wrong]]:
    """Every function of every part, wrong in every way that there is for it."""
    arguments = {
        "Program.init": 2, "Program.act": 5, "Program.encode": 8, "Program.update": 7, "Program.relay": 5,
        "Program.close": 4, "Program.diagnose": 2, "Hints.rest": 2, "World.init": 2, "World.observe": 4,
        "World.reward": 6, "World.score": 5, "World.truth": 4, "Attack.init": 2, "Attack.corrupt": 6,
        "Attack.diagnose": 2, "Attack.per_arm": 2, "Guarantee.spend": 1, "Guarantee.events": 1, "Guarantee.view": 3,
    }  # fmt: skip
    several = {"Program.act": 3, "Program.update": 2, "World.observe": 2, "Attack.corrupt": 3, "Guarantee.spend": 2}
    states: dict[str, Callable[..., Any]] = {
        "Program.update": lambda v, change: (change(v[0]), v[1]), "Program.close": lambda v, change: change(v),
        "World.observe": lambda v, change: (v[0], change(v[1])),
        "Attack.corrupt": lambda v, change: (*v[:2], change(v[2])), "Attack.per_arm": lambda v, change: change(v),
    }  # fmt: skip
    for name, function in FUNCTIONS.items():
        wrong: list[tuple[str, Any]] = [("is None", None), ("is a number", 3), ("is text", "text"), ("is a type", int)]
        for number in {0, 1, arguments[name] - 1, arguments[name] + 1} - {arguments[name]}:
            names = ", ".join(f"x{i}" for i in range(number))
            wrong.append((f"takes {number}", eval(f"lambda {names}: None")))
        wrong.append(("takes names only", eval("lambda *, params: None")))
        wrong += results(function)
        wrong += components(function, several[name]) if name in several else []
        wrong += drifts(function, states[name]) if name in states else []
        # what a guarantee spends is a number on the host: one with noise is another every time
        wrong += [x for x in impure(function) if not (name == "Guarantee.spend" and x[0] == "numpy_noise")]
        for words, value in wrong:
            yield f"{name} {words}", with_function(name, value)
            if name == "Attack.corrupt" and words.startswith(("state", "takes", "result", "one")):
                yield f"{name} on messages {words}", with_function(name, value, "message_adversary")
    for words, (name, function) in SLOTTED.items():
        made, windows = with_function(name, function), {"schedule": (protocol.Span(4, 5),)}
        if name.startswith("Program"):
            made = Wrong(own(program=PROGRAM._replace(**{name.split(".")[1]: function}), **windows))
        else:
            made = made._replace(algorithm=own(**windows))
        yield f"windows of 4: {name}, {words}", made


# ---------------------------------------------------------------------------- what may be wrong with a field

ODD = {
    "None": None, "a number": 1.5, "minus one": -1, "true": True, "text": "text", "a NaN": float("nan"),
}  # fmt: skip


def replaced(part: Any, field: str, value: Any) -> Any:
    """A part with a field, also one inside another, replaced."""
    first, _, inner = field.partition(".")
    if isinstance(part, dict):
        return {**part, first: value}
    return part._replace(**{first: replaced(getattr(part, first), inner, value) if inner else value})


def of_fields() -> Iterator[tuple[str, Wrong]]:
    """Every field of every part, with values that do not belong there."""
    of_algorithm = (
        "program", "params", "guarantee", "version", "config", "rewards", "program.hints", "program.lockstep",
        "program.float32_plays", "program.hints.kept", "rewards.low", "rewards.high", "rewards.outside",
        "guarantee.model", "guarantee.unit", "guarantee.scales", "guarantee.bound", "params.noise",
    )  # fmt: skip
    of_environment = (
        "world", "params", "facts", "config", "world.num_arms", "facts.num_arms", "facts.means", "facts.max_horizon",
        "facts.arm_names", "facts.reward_range", "facts.reward_bound",
    )  # fmt: skip
    for field, (words, value) in itertools.product(of_algorithm, ODD.items()):
        changed = replaced(ALGORITHM, field, value)
        yield f"Algorithm.{field} is {words}", Wrong(own(**{name: getattr(changed, name) for name in changed._fields
                                                           if name != "schedule"}))  # fmt: skip
    for words, value in ODD.items():
        yield f"Algorithm.schedule is {words}", Wrong(own(schedule=value if value is not None else 3))
        for field in ("slots", "repeats", "length"):
            span = protocol.Span(1, HORIZON)._replace(**{field: value})
            yield f"Span.{field} is {words}", Wrong(own(schedule=(span,)))
    for field, (words, value) in itertools.product(of_environment, ODD.items()):
        yield f"Environment.{field} is {words}", Wrong(own(), replaced(ENVIRONMENT, field, value))
    for field, (words, value) in itertools.product(("attack", "params", "config"), ODD.items()):
        adversary = ADVERSARY._replace(**{field: value})
        yield f"Adversary.{field} is {words}", Wrong(own(), ENVIRONMENT, {"message_adversary": adversary})


def of_factories() -> Iterator[tuple[str, Wrong]]:
    """Factories that return something else, or cannot be called, and parts that do not fit each other."""
    for words, value in ODD.items():

        def returns(*, num_arms, horizon, value=value):
            return value

        yield f"an algorithm is {words}", Wrong(partial(returns))
        yield f"an environment is {words}", Wrong(own(), lambda value=value: value)
        yield f"an adversary is {words}", Wrong(own(), ENVIRONMENT, {"reward_adversary": lambda value=value: value})
    yield "an environment for an algorithm", Wrong(lambda *, num_arms, horizon: ENVIRONMENT)
    yield "an algorithm for an environment", Wrong(own(), lambda: ALGORITHM)
    yield "an environment for an adversary", Wrong(own(), ENVIRONMENT, {"reward_adversary": lambda: ENVIRONMENT})
    yield "any keywords", Wrong(lambda **given: None)
    yield "positional only", Wrong(lambda num_arms, /, horizon: None)
    yield "a missing argument", Wrong(jb.algorithms.ldp_ucb)
    yield "an unknown argument", Wrong(partial(jb.algorithms.ucb1, epsilon=1))
    yield "an argument of other environments", Wrong(jb.algorithms.linucb)
    yield "a factory that fails", Wrong(lambda *, num_arms, horizon: 1 / 0)
    yield "too few plays", Wrong(own(schedule=(protocol.Span(1, HORIZON - 1),)))
    yield "a model with a typo", Wrong(own(guarantee=CLAIM._replace(model="locall")))
    yield "a unit with a typo", Wrong(own(guarantee=CLAIM._replace(unit="rewards")))
    yield "a schedule of numbers", Wrong(own(schedule=(HORIZON,)))
    yield "a schedule in a list", Wrong(own(schedule=[protocol.Span(1, HORIZON)]))
    yield "one span", Wrong(own(schedule=protocol.Span(1, HORIZON)))
    yield "two versions", Wrong(own(version=("own",)))
    yield "one action for agents", Wrong(own(), jb.environments.federated_linear(num_agents=2, num_arms=3, dim=2))
    team = own(program=PROGRAM._replace(act=lambda *given: (jnp.zeros((len(given[3]), 2), jnp.int32), None, 0)))
    for number in (2, 3):
        agents = jb.environments.federated_linear(num_agents=number, num_arms=3, dim=2)
        yield f"actions of two agents for {number}", Wrong(team, agents)
    yield "actions of agents that are not there", Wrong(team)
    yield "a name of no field", Wrong(own(program=PROGRAM._replace(hints=protocol.Hints(kept=("men",)))))
    yield "an environment of no arms", Wrong(own(), ENVIRONMENT._replace(facts={}))
    yield "means of two arms", Wrong(own(), replaced(ENVIRONMENT, "facts.means", [0.1, 0.2]))
    yield "means in a table", Wrong(own(), replaced(ENVIRONMENT, "facts.means", [[0.1], [0.2], [0.3]]))
    yield "a range upside down", Wrong(own(), replaced(ENVIRONMENT, "facts.reward_range", (1, 0)))
    yield "arms that disagree", Wrong(own(), replaced(ENVIRONMENT, "world.num_arms", 4))
    yield "no means", Wrong(own(), ENVIRONMENT._replace(facts={"num_arms": 3}))
    no_arms = ENVIRONMENT._replace(world=WORLD._replace(num_arms=0), facts={"means": MEANS})
    yield "arms that nobody counts", Wrong(partial(own(), num_arms=3), no_arms, {"reward_adversary": ADVERSARY})
    yield "one name twice", with_function("Attack.diagnose", lambda params, state: {"best": 1.0})
    yield "no scales", Wrong(own(guarantee=CLAIM._replace(scales=())))
    yield "other scales", Wrong(own(guarantee=CLAIM._replace(scales=("nose",))))
    yield "a finite claim of no model", Wrong(own(guarantee=CLAIM._replace(model="none")))
    yield "no noise", Wrong(own(params=Params(0.0, 1.0)))
    fixed = guarantee("local", "reward", lambda params: (laplace_event("x", 1.0, 1.0),), view_message)
    yield "events without their noise", Wrong(own(guarantee=fixed))
    yield "a sound one", Wrong(own(), ENVIRONMENT, {"reward_adversary": ADVERSARY})

    def fresh(*, num_arms, horizon):
        return own(program=PROGRAM._replace(act=lambda *given: act(*given)))(num_arms=num_arms, horizon=horizon)

    yield "an uncached builder", Wrong(factory(fresh))

    def drawn_twice(params, state, draws, t, context):
        first, second = draws.uniform(t[0]), draws.uniform(t[0])
        return jnp.full(t.shape, (3 * first * second).astype(jnp.int32)), None, jnp.int32(0)

    def key_of_the_play(params, state, draws, t, context):
        return jax.random.randint(jax.random.key(t[0].astype(jnp.uint32)), t.shape, 0, 3), None, jnp.int32(0)

    yield "one address twice", with_function("Program.act", drawn_twice)
    yield "a key of the play alone", with_function("Program.act", key_of_the_play)
    yield "no guarantee", Wrong(own(guarantee=protocol.Guarantee()))


@cache
def wrong_parts() -> dict[str, Wrong]:
    """All of them by name."""
    return dict(itertools.chain(of_functions(), of_fields(), of_factories()))


# ---------------------------------------------------------------------------- what is said of them


def said_by_sweep(wrong: Wrong) -> list[str]:
    """The warnings of a sweep, and the error that stops it before it plays."""
    settings = {"horizon": HORIZON, "seeds": 4, "checkpoints": 3, **wrong.others}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            laid_out = plan(wrong.algorithm, wrong.environment, **settings)
            calls.check_parts(laid_out)
            calls.add_lane_shapes(laid_out)
            end = []
        except Exception as error:
            end = [f"{type(error).__name__}: {error}"]
    return [normal(x) for x in dict.fromkeys([*(str(warning.message) for warning in caught), *end])]


def said_by_check(wrong: Wrong) -> list[str]:
    """The findings of the rules that play nothing, in their order; as in a check, nothing follows what cannot run."""
    subject, findings = Subject(wrong.algorithm, wrong.environment, **wrong.others, horizon=HORIZON, seeds=4), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rule in ("builds", "shapes", "traces_once", "draws", "addresses", "guarantee"):
            findings += findings_of(getattr(checking, rule), subject)
            if findings and rule in ("builds", "shapes"):
                break
    return [normal(f"{finding.rule}: {finding.message} ({finding.where})") for finding in findings]


def normal(text: str) -> str:
    """A text without what changes from run to run and from JAX to JAX: places are lines of code, addresses in memory
    nothing, and of other libraries' errors only the type is left.
    """

    def code(match: re.Match) -> str:
        return f"<{linecache.getline(match[0].rpartition(':')[0], int(match[1])).strip()[:30]}>"

    text = re.sub(rf"{re.escape(str(Path(__file__)))}:(\d+)", code, text)
    text = re.sub(r"[^ (]*/(jaxbandits|site-packages)/(\S*):\d+", r"\1/\2", text)
    text = re.sub(r"(cannot be traced: \w+): .* \(in ", r"\1: ... (in ", text)
    return re.sub(r"0x[0-9a-f]+", "0x", text)

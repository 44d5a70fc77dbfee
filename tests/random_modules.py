"""Users' modules for tests of keys: loaded from text, named as a store names them, and played for the truth."""

import contextlib
import importlib
import random
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

import jaxbandits as jb
from jaxbandits.random import Draws
from jaxbandits.sweeps.identity import identify_cells
from jaxbandits.sweeps.plan import host_case, plan, stack_cases

HORIZON, CHECKPOINTS, SEEDS = 12, (4, 12), 2
TOGETHER = 12  # modules of one program
ARMS = jb.environments.bernoulli_arms(means=[0.25, 0.5, 0.75])

# Where an edit stands is left open: VALUE is a number that the algorithm uses, DEFINITIONS come before it.
ALGORITHM = '''
"""An algorithm of a user's."""

import dataclasses, enum, functools, importlib, os
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import jaxbandits as jb
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Adversary, Algorithm, Attack, Environment, Guarantee, Program, Score, Span, Truth, World

DEFINITIONS


def wave(t, seed, arm):  # in place of draws, which take longer to trace than all the rest
    return (jnp.sin((7 * t + 5 * seed.astype(jnp.int32) + 3 * arm).astype(jnp.float32)) + 1) / 2


class Params(NamedTuple):
    rate: Any = 0.5
    bias: Any = 0.0


@cache
def program(num_arms):
    def init(params, draws):
        return jnp.zeros((num_arms, 2), draws.dtype)

    def act(params, state, draws, t, context):
        weight = jnp.asarray(VALUE, draws.dtype)
        noise = wave(t[0], draws.seed, jnp.arange(num_arms))
        action = argmax(state[:, 0] + weight * noise)
        return jnp.full(t.shape, action), None, (action, weight)

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        action, weight = note
        step = params.rate * (message + jnp.asarray(params.bias, message.dtype) - state[action, 0])
        return state.at[action].add(jnp.stack([step, weight])), ()

    def diagnose(params, state):
        return {"total": jnp.sum(state)}

    return Program(init, act, encode, update, diagnose=diagnose)


def mine(*, num_arms, horizon):
    config = {"horizon": horizon}
    return Algorithm(program(num_arms), (Span(1, horizon),), Params(), Guarantee(), ("mine", 1, (num_arms,)), config)


def init_world(params, draws):
    return draws.seed


def observe(params, state, draws, t):
    return (), state


def reward(params, state, draws, t, context, action):
    return wave(t + 1, state, action) * params


def score(params, state, t, context, action):
    return Score(action, 1 - wave(t, state, action))


def truth(params, state, t, context):
    return Truth()


world = Environment(World(init_world, observe, reward, score, truth, 3), 1.0, {"num_arms": 3}, None, {})
'''


class Outcome(NamedTuple):
    """A module's part in the eyes of the store, and what it does."""

    key: str
    nameless: bool
    results: tuple[Any, ...]


def algorithm(definitions: str, value: str) -> str:
    """A module of an algorithm with these definitions that uses this number."""
    return ALGORITHM.replace("DEFINITIONS", definitions).replace("VALUE", value)


@contextlib.contextmanager
def loaded(folder: Path, files: dict[str, str], name: str = "mine", path: str = ""):
    """A module written to a folder and imported anew, with what it imports from there."""
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    before, written = dict(sys.modules), sys.dont_write_bytecode
    shadowed = {file.split("/")[-1].removesuffix(".py") for file in files} | {file.split("/")[0] for file in files}
    for module in shadowed & sys.modules.keys():
        del sys.modules[module]
    sys.path.insert(0, str(folder / path))
    sys.dont_write_bytecode = True  # two edits in a second look alike to it
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder / path))
        sys.dont_write_bytecode = written
        for module in [m for m, x in sys.modules.items() if str(folder) in str(getattr(x, "__file__", ""))]:
            del sys.modules[module]
        sys.modules.update({m: x for m, x in before.items() if m in shadowed})


def plan_of(module, **changes):
    """The plan of a module's sweep: `mine` on `world` under `adversary`, where it has them."""
    parts = {
        "algorithms": {"x": getattr(module, "mine", jb.algorithms.ucb1)},
        "environment": getattr(module, "world", ARMS),
        "reward_adversary": getattr(module, "adversary", None),
        "message_adversary": getattr(module, "forger", None),
    }
    settings = {"horizon": HORIZON, "seeds": SEEDS, "checkpoints": CHECKPOINTS}
    return plan(**(settings | parts | changes))


def key_of(module, **changes) -> tuple[str, bool]:
    """The key of a module's cell, and whether no later run will find it."""
    _, (key,), nameless = identify_cells(plan_of(module, **changes), "cpu", stored=True)
    return key, bool(nameless)


class Traced(NamedTuple):
    """What is known of a module before it is played."""

    key: str
    nameless: bool
    program: Any  # seeds -> what the plays give
    names: list  # of diagnostics
    host: tuple  # what the host reads


def traced(module) -> Traced:
    """Name a module's part, and trace what its functions do when they are called in turn. Nothing is hashed."""
    laid_out = plan_of(module)
    parts, cell = laid_out.groups[0].parts, laid_out.cells[0]
    program, world, schedule = parts.program, parts.world, cell.algorithm.schedule
    case = jax.tree.map(jnp.asarray, stack_cases([host_case(cell)], laid_out.dtype)[0])
    slots = schedule[0].slots

    def attacked(attack, params, state, draws, t, payload):
        if attack is None:
            return payload, state
        payload, _, state = attack.corrupt(params, state, draws, t, payload, None)
        return payload, state

    def play(seed):
        draws = Draws(seed, "", parts.dtype)

        def window(carried, before):
            state, place, rewarder, forger = carried
            t = before + 1 + jnp.arange(slots, dtype=jnp.int32)
            context, place = world.observe(case.environment, place, draws, t)
            action, _, note = program.act(case.algorithm, state, draws, t, context)
            reward = world.reward(case.environment, place, draws, t, context, action)
            score = world.score(case.environment, place, t, context, action)
            reward, rewarder = attacked(parts.reward_attack, case.reward_adversary, rewarder, draws, t, reward)
            counts, last = jnp.full(slots, True), before + slots
            message = program.encode(case.algorithm, note, draws, t, context, action, reward, counts)
            message = program.relay(case.algorithm, draws, last, message, counts)
            message, forger = attacked(parts.message_attack, case.message_adversary, forger, draws, t, message)
            state, released = program.update(case.algorithm, state, draws, last, note, message, jnp.int32(slots))
            return (state, place, rewarder, forger), (action, reward, score, released)

        begun = (
            program.init(case.algorithm, draws), world.init(case.environment, draws),
            parts.reward_attack and parts.reward_attack.init(case.reward_adversary, draws),
            parts.message_attack and parts.message_attack.init(case.message_adversary, draws),
        )  # fmt: skip
        (state, place, *_), windows = jax.lax.scan(window, begun, jnp.arange(0, HORIZON, slots, dtype=jnp.int32))
        if any(span.close for span in schedule):
            state = program.close(case.algorithm, state, draws, jnp.int32(HORIZON))
        return windows, state, place, program.diagnose(case.algorithm, state)

    closed, out = jax.make_jaxpr(jax.vmap(play), return_shape=True)(jax.ShapeDtypeStruct((SEEDS,), jnp.uint32))
    baseline = world.baseline and [world.baseline(cell.environment.params, s, CHECKPOINTS) for s in range(SEEDS)]
    host = (schedule, world.num_arms, np.array(cell.environment.facts.get("means")), np.array(baseline))
    return Traced(*key_of(module), closed, sorted(out[3]), host)


def played(modules: list[Traced]) -> list[Outcome]:
    """Play modules. One program for several of them is compiled in less time than one for each."""
    seeds, found = jnp.arange(SEEDS, dtype=jnp.uint32), []
    for some in (modules[i : i + TOGETHER] for i in range(0, len(modules), TOGETHER)):
        everything = jax.jit(lambda seeds, some=some: [jaxpr_as_fun(module.program)(seeds) for module in some])
        results = everything.lower(seeds).compile()(seeds)
        found += [
            Outcome(module.key, module.nameless, (module.names, [_bits(x) for x in (*leaves, *module.host)]))
            for module, leaves in zip(some, results, strict=True)
        ]
    return found


def _bits(x) -> tuple:
    is_key = hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
    x = np.asarray(jax.random.key_data(x) if is_key else x)
    return x.shape, str(x.dtype), x.tobytes()


def look(folder: Path, files: dict[str, str], **where) -> Traced:
    """Import, name and trace a module."""
    with loaded(folder, files, **where) as module:
        return traced(module)


def outcomes(folder: Path, modules: dict[str, dict[str, str]]) -> dict[str, Outcome]:
    """Import, name and play the modules of some files, each under its name."""
    looks = []
    for i, (name, files) in enumerate(modules.items()):
        try:
            looks.append(look(folder / str(i), files))
        except Exception as error:
            error.add_note(name)
            raise
    return dict(zip(modules, played(looks), strict=True))


def outcome(folder: Path, files: dict[str, str], **where) -> Outcome:
    """Import, name and play a module."""
    return played([look(folder, files, **where)])[0]


# ---- random modules and random edits of them

# what a user may write for a number; # is the construct's number, every decimal is drawn anew
CONSTRUCTS = [
    ("X# = 1.5", "X#"),
    ("class C#:\n    X = 1.5\n    Y = 0.5", "(C#.X + C#.Y)"),
    ("class B#:\n    X = 1.5\nclass C#(B#):\n    Y = 0.5", "(C#().X * C#().Y)"),
    ("class C#:\n    @property\n    def x(self): return 1.5\n    @staticmethod\n    def y(): return 0.5",
        "(C#().x - C#.y())"),
    ("@dataclasses.dataclass\nclass C#:\n    x: float = 1.5\n    y: float = 0.5", "(C#().x + C#(0.25).y)"),
    ("class C#(NamedTuple):\n    x: float = 1.5\n    y: float = 0.5", "(C#()[0] + C#().y)"),
    ("class C#(enum.Enum):\n    X = 1.5\n    Y = 0.5", "(C#.X.value * C#.Y.value)"),
    ("D# = {'a': 1.5, 'b': 0.5, 'c': 2.5}", "sum((i + 1) * x for i, x in enumerate(D#.values()))"),
    ("D# = {'a': 1.5, 'b': 0.5}", "(D#['a'] + D#.get('c', 0.75))"),
    ("def f#(x=1.5, *, y=0.5): return x + y", "f#()"),
    ("def g#(x):\n    def f(): return x + 0.5\n    return f\nf# = g#(1.5)", "f#()"),
    ("def g#(d):\n    return lambda k: d[k] + 0.5\nf# = g#({'a': 1.5, 'b': 2.5})", "f#('b')"),
    ("def f#(): return f#.x + 0.5\nf#.x = 1.5", "f#()"),
    ("f# = partial(lambda x, y: x - y, 1.5, y=0.5)", "f#()"),
    ("F# = [lambda: 1.5, lambda: 2.5, lambda: 0.5]", "(F#[0]() - F#[2]())"),
    ("A# = np.array([1.5, 0.5, 2.5])", "(A#[0] + A#.sum())"),
    ("A# = np.ma.masked_array([1.5, 0.5, 2.5], [False, True, False])", "A#.sum()"),
    ("A# = jnp.array([1.5, 0.5], jnp.float32)", "jnp.sum(A# * params.rate)"),
    ("R# = [[1.5], [0.5, 2.5]]", "(R#[1][0] + len(R#[0]))"),
    ("P# = np.polynomial.Polynomial([1.5, 0.5])", "P#(2.5)"),
    ("FAST# = 1.5 > 1.0\ndef f#(x): return x * 1.5 if FAST# else x + 0.5", "f#(params.rate)"),
    ("MODE# = 'a'\ndef f#(): return {'a': 1.5, 'b': 0.5}[MODE#]", "f#()"),
    ("@jax.jit\ndef f#(x): return x * 1.5 + 0.5", "f#(params.rate)"),
    ("def f#(x): return jnp.where(x > 1.5, x * 0.5, x + 2.5)", "f#(t[0].astype(jnp.float32))"),
    ("def f#(x):\n    y = jnp.sin(x)\n    return y * 1.5", "f#(params.rate)"),
    ("@jax.custom_jvp\ndef f#(x): return x * 1.5\n@f#.defjvp\ndef _(p, t): return f#(p[0]), t[0] * 0.5",
        "f#(params.rate)"),
    ("@functools.lru_cache\ndef f#(x): return x * 1.5", "f#(0.5)"),
    ("def h#(f):\n    @functools.wraps(f)\n    def g(*a): return 1.5 * f(*a)\n    return g\n"
        "@h#\ndef f#(x): return x - 0.5", "f#(params.rate)"),
    ("X# = np.random.default_rng(int(1.5 * 4)).normal()", "X#"),
    ("import helper#", "helper#.f(params.rate)"),
    ("def f#():\n    import helper#\n    return helper#.X", "f#()"),
]  # fmt: skip
HELPER = (
    "X = 1.5\nclass C:\n    Y = 0.5\n\n\ndef f(x):\n    return x * X + C.Y\n\n\ndef unused(x):\n    return x * 2.5\n"
)
JOINTS = ["({} + {})", "({} - {})", "({} * {})", "jnp.maximum({}, {})", "jnp.where(t[0] > 3, {}, {})"]


def decimals(rng: random.Random, text: str) -> str:
    """A text with every decimal drawn anew."""
    return re.sub(r"\d+\.\d+", lambda _: str(rng.randrange(1, 64) / 8), text)


def random_module(rng: random.Random) -> dict[str, str]:
    """The files of a module of three to six constructs."""
    files, definitions, value = {}, [], ""
    for i in range(rng.randrange(3, 7)):
        definition, term = (text.replace("#", str(i)) for text in rng.choice(CONSTRUCTS))
        definitions.append(decimals(rng, definition))
        if f"helper{i}" in definition:
            files[f"helper{i}.py"] = decimals(rng, HELPER)
        term = f"jnp.asarray({term}, jnp.float32)"
        value = rng.choice(JOINTS).format(value, term) if value else term
    definitions += [f"UNUSED = {rng.randrange(9) / 4}", "def unused(x): return x + 1.5"]
    return {"mine.py": algorithm("\n\n\n".join(definitions), f"({value}) / 8"), **files}


def _replaced_once(rng, text, pattern, replacement):
    matches = list(re.finditer(pattern, text))
    if not matches:
        return text
    match = rng.choice(matches)
    return text[: match.start()] + replacement(match) + text[match.end() :]


def _other_decimal(rng, text):
    return _replaced_once(rng, text, r"\d+\.\d+", lambda m: str(float(m[0]) + rng.choice([-0.125, 0.125, 1.0, 1e-6])))


def _other_operator(rng, text):
    return _replaced_once(
        rng, text, r" [-+*] (?=[\w(])", lambda m: rng.choice([o for o in (" + ", " - ", " * ") if o != m[0]])
    )


def _other_order(rng, text):
    return _replaced_once(rng, text, r"('\w': [\d.]+), ('\w': [\d.]+)", lambda m: f"{m[2]}, {m[1]}")


def _other_integer(rng, text):
    return _replaced_once(rng, text, r"(?<=[\[(])\d(?=[\])])", lambda m: str((int(m[0]) + 1) % 2))


def _other_letter(rng, text):
    return _replaced_once(rng, text, r"'[ab]'(?=[\])\n])", lambda m: "'a'" if m[0] == "'b'" else "'b'")


def _other_call(rng, text):
    other = {"sin": "jnp.cos", "cos": "jnp.tanh", "tanh": "jnp.sin", "maximum": "jnp.minimum", "minimum": "jnp.maximum"}
    return _replaced_once(rng, text, r"jnp\.(sin|cos|tanh|maximum|minimum)", lambda m: other[m[1]])


def _other_truth(rng, text):
    other = {"True": "False", "False": "True", " > ": " < ", " < ": " > "}
    return _replaced_once(rng, text, r"True|False| > | < ", lambda m: other[m[0]])


def _comment(rng, text):
    return _replaced_once(rng, text, r"\n(?=def |class )", lambda m: f"\n# {rng.random()}\n")


def _unused(rng, text):
    return _replaced_once(rng, text, r"UNUSED = [\d.]+|(?<=unused\(x\): return x )\+ [\d.]+", lambda m: m[0] + "1")


def _renamed(rng, text):
    names = re.findall(r"(?<=\nclass )\w+|(?<=\ndef )\w+", text)
    names = [name for name in names if name not in ("mine", "f", "unused") and not name.startswith("_")]
    name = rng.choice(names) if names else "nothing"
    return re.sub(rf"\b{name}\b", f"{name}_{rng.randrange(100)}", text)


MUTATIONS = [_other_decimal] * 5 + [_other_operator] * 3 + [_other_order] * 2 + [
    _other_integer, _other_letter, _other_call, _other_truth, _comment, _unused, _renamed,
]  # fmt: skip


def random_edit(rng: random.Random, files: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The name of an edit, and the files after it."""
    for _ in range(20):
        file, mutation = rng.choice(sorted(files)), rng.choice(MUTATIONS)
        text = mutation(rng, files[file])
        if text != files[file]:
            return mutation.__name__, files | {file: text}
    return "nothing", files


class Tally(NamedTuple):
    """What random edits did: names of edits."""

    stale: list  # results changed and the key did not: never
    changed: list  # both changed
    kept: list  # neither changed
    needless: list  # the key changed and the results did not
    broken: list  # the module no longer works


def random_edits(number: int, seed: int, folder: Path, edits_of_one: int = 25) -> Tally:
    """Edit random modules, each from its latest working state, and compare keys with results."""
    rng, tally = random.Random(seed), Tally([], [], [], [], [])
    for start in range(0, number, edits_of_one):
        files = random_module(rng)
        names, texts, looks = [""], [files], [look(folder / f"{start}", files)]
        for i in range(start, min(start + edits_of_one, number)):
            name, edited = random_edit(rng, files)
            try:
                looks.append(look(folder / f"{i}.edited", edited))
            except Exception as error:  # such as a division by zero, or a letter that a dict lacks
                tally.broken.append(f"{name}: {error}")
                continue
            names.append(name)
            texts.append(edited)
            files = edited
        outcomes = played(looks)
        for name, before, after, files, edited in zip(
            names[1:], outcomes[:-1], outcomes[1:], texts[:-1], texts[1:], strict=True
        ):
            same_key, same_results = before.key == after.key, before.results == after.results
            if same_key and not same_results:
                tally.stale.append((name, files, edited))
            elif same_key:
                tally.kept.append(name)
            else:
                (tally.needless if same_results else tally.changed).append(name)
    return tally

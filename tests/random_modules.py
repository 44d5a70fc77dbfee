"""Users' modules for tests of keys: loaded from text, named as a store names them,
and played op by op for the truth.
"""

import contextlib
import importlib
import random
import re
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from jaxbandits import simulator
from jaxbandits.sweeps.identity.keys import identified
from jaxbandits.sweeps.plan import host_case, plan, stacked
from jaxbandits.sweeps.sweep import DEFAULTS
from jaxbandits.window import offer

HORIZON, CHECKPOINTS, PLAYS, SEEDS = 12, (4, 12), 6, 2
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
    results: tuple


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
    return plan(**(DEFAULTS | settings | parts | changes))


def key_of(module, **changes) -> tuple[str, bool]:
    """The key of a module's cell, and whether no later run will find it."""
    named = identified(plan_of(module, **changes), "cpu", stored=True)
    return named.keys[0], bool(named.nameless)


def results_of(module, plays: int = PLAYS, **changes) -> tuple:
    """What a few plays of a few seeds give, computed op by op: nothing is traced as a whole, hashed or found again."""
    laid_out = plan_of(module, **changes)
    group, cell = laid_out.groups[0], laid_out.cells[0]
    case, _ = stacked([host_case(cell)], laid_out.dtype)
    times = jnp.asarray(CHECKPOINTS, jnp.int32)

    def play(seed):
        lane = simulator.begin(group.parts, case, seed, len(times))
        windows = []
        for span in group.schedule[:1]:
            for before in range(0, plays, span.slots):
                if span.full:
                    limit = None if span.slots == 1 else jnp.int32(span.slots)
                    lane, window = offer(group.parts, case, seed, span.slots, lane, jnp.int32(before), limit)
                else:
                    lane, window = simulator.one_counted(
                        group.parts, tuple(span[:1] + span[2:4]), case, seed, lane, times
                    )
                windows.append((window.action, window.reward, window.regret, window.released))
        if any(span.close for span in group.schedule):
            lane = simulator.close(group.parts, case, seed, lane)
        return windows, lane.algorithm, lane.environment, simulator.finish(group.parts, case, lane)[1]

    seeds = jnp.arange(SEEDS, dtype=jnp.uint32)
    with jax.enable_x64(laid_out.dtype == "float64"):
        case = jax.tree.map(jnp.asarray, case)
        played = jax.vmap(play)(seeds)
    environment, baseline = cell.environment, None
    if environment.world.baseline is not None:
        ts = np.asarray(CHECKPOINTS)
        baseline = [np.asarray(environment.world.baseline(environment.params, s, ts), np.float64) for s in range(SEEDS)]
    means = environment.facts.get("means")
    leaves, treedef = jax.tree.flatten(
        (played[:3], played[3], None if means is None else np.asarray(means, np.float64), baseline)
    )
    names = tuple(sorted(played[3]))
    return (
        names,
        cell.algorithm.schedule,
        environment.world.num_arms,
        tuple(_bits(x) for x in leaves),
        treedef.num_leaves,
    )


def _bits(x) -> tuple:
    x = np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)
    return x.shape, str(x.dtype), x.tobytes()


def outcome(folder: Path, files: dict[str, str], **where) -> Outcome:
    """Import, name and play a module."""
    with loaded(folder, files, **where) as module:
        key, nameless = key_of(module)
        return Outcome(key, nameless, results_of(module))


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
    for i in range(number):
        if i % edits_of_one == 0:
            files = random_module(rng)
            latest = outcome(folder / f"{i}", files)
        name, edited = random_edit(rng, files)
        try:
            after = outcome(folder / f"{i}.edited", edited)
        except Exception as error:  # such as a division by zero, or a letter that a dict lacks
            tally.broken.append(f"{name}: {error}")
            continue
        same_key, same_results = latest.key == after.key, latest.results == after.results
        if same_key and not same_results:
            tally.stale.append((name, files, edited))
        elif same_key:
            tally.kept.append(name)
        else:
            (tally.needless if same_results else tally.changed).append(name)
        files, latest = edited, after
    return tally

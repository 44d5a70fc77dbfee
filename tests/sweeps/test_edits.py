"""Edits of users' code between two runs: a key changes where results change, and stays where they stay.

Keys are those of a store; results come from the module's functions themselves, called in turn, operation by operation,
so that neither side knows of the other.
"""

import contextlib
import importlib
import os
import random
import re
import sys
import warnings
from functools import partial
from pathlib import Path
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.random import Draws
from jaxbandits.sweeps.compilation.compiled import functions_of_group
from jaxbandits.sweeps.identity import identify_cells
from jaxbandits.sweeps.plan import host_case, plan, stack_cases

HORIZON, CHECKPOINTS, SEEDS = 4, (2, 4), 2
pytestmark = pytest.mark.compiles(250)  # single operations, once

# ---- a user's module: an algorithm, an environment and an adversary

# VALUES are numbers that the algorithm uses, DEFINITIONS come before it. The state keeps each number in a place of its
# own, so that no other hides its last bits.
MODULE = """
import functools, os
from functools import partial
from typing import Any, NamedTuple
import jax
import jax.numpy as jnp
import numpy as np
import jaxbandits as jb
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Adversary, Algorithm, Attack, Environment, Guarantee, Program, Score, Span, Truth, World
DEFINITIONS
def numbers(params, t, draws):
    x = params.rate
    return jnp.stack([jnp.asarray(value, jnp.float32) for value in [VALUES]])
class Params(NamedTuple):
    rate: Any = 0.5
    bias: Any = 0.0
class State(NamedTuple):
    mean: Any
    seen: Any
def wave(t, seed, arm):  # in place of draws, which take longer to trace than all the rest
    return (jnp.sin((7 * t + 5 * seed.astype(jnp.int32) + 3 * arm).astype(jnp.float32)) + 1) / 2
def init(params, draws): return State(jnp.zeros(3, draws.dtype), jnp.zeros(WIDTH, draws.dtype))
def act(params, state, draws, t, context):
    action = argmax(state.mean + wave(t[0], draws.seed, jnp.arange(3)))
    return jnp.full(t.shape, action), None, (action, numbers(params, t, draws))
def encode(params, note, draws, t, context, action, reward, play): return reward[0]
def relay(params, draws, t, message, play): return message * 0.5
def update(params, state, draws, t, note, message, used):
    action, seen = note
    return State(state.mean.at[action].add(params.rate * message), seen), ()
def close(params, state, draws, t): return state._replace(mean=state.mean * 0.5)
def diagnose(params, state): return {"total": jnp.sum(state.mean) + jnp.sum(state.seen)}
program = Program(init, act, encode, update, relay, close, diagnose)
def mine(*, num_arms, horizon, bias=0.0):
    schedule = (Span(1, horizon, close=True),)
    return Algorithm(program, schedule, Params(bias=bias), Guarantee(), ("mine", 1, (num_arms,)), {"horizon": horizon})
def init_world(params, draws): return draws.seed
def observe(params, state, draws, t): return (), state
def reward(params, state, draws, t, context, action): return wave(t + 1, state, action) * params
def score(params, state, t, context, action): return Score(action, 1 - wave(t, state, action))
def truth(params, state, t, context): return Truth()
def baseline(params, seed, times): return np.asarray(times) / 4 + 2 * seed
world = Environment(World(init_world, observe, reward, score, truth, 3, baseline, True), 1.0, {
    "num_arms": 3, "means": np.array([0.25, 0.5, 0.75])}, None, {})
def corrupt(params, state, draws, t, payload, seen): return payload + params * 0.5, False, state
reward_adversary = Adversary(Attack(lambda params, draws: (), corrupt), 0.5, None, {})
"""


def module_of(definitions: str, *values: str) -> str:
    """The text of a module whose algorithm uses these numbers."""
    text = MODULE.replace("DEFINITIONS", definitions).replace("VALUES", ", ".join(values))
    return text.replace("WIDTH", str(len(values)))


@contextlib.contextmanager
def loaded(folder: Path, files: dict[str, str] | str, name: str = "mine"):
    """A module written to a folder and imported anew, with what it imports from there."""
    files = {"mine.py": files} if isinstance(files, str) else files
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    importlib.invalidate_caches()
    with patch.object(sys, "path", [str(folder), *sys.path]), patch.object(sys, "dont_write_bytecode", True):
        try:
            yield importlib.import_module(name)
        finally:
            for file in files:
                sys.modules.pop(Path(file).stem, None)


def plan_of(module, **changes):
    """The plan of a sweep of `mine` on `world` under the adversary that the module has."""
    attacks = {name: getattr(module, name, None) for name in ("reward_adversary", "message_adversary")}
    settings = {"horizon": HORIZON, "seeds": SEEDS, "checkpoints": CHECKPOINTS}
    return plan({"x": module.mine}, module.world, **settings, **attacks, **changes)


def key_of(module) -> tuple[str, bool]:
    _, (key,), nameless = identify_cells(plan_of(module), "cpu", stored=True)
    return key, bool(nameless)  # no later run will find it


def key_in(folder: Path, files: dict[str, str] | str, **where) -> tuple[str, bool]:
    with loaded(folder, files, **where) as module:
        return key_of(module)


def look(folder: Path, files: dict[str, str] | str) -> tuple[tuple[str, bool], list]:
    """The key of a module, and what its functions give when they are called in turn. Nothing of that is hashed."""
    with loaded(folder, files) as module:
        laid_out = plan_of(module)
        (parts, *_), cell = laid_out.groups[0], laid_out.cells[0]
        program, world = parts.program, parts.world
        case = jax.tree.map(jnp.asarray, stack_cases([host_case(cell)], laid_out.dtype)[0])

        def play(seed):
            own, draws, seen = case.algorithm, Draws(seed, "", parts.dtype), []
            state, place = program.init(own, draws), world.init(case.environment, draws)
            for t in jnp.arange(1, HORIZON + 1, dtype=jnp.int32)[:, None]:
                context, place = world.observe(case.environment, place, draws, t)
                action, _, note = program.act(own, state, draws, t, context)
                reward = world.reward(case.environment, place, draws, t, context, action)
                message = program.encode(own, note, draws, t, context, action, reward, t > 0)
                state, released = program.update(own, state, draws, t[0], note, message, jnp.int32(1))
                seen.append((action, reward, released))
            return seen, state, program.diagnose(own, state)

        found = jax.tree.leaves(jax.vmap(play)(jnp.arange(SEEDS, dtype=jnp.uint32)))
        return key_of(module), [(x.shape, str(x.dtype), np.asarray(x).tobytes()) for x in found]


# ---- edits of one module

FILES = {
    "mine.py": module_of(
        '''
import helper
LIMIT = np.float32(0.1)
MODE = "fast"
TABLE = np.arange(3000.0, dtype=np.float32)
UNUSED = 4.0
class Base: SIGN = 1.0
class Child(Base): pass
def by_text(x): return x + 2.0 if MODE == "fast" else x * 4.0
def unused(x): return x * 8.0
def from_file(): return float(open(os.path.join(os.path.dirname(__file__), "number.txt")).read())
def repeated(x): return jax.lax.scan(lambda c, _: (c * 1.5, None), x, None, length=3)[0]
@jax.custom_jvp
def slope(x): return x * 0.75
@slope.defjvp
def _(x, tangent): return slope(x[0]), tangent[0] * 5.0
@jax.custom_batching.custom_vmap
def product(x, y): return x * y
@product.def_vmap
def _(size, batched, x, y): return (x * y if all(batched) else x * y * 16.0), True
def drawn(key):
    with jax.threefry_partitionable(True):
        return jax.random.uniform(key, (3,), jnp.float32)[2]
''',
        "LIMIT", "Child.SIGN", "from_file()", "2.0 if jnp.asarray(params.bias).dtype.kind == 'f' else 1.0",
        "jnp.asarray(TABLE)[t[0]]", "by_text(x)", "helper.g(x)", "repeated(x)", "slope(x)",
        "x - jnp.sin(x)", "x + 0.125", "(x / 3).astype(jnp.float16).astype(jnp.float32)",
        'jnp.sum(jnp.zeros(3).at[t[0]].add(x, mode="clip"))', "product(wave(t[0], draws.seed, 0), 1.0)",
        "drawn(jax.random.wrap_key_data(jnp.stack([t[0], t[0]]).astype(jnp.uint32)))",
        "jax.random.uniform(jax.random.key(1), dtype=jnp.float32)", "draws.child('a').uniform(t[0])",
    ),
    "helper.py": "from deeper import g\n", "deeper.py": "def g(x):\n    return x * 1.5\n", "number.txt": "1.25",
}  # fmt: skip

# an edit after which another number is seen, each another one -> what is replaced, and by what
NUMBERS = {
    "the last bit of a constant": ("np.float32(0.1)", "np.nextafter(np.float32(0.1), np.float32(1))"),
    "a constant of a base class": ("SIGN = 1.0", "SIGN = -1.0"),
    "text that selects a branch": ('MODE = "fast"', 'MODE = "slow"'),
    "one entry of a long array": ("dtype=np.float32)\n", "dtype=np.float32)\nTABLE[4] = 9.0\n"),
    "a function of a file that another file imports": ("x * 1.5\n", "x * 2.5\n"),
    "a file read while tracing": ("1.25", "3.5"),
    "an operator": ("x + 0.125", "x - 0.125"),
    "the order of two operands": ("x - jnp.sin(x)", "jnp.sin(x) - x"),
    "a type": ("astype(jnp.float16)", "astype(jnp.bfloat16)"),
    "how often a loop repeats": ("length=3", "length=2"),
    "a function with a derivative of its own": ("x * 0.75", "x * 0.25"),
    "a setting of an operation": ('mode="clip"', 'mode="drop"'),
    "an integer parameter": ("bias=0.0", "bias=0"),
    "a rule of custom_vmap for one argument": ("x * y * 16.0", "x * y * 32.0"),
    "how bits are split": ("partitionable(True)", "partitionable(False)"),
    "the generator of a key": ("key(1)", "key(1, impl='rbg')"),
    "the path of a draw": ("child('a')", "child('b')"),
}
# the same for other functions and numbers of the parts
PARTS = {
    "a default of Params": ("rate: Any = 0.5", "rate: Any = 0.25"),
    "the first state": ("State(jnp.zeros(3", "State(jnp.ones(3"),
    "what the end of a span computes": ("state.mean * 0.5", "state.mean * 0.25"),
    "the length of batches": ("Span(1, horizon, ", "Span(1, horizon // 4, length=4, "),
    "a diagnostic": ("jnp.sum(state.mean)", "jnp.max(state.mean)"),
    "the name of a diagnostic": ('"total"', '"sum"'),
    "the world's means": ("0.75])", "0.5])"),
    "a baseline of later seeds": ("2 * seed", "3 * seed"),
    "an adversary on messages": ("\nreward_adversary = ", "\nmessage_adversary = "),
    # the last word on what no trace and no first seeds show, such as a baseline that reads a file for a later seed
    "the algorithm's version": ('("mine", 1,', '("mine", 2,'),
    "the adversary's version": ("corrupt), 0.5, None, {})", "corrupt), 0.5, None, {}, 2)"),
}
# the same for edits after which nothing else is computed
NOTHING = {
    "a comment": ('MODE = "fast"', 'MODE = "fast"  # or "slow"'),
    "a renamed function": ("by_text", "by_a_word"),
    "a renamed field": ("bias", "shift"),
    "the order of definitions": ("UNUSED = 4.0\nclass Base: SIGN = 1.0\n", "class Base: SIGN = 1.0\nUNUSED = 5.0\n"),
    "a function that is not used": ("x * 8.0", "x * 9.0"),
    "a derivative that nobody takes": ("tangent[0] * 5.0", "tangent[0] * 6.0"),
    "a name for the profiler": ("def repeated(x)", "@jax.named_scope('f')\ndef repeated(x)"),
    "a function that moved to another file": ("from deeper import g", "def g(x):\n    y = x * 1.5\n    return y"),
    "the algorithm's name and config": ('("mine", 1, (num_arms,)), {', '("best", 1, ()), {"note": 3, '),
}


def edited(*edits):
    """The files after edits: each of the one file that has its text, in every place."""
    files = dict(FILES)
    for old, new in edits:
        (file,) = [file for file, text in FILES.items() if old in text]
        assert FILES[file].count(old) == 1 or old.isidentifier(), old
        files[file] = files[file].replace(old, new)
    return files


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    return look(tmp_path_factory.mktemp("mine"), FILES)


def test_every_edit_of_a_number_changes_a_number(before, tmp_path):
    shape, results = (SEEDS, len(NUMBERS)), (before[1], look(tmp_path, edited(*NUMBERS.values()))[1])
    old, new = (np.frombuffer(bits, np.float32) for found in results for form, _, bits in found if form == shape)
    assert (old != new).all()


@pytest.mark.parametrize("name", NUMBERS | PARTS)
def test_an_edit_changes_the_key(name, before, tmp_path):
    key, nameless = key_in(tmp_path, edited((NUMBERS | PARTS)[name]))
    assert key != before[0][0] and not nameless


def test_moves_and_edits_that_change_nothing_keep_the_key(before, tmp_path):
    assert before == look(tmp_path, edited(*NOTHING.values()))
    assert key_in(tmp_path / "lib" / "site-packages", FILES) == before[0]
    renamed = {file.replace("mine", "another"): text for file, text in FILES.items()}
    assert key_in(tmp_path / "b", renamed, name="another") == before[0]


def test_an_edit_of_a_base_changes_the_key(tmp_path):
    text = f"""{module_of("", "1.0")}
def base(*, num_arms, horizon):
    part = jb.algorithms.ucb1(num_arms=num_arms, horizon=horizon)
    def encode(*given): return HALF * part.program.encode(*given)
    return part._replace(program=part.program._replace(encode=encode))
mine = partial(jb.algorithms.delayed, base=base, delay=2)
"""
    (key, nameless), (other, _) = (key_in(tmp_path / half, text.replace("HALF", half)) for half in ("0.5", "2.0"))
    assert key != other and not nameless


def test_what_is_drawn_at_import_has_an_identity_and_what_is_drawn_while_tracing_has_none(tmp_path):
    at_import = module_of("X = np.random.default_rng().random()", "X")
    drawn = [key_in(tmp_path / str(i), at_import) for i in range(2)]
    assert drawn[0] != drawn[1] and not drawn[0][1] and not drawn[1][1]
    assert key_in(tmp_path / "drawn", module_of("", "np.random.default_rng().random()"))[1]
    called = "jax.pure_callback(f, jax.ShapeDtypeStruct((), jnp.float32), x, vmap_method='sequential')"
    assert key_in(tmp_path / "called", module_of("def f(x): return np.float32(2) * x", called))[1]


SETTINGS = {"horizon": 12, "seeds": 4, "checkpoints": 2, "progress": False}


def test_two_cells_of_an_integer_and_a_float_stay_apart(tmp_path):
    text = module_of("", "2.0 if jnp.asarray(params.bias).dtype.kind == 'f' else 1.0")
    points = [{"bias": 1}, {"bias": 1.0}]
    with loaded(tmp_path, text) as module:
        assert len(set(identify_cells(plan_of(module, points=points), "cpu", stored=True)[1])) == 2
        kept = jb.sweep(module.mine, module.world, **SETTINGS, points=points)
        assert not np.array_equal(kept.total.isel(point=0), kept.total.isel(point=1))


@pytest.mark.compiles(20)  # two sweeps and two simulations
@pytest.mark.parametrize("callback", [False, True])
def test_a_value_changed_between_two_runs_is_read_anew(callback, tmp_path):
    """With a store, in memory and in `simulate`, also where a callback leaves the program without an identity."""
    value = "jax.pure_callback(double, jax.ShapeDtypeStruct((), jnp.float32), x, vmap_method='expand_dims') * C.X"
    text = module_of("class C: X = 1.0\ndef double(x): return np.float32(2) * x", value if callback else "C.X")
    with loaded(tmp_path, text) as module, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        totals = []
        for x in (1.0, 2.0):
            module.C.X = x
            stored = jb.sweep(module.mine, module.world, **SETTINGS, store=tmp_path / "store").total.values
            before = functions_of_group.cache_info().misses
            if callback:
                single = jb.simulate(partial(module.mine, horizon=12), module.world, seed=3)
                np.testing.assert_array_equal(single.diagnostics["total"], stored[0, 3])
            else:
                np.testing.assert_array_equal(jb.sweep(module.mine, module.world, **SETTINGS).total, stored)
                assert functions_of_group.cache_info().misses == before  # for what did not change
            totals.append(stored)
        assert not np.array_equal(*totals)


# ---- random edits of what a user may write for a number: # is its number, and every decimal is drawn anew

CONSTRUCTS = """
D# = {'a': 1.5, 'b': 0.5, 'c': 2.5}
def value#(x, t): return sum((i + 1) * v for i, v in enumerate(D#.values()))

def g#(d): return lambda k: d[k] + 0.5
f# = g#({'a': 1.5, 'b': 2.5})
def value#(x, t): return f#('b')

A# = np.array([1.5, 0.5, 2.5])
def value#(x, t): return A#[0] + A#.sum()

@jax.jit
def f#(x): return jnp.where(x > 1.5, x * 0.5, jnp.sin(x) + 2.5)
def value#(x, t): return f#(t[0].astype(jnp.float32))

@functools.lru_cache
def f#(x): return x * 1.5
UNUSED# = 1.5
def unused#(x): return x + 1.5
def value#(x, t): return f#(0.5)
""".strip().split("\n\n")
# name -> what is found in a text, and what takes one place of it
MUTATIONS = {
    "decimal": (r"\d+\.\d+", lambda rng, m: str(float(m[0]) + rng.choice([-0.125, 0.125, 1.0, 1e-6]))),
    "operator": (r" [-+*] (?=[\w(])", lambda rng, m: rng.choice([o for o in (" + ", " - ", " * ") if o != m[0]])),
    "order": (r"('\w': [\d.]+), ('\w': [\d.]+)", lambda rng, m: f"{m[2]}, {m[1]}"),
    "call": (r"jnp\.sin", lambda rng, m: "jnp.cos"),
    "comment": (r"\n(?=def |class )", lambda rng, m: f"\n# {rng.random()}\n"),
    "unused": (r"UNUSED\d = [\d.]+|(?<=unused\d\(x\): return x )\+ [\d.]+", lambda rng, m: m[0] + "1"),
    "renamed": (r"\b[fgAD]\d\b", lambda rng, m: f"{m[0]}_{rng.randrange(100)}"),  # in every place
}
EDITS = int(os.environ.get("EDITS", 16))


def random_edit(rng: random.Random, text: str) -> tuple[str, str]:
    possible = [name for name, (pattern, _) in MUTATIONS.items() if re.search(pattern, text)]
    name = rng.choice([*possible, *["decimal"] * 5, *["operator"] * 3])
    place = rng.choice(list(re.finditer(MUTATIONS[name][0], text)))
    new = MUTATIONS[name][1](rng, place)
    if name == "renamed":
        return name, re.sub(rf"\b{place[0]}\b", new, text)
    return name, text[: place.start()] + new + text[place.end() :]


def test_random_edits_never_find_old_results(tmp_path, capsys):
    """EDITS=2000 (`make fuzz`) for more of them. A module is edited from its latest working state."""
    rng = random.Random(int(os.environ.get("EDITS_SEED", 0)))
    tally = {name: [] for name in ("kept", "stale", "needless", "changed", "broken")}
    for i in range(EDITS):
        if i % min(25, EDITS // 4) == 0:
            text = "\n".join(rng.choice(CONSTRUCTS).replace("#", str(j)) for j in range(4))
            text = re.sub(r"\d+\.\d+", lambda _: str(rng.randrange(1, 64) / 8), text)
            values = [f"value{j}(x, t)" for j in range(4)]
            before = look(tmp_path / f"{i}.before", module_of(text, *values))
        name, edited_text = random_edit(rng, text)
        try:
            after = look(tmp_path / str(i), module_of(edited_text, *values))
        except Exception as error:  # such as a division by zero
            tally["broken"].append(f"{name}: {error}")
            continue
        key, results = (old != new for old, new in zip(before, after, strict=True))
        tally[[*tally][2 * key + results]].append(name)
        before, text = after, edited_text
    with capsys.disabled():
        print(f"\n{EDITS} edits: " + ", ".join(f"{len(edits)} {kind}" for kind, edits in tally.items()))
    assert not tally["stale"]
    assert len(tally["changed"]) > EDITS / 3 and len(tally["broken"]) < EDITS / 8
    # only what is computed and never read, and what rounding hides, may change a key for nothing
    assert len(tally["needless"]) < EDITS / 4
    assert {"comment", "unused", "renamed"}.isdisjoint(tally["needless"]) and len(tally["kept"]) > EDITS / 20

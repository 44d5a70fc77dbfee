"""Edits of users' code between two runs: a key changes where results change, and stays where they stay.

Keys are those of a store; results are played from the module as it is (`random_modules`), so that neither side knows
of the other.
"""

import os
import warnings
from functools import partial

import numpy as np
import pytest
from random_modules import SEEDS, algorithm, key_of, loaded, look, outcomes, plan_of, played, random_edits

import jaxbandits as jb
from jaxbandits.sweeps.identity import identify_cells

# ---- edits of one module

# A user's algorithm, environment and adversary, whose numbers come to the traced program in many ways. The state keeps
# each number in a place of its own, so that no other hides its last bits.
MINE = '''
"""Everything of a user's."""

import functools, os
from typing import Any, NamedTuple

import helper
import jax
import jax.numpy as jnp
import numpy as np
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Adversary, Algorithm, Attack, Environment, Guarantee, Program, Score, Span, Truth, World

LIMIT = np.float32(0.1)
MODE = "fast"
TABLE = np.arange(3000.0, dtype=np.float32)
RATES = {"a": 1.0, "b": 2.0}
RATE = float(os.environ.get("RATE_OF_MINE", "1.0"))
UNUSED = 4.0


class Base:
    SIGN = 1.0


class Child(Base):
    pass


def default(x=0.5):
    return x


def scaled(factor):
    return lambda x: x * factor


by_closure = scaled(3.0)


def by_text(x):
    return x + 2.0 if MODE == "fast" else x * 4.0


def unused(x):
    return x * 8.0


def from_file():
    return float(open(os.path.join(os.path.dirname(__file__), "number.txt")).read())


def repeated(x):
    return jax.lax.scan(lambda c, _: (c * 1.5, None), x, None, length=3)[0]


@jax.custom_jvp
def slope(x):
    return x * 0.75


@slope.defjvp
def _(x, tangent):
    return slope(x[0]), tangent[0] * 5.0


def numbers(params, t, draws):
    x = params.rate
    read = [
        LIMIT, sum(i * rate for i, rate in enumerate(RATES.values())), RATE, Child.SIGN, default(), helper.X,
        from_file(), 2.0 if jnp.asarray(params.bias).dtype.kind == "f" else 1.0,
    ]
    computed = [
        jnp.asarray(TABLE)[t[0]], by_closure(x), by_text(x), helper.g(x), repeated(x), slope(x), x - jnp.sin(x),
        x + 0.125, (x / 3).astype(jnp.float16).astype(jnp.float32), jnp.sum(jnp.zeros(6).at[t[0]].add(x, mode="clip")),
    ]
    return jnp.concatenate([jnp.asarray(np.array(read, np.float32)), jnp.stack(computed)])


class Params(NamedTuple):
    rate: Any = 0.5
    bias: Any = 0.0


class State(NamedTuple):
    mean: Any
    seen: Any


def wave(t, seed, arm):
    return (jnp.sin((7 * t + 5 * seed.astype(jnp.int32) + 3 * arm).astype(jnp.float32)) + 1) / 2


def init(params, draws):
    return State(jnp.zeros(3, draws.dtype), jnp.zeros(18, draws.dtype))


def act(params, state, draws, t, context):
    action = argmax(state.mean + wave(t[0], draws.seed, jnp.arange(3)))
    return jnp.full(t.shape, action), None, (action, numbers(params, t, draws))


def encode(params, note, draws, t, context, action, reward, play):
    return reward[0]


def relay(params, draws, t, message, play):
    return message * 0.5


def update(params, state, draws, t, note, message, used):
    action, seen = note
    return State(state.mean.at[action].add(params.rate * message), seen), ()


def close(params, state, draws, t):
    return state._replace(mean=state.mean * 0.5)


def diagnose(params, state):
    return {"total": jnp.sum(state.mean)}


program = Program(init, act, encode, update, relay, close, diagnose)


def mine(*, num_arms, horizon):
    schedule = (Span(1, horizon, close=True),)
    return Algorithm(program, schedule, Params(), Guarantee(), ("mine", 1, (num_arms,)), {"horizon": horizon})


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


def baseline(params, seed, times):
    return np.asarray(times) / 4 + 2 * seed


facts = {"num_arms": 3, "means": np.array([0.25, 0.5, 0.75])}
world = Environment(World(init_world, observe, reward, score, truth, 3, baseline, True), 1.0, facts, None, {})


def corrupt(params, state, draws, t, payload, seen):
    return payload + params * 0.5, False, state


adversary = Adversary(Attack(lambda params, draws: (), corrupt), 0.5, None, {})
'''
HELPER = "from deeper import g\nX = 1.0\n"
DEEPER = "def g(x):\n    return x * 1.5\n"
FILES = {"mine.py": MINE, "helper.py": HELPER, "deeper.py": DEEPER, "number.txt": "1.5"}

# an edit after which another number is seen, each another one -> the file, what is replaced, and by what
NUMBERS = {
    # ways by which a number comes to the program
    "the last bit of a constant": ("mine.py", "np.float32(0.1)", "np.nextafter(np.float32(0.1), np.float32(1))"),
    "a constant of a base class": ("mine.py", "SIGN = 1.0", "SIGN = -1.0"),
    "a default argument": ("mine.py", "default(x=0.5)", "default(x=0.25)"),
    "a closure": ("mine.py", "scaled(3.0)", "scaled(4.0)"),
    "text that selects a branch": ("mine.py", 'MODE = "fast"', 'MODE = "slow"'),
    "one entry of a long array": ("mine.py", "dtype=np.float32)\n", "dtype=np.float32)\nTABLE[12] = 8.0\n"),
    "a function of a file that another file imports": ("deeper.py", "x * 1.5", "x * 2.5"),
    "a file read while tracing": ("number.txt", "1.5", "2.5"),
    # what differs between two programs
    "an operator": ("mine.py", "x + 0.125", "x - 0.125"),
    "the order of two operands": ("mine.py", "x - jnp.sin(x)", "jnp.sin(x) - x"),
    "a type": ("mine.py", "astype(jnp.float16)", "astype(jnp.bfloat16)"),
    "how often a loop repeats": ("mine.py", "length=3", "length=2"),
    "a function with a derivative of its own": ("mine.py", "x * 0.75", "x * 0.25"),
    "a setting of an operation": ("mine.py", 'mode="clip"', 'mode="drop"'),
    "an integer parameter": ("mine.py", "bias: Any = 0.0", "bias: Any = 0"),
}
# the same for other functions and numbers of the parts
PARTS = {
    "a default of Params": ("mine.py", "rate: Any = 0.5", "rate: Any = 0.25"),
    "the first state": ("mine.py", "State(jnp.zeros(3", "State(jnp.ones(3"),
    "what the end of a span computes": ("mine.py", "state.mean * 0.5", "state.mean * 0.25"),
    "the length of batches": ("mine.py", "Span(1, horizon, ", "Span(1, horizon // 4, length=4, "),
    "a diagnostic": ("mine.py", "jnp.sum(state.mean)", "jnp.max(state.mean)"),
    "the name of a diagnostic": ("mine.py", '"total"', '"sum"'),
    "the world's means": ("mine.py", "0.75])", "0.5])"),
    "a baseline of later seeds": ("mine.py", "2 * seed", "3 * seed"),
    "an adversary on messages": ("mine.py", "\nadversary = ", "\nforger = "),
}
# the same for edits after which nothing else is computed
NOTHING = {
    "a comment": ("mine.py", 'MODE = "fast"', 'MODE = "fast"  # or "slow"'),
    "a renamed function": ("mine.py", "by_text", "by_a_word"),
    "a renamed field": ("mine.py", "bias", "shift"),
    "a lambda in place of a function": (
        "mine.py",
        "def default(x=0.5):\n    return x\n",
        "default = lambda x=0.5: x\n",
    ),
    "another way to a constant": ("mine.py", '"b": 2.0', '"b": 4.0 / 2'),
    "the order of definitions": (
        "mine.py",
        "UNUSED = 4.0\n\n\nclass Base:\n    SIGN = 1.0\n",
        "class Base:\n    SIGN = 1.0\n\n\nUNUSED = 4.0\n",
    ),
    "a constant that is not used": ("mine.py", "UNUSED = 4.0", "UNUSED = 5.0"),
    "a function that is not used": ("mine.py", "x * 8.0", "x * 9.0"),
    "a branch that is not taken": ("mine.py", "x * 4.0", "x * 5.0"),
    "a derivative that nobody takes": ("mine.py", "tangent[0] * 5.0", "tangent[0] * 6.0"),
    "a decorator that changes nothing": ("mine.py", "def from_file", "@functools.cache\ndef from_file"),
    "a check": ("mine.py", "def scaled(factor):\n", "def scaled(factor):\n    assert factor\n"),
    "a name for the profiler": (
        "mine.py",
        "    return x + 2.0 if",
        "    with jax.named_scope('f'):\n        return x + 2.0 if",
    ),
    "a function that moved to another file": (
        "helper.py",
        "from deeper import g",
        "def g(x):\n    y = x * 1.5\n    return y",
    ),
    "the algorithm's name and config": ("mine.py", '("mine", 1, (num_arms,)), {', '("best", 1, ()), {"note": 3, '),
}
# the same for edits that no trace and no first seeds show
VERSIONS = {
    "the algorithm's version": ("mine.py", '("mine", 1,', '("mine", 2,'),
    "the adversary's version": ("mine.py", "corrupt), 0.5, None, {})", "corrupt), 0.5, None, {}, 2)"),
}


def edited(file, old, new):
    """The files after an edit: of one place, or of every place that has a name."""
    assert FILES[file].count(old) == 1 or old.isidentifier(), old
    return FILES | {file: FILES[file].replace(old, new)}


def edited_all(edits):
    files = dict(FILES)
    for file, old, new in edits:
        assert old in files[file], old
        files[file] = files[file].replace(old, new)
    return files


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The outcome of the module before and after edits: of single ones, and of all that change a number or nothing."""
    modules = {"before": FILES, "numbers": edited_all(NUMBERS.values()), "nothing": edited_all(NOTHING.values())}
    modules |= {name: edited(*edit) for name, edit in (PARTS | VERSIONS).items()}
    return outcomes(tmp_path_factory.mktemp("mine"), modules)


def test_every_edit_of_a_number_changes_a_number(seen):
    before, after = (
        np.array([np.frombuffer(bits, np.float32) for shape, _, bits in outcome.results[1] if shape == (SEEDS, 18)])
        for outcome in (seen["before"], seen["numbers"])
    )
    changed = (before != after).reshape(SEEDS, 18)
    assert (changed.sum(axis=1) == len(NUMBERS)).all()


@pytest.mark.parametrize("name", NUMBERS)
def test_an_edit_of_a_number_changes_the_key(name, seen, tmp_path):
    with loaded(tmp_path, edited(*NUMBERS[name])) as module:
        key, nameless = key_of(module)
    assert key != seen["before"].key and not nameless


@pytest.mark.parametrize("name", PARTS)
def test_an_edit_of_a_part_changes_the_key(name, seen):
    before, after = seen["before"], seen[name]
    assert not after.nameless and before.results != after.results and before.key != after.key


def test_edits_that_change_nothing_keep_the_key(seen, tmp_path):
    if seen["before"] == seen["nothing"]:
        return
    for i, (name, edit) in enumerate(NOTHING.items()):
        with loaded(tmp_path / str(i), edited(*edit)) as module:
            assert key_of(module)[0] == seen["before"].key, name
    raise AssertionError("each edit alone keeps the key, and all of them together do not")


@pytest.mark.parametrize("name", VERSIONS)
def test_a_version_number_is_the_last_word(name, seen):
    """What no trace and no first seeds show, such as a baseline that reads a file for a later seed."""
    before, after = seen["before"], seen[name]
    assert before.results == after.results and before.key != after.key


def test_a_move_keeps_the_key_and_an_edit_there_changes_it(seen, tmp_path):
    there = {f"lib/site-packages/{file}": text for file, text in FILES.items()}
    changed = there | {"lib/site-packages/deeper.py": DEEPER.replace("1.5", "2.5")}
    renamed = {file.replace("mine", "another"): text for file, text in FILES.items()}
    moved, after, another = played([
        look(tmp_path / "a", there, path="lib/site-packages"), look(tmp_path / "b", changed, path="lib/site-packages"),
        look(tmp_path / "c", renamed, name="another"),
    ])  # fmt: skip
    before = seen["before"]
    assert before == moved == another and before.results != after.results and before.key != after.key


def test_an_environment_variable_read_at_import_is_seen(seen, tmp_path, monkeypatch):
    looks = []
    for rate in ("2.0", "1.0"):
        monkeypatch.setenv("RATE_OF_MINE", rate)
        looks.append(look(tmp_path / rate, FILES))
    other, same = played(looks)
    before = seen["before"]
    assert before == same and before.results != other.results and before.key != other.key


# ---- other modules

DRAWN = algorithm(
    """
def drawn(key):
    with jax.threefry_partitionable(True):
        return jax.random.uniform(key, (3,), jnp.float32)[2]
""",
    "drawn(jax.random.wrap_key_data(jnp.stack([t[0], t[0]]).astype(jnp.uint32)))"
    " + jax.random.uniform(jax.random.key(1), dtype=jnp.float32) + draws.child('a').uniform(t[0])",
)
RULE = algorithm(
    """
@jax.custom_batching.custom_vmap
def f(x, y):
    return x * y


@f.def_vmap
def _(size, batched, x, y):
    return (x * y if all(batched) else x * y * 4.0), True
""",
    "f(wave(t[0], draws.seed, 0), 1.0)",
)
BASED = (
    algorithm("", "1.0")
    + """


def base(*, num_arms, horizon):
    part = jb.algorithms.ucb1(num_arms=num_arms, horizon=horizon)

    def act(params, state, draws, t, context):
        action, used, note = part.program.act(params, state, draws, t, context)
        return (action + OFFSET) % 3, used, note

    return part._replace(program=part.program._replace(act=act))


OFFSET = 1
mine = partial(jb.algorithms.delayed, base=base, delay=2)
"""
)
OTHERS = {
    "how bits are split": (DRAWN, "partitionable(True)", "partitionable(False)"),
    "the generator of a key": (DRAWN, "key(1)", "key(1, impl='rbg')"),
    "the path of a draw": (DRAWN, "child('a')", "child('b')"),
    "a rule of custom_vmap for one argument": (RULE, "x * y * 4.0", "x * y * 5.0"),
    "a base": (BASED, "OFFSET = 1", "OFFSET = 2"),
}


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """The outcome of each text before and after its edits."""
    texts = {text: text for text, *_ in OTHERS.values()}
    texts |= {name: text.replace(old, new) for name, (text, old, new) in OTHERS.items()}
    return outcomes(tmp_path_factory.mktemp("others"), {name: {"mine.py": text} for name, text in texts.items()})


@pytest.mark.parametrize("name", OTHERS)
def test_an_edit_of_another_module_changes_the_key(name, others):
    text, old, _ = OTHERS[name]
    before, after = others[text], others[name]
    assert text.count(old) == 1
    assert not before.nameless and before.results != after.results and before.key != after.key


def test_what_is_drawn_at_import_has_an_identity_and_what_is_drawn_while_tracing_has_none(tmp_path):
    text = algorithm("X = np.random.default_rng().random()", "X")
    imported = played([look(tmp_path / f"a{i}", {"mine.py": text}) for i in range(2)])
    assert imported[0].key != imported[1].key and imported[0].results != imported[1].results
    assert not imported[0].nameless
    for i, (definitions, value) in enumerate([
        ("", "np.random.default_rng().random()"),
        (
            "def f(x): return np.float32(2) * x\nRESULT = jax.ShapeDtypeStruct((), jnp.float32)",
            "jax.pure_callback(f, RESULT, params.rate, vmap_method='sequential')",
        ),
    ]):  # fmt: skip
        with loaded(tmp_path / f"b{i}", {"mine.py": algorithm(definitions, value)}) as module:
            assert key_of(module)[1], value


# ---- one process

SETTINGS = {"horizon": 12, "seeds": 4, "checkpoints": 2, "progress": False}


def test_two_cells_of_an_integer_and_a_float_stay_apart(tmp_path):
    value = "2.0 + params.bias if jnp.asarray(params.bias).dtype.kind == 'f' else 1.0"
    text = algorithm("", value).replace("def mine(*, num_arms, horizon)", "def mine(*, num_arms, horizon, bias=0.0)")
    points = [{"bias": 1}, {"bias": 1.0}]
    with loaded(tmp_path, {"mine.py": text.replace("Params(), ", "Params(bias=bias), ")}) as module:
        assert len(set(identify_cells(plan_of(module, points=points), "cpu", stored=True)[1])) == 2
        kept = jb.sweep(module.mine, module.world, **SETTINGS, points=points)
        assert not np.array_equal(kept.total.isel(point=0), kept.total.isel(point=1))


@pytest.mark.compiles(20)  # two sweeps and two simulations
@pytest.mark.parametrize("callback", [False, True])
def test_a_value_changed_between_two_runs_is_read_anew(callback, tmp_path):
    """With a store, in memory and in `simulate`, also where a callback leaves the program without an identity."""
    value = (
        "jax.pure_callback(double, jax.ShapeDtypeStruct((), jnp.float32), params.rate, vmap_method='expand_dims') * C.X"
    )
    text = algorithm("class C: X = 1.0\ndef double(x): return np.float32(2) * x", value if callback else "C.X")
    with loaded(tmp_path, {"mine.py": text}) as module, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        totals = []
        for x in (1.0, 2.0):
            module.C.X = x
            stored = jb.sweep(module.mine, module.world, **SETTINGS, store=tmp_path / "store").total.values
            if callback:
                single = jb.simulate(partial(module.mine, horizon=12), module.world, seed=3)
                np.testing.assert_array_equal(single.diagnostics["total"], stored[0, 3])
            else:
                np.testing.assert_array_equal(jb.sweep(module.mine, module.world, **SETTINGS).total, stored)
            totals.append(stored)
        assert not np.array_equal(*totals)


def test_nothing_is_compiled_again_for_what_did_not_change(tmp_path):
    from jaxbandits.sweeps.compilation.compiled import functions_of_group

    with loaded(tmp_path, {"mine.py": algorithm("class C: X = 1.0", "C.X")}) as module:
        jb.sweep(module.mine, module.world, **SETTINGS)
        before = functions_of_group.cache_info().misses
        jb.sweep(module.mine, module.world, **SETTINGS)
        assert functions_of_group.cache_info().misses == before


# ---- random edits of random modules


EDITS = int(os.environ.get("EDITS", 16))


@pytest.mark.compiles(max(12, EDITS // 8))
def test_random_edits_never_find_old_results(tmp_path, capsys):
    """EDITS=2000 (`make fuzz`) for more of them."""
    number, seed = EDITS, int(os.environ.get("EDITS_SEED", 0))
    tally = random_edits(number, seed, tmp_path, edits_of_one=min(25, number // 4))
    with capsys.disabled():
        print(f"\n{number} edits: " + ", ".join(f"{len(edits)} {name}" for name, edits in tally._asdict().items()))
    assert not tally.stale
    assert len(tally.changed) > number / 3 and len(tally.broken) < number / 8
    # only what is computed and never read, and what rounding hides, may change a key for nothing
    assert len(tally.needless) < number / 4
    assert {"_comment", "_unused", "_renamed"}.isdisjoint(tally.needless) and len(tally.kept) > number / 20

"""Keys of the store: equal exactly where the results are equal."""

import dataclasses
import functools
import importlib
import json
import os
import subprocess
import sys
import textwrap
import threading
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.sweeps.identity import Description, keys_of
from jaxbandits.sweeps.plan import plan
from jaxbandits.sweeps.run import DEFAULTS

A, E = jb.algorithms, jb.environments
ARMS = E.bernoulli_arms(means=[0.2, 0.8])
BASE = {"horizon": 100, "seeds": 8, "checkpoints": 10, "reward_adversary": jb.adversaries.huber(corruption=0.1)}


def key(algorithm=A.exp3, environment=ARMS, platform="cpu", **changes):
    (found,) = keys_of(plan({"x": algorithm}, environment, **(DEFAULTS | BASE | changes)), platform)
    return found


SAME = {
    "more seeds": {"seeds": 1000},
    "another range": {"seeds": range(7, 9)},
    "the arguments as another type": {"environment": E.bernoulli_arms(means=np.array([0.2, 0.8]))},
    "a factory instead of a part": {"environment": partial(E.bernoulli_arms, means=(0.2, 0.8))},
    "the same checkpoints, listed": {"checkpoints": [1, 2, 3, 5, 8, 13, 22, 36, 60, 100]},
    "a default said aloud": {"algorithm": partial(A.exp3, feedback_scale=0)},
}
OTHER = {
    "horizon": {"horizon": 101},
    "checkpoints": {"checkpoints": 11},
    "dtype": {"dtype": "float64"},
    "platform": {"platform": "gpu"},
    "a parameter": {"algorithm": partial(A.exp3, learning_rate=0.1)},
    "a static argument": {"algorithm": partial(A.exp3, mixing=0.1)},
    "the algorithm": {"algorithm": A.exp3_ix},
    "a mean": {"environment": E.bernoulli_arms(means=[0.2, 0.8000000000000002])},
    "the environment": {"environment": E.bernoulli_losses(means=[0.8, 0.2])},
    "the adversary": {"reward_adversary": jb.adversaries.huber(corruption=0.11)},
    "a kind of adversary": {"reward_adversary": jb.adversaries.huber(corruption=0.1, kind="swapped")},
    "no adversary": {"reward_adversary": None},
}


@pytest.mark.parametrize("name", SAME)
def test_what_changes_no_result_changes_no_key(name):
    assert key(**SAME[name]) == key()


def test_what_changes_results_changes_the_key():
    keys = {name: key(**changes) for name, changes in OTHER.items()}
    assert len({key(), *keys.values()}) == 1 + len(OTHER)


def test_every_case_of_the_catalogue_has_its_own_key():
    def case_key(example):
        names = ("algorithm", "environment", "horizon", "reward_adversary", "message_adversary")
        return key(**{name: getattr(example, name) for name in names})

    keys, again = ({name: case_key(example) for name, example in catalogue.EVERYTHING.items()} for _ in range(2))
    assert keys == again
    assert len(set(keys.values())) > 25  # some cases of an environment are also a case of an algorithm


def test_numbers_and_text_are_told_apart():
    described = Description()
    values = [
        0.1,
        0.2,
        1,
        "1",
        True,
        None,
        [1, 2],
        [[1, 2]],
        [2, 1],
        ["1", 2],
        float("inf"),
        float("nan"),
        2**60,
        2**60 + 1,
    ]
    assert len({json.dumps(described(v)) for v in values}) == len(values)
    assert described(1) == described(1.0) == described(np.float32(1)) == described(np.int64(1))
    assert described([0.5, 2]) == described((0.5, 2.0)) == described(np.array([0.5, 2]))


# ---- a user's own code

OWN = """
    import functools
    import jax.numpy as jnp
    LIMIT = 3

    def helper(x):
        return jnp.exp(x)

    def unused(x):
        return x + 1

    @functools.cache
    def build(rate):
        names = {"b", "a", "c"}
        def update(x):
            return helper(x) * rate * LIMIT if x in {"one", "two", "three"} else 0
        return update

    made = build(2.0)
"""
EDITS = {
    "its body": ("* rate * LIMIT", "* rate + LIMIT"),
    "a constant in it": ("else 0", "else 1"),
    "a helper it calls": ("jnp.exp(x)", "jnp.log(x)"),
    "a global it reads": ("LIMIT = 3", "LIMIT = 4"),
    "a value it closes over": ("build(2.0)", "build(2.5)"),
}


def own_code(text):
    space: dict = {"__name__": "my_module"}
    exec(compile(textwrap.dedent(text), "my_module.py", "exec"), space)
    return Description()(space["made"], True)


def test_an_edit_of_a_users_code_is_seen():
    whole = own_code(OWN)
    edited = {name: own_code(OWN.replace(*edit)) for name, edit in EDITS.items()}
    assert len({*edited.values(), whole}) == 1 + len(EDITS)
    assert own_code(OWN.replace("return x + 1", "return x + 2")) == whole  # what it does not reach
    assert own_code(OWN + "    # a comment\n") == whole


def first(x):
    return x


def second(x):
    return x + 1


def closed(value):
    """A user's function that closes over a value."""

    def inside(x):
        return value

    return inside


def decorated(function):
    @functools.wraps(function)
    def inside(params, state, *others):
        return state, ()

    return inside


class Rule:
    def __init__(self, rate):
        self.rate = rate

    def update(self, x):
        return self.rate * x

    def __call__(self, x):
        return self.rate + x


@dataclasses.dataclass
class Settings:
    rate: float


EXP3 = A.exp3(num_arms=3, horizon=10).program
WORLD = ARMS.world
DIFFERENT = {
    "decorated, and what it decorates": (EXP3, EXP3._replace(update=decorated(EXP3.update))),
    "another library's function in its place": (EXP3, EXP3._replace(act=A.exp3_ix(num_arms=3, horizon=10).program.act)),
    "numbers of a partial": (functools.partial(first, 1), functools.partial(first, 5)),
    "numbers of a partial closed over": (closed(partial(A.exp3, mixing=0.1)), closed(partial(A.exp3, mixing=0.2))),
    "functions of libraries": (closed(jnp.tanh), closed(jnp.sin)),
    "functions of NumPy": (closed(np.tanh), closed(np.sin)),
    "the order of functions": (closed((first, second)), closed((second, first))),
    "a number beside a function": (closed((first, 1)), closed((first, 2))),
    "an int and a float": (closed(2), closed(2.0)),
    "a float and a float32": (closed(2.0), closed(np.float32(2.0))),
    "arrays": (closed(jnp.zeros(2)), closed(jnp.ones(2))),
    "sets": (closed({1, 2}), closed({1, 3})),
    "ranges": (closed(range(3)), closed(range(4))),
    "bytes": (closed(b"a"), closed(b"b")),
    "dataclasses": (closed(Settings(1.0)), closed(Settings(2.0))),
    "objects of their methods": (closed(Rule(1).update), closed(Rule(2).update)),
    "callable objects": (closed(Rule(1)), closed(Rule(2))),
    "environments": (closed(ARMS), closed(E.bernoulli_arms(means=[0.2, 0.9]))),
    "what jit wraps": (closed(jax.jit(first)), closed(jax.jit(second))),
    "what vmap wraps": (closed(jax.vmap(first)), closed(jax.vmap(second))),
    "a flag of a World": (WORLD, WORLD._replace(seeded=True)),
    "objects of a library": (closed(np.random.default_rng(1)), closed(np.random.default_rng(2))),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_a_users_code_uses_is_told_apart(name):
    one, other = DIFFERENT[name]
    assert Description()(one, True) == Description()(one, True) != Description()(other, True)


REGISTRY = {}


def through_registry(x):
    return REGISTRY["through"](x)


REGISTRY["through"] = through_registry


def test_code_may_refer_to_itself_and_must_be_describable():
    assert Description()(through_registry, True) != Description()(first, True)
    with pytest.raises(ValueError, match="a store must know what a function uses"):
        Description()(closed(threading.Lock()), True)


def test_another_module_of_the_users_is_followed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for body in ("return x", "return x + 1"):
        (tmp_path / "users_helper.py").write_text(f"def shift(x):\n    {body}\n")
        sys.modules.pop("users_helper", None)
        importlib.invalidate_caches()
        space: dict = {"__name__": "users_module", "users_helper": importlib.import_module("users_helper")}
        exec("def update(x):\n    return users_helper.shift(x)\n", space)
        found.append(Description()(space["update"], True))
    assert found[0] != found[1]


def test_a_store_keeps_two_such_algorithms_apart(tmp_path):
    def frozen(*, num_arms, horizon):
        made = A.exp3(num_arms=num_arms, horizon=horizon)
        return made._replace(program=made.program._replace(update=decorated(made.program.update)))

    settings = {"horizon": 60, "seeds": 8, "checkpoints": 3, "progress": False}
    in_memory = jb.sweep({"exp3": A.exp3, "frozen": frozen}, ARMS, **settings)
    kept = jb.sweep({"exp3": A.exp3, "frozen": frozen}, ARMS, **settings, store=tmp_path)
    np.testing.assert_array_equal(kept.regret, in_memory.regret)
    assert not np.array_equal(kept.regret[0], kept.regret[1])


def test_keys_are_the_same_in_another_process():
    """Sets and hashes have another order in every process."""
    script = "import sys; sys.path.insert(0, sys.argv[1]); import test_identity as t; print(t.key(), t.own_code(t.OWN))"
    command = [sys.executable, "-c", script, os.path.dirname(__file__)]
    said = {
        subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {f"{key()} {own_code(OWN)}\n"}

"""Keys of the store: equal exactly where the results are equal."""

import functools
import json
import os
import subprocess
import sys
import textwrap
from functools import partial

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.sweeps.identity import canonical, foreign_code, keys_of
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
    assert all(not foreign_code(plan_of(example).program) for example in catalogue.ALGORITHMS.values())


def plan_of(example):
    attackers = {"reward_adversary": example.reward_adversary, "message_adversary": example.message_adversary}
    settings = DEFAULTS | attackers | {"horizon": example.horizon, "seeds": 1}
    return plan(example.algorithm, example.environment, **settings).cells[0].algorithm


def test_numbers_and_text_are_told_apart():
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
    assert len({json.dumps(canonical(v)) for v in values}) == len(values)
    assert canonical(1) == canonical(1.0) == canonical(np.float32(1)) == canonical(np.int64(1))
    assert canonical([0.5, 2]) == canonical((0.5, 2.0)) == canonical(np.array([0.5, 2]))


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
    return foreign_code((space["made"],))


def test_an_edit_of_a_users_code_is_seen():
    whole = own_code(OWN)
    assert len(whole) == 2  # the function and its helper; JAX's own are not walked
    edited = {name: own_code(OWN.replace(*edit)) for name, edit in EDITS.items()}
    assert len({*map(tuple, edited.values()), tuple(whole)}) == 1 + len(EDITS)
    assert own_code(OWN.replace("return x + 1", "return x + 2")) == whole  # what it does not reach
    assert own_code(OWN + "    # a comment\n") == whole


def test_a_users_algorithm_inside_a_conversion_is_seen():
    def own(*, num_arms, horizon, rate=1.0):
        made = A.exp3(num_arms=num_arms, horizon=horizon)
        return made._replace(program=made.program._replace(update=functools.partial(changed, rate)))

    def changed(rate, params, state, draws, t, note, message, used):
        return state, ()

    inside = partial(A.private_batched, base=own, epsilon=0.5)
    assert foreign_code(plan_of_factory(inside)) and not foreign_code(
        plan_of_factory(partial(A.private_batched, epsilon=0.5))
    )


def plan_of_factory(factory):
    return (
        plan(factory, E.bernoulli_arms(means=[0.2, 0.8]), **(DEFAULTS | {"horizon": 50, "seeds": 1}))
        .cells[0]
        .algorithm.program
    )


def test_keys_are_the_same_in_another_process():
    """Sets and hashes have another order in every process."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_identity as t; print(t.key(), *t.own_code(t.OWN))"
    )
    command = [sys.executable, "-c", script, os.path.dirname(__file__)]
    said = {
        subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {" ".join([key(), *own_code(OWN)]) + "\n"}

"""Names of finished chunks, for parts of this package: equal exactly where version numbers and arguments say the same.

What a user's own code computes is in `test_edits.py`.
"""

import copy
import functools
import json
import os
import shutil
import subprocess
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import fresh_process
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.sweeps import plan
from jaxbandits.sweeps.identity import keys, pinned_code
from jaxbandits.sweeps.identity import library_parts as description
from jaxbandits.sweeps.identity.keys import identified
from jaxbandits.sweeps.identity.library_parts import describe_part, is_altered
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.sweeps.sweep import DEFAULTS

A, E, V = jb.algorithms, jb.environments, jb.adversaries
MEANS = (0.25, 0.75)  # exact in float32
ARMS = E.bernoulli_arms(means=MEANS)
LOSSES = E.bernoulli_losses(means=[0.25, 0.5, 0.75])
BASE = {"horizon": 100, "seeds": 8, "checkpoints": 10, "reward_adversary": V.huber(corruption=0.125)}
PACKAGE = Path(jb.__file__).parent


@pytest.fixture(autouse=True)
def pinned(monkeypatch):
    """Version numbers speak for the code, whether or not it has been pinned since it was last edited."""
    monkeypatch.setattr(pinned_code, "unchanged", lambda: True)


def key(algorithm=A.exp3, environment=ARMS, platform="cpu", **changes):
    laid_out = plan.plan({"x": algorithm}, environment, **(DEFAULTS | BASE | changes))
    (name,) = identified(laid_out, platform, stored=True).keys
    return name


# ---- arguments: the first list holds variants that mean the same, the second such that mean something else

EXP3 = partial(A.exp3, learning_rate=0.5)
PRIVATE = partial(A.private_batched, epsilon=0.25, base=A.exp3)
DOUBLE = partial(A.doubling, base=partial(A.online_ucb, epsilon=4.0))
CONTEXTS = E.contextual_linear(num_arms=6, dim=3)
COMBINER = partial(A.bandit_combiner, epsilon=4.0, bases=[DOUBLE, partial(A.online_ucb, epsilon=4.0)])
ADVICE = E.rotating_experts(losses=LOSSES, num_experts=4)
EXPERTS = partial(A.bandit_to_experts, base=A.exp3)
FRAME = np.arange(6.0).reshape(3, 2)


def table(losses):
    return {"environment": E.loss_table(losses=losses), "horizon": 3, "checkpoints": 3}


def arms(means):
    return {"environment": E.bernoulli_arms(means=means)}


def combined(*bases):
    return {"algorithm": partial(A.bandit_combiner, epsilon=4.0, bases=list(bases)), "environment": CONTEXTS}


def advised(**changes):
    return {"algorithm": EXPERTS, "environment": E.rotating_experts(**{"losses": LOSSES, "num_experts": 4} | changes)}


class Array:
    """Numbers in a type of somebody else's, such as a column of a table with labels for its rows."""

    def __init__(self, values, labels):
        self.values, self.labels = values, labels

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


# name -> the call, and the calls that have the same key
SAME = {
    "seeds": [{}, {"seeds": 1000}, {"seeds": range(7, 9)}],
    "means": [
        {},
        *(
            arms(means)
            for means in (
                list(MEANS),
                np.array(MEANS),
                np.array(MEANS, np.float32),
                np.array(MEANS, np.float16),
                jnp.array(MEANS),
                [np.float32(0.25), np.float64(0.75)],
                np.asfortranarray(MEANS),
                np.array([0.25, 9.0, 0.75])[::2],
                np.ma.masked_array(MEANS, [False, False]),
                Array(MEANS, ["a", "b"]),
                Array(MEANS, ["b", "a"]),
            )
        ),
        {"environment": partial(E.bernoulli_arms, means=MEANS)},
        {"environment": partial(partial(E.bernoulli_arms, means=[0.5, 0.5]), means=MEANS)},
    ],
    "whole means": [arms([0, 1]), arms([0.0, 1.0]), arms(np.array([0, 1])), arms(range(2))],
    "checkpoints": [{}, {"checkpoints": [1, 2, 3, 5, 8, 13, 22, 36, 60, 100]}, {"checkpoints": 10.0}],
    "horizon": [{}, {"horizon": np.int64(100)}, {"horizon": 100.0}, {"horizon": [100]}],
    "defaults": [
        {},
        {"algorithm": partial(A.exp3, feedback_scale=0)},
        {"algorithm": partial(A.exp3, feedback_scale=0.0, learning_rate=None)},
        {"algorithm": partial(A.exp3, num_arms=2, horizon=100)},
        {"algorithm": partial(A.exp3, mixing=None)},
        {"grid": {"feedback_scale": [0.0]}},
    ],
    "a number": [
        {"algorithm": partial(A.exp3, learning_rate=rate)}
        for rate in (
            0.5,
            np.float32(0.5),
            np.float64(0.5),
            np.float16(0.5),
            Fraction(1, 2),
        )
    ]
    + [
        {"grid": {"learning_rate": [0.5]}},
        {"grid": {("learning_rate",): [0.5]}},
        {"points": [{"learning_rate": 0.5}]},
        {"algorithm": partial(A.exp3, feedback_scale=0.0, learning_rate=0.5)},
        {"algorithm": partial(A.exp3, learning_rate=0.5, feedback_scale=0.0)},
        {"algorithm": partial(EXP3, feedback_scale=0)},
        {"algorithm": partial(partial(A.exp3, learning_rate=0.25), learning_rate=0.5)},
    ],
    "a whole number": [{"algorithm": partial(A.exp3, learning_rate=one)} for one in (1, 1.0, np.int8(1), np.uint64(1))],
    "a base": [
        {"algorithm": PRIVATE, "environment": LOSSES},
        {"algorithm": partial(PRIVATE, base=partial(A.exp3)), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, base=partial(A.exp3, feedback_scale=0)), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, base=partial(A.exp3, mixing=None)), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, window=None), "environment": LOSSES},
        {"algorithm": partial(A.private_batched, base=A.exp3, epsilon=np.float32(0.25)), "environment": LOSSES},
    ],
    "the default base": [
        {"algorithm": partial(A.private_batched, epsilon=0.25), "environment": LOSSES},
        {"algorithm": partial(A.private_batched, epsilon=0.25, base=A.htinf), "environment": LOSSES},
        {"algorithm": partial(A.private_batched, epsilon=0.25, base=partial(A.htinf)), "environment": LOSSES},
    ],
    "an argument of a base": [
        {"algorithm": partial(PRIVATE, base=partial(A.exp3, learning_rate=0.5)), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, base=partial(partial(A.exp3), learning_rate=0.5)), "environment": LOSSES},
        {"algorithm": PRIVATE, "environment": LOSSES, "grid": {"base.learning_rate": [0.5]}},
        {"algorithm": PRIVATE, "environment": LOSSES, "grid": {"x.base.learning_rate": [0.5]}},
    ],
    "several bases": [
        combined(*COMBINER.keywords["bases"]),
        {"algorithm": partial(COMBINER, bases=tuple(COMBINER.keywords["bases"])), "environment": CONTEXTS},
        combined(DOUBLE, partial(A.online_ucb, epsilon=4)),
        combined(partial(DOUBLE, power=0.125), partial(A.online_ucb, epsilon=4)),
        {"algorithm": COMBINER, "environment": partial(E.contextual_linear, num_arms=6, dim=3)},
        {"algorithm": COMBINER, "environment": E.contextual_linear(dim=3, num_arms=6, features="unit")},
        {"algorithm": COMBINER, "environment": E.contextual_linear(dim=3, num_arms=6, spread=1)},
    ],
    "an environment in an environment": [
        advised(),
        advised(losses=E.bernoulli_losses(means=np.array([0.25, 0.5, 0.75]))),
        advised(rotation=100, advice=None),
        {"algorithm": EXPERTS, "environment": partial(E.rotating_experts, num_experts=4, losses=LOSSES)},
        {"algorithm": EXPERTS, "environment": ADVICE, "grid": {"environment.num_experts": [4]}},
    ],
    "a table": [
        table(FRAME / 8),
        table((FRAME / 8).tolist()),
        table([tuple(row) for row in FRAME / 8]),
        table([np.array(row) for row in FRAME / 8]),
        table(np.asfortranarray(FRAME / 8)),
    ],
    "an adversary": [
        {},
        {"reward_adversary": partial(V.huber, corruption=0.125)},
        {"reward_adversary": V.huber(corruption=np.float32(0.125), kind="fixed")},
        {"reward_adversary": V.huber(corruption=0.5), "grid": {"reward_adversary.corruption": [0.125]}},
    ],
    "text": [{"dtype": "float32"}, {"message_adversary": None}, {}],
}
# every call of a list has a key of its own, which the other lists do not have either
OTHER = {
    "the sweep": [
        {"horizon": 101},
        {"checkpoints": 11},
        {"dtype": "float64"},
        {"platform": "gpu"},
        {"checkpoints": [1, 2, 3, 5, 8, 13, 22, 36, 61, 100]},
        {"reward_adversary": None},
    ],
    "an argument": [
        {"algorithm": partial(A.exp3, learning_rate=np.nextafter(0.5, 1))},
        {"algorithm": partial(A.exp3, learning_rate=2.0)},
        {"algorithm": partial(A.exp3, mixing=0.0)},
        {"algorithm": partial(A.exp3, mixing=0.1)},
        {"algorithm": partial(A.exp3, mixing=np.float32(0.1))},
        {"algorithm": partial(A.exp3, feedback_scale=0.1)},
        {"algorithm": A.exp3_ix},
        {"algorithm": A.ucb1},
        {"algorithm": partial(A.ucb1, bonus_scale=0.5)},
    ],
    "an environment": [
        arms([0.25, np.nextafter(0.75, 1)]),
        arms([0.75, 0.25]),
        arms([0.25, 0.75, 0.75]),
        {"environment": E.bernoulli_losses(means=MEANS)},
        {"environment": E.gaussian_arms(means=MEANS)},
        {"environment": E.gaussian_arms(means=MEANS, scale=0.5)},
        table(FRAME / 16),
        table(FRAME.T.reshape(3, 2) / 8),
    ],
    "an adversary": [
        {"reward_adversary": V.huber(corruption=np.nextafter(0.125, 1))},
        {"reward_adversary": V.huber(corruption=0.125, kind="swapped")},
        {"reward_adversary": V.huber(corruption=0.125, value=0.5)},
        {"reward_adversary": V.huber(corruption=0.125, value="nan")},
        {"reward_adversary": V.huber(corruption=0.125, value="inf")},
        {"reward_adversary": V.huber(corruption=0.125, value="-inf")},
        {"reward_adversary": None, "message_adversary": V.huber(corruption=0.125)},
    ],
    "a base": [
        {"algorithm": partial(PRIVATE, base=A.ftpl), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, base=A.exp3_ix), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, base=partial(A.exp3, learning_rate=0.25)), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, base=partial(A.exp3, mixing=0.25)), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, base=partial(A.exp3, feedback_scale=0.25)), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, window=3), "environment": LOSSES},
        {"algorithm": partial(PRIVATE, epsilon=0.5), "environment": LOSSES},
        {"algorithm": A.exp3, "environment": LOSSES},
        combined(DOUBLE, DOUBLE),
        combined(partial(A.online_ucb, epsilon=4.0), DOUBLE),
        combined(partial(DOUBLE, power=0.25), partial(A.online_ucb, epsilon=4.0)),
        combined(
            partial(A.doubling, base=partial(A.online_ucb, epsilon=4.0, learner="ogd")),
            partial(A.online_ucb, epsilon=4.0, learner="ogd"),
        ),
    ],
    "an environment in an environment": [
        advised(losses=E.bernoulli_losses(means=[0.25, 0.5, np.nextafter(0.75, 1)])),
        advised(losses=E.fixed_gap_losses(num_arms=3)),
        advised(rotation=50),
        advised(spread=0.25),
        advised(num_experts=5),
        {"algorithm": partial(EXPERTS, base=A.exp3_ix), "environment": ADVICE},
    ],
}


@pytest.mark.parametrize("name", SAME)
def test_what_means_the_same_has_one_key(name):
    keys = {key(**call) for call in SAME[name]}
    assert len(keys) == 1


def test_what_means_something_else_has_another_key():
    calls = [call for calls in (SAME | {f"other {k}": v for k, v in OTHER.items()}).values() for call in calls]
    firsts = {key(**calls[0]) for calls in SAME.values()}
    others = [call for calls in OTHER.values() for call in calls]
    keys = {key(**call) for call in others}
    assert len(keys) == len(others) and not keys & firsts
    # checkpoints, horizon, defaults, an adversary, text and means name one and the same call
    assert len(firsts) == len(SAME) - 5 - 1 and len(calls) > 100


def test_no_such_key_needs_a_trace(monkeypatch):
    def lane_programs(*args):
        raise AssertionError("traced")

    monkeypatch.setattr(keys, "lane_programs", lane_programs)
    for calls in (SAME | OTHER).values():
        for call in calls:
            key(**call)


def test_every_case_of_the_catalogue_has_its_own_key():
    def case_key(example):
        names = ("algorithm", "environment", "horizon", "reward_adversary", "message_adversary")
        return key(**{name: getattr(example, name) for name in names})

    keys, again = ({name: case_key(example) for name, example in catalogue.EVERYTHING.items()} for _ in range(2))
    assert keys == again
    assert len(set(keys.values())) > 50  # some cases of an environment are also a case of an algorithm


def test_arguments_of_one_description_build_the_same_numbers():
    """1 and 1.0 are one key: then no factory may pass the difference on to the arithmetic."""
    compared = 0
    described = catalogue.EVERYTHING.keys() - catalogue.OPTIMIZED.keys()  # an optax transformation has no description
    for example in map(catalogue.EVERYTHING.__getitem__, sorted(described)):
        environment = example.environment()
        bound = partial(example.algorithm, horizon=example.horizon)
        for make, config in (
            (bound, algorithm_for(bound, environment).config),
            (example.environment, environment.config),
            *((maker, maker().config) for maker in (example.reward_adversary, example.message_adversary) if maker),
        ):
            for name, value in config.items():
                if not isinstance(value, int | float) or isinstance(value, bool) or value != int(min(value, 2**30)):
                    continue
                parts = []
                for other in (int(value), float(value), np.float32(value), np.int32(value)):
                    try:
                        part = partial(make, **{name: other})
                        parts.append(part() if make is not bound else algorithm_for(part, environment))
                    except (TypeError, ValueError):  # a factory may insist on a type
                        continue
                for part in parts[1:]:
                    assert describe_part(part) == describe_part(parts[0])
                    leaves = [
                        [(np.asarray(x).dtype, np.asarray(x).tobytes()) for x in jax.tree.leaves(p.params)]
                        for p in (part, parts[0])
                    ]
                    assert leaves[0] == leaves[1], (config["name"], name)
                    compared += 1
    assert compared > 100


# ---- what a description holds


def test_a_new_argument_with_a_default_changes_no_key():
    before = key(), key(PRIVATE, LOSSES)
    grown = jb.validation.factory(_grown(A.exp3))
    assert key(grown) == before[0]
    assert key(partial(PRIVATE, base=grown), LOSSES) == before[1]
    assert key(partial(grown, more=2.0)) != before[0] != key(partial(A.exp3, mixing=0.0))
    assert key(partial(PRIVATE, base=partial(grown, more=2.0)), LOSSES) != before[1]


def _grown(factory):
    """exp3 of a later release."""
    source = "def exp3(*, num_arms, horizon, learning_rate=None, mixing=None, feedback_scale=0.0, more=1.0):\n"
    source += "    part = old(num_arms=num_arms, horizon=horizon, learning_rate=learning_rate, "
    source += "mixing=mixing, feedback_scale=feedback_scale)\n"
    source += "    return part._replace(params=part.params._replace(mixing=part.params.mixing * more))\n"
    space = {"__name__": "jaxbandits.algorithms.adversarial.exp3", "old": factory}
    exec(source, space)
    return space["exp3"]


def test_another_version_number_is_another_key(monkeypatch):
    def raised(part):
        part = part()
        name, number, static = part.version
        part.config.built = tuple((name, number + 1, static) if x is part.version else x for x in part.config.built)
        return part._replace(version=part.config.built[-1])

    made = partial(A.exp3, num_arms=2, horizon=100)
    assert describe_part(made()) != describe_part(raised(made))
    inner = A.exp3(num_arms=3, horizon=10)
    versions = [("private_batched", 1, (3, ("exp3", n, (3, True)), 7)) for n in (1, 2)]
    assert description.version_numbers(versions[0]) == ["private_batched", 1, ["exp3", 1]]
    assert description.version_numbers(versions[0]) != description.version_numbers(versions[1])
    assert inner.version[0] == "exp3"
    nested = describe_part(A.bandit_to_experts(num_arms=3, num_experts=4, horizon=100, base=PRIVATE))
    assert nested[1] == ["bandit_to_experts", 1, ["private_batched", 2, ["exp3", 1]]]
    environment = E.bernoulli_arms(means=MEANS)
    environment.config.built = (*environment.config.built[:-1], 99)
    assert describe_part(environment._replace(version=environment.config.built[-1])) != describe_part(ARMS)


def test_text_numbers_and_lists_are_told_apart():
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
    values += [-0.5, [], [[1], [1, 2]], [[1, 2], [1]], {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2}]
    values += [np.zeros((2, 3)), np.zeros((3, 2))]
    assert len({json.dumps(description._value(value)) for value in values}) == len(values)


class Fast(partial):
    """A partial that calls something else."""

    def __call__(self, **keywords):
        return A.exp3_ix(**keywords)


@functools.wraps(A.exp3)
def wrapped(**keywords):
    part = A.exp3(**keywords)
    return part._replace(params=part.params._replace(learning_rate=0.125))


def positional(*args, **keywords):
    return A.exp3(**keywords)


OWN = {
    "a function that says it is exp3": wrapped,
    "a factory that says it is exp3": jb.validation.factory(wrapped),
    "a partial of another kind": Fast(A.exp3),
    "a positional argument": partial(positional, 1),
    "a lambda": lambda **keywords: A.exp3(**keywords),
    "a method": type("Maker", (), {"make": staticmethod(lambda **keywords: A.exp3(**keywords))}).make,
}


@pytest.mark.parametrize("name", OWN)
def test_a_users_base_is_a_users_part(name):
    assert is_altered(A.private_batched(num_arms=3, horizon=100, epsilon=0.25, base=OWN[name]))
    assert not is_altered(A.private_batched(num_arms=3, horizon=100, epsilon=0.25, base=A.exp3))


def test_a_part_that_was_changed_is_a_users_part():
    made = E.gaussian_arms(means=np.array([0.25, 0.5, 0.75]))
    assert not is_altered(made) and not is_altered(copy.deepcopy(made))
    for change in (
        {"params": made.params._replace(scale=2.0)},
        {"params": jax.tree.map(np.copy, made.params)},
        {"world": ARMS.world},
        {"world": made.world._replace(num_arms=0)},
        {"facts": made.facts | {"means": np.zeros(3)}},
        {"version": 100},
        {"config": {}},
        {"config": ARMS.config},
    ):
        assert is_altered(made._replace(**change)), change
    algorithm = A.exp3(num_arms=3, horizon=10)
    for change in (
        {"schedule": algorithm.schedule * 2},
        {"program": algorithm.program._replace()},
        {"version": ("exp3", 2, ())},
    ):
        assert is_altered(algorithm._replace(**change))
    assert not is_altered(algorithm._replace(guarantee=None))


def test_numbers_changed_in_place_are_seen_and_used():
    settings = {"horizon": 40, "seeds": 8, "checkpoints": 2, "progress": False}
    made = E.bernoulli_arms(means=[0.25, 0.75])
    with pytest.raises(ValueError, match="read-only"):  # its description would not be its own any more
        made.params.means[:] = [0.75, 0.25]
    other = np.array([0.75, 0.25])
    made = made._replace(params=made.params._replace(means=other))
    made.facts["means"] = other
    assert is_altered(made) and key(environment=made) != key()
    turned = jb.sweep(A.ucb1, E.bernoulli_arms(means=[0.75, 0.25]), **settings)
    np.testing.assert_array_equal(jb.sweep(A.ucb1, made, **settings).regret, turned.regret)
    # nor is what the owner of an argument does to it later taken for what the part was built with
    mine = [np.array([0.25, 1.0]), np.array([0.5, 1.0])]
    rows = E.loss_table(losses=mine)
    mine[0][0] = 0.75
    assert describe_part(rows) == describe_part(E.loss_table(losses=[[0.25, 1.0], [0.5, 1.0]])) and not is_altered(rows)


def test_a_part_with_other_functions_is_played_as_it_is():
    """Not remade from the arguments of the part it was copied from."""
    other = E.bernoulli_arms(means=[0.75, 0.25])
    mixed = ARMS._replace(params=other.params, facts=other.facts)
    settings = {"horizon": 40, "seeds": 8, "checkpoints": 2, "progress": False}
    played, asked = (jb.sweep(A.ucb1, environment, **settings) for environment in (mixed, other))
    np.testing.assert_array_equal(played.pulls, asked.pulls)
    huber = V.huber(corruption=0.125)
    laid_out = plan.plan(
        A.exp3,
        ARMS,
        **(DEFAULTS | BASE | {"reward_adversary": huber._replace(params=V.huber(corruption=0.5).params)}),
    )
    assert laid_out.cells[0].reward_adversary.params.corruption == 0.5


# ---- code that was not pinned


def test_unpinned_code_is_named_by_what_it_computes(monkeypatch):
    pinned_keys = key(), key(partial(A.exp3, feedback_scale=0))
    monkeypatch.setattr(pinned_code, "unchanged", lambda: False)
    here, same, scale, mean, float64 = (
        key(), key(partial(A.exp3, feedback_scale=0)), key(partial(A.exp3, learning_rate=0.5)),
        key(environment=E.bernoulli_arms(means=[0.25, 0.5])), key(dtype="float64")
    )  # fmt: skip
    assert here == same and len({here, scale, mean, float64, *pinned_keys}) == 5
    original = A.exp3(num_arms=2, horizon=100).program
    try:
        monkeypatch.setattr("jaxbandits.numerics.columns.UNROLL", 0)  # rows in place of columns
        mixed = partial(A.exp3, mixing=0.5)
        assert key(mixed) != (monkeypatch.undo() or key(mixed))
    finally:
        assert A.exp3(num_arms=2, horizon=100).program is original


def test_unpinned_losses_are_named_by_their_baseline(monkeypatch):
    monkeypatch.setattr(pinned_code, "unchanged", lambda: False)
    keys = [
        key(A.exp3, environment)
        for environment in (LOSSES, E.bernoulli_losses(means=[0.25, 0.5, 0.5]), E.fixed_gap_losses(num_arms=3))
    ]
    assert len(set(keys)) == 3 and key(A.exp3, LOSSES) == keys[0]


# ---- other processes, other settings, other places


def another_process(path, **changes):
    """The environment of a process that finds the package in a directory."""
    places = [path, Path(__file__).parent, Path(__file__).parents[1], Path(__file__).parents[2]]
    return fresh_process.environment(PYTHONPATH=os.pathsep.join(map(str, places)), **changes)


def test_keys_are_those_of_another_process(monkeypatch):
    """Sets and hashes have another order in every process."""
    script = (
        "import test_identity as t; t.pinned_code.unchanged = lambda: True; "
        "print(t.key(), t.key(t.COMBINER, t.CONTEXTS));"
        "t.pinned_code.unchanged = lambda: False; print(t.key())"
    )
    here = [key(), key(COMBINER, CONTEXTS)]
    monkeypatch.setattr(pinned_code, "unchanged", lambda: False)
    done = subprocess.run(
        [sys.executable, "-c", script], env=another_process(PACKAGE.parent, PYTHONHASHSEED="3"), cwd=PACKAGE.parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*here, key()]


def test_settings_that_change_draws_or_arithmetic_change_keys(monkeypatch):
    keys = [key()]
    for flag, value in (
        ("jax_threefry_partitionable", False),
        ("jax_default_matmul_precision", "highest"),
        ("jax_default_prng_impl", "rbg"),
        ("jax_random_seed_offset", 1),
    ):
        before = jax.config.values[flag]
        jax.config.update(flag, value)
        try:
            keys.append(key())
        finally:
            jax.config.update(flag, before)
    assert key() == keys[0] and len(set(keys)) == 5
    monkeypatch.setattr(jax, "__version__", "0.0.0")
    assert key() not in keys


COMPUTED = """
import sys
import jaxbandits as jb
from jaxbandits.sweeps.engines import local
from jaxbandits.sweeps.identity import pinned_code
if {pin}:
    pinned_code.record()
played = []
original = local.play_call
local.play_call = lambda task, *args, **keywords: played.append(task) or original(task, *args, **keywords)
arms = jb.environments.bernoulli_arms(means=[0.25, 0.75])
jb.sweep(
    {{"ucb1": jb.algorithms.ucb1, "exp3": jb.algorithms.exp3}}, arms, horizon=20, seeds=8, checkpoints=2,
    progress=False, store={store!r}, reward_adversary=jb.adversaries.huber(corruption=0.1),
)
print(jb.__file__, len({{task.cells for task in played}}))
"""


def computed(package, store, pin=False):
    """How many cells a run made by a copy of the package computes."""
    script = COMPUTED.format(store=str(store), pin=pin)
    done = fresh_process.run(script, env=another_process(package), cwd=package)
    assert done.returncode == 0, done.stderr
    path, calls = done.stdout.split()
    assert Path(path).is_relative_to(package)
    return int(calls)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package, pinned, and a store that it filled."""
    home = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, home / "jaxbandits", ignore=shutil.ignore_patterns("__pycache__"))
    assert computed(home, home / "store", pin=True) == 2
    return home


def copied(package, tmp_path):
    for name in ("jaxbandits", "store"):
        shutil.copytree(package / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "jaxbandits"


@pytest.mark.dealt(3)
def test_a_file_that_moved_orphans_nothing(package, tmp_path):
    here = copied(package, tmp_path)
    (here / "algorithms" / "arms").mkdir()
    (here / "algorithms" / "arms" / "__init__.py").write_text('"""Algorithms for arms."""\n')
    shutil.move(here / "algorithms" / "stochastic" / "ucb1.py", here / "algorithms" / "arms" / "ucb1.py")
    for path in here.rglob("*.py"):
        path.write_text(
            path.read_text().replace("jaxbandits.algorithms.stochastic.ucb1", "jaxbandits.algorithms.arms.ucb1")
        )
    (here / "algorithms" / "adversarial" / "exp3.py").write_text(
        "# a comment\n" + (here / "algorithms" / "adversarial" / "exp3.py").read_text()
    )
    assert computed(tmp_path, tmp_path / "store") == 0


@pytest.mark.dealt(3)
def test_an_edit_of_an_installed_copy_is_computed_anew(package, tmp_path):
    here = copied(package, tmp_path)
    path = here / "algorithms" / "adversarial" / "exp3.py"
    assert "-params.learning_rate * message" in path.read_text()
    path.write_text(path.read_text().replace("-params.learning_rate * message", "-2 * params.learning_rate * message"))
    assert computed(tmp_path, tmp_path / "store") == 2  # whose code it is cannot be told: both are taken for users' own
    assert computed(tmp_path, tmp_path / "store") == 0  # and found again by what they compute


def test_what_a_name_stands_for_is_part_of_the_pinned_code(tmp_path, monkeypatch):
    """Other text around the same definitions may compute something else."""
    files = {
        "one.py": "from jaxbandits import three\nfrom jaxbandits.two import f\nX = 1\n\n\n"
        "def g(x):\n    return f(x) + X + three.Y\n",
        "two.py": "def f(x):\n    return x\n",
        "three.py": "Y = 2\n\n\ndef f(x):\n    return -x\n",
        "four.py": "X = 3\n\n\ndef h():\n    return X\n",
    }

    def definitions(number, changes):
        home = tmp_path / str(number) / "jaxbandits"
        for name, text in (files | changes).items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        monkeypatch.setattr(pinned_code, "PACKAGE", home)
        return pinned_code.definitions()

    def edited(name, old, new):
        assert old in files[name]
        return {name: files[name].replace(old, new)}

    before = definitions(0, {})
    same = [
        edited("two.py", "def f", "# a comment\ndef f"),
        {"sub/__init__.py": "", "sub/two.py": files["two.py"], "two.py": ""}
        | edited("one.py", "jaxbandits.two", "jaxbandits.sub.two"),
        {"two.py": "from jaxbandits.five import f\n", "five.py": files["two.py"]},
        edited("one.py", "from jaxbandits import three\nfrom jaxbandits.two import f",
            "from jaxbandits.two import f\nfrom jaxbandits import three"),
    ]  # fmt: skip
    other = [
        edited("one.py", "jaxbandits.two", "jaxbandits.three"),
        edited("one.py", "from jaxbandits.two", "from elsewhere"),
        edited("one.py", "X = 1", "X = 3") | edited("four.py", "X = 3", "X = 1"),
        edited("three.py", "Y = 2", "Y = 4"),
        edited("one.py", "import three", "import four as three"),
        edited("one.py", "f(x) + X", "f(x) - X"),
    ]
    assert {definitions(i, changes) for i, changes in enumerate(same, 1)} == {before}
    hashes = [definitions(i, changes) for i, changes in enumerate(other, 10)]
    assert len({before, *hashes}) == 1 + len(other)

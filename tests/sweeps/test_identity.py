"""Names of finished chunks: equal where the same is computed, however it is written, and different elsewhere.

What edits of a user's own code do is in `test_edits.py`.
"""

import contextlib
import functools
import os
import shutil
import subprocess
import sys
import types
from fractions import Fraction
from functools import partial
from pathlib import Path

import fresh_process
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_config import use_config
from numpy.testing import assert_array_equal

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.sweeps import identity, plan
from jaxbandits.sweeps.compilation.executables import code_name
from jaxbandits.sweeps.identity import identify_cells
from jaxbandits.sweeps.simulate import algorithm_for

A, E, V = jb.algorithms, jb.environments, jb.adversaries
MEANS = (0.25, 0.75)  # exact in float32
ARMS = E.bernoulli_arms(means=MEANS)
LOSSES = E.bernoulli_losses(means=[0.25, 0.5, 0.75])
BASE = {"horizon": 100, "seeds": 8, "checkpoints": 10, "reward_adversary": V.huber(corruption=0.125)}
PACKAGE = Path(jb.__file__).parent


def key(algorithm=A.exp3, environment=ARMS, platform="cpu", **changes):
    laid_out = plan.plan({"x": algorithm}, environment, **(BASE | changes))
    (name,) = identify_cells(laid_out, platform, stored=True)[1]
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


def exp3(**given):
    return {"algorithm": partial(A.exp3, **given)}


def private(**given):
    return {"algorithm": partial(PRIVATE, **given), "environment": LOSSES}


def attacked(**given):
    return {"reward_adversary": V.huber(**{"corruption": 0.125} | given)}


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
        *map(arms, (list(MEANS), *(np.array(MEANS, dtype) for dtype in (None, np.float32, np.float16)))),
        *map(arms, (jnp.array(MEANS), [np.float32(0.25), np.float64(0.75)], np.asfortranarray(MEANS))),
        *map(arms, (np.array([0.25, 9.0, 0.75])[::2], np.ma.masked_array(MEANS, [False, False]))),
        *map(arms, (Array(MEANS, ["a", "b"]), Array(MEANS, ["b", "a"]))),
        {"environment": partial(E.bernoulli_arms, means=MEANS)},
        {"environment": partial(partial(E.bernoulli_arms, means=[0.5, 0.5]), means=MEANS)},
    ],
    "whole means": [arms([0, 1]), arms([0.0, 1.0]), arms(np.array([0, 1])), arms(range(2))],
    "checkpoints": [{}, {"checkpoints": [1, 2, 3, 5, 8, 13, 22, 36, 60, 100]}, {"checkpoints": 10.0}],
    "horizon": [{}, {"horizon": np.int64(100)}, {"horizon": 100.0}, {"horizon": [100]}],
    "defaults": [
        *({}, exp3(feedback_scale=0), exp3(feedback_scale=0.0, learning_rate=None), exp3(num_arms=2, horizon=100)),
        *(exp3(mixing=None), {"grid": {"feedback_scale": [0.0]}}),
    ],
    "a number": [
        *(exp3(learning_rate=x) for x in (0.5, np.float32(0.5), np.float64(0.5), np.float16(0.5), Fraction(1, 2))),
        *({"grid": {"learning_rate": [0.5]}}, {"grid": {("learning_rate",): [0.5]}}),
        *({"points": [{"learning_rate": 0.5}]}, exp3(feedback_scale=0.0, learning_rate=0.5)),
        *(exp3(learning_rate=0.5, feedback_scale=0.0), {"algorithm": partial(EXP3, feedback_scale=0)}),
        {"algorithm": partial(partial(A.exp3, learning_rate=0.25), learning_rate=0.5)},
    ],
    "a whole number": [exp3(learning_rate=one) for one in (1, 1.0, np.int8(1), np.uint64(1))],
    "a base": [
        *(private(), private(base=partial(A.exp3)), private(base=partial(A.exp3, mixing=None)), private(window=None)),
        {"algorithm": partial(A.private_batched, base=A.exp3, epsilon=np.float32(0.25)), "environment": LOSSES},
    ],
    "the default base": [
        {"algorithm": partial(A.private_batched, epsilon=0.25), "environment": LOSSES},
        {"algorithm": partial(A.private_batched, epsilon=0.25, base=A.htinf), "environment": LOSSES},
        {"algorithm": partial(A.private_batched, epsilon=0.25, base=partial(A.htinf)), "environment": LOSSES},
    ],
    "an argument of a base": [
        *(private(base=partial(factory, learning_rate=0.5)) for factory in (A.exp3, partial(A.exp3))),
        *(private() | {"grid": {key: [0.5]}} for key in ("base.learning_rate", "x.base.learning_rate")),
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
        *(table(FRAME / 8), table((FRAME / 8).tolist()), table(np.asfortranarray(FRAME / 8))),
        *(table([kind(row) for row in FRAME / 8]) for kind in (tuple, np.array)),
    ],
    "an adversary": [
        {},
        {"reward_adversary": partial(V.huber, corruption=0.125)},
        attacked(corruption=np.float32(0.125), kind="fixed"),
        attacked(corruption=0.5) | {"grid": {"reward_adversary.corruption": [0.125]}},
    ],
    "text": [{"dtype": "float32"}, {"message_adversary": None}, {}],
    "numbers that are one in float32": [exp3(mixing=x) for x in (0.1, np.float32(0.1), np.nextafter(0.1, 1))],
    "what float32 means": [exp3(mixing=x) | {"dtype": "float64"} for x in (0.3, np.float32(0.3), jnp.float32(0.3))],
    "arguments of one effect": [
        combined(*COMBINER.keywords["bases"]),
        combined(partial(DOUBLE, power=0.25), partial(A.online_ucb, epsilon=4.0)),
    ],
}
# every call of a list has a key of its own, which the other lists do not have either
OTHER = {
    "the sweep": [
        *({"horizon": 101}, {"checkpoints": 11}, {"dtype": "float64"}, {"platform": "gpu"}, {"reward_adversary": None}),
        {"checkpoints": [1, 2, 3, 5, 8, 13, 22, 36, 61, 100]},
    ],
    "an argument": [
        *(exp3(learning_rate=2.0), exp3(mixing=0.2), exp3(feedback_scale=0.1)),
        *(exp3(mixing=x) | {"dtype": "float64"} for x in (np.nextafter(0.1, 1), 0.1)),
        *({"algorithm": other} for other in (A.exp3_ix, A.ucb1, partial(A.ucb1, bonus_scale=0.5))),
    ],
    "an environment": [
        *map(arms, ([0.25, np.nextafter(0.75, 1)], [0.75, 0.25], [0.25, 0.75, 0.75])),
        *({"environment": kind(means=MEANS)} for kind in (E.bernoulli_losses, E.gaussian_arms)),
        {"environment": E.gaussian_arms(means=MEANS, scale=0.5)},
        *map(table, (FRAME / 16, FRAME.T.reshape(3, 2) / 8)),
    ],
    "an adversary": [
        *(attacked(corruption=np.nextafter(np.float32(0.125), np.float32(1))), attacked(kind="swapped")),
        *(attacked(value=value) for value in (0.5, "nan", "inf", "-inf")),
        {"reward_adversary": None, "message_adversary": V.huber(corruption=0.125)},
    ],
    "a base": [
        *(private(base=A.ftpl), private(base=A.exp3_ix), private(window=3), private(epsilon=0.5)),
        *(private(base=partial(A.exp3, **{name: 0.25})) for name in ("learning_rate", "mixing", "feedback_scale")),
        # a number that the conversion chooses where it is left out, given as the base's default
        private(base=partial(A.exp3, feedback_scale=0)),
        *({"algorithm": A.exp3, "environment": LOSSES}, combined(DOUBLE, DOUBLE)),
        combined(partial(A.online_ucb, epsilon=4.0), DOUBLE),
        combined(partial(DOUBLE, failure_prob=0.25), partial(A.online_ucb, epsilon=4.0)),
        combined(
            partial(A.doubling, base=partial(A.online_ucb, epsilon=4.0, learner="ogd")),
            partial(A.online_ucb, epsilon=4.0, learner="ogd"),
        ),
    ],
    "an environment in an environment": [
        *(advised(losses=E.bernoulli_losses(means=[0.25, 0.5, 0.625])), advised(losses=E.fixed_gap_losses(num_arms=3))),
        *(advised(rotation=50), advised(spread=0.25), advised(num_experts=5)),
        {"algorithm": partial(EXPERTS, base=A.exp3_ix), "environment": ADVICE},
    ],
}


@pytest.mark.parametrize("name", SAME)
def test_what_means_the_same_has_one_key(name):
    assert len({key(**call) for call in SAME[name]}) == 1


def test_what_means_something_else_has_another_key():
    calls = [call for calls in (SAME | {f"other {k}": v for k, v in OTHER.items()}).values() for call in calls]
    firsts = {key(**calls[0]) for calls in SAME.values()}
    others = [call for calls in OTHER.values() for call in calls]
    keys = {key(**call) for call in others}
    assert len(keys) == len(others) and not keys & firsts
    # checkpoints, horizon, defaults, an adversary, text and means name one and the same call, and so do two of bases
    assert len(firsts) == len(SAME) - 5 - 1 - 1 and len(calls) > 100


def with_one_number_changed(cell):
    """(what, cell) for every array of numbers of every part, whose last number is another."""
    for field in ("algorithm", "environment", "reward_adversary", "message_adversary"):
        part = getattr(cell, field)
        leaves, treedef = jax.tree.flatten(part.params)
        for k, leaf in enumerate(map(np.array, leaves)):
            old = leaf.reshape(-1)[-1:].copy()
            leaf.reshape(-1)[-1:] = np.nextafter(np.float32(old), np.float32(9)) if old.dtype.kind == "f" else 1 - old
            params = treedef.unflatten([*leaves[:k], leaf, *leaves[k + 1 :]])
            yield f"{field} {k}", cell._replace(**{field: part._replace(params=params)})


@pytest.mark.parametrize("environment", [ARMS, E.switching_losses(num_arms=3, cuts=[0, 50], arms=[0, 2])])
def test_every_component_of_a_cell_is_in_its_key_and_nothing_else(environment):
    laid_out = plan.plan({"x": A.exp3}, environment, **BASE, message_adversary=V.huber(corruption=0.25))

    def key_of(cell, **changes):
        return identify_cells(laid_out._replace(cells=[cell], **changes), "cpu", stored=True)[1][0]

    (cell,) = laid_out.cells
    made, world = cell.environment, cell.environment.world
    span = cell.algorithm.schedule[0]
    others = dict(with_one_number_changed(cell))
    assert {name.split()[0] for name in others} == {*cell._fields[1:5]} and len(others) > 8
    if world.baseline is None:
        means = np.array([0.25, np.nextafter(0.75, 1)])
        others["means"] = cell._replace(environment=made._replace(facts=made.facts | {"means": means}))
    for field in span._fields:
        if isinstance(value := getattr(span, field), int):
            algorithm = cell.algorithm._replace(schedule=(span._replace(**{field: value + 1}),))
            others[f"span {field}"] = cell._replace(algorithm=algorithm)
    for field in cell._fields[1:5]:  # a part of a user's own, who raised its number
        part = getattr(cell, field)
        version = ("exp3", 2) if field == "algorithm" else 2
        others[f"version of {field}"] = cell._replace(**{field: part._replace(version=version, config={})})
    keys = {"as it is": key_of(cell)} | {name: key_of(other) for name, other in others.items()}
    assert [(a, b) for a in keys for b in keys if a < b and keys[a] == keys[b]] == []
    claim = A.ldp_ucb(num_arms=2, horizon=9, epsilon=1.0).guarantee
    same = [
        *(cell._replace(label="y"), cell._replace(place=(0,)), cell._replace(horizon=101)),
        cell._replace(algorithm=cell.algorithm._replace(guarantee=claim)),
        cell._replace(environment=made._replace(facts=made.facts | {"reward_range": (0.0, 2.0)}, remake=None)),
        cell._replace(reward_adversary=cell.reward_adversary._replace(remake=None, reward_range=None)),
    ]
    assert {key_of(other) for other in same} == {keys["as it is"]}
    assert key_of(cell, labels=["y"], given={}, seeds=range(3)) == keys["as it is"]


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
                    params = (map(np.asarray, jax.tree.leaves(p.params)) for p in (part, parts[0]))
                    leaves = [[(x.dtype, x.tobytes()) for x in arrays] for arrays in params]
                    assert leaves[0] == leaves[1], (config["name"], name)
                    compared += 1
    assert compared > 100


def test_a_new_argument_with_a_default_changes_no_key():
    grown = jb.validation.factory(_grown(A.exp3))
    assert key(grown) == key() == key(partial(grown, more=1)) != key(partial(grown, more=2.0, mixing=0.25))


def _grown(factory):
    """exp3 of a later release."""
    source = "def exp3(*, num_arms, horizon, learning_rate=None, mixing=None, feedback_scale=0.0, more=1.0):\n"
    source += "    part = old(num_arms=num_arms, horizon=horizon, learning_rate=learning_rate, "
    source += "mixing=mixing, feedback_scale=feedback_scale)\n"
    source += "    return part._replace(params=part.params._replace(mixing=part.params.mixing * more))\n"
    space = {"__name__": "jaxbandits.algorithms.adversarial.exp3", "old": factory}
    exec(source, space)
    return space["exp3"]


def numbered(number, module):
    """A factory of a module whose algorithm computes what exp3 does, with another number in `version`."""

    def exp3(*, num_arms, horizon):
        return A.exp3(num_arms=num_arms, horizon=horizon)._replace(version=("exp3", number, ()))

    space = {**globals(), "__name__": module}
    return jb.validation.factory(types.FunctionType(exp3.__code__, space, "exp3", None, exp3.__closure__))


def test_the_version_of_a_users_part_counts_and_that_of_the_packages_does_not():
    assert len({key(), *(key(numbered(number, "mine")) for number in (1, 2, 3))}) == 4
    assert {key(numbered(number, "jaxbandits.algorithms.later")) for number in (1, 2, 3)} == {key()}
    for kept in ({}, {"remake": None}):  # a part of the package that a user changed is the user's
        arms = [ARMS._replace(version=number, **kept) for number in (2, 3)]
        assert len({key(), *(key(environment=x) for x in arms)}) == 3


def test_the_version_of_a_users_base_counts():
    """Inside a conversion of the package; a base of the package has none of its own."""
    around = lambda base: partial(A.private_batched, base=base, epsilon=1.0)
    for module, keys in (("mine", 2), ("jaxbandits.algorithms.later", 1)):
        assert len({key(around(numbered(number, module))) for number in (1, 2)}) == keys


def _again(*, num_arms, horizon):
    """exp3 under another name."""
    return A.exp3(num_arms=num_arms, horizon=horizon)


def test_labels_and_names_are_no_part_of_a_key():
    """Two algorithms that compute the same share what is finished, which holds nothing but what was computed."""
    laid_out = plan.plan({"x": A.exp3, "y": _again}, ARMS, **BASE)
    assert len(set(identify_cells(laid_out, "cpu", stored=True)[1])) == 1


@functools.wraps(A.exp3)
def wrapped(**keywords):
    part = A.exp3(**keywords)
    return part._replace(params=part.params._replace(learning_rate=0.125))


def test_a_factory_is_what_it_returns():
    """Not what it is called."""
    assert key(wrapped) == key(partial(A.exp3, learning_rate=0.125)) != key()
    base = partial(PRIVATE, base=jb.validation.factory(wrapped))
    assert key(base, LOSSES) == key(partial(PRIVATE, base=partial(A.exp3, learning_rate=0.125)), LOSSES)


def test_functions_of_anyone_else_have_no_name():
    def parts(algorithm, environment=ARMS):
        (group,) = plan.plan({"x": algorithm}, environment, **BASE).groups
        return group.parts

    def altered(*, num_arms, horizon):
        part = A.exp3(num_arms=num_arms, horizon=horizon)
        return part._replace(program=part.program._replace(init=lambda params, draws: part.program.init(params, draws)))

    assert code_name(parts(A.exp3)) is not None and code_name(parts(altered)) is None
    assert code_name(parts(partial(PRIVATE, base=altered), LOSSES)) is None
    changed = ARMS._replace(params=ARMS.params._replace(means=np.array([0.75, 0.25])))
    assert code_name(parts(A.exp3, changed)) is not None


def test_numbers_changed_in_place_are_seen_and_used():
    settings = {"horizon": 40, "seeds": 8, "checkpoints": 2, "progress": False}
    made = E.bernoulli_arms(means=[0.25, 0.75])
    with pytest.raises(ValueError, match="read-only"):  # its arguments would not be its own any more
        made.params.means[:] = [0.75, 0.25]
    with pytest.raises(ValueError, match="read-only"):  # whole numbers, of which params hold another array
        A.phased_elimination(actions=np.eye(3, dtype=int), horizon=40, epsilon=1.0).config["actions"][0, 0] = 2
    other = np.array([0.75, 0.25])
    made = made._replace(params=made.params._replace(means=other))
    made.facts["means"] = other
    assert key(environment=made) != key()
    turned = E.bernoulli_arms(means=[0.75, 0.25])
    assert key(environment=made) == key(environment=turned)
    assert_array_equal(jb.sweep(A.ucb1, made, **settings).regret, jb.sweep(A.ucb1, turned, **settings).regret)
    # nor is what the owner of an argument does to it later taken for what the part was built with
    mine = [np.array([0.25, 1.0]), np.array([0.5, 1.0])]
    rows = E.loss_table(losses=mine)
    mine[0][0] = 0.75
    same = E.loss_table(losses=[[0.25, 1.0], [0.5, 1.0]])
    assert key(environment=rows, horizon=2, checkpoints=2) == key(environment=same, horizon=2, checkpoints=2)


def test_a_changed_part_is_not_sent_as_what_its_factory_builds():
    pytest.importorskip("ray")
    from jaxbandits.sweeps.engines.ray_cluster import _pickle_with_modules, part_to_send

    attack = jb.adversaries.huber(corruption=0.1)
    for part in (ARMS, attack):
        changed = part._replace(params=part.params._replace())
        assert part_to_send(part) is part.remake and part_to_send(changed) is changed
        with pytest.raises(TypeError, match="changed by _replace after its factory built it"):
            _pickle_with_modules({"part": part_to_send(changed)})
    assert part_to_send(0.5) == 0.5


def test_a_part_with_other_functions_is_played_as_it_is():
    """Not remade from the arguments of the part it was copied from."""
    other = E.bernoulli_arms(means=[0.75, 0.25])
    mixed = ARMS._replace(params=other.params, facts=other.facts)
    settings = {"horizon": 40, "seeds": 8, "checkpoints": 2, "progress": False}
    played, asked = (jb.sweep(A.ucb1, environment, **settings) for environment in (mixed, other))
    assert_array_equal(played.pulls, asked.pulls)
    huber = V.huber(corruption=0.125)
    other = huber._replace(params=V.huber(corruption=0.5).params)
    laid_out = plan.plan(A.exp3, ARMS, **(BASE | {"reward_adversary": other}))
    assert laid_out.cells[0].reward_adversary.params.corruption == 0.5


SWITCHING = E.switching_losses(num_arms=3, cuts=[0, 50], arms=[0, 2])


def test_losses_are_told_apart_by_their_baseline():
    """It is a function of the host, which no trace shows."""
    world = SWITCHING.world
    assert world.baseline is not None
    losses = [
        SWITCHING._replace(world=world._replace(baseline=baseline), remake=None)
        for baseline in (world.baseline, lambda params, seed, times: 2 * world.baseline(params, seed, times))
    ]
    keys = [key(A.exp3, environment) for environment in (*losses, SWITCHING)]
    assert keys[0] == keys[2] != keys[1]


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """Lanes that were traced; nothing is remembered at first."""
    monkeypatch.setenv("JAXBANDITS_CACHE", str(tmp_path / "cache"))
    lanes: list = []
    traced_now = identity.digest_of_group
    monkeypatch.setattr(identity, "digest_of_group", lambda *x, **how: lanes.append(x) or traced_now(*x, **how))
    return lanes


def test_a_lane_of_this_package_is_traced_once(traced):
    first = key()
    assert len(traced) == 1
    assert first == key() != key(environment=E.bernoulli_arms(means=[0.25, 0.5])) and len(traced) == 1
    # what the trace may depend on is asked again
    for changes in (
        {"environment": E.bernoulli_arms(means=[0.25, 0.5, 0.75])}, {"dtype": "float64"}, {"platform": "gpu"},
        {"checkpoints": 11}, {"algorithm": A.exp3_ix}, {"reward_adversary": None},
    ):  # fmt: skip
        before = len(traced)
        assert key(**changes) != first and len(traced) == before + 1, changes
        assert key(**changes) != first and len(traced) == before + 1, changes
    with jax.default_matmul_precision("highest"):
        assert key() != first and len(traced) == 8


def test_without_a_place_to_remember_a_lane_is_traced_again(traced, tmp_path, monkeypatch):
    first = key()
    (place,) = (tmp_path / "cache").glob("executables/*")
    (entry,) = place.iterdir()
    for write in (lambda: entry.write_bytes(b"damaged"), entry.unlink, lambda: place.chmod(0o777)):
        write()
        before = len(traced)
        open_to_all = place.stat().st_mode & 0o002
        with pytest.warns(UserWarning, match="are not used") if open_to_all else contextlib.nullcontext():
            assert key() == first and len(traced) == before + 1
    monkeypatch.setenv("JAXBANDITS_CACHE", "off")
    assert key() == first and len(traced) == 5
    monkeypatch.setenv("JAXBANDITS_CACHE", "/proc/nowhere")
    assert key() == first and len(traced) == 6


def test_a_users_functions_are_traced_each_time(traced):
    def mine(*, num_arms, horizon):
        part = A.exp3(num_arms=num_arms, horizon=horizon)

        def update(params, state, draws, t, note, message, used):
            state, released = part.program.update(params, state, draws, t, note, message, used)
            return jax.tree.map(lambda x: x * jnp.asarray(SCALE, x.dtype), state), released

        return part._replace(program=part.program._replace(update=update))

    keys_of_mine = [key(mine), key(mine)]
    assert len(traced) == 4 and keys_of_mine[0] == keys_of_mine[1]  # twice each: both traces are the same
    globals()["SCALE"] = 2.0
    try:
        assert key(mine) != keys_of_mine[0]
    finally:
        globals()["SCALE"] = 1.0


SCALE = 1.0


def another_process(path, **changes):
    """The environment of a process that finds the package in a directory."""
    places = [path, Path(__file__).parent, Path(__file__).parents[1], Path(__file__).parents[2]]
    return fresh_process.environment(PYTHONPATH=os.pathsep.join(map(str, places)), **changes)


def test_keys_are_those_of_another_process():
    """Sets and hashes have another order in every process."""
    script = "import test_identity as t; print(t.key(), t.key(t.COMBINER, t.CONTEXTS))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=PACKAGE.parent, capture_output=True, text=True, check=False,
        env=another_process(PACKAGE.parent, PYTHONHASHSEED="3", JAXBANDITS_CACHE="off"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [key(), key(COMBINER, CONTEXTS)]


def test_settings_that_change_draws_or_arithmetic_change_keys(monkeypatch):
    keys = [key()]
    changes = {"jax_threefry_partitionable": False, "jax_default_matmul_precision": "highest"}
    for flag, value in (changes | {"jax_default_prng_impl": "rbg", "jax_random_seed_offset": 1}).items():
        with use_config({flag: value}):
            keys.append(key())
    assert key() == keys[0] and len(set(keys)) == 5
    before = {platform: key(platform=platform) for platform in ("cpu", "gpu")}
    monkeypatch.setattr(identity, "KERNELS", identity.KERNELS + 1)  # only accelerators play by kernels
    assert key() == before["cpu"] and key(platform="gpu") not in before.values()
    monkeypatch.setattr(identity, "KEYS", identity.KEYS + 1)
    assert key() not in keys
    monkeypatch.undo()
    for name in ("jax", "jaxlib"):
        with monkeypatch.context() as other:
            other.setattr(f"{name}.__version__", "0.0.0")
            assert key() not in keys


COMPUTED = """
import sys
import jaxbandits as jb
from jaxbandits.sweeps.engines import local
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


def computed(package, store):
    """How many cells a run made by a copy of the package computes."""
    done = fresh_process.run(COMPUTED.format(store=str(store)), env=another_process(package), cwd=package)
    assert done.returncode == 0, done.stderr
    path, calls = done.stdout.split()
    assert Path(path).is_relative_to(package)
    return int(calls)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package, and a store that it filled."""
    home = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, home / "jaxbandits", ignore=shutil.ignore_patterns("__pycache__"))
    assert computed(home, home / "store") == 2
    return home


def copied(package, tmp_path):
    for name in ("jaxbandits", "store"):
        shutil.copytree(package / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "jaxbandits"


def replaced(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def moved(package, old, new):
    """Move a module of the package, with every mention of its name."""
    source, target = (package.joinpath(*name.split(".")).with_suffix(".py") for name in (old, new))
    if not target.parent.exists():
        target.parent.mkdir()
        (target.parent / "__init__.py").write_text('"""Algorithms that moved."""\n')
    shutil.move(source, target)
    room = old.partition(".")[0]
    for path in package.rglob("*.py*"):
        text = path.read_text().replace(f"jaxbandits.{old}", f"jaxbandits.{new}")
        if path.parent == package / room:  # its stub names modules from where it lies
            text = text.replace(f"from {old.removeprefix(room)} ", f"from {new.removeprefix(room)} ")
        path.write_text(text)


@pytest.mark.dealt(3)
def test_files_that_a_run_does_not_use_may_come_change_move_and_go(package, tmp_path):
    here = copied(package, tmp_path)
    stochastic = here / "algorithms" / "stochastic"
    # a new file beside ucb1.py, which exports a factory
    (stochastic / "committed.py").write_text((stochastic / "uniform.py").read_text().replace("uniform", "committed"))
    replaced(stochastic / "moss.py", "jnp.log", "jnp.log2")
    replaced(here / "environments" / "data.py", "params.labels", "(1 + params.labels)")
    moved(here, "algorithms.robust.huber_ucb", "algorithms.elsewhere.huber_ucb")
    (here / "algorithms" / "linear" / "phased_elimination.py").unlink()
    shutil.rmtree(here / "papers")
    assert computed(tmp_path, tmp_path / "store") == 0


@pytest.mark.dealt(3)
def test_files_that_a_run_uses_may_move_and_be_written_otherwise(package, tmp_path):
    here = copied(package, tmp_path)
    moved(here, "algorithms.stochastic.ucb1", "algorithms.arms.ucb1")
    exp3 = here / "algorithms" / "adversarial" / "exp3.py"
    exp3.write_text("# a comment\n" + exp3.read_text())
    assert computed(tmp_path, tmp_path / "store") == 0


@pytest.mark.dealt(3)
def test_an_edit_computes_anew_what_it_changes(package, tmp_path):
    here = copied(package, tmp_path)
    path = here / "algorithms" / "adversarial" / "exp3.py"
    replaced(path, "-params.learning_rate * message", "-2 * params.learning_rate * message")
    assert computed(tmp_path, tmp_path / "store") == 1
    assert computed(tmp_path, tmp_path / "store") == 0


def test_a_users_base_counts_wherever_it_stands():
    mine = lambda *, num_arms, horizon: A.exp3(num_arms=num_arms, horizon=horizon)
    inside = partial(A.doubling, base=mine)
    ours = [{}, {"base": A.exp3}, {"bases": [A.exp3, partial(A.doubling, base=A.exp3)]}]
    users = [{"base": mine}, {"bases": [A.exp3, mine]}, {"bases": (A.exp3, partial(mine))}, {"base": inside},
             {"base": partial(A.delayed, base=inside)},
             {"bases": [A.exp3, partial(A.bandit_combiner, bases=[A.exp3, mine])]}]  # fmt: skip
    for given in (*ours, *users):
        config = jb.validation.Arguments(given)
        config.home, config.built = "jaxbandits.algorithms.later", (("later", 1, ()),)
        part = types.SimpleNamespace(config=config, version=("later", 1, ()))
        assert identity._own_version(part) == (str(part.version) if given in users else None), given

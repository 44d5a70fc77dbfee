"""Grids: the axes that every form of a grid means, and which factory each key feeds, where names are ambiguous."""

from functools import partial

import numpy as np
import optax
import pytest

import jaxbandits as jb
from jaxbandits.recipe import recipe_of
from jaxbandits.sweeps import dataset
from jaxbandits.sweeps.grid import axes_of, route
from jaxbandits.sweeps.plan import plan
from jaxbandits.sweeps.sweep import config_of

A, E, V = jb.algorithms, jb.environments, jb.adversaries
SLOW, FAST = optax.sgd(0.1), optax.sgd(0.5)
ROWS = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])


# a grid, points and a horizon -> (name, keys, values, labels) of each axis, in order
@pytest.mark.parametrize(("given", "axes"), [
    ((None, None, 9), []),
    (({"b": [1, 2], "a": range(3)}, None, 9),
     [("b", ("b",), ((1,), (2,)), (1, 2)), ("a", ("a",), ((0,), (1,), (2,)), (0, 1, 2))]),
    (({"a": [1.5]}, None, [7, 3]),
     [("horizon", ("horizon",), ((7,), (3,)), (7, 3)), ("a", ("a",), ((1.5,),), (1.5,))]),
    ((None, None, np.array([4])), [("horizon", ("horizon",), ((4,),), (4,))]),
    # keys that move together share a value, or take a row with one each
    (({("a", "b"): [1, (2, 3)]}, None, 9), [("a", ("a", "b"), ((1, 1), (2, 3)), (1, 2))]),
    (({("a", "b"): {"x": (1, 2), "y": 3}}, None, 9), [("a", ("a", "b"), ((1, 2), (3, 3)), ("x", "y"))]),
    (({("a",): [5]}, None, 9), [("a", ("a",), ((5,),), (5,))]),
    # of two keys a row of two values is a row, of three one value
    (({("a", "b"): {"x": (0.1, 0.9, 0.5)}}, None, 9),
     [("a", ("a", "b"), (((0.1, 0.9, 0.5),) * 2,), ("x",))]),
    # an optax transformation is a pair, and one value
    (({("a", "b"): {"slow": SLOW, "fast": FAST}}, None, 9),
     [("a", ("a", "b"), ((SLOW, SLOW), (FAST, FAST)), ("slow", "fast"))]),
    (({"a": {"x": [1, 2], "y": [3, 4]}}, None, 9), [("a", ("a",), (([1, 2],), ([3, 4],)), ("x", "y"))]),
    ((None, [{"a": 1, "b": 2}, {"b": 4, "a": 3}], 9), [("point", ("a", "b"), ((1, 2), (3, 4)), (0, 1))]),
    (({}, ({"a": 1},), [5]),
     [("horizon", ("horizon",), ((5,),), (5,)), ("point", ("a",), ((1,),), (0,))]),
])  # fmt: skip
def test_what_a_grid_means(given, axes):
    assert [tuple(axis) for axis in axes_of(*given)] == axes


@pytest.mark.parametrize(("given", "words"), [
    (([1], None, 9), "grid = [1] must be a dict of lists, such as {'epsilon': [0.1, 1.0]}: points=[...] runs a list"),
    ((3, None, 9), "grid = 3 must be a dict of lists, such as {'epsilon': [0.1, 1.0]}"),
    (({"a": [1]}, [{"b": 1}], 9), "points and grid are alternatives"),
    ((None, [], 9), "points = [] must be a non-empty list of dicts"), ((None, [{}], 9), "must be a non-empty list"),
    ((None, [{"a": 1}, 3], 9), "must be a non-empty list"), ((None, {"a": 1}, 9), "must be a non-empty list"),
    ((None, [{"a": 1}, {"a": 2, "b": 3}, {"a": 1}], 9), "points[0] has no 'b': every point names the same keys (a, b)"),
    ((None, [{"a": 1}, {"b": 3}], 9), "points[0] has no 'b'"), ((None, [{"horizon": 1}], 9), "not a grid key"),
    ((None, None, [3, 3]), "horizon = [3, 3] must be a list of different horizons"),
    ((None, None, []), "horizon = [] must be a list of different horizons"),
    ((None, None, [2**31 - 1]), "2147483647"), ((None, None, [0]), "horizon = 0"),
    (({"a": [1], ("a", "b"): [2]}, None, 9), "grid has two axes named 'a'"),
    (({"a": [1, 2, 1.0]}, None, 9), "holds a value twice"), (({"a": ["x", "x"]}, None, 9), "holds a value twice"),
    (({("a", "b"): [(1, 2), (1, 3)]}, None, 9), "holds a value twice"),
    (({"a": []}, None, 9), "grid['a'] is empty"), (({"a": "xy"}, None, 9), "must be a list of values: ['xy']"),
    *((({"a": values}, None, 9), "must be a list of values") for values in (b"xy", np.array(3.0), 3)),
    (({"a": iter([1])}, None, 9), "must be a list of values: list(...)"),
    (({"a": [SLOW, FAST]}, None, 9), "holds optimizers: name them, for example {'a': {'slow': optax.sgd(0.01), ...}}"),
    (({"a": list(ROWS)}, None, 9), "holds arrays: name them, for example {'a': {'easy': [...], 'hard': [...]}}"),
    (({("a",): list(ROWS)}, None, 9), "holds arrays: name them, for example {'a': {'easy': [...]"),
    (({("a", "b"): [[1, 2, 3]]}, None, 9), "ties 2 keys: give one row of 2 values for each point"),
    (({("a", "b"): [[[1, 2], 3], [[4, 5], 6]]}, None, 9), "holds arrays: name them, for example {('a', 'b'): {'easy'"),
    (({"a/b": [1]}, None, 9), "cannot hold a '/'"), (({("a", "b/c"): [1]}, None, 9), "cannot hold a '/'"),
    (({"a": {1: [1, 2], "1": [3, 4]}}, None, 9), "grid['a'] holds a value twice, or two of one name"),
    (({"a": [None, "None"]}, None, 9), "two of one name"),
    (({("a", ""): [1]}, None, 9), "grid key '' must be an argument's name"), (({"regret": [1]}, None, 9), "'regret'"),
])  # fmt: skip
def test_what_no_grid_means_is_refused(given, words):
    with pytest.raises(ValueError) as error:
        axes_of(*given)
    assert words in str(error.value)


EXP3, UCB1, LDP = A.exp3, A.ucb1, A.ldp_ucb
PRIVATE = partial(A.private_batched, base=A.exp3)
ALGORITHMS = {"exp3": EXP3, "exp3.a": EXP3, "ucb1": UCB1, "ldp": partial(LDP, epsilon=1.0), "private": PRIVATE}


def test_a_tied_key_with_a_blank_has_a_name_of_its_own():
    """An underscore stands for a blank, and another at the end where that is a key or stands for one."""
    labels = ["x", "my ucb", "my_ucb", "my ucb_", "an_ ucb", "an _ucb"]
    grid = {tuple(f"{label}.bonus_scale" for label in labels): [(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (0.1,) * 6]}
    arms = E.bernoulli_arms(means=[0.2, 0.8])
    laid_out = plan(dict.fromkeys(labels, A.ucb1), arms, horizon=9, seeds=2, checkpoints=1, grid=grid)
    riders = dataset._riders(laid_out.axes[0], {}, laid_out)
    assert {name: values[0] for name, (_, values, _) in riders.items()} == {
        "my_ucb.bonus_scale_": 2.0, "my_ucb.bonus_scale": 3.0, "my_ucb_.bonus_scale": 4.0,
        "an__ucb.bonus_scale": 5.0, "an__ucb.bonus_scale_": 6.0,
    }  # fmt: skip


def routes(*keys, algorithms=ALGORITHMS, reward_adversary=V.huber):
    """Target -> (position in the axis, key inside it) of the keys of the second of two axes."""
    axes = axes_of({"environment.means": {"a": [0.1, 0.9]}, keys: [0.5]}, None, 9)
    parts = {"environment": E.gaussian_arms, "reward_adversary": reward_adversary, "message_adversary": None}
    recipes = [{k: part and recipe_of(part) for k, part in each.items()} for each in (algorithms, parts)]
    found = route(axes, *recipes)
    assert found["environment"][0] == (0, 0, "means")
    second = {target: [(j, key) for i, j, key in ways if i == 1] for target, ways in found.items()}
    return {target: ways for target, ways in second.items() if ways}


@pytest.mark.parametrize(("keys", "found"), [
    # all that take it and have it free; the longest label before the dot wins
    (["mixing"], {"exp3": [(0, "mixing")], "exp3.a": [(0, "mixing")]}),
    (["exp3.mixing"], {"exp3": [(0, "mixing")]}), (["exp3.a.mixing"], {"exp3.a": [(0, "mixing")]}),
    (["epsilon"], {"private": [(0, "epsilon")]}), (["base.mixing"], {"private": [(0, "base.mixing")]}),
    (["private.base.mixing"], {"private": [(0, "base.mixing")]}),
    # parts by their names alone, also where an algorithm has an argument of that name
    (["environment.scale"], {"environment": [(0, "scale")]}),
    (["reward_adversary.corruption"], {"reward_adversary": [(0, "corruption")]}),
    # the position in the axis is kept
    (["ucb1.bonus_scale", "exp3.mixing", "mixing"],
     {"ucb1": [(0, "bonus_scale")], "exp3": [(1, "mixing"), (2, "mixing")], "exp3.a": [(2, "mixing")]}),
])  # fmt: skip
def test_where_a_key_goes(keys, found):
    assert routes(*keys) == found


@pytest.mark.parametrize(("key", "words"), [
    ("scale", "no factory of this sweep takes it, or it is already set (did you mean 'environment.scale'?)"),
    ("corruption", "(did you mean 'reward_adversary.corruption'?)"), ("mixin", "(did you mean 'mixing'?)"),
    ("message_adversary.corruption", "this sweep has no message_adversary"),
    ("exp3.a.epsilon", "no factory of this sweep takes it"), ("ldp.epsilon", "no factory of this sweep takes it"),
    ("exp3.b.mixing", "no factory"), ("environment.mean", "(did you mean 'environment.means'?)"),
    ("exp4.mixing", "(did you mean 'exp3.mixing'?)"), ("base.epsilon", "no factory"), ("ucb1.", "no factory"),
    ("base", "is already set in the partial of 'private': leave it out there"),
])  # fmt: skip
def test_a_key_that_goes_nowhere_is_refused(key, words):
    with pytest.raises(ValueError) as error:
        routes(key)
    assert f"grid key {key!r}" in str(error.value) and words in str(error.value)


def test_routes_are_what_cells_are_built_with():
    """Two labels of which one is the beginning of the other, a tied pair, and an adversary's number, at every place."""
    laid_out = plan(
        {"exp3": EXP3, "exp3.a": EXP3}, E.gaussian_arms(means=[0.2, 0.8]), horizon=[5, 9], seeds=2,
        grid={("exp3.mixing", "exp3.a.mixing"): [(0.1, 0.2), (0.3, 0.4)], "message_adversary.corruption": [0.0, 0.25]},
        message_adversary="huber",
    )  # fmt: skip
    for (label, h, i, k), c in laid_out.places.items():
        cell = laid_out.cells[c]
        assert (cell.label, cell.horizon, cell.algorithm.config["horizon"]) == (label, (5, 9)[h], (5, 9)[h])
        assert cell.algorithm.config["mixing"] == {"exp3": (0.1, 0.3), "exp3.a": (0.2, 0.4)}[label][i]
        assert cell.message_adversary.params.corruption == (0.0, 0.25)[k]
    assert len(laid_out.places) == 16 and {*laid_out.takers} == {
        "horizon", "exp3.mixing", "exp3.a.mixing", "message_adversary.corruption"
    }  # fmt: skip
    assert laid_out.takers["exp3.mixing"] == ["exp3"] and laid_out.takers["exp3.a.mixing"] == ["exp3.a"]


def test_horizons_that_take_equal_windows_are_two_groups():
    """Twelve windows of eight plays make 90 plays, and 96."""
    world = partial(E.federated_linear, num_agents=3, num_arms=4, dim=2)
    laid_out = plan(partial(A.isolated_linucb, window=8), world, horizon=[90, 96], seeds=2, checkpoints=3)
    assert len({cell.algorithm.schedule for cell in laid_out.cells}) == 1
    assert [int(group.times[-1]) for group in laid_out.groups] == [90, 96]


def test_a_tied_key_that_hardly_differs_is_said():
    grid, world = {("learning_rate", "mixing"): [(0.1, 0.1), (0.2, 0.2 + 1e-9)]}, E.bernoulli_arms(means=[0.2, 0.8])
    laid_out = plan("exp3", world, horizon=9, seeds=2, checkpoints=1, grid=grid)
    [(name, (_, values, _))] = dataset._riders(laid_out.axes[0], {}, laid_out).items()
    assert (name, values.tolist()) == ("mixing", [0.1, 0.2 + 1e-9])


def test_seeds_are_recorded_by_their_ends_and_other_ranges_by_their_values():
    found = config_of({"seeds": range(3, 9), "grid": {"a": range(0, 10, 5), "b": range(2000)}})
    assert (found["seeds"], found["grid"]["a"]) == ([3, 9], [0, 5]) and found["grid"]["b"]["shape"] == [2000]


def test_a_part_of_a_sweep_says_which_of_its_labels_take_a_tied_key():
    grid = {("exp3.learning_rate", "exp3.mixing"): [(0.1, 0.0), (0.2, 0.1)]}
    world = E.bernoulli_arms(means=[0.2, 0.8])
    laid_out = plan(["ucb1", "exp3"], world, horizon=9, seeds=2, checkpoints=1, grid=grid)
    part, _ = dataset.plan_of_runs(laid_out, (laid_out.places["ucb1", 0],), range(2))
    assert dataset._riders(part.axes[0], {}, part)["exp3.mixing"][2] == {dataset.TAKERS: "[]"}

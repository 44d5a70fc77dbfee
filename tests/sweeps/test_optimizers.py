"""Sweeps over optax transformations: named by what they compute, written down as JSON, laid out on grids."""

import json
import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import fresh_process
import numpy as np
import optax
import pytest
import xarray as xr

import jaxbandits as jb
from jaxbandits.commands import listing
from jaxbandits.reports.output import describes, write_run
from jaxbandits.sweeps import plan
from jaxbandits.sweeps.arguments import jsonable, short_text
from jaxbandits.sweeps.engines import local
from jaxbandits.sweeps.identity import identify_cells

A, E = jb.algorithms, jb.environments
ARMS = E.bernoulli_arms(means=[0.25, 0.75])
CONTEXTS = E.contextual_linear(num_arms=4, dim=2)
SMALL = {"horizon": 40, "seeds": 8, "checkpoints": 4}
RATE = 0.1
MAKERS = {
    "sgd 0.1": lambda: optax.sgd(0.1),
    "sgd 0.2": lambda: optax.sgd(0.2),
    "momentum": lambda: optax.sgd(0.1, momentum=0.9),
    "nesterov": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optax.adam(0.1),
    "adam, other decay": lambda: optax.adam(0.1, b2=0.99),
    "yogi": lambda: optax.yogi(0.1),
    "schedule": lambda: optax.sgd(optax.exponential_decay(0.1, 10, 0.5)),
    "injected": lambda: optax.inject_hyperparams(optax.sgd)(learning_rate=0.1),
    "own": lambda: optax.sgd(lambda count: RATE / (1 + count)),
}


def bandit(transformation):
    return partial(A.gradient_bandit, optimizer=transformation), ARMS


def online(transformation):
    return partial(A.online_ucb, epsilon=4.0, learner=transformation), CONTEXTS


def doubled(transformation):
    return partial(A.doubling, base=partial(A.online_ucb, epsilon=4.0, learner=transformation)), CONTEXTS


def combined(transformation):
    base = partial(A.online_ucb, epsilon=4.0, learner=transformation)
    return partial(A.bandit_combiner, epsilon=4.0, bases=[partial(A.doubling, base=base), base]), CONTEXTS


PLACES = {"gradient_bandit": bandit, "online_ucb": online, "doubling": doubled, "bandit_combiner": combined}


def key(place, transformation):
    algorithm, environment = PLACES[place](transformation)
    laid_out = plan.plan({"x": algorithm}, environment, **SMALL)
    _, keys, nameless = identify_cells(laid_out, "cpu", stored=True)
    assert not nameless
    return keys[0]


# of one program with two numbers, and of another program
NUMBERS = "sgd 0.1", "sgd 0.2", "adam"


@cache
def named(place, name):
    """The key of an optimizer of the table, made once: a key of this kind takes a trace."""
    return key(place, MAKERS[name]())


def test_no_two_optimizers_share_a_key():
    names = [named("gradient_bandit", name) for name in MAKERS] + [key("gradient_bandit", None)]
    assert len(set(names)) == len(names)
    for place, few in {"online_ucb": NUMBERS, "doubling": NUMBERS, "bandit_combiner": NUMBERS[1:]}.items():
        names = [named(place, name) for name in few]
        assert len(set(names)) == len(names), place


@pytest.mark.parametrize("place", PLACES)
def test_a_transformation_made_again_has_the_same_key(place):
    first, second = optax.adam(0.1), optax.adam(0.1)
    assert first != second
    assert named(place, "adam") == key(place, second)


OTHER_PROCESS = "sgd 0.1", "nesterov", "schedule", "injected", "own"


def test_keys_and_records_are_those_of_another_process():
    """Sets and hashes have another order there."""
    script = (
        "import json, sys, test_optimizers as t;"
        "print(json.dumps([[t.named('gradient_bandit', m), t.jsonable(t.MAKERS[m]())] for m in t.OTHER_PROCESS]))"
    )
    places = [Path(jb.__file__).parents[1], Path(__file__).parent, Path(__file__).parents[1]]
    environment = fresh_process.environment(PYTHONPATH=os.pathsep.join(map(str, places)), PYTHONHASHSEED="3")
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    here = [[named("gradient_bandit", name), jsonable(MAKERS[name]())] for name in OTHER_PROCESS]
    assert json.loads(done.stdout.splitlines()[-1]) == here


def test_an_edit_of_a_schedule_is_a_new_key(monkeypatch):
    """Also of the same object, in the same process: what it computes is traced anew."""
    own = MAKERS["own"]()
    before = {place: named(place, "own") for place in ("gradient_bandit", "online_ucb")}
    assert key("gradient_bandit", own) == before["gradient_bandit"]
    monkeypatch.setitem(globals(), "RATE", 0.3)
    assert all(key(place, own) != name for place, name in before.items())
    monkeypatch.setitem(globals(), "RATE", 0.1)
    assert key("gradient_bandit", own) == before["gradient_bandit"]


@pytest.fixture
def played(monkeypatch):
    """The names of what is computed."""
    names: list = []
    original = local.play_call

    def counted(task, plan, *args, **keywords):
        names.extend(plan.cells[c].label for c in task.cells)
        return original(task, plan, *args, **keywords)

    monkeypatch.setattr(local, "play_call", counted)
    return names


def test_a_store_finds_the_same_and_computes_the_other(tmp_path, played):
    def run(**makers):
        algorithms = {label: partial(A.gradient_bandit, optimizer=make()) for label, make in makers.items()}
        return jb.sweep(algorithms, ARMS, **SMALL, store=tmp_path, progress=False)

    first = run(x=MAKERS["sgd 0.1"])
    assert played == ["x"]
    again = run(x=MAKERS["sgd 0.1"])
    assert played == ["x"]
    xr.testing.assert_identical(first, again)
    other = run(x=MAKERS["sgd 0.2"])  # under the same label
    assert played == ["x", "x"] and not np.array_equal(other.regret, first.regret)
    both = run(x=MAKERS["sgd 0.1"], y=MAKERS["sgd 0.2"])
    assert played == ["x", "x"]
    np.testing.assert_array_equal(both.regret.sel(algorithm="x"), first.regret[0])
    np.testing.assert_array_equal(both.regret.sel(algorithm="y"), other.regret[0])


def test_records_of_a_run_say_what_was_computed(tmp_path):
    """The configuration of the result, sweep.json and provenance.json are JSON, and tell two transformations apart."""

    def run(make):
        directory = tmp_path / make
        algorithms = {"x": partial(A.gradient_bandit, optimizer=MAKERS[make]())}
        ds = jb.sweep(algorithms, ARMS, **SMALL, store=directory, progress=False)
        write_run(ds, directory, seconds=1.0, lanes=1, formats=())
        provenance = json.loads((directory / "provenance.json").read_text())
        assert json.loads((directory / "chunks" / "sweep.json").read_text())["config"]["horizon"] == SMALL["horizon"]
        config = json.loads(jb.load(directory).attrs["config"])
        assert provenance["config"] == config and describes(directory, config)
        return config["algorithms"]["x"]["optimizer"]

    records = {make: run(make) for make in ("sgd 0.1", "sgd 0.2", "own")}
    assert all(record.keys() == {"name", "program"} for record in records.values())
    assert len({record["program"] for record in records.values()}) == 3
    assert records["sgd 0.1"]["name"].startswith("optax.") and len(records["sgd 0.1"]["program"]) == 64


def test_a_broken_transformation_is_written_down_as_unknown():
    broken = optax.GradientTransformation(lambda x: x.nothing, lambda g, s, x=None: (g, s))
    assert jsonable(broken)["program"] == "unknown" and "unknown" in short_text(broken)


SLOW, FAST = optax.sgd(0.05), optax.sgd(0.5)


def test_a_grid_of_named_optimizers(tmp_path):
    grid = {"optimizer": {"slow": SLOW, "fast": FAST, "plain": None}}
    ds = jb.sweep({"gradient": A.gradient_bandit}, ARMS, grid=grid, **SMALL, progress=False, store=tmp_path)
    assert ds.optimizer.values.tolist() == ["slow", "fast", "plain"]
    alone = jb.sweep({"gradient": partial(A.gradient_bandit, optimizer=FAST)}, ARMS, **SMALL, progress=False)
    np.testing.assert_array_equal(ds.regret.sel(optimizer="fast").values, alone.regret.values)


def test_tied_keys_take_one_transformation_together():
    """It is a tuple of two functions, and one value."""
    algorithms = {name: A.gradient_bandit for name in ("a", "b")}
    grid = {("a.optimizer", "b.optimizer"): {"slow": SLOW, "fast": FAST}}
    ds = jb.sweep(algorithms, ARMS, grid=grid, **SMALL, progress=False)
    np.testing.assert_array_equal(ds.regret.sel(algorithm="a"), ds.regret.sel(algorithm="b"))


def test_one_object_is_one_program():
    """Two equal calls of optax are unequal objects: each is a program of its own, and shares its results' key."""
    sizes = {"num_arms": 2, "horizon": 10}
    assert A.gradient_bandit(**sizes, optimizer=SLOW).program is A.gradient_bandit(**sizes, optimizer=SLOW).program
    again = A.gradient_bandit(**sizes, optimizer=optax.sgd(0.05))
    assert again.program is not A.gradient_bandit(**sizes, optimizer=SLOW).program
    laid_out = plan.plan({"x": A.gradient_bandit}, ARMS, grid={"learning_rate": [0.1, 0.2, 0.4]}, **SMALL)
    assert len(laid_out.groups) == 1  # of plain ascent the learning rate is data


def test_the_listing_writes_no_place_in_memory():
    shown = listing._value_text(partial(A.gradient_bandit, optimizer=SLOW))
    assert shown == "partial(gradient_bandit, optimizer=an optax transformation of chain)"


def test_privacy_does_not_depend_on_the_learner():
    build = partial(A.online_ucb, num_arms=4, dim=2, horizon=10, epsilon=1.0)
    made = [build(learner=learner) for learner in ("maler", "ogd", SLOW)]
    assert len({algorithm.guarantee.spend(algorithm.params) for algorithm in made}) == 1
    with pytest.raises(ValueError, match=r"learner = .*optax\.sgd\(0\.1\)"):
        build(learner=optax.lbfgs())  # needs more than a gradient

"""Every public factory keeps the contract: the rules of `jaxbandits.check` over the catalogue,
and what only the package promises.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import chex
import jax
import numpy as np
import pytest
from cases import SEEDS
from dealt import dealt

import jaxbandits as jb
from jaxbandits import catalogue, checking
from jaxbandits.checking.findings import found_by
from jaxbandits.checking.subject import Subject
from jaxbandits.checking.traces import CHECKPOINTS
from jaxbandits.sweeps.engines import one_call
from jaxbandits.sweeps.engines.calls import LEAST_LANES, Machine, Task, owned, shapes_of, tasks_of
from jaxbandits.sweeps.plan import Cell, plan
from jaxbandits.sweeps.storage.store import Begun

CASES, ALGORITHMS = catalogue.EVERYTHING, catalogue.ALGORITHMS
# windows of one play, of several, of a whole span, of several agents, and conversions of others
KINDS = {"ucb1", "private_batched", "successive_elimination", "byzantine_ucb", "doubling"}
# How lanes are dealt out to devices is the engine's work: those of each kind, and two of large states.
DIVIDED = [name for name in ALGORITHMS if name in KINDS | {"delayed", "jdp_linucb"}]
FEW = 2  # kinds of windows: histories of designs with more take long to compile

# rules about what was traced, and about what was played
TRACED = ("builds", "shapes", "traces_once", "draws", "addresses", "guarantee")
PLAYED = ("plays", "checkpoints")
WATCHED = ("actions", "bad_rewards")


def settings(example, **changes):
    return {
        "algorithms": {"x": example.algorithm},
        "environment": example.environment,
        "reward_adversary": example.reward_adversary,
        "message_adversary": example.message_adversary,
        "horizon": example.horizon,
        "seeds": SEEDS,
        "checkpoints": CHECKPOINTS,
    } | changes


def run(example, **changes):
    return jb.sweep(**settings(example, progress=False) | changes)


def budget_for(example, lanes):
    """A memory budget that gives chunks of exactly `lanes` seeds."""
    laid_out = plan(**settings(example), grid=None, points=None, dtype="float32")
    shapes = shapes_of(laid_out)

    def lanes_of(memory):
        calls = tasks_of(laid_out, owned(laid_out, 1, None), Machine([], 1, "cpu", memory), shapes)
        return {task.lanes for task in calls}

    low, high = 1, 1 << 40
    while low < high:  # the lanes of a chunk grow with the budget
        middle = (low + high) // 2
        try:
            enough = max(lanes_of(middle)) >= lanes
        except ValueError:
            enough = False
        low, high = (low, middle) if enough else (middle + 1, high)
    assert lanes_of(low) == {lanes}
    return low


def digest(ds):
    found = hashlib.sha256()
    for name in sorted(ds.data_vars):
        found.update(name.encode() + np.ascontiguousarray(ds[name].values).tobytes())
    return found.hexdigest()


def in_small_calls(example, devices=None):
    """A sweep in as many calls as there can be: one for each of four devices."""
    return run(example, seeds=4 * LEAST_LANES, memory=budget_for(example, LEAST_LANES), devices=devices)


def breaches(rules, subject):
    """What a case breaks of some rules."""
    return [(rule, *found) for rule in rules for found in found_by(getattr(checking, rule), subject)]


def test_every_factory_has_a_case():
    assert set(catalogue.ALGORITHMS) == set(jb.algorithms.__all__)
    assert set(catalogue.ENVIRONMENTS) == set(jb.environments.__all__)
    assert set(catalogue.ADVERSARIES) == set(jb.adversaries.__all__)


@pytest.mark.parametrize("name", CASES)
def test_traces_keep_the_contract(subject, name):
    rules = TRACED if name in ALGORITHMS else TRACED[:-1]
    assert breaches(rules, subject) == []


@pytest.mark.parametrize("name", CASES)
def test_plays_keep_the_contract(subject, name):
    assert breaches(PLAYED, subject) == []
    final = subject.played()["regret"][:, -1]
    assert final.shape == (SEEDS,)
    assert len(np.unique(final)) > 1 or name in ("fixed_gap_losses", "lemma51_losses")


@pytest.mark.parametrize("name", sorted(KINDS))
def test_lanes_change_no_bit(fully_optimized, name):
    """A lane is the same alone, among few and among many. All other cases: test_lane_proof.py."""
    example = ALGORITHMS[name]
    subject = Subject(
        example.algorithm, example.environment, example.reward_adversary, example.message_adversary,
        horizon=example.horizon, seeds=SEEDS,
    )  # fmt: skip
    assert breaches(("lane_alone", "chunks"), subject) == []


@pytest.mark.parametrize("name", dealt(ALGORITHMS, 8, always=KINDS))
def test_actions_keep_the_contract(subject, name):
    kinds = {(span.slots, span.full, span.whole) for span in subject.cell.algorithm.schedule}
    if len(kinds) <= FEW:
        assert breaches(WATCHED, subject) == []


@pytest.mark.usefixtures("fully_optimized")
@pytest.mark.parametrize("name", dealt(ALGORITHMS, 16, always=KINDS))
def test_a_saved_lane_goes_on(name, monkeypatch):
    """A call taken up from what it saved, in the middle of every span, ends like one that was never interrupted."""
    example, saved, steps = ALGORITHMS[name], {}, 7
    laid_out = plan(**settings(example), grid=None, points=None, dtype="float32")

    def segments(windows, begin, done=0):
        for first in range(done, windows, steps):
            yield first, min(steps, windows - first)

    def keep(span, window, leaves, last=False):
        saved.setdefault(span, []).append((window, leaves()))

    monkeypatch.setattr(one_call, "segments", segments)
    task, device = Task(0, (0,), 0, 8, 8), jax.local_devices()[0]
    whole = one_call.run_task(task, laid_out, device, keep=keep)
    assert saved
    for span in {min(saved), max(saved)}:
        window, leaves = saved[span][len(saved[span]) // 2]
        again = one_call.run_task(task, laid_out, device, begun=(Begun(("key",), 0, 8, 8, span, window), leaves))
        chex.assert_trees_all_equal(whole, again, strict=True)


@pytest.mark.compiles(60)  # seven algorithms in calls of eight lanes
def test_devices_change_no_bit(fully_optimized):
    """Two forced CPU devices, and four for a kind of window each, give in another process what one gives here."""
    devices = {name: (2, 4) if name in KINDS else (2,) for name in DIVIDED}
    script = (
        "import json, os, sys; sys.path[:0] = sys.argv[1].split(os.pathsep); import conftest, test_contract as c; "
        "import jax; assert len(jax.local_devices()) == 4; wanted = json.loads(sys.argv[2]).items(); "
        "conftest.compiled_with(conftest.settings.FULLY_OPTIMIZED).__enter__(); "
        "print(json.dumps({n: [c.digest(c.in_small_calls(c.ALGORITHMS[n], d)) for d in ds] for n, ds in wanted}))"
    )
    whole = {name: in_small_calls(ALGORITHMS[name]) for name in DIVIDED}
    places = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", script, places, json.dumps(devices)],
        env=os.environ | {"JAX_NUM_CPU_DEVICES": "4"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {name: [digest(ds)] * len(devices[name]) for name, ds in whole.items()}


LIBRARY_CALLS = {
    "dot_general",
    "cholesky",
    "eigh",
    "lu",
    "qr",
    "svd",
    "triangular_solve",
    "schur",
    "householder_product",
}


def primitives(jaxpr):
    found = set()
    for equation in jaxpr.eqns:
        found.add(equation.primitive.name)
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                found |= primitives(inner)
    return found


@pytest.mark.parametrize("name", CASES)
def test_no_linear_algebra_library_is_called(subject, name):
    """The bitwise promise on a GPU covers programs without such calls:
    docs/determinism.md names none of this release.
    """
    programs = subject.traces().programs
    used = set().union(*(primitives(closed.jaxpr) for closed, _ in programs.values()))
    assert "add" in used and not used & LIBRARY_CALLS, used & LIBRARY_CALLS
    assert "dot_general" in primitives(jax.make_jaxpr(lambda x: x @ x)(np.ones((3, 3), np.float32)).jaxpr)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_guarantees_are_well_formed(subject, name):
    algorithm = subject.cell.algorithm
    claim, params = algorithm.guarantee, algorithm.params
    assert algorithm.config["horizon"] == CASES[name].horizon
    if claim.model != "none":
        epsilon, delta = claim.spend(params)
        halved = claim.spend(params._replace(mechanism_scale=0.5 * params.mechanism_scale))[0]
        assert delta > 0 or halved == pytest.approx(2 * epsilon)


@pytest.mark.parametrize("name", catalogue.ENVIRONMENTS)
def test_a_fixed_policy_sees_the_same_rewards_under_every_window(subject, name):
    assert breaches(("windows",), subject) == []


@pytest.mark.parametrize("name", ["exp3"])
def test_lane_cell_is_a_plain_tuple(subject, name):
    """Cells hold host data only: planning does not start the accelerator."""
    cell = subject.cell
    assert isinstance(cell, Cell) and not any(isinstance(x, jax.Array) for x in jax.tree.leaves(cell.algorithm.params))

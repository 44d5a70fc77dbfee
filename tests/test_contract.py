"""Every public factory keeps the contract: the same bits however it is run, a clean program, valid claims."""

import hashlib
import json
import math
import os
import subprocess
import sys
import zlib

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import catalogue, simulator
from jaxbandits.environments.data import ORDER
from jaxbandits.random import Draws
from jaxbandits.sweeps import local
from jaxbandits.sweeps.plan import Cell, host_case, plan, stacked
from jaxbandits.sweeps.store import Begun
from jaxbandits.sweeps.tasks import Machine, Task, owned, shapes_of, tasks_of

SEEDS, CHECKPOINTS = 64, 8
CASES, ALGORITHMS = catalogue.EVERYTHING, catalogue.ALGORITHMS


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


def digest(ds):
    found = hashlib.sha256()
    for name in sorted(ds.data_vars):
        found.update(name.encode() + np.ascontiguousarray(ds[name].values).tobytes())
    return found.hexdigest()


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


def cell_of(example):
    laid_out = plan(**settings(example), grid=None, points=None, dtype="float32")
    return laid_out.cells[0], laid_out.groups[0]


def numbers_of(cell):
    return jax.tree.map(jax.numpy.asarray, stacked([host_case(cell)], "float32")[0])


def test_every_factory_has_a_case():
    assert set(catalogue.ALGORITHMS) == set(jb.algorithms.__all__)
    assert set(catalogue.ENVIRONMENTS) == set(jb.environments.__all__)
    assert set(catalogue.ADVERSARIES) == set(jb.adversaries.__all__)


@pytest.fixture(scope="module")
def whole():
    """Every case once, as one chunk of 64 lanes."""
    return {name: run(example, memory=budget_for(example, SEEDS)) for name, example in CASES.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_results_are_sane(whole, name):
    ds = whole[name]
    assert np.all(np.isfinite(ds.regret)) and ds.regret.shape == (1, SEEDS, CHECKPOINTS)
    if "pulls" in ds:
        assert np.all(ds.pulls.sum("arm") == CASES[name].horizon)
    assert len(np.unique(ds.regret.values[0, :, -1])) > 1 or name in ("fixed_gap_losses", "lemma51_losses")


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("name", CASES)
def test_chunks_change_no_bit(whole, name, lanes):
    again = run(CASES[name], memory=budget_for(CASES[name], lanes))
    assert digest(again) == digest(whole[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_lane_seven_alone(whole, name):
    """A lane does not depend on which others run beside it."""
    alone = run(CASES[name], seeds=range(7, 8))
    np.testing.assert_array_equal(alone.regret[:, 0], whole[name].regret[:, 7])


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_saved_lane_goes_on(name, monkeypatch):
    """A call taken up from what it saved, in the middle of every span, ends like one that was never interrupted."""
    example, saved, steps = ALGORITHMS[name], {}, 7
    laid_out = plan(**settings(example), grid=None, points=None, dtype="float32")

    def segments(windows, begin, done=0):
        for first in range(done, windows, steps):
            yield first, min(steps, windows - first)

    def keep(span, window, leaves, last=False):
        saved.setdefault(span, []).append((window, leaves()))

    monkeypatch.setattr(local, "segments", segments)
    task, device = Task(0, (0,), 0, 8, 8), jax.local_devices()[0]
    whole = local.run_task(task, laid_out, device, keep=keep)
    assert saved
    for span in {min(saved), max(saved)}:
        window, leaves = saved[span][len(saved[span]) // 2]
        again = local.run_task(task, laid_out, device, begun=(Begun(("key",), 0, 8, 8, span, window), leaves))
        for x, y in zip(jax.tree.leaves(whole), jax.tree.leaves(again), strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.slow  # minutes: two more processes, compiling every algorithm once a device
def test_devices_change_no_bit(whole, tmp_path):
    """One, two and four forced CPU devices, each in a process of its own."""
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import test_contract as c; "
        "import jax; assert len(jax.local_devices()) == int(sys.argv[2]); "
        "print(json.dumps({n: c.digest(c.run(x, memory=c.budget_for(x, 16))) for n, x in c.ALGORITHMS.items()}))"
    )
    expected = {name: digest(whole[name]) for name in ALGORITHMS}
    for devices in (2, 4):
        environment = os.environ | {"JAX_NUM_CPU_DEVICES": str(devices), "JAXBANDITS_CACHE": str(tmp_path / "cache")}
        command = [sys.executable, "-c", script, os.path.dirname(__file__), str(devices)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        assert json.loads(done.stdout.splitlines()[-1]) == expected


@pytest.mark.parametrize("name", CASES)
def test_no_address_is_drawn_twice(name, monkeypatch):
    """Within one window every (path, play, position) is drawn at most once; no two paths share a crc."""
    drawn: list = []
    original = Draws.words

    def words(self, t, shape=(), first=0):
        drawn.append((self.path, jax.numpy.shape(t), tuple(shape), first))
        return original(self, t, shape, first)

    at = Draws.at

    def at_logged(self, t, position):
        drawn.append((self.path, jax.numpy.shape(t), "at", 0))
        return at(self, t, position)

    monkeypatch.setattr(Draws, "words", words)
    monkeypatch.setattr(Draws, "at", at_logged)
    cell, group = cell_of(CASES[name])
    case, parts = numbers_of(cell), group.parts

    def one_lane(seed):
        lane = simulator.begin(parts, case, seed, CHECKPOINTS)
        drawn.clear()
        return simulator._offer(parts, case, seed, 4, lane, jax.numpy.int32(0), jax.numpy.int32(4))[0]

    jax.eval_shape(one_lane, jax.numpy.uint32(0))
    spans = [(path, first, first + max(math.prod(s) if s != "at" else 1, 1)) for path, _, s, first in drawn]
    for i, (path, low, high) in enumerate(spans):
        if path.startswith(ORDER):  # a permutation, computed again wherever it is asked for
            continue
        for other, low2, high2 in spans[:i]:
            assert path != other or high <= low2 or high2 <= low, f"{name}: {path} is drawn twice at one play"
    paths = {path for path, _, _ in spans}
    assert len({zlib.crc32(path.encode()) for path in paths}) == len(paths)


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
def test_no_linear_algebra_library_is_called(name):
    """The bitwise promise on a GPU covers programs without such calls: docs/determinism.md names none of this release."""
    cell, group = cell_of(CASES[name])
    case, parts = numbers_of(cell), group.parts

    def one_lane(seed):
        lane = simulator.begin(parts, case, seed, CHECKPOINTS)
        lane = simulator._offer(parts, case, seed, 4, lane, jax.numpy.int32(0), jax.numpy.int32(4))[0]
        return simulator.close(parts, case, seed, lane)

    used = primitives(jax.make_jaxpr(one_lane)(jax.numpy.uint32(0)).jaxpr)
    assert "add" in used and not used & LIBRARY_CALLS, used & LIBRARY_CALLS
    assert "dot_general" in primitives(jax.make_jaxpr(lambda x: x @ x)(jax.numpy.ones((3, 3))).jaxpr)


@pytest.mark.parametrize("name", catalogue.ALGORITHMS)
def test_programs_are_cached_by_their_static_values(name):
    """Equal static values give the identical Program: a sweep over parameters shares compiled code."""
    first, second = (cell_of(CASES[name])[0].algorithm for _ in range(2))
    assert first.program is second.program and first.version == second.version
    assert first.config["horizon"] == CASES[name].horizon
    assert all(isinstance(x, int | float | np.ndarray | np.generic) for x in jax.tree.leaves(first.params))


@pytest.mark.parametrize("name", catalogue.ALGORITHMS)
def test_guarantees_are_well_formed(name):
    cell, _ = cell_of(CASES[name])
    claim, params = cell.algorithm.guarantee, cell.algorithm.params
    assert claim.model in ("local", "central", "shuffle", "federated", "none")
    epsilon, delta = claim.spend(params)
    if claim.model == "none":
        assert math.isinf(epsilon)
        return
    assert 0 < epsilon < math.inf and 0 <= delta < 1 and claim.scales
    assert "mechanism_scale" in claim.scales
    halved = params._replace(mechanism_scale=0.5 * params.mechanism_scale)
    # what is declared follows the noise: twice as much, and more where delta > 0
    assert claim.spend(halved)[0] >= 2 * epsilon * (1 - 1e-9)
    assert delta > 0 or claim.spend(halved)[0] == pytest.approx(2 * epsilon)


@pytest.mark.parametrize("name", catalogue.ENVIRONMENTS)
def test_a_fixed_policy_sees_the_same_rewards_under_every_window(name):
    example = CASES[name]
    cell, group = cell_of(example)
    case = numbers_of(cell)
    world, draws = group.parts.world, Draws(jax.numpy.uint32(3), "environment")
    agents = cell.environment.facts.get("num_agents")

    @jax.jit  # as it runs: a lone operation outside a compiled program may round another way
    def pay(params, state, t, context, action):
        return world.reward(params, state, draws.child("reward"), t, context, action)

    def rewards(slots):
        state = world.init(case.environment, draws.child("instance"))
        seen = []
        for start in range(0, 24, slots):
            t = jax.numpy.arange(start + 1, start + 1 + slots, dtype=jax.numpy.int32)
            context, state = world.observe(case.environment, state, draws.child("context"), t)
            action = (t % 2) if agents is None else jax.numpy.broadcast_to((t % 2)[:, None], (slots, agents))
            seen.append(np.asarray(pay(case.environment, state, t, context, action)))
        return np.concatenate(seen)

    one = rewards(1)
    for slots in (3, 8, 24):
        np.testing.assert_array_equal(rewards(slots), one)


def test_lane_cell_is_a_plain_tuple():
    """Cells hold host data only: planning does not start the accelerator."""
    cell, _ = cell_of(CASES["exp3"])
    assert isinstance(cell, Cell) and not any(isinstance(x, jax.Array) for x in jax.tree.leaves(cell.algorithm.params))

"""LinUCB and robust elimination: exact schedules, draws shared between parameter points.

Paths: test_linear_reference, test_ldp_contextual_reference.
"""

import importlib
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import others
from uncompiled import uncompiled

from jaxbandits import sweep
from jaxbandits.algorithms.contextual.linucb import linucb
from jaxbandits.algorithms.linear.batch_reports import block_arms, block_sums
from jaxbandits.algorithms.linear.robust_elimination import robust_elimination
from jaxbandits.environments.contextual import contextual_linear
from jaxbandits.environments.linear import linear_arms
from jaxbandits.random import Draws
from jaxbandits.simulator import advance, begin, case_of, close, finish, parts_of
from jaxbandits.spans import Segment, segment
from jaxbandits.sweeps.plan import cast as cast_number
from jaxbandits.sweeps.plan import plan


def cast(tree):
    return jax.tree.map(partial(cast_number, dtype="float32"), tree)


@partial(jax.jit, static_argnums=(0, 1))
def advanced(parts, kind, case, lanes, lane, times, number):
    def one(seed, lane):
        where = Segment(jnp.int32(0), jnp.int32(kind[0]), jnp.int32(kind[0]), jnp.int32(0), number)
        return advance(parts, kind, case, seed, lane, times, where)

    return jax.vmap(one)(lanes, lane)


@partial(jax.jit, static_argnums=0)
def closed(parts, case, lanes, lane):
    return jax.vmap(partial(close, parts, case))(lanes, lane)


def play(algorithm, environment, times, seeds):
    """Pulls [seeds, C, A] and the diagnostics, span by span, with the windows an engine offers."""
    parts = parts_of(algorithm, environment, None, None, "float32")
    case, times = cast(case_of(algorithm, environment)), np.asarray(times, np.int32)
    lanes = np.arange(seeds, dtype=np.uint32)
    lane = uncompiled(jax.vmap(lambda case, seed: begin(parts, case, seed, len(times)), (None, 0)))(case, lanes)
    for span in algorithm.schedule:
        if span.repeats:
            number = np.int32(span.repeats if span.full else span.repeats + len(times))
            lane = advanced(parts, (span.slots, span.full, span.whole), case, lanes, lane, times, number)
        if span.close:
            lane = closed(parts, case, lanes, lane)
    record, diagnostics = uncompiled(jax.vmap(partial(finish, parts), (None, 0)))(case, lane)
    return record.pulls_at, diagnostics


def windows_of(monkeypatch, slots):
    """Make robust_elimination offer windows of `slots` plays."""
    module = importlib.import_module("jaxbandits.algorithms.linear.arguments")
    monkeypatch.setattr(module, "slots", lambda horizon: slots)


def actions_of(pulls):
    """[T] arms from pulls [T, A] at every play."""
    return np.argmax(np.diff(pulls, axis=0, prepend=0), axis=-1)


def test_linucb_first_play_takes_the_lowest_tied_arm():
    algorithm, draws = linucb(num_arms=100, dim=5, horizon=10), Draws(np.uint32(0), "")
    x = sphere(np.random.default_rng(0), 1, 100, 5)

    def first(params, x):
        state = algorithm.program.init(params, draws)
        action, used, _ = algorithm.program.act(params, state, draws, jnp.ones(1, jnp.int32), x)
        assert used is None
        return action

    assert uncompiled(first)(cast(algorithm.params), np.float32(x)).tolist() == [0]


def test_no_radius_is_a_radius():
    assert linucb(num_arms=2, dim=2, horizon=9, radius_scale=0.0).params.radius_scale == 0.0


def test_fixed_arms_are_a_fact_that_linucb_must_agree_with():
    fixed = contextual_linear(num_arms=5, dim=3, contexts="fixed")
    assert fixed.facts["contexts"] == "fixed"
    filled_in = plan(linucb, fixed, horizon=20, seeds=8).cells[0].algorithm
    assert filled_in.program is linucb(num_arms=5, dim=3, horizon=20, contexts="fixed").program


@pytest.mark.dealt(8)
def test_fixed_arms_give_the_same_bits_in_chunks_of_any_size_and_beside_any_points():
    """300 plays: past the ones that compute every width anew."""
    fixed = contextual_linear(num_arms=30, dim=5, contexts="fixed")
    run = partial(sweep, linucb, fixed, horizon=300, progress=False)
    whole = run(seeds=64, grid={"radius_scale": [0.1, 0.5]}).regret.values
    np.testing.assert_array_equal(whole[:, :1, :8], run(seeds=8, grid={"radius_scale": [0.1]}).regret.values)


@pytest.mark.dealt(8)
def test_presets_share_a_program_and_contexts_are_drawn_once():
    make = partial(linucb, num_arms=20, dim=5, horizon=50)
    algorithm, environment = make(radius_scale=0.1), contextual_linear(num_arms=20, dim=5)
    assert algorithm.program is make(preset="theory", feature_norm=2.0).program
    parts = parts_of(algorithm, environment, None, None, "float32")
    case, times = cast(case_of(algorithm, environment)), jnp.array([50], jnp.int32)
    where = segment(algorithm.schedule[0], 0, 0, 50, np.array([50]))

    def run(seed, scale):
        one = case._replace(algorithm=case.algorithm._replace(radius_scale=scale))
        lane = begin(parts, one, seed, 1)
        return advance(parts, (1, True, False), one, seed, lane, times, where).record.regret

    def words(points):
        """Elements whose bits are shifted left in the traced loop: blocks of random words, for every seed."""
        both = jax.vmap(jax.vmap(run, (None, 0)), (0, None))
        text = str(jax.make_jaxpr(both)(np.arange(16, dtype=np.uint32), np.linspace(0.1, 1, points, dtype=np.float32)))
        shapes = re.findall(r":u32\[([\d,]*)\] = shift_left", text)
        return sum(int(np.prod([int(n) for n in s.split(",") if n])) for s in shapes)

    assert 16 * 20 * 20 <= words(1) == words(8)  # twenty rounds for each of twenty arms


def test_robust_elimination_counts_on_the_canonical_basis():
    """T = 4096 and four batches: q = 8, so ceil(8/4) = 2 plays an arm, then ceil(64/4) = 16 of those left."""
    algorithm = robust_elimination(actions=np.eye(4), horizon=4096, num_batches=4, sampling_scale=1e-6)
    environment = linear_arms(actions=np.eye(4), theta=[0.9, 0.1, 0.0, 0.0], noise_scale=0.0)
    pulls, diagnostics = play(algorithm, environment, np.arange(1, 4097), 1)
    arms = actions_of(pulls[0])
    assert arms[:8].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]  # then arm 0 alone: batches of 64 and 512, then the rest
    assert pulls[0, -1].tolist() == [4090, 2, 2, 2]
    assert diagnostics["active_arms"].tolist() == [1] and diagnostics["batches"].tolist() == [3]
    patient = robust_elimination(actions=np.eye(4), horizon=4096, num_batches=4, sampling_scale=1e3)
    pulls, diagnostics = play(patient, environment, np.arange(1, 4097), 1)
    assert pulls[0, 8].tolist() == [3, 2, 2, 2] and pulls[0, 71].tolist() == [18] * 4
    assert pulls[0, 583].tolist() == [146] * 4
    assert pulls[0, -1].tolist() == [4096 - 3 * 146, 146, 146, 146] and diagnostics["active_arms"].tolist() == [4]


def sphere(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("horizon, num_batches", others([(100, 2), (3000, 4)]))
def test_every_play_is_made_and_windows_change_no_count(horizon, num_batches, monkeypatch):
    actions = sphere(np.random.default_rng(5), 12, 3)
    environment, found = linear_arms(actions=actions, theta=[0.3, 0.0, 0.2]), []
    for slots, checkpoints in ((8, 60), (17, 60), (17, 1)):
        windows_of(monkeypatch, slots)
        times = np.unique(np.linspace(1, horizon, checkpoints + 1).astype(int)[1:])
        algorithm = robust_elimination(actions=actions, horizon=horizon, num_batches=num_batches)
        assert [span.close for span in algorithm.schedule] == [True] * num_batches + [False]
        pulls, diagnostics = play(algorithm, environment, times, 8)
        np.testing.assert_array_equal(pulls.sum(-1), np.broadcast_to(times, (8, len(times))))
        assert diagnostics["batches"].tolist() == [num_batches - 1] * 8
        found.append(pulls if checkpoints == 60 else pulls[:, -1])
    for pulls in found[1:]:
        np.testing.assert_array_equal(pulls, found[0] if pulls.ndim == 3 else found[0][:, -1])


@pytest.mark.dealt(8)
def test_robust_elimination_in_a_sweep():
    """Lanes whose batches differ in length share the engine's windows."""
    actions = sphere(np.random.default_rng(7), 12, 3)
    environment = linear_arms(actions=actions, theta=[0.6, -0.6, 0.3])
    ds = sweep(
        partial(robust_elimination, num_batches=4), environment, horizon=900, seeds=16, checkpoints=9, progress=False,
        grid={"sampling_scale": [0.01, 0.5, 5.0]},
    )  # fmt: skip
    assert (ds.pulls.sum("arm") == 900).all() and len(np.unique(ds.active_arms)) > 2


@pytest.mark.dealt(8)
def test_a_batch_that_does_not_fit_ends_exploration():
    """T = 20, four batches, six arms: batches of 2.1, 4.5 and 9.5 plays become 6, 6 and 12: the last overruns."""
    actions = np.eye(6)
    algorithm = robust_elimination(actions=actions, horizon=20, num_batches=4, sampling_scale=1e3)
    environment = linear_arms(actions=actions, theta=np.eye(6)[4], noise_scale=0.0)
    pulls, rest = play(algorithm, environment, np.arange(1, 21), 1)
    assert pulls[0, 5].tolist() == [1] * 6 and pulls[0, 11].tolist() == [2] * 6
    assert rest["batches"].tolist() == [2] and pulls[0, -1].tolist() == [2, 2, 2, 2, 10, 2]
    short = robust_elimination(actions=actions, horizon=5, num_batches=2)  # the same program, other numbers
    pulls, rest = play(short, environment, np.arange(1, 6), 1)
    assert rest["batches"].tolist() == [0] and pulls[0, -1, 0] == 5  # no batch fits: the lowest arm
    actions = np.eye(10)  # T = 17: ten plays, then ten do not fit, and a third batch is not tried
    algorithm = robust_elimination(actions=actions, horizon=17, num_batches=4, sampling_scale=1e3)
    pulls, rest = play(algorithm, linear_arms(actions=actions, theta=np.eye(10)[3], noise_scale=0.0), [10, 17], 1)
    assert pulls[0].tolist() == [[1] * 10, [1, 1, 1, 8, 1, 1, 1, 1, 1, 1]] and rest["batches"].tolist() == [1]


def test_blocks_within_a_window():
    arms_of, sums_of = uncompiled(lambda counts, before: block_arms(counts, before, 3)), uncompiled(block_sums)
    counts = np.array([3, 0, 2, 4], np.int32)
    arms = np.concatenate([arms_of(counts, np.int32(p)) for p in (0, 3, 6)])
    assert arms.tolist() == [0, 0, 0, 2, 2, 3, 3, 3, 3]
    values = np.arange(1, 10, dtype=np.float32)
    assert sums_of(values, arms, counts, np.int32(0), np.int32(9)).tolist() == [6, 0, 9, 30]
    part = sums_of(values[2:7], arms[2:7], counts, np.int32(2), np.int32(4))
    assert part.tolist() == [3, 0, 9, 6]  # arms 0 2 2 3; the fifth slot is not played

"""LinUCB and robust elimination: exact schedules, literal loops on the same draws,
draws shared between parameter points.
"""

import importlib
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import others

from jaxbandits import sweep
from jaxbandits.algorithms.contextual.linucb import TIE, linucb
from jaxbandits.algorithms.linear.batch_reports import block_arms, block_sums
from jaxbandits.algorithms.linear.robust_elimination import robust_elimination
from jaxbandits.environments.contextual import contextual_linear
from jaxbandits.environments.linear import linear_arms
from jaxbandits.estimators.g_optimal import g_optimal_design
from jaxbandits.random import Draws
from jaxbandits.simulator import advance, begin, case_of, close, finish, parts_of
from jaxbandits.spans import Segment, segment


def cast(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)


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
    """[seeds, C, A] pulls or [seeds, C] regret, and the diagnostics:
    span by span, with the windows an engine offers.
    """
    parts = parts_of(algorithm, environment, None, None, "float32")
    case, times = cast(case_of(algorithm, environment)), jnp.asarray(times, jnp.int32)
    lanes = jnp.arange(seeds, dtype=jnp.uint32)
    lane = jax.jit(jax.vmap(lambda seed: begin(parts, case, seed, len(times))))(lanes)
    for span in algorithm.schedule:
        if span.repeats:
            number = jnp.int32(span.repeats if span.full else span.repeats + len(times))
            lane = advanced(parts, (span.slots, span.full, span.whole), case, lanes, lane, times, number)
        if span.close:
            lane = closed(parts, case, lanes, lane)
    record, diagnostics = jax.vmap(partial(finish, parts, case))(lane)
    kept = record.pulls_at if not isinstance(record.pulls_at, tuple) else record.regret_at[0]
    return np.asarray(kept), jax.tree.map(np.asarray, diagnostics)


def windows_of(monkeypatch, slots):
    """Make robust_elimination offer windows of `slots` plays."""
    module = importlib.import_module("jaxbandits.algorithms.linear.arguments")
    monkeypatch.setattr(module, "slots", lambda horizon: slots)


def actions_of(pulls):
    """[T] arms from pulls [T, A] at every play."""
    return np.argmax(np.diff(pulls, axis=0, prepend=0), axis=-1)


def stream(seed, path):
    return Draws(jnp.uint32(seed), path)


# LinUCB


def literal_linucb(contexts, rewards, theta, algorithm):
    """Cumulative regret, float64, with an inverse at every play."""
    p = algorithm.params
    gram, vector, total, curve = p.ridge * np.eye(len(theta)), np.zeros(len(theta)), 0.0, []
    for t, x in enumerate(contexts, 1):
        inverse = np.linalg.inv(gram)
        width = p.radius_scale * (p.base + p.slope * np.sqrt(p.offset + np.log1p(p.growth * t)))
        index = x @ inverse @ vector + width * np.sqrt(np.einsum("ad,de,ae->a", x, inverse, x))
        a = np.flatnonzero(index >= index.max() - TIE * abs(index.max()))[0]
        gram += np.outer(x[a], x[a])
        vector += x[a] * float(rewards[t - 1] < x[a] @ theta)
        total += (x @ theta).max() - x[a] @ theta
        curve.append(total)
    return np.array(curve)


@pytest.mark.parametrize("contexts", ["redraw", "fixed"])
@pytest.mark.parametrize("preset", ["reference", "theory"])
def test_linucb_is_the_literal_loop(preset, contexts):
    horizon, environment = 250, contextual_linear(num_arms=20, dim=4, contexts=contexts)
    algorithm = linucb(num_arms=20, dim=4, horizon=horizon, preset=preset, radius_scale=0.1, contexts=contexts)
    curves, _ = play(algorithm, environment, np.arange(1, horizon + 1), 4)
    t, world, equal = jnp.arange(1, horizon + 1, dtype=jnp.int32), environment.world, 0
    for seed in range(4):
        state = world.init(cast(environment.params), stream(seed, "environment/instance"))
        contexts = np.asarray(
            world.observe(environment.params, state, stream(seed, "environment/context"), t)[0], float
        )
        uniform = np.asarray(stream(seed, "environment/reward").uniform(t))
        want = literal_linucb(contexts, uniform, np.asarray(state.theta, float), algorithm)
        equal += np.allclose(curves[seed], want, atol=1e-3)
        late = literal_linucb(contexts, np.roll(uniform, 1), np.asarray(state.theta, float), algorithm)
        assert not np.allclose(curves[seed], late, atol=1e-3)
    assert equal >= 3  # float32 may flip one near tie


def test_linucb_first_play_takes_the_lowest_tied_arm():
    algorithm = linucb(num_arms=100, dim=5, horizon=10)
    draws = stream(0, "")
    state = algorithm.program.init(cast(algorithm.params), draws)
    x = np.random.default_rng(0).normal(size=(100, 5))
    x = jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True), jnp.float32)
    action, used, _ = algorithm.program.act(cast(algorithm.params), state, draws, jnp.ones(1, jnp.int32), x[None])
    assert used is None and action.tolist() == [0]


def test_fixed_arms_are_a_fact_that_linucb_must_agree_with():
    fixed = contextual_linear(num_arms=5, dim=3, contexts="fixed")
    assert fixed.facts["contexts"] == "fixed"
    assert sweep(linucb, fixed, horizon=20, seeds=8, progress=False).regret.shape[1] == 8
    with pytest.raises(ValueError, match="contexts = 'fixed' disagrees"):
        sweep(partial(linucb, contexts="fixed"), contextual_linear(num_arms=5, dim=3), horizon=20, seeds=8)
    with pytest.raises(ValueError, match="contexts"):
        linucb(num_arms=5, dim=3, horizon=20, contexts="frozen")


def test_fixed_arms_give_the_same_bits_in_chunks_of_any_size_and_beside_any_points():
    """300 plays: past the ones that compute every width anew."""
    fixed = contextual_linear(num_arms=30, dim=5, contexts="fixed")
    run = partial(sweep, linucb, fixed, horizon=300, progress=False)
    whole = run(seeds=64, grid={"radius_scale": [0.1, 0.5]}).regret.values
    np.testing.assert_array_equal(whole[:, :1, :8], run(seeds=8, grid={"radius_scale": [0.1]}).regret.values)


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
        text = str(jax.make_jaxpr(both)(jnp.arange(16, dtype=jnp.uint32), jnp.linspace(0.1, 1, points)))
        shapes = re.findall(r":u32\[([\d,]*)\] = shift_left", text)
        return sum(int(np.prod([int(n) for n in s.split(",") if n])) for s in shapes)

    assert 16 * 20 * 20 <= words(1) == words(8)  # twenty rounds for each of twenty arms


# robust elimination


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
    assert (
        pulls[0, 8].tolist() == [3, 2, 2, 2]
        and pulls[0, 71].tolist() == [18] * 4
        and pulls[0, 583].tolist() == [146] * 4
    )
    assert pulls[0, -1].tolist() == [4096 - 3 * 146, 146, 146, 146] and diagnostics["active_arms"].tolist() == [4]


def literal_robust(actions, rewards, horizon, num_batches, scale, failure_prob=0.05):
    """rewards(t, arm) -> the arms played."""
    num_arms, active, arms, best = len(actions), np.ones(len(actions), bool), [], 0
    log_term = np.log(2 * num_arms * num_batches / failure_prob)
    for i in range(1, num_batches):
        design = g_optimal_design(
            np.float32(actions), active=active, max_steps=20 * np.linalg.matrix_rank(actions[active])
        )
        weights = np.asarray(design.weights, float)
        counts = np.ceil(horizon ** (i / num_batches) * weights * (1 - 2e-6) - 1e-9).astype(int)
        if len(arms) + counts.sum() > horizon:
            break
        vector = np.zeros(actions.shape[1])
        for a in np.repeat(np.arange(num_arms), counts):
            arms.append(a)
            vector += actions[a] * rewards(len(arms), a)
        inverse = np.linalg.pinv((actions.T * counts) @ actions)
        value = np.where(active, actions @ inverse @ vector, -np.inf)
        leverage = np.einsum("kd,de,ke->k", actions, inverse, actions)[active].max()
        active &= value >= value.max() - 2 * scale * np.sqrt(2 * log_term * leverage)
        best = int(np.argmax(value))
    return arms + [best] * (horizon - len(arms))


def sphere(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_robust_elimination_is_the_literal_loop():
    actions = sphere(np.random.default_rng(3), 12, 3)
    theta, horizon = np.array([0.6, -0.6, 0.3]), 3000
    environment = linear_arms(actions=actions, theta=theta)
    algorithm = robust_elimination(actions=actions, horizon=horizon, num_batches=4, variance_bound="observed")
    pulls, diagnostics = play(algorithm, environment, np.arange(1, horizon + 1), 3)
    np.testing.assert_array_equal(pulls.sum(-1), np.broadcast_to(np.arange(1, horizon + 1), (3, horizon)))
    assert diagnostics["batches"].tolist() == [3] * 3 and diagnostics["active_arms"].max() < 12
    for seed in range(3):
        noise = np.asarray(stream(seed, "environment/reward").normal(jnp.arange(1, horizon + 1, dtype=jnp.int32)))
        want = literal_robust(actions, lambda t, a, z=noise: actions[a] @ theta + z[t - 1], horizon, 4, 0.5)
        np.testing.assert_array_equal(actions_of(pulls[seed]), want)


@pytest.mark.parametrize("horizon, num_batches", others([(100, 2), (3000, 4)]))
def test_every_play_is_made_and_windows_change_no_count(horizon, num_batches, monkeypatch):
    actions = sphere(np.random.default_rng(5), 12, 3)
    environment, found = linear_arms(actions=actions, theta=[0.3, 0.0, 0.2]), []
    for slots, checkpoints in ((8, 60), (17, 60), (128, 60), (17, 1)):
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


def test_robust_elimination_in_a_sweep():
    """Lanes whose batches differ in length share the engine's windows."""
    actions = sphere(np.random.default_rng(7), 12, 3)
    environment = linear_arms(actions=actions, theta=[0.6, -0.6, 0.3])
    ds = sweep(
        partial(robust_elimination, num_batches=4), environment, horizon=900, seeds=16, checkpoints=9, progress=False,
        grid={"sampling_scale": [0.01, 0.5, 5.0]},
    )  # fmt: skip
    assert (ds.pulls.sum("arm") == 900).all() and len(np.unique(ds.active_arms)) > 2


@pytest.mark.exhaustive
def test_a_batch_that_does_not_fit_ends_exploration():
    """T = 20, four batches, six arms: batches of 2.1, 4.5 and 9.5 plays become 6, 6 and 12,
    of which the last overruns.
    """
    actions = np.eye(6)
    algorithm = robust_elimination(actions=actions, horizon=20, num_batches=4, sampling_scale=1e3)
    environment = linear_arms(actions=actions, theta=np.eye(6)[4], noise_scale=0.0)
    pulls, diagnostics = play(algorithm, environment, np.arange(1, 21), 1)
    assert pulls[0, 5].tolist() == [1] * 6 and pulls[0, 11].tolist() == [2] * 6
    assert diagnostics["batches"].tolist() == [2] and pulls[0, -1].tolist() == [2, 2, 2, 2, 10, 2]
    short = robust_elimination(actions=actions, horizon=5, num_batches=2)  # the same program, other numbers
    pulls, diagnostics = play(short, environment, np.arange(1, 6), 1)
    assert diagnostics["batches"].tolist() == [0] and pulls[0, -1, 0] == 5  # no batch fits: the lowest arm
    actions = np.eye(10)  # T = 17: ten plays, then ten do not fit, and a third batch is not tried
    algorithm = robust_elimination(actions=actions, horizon=17, num_batches=4, sampling_scale=1e3)
    pulls, diagnostics = play(
        algorithm, linear_arms(actions=actions, theta=np.eye(10)[3], noise_scale=0.0), [10, 17], 1
    )
    assert pulls[0].tolist() == [[1] * 10, [1, 1, 1, 8, 1, 1, 1, 1, 1, 1]] and diagnostics["batches"].tolist() == [1]


def test_blocks_within_a_window():
    counts = jnp.array([3, 0, 2, 4], jnp.int32)
    arms = np.concatenate([np.asarray(block_arms(counts, jnp.int32(p), 3)) for p in (0, 3, 6)])
    assert arms.tolist() == [0, 0, 0, 2, 2, 3, 3, 3, 3]
    values = jnp.arange(1.0, 10.0)
    whole = block_sums(values, jnp.asarray(arms), counts, jnp.int32(0), jnp.int32(9))
    assert whole.tolist() == [6, 0, 9, 30]
    part = block_sums(values[2:7], jnp.asarray(arms[2:7]), counts, jnp.int32(2), jnp.int32(4))
    assert part.tolist() == [3, 0, 9, 6]  # arms 0 2 2 3; the fifth slot is not played

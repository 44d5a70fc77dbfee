"""The federated pair: attacks, schedules and the checks of messages. Paths: test_byzantine_reference.py."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from uncompiled import uncompiled

from jaxbandits.adversaries.byzantine import byzantine
from jaxbandits.algorithms.federated import agents
from jaxbandits.algorithms.federated.byzantine_ucb import byzantine_ucb
from jaxbandits.algorithms.federated.isolated_linucb import isolated_linucb
from jaxbandits.environments.federated import federated_linear
from jaxbandits.numerics import fixed_sum, matvec
from jaxbandits.numerics.linear_algebra import inverse_above_floor
from jaxbandits.protocol import Adversary, Attack, Moments, Span
from jaxbandits.random import Draws
from jaxbandits.simulator import advance, begin, case_of, parts_of
from jaxbandits.spans import segment
from jaxbandits.traced_once import without_unread

mean_ucb = partial(byzantine_ucb, aggregate="mean")
SHAPE = {"num_agents": 8, "num_arms": 6, "dim": 4}


def cast(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)


def play(algorithm, environment, times, seeds, *, adversary=None):
    """[seeds, C] regret of an algorithm of one full span."""
    parts = parts_of(algorithm, environment, None, adversary, "float32")
    case, times = cast(case_of(algorithm, environment, None, adversary)), jnp.asarray(times, jnp.int32)
    (span,) = algorithm.schedule
    whole = segment(span, 0, 0, span.repeats, np.asarray(times))

    def lane(seed):
        start, kind = begin(parts, case, seed, len(times)), (span.slots, span.full, span.whole)
        return advance(parts, kind, case, seed, start, times, whole).record

    return np.asarray(jax.jit(without_unread(jax.vmap(lane)))(jnp.arange(seeds, dtype=jnp.uint32)).regret_at[0])


def stream(seed, path):
    return Draws(jnp.uint32(seed), path)


def hit_first(params, state, draws, t, payload, seen):
    """The first `number` agents send (mean U, -5 U theta)."""
    hit = jnp.arange(payload.vector.shape[0], dtype=jnp.float32) < params[0]
    gram = fixed_sum(payload.gram, axis=0) / payload.vector.shape[0]
    vector = -5 * matvec(gram, jnp.asarray(seen.truth.theta, gram.dtype))
    gram, vector = jnp.where(hit[:, None, None], gram, payload.gram), jnp.where(hit[:, None], vector, payload.vector)
    return payload._replace(gram=gram, vector=vector), hit, state


def nothing(params, draws):
    return ()


TARGET = Attack(nothing, hit_first)


@pytest.mark.dealt(4)
def test_target_breaks_the_mean_and_leaves_isolated_agents_alone():
    final = {}
    for factory in (mean_ucb, isolated_linucb):
        algorithm = factory(**SHAPE, horizon=605, window=10, corruption_bound=0.25)
        for attacked in (0, 2):
            adversary = Adversary(TARGET, (np.float64(attacked),), None, {})
            curves = play(algorithm, federated_linear(**SHAPE), [605], 8, adversary=adversary)
            final[algorithm.version[0], attacked] = curves[:, -1].mean() / (8 - attacked)
    assert final["byzantine_ucb", 2] > 10 * final["byzantine_ucb", 0]
    assert final["byzantine_ucb", 0] < 0.7 * final["isolated_linucb", 0]  # sharing pays
    assert 0.8 < final["isolated_linucb", 2] / final["isolated_linucb", 0] < 1.25


@pytest.mark.dealt(8)
def test_a_public_attack_reaches_both_and_changes_isolated_agents_nothing():
    environment, times = federated_linear(**SHAPE), [150, 300]
    isolated, shared = (f(**SHAPE, horizon=300, window=10) for f in (isolated_linucb, mean_ucb))
    honest = Adversary(TARGET, (np.float64(0),), None, {})
    curves = {
        (name, n): play(algorithm, environment, times, 4, adversary=adversary)
        for name, algorithm in (("isolated", isolated), ("shared", shared))
        for n, adversary in (("attack", byzantine(corruption=0.25, kind="sign_flip", scale=5.0)), ("none", honest))
    }
    assert (curves["isolated", "attack"] < curves["isolated", "none"]).all()  # two agents are left out of the regret
    np.testing.assert_allclose(curves["isolated", "attack"] / 6, curves["isolated", "none"] / 8, rtol=0.35)
    assert (curves["shared", "attack"] != curves["shared", "none"]).all()


def test_schedule_constants():
    """alpha = 0.2, so C = 8/3; iota = log(128 N T / delta); theory values at k = 4, then the scales."""
    scales = {"corruption_bound": 0.2, "ridge_scale": 1.0, "radius_scale": 1.0}
    c = byzantine_ucb(**SHAPE, horizon=2000, window=10, **scales).params.constants
    iota = np.log(128 * 8 * 2000 / 0.05)
    level = max(10, 8 * np.sqrt(10 * iota) * 8 / 3 * 2)
    ridge = lambda c, k: uncompiled(lambda k: agents.ridge(c, k, jnp.float32))(np.int32(k))
    np.testing.assert_allclose(ridge(c, 4), level, rtol=1e-5)
    beta = 3 * np.sqrt(level * 4) + 4 * np.sqrt(3 * 10 * 4 * iota) * 8 / 3 * 1.5 / np.sqrt(level)
    beta += np.sqrt(4 * iota / 8)
    radius = uncompiled(lambda k: agents.episode_radius(c, k, jnp.float32))
    np.testing.assert_allclose(radius(np.int32(4)), beta, rtol=1e-5)
    first = byzantine_ucb(**SHAPE, horizon=50, feature_spread=0.0).params.constants
    np.testing.assert_allclose(ridge(first, 9), 0.1 * 2, rtol=1e-6)  # max(L, 0), L = 2


def test_messages_are_checked_and_cut():
    rng = np.random.default_rng(0)
    gram = rng.normal(size=(6, 3, 3)).astype(np.float32)
    gram = gram + np.swapaxes(gram, 1, 2)
    vector = rng.normal(size=(6, 3)).astype(np.float32)
    gram[1, 0, 1] += 0.01  # not symmetric
    gram[2, 1, 1] = np.nan
    vector[3, 0] = np.inf
    gram[4] *= np.float32(1e30)
    vector[5] *= np.float32(1e38)
    accept = uncompiled(lambda gram, vector: agents.accept(Moments(gram, vector), jnp.float32(1e4)))
    got = accept(gram, vector)
    np.testing.assert_array_equal(got.gram[0], gram[0])
    np.testing.assert_array_equal(got.vector[0], vector[0])
    for agent in (1, 2, 3):
        assert not np.asarray(got.gram[agent]).any() and not np.asarray(got.vector[agent]).any()
    np.testing.assert_allclose(np.linalg.norm(got.gram[4]), 1e4, rtol=1e-5)
    np.testing.assert_allclose(got.gram[4] / 1e4, gram[4] / np.linalg.norm(gram[4].astype(float)), rtol=1e-4)
    np.testing.assert_array_equal(got.vector[4], vector[4])
    np.testing.assert_allclose(np.linalg.norm(got.vector[5]), 1e4, rtol=1e-5)
    np.testing.assert_allclose(got.vector[5] / 1e4, vector[5] / np.linalg.norm(vector[5].astype(float)), rtol=1e-5)
    huge = np.full((1, 3), np.finfo(np.float32).max)  # its norm is beyond the largest float
    cut = jax.jit(agents.accept)(Moments(np.zeros((1, 3, 3), np.float32), huge), np.float32(1e4)).vector
    np.testing.assert_allclose(cut, np.full((1, 3), 1e4 / np.sqrt(3)), rtol=1e-5)


@pytest.mark.parametrize("dim", [1, 2, 5, 8])
def test_eigenvalue_floor(dim):
    rng = np.random.default_rng(dim)
    matrix = rng.normal(size=(5, dim, dim))
    matrix = matrix + np.swapaxes(matrix, 1, 2)
    matrix[0], matrix[1] = np.eye(dim) * 3, np.eye(dim) * 0.05  # above the floor, and positive below it
    values, vectors = np.linalg.eigh(matrix)
    want = np.einsum("nij,nj,nkj->nik", vectors, 1 / np.maximum(values, 0.3), vectors)
    got = uncompiled(jax.vmap(lambda m: inverse_above_floor(m, 0.3)))(np.float32(matrix))
    np.testing.assert_allclose(got, want, atol=2e-4)


def test_nothing_calls_a_solver_of_the_backend():
    algorithm, environment = byzantine_ucb(**SHAPE, horizon=40, window=10), federated_linear(**SHAPE)
    parts = parts_of(algorithm, environment, None, None, "float32")
    whole = segment(Span(10, 4), 0, 0, 4, np.array([40]))
    case, times = cast(case_of(algorithm, environment)), jnp.array([40], jnp.int32)

    def lane(seed):
        return advance(parts, (10, True, True), case, seed, begin(parts, case, seed, 1), times, whole)

    text = jax.jit(without_unread(jax.vmap(lane))).lower(jnp.arange(8, dtype=jnp.uint32)).as_text()
    assert "stablehlo.dot_general" not in text and "custom_call" not in text

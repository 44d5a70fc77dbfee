"""FedUCB as claimed and as repaired: rounds that agents ask for, and the ridge that covers the noise of a mean."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms import byzantine_ucb
from jaxbandits.algorithms.federated.agents import noise_ridge
from jaxbandits.numerics.linear_algebra import log_determinant
from jaxbandits.protocol import Moments
from jaxbandits.random import Draws

N, D, WINDOWS = 2, 3, 40
RNG = np.random.default_rng(1)
X = RNG.normal(size=(WINDOWS, N, D))
X /= np.linalg.norm(X, axis=-1, keepdims=True)
GRAMS = np.einsum("kni,knj->knij", X, X).astype(np.float32)
VECTORS = (0.5 * X).astype(np.float32)
MEAN = {"num_agents": N, "num_arms": 4, "dim": D, "horizon": WINDOWS + 1, "window": 1, "aggregate": "mean"}


@functools.cache
def runner(program, compiled):
    def run(params, grams, vectors):
        draws = Draws(np.uint32(3), "alg")

        def one(state, new):
            t, message = new
            after, released = program.update(params, state, draws.child("update"), t, (), message, jnp.int32(1))
            return after, (after, released)

        plays = jnp.arange(1, len(grams) + 1, dtype=jnp.int32)
        return jax.lax.scan(one, program.init(params, draws.child("init")), (plays, Moments(grams, vectors)))[1]

    return jax.jit(run) if compiled else uncompiled(run)


def served(grams=GRAMS, vectors=VECTORS, compiled=True, **settings):
    """(states, released) after every window, and the algorithm."""
    made = byzantine_ucb(**{**MEAN, **settings})
    params = jax.tree.map(lambda x: np.float32(x) if isinstance(x, float) else np.int32(x), made.params)
    return *jax.tree.map(np.asarray, runner(made.program, compiled)(params, grams, vectors)), made


def test_the_logarithm_of_a_determinant():
    a = RNG.normal(size=(4, 4, 7))
    definite = np.einsum("ikl,jkl->ijl", a, a) + 0.1 * np.eye(4)[:, :, None]
    want, determinant = np.linalg.slogdet(np.moveaxis(definite, -1, 0))[1], uncompiled(log_determinant)
    np.testing.assert_allclose(determinant(np.float32(definite)), want, atol=1e-4)
    assert determinant(-np.eye(3, dtype=np.float32)) < -80


@pytest.mark.parametrize("privacy", [{}, {"privacy": "tree", "epsilon": 1.0}])
def test_a_round_after_every_window_is_the_fixed_schedule(privacy):
    # bits of two programs
    fixed, released, _ = served(**privacy, compiled=False)
    asked, told, made = served(**privacy, compiled=False, schedule="determinant", threshold=1e-9)
    for name in ("theta", "inverse", "gram", "vector", "episode"):
        np.testing.assert_array_equal(getattr(asked, name), getattr(fixed, name), name)
    jax.tree.map(np.testing.assert_array_equal, told, released)
    assert asked.unsent.rounds[-1] == WINDOWS
    assert made.program is not byzantine_ucb(**MEAN).program


@pytest.mark.parametrize("window", [1, 2])
def test_rounds_come_when_the_determinant_has_grown(window):
    threshold = 2.0
    given = {"schedule": "determinant", "threshold": threshold, "window": window, "horizon": window * WINDOWS + 1}
    kept, _, made = served(**given, compiled=window == 1)
    c = made.params.constants

    def level(k):
        return c.ridge_scale * (c.shift + max(c.window, c.growth * math.sqrt(k)))

    last, matrix, rounds, theta = 0, level(1) * np.eye(D), 0, np.zeros(D)
    for k in range(1, WINDOWS + 1):
        own = GRAMS[last:k].astype(np.float64).sum(0) / N
        growth = max(np.linalg.slogdet(matrix + u)[1] for u in own) - np.linalg.slogdet(matrix)[1]
        if growth * window * (k - last) > threshold:
            matrix = GRAMS[:k].astype(np.float64).mean(1).sum(0) + level(k + 1) * np.eye(D)
            theta = np.linalg.solve(matrix, VECTORS[:k].astype(np.float64).mean(1).sum(0))
            last, rounds = k, rounds + 1
        assert kept.unsent.rounds[k - 1] == rounds, k
        np.testing.assert_allclose(kept.theta[k - 1], theta, atol=1e-4)
    assert 3 <= rounds <= WINDOWS // 3
    np.testing.assert_array_equal(made.program.diagnose(made.params, jax.tree.map(lambda x: x[-1], kept))["bytes_sent"],
                                  4 * 9 * rounds)  # fmt: skip


def test_windows_without_a_round_show_and_change_nothing():
    kept, shown, _ = served(schedule="determinant", threshold=2.0, privacy="tree", node_scale=0.0, compiled=False)
    silent = np.diff(kept.unsent.rounds, prepend=0) == 0
    assert silent.any() and not silent.all()
    for part in shown:
        np.testing.assert_array_equal(np.isnan(part).reshape(len(part), -1).all(1), silent)
    never = {"schedule": "determinant", "threshold": 1e9, "aggregate": "geometric_median"}
    for memory in served(GRAMS[:5], VECTORS[:5], compiled=False, **never)[0].memory:
        assert not memory.value.any() and (memory.weights == 1 / N).all()  # as before the first median


def test_the_time_of_a_round_tells_one_agent_what_another_saw():
    """The first finding of Zhou and Chowdhury (2024): the second agent's data are the same in both runs."""
    private = {"privacy": "tree", "epsilon": 0.01, "schedule": "determinant", "threshold": 0.002}
    grams = GRAMS.copy()
    grams[:, 1] = 0  # the second agent never asks
    changed = grams.copy()
    changed[:8, 0] = 0  # and the first had no features in its first eight plays
    first, second = (served(seen, **private)[0].unsent.rounds for seen in (grams, changed))
    assert np.argmax(first > 0) < np.argmax(second > 0)
    made = byzantine_ucb(**MEAN, **private)
    assert made.guarantee.model == "none" and made.guarantee.spend(made.params) == (math.inf, 0.0)
    with pytest.raises(ValueError, match="has no guarantee"):
        jb.audit(made, runs=2000)


def test_the_repaired_ridge_covers_the_noise_of_a_mean():
    agents, dim, nodes, failure, draws = 8, 4, 3, 0.3, 4000
    z = RNG.normal(size=(draws, agents, nodes, dim, dim)).sum(2)
    mean = ((z + np.swapaxes(z, -1, -2)) / math.sqrt(2)).mean(1)
    norms = np.abs(np.linalg.eigvalsh(mean)).max(-1)
    repaired, claimed = (noise_ridge(kind, agents, dim, 1.0, nodes, failure) for kind in ("repaired", "claimed"))
    assert np.mean(norms > repaired) <= 2 * failure / 100
    assert np.mean(norms > claimed) > 0.9
    assert repaired == pytest.approx(math.sqrt(agents) * claimed)
    assert repaired == pytest.approx(math.sqrt(nodes / agents) * (2 * 2 + 2 * math.sqrt(math.log(1 / failure))))


@pytest.mark.parametrize("privacy", ["tree", "increment", "counter"])
def test_accounting_is_added_to_the_ridge(privacy):
    settings = MEAN | {"privacy": privacy, "epsilon": 1.0, "ridge_scale": 0.5}
    plain, claimed, repaired = (byzantine_ucb(**settings, accounting=kind) for kind in (None, "claimed", "repaired"))
    added = [0.5 * (made.params.constants.shift - plain.params.constants.shift) for made in (claimed, repaired)]
    assert added[1] == pytest.approx(math.sqrt(N) * added[0]) and added[0] > 0
    assert claimed.program is plain.program and claimed.guarantee.spend(claimed.params)[0] == pytest.approx(1.0)
    nodes = {"tree": 6, "increment": WINDOWS}.get(privacy)
    if nodes:
        assert added[1] == pytest.approx(noise_ridge("repaired", N, D, plain.params.node_scale, nodes, 0.05))
    if privacy == "counter":  # of sums of 1 to 40 messages, that of 31 has the most nodes of a tree: 5
        plain, made = (byzantine_ucb(**settings, counter="tree", accounting=kind) for kind in (None, "repaired"))
        added = 0.5 * (made.params.constants.shift - plain.params.constants.shift)
        assert added == pytest.approx(noise_ridge("repaired", N, D, plain.params.node_scale, 5, 0.05))


def test_the_last_window_has_no_round_that_is_asked_for():
    given = {"schedule": "determinant", "threshold": 1e-9, "privacy": "tree", "node_scale": 0.0, "horizon": 5}
    kept, shown, _ = served(GRAMS[:5], VECTORS[:5], compiled=False, **given)
    assert kept.unsent.rounds.tolist() == [1, 2, 3, 4, 4]
    for part in shown:
        assert np.isnan(part).reshape(5, -1).all(1).tolist() == [False] * 4 + [True]

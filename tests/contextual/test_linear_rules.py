"""Selection rules over the statistics modules: Thompson sampling's law, exploration, swaps, errors."""

import math
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import on_tape
from dealt import dealt
from numpy_draws import NumpyDraws
from scipy.stats import norm
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms.contextual.selection import GreedyParams, ThompsonParams, greedy, thompson
from jaxbandits.algorithms.contextual.statistics import Estimate
from jaxbandits.numerics.eliminations import cholesky
from jaxbandits.numerics.packed import MAX_UNROLLED_DIM, lower_product, pairs, split_features
from jaxbandits.random import Draws

CONTEXTS = jb.environments.contextual_linear(num_arms=6, dim=3)
THOMPSON = partial(jb.algorithms.linear_thompson, num_arms=10, dim=3, horizon=1000)
GREEDY = partial(jb.algorithms.epsilon_greedy, num_arms=10, dim=3, horizon=1000)


@uncompiled
def factor(matrix):
    """In the layout of its size: transposed [d, d], or the lower triangle by columns."""
    dim = len(matrix)
    return cholesky(matrix if dim > MAX_UNROLLED_DIM else [matrix[i, j] for i, j in pairs(dim)], dim)


def packed(matrix):
    return [np.float32(matrix[i, j]) for i, j in pairs(len(matrix))]


def lower(columns, dim):
    if dim > MAX_UNROLLED_DIM:
        return np.asarray(columns).T
    found = np.zeros((dim, dim))
    for value, (i, j) in zip(columns, pairs(dim), strict=True):
        found[j, i] = value
    return found


def spd(dim, seed=0):
    root = np.random.default_rng(seed).normal(size=(dim, dim + 2))
    return root @ root.T / dim


@pytest.mark.parametrize("dim", [1, 2, 5, 8, 11])
def test_cholesky(dim):
    matrix = spd(dim)
    found = lower(factor(np.float32(matrix)), dim)
    np.testing.assert_allclose(found, np.linalg.cholesky(matrix), rtol=2e-4, atol=2e-5)
    x = np.arange(1.0, dim + 1)
    product = uncompiled(lower_product)(factor(np.float32(matrix)), split_features(np.float32(x)))
    np.testing.assert_allclose(product, found @ x, rtol=1e-5)


@pytest.mark.parametrize("dim", [3, 9])
def test_pivots_below_zero_count_as_zero(dim):
    """diag(4, -1, 9, 1, ...): the second direction is left out, nothing is NaN."""
    diagonal = np.ones(dim)
    diagonal[:3] = 4, -1, 9
    found = lower(factor(np.diag(diagonal).astype(np.float32)), dim)
    wanted = np.sqrt(np.maximum(diagonal, 0))
    np.testing.assert_allclose(found, np.diag(wanted), rtol=1e-6)
    assert np.all(np.isfinite(lower(factor(np.float32(-spd(dim))), dim)))


def test_thompson_draws_from_the_posterior():
    """Two arms (z and 0): the first is played when <z, theta~> > 0,
    so with probability Phi(<z, theta> / (v sqrt(z' P z))).
    """
    inverse, theta, v = spd(3), np.array([0.3, -0.2, 0.1]), 0.7
    t = np.arange(1, 40_001, dtype=np.int32)

    @uncompiled
    def play(inverse, theta, v, t, direction):
        x = [jnp.broadcast_to(jnp.stack([jnp.zeros_like(w), w]), (len(t), 2)) for w in direction]
        return thompson(ThompsonParams(v), Draws(np.uint32(0), "alg/act"), t, Estimate(inverse, theta), x)

    for direction in ([1.0, 0, 0], [0, 1, 0], [0.5, -1, 2]):
        z = np.array(direction)
        played = play(tuple(packed(inverse)), tuple(np.float32(theta)), np.float32(v), t, np.float32(z))
        wanted = norm.cdf(z @ theta / (v * math.sqrt(z @ inverse @ z)))
        assert 0.02 < wanted < 0.98 and played.mean() == pytest.approx(wanted, abs=5 * 0.5 / 200)


def test_thompson_covariance():
    """theta~ itself, through arms e_1, ..., and the product with its factor: covariance v^2 P."""
    inverse, n = spd(4, 1), 50_000
    noise = NumpyDraws(2, "alg/act/posterior", np.float32).normal(np.arange(n), (4,))
    moved = np.stack(uncompiled(lower_product)(factor(np.float32(inverse)), list(noise.T)))
    np.testing.assert_allclose(np.cov(moved), inverse, atol=6 * inverse.max() * math.sqrt(2 / n))


def test_no_posterior_is_greedy():
    t, draws = np.arange(1, 101, dtype=np.int32), Draws(np.uint32(0), "alg/act")
    x = [np.random.default_rng(j).normal(size=(100, 7)).astype(np.float32) for j in range(3)]

    def both(inverse, theta, t, x):
        estimate = Estimate(inverse, theta)
        sampled = thompson(ThompsonParams(0.0), draws, t, estimate, x)
        return sampled, greedy(GreedyParams(0.0), draws, t, estimate, x)

    sampled, best = uncompiled(both)(tuple(packed(spd(3))), tuple(np.float32([0.3, -0.2, 0.1])), t, x)
    np.testing.assert_array_equal(sampled, best)


def test_exploration_has_probability_rate_over_t():
    """The best of 50 arms is arm 7: others come up with probability min(1, 20 / t) 49 / 50, all alike."""
    lanes, times = np.arange(4000, dtype=np.uint32), np.array([1, 10, 20, 40, 100, 2000], np.int32)

    def one(seed, times):
        x, estimate = [jnp.broadcast_to((jnp.arange(50) == 7).astype(jnp.float32), (6, 50))], Estimate((1.0,), (1.0,))
        return greedy(GreedyParams(20.0), Draws(seed, "alg/act"), times, estimate, x)

    arms = uncompiled(jax.vmap(one, (0, None)))(lanes, times)
    wanted = np.minimum(1, 20 / times) * 49 / 50
    np.testing.assert_allclose((arms != 7).mean(0), wanted, atol=5 * 0.5 / math.sqrt(4000))
    counts = np.bincount(arms[:, :3].reshape(-1), minlength=50)
    assert counts.min() > 240 - 80 and counts.max() < 240 + 80


def test_numbers():
    """v = .3 / 2 sqrt(9 3 2 ln 1000), a third of it with the exact preset; rate = .1 10."""
    assert THOMPSON().params.selection.posterior == pytest.approx(0.15 * math.sqrt(54 * math.log(1000)))
    assert THOMPSON(posterior_scale=0.0).params.selection.posterior == 0.0
    made = THOMPSON(posterior_scale=0.6).params.selection
    assert made.posterior == pytest.approx(0.3 * math.sqrt(54 * math.log(1000)))
    exact = THOMPSON(statistics="jdp", epsilon=1.0).params.selection
    assert exact.posterior == pytest.approx(0.05 * math.sqrt(54 * math.log(1000)))
    assert GREEDY().params.selection.rate == 1.0 and GREEDY(exploration=2.0).params.selection.rate == 20.0


@pytest.mark.parametrize("factory", [THOMPSON, GREEDY])
def test_statistics_are_those_of_the_comparators(factory):
    """Same noise, ridge and guarantee as the optimistic algorithm of that name; without noise those of linucb."""
    comparators = {
        "ldp": jb.algorithms.ldp_linucb, "jdp": jb.algorithms.jdp_linucb, "shuffle": jb.algorithms.shuffle_linucb,
    }  # fmt: skip
    for name, comparator in comparators.items():
        for preset in (None, "exact", "reference", "theory"):
            made = factory(statistics=name, epsilon=2.0, preset=preset)
            other = comparator(num_arms=10, dim=3, horizon=1000, epsilon=2.0, preset=preset)
            chex.assert_trees_all_equal(made.params.statistics, other.params.statistics)
            assert made.schedule == other.schedule and made.guarantee.model == other.guarantee.model
            assert made.guarantee.spend(made.params) == other.guarantee.spend(other.params)
    assert factory(statistics="shuffle", epsilon=2.0, protocol="vector").params.statistics.code.trials > 0
    with pytest.raises(ValueError, match="preset = 'exact'"):  # of what has no noise
        factory(preset="exact")
    assert factory().guarantee.model == "none" and factory().params.statistics.ridge == 1e-4
    assert factory(preset="theory").params.statistics.ridge == 1.0  # as of linucb
    assert len({factory(statistics=s).program for s in ("none", "ldp", "jdp", "shuffle")}) == 4
    assert factory(statistics="ldp", epsilon=1.0).program is factory(statistics="ldp", epsilon=3.0).program


@pytest.mark.parametrize("factory", [THOMPSON, GREEDY])
def test_rewards_that_are_not_finite_count_as_0(factory):
    rng = np.random.default_rng(1)
    x, rewards = rng.normal(size=(20, 10, 3)), rng.random((20, 10))
    rewards[3:6] = np.array([np.nan, np.inf, -np.inf])[:, None]
    found, wanted = (on_tape(factory(horizon=20), x, r) for r in (rewards, np.where(np.isfinite(rewards), rewards, 0)))
    np.testing.assert_array_equal(found[0], wanted[0])
    assert all(np.isfinite(part).all() for part in jax.tree.leaves(found[2]))


def test_short_horizons_do_not_mind_the_window_of_a_shuffler():
    assert THOMPSON(horizon=5).schedule[0].slots == 1
    assert THOMPSON(horizon=5, statistics="shuffle", epsilon=1.0).schedule[0].slots == 5


@pytest.mark.parametrize(
    ("rule", "settings"),
    dealt(
        [
            ("linear_thompson", {}),
            ("epsilon_greedy", {}),
            ("linear_thompson", {"statistics": "shuffle", "epsilon": 50.0, "window": 8}),
            ("epsilon_greedy", {"statistics": "jdp", "epsilon": 50.0}),
        ],
        8,
    ),
)
def test_they_learn(rule, settings):
    """Uniform play regrets 0.69 a play on these contexts at first and for ever; these regret far less by the end."""
    factory = partial(getattr(jb.algorithms, rule), **settings)
    ds = jb.sweep(
        {"rule": factory, "uniform": jb.algorithms.uniform}, CONTEXTS, horizon=1500, seeds=8, checkpoints=[1000, 1500],
        progress=False,
    )  # fmt: skip
    late = (ds.regret.sel(t=1500) - ds.regret.sel(t=1000)).mean("seed").values
    assert late[0] < 0.5 * late[1]

"""Arms with heavy tails: laws against SciPy, exact moments against numerical integration, rewards free of windows."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from settings import FULLY_OPTIMIZED
from uncompiled import uncompiled

from jaxbandits import environments as e
from jaxbandits.environments import moments
from jaxbandits.random import Draws
from jaxbandits.sweeps.compilation.compiled import WIDE_VECTORS

N = 40_000
MEANS = np.array([0.9, 0.5, 2.0])
# name: (environment, law of an arm by its mean, nearby laws that must be told apart)
LAWS = {
    "bernoulli": (e.bernoulli_arms(means=[0.9, 0.5, 0.2]), None, []),
    "gaussian": (e.gaussian_arms(means=MEANS, scale=0.7), lambda m: stats.norm(m, 0.7),
        [lambda m: stats.norm(m, 0.75)]),
    "student": (
        e.student_arms(means=MEANS, scale=0.6),
        lambda m: stats.t(3, m, 0.6),
        [lambda m: stats.t(2, m, 0.6), lambda m: stats.t(3, m, 0.63), lambda m: stats.norm(m, 0.6 * 3**0.5)],
    ),
    "student, 1.5 degrees": (
        e.student_arms(means=MEANS, df=1.5), lambda m: stats.t(1.5, m),
        [lambda m: stats.t(1.3, m), lambda m: stats.t(1.8, m)]
    ),
    "student, many degrees": (
        e.student_arms(means=MEANS, df=1e6), stats.norm, [lambda m: stats.t(5, m), lambda m: stats.norm(m, 1.06)]
    ),
    "pareto": (
        e.pareto_arms(means=MEANS),
        lambda m: stats.pareto(3.5, scale=m * 2.5 / 3.5),
        [lambda m: stats.pareto(3.3, scale=m * 2.5 / 3.5), lambda m: stats.pareto(3.5, scale=m * 2.4 / 3.5)],
    ),
    "lognormal": (
        e.lognormal_arms(means=MEANS, sigma=0.8),
        lambda m: stats.lognorm(0.8, scale=m * np.exp(-0.32)),
        [lambda m: stats.lognorm(0.8, scale=m), lambda m: stats.lognorm(0.76, scale=m * np.exp(-0.32))],
    ),
}  # fmt: skip


@functools.cache
def player(world, dtype):
    @uncompiled
    def rewards(params, draws, t, action):
        return world.reward(params, (), draws, t, (), action)

    return rewards


def rewards(environment, action, t=None, seed=11, dtype=jnp.float32):
    with jax.enable_x64(dtype == jnp.float64):
        t = np.asarray(np.arange(1, len(action) + 1) if t is None else t, np.int32)
        params = jax.tree.map(lambda x: np.asarray(x, dtype), environment.params)
        draws = Draws(np.uint32(seed), "environment/reward", dtype)
        return player(environment.world, dtype)(params, draws, t, np.asarray(action, np.int32))


@pytest.mark.parametrize("dtype", [jnp.float32, *dealt([jnp.float64], 3)])
@pytest.mark.parametrize("name", [name for name, (_, law, _) in LAWS.items() if law])
def test_rewards_follow_their_law_and_no_other(name, dtype):
    environment, law, others = LAWS[name]
    for arm, mean in enumerate(environment.facts["means"]):
        x = rewards(environment, np.full(N, arm), dtype=dtype).astype(float)
        assert np.all(np.isfinite(x)) and stats.kstest(x, law(mean).cdf).pvalue > 1e-3
        for other in others:
            assert stats.kstest(x, other(mean).cdf).pvalue < 1e-3
        if name != "student, 1.5 degrees":  # a sample mean needs a variance
            assert abs(x.mean() - mean) < 4 * x.std() / N**0.5
        assert abs(stats.spearmanr(x[1:], x[:-1]).statistic) < 4 / N**0.5


@pytest.mark.parametrize("name", LAWS)
def test_rewards_are_the_same_bits_in_windows_of_any_length_and_whatever_else_is_played(name):
    environment, lanes, n = LAWS[name][0], 64, 240
    action = np.random.default_rng(0).integers(3, size=n)
    seeds = np.arange(lanes, dtype=np.uint32)
    params = jax.tree.map(lambda x: np.asarray(x, np.float32), environment.params)

    @partial(jax.jit, compiler_options=WIDE_VECTORS | FULLY_OPTIMIZED)  # as the engine compiles
    def many(params, t, action):
        def lane(seed):
            return environment.world.reward(params, (), Draws(seed, "environment/reward"), t, (), action)

        return jax.vmap(lane)(seeds)

    def played(action, first, last):
        return np.asarray(many(params, np.arange(first + 1, last + 1, dtype=np.int32), np.int32(action[first:last])))

    whole = played(action, 0, n)
    for p in (1, 5):
        assert_array_equal(np.concatenate([played(action, s, s + p) for s in range(0, n, p)], axis=1), whole)
    other = np.roll(action, 1)
    assert_array_equal(played(other, 0, n)[:, other == action], whole[:, other == action])


def test_a_play_has_one_draw_for_all_arms_of_independent_words():
    one, two = (rewards(LAWS["pareto"][0], np.full(100, arm)) for arm in (0, 1))
    assert_allclose(one / two, 0.9 / 0.5, rtol=1e-6)
    one, two = (rewards(LAWS["student"][0], np.full(100, arm)) for arm in (0, 2))
    assert_allclose(two - one, 1.1, rtol=1e-4)
    # Size and sign, size and angle: a shared word would tie them together.
    x = rewards(LAWS["student"][0], np.zeros(N)) - 0.9
    assert abs(np.mean(np.sign(x))) < 4 / N**0.5
    assert abs(stats.spearmanr(np.abs(x), np.sign(x)).statistic) < 4 / N**0.5


def integral(law, center, order):
    """E|X - center|^order = integral of order y^(order - 1) P(|X - center| > y), y = exp(z)."""

    def tail(z):
        y = np.exp(z)
        return order * y**order * (law.sf(center + y) + law.cdf(center - y))

    z = np.linspace(-40, 40, 40_001)  # the integrand and its slopes vanish at both ends: the trapezoid rule suffices
    return np.trapezoid(tail(z), z)


@pytest.mark.parametrize("order", [1.0, 1.7, 2.0, 2.25])
@pytest.mark.parametrize("name", ["gaussian", "student", "pareto", "lognormal"])
def test_moments_equal_their_integrals(name, order):
    environment, law, others = LAWS[name]
    for central in (False, True):
        got = environment.facts["moment"](order, central)
        want = [integral(law(m), m * central, order) for m in MEANS]
        assert_allclose(got, want, rtol=2e-5)
        assert np.abs(got / [integral(others[0](m), m * central, order) for m in MEANS] - 1).max() > 1e-2


def test_moments_in_closed_form():
    def moment(name, order, central=False):
        return LAWS[name][0].facts["moment"](order, central)

    p = np.array([0.9, 0.5, 0.2])
    assert_allclose(moment("bernoulli", 3.3), p)
    assert_allclose(moment("bernoulli", 2, True), p * (1 - p))
    assert_allclose(moment("gaussian", 2), MEANS**2 + 0.49)
    assert_allclose(moment("gaussian", 4, True), 3 * 0.7**4)
    assert_allclose(moment("student", 2), MEANS**2 + 3 * 0.36)
    assert_allclose(moment("student", 2, True), 3 * 0.36)
    assert_allclose(moment("pareto", 2), 3.5 * (MEANS / 1.4) ** 2 / 1.5)
    assert_allclose(moment("pareto", 2, True), (MEANS / 1.4) ** 2 * 3.5 / (2.5**2 * 1.5))
    assert_allclose(moment("lognormal", 3), np.exp(3 * (np.log(MEANS) - 0.32) + 4.5 * 0.64))
    assert_allclose(moment("lognormal", 2, True), MEANS**2 * np.expm1(0.64))
    # real orders: the raw quadrature at mean 0 is the central closed form, up to where the moment ends
    for order in (0.5, 2.5, 2.9, 2.999):
        law = (np.zeros(1), 0.6, 3.0, order)
        assert_allclose(moments.student(*law), moments.student(*law, True), rtol=1e-9)
    assert_allclose(moments.student(np.array([1e3, 1e5]), 0.6, 3.0, 2), np.array([1e6, 1e10]) + 1.08, rtol=1e-9)
    assert np.isinf(moment("student", 3)).all() and np.isinf(moment("pareto", 3.5, True)).all()
    assert (
        moment("pareto", 2)[0] < 1 < LAWS["pareto"][0].remake(means=[0.917, 0.1]).facts["moment"](2)[0]
    )  # mean <= 0.916
    with pytest.raises(ValueError, match="order = 0"):
        moment("pareto", 0)


def test_no_spread_and_parameters_are_data():
    for made, want in ((e.gaussian_arms(means=[-2.0, 1.0], scale=0.0), [4, 1]),
                       (e.student_arms(means=[-2.0, 1.0], scale=0.0), [4, 1]),
                       (e.lognormal_arms(means=[2.0, 1.0], sigma=0.0), [4, 1])):  # fmt: skip
        assert_allclose(made.facts["moment"](2), want)
        assert_array_equal(made.facts["moment"](2, central=True), 0)
        assert_allclose(rewards(made, np.arange(8) % 2), np.tile(made.facts["means"], 4), rtol=1e-6)
    assert e.pareto_arms(means=[0.9, 0.5]).world is e.pareto_arms(means=[0.2, 0.5], shape=2.2).world
    assert LAWS["student"][0].remake(df=5.0).params.scale[1] == 5.0

"""moss, kl_ucb, thompson and ldp_ucb: paths by literal loops, posteriors and reports by their laws."""

import functools
import importlib
import math

import jax
import numpy as np
import pytest
from against_reference import on_tape
from dealt import dealt
from plays import watched
from scipy import stats
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import algorithms as a
from jaxbandits.adversaries import huber
from jaxbandits.algorithms.stochastic.arm_means import Means
from jaxbandits.environments import bernoulli_arms, gaussian_arms
from jaxbandits.random import Draws

STILL = gaussian_arms(means=[0.31, 0.62, 0.57], scale=0.0)  # the same reward at every pull
CERTAIN = gaussian_arms(means=[0.0, 1.0, 0.0], scale=0.0)
HORIZON = 300


def actions(algorithm, environment):
    return watched(algorithm, environment, dtype="float32").history.action


def literal(index, means, horizon=HORIZON):
    """Play the arm of largest index(mean, N, t), each unplayed arm first, on arms that pay their means."""
    pulls, path = np.zeros(len(means), int), []
    for t in range(1, horizon + 1):
        values = [index(m, n, t) if n else math.inf for m, n in zip(means, pulls, strict=True)]
        arm = int(np.argmax(values))
        pulls[arm] += 1
        path.append(arm)
    return np.array(path)


def divergence(p, q):
    def term(x, y):
        return 0.0 if x == 0 else math.inf if y == 0 else x * math.log(x / y)

    return term(p, q) + term(1 - p, 1 - q)


def kl_index(level, p):
    low, high = p, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(p, middle) <= level else (low, middle)
    return low


def test_moss_by_a_literal_loop():
    means = STILL.facts["means"]
    for scale in (1.0, 0.4):
        want = literal(lambda m, n, t, s=scale: m + s * math.sqrt(max(math.log(HORIZON / (3 * n)), 0) / n), means)
        got = actions(a.moss(num_arms=3, horizon=HORIZON, bonus_scale=scale), STILL)
        np.testing.assert_array_equal(got, want)
    ucb1 = literal(lambda m, n, t: m + math.sqrt(2 * math.log(t) / n), means)
    assert not np.array_equal(want, ucb1)


def test_kl_ucb_by_a_literal_loop():
    want = literal(lambda m, n, t: kl_index(math.log(t) / n, m), STILL.facts["means"])
    assert np.mean(actions(a.kl_ucb(num_arms=3, horizon=HORIZON), STILL) == want) == 1.0
    pulls = np.bincount(actions(a.kl_ucb(num_arms=3, horizon=HORIZON), CERTAIN), minlength=3)
    assert pulls[1] == 300 - 2  # d(0, 1) is infinite: an arm that always fails is never better than one that never does


def test_the_index_of_kl_ucb_has_float32_precision():
    room_above = importlib.import_module("jaxbandits.algorithms.stochastic.bernoulli_index").room_above
    rng = np.random.default_rng(0)
    small = 10 ** rng.uniform(-7, 0, (2, 200))
    mean = np.concatenate([rng.uniform(size=600), small[0], 1 - small[1], [0, 0, 1]])
    mean = mean.astype(np.float32)
    level = np.concatenate([10 ** rng.uniform(-7, 1.3, 1000), [0, 2, 2]]).astype(np.float32)
    got = 1 - uncompiled(room_above)(mean, level).astype(float)
    want = np.array([kl_index(float(x), float(p)) for x, p in zip(level, mean, strict=True)])
    assert np.abs(got - want).max() < 4e-7
    assert np.abs(got - mean - level).max() > 0.1  # a bound that is not the root


@pytest.mark.parametrize("shape", dealt([1.0, 1.5, 4.0, 60.0, 1e4, 1e6], 3))
def test_gammas_are_exact_in_law(shape):
    gammas = importlib.import_module("jaxbandits.algorithms.stochastic.thompson").gammas
    n = 20_000

    @uncompiled
    @jax.vmap
    def draw(seed):
        return gammas(Draws(seed, "alg/act"), np.int32(5), jax.numpy.full(4, shape, np.float32))

    x = draw(np.arange(n // 4, dtype=np.uint32)).astype(float)
    assert stats.kstest(x.ravel(), stats.gamma(shape).cdf).pvalue > 1e-3
    assert stats.kstest(x.ravel(), stats.gamma(shape + 0.05 * math.sqrt(shape)).cdf).pvalue < 1e-3
    assert np.abs(np.corrcoef(x.T) - np.eye(4)).max() < 4.5 / math.sqrt(n // 4)
    np.testing.assert_array_equal(draw(np.arange(8, dtype=np.uint32)), x[:8].astype(np.float32))


def shares(algorithm, state, n=20_000):
    """How often each arm is played from one state, over plays."""

    params, draws = jax.tree.map(np.float32, algorithm.params), Draws(np.uint32(9), "alg/act")
    play = jax.vmap(lambda state, t: algorithm.program.act(params, state, draws, t[None], ())[0][0], (None, 0))
    return np.bincount(uncompiled(play)(state, np.arange(1, n + 1, dtype=np.int32)), minlength=2) / n


def test_thompson_plays_an_arm_as_often_as_its_posterior_says():
    counts = np.array([[3, 1], [5, 4]])  # failures, successes
    grid = (np.arange(20_000) + 0.5) / 20_000
    one = stats.beta(2, 4)
    want = np.mean(one.sf(stats.beta(5, 6).ppf(grid)))
    got = shares(a.thompson(num_arms=2, horizon=10), counts.astype(np.int32))[0]
    assert abs(got - want) < 4 * 0.5 / math.sqrt(20_000)
    assert abs(got - np.mean(stats.beta(1, 3).sf(stats.beta(4, 5).ppf(grid)))) > 0.02  # without the uniform prior

    mean, root = np.array([[0.5, 0.6], [1 / math.sqrt(4), 1 / math.sqrt(9)]], np.float32)
    state = Means(tuple(mean), tuple(root), (np.int32(4), np.int32(9)))
    for scale in (0.3, 1.0):
        want = stats.norm.sf(0.1 / (scale * math.sqrt(1 / 4 + 1 / 9)))
        got = shares(a.thompson(num_arms=2, horizon=10, posterior="gaussian", noise_scale=scale), state)[0]
        assert abs(got - want) < 4 * 0.5 / math.sqrt(20_000)


def test_thompson_updates():
    run = watched(a.thompson(num_arms=3, horizon=HORIZON), bernoulli_arms(means=[0.3, 0.5, 0.7]), dtype="float32")
    for arm in range(3):
        won = int(run.history.reward[run.history.action == arm].sum())
        np.testing.assert_array_equal(run.state[arm], [np.sum(run.history.action == arm) - won, won])
    # rewards inside (0, 1) are rounded up as often as they say; others are clipped, NaN is 0
    encode, n = a.thompson(num_arms=2, horizon=10).program.encode, 4000

    @uncompiled
    @functools.partial(jax.vmap, in_axes=(0, None))
    def sent(t, reward):
        return encode((), None, Draws(np.uint32(0), "alg/encode"), t[None], (), None, reward[None], None)

    for value, mean in ((0.3, 0.3), (np.inf, 1.0), (7.0, 1.0), (-np.inf, 0.0), (-2.0, 0.0), (np.nan, 0.0)):
        won = sent(np.arange(1, n + 1, dtype=np.int32), np.float32(value))
        assert set(won.tolist()) <= {0, 1} and abs(won.sum() - n * mean) <= 4 * math.sqrt(n * mean * (1 - mean))
    rewards = np.tile([0.31, 0.62, 0.57], (20, 1))
    leader = a.thompson(num_arms=3, horizon=20, posterior="gaussian", noise_scale=0.0)
    assert on_tape(leader, np.zeros((20, 1)), rewards)[0].tolist() == [0, 1, 2] + [1] * 17


def ldp(mechanism, epsilon=1.0, **changes):
    made = a.ldp_ucb(num_arms=3, horizon=HORIZON, epsilon=epsilon, mechanism=mechanism)
    return made._replace(params=made.params._replace(**changes))


def test_ldp_ucb_by_a_literal_loop_without_noise():
    def laplace(m, n, t):
        return m + math.sqrt(8 * (1 / 4 + 2 / 0.7**2) * math.log(t) / n) if n >= 4 * math.log(t) else math.inf

    def answered(m, n, t):
        return m + (math.exp(0.7) + 1) / (math.exp(0.7) - 1) * math.sqrt(2 * math.log(t) / n)

    got = actions(ldp("laplace", 0.7, mechanism_scale=0.0), STILL)
    np.testing.assert_array_equal(got, literal(laplace, STILL.facts["means"]))
    got = actions(ldp("randomized_response", 0.7, mechanism_scale=0.0), CERTAIN)
    np.testing.assert_array_equal(got, literal(answered, CERTAIN.facts["means"]))
    got = actions(ldp("randomized_response", math.inf), CERTAIN)
    np.testing.assert_array_equal(got, actions(a.ucb1(num_arms=3, horizon=HORIZON), CERTAIN))


def reports(algorithm, reward, n=20_000):
    draws, params = Draws(np.uint32(2), "alg/encode"), jax.tree.map(np.float32, algorithm.params)
    encode, reward = algorithm.program.encode, np.full(1, reward, np.float32)
    send = uncompiled(jax.vmap(lambda t: encode(params, (), draws, t[None], (), None, jax.numpy.asarray(reward), None)))
    return send(np.arange(1, n + 1, dtype=np.int32)).astype(float)


def test_reports_have_the_law_that_is_claimed():
    for reward, mean in ((0.3, 0.3), (7.0, 1.0), (-1.0, 0.0), (math.nan, 0.0), (math.inf, 1.0), (-math.inf, 0.0)):
        x = reports(ldp("laplace", 0.5), reward)
        assert stats.kstest(x, stats.laplace(mean, 2).cdf).pvalue > 1e-3
        assert stats.kstest(x, stats.laplace(mean, 2.2).cdf).pvalue < 1e-3
        x = reports(ldp("randomized_response", 0.5), reward)
        flip = 1 / (1 + math.exp(0.5))
        np.testing.assert_allclose(np.unique(x), [-flip / (1 - 2 * flip), (1 - flip) / (1 - 2 * flip)], rtol=1e-5)
        assert abs(np.mean(x > 0) - (flip + (1 - 2 * flip) * mean)) < 4 * 0.5 / math.sqrt(len(x))
        assert abs(x.mean() - mean) < 4 * x.std() / math.sqrt(len(x))
    # the odds of a report under the two extreme rewards are e^epsilon, and no more
    for epsilon in (0.5, 2.0):
        one, zero = (np.mean(reports(ldp("randomized_response", epsilon), r) > 0) for r in (1.0, 0.0))
        assert abs(math.log(one / zero) - epsilon) < 0.1
    double = ldp("laplace", 0.5, mechanism_scale=2.0)
    assert double.guarantee.spend(double.params) == (0.25, 0.0)


def test_the_radius_of_the_laplace_reports():
    """Chernoff's bound with the exact transform: at most t^-3 from N = 4 ln t on, not the t^-4 of a Gaussian."""
    weakest = math.inf
    for scale in (0.1, 0.5, 1.0, 10.0):
        for share in (0.25, 0.1, 0.01):  # ln t / N
            radius = ldp("laplace", 1 / scale).params.radius_scale * math.sqrt(share)
            s = np.linspace(0, 1 / scale, 20_001)[:-1]
            exponent = np.max(s * radius - s * s / 8 + np.log1p(-((scale * s) ** 2))) / share
            weakest = min(weakest, exponent)
    assert 3.0 < weakest < 3.1


@pytest.mark.parametrize("mechanism", ["laplace", "randomized_response"])
def test_attacked_reports_never_reach_the_state_as_nan(mechanism):
    for value in ("inf", "-inf", "nan"):
        attack = huber(corruption=0.5, value=value)
        run = watched(ldp(mechanism), STILL, message_adversary=attack)
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(run.state)) and len(run.history.action) == HORIZON
        assert not np.all(np.isfinite(run.history.message))


LEARN = {
    "thompson": a.thompson, "moss": a.moss, "kl_ucb": a.kl_ucb,
    "ldp": lambda *, num_arms, horizon: a.ldp_ucb(num_arms=num_arms, horizon=horizon, epsilon=8.0),
}  # fmt: skip


@pytest.mark.parametrize("name", dealt(LEARN, 4, always=["thompson"]))
def test_they_learn(name):
    """Uniform play loses 0.9 - 1.6 / 3 a play."""
    arms = bernoulli_arms(means=[0.2, 0.5, 0.9])
    ds = jb.sweep({name: LEARN[name]}, arms, horizon=1000, seeds=64, checkpoints=1, progress=False)
    assert ds.regret.values.mean() < (0.6 if name == "ldp" else 0.15) * 1000 * (0.9 - 1.6 / 3)


def test_successive_elimination_goes_on_with_one_arm():
    algorithm = a.successive_elimination(num_arms=4, horizon=3000, noise_scale=0.0)
    run = watched(algorithm, bernoulli_arms(means=[0.0, 1.0, 0.0, 0.0]), 0, dtype="float32")
    assert np.bincount(run.history.action).tolist() == [1, 2997, 1, 1] and run.diagnostics["active_arms"] == 1

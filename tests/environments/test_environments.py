"""Environments: laws, counterfactual rewards, baselines against brute force, accuracy at large t."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from numpy.testing import assert_allclose, assert_array_equal
from planting import errors, planted
from scipy import stats
from settings import FULLY_OPTIMIZED
from uncompiled import uncompiled

from jaxbandits import simulator, spans
from jaxbandits.algorithms.stochastic.ucb1 import ucb1
from jaxbandits.environments import contextual
from jaxbandits.environments import losses as loss_kinds
from jaxbandits.environments.contextual import contextual_linear
from jaxbandits.environments.experts import rotating_experts
from jaxbandits.environments.federated import federated_linear
from jaxbandits.environments.linear import linear_arms
from jaxbandits.environments.losses import bernoulli_losses, sinusoid_losses, switching_losses
from jaxbandits.random import Draws

FULLY_OPTIMIZED_JIT = functools.partial(jax.jit, compiler_options=FULLY_OPTIMIZED)
ROOT = Draws(np.uint32(3)).child("environment")


def cast(params, dtype=np.float32):
    return jax.tree.map(lambda x: np.asarray(x, np.int32 if np.asarray(x).dtype.kind in "iu" else dtype), params)


@functools.cache
def player(world, evaluated):
    """A window of plays."""

    @evaluated
    def run(params, root, t, action):
        state = world.init(params, root.child("instance"))
        context, state = world.observe(params, state, root.child("context"), t)
        reward = world.reward(params, state, root.child("reward"), t, context, action)
        return context, reward, world.score(params, state, t, context, action), world.truth(params, state, t, context)

    return run


def play(environment, t, action, root=ROOT, dtype=np.float32, evaluated=uncompiled):
    """context, reward, score, truth of a window with the given plays and actions."""
    run = player(environment.world, evaluated)
    return run(cast(environment.params, dtype), root, np.asarray(t, np.int32), np.asarray(action, np.int32))


TABLE = np.random.default_rng(0).uniform(size=(700, 4))
ADVICE = np.random.default_rng(1).dirichlet(np.ones(3), size=5)
MOVING = np.random.default_rng(2).dirichlet(np.ones(3), size=(300, 5))
INNER = bernoulli_losses(means=[0.2, 0.5, 0.7])
LOSSES = {
    "fixed_gap": loss_kinds.fixed_gap_losses(num_arms=3, best=1, base=0.6, gap=0.2),
    "bernoulli": INNER,
    "table": loss_kinds.loss_table(losses=TABLE),
    "switching": switching_losses(num_arms=3, cuts=[0, 40, 111], arms=[2, 0, 1], base=0.7, gap=0.5),
    "many_cuts": switching_losses(num_arms=3, cuts=np.arange(0, 400, 10), arms=np.arange(40) % 3),
    "sinusoid": sinusoid_losses(num_arms=5, period=37),
    "sinusoid_fraction": sinusoid_losses(num_arms=5, period=37.37),
    "sinusoid_one": sinusoid_losses(num_arms=3, period=1),
    "lemma51": loss_kinds.lemma51_losses(change=50),
    "lemma51_primed": loss_kinds.lemma51_losses(change=50, primed=True),
}
WORLDS = {
    **LOSSES,
    "linear": linear_arms(actions=np.eye(3), theta=[0.1, 0.5, -0.3]),
    "rademacher": linear_arms(actions=np.eye(3), theta=[0.1, 0.5, -0.3], noise="rademacher"),
    "linear_student": linear_arms(actions=np.eye(3), theta=[0.1, 0.5, -0.3], noise="student", noise_scale=0.3),
    "linear_pareto": linear_arms(actions=np.eye(3), theta=[0.1, 0.5, -0.3], noise="pareto", shape=1.5),
    "linear_lognormal": linear_arms(actions=np.eye(3), theta=[0.1, 0.5, -0.3], noise="lognormal", sigma=2.0),
    "contextual": contextual_linear(num_arms=6, dim=4),
    "contextual_student": contextual_linear(num_arms=6, dim=4, reward="student", df=1.5),
    "contextual_pareto": contextual_linear(num_arms=6, dim=4, reward="pareto", spread=0.3),
    "contextual_lognormal": contextual_linear(num_arms=6, dim=4, contexts="fixed", reward="lognormal"),
    "contextual_spread": contextual_linear(num_arms=6, dim=4, spread=0.3),
    "contextual_gaussian": contextual_linear(num_arms=6, dim=4, features="gaussian"),
    "contextual_fixed": contextual_linear(num_arms=6, dim=4, contexts="fixed", features="reference", reward="gaussian"),
    "federated": federated_linear(num_agents=3, num_arms=4, dim=3),
    "experts": rotating_experts(losses=INNER, num_experts=5),
    "experts_fixed": rotating_experts(losses=INNER, advice=ADVICE),
    "experts_table": rotating_experts(losses=INNER, advice=MOVING),
}


def actions_for(environment, n, seed=0):
    shape = (n, environment.facts["num_agents"]) if "num_agents" in environment.facts else (n,)
    return np.random.default_rng(seed).integers(environment.facts["num_arms"], size=shape)


@pytest.mark.parametrize("name", WORLDS)
def test_a_fixed_policy_sees_the_same_rewards_in_windows_of_any_length(name):
    same_in_windows_of_any_length(WORLDS[name], play)


@pytest.mark.parametrize("name", dealt(WORLDS, 6, always=["sinusoid_fraction", "linear_student", "contextual_pareto"]))
def test_compiled_windows_of_any_length_pay_the_same_bits(name):
    same_in_windows_of_any_length(WORLDS[name], functools.partial(play, evaluated=FULLY_OPTIMIZED_JIT))


def same_in_windows_of_any_length(environment, play):
    action = actions_for(environment, 24)
    _, whole, _, _ = play(environment, np.arange(1, 25), action)
    for p in (1, 3):
        parts = [play(environment, np.arange(s + 1, s + p + 1), action[s : s + p])[1] for s in range(0, 24, p)]
        assert_array_equal(np.concatenate(parts), whole)
    other = (action + 1) % environment.facts["num_arms"]
    mixed = np.where(np.arange(24).reshape(-1, *[1] * (action.ndim - 1)) < 12, action, other)
    assert_array_equal(play(environment, np.arange(1, 25), mixed)[1][:12], whole[:12])


@pytest.mark.parametrize("name", WORLDS)
def test_truth_and_regret_agree_in_float64(name):
    environment = WORLDS[name]
    with jax.enable_x64(True):
        action, root = actions_for(environment, 24), Draws(np.uint32(3), "environment", jnp.float64)
        _, _, score, truth = play(environment, np.arange(1, 25), action, root, np.float64)
    means = np.broadcast_to(truth.means, (*action.shape, environment.facts["num_arms"]))
    played = np.take_along_axis(means, action[..., None], -1)[..., 0]
    if score.regret is None:
        assert_allclose(environment.facts["means"][action], played, atol=1e-12)
    elif environment.world.baseline is None:
        assert_allclose(score.regret, means.max(-1) - played, atol=1e-12)
    else:
        assert_allclose(score.regret, 1 - played, atol=1e-9)


def mean_losses(name, t):
    """The formulas of docs/formulas/private_adversarial.md#loss-sequences, one play and arm at a time: [n, K]."""
    if name == "table":
        return TABLE[t - 1]
    if name == "switching":
        return 0.7 - 0.5 * (np.where(t <= 40, 2, np.where(t <= 111, 0, 1))[:, None] == np.arange(3))
    if name == "many_cuts":
        return 0.6 - 0.4 * (((t[:, None] - 1) // 10) % 3 == np.arange(3))
    if name.startswith("sinusoid"):
        period, k = {"sinusoid": (37, 5), "sinusoid_fraction": (37.37, 5), "sinusoid_one": (1, 3)}[name]
        i = np.arange(k)
        return 0.5 + 0.3 * np.sin(2 * np.pi * (t[:, None] / period + i / k)) + 0.2 * i / (k - 1)
    if name.startswith("lemma51"):
        return np.stack([np.full(len(t), 0.5), np.where((t > 50) & (name == "lemma51_primed"), 0.0, 1.0)], -1)
    return np.broadcast_to({"fixed_gap": [0.6, 0.4, 0.6], "bernoulli": [0.2, 0.5, 0.7]}[name], (len(t), 3))


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_baselines_equal_the_formulas(name):
    environment, t = LOSSES[name], np.arange(1, 391)
    want = mean_losses(name, t)
    for arm in range(environment.facts["num_arms"]):
        truth = np.broadcast_to(play(environment, t, np.full(len(t), arm))[3].means, want.shape)
        assert_allclose(1 - truth, want, atol=2e-6)
        reward = play(environment, t, np.full(len(t), arm))[1]
        if name != "bernoulli":
            assert_allclose(1 - reward, want[:, arm], atol=2e-6)
    times = np.array([1, 2, 39, 40, 41, 111, 112, 390])
    total = np.cumsum(want, axis=0)[times - 1]
    assert_allclose(environment.facts["losses"].cumulative(environment.params, times), total, atol=1e-9)
    if environment.world.baseline is None:
        assert_allclose(environment.facts["means"], 1 - want[0], atol=1e-12)
    else:
        assert_allclose(environment.world.baseline(environment.params, 0, times), total.min(1), atol=1e-9)


@pytest.mark.parametrize("period", [1000.0, 997.0, 3.7, 123456.789, 1.0 + 2**-20])
def test_sinusoid_is_accurate_in_float32_at_large_t(period):
    environment = sinusoid_losses(num_arms=7, period=period)
    t = np.concatenate([np.arange(9_999_900, 10_000_000), np.arange(2**31 - 40, 2**31 - 1)])
    means = play(environment, t, np.arange(len(t)) % 7, evaluated=jax.jit)[3].means  # by the device's own sine
    got = 1 - np.asarray(means, np.float64)
    phase = np.fmod(t.astype(np.longdouble), np.longdouble(period)) / period
    i = np.arange(7)
    want = 0.5 + 0.3 * np.sin(2 * np.pi * (phase[:, None].astype(float) + i / 7)) + 0.2 * i / 6
    assert np.abs(got - want).max() < 1e-6
    # what the integers are there for
    naive = np.sin(np.float32(2 * np.pi) * (t.astype(np.float32) / np.float32(period)))
    assert np.abs(naive - np.sin(2 * np.pi * phase.astype(float))).max() > 1e-3


def test_sinusoid_closed_form_at_large_times():
    environment = sinusoid_losses(num_arms=3, period=777.25)
    times, i = np.array([10, 999_999, 1_000_000]), np.arange(3)
    phase = np.fmod(np.arange(1, 1_000_001), 777.25)[:, None] / 777.25
    want = (0.5 + 0.3 * np.sin(2 * np.pi * (phase + i / 3)) + 0.1 * i).cumsum(0)[times - 1]
    assert_allclose(environment.facts["losses"].cumulative(environment.params, times), want, rtol=1e-9)
    # 2^20 + 1 plays are 2^20 waves: all roots of unity once, whose sum is 0
    near, n = sinusoid_losses(num_arms=3, period=1 + 2**-20), 2**20 + 1
    found = near.facts["losses"].cumulative(near.params, np.array([n]))
    assert_allclose(found, n * np.array([[0.5, 0.6, 0.7]]), rtol=1e-9)


def brute_experts(losses, advice, times):
    return np.cumsum(np.einsum("tk,tjk->tj", losses, advice), axis=0)[times - 1].min(axis=1)


def literal_advice(t, n, k, spread, rotation):
    advice = np.full((len(t), n, k), spread / k)
    for row, play_index in enumerate(t):
        for j in range(n):
            arm = j if j < k else (j + (play_index - 1) // rotation) % k
            advice[row, j, arm] += 1 - spread
    return advice


@pytest.mark.parametrize("name", ["bernoulli", "table", "switching", "sinusoid_fraction"])
def test_rotating_experts(name, monkeypatch):
    inner = LOSSES[name]
    k, n, t = inner.facts["num_arms"], 9, np.arange(1, 391)
    environment = rotating_experts(losses=inner, num_experts=n, spread=0.3, rotation=7)
    advice = literal_advice(t, n, k, 0.3, 7)
    action = actions_for(environment, len(t))
    context, reward, score, _ = play(environment, t, action)
    assert_allclose(context, advice, atol=1e-6)
    assert_array_equal(reward, play(inner, t, action)[1])  # the inner world's draws, under their usual path
    losses = mean_losses(name, t)
    assert_allclose(score.regret, losses[np.arange(len(t)), action], atol=2e-6)
    times = np.array([1, 7, 8, 20, 21, 300, 390])
    want = brute_experts(losses, advice, times)
    for chunk in (1 << 20, 30):  # one stretch, and many
        monkeypatch.setattr("jaxbandits.environments.experts.CHUNK", chunk)
        assert_allclose(environment.world.baseline(environment.params, 0, times), want, atol=1e-9)


def test_given_advice(monkeypatch):
    t, times = np.arange(1, 301), np.array([1, 50, 51, 300])
    losses = mean_losses("bernoulli", t)
    for advice in (ADVICE, MOVING):
        environment = rotating_experts(losses=INNER, advice=advice)
        full = np.broadcast_to(advice, (300, 5, 3))
        assert_allclose(play(environment, t, np.zeros(300))[0], full, atol=1e-6)
        for chunk in (1 << 20, 30):  # one stretch, and of a table one for every two plays
            monkeypatch.setattr("jaxbandits.environments.experts.CHUNK", chunk)
            got = environment.world.baseline(environment.params, 0, times)
            assert_allclose(got, brute_experts(losses, full, times), atol=1e-9)
    assert rotating_experts(losses=INNER, advice=MOVING).facts["max_horizon"] == 300
    table = functools.partial(rotating_experts, losses=LOSSES["table"])  # of 700 rows and 4 arms
    short, long = (np.full((rows, 2, 4), 0.25) for rows in (300, 900))
    assert table(advice=short).facts["max_horizon"] == 300
    assert [table(advice=long).facts["max_horizon"], table(num_experts=3).facts["max_horizon"]] == [700, 700]


def test_bernoulli_losses_are_independent_over_arms_with_the_given_means():
    n, means = 40_000, np.array([0.2, 0.5, 0.7])
    losses = np.stack([1 - play(INNER, np.arange(1, n + 1), np.full(n, i))[1] for i in range(3)])
    assert (np.abs(losses.mean(1) - means) < 4 * np.sqrt(means * (1 - means) / n)).all()
    assert np.abs(np.corrcoef(losses)[np.triu_indices(3, 1)]).max() < 4 / np.sqrt(n)


def test_laws_of_linear_arms():
    n, theta = 20_000, np.array([0.1, 0.5, -0.3])
    t = np.arange(1, n + 1)
    for noise in ("gaussian", "rademacher"):
        environment = linear_arms(actions=np.eye(3), theta=theta, noise=noise, noise_scale=0.7)
        for arm in range(3):
            reward = np.asarray(play(environment, t, np.full(n, arm))[1], float)
            if noise == "gaussian":
                assert stats.kstest(reward, stats.norm(theta[arm], 0.7).cdf).pvalue > 1e-3
                assert stats.kstest(reward, stats.norm(theta[arm], 0.75).cdf).pvalue < 1e-3  # the test can fail
            else:
                assert set(np.unique(reward)) == {-1.0, 1.0}
                assert abs(reward.mean() - theta[arm]) < 4 / np.sqrt(n)
    assert_allclose(environment.facts["means"], theta)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5])
def test_federated_arms_are_uniform_on_the_sphere(dim):
    environment = federated_linear(num_agents=3, num_arms=4, dim=dim, theta_norm=0.5, reward="bounded", noise_scale=0.4)
    n = 3000
    context, y, score, truth = play(environment, np.arange(1, n + 1), np.zeros((n, 3)))
    context = np.asarray(context, float)
    assert context.shape == (n, 3, 4, dim) and y.shape == score.regret.shape == (n, 3)
    assert_allclose(np.linalg.norm(context, axis=-1), 1, atol=1e-6)
    x = context.reshape(-1, dim)
    assert np.abs((x.T @ x / len(x)) - np.eye(dim) / dim).max() < 5 / np.sqrt(len(x))
    assert np.abs(x.mean(0)).max() < 5 / np.sqrt(len(x))
    if dim == 3:  # Archimedes: a coordinate is uniform
        assert stats.kstest(x[:, 1], "uniform", (-1, 2)).pvalue > 1e-3
    if dim == 4:  # the squared norm of any two coordinates is uniform, and so is the angle between them
        for pair in ([0, 1], [2, 3], [0, 2]):
            assert stats.kstest((x[:, pair] ** 2).sum(1), "uniform").pvalue > 1e-3
            assert stats.kstest(np.arctan2(*x[:, pair].T), "uniform", (-np.pi, 2 * np.pi)).pvalue > 1e-3
    flat = context.reshape(n, -1)
    assert np.abs(np.corrcoef(flat.T) - np.eye(flat.shape[1])).max() < 5.5 / np.sqrt(n)  # agents, arms: all independent
    noise = np.asarray(y - np.einsum("pnd,d->pn", context[:, :, 0], np.full(dim, 0.5 / np.sqrt(dim))), float).ravel()
    assert stats.kstest(noise, "uniform", (-0.4, 0.8)).pvalue > 1e-3
    assert_allclose(np.linalg.norm(truth.theta), 0.5, rtol=1e-6)


@pytest.mark.parametrize("features", ["unit", "reference"])
@pytest.mark.parametrize("contexts", ["redraw", "fixed"])
def test_contextual_features_of_the_paper_and_of_its_code(features, contexts):
    arms, dim, n = 8, 5, 2000
    environment = contextual_linear(num_arms=arms, dim=dim, features=features, contexts=contexts)
    t = np.arange(1, n + 1)
    context, reward, _, truth = play(environment, t, np.arange(n) % arms)
    context, theta, means = (np.asarray(x, float) for x in (context, truth.theta, truth.means))
    scale = 2**-0.5 if features == "unit" else 1.0
    free = context[:, dim:] if features == "reference" else context
    assert_allclose(np.linalg.norm(free[..., :-1], axis=-1), scale, atol=1e-6)
    assert_allclose(context[..., -1], scale, atol=1e-6)
    assert_allclose(theta[-1], 2**-0.5 if features == "unit" else 0.5, atol=1e-6)
    assert_allclose(np.linalg.norm(theta[:-1]), theta[-1], atol=1e-6)
    if features == "reference":
        basis = np.eye(dim)
        basis[:-1, -1] = 1
        assert_array_equal(context[:, :dim], np.broadcast_to(basis, (n, dim, dim)))
    assert np.linalg.norm(context, axis=-1).max() <= environment.facts["feature_norm"] + 1e-6
    assert means.min() > -1e-6 and means.max() < 1 + 1e-6
    assert abs(np.mean(np.asarray(reward) - means[np.arange(n), np.arange(n) % arms])) < 4 * 0.5 / np.sqrt(n)
    assert (context == context[:1]).all() == (contexts == "fixed")
    again = play(environment, t, np.arange(n) % arms, root=Draws(np.uint32(4)).child("environment"))
    assert np.abs(np.asarray(again[3].theta) - theta).max() > 1e-2  # another trial, another theta
    if contexts == "redraw":
        u = free[..., :-1].reshape(-1, dim - 1) / scale
        assert np.abs(u.T @ u / len(u) - np.eye(dim - 1) / (dim - 1)).max() < 5 / np.sqrt(len(u))


@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6, 8])
def test_contextual_directions_are_uniform_on_the_sphere(dim):
    n, arms, free = 4000, 4, dim - 1
    environment = contextual_linear(num_arms=arms, dim=dim)
    context = np.asarray(play(environment, np.arange(1, n + 1), np.zeros(n, int))[0], float)
    u = context[..., :-1] * np.sqrt(2)
    assert_allclose(np.linalg.norm(u, axis=-1), 1, atol=2e-6)
    x = u.reshape(-1, free)
    assert np.abs(x.mean(0)).max() < 5 / np.sqrt(len(x))
    assert np.abs(x.T @ x / len(x) - np.eye(free) / free).max() < 5 / np.sqrt(len(x))
    # arms uncorrelated with each other, and so are their squares: no two circles share their bits
    for flat in (u, u**2) if free > 1 else (u,):
        across = np.corrcoef(flat.reshape(n, -1).T).reshape(arms, free, arms, free)
        for a in range(arms):
            across[a, :, a] = 0  # one arm's coordinates: above
        assert np.abs(across).max() < 5.5 / np.sqrt(n)
    if free > 1:  # a squared coordinate is beta (1/2, (free - 1) / 2), and a wrong dimension is noticed
        for j in range(free):
            assert stats.kstest(x[:, j] ** 2, "beta", (0.5, (free - 1) / 2)).pvalue > 1e-3
            assert stats.kstest(x[:, j] ** 2, "beta", (0.5, free / 2)).pvalue < 1e-3
        for j in range(free - 1):  # angles between neighbours
            assert stats.kstest(np.arctan2(x[:, j], x[:, j + 1]), "uniform", (-np.pi, 2 * np.pi)).pvalue > 1e-3


@functools.cache
def drawn(vectors, arms, size):
    return uncompiled(lambda draws, t: vectors(draws, t, arms, size))


@pytest.mark.parametrize("size", [8, 11])
def test_directions_of_many_features(size):
    """As one array: of norm 1, and normal components of variance 1 / (4 size)."""
    t, arms = np.arange(1, 1001), 4
    make = lambda unit: drawn(functools.partial(contextual.random_vectors, unit=unit), arms, size)
    unit, normal = (np.asarray(make(x)(ROOT.child("context"), t), float) for x in (True, False))
    assert unit.shape == normal.shape == (1000, arms, size)
    assert_allclose(np.linalg.norm(unit, axis=-1), 1, atol=5e-6)
    for x, variance in ((unit.reshape(-1, size), 1 / size), (normal.reshape(-1, size), 1 / (4 * size))):
        assert np.abs((x**2).mean(0) / variance - 1).max() < 5 * np.sqrt(2 / len(x))
        assert np.abs(np.corrcoef(x.T) - np.eye(size)).max() < 5 / np.sqrt(len(x))


@pytest.mark.parametrize("features", ["unit", "reference", "gaussian"])
@pytest.mark.parametrize("contexts", ["redraw", "fixed"])
@pytest.mark.parametrize("spread", [0.0, 0.3, 0.9])
def test_arms_that_have_something_in_common(features, contexts, spread):
    """Against the formula in NumPy, from the two streams' own draws."""
    arms, dim, n = 12, 5, 40
    environment = contextual_linear(num_arms=arms, dim=dim, features=features, contexts=contexts, spread=spread)
    t = np.arange(1, n + 1)
    context, _, _, truth = play(environment, t, np.zeros(n, int))
    if contexts == "fixed":
        draws, t = ROOT.child("instance").child("arms"), np.zeros(n, np.int32)
    else:
        draws = ROOT.child("context")
    vectors = functools.partial(contextual.random_vectors, unit=features != "gaussian")
    own = np.stack(drawn(vectors, arms, dim - 1)(draws, t), -1).astype(float)
    common = np.stack(drawn(vectors, 1, dim - 1)(draws.child("common"), t), -1).astype(float)
    expected = spread * own + (1 - spread) * common
    if features == "gaussian":
        expected /= np.hypot(spread, 1 - spread)
        expected /= np.maximum(1, np.linalg.norm(expected, axis=-1, keepdims=True))
    else:
        expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    scale, free = (1.0, slice(dim, None)) if features == "reference" else (2**-0.5, slice(None))
    assert_allclose(context[:, free, :-1], scale * expected[:, free], atol=2e-6)
    assert_allclose(context[:, free, -1], scale, rtol=1e-6)
    assert np.asarray(truth.means).min() > -1e-6 and np.asarray(truth.means).max() < 1 + 1e-6
    if spread == 0 and features != "reference":
        assert (np.asarray(context) == np.asarray(context)[:, :1]).all()


def test_gaussian_features_are_normal_and_cut():
    n, arms, dim = 4000, 5, 5
    environment = contextual_linear(num_arms=arms, dim=dim, features="gaussian")
    context = np.asarray(play(environment, np.arange(1, n + 1), np.zeros(n, int))[0], float)
    z = context[..., :-1].reshape(-1, dim - 1) * np.sqrt(2)
    length = np.linalg.norm(z, axis=1)
    assert length.max() <= 1 + 1e-6 and environment.facts["feature_norm"] == 1.0
    beyond = stats.chi(dim - 1, scale=0.25).sf(1)
    assert abs((length > 1 - 1e-6).mean() - beyond) < 4 * np.sqrt(beyond / len(z))
    for j in range(dim - 1):
        assert stats.kstest(z[length < 1 - 1e-6, j], stats.norm(0, 0.25).cdf).pvalue > 1e-3
        assert stats.kstest(z[length < 1 - 1e-6, j], stats.norm(0, 0.27).cdf).pvalue < 1e-3
    assert np.abs(np.corrcoef(context[..., :-1].reshape(n, -1).T) - np.eye(arms * (dim - 1))).max() < 5.5 / np.sqrt(n)


def test_a_spread_of_one_is_what_there_was_before():
    made = functools.partial(contextual_linear, num_arms=4, dim=3)
    assert made(spread=1.0).world is made().world and made(spread=1).params == made().params
    assert made(spread=0.2).world is made(spread=0).world


def thin_world(context, theta, h):
    """Features and theta of thickness h, from those of a world that has none."""
    last = np.full_like(context[..., :1], math.sqrt(1 - h * h))
    return np.concatenate([h * math.sqrt(2) * context[..., :-1], last], axis=-1), theta


THIN = {"redraw": {}, "fixed": {"contexts": "fixed"}, "spread": {"spread": 0.3}, "an array": {"dim": 11}}


def thin_differs(label, h, thin_world=thin_world):
    """Whether contexts, means or theta are not those of a world without a thickness, made thin."""
    made = functools.partial(contextual_linear, **{"num_arms": 6, "dim": 4} | THIN[label])
    worlds = (play(world, np.arange(1, 41), np.zeros(40, int)) for world in (made(thickness=h), made()))
    seen, whole = ([np.asarray(x, float) for x in (context, truth.means, truth.theta)] for context, *_, truth in worlds)
    context, theta = thin_world(whole[0], whole[2], h)
    assert seen[1].min() > -1e-6 and seen[1].max() < 1 + 1e-6
    return not all(np.allclose(x, y, atol=2e-6) for x, y in zip(seen, (context, context @ theta, theta), strict=True))


@pytest.mark.parametrize("label", THIN)
def test_thin_features(label):
    """(h u, sqrt(1 - h^2)) of the same u, and the same theta; sqrt(1/2) is the world without a thickness."""
    for h in (0.1, math.sqrt(0.5)):
        assert not thin_differs(label, h)


@pytest.mark.parametrize(
    "error",
    errors([("axis=-1), theta", "axis=-1), h * theta"), ("math.sqrt(1 - h * h)", "math.sqrt(0.5)")], thin_world),
)
def test_a_planted_thickness_is_noticed(error):
    assert thin_differs("redraw", 0.1, planted(*error))


def test_a_thickness_is_data():
    made = functools.partial(contextual_linear, num_arms=4, dim=3)
    assert made().world is made(thickness=0.2).world
    assert jax.tree.leaves(made().params) == [0.5] and jax.tree.leaves(made(thickness=0.2).params) == [0.5, 0.2]


def test_gaussian_contextual_rewards():
    n = 20_000
    environment = contextual_linear(num_arms=3, dim=3, reward="gaussian", noise_scale=0.3)
    _, reward, _, truth = play(environment, np.arange(1, n + 1), np.ones(n))
    x = np.asarray(reward - truth.means[:, 1], float)
    assert stats.kstest(x, stats.norm(0, 0.3).cdf).pvalue > 1e-3 > stats.kstest(x, stats.norm(0, 0.32).cdf).pvalue


S = 0.6
# law: (arguments, the noise's distribution, nearby ones that must be told apart, an order of which no moment exists)
HEAVY = {
    "student": ({"df": 2.5}, stats.t(2.5, 0, S), [stats.t(1.8, 0, S), stats.t(2.5, 0, 0.65), stats.norm(0, S)], 2.5),
    "pareto": ({"shape": 2.5}, stats.pareto(2.5, -S, S * 1.5 / 2.5),
        [stats.pareto(2.5, 0, S * 1.5 / 2.5), stats.pareto(2.3, -S, S * 1.3 / 2.3)], 2.5),
    "lognormal": ({"sigma": 0.8}, stats.lognorm(0.8, -S, S * np.exp(-0.32)),
        [stats.lognorm(0.8, -S, S), stats.lognorm(0.76, -S, S * np.exp(-0.76**2 / 2))], None),
}  # fmt: skip


@pytest.mark.parametrize("where", ["linear", "contextual"])
@pytest.mark.parametrize("law", HEAVY)
def test_heavy_noise_of_mean_zero(law, where):
    n, (arguments, want, others, infinite) = 40_000, HEAVY[law]
    arguments = arguments | {"noise_scale": S}
    if where == "linear":
        environment = linear_arms(actions=np.eye(2), theta=[0.1, 0.5], noise=law, **arguments)
    else:
        environment = contextual_linear(num_arms=2, dim=3, reward=law, **arguments)
    _, reward, _, truth = play(environment, np.arange(1, n + 1), np.ones(n))
    noise = np.asarray(reward - np.broadcast_to(truth.means, (n, 2))[:, 1], float)
    assert stats.kstest(noise, want.cdf).pvalue > 1e-3
    assert all(stats.kstest(noise, other.cdf).pvalue < 1e-3 for other in others)
    assert abs(want.mean()) < 1e-12 and abs(noise.mean()) < 4 * noise.std() / n**0.5
    moment, (low, high) = environment.facts["noise_moment"], environment.facts["reward_range"]
    assert moment(2) == pytest.approx(want.var(), rel=1e-9)
    assert moment(1.2) == pytest.approx((np.abs(noise) ** 1.2).mean(), rel=0.05)
    assert infinite is None or moment(infinite) == np.inf
    assert low <= reward.min() and high == np.inf


def test_heavy_noise_of_scale_zero_pays_the_mean():
    for law in HEAVY:
        environment = linear_arms(actions=np.eye(2), theta=[0.1, 0.5], noise=law, noise_scale=0.0)
        assert environment.facts["reward_range"] == (0.1, 0.5) and environment.facts["noise_moment"](2) == 0.0
        assert set(np.asarray(play(environment, np.arange(1, 9), np.ones(8))[1])) == {np.float32(0.5)}
    with pytest.raises(ValueError, match=r"order = 0"):
        environment.facts["noise_moment"](0)


def test_a_run_records_loss_minus_baseline():
    environment, algorithm = LOSSES["lemma51"], ucb1(num_arms=2, horizon=300)
    parts = simulator.parts_of(algorithm, environment, None, None, "float32")
    case, times = cast(simulator.case_of(algorithm, environment)), np.asarray([10, 100, 300], np.int32)

    @jax.jit
    def run(case, seed):
        lane = simulator.begin(parts, case, seed, 3)
        segment = spans.segment(algorithm.schedule[0], 0, 0, 300, times)
        return simulator.advance(parts, (1, True, False), case, seed, lane, jnp.asarray(times), segment).record

    record = run(case, np.uint32(0))
    loss = np.asarray(record.regret_at[0], float) + np.asarray(record.regret_at[1], float)
    regret = loss - environment.world.baseline(environment.params, 0, np.asarray(times))
    assert int(record.pulls.sum()) == 300
    assert_allclose(regret[-1], record.pulls[1] / 2)  # the second arm costs 1, the first 1/2


def test_a_table_refuses_a_longer_horizon_and_worlds_are_cached():
    with pytest.raises(ValueError, match="700 rows"):
        LOSSES["table"].world.baseline(LOSSES["table"].params, 0, np.array([701]))
    one, two = sinusoid_losses(num_arms=3, period=10), sinusoid_losses(num_arms=3, period=20.5)
    assert one.world is two.world and one.remake(period=20.5).params.period == 20.5
    assert rotating_experts(losses=one, num_experts=4).world is rotating_experts(losses=two, num_experts=4).world

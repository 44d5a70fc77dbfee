"""Algorithms whose running sums `mechanisms.counter` releases: noise, spend, constants, regret, bad arguments."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from numpy_draws import NumpyDraws
from plays import of_cases
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import mechanisms
from jaxbandits.algorithms import byzantine_ucb, epsilon_greedy, jdp_linucb, linear_thompson
from jaxbandits.numerics.packed import pack

TREES = ("blt", "honaker", "square_root", "banded")
COUNTERS = ("tree", *TREES)
USERS = jb.environments.contextual_linear(num_arms=3, dim=2)
SHAPE = {"num_agents": 3, "num_arms": 3, "dim": 2}
AGENTS = jb.environments.federated_linear(**SHAPE, reward="bounded", theta_norm=0.7, noise_scale=0.3)
T = 24


def noise(form, draws, releases, **options):
    """What the form makes of normals [releases, ...] that were drawn already, at unit scale."""
    count = mechanisms.counter(form, horizon=releases, **options)

    @uncompiled
    def released(draws, t):
        class Drawn:
            def normal(self, t, shape):
                return draws[t - 1]

        def step(state, t):
            state = count.add(count.params, state, jnp.zeros(draws.shape[1:]), Drawn(), t)
            return state, count.release(count.params, state)

        return jax.lax.scan(step, count.init(draws.shape[1:], jnp.float64), t)[1]

    with jax.enable_x64(True):
        return released(draws, np.arange(1, releases + 1, dtype=np.int32))


def played(algorithm, environment, seeds):
    return of_cases([(algorithm, environment)], seeds, compiled=False)[0]


def drawn(path, seed, releases, shape):
    return NumpyDraws(seed, path).normal(np.arange(1, releases + 1), shape)


@pytest.mark.parametrize("form", dealt(TREES, 4, always=["blt"]))
def test_users_sums_carry_the_noise_of_the_form(form):
    algorithm = jdp_linucb(num_arms=3, dim=2, horizon=T, epsilon=1.0, delta=1e-3, tree=form)
    (run,) = played(algorithm, USERS, [5])
    sent, told = run.history.message, run.history.released
    p = algorithm.params.statistics
    unit = noise(form, drawn("alg/update/noise", 5, T, (5,)), T)
    scale = [p.diagonal, p.off_diagonal, p.diagonal, p.vector, p.vector]
    exact = np.cumsum(np.stack([*sent.gram, *sent.vector], -1).reshape(T, 5), 0)
    released = np.stack([*told.gram, *told.vector], -1).reshape(T, 5)
    np.testing.assert_allclose(released, exact + np.array(scale) * unit, atol=1e-8)


@pytest.mark.parametrize("form", dealt(COUNTERS, 4, always=["blt"]))
def test_agents_sums_carry_the_noise_of_the_form(form):
    algorithm = byzantine_ucb(**SHAPE, horizon=T, window=1, privacy="counter", counter=form, epsilon=2.0, buffers=2)
    (run,) = played(algorithm, AGENTS, [3])
    (gram, vector), message = run.history.released, run.history.message
    normals = drawn("alg/update/gram", 3, T - 1, (3, 3)), drawn("alg/update/vector", 3, T - 1, (3, 2))
    unit = noise(form, np.concatenate([math.sqrt(2) * normals[0], normals[1]], -1), T - 1, error="mean", buffers=2)
    with jax.enable_x64(True):
        sent = uncompiled(pack)(message.gram), message.vector
    want = np.cumsum(np.concatenate(sent, -1)[: T - 1], 0) + algorithm.params.node_scale * unit
    np.testing.assert_allclose(np.concatenate([gram, vector], -1)[: T - 1], want, atol=1e-8)
    assert np.isnan(gram[-1]).all()  # the last episode's message is not used


@pytest.mark.parametrize("preset", ["reference", "theory"])
@pytest.mark.parametrize("form", TREES)
def test_users_spend_what_the_binary_tree_spends_with_less_noise(form, preset):
    build = partial(jdp_linucb, num_arms=20, dim=5, horizon=900, epsilon=1.0, delta=1e-3, preset=preset)
    tree, other = build(tree="binary"), build(tree=form)
    spent = tree.guarantee.spend(tree.params)
    if preset == "reference":
        assert other.guarantee.spend(other.params) == pytest.approx(spent, rel=1e-9)
    else:  # the theory's preset counts a node more than the tree has
        assert other.guarantee.spend(other.params)[0] == pytest.approx(spent[0], rel=1e-9)
    assert other.guarantee.spend(other.params._replace(mechanism_scale=0.5))[0] > spent[0]
    (event,) = other.guarantee.events(other.params)
    assert event.times == 1 and event.mechanism == "gaussian"
    assert other.params.statistics.ridge < tree.params.statistics.ridge
    if preset == "theory":  # 900 has 10 bits, and the preset counts 11 nodes
        sums = mechanisms.counter(form, horizon=900)
        share = sums.column_norm / math.sqrt(10) * sums.deviation(np.arange(1, 901)).max() / math.sqrt(11)
        assert other.params.statistics.ridge == pytest.approx(share * tree.params.statistics.ridge, rel=1e-6)


def test_agents_choose_which_error_is_least():
    build = partial(byzantine_ucb, **SHAPE, horizon=T, window=1, privacy="counter", epsilon=2.0)
    norms = [mechanisms.counter("blt", horizon=T - 1, error=error).column_norm for error in ("max", "mean")]
    scales = [build(counter_error=error).params.node_scale for error in ("max", "mean")]
    assert scales[0] / scales[1] == pytest.approx(norms[0] / norms[1], rel=1e-9) and norms[0] > 1.05 * norms[1]


def test_ridges_follow_the_noise():
    build = partial(jdp_linucb, num_arms=20, dim=5, horizon=5000, epsilon=1.0, delta=1e-3, preset="reference")
    made = build(tree="honaker")
    assert made.params.statistics.ridge == pytest.approx(207.847349, rel=1e-8)
    assert made.guarantee.spend(made.params)[0] == pytest.approx(0.838383, abs=1e-6)
    sums = mechanisms.counter("honaker", horizon=5000)
    tree = mechanisms.counter("tree", horizon=5000)
    plays = np.arange(1, 5001)
    share = sums.column_norm * sums.deviation(plays).max() / (tree.column_norm * tree.deviation(plays).max())
    binary = build(tree="binary")
    assert made.params.statistics.ridge == pytest.approx(share * binary.params.statistics.ridge, rel=1e-9)


def test_without_a_budget_it_is_linucb():
    build = partial(jdp_linucb, num_arms=3, dim=2, horizon=60, epsilon=math.inf)
    private, binary = (played(build(tree=tree), USERS, range(4)) for tree in ("blt", "binary"))
    for one, other in zip(private, binary, strict=True):
        np.testing.assert_array_equal(one.history.action, other.history.action)
        assert one.regret == other.regret
    assert sum(run.regret for run in private) > 1


@pytest.mark.parametrize("form", COUNTERS)
def test_agents_spend_the_claim(form):
    build = partial(byzantine_ucb, num_agents=10, num_arms=10, dim=4, horizon=2000, window=10, privacy="counter")
    made = build(counter=form, epsilon=1.0, delta=1e-3)
    assert made.guarantee.spend(made.params) == (pytest.approx(1.0, rel=1e-9), 1e-3)
    assert made.guarantee.spend(made.params._replace(mechanism_scale=0.5))[0] > 1.5
    if form == "square_root":
        assert made.params.node_scale == pytest.approx(104.598035, rel=1e-8)
    silent = build(counter=form)
    assert silent.params.node_scale == 0 and silent.guarantee.spend(silent.params)[0] == math.inf
    once = byzantine_ucb(num_agents=3, num_arms=3, dim=2, horizon=5, window=5, privacy="counter", epsilon=1.0)
    assert once.guarantee.spend(once.params) == (0.0, 1e-3) or once.guarantee.spend(once.params)[0] == 0


def test_the_counters_tree_is_the_papers_tree():
    """Of the same scale, so of the same plays; only the events are written otherwise."""
    build = partial(byzantine_ucb, num_agents=3, num_arms=3, dim=2, horizon=40, window=1, epsilon=4.0)
    kinds = {"privacy": "tree"}, {"privacy": "counter", "counter": "tree"}
    tree, counter = (played(build(**given), AGENTS, range(4)) for given in kinds)
    for one, other in zip(tree, counter, strict=True):
        np.testing.assert_array_equal(one.history.action, other.history.action)
        for papers, ours in zip(one.history.released, other.history.released, strict=True):
            np.testing.assert_allclose(papers, ours, rtol=1e-9, atol=1e-9)


@pytest.mark.dealt(8)
def test_regrets_are_those_of_another_transcription():
    users = partial(jb.environments.contextual_linear, num_arms=20, dim=5)
    learn = partial(jdp_linucb, epsilon=2.0, delta=1e-3, tree="blt", preset="reference")
    found = jb.sweep(learn, users, horizon=2000, seeds=64, checkpoints=1, progress=False).regret.values.ravel()
    assert abs(found.mean() - 317.31) <= 4 * math.hypot(1.8, found.std(ddof=1) / 8)
    agents = partial(
        jb.environments.federated_linear, num_agents=10, num_arms=10, dim=4, reward="bounded", theta_norm=0.7,
        noise_scale=0.3,
    )  # fmt: skip
    learn = partial(byzantine_ucb, window=1, noise_scale=0.3, delta=1e-3, epsilon=4.0, privacy="counter")
    settings = {"horizon": 4000, "seeds": 24, "checkpoints": 1, "progress": False}
    found = jb.sweep(partial(learn, counter_error="max"), agents, **settings).regret.values.ravel()
    assert abs(found.mean() - 153.7) <= 4 * math.hypot(8.4, found.std(ddof=1) / math.sqrt(24))


@pytest.mark.parametrize("factory", [linear_thompson, epsilon_greedy])
def test_other_learners_take_the_forms(factory):
    made = factory(num_arms=3, dim=2, horizon=50, statistics="jdp", epsilon=1.0, tree="blt")
    tree = factory(num_arms=3, dim=2, horizon=50, statistics="jdp", epsilon=1.0, tree="binary")
    assert made.guarantee.spend(made.params) == pytest.approx(tree.guarantee.spend(tree.params))
    (run,) = played(made, USERS, [0])
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((run.history.released, run.regret)))
    assert len(np.unique(run.history.action)) > 1

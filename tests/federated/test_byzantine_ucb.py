"""Byzantine-UCB: rules by hand, the server's checks, privacy's noise and claims, what is fixed and what is data."""

import functools
import math
import warnings

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_draws import NumpyDraws
from plays import Lane, played
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms import byzantine_ucb, isolated_linucb, oracle_linucb
from jaxbandits.algorithms.federated import agents
from jaxbandits.algorithms.federated.aggregation import AGGREGATION_RULES, Crowd
from jaxbandits.algorithms.federated.comparators import Message
from jaxbandits.environments import federated_linear
from jaxbandits.estimators.middle_points import groups_of
from jaxbandits.numerics.packed import pack, unpack
from jaxbandits.protocol import Moments
from jaxbandits.random import Draws
from jaxbandits.sweeps import assumptions

N, D, L = 10, 3, 8
SIZES = {"num_agents": N, "num_arms": 4, "dim": D}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, N, L, D))
X /= np.linalg.norm(X, axis=-1, keepdims=True)
GRAMS = np.einsum("knli,knlj->knij", X, X).astype(np.float32)  # six episodes of unit vectors
VECTORS = (0.5 * np.einsum("knli->kni", X)).astype(np.float32)


@functools.cache
def runner(program):
    @uncompiled
    def run(params, seed, grams, vectors):
        draws = Draws(seed, "alg")

        def one(state, new):
            k, message = new
            used = program.update(params, state, draws.child("update"), L * k, (), message, jnp.int32(L))
            return used[0], used

        episodes = jnp.arange(1, len(grams) + 1, dtype=jnp.int32)
        return jax.lax.scan(one, program.init(params, draws.child("init")), (episodes, Moments(grams, vectors)))[1]

    return run


def served(grams=GRAMS, vectors=VECTORS, seed=3, **settings):
    """(state, released) after each message, and the algorithm; seven episodes unless a horizon is given."""
    algorithm = byzantine_ucb(**SIZES, window=L, **{"horizon": 7 * L, **settings})
    params = jax.tree.map(lambda x: np.float32(x) if isinstance(x, float) else np.int32(x), algorithm.params)
    kept = jax.tree.map(np.asarray, runner(algorithm.program)(params, np.uint32(seed), grams, vectors))
    return [jax.tree.map(lambda x, k=k: x[k], kept) for k in range(len(grams))], algorithm


def close(got, want, **tolerance):
    np.testing.assert_allclose(got, want, **({"rtol": 2e-4, "atol": 1e-5} | tolerance))


def ruled(name, points, num_attacked=2, num_groups=1, group=(), iterations=100):
    rule = AGGREGATION_RULES[name](iterations)
    crowd = Crowd(np.int32(num_attacked), np.int32(num_groups), group)

    def once(points):
        return rule.aggregate(points, rule.begin(*points.shape, points.dtype), crowd)[0]

    return uncompiled(once)(np.float32(points))


def literal_median(points, steps=3000):
    z = np.mean(points, axis=0)
    for _ in range(steps):
        w = 1 / np.maximum(np.linalg.norm(points - z, axis=1), 1e-12)
        z = w @ points / w.sum()
    return z


def test_every_rule_by_its_definition():
    points = RNG.normal(size=(N, 5))
    points[:2] += 20
    close(ruled("mean", points), points.mean(0))
    close(ruled("coordinate_median", points), np.median(points, axis=0))
    close(ruled("coordinate_median", points[:7]), np.median(points[:7], axis=0))
    close(ruled("trimmed_mean", points), np.sort(points, axis=0)[2:-2].mean(0))
    close(ruled("trimmed_mean", points, 5), np.median(points, axis=0))  # nothing would be left
    close(ruled("geometric_median", points), literal_median(points))
    for attacked, size in ((2, 10), (4, 10), (1, 2)):  # six neighbours, four, and at least one
        some = points[-size:]
        squared = ((some[:, None] - some) ** 2).sum(-1)
        scores = [sum(sorted(np.delete(row, i))[: max(1, size - attacked - 2)]) for i, row in enumerate(squared)]
        close(ruled("krum", some, attacked), some[int(np.argmin(scores))])
    group = np.array([0, 1, 2, 3, 4, 5, 0, 1, 2, 3], np.int32)
    means = np.array([points[group == g].mean(0) for g in range(6)])
    close(ruled("median_of_means", points, 2, 6, group), literal_median(means))
    close(ruled("trimmed_mean", points[:7], 3), np.median(points[:7], axis=0))  # one of seven is left
    group = np.array([*range(9), 0], np.int32)  # three of ten: nine groups
    means = np.array([points[group == g].mean(0) for g in range(9)])
    close(ruled("median_of_means", points, 3, 9, group), literal_median(means))
    assert agents.count_attackers(0.29, 50) == 15  # 14.499999999999998 in floating point


@pytest.mark.parametrize("name", AGGREGATION_RULES)
def test_equal_points_are_their_own_aggregate(name):
    point = np.array([3.0, -1.0, 0.5])
    close(ruled(name, np.tile(point, (N, 1)), group=np.zeros(N, np.int32)), point, rtol=1e-6)
    close(ruled(name, np.zeros((N, 3)), group=np.zeros(N, np.int32)), np.zeros(3))
    one, two = np.array([[3.0, -1.0, 0.5]]), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    np.testing.assert_array_equal(ruled(name, one, 0, group=np.zeros(1, np.int32)), one[0])  # a single agent
    aggregate = ruled(name, two, 0, group=np.zeros(2, np.int32))
    np.testing.assert_allclose(np.linalg.norm(two - aggregate, axis=1).sum(), np.sqrt(5), rtol=1e-5)  # on the segment


def test_groups_are_random_and_even():
    draws, grouped = NumpyDraws(1, "groups", np.float32), uncompiled(groups_of)
    group = np.array([grouped(draws.uniform(t, (N,)), np.int32(3)) for t in range(30)])
    assert {tuple(sorted(np.bincount(row, minlength=3))) for row in group} == {(3, 3, 4)}
    assert len({tuple(row) for row in group}) == 30
    assert set(grouped(draws.uniform(1, (N,)), np.int32(1))) == {0}


def test_one_group_is_the_mean():
    mean, _ = served(aggregate="mean")
    medians, algorithm = served(aggregate="median_of_means")
    assert algorithm.params.num_groups == 1
    for (a, _), (b, _) in zip(mean, medians, strict=True):
        close(a.theta, b.theta)
        close(a.inverse, b.inverse)


def test_theta_is_the_ridge_estimate_from_cumulative_sums():
    kept, _ = served(aggregate="mean", ridge_scale=0.02)
    for k in range(1, 7):
        level = 0.02 * jb.theory.byzantine_ridge(k + 1, window=L, num_agents=N, dim=D, horizon=7 * L)
        gram = GRAMS[:k].astype(float).sum(0).mean(0) + level * np.eye(D)
        state = kept[k - 1][0]
        close(state.theta, np.linalg.solve(gram, VECTORS[:k].astype(float).sum(0).mean(0)))
        assert state.episode == k + 1


def test_huge_messages_leave_the_aggregate_among_the_honest():
    rules = {"geometric_median": 4, "median_of_means": 2, "coordinate_median": 4, "trimmed_mean": 4, "krum": 3}
    for name, attacked in rules.items():
        among_the_honest(name, attacked, 1e30)
        among_the_honest(name, attacked, -1e30)


def among_the_honest(name, attacked, bad):
    grams, vectors = GRAMS.copy(), VECTORS.copy()
    grams[:, :attacked], vectors[:, :attacked] = np.float32(bad) * np.eye(D, dtype=np.float32), np.float32(bad)
    share = attacked / N
    kept, _ = served(grams, vectors, aggregate=name, corruption_bound=share)
    state = kept[-1][0]
    factor = (2 - 2 * share) / (1 - 2 * share) if name != "median_of_means" else 8.0
    for sums, index in ((GRAMS, 0), (VECTORS, 1)):
        honest = sums[:, attacked:].astype(float).sum(0).reshape(N - attacked, -1)
        centre = honest.mean(0)
        spread = np.linalg.norm(honest - centre, axis=1).mean()
        if index == 0:
            sizes = {"window": L, "num_agents": N, "dim": D, "horizon": 7 * L}
            level = 0.1 * jb.theory.byzantine_ridge(7, corruption_bound=share, **sizes)
            found = np.linalg.inv(state.inverse.astype(float)) - level * np.eye(D)
            matrix = found
        else:
            found = (matrix + level * np.eye(D)) @ state.theta
        slack = 3 * np.sqrt(honest.shape[1]) if name in ("coordinate_median", "trimmed_mean", "krum") else 1.0
        assert np.linalg.norm(found.ravel() - centre) <= slack * factor * spread + 1e-3
    broken = served(grams, vectors, aggregate="mean")[0][-1][0]
    assert np.linalg.norm(broken.inverse) < 1e-3 or np.linalg.norm(broken.theta) > 10


def test_messages_that_are_not_finite_count_as_zero_and_are_counted():
    grams, vectors = GRAMS.copy(), VECTORS.copy()
    zeroed = grams.copy(), vectors.copy()
    zeroed[0][:, 0] = zeroed[1][:, 0] = zeroed[0][2:, 1] = zeroed[1][2:, 1] = 0
    vectors[:, 0], grams[2:, 1] = np.nan, np.inf
    got, want = served(grams, vectors)[0], served(*zeroed)[0]
    for (a, _), (b, _) in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.theta, b.theta)
        np.testing.assert_array_equal(a.inverse, b.inverse)
    assert got[-1][0].refused == 10 and want[-1][0].refused == 0
    grams = GRAMS.copy()
    grams[0, 3, 0, 1] += 0.5
    assert served(grams)[0][-1][0].refused == 1  # not symmetric


def test_privacy_without_noise_is_the_plain_algorithm_and_a_norm_check():
    plain, _ = served()
    private, algorithm = served(privacy="tree", node_scale=0.0)
    for (a, _), (b, _) in zip(plain, private, strict=True):
        close(a.theta, b.theta, rtol=1e-5, atol=1e-6)
        close(a.inverse, b.inverse, rtol=1e-5, atol=1e-6)
    assert algorithm.guarantee.spend(algorithm.params)[0] == math.inf
    grams, vectors = GRAMS.copy(), VECTORS.copy()
    axis = np.zeros((D, D), np.float32)
    axis[0, 0] = L * (1 + 8e-6)  # L equal unit vectors, and rounding
    grams[0, 0], grams[0, 1], vectors[0, 2] = axis, 1.001 * axis, 1.001 * L / math.sqrt(D)
    state = served(grams, vectors, privacy="tree", node_scale=0.0)[0][0][0]
    assert state.refused == 2 and not state.gram[1].any() and not state.vector[1].any()
    assert not state.gram[2].any() and not state.vector[2].any()
    assert L * (1 - 1e-6) < np.linalg.norm(state.gram[0]) <= L * (1 + 1e-7)
    np.testing.assert_array_equal(state.vector[0], VECTORS[0, 0])
    assert served(grams, vectors)[0][0][0].refused == 0


def noise_of(kept, grams, vectors):
    """Released minus the sums, [K, N, p + d]."""
    gram = np.cumsum(uncompiled(pack)(grams).astype(float), axis=0)
    vector = np.cumsum(vectors.astype(float), axis=0)
    return np.array([np.concatenate([r[0] - g, r[1] - v], -1) for (_, r), g, v in zip(kept, gram, vector, strict=True)])


def test_noise_is_that_of_a_binary_tree_or_of_increments():
    p = D * (D + 1) // 2
    draws = NumpyDraws(3, "alg/update", np.float32)
    # node n ends with message n and covers as many messages as n's lowest bit says
    nodes = np.array([
        np.concatenate([math.sqrt(2) * draws.child("gram").normal(L * n, (N, p)),
                        draws.child("vector").normal(L * n, (N, D))], axis=-1)
        for n in range(1, 7)
    ])  # fmt: skip
    kept, algorithm = served(privacy="tree", epsilon=4.0)
    s = algorithm.params.node_scale
    assert s == pytest.approx(2.0161 * math.sqrt(3) * L, rel=1e-4)  # six messages: three levels
    for n, got in enumerate(noise_of(kept, GRAMS, VECTORS), start=1):
        ends, m = [], n
        while m:
            ends.append(m)
            m &= m - 1
        close(got, s * sum(nodes[e - 1] for e in ends), atol=2e-4)
    kept, algorithm = served(privacy="increment", epsilon=4.0)
    s = algorithm.params.node_scale
    assert s == pytest.approx(2.0161 * L, rel=1e-4)
    close(noise_of(kept, GRAMS, VECTORS), s * np.cumsum(nodes, axis=0), atol=2e-4)
    for state, _ in kept:  # eigenvalues of Lambda are raised however large the noise
        level = 0.1 * jb.theory.byzantine_ridge(int(state.episode), window=L, num_agents=N, dim=D, horizon=7 * L)
        assert np.linalg.eigvalsh(state.inverse).max() <= 1.001 / (0.1 * level) and np.isfinite(state.theta).all()


def test_the_last_message_is_never_used():
    kept, _ = served(horizon=5 * L + 3, privacy="tree", epsilon=4.0)  # six episodes, the last of three plays
    before, after = kept[4][0], kept[5]
    chex.assert_trees_all_equal(before, after[0], strict=True)
    assert before.episode == 6 and np.isnan(after[1][0]).all() and np.isfinite(kept[4][1][0]).all()
    kept, algorithm = served(GRAMS[:1], VECTORS[:1], horizon=L, privacy="tree", epsilon=1.0)
    assert not kept[0][0].theta.any() and algorithm.params.node_scale == 0.0
    assert algorithm.guarantee.spend(algorithm.params) == (0.0, 0.0)  # one episode: nothing is released


def made(**settings):
    return byzantine_ucb(**SIZES | {"horizon": 200, "window": L} | settings)


def spent(**settings):
    algorithm = made(**settings)
    return algorithm.guarantee.spend(algorithm.params)[0]


def test_what_is_spent_is_what_is_claimed():
    for form in ("tree", "increment", "counter"):
        found = [spent(privacy=form, epsilon=4.0, calibration=c, horizon=9 * L) for c in ("exact", "zcdp", "paper")]
        close(found, [4, 2.96, 0.32], rtol=0.02)
        assert made(privacy=form, epsilon=4.0, node_scale=0.0).params.node_scale == 0.0
        assert spent(privacy=form, epsilon=4.0, node_scale=0.0) == math.inf
    assert spent(privacy="tree", epsilon=1.5, horizon=11 * L) == pytest.approx(1.5)
    claim, params = made(privacy="tree", epsilon=1.0).guarantee, made(privacy="tree", epsilon=1.0).params
    assert (claim.model, claim.unit, claim.scales) == ("federated", "message", ("mechanism_scale",))
    assert claim.spend(params._replace(mechanism_scale=0.0))[0] == math.inf
    assert claim.spend(params._replace(mechanism_scale=2.0))[0] < 0.5
    assert spent(privacy="tree", node_scale=params.node_scale) == pytest.approx(1.0)
    assert made().guarantee.model == "none"


def test_numbers_are_data():
    tree = made(privacy="tree").program
    for change in (
        {"epsilon": 1.0}, {"calibration": "zcdp", "epsilon": 1.0}, {"node_scale": 3.0}, {"constants": "dp"},
        {"corruption_bound": 0.3}, {"delta": 1e-5}, {"radius_scale": 1.0},
    ):  # fmt: skip
        assert made(privacy="tree", **change).program is tree
    assert made(aggregate="median_of_means", corruption_bound=0.1).program is made(aggregate="median_of_means").program
    assert made(aggregate="krum", iterations=3).program is made(aggregate="krum").program
    assert made(iterations=3).program is not made().program is not tree
    for factory in (isolated_linucb, oracle_linucb):
        one, two = (factory(**SIZES, horizon=200, width=w) for w in ("schedule", "abbasi_yadkori"))
        assert one.program is two.program


def test_privacy_terms_of_the_constants_by_hand():
    iota = math.log(128 * N * 200 / 0.05)
    b = 48 * iota * math.log(4 / 1e-3) * (math.sqrt(D) + iota) / 2.0
    plain, c = made(corruption_bound=0.2).params.constants, 8 / 3
    dp = made(corruption_bound=0.2, privacy="tree", epsilon=2.0, constants="dp").params.constants
    close([dp.shift, dp.excess], [2 * c * b * L * math.sqrt(D), c * b * L], rtol=1e-12)
    assert dp[:3] + dp[4:7] == plain[:3] + plain[4:7] and plain.shift == plain.excess == 0
    mom = made(corruption_bound=0.2, privacy="tree", epsilon=2.0, constants="median_of_means").params.constants
    close([mom.shift, mom.excess], [8 * b * L * math.sqrt(D), 4 * b * L], rtol=1e-12)
    close(mom.growth, 128 * math.sqrt(0.2 * L * iota), rtol=1e-12)
    close(mom.numerator, 64 * 1.5 * math.sqrt(0.2 * L * D * iota), rtol=1e-12)
    assert made(constants="dp").params.constants.shift == 0  # without privacy B = 0
    assert made(privacy="tree", epsilon=2.0).params.constants == made().params.constants


def test_width_of_abbasi_yadkori_by_hand():
    scales = {"ridge_scale": 0.7, "radius_scale": 0.5, "noise_scale": 0.4}
    setting = {"horizon": 200, "window": L, "corruption_bound": 0.2} | scales
    alone = isolated_linucb(**SIZES, **setting, width="abbasi_yadkori").params
    pooled = oracle_linucb(**SIZES, **setting, width="abbasi_yadkori").params
    assert pooled.num_attacked == 2
    single = oracle_linucb(num_agents=1, num_arms=2, dim=1, horizon=9, corruption_bound=0.5 - 1e-12).params
    assert single.num_attacked == 0  # below one half never the only agent
    for constants, n in ((alone, 1), (pooled.constants, 8)):
        for k in (1, 5):
            t = (k - 1) * L
            log = 2 * math.log(1 / 0.05) + D * math.log(1 + n * t / (D * 0.7))
            beta = (0.4 * math.sqrt(log) + math.sqrt(0.7) * math.sqrt(D)) / math.sqrt(n)
            close(uncompiled(lambda k, c=constants: agents.episode_radius(c, k, jnp.float32))(np.int32(k)), 0.5 * beta)
            close(uncompiled(lambda k, c=constants: agents.ridge(c, k, jnp.float32))(np.int32(k)), 0.7 / n)


def test_the_oracle_averages_agents_it_knows():
    algorithm = oracle_linucb(**SIZES, horizon=100, window=L, corruption_bound=0.2)
    program, params = algorithm.program, jax.tree.map(np.float32, algorithm.params)
    grams, vectors = GRAMS[0].copy(), VECTORS[0].copy()
    grams[0], vectors[1] = np.nan, 1e30

    @uncompiled
    def updated(params, grams, vectors):
        state, draws = program.init(params, Draws(jnp.uint32(0))), Draws(jnp.uint32(0))
        state, _ = program.update(params, state, draws, jnp.int32(8), (), Moments(grams, vectors), jnp.int32(8))
        return state, agents.ridge(params.constants, jnp.int32(2), jnp.float32)

    state, level = updated(params, grams, vectors)
    want = np.linalg.solve(GRAMS[0, 2:].mean(0) + level * np.eye(D), VECTORS[0, 2:].mean(0))
    close(state.theta, want)


def test_packed_messages_are_half_as_many_bytes():
    lane = Lane(0, made(horizon=43, window=10), federated_linear(**SIZES))
    (run,) = played([lane], checkpoints=1, compiled=False, dtype="float32")
    assert run.diagnostics["bytes_sent"] == 4 * (6 + 3) * 4 and run.diagnostics["refused_messages"] == 0
    assert uncompiled(unpack)(run.state.gram).shape == (N, D, D)


def said(environment, **settings):
    algorithm = made(horizon=60, window=5, **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lanes = [("one", each, environment, None) for each in (algorithm, made())]
        assumptions.warn(lanes, "float32", stacklevel=1)
    return [str(w.message) for w in caught]


def test_privacy_warns_of_rewards_and_noise_that_defeat_it():
    bounded = federated_linear(**SIZES, reward="bounded", theta_norm=0.6, noise_scale=0.4)
    (text,) = said(bounded, privacy="tree", epsilon=0.2)
    node = made(horizon=60, window=5, privacy="tree", epsilon=0.2).params.node_scale
    share = 2 * node * math.sqrt(D * 2 / N) * D / 60
    assert f"it is {share:.3g} times the information" in text and "raise epsilon" in text
    (text,) = said(federated_linear(**SIZES, reward="bounded", theta_norm=1.0, noise_scale=0.5), privacy="tree")
    assert "rewards reach 1.5, and privacy assumes at most 1 (Assumption 2)" in text
    (text,) = said(federated_linear(**SIZES), privacy="tree")
    assert "rewards are unbounded" in text
    assert said(bounded, privacy="tree") == said(federated_linear(**SIZES)) == []


@pytest.mark.dealt(4)
def test_a_target_attack_breaks_the_mean_and_not_the_median():
    rules = {name: functools.partial(byzantine_ucb, aggregate=name) for name in ("mean", "geometric_median")}
    attack = functools.partial(jb.adversaries.byzantine, kind="target", scale=5.0)
    ds = jb.sweep(
        rules, federated_linear(num_agents=10, num_arms=10, dim=4), horizon=400, seeds=16, checkpoints=1,
        progress=False,
        message_adversary=attack, grid={"message_adversary.corruption": [0.0, 0.2]},
    )  # fmt: skip
    regret = ds.regret.isel(t=-1).mean("seed").values / np.array([10, 8])  # of an honest agent
    assert regret[1, 1] < 2 * regret[0, 0] and regret[1, 0] < 1.3 * regret[0, 0]
    assert regret[0, 1] > 4 * regret[1, 1]


@pytest.mark.parametrize(("privacy", "episodes", "draws"), [
    ({"privacy": "tree"}, 12, 4 / 2), ({"privacy": "increment"}, 9, 8),
    ({"privacy": "counter", "counter": "tree"}, 4, (1 + 1 + 2) / 3),
])  # fmt: skip
def test_noise_against_data_is_of_the_forms_draws(privacy, episodes, draws):
    """Draws in the noise: half of 4 levels; one a message; nodes of the sums of 1, 2 and 3 messages."""
    one = made(**privacy, epsilon=4.0, horizon=episodes * L)
    share = 2 * one.params.node_scale * math.sqrt(D * draws / N) * D / (episodes * L)
    assert one.guarantee.noise_share(one) == pytest.approx(share)
    half = one._replace(params=one.params._replace(mechanism_scale=0.5))
    assert one.guarantee.noise_share(half) == pytest.approx(share / 2)


def test_comparators_carry_what_rounding_leaves_out():
    """Beside 2^24 float32 moves by 2: eight vectors of 1/4 add 2, of ten agents together 20."""
    draws = Draws(np.uint32(0), "alg", np.float32, long=True)
    sent = Moments(np.zeros((N, D, D), np.float32), np.full((N, D), 0.25, np.float32))
    for factory, message, want in ((isolated_linucb, Message(*sent, sent), 2), (oracle_linucb, sent, 20)):
        program = (algorithm := factory(**SIZES, horizon=200, window=L)).program
        params = jax.tree.map(np.float32, algorithm.params)
        begin = uncompiled(lambda p, program=program: program.init(p, draws))
        step = uncompiled(
            lambda p, s, new, program=program: program.update(p, s, draws, jnp.int32(L), (), new, jnp.int32(L))[0]
        )
        state = begin(params)
        state = state._replace(sums=state.sums._replace(vector=np.full_like(state.sums.vector, 2.0**24)))
        for _ in range(8):
            state = step(params, state, message)
        gained = np.float64(state.sums.vector) - 2.0**24 + np.float64(state.rest.vector)
        np.testing.assert_allclose(gained, want, atol=1e-3)

"""The transcription of Byzantine-UCB itself: points by hand, laws, checks, planted errors that must be noticed."""

import math

import numpy as np
import pytest
from against_reference import planted
from reference import byzantine as byz
from reference import byzantine_attacks as attacks
from reference import byzantine_oracles as oracles
from reference import byzantine_privacy as privacy
from reference import federated
from scipy.optimize import minimize
from scipy.stats import norm

N, A, D, T, L = 6, 5, 3, 90, 8
THETA = np.ones(D) / math.sqrt(D)
LIMITS = {"num_agents": N, "dim": D, "horizon": T, "window": L}


def case(**settings):
    return byz.Constants(**{**LIMITS, **settings})


def world(seed, scale=0.3, bounded=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(T, N, A, D))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    noise = scale * (rng.uniform(-1, 1, (T, N)) if bounded else rng.normal(size=(T, N)))
    return x, lambda t, i, arm: x[t - 1, i, arm] @ THETA + noise[t - 1, i]


def nodes(*seed):
    def node(level, end):
        return np.random.default_rng((*seed, level, end)).normal(size=(N, D + 1, D + 1))

    return node


def masks(share):
    hits = np.zeros((byz.episodes_of(T, L), N), bool)
    hits[:, : oracles.attacked_count(share, N)] = True
    return hits


# ---------------------------------------------------------------- constants


def test_constants_by_hand():
    # iota = 4, L = 1, N = 9, d = 4, C_alpha = 8/3 at 0.2
    same = {"num_agents": 9, "dim": 4, "horizon": 100, "window": 1, "failure_prob": 128 * 9 * 100 / math.exp(4)}
    c = byz.Constants(**same, corruption_bound=0.2, ridge_scale=0.5, radius_scale=0.1)
    level = 0.5 * 16 * 8 / 3 * math.sqrt(2)
    assert byz.ridge(c, 2) == pytest.approx(level)
    assert byz.radius(c, 2) == pytest.approx(
        0.1 * (6 * math.sqrt(level) + 16 * 8 / 3 * 1.5 / math.sqrt(level) + math.sqrt(16 / 9))
    )
    for name in ("dp", "median_of_means"):  # B = 0 unless privacy is on, and at epsilon = inf
        assert byz.noise_bound(c._replace(constants=name)) == 0
        assert byz.noise_bound(c._replace(constants=name, privacy="tree")) == 0
    assert byz.ridge(c._replace(constants="dp"), 2) == byz.ridge(c, 2)
    private = c._replace(constants="dp", privacy="tree", epsilon=2.0, delta=4 / math.e)
    B = 48 * 4 * 1 * (2 + 4) / 2
    assert byz.noise_bound(private) == pytest.approx(B)
    shift = 2 * 8 / 3 * B * 2
    assert byz.ridge(private, 2) == pytest.approx(0.5 * (shift + 16 * 8 / 3 * math.sqrt(2)))
    level = byz.ridge(private, 2)
    numerator = 16 * 8 / 3 * 1.5 + 8 / 3 * B
    assert byz.radius(private, 2) == pytest.approx(
        0.1 * (6 * math.sqrt(level) + numerator / math.sqrt(level) + math.sqrt(16 / 9))
    )
    groups = private._replace(constants="median_of_means", corruption_bound=0.25)
    assert byz.ridge(groups, 4) == pytest.approx(0.5 * (8 * B * 2 + 128 * math.sqrt(0.25 * 4) * 2))
    level = byz.ridge(groups, 4)
    numerator = 64 * 1.5 * math.sqrt(0.25 * 3 * 4 * 4) + 4 * B
    assert byz.radius(groups, 4) == pytest.approx(
        0.1 * (6 * math.sqrt(level) + numerator / math.sqrt(level) + math.sqrt(16 / 9))
    )
    none = groups._replace(privacy=None, corruption_bound=0.0, window=7)
    assert byz.ridge(none, 9) == 0.5 * 7  # max(L, .): nothing grows
    assert [byz.default_window(t) for t in (1, 15, 100, 8192)] == [1, 1, 2, 23]


def test_constants_are_those_of_the_earlier_transcription():
    for settings in ({}, {"corruption_bound": 0.2, "feature_spread": 0.5, "noise_scale": 1.0, "ridge_scale": 1.0}):
        plan = federated.schedule(12, **LIMITS, **settings)
        c = case(**settings)
        np.testing.assert_allclose(plan.ridge, [byz.ridge(c, k) for k in range(1, 13)], rtol=1e-14)
        np.testing.assert_allclose(plan.radius, [byz.radius(c, k) for k in range(1, 13)], rtol=1e-14)


# ---------------------------------------------------------------- oracles


def clouds(count=60):
    rng = np.random.default_rng(3)
    for trial in range(count):
        n, p = int(rng.integers(3, 12)), int(rng.integers(2, 7))
        points = rng.normal(size=(n, p))
        if trial % 3 == 1:
            points[: (n - 1) // 2] *= 1e5
        if trial % 3 == 2:
            points[:2] = points[2]
        yield points


def test_the_median_is_a_minimiser():
    on_points = 0
    for points in clouds():
        z = oracles.geometric_median(points)
        on_points += any(np.array_equal(z, x) for x in points)
        best = oracles.spread(points, z)
        found = minimize(
            lambda y, points=points: oracles.spread(points, y),
            np.median(points, axis=0),
            method="BFGS",
            options={"gtol": 1e-10},
        )
        assert best <= found.fun + 1e-12 * max(1, best)
        assert found.fun - best <= 1e-4 * max(1, best)
        assert oracles.second_certificate(points, z) <= 1e-9  # by subgradients: independent of how z was found
    assert 5 < on_points < 60


def test_the_median_turns_and_moves_with_its_points():
    rng = np.random.default_rng(4)
    for points in clouds(12):
        turn = np.linalg.qr(rng.normal(size=(points.shape[1],) * 2))[0]
        move = rng.normal(size=points.shape[1])
        scale = np.median(np.abs(points))
        moved = oracles.geometric_median(points @ turn.T + move)
        np.testing.assert_allclose(moved, turn @ oracles.geometric_median(points) + move, atol=1e-8 * max(1, scale))


def test_weights_are_copies():
    points = np.random.default_rng(5).normal(size=(4, 3))
    copies = np.repeat(points, [1, 2, 1, 3], axis=0)
    np.testing.assert_allclose(
        oracles.geometric_median(points, [1, 2, 1, 3]), oracles.geometric_median(copies), atol=1e-10
    )
    z = points.mean(axis=0)
    weighted = oracles.spread(points, z, np.array([1, 2, 1, 3]) / 7)
    assert weighted == pytest.approx(oracles.spread(copies, z))
    true = weighted - oracles.spread(copies, oracles.geometric_median(copies))
    assert true <= oracles.first_certificate(points, z, [1, 2, 1, 3]) < 1


def test_certificates_are_never_below_the_gap():
    tight = 0
    for points in clouds():
        best = oracles.spread(points, oracles.geometric_median(points))
        for iterations in (0, 3, 12, 200):
            z, _ = oracles.weiszfeld(points, points.mean(axis=0), iterations)
            gap = oracles.spread(points, z) - best
            for bound in (oracles.first_certificate(points, z), oracles.second_certificate(points, z)):
                assert gap <= bound + 1e-11 * best
            tight += oracles.certificate(points, z) <= 10 * gap + 1e-4
    assert tight > 60


def test_weiszfeld_survives_equal_points_and_takes_the_better_start():
    same = np.full((5, 3), 2.0)
    z, weights = oracles.weiszfeld(same, np.zeros(3), 8)
    np.testing.assert_array_equal(z, same[0])
    np.testing.assert_allclose(weights, 0.2)
    rng = np.random.default_rng(6)
    warm = oracles.WarmMedian(8)
    np.testing.assert_array_equal(warm(np.zeros((8, 3))), np.zeros(3))
    total, errors = np.zeros((8, 3)), []
    for _ in range(20):
        total = total + rng.normal(size=(8, 3)) + 1
        total[:3] = 1e4  # attackers out of the clamp
        exact = oracles.geometric_median(total)
        errors.append(np.linalg.norm(warm(total) - exact) / np.median(np.linalg.norm(total - exact, axis=1)))
    assert max(errors) < 0.1  # of the median distance


def test_rules_by_hand():
    points = np.array([[0.0], [1.0], [5.0], [100.0], [-1000.0]])
    assert oracles.trimmed_mean(points, 1) == 2
    assert oracles.coordinate_median(points) == 1
    assert oracles.coordinate_median(points[:4]) == 3
    assert oracles.krum(points, 1) == 1  # two nearest: 1 + 16, against 1 + 25 and 16 + 25
    assert oracles.krum(points, 4) == 0  # one nearest: 0 and 1 tie
    means = oracles.group_means(points, [0, 1, 0, 1, 2], 3)
    np.testing.assert_array_equal(means, [[2.5], [50.5], [-1000]])
    np.testing.assert_allclose(oracles.geometric_median(oracles.group_means(points, [0] * 5, 1)), points.mean(axis=0))
    assert byz.Aggregator("median_of_means", 0)(points) == points.mean()  # P = 0 is the mean
    matrix = np.array([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
    assert np.linalg.norm(oracles.pack(matrix)) == pytest.approx(np.linalg.norm(matrix))
    np.testing.assert_allclose(oracles.unpack(oracles.pack(matrix), 3), matrix)


@pytest.mark.parametrize("rule", ["geometric_median", "coordinate_median", "trimmed_mean", "krum"])
def test_huge_attackers_move_a_robust_rule_by_the_spread_of_the_honest(rule):
    rng = np.random.default_rng(8)
    for sign in (1, -1):
        points = rng.normal(size=(10, 4))
        honest, middle = points[3:], points[3:].mean(axis=0)
        points[:3] = sign * 1e30
        bound = (2 - 0.6) / (1 - 0.6) * np.mean(np.linalg.norm(honest - middle, axis=1))
        assert np.linalg.norm(byz.Aggregator(rule, 3)(points) - middle) <= bound
        assert np.linalg.norm(byz.Aggregator("mean", 3)(points) - middle) > 1e29


# ---------------------------------------------------------------- privacy


def scale_of(c, calibration):
    releases = byz.episodes_of(c.horizon, c.window) - 1
    return privacy.node_scale(releases, c.window, c.epsilon, c.delta, privacy=c.privacy, calibration=calibration)


def test_calibrations_of_section_4():
    for epsilon, delta, ratio in ((4, 1e-3, 2.0161), (1, 1e-3, 6.3066), (0.5, 1e-5, 17.2244)):
        g = privacy.gaussian_ratio(epsilon, delta)
        assert math.sqrt(6) / g == pytest.approx(ratio, abs=6e-5)
        spent = norm.cdf(g / 2 - epsilon / g) - math.exp(epsilon) * norm.cdf(-g / 2 - epsilon / g)
        assert spent == pytest.approx(delta, rel=1e-9)
    c = case(privacy="tree", epsilon=4.0, horizon=80)  # K = 10: 9 messages, m = 4 by bits, 5 as printed
    scales = {kind: scale_of(c, kind) for kind in ("exact", "zcdp", "paper")}
    assert scales["exact"] == pytest.approx(2.0161 * 8 * 2, rel=1e-4)
    assert scales["paper"] == pytest.approx(8 * math.sqrt(5) * 8 * math.log(4000) / 4)
    levels = {"exact": 4, "zcdp": 4, "paper": 5}
    spent = {k: privacy.truly_spent(s / (8 * math.sqrt(levels[k])), 1e-3) for k, s in scales.items()}
    assert [spent[k] for k in ("paper", "zcdp", "exact")] == pytest.approx([0.32, 2.96, 4], abs=0.006)
    for epsilon, factor in ((4.0, 6.5), (1.0, 7.0)):
        smaller = c._replace(epsilon=epsilon)
        per_level = scale_of(smaller, "paper") / math.sqrt(5) / (scale_of(smaller, "zcdp") / 2)
        assert per_level == pytest.approx(factor, abs=0.06)
    assert scale_of(c._replace(privacy="increment"), "exact") == pytest.approx(scales["exact"] / 2)
    assert scale_of(c._replace(epsilon=math.inf), "exact") == 0 == scale_of(c._replace(window=80), "exact")
    assert [privacy.tree_levels(n, "exact") for n in (1, 2, 3, 4, 7, 8)] == [1, 2, 2, 3, 3, 4]
    assert [privacy.tree_levels(n, "paper") for n in (1, 2, 3, 4, 7, 8, 9)] == [1, 2, 3, 3, 4, 4, 5]


def test_nodes_cover_every_prefix_once_and_one_message_lies_in_few():
    for n in range(1, 200):
        covered = [i for level, end in privacy.nodes_of(n, "tree") for i in range(end - 2**level + 1, end + 1)]
        assert covered == list(range(1, n + 1))
        assert len(privacy.nodes_of(n, "tree")) == n.bit_count()
        assert privacy.nodes_of(n, "increment") == [(0, i) for i in range(1, n + 1)]
    drawn = {node for n in range(1, 200) for node in privacy.nodes_of(n, "tree")}
    for message in range(1, 200):
        assert sum(end - 2**level < message <= end for level, end in drawn) <= privacy.tree_levels(199, "exact")


def test_a_message_moves_the_sums_by_what_the_calibrations_take():
    """(U, u) against (-U, -u), both of norm L: sqrt 12 L in [[U, u], [u', 0]], the tree's sqrt m nodes aside."""
    U, u = np.diag([3.0, 0, 4]), np.array([0, 5.0, 0])
    joined = np.block([[U, u[:, None]], [u[None], np.zeros((1, 1))]])
    assert np.linalg.norm(2 * joined) == pytest.approx(math.sqrt(12) * 5)


def test_increments_win_for_few_episodes():
    """Average variance over a run, tree with tight m over increments:
    the table of docs/formulas/byzantine.md#increments and its closed form.
    """
    for count, ratio in ((8, 1.29), (16, 1.07), (32, 0.81), (64, 0.57), (128, 0.39), (512, 0.16)):
        m = privacy.tree_levels(count - 1, "exact")
        tree, increments = (sum(len(privacy.nodes_of(n, form)) for n in range(count)) for form in ("tree", "increment"))
        assert m * tree / increments == pytest.approx(math.log2(count) ** 2 / (count - 1))
        assert m * tree / increments == pytest.approx(ratio, abs=0.006)


@pytest.mark.parametrize("form", ["tree", "increment"])
def test_variance_of_what_is_released(form):
    variances = []
    for n in (5, 6, 7, 8):
        H, h = [], []
        for seed in range(500):
            tree = privacy.Privatizer(form, 2.0, nodes(seed, n))
            for _ in range(n):
                tree.receive(np.zeros((N, D, D)), np.zeros((N, D)))
            gram, vector = tree.release()
            np.testing.assert_array_equal(gram, np.swapaxes(gram, 1, 2))
            H.append(gram)
            h.append(vector)
        H, h = np.array(H), np.array(h)
        expected = 4 * (n.bit_count() if form == "tree" else n)
        diagonal, off = H[:, :, range(D), range(D)], H[:, :, 0, 1]
        variances.append((np.mean(diagonal**2) / 2, np.mean(off**2), np.mean(h**2)))
        np.testing.assert_allclose(variances[-1], expected, rtol=0.1)
    doubled = np.array(variances) / variances[1]
    assert np.abs(doubled - 1).max() > 0.3


def test_the_tree_is_a_buffer_of_levels():
    """docs/formulas/byzantine.md#tree: buf[j < c] = 0, buf[c] = fresh at n, c = ctz(n);
    the noise is sum_j bit_j(n) buf[j].
    """
    node = nodes(1)
    tree = privacy.Privatizer("tree", 1.0, node)
    buffer = np.zeros((7, N, D, D))
    for n in range(1, 65):
        tree.receive(np.full((N, D, D), 0.25), np.zeros((N, D)))
        c = (n & -n).bit_length() - 1
        buffer[:c] = 0
        buffer[c] = privacy.node_noise(node(c, n))[0]
        noise = sum(buffer[j] for j in range(7) if n >> j & 1)
        np.testing.assert_allclose(tree.release()[0], 0.25 * n + noise, atol=1e-12)


def test_the_server_checks():
    good = np.array([[2.0, 1.0], [1.0, 3.0]])
    for private in (False, True):
        for pair in (
            (np.array([[1.0, 0.1], [0.2, 1.0]]), np.ones(2)),
            (good, np.array([1, math.nan])),
            (math.inf * good, np.ones(2)),
        ):
            assert not any(part.any() for part in byz.receive(*pair, 4, private))
        np.testing.assert_array_equal(byz.receive(good, np.ones(2), 4, private)[0], good)
    huge = byz.receive(1e300 * good, np.array([1e-3, 0]), 4)
    assert np.linalg.norm(huge[0]) == pytest.approx(4e4)
    np.testing.assert_array_equal(huge[1], [1e-3, 0])
    assert not any(part.any() for part in byz.receive(good, np.array([4.1, 0]), 4, True))  # both parts together
    edge = byz.receive(good, np.array([4 * (1 + 9e-6), 0]), 4, True)
    assert np.linalg.norm(edge[1]) == 4
    values = np.linalg.eigvalsh(byz.floor_eigenvalues(np.diag([-3.0, 0.05, 2.0]), 0.1))
    np.testing.assert_allclose(values, (0.1, 0.1, 2.0))


# ---------------------------------------------------------------- Algorithm 1


def test_without_noise_a_private_run_is_the_plain_run_and_the_norm_check():
    for aggregate in ("geometric_median", "median_of_means"):
        c = case(corruption_bound=0.2)
        x, reward = world(1, 0.2, bounded=True)
        small = lambda t, i, arm, reward=reward: reward(t, i, arm) / 1.2  # |r| <= 1
        groups = [0, 1, 2, 0, 1, 2]
        plain = byz.byzantine_ucb(x, small, THETA, c, aggregate=aggregate, groups=groups)
        for form in ("tree", "increment"):
            private = c._replace(privacy=form)
            run = byz.byzantine_ucb(x, small, THETA, private, aggregate=aggregate, node=nodes(2), groups=groups)
            np.testing.assert_array_equal(run.actions, plain.actions)
            far = byz.byzantine_ucb(
                x, lambda t, i, arm: 3.0, THETA, private, aggregate=aggregate, node=nodes(2), groups=groups
            )
            assert any((far.released[-1][1][i] == 0).all() for i in range(N))  # |u| > L is (0, 0)


def test_one_agent_is_ridge_regression_by_hand():
    c = case(num_agents=1)
    x, reward = world(3)
    x = x[:, :1]
    run = byz.byzantine_ucb(x, reward, THETA, c)
    chosen = np.take_along_axis(x[:, 0], run.actions[:, :1, None], axis=1)[:, 0]
    paid = np.array([reward(t + 1, 0, run.actions[t, 0]) for t in range(T)])
    assert len(run.policies) == 12
    for k in (1, 5, 12):  # statistics of episodes 1..k - 1
        seen = slice(0, (k - 1) * L)
        gram = chosen[seen].T @ chosen[seen] + byz.ridge(c, k) * np.eye(D)
        np.testing.assert_allclose(run.policies[k - 1][0].inverse, np.linalg.inv(gram), atol=1e-12)
        np.testing.assert_allclose(
            run.policies[k - 1][0].estimate, np.linalg.solve(gram, paid[seen] @ chosen[seen]), atol=1e-12
        )
    alone = byz.isolated_linucb(x, reward, THETA, c)
    oracle = byz.oracle_linucb(x, reward, THETA, c)
    np.testing.assert_array_equal(run.actions, alone.actions)
    np.testing.assert_array_equal(run.actions, oracle.actions)
    values = x[:, 0] @ THETA
    np.testing.assert_allclose(
        run.regret, np.cumsum(values.max(axis=1) - values[np.arange(T), run.actions[:, 0]]), atol=1e-12
    )


def test_the_earlier_transcription_agrees():
    x, reward = world(4)
    c = case(corruption_bound=1 / 3)
    old = federated.federated_ucb(x, reward, THETA, window=L, attacked=(0, 1), attack_scale=0.5, corruption_bound=1 / 3)
    attack = attacks.byzantine("target", 0.5, L, THETA)
    new = byz.byzantine_ucb(x, reward, THETA, c, aggregate="mean", hits=masks(1 / 3), attack=attack)
    np.testing.assert_array_equal(old.actions, new.actions)
    np.testing.assert_allclose(old.regret, new.regret)


def test_widths_of_abbasi_yadkori_by_hand():
    c = case(noise_scale=0.5, failure_prob=0.1, radius_scale=1.0)
    level, beta = byz.abbasi_yadkori(c, 2.0, 1.5)(4, 3)
    assert level == pytest.approx(2 / 3)
    inside = 2 * math.log(10) + 3 * math.log(1 + 3 * 24 / 6)
    assert beta == pytest.approx((0.5 * math.sqrt(inside) + 1.5 * math.sqrt(2)) / math.sqrt(3))
    x, reward = world(5)
    plan = byz.abbasi_yadkori(c, 1.0, 1.0)
    alone, oracle = (f(x, reward, THETA, c, plan=plan) for f in (byz.isolated_linucb, byz.oracle_linucb))
    assert oracle.regret[-1] < alone.regret[-1]


def test_messages_do_not_reach_the_isolated_and_the_oracle_leaves_the_attacked_out():
    x, reward = world(11)
    c = case(corruption_bound=0.2)
    bad = {"hits": masks(0.2), "attack": attacks.byzantine("target", 9.0, L, THETA)}
    for factory in (byz.isolated_linucb, byz.oracle_linucb):
        clean, hit = factory(x, reward, THETA, c), factory(x, reward, THETA, c, **bad)
        np.testing.assert_array_equal(clean.actions, hit.actions)
        assert hit.regret[-1] < clean.regret[-1]  # of fewer agents
    blind = byz.oracle_linucb(x, reward, THETA, c._replace(corruption_bound=0.0), **bad)
    assert not np.array_equal(
        blind.actions, byz.oracle_linucb(x, reward, THETA, c._replace(corruption_bound=0.0)).actions
    )


def test_attacks_by_hand():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(N, 4, D))
    matrices = np.einsum("nki,nkj->nij", x, x)
    vectors = rng.normal(size=(N, D))
    hit = np.array([True, True, False, False, False, False])
    honest_gram, honest_vector = matrices[2:].mean(axis=0), vectors[2:].mean(axis=0)
    G, g = rng.normal(size=(D, D)), rng.normal(size=D)
    expected = {
        "none": (matrices[1], vectors[1]),
        "sign_flip": (matrices[1], -2 * vectors[1]),
        "noise": (16 * (G + G.T) / math.sqrt(2), 16 * g),
        "constant": (16 * np.eye(D), -16 * np.ones(D)),
        "zero": (0 * matrices[1], 0 * vectors[1]),
        "alie": (
            honest_gram,
            honest_vector - 2 * np.sqrt(np.mean((vectors[2:] - honest_vector) ** 2, 0)) * np.sign(honest_vector),
        ),
        "inner_product": (honest_gram, -2 * honest_vector),
        "target": (honest_gram, -2 * honest_gram @ THETA),
    }
    for kind, (U, u) in expected.items():
        for part in ("both", "matrix", "vector"):
            attack = attacks.byzantine(kind, 2.0, 8, THETA, part, lambda k, i: (G, g))
            got = attack(1, matrices, vectors, hit)
            np.testing.assert_allclose(got[0][1], U if part != "vector" else matrices[1], atol=1e-14)
            np.testing.assert_allclose(got[1][1], u if part != "matrix" else vectors[1], atol=1e-14)
            np.testing.assert_array_equal(got[0][2:], matrices[2:])
            np.testing.assert_array_equal(got[1][2:], vectors[2:])
    sent = attacks.byzantine("nonfinite", 1.0, 8, THETA)(1, matrices, vectors, hit)
    assert not np.isfinite(sent[0][0]).any() and not byz.receive(sent[0][0], sent[1][0], 8)[0].any()
    assert attacks.alie_z(10, 2) == 0
    assert attacks.alie_z(50, 12) == pytest.approx(0.336, abs=1e-3)  # s = 14: Phi^-1(24 / 38)


def test_poison_and_what_regret_counts():
    x, reward = world(6)
    c = case(corruption_bound=0.2)
    poisoned = np.zeros((T, N), bool)
    poisoned[10:40, :2] = True
    run = byz.byzantine_ucb(x, reward, THETA, c, poisoned=poisoned, hits=masks(0.2))
    values = x @ THETA
    lost = values.max(axis=2) - np.take_along_axis(values, run.actions[..., None], 2)[..., 0]
    keep = ~(poisoned | np.repeat(masks(0.2), L, axis=0)[:T])
    np.testing.assert_allclose(run.regret, np.cumsum((lost * keep).sum(axis=1)))
    X = np.take_along_axis(x, run.actions[..., None, None], 2)[:, :, 0]
    k, i = 3, 1  # plays 17..24, all poisoned
    paid = [reward(t, i, run.actions[t - 1, i]) - 2 * X[t - 1, i] @ THETA for t in range(17, 25)]
    np.testing.assert_allclose(run.sent[k - 1][1][i], paid @ X[16:24, i])
    np.testing.assert_allclose(run.sent[k - 1][0][i], X[16:24, i].T @ X[16:24, i])


def test_regrets_of_the_practical_scales():
    """docs/formulas/byzantine.md#practical-scales (there 4 seeds): the blind first episode, and two pairs of scales."""
    horizon, agents, window = 2000, 10, 40
    theta, hits = np.full(4, 0.5), np.zeros((50, agents), bool)
    hits[:, :2] = True
    rng = np.random.default_rng(0)
    x = rng.normal(size=(horizon, agents, 10, 4))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    noise = 0.5 * rng.normal(size=(horizon, agents))
    reward = lambda t, i, arm: x[t - 1, i, arm] @ theta + noise[t - 1, i]
    for ridge_scale, radius_scale, total in ((0.1, 0.03, 245), (0.01, 0.1, 2876)):
        c = byz.Constants(
            agents, 4, horizon, window, corruption_bound=0.2, ridge_scale=ridge_scale, radius_scale=radius_scale
        )
        attack = attacks.byzantine("target", 1.0, window, theta)
        run = byz.byzantine_ucb(x, reward, theta, c, iterations=8, hits=hits, attack=attack)
        assert run.regret[window - 1] == pytest.approx(238, rel=0.05)
        assert run.regret[-1] == pytest.approx(total, rel=0.05)


def play(ref, attack, name, seed):
    """Three runs that together touch every part."""
    x, reward = world(seed, 0.2, bounded=True)
    c = ref.Constants(**LIMITS, corruption_bound=0.2, radius_scale=0.3)
    if name == "tree":
        c = c._replace(privacy="tree", epsilon=8.0, constants="dp", ridge_scale=1e-4)
        return ref.byzantine_ucb(x, reward, THETA, c, node=nodes(seed), mechanism_scale=0.05)
    if name == "median":
        forge = attack.byzantine("target", 0.8, L, THETA)
        return ref.byzantine_ucb(x, reward, THETA, c, hits=masks(0.2), attack=forge)
    forge = attack.byzantine(name, 1.5, L, THETA)
    return ref.byzantine_ucb(x, reward, THETA, c, aggregate="mean", hits=masks(0.2), attack=forge)


PLANTED = [
    ("median", byz, "return c.radius_scale * (beta", "return c.radius_scale * (2 * beta"),
    ("median", byz, "math.sqrt((k - 1) * L * d * iota)", "math.sqrt(k * L * d * iota)"),
    ("median", byz, "first * math.sqrt(k))", "first * math.sqrt(k + 3))"),
    ("median", byz, "if k < count:", "if k > 1:"),
    ("median", byz, "self.vectors = self.grams + grams, self.vectors + vectors", "self.vectors = grams, vectors"),
    ("tree", privacy, "end += 1 << level", "end += 1"),
    ("tree", privacy, "return nodes\n", "return nodes[:-1] or nodes\n"),
    ("tree", privacy, "+ np.swapaxes(raw, -1, -2)) / math.sqrt(2)", "+ np.swapaxes(raw, -1, -2)) / 2"),
    ("tree", privacy, "return math.sqrt(6 * m) * window", "return math.sqrt(3 * m) * window"),
    ("tree", byz, "48 * iota", "24 * iota"),
    ("alie", attacks, ".std(axis=0)", ".std(axis=0, ddof=1)"),
    ("target", attacks, "matrices[~hit], vectors[~hit]", "matrices, vectors"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "module", "old", "new"), PLANTED, ids=[f"{p[0]}: {p[2]}" for p in PLANTED])
def test_a_planted_error_forks_some_path(name, module, old, new, monkeypatch):
    right = [play(byz, attacks, name, s).actions for s in range(6)]
    wrong = planted(module, old, new)
    if module is privacy:
        monkeypatch.setattr(byz, "privacy", wrong)
    ref, attack = wrong if module is byz else byz, wrong if module is attacks else attacks
    assert any(not np.array_equal(a, play(ref, attack, name, s).actions) for s, a in enumerate(right))


def test_the_last_message_is_never_used():
    """One that is, is noticed: the server would hold K messages."""
    x, reward = world(7)
    for ref, extra in ((byz, 0), (planted(byz, "if k < count:", "if k <= count:"), 1)):  # fmt: skip
        learned = []
        c = ref.Constants(**LIMITS)
        server = ref.Server(c, [ref.Aggregator("mean", 0)] * 2)
        learn = server.learn
        server.learn = lambda *pair, learn=learn, learned=learned: (learned.append(1), learn(*pair))
        run = ref.play_episodes(x, reward, THETA, L, server)
        assert len(learned) == len(run.policies) - 1 + extra == 11 + extra
    alone = byz.byzantine_ucb(x, reward, THETA, case(window=T))  # K = 1: blind
    assert (alone.actions == 0).all() and not alone.policies[0][0].estimate.any()

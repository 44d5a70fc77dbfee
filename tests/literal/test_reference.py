"""Self checks of the literal references: hand-computed points, exact laws, planted errors that must be caught."""

import math

import numpy as np
import pytest
from reference import adversarial as adv
from reference import federated as fed
from reference import linear as lin
from reference import stochastic as sto
from scipy.optimize import brentq
from scipy.stats import laplace as laplace_law


def standard_error_distance(values, expected):
    values = np.asarray(values, float)
    return abs(values.mean() - expected) / (values.std(ddof=1) / math.sqrt(len(values)))


def sphere(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


# ---------------------------------------------------------------- adversarial: tunings


def test_window_guard():
    assert [adv.window(e) for e in (1.0, 0.5, 0.3, 0.07, 1 / 49, 0.01)] == [1, 2, 4, 15, 49, 100]
    assert all(adv.window(1 / n) == n for n in range(1, 2000))
    assert all(adv.window(float(np.float32(1 / n))) == n for n in range(1, 2000))
    assert math.ceil(1 / (1 / 49)) == 50  # what the guard is for
    assert adv.window(1 / (49 + 1e-3)) == 50


def test_tunings_at_hand_computed_points():
    np.testing.assert_allclose(adv.exp3_private_tuning(5, 20_000, 0.1), (2.936636e-4, 0.05409483), rtol=1e-6)
    eta, mixing = adv.exp3_general_tuning(4, 1000, 2.0)
    assert eta == pytest.approx(2.509038e-4, rel=1e-6)
    assert mixing == pytest.approx(4 * eta * 2.0 * 4 * 8.29404964, rel=1e-8)
    assert adv.exp3_general_tuning(4, 1000, 0.5)[0] == pytest.approx(7.087624e-4, rel=1e-6)  # max(lam^2, lam) = lam
    assert adv.exp3_general_tuning(4, 1000, 0.0) == (pytest.approx(math.sqrt(math.log(4) / 8000)), 0.0)
    eta, tries = adv.ftpl_private_tuning(4, 10_000, 0.1)
    assert (eta, tries) == (pytest.approx(5.522467e-4, rel=1e-6), 64)
    assert adv.ftpl_general_tuning(4, 1000, 1.0) == (pytest.approx(5.522467e-4, rel=1e-6), 64)
    assert adv.exp3_ix_tuning(4, 1000) == (pytest.approx(0.02632769, rel=1e-6), pytest.approx(0.01316384, rel=1e-6))
    assert adv.local_exp4_tuning(3, 7, 10_000, 0.5) == (
        pytest.approx(7.130903e-5, rel=1e-6),
        pytest.approx(0.01764291, rel=1e-6),
    )
    assert adv.htinf_tail_scale(1 + 1e-7) == math.sqrt(6)
    assert adv.htinf_tail_scale(2.0) == pytest.approx(math.sqrt(18))


def test_private_exp3_mixing_reaches_one_where_the_formula_says():
    num_arms = 7
    edge = 16 / 22 * num_arms * math.log(num_arms)  # mixing <= 1 iff epsilon T >= (16 / 22) K log K
    assert adv.exp3_private_tuning(num_arms, 10_000, 1.001 * edge / 10_000)[1] == pytest.approx(1, rel=1e-3)
    with pytest.raises(ValueError, match="mixing"):
        adv.exp3_private_tuning(num_arms, 10_000, 0.999 * edge / 10_000)


def test_batched_exp4_tuning():
    args = (3, 4, 10**6, 0.01, 1e-3)
    assert adv.batched_exp4_tuning(*args, check=False)[1] == pytest.approx(1.03, abs=0.005)
    with pytest.raises(ValueError, match="horizon"):
        adv.batched_exp4_tuning(*args)
    eta, mixing, tau, scale = adv.batched_exp4_tuning(3, 4, 10**12, 0.5, 1e-3)
    assert mixing == pytest.approx(3 * eta, rel=1e-3)  # the first branch equals eta K before rounding
    assert scale == pytest.approx(3 * 3 * math.sqrt(4 * math.log(1000)) / (mixing * tau * 0.5))
    printed = adv.batched_exp4_tuning(3, 4, 10**12, 0.5, 1e-3, mixing_rule="printed")[1]
    assert printed < mixing


# ---------------------------------------------------------------- adversarial: bases


def test_sampling_is_the_inverse_cdf():
    p = [0.25, 0.5, 0.25]
    assert [adv.sample(p, u) for u in (0.0, 0.2499, 0.25, 0.7499, 0.75, 0.999999)] == [0, 0, 1, 1, 2, 2]
    assert adv.sample([0.3, 0.3], 0.9) == 1  # capped


def test_exp3_steps_by_hand():
    base = adv.Exp3(2, learning_rate=math.log(2), mixing=0.0)
    assert base.act(1, 0.3) == 0
    base.update(0.5)  # weight 0: exp(-log 2 * 0.5 / 0.5) = 1 / 2
    np.testing.assert_allclose(base.probabilities(), (1 / 3, 2 / 3))
    base.mixing = 0.1
    np.testing.assert_allclose(base.probabilities(), (0.35, 0.65))
    assert base.act(2, 0.34) == 0
    base.update(-0.35)  # divides by the mixed probability; a negative loss raises the weight back to 1
    np.testing.assert_allclose(base.probabilities(), (0.5, 0.5))
    base = adv.Exp3IX(2, learning_rate=math.log(2), mixing=0.5)
    base.act(1, 0.9)
    base.update(1.0)  # Lhat = 1 / (0.5 + 0.5)
    np.testing.assert_allclose(base.probabilities(), (2 / 3, 1 / 3))


def exact_exp3_plays(losses, eta, mixing, weights=(1.0, 1.0), t=0):
    """E[plays of arm 0] by enumeration of all action sequences, multiplicative weights."""
    if t == len(losses):
        return 0.0
    total = 0.0
    for arm in (0, 1):
        p = (1 - mixing) * weights[arm] / sum(weights) + mixing / 2
        w = list(weights)
        w[arm] *= math.exp(-eta * losses[t][arm] / p)
        total += p * ((arm == 0) + exact_exp3_plays(losses, eta, mixing, w, t + 1))
    return total


def test_exp3_law_matches_enumeration_and_a_doubled_step_does_not():
    losses = np.array([[0.2, 0.9], [0.1, 0.4], [0.6, 0.8], [0.0, 0.7], [0.3, 0.5], [0.1, 1.0]])
    exact = exact_exp3_plays(losses, 0.3, 0.1)
    rng = np.random.default_rng(0)
    uniforms = rng.random((1500, 6))

    def plays(eta, shift=0):
        rows = np.roll(losses, shift, axis=0)
        return [np.sum(adv.exp3(rows, u, learning_rate=eta, mixing=0.1) == 0) for u in uniforms]

    assert standard_error_distance(plays(0.3), exact) < 4
    assert standard_error_distance(plays(0.6), exact) > 4


def test_tsallis_normaliser_and_optimality():
    rng = np.random.default_rng(1)
    for alpha in (1.1, 1.5, 2.0):
        for num_arms in (2, 10, 300):
            total = rng.exponential(30.0, num_arms)
            step = 2.5
            x = adv.tsallis_probabilities(total, step, alpha)
            assert x.sum() == pytest.approx(1, abs=1e-12)
            # stationarity: Lhat_i - s x_i^(-(alpha - 1) / alpha) is the same constant for all arms
            constant = total - step * x ** (-(alpha - 1) / alpha)
            assert np.ptp(constant) < 1e-9 * (1 + abs(constant).max())
    x = adv.tsallis_probabilities([0.0, 3.0], math.sqrt(2))
    root = brentq(lambda c: 2 / c**2 + 2 / (3 - c) ** 2 - 1, -10, -1e-3)
    np.testing.assert_allclose(x, (2 / root**2, 2 / (3 - root) ** 2), rtol=1e-10)


def test_htinf_constants_time_and_skip():
    assert adv.skip_constant(2.0) == pytest.approx(0.2062995, abs=5e-8)
    assert adv.skip_constant(2.0) == pytest.approx(adv.skip_constant(2 - 1e-9), abs=1e-7)
    base = adv.Htinf(10)
    np.testing.assert_allclose(base.probabilities(), 0.1)
    r1 = base.threshold(0.1)
    assert r1 == pytest.approx(0.16, abs=0.0005)
    base.act(1, 0.05)
    base.update(1.01 * r1)  # skipped, but the clock advances
    assert (base.t, base.num_skipped, base.total.max()) == (2, 1, 0.0)
    assert base.threshold(0.1) == pytest.approx(r1 * math.sqrt(2))
    base.act(2, 0.05)
    base.update(1.4 * r1)
    assert base.num_skipped == 1
    assert base.total[0] == pytest.approx(14 * r1)
    np.testing.assert_allclose(base.probabilities(), adv.tsallis_probabilities(base.total, math.sqrt(18)))
    negative = adv.Htinf(10)
    negative.act(1, 0.05)
    negative.update(-1.01 * r1)
    assert negative.num_skipped == 1


def test_tsallis_inf_clock_starts_at_one():
    base = adv.TsallisInf(2)
    base.act(1, 0.2)
    base.update(1.0)

    def law(t):  # Lhat = (2, 0): t / (2 - c)^2 + t / c^2 = 1
        root = brentq(lambda c: t / (2 - c) ** 2 + t / c**2 - 1, -50, -1e-3)
        return t / (2 - root) ** 2

    assert base.probabilities()[0] == pytest.approx(law(2), rel=1e-9)
    assert abs(law(2) - law(1)) > 0.01  # an off-by-one in t would be seen
    assert abs(law(2) - law(3)) > 0.01


def test_ftpl_probability_closed_form_and_total():
    for gap in (0.0, 0.3, 2.0, 9.0, 25.0):
        p = math.exp(-gap) * (0.5 + gap / 4)  # P(X - Y > gap), X and Y standard Laplace
        assert adv.laplace_argmin_probability(0, [gap / 0.1, 0.0], 0.1) == pytest.approx(p, rel=1e-8)
        assert adv.laplace_argmin_probability(1, [gap / 0.1, 0.0], 0.1) == pytest.approx(1 - p, rel=1e-8)
    total = [3.0, 0.0, 14.0, 1.0, 1.0]
    law = [adv.laplace_argmin_probability(i, total, 0.7) for i in range(5)]
    assert sum(law) == pytest.approx(1, abs=1e-9)
    noise = laplace_law.rvs(size=(40_000, 5), random_state=2)
    share = np.bincount(np.argmin(np.array(total) + noise / 0.7, axis=1), minlength=5) / len(noise)
    assert np.all(np.abs(share - law) < 4 * np.sqrt(np.array(law) / len(noise)) + 1e-4)


def test_ftpl_tries():
    p, tries = 0.15, 12
    grid = (np.arange(50_000) + 0.5) / 50_000
    cap = np.mean([adv.geometric_tries(p, u, tries) for u in grid])
    zero = np.mean([adv.geometric_tries(p, u, tries, "zero") for u in grid])
    assert cap == pytest.approx((1 - (1 - p) ** tries) / p, rel=1e-3)
    assert zero == pytest.approx(sum(m * p * (1 - p) ** (m - 1) for m in range(1, tries + 1)), rel=1e-3)
    assert [adv.geometric_tries(q, 0.5, 9) for q in (0.0, 1.0, 1.1)] == [9, 1, 1]
    assert adv.geometric_tries(0.0, 0.5, 9, "zero") == 0
    for on_fail, last in (("cap", 3), ("zero", 0)):
        base = adv.Ftpl(2, learning_rate=1.0, tries=3, on_fail=on_fail)
        assert base.act(1, [-1.0, 0.0]) == 0
        base.update(0.5, np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]))
        assert base.total[0] == 1.0  # second try matches
        assert base.act(2, [-3.0, 0.0]) == 0
        base.update(0.5, np.ones((3, 2)) * [1.0, 0.0])
        assert base.total[0] == 1.0 + 0.5 * last


def test_ftpl_literal_and_quadrature_agree_in_law():
    rng = np.random.default_rng(3)
    counts = {"literal": [], "uniform": []}
    for _ in range(400):
        for mode, values in counts.items():
            base = adv.Ftpl(3, learning_rate=0.5, tries=6)
            base.total = np.array([1.0, 0.0, 2.0])
            base.arm = 0
            base.update(1.0, rng.laplace(size=(6, 3)) if mode == "literal" else rng.random())
            values.append(base.total[0] - 1.0)
    p = adv.laplace_argmin_probability(0, [1.0, 0.0, 2.0], 0.5)
    expected = (1 - (1 - p) ** 6) / p
    for values in counts.values():
        assert standard_error_distance(values, expected) < 4


# ---------------------------------------------------------------- adversarial: conversions and experts


class Script:
    """Plays `j mod K` and remembers what it was fed."""

    def __init__(self, num_arms):
        self.num_arms, self.acts, self.fed = num_arms, [], []

    def act(self, j, draw):
        self.acts.append((j, draw))
        return j % self.num_arms

    def update(self, x, draw=None):
        self.fed.append(x)


def test_conversion_by_hand_with_a_partial_last_batch():
    losses = np.arange(14.0).reshape(7, 2) / 14
    base = Script(2)
    actions, given = adv.private_batched(base, losses, [10, 20, 30], [1.0, -2.0], window=3, noise_scale=0.5)
    assert actions.tolist() == [1, 1, 1, 0, 0, 0, 1]
    assert base.acts == [(1, 10), (2, 20), (3, 30)]
    np.testing.assert_allclose(given, [3 / 14 + 0.5, 8 / 14 - 1.0])
    assert base.fed == given.tolist()


def test_noise_off_and_window_one_is_the_base_itself():
    rng = np.random.default_rng(4)
    losses, uniforms = rng.random((60, 4)), rng.random(60)
    plain = adv.exp3(losses, uniforms, learning_rate=0.2, mixing=0.1)
    base = adv.Exp3(4, learning_rate=0.2, mixing=0.1)
    converted = adv.private_batched(base, losses, uniforms, None, window=1, noise_scale=0.0)[0]
    np.testing.assert_array_equal(plain, converted)
    np.testing.assert_array_equal(
        plain, adv.ldp_exp3(losses, uniforms, None, epsilon=math.inf, learning_rate=0.2, mixing=0.1)
    )
    noise = rng.laplace(size=60)
    noisy = adv.ldp_exp3(losses, uniforms, noise, epsilon=0.5, learning_rate=0.2, mixing=0.1)
    assert np.any(noisy != plain)


def test_experts_that_are_the_arms_reduce_to_the_arms():
    rng = np.random.default_rng(5)
    losses, uniforms, noise = rng.random((50, 4)), rng.random(50), rng.laplace(size=50)
    advice = np.broadcast_to(np.eye(4), (50, 4, 4))
    plain = adv.ldp_exp3(losses, uniforms, noise, epsilon=2.0, learning_rate=0.05, mixing=0.1)
    local = adv.local_exp4(advice, losses, uniforms, noise, epsilon=2.0, learning_rate=0.05, mixing=0.1)
    np.testing.assert_array_equal(plain, local)
    clean = adv.exp4(advice, losses, uniforms, learning_rate=0.05, mixing=0.1)
    batched = adv.batched_exp4(
        advice, losses, uniforms, None, window=1, learning_rate=0.05, mixing=0.1, noise_scale=0.0
    )
    np.testing.assert_array_equal(clean, batched)

    def base():
        return adv.Exp3(4, learning_rate=0.05, mixing=0.1)

    direct, given = adv.private_batched(base(), losses, uniforms, noise, window=4, noise_scale=0.3)
    experts, actions, meta = adv.bandit_to_experts(
        base(), advice, losses, uniforms, rng.random(50), noise, window=4, noise_scale=0.3
    )
    np.testing.assert_array_equal(direct, actions)
    np.testing.assert_array_equal(given, meta)
    np.testing.assert_array_equal(experts, actions[::4])
    assert adv.regret(losses, actions) == pytest.approx(adv.expert_regret(losses, advice, actions))


def test_batched_exp4_by_hand():
    advice = np.array([[[1.0, 0.0], [0.5, 0.5]]] * 3)
    losses = np.array([[0.4, 0.0], [0.0, 0.2], [0.0, 0.0]])
    # P = (1/2, 1/2), Q = (3/4, 1/4) in both plays of the batch, although weights would have moved after play 1
    acc = np.array([1.0, 0.5]) * 0.4 / 0.75 + np.array([0.0, 0.5]) * 0.2 / 0.25
    log_weights = -2.0 * (acc / 2 + 0.1 * np.array([1.0, -1.0]))
    p = np.exp(log_weights) / np.exp(log_weights).sum()
    q0 = p[0] + p[1] / 2
    for shift, arm in ((-1e-9, 0), (1e-9, 1)):
        actions = adv.batched_exp4(
            advice,
            losses,
            [0.7, 0.8, q0 + shift],
            [[1.0, -1.0]],
            window=2,
            learning_rate=2.0,
            mixing=0.0,
            noise_scale=0.1,
        )
        assert actions.tolist() == [0, 1, arm]


def test_uniform_regret_and_learners_beat_it():
    horizon, num_arms, gap = 300, 4, 0.4
    losses = adv.fixed_gap(horizon, num_arms, best=2, gap=gap)
    expected = gap * horizon * (num_arms - 1) / num_arms
    rng = np.random.default_rng(6)

    def regrets(factory, runs, perturb=False):
        out = []
        for _ in range(runs):
            choices = rng.laplace(size=(horizon, num_arms)) if perturb else rng.random(horizon)
            actions, _ = adv.private_batched(
                factory(), losses, choices, None, window=1, noise_scale=0.0, update_draws=rng.random(horizon)
            )
            out.append(adv.regret(losses, actions))
        return out

    uniform = regrets(lambda: adv.Uniform(num_arms), 200)
    assert standard_error_distance(uniform, expected) < 4
    assert standard_error_distance(uniform, expected * 1.05) > 4
    eta = adv.exp3_tuning(num_arms, horizon)[0]
    ix = adv.exp3_ix_tuning(num_arms, horizon)
    for factory, runs in (
        (lambda: adv.Exp3(num_arms, learning_rate=eta), 20),
        (lambda: adv.Exp3IX(num_arms, learning_rate=ix[0], mixing=ix[1]), 20),
        (lambda: adv.TsallisInf(num_arms), 10),
        (lambda: adv.Htinf(num_arms), 10),
    ):
        assert np.mean(regrets(factory, runs)) < 0.75 * expected
    losses = losses[:120]
    horizon, expected = 120, gap * 120 * 3 / 4
    ftpl = regrets(lambda: adv.Ftpl(num_arms, learning_rate=0.15, tries=22), 3, perturb=True)
    assert np.mean(ftpl) < 0.75 * expected


def test_private_conversion_learns_and_keeps_its_noise_scale():
    horizon, epsilon, losses = 3000, 0.2, adv.fixed_gap(3000, 3, gap=0.5)
    tau = adv.window(epsilon)
    rng = np.random.default_rng(7)
    regrets, residuals = [], []
    for _ in range(4):
        rounds = horizon // tau
        actions, given = adv.private_batched(
            adv.Htinf(3),
            losses,
            rng.random(rounds),
            rng.laplace(size=rounds),
            window=tau,
            noise_scale=1 / (tau * epsilon),
        )
        regrets.append(adv.regret(losses, actions))
        residuals.extend(given - [losses[tau * j][actions[tau * j]] for j in range(rounds)])
    assert np.mean(regrets) < 0.75 * 0.5 * horizon * 2 / 3
    assert standard_error_distance(np.abs(residuals), 1.0) < 4  # E|Lap(1)| = 1
    assert standard_error_distance(np.abs(residuals), 1.2) > 4


def test_loss_environments():
    losses = adv.switching(10, 3, cuts=[0, 4, 7], arms=[1, 0, 2], base=0.6, gap=0.4)
    assert np.argmin(losses, axis=1).tolist() == [1, 1, 1, 1, 0, 0, 0, 2, 2, 2]
    assert np.allclose(np.sort(losses, axis=1), [0.2, 0.6, 0.6])
    period, num_arms = 7.3, 4
    table = adv.sinusoid(60, num_arms, period=period)
    assert 0 <= table.min() <= table.max() <= 1
    t0, n = 11, 23  # plays t0 .. t0 + n - 1
    for i in range(num_arms):
        wave = math.sin(math.pi * n / period) / math.sin(math.pi / period)
        wave *= math.sin(2 * math.pi * ((t0 + (n - 1) / 2) / period + i / num_arms))
        closed = n * (0.5 + 0.2 * i / (num_arms - 1)) + 0.3 * wave
        assert table[t0 - 1 : t0 - 1 + n, i].sum() == pytest.approx(closed, rel=1e-12)
    assert adv.lemma51(4, change=2).tolist() == [[0.5, 1.0]] * 4
    assert adv.lemma51(4, change=2, primed=True).tolist() == [[0.5, 1.0]] * 2 + [[0.5, 0.0]] * 2
    assert adv.bernoulli([0.2, 0.8], [[0.1, 0.8], [0.2, 0.79]]).tolist() == [[1, 0], [0, 1]]
    advice = adv.rotating_advice(7, 5, 3, spread=0.3, rotation=2)
    np.testing.assert_allclose(advice.sum(axis=2), 1.0)
    assert advice[0][0][0] == pytest.approx(0.8)
    assert np.argmax(advice[:, 1], axis=1).tolist() == [1] * 7
    assert np.argmax(advice[:, 4], axis=1).tolist() == [1, 1, 2, 2, 0, 0, 1]


# ---------------------------------------------------------------- stochastic


def violations(actions, rewards, num_arms, scale, shift=0):
    """Plays whose arm has not the largest index, recomputed from the history; `shift` misplaces t."""
    bad = 0
    for t in range(num_arms + 1, len(actions) + 1):
        past = actions[: t - 1]
        index = [
            np.mean([rewards[s][a] for s in range(t - 1) if past[s] == a])
            + scale * math.sqrt(2 * math.log(t + shift) / np.sum(past == a))
            for a in range(num_arms)
        ]
        bad += index[actions[t - 1]] < max(index) - 1e-9
    return bad


def test_ucb1_by_hand_and_by_certificate():
    path = sto.ucb1(lambda t, arm: 1.0 if arm == 0 else 0.0, 2, 8)
    assert path.tolist() == [0, 1, 0, 0, 0, 0, 1, 0]
    rng = np.random.default_rng(8)
    rewards = rng.random((250, 3))
    for scale in (1.0, 0.3):
        actions = sto.ucb1(lambda t, arm: rewards[t - 1][arm], 3, 250, scale)
        assert actions[:3].tolist() == [0, 1, 2]
        assert violations(actions, rewards, 3, scale) == 0
        assert violations(actions, rewards, 3, 2 * scale) > 0
    misplaced = {0: 0, -1: 0, 1: 0}
    for _ in range(40):
        rewards = rng.random((40, 4))
        early = sto.ucb1(lambda t, arm, rewards=rewards: rewards[t - 1][arm], 4, 40)
        for shift in misplaced:
            misplaced[shift] += violations(early, rewards, 4, 1.0, shift)
    assert misplaced[0] == 0
    assert min(misplaced[-1], misplaced[1]) > 0  # an off-by-one in t is seen
    assert sto.ucb1(lambda t, arm: 0.5, 3, 6).tolist() == [0, 1, 2, 0, 1, 2]  # ties: first index
    bad = sto.ucb1(lambda t, arm: math.inf if arm == 1 else 0.5, 2, 40)
    assert np.sum(bad == 0) > np.sum(bad == 1) > 0


def test_successive_elimination_by_hand():
    horizon, sigma = 1000, 0.5
    actions = sto.successive_elimination(lambda t, arm: float(arm == 1), 2, horizon, sigma)
    # arm 0 goes in the first round n with 1 > 2 sigma sqrt(2 ln(4 * 2 * (2 n)^2 * T) / n)
    last = next(n for n in range(1, 500) if n > 8 * sigma**2 * math.log(8 * (2 * n) ** 2 * horizon))
    assert (np.sum(actions == 0), last) == (35, 35)
    assert actions[:4].tolist() == [0, 1, 0, 1]
    assert np.all(actions[70:] == 1)
    rounds = sto.successive_elimination(lambda t, arm: float(arm == 1), 2, horizon, sigma, clock="rounds")
    assert np.sum(rounds == 0) == 32
    assert len(sto.successive_elimination(lambda t, arm: 0.0, 3, 10)) == 10


def test_stochastic_learners_beat_uniform():
    means = np.array([0.2, 0.8, 0.3])
    rng = np.random.default_rng(9)
    for algorithm in (sto.ucb1, lambda r, k, n: sto.successive_elimination(r, k, n, noise_scale=0.25)):
        lost = []
        for _ in range(5):
            rewards = rng.random((1500, 3)) < means
            actions = algorithm(lambda t, arm, rewards=rewards: float(rewards[t - 1][arm]), 3, 1500)
            lost.append(np.sum(means.max() - means[actions]))
        assert np.mean(lost) < 0.5 * 1500 * (0.8 - means.mean())


# ---------------------------------------------------------------- linear


def test_linucb_width_and_first_plays():
    width = lin.linucb_width(9, 3, noise_scale=0.5, failure_prob=0.1, theta_bound=2.0, ridge=4.0, feature_bound=2.0)
    assert width == pytest.approx(4 + 0.5 * math.sqrt(3 * math.log(100)))
    contexts = np.broadcast_to(np.array([[1.0, 0.0], [0.0, 1.0]]), (4, 2, 2))

    def reward(t, arm):
        return 1.0 if arm == 1 else 0.0

    # play 1 ties: arm 0. Play 2: w / sqrt 2 against w: arm 1. Play 3: 0 + w / sqrt 2 against 1/2 + w / sqrt 2.
    assert lin.linucb_theory(contexts, reward).tolist()[:3] == [0, 1, 1]


def linucb_certificate(contexts, actions, rewards, failure_prob, first):
    """Largest shortfall of a played arm's index, from a least-squares solve of the augmented system."""
    worst = 0.0
    dim = contexts.shape[2]
    for t in range(1, len(actions) + 1):
        played = np.array([contexts[s][actions[s]] for s in range(t - 1)]).reshape(-1, dim)
        design = np.vstack([played, np.eye(dim)])
        target = np.concatenate([rewards[: t - 1], np.zeros(dim)])
        estimate = np.linalg.lstsq(design, target, rcond=None)[0]
        r = np.linalg.qr(design)[1]
        width = 1 + 0.5 * math.sqrt(dim * math.log((1 + t - 1 + first) / failure_prob))
        index = [x @ estimate + width * np.linalg.norm(np.linalg.solve(r.T, x)) for x in contexts[t - 1]]
        worst = max(worst, max(index) - index[actions[t - 1]])
    return worst


def test_linucb_theory_certificate_and_regret():
    rng = np.random.default_rng(10)
    theta = np.array([0.6, -0.6, 0.4])

    def run(horizon, num_arms, first):
        contexts = sphere(rng, horizon, num_arms, 3)
        noise = 0.1 * rng.normal(size=horizon)
        rewards = contexts @ theta + noise[:, None]
        actions = lin.linucb_theory(contexts, lambda t, arm: rewards[t - 1][arm], failure_prob=0.1, first=first)
        return contexts, actions, rewards[np.arange(horizon), actions]

    for first in (0, 1):
        short = [run(8, 400, first) for _ in range(25)]
        assert max(linucb_certificate(*r, 0.1, first) for r in short) < 1e-8
        assert max(linucb_certificate(*r, 0.1, 1 - first) for r in short) > 1e-4  # an off-by-one in t is seen
    contexts, actions, _ = run(200, 12, 1)
    means = contexts @ theta
    best = means.max(axis=1)
    assert np.sum(best - means[np.arange(200), actions]) < 0.5 * np.sum(best - means.mean(axis=1))


def test_design_known_optima_and_identities():
    canonical = lin.design(np.eye(4), slack=0.0)
    np.testing.assert_allclose(canonical.weights, 0.25)
    assert (canonical.max_leverage, canonical.rank) == (pytest.approx(4), 4)
    simplex = np.eye(4) - 0.25  # 4 points spanning 3 dimensions
    tight = lin.design(simplex, slack=1e-3, max_steps=10_000)
    assert tight.rank == 3
    np.testing.assert_allclose(tight.weights, 0.25, atol=0.01)
    assert tight.max_leverage <= 3 * 1.001 * (1 + 1e-9)
    rng = np.random.default_rng(11)
    for num_arms, dim in ((20, 5), (50, 10)):
        points = rng.normal(size=(num_arms, dim))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        for slack in (1.0, 0.1):
            found = lin.design(points, slack=slack)
            moment = points.T @ np.diag(found.weights) @ points
            leverages = np.einsum("ad,de,ae->a", points, np.linalg.pinv(moment), points)
            assert found.weights.sum() == pytest.approx(1)
            assert found.weights @ leverages == pytest.approx(dim)
            assert leverages.max() == pytest.approx(found.max_leverage)
            assert dim <= found.max_leverage <= (1 + slack) * dim * (1 + 1e-9)
            assert np.sum(found.weights > 0) <= dim + found.num_steps
    mask = np.array([True, False, True, False])
    np.testing.assert_allclose(lin.design(np.eye(4), mask).weights, [0.5, 0, 0.5, 0])
    assert lin.design(np.zeros((3, 2))).rank == 0
    doubled = lin.design(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]))
    np.testing.assert_allclose(doubled.weights, [0.5, 0, 0.5])  # lowest index on ties


def test_design_step_by_hand():
    # start: arm 2 (longest), then arm 0 (ties with arm 1, lowest); e2 = z / 0.9 - e1 has leverage 2 (1 + 1 / 0.81)
    points = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.9]])
    np.testing.assert_allclose(lin.design(points, max_steps=0).weights, (0.5, 0.0, 0.5))
    assert lin.design(points, max_steps=0).max_leverage == pytest.approx(4.469136, rel=1e-6)
    found = lin.design(points, slack=0.0, max_steps=1)
    np.testing.assert_allclose(found.weights, (0.3220641, 0.3558719, 0.3220641), rtol=1e-6)
    assert lin.design(points).num_steps == 1  # 4.47 exceeds 2 d

    def log_det(s):  # the step is an exact line search
        return np.linalg.slogdet(points.T @ np.diag([(1 - s) / 2, s, (1 - s) / 2]) @ points)[1]

    assert log_det(0.3558719) > max(log_det(0.3548719), log_det(0.3568719))


def test_counts_round_up_with_a_guard():
    assert lin.counts([0.25, 0.75, 0.0], 8.0).tolist() == [2, 6, 0]
    assert lin.counts([0.25, 0.75, 0.0], 8.0 + 1e-10).tolist() == [2, 6, 0]
    assert lin.counts([0.25, 0.75, 0.0], 8.01).tolist() == [3, 7, 0]


def test_robust_elimination_by_hand():
    horizon, batches, sigma = 10_000, 4, 0.5  # q = 10: 5 + 5 pulls, then 50 + 50, then 500 + 500
    played = []

    def reward(t, arm):
        played.append(t)
        return 0.85 if arm == 1 else 0.15

    run = lin.robust_elimination_m1(np.eye(2), reward, horizon=horizon, num_batches=batches, noise_scale=sigma)
    log = math.log(2 * 2 * batches / 0.05)
    np.testing.assert_allclose(run.radii[:2], [0.5 * sigma * math.sqrt(2 * log / n) for n in (5, 50)])
    assert [c.tolist() for c in run.counts] == [[5, 5], [50, 50], [0, 1000]]
    assert run.actions[:10].tolist() == [0] * 5 + [1] * 5
    assert run.active == [[0, 1], [1], [1]]  # 2 gamma: 0.759, then 0.240, against a gap of 0.7
    np.testing.assert_allclose(run.estimates[0], (0.15, 0.85))
    assert len(run.actions) == horizon
    assert played == list(range(1, 1111))
    assert np.sum(run.actions == 0) == 55


def test_robust_elimination_edges():
    with pytest.raises(ValueError, match="zero"):
        lin.robust_elimination_m1(np.zeros((3, 2)), None, horizon=100, num_batches=2)
    with pytest.raises(ValueError, match="exceed 2"):
        lin.robust_elimination_m1(np.eye(2), None, horizon=100, num_batches=7)
    broken = lin.robust_elimination_m1(np.eye(2), lambda t, arm: math.nan, horizon=100, num_batches=2)
    assert broken.active == [[0, 1]]
    assert not broken.estimates[0].any()


def test_robust_elimination_estimates_are_least_squares_and_learn():
    rng = np.random.default_rng(12)
    points = rng.normal(size=(15, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    theta = np.array([0.5, 0.5, -0.5])
    means = points @ theta
    lost, errors = [], []
    for _ in range(12):
        record = {}

        def reward(t, arm, record=record):
            record[t] = (arm, means[arm] + 0.3 * rng.normal())
            return record[t][1]

        run = lin.robust_elimination_m1(points, reward, horizon=3000, num_batches=4, noise_scale=0.3)
        n = run.counts[0].sum()
        rows = np.array([points[record[t][0]] for t in range(1, n + 1)])
        target = np.array([record[t][1] for t in range(1, n + 1)])
        np.testing.assert_allclose(run.estimates[0], np.linalg.lstsq(rows, target, rcond=None)[0], atol=1e-10)
        moment = rows.T @ rows
        errors.append((run.estimates[0] - theta) @ moment @ (run.estimates[0] - theta) / 0.3**2)
        lost.append(np.sum(means.max() - means[run.actions]))
    assert standard_error_distance(errors, 3.0) < 4  # chi-square with 3 degrees of freedom
    assert np.mean(lost) < 0.25 * 3000 * (means.max() - means.mean())


# ---------------------------------------------------------------- federated


def test_schedule_by_hand():
    # iota = log(128 N T / delta) = 4; L = 1, C = (2 - 0.4) / (1 - 0.4) = 8 / 3, sigma = 1, R = 0.5
    failure_prob = 128 * 9 * 100 / math.exp(4)
    plan = fed.schedule(
        2,
        window=1,
        num_agents=9,
        dim=4,
        horizon=100,
        corruption_bound=0.2,
        failure_prob=failure_prob,
        ridge_scale=0.5,
        radius_scale=0.1,
    )
    lam = [0.5 * 16 * 8 / 3, 0.5 * 16 * 8 / 3 * math.sqrt(2)]
    np.testing.assert_allclose(plan.ridge, lam)
    numerators = [0.0, 4 * math.sqrt(1 * 1 * 4 * 4) * 8 / 3 * 1.5]
    beta = [0.1 * (3 * math.sqrt(x * 4) + n / math.sqrt(x) + math.sqrt(16 / 9)) for x, n in zip(lam, numerators)]  # noqa: B905
    np.testing.assert_allclose(plan.radius, beta)
    wide = fed.schedule(3, window=10**6, num_agents=2, dim=2, horizon=10**7, ridge_scale=1.0)
    np.testing.assert_allclose(wide.ridge, 10**6)  # max(L, .)


def test_one_agent_alone_is_isolated_and_blind_first():
    rng = np.random.default_rng(13)
    contexts, noise, theta = sphere(rng, 43, 1, 5, 3), 0.3 * rng.normal(size=43), np.ones(3) / math.sqrt(3)

    def reward(t, agent, arm):
        return contexts[t - 1][agent][arm] @ theta + noise[t - 1]

    shared = fed.federated_ucb(contexts, reward, theta, window=5)
    alone = fed.isolated_linucb(contexts, reward, theta, window=5)
    np.testing.assert_array_equal(shared.actions, alone.actions)
    np.testing.assert_allclose(shared.regret, alone.regret)
    assert shared.actions[:5].tolist() == [[0]] * 5  # unit vectors tie while theta_1 = 0
    assert shared.estimates.shape == (9, 3)
    rows = np.array([contexts[t][0][shared.actions[t][0]] for t in range(40)])
    values = np.array([reward(t + 1, 0, shared.actions[t][0]) for t in range(40)])
    ridge = np.linalg.solve(rows.T @ rows + shared.ridge[8] * np.eye(3), rows.T @ values)
    np.testing.assert_allclose(shared.estimates[8], ridge, atol=1e-12)


def test_mean_is_ruined_by_the_target_attack_and_only_honest_regret_counts():
    rng = np.random.default_rng(14)
    horizon, num_agents = 150, 5
    contexts, theta = sphere(rng, horizon, num_agents, 4, 3), np.ones(3) / math.sqrt(3)
    noise = 0.3 * rng.normal(size=(horizon, num_agents))

    def reward(t, agent, arm):
        return contexts[t - 1][agent][arm] @ theta + noise[t - 1][agent]

    clean = fed.federated_ucb(contexts, reward, theta, window=5)
    hit = fed.federated_ucb(contexts, reward, theta, window=5, attacked=(0,), attack_scale=8.0)
    gone = fed.federated_ucb(contexts, reward, theta, window=5, attacked=np.zeros((30, num_agents), bool))
    np.testing.assert_array_equal(clean.actions, gone.actions)
    values = contexts @ theta
    uniform = np.sum(values.max(axis=2) - values.mean(axis=2))
    assert clean.regret[-1] < 0.4 * uniform
    assert hit.regret[-1] > uniform * 4 / 5  # worse than blind: theta_k points away from theta
    assert hit.estimates[-1] @ theta < 0 < clean.estimates[-1] @ theta
    counted = sum(
        values[t, i].max() - values[t, i, hit.actions[t, i]] for t in range(horizon) for i in range(1, num_agents)
    )
    assert hit.regret[-1] == pytest.approx(counted)
    alone = fed.isolated_linucb(contexts, reward, theta, window=5)
    assert clean.regret[-1] < alone.regret[-1] < 0.9 * uniform


def test_target_message_by_hand():
    # one play an episode; honest agents send x x' and x r, the attacker the mean Gram times -c theta
    theta = np.array([1.0, 0.0])
    contexts = np.array([[[[1.0, 0.0]], [[0.0, 1.0]], [[0.6, 0.8]]]] * 2)
    run = fed.federated_ucb(contexts, lambda t, i, a: 0.5, theta, window=1, attacked=(2,), attack_scale=3.0)
    honest = (np.diag([1.0, 0.0]) + np.diag([0.0, 1.0])) / 2
    gram = (2 * honest + honest) / 3
    moment = (np.array([0.5, 0.5]) + honest @ (-3.0 * theta)) / 3
    np.testing.assert_allclose(run.estimates[1], np.linalg.solve(gram + run.ridge[1] * np.eye(2), moment))


def test_server_checks():
    good = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(fed.receive(good, np.ones(2), 4)[0], good)
    for matrix, vector in ((np.array([[1.0, 0.1], [0.2, 1.0]]), np.ones(2)), (good, np.array([1.0, math.nan]))):
        zero = fed.receive(matrix, vector, 4)
        assert not zero[0].any()
        assert not zero[1].any()
    clamped = fed.receive(1e30 * good, 1e300 * np.ones(2), 4)
    assert np.linalg.norm(clamped[0]) == pytest.approx(4e4)
    assert np.linalg.norm(clamped[1]) == pytest.approx(4e4)
    values = np.linalg.eigvalsh(fed.floor_eigenvalues(np.diag([-3.0, 0.05, 2.0]), 0.1))
    np.testing.assert_allclose(values, (0.1, 0.1, 2.0))

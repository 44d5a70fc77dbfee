"""OnlineUCB: its constants by the tables of docs/formulas/ldp_contextual.md, its client, its estimate, its claim."""

import math
import warnings
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms.contextual.online_ucb import Message
from jaxbandits.random import Draws
from jaxbandits.sweeps.plan import plan

T, EPSILONS = 20_000, (0.2, 1.0, 10.0)
online_ucb = partial(jb.algorithms.online_ucb, num_arms=100, dim=5, horizon=T, delta=0.1)  # the paper's delta
noise = jb.theory.online_ucb_noise


def quiet(**arguments):
    """The algorithm without the warning that printed noise does not deliver."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return online_ucb(**arguments)


def cast(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float32), tree)


def test_noise():
    for calibration, private, expected in (
        ("paper", True, (22.475, 4.495, 0.4495)),
        ("reference", True, (8.971, 1.794, 0.1794)),
        ("exact", True, (5.141, 2.428, 0.630)),
        ("exact", False, (2.299, 1.086, 0.282)),
        ("paper", False, (11.238, 2.248, 0.2248)),
        ("reference", False, (8.971, 1.794, 0.1794)),
    ):
        for epsilon, sigma in zip(EPSILONS, expected, strict=True):
            params = quiet(epsilon=epsilon, calibration=calibration, private_features=private).params
            assert params.reward_noise == pytest.approx(sigma, rel=8e-4)
            assert params.feature_noise == (params.reward_noise if private else 0.0)


def test_gradient_bound():
    for calibration, kind, expected in (
        ("paper", "theory", (104711, 4376, 68.4)),
        ("paper", "practical", (5235, 242, 9.62)),
        ("reference", "practical", (880, 50.5, 5.76)),
    ):
        for epsilon, bound in zip(EPSILONS, expected, strict=True):
            made = quiet(epsilon=epsilon, calibration=calibration, gradient_bound=kind)
            assert made.params.gradient_bound == pytest.approx(bound, rel=2e-3)


def test_gradient_bound_with_public_features_and_with_perturbation():
    params = quiet(epsilon=1.0, calibration="paper", private_features=False, theta_bound=1.5).params
    assert params.gradient_bound == pytest.approx(2 * params.reward_noise + 2 * 1.5 + 2)
    s, D, extra, log = 1.7, 1.3, 0.4, 9.0
    linear = 2 * D * s + 2 * s + D * extra + extra
    square = 2 * D * extra**2 + 4 * D * extra * s + 2 * extra * s + 2 * D * s**2 + 2 * s**2 + D * s**2
    printed = 2 * math.sqrt(2 * log) * linear + 2 * log * square + 2 * D + 2
    found = jb.theory.online_ucb_gradient_bound(s, s, theta_bound=D, perturbation=extra, log=log)
    assert found == pytest.approx(printed)
    told = quiet(epsilon=1.0, gradient_bound="theory", failure_prob=0.05).params
    s, log = told.reward_noise, math.log(2 * T / 0.05)
    assert told.gradient_bound == pytest.approx(jb.theory.online_ucb_gradient_bound(s, s, log=log))


@pytest.mark.parametrize("calibration", ["exact", "paper", "reference"])
def test_scaled_width_depends_on_the_claim_only(calibration):
    widths = [quiet(epsilon=e, calibration=calibration).params.width for e in EPSILONS]
    assert_allclose(widths, (36.0, 8.98, 2.90), rtol=2e-3)


def test_theory_width():
    """Term by term, at Delta > 0; and nothing but exploration at epsilon = 1."""
    G, D, extra2, horizon, beta, epsilon, delta = 12.0, 1.2, 0.3, 500, 0.02, 2.0, 0.05
    curvature = 0.25 + extra2
    mu, R, log = 2 * curvature, 0.5, math.log(horizon / beta)
    m = (G**2 / curvature + G * D) * math.log(horizon)
    s = (G**2 / mu**2 + G * D / mu) * math.log(horizon) + G**2 / mu**2 * math.log(1 / beta)
    k = D * extra2 * log * math.sqrt(horizon * s)
    k += (R + D * math.sqrt(math.log(1 / delta)) / epsilon + D * math.sqrt(extra2)) ** 2 * log
    k += (math.log(1 / delta) / epsilon**2 + extra2) * log * s
    found = jb.theory.online_ucb_width(
        "theory", horizon, beta, epsilon=epsilon, delta=delta, theta_bound=D, perturbation=math.sqrt(extra2),
        gradient_bound=G, curvature=curvature,
    )  # fmt: skip
    assert found == pytest.approx(math.sqrt(m + k))
    assert quiet(epsilon=1.0, calibration="paper", width="theory").params.width > 1e3
    assert quiet(epsilon=math.inf, width="theory").params.width < 150


def test_what_printed_noise_delivers():
    for calibration, epsilon, true in (
        ("paper", 0.2, 0.0009), ("paper", 1.0, 0.0066), ("paper", 10.0, 0.608),
        ("reference", 0.2, 0.033), ("reference", 1.0, 0.220), ("reference", 10.0, 1.0),
    ):  # fmt: skip
        sigma = noise(epsilon, 0.1, calibration=calibration)
        assert jb.mechanisms.gaussian_delta(math.sqrt(5), sigma, epsilon) == pytest.approx(true, rel=0.06)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = online_ucb(epsilon=epsilon, calibration=calibration)
        assert made.guarantee.spend(made.params)[1] == 0.1
        if true <= 0.1:
            assert not caught
        else:
            assert len(caught) == 1 and issubclass(caught[0].category, UserWarning)
            assert f"delta = {jb.mechanisms.gaussian_delta(math.sqrt(5), sigma, epsilon):.3g}" in str(caught[0].message)


def test_the_reach_of_the_printed_noise():
    """Reference values of all three ranges; it is where the claim turns false, and unimodal in delta on [0, 1]."""
    reach, delivered = jb.theory.printed_noise_reach, jb.theory.printed_noise_delta
    assert reach(0.1, 1.0) == pytest.approx(4.356574, abs=1e-6)
    assert reach(1e-3) == pytest.approx(4.529889, abs=1e-6) and reach(1e-5, 2.0) == pytest.approx(0.364732, abs=1e-6)
    assert delivered(1.0, 1e-5, 2.0) == pytest.approx(3.736056e-05, rel=1e-6)
    assert delivered(10.0, 0.1) == pytest.approx(0.607584, abs=1e-6)
    # features in public, rewards of length 1, of length 2
    reaches = {0.1: [5.743, 4.357, 2.441], 1e-4: [7.991, 4.334, 0.7256], 1e-8: [9.374, 3.043, 0.0256]}
    for delta, expected in reaches.items():
        found = [reach(delta, length) for length in (0.0, 1.0, 2.0)]
        assert found == pytest.approx(expected, rel=2e-3)
        for epsilon, length in zip(found, (0.0, 1.0, 2.0), strict=True):
            assert delivered(epsilon, delta, length) == pytest.approx(delta, rel=1e-9)
            assert delivered(1.01 * epsilon, delta, length) > delta > delivered(0.99 * epsilon, delta, length)
    assert reach(1e-12, 2.0) > 0 == reach(1e-100, 2.0)
    deltas = np.geomspace(1e-8, 0.1, 40)
    rises = np.diff([reach(delta) for delta in deltas]) > 0
    top = int(np.argmin(rises))  # the first step down
    assert rises[:top].all() and not rises[top:].any() and 5e-3 < deltas[top] < 2e-2


def test_classic_formula_beyond_one_warns_where_it_happens_to_deliver():
    with pytest.warns(UserWarning, match=r"epsilon = 1\.5: its noise has delta = 0\.01"):
        online_ucb(epsilon=1.5, calibration="paper")


def spent(**arguments):
    made = quiet(**arguments)
    return made.guarantee.spend(made.params)[0]


@pytest.mark.parametrize("norm", [1.0, math.sqrt(2)])
@pytest.mark.parametrize("private", [True, False])
def test_exact_spends_the_claim(private, norm):
    for epsilon in EPSILONS:
        assert spent(epsilon=epsilon, private_features=private, feature_norm=norm) == pytest.approx(epsilon, rel=1e-9)


def test_what_the_others_spend():
    assert spent(epsilon=10.0, calibration="reference") == pytest.approx(92.7, abs=0.1)
    assert spent(epsilon=1.0, calibration="reference") == pytest.approx(1.71, abs=0.01)
    assert spent(epsilon=10.0, calibration="paper") == pytest.approx(17.9, abs=0.1)
    assert spent(epsilon=10.0, calibration="paper", feature_norm=math.sqrt(2)) > 17.9
    assert spent(epsilon=math.inf) == math.inf


def test_perturbation_counts_for_privacy_and_half_noise_does_not_hide():
    made = quiet(epsilon=1.0, min_eigenvalue=0.0)
    assert 0.9 < made.guarantee.spend(made.params)[0] < 1
    assert made.guarantee.spend(made.params._replace(mechanism_scale=0.5, perturbation=0.0))[0] > 2
    assert made.guarantee.spend(made.params._replace(mechanism_scale=0.0))[0] == math.inf


def test_view_is_what_a_user_sends():
    message = Message(np.ones(5), np.float32(0.5))
    for private in (True, False):
        guarantee = quiet(epsilon=1.0, private_features=private).guarantee
        unit = "user" if private else "reward"  # features in the clear are nobody's secret
        assert (guarantee.model, guarantee.unit, guarantee.scales) == ("local", unit, ("mechanism_scale",))
        assert guarantee.view(message, (), ()) is message


def test_sweep_fills_in_the_norm():
    """Reference features have norm sqrt(2): the pair's sensitivity is 3, and noise grows with it."""
    environment = partial(jb.environments.contextual_linear, num_arms=6, dim=3, features="reference")
    maker = partial(jb.algorithms.online_ucb, epsilon=1.0, delta=0.1)
    laid_out = plan({"x": maker}, environment, horizon=T, seeds=8)
    params = laid_out.cells[0].algorithm.params
    assert params.feature_norm == math.sqrt(2)
    assert params.reward_noise == pytest.approx(noise(1.0) * 3 / math.sqrt(5))


def messages(made, feature, reward, plays=1, scale=1.0):
    """What `plays` users with this feature and reward send: [plays, d], [plays]."""
    params = cast(made.params._replace(mechanism_scale=scale))
    context = np.zeros((1, made.config["num_arms"], made.config["dim"]), np.float32)
    context[0, 3] = feature
    return clients(made.program)(params, context, np.float32([reward]), np.arange(1, plays + 1, dtype=np.int32))


@cache
def clients(program):
    """`encode` of a user a play, evaluated in NumPy."""

    def send(params, context, reward, t):
        draws, arm = Draws(np.uint32(5), "alg/encode"), jnp.full(1, 3)
        return program.encode(params, (), draws, t[None], context, arm, reward, jnp.ones(1, bool))

    return uncompiled(jax.vmap(send, (None, None, None, 0)))


FEATURE = np.array([0.5, -0.1, 0.2, 0.3, 0.7])


@pytest.mark.parametrize("private", [True, False])
def test_noise_of_a_message(private):
    """The right scale is accepted, two thirds and three halves of it are not."""
    made, n = quiet(epsilon=1.0, private_features=private, min_eigenvalue=0.05), 40_000
    sent = messages(made, FEATURE, 1.0, n)
    extra = T**-0.25
    assert made.params.perturbation == pytest.approx(math.sqrt(extra))
    sigma = made.params.reward_noise
    spreads = [*([math.sqrt(extra + (sigma**2 if private else 0))] * 5), sigma]
    off = np.column_stack([sent.feature - FEATURE, sent.response - 1])
    for column, spread in zip(off.T, spreads, strict=True):
        assert abs(column.mean()) < 5 * spread / math.sqrt(n)
        z = [(column.var() / (s * spread) ** 2 - 1) * math.sqrt(n / 2) for s in (1, 2 / 3, 1.5)]
        assert abs(z[0]) < 5 < min(abs(z[1]), abs(z[2]))
    assert np.abs(np.corrcoef(off.T) - np.eye(6)).max() < 5 / math.sqrt(n)


def test_client_believes_nothing():
    made = quiet(epsilon=1.0)
    long = messages(made, 30 * FEATURE, 7.0, scale=0.0)
    assert_allclose(long.feature[0], FEATURE / np.linalg.norm(FEATURE), rtol=1e-6)
    assert long.response[0] == 1 and messages(made, FEATURE, -2.0, scale=0.0).response[0] == 0
    assert_array_equal(messages(made, FEATURE, 0.25, scale=0.0).feature[0], FEATURE.astype(np.float32))
    broken = messages(made, [np.nan, np.inf, 0.5, 0, 0], np.nan, scale=0.0)
    assert_array_equal(broken.feature[0], [0, 0, 0.5, 0, 0])
    assert broken.response[0] == 0
    huge = messages(made, np.full(5, 1e30), np.inf, scale=0.0)  # whose square is beyond float32: cut like any other
    assert_allclose(huge.feature[0], 5**-0.5, rtol=1e-6)


def begun(made):
    return uncompiled(lambda params: made.program.init(params, Draws(np.uint32(0), "alg/init")))(cast(made.params))


@cache
def server(program, many=False):
    """The state after one message, or after each of many, evaluated in NumPy."""

    def fed(params, state, feature, response):
        draws, message = Draws(np.uint32(0), "alg/update"), Message(feature, response)
        return program.update(params, state, draws, jnp.int32(1), (), message, 1)[0]

    return uncompiled(jax.vmap(fed, (None, None, 0, 0)) if many else fed)


def fed(made, state, feature, response):
    many = np.ndim(response) == 1
    return server(made.program, many)(cast(made.params), state, np.float32(feature), np.float32(response))


def test_gradient_is_unbiased():
    """E[g] = grad E[l] = 2 x (<x, theta> - y); without Sigma it would be off by 2 sigma^2 theta."""
    made, n, theta = quiet(epsilon=1.0, learner="ogd", step="strong"), 200_000, np.array([0.4, -0.2, 0.1, 0.3, 0.5])
    sigma = made.params.feature_noise
    # unclipped, at rate 1, from theta: the learner's step is the gradient
    made = made._replace(params=made.params._replace(gradient_bound=1e9, theta_bound=1e9, strong_convexity=1.0))
    state = begun(made)
    state = state._replace(learner=state.learner._replace(point=np.float32(theta)))
    sent = messages(made, FEATURE, 0.5, n)
    after = fed(made, state, sent.feature, sent.response)
    gradient = theta - np.asarray(after.learner.point, np.float64)
    error = gradient.std(0) / math.sqrt(n)
    off = gradient.mean(0) - 2 * FEATURE * (FEATURE @ theta - 0.5)
    assert np.all(np.abs(off) < 5 * error)
    assert np.max(np.abs(off - 2 * sigma**2 * theta) / error) > 10


def test_exact_predictions_give_least_squares():
    # whose steps are as small as the gradients, rounding alone
    made = quiet(epsilon=math.inf, learner="ogd", step="sqrt")
    rng = np.random.default_rng(3)
    theta, features = rng.normal(size=5) / 4, rng.normal(size=(60, 5)) / 3
    state = begun(made)
    state = state._replace(learner=state.learner._replace(point=np.float32(theta)))
    for x in features:
        state = fed(made, state, x, x @ theta)
    gram = np.eye(5) + features.T @ features
    assert_allclose(state.theta, np.linalg.solve(gram, features.T @ (features @ theta)), rtol=2e-5, atol=1e-6)
    assert_allclose(state.inverse, np.linalg.inv(gram)[np.triu_indices(5)], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("step", ["adanorm", "sqrt", "strong"])
def test_estimate_and_learner_against_a_literal_loop(step):
    """Noisy messages into update and into Algorithm 1's lines 5 and 6 in float64, some gradients clipped."""
    made = quiet(epsilon=3.0, learner="ogd", step=step, min_eigenvalue=0.1, theta_bound=0.8)
    p, rng = made.params, np.random.default_rng(8)
    sent = messages(made, FEATURE, 1.0, 200)
    features = np.float64(sent.feature) + 0.3 * rng.normal(size=(200, 5))
    V, u, theta, total, clipped = np.eye(5), np.zeros(5), np.zeros(5), 0.0, 0
    state = begun(made)
    for t, (x, y) in enumerate(zip(features, np.float64(sent.response), strict=True), 1):
        state = fed(made, state, x, y)
        V, u = V + np.outer(x, x), u + (theta @ x) * x
        g = 2 * x * (x @ theta - y) - 2 * p.feature_noise**2 * theta
        clipped += np.linalg.norm(g) > p.gradient_bound
        g *= min(1, p.gradient_bound / np.linalg.norm(g))
        total += g @ g
        rates = {
            "adanorm": math.sqrt(2 / total) * 0.8, "sqrt": 1.6 / (p.gradient_bound * math.sqrt(t)),
            "strong": 1 / (p.strong_convexity * t),
        }  # fmt: skip
        theta = theta - rates[step] * g
        theta *= min(1, 0.8 / np.linalg.norm(theta))
    assert_allclose(state.learner.point, theta, atol=2e-5)
    assert_allclose(state.theta, np.linalg.solve(V, u), rtol=1e-3, atol=2e-5)
    assert 0 < clipped < 150


@pytest.mark.parametrize("learner", ["maler", "ogd"])
def test_broken_messages_move_nothing(learner):
    made = quiet(epsilon=1.0, learner=learner)
    state = fed(made, fed(made, begun(made), FEATURE, 0.9), FEATURE, 0.9)
    bads = (math.nan, math.inf, 1e30)
    for message in [*((np.full(5, bad), 0.5) for bad in bads), *((FEATURE, bad) for bad in bads)]:
        after = fed(made, state, *message)
        assert_array_equal(after.inverse, state.inverse)
        assert_array_equal(after.theta, state.theta)
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(after))


def test_strong_convexity_and_perturbation():
    """Delta^2 = T^-power where min_eigenvalue is at most that; 1 / d stands in for an unknown eigenvalue."""
    floor = T**-0.25
    cases = {None: (0.0, 2 / 5), 0.05: (floor, 2 * (0.05 + floor)), 0.2: (0.0, 0.4)}
    for least, (square, mu) in cases.items():
        params = quiet(epsilon=1.0, min_eigenvalue=least).params
        assert params.perturbation**2 == pytest.approx(square) and params.strong_convexity == pytest.approx(mu)
    assert quiet(epsilon=1.0, min_eigenvalue=0.2, power=0.125).params.perturbation == pytest.approx(T**-0.0625)
    # 16^(-1/4) = 1/2 exactly
    assert quiet(epsilon=1.0, horizon=16, min_eigenvalue=0.5).params.perturbation == pytest.approx(math.sqrt(0.5))


def test_ogd_steps():
    """By hand: gradients (3, 4) and (0, 1), D = 10 so that nothing is projected; then one step out of a small ball."""
    first, second = np.float32([3, 4]), np.float32([0, 1])
    rates = {"adanorm": (10 * math.sqrt(2) / 5, 10 * math.sqrt(2 / 26)), "strong": (2.0, 1.0)}
    rates["sqrt"] = (20 / 8, 20 / (8 * math.sqrt(2)))
    for step, (a, b) in rates.items():
        radius = 100.0 if step == "strong" else 10.0
        learner = jb.learners.ogd(2, 100, radius, 8.0, step=step, strong_convexity=0.5)
        point = np.array([-3 * a, -4 * a])
        point *= min(1, radius / np.linalg.norm(point))
        after = point - [0, b]
        after *= min(1, radius / np.linalg.norm(after))
        assert_allclose(fed_learner(learner, first, second)[1], [point, after], rtol=1e-6)


def fed_learner(learner, *gradients):
    """The last state, and the predictions after each gradient."""

    def steps(gradients):
        state, points = learner.init(), []
        for gradient in gradients:
            state = learner.update(state, gradient)
            points.append(learner.predict(state))
        return state, points

    return uncompiled(steps)(gradients)


def test_ogd_edges():
    learner = jb.learners.ogd(3, 100, 0.5, 8.0)
    still, (point,) = fed_learner(learner, np.zeros(3, np.float32))
    assert not np.any(point) and float(still.clock) == 0
    # the first step is sqrt(2) D long, whatever the gradient
    _, (_, far) = fed_learner(learner, np.zeros(3, np.float32), np.float32([1e-6, 0, 0]))
    assert_allclose(far, [-0.5, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("step", ["adanorm", "sqrt", "strong"])
def test_ogd_many_lanes_are_one_lane(step):
    gradients = np.random.default_rng(0).normal(size=(16, 40, 5)).astype(np.float32)

    def run(gradients, bound):
        learner = jb.learners.ogd(5, 40, bound, 3.0, step=step)
        return jax.lax.scan(lambda s, g: (learner.update(s, g), learner.predict(s)), learner.init(), gradients)[1]

    bounds, lanes = np.linspace(0.1, 2, 16, dtype=np.float32), jax.jit(jax.vmap(run))
    together = np.asarray(lanes(gradients, bounds))
    assert_array_equal(together[8:], lanes(gradients[8:], bounds[8:]))
    assert np.all(np.linalg.norm(together, axis=-1) <= bounds[:, None] * (1 + 1e-6))


CONTEXTS = jb.environments.contextual_linear(num_arms=8, dim=3)


def test_one_program_for_a_grid():
    ogd = partial(quiet, learner="ogd")
    first = ogd(epsilon=1.0).program
    for changed in [
        {"epsilon": math.inf}, {"delta": 0.01}, {"calibration": "paper"}, {"private_features": False},
        {"theta_bound": 2.0},
        {"min_eigenvalue": 0.0}, {"width": "theory"}, {"radius_scale": 0.0}, {"gradient_bound": "theory"},
        {"horizon": 50},
        {"failure_prob": 0.1}, {"feature_norm": 2.0},
    ]:  # fmt: skip
        assert ogd(**{"epsilon": 1.0} | changed).program is first
    assert quiet(epsilon=1.0).program is not first
    assert quiet(epsilon=1.0, horizon=17_000).program is quiet(epsilon=2.0).program
    assert quiet(epsilon=1.0, horizon=9, longest=T).program is quiet(epsilon=2.0).program


@pytest.mark.dealt(8)
def test_infinite_epsilon_and_no_width():
    """No NaN anywhere, and most of uniform play's regret is gone without noise."""
    run = partial(jb.sweep, environment=CONTEXTS, horizon=1500, seeds=32, progress=False)
    learner = partial(jb.algorithms.online_ucb, learner="ogd")
    grid = {"epsilon": [0.2, 4.0, math.inf], "radius_scale": [0.0, 0.1]}
    ds = run({"online": learner, "uniform": jb.algorithms.uniform}, grid=grid)
    assert np.all(np.isfinite(ds.regret))
    end = ds.regret.isel(t=-1).mean("seed")
    free = end.sel(algorithm="online", epsilon=math.inf, radius_scale=0.1)
    assert float(free) < 0.25 * float(end.sel(algorithm="uniform").isel(epsilon=0, radius_scale=0))


def regret_of(learner, seeds=64, dtype="float32"):
    """The regret [lanes, checkpoints]; equal shapes share their compiled program."""
    algorithm = partial(jb.algorithms.online_ucb, epsilon=20.0, radius_scale=0.1, learner=learner)
    return jb.sweep(algorithm, CONTEXTS, horizon=300, seeds=seeds, dtype=dtype, progress=False).regret.values[0]


@pytest.mark.dealt(8)
def test_descent_in_any_company():
    """A lane does not depend on which others run beside it (Maler: the catalogue's case)."""
    assert_array_equal(regret_of("ogd", range(8, 16)), regret_of("ogd")[8:16])


@pytest.mark.dealt(8)
@pytest.mark.parametrize("learner", ["maler", "ogd"])
def test_float64(learner):
    ends = {dtype: regret_of(learner, dtype=dtype)[:, -1] for dtype in ("float32", "float64")}
    assert np.all(np.isfinite(ends["float64"]))
    spread = math.hypot(*(x.std() / 8 for x in ends.values()))
    assert abs(ends["float32"].mean() - ends["float64"].mean()) < 5 * spread

"""Instruments under local privacy: the rule beside a literal listing, what a user's message tells, what a play leaves
unknown, elimination with row pivoting, and regret (docs/formulas/ldp_contextual.md#instrument).
"""

import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import on_tape
from dealt import others
from numpy_draws import NumpyDraws
from planting import errors, planted
from scipy import optimize, stats
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.estimators import instrument
from jaxbandits.numerics import eliminations, packed
from jaxbandits.random import Draws
from jaxbandits.sweeps.plan import plan
from jaxbandits.theory import instrument_bound, instrument_sensitivity

INF = math.inf
ldp_instrument_ucb = jb.algorithms.ldp_instrument_ucb
make = partial(ldp_instrument_ucb, num_arms=20, dim=5, horizon=20_000, epsilon=1.0)


# ---- the listing


def noise_of(epsilon, delta):
    """1 / m: the noise that one release of sensitivity 1 needs (Balle and Wang 2018, Theorem 8)."""
    if math.isinf(epsilon):
        return 0.0
    tail = stats.norm.cdf
    spent = lambda m: tail(m / 2 - epsilon / m) - math.exp(epsilon) * tail(-m / 2 - epsilon / m) - delta
    return 1 / optimize.brentq(spent, 1e-4, 100.0, xtol=1e-15)


def literal(
    contexts, rewards, normals, *, epsilon, delta, norm=1.0, bound=None, ridge_scale=1.0, radius_scale=0.2, quiet=False
):
    """Actions, messages and noises m and v of the rule; contexts [T, A, d] of norm at most L, rewards [T, A]."""
    T, _, d = contexts.shape
    L, B = norm, 1 / norm if bound is None else bound
    s = math.sqrt(8) * noise_of(epsilon, delta)
    m, v = L * s, s
    root = ridge_scale * 2 * L * s * math.sqrt(d)
    growth = math.sqrt(s**2 * (1 + L**2 * B**2) + 0.25) * (math.sqrt(d) + math.sqrt(2 * math.log(max(T, 2)))) + root * B
    M, b = np.zeros((d, d)), np.zeros(d)
    actions, messages = [], []
    for t in range(1, T + 1):
        P = np.linalg.inv(M + (L + root * math.sqrt(t)) * np.eye(d))
        theta, x = P @ b, contexts[t - 1]
        width = radius_scale * (L * B + growth * math.sqrt(t))
        index = x @ theta + width * np.linalg.norm(x @ P, axis=1)
        arm = int(np.argmax(index >= index.max() - 1e-5 * abs(index.max())))
        u = P.T @ x[arm]
        psi = u / np.linalg.norm(u)
        N, n = np.split(0.0 * normals[t - 1] if quiet else normals[t - 1], [d * d])
        message = np.outer(psi, x[arm]) + m * N.reshape(d, d), psi * rewards[t - 1, arm] + v * n
        M, b = M + message[0], b + message[1]
        actions.append(arm)
        messages.append(np.concatenate([message[0].ravel(), message[1]]))
    return np.array(actions), np.array(messages), (m, v, L, root, L * B, growth)


# features and arguments; so few plays are evaluated without a compiler
CASES = {
    "default": (3, {"epsilon": 10.0, "delta": 1e-3}),
    "norm 2": (3, {"epsilon": 20.0, "delta": 1e-2, "norm": 2.0, "bound": 0.3}),
    "scales": (2, {"epsilon": 4.0, "delta": 1e-3, "norm": 0.5, "ridge_scale": 0.3, "radius_scale": 1.5}),
    "no noise": (4, {"epsilon": INF, "delta": 1e-3}),
    "one feature": (1, {"epsilon": 10.0, "delta": 1e-3}),
    "an array": (10, {"epsilon": 30.0, "delta": 1e-3, "radius_scale": 0.1}),
}
LISTED = ("matrix", "vector", "ridge", "ridge_root", "base", "growth")


@functools.cache
def on_both(name):
    """What a case is played on, and what the package does there in float64: actions and messages."""
    d, given = CASES[name]
    T, rng = 32, np.random.default_rng(d)
    x = rng.normal(size=(T, 12, d)) * rng.uniform(0.1, 1, d)
    x *= given.get("norm", 1.0) / np.maximum(np.linalg.norm(x, axis=-1), 1.0)[..., None]
    rewards = rng.random((T, 12))
    options = {"norm": "feature_norm", "bound": "theta_bound"}
    made = ldp_instrument_ucb(num_arms=12, dim=d, horizon=T, **{options.get(k, k): z for k, z in given.items()})
    with jax.enable_x64(True):
        actions, message, _ = on_tape(made, x, rewards, Draws(np.uint32(5), "alg", np.float64), np.float64)
    sent = [np.stack(part, -1) if isinstance(part, tuple) else part.reshape(T, -1) for part in message[:2]]
    normals = NumpyDraws(5, "alg/encode/noise").normal(np.arange(1, T + 1), (d * d + d,))
    return (x, rewards, normals), made, actions, np.concatenate(sent, -1)


def differs(name, listing=literal):
    """Which of actions, messages and constants of a case are not those of a listing."""
    tape, made, actions, messages = on_both(name)
    wanted = listing(*tape, **CASES[name][1])
    found = {"actions": np.array_equal(actions, wanted[0]), "messages": np.allclose(messages, wanted[1], atol=1e-6)}
    found["constants"] = np.allclose([getattr(made.params, n) for n in LISTED], wanted[2], rtol=1e-8)
    return [part for part, same in found.items() if not same]


@pytest.mark.parametrize("name", CASES)
def test_plays_are_those_of_the_listing(name):
    assert differs(name) == []
    assert len(np.unique(on_both(name)[2])) > 2


@pytest.mark.parametrize(
    ("name", "error"),
    errors([
        ("default", "math.sqrt(8)", "math.sqrt(4)"),  # the sensitivity of what is added, not replaced
        ("no noise", "P.T @ x[arm]", "P @ x[arm]"),
        ("default", "P.T @ x[arm]", "P @ x[arm]"),
        ("an array", "P.T @ x[arm]", "P @ x[arm]"),
        ("default", "np.linalg.norm(x @ P, axis=1)", "np.linalg.norm(x @ P.T, axis=1)"),
        ("default", "psi = u / np.linalg.norm(u)", "psi = u"),
        ("norm 2", "m, v = L * s, s", "m, v = L * s, L * s"),
        ("norm 2", "m, v = L * s, s", "m, v = s, s"),
        ("default", "2 * L * s * math.sqrt(d)", "2 * L * s"),
        ("default", "(L + root * math.sqrt(t)) * np", "(L + root * math.sqrt(t - 1)) * np"),
        ("scales", "radius_scale * (", "2 * radius_scale * ("),
        ("norm 2", "N.reshape(d, d)", "N.reshape(d, d).T"),
    ], literal),
)  # fmt: skip
def test_planted_errors_are_noticed(name, error):
    assert differs(name, planted(*error))


# ---- constants and privacy


def test_constants():
    for (epsilon, delta), ratio in {
        (1.0, 1e-3): 0.3884012483, (1.0, 5e-5): 0.2979822652, (0.2, 1e-3): 0.1010284462,
    }.items():  # fmt: skip
        assert 1 / noise_of(epsilon, delta) == pytest.approx(ratio, rel=1e-9)
        assert make(epsilon=epsilon, delta=delta).params.vector == pytest.approx(math.sqrt(8) / ratio, rel=1e-8)
    found = make().params  # delta = 5e-5
    assert (found.matrix, found.vector) == (pytest.approx(9.49193, rel=2e-6),) * 2
    assert (found.ridge_root, found.growth) == pytest.approx((42.44921, 132.26942), rel=2e-7)
    assert (found.ridge, found.base, found.radius_scale, found.delta) == (1.0, 1.0, 0.2, 5e-5)
    found = make(feature_norm=2.0).params
    assert (found.matrix, found.vector, found.ridge_root) == pytest.approx((18.98386, 9.49193, 84.89841), rel=2e-6)
    assert make(feature_norm=2.0, theta_bound=0.5).params == found
    assert make(horizon=1).params.delta == 1e-3


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0])
def test_what_is_spent_is_what_is_asked_for(epsilon):
    for horizon in (1, 1000, 20_000):
        for norm in (0.5, 2.0):
            made = make(epsilon=epsilon, horizon=horizon, feature_norm=norm)
            spent = lambda scale: made.guarantee.spend(made.params._replace(mechanism_scale=scale))[0]  # noqa: B023
            assert spent(1.0) == pytest.approx(epsilon, rel=1e-6)
            assert spent(2 / 3) > epsilon > spent(3 / 2)
            vector = made.params._replace(vector=1.5 * made.params.vector)  # its noise alone: the pair is still seen
            assert 0.75 * epsilon < made.guarantee.spend(vector)[0] < epsilon
    assert (made.guarantee.model, made.guarantee.unit, len(made.guarantee.events(made.params))) == ("local", "user", 1)


def test_without_a_budget_there_is_no_noise():
    for norm in (1.0, 2.0):
        made = make(epsilon=INF, feature_norm=norm)
        p = made.params
        assert (p.matrix, p.vector, p.ridge, p.ridge_root) == (0.0, 0.0, norm, 0.0)
        assert made.guarantee.spend(p)[0] == INF
    silenced = make().params._replace(mechanism_scale=0.0)
    assert make().guarantee.spend(silenced)[0] == INF


def test_grids_over_numbers_are_one_program():
    grid = {"epsilon": [0.2, 1.0, INF], "ridge_scale": [1.0, 2.0], "radius_scale": [0.2, 1.0]}
    world = jb.environments.contextual_linear(num_arms=4, dim=3)
    laid_out = plan({"x": ldp_instrument_ucb}, world, horizon=50, seeds=8, grid=grid)
    assert len(laid_out.cells) == 12 and len(laid_out.groups) == 1


@functools.cache
def clients(program):
    """`encode` without noise of many users: public matrices [n, d^2] by rows, features [n, d], rewards [n]."""

    def send(params, matrix, feature, reward):
        draws, note = Draws(np.uint32(0), "alg/encode", np.float64), tuple(matrix)
        t, arm, play = jnp.ones(1, jnp.int32), jnp.zeros(1, jnp.int32), jnp.ones(1, bool)
        message = program.encode(params, note, draws, t, feature[None, None], arm, reward[None], play)
        return jnp.stack(message.matrix), jnp.stack(message.vector)

    return uncompiled(jax.vmap(send, (None, 0, 0, 0)))


def sent(made, matrices, features, rewards):
    with jax.enable_x64(True):
        silenced = jax.tree.map(np.float64, made.params._replace(mechanism_scale=0.0))
        return clients(made.program)(silenced, *(np.asarray(z, np.float64) for z in (matrices, features, rewards)))


def distance(made, matrices, pairs, rewards):
    """How far the messages of two users [n, 2, ...] are apart, in units of the noise times m."""
    one, other = (sent(made, matrices, pairs[:, k], rewards[:, k]) for k in (0, 1))
    parts = [np.sum(((x - y) / noise) ** 2, -1) for x, y, noise in zip(one, other, made.params[:2], strict=True)]
    return np.sqrt(sum(parts)) * made.params.vector


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_a_users_message_moves_by_root_8_and_no_more(norm):
    made = make(dim=2, feature_norm=norm)
    a = 1e-3
    users = norm * np.array([[[math.sqrt(1 - a * a), a], [math.sqrt(1 - a * a), -a]]])
    farthest = distance(made, [[1.0, 0.0, 0.0, 1e6]], users, np.ones((1, 2)))[0]
    assert math.sqrt(8) - 1e-5 < farthest < math.sqrt(8)
    assert instrument_sensitivity(norm) / norm == pytest.approx(math.sqrt(8), rel=1e-12)
    assert instrument_sensitivity(norm, 3.0) == pytest.approx(2 * math.sqrt(norm**2 + 3))
    n, rng = 4000, np.random.default_rng(0)
    matrices = rng.normal(size=(n, 4)) * 10.0 ** rng.uniform(-4, 4, (n, 4))
    pairs, rewards = 3 * norm * rng.normal(size=(n, 2, 2)), rng.normal(size=(n, 2)) * 2
    pairs[::7, 0, 0], pairs[::11], rewards[::5, 0], rewards[1::5, 0] = np.inf, 0.0, np.nan, np.inf
    found = distance(made, matrices, pairs, rewards)
    assert np.isfinite(found).all() and 2.5 < found.max() <= math.sqrt(8) * (1 + 1e-12)


def test_clients_without_a_side_send_no_instrument():
    users, rewards = np.full((4, 2), 0.5), np.ones(4)
    matrices = [[0.0] * 4, [np.nan, 0, 0, 1], [np.inf, 1, 1, 1], [1, 0, 0, 1]]
    matrix, vector = sent(make(dim=2), matrices, users, rewards)
    assert not matrix[:3].any() and not vector[:3].any()
    np.testing.assert_allclose(vector[3], math.sqrt(0.5), rtol=1e-12)


@pytest.mark.parametrize("epsilon", [4.0, INF])
def test_features_have_no_unit(epsilon):
    x = np.random.default_rng(2).normal(size=(30, 6, 3)) / 3
    rewards = np.random.default_rng(3).random((30, 6))
    build = partial(ldp_instrument_ucb, num_arms=6, dim=3, horizon=30, epsilon=epsilon)
    one, two = (on_tape(build(feature_norm=norm), norm * x, rewards)[0] for norm in (1.0, 2.0))
    np.testing.assert_array_equal(one, two)
    assert len(np.unique(one)) > 2


# ---- what a play leaves unknown


@pytest.mark.parametrize("dim", [1, 3])
def test_widths_add_up_to_a_determinant(dim):
    """sum log(1 + w) = log det J - d log lambda, and |P' x| of any x never grows: whatever is shown, without noise."""
    T, L = 32, 1.0
    rng = np.random.default_rng(dim)
    x = rng.normal(size=(T, 4, dim)) * 0.3 ** np.arange(dim)
    x /= np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1)
    made = ldp_instrument_ucb(num_arms=4, dim=dim, horizon=T, epsilon=INF)
    with jax.enable_x64(True):
        draws = Draws(np.uint32(5), "alg", np.float64)
        actions, _, state = on_tape(made, x, rng.random((T, 4)), draws, np.float64)
    after = np.stack(state.matrix, -1).reshape(T, dim, dim) + L * np.eye(dim)
    before = np.concatenate([L * np.eye(dim)[None], after[:-1]])
    known = [np.linalg.inv(J).T for J in before]
    widths = [np.linalg.norm(P @ x[t, actions[t]]) for t, P in enumerate(known)]
    assert np.sum(np.log1p(widths)) == pytest.approx(np.linalg.slogdet(after[-1])[1] - dim * math.log(L), rel=1e-9)
    probes = rng.normal(size=(50, dim))
    sides = np.array([np.linalg.norm(probes @ P.T, axis=1) for P in known])
    assert np.all(np.diff(sides, axis=0) <= 1e-12) and np.all(sides[-1] < sides[0])


def test_instruments():
    rng = np.random.default_rng(4)
    for dim in (1, 3, 12):
        matrix, x = rng.normal(size=(dim, dim)) + np.eye(dim), rng.normal(size=dim)
        side = np.linalg.inv(matrix).T @ x
        found = uncompiled(instrument)(matrix.astype(np.float32), x.astype(np.float32))
        np.testing.assert_allclose(found.width, np.linalg.norm(side), rtol=1e-4)
        np.testing.assert_allclose(found.direction, side / np.linalg.norm(side), atol=1e-4)
        assert not uncompiled(instrument)(matrix, np.zeros(dim)).direction.any()
        nothing = uncompiled(instrument)(np.zeros((dim, dim)), x)
        assert nothing.width > 1e30 and np.isfinite(nothing.direction).all()
    exchanged = uncompiled(instrument)(np.array([[0, 2], [1, 0]], np.int32), np.array([1, 0], np.int32))
    assert exchanged.direction.tolist() == [0.0, 1.0] and exchanged.direction.dtype == np.float32


# ---- elimination


def solutions(module, matrices, x):
    """A'^-1 x of matrices [n, d, d] and vectors [n, m, d], of numbers apart or of arrays, by the package."""
    d = matrices.shape[-1]
    if d > packed.MAX_UNROLLED_DIM:
        return uncompiled(jax.vmap(module.solve_transposed))(matrices, x)
    entries = tuple(matrices.reshape(-1, d * d).T)
    inverse = uncompiled(lambda *entries: module.general_inverse(entries, d))(*entries)
    return np.einsum("nij,nmi->nmj", np.stack(inverse, -1).reshape(-1, d, d), x)


def far_off(module, d):
    """The largest error of solutions in float32, relative to the largest of a system's, over eps times 1e4."""
    rng = np.random.default_rng(d)
    n = 40
    of = lambda: np.linalg.qr(rng.normal(size=(n, d, d)))[0]
    matrices = np.float32(of() * np.geomspace(1, 1e-4, d) @ of())  # of condition 1e4
    matrices[:4] = np.roll(np.eye(d), 1, axis=0) * np.arange(1, d + 1)  # zeros on the diagonal
    matrices[4:8] = matrices[4:8, ::-1]
    x = np.float32(rng.normal(size=(n, 3, d)))
    wanted = np.einsum("nij,nmi->nmj", np.linalg.inv(matrices.astype(float)), x.astype(float))
    error = np.abs(solutions(module, matrices, x) - wanted).max((1, 2)) / np.abs(wanted).max((1, 2))
    return error.max() / (1e4 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("d", [2, 3, 5, 8, 9, 12, 19])
def test_elimination_exchanges_rows(d):
    assert far_off(eliminations, d) < 2


@pytest.mark.parametrize(
    ("d", "error"),
    errors([
        (5, "reversed(exchanges)", "()"),  # not undone
        (5, "jnp.abs(rows[i][k]) > jnp.abs(rows[k][k])", "jnp.abs(rows[i][k]) < 0"),  # none
        (12, "places[..., None]", "jnp.argsort(places)[..., None]"),
        (12, "jnp.where(left, jnp.abs(columns[j]), -1)", "jnp.where(left, 1, -1)"),
    ], eliminations),
)  # fmt: skip
def test_a_planted_error_of_elimination_is_noticed(d, error):
    assert not far_off(planted(*error), d) < 2


# ---- regret

# Means of final regret and their standard errors, from a literal program in float64 that shares no code and no draws
# with this package: thickness, T, K, d, delta.
FAT, THIN = (math.sqrt(0.5), 2000, 20, 5, 5e-4), (0.1, 5000, 10, 2, 1e-4)
WORLDS = {"fat": FAT, "thin": THIN}
REGRETS = {
    "instrument, fat": (FAT, "ldp_instrument_ucb", {1.0: (711.9, 21.0), 10.0: (344.5, 11.9), INF: (21.1, 0.4)}),
    "instrument, thin": (THIN, "ldp_instrument_ucb", {10.0: (194.9, 10.4)}),
    "ldp, thin": (THIN, "ldp_linucb", {10.0: (297.3, 14.2)}),
    "ldp, fat": (FAT, "ldp_linucb", {INF: (15.9, 0.5)}),
}


@pytest.mark.parametrize("label", others(REGRETS, 6))
def test_regret_is_that_of_the_transcription(label):
    (thickness, horizon, num_arms, dim, delta), name, wanted = REGRETS[label]
    world = jb.environments.contextual_linear(num_arms=num_arms, dim=dim, thickness=thickness)
    seeds = 400
    found = jb.sweep(
        {"x": partial(getattr(jb.algorithms, name), delta=delta)}, world, horizon=horizon, seeds=seeds,
        grid={"epsilon": list(wanted)}, checkpoints=1, progress=False,
    ).regret.sel(algorithm="x").isel(t=-1)  # fmt: skip
    for epsilon, (mean, error) in wanted.items():
        regret = found.sel(epsilon=epsilon).values
        own = regret.std(ddof=1) / math.sqrt(seeds)
        print(label, epsilon, regret.mean(), own)
        assert abs(regret.mean() - mean) < 4 * math.hypot(own, error), (epsilon, regret.mean(), own)
        assert math.hypot(own, error) < 0.1 * mean  # or the rule would say nothing


@pytest.mark.dealt(6)
def test_thin_features_are_learnt_faster_by_instruments():
    world = jb.environments.contextual_linear(num_arms=10, dim=2, thickness=0.1)
    rules = {"instrument": ldp_instrument_ucb, "ldp": jb.algorithms.ldp_linucb}
    options = {"horizon": 20_000, "seeds": 64, "checkpoints": 1, "progress": False}
    found = jb.sweep({name: partial(rule, epsilon=10.0) for name, rule in rules.items()}, world, **options)
    final = found.regret.isel(t=-1)
    saved = final.sel(algorithm="ldp").values - final.sel(algorithm="instrument").values
    assert saved.mean() > 3 * saved.std(ddof=1) / 8
    assert final.sel(algorithm="ldp").median() > final.sel(algorithm="instrument").median()


def test_the_order():
    """Above T below 4.3e8 plays at epsilon = 1, d = 5 and delta = 1 / T; without noise a ridge of L is left."""
    ratio = lambda T: instrument_bound(T, 5, 1.0, 1 / T) / T
    assert ratio(4 * 10**8) > 1 > ratio(5 * 10**8)
    p = make(horizon=1000, dim=3, epsilon=2.0, delta=1e-4, feature_norm=2.0).params
    rho, ridge = (start + slope * math.sqrt(1000) for start, slope in ((p.base, p.growth), (p.ridge, p.ridge_root)))
    wanted = 2 * rho * 3 / math.log(2) * math.log(1 + 2000 / ridge)
    assert instrument_bound(1000, 3, 2.0, 1e-4, 2.0) == pytest.approx(wanted, rel=1e-12)
    width, free = 1 + 0.5 * (math.sqrt(3) + math.sqrt(2 * math.log(1000))) * math.sqrt(1000), math.log(1001)
    assert instrument_bound(1000, 3, INF, 1e-4) == pytest.approx(2 * width * 3 / math.log(2) * free, rel=1e-12)

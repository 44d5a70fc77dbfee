"""One model an arm: paths, messages and numbers are those of a transcription, and what hides the arm is noisy."""

import math
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import on_tape
from numpy_draws import NumpyDraws
from planting import errors, planted
from reference import per_arm
from reference.own_data import F, R, rows_of
from sklearn.datasets import load_digits, load_iris
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import catalogue, theory
from jaxbandits.algorithms.contextual.per_arm import arms_of_drawn_models
from jaxbandits.algorithms.contextual.selection import UcbParams
from jaxbandits.checking.subject import Subject
from jaxbandits.numerics.packed import triangle
from jaxbandits.random import Draws
from jaxbandits.sweeps.plan import plan
from jaxbandits.theory.linear_widths import moment_sensitivity

a, e = jb.algorithms, jb.environments
K, PLAYS = 3, 32
RNG = np.random.default_rng(3)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def tape(dim, plays=PLAYS, sets=False, seed=0):
    """Features of unit norm, of rows or of decision sets, and rewards in [0, 1] of every arm."""
    rng = np.random.default_rng(seed)
    x = unit(rng.normal(size=(plays, K, dim) if sets else (plays, dim)))
    means = (
        0.5 + 0.5 * (x * unit(rng.normal(size=(K, dim)))).sum(-1) if sets else 0.5 + x @ rng.normal(size=(dim, K)) / 4
    )
    return x, np.clip(means + 0.1 * rng.normal(size=(plays, K)), 0, 1)


def played(factory, x, rewards, **arguments):
    """Actions, messages and states in float64, on the draws of lane 5."""
    dim = x.shape[-1]
    made = factory(num_arms=rewards.shape[1], dim=dim, horizon=len(x), models="per_arm", **arguments)
    with jax.enable_x64(True):
        return on_tape(made, x, rewards, dtype=np.float64)


def normals(path, *shape):
    """Of a play, at an address of lane 5."""
    return lambda t: NumpyDraws(5, path).normal(np.int64(t), shape)


# ---- without noise

LEARNERS = {
    "linucb": (a.linucb, {"radius_scale": 0.6}, lambda o, K, d: o.optimism(0.6)),
    "linucb, ridge": (a.linucb, {"ridge": 0.3}, lambda o, K, d: o.optimism()),
    "linucb, theory": (
        a.linucb, {"preset": "theory", "ridge": 0.3, "radius_scale": 0.2},
        lambda o, K, d: o.optimism(lambda t: 0.2 * o.theory_width(K, d, PLAYS, t, ridge=0.3)),
    ),
    "linear_thompson": (a.linear_thompson, {}, lambda o, K, d: o.thompson(normals("alg/act/posterior", K))),
    "epsilon_greedy": (
        a.epsilon_greedy, {"exploration": 2.0},
        lambda o, K, d: o.greedy(*(NumpyDraws(5, f"alg/act/{name}").uniform for name in ("explore", "arm")), 2.0),
    ),
}  # fmt: skip
TAPES = [(4, False, 0), (4, True, 1), (11, False, 2), (11, True, 3)]


def agree(label, oracle):
    """Whether all paths are those of the transcription."""
    factory, given, rule = LEARNERS[label]
    for dim, sets, seed in TAPES:
        x, rewards = tape(dim, sets=sets, seed=seed)
        found = played(factory, x, rewards, **given)[0]
        expected = oracle.play(x, rewards, rule(oracle, K, dim), ridge=given.get("ridge", 1.0))
        if not np.array_equal(found, expected):
            return False
    return True


@pytest.mark.parametrize("label", LEARNERS)
def test_paths_are_those_of_the_transcription(label):
    assert agree(label, per_arm)


@pytest.mark.parametrize(("label", "error"), errors([
    ("linucb", "theta[a] +=", "theta[0] +="),
    ("linucb", "+ of_play(t) * np.sqrt(np.maximum(q, 0))", "+ of_play(t) * q"),
    ("linucb", "P[a] -= np.outer(v, v) * g", "P[a] -= np.outer(v, v)"),
    ("linucb, ridge", "np.eye(dim) / ridge", "np.eye(dim)"),
    ("linucb, theory", "math.sqrt(dim) / 2", "math.sqrt(dim)"),
    ("epsilon_greedy", "enumerate(zip(rows, rewards, strict=True), 1)", "enumerate(zip(rows, rewards, strict=True))"),
    ("linear_thompson", "posterior * np.sqrt(np.maximum(q, 0)) * normals(t)", "posterior * q * normals(t)"),
    ("epsilon_greedy", "exploration * len(m)", "exploration"),
], per_arm))  # fmt: skip
def test_planted_errors_fork_paths(label, error):
    assert not agree(label, planted(*error))


def test_one_model_an_arm_is_one_model_of_blocks():
    """Action for action, at the same ridge and width: V is block diagonal."""
    x, rewards = tape(5)
    blocks = np.zeros((PLAYS, K, K * 5))
    for k in range(K):
        blocks[:, k, 5 * k : 5 * k + 5] = x
    shared = a.linucb(num_arms=K, dim=K * 5, horizon=PLAYS)
    own = shared.params._replace(ridge=1.0, base=1.0, slope=0.0)
    with jax.enable_x64(True):
        found = on_tape(shared._replace(params=own), blocks, rewards, dtype=np.float64)[0]
    np.testing.assert_array_equal(found, played(a.linucb, x, rewards)[0])
    np.testing.assert_array_equal(found, per_arm.shared(x, rewards, num_arms=K))
    assert len(np.unique(found)) == K


DATA = {"iris": (load_iris, 450, 423, [149, 151, 150]), "digits": (load_digits, 1200, 1022, None)}


@pytest.mark.parametrize("name", DATA)
def test_data_in_their_order(name):
    load, plays, right, pulls = DATA[name]
    x, labels = load(return_X_y=True)
    at = np.arange(plays) % len(x)
    shown = rows_of(x)[at].astype(np.float32)
    rewards = np.eye(labels.max() + 1)[labels[at]]
    made = a.linucb(num_arms=len(rewards[0]), dim=shown.shape[1], horizon=plays, models="per_arm")
    found = on_tape(made, shown, rewards)[0]
    assert np.sum(found == labels[at]) == right
    assert pulls is None or np.bincount(found).tolist() == pulls
    with jax.enable_x64(True):  # where two indices are all but equal, an action may be another
        exact = on_tape(made, shown, rewards, dtype=np.float64)[0]
    assert np.mean(exact != found) <= 1e-3


def test_a_table_of_rewards_in_its_order():
    world = e.contextual_table(features=F, rewards=R, shuffle=False)
    run = jb.simulate(partial(a.linucb, horizon=200), world, seed=0)
    assert run.pulls.tolist() == [80, 75, 45] and np.ravel(run.regret)[-1] == pytest.approx(3.2, abs=1e-4)


def test_what_is_drawn_for_thompson_has_the_law_of_drawn_models():
    """The shares of arms in 10,000 draws, beside those of theta~_a of d features."""
    x, number, dim = unit(RNG.normal(size=4)), 10_000, 4
    root, theta = RNG.normal(size=(K, dim, dim)) / 3, RNG.normal(size=(K, dim)) / 8
    square, score = np.array([x @ c @ c.T @ x for c in root]), theta @ x

    def shares_of(square):
        rule = uncompiled(partial(arms_of_drawn_models, UcbParams(0.5, 1.0, 0.0, 0.0, 0.0, 0.0)))
        both = (np.broadcast_to(np.float32(v), (number, K)) for v in (score, square))
        arms = rule(Draws(np.uint32(1), "alg/act"), np.arange(1, number + 1, dtype=np.int32), *both)
        return np.bincount(arms, minlength=K) / number

    drawn = theta + 0.5 * np.einsum("ade,nae->nad", root, RNG.normal(size=(number, K, dim)))
    expected = np.bincount(np.argmax(drawn @ x, 1), minlength=K) / number
    allowed = 4 * np.sqrt(2 * expected * (1 - expected) / number)
    assert (np.abs(shares_of(square) - expected) < allowed).all() and expected.min() > 0.08
    assert (np.abs(shares_of(square**2) - expected) > allowed).any()


def test_rewards_that_are_not_finite_count_as_0():
    x, rewards = tape(4)
    rewards[3:9] = np.nan
    zero = np.nan_to_num(rewards)
    np.testing.assert_array_equal(played(a.linucb, x, rewards)[0], played(a.linucb, x, zero)[0])


# ---- numbers


def test_numbers_of_the_table():
    assert per_arm.theory_width(10, 65, 5000, 1000) == pytest.approx(8.1309508325, abs=1e-9)
    found = a.linucb(num_arms=10, dim=65, horizon=5000, models="per_arm", preset="theory").params.selection
    growing = found.slope * math.sqrt(found.offset + math.log1p(1000 * found.growth))
    assert found.base + growing == pytest.approx(8.1309508325, abs=1e-9)
    local = theory.per_arm_tuning("local", 3, 5, 3000, 1.0, 0.1)
    assert [local[name] for name in ("diagonal", "h", "ridge", "ridge_root", "base", "quartic")] == pytest.approx(
        [2.303494594, 7.589043305, 1, 17.481320226, 1, 0.550934645], abs=1e-8
    )
    joint = theory.per_arm_tuning("joint", 3, 5, 3000, 1.0, 0.1)
    assert [joint[name] for name in ("diagonal", "h", "ridge", "ridge_root", "base", "quartic")] == pytest.approx(
        [7.979539343, 7.589043305, 201.845078364, 0, 2.867426709, 0], abs=1e-8
    )
    # features of norm 2: sensitivities and noise are four times as large, beside a ridge of 0.3
    far = theory.per_arm_tuning("joint", 3, 5, 3000, 1.0, 0.1, feature_norm=2.0, ridge=0.3)
    assert (far["diagonal"], far["ridge"]) == pytest.approx((4 * 7.979539343, 0.3 + 4 * 200.845078364), abs=1e-7)
    root = 7.979539343 / math.sqrt(2)
    assert (far["off_diagonal"], far["vector"]) == pytest.approx((4 * root, 2 * 7.979539343), abs=1e-7)
    assert far["base"] == pytest.approx(2.867426709, abs=1e-8)
    far = theory.per_arm_tuning("local", 3, 5, 3000, 1.0, 0.1, feature_norm=2.0)
    assert [far[name] for name in ("diagonal", "off_diagonal", "vector", "ridge_root", "quartic")] == pytest.approx(
        [4 * 2.303494594, 4 * 2.303494594 / math.sqrt(2), 2 * 2.303494594, 4 * 17.481320226, 0.550934645], abs=1e-7
    )
    given = {"num_arms": 3, "dim": 5, "horizon": 3000, "models": "per_arm", "ridge": 0.3}
    private = {"epsilon": 1.0, "delta": 0.1}
    ridge = lambda factory, **more: factory(**given, **more).params.statistics.ridge
    assert ridge(a.ldp_linucb, **private) == ridge(a.linear_thompson) == ridge(a.epsilon_greedy) == 0.3
    assert ridge(a.jdp_linucb, tree="binary", **private) == pytest.approx(0.3 + 200.845078364, abs=1e-8)


def test_widths_of_norms_and_rules():
    given = {"num_arms": 10, "dim": 65, "horizon": 5000, "models": "per_arm", "preset": "theory"}

    def width(made):
        w = made.params.selection
        return w.radius_scale, w.base + w.slope * math.sqrt(w.offset + math.log1p(1000 * w.growth))

    found = width(a.linucb(**given, feature_norm=2.0, ridge=0.3))[1]
    # sqrt(65 log(1 + 1000 2^2 / (65 0.3)) + 2 log(10 5000)) + sqrt(0.3)
    assert found == pytest.approx(10.139280669, abs=1e-8)
    assert width(a.linear_thompson(**given)) == pytest.approx((0.3, 8.1309508325), abs=1e-9)
    for private in ({"statistics": "ldp"}, {"statistics": "jdp", "tree": "binary"}):
        made = a.linear_thompson(num_arms=4, dim=5, horizon=500, models="per_arm", epsilon=1.0, **private)
        assert made.params.selection == (0.3, 1.0, 0.0, 0.0, 0.0, 0.0)  # v = 0.3, whatever the noise


@pytest.mark.parametrize("model", ["local", "joint"])
def test_numbers_are_those_of_the_transcription(model):
    for num_arms, dim, horizon, epsilon, delta in (
        (2, 1, 1, 1.0, 0.2),
        (7, 9, 4096, 0.3, 1e-4),
        (3, 5, 99, math.inf, 0.1),
    ):
        found = theory.per_arm_tuning(model, num_arms, dim, horizon, epsilon, delta)
        expected = per_arm.tuning(model, num_arms, dim, horizon, epsilon, delta)
        names = ("diagonal", "h", "ridge", "ridge_root", "base", "quartic")
        assert [found[name] for name in names] == pytest.approx(expected, rel=1e-9)
        assert found["off_diagonal"] == pytest.approx(found["diagonal"] / math.sqrt(2))
        factory, form = (a.ldp_linucb, {}) if model == "local" else (a.jdp_linucb, {"tree": "binary"})
        given = {"num_arms": num_arms, "dim": dim, "horizon": horizon, "epsilon": epsilon, "delta": delta} | form
        params = factory(**given, models="per_arm").params
        made = [getattr(params.statistics, name) for name in ("diagonal", "ridge", "ridge_root")]
        assert made == [found["diagonal"], found["ridge"], found["ridge_root"]]
        assert (params.selection.base, params.selection.quartic) == (found["base"], found["quartic"])
        assert params.selection.radius_scale == 1.0


PRIVATE = {
    "local": a.ldp_linucb, "joint": a.jdp_linucb,
    **{f"joint, {tree}": partial(a.jdp_linucb, tree=tree) for tree in ("binary", "honaker", "square_root", "banded")},
    **{f"{rule.__name__}, {statistics}": partial(rule, statistics=statistics)
       for rule in (a.linear_thompson, a.epsilon_greedy) for statistics in ("ldp", "jdp")},
}  # fmt: skip


@pytest.mark.parametrize("label", PRIVATE)
def test_what_is_spent_is_what_is_asked_for(label):
    for epsilon, horizon, norm in ((0.2, 1, 0.5), (1.0, 1000, 1.0), (10.0, 512, 2.0)):
        given = {"num_arms": 4, "dim": 5, "horizon": horizon, "epsilon": epsilon, "feature_norm": norm}
        made = PRIVATE[label](**given, models="per_arm")
        spent = [made.guarantee.spend(made.params._replace(mechanism_scale=x))[0] for x in (1, 2 / 3, 3 / 2)]
        assert spent[0] == pytest.approx(epsilon, rel=1e-6) and spent[1] > epsilon > spent[2]
        assert made.guarantee.spend(made.params)[1] == min(1e-3, 1 / horizon)
        noise = made.params.statistics
        own = PRIVATE[label](**given | {"feature_norm": 1.0}, models="per_arm").params.statistics
        square = norm**2
        assert noise.diagonal == pytest.approx(square * own.diagonal) and noise.vector == pytest.approx(
            norm * own.vector
        )
        assert noise.ridge_root == pytest.approx(square * own.ridge_root)
        assert noise.ridge - 1 == pytest.approx(square * (own.ridge - 1))  # what noise asks for alone


# ---- private messages and releases

NOISY = {"epsilon": 40.0, "delta": 0.1}
FORMS = {"local": a.ldp_linucb, "joint": partial(a.jdp_linucb, tree="binary")}


def dense(sums, dim):
    """The matrices [..., K, d, d] and vectors [..., K, d] of blocks in either layout."""
    if not isinstance(sums.vector, tuple):
        return np.asarray(sums.gram), np.asarray(sums.vector)
    place = triangle(dim)
    gram = [[sums.gram[place[i, j]] for j in range(dim)] for i in range(dim)]
    return np.moveaxis(np.array(gram), (0, 1), (-2, -1)), np.moveaxis(np.array(sums.vector), 0, -1)


def shown_by(model, x, rewards, changed=lambda program: program, seed=5, **given):
    """Actions [T], and what users send or the server releases: [T, K, d, d], [T, K, d]."""
    plays, dim = len(x), x.shape[-1]
    made = FORMS[model](num_arms=K, dim=dim, horizon=plays, models="per_arm", **NOISY | given)
    program, dtype, actions, shown = changed(made.program), np.float64, [], []

    @uncompiled
    def step(state, t, feature, paid):
        draws, t = Draws(np.uint32(seed), "alg", dtype), t[None]
        action, _, note = program.act(made.params, state, draws.child("act"), t, feature[None])
        reward = paid[action]
        args = t, feature[None], action, reward, jnp.ones(1, bool)
        message = program.encode(made.params, note, draws.child("encode"), *args)
        state, released = program.update(made.params, state, draws.child("update"), t[0], note, message, 1)
        return state, action[0], jax.tree.map(lambda x: x[0], message) if model == "local" else released

    with jax.enable_x64(True):
        state = jax.tree.map(np.asarray, uncompiled(program.init)(made.params, Draws(np.uint32(seed), "", dtype)))
        for t in range(plays):
            state, action, seen = step(state, np.int32(t + 1), x[t], rewards[t])
            actions.append(int(action))
            shown.append(dense(seen, dim))
    return np.array(actions), *map(np.array, zip(*shown, strict=True))


def private_agrees(model, oracle):
    """Whether arms, messages and releases are those of the transcription, with 2 and with 9 features."""
    for dim in (2, 9):
        x, rewards = tape(dim, plays=16, seed=dim)
        x[5] *= 3.0  # the client scales it down
        rewards[6] += 2.0
        address = "alg/encode/noise" if model == "local" else "alg/update/noise"
        drawn = normals(address, K, dim * (dim + 1) // 2 + dim)
        expected, *sent = oracle.private(x, rewards, model, drawn, **NOISY)
        found, *shown = shown_by(model, x, rewards)
        if not (np.array_equal(found, expected) and all(map(partial(np.allclose, atol=1e-8), shown, sent))):
            return False
    return True


@pytest.mark.parametrize("model", FORMS)
def test_private_paths_are_those_of_the_transcription(model):
    assert private_agrees(model, per_arm)


@pytest.mark.parametrize(("model", "error"), errors([
    ("local", "for z in normals(t)]", "for z in [normals(t)[0]] * num_arms]"),
    ("local", "scale / math.sqrt(2)", "scale"),
    ("local", "ridge + root * math.sqrt(t)", "ridge + root"),
    ("local", "quartic * t**0.25", "quartic * t"),
    ("joint", "if j > level}", "if j >= 0}"),
    ("joint", "own_V[a], own_u[a] =", "own_V[0], own_u[0] ="),
    ("joint", "min(1, norm / size)", "1"),
], per_arm))  # fmt: skip
def test_planted_errors_change_what_is_shown(model, error):
    assert not private_agrees(model, planted(*error))


@pytest.mark.parametrize("dim", [3, 9])
@pytest.mark.parametrize("factory", [partial(a.ldp_linucb, delta=0.1), partial(a.jdp_linucb, delta=0.1)])
def test_without_a_budget_they_play_as_linucb(factory, dim):
    x, rewards = tape(dim)
    np.testing.assert_array_equal(played(factory, x, rewards, epsilon=math.inf)[0], played(a.linucb, x, rewards)[0])


def of_the_played_block_alone(model, program):
    """The trap: noise on the block that the message moves. It spends nothing on the arm."""

    def quiet(params):
        return params._replace(mechanism_scale=0.0)

    def mask(noisy, clean, arm):
        own = jnp.arange(K, dtype=arm.dtype) == arm
        return jax.tree.map(lambda x, y: jnp.where(own.reshape(*(1,) * (x.ndim - 1), K), x, y), noisy, clean)

    def encode(params, note, draws, t, context, action, *args):
        both = (program.encode(p, note, draws, t, context, action, *args) for p in (params, quiet(params)))
        return mask(*both, action[0])

    def update(params, state, draws, t, note, message, used):
        after, released = program.update(params, state, draws, t, note, message, used)
        clean = program.update(quiet(params), state, draws, t, note, message, used)[1]
        return after, mask(released, clean, jnp.argmax(message.gram[0][0] + message.gram[2][0]))

    return program._replace(encode=encode) if model == "local" else program._replace(update=update)


@pytest.mark.parametrize("model", FORMS)
@pytest.mark.planted("a private program", "noise on the played arm's block alone")
def test_every_block_has_noise_in_every_play(model):
    x, rewards = tape(2, plays=16)
    _, *shown = shown_by(model, x, rewards)
    assert all(np.count_nonzero(part == 0) == 0 for part in shown)
    _, *shown = shown_by(model, x, rewards, partial(of_the_played_block_alone, model))
    assert any(np.count_nonzero(part == 0) > 0 for part in shown)


@pytest.mark.parametrize(("model", "dim"), [("local", 3), ("joint", 9)])
def test_noise_is_the_same_for_every_arm(model, dim):
    """Of the first play, over 2,000 lanes: its deviations are the claimed ones, and not 2/3 or 3/2 of them."""
    lanes, (x, rewards) = 2000, tape(dim, plays=1)
    made = FORMS[model](num_arms=K, dim=dim, horizon=1, models="per_arm", **NOISY)

    def shown(scale, seed):
        params, draws, t = made.params._replace(mechanism_scale=scale), Draws(seed, "alg"), jnp.ones(1, jnp.int32)
        program, play = made.program, (x.astype(np.float32), np.zeros(1, np.int32), rewards[:, 0].astype(np.float32))
        message = program.encode(params, (), draws.child("encode"), t, *play, jnp.ones(1, bool))
        if model == "local":
            return jax.tree.map(lambda x: x[0], message)
        state = program.init(params, draws.child("init"))
        return program.update(params, state, draws.child("update"), t[0], (), message, 1)[1]

    program = uncompiled(jax.vmap(shown, (None, 0)))
    noisy, clean = (dense(program(np.float32(scale), np.arange(lanes, dtype=np.uint32)), dim) for scale in (1, 0))
    own, off = made.params.statistics.diagonal, made.params.statistics.off_diagonal
    scales = np.where(np.eye(dim), own, off), np.full(dim, made.params.statistics.vector)
    for part, truth, scale in zip(noisy, clean, scales, strict=True):
        error = (part - truth) / scale
        deviation = np.sqrt(np.mean(error**2, axis=0))
        allowed = 5 / math.sqrt(2 * lanes)
        assert np.abs(deviation - 1).max() < allowed and np.abs(deviation - 2 / 3).min() > allowed
        assert np.abs(deviation - 3 / 2).min() > allowed and np.abs(error.mean(0)).max() < 5 / math.sqrt(lanes)
        drawn = np.random.default_rng(0).choice(lanes, lanes, replace=False)  # blocks share no noise
        for k in range(1, K):
            assert abs(np.corrcoef(error[drawn, 0].ravel(), error[drawn, k].ravel())[0, 1]) < 5 / math.sqrt(lanes)


def test_two_users_move_the_blocks_by_no_more_than_is_claimed():
    """In units of the noise: of one arm up to sqrt(4.5), of two arms up to 2, as the spec has it, whatever K."""
    rng, dim = np.random.default_rng(1), 2
    most = {True: 0.0, False: 0.0}
    for _ in range(4000):
        (x, y), (r, s) = rng.normal(size=(2, dim)), rng.choice([0.0, 1.0], 2)
        x, y = unit(x), unit(y)
        gram, vector = np.outer(x, x), x * r
        other_gram, other_vector = np.outer(y, y), y * s
        together = np.sum((gram - other_gram) ** 2) + np.sum((vector - other_vector) ** 2)
        apart = sum(np.sum(v**2) for v in (gram, other_gram, vector, other_vector))
        most[True], most[False] = max(most[True], together), max(most[False], apart)
    assert most[True] <= moment_sensitivity(1.0) ** 2 + 1e-9 and most[True] > 4.49
    assert most[False] == pytest.approx(4.0)


def test_neither_note_nor_message_holds_the_arm():
    x, _ = tape(3)
    made = a.ldp_linucb(num_arms=K, dim=3, horizon=9, models="per_arm", **NOISY)
    program, draws, t, shown = made.program, Draws(np.uint32(0), "alg"), jnp.ones(1, jnp.int32), np.float32(x[:1])

    def of_client(arm):
        state = program.init(made.params, draws)
        _, _, note = program.act(made.params, state, draws, t, shown)
        return note, program.encode(made.params, note, draws, t, shown, arm, jnp.ones(1), jnp.ones(1, bool))

    note, message = jax.eval_shape(of_client, jax.ShapeDtypeStruct((1,), np.int32))
    assert note == () and all(leaf.shape == (1, K) and leaf.dtype == np.float32 for leaf in jax.tree.leaves(message))
    assert len(made.guarantee.view(message, (), np.zeros(1))) == len(message)
    assert made.plays_on == "row" and not program.lockstep


# ---- programs, layouts, and what is refused


def test_ridge_radius_and_epsilon_share_a_program():
    grid = {"epsilon": [1.0, math.inf], "radius_scale": [0.1, 1.0], "ridge": [0.1, 1.0]}
    found = plan(partial(a.ldp_linucb, delta=1e-3), catalogue.rows, horizon=50, seeds=8, grid=grid)
    assert len(found.groups) == 1 and len(found.groups[0].cells) == 8
    plain = plan(a.linucb, catalogue.rows, horizon=50, seeds=8, grid={k: grid[k] for k in ("radius_scale", "ridge")})
    assert len(plain.groups) == 1
    theory_too = partial(a.linucb, num_arms=3, dim=4, horizon=9, models="per_arm")
    assert theory_too().program is theory_too(preset="theory").program


def test_calls_of_any_number_of_lanes_give_the_same_bits():
    x, labels = RNG.normal(size=(60, 64)), np.arange(60) % K
    world = partial(e.classification, features=x, labels=labels)
    subject = Subject(a.linucb, world, horizon=24, seeds=16)
    few, *more = (subject.play_seeds(lanes=lanes) for lanes in (16, 128, 1024))
    for other in more:
        for array, values in few.items():
            np.testing.assert_array_equal(other[array], values, err_msg=array)
    assert len(np.unique(few["pulls"][:, -1], axis=0)) > 4


def test_a_state_of_much_memory_is_told():
    with pytest.warns(UserWarning, match=r"a lane keeps 80 MB: take fewer features"):
        a.linucb(num_arms=20, dim=1000, horizon=9, models="per_arm")
    with pytest.warns(UserWarning, match=r"a lane keeps \d+ MB"):
        a.jdp_linucb(num_arms=30, dim=256, horizon=2**20, epsilon=1.0, models="per_arm", tree="binary")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a.linucb(num_arms=10, dim=256, horizon=9, models="per_arm")

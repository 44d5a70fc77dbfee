"""Byzantine-UCB and its comparators against the literal transcription:
the same draws in, the same paths out, in float64.

Medians are compared by the fixed iterations of docs/formulas/byzantine.md#starting-point, which are transcribed too,
and both to the exact median.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import exact_draw as draw
from against_reference import exact_world as world
from dealt import dealt
from numpy_draws import NumpyDraws, to_normal
from planting import errors, planted
from plays import Lane, played
from reference import byzantine as byz
from reference import byzantine_attacks as attacks
from reference import byzantine_oracles as oracles
from reference import byzantine_privacy as privacy

import jaxbandits as jb
from jaxbandits import algorithms, environments, simulator
from jaxbandits.algorithms.federated import agents
from jaxbandits.protocol import Moments

N, A, D, L, T = 7, 5, 3, 6, 75  # the last episode has 3 plays
K = byz.episodes_of(T, L)
TIE = 1e-5  # relative: what the library calls a tie
SEEDS = range(3)
THETA_NORM = 0.7


# ---------------------------------------------------------------- the simulator's draws


def first_plays(horizon, window):
    return np.arange(0, horizon, window) + 1


def attack_of(
    seed, horizon, window, theta, *, corruption, kind="target", scale=1.0, prob=1.0, part="both", forge=attacks
):
    """hits [K, N] and the transcription's attack, on the adversary's draws: its first play addresses an episode."""
    t = first_plays(horizon, window)
    hits = np.arange(N) < oracles.attacked_count(corruption, N)
    hits = hits & (draw(seed, "attack/prob", "uniform", t, (N,)) < prob)
    if kind == "none":
        return {"hits": np.zeros_like(hits)}
    vector = draw(seed, "attack/vector", "normal", t, (N, D))

    def given(k, agent):
        G = np.zeros((D, D))
        for i in range(D):
            for j in range(i + 1):  # one normal a pair: (G + G') / sqrt 2 is what is drawn
                normal = word_normal(seed, "attack/gram", t[k - 1], (agent * D + i) * D + j)
                G[i, j] = G[j, i] = normal * (1 if i == j else math.sqrt(0.5))
        return G, vector[k - 1, agent]

    return {"hits": hits, "attack": forge.byzantine(kind, scale, window, theta, part, given)}


def word_normal(seed, path, t, position):
    return float(to_normal(NumpyDraws(seed, path).at(t, position)))


# ---------------------------------------------------------------- cases


class Case(NamedTuple):
    """One fast algorithm and its world."""

    factory: Any
    settings: dict
    attack: dict  # of byzantine, as message_adversary
    poison: dict  # as reward_adversary
    bounded: bool
    horizon: int
    window: int
    rtol: float


def case(
    factory=algorithms.byzantine_ucb, *, attack=None, poison=None, bounded=False, horizon=T, window=L, rtol=1e-9,
    **settings,
):  # fmt: skip
    return Case(factory, settings, attack or {}, poison or {}, bounded, horizon, window, rtol)


def environment_of(c):
    kind = {"reward": "bounded", "noise_scale": 0.3} if c.bounded else {"reward": "gaussian", "noise_scale": 0.4}
    return arms_of(tuple(kind.items()))


@functools.cache
def arms_of(kind):
    sizes = {"num_agents": N, "num_arms": A, "dim": D}
    return functools.partial(environments.federated_linear, **sizes, theta_norm=THETA_NORM, **dict(kind))


def fast(name, seed):
    """The fast run. Cases of one program are played together."""
    return runs_of(tuple(other for other in CASES if program_of(other) == program_of(name)))[name, seed]


@functools.cache
def parts(name):
    """What a lane of a case is made of."""
    c = CASES[name]
    algorithm = c.factory(num_agents=N, num_arms=A, dim=D, horizon=c.horizon, window=c.window, **without(c.settings))
    if "mechanism_scale" in c.settings:
        algorithm = algorithm._replace(params=algorithm.params._replace(mechanism_scale=c.settings["mechanism_scale"]))
    poison = jb.adversaries.poison(**c.poison) if c.poison else None
    return algorithm, environment_of(c)(), poison, jb.adversaries.byzantine(**c.attack) if c.attack else None


@functools.cache
def program_of(name):
    algorithm, *others = parts(name)
    return simulator.parts_of(algorithm, *others, "float64"), tuple(algorithm.schedule)


@functools.cache
def runs_of(names):
    keys = list(itertools.product(names, SEEDS))
    lanes = [Lane(seed, *parts(name)) for name, seed in keys]
    return dict(zip(keys, played(lanes, checkpoints=7, compiled=False), strict=True))


def without(settings):
    return {name: value for name, value in settings.items() if name != "mechanism_scale"}


SERVER = ("aggregate", "iterations", "calibration", "node_scale", "mechanism_scale")


def literal(c, seed, ref=byz, forge=attacks):
    """The transcription on the same draws; without `iterations` by the fast code's 8."""
    x, rewards, theta = world(environment_of(c), seed, c.horizon)
    told = {name: value for name, value in c.settings.items() if name not in (*SERVER, "width")}
    constants = ref.Constants(N, D, c.horizon, c.window, **told)
    more = {"tie": TIE}
    if c.attack:
        more |= attack_of(seed, c.horizon, c.window, theta, forge=forge, **c.attack)
    if c.poison:
        t = np.arange(1, c.horizon + 1)
        chosen = np.arange(N) < oracles.attacked_count(c.poison["corruption"], N)
        hit = draw(seed, "contamination/prob", "uniform", t, (N,)) < c.poison.get("prob", 1.0)
        more["poisoned"] = chosen & hit
    pay = lambda t, i, arm: rewards[t - 1, i, arm]
    if c.factory is not algorithms.byzantine_ucb:
        plan = ref.abbasi_yadkori(constants) if c.settings.get("width") == "abbasi_yadkori" else None
        return getattr(ref, c.factory.__name__)(x, pay, theta, constants, plan=plan, **more)
    groups = None
    if c.settings.get("aggregate") == "median_of_means" and oracles.attacked_count(constants.corruption_bound, N):
        order = np.argsort(draw(seed, "alg/init/groups", "uniform", 0, (N,)), kind="stable")
        groups = np.empty(N, int)  # by rank, in turn
        groups[order] = np.arange(N) % (3 * oracles.attacked_count(constants.corruption_bound, N))
    return ref.byzantine_ucb(
        x, pay, theta, constants, aggregate=c.settings.get("aggregate", "geometric_median"),
        iterations=c.settings.get("iterations", 8), calibration=c.settings.get("calibration", "exact"),
        scale=c.settings.get("node_scale"), mechanism_scale=c.settings.get("mechanism_scale", 1.0),
        node=node_of(seed, c), groups=groups, **more,
    )  # fmt: skip


@functools.cache
def literal_run(name, seed):
    return literal(CASES[name], seed)


def node_of(seed, c):
    """Z' of the tree's node that ends with message n: drawn at the last play of episode n, packed matrices apart."""
    t = np.minimum(first_plays(c.horizon, c.window) + c.window - 1, c.horizon)
    packed = D * (D + 1) // 2

    def node(level, end):
        gram = draw(seed, "alg/update/gram", "normal", t, (N, packed))[end - 1]
        last = draw(seed, "alg/update/vector", "normal", t, (N, D))[end - 1]
        z = np.zeros((N, D + 1, D + 1))
        for agent in range(N):  # (Z' + Z'^T) / sqrt 2 has these: packed coordinates of scale sqrt 2, the vector's of 1
            z[agent, :D, :D] = oracles.unpack(math.sqrt(2) * gram[agent], D) / math.sqrt(2)
            z[agent, :D, D] = math.sqrt(2) * last[agent]
        return z

    return node


SHARP = {"ridge_scale": 0.05, "radius_scale": 0.2, "corruption_bound": 0.3}  # N_1 = 2
PRIVATE = {"bounded": True, "epsilon": 8.0, "ridge_scale": 0.02, "radius_scale": 0.02, "corruption_bound": 0.15}
LITTLE = {"bounded": True, "epsilon": 8.0, "mechanism_scale": 0.05, **SHARP}
CALIBRATED = [("exact", "dp"), ("zcdp", "median_of_means"), ("paper", "geometric_median"), ("exact", "median_of_means")]
# one compiled program a group: the rest is data
MEDIAN = functools.partial(case, **SHARP)
GROUPS = functools.partial(
    case, aggregate="median_of_means", attack={"corruption": 0.3, "kind": "noise", "scale": 0.5, "prob": 0.7},
    poison={"corruption": 0.3, "prob": 0.6},
)  # fmt: skip
REFUSED = {"corruption": 0.3, "kind": "constant"}  # of a norm over L
TREE = functools.partial(case, privacy="tree")
INCREMENT = functools.partial(case, privacy="increment", aggregate="mean")
POISON = {"corruption": 0.15, "prob": 0.7}
ALONE = functools.partial(case, attack={"corruption": 0.3, "scale": 2.0}, poison=POISON, **SHARP)
CASES = {
    "median": MEDIAN(attack={"corruption": 0.3, "scale": 2.0}),
    "median, no attack": MEDIAN(attack={"corruption": 0.0}),
    "median, now and then": MEDIAN(attack={"corruption": 0.4, "scale": 0.6, "prob": 0.5}),
    "median, huge": MEDIAN(attack={"corruption": 0.4, "scale": 1e30}),
    "median, defaults": case(attack={"corruption": 0.3}),
    "median, other constants": case(
        feature_spread=0.4, noise_scale=1.2, failure_prob=0.3, ridge_scale=0.3, radius_scale=0.5, corruption_bound=0.45,
        attack={"corruption": 0.3}),
    "median, constants of the private": MEDIAN(constants="dp", attack={"corruption": 0.3}),
    "median, constants of groups": case(
        constants="median_of_means", attack={"corruption": 0.3}, **SHARP | {"corruption_bound": 0.25}),
    "median, 3 iterations, 1 play": MEDIAN(iterations=3, window=1, horizon=40),
    **{f"groups, {share}": GROUPS(**SHARP | {"corruption_bound": share}) for share in (0.0, 0.15, 0.25)},
    "mean": case(aggregate="mean", attack={"corruption": 0.4, "kind": "alie", "scale": 1.5, "part": "vector"}, **SHARP),
    "coordinates": case(aggregate="coordinate_median", attack={"corruption": 0.3, "kind": "sign_flip"}, **SHARP),
    "trimmed": case(aggregate="trimmed_mean", attack={"corruption": 0.3, "kind": "inner_product", "scale": 3.0},
        **SHARP),
    "trimmed, N_1 = 0": case(
        aggregate="trimmed_mean", attack={"corruption": 0.3, "kind": "inner_product", "scale": 3.0},
        **SHARP | {"corruption_bound": 0.0}),
    "krum": case(aggregate="krum", attack={"corruption": 0.3, "kind": "zero", "part": "matrix"}, **SHARP),
    "krum, N_1 = 3": case(
        aggregate="krum", attack={"corruption": 0.4, "kind": "zero", "part": "matrix", "prob": 0.7},
        **SHARP | {"corruption_bound": 0.45}),
    **{
        f"tree, {calibration}, {kind}": TREE(calibration=calibration, constants=kind, attack={**REFUSED, "prob": 0.3},
            **PRIVATE)
        for calibration, kind in CALIBRATED
    },
    "tree, little noise": TREE(attack={**REFUSED, "scale": 0.1}, **LITTLE),
    "tree, refused": TREE(attack={**REFUSED, "scale": 1e20}, **LITTLE),
    "tree, node scale": TREE(node_scale=0.5, attack=REFUSED, **LITTLE),
    "tree, no noise": TREE(attack=REFUSED, **{**LITTLE, "epsilon": math.inf}),
    "tree, unbounded rewards": TREE(attack=REFUSED, **{**LITTLE, "bounded": False}),
    "tree, K = 1": TREE(window=20, horizon=20, **PRIVATE),
    "tree, K = 2": TREE(calibration="paper", window=20, horizon=35, **PRIVATE),
    **{
        f"increment, {calibration}, {kind}": INCREMENT(
            calibration=calibration, constants=kind, attack={"corruption": 0.3, "kind": "nonfinite"}, **PRIVATE)
        for calibration, kind in CALIBRATED
    },
    "increment, little noise": INCREMENT(attack={"corruption": 0.1, "kind": "nonfinite"}, **LITTLE),
    **{
        f"{factory.__name__}, {width}": ALONE(factory, width=width)
        for factory in (algorithms.isolated_linucb, algorithms.oracle_linucb)
        for width in ("schedule", "abbasi_yadkori")
    },
}  # fmt: skip
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*Assumption 2"), pytest.mark.filterwarnings("ignore:.*privacy noise swamps"),
]  # fmt: skip


# rules that are compared by themselves (test_byzantine_ucb.py), and sizes with programs of their own
NOT_ALWAYS = [
    "median, 3 iterations, 1 play", "tree, K = 1", "tree, K = 2", "tree, unbounded rewards", "coordinates", "trimmed",
    "trimmed, N_1 = 0", "krum", "krum, N_1 = 3", *(name for name in CASES if name.startswith("increment")),
]  # fmt: skip


@pytest.mark.parametrize("name", dealt(CASES, 4, always=set(CASES) - set(NOT_ALWAYS)))
def test_paths_are_those_of_the_transcription(name):
    c = CASES[name]
    for seed in SEEDS:
        run, want = fast(name, seed), literal_run(name, seed)
        np.testing.assert_array_equal(run.history.action, want.actions)
        np.testing.assert_allclose(run.regret, want.regret[np.asarray(run.t) - 1], rtol=c.rtol, atol=1e-12)
        for sent, part in zip(run.history.message[:2], zip(*want.sent, strict=True), strict=True):
            sent, part = sent[:-1], np.array(part)[:-1]  # message K is never used
            finite = np.isfinite(part)
            np.testing.assert_array_equal(np.isfinite(sent), finite)
            np.testing.assert_allclose(np.where(finite, sent, 0), np.where(finite, part, 0), rtol=c.rtol, atol=1e-12)
        if c.settings.get("privacy"):
            gram, vector = run.history.released
            for k, (V, v) in enumerate(want.released[1:]):  # before episode 2, 3, ...: after messages 1, 2, ...
                np.testing.assert_allclose(gram[k], [oracles.pack(x) for x in V], rtol=1e-6, atol=1e-9)
                np.testing.assert_allclose(vector[k], v, rtol=1e-6, atol=1e-9)
            assert len(want.released) == len(gram) and np.isnan(gram[-1]).all()  # message K is never used


# ---------------------------------------------------------------- what the iterations miss


def test_eight_iterations_are_close_to_the_exact_median():
    """Along paths, in median distances: from what is taken to the exact median, and the excess of g (3 of 7 attack)."""
    errors, crude, excess = [], [], []
    for name in ("median, no attack", "median, now and then", "median, huge"):
        for seed in SEEDS:
            statistics = literal_run(name, seed).released
            for kind in ([[oracles.pack(x) for x in V] for V, _ in statistics], [v for _, v in statistics]):
                eight, one = oracles.WarmMedian(8), oracles.WarmMedian(1)
                for points in map(np.array, kind):
                    z, hasty, exact = eight(points), one(points), oracles.geometric_median(points)
                    scale = np.median(np.linalg.norm(points - exact, axis=1)) or 1.0
                    gap = oracles.spread(points, z) - oracles.spread(points, exact)
                    assert -1e-9 * scale <= gap <= oracles.certificate(points, z) + 1e-9 * scale
                    errors.append(np.linalg.norm(z - exact) / scale)
                    crude.append(np.linalg.norm(hasty - exact) / scale)
                    excess.append(gap / scale)
    assert np.quantile(errors, 0.9) < 0.02 and max(errors) < 0.2
    assert np.quantile(crude, 0.9) > 0.05
    assert max(excess) < 0.01


@pytest.mark.parametrize("name", ["median", "median, now and then"])
def test_regret_by_iterations_is_that_by_exact_medians(name):
    exact = CASES[name]._replace(settings={**CASES[name].settings, "iterations": None})
    found = np.array([[fast(name, seed).regret[-1], literal(exact, seed).regret[-1]] for seed in SEEDS])
    np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=0.1)
    assert not np.array_equal(found[:, 0], found[:, 1])


# ---------------------------------------------------------------- planted errors


PLANTED = [
    ("median", byz, "return c.radius_scale * (beta", "return c.radius_scale * (2 * beta"),
    ("median", byz, "math.sqrt((k - 1) * L * d * iota)", "math.sqrt(k * L * d * iota)"),
    ("median", byz, "first * math.sqrt(k))", "first * math.sqrt(k + 1))"),
    ("median", byz, "if k < count:", "if k > 1:"),  # every message an episode late
    ("median, 3 iterations, 1 play", byz, "self.vectors = self.grams + grams, self.vectors + vectors",
        "self.vectors = grams, vectors"),
    ("median, constants of groups", byz, "128 * c.feature_spread", "64 * c.feature_spread"),
    ("mean", attacks, ".std(axis=0)", ".std(axis=0, ddof=1)"),
    ("median, now and then", attacks, "matrices[~hit], vectors[~hit]", "matrices, vectors"),
    ("median", attacks, "@ (-c *", "@ (-2 * c *"),
    ("groups, 0.15", attacks, "c * L * (G + G.T) / math.sqrt(2)", "c * L * (G + G.T)"),
    ("groups, 0.15", byz, "reward - 2 * (x @ theta)", "reward - x @ theta"),
    ("groups, 0.25", byz, "groups, 3 * self.num_attacked)", "groups, 3)"),
    ("krum", oracles, "n - num_attacked - 2)", "n - num_attacked - 1)"),
    ("trimmed", oracles, "dropped : len(column) - dropped", "dropped : len(column)"),
    ("tree, exact, dp", byz, "48 * iota", "24 * iota"),
    ("tree, paper, geometric_median", byz, "np.maximum(values, floor)", "np.maximum(values, floor / 3)"),
    ("tree, little noise", privacy, "return nodes\n", "return nodes[:-1] or nodes\n"),
    ("tree, little noise", privacy, "end += 1 << level", "end += 1"),
    ("tree, little noise", privacy, "+ np.swapaxes(raw, -1, -2)) / math.sqrt(2)", "+ np.swapaxes(raw, -1, -2)) / 2"),
    ("tree, little noise", privacy, "return releases.bit_length()", "return releases.bit_length() - 1"),
    ("tree, little noise", privacy, "math.sqrt(6 * m)", "math.sqrt(3 * m)"),
    ("tree, unbounded rewards", byz, "if any(norm(part) > window", "if any(norm(part) > 9 * window"),
    ("increment, little noise", privacy, "1 if privacy == \"increment\" else", "1 if privacy == \"nothing\" else"),
    ("isolated_linucb, schedule", byz, "return c.radius_scale * (beta", "return c.radius_scale * (2 * beta"),
    ("oracle_linucb, abbasi_yadkori", byz, "math.sqrt(pooled)", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "error"), errors(PLANTED))
def test_a_planted_error_forks_a_path(name, error, monkeypatch):
    right = [literal_run(name, seed).actions for seed in SEEDS]
    module, wrong = error.oracle, planted(*error)
    if module is privacy:
        monkeypatch.setattr(byz, "privacy", wrong)
    if module is oracles:
        monkeypatch.setattr(byz, "oracles", wrong)
    ref, forge = wrong if module is byz else byz, wrong if module is attacks else attacks
    others = (literal(CASES[name], seed, ref, forge).actions for seed in SEEDS)
    assert any(not np.array_equal(*pair) for pair in zip(right, others, strict=True))


@pytest.mark.parametrize("error", errors([(byz, "if k < count:", "if k <= count:")]))
def test_the_last_message_is_never_used(error):
    """No path shows it."""
    x, rewards, theta = world(environment_of(CASES["mean"]), 0, T)
    for ref, count in ((byz, K - 1), (planted(*error), K)):
        server, messages = ref.Server(ref.Constants(N, D, T, L), [ref.Aggregator("mean", 0)] * 2), []
        server.learn = lambda grams, vectors, messages=messages: messages.append(grams)
        ref.play_episodes(x, lambda t, i, arm: rewards[t - 1, i, arm], theta, L, server)
        assert len(messages) == count


def test_regrets_of_the_practical_scales():
    """docs/formulas/byzantine.md#practical-scales (there 4 seeds): the blind first episode, and two pairs of scales."""
    horizon, number, window, rng = 2000, 10, 40, np.random.default_rng(0)
    theta, hits = np.full(4, 0.5), np.arange(number) < np.full((50, 1), 2)
    x = rng.normal(size=(horizon, number, 10, 4))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    noise = 0.5 * rng.normal(size=(horizon, number))
    reward = lambda t, i, arm: x[t - 1, i, arm] @ theta + noise[t - 1, i]
    for ridge, radius, total in ((0.1, 0.03, 245), (0.01, 0.1, 2876)):
        scales = {"corruption_bound": 0.2, "ridge_scale": ridge, "radius_scale": radius}
        c = byz.Constants(number, 4, horizon, window, **scales)
        attack = attacks.byzantine("target", 1.0, window, theta)
        run = byz.byzantine_ucb(x, reward, theta, c, iterations=8, hits=hits, attack=attack)
        assert run.regret[window - 1] == pytest.approx(238, rel=0.05)
        assert run.regret[-1] == pytest.approx(total, rel=0.05)


# ---------------------------------------------------------------- what is computed on the host


def test_constants_are_those_of_the_transcription():
    for kind, epsilon, share in itertools.product(byz.KINDS, (0.5, math.inf), (0.0, 0.2)):
        setting = {
            "num_agents": 9, "dim": 4, "horizon": 777, "window": 11, "corruption_bound": share, "feature_spread": 0.7,
            "noise_scale": 0.2, "failure_prob": 0.01, "epsilon": epsilon, "delta": 1e-4,
        }  # fmt: skip
        c = byz.Constants(**setting, constants=kind, privacy="tree", ridge_scale=1.0, radius_scale=1.0)
        for k in (1, 2, 30):
            ridge, radius = byz.ridge(c, k), byz.radius(c, k)
            assert jb.theory.byzantine_ridge(k, constants=kind, **setting) == pytest.approx(ridge, rel=1e-12)
            assert jb.theory.byzantine_radius(k, constants=kind, **setting) == pytest.approx(radius, rel=1e-12)


def test_scales_and_what_is_spent_are_those_of_the_transcription():
    for epsilon, delta in itertools.product((0.01, 0.5, 1.0, 4.0, 30.0), (1e-9, 1e-5, 1e-3, 0.3)):
        kinds = ("tree", "increment"), ("exact", "zcdp", "paper")
        for releases, form, calibration in itertools.product((0, 1, 2, 7, 8, 100), *kinds):
            want = privacy.node_scale(releases, 3.0, epsilon, delta, privacy=form, calibration=calibration)
            got = jb.mechanisms.tree_scale(3.0, releases, epsilon, delta, calibration=calibration, form=form)
            assert got == pytest.approx(want, rel=1e-7)
            if releases:
                levels = privacy.tree_levels(releases, "exact") if form == "tree" else 1
                spent = jb.mechanisms.tree_epsilon(3.0, releases, got, delta, form=form)
                want = privacy.truly_spent(want / (3 * math.sqrt(levels)), delta)
                assert spent == pytest.approx(want, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("calibration", ["exact", "zcdp", "paper"])
def test_a_private_server_claims_what_it_spends(calibration):
    private = {"window": L, "privacy": "tree", "epsilon": 4.0, "calibration": calibration}
    made = algorithms.byzantine_ucb(num_agents=N, num_arms=A, dim=D, horizon=T, **private)
    want = privacy.node_scale(K - 1, L, 4.0, 1e-3, calibration=calibration)
    levels = privacy.tree_levels(K - 1, "exact")
    spent = privacy.truly_spent(want / (L * math.sqrt(levels)), 1e-3)
    assert made.guarantee.spend(made.params) == pytest.approx((spent, 1e-3), rel=1e-6)
    assert made.guarantee.spend(made.params._replace(mechanism_scale=0.5))[0] > 1.5 * spent


def test_the_servers_checks_are_the_transcriptions():
    rng, window = np.random.default_rng(1), 4.0
    grams, vectors = [], []
    sizes = [(0.1, 0.5), (1e300, 1e-3), (1.0, 4 * (1 + 9e-6)), (1.0, 4 * (1 + 2e-5)), (0.0, 0.0), (0.5, 1e7)]
    for scale, size in sizes:
        raw, v = rng.normal(size=(D, D)), rng.normal(size=D)
        grams.append(scale * (raw + raw.T))
        vectors.append(size * v / np.linalg.norm(v))
    edge = np.diag([window, 0, 0])  # L equal unit vectors
    skew, lost = grams[0].copy(), grams[0].copy()
    skew[0, 1] *= 1.1
    lost[0, 1] = lost[1, 0] = math.nan
    grams += [edge, edge * (1 + 9e-6), edge * (1 + 2e-5), skew, lost, grams[0]]
    vectors += [vectors[0]] * 5 + [np.array([math.inf, 0, 0])]
    grams, vectors = np.array(grams), np.array(vectors)
    with jax.enable_x64(True):
        plain = jax.jit(agents.accept)(Moments(jnp.asarray(grams), jnp.asarray(vectors)), 1e4 * window)
        strict = jax.jit(agents.zero_large_messages)(plain, window)
    for private, got in ((False, plain), (True, strict)):
        want = [byz.receive(*pair, window, private) for pair in zip(grams, vectors, strict=True)]
        for part, values in zip(got[:2], zip(*want, strict=True), strict=True):
            np.testing.assert_allclose(part, values, rtol=1e-12, atol=1e-15)
    assert np.linalg.norm(strict.gram[7]) == pytest.approx(window, rel=1e-14)
    assert strict.gram[6].any()
    assert not strict.gram[8].any()


# ---------------------------------------------------------------- estimators


def clouds(n, p, count=24):
    """Gaussian, with far points, with copies, with a heavy point, on a line."""
    rng = np.random.default_rng((n, p))
    for trial in range(count):
        points = rng.normal(size=(n, p))
        if trial % 5 == 1:
            points[: (n - 1) // 2] *= 10.0 ** rng.integers(2, 12)
        if trial % 5 == 2:
            points[: n // 3] = points[-1]
        if trial % 5 == 3:
            points[: n // 2 + 1] = points[-1]
        if trial % 5 == 4:
            points = points[:, :1] * np.ones(p)
        yield points + rng.normal(size=p)


@pytest.mark.parametrize(("n", "p"), [(5, 2), (7, 3), (10, 6)])
def test_the_geometric_median_is_the_transcription_and_its_gap_a_bound(n, p):
    snapped, tight = 0, 0
    median = jax.jit(lambda x, weights=None: jb.estimators.geometric_median(x, weights=weights))
    with jax.enable_x64(True):
        for weights in (None, np.arange(1.0, n + 1)):
            share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
            for points in clouds(n, p):
                exact = oracles.geometric_median(points, weights)
                best = oracles.spread(points, exact, share)
                got = median(points) if weights is None else median(points, weights)
                value, gap = np.asarray(got.value), float(got.gap)
                true = oracles.spread(points, value, share) - best
                scale = np.median(np.linalg.norm(points - exact, axis=1))
                assert float(got.objective) == pytest.approx(oracles.spread(points, value, share), rel=1e-12)
                assert -1e-12 * best <= true <= gap + 1e-12 * best
                assert true <= 1e-4 * (scale or 1.0)
                tight += gap <= 1e-3 * (scale or 1.0)
                if any(np.array_equal(exact, x) for x in points) and np.linalg.matrix_rank(points - exact) > 1:
                    snapped += 1
                    np.testing.assert_array_equal(value, exact)
    assert snapped > 5
    assert tight > 40


def test_the_robust_means_are_the_transcriptions():
    groups, same = np.arange(9, dtype=np.int32) % 4, {"rtol": 1e-9, "atol": 1e-12}

    @jax.jit
    def means(x, groups):
        of = jb.estimators
        return of.coordinate_median(x), [of.krum(x, n) for n in (0, 2, 4)], of.median_of_means(x, groups, 4)

    with jax.enable_x64(True):
        for points in clouds(9, 4):
            median, krum, got = means(points, groups)
            np.testing.assert_allclose(median, oracles.coordinate_median(points), **same)
            for attacked, value in zip((0, 2, 4), krum, strict=True):
                np.testing.assert_allclose(value, oracles.krum(points, attacked), **same)
            of_groups = oracles.group_means(points, groups, 4)
            exact = oracles.geometric_median(of_groups)
            scale = np.median(np.linalg.norm(of_groups - exact, axis=1))
            assert oracles.spread(of_groups, np.asarray(got)) <= oracles.spread(of_groups, exact) + 1e-4 * (
                scale or 1.0
            )

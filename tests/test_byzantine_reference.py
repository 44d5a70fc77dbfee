"""Byzantine-UCB and its comparators against the literal transcription: the same draws in, the same paths out, in float64.

Medians are compared by the fixed iterations of specification section 7, which are transcribed too, and both to the exact median.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import planted
from reference import byzantine as byz
from reference import byzantine_attacks as attacks
from reference import byzantine_oracles as oracles
from reference import byzantine_privacy as privacy

import jaxbandits as jb
from jaxbandits import algorithms, environments
from jaxbandits.algorithms import _aggregation as aggregation
from jaxbandits.random import Draws, to_normal

N, A, D, L, T = 7, 5, 3, 6, 75  # the last episode has 3 plays
K = byz.episodes_of(T, L)
TIE = 1e-5  # relative: what the library calls a tie
SEEDS = range(3)
THETA_NORM = 0.7


# ---------------------------------------------------------------- the simulator's draws


@functools.partial(jax.jit, static_argnums=(0, 2, 3))
def _draw(path, seed, kind, shape, t):
    return getattr(Draws(seed, path, jnp.float64), kind)(t, shape)


def draw(seed, path, kind, t, shape=()):
    with jax.enable_x64(True):
        return np.asarray(_draw(path, jnp.uint32(seed), kind, shape, jnp.asarray(t, jnp.int32)))


@functools.lru_cache(maxsize=64)
def world(environment, seed, horizon):
    """Contexts [T, N, A, d], rewards of every arm [T, N, A] and theta, float64."""
    environment = environment()
    with jax.enable_x64(True):
        root, t = Draws(jnp.uint32(seed), "environment", jnp.float64), jnp.arange(1, horizon + 1, dtype=jnp.int32)
        params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), environment.params)
        x, _ = environment.world.observe(params, (), root.child("context"), t)
        pay = lambda arm: environment.world.reward(
            params, (), root.child("reward"), t, x, jnp.full(x.shape[:2], arm, jnp.int32)
        )
        rewards = jnp.stack([pay(arm) for arm in range(x.shape[2])], axis=-1)
        return np.asarray(x), np.asarray(rewards), np.asarray(params.theta)


def first_plays(horizon, window):
    return np.arange(0, horizon, window) + 1


def attack_of(
    seed, horizon, window, theta, *, corruption, kind="target", scale=1.0, prob=1.0, part="both", forge=attacks
):
    """hits [K, N] and the attack of the transcription, on the adversary's draws: an episode is addressed by its first play."""
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
    with jax.enable_x64(True):
        return float(to_normal(Draws(jnp.uint32(seed), path, jnp.float64).at(t, position), jnp.float64))


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
    return functools.partial(
        environments.federated_linear, num_agents=N, num_arms=A, dim=D, theta_norm=THETA_NORM, **dict(kind)
    )


def fast(c, seed):
    algorithm = c.factory(num_agents=N, num_arms=A, dim=D, horizon=c.horizon, window=c.window, **without(c.settings))
    if "mechanism_scale" in c.settings:
        algorithm = algorithm._replace(params=algorithm.params._replace(mechanism_scale=c.settings["mechanism_scale"]))
    return jb.simulate(
        algorithm, environment_of(c)(), seed=seed, history=True, dtype="float64", checkpoints=7,
        reward_adversary=jb.adversaries.poison(**c.poison) if c.poison else None,
        message_adversary=jb.adversaries.byzantine(**c.attack) if c.attack else None,
    )  # fmt: skip


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
LITTLE = {"bounded": True, "mechanism_scale": 0.05, "ridge_scale": 0.05, "radius_scale": 0.2, "corruption_bound": 0.15}
RULES = [rule for rule in (
    "geometric_median", "mean", "coordinate_median", "trimmed_mean", "krum", "median_of_means") if rule in aggregation.RULES]  # fmt: skip
MEAN = {"aggregate": "mean", **SHARP}
TARGET = {"attack": {"corruption": 0.3, "scale": 2.0}}
CASES = {  # one program a rule and kind of attack, everything else is data
    **{f"{rule}, target": case(aggregate=rule, **TARGET, **SHARP) for rule in RULES if rule != "median_of_means"},
    **{f"{rule}, no attack": case(aggregate=rule, attack={"corruption": 0.0}, **SHARP) for rule in RULES},
    **{
        f"{rule}, N_1 = 0": case(aggregate=rule, **TARGET, **SHARP | {"corruption_bound": 0.0})
        for rule in RULES if rule != "krum"
    },
    **{
        f"median_of_means, {share}": case(aggregate="median_of_means", **TARGET, **SHARP | {"corruption_bound": share})
        for share in (0.15, 0.25) if "median_of_means" in RULES
    },
    **{
        f"mean, {kind}, {part}": case(attack={"corruption": 0.3, "kind": kind, "scale": 0.7, "part": part}, **MEAN)
        for kind, part in (
            ("sign_flip", "both"), ("zero", "matrix"), ("nonfinite", "both"), ("inner_product", "vector"), ("none", "both"))
    },
    "median, now and then": case(attack={"corruption": 0.4, "kind": "alie", "scale": 1.5, "prob": 0.6}, **SHARP),
    "median, noise": case(attack={"corruption": 0.4, "kind": "noise", "scale": 3.0, "prob": 0.7}, **SHARP),
    "median, huge": case(attack={"corruption": 0.4, "kind": "constant", "scale": 1e30}, **SHARP),
    "median, 3 iterations": case(iterations=3, **TARGET, **SHARP),
    "median, defaults": case(**TARGET),
    "median, other constants": case(
        feature_spread=0.4, noise_scale=1.2, failure_prob=0.3, ridge_scale=0.3, radius_scale=0.5, corruption_bound=0.45, **TARGET),
    "median, constants of the private": case(constants="dp", **TARGET, **SHARP),
    "median, constants of groups": case(constants="median_of_means", **TARGET, **SHARP | {"corruption_bound": 0.25}),
    "mean, poisoned and attacked": case(
        poison={"corruption": 0.3, "prob": 0.6}, attack={"corruption": 0.15, "prob": 0.5, "scale": 0.3}, **MEAN),
    "windows of one play": case(window=1, horizon=40, **SHARP),
    **{
        f"{form}, {calibration}, {kind}": case(privacy=form, calibration=calibration, constants=kind, **PRIVATE)
        for form, calibration, kind in (
            ("tree", "exact", "dp"), ("tree", "zcdp", "median_of_means"), ("tree", "paper", "geometric_median"),
            ("increment", "exact", "median_of_means"), ("increment", "zcdp", "geometric_median"), ("increment", "paper", "dp"),
        )
    },
    **{
        f"{form}, {rule}, little noise": case(privacy=form, aggregate=rule, epsilon=8.0, **LITTLE)
        for form, rule in (("tree", "mean"), ("tree", "geometric_median"), ("increment", "geometric_median"))
    },
    "tree, node scale": case(privacy="tree", node_scale=0.7, **{**LITTLE, "mechanism_scale": 0.5}),
    "tree, no noise": case(privacy="tree", **{**LITTLE, "mechanism_scale": 1.0}),
    "tree, refused": case(
        privacy="tree", epsilon=20.0, attack={"corruption": 0.3, "kind": "constant"}, **{**SHARP, "mechanism_scale": 0.1}),
    "tree, K = 1": case(privacy="tree", window=20, horizon=20, **PRIVATE),
    "tree, K = 2": case(privacy="tree", calibration="paper", window=20, horizon=35, **PRIVATE),
    **{
        f"{factory.__name__}, {width}": case(factory, width=width, **TARGET, poison={"corruption": 0.15, "prob": 0.7}, **SHARP)
        for factory in (algorithms.isolated_linucb, algorithms.oracle_linucb) for width in ("schedule", "abbasi_yadkori")
    },
}  # fmt: skip
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*Assumption 2"), pytest.mark.filterwarnings("ignore:.*privacy noise swamps"),
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_paths_are_those_of_the_transcription(name):
    c = CASES[name]
    for seed in SEEDS:
        run, want = fast(c, seed), literal(c, seed)
        np.testing.assert_array_equal(run.history.action, want.actions)
        np.testing.assert_allclose(run.regret, want.regret[np.asarray(run.t) - 1], rtol=c.rtol, atol=1e-12)
        for sent, part in zip(run.history.message[:2], zip(*want.sent, strict=True), strict=True):
            finite = np.isfinite(part)
            np.testing.assert_array_equal(np.isfinite(sent), finite)
            np.testing.assert_allclose(np.where(finite, sent, 0), np.where(finite, part, 0), rtol=c.rtol, atol=1e-12)
        if c.settings.get("privacy"):
            gram, vector = run.history.released
            for k, (V, v) in enumerate(want.released[1:]):  # before episode 2, 3, ...: after messages 1, 2, ...
                np.testing.assert_allclose(gram[k], [oracles.pack(x) for x in V], rtol=1e-6, atol=1e-9)
                np.testing.assert_allclose(vector[k], v, rtol=1e-6, atol=1e-9)
            assert len(want.released) == len(gram) and np.isnan(gram[-1]).all()  # message K is never used

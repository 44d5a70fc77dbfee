"""Attacks on federated agents, through whole runs: who is attacked when, what is sent, what the regret leaves out."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import plays
from numpy_draws import NumpyDraws
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.adversaries import byzantine, huber, poison
from jaxbandits.environments import federated_linear
from jaxbandits.protocol import AdversaryView, Moments, Truth
from jaxbandits.random import Draws

N, A, D, L, T = 6, 4, 3, 5, 23  # the last episode has three plays
WORLD = federated_linear(num_agents=N, num_arms=A, dim=D)
THETA = np.full(D, 1 / np.sqrt(D))


SHAPE = {"num_agents": N, "num_arms": A, "dim": D, "horizon": T}
MEAN = jb.algorithms.byzantine_ucb(**SHAPE, window=L, aggregate="mean", radius_scale=0.2)
SEED = 2


def played(*adversaries):
    """A run by the mean for each pair (reward_adversary, message_adversary), every play a checkpoint."""
    lanes = [plays.Lane(SEED, MEAN, WORLD, *pair) for pair in adversaries]
    return plays.played(lanes, checkpoints=np.arange(1, T + 1), compiled=False)


@functools.cache
def poisoned():
    """At its plays; at corruption 0; at no play."""
    settings = ({"corruption": 0.3, "prob": 0.4}, {"corruption": 0.0}, {"corruption": 0.4, "prob": 0.0})
    return played(*((poison(**one), None) for one in settings))


@functools.cache
def world():
    """Decision sets [T, N, A, d] and noise [T, N] in float64."""

    def sets():
        draws, t = Draws(jnp.uint32(SEED), "environment/context", jnp.float64), jnp.arange(1, T + 1, dtype=jnp.int32)
        return WORLD.world.observe(WORLD.params, (), draws, t)[0]

    with jax.enable_x64(True):
        contexts = uncompiled(sets)()
    return contexts, 0.5 * NumpyDraws(SEED, "environment/reward").normal(np.arange(1, T + 1), (N,))


def chances(path, t, shape):
    return NumpyDraws(SEED, path).uniform(np.asarray(t), shape)


def taken(sets, action):
    return np.take_along_axis(sets, np.asarray(action)[..., None, None], axis=2)[:, :, 0]


def regrets(sets, action):
    """[T, N]"""
    return (sets @ THETA).max(-1) - taken(sets, action) @ THETA


def honest_moments(x, reward):
    """U [K, N, d, d] and u [K, N, d] of every episode."""
    cuts = [slice(k, min(k + L, T)) for k in range(0, T, L)]
    grams = np.array([np.einsum("tni,tnj->nij", x[c], x[c]) for c in cuts])
    return grams, np.array([np.einsum("tni,tn->ni", x[c], reward[c]) for c in cuts])


def test_poison_pays_minus_theta_at_its_plays_and_leaves_exactly_them_out():
    run, (sets, noise) = poisoned()[0], world()
    hit = (chances("contamination/prob", np.arange(1, T + 1), (N,)) < 0.4) & (np.arange(N) < 2)  # floor(1.8 + 1/2)
    assert 0 < hit[:, :2].sum() < 2 * T and len({tuple(row) for row in hit}) > 2
    mean = taken(sets, run.history.action) @ THETA
    np.testing.assert_allclose(run.history.reward, np.where(hit, -mean, mean) + noise, atol=1e-6)
    lost = np.where(hit, 0, regrets(sets, run.history.action))
    np.testing.assert_allclose(run.regret, np.cumsum(lost.sum(1)), rtol=1e-6)
    gram, vector = honest_moments(taken(sets, run.history.action), np.asarray(run.history.reward))
    np.testing.assert_allclose(run.history.message.vector, vector, atol=1e-5)  # poisoned agents report what they saw
    np.testing.assert_allclose(run.history.message.gram, gram, atol=1e-5)
    assert run.diagnostics["nonfinite_rewards"] == 0


def test_poison_does_nothing_at_corruption_zero_and_keeps_rewards_bounded():
    (plain,) = played((None, None))
    for run in poisoned()[1:]:
        np.testing.assert_array_equal(run.regret, plain.regret)
    bounded = federated_linear(num_agents=N, num_arms=A, dim=D, reward="bounded", theta_norm=0.6, noise_scale=0.4)
    algorithm = jb.algorithms.isolated_linucb(num_agents=N, num_arms=A, dim=D, horizon=T, window=L)
    (run,) = plays.played([plays.Lane(0, algorithm, bounded, poison(corruption=0.4))], compiled=False, dtype="float32")
    assert np.abs(run.history.reward).max() <= 1


def test_regret_is_of_the_agents_that_neither_adversary_attacks():
    """Agents learn by themselves, so that the others' plays are the same beside one adversary and beside both."""
    alone = jb.algorithms.isolated_linucb(num_agents=N, num_arms=A, dim=D, horizon=T, window=L)
    many, few = {"corruption": 0.4}, {"corruption": 0.2}  # two agents of six, and one of these
    for both, wider in (
        ((poison(**many), byzantine(**few)), (poison(**many), None)),
        ((poison(**few), byzantine(**many)), (None, byzantine(**many))),
    ):
        pairs = both, wider, (None, None)
        found = plays.played([plays.Lane(SEED, alone, WORLD, *pair) for pair in pairs], checkpoints=1, compiled=False)
        assert found[0].regret[-1] == found[1].regret[-1] < found[2].regret[-1]


def test_poison_draws_the_same_under_every_window():
    adversary, means = poison(corruption=0.4, prob=0.5), np.full((12, N, A), 1 / 3, np.float32)
    action = np.zeros((12, N), np.int32)

    @uncompiled
    def corrupted(t, means, action):
        seen = AdversaryView(t, (), action, (), Truth(means), (), (), (), None)
        params, draws = jax.tree.map(jnp.float32, adversary.params), Draws(jnp.uint32(5))
        return adversary.attack.corrupt(params, (), draws, t, jnp.ones(action.shape), seen)[:2]

    t = np.arange(1, 13, dtype=np.int32)
    whole = corrupted(t, means, action)
    parts = [corrupted(t[i : i + 4], means[i : i + 4], action[i : i + 4]) for i in (0, 4, 8)]
    for i in range(2):
        np.testing.assert_array_equal(np.concatenate([p[i] for p in parts]), whole[i])


def test_target_sends_its_definition_in_the_episodes_it_attacks():
    attack = byzantine(corruption=0.5 - 1e-9, kind="target", scale=2.0, prob=0.5)
    (run,), (sets, noise) = played((None, attack)), world()
    x = taken(sets, run.history.action)
    gram, vector = honest_moments(x, x @ THETA + noise)
    first = np.arange(1, T + 1, L)  # an episode is addressed by its first play
    hit = (chances("attack/prob", first, (N,)) < 0.5) & (np.arange(N) < 3)
    assert len({tuple(row) for row in hit}) > 2
    for k in range(len(first)):
        mean = gram[k][~hit[k]].mean(0)
        want_gram, want = gram[k].copy(), vector[k].copy()
        want_gram[hit[k]], want[hit[k]] = mean, mean @ (-2 * THETA)
        np.testing.assert_allclose(run.history.message.gram[k], want_gram, atol=1e-5)
        np.testing.assert_allclose(run.history.message.vector[k], want, atol=1e-5)
    lost = np.where(np.repeat(hit, L, axis=0)[:T], 0, regrets(sets, run.history.action))
    np.testing.assert_allclose(run.regret, np.cumsum(lost.sum(1)), rtol=1e-6)


@functools.cache
def attacked(attack):
    @uncompiled
    def run(params, gram, vector):
        t = jnp.arange(1, L + 1, dtype=jnp.int32)
        seen = AdversaryView(t, (), (), t > 0, Truth(theta=jnp.asarray(THETA, jnp.float32)), (), (), (), None)
        return attack.corrupt(params, (), Draws(jnp.uint32(0)), t, Moments(gram, vector), seen)[0]

    return run


def sent(adversary, gram, vector):
    params = jax.tree.map(np.float32, adversary.params)
    message = attacked(adversary.attack)(params, np.asarray(gram, np.float32), np.asarray(vector, np.float32))
    return np.asarray(message.gram, float), np.asarray(message.vector, float)


def test_an_attacker_by_hand():
    """Honest u: (1, 2), (3, -2), (5, -6): mean (3, -2), deviation sqrt(8/3), sqrt(32/3); one of four attacks."""
    vector = np.array([[9.0, 9, 9], [1, 2, 0], [3, -2, 0], [5, -6, 0]])
    gram = np.array([np.eye(3) * c for c in (7.0, 1, 2, 6)])
    share = {"corruption": 0.25}
    s = np.sqrt([8 / 3, 32 / 3, 0])
    want = {
        "alie": (3 * np.eye(3), [3 - 1.5 * s[0], -2 + 1.5 * s[1], 0]),
        "inner_product": (3 * np.eye(3), [-4.5, 3, 0]),
        "target": (3 * np.eye(3), -4.5 * THETA),
        "sign_flip": (7 * np.eye(3), [-13.5] * 3),
        "constant": (7.5 * np.eye(3), [-7.5] * 3),
        "zero": (np.zeros((3, 3)), [0, 0, 0]),
    }
    for kind, (matrix, fake) in want.items():
        got = sent(byzantine(kind=kind, scale=1.5, **share), gram, vector)
        np.testing.assert_allclose(got[0][0], matrix, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[1][0], fake, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(got[0][1:], gram[1:])
        np.testing.assert_array_equal(got[1][1:], vector[1:])
    huge = sent(byzantine(kind="constant", scale=1e30, part="matrix", **share), gram, vector)
    np.testing.assert_allclose(huge[0][0], 5e30 * np.eye(3), rtol=1e-6)
    np.testing.assert_array_equal(huge[1], vector)


def test_below_one_half_no_majority_attacks():
    for agents, number in ((1, 0), (2, 1), (5, 2), (6, 3)):
        gram, vector = np.tile(np.eye(3), (agents, 1, 1)), np.ones((agents, 3))
        got = sent(byzantine(kind="zero", corruption=0.5 - 1e-7), gram, vector)[1]
        assert (got[:, 0] == 0).tolist() == [i < number for i in range(agents)]


def test_contamination_is_not_about_agents():
    assert huber(corruption=0.6).params.corruption == 0.6

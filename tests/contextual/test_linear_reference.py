"""Stochastic, linear and federated algorithms against their literal transcriptions, on the same addressed draws.

Float32 takes indices within 1e-5 for tied; the reference is given the same tolerance. Planted errors must fork the
paths: one in the clock seldom does so late, when widths hardly change, so UCB1 and LinUCB are compared over many
short runs as well.
"""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from against_reference import forked, world_tables
from dealt import dealt
from planting import errors, planted
from plays import of_cases
from reference import federated, linear, stochastic

import jaxbandits as jb
from jaxbandits import algorithms, environments

TIE = 1e-5
MEANS = np.array([0.5, 0.9, 0.2, 0.8])
ACTIONS = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.2], [0.1, 0.5, -0.7], [-0.5, 0.5, 0.5]])
THETA = np.array([0.7, 0.1, -0.3])
AGENTS, ARMS, DIM, EPISODE = 5, 6, 3, 8


class Pair(NamedTuple):
    """A fast algorithm and the same run of the reference."""

    algorithm: Any
    environment: Any
    literal: Any  # (reference module, contexts, truth, rewards) -> actions
    module: Any  # the reference module
    seeds: range
    choices: int  # arms of a play
    adversary: Any = None  # of messages
    agents: int | None = None


def stochastic_pair(factory, literal, horizon, means=MEANS, seeds=range(8), **settings):
    arms = environments.gaussian_arms(means=means, scale=0.4)
    algorithm = factory(num_arms=len(means), horizon=horizon, **settings)

    def run(ref, contexts, theta, rewards):
        return literal(ref)(lambda t, arm: rewards[t - 1, arm], len(means), horizon, **settings)

    return Pair(algorithm, arms, run, stochastic, seeds, len(means))


def linucb_pair(horizon, num_arms, seeds, **settings):
    algorithm = algorithms.linucb(num_arms=num_arms, dim=4, horizon=horizon, preset="theory", **settings)

    def run(ref, contexts, theta, rewards):
        return ref.linucb_theory(contexts, lambda t, arm: rewards[t - 1, arm], tie_tolerance=TIE, **settings)

    world = environments.contextual_linear(num_arms=num_arms, dim=4)
    return Pair(algorithm, world, run, linear, seeds, num_arms)


def robust_pair(horizon, num_batches, seeds, **settings):
    arms = environments.linear_arms(actions=ACTIONS, theta=THETA)
    sizes = {"actions": ACTIONS, "horizon": horizon, "num_batches": num_batches}
    algorithm = algorithms.robust_elimination(**sizes, variance_bound="observed", **settings)

    def run(ref, contexts, theta, rewards):
        played = ref.robust_elimination_m1(
            ACTIONS, lambda t, arm: rewards[t - 1, arm], horizon=horizon, num_batches=num_batches,
            relative_guard=2e-6, **settings,
        )  # fmt: skip
        return played.actions

    return Pair(algorithm, arms, run, linear, seeds, len(ACTIONS))


def federated_pair(factory, literal, seeds=range(6), horizon=100, share=0.0, **settings):
    """Agents play `horizon` plays, the last episode of which is shorter than the others."""
    shape = {"num_agents": AGENTS, "num_arms": ARMS, "dim": DIM}
    world = environments.federated_linear(**shape)
    algorithm = factory(**shape, horizon=horizon, window=EPISODE, corruption_bound=0.2, **settings)
    adversary = jb.adversaries.byzantine(kind="target", corruption=share, scale=0.5) if share else None

    def run(ref, contexts, theta, rewards):
        return literal(ref)(
            contexts, lambda t, agent, arm: rewards[t - 1, agent, arm], theta, window=EPISODE, tie_tolerance=TIE,
            corruption_bound=0.2, **settings, **({"attacked": range(2), "attack_scale": 0.5} if share else {}),
        )  # fmt: skip

    return Pair(algorithm, world, run, federated, seeds, ARMS, adversary, AGENTS)


PAIRS = {
    "ucb1": stochastic_pair(algorithms.ucb1, lambda ref: ref.ucb1, 150),
    "ucb1, 40 short runs": stochastic_pair(algorithms.ucb1, lambda ref: ref.ucb1, 40, seeds=range(40)),
    "successive_elimination": stochastic_pair(
        algorithms.successive_elimination, lambda ref: ref.successive_elimination, 1000, noise_scale=0.4,
        seeds=range(16),
    ),
    "successive_elimination, short runs": stochastic_pair(
        algorithms.successive_elimination, lambda ref: ref.successive_elimination, 12, noise_scale=0.1,
        failure_prob=0.9, seeds=range(100),
    ),
    "linucb": linucb_pair(150, 10, range(8), radius_scale=0.3),
    "linucb, 400 arms": linucb_pair(8, 400, range(30)),
    "robust_elimination": robust_pair(1500, 4, range(8)),
    "robust_elimination, fine design": robust_pair(1500, 4, range(8), design_slack=0.02, noise_scale=0.8),
    "byzantine_ucb": federated_pair(functools.partial(algorithms.byzantine_ucb, aggregate="mean"),
        lambda ref: ref.federated_ucb),
    "byzantine_ucb, target": federated_pair(functools.partial(algorithms.byzantine_ucb, aggregate="mean"),
        lambda ref: ref.federated_ucb, share=0.4),
    "isolated_linucb": federated_pair(algorithms.isolated_linucb, lambda ref: ref.isolated_linucb),
}  # fmt: skip


@functools.cache
def fast(name):
    """Actions [S, T] or [S, T, N] and final regrets [S]; pairs that differ in numbers alone share a program."""
    pair = PAIRS[name]
    case = pair.algorithm, pair.environment, None, pair.adversary
    (lanes,) = of_cases([case], pair.seeds, dtype="float32")
    return np.array([lane.history.action for lane in lanes]), [lane.regret for lane in lanes]


@functools.cache
def tables(name):
    one = PAIRS[name]
    return world_tables(one.environment, one.seeds, one.algorithm.config["horizon"], one.choices, agents=one.agents)


def literal(name, module, lane):
    """The reference on lane `lane` of the pair's seeds."""
    return PAIRS[name].literal(module, *jax.tree.map(lambda x: x[lane], tables(name)))


def actions_of(result):
    return getattr(result, "actions", result)


def paths(name, module):
    return [actions_of(literal(name, module, lane)) for lane in range(len(PAIRS[name].seeds))]


@functools.cache
def right_paths(name):
    return paths(name, PAIRS[name].module)


# of the federated wing, whose own reference compares more of them, and what test_ldp_contextual_reference compares too
ELSEWHERE = ("byzantine_ucb, target", "isolated_linucb", "linucb")


@pytest.mark.parametrize("name", dealt(PAIRS, 4, always=PAIRS.keys() - ELSEWHERE))
def test_paths_are_those_of_the_reference(name):
    assert forked(fast(name)[0], right_paths(name)) == 0
    assert len(np.unique(fast(name)[0])) > 1  # a path that says something


PLANTED = [  # in the transcription of the pair
    ("ucb1", "scale * math.sqrt(2 * math.log(t)", "2 * scale * math.sqrt(2 * math.log(t)"),
    ("ucb1, 40 short runs", "math.log(t)", "math.log(t + 1)"),
    ("ucb1, 40 short runs", "scale * math.sqrt(2 * math.log(t)", "2 * scale * math.sqrt(2 * math.log(t)"),
    ("successive_elimination", "radius = scale *", "radius = 2 * scale *"),
    ("successive_elimination", "reward_of(len(actions) + 1, a)", "reward_of(len(actions), a)"),
    ("successive_elimination, short runs", "t = len(actions)\n", "t = 1 + len(actions)\n"),
    ("linucb", "radius_scale * linucb_width(", "2 * radius_scale * linucb_width("),
    ("linucb, 400 arms", "t - 1 + first", "t - 2 + first"),
    ("linucb, 400 arms", "t - 1 + first", "t + first"),
    ("robust_elimination", "return sampling_scale * widest", "return 2 * sampling_scale * widest"),
    ("robust_elimination", "counts(d.weights, growth**i,", "counts(d.weights, growth ** (i - 1),"),
    ("robust_elimination, fine design", "(1 + slack) * rank", "2 * rank"),
    ("byzantine_ucb", "radius_scale * beta", "2 * radius_scale * beta"),
    ("byzantine_ucb", "math.sqrt((k - 1) *", "math.sqrt(k *"),
    ("byzantine_ucb, target", "-attack_scale *", "-2 * attack_scale *"),
    ("byzantine_ucb, target", "sum(sent[i][0] for i in honest) / len(honest)", "sum(s[0] for s in sent) / num_agents"),
    ("isolated_linucb", "radius_scale * beta", "2 * radius_scale * beta"),
    ("isolated_linucb", "math.sqrt((k - 1) *", "math.sqrt(k *"),
]


@pytest.mark.parametrize(("name", "error"), errors([(name, PAIRS[name].module, *change) for name, *change in PLANTED]))
def test_a_planted_error_forks_the_paths(name, error):
    assert forked(right_paths(name), paths(name, planted(*error))) > 0


@pytest.mark.parametrize(
    "name", dealt(["byzantine_ucb", "byzantine_ucb, target", "isolated_linucb"], 4, always=["byzantine_ucb"])
)
def test_regret_of_honest_agents_is_that_of_the_reference(name):
    expected = [literal(name, federated, lane).regret[-1] for lane in range(len(PAIRS[name].seeds))]
    np.testing.assert_allclose([regret[-1] for regret in fast(name)[1]], expected, rtol=2e-5)


@pytest.mark.parametrize("name", dealt(["linucb", "linucb, 400 arms"], 4, always=["linucb, 400 arms"]))
def test_contextual_regret_is_that_of_the_reference(name):
    for lane, regret in enumerate(fast(name)[1]):
        contexts, theta, _ = jax.tree.map(lambda x: x[lane], tables(name))  # noqa: B023
        means = contexts @ theta
        lost = means.max(axis=1) - means[np.arange(len(means)), right_paths(name)[lane]]
        assert regret == pytest.approx(lost.sum(), rel=2e-5)


def test_a_history_is_the_run_that_counts_regret():
    """They are played apart."""
    pair, means = PAIRS["ucb1"], MEANS
    run = jb.simulate(pair.algorithm, pair.environment, seed=3, history=True, checkpoints=1)
    np.testing.assert_array_equal(run.history.action, fast("ucb1")[0][3])
    assert run.regret[-1] == pytest.approx((means.max() - means[run.history.action]).sum(), rel=1e-9)

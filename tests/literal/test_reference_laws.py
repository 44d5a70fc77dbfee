"""Fast code and reference in distribution, their tunings, and the limits in which an algorithm becomes another.

Mean final regrets of 256 lanes and of 200 runs of the reference on draws of its own lie within 4 standard errors.
"""

import functools
import itertools
import math
from functools import partial

import numpy as np
import pytest
from against_reference import apart, planted
from reference import adversarial, stochastic

import jaxbandits as jb
from jaxbandits import adversaries, algorithms, environments, theory
from jaxbandits.learners.perturbed import leader_probability

MEANS = np.array([0.2, 0.5, 0.8])  # losses, or 1 - rewards
RUNS = 200


def final_regret(algorithm, environment, horizon):
    swept = jb.sweep(algorithm, environment, horizon=horizon, seeds=256, checkpoints=[horizon], progress=False)
    return swept.regret.to_numpy().ravel()


def reference_regret(play, horizon):
    """`play(rng) -> actions [T]` for each run; regret in means."""
    return np.array([(MEANS[play(np.random.default_rng(run))] - MEANS.min()).sum() for run in range(RUNS)])


def losses_of(rng, horizon):
    return (rng.random((horizon, len(MEANS))) < MEANS).astype(float)


def base_run(make, horizon, window=1, noise_scale=0.0):
    """A base of the reference inside Algorithm 1; window 1 without noise is the base alone."""

    def literal(ref):
        def play(rng):
            losses, uniforms = losses_of(rng, horizon), rng.random(horizon)
            noise = rng.laplace(size=horizon)
            return ref.private_batched(make(ref), losses, uniforms, noise, window=window, noise_scale=noise_scale)[0]

        return play

    return literal


def ucb1_run(ref):
    def play(rng):
        return ref.ucb1(lambda t, arm: 1 - MEANS[arm] + 0.3 * rng.normal(), len(MEANS), 200)

    return play


LOSSES = environments.bernoulli_losses(means=MEANS)
LAWS = {  # algorithm, environment, horizon, reference module and run, doubled step
    "exp3": (
        partial(algorithms.exp3, learning_rate=0.03, mixing=0.0), LOSSES, 200, adversarial,
        base_run(lambda ref: ref.Exp3(3, learning_rate=0.03), 200),
        ("self.learning_rate * x / self.p", "2 * self.learning_rate * x / self.p"),
    ),
    "htinf": (
        algorithms.htinf, LOSSES, 60, adversarial, base_run(lambda ref: ref.Htinf(3), 60),
        ("return self.tail_scale * self.t", "return 0.5 * self.tail_scale * self.t"),
    ),
    "private htinf": (
        partial(algorithms.private_batched, epsilon=1.0, window=3), LOSSES, 180, adversarial,
        base_run(lambda ref: ref.Htinf(3), 180, 3, 1 / 3),
        ("return self.tail_scale * self.t", "return 0.5 * self.tail_scale * self.t"),
    ),
    "ucb1": (
        algorithms.ucb1, environments.gaussian_arms(means=1 - MEANS, scale=0.3), 200, stochastic, ucb1_run,
        ("scale * math.sqrt(2 * math.log(t)", "2 * scale * math.sqrt(2 * math.log(t)"),
    ),
}  # fmt: skip


@functools.cache
def fast_regret(name):
    return final_regret(*LAWS[name][:3])


@pytest.mark.parametrize("name", LAWS)
def test_mean_regret_is_that_of_the_reference(name):
    _, _, horizon, module, run, _ = LAWS[name]
    assert apart(fast_regret(name), reference_regret(run(module), horizon)) < 4


@pytest.mark.parametrize("name", LAWS)
def test_a_doubled_step_shows_in_the_mean_regret(name):
    _, _, horizon, module, run, error = LAWS[name]
    assert apart(fast_regret(name), reference_regret(run(planted(module, *error)), horizon)) > 4


@pytest.mark.parametrize("gaps", [[0.0, 0.0], [0.0, 0.3, 2.0], [0.0, 1.0, 1.0, 4.0, 7.5], [0.0] + [3.0] * 9])
def test_leader_probability_is_that_of_the_reference(gaps):
    for arm in range(len(gaps)):
        exact = adversarial.laplace_argmin_probability(arm, gaps, 1.0)
        fast = float(leader_probability(np.float32(gaps), np.int32(arm)))
        assert fast == pytest.approx(exact, rel=3e-4, abs=1e-7)


# ---------------------------------------------------------------- tunings


def both(fast, literal):
    """Values of both, or None where they refuse."""

    def value(f):
        try:
            return f()
        except ValueError:
            return None

    return value(fast), value(literal)


GRID = list(itertools.product((2, 3, 10, 50), (30, 100, 1000, 100_000), (0.003, 0.05, 0.1, 1 / 3, 0.7, 1.0)))


@pytest.mark.parametrize(("fast", "literal", "names"), [
    (theory.exp3_tuning, adversarial.exp3_private_tuning, ("learning_rate", "mixing")),
    (theory.ftpl_tuning, adversarial.ftpl_private_tuning, ("learning_rate", "tries")),
])  # fmt: skip
def test_tunings_of_the_corollaries(fast, literal, names):
    agreed = 0
    for k, horizon, epsilon in GRID:
        if epsilon * horizon < 1 or (literal is adversarial.ftpl_private_tuning and k * epsilon * horizon <= 1):
            continue
        made, expected = both(lambda: fast(k, horizon, epsilon), lambda: literal(k, horizon, epsilon))  # noqa: B023
        assert (made is None) == (expected is None), (k, horizon, epsilon)
        if made is not None:
            root = math.sqrt(k * epsilon * horizon)
            if "tries" in names and abs(root - round(root)) < 1e-9:  # a whole root, whichever way it was rounded
                expected = (expected[0], round(root))
            assert [made[name] for name in names] == pytest.approx(expected, rel=1e-12)
            assert made["window"] == adversarial.window(epsilon)
            assert made["noise_scale"] == pytest.approx(1 / (made["window"] * epsilon))
            agreed += 1
    assert agreed > 30


@pytest.mark.parametrize(("fast", "literal", "names"), [
    (theory.exp3_noisy_tuning, adversarial.exp3_general_tuning, ("learning_rate", "mixing")),
    (theory.ftpl_noisy_tuning, adversarial.ftpl_general_tuning, ("learning_rate", "tries")),
])  # fmt: skip
def test_tunings_of_the_general_forms(fast, literal, names):
    agreed = 0
    for k, rounds, scale in itertools.product((2, 3, 10, 50), (30, 100, 1000, 100_000), (0.0, 0.2, 0.9, 1.0, 3.0)):
        made, expected = both(lambda: fast(k, rounds, scale), lambda: literal(k, rounds, scale))  # noqa: B023
        assert (made is None) == (expected is None), (k, rounds, scale)
        if made is not None:
            assert [made[name] for name in names] == pytest.approx(expected, rel=1e-12)
            agreed += 1
    assert agreed > 60


def test_tunings_over_experts():
    agreed = 0
    for k, horizon, epsilon in GRID:
        for n in (2, 8):
            made, expected = both(
                lambda: theory.local_exp4_tuning(k, n, horizon, epsilon),  # noqa: B023
                lambda: adversarial.local_exp4_tuning(k, n, horizon, epsilon),  # noqa: B023
            )
            assert (made is None) == (expected is None), (k, n, horizon, epsilon)
            if made is not None:
                assert [made["learning_rate"], made["mixing"]] == pytest.approx(expected, rel=1e-12)
                agreed += 1
            for rule in ("repaired", "printed"):
                made, expected = both(
                    lambda: theory.batched_exp4_tuning(k, n, horizon, epsilon, 0.1, mixing_rule=rule),  # noqa: B023
                    lambda: adversarial.batched_exp4_tuning(k, n, horizon, epsilon, 0.1, mixing_rule=rule),  # noqa: B023
                )
                assert (made is None) == (expected is None), (k, n, horizon, epsilon, rule)
                if made is not None:
                    names = ("learning_rate", "mixing", "window", "noise_scale")
                    assert [made[name] for name in names] == pytest.approx(expected, rel=1e-12)
                    agreed += 1
    assert agreed > 150


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("epsilon", [0.05, 0.2, 2.0])
def test_the_base_gets_the_tail_scale_of_the_reference(window, epsilon):
    made = algorithms.private_batched(num_arms=3, horizon=100, epsilon=epsilon, window=window)
    expected = adversarial.htinf_tail_scale(1 / (window * epsilon))
    assert made.params.base.tail_scale == pytest.approx(expected, rel=1e-12)


# ---------------------------------------------------------------- limits


def simulated(algorithm, environment, **settings):
    return jb.simulate(algorithm, environment, seed=11, history=True, checkpoints=1, **settings)


@pytest.mark.parametrize("base", [algorithms.exp3, algorithms.htinf, algorithms.ftpl])
def test_infinite_epsilon_is_the_base_itself(base):
    """Both draw under `alg/act/base` and `alg/update/base`; the base alone draws under `alg/act` and `alg/update`.

    Following experts who each stand for one arm is the base alone, moved to those paths.
    """
    horizon, table = 120, np.random.default_rng(2).random((120, 3))
    losses = environments.loss_table(losses=table)
    sure = environments.rotating_experts(losses=losses, advice=np.eye(3))
    private = algorithms.private_batched(num_arms=3, horizon=horizon, epsilon=float("inf"), base=base)
    moved = algorithms.bandit_to_experts(num_arms=3, num_experts=3, horizon=horizon, base=base)
    left, right = simulated(private, losses), simulated(moved, sure)
    assert private.schedule[0].length == 1
    np.testing.assert_array_equal(left.history.action, right.history.action)
    np.testing.assert_array_equal(left.history.reward, right.history.reward)
    assert len(np.unique(left.history.action)) == 3


def same_runs(left, right):
    for name in ("regret", "pulls"):
        if getattr(left, name) is not None:
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    np.testing.assert_array_equal(left.history.action, right.history.action)
    np.testing.assert_array_equal(left.history.reward, right.history.reward)


def test_no_corrupted_reward_is_no_adversary():
    arms = environments.gaussian_arms(means=1 - MEANS, scale=0.3)
    algorithm = algorithms.ucb1(num_arms=3, horizon=200)
    off = adversaries.huber(corruption=0.0, kind="cauchy")
    same_runs(simulated(algorithm, arms), simulated(algorithm, arms, reward_adversary=off))
    some = simulated(algorithm, arms, reward_adversary=adversaries.huber(corruption=0.1, kind="cauchy"))
    assert not np.array_equal(some.history.reward, simulated(algorithm, arms).history.reward)


def test_no_byzantine_agent_is_no_adversary():
    sizes = {"num_agents": 5, "num_arms": 6, "dim": 3}
    world = environments.federated_linear(**sizes)
    algorithm = algorithms.byzantine_ucb(**sizes, horizon=100, window=8)
    off = adversaries.byzantine(corruption=0.0, kind="target")
    same_runs(simulated(algorithm, world), simulated(algorithm, world, message_adversary=off))
    some = simulated(algorithm, world, message_adversary=adversaries.byzantine(corruption=0.4, kind="target"))
    assert not np.array_equal(some.history.action, simulated(algorithm, world).history.action)

"""Elimination under a budget of corruption: paths, numbers, regret, invariants, limits and refusals."""

import functools
import math
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from planting import errors, planted
from plays import watched
from reference import stopping_elimination as reference
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import checking, theory
from jaxbandits.algorithms import stopping_elimination as stopping
from jaxbandits.algorithms.stochastic.stopping_elimination import phase_rules
from jaxbandits.checking.check import findings_of
from jaxbandits.checking.subject import Subject
from jaxbandits.numerics import fixed_sum
from jaxbandits.protocol import Adversary, Attack
from jaxbandits.random import Draws

W = [0.8, 0.6, 0.5, 0.3]
K, T = 4, 2500
BERNOULLI = partial(jb.environments.bernoulli_arms, means=W)
GAUSSIAN = partial(jb.environments.gaussian_arms, means=W, scale=0.5)
WIDE = [0.9, 0.6, 0.35, 0.0]
# what the factory and the reference are told, and the world
CASES = {
    "0": ({"corruption_budget": 0.0, "noise_scale": 0.25}, {"budget": 0.0, "sigma": 0.25}, GAUSSIAN),
    "12.5": ({"corruption_budget": 12.5, "failure_prob": 0.3}, {"budget": 12.5, "delta": 0.3}, GAUSSIAN),
    "unknown": ({"noise_scale": 0.3}, {"sigma": 0.3}, partial(GAUSSIAN, means=WIDE)),
    "unknown, bits": ({"failure_prob": 0.2}, {"delta": 0.2}, partial(GAUSSIAN, means=WIDE)),
}


@functools.cache
def run_of(case, seed):
    arguments, _, world = CASES[case]
    return watched(stopping(num_arms=K, horizon=T, **arguments), world(), seed)


def literal(case, rewards, wrong=reference):
    _, told, _ = CASES[case]
    loop = wrong.known if "budget" in told else wrong.unknown
    return loop(rewards, num_arms=K, horizon=T, **told)


def paid(history):
    """What the run was paid; 9 where the literal loop leaves its path."""
    return lambda t, arm: float(history.reward[t - 1]) if t and history.action[t - 1] == arm else 9.0


@pytest.mark.parametrize("case", CASES)
def test_paths_are_the_literal_ones(case):
    for seed in range(3):
        run = run_of(case, seed)
        actions, ended = literal(case, paid(run.history))
        np.testing.assert_array_equal(run.history.action, actions)
        assert run.diagnostics["phases"] == ended > 1


@pytest.mark.parametrize(("case", "error"), errors([
    ("12.5", "budget / N", "2 * budget / N"), ("12.5", "2 * r", "r"), ("0", "rewards(t, a)", "rewards(t - 1, a)"),
    ("0", "sigma * math.sqrt(2 * math", "2 * sigma * math.sqrt(2 * math"), ("unknown", "+ C / n", "+ 2 * C / n"),
    ("unknown", "2**h", "2**(h + 1)"), ("unknown", "range(n if", "range(n + 1 if"),
    ("unknown, bits", "sigma * math.sqrt(2 * L", "2 * sigma * math.sqrt(2 * L"),
], reference))  # fmt: skip
def test_planted_errors_fork_the_path(case, error):
    wrong = planted(*error)

    def differs(seed):
        history = run_of(case, seed).history
        return (history.action != literal(case, paid(history), wrong)[0]).any()

    assert any(differs(seed) for seed in range(4))


def test_numbers_are_the_specified_ones():
    four = {"num_arms": 4, "horizon": 20_000}
    for C, want in ((0.0, 0.2736664153), (100.0, 1.273666415)):
        params = stopping(**four, corruption_budget=C, failure_prob=0.05).params
        assert params.width / 10 + params.corruption_budget / 100 == pytest.approx(want, rel=1e-9)
        assert reference.radius_known(100, **four, budget=C, sigma=0.5, delta=0.05) == pytest.approx(want, rel=1e-9)
    params = stopping(**four, failure_prob=0.05).params
    assert params.pulls[:4].tolist() == [8, 16, 32, 64] and reference.number_of_phases(4, 20_000) == 14
    for h in range(20):
        n, C, r = reference.phase(h, **four, sigma=0.5, delta=0.05)
        assert params.pulls[h] == n and params.slack[h] == pytest.approx(2 * r)
        assert C == (pytest.approx(70.71067812) if h <= 7 else 2.0 ** (14 - min(h, 13)))
    root = (params.slack[0] / 2 - 70.71067812 / 8) * 2 * math.sqrt(8)  # sqrt(2 L)
    assert root**2 / 2 == pytest.approx(7.714231145, rel=1e-8)
    assert reference.number_of_phases(5, 3) == 2


@pytest.mark.parametrize(("budget", "last"), [(0.0, [225, 75]), (None, [1256, 744])])
def test_last_plays_under_constant_rewards(budget, last):
    """In single precision: paths in double precision are those of the literal loops."""
    algorithm = stopping(num_arms=3, horizon=2000, corruption_budget=budget, failure_prob=0.05)
    constant = jb.environments.gaussian_arms(means=[1.0, 0.5, 0.0], scale=0.0)
    run = watched(algorithm, constant, dtype="float32")
    assert [int(np.flatnonzero(run.history.action == arm)[-1]) + 1 for arm in (1, 2)] == last
    assert run.diagnostics["active_arms"] == 1


def strike(total):
    """A strong attack: every reward of arm 0 is lowered, by 1 at most and not below 0, until `total` is spent."""
    return Adversary(STRIKE, (total,), None, {"name": "strike", "total": total})


def _corrupt(params, left, draws, t, payload, seen):
    cap = jnp.where(seen.action == 0, jnp.minimum(left, 1), 0)
    struck = jnp.minimum(payload, jnp.maximum(payload - cap, 0))
    return struck, False, left - fixed_sum(payload - struck)


STRIKE = Attack(lambda params, draws: jnp.asarray(params[0], draws.dtype), _corrupt)


OTHERS = {"known": (100.0, 1596.8, 3.9), "unknown": (None, 1975.0, 7.5)}


@pytest.mark.parametrize("name", dealt(OTHERS, 6))
def test_regret_is_the_specified_one(name):
    budget, want, error = OTHERS[name]
    seeds, algorithm = 500, partial(stopping, corruption_budget=budget, failure_prob=0.05)
    found = jb.sweep(
        algorithm, BERNOULLI, reward_adversary=strike(100.0) if budget else None, horizon=20_000, seeds=seeds,
        checkpoints=1, progress=False,
    )  # fmt: skip
    regret = np.asarray(found.regret)[0, :, -1]
    assert abs(regret.mean() - want) < 4 * math.hypot(regret.std() / math.sqrt(seeds), error)
    assert (np.asarray(found.pulls)[0, :, 0] > 5000).all()  # the best arm is never dropped
    if budget:
        assert regret.max() < theory.wide_elimination_bound(W, 20_000, budget, failure_prob=0.05)


def test_the_bound_by_its_parts():
    assert theory.wide_elimination_bound(W, 20_000, 100.0, failure_prob=0.05) == pytest.approx(3172.9, abs=0.05)
    told = {"horizon": 500, "corruption_budget": 7.0, "noise_scale": 0.3, "failure_prob": 0.1}
    assert theory.wide_elimination_bound([0.6, 0.6], 500) == 0
    # an arm of gap D goes after the rounds N at which r(N) = D / 4
    for gap in (0.5, 0.25):
        n = theory.wide_elimination_bound([0.1 + gap, 0.1], **told) / gap - 1
        r = reference.radius_known(n, num_arms=2, horizon=500, budget=7.0, sigma=0.3, delta=0.1)
        assert r == pytest.approx(gap / 4)
    three = [theory.wide_elimination_bound([0.6, other, 0.6], **told) for other in (0.1, 0.35)]
    assert theory.wide_elimination_bound([0.1, 0.6, 0.35], **told) == pytest.approx(sum(three))


def test_a_known_budget_is_a_number_and_an_unknown_one_a_program():
    made = partial(stopping, num_arms=4, horizon=900)
    assert made(corruption_budget=0.0).program is made(corruption_budget=7.5).program
    assert made().program is not made(corruption_budget=0.0).program
    assert made().program is stopping(num_arms=4, horizon=70_000, noise_scale=2.0).program


@pytest.mark.dealt(4)
def test_budgets_side_by_side_are_budgets_alone():
    budgets = [None, 0.0, 20.0]
    arguments = {"environment": BERNOULLI, "horizon": 900, "seeds": 8, "checkpoints": 3, "progress": False}
    together = jb.sweep(stopping, grid={"corruption_budget": budgets}, **arguments)
    for i, budget in enumerate(budgets):
        alone = jb.sweep(partial(stopping, corruption_budget=budget), **arguments)
        np.testing.assert_array_equal(np.asarray(together.regret)[0, i], np.asarray(alone.regret)[0])


@pytest.mark.parametrize("budget", dealt([None, 3.0], 2, always=[None]))
def test_what_comes_after_the_race(budget):
    """The last arm is played to the horizon and nothing more is counted; rewards that are not finite count as 0."""
    algorithm = stopping(num_arms=3, horizon=1500, corruption_budget=budget, noise_scale=0.05)
    bad = {"reward_adversary": jb.adversaries.huber(corruption=0.3, kind="fixed", value="nan")}
    arms = jb.environments.bernoulli_arms(means=[0.0, 1.0, 0.0])
    run, counted = (jb.simulate(algorithm, arms, **bad, history=history) for history in (True, False))
    assert run.diagnostics["active_arms"] == 1 and (run.history.action[-600:] == 1).all()
    assert run.pulls.tolist() == counted.pulls.tolist() and run.diagnostics["phases"] == counted.diagnostics["phases"]
    huge = jb.adversaries.huber(corruption=1.0, kind="fixed", value=3e38)
    assert jb.simulate(algorithm, arms, reward_adversary=huge).diagnostics["active_arms"] == 3


def test_long_sums_of_inexact_rewards_are_exact():
    """640 more rewards of 0.1 after 200,000: plain float32 sums are off by 0.6."""
    rules, params = phase_rules(2), stopping(num_arms=2, horizon=1000).params
    memory, _, _ = uncompiled(lambda: rules.init(params, Draws(np.uint32(0), "")))()
    memory = memory._replace(high=np.float32(20_000), low=np.float32(0))
    value, present = np.full(32, 0.1, np.float32), np.ones(32, bool)
    keep = uncompiled(partial(rules.keep, params))
    for _ in range(20):
        memory, _, _ = keep(memory, np.int32(0), value, present)
    want = 20_000 + 640 * float(np.float32(0.1))
    assert float(memory.high) + float(memory.low) == pytest.approx(want, abs=1e-5)
    assert abs(float(memory.high) - want) > 1e-3
    same, _, _ = keep(memory, np.int32(0), value, ~present)  # a window cut short changes no bit
    assert (same.high, same.low) == (memory.high, memory.low)


def test_the_known_form_keeps_the_contract():
    """The catalogue has the other one."""
    known = partial(stopping, corruption_budget=0.5, noise_scale=0.1, failure_prob=0.2)
    subject = Subject(known, BERNOULLI, None, None, horizon=200)
    for rule in ("shapes", "addresses", "lane_alone", "checkpoints", "bad_rewards"):
        assert findings_of(getattr(checking, rule), subject) == []

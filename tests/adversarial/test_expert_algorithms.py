"""EXP4 and batched EXP4: sampling, noise, guarantee, limits, and that a batch's length is data."""

import math
from functools import partial

import jax
import numpy as np
import pytest
from dealt import dealt
from plays import silent
from scipy import stats
from test_adversarial_algorithms import INF, history
from uncompiled import uncompiled

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.batched_exp4 import MAX_WINDOW_PLAYS, batched_exp4
from jaxbandits.algorithms.adversarial.exp4 import exp4, follow
from jaxbandits.environments.experts import rotating_experts
from jaxbandits.environments.losses import bernoulli_losses, fixed_gap_losses
from jaxbandits.numerics import combine

RNG = np.random.default_rng(8)
ADVICE = RNG.dirichlet(np.ones(3), 6)
WORLD = rotating_experts(losses=bernoulli_losses(means=[0.2, 0.5, 0.8]), advice=ADVICE)
SIZES = {"num_arms": 3, "num_experts": 6}
GIVEN = {"learning_rate": 0.4, "mixing": 0.3}
private = partial(batched_exp4, **SIZES, delta=0.1, **GIVEN)


def single(x):
    return np.asarray(x, np.float32)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 23, 64, 256, 257, 300])
def test_combine_is_the_weighted_sum(n):
    weights, rows = RNG.random(n), RNG.normal(size=(n, 5))
    got = uncompiled(combine)(single(rows.T), single(weights))
    np.testing.assert_allclose(got, weights @ rows, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_experts", [6, 70])
def test_arms_follow_the_mixture(num_experts):
    advice = RNG.dirichlet(np.ones(3), (2, num_experts))  # two plays, each with its own advice
    weights = RNG.random(num_experts)
    grid = single((np.arange(30_000) + 0.5) / 30_000)
    both = uncompiled(jax.vmap(follow, (None, None, None, 0)))
    arms, q = both(single(weights), single(advice), np.float32(0.2), np.stack([grid, grid], axis=1))
    for play in range(2):
        want = 0.8 * weights / weights.sum() @ advice[play] + 0.2 / 3
        share = np.bincount(arms[:, play], minlength=3) / len(grid)
        np.testing.assert_allclose(share, want, atol=1e-4)
        np.testing.assert_allclose(q[:, play], want[arms[:, play]], rtol=1e-5)


def test_windows_of_any_length_share_one_program_and_its_memory():
    made = [private(horizon=10**6, epsilon=e, window=w) for e, w in ((0.5, 1), (0.5, 37), (INF, 17_888), (1.0, 10**6))]
    assert len({algorithm.program for algorithm in made}) == 1
    assert [algorithm.schedule[0].length for algorithm in made] == [1, 37, 17_888, 10**6]
    assert max(algorithm.schedule[0].slots for algorithm in made) <= MAX_WINDOW_PLAYS
    printed = batched_exp4(**SIZES, horizon=10**8, epsilon=0.1, delta=1e-3, mixing_rule="printed")
    repaired = batched_exp4(**SIZES, horizon=10**8, epsilon=0.1, delta=1e-3)
    assert printed.version == repaired.version and printed.program is repaired.program
    assert printed.params.mixing < repaired.params.mixing and printed.params.noise_scale > repaired.params.noise_scale


@pytest.mark.parametrize("window", dealt([7, 20], 3, always=[7]))
def test_actions_do_not_depend_on_the_windows(window):
    algorithm = private(horizon=150, epsilon=6.0, window=window)
    first = history(algorithm, WORLD, seeds=8, size=1)[0]
    for size in (3, 8):
        np.testing.assert_array_equal(history(algorithm, WORLD, seeds=8, size=size)[0], first)


def test_weights_are_frozen_in_a_batch_and_arms_drawn_every_play():
    even = rotating_experts(losses=fixed_gap_losses(num_arms=3), advice=np.full((6, 3), 1 / 3))
    actions = history(private(horizon=96, epsilon=INF, window=96), even, seeds=200)[0]
    pairs = np.bincount((3 * actions[:, :-1] + actions[:, 1:]).ravel(), minlength=9)  # plays of a batch are independent
    assert stats.chisquare(pairs).pvalue > 1e-4
    _, released, state = history(private(horizon=95, epsilon=INF, window=10), WORLD, seeds=4, size=5)
    assert (np.isfinite(released).all(axis=-1) == [[False, True] * 9 + [False]]).all()
    assert state.total.any(axis=-1).all()  # a partial last batch is kept back


@pytest.mark.parametrize(("window", "epsilon"), dealt([(1, 1.0), (10, 0.5)], 3, always=[(10, 0.5)]))
def test_released_noise_has_the_stated_scale_for_every_expert(window, epsilon):
    free = rotating_experts(
        losses=bernoulli_losses(means=[0.0, 0.0, 0.0]), advice=ADVICE
    )  # what is released is the noise
    algorithm = private(horizon=30 * window, epsilon=epsilon, window=window)
    scale = 3 * 3 * math.sqrt(6 * math.log(10)) / (0.3 * window * epsilon)
    assert algorithm.params.noise_scale == pytest.approx(scale)
    released = history(algorithm, free, seeds=100, size=window)[1].reshape(-1, 6)
    assert stats.kstest(released.ravel(), "laplace", args=(0, scale)).pvalue > 1e-3
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(released.ravel(), "laplace", args=(0, wrong * scale)).pvalue < 1e-6
    assert abs(np.corrcoef(released.T) - np.eye(6)).max() < 4 / math.sqrt(
        len(released)
    )  # experts have noise of their own


def test_infinite_epsilon_is_the_limit_of_no_noise_and_window_one_is_exp4():
    free, noisy = (private(horizon=120, epsilon=epsilon, window=1) for epsilon in (INF, 1.0))
    free, quiet, noisy = (history(x, WORLD, seeds=8)[0] for x in (free, silent(noisy), noisy))
    plain = history(exp4(**SIZES, horizon=120, **GIVEN), WORLD, seeds=8)[0]
    np.testing.assert_array_equal(free, plain)
    np.testing.assert_array_equal(free, quiet)
    assert (free != noisy).any()


def test_guarantee_says_what_the_noise_delivers():
    algorithm = private(horizon=1000, epsilon=0.5, window=20)
    claim, params = algorithm.guarantee, algorithm.params
    assert (claim.model, claim.unit, claim.scales) == ("central", "loss_vector", ("mechanism_scale",))
    each = 0.5 / (3 * math.sqrt(6 * math.log(10)))
    event = claim.events(params)[0]
    assert (event.epsilon, event.times) == (pytest.approx(each), 6)
    # half the noise, or twice the sensitivity
    for changed in (params._replace(mechanism_scale=0.5), params._replace(mixing=0.15)):
        assert claim.events(changed)[0].epsilon == pytest.approx(2 * each)
    assert claim.spend(params) == (0.0, 0.1)  # what six such releases tell, delta covers
    assert claim.spend(params._replace(mechanism_scale=0.0)) == (INF, 0.0)
    # six times the cost of one and the theorem's composition are both more than what is spent
    for num_experts, epsilon in ((6, 5.0), (40, 5.0)):
        build = partial(batched_exp4, num_arms=3, horizon=1000, delta=0.1, window=20, **GIVEN)
        made = build(num_experts=num_experts, epsilon=epsilon)
        each = epsilon / (3 * math.sqrt(num_experts * math.log(10)))
        composed = 1.5 * num_experts * each**2 + math.sqrt(6 * num_experts * math.log(10)) * each
        spent, delta = made.guarantee.spend(made.params)
        assert delta == 0.1 and 0.2 * epsilon < spent < 0.6 * min(composed, num_experts * each)


def test_client_clips_and_counts_nonfinite_rewards_as_loss_one():
    program = private(horizon=10, epsilon=1.0, window=5).program
    reward, action = single([0.25, 7.0, -7.0, np.nan, np.inf, 0.0]), np.array([0, 1, 2, 0, 1, 2])
    play = np.array([True] * 5 + [False])
    encode = uncompiled(partial(program.encode, (), single(np.full(6, 0.5)), None))
    sent = encode(np.arange(6), single(np.tile(ADVICE, (6, 1, 1))), action, reward, play)
    losses = np.array([0.75, 0, 1, 1, 1, 0])
    np.testing.assert_allclose(sent.total, (ADVICE[:, action] * losses / 0.5).sum(axis=1), rtol=1e-5)
    encode = exp4(**SIZES, horizon=10).program.encode
    plain = uncompiled(lambda reward: encode((), (), None, None, (), None, reward, None).total)
    for reward, loss in ((0.25, 0.75), (np.nan, 1.0), (3.0, -2.0)):
        assert plain(np.full(1, np.float32(reward))) == loss


def test_without_mixing_an_advice_of_zero_does_no_harm():
    algorithm = exp4(num_arms=3, num_experts=3, horizon=2000, learning_rate=5.0)
    sure = rotating_experts(losses=fixed_gap_losses(num_arms=3, best=1, base=0.9, gap=0.9), advice=np.eye(3))
    actions, _, state = history(algorithm, sure, seeds=8)
    assert np.isfinite(state.logs).all() and (actions[:, -100:] == 1).all()


@pytest.mark.parametrize("name", dealt(["exp4", "batched_exp4"], 4, always=["batched_exp4"]))
def test_learning_beats_uniform_play(name):
    advice = np.concatenate([0.8 * np.eye(3) + 0.2 / 3, ADVICE])
    world = rotating_experts(losses=bernoulli_losses(means=[0.2, 0.5, 0.8]), advice=advice)
    batched = partial(batched_exp4, epsilon=INF, delta=0.1, window=20, learning_rate=0.3, mixing=0.1)
    make = exp4 if name == "exp4" else batched
    actions = history(make(num_arms=3, num_experts=9, horizon=3000), world, seeds=16)[0]
    assert (actions[:, 2000:] == 0).mean() > 0.5


def test_noise_follows_the_mixing_that_is_used():
    tuned = batched_exp4(**SIZES, horizon=10**8, epsilon=0.5, delta=0.01)
    want = theory.batched_exp4_tuning(3, 6, 10**8, 0.5, 0.01)
    assert tuned.params[:4] == tuple(want[x] for x in ("learning_rate", "mixing", "window", "noise_scale"))
    double = batched_exp4(**SIZES, horizon=10**8, epsilon=0.5, delta=0.01, mixing=2 * want["mixing"])
    assert double.params.noise_scale == pytest.approx(want["noise_scale"] / 2)
    assert exp4(**SIZES, horizon=500).params == (math.sqrt(2 * math.log(6) / 1500), 0.0)

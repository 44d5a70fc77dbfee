"""Private adversarial bandits: solvers against float64 references, batches, noise, conversions of conversions."""

import importlib
import math
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from plays import silent, watched
from scipy import integrate, optimize, stats
from uncompiled import uncompiled

from jaxbandits import simulator
from jaxbandits.algorithms.adversarial.bandit_to_experts import bandit_to_experts
from jaxbandits.algorithms.adversarial.batch_tuning import tuned_in_batches
from jaxbandits.algorithms.adversarial.exp3 import exp3
from jaxbandits.algorithms.adversarial.exp3_ix import exp3_ix
from jaxbandits.algorithms.adversarial.ftpl import ftpl
from jaxbandits.algorithms.adversarial.htinf import htinf, skip_share
from jaxbandits.algorithms.adversarial.ldp_exp3 import ldp_exp3
from jaxbandits.algorithms.adversarial.local_exp4 import local_exp4
from jaxbandits.algorithms.adversarial.private_batched import private_batched
from jaxbandits.algorithms.adversarial.tsallis_inf import tsallis_inf
from jaxbandits.algorithms.stochastic.uniform import uniform
from jaxbandits.environments.arms import bernoulli_arms
from jaxbandits.environments.experts import rotating_experts
from jaxbandits.environments.losses import bernoulli_losses, fixed_gap_losses, loss_table
from jaxbandits.learners import tsallis
from jaxbandits.learners.exponential import LEAST_WEIGHT, reweigh
from jaxbandits.learners.perturbed import leader_probability
from jaxbandits.protocol import Loss
from jaxbandits.random import Draws
from jaxbandits.sweeps import simulate, sweep
from jaxbandits.validation import factory
from jaxbandits.window import offer

INF = float("inf")
exp4_module = importlib.import_module("jaxbandits.algorithms.adversarial.exp4")  # the package exports the function
MEANS = [0.2, 0.5, 0.8]


def single(params):
    return jax.tree.map(np.float32, params)


def history(algorithm, environment, seeds=1, size=None):
    """Actions [seeds, T], released [seeds, windows] and final states: windows of `size` plays within each batch."""
    span = algorithm.schedule[0]
    algorithm = algorithm._replace(schedule=(span._replace(slots=size or span.slots),))
    runs = [watched(algorithm, environment, seed, "float32") for seed in range(seeds)]
    return jax.tree.map(lambda *xs: np.stack(xs), *((x.history.action, x.history.released, x.state) for x in runs))


def updating(algorithm, path="alg/update"):
    """An algorithm's update of its state after play t by a loss, in NumPy."""
    params, draws = single(algorithm.params), Draws(np.uint32(5), path)

    @uncompiled
    def update(state, t, note, loss):
        return algorithm.program.update(params, state, draws, t, note, Loss(loss), 1)[0]

    return lambda state, note, loss, t=1: update(state, np.int32(t), note, np.float32(loss))


def start_of(algorithm):
    return uncompiled(lambda p: algorithm.program.init(p, Draws(np.uint32(0), "alg/init")))(single(algorithm.params))


def exact_weights(gaps, q):
    gaps = np.asarray(gaps, np.float64)
    v = optimize.brentq(lambda v: np.sum((gaps + v) ** -q) - 1, 1.0, len(gaps) ** (1 / q) + 1, xtol=1e-15, rtol=1e-14)
    return (gaps + v) ** -q


@pytest.mark.parametrize(("num_arms", "bound"), [(2, 1e-6), (10, 2e-6), (100, 3e-6), (1000, 6e-6), (1200, 6e-6)])
def test_tsallis_weights_match_a_bracketing_solver(num_arms, bound):
    rng = np.random.default_rng(num_arms)
    cases = [np.r_[0, np.full(num_arms - 1, g)] for g in (0, 1e-3, 0.3, 3, 30, 1e4)]  # one low arm: the worst case
    cases += [np.r_[0, rng.exponential(s, num_arms - 1)] for s in (0.1, 1, 10)]
    solve = uncompiled(jax.vmap(tsallis.weights))
    for gaps, x in zip(cases, solve(np.stack(cases).astype(np.float32)), strict=True):
        np.testing.assert_allclose(x, exact_weights(gaps.astype(np.float32), 2.0), rtol=bound)


@pytest.mark.parametrize("tail_index", [1.1, 1.5, 1.9])
def test_tsallis_weights_of_other_indices(tail_index):
    gaps = np.array([0.0, 0.01, 0.4, 2.0, 7.0], np.float32)
    x = uncompiled(lambda gaps: tsallis.weights(gaps, tail_index))(gaps)
    np.testing.assert_allclose(x, exact_weights(gaps, tail_index / (tail_index - 1)), rtol=2e-5, atol=1e-12)


@pytest.mark.parametrize("num_arms", [4, 40])
def test_tsallis_draw_follows_its_weights(num_arms):
    gaps = np.linspace(0, 3, num_arms).astype(np.float32)
    u = (np.arange(100_000, dtype=np.float32) + np.float32(0.5)) / np.float32(100_000)
    action, weight = uncompiled(jax.vmap(tsallis.draw, (None, 0)))(gaps, u)
    x = exact_weights(gaps, 2.0)
    np.testing.assert_allclose(np.bincount(action, minlength=num_arms) / 1e5, x, atol=3e-5)
    np.testing.assert_allclose(weight, x[action], rtol=1e-5)
    _, mixed = uncompiled(lambda x, u, mixing: tsallis.draw(x, u, 2.0, mixing))(gaps, np.float32(0), np.float32(0.5))
    assert float(mixed) == pytest.approx(0.5 * x[0] + 0.5 / num_arms, rel=1e-5)


def test_skip_share():
    assert skip_share(2.0) == pytest.approx(0.2062995, abs=1e-7)
    alpha = 1.5
    assert skip_share(alpha) == pytest.approx(min(1 - 2 ** (-0.5 / 2), (2 - 2 / alpha) ** 2))


@pytest.mark.parametrize("gaps", [[0, 0], [0, 0.7, 5], [0, 0.1, 0.2, 8.0], [0, *np.linspace(0.5, 4, 9)], [0.0, 30.0]])
def test_leader_probability_matches_adaptive_quadrature(gaps):
    def integrand(y, arm):
        d = y - np.array(gaps)
        survival = np.where(d < 0, 1 - 0.5 * np.exp(-np.abs(d)), 0.5 * np.exp(-np.abs(d)))
        survival[arm] = 0.5 * math.exp(-abs(d[arm]))
        return survival.prod()

    total = 0.0
    for arm in range(len(gaps)):
        exact = integrate.quad(integrand, -40, 60, args=(arm,), points=sorted(gaps), limit=400, epsabs=1e-13)[0]
        got = float(uncompiled(leader_probability)(np.asarray(gaps, np.float32), np.int32(arm)))
        assert got == pytest.approx(exact, abs=2e-4 * max(exact, 1e-4))
        total += exact
    assert total == pytest.approx(1, abs=1e-9)


def test_normalised_weights_stay_normalised_and_finite():
    # an update that assumes a sum of 1 drifts to 3e6 here
    def step(weights, action):
        return reweigh(weights, action, -0.01 * 0.9 / weights[action]), ()

    actions = np.tile(np.array([1, 0], np.int32), 10_000)
    weights = np.asarray(jax.jit(lambda x, a: jax.lax.scan(step, x, a)[0])(np.full(4, np.float32(0.25)), actions))
    assert float(weights.sum()) == pytest.approx(1, abs=1e-5)
    for exponent in (-INF, -1e4, 1e4):
        moved = uncompiled(reweigh)(np.full(2, np.float32(0.5)), np.int32(0), np.float32(exponent))
        assert np.isfinite(moved).all() and (moved >= LEAST_WEIGHT).all() and moved.sum() == pytest.approx(1)


@pytest.mark.parametrize(("mixing", "noisy"), [(0.0, False), (0.1, True), (1.0, True)])
def test_exp3_matches_log_weights_in_float64(mixing, noisy):
    algorithm = exp3(num_arms=4, horizon=100, learning_rate=0.05, mixing=mixing)
    rng = np.random.default_rng(0)
    params, draws, program = single(algorithm.params), Draws(np.uint32(1), "alg/act"), algorithm.program
    state, logs = start_of(algorithm), np.zeros(4)
    assert program is exp3(num_arms=4, horizon=7, learning_rate=0.01, mixing=mixing).program
    act, update = uncompiled(lambda state, t: program.act(params, state, draws, t, ())[2]), updating(algorithm)
    for t in range(1, 121):
        note = act(state, np.full(1, t, np.int32))
        action = int(note[0])
        p = (1 - mixing) * np.exp(logs[action] - logs.max()) / np.exp(logs - logs.max()).sum() + mixing / 4
        loss = rng.laplace() * 3 if noisy else rng.uniform()
        logs[action] -= 0.05 * loss / p
        state = update(state, note, loss)
    want = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    got = np.exp(state) if mixing else np.asarray(state)
    np.testing.assert_allclose(got / got.sum(), want, rtol=2e-3)


def test_mixed_exp3_keeps_weights_far_below_the_smallest_float():
    update = updating(exp3(num_arms=2, horizon=100, learning_rate=1.0, mixing=0.2))
    state, note = np.array([-500.0, 0.0], np.float32), (np.int32(0), np.float32(0.1))
    state = update(state, note, -30.0)
    np.testing.assert_allclose(state, [-200, 0], rtol=1e-6)
    state = update(state, note, -60.0, t=2)
    np.testing.assert_allclose(state, [0, -400], rtol=1e-6)


def test_htinf_skips_large_losses_and_still_counts_them():
    algorithm = htinf(num_arms=10, horizon=100)
    state, updated = start_of(algorithm), updating(algorithm)
    threshold = skip_share(2.0) * math.sqrt(6) * math.sqrt(0.1)  # r_1 = 0.16 at K = 10
    assert threshold == pytest.approx(0.1598, abs=1e-4)

    def update(state, loss):
        return updated(state, (np.int32(3), np.float32(0.1)), loss)

    skipped, kept = update(state, threshold * 1.001), update(state, threshold * 0.999)
    assert not np.any(skipped.estimate) and int(skipped.updates) == 1 and int(skipped.skips) == 1
    assert float(kept.estimate[3]) == pytest.approx(threshold * 9.99, rel=1e-5) and int(kept.skips) == 0
    negative = update(state, -threshold * 0.999)  # recentred: the played arm is now the smallest
    assert float(negative.estimate[3]) == 0 and float(negative.estimate[0]) == pytest.approx(threshold * 9.99, rel=1e-5)
    assert int(update(skipped, threshold * 1.4).skips) == 1  # r_2 = sqrt(2) r_1
    assert int(update(skipped, threshold * 1.42).skips) == 2


@pytest.mark.parametrize("on_fail", ["cap", "zero"])
def test_ftpl_counts_tries_geometrically(on_fail):
    algorithm = ftpl(num_arms=2, horizon=100, learning_rate=1.0, tries=4, on_fail=on_fail)
    assert algorithm.program is ftpl(num_arms=2, horizon=100).program
    params, draws = single(algorithm.params), Draws(np.uint32(5), "alg/update")
    gaps = np.array([0.0, 1.0], np.float32)
    p = float(uncompiled(leader_probability)(gaps, np.int32(1)))

    def tries(gaps, t):
        return algorithm.program.update(params, gaps, draws, t, jnp.int32(1), Loss(jnp.float32(1)), 1)[0][1] - 1

    seen = np.round(uncompiled(jax.vmap(tries, (None, 0)))(gaps, np.arange(1, 20_001, dtype=np.int32)))
    mean = (1 - (1 - p) ** 4) / p if on_fail == "cap" else sum(m * p * (1 - p) ** (m - 1) for m in range(1, 5))
    assert seen.max() == 4 and seen.min() == (1 if on_fail == "cap" else 0)
    assert seen.mean() == pytest.approx(mean, abs=0.05)


@pytest.mark.parametrize("on_fail", ["cap", "zero"])
def test_literal_resampling_has_the_law_of_the_quadrature(on_fail):
    algorithm = ftpl(num_arms=3, horizon=100, learning_rate=1.0, tries=9, on_fail=on_fail, resampling="literal")
    params, draws = single(algorithm.params), Draws(np.uint32(5), "alg/update")
    gaps, arm = np.array([0.0, 1.5, 0.4], np.float32), np.int32(1)
    p = float(uncompiled(leader_probability)(gaps, arm))

    def tries(gaps, t):
        state = algorithm.program.init(params, draws)._replace(estimate=gaps)
        for used in (1, 0):  # six tries a window: two windows hold all nine
            state = algorithm.program.update(params, state, draws, t, arm, Loss(jnp.float32(1)), jnp.int32(used))[0]
        return state.estimate[1] - 1.5 + (state.estimate[0] - 0), state.tries

    seen, pending = uncompiled(jax.vmap(tries, (None, 0)))(gaps, np.arange(1, 20_001, dtype=np.int32))
    seen = np.round(seen).astype(int)
    assert not pending.any()

    def law(p):
        return np.append([0.0], p * (1 - p) ** np.arange(9)) + np.eye(10)[9 if on_fail == "cap" else 0] * (1 - p) ** 9

    counts, shown = np.bincount(seen, minlength=10), law(p) > 0
    assert counts[~shown].sum() == 0
    assert stats.chisquare(counts[shown], law(p)[shown] * len(seen)).pvalue > 1e-3
    for wrong in (0.8 * p, 1.25 * p):
        assert stats.chisquare(counts[shown], law(wrong)[shown] * len(seen)).pvalue < 1e-6


@pytest.mark.parametrize("private", dealt([False, True], 8))
def test_lanes_that_try_on_do_not_hold_up_the_others(private):
    """All plays are made, lanes do not depend on each other, and the regret is that of the quadrature."""
    world = bernoulli_losses(means=[0.2, 0.5, 0.8])

    def swept(resampling, seeds=range(256)):
        leader = partial(ftpl, learning_rate=0.05, resampling=resampling)
        algorithm = partial(private_batched, epsilon=0.2, base=leader) if private else leader
        return sweep(algorithm, world, horizon=300, seeds=seeds, checkpoints=[7, 150, 300], progress=False)

    literal, quadrature = swept("literal"), swept("quadrature")
    assert (literal.pulls.sum("arm") == 300).all()
    np.testing.assert_array_equal(swept("literal", range(7, 263)).regret[:, :249], literal.regret[:, 7:])
    left, right = (x.regret.values[0, :, -1] for x in (literal, quadrature))
    assert abs(left.mean() - right.mean()) < 4 * np.sqrt((left.var() + right.var()) / 256)


def test_schedule_and_params_by_hand():
    made = private_batched(num_arms=3, horizon=1003, epsilon=1 / 49)
    assert made.schedule == ((1, 21, True, False, False, 49),)
    assert made.params.window == 49 and made.params.noise_scale == pytest.approx(1.0)
    assert made.params.base.tail_scale == pytest.approx(math.sqrt(6))
    assert made.guarantee.spend(made.params) == (pytest.approx(1 / 49), 0.0)
    wide = private_batched(num_arms=3, horizon=1003, epsilon=0.1, window=4)
    assert wide.params.noise_scale == pytest.approx(2.5)
    assert wide.params.base.tail_scale == pytest.approx(math.sqrt(27))  # sqrt(2 + 4 * 2.5^2)
    assert wide.guarantee.spend(wide.params._replace(mechanism_scale=0.5)) == (pytest.approx(0.2), 0.0)
    free = private_batched(num_arms=3, horizon=1003, epsilon=INF)
    assert free.params.window == 1 and free.params.noise_scale == 0 and free.guarantee.spend(free.params) == (INF, 0.0)


def test_windows_of_any_length_share_one_program():
    programs = {private_batched(num_arms=3, horizon=1000, epsilon=e).program for e in (0.01, 0.1, 1, INF)}
    programs |= {private_batched(num_arms=3, horizon=900, epsilon=5.0, window=w).program for w in (1, 30, 900)}
    assert len(programs) == 1
    assert private_batched(num_arms=4, horizon=1000, epsilon=0.1).program not in programs


def test_tuning_of_the_base():
    theory = importlib.import_module("jaxbandits.theory")
    make = partial(private_batched, num_arms=3, horizon=10_000)
    tuned, general = (make(base=exp3, epsilon=0.1, window=window).params.base for window in (None, 20))
    for base, want in ((tuned, theory.exp3_tuning(3, 10_000, 0.1)), (general, theory.exp3_noisy_tuning(3, 500, 0.5))):
        assert (base.learning_rate, base.mixing) == (want["learning_rate"], want["mixing"])
    free = make(base=exp3, epsilon=INF).params.base
    assert free == (math.sqrt(2 * math.log(3) / 30_000), 0.0)
    assert make(base=partial(exp3, learning_rate=0.02), epsilon=0.1).params.base == (0.02, tuned.mixing)
    small = private_batched(num_arms=3, horizon=20, epsilon=0.1, base=partial(exp3, learning_rate=0.02, mixing=0.3))
    assert small.params.base == (0.02, 0.3)  # the theory has no mixing here, and is not asked
    want = theory.ftpl_tuning(3, 10_000, 0.1)
    got = make(base=ftpl, epsilon=0.1).params.base
    assert (got.learning_rate, got.tries) == (want["learning_rate"], want["tries"])
    got = make(base=ftpl, epsilon=0.1, window=20).params.base
    assert got.tries == math.ceil(math.sqrt(1500))
    assert got.learning_rate == pytest.approx(1 / (math.sqrt(1500) * (1 + 4 * 0.5 * math.log(500))))  # noise of 1/2
    got = make(base=partial(ftpl, feedback_scale=0.0), epsilon=0.1).params.base  # 1,000 batches that nobody hides
    assert got.learning_rate == pytest.approx(1 / math.sqrt(3000), rel=1e-12)
    assert make(base=exp3_ix, epsilon=0.1).params.base.learning_rate == math.sqrt(2 * math.log(3) / 3000)


@pytest.mark.parametrize("num_arms", [33, 100])
def test_many_arms_that_are_alike_share_the_lead(num_arms):
    found = uncompiled(leader_probability)(np.zeros(num_arms, np.float32), np.int32(num_arms - 1))
    assert float(found) == pytest.approx(1 / num_arms, rel=2e-4)


def test_a_given_rate_and_mixing_are_taken():
    sizes = {"num_arms": 3, "horizon": 100}
    assert exp3_ix(**sizes, learning_rate=0.3, mixing=0.05).params == (0.3, 0.05)
    assert tsallis_inf(**sizes, learning_rate=0.5, mixing=0.2).params == (0.5, 0.2)


def test_batches_play_one_arm_and_update_once():
    environment = bernoulli_arms(means=MEANS)
    algorithm = private_batched(num_arms=3, horizon=47, epsilon=0.1)
    actions, released, state = history(algorithm, environment, seeds=16)
    assert (actions >= 0).all()
    for start in range(0, 47, 10):
        assert (actions[:, start : start + 10] == actions[:, start : start + 1]).all()
    assert (state.base.updates == 4).all()  # the last 7 plays are never fed back
    assert (np.isfinite(released) == (np.arange(1, 48) % 10 == 0)).all()
    assert (actions[:, 40] != actions[:, 30]).any()  # the partial batch asks the base anew


BASES = {"htinf": htinf, "ftpl": ftpl, "exp3": partial(exp3, learning_rate=0.05, mixing=0.1), "tsallis": tsallis_inf}


@pytest.mark.parametrize("base", dealt(BASES, 8, always=["htinf"]))
def test_actions_do_not_depend_on_the_windows(base):
    environment = bernoulli_arms(means=MEANS)
    algorithm = private_batched(num_arms=3, horizon=154, epsilon=1 / 7, base=BASES[base])
    first, _, state = history(algorithm, environment, seeds=8, size=1)
    for size in (3, 8):
        other, _, after = history(algorithm, environment, seeds=8, size=size)
        np.testing.assert_array_equal(first, other)
        chex.assert_trees_all_equal(state.base, after.base, strict=True)


@pytest.mark.parametrize("window", dealt([300, 600], 4, always=[300]))
def test_checkpoints_inside_a_batch_of_several_windows(window):
    """A checkpoint counts every play up to it, not those of the batch's first window."""
    table = np.random.default_rng(3).random((1200, 3))
    environment, times = loss_table(losses=table), [1, 150, 151, 300, 450, 599, 600, 1000, 1200]
    algorithm = private_batched(num_arms=3, horizon=1200, epsilon=1.0, window=window)
    algorithm = algorithm._replace(schedule=(algorithm.schedule[0]._replace(slots=10),))
    run = simulate(algorithm, environment, history=True, checkpoints=times)
    played = np.cumsum(table[np.arange(1200), run.history.action])
    best = np.cumsum(table, axis=0).min(axis=1)
    np.testing.assert_allclose(run.regret, (played - best)[np.array(times) - 1], atol=1e-3)


def test_infinite_epsilon_is_the_limit_of_no_noise():
    environment = bernoulli_arms(means=MEANS)
    free = history(private_batched(num_arms=3, horizon=200, epsilon=INF), environment, seeds=8)[0]
    private = private_batched(num_arms=3, horizon=200, epsilon=1.0)
    quiet, noisy = (history(x, environment, seeds=8)[0] for x in (silent(private), private))
    np.testing.assert_array_equal(free, quiet)
    assert (free != noisy).any()


@pytest.mark.parametrize(("window", "epsilon"), dealt([(1, 1.0), (10, 0.1), (5, 0.5)], 4, always=[(10, 0.1)]))
def test_released_noise_has_the_stated_scale(window, epsilon):
    environment = bernoulli_arms(means=[1.0, 1.0])  # every loss is 0: what is released is the noise
    algorithm = private_batched(num_arms=2, horizon=40 * window, epsilon=epsilon, window=window)
    released = history(algorithm, environment, seeds=100)[1]
    released, scale = released[np.isfinite(released)], 1 / (window * epsilon)
    assert released.size == 40 * 100
    assert stats.kstest(released, "laplace", args=(0, scale)).pvalue > 1e-3
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(released, "laplace", args=(0, wrong * scale)).pvalue < 1e-6


def test_client_clips_and_counts_nonfinite_rewards_as_loss_one():
    def sent(algorithm, reward, play=None):
        encode = algorithm.program.encode
        return uncompiled(lambda x, play: encode((), (), None, None, (), None, x, play).total)(np.float32(reward), play)

    reward = [0.25, 7.0, -7.0, np.nan, np.inf, -np.inf, 0.0]
    play = np.array([True] * 6 + [False])
    assert sent(private_batched(num_arms=2, horizon=10, epsilon=0.5), reward, play) == pytest.approx(0.75 + 0 + 1 + 3)
    for make in (htinf, exp3, exp3_ix, tsallis_inf, ftpl, uniform):
        for reward, loss in ((0.25, 0.75), (np.nan, 1.0), (np.inf, 1.0), (3.0, -2.0)):
            assert sent(make(num_arms=2, horizon=10), [reward]) == loss


LEARNERS = {
    "exp3": exp3, "exp3_ix": exp3_ix, "tsallis_inf": tsallis_inf, "htinf": htinf,
    "ftpl": partial(ftpl, learning_rate=0.05), "private": partial(private_batched, epsilon=0.5), "uniform": uniform,
}  # fmt: skip


@pytest.mark.parametrize("name", dealt(LEARNERS, 6, always=["private"]))
def test_learning_beats_uniform_play(name):
    best = history(LEARNERS[name](num_arms=3, horizon=2000), bernoulli_arms(means=MEANS), seeds=16)[0] == 2
    assert abs(best.mean() - 1 / 3) < 0.01 if name == "uniform" else best[:, 1000:].mean() > 0.5


@pytest.mark.parametrize("experts", [False, True])
def test_local_noise_is_added_by_the_client(experts):
    if experts:
        algorithm = local_exp4(num_arms=2, num_experts=3, horizon=1000, epsilon=0.5)
    else:
        algorithm = ldp_exp3(num_arms=2, horizon=1000, epsilon=0.5)
    assert algorithm.guarantee.spend(algorithm.params) == (0.5, 0.0) and algorithm.guarantee.model == "local"
    params, draws = single(algorithm.params), Draws(np.uint32(2), "alg/encode")

    def report(t):
        return algorithm.program.encode(params, (), draws, t[None], (), None, jnp.ones(1), None).total

    sent = uncompiled(jax.vmap(report))(np.arange(1, 4001, dtype=np.int32))
    assert stats.kstest(sent, "laplace", args=(0, 2.0)).pvalue > 1e-3
    for wrong in (4 / 3, 3.0):
        assert stats.kstest(sent, "laplace", args=(0, wrong)).pvalue < 1e-6


def test_ldp_exp3_uses_the_general_tuning():
    theory = importlib.import_module("jaxbandits.theory")
    want = theory.exp3_noisy_tuning(4, 10_000, 2.0)
    assert ldp_exp3(num_arms=4, horizon=10_000, epsilon=0.5).params.base == tuple(want.values())
    own = ldp_exp3(num_arms=4, horizon=10_000, epsilon=0.5, mixing=0.3).params.base
    assert own == (want["learning_rate"], 0.3)
    assert ldp_exp3(num_arms=10, horizon=5, epsilon=0.1, mixing=0.3).params.base.mixing == 0.3
    free = ldp_exp3(num_arms=4, horizon=10_000, epsilon=INF).params
    assert free.base == (math.sqrt(math.log(4) / 80_000), 0.0) and free.noise_scale == 0


def test_local_exp4_step_by_hand():
    algorithm = local_exp4(num_arms=3, num_experts=4, horizon=1000, epsilon=1.0, learning_rate=0.1, mixing=0.2)
    params, draws = single(algorithm.params), Draws(np.uint32(0), "alg/act")
    rng = np.random.default_rng(1)
    advice, logs = rng.dirichlet(np.ones(3), 4), np.array([0.0, -1.0, -0.3, -200.0])
    state = uncompiled(exp4_module.centre_logs)(logs.astype(np.float32))
    act = uncompiled(lambda state, t, advice: algorithm.program.act(params, state, draws, t, advice))
    action, _, note = act(state, np.full(1, 4, np.int32), advice[None].astype(np.float32))
    q = 0.8 * (np.exp(logs) / np.exp(logs).sum()) @ advice + 0.2 / 3
    column = advice[:, int(action[0])]
    assert float(note[1]) == pytest.approx(q[int(action[0])], rel=1e-5)
    state = updating(algorithm)(state, note, -1.7, t=4)
    logs = logs + 0.1 * column * 1.7 / q[int(action[0])]
    np.testing.assert_allclose(state.logs, logs - logs.max(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state.weights, np.exp(logs - logs.max()), rtol=1e-4, atol=1e-30)


def test_one_expert_a_batch_and_an_action_of_its_own_every_play():
    advice = np.eye(3)[[0, 1, 2, 1]]  # every expert names one arm
    environment = rotating_experts(losses=fixed_gap_losses(num_arms=3), advice=advice)
    base = partial(private_batched, base=partial(exp3, learning_rate=0.05, mixing=0.1), epsilon=0.1)
    algorithm = bandit_to_experts(num_arms=3, num_experts=4, horizon=95, base=base)
    assert algorithm.guarantee.scales == ("mechanism_scale",) and algorithm.params.window == 10
    actions = history(algorithm, environment, seeds=16)[0]
    for start in range(0, 95, 10):
        assert (actions[:, start : start + 10] == actions[:, start : start + 1]).all()
    np.testing.assert_array_equal(history(algorithm, environment, seeds=4, size=3)[0], actions[:4])
    soft = rotating_experts(losses=fixed_gap_losses(num_arms=3), advice=np.full((4, 3), 1 / 3))
    actions = history(algorithm, soft, seeds=200)[0]
    assert stats.chisquare(np.bincount(actions.ravel(), minlength=3)).pvalue > 1e-3
    pairs = np.bincount((3 * actions[:, :-1] + actions[:, 1:]).ravel(), minlength=9)  # plays of a batch are independent
    assert stats.chisquare(pairs).pvalue > 1e-4


def test_a_conversion_of_a_conversion_counts_the_inner_batches():
    inner = partial(private_batched, epsilon=INF, window=3)
    algorithm = private_batched(num_arms=3, horizon=120, epsilon=0.25, base=inner)
    actions, _, state = history(algorithm, bernoulli_arms(means=MEANS), seeds=4)
    assert (state.base.base.updates == 10).all()  # 120 plays, 30 batches of 4, 10 inner batches of 3
    for start in range(0, 120, 12):
        assert (actions[:, start : start + 12] == actions[:, start : start + 1]).all()


@pytest.mark.parametrize("make", [htinf, exp3, ftpl, partial(private_batched, epsilon=0.5)])
def test_float64_runs(make):
    algorithm, environment = make(num_arms=3, horizon=40), bernoulli_arms(means=MEANS)
    with jax.enable_x64(True):
        parts = simulator.parts_of(algorithm, environment, None, None, "float64")
        case = jax.tree.map(lambda x: np.asarray(x, np.float64), simulator.case_of(algorithm, environment))

        def windows(case, seed):
            lane = simulator.begin(parts, case, seed, 1)
            return offer(parts, case, seed, 2, lane, jnp.int32(0), jnp.int32(2))[0].algorithm

        state = jax.eval_shape(windows, case, np.uint32(0))
    assert all(x.dtype in (np.float64, np.int32) for x in jax.tree.leaves(state))


def test_a_base_of_ones_own_is_told_of_the_noise_it_will_see():
    """By naming an argument, or by a function of its own; what a partial binds is left alone."""

    @factory
    def told(*, num_arms, horizon, feedback_scale=0.0, tail_scale=None):
        own, other = exp3(num_arms=num_arms, horizon=horizon), htinf(num_arms=num_arms, horizon=horizon)
        params = other.params._replace(tail_scale=feedback_scale + 100 * (tail_scale or 0))
        return own._replace(params=params, program=other.program)

    def seen(base, **arguments):
        return private_batched(num_arms=3, horizon=100, base=base, **arguments).params.base.tail_scale

    assert seen(told, epsilon=0.25) == 1.0
    assert seen(told, epsilon=0.25, window=2) == 2 + 100 * math.sqrt(2 + 4 * 2**2)
    assert seen(partial(told, feedback_scale=7.0), epsilon=0.25) == 7.0
    assert seen(told, epsilon=INF) == 0.0
    tuned_in_batches(told, lambda batches: {"feedback_scale": float(batches.window)})
    assert seen(told, epsilon=0.25, window=2) == 2.0


def test_a_batch_is_no_longer_than_the_run():
    """1 / epsilon = 3,000,002.7, within the rounding that is allowed for."""
    made = private_batched(num_arms=2, horizon=3_000_000, epsilon=(1 - 9e-7) / 3_000_000)
    assert (made.params.window, made.schedule[0].repeats) == (3_000_000, 1)

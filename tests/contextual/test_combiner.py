"""The bandit combiner against its pseudocode on given rewards; its constants by hand; bases that keep their time."""

import math
import warnings
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import on_tape
from plays import of_cases
from reference.ldp_contextual import combiner as reference
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms import bandit_combiner, doubling, linucb, online_ucb
from jaxbandits.algorithms.contextual.bandit_combiner import combiner_constants, deviation_bound
from jaxbandits.environments import contextual_linear
from jaxbandits.protocol import Algorithm, Guarantee, Program, Span
from jaxbandits.sweeps.plan import plan
from jaxbandits.validation import factory

D = 3


class _Arm(NamedTuple):
    arm: Any
    reward_noise: Any


class _Clock(NamedTuple):
    own: Any  # plays, by the base's own count
    late: Any  # sum of the t it was told


@cache
def _one_arm() -> Program:
    def init(params, draws):
        return _Clock(jnp.int32(0), jnp.int32(0))

    def act(params, state, draws, t, context):
        return jnp.broadcast_to(jnp.asarray(params.arm).astype(jnp.int32), t.shape), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return jnp.zeros(D, draws.dtype), reward[0]

    def update(params, state, draws, t, note, message, used):
        return _Clock(state.own + 1, state.late + t), ()

    return Program(init, act, encode, update)


@factory
def one_arm(*, num_arms, horizon, arm=0, reward_noise=0.0, model="none") -> Algorithm:
    """A base that plays one arm and keeps count."""
    guarantee = Guarantee(model, "user", scales=("mechanism_scale",)) if model != "none" else Guarantee()
    params = _Arm(float(arm), float(reward_noise))
    return Algorithm(_one_arm(), (Span(1, horizon),), params, guarantee, ("one_arm", 1, ()), {})


def arms_as_bases(number, **arguments):
    return [partial(doubling, base=one_arm), *(partial(one_arm, arm=i, **arguments) for i in range(1, number))]


def made(horizon, bases, **arguments):
    arguments = {"num_arms": len(bases) if isinstance(bases, list) else 4, "dim": D, "epsilon": 1.0} | arguments
    return bandit_combiner(horizon=horizon, bases=bases, **arguments)


def history(algorithm, table, dtype=jnp.float32):
    """Which arm was played, and the states after every play, on a table of rewards [T, K] read by t."""
    actions, _, states = on_tape(algorithm, np.zeros((len(table), 1)), table, dtype=dtype)
    return actions, states


class OneArm:
    """`one_arm` for the transcription."""

    def __init__(self, arm):
        self.arm = arm

    def choose(self, decision_set):
        return self.arm

    def learn(self, x, y):
        pass


def literal(table, dim, epsilon, beta, variance, scale):
    """Bases played [T] and the active set after each play [T, M] by the transcription of Algorithm 2."""
    horizon, number = table.shape
    return reference.combiner(
        np.zeros((horizon, number, dim)), lambda t, arm: table[t - 1, arm], [OneArm(i) for i in range(number)],
        reference.constants(number, horizon, dim, epsilon, beta, bonus_scale=scale), variance=variance,
        failure_prob=beta,
        noise=lambda t, i, x, y: (x, y),
    )[1:]  # fmt: skip


def fading(T, M, seed, start=300):
    """Rewards that keep a promise for a while and then break it, one after another: all but the last are dropped."""
    rng = np.random.default_rng(seed)
    t = np.arange(T)[:, None]
    good = 0.95 - 0.05 * np.arange(M)
    return np.where(t < start * (1 + np.arange(M)), good, 0.02) + 0.02 * rng.normal(size=(T, M))


@pytest.mark.parametrize(
    "scale, variance, seed, left", [(0.0, 0.0, 0, 1), (1e-5, 0.0, 1, 2), (1e-3, 0.25, 2, 2), (1.0, 4.0, 3, 3)]
)
def test_against_the_pseudocode(scale, variance, seed, left):
    """Every play and every base that is dropped, in float64 (indices near each other are ordered by rounding)."""
    T, M = 6000, 3
    table = fading(T, M, seed)
    bases = arms_as_bases(M, reward_noise=math.sqrt(variance))
    found = made(T, bases, bonus_scale=scale, epsilon=2.0, failure_prob=0.1)
    with jax.enable_x64(True):
        actions, states = history(found, table, jnp.float64)
    played, active = literal(table, D, 2.0, 0.1, variance, scale)
    np.testing.assert_array_equal(actions, played)
    np.testing.assert_array_equal(states.active, active)
    for i in range(M):
        paid = table[played == i, i]
        means = np.append(0, np.cumsum(paid) / np.arange(1, len(paid) + 1))
        assert states.plays[-1, i] == len(paid) and states.mean[-1, i] == pytest.approx(means[-1], rel=1e-9)
        assert states.deficit[-1, i] == pytest.approx(np.sum(means[:-1] - paid), rel=1e-7)
    assert active[-1].sum() == left


def test_the_constants_of_figure_1_s_setting():
    growth, exponent, penalty = combiner_constants(3, 5, 20_000, 1.0, 1 / 20_000)
    np.testing.assert_allclose(penalty / 20_000, [37.1, 6.33, 3.43], rtol=2e-3)
    log = math.log(20_000) ** 1.5
    scaled = log * math.sqrt(5) * 20_000**0.125
    np.testing.assert_allclose(growth, [log * math.sqrt(5) * (1 + 20_000**-0.125), scaled / 2, scaled / 4])
    assert exponent.tolist() == [0.75, 0.5, 0.5]


width = uncompiled(deviation_bound)


def test_the_width_by_hand():
    """W at n = 1 and 16, where C = 3: 3 n^(3/4) + sqrt(n 5 log(T^3 M log(max(n, 2)) 5 / beta))."""
    found = made(100, arms_as_bases(2, reward_noise=2.0), failure_prob=0.05).params
    width_of = lambda params, n: width(params, np.float32(3), np.float32(0.75), np.float32(n))
    assert found.spread == 5
    for n in (1.0, 16.0):
        inner = math.log(100**3 * 2 * math.log(max(n, 2)) * 5 / 0.05)
        by_hand = 3 * n**0.75 + math.sqrt(n * 5 * inner)
        assert float(width_of(found, n)) == pytest.approx(by_hand, rel=1e-5)
    spreads = [made(100, arms_as_bases(2, reward_noise=2.0), reward_noise=x).params.spread for x in (0.5, 0.0)]
    assert spreads == [1.25, 1.0]
    tame = found._replace(log_term=-1.0)  # no root of a negative number
    assert float(width_of(tame, 1.0)) == 3.0


def test_no_privacy_is_the_limit_of_little():
    """C_1 goes to log^(3/2)(T) sqrt(d), C_i and 1 / eta_i to 0, R_i to infinity: base 1 plays, whatever is paid."""
    far, near = (combiner_constants(3, 5, 20_000, epsilon, 1e-4) for epsilon in (math.inf, 1e13))
    np.testing.assert_allclose(far[0], near[0], atol=1e-9)
    np.testing.assert_allclose(far[2][0], near[2][0])
    assert np.all(np.isinf(far[2][1:])) and np.all(near[2][1:] > 1e13)
    for scale in (0.0, 1e-9, 1.0):
        algorithm = made(50, arms_as_bases(3), epsilon=math.inf, bonus_scale=scale)
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(algorithm.params))
        actions, states = history(algorithm, np.eye(3)[2] * np.ones((50, 1)))
        assert np.all(actions == 0) == (scale > 0) and np.all(np.isfinite(states.mean))


@pytest.mark.parametrize("epsilon", [1e-20, 1e-3, 1e3, 1e30])
def test_extreme_epsilon_stays_finite(epsilon):
    _, states = history(made(2, arms_as_bases(2), epsilon=epsilon, failure_prob=0.99), np.ones((2, 2)))
    assert np.all(np.isfinite(states.mean)) and np.all(np.isfinite(states.deficit)) and states.active[-1].any()


def test_the_last_base_stays():
    """Both break a promise of 10^4, one after the other: the first is dropped, the second has to stay."""
    T, t = 400, np.arange(400)
    table = 1e4 * np.stack([t < 4, (t >= 6) & (t < 10)], axis=1)
    actions, states = history(made(T, arms_as_bases(2), bonus_scale=0.0), table)
    alive = states.active.sum(1)
    assert alive[0] == 2 and alive.min() == 1
    last = int(np.argmax(states.active[-1]))
    params = made(T, arms_as_bases(2), bonus_scale=0.0).params
    promised = width(params, np.float32(0), np.float32(0.5), np.float32(states.plays[-1][last]))
    assert states.deficit[-1][last] > promised and np.all(actions[int(np.argmax(alive == 1)) + 1 :] == last)


def test_bases_keep_their_own_time():
    """Their t counts their own plays, and only who plays moves."""
    T = 300
    table = np.random.default_rng(0).uniform(size=(T, 2))
    actions, states = history(made(T, [partial(one_arm, arm=i) for i in (0, 1)], bonus_scale=0.0), table)
    plays = np.cumsum(np.eye(2, dtype=int)[actions], axis=0)
    assert plays[-1].min() > 20
    np.testing.assert_array_equal(states.plays, plays)
    np.testing.assert_array_equal(states.bases.own, plays)
    np.testing.assert_array_equal(states.bases.late, plays * (plays + 1) // 2)


def test_a_doubled_base_begins_anew_by_its_own_count():
    """1, 2, 4, ... of its own plays; the other base's clock runs on."""
    T = 300
    table = np.random.default_rng(0).uniform(size=(T, 2))
    _, states = history(made(T, arms_as_bases(2), bonus_scale=0.0), table)
    n = states.plays
    assert n[-1, 0] > 40
    np.testing.assert_array_equal(states.bases.own[:, 1], n[:, 1])
    epoch = 2 ** np.floor(np.log2(n[:, 0] + 1)).astype(int)
    np.testing.assert_array_equal(states.bases.own[:, 0], n[:, 0] + 1 - epoch)


@pytest.mark.dealt(8)
def test_one_base_alone_is_that_base():
    """The same plays as doubling by itself: the same clock."""
    doubled, world = partial(doubling, base=partial(linucb, preset="theory")), contextual_linear(num_arms=6, dim=D)
    combined = partial(bandit_combiner, epsilon=1.0, bases=[doubled])
    algorithms = [factory(num_arms=6, dim=D, horizon=60) for factory in (doubled, combined)]
    alone, within = (of_cases([(algorithm, world)], range(4))[0] for algorithm in algorithms)
    for one, other in zip(alone, within, strict=True):
        np.testing.assert_array_equal(one.history.action, other.history.action)
        assert other.diagnostics["plays_base_1"] == 60 and len(np.unique(one.history.action)) > 1


def test_default_bases():
    """T = 20,000: M = 3; lambda_i = 2^(i - 1) T^(-1/8), of which only the first is perturbed, at T_k^(-1/8)."""
    base = partial(online_ucb, learner="ogd", delta=0.1)
    with pytest.warns(UserWarning, match=r"least eigenvalue of at least 0.58.*1 / dim = 0.2"):
        found = bandit_combiner(num_arms=6, dim=5, horizon=20_000, epsilon=1.0, base=base)
    own = found.params.bases.base
    assert own.width.shape == (3, 15) and found.params.spread == pytest.approx(1 + 2.428**2, rel=1e-3)
    np.testing.assert_allclose(own.perturbation[0], np.sqrt((2.0 ** np.arange(15)) ** -0.125))
    assert np.all(own.perturbation[1:] == 0)
    np.testing.assert_allclose(own.strong_convexity[1:, 0], 2 * np.array([2, 4]) * 20_000**-0.125)
    assert found.params.bases.starts[1:, 0].tolist() == [0, 0] and np.all(found.params.bases.starts[1:, 1:] > 20_000)


@pytest.mark.parametrize("horizon, dim, number", [(2, 1, 2), (256, 1, 2), (257, 1, 3), (255, 1, 2), (65_536, 2, 3)])
def test_who_is_warned(horizon, dim, number):
    """lambda_2 = 2 T^(-1/8) against 1 / dim: from (2 dim)^8 plays on there is a base that fits."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        base = partial(online_ucb, learner="ogd")
        found = bandit_combiner(num_arms=6, dim=dim, horizon=horizon, epsilon=1.0, base=base)
    assert len(found.params.penalty) == number
    assert any("least eigenvalue" in str(w.message) for w in seen) == (horizon < (2 * dim) ** 8)


def test_guarantee_is_the_worst_base_s():
    bases = [partial(doubling, base=partial(online_ucb, epsilon=1.0)), partial(online_ucb, epsilon=2.0)]
    found = made(60, bases, num_arms=6, epsilon=2.0)
    claim = found.guarantee
    assert (claim.model, claim.unit, claim.scales) == ("local", "user", ("mechanism_scale",))
    assert claim.spend(found.params) == pytest.approx((2.0, 1e-3), abs=1e-6)
    assert jb.mechanisms.compose(claim.events(found.params), 1e-3) == pytest.approx(claim.spend(found.params))
    alone = online_ucb(num_arms=6, dim=D, horizon=60, epsilon=2.0)
    half = alone.guarantee.spend(alone.params._replace(mechanism_scale=0.5))
    assert claim.spend(found.params._replace(mechanism_scale=0.5)) == pytest.approx(half)
    assert made(60, [linucb], num_arms=6).guarantee == Guarantee()


def test_default_bases_keep_what_their_partial_binds():
    """300^(-1/8) = 0.490; epochs of 2^k plays are perturbed where 2^(-0.3 k) is at least that: k <= 3."""
    base = partial(online_ucb, learner="ogd", epsilon=0.5, power=0.3)
    with pytest.warns(UserWarning, match="least eigenvalue"):
        own = bandit_combiner(num_arms=6, dim=5, horizon=300, epsilon=1.0, base=base).params.bases.base
    np.testing.assert_allclose(own.reward_noise, jb.theory.online_ucb_noise(0.5, 1e-3))
    assert (own.perturbation[0] > 0).tolist() == [True] * 4 + [False] * 5


def test_a_base_that_spends_less_at_a_larger_delta_is_covered():
    doubled = partial(doubling, base=partial(online_ucb, epsilon=1.0, delta=0.01))
    bases = [doubled, partial(online_ucb, epsilon=0.9, delta=0.5)]
    found = made(60, bases, num_arms=6)
    assert found.guarantee.spend(found.params) == pytest.approx((1.0, 0.5), abs=1e-6)


def test_one_program_for_a_grid():
    maker = partial(bandit_combiner, base=partial(online_ucb, learner="ogd"))
    grid = {"epsilon": [0.2, 1.0, math.inf], "bonus_scale": [0.0, 1.0]}
    laid_out = plan(maker, contextual_linear(num_arms=6, dim=D), horizon=50, seeds=8, grid=grid)
    assert len(laid_out.cells) == 6 and len(laid_out.groups) == 1

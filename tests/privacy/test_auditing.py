"""The parts of an audit by hand and by brute force: bounds, scores, inputs, transcripts, and whole audits of noise that
NumPy draws. No program is compiled.
"""

import importlib
import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from numpy_draws import NumpyDraws, to_laplace
from scipy.optimize import brentq
from scipy.stats import binom
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.auditing import Edit, confidence_bounds, differences, neighbours, scores, transcripts
from jaxbandits.auditing.differences import Differences
from jaxbandits.auditing.transcripts import Seen, Shown
from jaxbandits.mechanisms import gaussian_event, laplace_event
from jaxbandits.protocol import Algorithm, Environment, Moments, Program, Report, Span
from jaxbandits.random import Draws

a, e = jb.algorithms, jb.environments
INF, NAN = math.inf, math.nan

# ---------------------------------------------------------------- bounds


def exact_bounds(k, n, failure):
    """Clopper and Pearson by their definition: the shares at which so many successes are as rare as `failure`."""
    low = brentq(lambda p: binom.sf(k - 1, n, p) - failure, 0, 1, xtol=1e-15) if k else 0.0
    high = brentq(lambda p: binom.cdf(k, n, p) - failure, 0, 1, xtol=1e-15) if k < n else 1.0
    return low, high


COUNTS = [(0, 1), (1, 1), (0, 40), (1, 40), (17, 40), (39, 40), (40, 40), (600, 4000), (3999, 4000)]


@pytest.mark.parametrize("failure", [0.2, 0.05, 1e-4])
def test_bounds_are_those_of_the_binomial_law(failure):
    k, n = np.transpose(COUNTS)
    wanted = np.transpose([exact_bounds(*counts, failure) for counts in COUNTS])
    np.testing.assert_allclose(confidence_bounds.clopper_pearson(k, n, failure), wanted, rtol=1e-7, atol=1e-14)


def test_the_bound_on_epsilon_is_made_of_both_shares():
    for (tp, n), fp in itertools.product([(0, 40), (17, 40), (40, 40), (600, 4000)], (0, 3, 11)):
        for delta, confidence in ((0.0, 0.95), (0.1, 0.95), (0.02, 0.5)):
            low, high = exact_bounds(tp, n, (1 - confidence) / 2)[0], exact_bounds(fp, n, (1 - confidence) / 2)[1]
            wanted = math.log(max(low - delta, 1e-12) / high)
            found = confidence_bounds.log_ratio(tp, fp, n, delta, confidence)
            assert found == pytest.approx(wanted, rel=1e-6)
            assert confidence_bounds.epsilon_lower(tp, fp, n, delta, confidence) == pytest.approx(
                max(wanted, 0), rel=1e-6
            )


def test_what_a_claim_allows_and_a_test_achieves():
    for epsilon, delta in ((0.0, 0.0), (0.7, 0.0), (0.7, 0.2), (3.0, 0.01), (1.0, 1.0)):
        for share in (0.0, 0.01, 0.2, 0.5, 0.83, 1.0):
            lines = 1 - delta - math.exp(epsilon) * share, (1 - delta - share) / math.exp(epsilon)
            (found,) = confidence_bounds.claimed_curve(epsilon, delta, np.array([share]))
            assert found == pytest.approx(max(0, *lines), abs=1e-12)
    assert confidence_bounds.claimed_curve(INF, 0.0, np.array([0, 1])).tolist() == [0.0, 0.0]
    for epsilon in (709.0, 710.0, 1e5):  # exp overflows beyond 709.78
        assert confidence_bounds.claimed_curve(epsilon, 0.1, np.array([0, 0.5])).tolist() == [0.9, pytest.approx(0)]
    assert confidence_bounds.above(np.array([3, 1, 2, 2]), np.array([0, 1, 2, 2.5, 3, 4])).tolist() == [
        4,
        4,
        3,
        1,
        1,
        0,
    ]


def test_a_curve_looks_at_thresholds_from_the_rarest_events_to_the_commonest():
    rng = np.random.default_rng(4)
    negative, positive = rng.normal(size=300_000), rng.normal(size=200_000) + 1
    curve = confidence_bounds.trade_off(negative, positive, 0.9)
    fp, tp = curve.false_positive * 300_000, (1 - curve.false_negative) * 200_000
    step = 1e-4 * 5000 ** (np.arange(100) / 99)  # a factor from 1 / 10,000 to 1 / 2, and back
    steps = np.concatenate([[0.0], step, 1 - step[-2::-1], [1.0]])
    np.testing.assert_allclose((fp + tp)[:-1] / 500_000, 1 - steps, atol=3.1e-6)
    assert len(fp) == 202 and (fp[0], tp[0], fp[-1], tp[-1]) == (300_000, 200_000, 0, 0)
    both = (fp, 300_000, curve.false_positive_high), (200_000 - tp, 200_000, curve.false_negative_high)
    for k, n, high in both:
        np.testing.assert_allclose(high, confidence_bounds.clopper_pearson(np.round(k), n, 0.05)[1], rtol=1e-6)
    assert len(confidence_bounds.trade_off(negative, positive, 0.9, points=50).false_positive) == 52
    whole = confidence_bounds.trade_off(np.arange(10), np.arange(3, 13), 0.9)  # no threshold lies between two runs
    assert len(whole.false_positive) == 14


# ---------------------------------------------------------------- scores


def test_scores_by_hand():
    x = np.array([[9.0, 1.0, 4.0], [9.0, -2.0, 0.5]])
    first, second = np.array([0.0, 1.0]), np.array([3.0, 2.0])
    linear = scores.AuditScore("linear", np.array([1, 2]), np.array([2.0, -1.0]), first, second)
    assert linear(x).tolist() == [-2.0, -4.5]
    # |1| - |1 - 3| = -1 and |4 - 1| - |4 - 2| = 1; |-2| - |-5| = -3 and |-0.5| - |-1.5| = -1
    assert linear._replace(kind="laplace")(x).tolist() == [-3.0, -5.0]
    names = [score.name for score in (linear, linear._replace(kind="laplace"), linear._replace(columns=np.array([2])))]
    assert names == [f"{law} likelihood ratio of 2 numbers" for law in ("Gaussian", "Laplace")] + [
        "number 2 of the view"
    ]


def test_fitted_scores_are_those_of_their_formulas():
    rng = np.random.default_rng(0)
    mix = np.array([[1.0, 0.5, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0.3, 3, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]])
    negative = rng.laplace(size=(300, 5)) @ mix + [0, 0, 0, 0, 7]  # the last is the same in all runs
    positive = rng.laplace(size=(200, 5)) @ mix + [0.4, -3, 1.0, 0, 7]
    found = scores.fit_scores(negative, positive)
    gap = positive.mean(0) - negative.mean(0)
    away = np.abs(gap) / np.sqrt((negative.var(0) + positive.var(0)) / 2 + 1e-30)
    order = sorted(range(4), key=lambda i: -away[i])
    assert [score.columns.tolist() for score in found] == [[i] for i in order] + [order] * 2
    assert [float(score.weights[0]) for score in found[:4]] == np.sign(gap[order]).tolist()
    x, y = negative[:, order], positive[:, order]
    covariance = (np.cov(x.T) + np.cov(y.T)) / 2
    best = np.linalg.solve(covariance, gap[order])
    np.testing.assert_allclose(found[4].weights, best, rtol=1e-3, atol=1e-6)
    centres = np.median(x, 0), np.median(y, 0)
    scale = (np.mean(np.abs(x - centres[0]), 0) + np.mean(np.abs(y - centres[1]), 0)) / 2
    np.testing.assert_allclose(found[5].weights, 1 / scale)
    np.testing.assert_allclose((found[5].first, found[5].second), centres)
    assert (found[4].kind, found[5].kind) == ("linear", "laplace")


def test_how_many_numbers_are_looked_at():
    rng = np.random.default_rng(0)
    for numbers, sizes in (
        (1, [1]),
        (4, [1] * 4 + [4] * 2),
        (5, [1] * 5 + [4, 4, 5, 5]),
        (33, [1] * 8 + [4, 4, 32, 32, 33, 33]),
    ):
        runs = rng.normal(size=(2, 50, numbers)) + np.arange(2)[:, None, None] * (1 + np.arange(numbers))
        assert [len(score.columns) for score in scores.fit_scores(*runs)] == sizes
    single = rng.normal(size=(50, 2)) * [1e-9, 1] + [5, 0]
    first = scores.fit_scores(single, single + [1e-8, 0.3])[0]  # a change of rounding's size in a number without noise
    assert first.columns.tolist() == [1]


def test_the_best_threshold_is_that_of_a_search():
    """Over all thresholds and both sides; the caution for the best of many is a hundredth of the failure."""
    rng = np.random.default_rng(3)
    negative, positive = rng.normal(size=(2, 500, 2)) + [[[0.0, 0.0]], [[0.5, 0.2]]]
    negative[:150, 0] -= 5  # an event that tells the first input
    candidates = [scores.AuditScore("linear", np.array([i]), np.ones(1), np.zeros(1), np.zeros(1)) for i in (1, 0)]
    for delta, confidence, swapped in ((0.0, 0.95, 1), (0.2, 0.9, 1), (0.1, 0.9, -1)):
        one, other = (swapped * negative, swapped * positive)[::swapped]
        found = scores.choose_score(candidates, one, other, delta, confidence)
        bounds = []
        for sign, column in itertools.product((1, -1), (0, 1)):
            own, against = (sign * x[:, column] for x in ((other, one) if sign == 1 else (one, other)))
            thresholds = np.concatenate([own, against])
            counts = (np.sum(x >= thresholds[:, None], axis=1) for x in (own, against))
            bounds.append(confidence_bounds.log_ratio(*counts, 500, delta, 1 - (1 - confidence) / 100).max())
            if (sign, column) == (-swapped, 0):
                reached = [int(np.sum(x >= found.threshold)) for x in (own, against)]
                assert np.abs(thresholds - found.threshold).min() > 1e-6  # between two runs
        assert (
            found.score is candidates[1] and found.sign == -swapped and max(bounds) == bounds[0 if swapped < 0 else 2]
        )
        expected = confidence_bounds.log_ratio(*reached, 500, delta, 1 - (1 - confidence) / 100)
        assert found.expected == pytest.approx(expected) and max(bounds) - 0.06 < expected <= max(bounds) + 1e-9


# ---------------------------------------------------------------- inputs


def told(edits, *fields):
    return [tuple(np.asarray(getattr(edit, name)).tolist() for name in fields) for edit in edits]


def test_inputs_by_hand():
    rewards = [(t, r) for t in (2, 7) for r in (0.0, 0.5, -0.5)]
    for unit in ("reward", "loss_vector"):
        assert told(neighbours.edits(unit, [2, 7], bound=0.5), "play", "reward") == rewards
    powers = [2 ** (k / 4) for k in range(-8, 49)]
    found = told(neighbours.edits("reward", [3]), "reward")
    assert [r for (r,) in found[:-2]] == pytest.approx([0.0, *powers, *(-r for r in powers)])
    assert found[-2] == (INF,) and math.isnan(found[-1][0])
    reacting = neighbours.edits("loss_vector", [4], bound=2.0, adaptive=True)
    pays = [(0, 0), (2, 2), (2, -2), (-2, -2), (-2, 2)]
    assert told(reacting, "play", "reward", "otherwise", "rule") == [
        (4, *pair, rule) for rule in ("zero", "echo", "chase") for pair in pays
    ]
    wide = told(neighbours.edits("reward", [4], adaptive=True), "reward")
    assert len(wide) == 3 * (1 + 4 * 15 + 4) and wide[:5] == [(0.0,), (0.25,), (0.25,), (0.5,), (0.5,)]
    users = neighbours.edits("user", [3], bound=0.5, dim=3)
    assert [edit.apart for edit in users] == [False] * 36 + [True] * 8 and {edit.play for edit in users} == {3}
    turn = np.pi / 6 * np.arange(12)
    circle = np.stack([np.cos(turn), np.sin(turn), 0 * turn], 1)
    np.testing.assert_allclose([edit.feature for edit in users[:36:3]], circle, atol=1e-12)
    np.testing.assert_allclose([edit.feature for edit in users[36::2]], circle[::3], atol=1e-12)
    assert [edit.reward for edit in users[:3]] == [0.0, 0.5, -0.5] and [edit.reward for edit in users[36:38]] == [
        0.5,
        -0.5,
    ]
    shown = neighbours.edits("user", [3], bound=0.5, dim=3, arms=4)
    assert [edit.arm for edit in shown] == [()] * 44 + [0, 3] * 8 and not any(edit.apart for edit in shown[44:])
    for edit, other in zip(shown[44::2], shown[36:44], strict=True):  # the same users, of the first and the last arm
        assert edit.reward == other.reward and edit.feature.tolist() == other.feature.tolist()
    line = neighbours.edits("user", [3])
    lengths = [float(edit.feature[0]) for edit in line if not edit.apart][::5]
    np.testing.assert_allclose(lengths, [*np.cos(turn), *(8 * np.cos(turn)), INF])
    np.testing.assert_array_equal([edit.reward for edit in line[:5]], [0.0, 1.0, -1.0, 1024.0, NAN])
    plane = np.array([edit.feature for edit in neighbours.edits("user", [3], bound=1.0, dim=2)])
    assert plane.shape == (44, 2)
    np.testing.assert_allclose(plane[:36:3], circle[:, :2], atol=1e-12)
    messages = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)] + [(8, 0), (0, 8)]
    assert told(neighbours.edits("message", [5, 6]), "play", "message") == [(t, [*m]) for t in (5, 6) for m in messages]
    with pytest.raises(ValueError, match=r"^unit = 'arm' must be one of 'loss_vector', 'reward', 'user', 'message'$"):
        neighbours.edits("arm", [1])
    factors = [2 ** (k / 48) for k in range(12)]
    finer = neighbours.finer((Edit(2, 3.0), Edit(2, -1.0)))
    np.testing.assert_allclose([edit.reward for edit in finer], [s * x for s in (3, -1) for x in factors])
    assert {(edit.play, edit.otherwise) for edit in finer} == {(2, ())}
    reacting = neighbours.finer(
        (Edit(2, 3.0, otherwise=-3.0, rule="echo"), Edit(2, 0.0, otherwise=0.0, rule="echo")), steps=3
    )
    assert told(reacting[:12], "otherwise")[11] == (pytest.approx(-3 * 2 ** (11 / 12)),) and len(reacting) == 24


USER = Edit(2, 0.5, feature=[1.0, 0.0], apart=True)
REACTS = Edit(2, 0.5, otherwise=0.25, rule="echo")
CHECKED = {"unit": "reward", "last": 4}
REFUSED = [
    (Edit(2), CHECKED, r"pairs: \(2, 0.0, .*must be two auditing.Edit of one play: neighbours differ in one"),
    ((Edit(2), Edit(2), Edit(2)), CHECKED, "must be two auditing.Edit of one play"),
    ((Edit(2), 3), CHECKED, "must be two auditing.Edit of one play"),
    ((Edit(2), Edit(3)), CHECKED, "must be two auditing.Edit of one play"),
    ((Edit(5), Edit(5)), CHECKED, "pairs: play = 5.*4.*a transcript shows no later one"),
    ((Edit(0), Edit(0)), CHECKED, "pairs: play = 0"),
    ((REACTS, REACTS._replace(rule="zero")), CHECKED | {"adaptive": True}, "have two rules for the other plays"),
    ((USER, USER._replace(apart=False)), {"unit": "user", "last": 4, "dim": 2}, "have two rules for the other plays"),
    ((Edit(2), REACTS._replace(rule=())), CHECKED, r"reacts to what was played: give adaptive=True"),
    ((REACTS, REACTS), CHECKED, "reacts to what was played"),
    ((Edit(2), Edit(2)), CHECKED | {"adaptive": True},
     r"does not react: give rule, one of 'zero', 'echo', 'chase', and otherwise"),
    ((REACTS._replace(rule="slow"),) * 2, CHECKED | {"adaptive": True}, "does not react"),
    ((REACTS._replace(otherwise=()),) * 2, CHECKED | {"adaptive": True}, "does not react"),
    ((Edit(2), Edit(2, -0.6)), CHECKED | {"bound": 0.5}, r"pairs: reward = -0.6 is beyond the claim, .* \[-0.5, 0.5\]"),
    ((Edit(2), Edit(2, NAN)), CHECKED | {"bound": 0.5}, "pairs: reward = nan is beyond the claim"),
    ((REACTS._replace(otherwise=9.0),) * 2, CHECKED | {"bound": 0.5, "adaptive": True}, "reward = 9.0 is beyond"),
    ((USER._replace(feature=[1.0]),) * 2, {"unit": "user", "last": 4, "dim": 2},
     r"feature = \[1.0\] must be 2 numbers for unit 'user'"),
    ((Edit(2, feature=[1.0]),) * 2, CHECKED | {"dim": 1}, "feature = .* must be left out for unit 'reward'"),
    ((Edit(2, message=[1.0]),) * 2, {"unit": "message", "last": 4}, "message = .* must be 2 numbers for unit"),
    ((Edit(2, message=[1.0, 1.0]),) * 2, CHECKED, "message = .* must be left out for unit 'reward'"),
    ((Edit(2, apart=True),) * 2, CHECKED, "apart = True is for unit 'user', not 'reward': leave it out"),
    ((USER._replace(arm=1),) * 2, {"unit": "user", "last": 4, "dim": 2},
     "pairs: arm = 1 is for users to whom an arm is shown: leave it out"),
    ((USER._replace(arm=4),) * 2, {"unit": "user", "last": 4, "dim": 2, "arms": 4}, "pairs: arm = 4 .* 3"),
]  # fmt: skip


def test_pairs_of_a_user():
    for pair, given, match in REFUSED:
        with pytest.raises((ValueError, TypeError), match=match):
            neighbours.check_pairs([pair], **given)
    with pytest.raises(ValueError, match=r"^pairs is empty: give at least one pair of auditing.Edit, or leave it out$"):
        neighbours.check_pairs([], **CHECKED)
    pairs = [[Edit(1, 0.5), Edit(1, -0.5)], (Edit(4, INF), Edit(4))]
    assert neighbours.check_pairs(pairs, **CHECKED) == [(Edit(1, 0.5), Edit(1, -0.5)), (Edit(4, INF), Edit(4))]
    assert neighbours.check_pairs(pairs[:1], **CHECKED, bound=0.5)[0][0] == Edit(1, 0.5)
    assert neighbours.check_pairs([(REACTS, REACTS)], **CHECKED, bound=0.5, adaptive=True)[0] == (REACTS, REACTS)
    ((one, other),) = neighbours.check_pairs([(USER._replace(apart=1), USER._replace(apart=1))], "user", 4, dim=2)
    assert one.apart is True and one.feature.dtype == np.float32 and one.feature.tolist() == [1.0, 0.0]
    plain = USER._replace(apart=())
    assert neighbours.check_pairs([(plain, plain)], "user", 4, dim=2)[0][0].apart is False
    ((one, other),) = neighbours.check_pairs([(USER, USER._replace(arm=np.int32(3)))], "user", 4, dim=2, arms=4)
    assert (one.arm, other.arm) == ((), 3)
    ((one, _),) = neighbours.check_pairs([(Edit(2, message=(1, 2)),) * 2], "message", 4)
    assert one.message.tolist() == [1.0, 2.0] and one.feature == () and other.message == () and one.apart == ()


def test_a_message_of_the_window_with_the_edited_play():
    payload = Moments(np.full((3, 2, 2), 5.0, np.float32), np.full((3, 2), 7.0, np.float32))
    t = np.arange(4, 8, dtype=np.int32)

    class Seen_(tuple):
        play = np.array([True, True, True, False])

    @uncompiled
    def corrupted(play, message):
        return neighbours.MESSAGE.corrupt(
            Edit(play, message=message), (), None, t, Moments(*map(jnp.asarray, payload)), Seen_()
        )[0]

    changed = corrupted(np.int32(5), np.float32([-0.5, 0.25]))
    assert changed.gram[0].tolist() == [[-2, 0], [0, 0]] and changed.vector[0].tolist() == [1, 0]
    for play in (5, 7, 3):  # the other agents; a play that is not made; one of another window
        found = corrupted(np.int32(play), np.float32([-0.5, 0.25]))
        for x, y in zip(found, payload, strict=True):
            np.testing.assert_array_equal(x[1:] if play == 5 else x, y[1:] if play == 5 else y)


def test_what_an_edited_world_pays_and_shows():
    made = e.contextual_linear(num_arms=3, dim=2)
    world = neighbours.world_of(made.world, True)
    t = np.arange(1, 4, dtype=np.int32)

    @uncompiled
    def seen(play, reward, feature, apart, seed):
        params = neighbours.Input(made.params, Edit(play, reward, feature, apart=apart))
        draws = jb.random.Draws(seed, "environment")
        state = world.init(params, draws)
        context = world.observe(params, state, draws, t)[0]
        single, team = (world.reward(params, state, draws, t, context, jnp.zeros(s, jnp.int32)) for s in ((3,), (3, 2)))
        return context, single, team, world.score(params, state, t, context, jnp.zeros(3, jnp.int32)).regret

    edit = np.int32(2), np.float32(0.5), np.float32([0.6, 0.8])
    own, single, team, regret = seen(*edit, False, np.uint32(3))
    np.testing.assert_allclose(own, np.broadcast_to(np.float32([[[0, 1]], [[0.6, 0.8]], [[0, 1]]]), (3, 3, 2)))
    assert single.tolist() == [0, 0.5, 0] and team.tolist() == [[0, 0], [0.5, 0.5], [0, 0]] and not regret.any()
    apart = seen(*edit, True, np.uint32(4))[0]
    np.testing.assert_allclose(apart[1], own[1])
    assert (apart != own).any((1, 2)).tolist() == [True, False, True]  # others have features of their own


def test_the_private_play_plays_the_arm_of_the_edit():
    made = a.linucb(num_arms=3, dim=2, horizon=9, models="per_arm")
    program = neighbours.with_arm(made.program)

    @uncompiled
    def action(play, arm, t):
        shown = neighbours.ShownArm(made.params, play, arm)
        draws = jb.random.Draws(np.uint32(1), "alg")
        return program.act(shown, program.init(shown, draws), draws, t[None], jnp.ones((1, 2)))[0]

    two, three = np.int32(2), np.int32(3)
    found = [action(two, np.int32(arm), t).tolist() for arm, t in ((2, two), (2, three), (-1, two))]
    assert found == [[2], [0], [0]]  # all arms tie, and the lowest is played


# ---------------------------------------------------------------- transcripts


class Window:
    """What `offer` returns of a window of three plays from play 4 on."""

    t, play, used = np.arange(4, 7, dtype=np.int32), np.array([True, True, False]), 2
    action = np.array([1, 0, 1], np.int32)

    def __init__(self, message, released, used=2):
        self.message, self.released, self.used = message, released, np.int32(used)


def shown(setting, window, private=9):
    found = uncompiled(lambda: transcripts._show(setting, window, jnp.int32(private), jnp.int32(5)))()
    return [np.asarray(x).tolist() for x in found]


def test_what_a_window_shows():
    made = a.adap_ucb(num_arms=2, horizon=40, epsilon=1.0)
    central = transcripts.setting_of(made, e.bernoulli_arms(means=[0.1, 0.2]), False, False)
    central = central._replace(view=lambda message, released, action: released)
    released = np.float32([0.5, NAN, INF]), np.int32([1]), np.uint32(7), np.array(True)
    window = Window((), released)
    values, marks, arms, done, tells = shown(central, window)
    assert values == [0.5, 0, 0] and marks == [1, 0, 0, 0, 1, 7, 1] and (done, tells) == (5, True)
    assert arms == [0, 1, 1, 0, 0, 0]  # of plays 4 and 5; 6 was not made
    assert shown(central, window, private=5)[2] == [0, 1, 0, 0, 0, 0]
    assert shown(central._replace(arms=False), window)[2] == []
    nothing = shown(central, Window((), released, used=0))
    assert nothing[:3] == [[0] * 3, [0] * 7, [0] * 6] and nothing[4] is False
    assert shown(central, Window((), (np.float32([NAN]), np.int32([1]))))[4] is False
    assert shown(central, Window((), (np.int32([1]),)))[4] is False
    assert shown(central, Window((), (np.float32([NAN]), np.float32([1]))))[4] is True
    wide = central._replace(num_arms=65)
    assert shown(wide, window)[1:3] == [[1, 0, 0, 1, 7, 1], [1, 0, 0]]
    assert len(shown(central._replace(num_arms=64), window)[2]) == 192
    many = Window((), released)
    many.t, many.play, many.action = np.arange(4, 133, dtype=np.int32), np.ones(129, bool), np.zeros(129, np.int32)
    assert shown(central, many, private=5)[2] == [128, 0]  # of 258 numbers the sums
    report = Report(np.float32([1, 2, 3]), np.int32([0, 1, 0]), np.array([True, False, True]))
    local = central._replace(view=lambda message, released, action: message, sent=True, arms=False)
    assert shown(local, Window(report, ()))[:2] == [[1, 0, 3], [1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1]]
    assert shown(local, Window(report, ()))[4] and not shown(local._replace(sent=False), Window(report, ()))[4]


def test_windows_of_spans_stand_after_one_another_whatever_their_widths(monkeypatch):
    rng, lanes, given = np.random.default_rng(3), 2, []
    sizes = [(3, 2, 4, 1), (1, 5, 1, 0), (2, 1, 3, 6)]  # windows, and numbers of each kind
    spans = [
        Shown(*(rng.normal(size=(lanes, w, n)) for n in kinds), *(rng.integers(9, size=(2, lanes, w)) > 4))
        for w, *kinds in sizes
    ]
    monkeypatch.setattr(transcripts, "_many", lambda *told: given.append(told) or spans)
    made = a.adap_ucb(num_arms=2, horizon=40, epsilon=1.0)
    setting = transcripts.setting_of(made, e.bernoulli_arms(means=[0.1, 0.2]), False, False)
    edits = [Edit(1, 0.25), Edit(3, 0.75)]
    shown = transcripts.Runs(setting, made.params, ()).windows_on(edits, np.array([1, 0]), np.arange(2))
    assert given[0][0].apart and not setting.apart and given[0][3].play.tolist() == [3, 1]
    for j, widest in enumerate((5, 4, 6)):
        assert shown[j].shape == (lanes, 6, widest)
        for (w, *kinds), first, span in zip(sizes, (0, 3, 4), spans, strict=True):
            assert np.array_equal(shown[j][:, first : first + w, : kinds[j]], span[j])
            assert not shown[j][:, first : first + w, kinds[j] :].any()
    for j in (3, 4):
        assert np.array_equal(shown[j], np.concatenate([span[j] for span in spans], axis=1))


def noise_of(seeds, numbers):
    """Laplace noise [L, numbers], the same for a seed whatever it is for."""
    return to_laplace(NumpyDraws(np.asarray(seeds)[:, None], "noise").at(np.arange(numbers), 0), np.float64)


def in_numpy(monkeypatch, values, *, slots=1, first=0, arms=None, every=1):
    """Programs in NumPy. values: edits, noise [L, W] -> what windows release [L, W], from window `first` on, each
    `every`th; a window makes `slots` plays. arms: edits, noise -> indicators [L, W].

    Returns the settings that were asked for.
    """
    asked = []

    def many(setting, params, environment, edits, seeds):
        asked.append(setting)
        windows = setting.windows
        noise = noise_of(seeds, windows)
        done = np.broadcast_to(np.minimum(slots * np.arange(1, windows + 1), setting.horizon), noise.shape)
        told = np.broadcast_to((np.arange(windows) >= first) & ((np.arange(windows) - first) % every == 0), noise.shape)
        numbers = np.where(told, values(edits, noise, done), 0)
        seen = arms(edits, noise, done) if arms else np.zeros((len(seeds), 0))
        return numbers, seen, done, told

    monkeypatch.setattr(transcripts, "_many", many)
    return asked


def column(x):
    return np.asarray(x, float)[:, None]


def released(edits, noise, done):
    """The private reward, cut to [-1, 1], in the first window that has its play, with Laplace noise of scale 1."""
    here = (done >= column(edits.play)) & (np.cumsum(done >= column(edits.play), 1) == 1)
    return np.where(here, np.clip(np.nan_to_num(column(edits.reward)), -1, 1), 0) + noise


@pytest.fixture
def unseen(monkeypatch):
    def find(algorithm, environment):
        assert isinstance(algorithm, Algorithm) and isinstance(environment, Environment)
        return Differences((), True, 0, 0, INF, 0.0, INF, "")

    monkeypatch.setattr(importlib.import_module("jaxbandits.auditing.audit"), "find_differences", find)


def takes(monkeypatch):
    """How many seeds are taken at a time, and all of them."""
    numbers, every, take = [], [], transcripts.Seeds.take

    def spy(self, number):
        found = take(self, number)
        numbers.append(number)
        every.append(found)
        return found

    monkeypatch.setattr(transcripts.Seeds, "take", spy)
    return numbers, every


LOCAL = {"num_arms": 2, "horizon": 40}


def test_an_audit_plays_in_the_environment_that_it_is_given(monkeypatch):
    in_numpy(monkeypatch, released)
    many, seen = transcripts._many, []

    def find(algorithm, environment):
        seen.append(environment.params.means.tolist())
        return NOTHING

    def play(*given):
        seen.append(np.asarray(given[2].environment.means).tolist())
        return many(*given)

    monkeypatch.setattr(importlib.import_module("jaxbandits.auditing.audit"), "find_differences", find)
    monkeypatch.setattr(transcripts, "_many", play)
    world = e.bernoulli_arms(means=[0.125, 0.9375])
    jb.audit(a.ldp_ucb(**LOCAL, epsilon=2.0), runs=2000, environment=world, pairs=[(Edit(1, 1.0), Edit(1))])
    assert len(seen) > 2 and all(means == [0.125, 0.9375] for means in seen)


def test_at_a_larger_delta_no_more_is_claimed(monkeypatch, unseen):
    in_numpy(monkeypatch, released)
    made = a.ldp_ucb(**LOCAL, epsilon=2.0)  # whose events say 2
    low = made._replace(guarantee=made.guarantee._replace(spend=lambda params: (0.5, 0.0)))
    (bound,) = jb.audit(low, runs=2000, delta=0.1, pairs=[(Edit(1, 1.0), Edit(1))]).bounds
    assert bound.claimed == 0.5


def test_half_of_the_runs_choose_and_half_count_and_all_deltas_hold_together(monkeypatch, unseen):
    in_numpy(monkeypatch, released)
    numbers, every = takes(monkeypatch)
    made = a.ldp_ucb(**LOCAL, epsilon=2.0)
    pairs = [(Edit(1, r), Edit(1)) for r in (0.5, 0.75, 1.0)]
    found = jb.audit(made, runs=270_003, confidence=0.9, delta=[0.0, 0.1, 0.0, 0.3], pairs=pairs, seed=5)
    few, searched = 270_003 // 16 // 3 // 2, 270_003 * 3 // 16 // 2
    steps = [65_536, 67_500 - 65_536]
    assert numbers == [8, 16] + 4 * 3 * [few] + 4 * [searched] + 2 * steps
    seeds = np.concatenate(every)
    assert len(np.unique(seeds)) == len(seeds)  # no run is used twice
    # 0 or 1 plus noise of scale 1: 1 is spent, and the larger reward tells it best
    assert sorted(edit.reward for edit in found.event.pair) == [0.0, 1.0] and found.seed == 5 and found.runs == 270_003
    assert [bound.delta for bound in found.bounds] == [0.0, 0.1, 0.3] and found.confidence == 0.9
    each = 1 - 0.1 / 3
    p = (0.1 / 3 / 2) ** (1 / 67_500)  # what all runs and none would prove
    assert found.epsilon_reachable == pytest.approx(math.log(p / (1 - p)), rel=1e-9)
    for bound in found.bounds:
        event = bound.event
        wanted = confidence_bounds.epsilon_lower(event.true_positives, event.false_positives, 67_500, bound.delta, each)
        assert bound.epsilon_lower == wanted and event.trials == 67_500 and bound.claimed == 2.0
        exact = 1 + 2 * math.log(1 - bound.delta)  # of Laplace noise
        assert 0.8 * exact <= bound.epsilon_lower <= exact
    assert found.ratio == found.epsilon_lower / 2 and not found.refuted
    assert math.isnan(found._replace(claimed=(0.0, 0.0)).ratio) and found.last == 4 and found.model == "local"
    seen = found._replace(differences=NOTHING._replace(releases=(1, 4, 5), whole=False))
    assert seen.looked_at == "looked at plays 1 to 4, 2 of 3 or more messages"
    assert seen._replace(model="central", differences=NOTHING).looked_at == "looked at plays 1 to 4, 0 of 0 releases"
    assert seen._replace(differences=NOTHING._replace(fault="a fault")).refuted
    fp = np.round(found.curve.false_positive * 67_500)
    failure = (1 - each) / 2
    np.testing.assert_array_equal(
        found.curve.false_positive_high, confidence_bounds.clopper_pearson(fp, 67_500, failure)[1]
    )
    one = jb.audit(made, runs=20_000, confidence=0.9, pairs=pairs[2:])
    event = one.event
    assert one.epsilon_lower == confidence_bounds.epsilon_lower(
        event.true_positives, event.false_positives, 5000, 0.0, 0.9
    )
    assert jb.audit(a.ldp_ucb(**LOCAL, epsilon=0.8), runs=20_000, pairs=pairs[2:]).refuted


REFUSED_CALLS = [
    ({"runs": 1999}, "runs = 1999.*half of them choose an event, the other half count it"), ({"seed": -1}, "-1"),
    *[({"confidence": x}, f"confidence = {x}") for x in (0.0, 1.0)],
    *[({"delta": [0.5, x]}, f"delta = {x}") for x in (-0.1, 1.0)],
    ({"delta": []}, r"^delta = \[\]: give one at least, in \[0, 1\)$"),
    ({"algorithm": a.ucb1(**LOCAL)}, "^algorithm = ucb1 has no guarantee: an audit needs a private algorithm$"),
]  # fmt: skip


def test_calls_that_are_refused():
    for given, match in REFUSED_CALLS:
        with pytest.raises(ValueError, match=match):
            jb.audit(**{"algorithm": a.ldp_ucb(**LOCAL, epsilon=1.0), "runs": 2000} | given)


def test_where_a_client_clips_is_looked_for(monkeypatch, unseen):
    def values(edits, noise, done):
        r = np.nan_to_num(column(edits.reward), posinf=0)
        return np.where((done == column(edits.play)) & (np.abs(r) <= 1.1), r, 0) + noise

    in_numpy(monkeypatch, values)
    found = jb.audit(a.ldp_ucb(**LOCAL, epsilon=3.0), runs=20_000)
    # 1 and 1.19 are tried, and then steps between them, of which 2^(6/48) = 1.0905 is the last below 1.1; of both signs
    assert sorted(edit.reward for edit in found.event.pair) == pytest.approx([-(2**0.125), 2**0.125])
    closer = jb.audit(a.ldp_ucb(**LOCAL, epsilon=3.0), runs=20_000, pairs=[(Edit(1, 1.0), Edit(1, -1.0))])
    assert 1.8 < closer.epsilon_lower < found.epsilon_lower < 2 * 2**0.125


@pytest.mark.parametrize(("much", "chosen"), [(1.13, False), (1.4, True)])
def test_users_who_are_apart_must_be_clearly_better(much, chosen, monkeypatch, unseen):
    def values(edits, noise, done):
        return np.where(done == 1, column(edits.reward) * np.where(column(edits.apart), much, 1.0), 0) + noise

    in_numpy(monkeypatch, values)
    made = a.ldp_linucb(num_arms=2, horizon=40, dim=2, epsilon=1.0, delta=0.1)
    pairs = [(Edit(1, 2.0, [1, 0], apart=apart), Edit(1, 0.0, [1, 0], apart=apart)) for apart in (False, True)]
    found = jb.audit(made, runs=150_000, pairs=pairs)
    assert found.event.pair[0].apart is chosen and found.delta == 0.1


def test_arms_are_told_besides(monkeypatch, unseen):
    """Where all that is released is noise, and an arm is nine times as likely."""

    def arms(edits, noise, done):
        uniform = np.abs(1e4 * noise) % 1
        return (uniform < np.where(done == 3, 0.5 + 0.4 * column(edits.reward), 0.5)).astype(float)

    in_numpy(monkeypatch, lambda edits, noise, done: noise, arms=arms)
    made = a.adap_ucb(num_arms=2, horizon=40, epsilon=1.0)
    found = jb.audit(made, runs=20_000, pairs=[(Edit(1, 1.0), Edit(1, -1.0))])
    assert 1.9 < found.epsilon_lower < math.log(9) and found.refuted


class Given:
    """A runner whose transcripts are given."""

    def __init__(self, numbers, view):
        self.numbers, self.view = np.asarray(numbers, float), view

    def on(self, edits, which, seeds, columns=None):
        assert which.tolist() == np.repeat(np.arange(len(edits)), 16).tolist()
        np.testing.assert_array_equal(seeds, np.tile(seeds[:16], len(edits)))  # common random numbers
        return Seen(self.numbers, None, None, self.view)


def test_the_most_distant_inputs_and_the_numbers_that_vary(monkeypatch):
    """By hand: noise of +-1 on common random numbers, shifted input by input."""
    flip = np.where(np.arange(16) % 2, 1.0, -1.0)

    def runs(shifts):
        return np.concatenate([flip[:, None] + np.asarray(shift) for shift in shifts])

    def pairs(shifts, edits, usable=None):
        return transcripts._distant_pairs(runs(shifts), edits, range(len(edits)) if usable is None else usable)

    one = [Edit(1, float(i)) for i in range(3)]
    assert pairs([[0, 0], [1, 0], [0, 2.5]], one) == [(1, 2)]  # 3.5 in sum, and 2.69 in length
    # the sum is largest for 1 and 2, 5.5, the length for 0 and 2, 3.5
    assert pairs([[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 3.5]], one) == [(1, 2), (0, 2)]
    assert pairs([[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0.5, -2.4]], one, [0, 1, 2]) == [(1, 2)]
    assert pairs([[0] * 4, [-1] * 4, [3, 0, 0, 0]], one, [0, 1]) == [(0, 1)]
    assert pairs([[0] * 4, [1] * 4, [-3, 0, 0, 0]], one[:2] + [Edit(2)]) == [(0, 1)]  # neighbours differ at one play
    assert pairs([[0], [0], [0]], one) == []
    plays = [Edit(t, r) for t in (1, 2, 3) for r in (0.0, 1.0)]
    assert pairs([[0], [1], [0], [3], [0], [2]], plays) == [(2, 3), (4, 5), (0, 1)]  # the most distant first
    rules = [Edit(1, r, otherwise=0.0, rule=rule) for rule in ("zero", "echo") for r in (0.0, 1.0)]
    assert pairs([[0], [1], [9], [7]], rules) == [(2, 3), (0, 1)]
    # spreads differ between numbers: 1 of spread 1 against 5 of spread 10
    wide = runs([[0, 0], [1, 0], [0, 0]])
    wide[:, 1] = np.tile(10 * flip, 3) + np.repeat([0, 0, 5], 16)
    assert transcripts._distant_pairs(wide, one, [0, 1, 2])[0] == (1, 2)
    assert transcripts._distant_pairs(wide, one, [0, 1]) == [(0, 1)] and transcripts._distant_pairs(
        wide, one, [0, 2]
    ) == [(0, 2)]
    quiet = np.repeat([[5.0, 0], [5.0, 0], [5.0 + 1e-9, 1e-3]], 16, axis=0)  # without noise: rounding is no distance
    assert transcripts._distant_pairs(quiet, one, [0, 1, 2]) == [(0, 2)]

    # numbers: view of 4, one of which is constant, then arms
    shifts = [[0, 7, 0, 0, 0, 0], [1, 7, 0, 0, 0.5, 0], [0, 7, 2, 0, 0, 0]]
    numbers = runs(shifts)
    numbers[:, 1] = 7
    numbers[:, 5] = 3
    found, columns, arms = transcripts.furthest(Given(numbers, 4), one, transcripts.Seeds(0))
    assert columns.tolist() == [0, 2, 3] and arms.tolist() == [4]
    assert found == [(one[1], one[2]), (one[0], one[1])]  # by the view, and by arms
    apart = [edit._replace(apart=i == 1) for i, edit in enumerate(one)]
    found, _, _ = transcripts.furthest(Given(numbers, 4), apart, transcripts.Seeds(0))
    assert found == [(apart[0], apart[2])]  # users who are apart come by arms alone, with one of their kind
    same = [Edit(2), Edit(1), Edit(1), Edit(2)]
    found, columns, arms = transcripts.furthest(Given(np.ones((64, 3)), 2), same, transcripts.Seeds(0))
    assert found == [(same[0], same[3])] and columns.tolist() == [0] and arms.tolist() == []
    many = [Edit(t, r) for t in range(1, 7) for r in (0.0, 1.0)]
    numbers = runs([[(t + 1) * r, (6 - t) * r] for t in range(6) for r in (0, 1)])
    found, _, _ = transcripts.furthest(Given(numbers, 1), many, transcripts.Seeds(0))
    assert [pair[0].play for pair in found] == [6, 5, 4, 3, 1, 2]  # four by the view, two by arms
    monkeypatch.setattr(transcripts, "MAX_COLUMNS", 2)
    monkeypatch.setattr(transcripts, "MAX_ARM_COLUMNS", 1)
    numbers = runs([[0, 0, 0, 0, 0], [1, 3, 2, 1, 2], [0, 0, -2, 0, 0]])
    numbers[:, 1] = np.tile(10 * flip, 3) + np.repeat([0, 3, 0], 16)
    for whole, kept in ((False, [0, 1, 2]), (True, [0, 2])):
        _, columns, arms = transcripts.furthest(Given(numbers, 3), one, transcripts.Seeds(0), whole)
        assert columns.tolist() == kept and arms.tolist() == [4]
    assert len(transcripts.furthest(Given(numbers, 2), one, transcripts.Seeds(0), True)[1]) == 2
    # without spread, however little they differ, before those with some
    numbers[:, 2], numbers[:, 0] = np.repeat([0, 1e-6, 0], 16), np.repeat([0, 0, 1e-5], 16)
    assert transcripts.furthest(Given(numbers, 3), one, transcripts.Seeds(0), True)[1].tolist() == [0, 2]


def test_seeds_follow_each_other_and_begin_anywhere():
    seeds = transcripts.Seeds(3)
    taken = np.concatenate([seeds.take(n) for n in (3, 5)])
    np.testing.assert_array_equal(np.diff(taken.astype(np.int64)), 1)
    assert taken.dtype == np.uint32 and taken[0] == np.random.SeedSequence(3).generate_state(1)[0]
    seeds.next = 2**32 - 1
    assert seeds.take(2).tolist() == [2**32 - 1, 0]
    assert [transcripts.lanes(n) for n in (1, 8, 9, 1000, 1024, 1025, 2049, 10**6)] == [
        8,
        8,
        16,
        1024,
        1024,
        2048,
        2048,
        2048,
    ]


# made: span, view; what a transcript then is: windows, the last play, private plays, of the whole run, with reactions
CENTRAL, BY_USERS = (
    a.adap_ucb(num_arms=2, horizon=40, epsilon=1.0),
    a.ldp_linucb(num_arms=2, horizon=40, dim=2, epsilon=1.0),
)
LENGTHS = [
    # 64 windows of a play: not twice as many as reach the first release
    (CENTRAL, Span(1, 5000), {"first": 40}, 64, 64, [1, 21, 40, 41], None),
    (CENTRAL, Span(1, 5000), {"first": 0}, 64, 64, [1], None),
    # after 64 windows without one, 1,024: play 128 is the end, or the release
    (CENTRAL, Span(1, 5000), {"first": 100}, 128, 128, [1, 51, 100, 101], None),
    (CENTRAL, Span(1, 5000), {"first": 300}, 301, 301, [1, 151, 300, 301], None),
    (CENTRAL, Span(1, 5000), {"first": 600}, 1024, 1024, [1, 301, 600, 601], None),
    (CENTRAL, Span(1, 2000), {"first": 1500}, 2000, 2000, [1, 751, 1500, 1501], None),
    (CENTRAL, Span(1, 50), {"first": 9}, 50, 50, [1, 5, 9, 10], None),
    # windows of ten plays: the 13th reaches play 128
    (CENTRAL, Span(10, 90), {"first": 2, "slots": 10}, 13, 130, [1, 15, 20, 30], None),
    (CENTRAL, Span(10, 90), {"first": 20, "slots": 10}, 21, 210, [1, 105, 200, 210], None),
    (CENTRAL, Span(1, 90), {"first": 9}, 90, 90, [1, 5, 9, 10, 23, 46, 68, 90], "whole"),
    (CENTRAL, Span(1, 5000), {"first": 9}, 64, 64, [1, 5, 9, 10, 17, 33, 49, 64], "adaptive"),
    # a window that a close releases
    (CENTRAL, Span(8, 3, close=True), {"first": 3, "slots": 8}, 4, 32, [1, 16, 24, 32], None),
    # in the local model four messages, and the first play that sends a number, alone
    (BY_USERS, Span(1, 90), {"first": 0}, 4, 4, [1], None),
    (BY_USERS, Span(1, 90), {"first": 9}, 64, 64, [10], None),
    (BY_USERS, Span(5, 90), {"first": 1, "slots": 5}, 4, 20, [6, 10], None),
    (BY_USERS, Span(5, 3), {"first": 1, "slots": 5}, 3, 15, [6, 10], None),
]  # fmt: skip


def test_how_long_transcripts_are_and_what_is_private(monkeypatch):
    for made, span, given, windows, last, plays, way in LENGTHS:
        spans = (span,) * (2 if span.close else 1)
        horizon, local = span.slots * span.repeats * len(spans), made is BY_USERS
        made = made._replace(schedule=spans, config=made.config | {"horizon": horizon})
        in_numpy(monkeypatch, lambda edits, noise, done: noise, **given)
        numbers, _ = takes(monkeypatch)
        world = transcripts.default_environment(made)
        found = transcripts.prepare_transcripts(
            made, world, transcripts.Seeds(0), 20_000, way == "whole", way == "adaptive"
        )
        setting = found.runner.setting
        assert (setting.windows, found.last, found.plays) == (windows, last, plays), (span, given)
        assert (setting.horizon, setting.num_arms, numbers[0]) == (horizon, 2, 8)
        assert setting.sent == local and setting.arms == (not local)
        assert (setting.parts.reward_attack is not None) == (way == "adaptive") and setting.parts.message_attack is None
        assert found.dim == (2 if local else 0) and setting.apart is False and found.runner.size == 2048
        monkeypatch.undo()


def test_whole_runs_fit_into_memory_and_other_settings_are_refused(monkeypatch):
    made, world = CENTRAL._replace(schedule=(Span(1, 4096),)), transcripts.default_environment(CENTRAL)
    in_numpy(monkeypatch, lambda edits, noise, done: noise)
    sizes = []
    for numbers in (1 << 20, 1 << 17, 1 << 16, 1 << 15):
        monkeypatch.setattr(transcripts, "MAX_TRANSCRIPT_NUMBERS", numbers)
        found = transcripts.prepare_transcripts(made, world, transcripts.Seeds(0), 20_000, True)
        sizes.append(found.runner.size)
    assert sizes == [256, 32, 16, 8]
    assert transcripts.prepare_transcripts(made, world, transcripts.Seeds(0), 100, True).runner.size == 8
    with pytest.raises(
        ValueError, match=r"^whole = True: a run of adap_ucb with horizon = 40 has 4097 windows, and a trans"
    ):
        transcripts.setting_of(made._replace(schedule=(Span(1, 4097),)), world, True, False)
    with pytest.raises(
        ValueError, match=r"^adaptive = True: neighbours of ldp_linucb differ in one user, and inputs react"
    ):
        transcripts.setting_of(BY_USERS, world, False, True)
    with pytest.raises(
        ValueError, match="environment: unit 'user' needs contexts of features, bernoulli_arms has none"
    ):
        transcripts.prepare_transcripts(BY_USERS, e.bernoulli_arms(means=[0.1, 0.2]), transcripts.Seeds(0), 2000, False)
    in_numpy(monkeypatch, lambda edits, noise, done: noise, first=50)
    with pytest.raises(ValueError, match=r"^ldp_linucb sent no number in its first 40 windows: raise its horizon$"):
        users = transcripts.default_environment(BY_USERS)
        transcripts.prepare_transcripts(BY_USERS, users, transcripts.Seeds(0), 2000, False)
    begun = [
        ((Span(1, 0), Span(1, 7, close=True)), 8), ((Span(1, 7), Span(1, 9, close=True)), 8), ((Span(1, 70),), 64),
        ((Span(1, 5, close=True),), 5), ((Span(1, 0),), 0),
    ]  # fmt: skip
    for spans, windows in begun:
        setting = transcripts.setting_of(CENTRAL._replace(schedule=spans), world, False, False)
        assert setting.windows == min(windows, sum(span.repeats for span in spans)) and setting.num_arms == 2
    local = a.ldp_ucb(num_arms=2, horizon=40, epsilon=1.0)
    for spans, windows in (((Span(1, 2), Span(1, 9)), 2), ((Span(1, 9),), 4)):
        assert transcripts.setting_of(local._replace(schedule=spans), world, False, False).windows == windows
    reacting = transcripts.setting_of(local, world, False, True)
    assert reacting.arms and reacting.sent and reacting.parts.reward_attack is neighbours.reacting(1.0)
    bounded = a.phased_elimination(actions=np.eye(2), horizon=40, epsilon=1.0)
    half = bounded._replace(guarantee=bounded.guarantee._replace(bound=0.5))
    assert transcripts.setting_of(half, world, False, True).parts.reward_attack is neighbours.reacting(0.5)


# ---------------------------------------------------------------- differences


def show(values, tells=None, done=None, arms=None, marks=None):
    """Windows [S, W, V] of a play each."""
    values = np.asarray(values, np.float32)
    plain = np.broadcast_to(np.arange(1, values.shape[1] + 1), values.shape[:2])
    nothing = np.zeros((*values.shape[:2], 0))
    told = np.ones(values.shape[:2], bool) if tells is None else np.asarray(tells, bool)
    done = plain if done is None else np.asarray(done)
    return Shown(
        values,
        nothing if marks is None else np.asarray(marks),
        nothing if arms is None else np.asarray(arms),
        done,
        told,
    )


NOTHING = Differences((), True, 0, 0, INF, 0.0, INF, "")
LAPLACE, GAUSSIAN = laplace_event("x", 3.0, 1.0), gaussian_event("y", 0.5, 1.0, 3)


def held(one, other, events=(LAPLACE,), running=False, play=2, found=NOTHING):
    """Releases compared and changed, the largest change, and its limit."""
    out = differences._hold(found, one, other, play, list(events), running)
    return out.compared, out.changed, pytest.approx(out.size, rel=1e-4), out.limit


def test_differences_of_two_runs_by_hand():
    base = np.array([[[1, 2], [3, 4], [5, 6], [7, 8], [9, 9]]] * 2, float)
    other = base.copy()
    other[0, 1] += [1, -0.5]
    other[1, 1:4] += [[0.25, 0], [0, 0], [-1, 1]]
    # from play 2 on: four releases; of the second seed two differ, and by 2 in sum
    assert held(show(base), show(other)) == (4, 2, 2.0, 3.0)
    assert held(show(base), show(other), [GAUSSIAN]) == (4, 2, math.sqrt(2), 0.5 * math.sqrt(2))
    assert held(show(base), show(other), [GAUSSIAN, LAPLACE])[2:] == (math.sqrt(2), 0.5 * math.sqrt(2) + 3)
    assert held(show(base), show(other), play=3) == (3, 1, 2.0, 3.0) and held(show(base), show(other), play=5)[:2] == (
        1,
        0,
    )
    assert held(show(base), show(other), [LAPLACE._replace(mechanism="binomial")])[3] == INF
    assert held(show(base), show(other), [LAPLACE._replace(mechanism="discrete laplace")]) == (4, 2, 2.0, 3.0)
    for kind in ("gaussian, shuffled", "skellam"):
        same = [GAUSSIAN._replace(mechanism=kind)]
        assert held(show(base), show(other), same) == (4, 2, math.sqrt(2), 0.5 * math.sqrt(2))
    assert held(show(base), show(other), [LAPLACE, LAPLACE._replace(sensitivity=NAN)])[3] == INF
    assert held(show(base), show(other), [LAPLACE._replace(largest=7.0, times=5)])[3] == 14.0  # two numbers are shown
    assert held(show(base), show(other), running=None) == (4, 1, 1.5, 3.0)
    before = NOTHING._replace(compared=9, changed=1, size=5.0, limit=4.0)
    assert held(show(base), show(other), found=before) == (9, 2, 5.0, 3.0)
    # what is only shown again is no release, unless it is so in one run alone
    again = base.copy()
    again[:, 3] = again[:, 2]
    assert held(show(again), show(again))[0] == 3 and held(show(again), show(base))[0] == 4
    tells = np.ones((2, 5))
    tells[:, 2] = 0
    assert held(show(base, tells), show(other, tells))[0] == 3
    # runs are compared until they part: in arms, plays, marks, or in whether they tell; but not at the private play
    for name in ("arms", "marks"):
        one, two = (np.zeros((2, 5, 3)) for _ in range(2))
        two[1, 3, 2] = two[:, 1, 1] = two[0, 0, 0] = 1
        compared = held(show(base, **{name: one}), show(other, **{name: two}))
        assert compared == (4, 1, 1.5, 3.0), name
    two = np.ones((2, 5))
    two[:, 3] = 0
    assert held(show(base), show(other, two)) == (2, 1, 1.5, 3.0)
    assert held(show(base), show(other, done=[[1, 2, 3, 4, 5], [1, 2, 4, 5, 6]])) == (4, 1, 1.5, 3.0)
    # running sums: the unit stays in all later ones, and moves one increment
    sums = base.copy()
    sums[0, 1:] += [1, 0]
    sums[1, 2:] += [0, -2]
    assert held(show(base), show(sums), running=True) == (4, 1, 2.0, 3.0) and held(show(base), show(sums))[1] == 4
    sums[0, 3:] += [1, 0]
    assert held(show(base), show(sums), running=True)[1] == 2
    # rounding: 2^-18 of the largest number of the run, and a millionth
    large = base * 2**18
    close = large.copy()
    close[:, 1] += [10, 0]
    assert held(show(large), show(close))[1] == 0  # of 18
    close[:, 1] += [28, 0]
    assert held(show(large), show(close), [LAPLACE])[:3] == (4, 1, 20.0)
    assert held(show(large), show(close), [GAUSSIAN])[2] == pytest.approx(38 - math.hypot(9, 9), rel=0.05)
    zero = differences._hold(NOTHING, show(0 * base), show(base + 1000), 5, [LAPLACE], False)
    assert zero.size == pytest.approx(2018 * (1 - 2**-18), rel=1e-7)
    tiny = base.copy()
    tiny[:, 1] += [1e-4, 0]
    assert held(show(base), show(tiny))[:2] == (4, 1)


def test_users_may_have_another_arm_in_whole_runs(monkeypatch):
    seen = []

    class Enough(Exception):
        pass

    def many(setting, params, environment, edits, seeds):
        seen.append((setting.arms, np.unique(edits.arm).tolist()))
        raise Enough

    monkeypatch.setattr(transcripts, "_many", many)
    rows = a.ldp_linucb(num_arms=3, dim=2, horizon=40, models="per_arm", epsilon=1.0, delta=0.2)
    for made in (BY_USERS, rows):
        with pytest.raises(Enough):
            differences.find_differences(made, transcripts.default_environment(made))
    assert seen == [(False, [-1, 0, 1]), (True, [-1, 0, 2])]


def test_only_clients_and_relay_draw_anew():
    told_at = lambda place: lambda *given: (given[0], int(given[place].seed))
    places = {"init": 1, "act": 2, "encode": 2, "update": 2, "relay": 1, "close": 2}
    alone = transcripts.clients_alone(Program(**{name: told_at(place) for name, place in places.items()}))
    draws, own = Draws(np.uint32(0), "x"), transcripts.Clients("params", np.uint32(7))
    found = {n: getattr(alone, n)(own, *([()] * (p - 1)), draws) for n, p in places.items()}
    assert found == {name: ("params", 7 if name in ("encode", "relay") else 0) for name in places}


def test_what_is_looked_for_by_hand():
    assert differences._windows((Span(1, 5000),)) == 4096 and differences._windows((Span(1, 30), Span(2, 5))) == 35
    closed = tuple(Span(1, 2, close=k % 2 == 0) for k in range(20))
    assert differences._windows(closed) == 18  # until the fifth span that is closed
    rewards = [(4, r) for r in (-2.0, 0.0, 2.0)]
    assert told(differences._edits("reward", 4, 2.0, 0), "play", "reward") == rewards
    sizes = [-1024, -4, -1, -0.25, 0.25, 1, 4, 1024]
    assert told(differences._edits("loss_vector", 4, INF, 0), "reward") == [(r,) for r in sizes]
    found = told(differences._edits("message", 4, INF, 0), "message")
    assert [tuple(m) for (m,) in found] == [(0, 0), *((1, b) for b in (-1, 0, 1)), (8, 0)]
    users = differences._edits("user", 4, 0.5, 2)
    assert {edit.reward for edit in users} == {0.5, -0.5} and not any(edit.apart for edit in users) and len(users) == 12
    wide = differences._edits("user", 4, INF, 2)
    assert all(np.isfinite([*edit.feature, edit.reward]).all() and edit.reward for edit in wide)
    shown = differences._edits("user", 4, 0.5, 2, 3)[len(users) :]
    assert [edit.arm for edit in shown] == [0, 2] * 8
    assert {edit.reward for edit in wide} == {1.0, -1.0, 1024.0} and len(wide) == 18
    over = NOTHING._replace(changed=3, compared=7, allowed=2, size=1.002, limit=1.0)
    assert differences.describe_fault(over, "loss_vector") == (
        "one loss vector changes 3 of 7 releases of runs with the same noise and arms, and events allow 2: is a sum "
        "not reset, or data used twice? (an event says running=True of sums that run on)"
    )
    assert differences.describe_fault(over._replace(changed=2), "user") == (
        "one user changes a release by 1.002, and events state a sensitivity of 1: is what enters it clipped?"
    )
    assert differences.describe_fault(over._replace(changed=2, size=1 + 1e-3), "user") == ""
    assert str(over) == "differences: 3 of 7 releases, by 1.002 of 1"
    few = over._replace(compared=2, limit=INF)
    assert str(few) == "differences: 3 of 2 releases, fewer than 3, sizes not looked at"
    assert str(over._replace(compared=3)) == "differences: 3 of 3 releases, by 1.002 of 1"
    values = np.array([[[1.0, 0]], [[1, 0]], [[1, 2]], [[1, 2]], [[0, 0]]]).transpose(1, 0, 2)
    marked = differences.mark_releases(show(np.concatenate([0 * values[:, :1], values], 1), [[1, 1, 1, 1, 0, 1]]))
    assert marked.tolist() == [[False, True, False, True, False, True]]


PHASE, GIVEN = 4, {"num_arms": 2, "horizon": 40, "epsilon": 1.0}


def test_what_a_unit_changes_in_whole_runs(monkeypatch):
    """A learner in NumPy that releases a phase's sum after every fourth play; seeds draw its first phase's arms."""
    asked = []

    def many(setting, params, environment, edits, seeds):
        windows, play, reward = setting.windows, edits.play[:, None], edits.reward[:, None]
        asked.append((setting.apart, windows, sorted(set(play[:, 0].tolist())), len(seeds)))
        done = np.broadcast_to(np.arange(1, windows + 1), (len(seeds), windows))
        told = (done % PHASE == 0) & (done > np.where(seeds % 8 == 3, 0, 4)[:, None])  # one seed's phases begin earlier
        own = np.where((done - play < PHASE) & (done >= play), np.clip(reward, -2, 2), 0) * scale
        values = np.where(told, done + own, 0)[..., None]
        halves = (
            [x[:, : windows // 2] for x in (values, done, told)],
            [x[:, windows // 2 :] for x in (values, done, told)],
        )
        none = np.zeros((len(seeds), windows, 0))
        return [Shown(v, none[:, : v.shape[1]], none[:, : v.shape[1]], d, t) for v, d, t in halves]

    monkeypatch.setattr(transcripts, "_many", many)
    made = a.adap_ucb(**GIVEN)
    made = made._replace(schedule=(Span(1, 12),))

    def found(*events, horizon=12):
        claim = made.guarantee._replace(events=lambda params: events)
        algorithm = made._replace(guarantee=claim, schedule=(Span(1, horizon),))
        return differences.find_differences(algorithm, transcripts.default_environment(made))

    scale = 1.0
    event = laplace_event("sum", 4.0, 1.0, 2)
    # clipped to [-2, 2]: two rewards move a sum by 4. On seed 3 the first release is that of play 4
    assert found(event) == Differences((4, 8, 12), True, 3, 1, 2, pytest.approx(4.0, rel=1e-4), 4.0, "")
    assert asked == [(True, 12, [1], 16 * 8), (True, 12, [2, 5], 16 * 8)]
    assert found(event, gaussian_event("y", 1.0, 1.0, 0)).allowed == 2
    assert (
        found(event, laplace_event("y", 1.0, 1.0)).allowed == 3
        and found(event, laplace_event("y", 1.0, 1.0)).limit == 5.0
    )
    assert found(event._replace(running=True)).allowed == 1 == found(event._replace(running=None)).allowed
    for module in (differences, transcripts):
        monkeypatch.setattr(module, "MAX_WINDOWS", 12)
    assert not found(event, horizon=13).whole and found(event, horizon=12).whole
    for events in ((), (laplace_event("y", INF, 1.0),)):
        assert found(*events) == Differences((4, 8, 12), True, 0, 0, INF, 0.0, INF, "")
    scale = 1.1
    assert found(event).fault.startswith("one reward changes a release by 4.4, and events state a sensitivity of 4")

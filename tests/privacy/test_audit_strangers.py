"""Audits of other people's learners: planted faults are refuted, inputs are neighbours, and what is wrong is said."""

import contextlib
import math
import sys
from functools import partial

import numpy as np
import pytest
from dealt import dealt
from private_strangers import FAULTS, HONEST, Episodes, Unseeded, audit

import jaxbandits as jb
from jaxbandits import strangers_process
from jaxbandits.auditing import confidence_bounds, strangers
from jaxbandits.auditing.scores import AuditScore, Source, TableScore, ThresholdTest, fit_all, fit_tables
from jaxbandits.auditing.transcripts import Seeds
from jaxbandits.cli import main

e = jb.environments


@pytest.mark.parametrize("fault", dealt(FAULTS, 10))
def test_planted_faults_are_refuted(fault):
    found = audit(FAULTS[fault], 3000, confidence=0.999)
    assert found.refuted, str(found)


@pytest.mark.parametrize("name", dealt(HONEST, 6))
def test_honest_learners_are_not_refuted_and_some_of_what_they_spend_is_proven(name):
    found = audit(HONEST[name], 4000, confidence=0.999)
    assert 0.1 < found.epsilon_lower <= found.claimed[0] == 1


SHORT = HONEST["episodes"]._replace(horizon=12)


def test_an_audit_is_one_line_that_says_what_silence_means_whatever_plays_it(capsys):
    cores = jb.cores()
    try:
        one, two = (audit(SHORT, 2000) for number in (1, 2) if jb.cores(number))
    finally:
        jb.cores(cores)
    assert str(one) == str(two) and one.event[1:] == two.event[1:]
    for mine, other in zip(one.curve, two.curve, strict=True):
        np.testing.assert_array_equal(mine, other)
    p = (0.05 / 2) ** (1 / one.event.trials)
    assert one.epsilon_reachable == pytest.approx(math.log(p / (1 - p)), rel=1e-9) and one.event.trials == 500
    assert one._replace(delta=0.1).epsilon_reachable == pytest.approx(math.log((p - 0.1) / (1 - p)))
    assert f"; 500 runs an input can prove {one.epsilon_reachable:.4g} at most; " in str(one)
    assert "tried 12 of 12 plays as the private one, 33 patterns" in str(one) and "\n" not in str(one)
    said = capsys.readouterr().err
    assert "Episodes: 3,000 runs of 12 plays, about " in said and "on 1 core\n" in said and "on 2 cores\n" in said


def test_what_no_seed_repeats_is_audited_all_the_same():
    found = jb.audit(jb.foreign(Unseeded), horizon=12, epsilon=1.0, runs=4000)
    assert found.refuted and "equal seeds gave other runs" in str(found)


def test_a_learner_that_fails_says_its_play_and_its_line():
    class Fails(Episodes):
        def tell(self, arm, reward):
            if self.plays == 9:
                raise RuntimeError("no more")
            super().tell(arm, reward)

    with pytest.raises(jb.strangers.StrangerError, match=r"^Fails: play 10: RuntimeError: no more \("):
        jb.audit(jb.foreign(Fails), horizon=16, epsilon=1.0, runs=2000)


def claim_of(environment=None, plays_on="arms", adaptive=False, **given):
    learner = jb.foreign(lambda num_arms: None, plays_on=plays_on)
    given = {"horizon": 12, "epsilon": 1.0, "delta": 0.0, "unit": None, "model": None, "view": None} | given
    return strangers.read_claim(learner, environment, adaptive, **given)


USERS = partial(e.contextual_linear, num_arms=3, dim=6)
CLAIMS = {
    "reward": claim_of(),
    "loss_vector": claim_of(unit="loss_vector", environment=partial(e.bernoulli_arms, means=[0.1, 0.2, 0.3])),
    "user": claim_of(unit="user", environment=USERS, plays_on="decision set"),
    "adaptive": claim_of(adaptive=True),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_inputs_are_neighbours(name):
    """They differ in the private play and there alone, and only the unit's part of it."""
    claim, kinds = CLAIMS[name], set()
    for pattern in strangers.list_patterns(claim, seed=0):
        for rows in strangers.list_rows(claim):
            for play in (0, 5, 11):
                one, other = (strangers.make_stream(claim, pattern, row, play) for row in rows)
                assert one.play == other.play == play + 1
                parts = [(one.rewards, other.rewards), (one.contexts, other.contexts)]
                differ = [[t for t in range(12) if np.any(a[t] != b[t])] for a, b in parts if a is not None]
                assert all(plays in ([], [play]) for plays in differ) and [play] in differ
                kinds.add(tuple(map(bool, differ)))
                for stream in (one, other):
                    assert stream.rewards.min() >= 0 and stream.rewards.max() <= 1
                    if name in ("reward", "user"):  # whatever arm is played
                        assert np.ptp(stream.rewards[play]) == 0
    assert kinds == ({(True, False), (False, True), (True, True)} if name == "user" else {(True,)})


def pattern_of(claim, words):
    (found,) = [pattern for pattern in strangers.list_patterns(claim, seed=3) if pattern.words == words]
    return found


def test_what_all_other_plays_pay_by_hand():
    """Rewards from -1 to 3, in five plays of three arms."""
    claim = CLAIMS["loss_vector"]._replace(horizon=5, rewards=(-1.0, 3.0))
    words = [pattern.words for pattern in strangers.list_patterns(claim, seed=3)]
    # all alike; before the private play 1, 2, 3 or 4 of arm 0 or of arm 2, or 1 or 3 without it; periods; random ones
    assert len(words) == 3 + 4 * 2 + 2 * 2 + 4 * 2 + 4 and words[:3] == ["-1", "3", "1"] and words[-1].endswith("r 4)")
    assert words.count("-1, but 3 of arm 2") == 4 and words.count("3, but -1 of arm 0") == 2
    for word, value in (("-1", -1), ("3", 3), ("1", 1)):
        np.testing.assert_array_equal(pattern_of(claim, word).rewards, np.full((5, 3), value))
    pays = pattern_of(claim, "-1, but 3 of arm 2 in one of 4").rewards
    assert np.argwhere(pays == 3).tolist() == [[0, 2], [4, 2]] and (pays == -1).sum() == 13
    rng = np.random.default_rng(3)
    for number, drawn in enumerate((rng.random, lambda shape: rng.integers(0, 2, shape)) * 2, 1):
        expected = 4.0 * drawn((5, 3)) - 1
        np.testing.assert_allclose(pattern_of(claim, f"at random (number {number})").rewards, expected)
    reacting = CLAIMS["adaptive"]._replace(horizon=2, num_arms=3, rewards=(-1.0, 3.0))
    rules = {
        "zero": [[-1, -1, -1]] * 3, "echo": [[-1, -1, -1], [3, 3, 3], [3, 3, 3]],
        "chase": [[-1, 3, 3], [3, -1, 3], [3, 3, -1]],
    }  # fmt: skip
    assert [pattern.words for pattern in strangers.list_patterns(reacting, 0)] == [f"by the rule {r}" for r in rules]
    for rule, rows in rules.items():
        np.testing.assert_array_equal(pattern_of(reacting, f"by the rule {rule}").rewards, [rows] * 2)


def test_what_the_private_play_pays_by_hand():
    def rows(name):
        claim = CLAIMS[name]._replace(rewards=(-1.0, 3.0))
        return [tuple((row.words, np.array(row.row).tolist()) for row in pair) for pair in strangers.list_rows(claim)]

    ends = ("-1", -1), ("3", 3)
    assert rows("reward") == [ends] and rows("user")[0] == ends
    assert rows("loss_vector") == [ends, (("3 of arm 0 alone", [3, -1, -1]), ("3 of arm 2 alone", [-1, -1, 3]))]
    after = ("3 after arm 0", [[3, 3], [-1, -1]]), ("-1 after arm 0", [[-1, -1], [3, 3]])
    flat = [[(words, np.mean(row, -1).tolist() if np.ndim(row) else row) for words, row in x] for x in rows("adaptive")]
    wanted = [(words, np.mean(row, -1).tolist()) for words, row in after]
    assert flat == [list(ends), wanted, [ends[0], wanted[0]]]


def test_an_input_says_what_all_plays_pay():
    claim = CLAIMS["user"]
    private = strangers.PrivateRow("0.5", 0.5)
    pattern = strangers.Pattern("0, but 1 of arm 2", np.zeros((12, 3)), arm=2, before=2, one=1.0)
    # where two plays are before it these pay it, else those that follow do
    for play, words, paid in (
        (0, "1 to 3", [1, 2]),
        (1, "1 to 3", [0, 2]),
        (2, "1 to 3", [0, 1]),
        (11, "10 to 12", [9, 10]),
    ):
        stream, expected = strangers.make_stream(claim, pattern, private, play), np.zeros((12, 3))
        expected[paid, 2], expected[play] = 1, 0.5
        np.testing.assert_array_equal(stream.rewards, expected)
        assert str(stream) == f"play {play + 1} pays 0.5, all others 0, but 1 of arm 2 in plays {words}"
    assert not pattern.rewards.any()
    x = claim.contexts
    for features, shown in (
        ("with the opposite features", -x[4]), ("with another user's features", x[3]),
        ("with another arm's features", x[4][[2, 0, 1]]),
    ):  # fmt: skip
        edited = private._replace(features=features)
        stream = strangers.make_stream(claim, pattern_of(claim, "0"), edited, 4)
        assert (stream.edit, stream.others) == (f"0.5 {features}", "0")
        np.testing.assert_array_equal(stream.contexts, np.concatenate([x[:4], [shown], x[5:]]))
    np.testing.assert_array_equal(strangers.make_stream(claim, pattern, private, 4).contexts, x)


@pytest.mark.parametrize("order", [("1", "0"), ("0", "1")])
def test_an_audit_hands_on_what_it_is_given_and_names_the_likelier_input_first(order, monkeypatch):
    """A number that is 1 with probability 0.9 where 1 is paid, and 0.05 where 0 is. At delta = 0.1 that it is 1 tells
    log(0.8 / 0.05) = 2.8, that it is 0 log(0.85 / 0.1) = 2.1."""
    given = []

    @contextlib.contextmanager
    def search(claim, runs, seed):
        rng = np.random.default_rng(seed)
        given.append((claim.adaptive, claim.delta, runs, seed))

        def draw(stream, number):
            return (rng.random((number, 1)) < (0.9 if stream.edit == "1" else 0.05)).astype(np.float32)

        yield Source(draw, fit_all, 0.0), [tuple(strangers.Stream(1, x, "0", None, None) for x in order)], "nothing"

    monkeypatch.setattr(strangers, "search", search)
    about = {"horizon": 9, "epsilon": 1.0, "delta": 0.1, "adaptive": True}
    found = jb.audit(jb.foreign(lambda num_arms: None), **about, runs=8000, confidence=0.9, seed=7)
    event, (bound,) = found.event, found.bounds
    assert [stream.edit for stream in event.pair] == ["1", "0"]
    assert "likelier where play 1 pays 1 than 0, all others 0" in str(found)
    assert given == [(True, 0.1, 8000, 7)] and (found.adaptive, found.seed, bound.delta) == (True, 7, 0.1)
    counts = event.true_positives, event.false_positives, 2000
    assert found.epsilon_lower == confidence_bounds.epsilon_lower(*counts, 0.1, 0.9)


def test_values_that_were_not_met_say_nothing():
    table = TableScore(np.array([0]), (np.array([0.5, 1.5]),), np.array([0, 2]), np.array([-1.0, 1.0]))
    assert table(np.array([[0.0], [1.0], [2.0], [3.0]])).tolist() == [-1, 0, 1, 1]


def test_a_claim_holds_what_is_given_and_what_the_world_says():
    learner = partial(jb.foreign(lambda num_arms, epsilon, delta: None), num_arms=5)
    about = {"horizon": 9, "epsilon": 0.5, "delta": 0.25, "unit": None, "model": "local", "view": None}
    claim = strangers.read_claim(learner, None, False, **about)
    assert claim[2:11] == (9, 0.5, 0.25, "reward", "local", False, (0, 1), 5, None) and claim.name == "<lambda>"
    assert claim.stranger.arguments == {"num_arms": 5, "epsilon": 0.5, "delta": 0.25}
    built = jb.foreign(lambda num_arms, scale=1.0: None)(num_arms=3, scale=0.5)
    claim = strangers.read_claim(strangers.stranger_factory(built), None, False, **about)
    assert claim.stranger.arguments == {"num_arms": 3, "scale": 0.5} and claim.num_arms == 3
    # two arms, and when one was played: three numbers a play
    assert claim_of(horizon=2**18 // 3).horizon == 87_381
    with pytest.raises(
        ValueError, match=r"horizon = 87382 .*a transcript of 2 arms holds no more: audit a shorter run"
    ):
        claim_of(horizon=87_382)
    table = partial(e.loss_table, losses=np.zeros((7, 2)))
    assert claim_of(table, horizon=7).horizon == 7
    with pytest.raises(ValueError, match=r"horizon = 8 .*the environment has no more plays"):
        claim_of(table, horizon=8)


def test_contexts_are_public_and_rewards_fill_the_range():
    claim = CLAIMS["user"]
    assert claim.contexts.shape == (12, 3, 6) and len(np.unique(claim.contexts, axis=0)) == 12
    np.testing.assert_array_equal(claim.contexts, claim_of(USERS, "decision set", unit="user").contexts)
    rows = partial(e.contextual_table, features=[[1.0], [5.0], [3.0]], rewards=[[0.25, -0.5]] * 3, shuffle=False)
    claim = claim_of(rows, "row", horizon=4)
    shown = rows().facts["rows"].apply([[1.0], [5.0], [3.0], [1.0]])  # from the first row on
    np.testing.assert_allclose(claim.contexts, shown, rtol=1e-6)
    assert claim.rewards == (-0.5, 0.25)
    assert claim_of(partial(e.bernoulli_losses, means=[0.1, 0.2])).rewards == (0, 1)
    assert claim_of(partial(e.gaussian_arms, means=[0.0, 0.0])).rewards == (-32, 32)  # without bounds


def test_rewards_follow_the_arm_of_the_play_before():
    class Alternates:
        arm, told = 1, ()

        def ask(self):
            return self.arm

        def tell(self, arm, reward):
            self.told, self.arm = (*self.told, reward), 1 - arm

    stranger = strangers_process.Stranger(Alternates, {}, False, None, None, None, None, False, False)
    player = strangers_process.Player(stranger, 0)
    rewards = np.arange(16.0).reshape(4, 2, 2)
    player.play(strangers_process.Rows(None, rewards[:2]))
    player.play(strangers_process.Rows(None, rewards[2:]))
    # arms 1 0 1 0, before them 0 1 0 1
    assert player.learner.told == (1, 6, 9, 14)


def test_what_the_attacker_sees():
    arms, shown = np.array([[0, 1, 1], [1, 1, 1]]), np.array([[0.5, np.inf], [0.25, 1.0]])
    stream = strangers.Stream(2, "", "", None, None)
    crew = strangers.Crew(claim_of(horizon=3), [], None)
    expected = [[0.5, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 2], [0.25, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 3]]
    np.testing.assert_array_equal(crew._tabulate(stream, arms, shown), expected)
    crew.columns = np.arange(14)
    for column, score, threshold, words in (
        (1, 1.0, 0.5, "a large number 1 of the view"), (1, -1.0, -0.5, "a small number 1 of the view"),
        (2, 1.0, 0.5, "finite number 0 of the view"), (7, 1.0, 0.5, "arm 1 in play 2"),
        (7, -1.0, -0.5, "another arm than 1 in play 2"), (10, -2.0, -1.0, "no change after play 1"),
        (13, 1.0, 1.5, "at least 2 plays of arm 1"), (13, -1.0, -1.5, "at most 1 plays of arm 1"),
        (3, -1.0, -0.5, "no finite number 1 of the view"), (11, 1.0, 0.5, "a change after play 2"),
        (12, 1.0, 2.5, "at least 3 plays of arm 0"), (12, -1.0, -0.5, "at most 0 plays of arm 0"),
    ):  # fmt: skip
        reads = AuditScore("linear", np.array([column]), np.array([abs(score)]), np.zeros(1), np.zeros(1))
        assert crew.describe_test(ThresholdTest(reads, int(np.sign(score)), threshold, 1.0)) == words
    for column, words in ((12, "1 to 2 plays of arm 0"), (0, "some number 0 of the view")):
        middle = TableScore(np.array([column]), (np.array([0.5, 2.5]),), np.arange(3), np.array([-1.0, 1.0, -1.0]))
        assert crew.describe_test(ThresholdTest(middle, 1, 0.5, 1.0)) == words
    for number, more in ((4, ""), (6, " and 2 more")):
        columns, none = np.array([1, 2, 7, 10, 12, 13])[:number], np.zeros(number)
        several = ThresholdTest(AuditScore("linear", columns, none, none, none), 1, 0.5, 1.0)
        words = "number 1 of the view, finite number 0 of the view, arm 1 in play 2, a change after play 1"
        assert crew.describe_test(several) == words + more
    with pytest.raises(ValueError, match=r"view shows 150,000 numbers of a run, at most 131072: let it return fewer"):
        strangers.Crew(claim_of(horizon=3), [], None)._tabulate(stream, arms, np.zeros((2, 150_000)))
    # her own arm, of play 2, is the private user's
    users = strangers.Crew(claim_of(horizon=3, unit="user"), [], None)
    expected = [[1, 0, 0, 0, 0, 1, 0, 0, 1, 1], [0, 1, 0, 0, 0, 1, 0, 0, 0, 2]]
    np.testing.assert_array_equal(users._tabulate(stream, arms, None), expected)


def test_what_few_numbers_show_and_what_the_attacker_sees_at_the_ends(monkeypatch):
    arms, claim = np.array([[0, 1, 0]]), claim_of(horizon=3, unit="user")
    for play, played, changes, counts in (
        (1, [0, 0, 0, 1, 1, 0], [0, 1], [1, 1]), (3, [1, 0, 0, 1, 0, 0], [1, 0], [1, 1]),
    ):  # fmt: skip
        stream, crew = strangers.Stream(play, "", "", None, None), strangers.Crew(claim, [], None)
        assert crew.most == 2**24 // (3 * 3)
        assert crew._tabulate(stream, arms, None).tolist() == [played + changes + counts]
        shown = [[0.5, np.nan], [0.25], [0.125, 4.0, 8.0]]  # as many as in the first runs
        for some, expected in zip(shown, ([0.5, 0, 1, 0], [0.25, 0, 1, 1], [0.125, 4, 1, 1]), strict=True):
            assert crew._tabulate(stream, arms, np.array([some]))[0, :4].tolist() == expected
        assert (crew.view, crew.most) == (2, 2**24 // (3 * 2 + 2 * 2))
        with pytest.raises(ValueError, match="view gave no finite number in these runs: let it return numbers"):
            crew._tabulate(stream, arms, np.array([[np.nan, np.inf]]))
    monkeypatch.setattr(strangers, "MAX_NUMBERS_AT_ONCE", 1)
    crew = strangers.Crew(claim, [], None)
    assert crew.most == 2 and crew._tabulate(stream, arms, np.zeros((1, 1))).shape == (1, 12) and crew.most == 2
    monkeypatch.setattr(strangers, "MAX_NUMBERS", 4)
    assert strangers.Crew(claim, [], None)._tabulate(stream, arms, np.zeros((1, 2))).shape == (1, 14)
    with pytest.raises(ValueError, match="view shows 3 numbers of a run, at most 2: "):
        strangers.Crew(claim, [], None)._tabulate(stream, arms, np.zeros((1, 3)))


class Process:
    """One that plays as its seeds say: the bits of a seed, in so many plays."""

    def __init__(self):
        self.asked = []

    def number(self, stranger):
        return 7

    def send(self, *request):
        self.asked.append(request)

    def take_answer(self):
        seeds = np.array(self.asked[-1][2])
        return seeds[:, None] >> np.arange(3) & 1, None


def test_runs_come_in_the_order_of_their_seeds_whatever_process_plays_them():
    one, two, claim = Process(), Process(), claim_of(horizon=3)
    crew, seeds = strangers.Crew(claim, [one, two], Seeds(0)), Seeds(0).take(150)
    stream = strangers.make_stream(claim, pattern_of(claim, "0"), strangers.PrivateRow("1", 1.0), 1)
    found = crew.draw_fresh(stream, 150)
    np.testing.assert_array_equal(found[:, [1, 3, 5]], seeds[:, None] >> np.arange(3) & 1)
    assert [request[2] for request in one.asked] == [seeds[:64].tolist(), seeds[128:].tolist()]
    assert [request[2] for request in two.asked] == [seeds[64:128].tolist()]
    kind, number, _, (contexts, rewards) = two.asked[0]
    assert (kind, number, contexts) == ("many", 7, None) and rewards.tolist() == [[0, 0], [1, 1], [0, 0]]
    crew.most = 50
    assert len(crew.draw_fresh(stream, 100)) == 100 and [len(request[2]) for request in one.asked[2:]] == [50]
    users = CLAIMS["user"]  # the private one's other features are shown
    private = strangers.PrivateRow("1", 1.0, "with the opposite features")
    edited = strangers.make_stream(users, pattern_of(users, "0"), private, 1)
    list(strangers.Crew(users, [one], Seeds(0)).play_streams([(edited, seeds[:2])]))
    np.testing.assert_array_equal(one.asked[-1][3][0][1], -users.contexts[1])


def test_how_far_runs_are_apart_by_hand():
    def far(one, other, prior=1.0):
        return strangers.tell_apart(*(np.array(x, np.float32).reshape(-1, 1) for x in (one, other)), prior, False)

    # events are the values that quantiles fall on, of 0 to 7 those above 0, 1, 4, 6: at most once against never
    told = far([0, 2, 4, 5], [1, 3, 6, 7])
    assert told.ratio == pytest.approx(math.log(2)) and len(told.columns) == 0
    # means 1.5 apart, variances 3.6875 and 5.6875
    assert told.distance == pytest.approx(1.5 / math.sqrt(4.6875))
    # above 0: 3 of 4 and 1 of 4; at most 0: 1 and 3
    assert far([0, 1, 1, 1], [1, 0, 0, 0], 1.0).ratio == pytest.approx(math.log(4 / 2))
    assert far([0, 1, 1, 1], [1, 0, 0, 0], 0.5).ratio == pytest.approx(math.log(3.5 / 1.5))
    assert far([1, 1, 1, 0], [1, 1, 1, 1]).ratio == pytest.approx(math.log(2))  # what is rare decides
    assert far([0, 0, 0, 1], [0, 0, 0, 0]).ratio == pytest.approx(math.log(2))
    assert far([2, 3], [2, 3])[:2] == (0, 0)
    # without spread: ten at most; by all numbers in squares
    assert far([1, 1], [2, 2]).distance == 10
    one, other = np.zeros((4, 5), np.float32), np.zeros((4, 5), np.float32)
    one[:, 1], other[:, 1] = [0, 0, 2, 2], [2, 0, 2, 0]  # they differ, and not in their means
    one[:, 2], other[:, 2] = [0, 2, 0, 2], [3, 5, 3, 5]
    one[:, 3], other[:, 3] = [0, 2, 0, 2], [4, 6, 4, 6]
    one[:, 4] = other[:, 4] = [0, 1, 0, 1]
    told = strangers.tell_apart(one, other, 1.0, True)
    assert told.columns.tolist() == [-1, 0, 3, 4, 0] and told.distance == pytest.approx(5)
    assert told.ratio == pytest.approx(math.log(3))  # of the third number at most 0: two and none


def test_which_inputs_stay_by_hand():
    def best(left, ratios, distances, *about, **more):
        told = [strangers.Apart(x, y, np.zeros(0)) for x, y in zip(ratios, distances, strict=True)]
        return strangers._best(left, told, *about, **more)

    # in turn: by ratio, by distance, the best of each line, and the plays 1, 2, 0, which are good, with every line
    left = [(0, 0), (1, 1), (2, 2), (3, 3)]
    stay = [(1, 1), (0, 0), (0, 1), (2, 2), (0, 2), (3, 3), (1, 2)]
    assert best(left, [1, 3, 2, 0], [5, 0.5, 1, 0], 7, 4) == stay
    assert best(left, [1, 3, 2, 0], [5, 0.5, 1, 0], 2, 4) == stay[:2]
    everything = best(left, [1, 3, 2, 0], [5, 0.5, 1, 0], 99, 4)
    assert sorted(everything) == [*sorted((line, play) for line in range(4) for play in (0, 1, 2)), (3, 3)]
    # a play where others are told apart is worth a quarter of their mean
    assert best([(0, 0), (1, 1), (2, 1)], [1, 0.9, 3], [0, 0, 0], 2, 3)[0] == (2, 1)
    assert best([(0, 0), (1, 1), (2, 1)], [1.6, 0.9, 3], [0, 2, 3], 9)[:3] == [(2, 1), (0, 0), (1, 1)]
    assert best([(0, 0), (1, 1), (2, 1)], [1.3, 0.9, 3], [3, 2, 1], 9) == [(2, 1), (0, 0), (1, 1)]
    # at most two of a line, or one; one of those that are alike
    left = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert best(left, [5, 4, 3, 2, 2], [1, 2, 3, 4, 4], 9) == [(0, 0), (1, 0), (0, 1)]
    assert best(left, [5, 4, 3, 2, 2], [1, 2, 3, 4, 4], 9, each=1) == [(0, 0), (1, 0)]
    assert best(left, [5, 4, 3, 2, 2], [1, 2, 3, 4, 5], 9) == [(0, 0), (1, 1), (0, 1), (1, 0)]


def test_whether_seeds_repeat_and_where_a_search_begins(monkeypatch):
    crew, runs = strangers.Crew(claim_of(), [None] * 3, Seeds(0)), np.arange(6.0).reshape(2, 3)
    for others, alike in (([0, 0], True), ([0, 1], False), ([1, 1], False)):
        crew.play_streams = lambda jobs, others=others: [runs, *(runs + x for x in others)]
        assert strangers._meet(crew, None, 1000) is alike
    seen = []

    def choose_pairs(crew, runs, seed):
        seen.append((crew.claim, crew.started, crew.seeds.next, runs, seed))
        return ["a pair"], "words"

    monkeypatch.setattr(strangers, "choose_pairs", choose_pairs)
    monkeypatch.setattr(strangers, "processes", lambda number: contextlib.nullcontext(["one"] * number))
    monkeypatch.setattr(strangers, "cores", lambda: 2)
    with strangers.search(CLAIMS["reward"], 2000, 5) as (source, *found):
        assert (found, source.fit, source.confidence) == ([["a pair"], "words"], fit_all, 0)
    assert seen == [(CLAIMS["reward"], ["one", "one"], Seeds(5).next, 2000, 5)]


class Finds(strangers.Crew):
    """Numbers that no process plays: constant; as the seed says, or anew, a little more where the private play pays 1,
    by another number for every input; 1 where that is play 6 and others pay 0.5.
    """

    def __init__(self, claim, repeats):
        super().__init__(claim, [None], Seeds(0))
        self.rng, self.repeats, self.requests, self.more = np.random.default_rng(0), repeats, [], {}
        self.tried = []

    def play_streams(self, jobs):
        self.requests.append((len(jobs), len(jobs[0][1])))
        self.tried.append([stream for stream, _ in jobs])
        assert all(np.array_equal(seeds, jobs[0][1]) for _, seeds in jobs)
        for stream, seeds in jobs:
            found = (stream.play, stream.edit, stream.others) == (6, "1", "0.5")
            drawn = seeds % 5 if self.repeats else self.rng.integers(0, 5, len(seeds))
            more = self.more.setdefault((stream.play, stream.others), (1 + len(self.more)) / 500)
            numbers = np.full(len(seeds), 7), drawn + more * (stream.edit == "1"), np.full(len(seeds), found)
            yield np.stack(numbers, 1).astype(np.float32)


def test_how_many_runs_choose_the_inputs(monkeypatch, capsys):
    """Half of the runs, 40, 30 and 30% of them in three stages, on two inputs a pair."""
    asked, compare = [], strangers.tell_apart

    def tell_apart(one, other, prior, keep):
        asked.append((prior, keep))
        return compare(one, other, prior, keep)

    monkeypatch.setattr(strangers, "tell_apart", tell_apart)
    met = [(2, 1), (2, 8)]
    for repeats, runs, stages, priors in (
        # of 1200: 480 on pairs of two runs each, 360 of 16, 360 of 32, on six pairs at least
        (True, 2400, [(240, 2), (22, 16), (12, 32)], [1, 1, 1]),
        (False, 2400, [(30, 16), (22, 16), (12, 32)], [4, 4, math.sqrt(32)]),
        # of 40,000: 33 patterns with 12 plays, 16,000 // 2 // 396; 12,000 // 2 on 64 pairs; and on 16
        (True, 600_000, [(792, 20), (128, 93), (32, 375)], [1, 1, 1]),
    ):  # fmt: skip
        asked.clear()
        crew = Finds(CLAIMS["reward"], repeats)
        first = crew.seeds.next
        pairs, words = strangers.choose_pairs(crew, runs, seed=3)
        assert crew.requests == met + stages
        order = np.random.default_rng(3).permutation(12)  # all patterns together soon try every play
        plays, few = [(j + line) % 12 for j in range(12) for line in range(33)], crew.tried[2][::2]
        assert [stream.play for stream in few] == (order[plays[: len(few)]] + 1).tolist()
        drawn = next((stream for stream in few if stream.others == "at random (number 1)"), None)
        others = np.arange(12) != drawn.play - 1 if drawn else []
        expected = pattern_of(CLAIMS["reward"], "at random (number 1)").rewards
        assert (drawn is None) == (len(few) < 30) and (not drawn or (drawn.rewards == expected)[others].all())
        assert crew.seeds.next - first == 8 + sum(seeds for _, seeds in stages)
        expected = [(prior, k == 2) for k, (number, _) in enumerate(stages) for prior in [priors[k]] * (number // 2)]
        assert asked == expected
        assert words.startswith("saw arms alone, tried 12 of 12 plays as the private one, 33 patterns of what others p")
        assert words.endswith("their means") != repeats and " edits" not in words and len(pairs) <= 6
        assert all(one.play == other.play and one.others == other.others for one, other in pairs)
        assert all((one.edit, other.edit) == ("0", "1") for one, other in pairs)
        if runs > 2400:
            assert str(pairs[0][1]) == "play 6 pays 1, all others 0.5" and crew.columns.tolist() == [1, 2]
    said = capsys.readouterr().err
    assert "<lambda>: 3,600 runs of 12 plays, about " in said and "<lambda>: 640,000 runs of" in said
    monkeypatch.setattr(strangers, "MAX_COLUMNS", 1)
    half = pattern_of(CLAIMS["reward"], "0.5")
    monkeypatch.setattr(strangers, "list_patterns", lambda claim, seed: [half])
    crew = Finds(CLAIMS["reward"], True)
    pairs, _ = strangers.choose_pairs(crew, 2000, seed=0)
    assert crew.columns.tolist() == [2] and len(pairs) == 1  # the best one of each line
    monkeypatch.undo()
    crew = Finds(CLAIMS["adaptive"]._replace(model="local"), True)
    crew.play_streams = lambda jobs: (np.full((len(seeds), 3), 7, np.float32) for _, seeds in jobs)
    _, words = strangers.choose_pairs(crew, 2000, seed=0)
    assert crew.columns.tolist() == [0] and words.endswith("3 patterns of what others pay, 3 edits")
    assert words.startswith("saw arms alone, and none of its messages, tried 12 of 12 plays")
    crew.claim = crew.claim._replace(stranger=crew.claim.stranger._replace(view=len))
    assert strangers.choose_pairs(crew, 2000, seed=0)[1].startswith("saw arms and the view, tried 12")


def test_a_table_finds_what_no_single_number_shows():
    """Two coins each, alike on one input and different on the other; the third number is noise."""
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (2, 4000)).astype(np.float32)
    noise = rng.normal(size=4000).astype(np.float32)
    one, other = np.stack([coins[0], coins[0], noise], 1), np.stack([coins[0], 1 - coins[0], noise], 1)
    score = fit_tables(one, other)[-1]
    assert score(one[:500]).max() < 0 < score(other[:500]).min()
    assert score(np.array([[0.0, 1.0, 99.0]]))[0] > 0


LEARNER = """
import private_strangers as theirs

class Half(theirs.HalfNoise):
    def __init__(self, num_arms, horizon, seed, scale=1.0):
        super().__init__(num_arms, horizon, scale, seed)

def view(learner, arm, reward):
    return learner.index[arm]
"""


def test_the_command_audits_a_class(tmp_path, monkeypatch, capsys):
    (tmp_path / "their_module.py").write_text(LEARNER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "their_module", raising=False)
    words = ["--epsilon", "1", "--horizon", "12", "--set", "scale=2", "--view", "their_module:view"]
    assert main(["audit", "their_module:Half", *words, "--runs", "2000", "--out", "out"]) == 1
    assert "REFUTES the claim (1, 0), central, one reward" in capsys.readouterr().out
    assert "their_module:Half,central,reward,1.0,1.0" in (tmp_path / "out" / "audit.csv").read_text()

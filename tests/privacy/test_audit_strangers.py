"""Audits of other people's learners: planted faults are refuted, inputs are neighbours, and what is wrong is said."""

import math
import sys
from functools import partial

import numpy as np
import pytest
from dealt import dealt
from private_strangers import FAULTS, HONEST, Episodes, Unseeded, audit

import jaxbandits as jb
from jaxbandits import strangers_process
from jaxbandits.auditing import strangers
from jaxbandits.auditing.scores import AuditScore, ThresholdTest, fit_tables
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


def test_contexts_are_public_and_rewards_fill_the_range():
    claim = CLAIMS["user"]
    assert claim.contexts.shape == (12, 3, 6) and len(np.unique(claim.contexts, axis=0)) == 12
    np.testing.assert_array_equal(claim.contexts, claim_of(USERS, "decision set", unit="user").contexts)
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
    ):  # fmt: skip
        reads = AuditScore("linear", np.array([column]), np.array([abs(score)]), np.zeros(1), np.zeros(1))
        assert crew.describe_test(ThresholdTest(reads, int(np.sign(score)), threshold, 1.0)) == words
    with pytest.raises(ValueError, match=r"view shows 150,000 numbers of a run, at most 131072: let it return fewer"):
        strangers.Crew(claim_of(horizon=3), [], None)._tabulate(stream, arms, np.zeros((2, 150_000)))
    # her own arm, of play 2, is the private user's
    users = strangers.Crew(claim_of(horizon=3, unit="user"), [], None)
    expected = [[1, 0, 0, 0, 0, 1, 0, 0, 1, 1], [0, 1, 0, 0, 0, 1, 0, 0, 0, 2]]
    np.testing.assert_array_equal(users._tabulate(stream, arms, None), expected)


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

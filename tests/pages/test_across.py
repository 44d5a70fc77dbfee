"""Studies across the papers: watched algorithms play as without, what is measured, shown linear arms."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from dealt import others

import jaxbandits as jb
from jaxbandits.papers import watched as w
from jaxbandits.papers.across import coverage, named_epsilon
from jaxbandits.papers.across.named_epsilon import shown_linear
from jaxbandits.papers.byzantine.instance import FEDERATED
from jaxbandits.papers.private_robust_mab.experiments import MEANS, PARETO
from jaxbandits.papers.robust_linear.instance import ACTIONS, PRIVATE, THETA

a = jb.algorithms
SHAPE = {"num_arms": coverage.NUM_ARMS, "dim": coverage.DIM}
AGENTS = {"num_agents": 10, "num_arms": 10, "dim": 4}


def cases():
    """Name -> (algorithm, its truth, what measures it, its environment)."""
    quickly = {"num_batches": 3, "epsilon": 1.0, "variance_bound": "observed"}  # without a filter to compile
    batch = a.robust_elimination(actions=ACTIONS, horizon=400, **quickly)
    return {
        "online": (
            a.online_ucb(**SHAPE, horizon=60, epsilon=1.0, learner="ogd"), np.array(coverage.KNOWN),
            {"updated": w.online_ucb_error}, coverage.known_contextual(),
        ),
        "agents": (
            a.byzantine_ucb(**AGENTS, horizon=60, window=10, aggregate="mean"), coverage.AGENT_THETA,
            {"updated": w.byzantine_error}, FEDERATED(),
        ),
        "blocks": (
            a.prm_elimination(num_arms=5, horizon=2000, epsilon=0.5, failure_prob=0.05, radius="explicit"),
            np.array(MEANS), {"updated": w.block_error}, PARETO(),
        ),
        "elimination": (batch, THETA, {"closed": w.batch_error(batch.version[2])}, PRIVATE()),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["online", "agents", "blocks", *others(["elimination"])])
def test_a_watched_algorithm_plays_as_without_and_a_wrong_truth_lies_outside(name):
    plain, truth, measures, environment = cases()[name]
    alone = jb.simulate(plain, environment, seed=3, checkpoints=5)
    watched = jb.simulate(w.watch(plain, truth, **measures), environment, seed=3, checkpoints=5)
    np.testing.assert_array_equal(alone.regret, watched.regret)
    right = float(watched.diagnostics["largest_error"])
    assert 0 < float(watched.diagnostics["first_error"]) <= right
    wrong = jb.simulate(w.watch(plain, truth + 1000, **measures), environment, seed=3, checkpoints=5)
    assert float(wrong.diagnostics["first_error"]) > max(1, right)


def test_the_first_set_of_online_ucb_by_hand():
    """The first prediction is 0, so that theta is 0 and V = I + x x' for the noisy feature x."""
    plain, truth, measures, environment = cases()["online"]
    run = jb.simulate(w.watch(plain, truth, **measures), environment, seed=5, checkpoints=1, history=True)
    x = np.asarray(run.history.message.feature, np.float64).reshape(-1, coverage.DIM)[0]
    expected = np.sqrt(truth @ truth + (x @ truth) ** 2) / plain.params.width
    assert float(run.diagnostics["first_error"]) == pytest.approx(expected, rel=1e-4)


def test_the_first_set_of_byzantine_ucb_by_hand():
    """The mean as the rule: theta_2 = Lambda^-1 b from the first messages, with lambda_2 and beta_2 as printed."""
    truth, scales = coverage.AGENT_THETA, {"ridge_scale": 1.0, "radius_scale": 1.0, "window": 10}
    plain = a.byzantine_ucb(**AGENTS, horizon=20, aggregate="mean", **scales)
    made = w.watch(plain, truth, updated=w.byzantine_error)
    run = jb.simulate(made, FEDERATED(), seed=6, checkpoints=1, history=True)
    message = run.history.message
    gram = np.asarray(message.gram, np.float64).reshape(-1, 10, 4, 4)[0].mean(0)
    vector = np.asarray(message.vector, np.float64).reshape(-1, 10, 4)[0].mean(0)
    iota = np.log(128 * 10 * 20 / 0.05)
    level = max(10, 8 * 2 * np.sqrt(10 * iota) * np.sqrt(2))  # L and 8 C sigma sqrt(L iota) sqrt(k), C = 2, sigma = 1
    width = 3 * np.sqrt(4 * level) + 4 * 2 * 1.5 * np.sqrt(10 * 4 * iota) / np.sqrt(level) + np.sqrt(4 * iota / 10)
    matrix = gram + level * np.eye(4)
    error = np.linalg.solve(matrix, vector) - truth
    assert float(run.diagnostics["first_error"]) == pytest.approx(np.sqrt(error @ matrix @ error) / width, rel=1e-3)


def test_shown_linear_arms_pay_what_they_show():
    actions, theta = [[0.6, 0.8], [0.8, 0.6]], [0.6, 0.8]
    environment = partial(shown_linear, actions=actions, theta=theta)
    run = jb.simulate(partial(a.uniform, horizon=20_000), environment, seed=1, checkpoints=1, history=True)
    action, reward = np.asarray(run.history.action), np.asarray(run.history.reward)
    assert set(np.unique(reward)) == {0.0, 1.0}
    assert reward[action == 0].mean() == 1.0 and reward[action == 1].mean() == pytest.approx(0.96, abs=0.01)
    with pytest.raises(ValueError, match="give probabilities"):
        shown_linear(actions=actions, theta=[-0.6, 0.8])


def test_a_verdict_on_what_is_spent_needs_a_paper_that_was_read_and_keeps_to_its_range():
    row = {"group": "rewards", "mechanism": "AdaP-UCB", 0.1: 0.1, 1.0: 1.0, 10.0: 10.0, "exact": True, "audited": 0.9}
    assert named_epsilon._spending(row).holds is True
    assert named_epsilon._spending(row | {10.0: 10.2}).holds is False
    assert named_epsilon._spending(row | {10.0: np.inf}).measured.startswith("0.1 at 0.1, 1 at 1, ∞ at 10")
    bounded = row | {"mechanism": "local EXP4"}  # for epsilon up to 1
    assert named_epsilon._spending(bounded | {10.0: 10.2}).holds is True
    assert named_epsilon._spending(bounded | {1.0: 1.1}).holds is False
    assert named_epsilon._spending(row | {1.0: 3.0, "exact": False}).holds is None  # a bound, and 0.9 is proven
    assert named_epsilon._spending(row | {1.0: 3.0, "exact": False, "audited": 1.3}).holds is False
    for group, mechanism, paper in (
        ("linear", "DP-DPE, Gaussian", "-"),  # recalled
        ("users", "OnlineUCB, noise of the code's LDP", "-"),
        ("users", "OnlineUCB, reward only, classic", ""),  # ours
    ):
        claim = named_epsilon._spending(row | {"group": group, "mechanism": mechanism, 1.0: 3.0})
        assert claim.holds is None and claim.paper == paper


def test_errors_of_blocks_and_batches_by_hand(monkeypatch):
    monkeypatch.setattr(w, "jnp", np)
    block = w.Params(SimpleNamespace(radius=np.array([0.5, 0.25])), np.array([0.0, 0.5]))
    before, after = SimpleNamespace(batch=0), SimpleNamespace(batch=1)
    assert w.block_error(block, before, after, 1, np.array([[0.625]])) == 0.25  # 0.125 of the first radius
    batch = SimpleNamespace(active=np.array([True, False]), plays=3, plan=SimpleNamespace(radius=0.5))
    judged = SimpleNamespace(judge=lambda *given: (np.array([0.25, 9.0]), None))
    monkeypatch.setattr(w, "view_batch", lambda params, state: batch)
    monkeypatch.setattr(w, "filter_rules", lambda shape: judged)
    params = w.Params(SimpleNamespace(actions=np.eye(2)), np.zeros(2))
    assert w.batch_error.__wrapped__("shape")(params, None, None, None) == 0.5

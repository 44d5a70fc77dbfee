"""What studies compute beside their sweeps, against the package's parts and against tables made by hand."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

import jaxbandits as jb
from jaxbandits.papers.byzantine.attacks import attack_ratios, paper_bonus
from jaxbandits.papers.byzantine.instance import honest
from jaxbandits.papers.ldp_contextual import favourable
from jaxbandits.papers.private_adversarial import lemmas, two_arms
from jaxbandits.papers.private_robust_mab import moment_order
from jaxbandits.papers.robust_linear import dimension


def test_features_that_are_all_alike_have_the_eigenvalue_of_uniform_play():
    rng = np.random.default_rng(0)
    assert favourable.best_arm(rng, 4000, 0.0) == pytest.approx(favourable.LARGEST, abs=0.01)
    assert favourable.best_arm(rng, 4000, 1.0) == pytest.approx(4.3e-4, rel=0.15)
    assert favourable.best_arm(rng, 4000, None) == pytest.approx(3.9e-3, rel=0.15)


def test_shares_are_those_of_the_gap_that_costs_most():
    regret = np.zeros((2, 3, 4, 5, 1))  # algorithm, gap, epsilon, seed, t
    regret[0, 1], regret[0, 2], regret[1, 0] = 30.0, 10.0, 20.0
    dims = ("algorithm", "environment.gap", "epsilon", "seed", "t")
    coordinates = {"algorithm": list(two_arms.ALGORITHMS), "environment.gap": two_arms.GAPS, "seed": range(5)}
    ds = xr.Dataset({"regret": (dims, regret)}, coordinates | {"epsilon": [0.4, 0.3, 0.2, 0.1], "t": [100]})
    ds.attrs["constant_along"] = "{}"
    share = two_arms.shares({"100": ds})
    assert share.dims == ("algorithm", "power", "horizon", "seed") and share["power"].values.tolist() == two_arms.POWERS
    np.testing.assert_allclose(share[0], 30 / 50)
    np.testing.assert_allclose(share[1], 20 / 50)


def test_the_sums_over_histories_are_those_of_one_history_after_another():
    losses, rate, mixing = np.random.default_rng(0).uniform(-1, 1, (3, 4, 2)), 0.1, 0.2

    def spent(rows, estimate):
        if not len(rows):
            return 0.0
        p = (1 - mixing) * np.exp(-rate * estimate) / np.exp(-rate * estimate).sum() + mixing / 2
        after = [estimate + np.eye(2)[arm] * rows[0] / p for arm in range(2)]
        return sum(p[arm] * (rows[0, arm] + spent(rows[1:], after[arm])) for arm in range(2))

    wanted = [spent(rows, np.zeros(2)) - rows.sum(0).min() for rows in losses]
    np.testing.assert_allclose(lemmas.exp3_regret(losses, rate, mixing), wanted, rtol=1e-12)
    split = lemmas.exp3_regret(losses[:, :3], rate, mixing, losses[:, 3])
    np.testing.assert_allclose(split, wanted, rtol=1e-12)


def test_the_two_sides_of_a_lemma_by_hand():
    rate, rng = 0.3, np.random.default_rng(0)
    one_play = np.array([[[1.0, 0.0]]])
    assert lemmas.weights_ratio(one_play, rate) == pytest.approx(0.5 / (np.log(2) / rate + rate / 2))
    assert lemmas.exp3_bound(one_play, rate, 0.2)[0] == pytest.approx(0.4 + np.log(2) / rate + rate)
    assert lemmas.composition_ratio(rng, releases=1) == pytest.approx(1)  # one release costs its own epsilon
    assert lemmas.group_ratio(rng, records=1) == pytest.approx(1)
    norms = (rng.laplace(size=(2000, 1024)) ** 2).sum(1)
    assert 0.4 < lemmas.passing(1024, 1000) < (norms > lemmas.norm_limit(1024, 1000)).mean() < 0.95
    assert lemmas.passing(512, 1000) == 0


def test_the_printed_bonus_is_above_the_largest_gap_until_late():
    assert paper_bonus(1e6) > 2 > paper_bonus(1e9)


@pytest.mark.parametrize("dim", [5, 20])
def test_the_share_from_which_a_radius_drops_no_arm_is_that_of_the_algorithm(dim):
    horizon, gap = 100_000, 0.7
    share = dimension.useful_share(dim, gap)
    actions = dimension.world(dim).keywords["actions"]
    make = partial(jb.algorithms.bogunovic_elimination, actions=actions, horizon=horizon)
    own = make(corruption_budget=share * horizon * (dimension.VALUE + 1)).params.own
    clean = make(corruption_budget=0.0).params.own
    about_corruption = np.ravel(own.slack) - np.ravel(clean.slack)
    np.testing.assert_allclose(about_corruption, gap * (horizon / 2) / np.ravel(own.sizes), rtol=1e-4)


def test_probabilities_are_at_most_one_and_proportional():
    p = moment_order.probabilities(1000, 0.1, [0.1, 0.2, 100.0])
    assert p[1] == pytest.approx(2 * p[0]) and p[2] == 1.0
    assert p[0] == pytest.approx(0.1 * moment_order.NUM_ARMS * np.log(1000) / 100)


def finals(regret):
    """A Dataset of one algorithm: final regret by share of attacked agents."""
    values = np.tile(np.array(list(regret.values()), float)[None, :, None, None, None], (1, 1, 1, 3, 1))
    coords = {"algorithm": ["mean"], "corruption_bound": list(regret), "window": [25], "seed": range(3), "t": [100]}
    return xr.Dataset({"regret": (tuple(coords), values)}, coords)


def test_regret_is_divided_by_the_agents_that_do_not_attack():
    assert [honest(x) for x in (0.0, 0.2, 0.3)] == [10, 8, 7] and honest(0.2, 0.5) == 9
    # every agent that does not attack loses 5: agents that attack half the time lose half of it
    regrets = {"target": finals({0.0: 50, 0.2: 40, 0.4: 30}), "half the time": finals({0.0: 50, 0.4: 40})}
    frame = attack_ratios(regrets)
    assert frame["ratio"].tolist() == pytest.approx([1] * 5)

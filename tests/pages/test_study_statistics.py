"""What studies compute beside their sweeps, against the package's parts and against tables made by hand."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

import jaxbandits as jb
from jaxbandits.papers.byzantine import price
from jaxbandits.papers.ldp_contextual import favourable
from jaxbandits.papers.private_adversarial import below_root
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
    coordinates = {"algorithm": list(below_root.ALGORITHMS), "environment.gap": below_root.GAPS, "seed": range(5)}
    ds = xr.Dataset({"regret": (dims, regret)}, coordinates | {"epsilon": [0.4, 0.3, 0.2, 0.1], "t": [100]})
    ds.attrs["constant_along"] = "{}"
    share = below_root.shares({"100": ds})
    assert (
        share.dims == ("algorithm", "power", "horizon", "seed") and share["power"].values.tolist() == below_root.POWERS
    )
    np.testing.assert_allclose(share[0], 30 / 50)
    np.testing.assert_allclose(share[1], 20 / 50)


def test_the_printed_bonus_is_above_the_largest_gap_until_late():
    assert price.printed_bonus(1e6) > 2 > price.printed_bonus(1e9)


@pytest.mark.parametrize("dim", [5, 20])
def test_the_share_from_which_a_radius_drops_no_arm_is_that_of_the_algorithm(dim):
    horizon, gap = 100_000, 0.7
    share = dimension.useful_share(dim, gap)
    make = partial(
        jb.algorithms.bogunovic_elimination, actions=dimension.world(dim).keywords["actions"], horizon=horizon
    )
    own = make(corruption_budget=share * horizon * (dimension.VALUE + 1)).params.own
    clean = make(corruption_budget=0.0).params.own
    about_corruption = np.ravel(own.slack) - np.ravel(clean.slack)
    np.testing.assert_allclose(about_corruption, gap * (horizon / 2) / np.ravel(own.sizes), rtol=1e-4)


def test_probabilities_are_at_most_one_and_proportional():
    p = moment_order.probabilities(1000, 0.1, [0.1, 0.2, 100.0])
    assert p[1] == pytest.approx(2 * p[0]) and p[2] == 1.0
    assert p[0] == pytest.approx(0.1 * moment_order.NUM_ARMS * np.log(1000) / 100)

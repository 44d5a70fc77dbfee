"""The study of Byzantine-UCB's aggregates: the distance to the honest mean by hand, Lemma 10's ratio by hand."""

from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import binomtest

import jaxbandits as jb
from jaxbandits.papers.byzantine import aggregate
from jaxbandits.papers.byzantine.regret import BOUNDED

PLAIN = partial(jb.algorithms.byzantine_ucb, window=10, failure_prob=0.05, noise_scale=0.3)
SIZES = {"num_agents": 10, "num_arms": 10, "dim": 4}


def watched(horizon, **settings):
    return aggregate.WATCHED(**SIZES, horizon=horizon, **PLAIN.keywords, **settings)


def median(points):
    """The geometric median of points [N, p] by many Weiszfeld iterations."""
    z = points.mean(0)
    for _ in range(2000):
        weights = 1 / np.maximum(np.linalg.norm(points - z, axis=1), 1e-9)
        z = weights @ points / weights.sum()
    return z


def test_the_first_distance_by_hand():
    """With two of ten agents taken for attackers: the first message, and the constants of Lemma 3 as printed."""
    run = jb.simulate(watched(20, corruption_bound=0.2), BOUNDED(), seed=4, checkpoints=1, history=True)
    message = run.history.message
    gram = np.asarray(message.gram, np.float64).reshape(-1, 10, 4, 4)[0]
    vector = np.asarray(message.vector, np.float64).reshape(-1, 10, 4)[0]
    matrix_error = median(gram.reshape(10, 16)).reshape(4, 4) - gram[2:].mean(0)
    vector_error = median(vector) - vector[2:].mean(0)
    c, iota = 1.6 / 0.6, np.log(128 * 10 * 20 / 0.05)
    of_matrix = np.linalg.norm(matrix_error, 2) / (4 * c * np.sqrt(10 * iota))
    ratios = of_matrix, np.linalg.norm(vector_error) / (4 * c * 1.3 * np.sqrt(10 * 4 * iota))
    assert float(run.diagnostics["first_error"]) == pytest.approx(max(ratios), rel=0.02)


@pytest.mark.parametrize("medians", [False, True])
def test_the_printed_bounds_under_privacy(medians):
    """Half of the ridge's shift and the radius' excess: C (B L sqrt d) and C B L, or 4 in the place of C."""
    label = "Lemma 13, private median of means" if medians else "Lemma 11, private median"
    algorithm = (aggregate.MEANS | aggregate.MEDIANS)[label](**SIZES, horizon=2000, corruption_bound=0.2)
    constants, iota = algorithm.params.inner.constants, np.log(128 * 10 * 2000 / 0.05)
    noise = 48 * iota * np.log(4 / 1e-3) * (2 + iota) / 4 * 10
    times, lead = (4, 64 * np.sqrt(0.2)) if medians else (1.6 / 0.6, 4 * 1.6 / 0.6)
    assert constants.shift / 2 == pytest.approx(times * noise * 2)
    assert constants.excess == pytest.approx(times * noise)
    assert constants.growth / 2 == pytest.approx(lead * np.sqrt(10 * iota))
    assert constants.numerator == pytest.approx(lead * 1.3 * np.sqrt(10 * 4 * iota))


def test_it_plays_as_without_and_a_mean_over_attackers_is_too_far():
    attack = jb.adversaries.byzantine(kind="constant", scale=1e30, corruption=0.2)
    environment, more = BOUNDED(), {"seed": 3, "checkpoints": 4, "message_adversary": attack}
    told = jb.simulate(watched(60, corruption_bound=0.2), environment, **more)
    alone = jb.simulate(PLAIN(**SIZES, horizon=60, corruption_bound=0.2), environment, **more)
    np.testing.assert_array_equal(told.regret, alone.regret)
    assert 0 < float(told.diagnostics["largest_error"]) < 1
    untold = jb.simulate(watched(60), environment, **more)  # takes the attackers for honest
    assert float(untold.diagnostics["largest_error"]) > 1


def test_the_ratio_of_lemma_10_by_hand():
    points = np.array([[100.0], [0.0], [1.0], [2.0], [3.0]])  # median 2, honest points 1.5 from 0 on average, C = 8 / 3
    assert aggregate.lemma_ratio(points, 1, np.zeros(1)) == pytest.approx(2 / (1.5 * 8 / 3), rel=1e-4)
    assert aggregate.lemma_ratio(points, 1, np.full(1, 3.0)) == pytest.approx(1 / (1.5 * 8 / 3), rel=1e-4)
    assert aggregate.on_a_line(3, 10) == 1
    assert aggregate.on_a_line(1, 5) == Fraction(5, 6)  # one honest point there, epsilon = 1 / 5


def test_climbing_ends_at_a_placement_of_its_ratio():
    rng = np.random.default_rng(5)
    points, origin = aggregate.random_placement(rng, 2, 5, 2)
    before = aggregate.lemma_ratio(points, 2, origin)
    ratio, moved = aggregate.climb(rng, points, 2, origin, 30)
    assert before < ratio <= 1 and aggregate.lemma_ratio(moved, 2, origin) == ratio


def test_a_search_can_contradict_lemma_10_and_cannot_prove_it():
    found = aggregate.search(3, 1, 2)
    assert [claim.holds for claim in aggregate.search_claims(found)] == [None, None, True]
    grows = np.linspace(0.5, 1.1, len(found))  # the largest counts, wherever it stands
    for largest in (grows, grows[::-1]):
        violated = list(aggregate.search_claims(found.assign(climbed=largest, line=largest)))
        assert [claim.holds for claim in violated] == [None, False, False]
        assert all(claim.measured.startswith("1.1 of the bound: ") for claim in violated[1:])
    reached = [claim.holds for claim in aggregate.search_claims(found.assign(climbed=1.0, line=1.0))]
    assert reached == [None, None, True]  # a search that comes to the bound has proved nothing


def test_words_of_the_lemmas_by_hand():
    rule, seeds = next(iter(aggregate.MEDIANS)), 200
    errors = np.full((1, 2, seeds), 0.25)
    errors[0, 0, :3], errors[0, 1, :5] = 1.5, 0.75
    coords = {"algorithm": [rule], "corruption_bound": [0.2, 0.4], "seed": range(seeds)}
    ds = xr.Dataset({"largest_error": (tuple(coords), errors)}, coords)
    placed = pd.DataFrame({"random": [0.5], "climbed": [0.6], "line": [1.0], "placements": [3], "moves": [2]})
    few, none, *_ = aggregate.claims({"ALIE": ds, "placements": placed})
    assert few.measured == "exceeded in 3 of 200 runs, at most 1.5 of the bound" and few.paper.endswith("at most 0.025")
    assert none.measured == "exceeded in 0 of 200 runs, at most 0.75 of the bound"
    for claim, failures in ((few, 3), (none, 0)):
        ends = binomtest(failures, seeds).proportion_ci(0.95, method="exact")
        assert claim.evidence[1:] == pytest.approx((ends.low, ends.high, -np.inf, 0.025))
    assert few.holds is None and none.holds is True

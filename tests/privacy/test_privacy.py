"""Guarantees follow from their events, and compositions agree with dp-accounting's."""

import math
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import optimize, stats

import jaxbandits as jb
from jaxbandits import catalogue, privacy, provenance
from jaxbandits import mechanisms as m
from jaxbandits.catalogue import case
from jaxbandits.commands import listing
from jaxbandits.mechanisms import composition, loss_distribution
from jaxbandits.mechanisms.composition import SIMULATED
from jaxbandits.privacy import epsilon_or_nan, ledger

INF = math.inf
ROOT = Path(__file__).parents[2]


PRIVATE = catalogue.private()


def maker(name):
    """The factory behind a catalogue row, or the private one that a conversion wraps."""
    found = catalogue.ALGORITHMS[name].algorithm
    while isinstance(found, partial):
        found = found.func
    return found


def test_by_hand():
    one = m.laplace_event("x", 1.0, 2.0)
    assert m.compose([]) == (0.0, 0.0) == m.compose([one._replace(times=0)], 0.1)
    assert m.compose([one, one._replace(times=3)]) == (2.0, 0.0)
    for event in (m.laplace_event("x", 1.0, 0.0), m.gaussian_event("x", 1.0, 0.0)):
        assert m.compose([event], 0.1) == (INF, 0.0)
    assert m.compose([m.laplace_event("x", INF, 3.0)]) == (INF, 0.0)
    assert m.compose([m.laplace_event("x", 0.0, 0.0)]) == (0.0, 0.0)  # nothing depends on the unit
    three, four = m.gaussian_event("x", 3.0, 10.0), m.gaussian_event("y", 0.4, 1.0)
    assert m.compose([three, four], 1e-4)[0] == pytest.approx(m.gaussian_epsilon(0.5, 1.0, 1e-4))
    rest = m.other_event("binomial", "z", 0.7, 2e-5, times=2)
    assert m.compose([rest]) == (1.4, 4e-5)
    mixed = m.compose([three, four, rest, one], 1e-4)  # the Gaussian ones keep what the others leave of delta
    added = 1.4 + 0.5 + m.gaussian_epsilon(0.5, 1.0, 6e-5)
    assert mixed[1] == 1e-4 and 0.9 * added < mixed[0] < added  # their losses are seldom all large at once


def test_events_and_costs_by_hand():
    """Each number from the formula of its docstring; several events of unequal sizes and counts."""
    laplace = m.laplace_event("x", np.array([3.0, 1.0]), np.array([4.0, 0.5]), 2, running=True)
    assert laplace == m.Event("laplace", "x", 1.0, 0.5, 2, epsilon=2.0, largest=3.0, running=True)
    assert m.gaussian_event("y", 3.0, 4.0, 5, running=True)[:5] == ("gaussian", "y", 3.0, 4.0, 5)
    assert m.gaussian_event("y", 3.0, 4.0, running=True).running and not m.gaussian_event("y", 3.0, 4.0).running
    other = m.other_event("kind", "z", 0.5, 1e-3, sensitivity=2.0, scale=3.0, times=4)
    assert other == m.Event("kind", "z", 2.0, 3.0, 4, epsilon=0.5, delta=1e-3, largest=other.largest)
    # 2^bits / (1 + e^epsilon) uniforms flip a bit: 1.9, 1.2, 1.5, 0.8 and 0.7 milli of 16, 16, 32, 16 and 16
    for epsilon, bits, flipped in ((2.0, 4, 2), (2.5, 4, 1), (3.0, 5, 2), (3.0, 4, 1), (10.0, 4, 0)):
        spent = max(epsilon, math.log((2**bits - flipped) / flipped)) if flipped else INF
        event = m.response_event("bit", 1 / epsilon, 3, bits=bits)
        assert event == m.Event("randomized_response", "bit", 1.0, 1 / epsilon, 3, epsilon=pytest.approx(spent)), (
            epsilon
        )
        assert m.response_event("bit", 1 / epsilon).epsilon == pytest.approx(epsilon)
    assert [m.response_event("bit", scale, bits=4).epsilon for scale in (0.0, INF, 1e-3)] == [INF, 0.0, INF]
    normal = [m.gaussian_event("x", 3.0, 10.0, 2), m.gaussian_event("y", 0.4, 1.0)]
    free = m.laplace_event("w", 0.0, 1.0)
    assert m.gdp([*normal, free]) == pytest.approx(math.sqrt(2 * 0.09 + 0.16)) and m.gdp([free]) == 0
    assert m.gdp([other._replace(epsilon=0.0)]) == INF == m.gdp([laplace]) == m.zcdp([other])
    assert m.zcdp([*normal, laplace, free]) == pytest.approx((2 * 0.09 + 0.16 + 2 * 4) / 2)
    assert m.gdp([other._replace(times=0)]) == 0 == m.zcdp([other._replace(times=0)])
    silent = m.gaussian_event("y", 0.0, 1.0)
    assert m.compose([silent], 0.1) == (0.0, 0.1) and m.compose([silent, other._replace(times=1)], 0.1) == (0.5, 0.1)
    assert m.compose([*normal, other], 4e-3 + 1e-5)[0] <= 2 + m.gaussian_epsilon(math.sqrt(0.34), 1.0, 1e-5)
    with pytest.raises(ValueError, match=r"^delta = -0.003.* Gaussian noise has no pure guarantee$"):
        m.compose([*normal, other], 1e-3)
    with pytest.raises(ValueError, match="times = -1"):
        m.compose([laplace._replace(times=-1)])
    for epsilon, count, delta in ((0.01, 10_000, 1e-3), (0.3, 100, 0.02), (0.5, 4, 1e-3)):
        closed = 3 / 2 * count * epsilon**2 + epsilon * math.sqrt(6 * count * math.log(1 / delta))
        assert jb.theory.composed_epsilon(epsilon, count, delta) == pytest.approx(min(closed, count * epsilon))


def test_claims_of_a_guarantee_and_of_what_is_wrapped():
    class Params(NamedTuple):
        delta: float
        mechanism_scale: float = 3.0

    event = m.gaussian_event("sum", 1.0, 2.0)
    claim = m.guarantee(
        "central", "user", lambda params: (event,), composition.view_released, delta=composition.delta_of_params,
        scales=("noise", "mechanism_scale"), bound=2.0,
    )  # fmt: skip
    assert claim[:2] == ("central", "user") and (claim.scales, claim.bound) == (("noise", "mechanism_scale"), 2.0)
    assert claim.spend(Params(1e-3)) == (m.gaussian_epsilon(1.0, 2.0, 1e-3), 1e-3)
    assert claim.events(Params(1e-3)) == (event,) and claim.view("message", "released", "action") == "released"
    plain = m.guarantee("local", "reward", lambda params: (m.laplace_event("x", 1.0, 2.0),), composition.view_message)
    assert plain.spend(None) == (0.5, 0.0) and plain.view("message", "released", "action") == "message"
    assert (plain.scales, plain.bound) == (("mechanism_scale",), INF)
    assert (
        composition.scale_mechanism(Params(0.1), 2.0) == Params(0.1, 6.0) and composition.scale_mechanism((), 2.0) == ()
    )
    made = jb.algorithms.ldp_ucb(num_arms=2, horizon=10, epsilon=1.5)
    assert epsilon_or_nan(made._replace(guarantee=made.guarantee._replace(claimed=9.0))) == 1.5
    made = made._replace(config={}, guarantee=made.guarantee._replace(claimed=9.0))
    assert epsilon_or_nan(made) == 9.0 and math.isnan(epsilon_or_nan(made._replace(guarantee=plain)))


# ---------------------------------------------------------------- losses on a grid


def exact_deltas(release, epsilon):
    """The least delta of one release at epsilon [n], of any sign, in closed form."""
    r, e = release.size, np.exp(epsilon)
    if release.kind == "gaussian":
        return stats.norm.cdf(r / 2 - epsilon / r) - e * stats.norm.cdf(-r / 2 - epsilon / r)
    if release.kind == "laplace":
        inside = 1 - np.exp((np.clip(epsilon, -r, r) - r) / 2)
    else:
        inside = (np.exp(r) - e) / (1 + np.exp(r))
    return np.where(epsilon >= r, 0, np.where(epsilon <= -r, 1 - e, inside))


@pytest.mark.parametrize(("kind", "r", "step"), [
    ("laplace", 1.3, 0.07), ("laplace", 0.03, 0.07), ("pure", 1.3, 0.07), ("pure", 0.7, 0.07), ("gaussian", 1.3, 0.07),
    ("gaussian", 0.4, 0.01), ("gaussian", 4.0, 0.03),
])  # fmt: skip
def test_a_release_on_the_grid_costs_what_it_costs(kind, r, step, monkeypatch):
    """Exactly at the grid's points, and Gaussian ones as much as they cost up to a step before."""
    monkeypatch.setattr(loss_distribution, "GRID_POINTS", 4096)
    release, tail = loss_distribution.Release(kind, 0.0, r, 1), 1e-9
    index = np.fft.fftfreq(4096, 1 / 4096)
    order = np.argsort(index)
    losses, mass = step * index[order], loss_distribution._on_grid(release, step, tail)[order]
    where = np.abs(losses) <= 1.5 * r + 0.2
    epsilons = losses[where]
    deltas = np.array([mass @ np.maximum(1 - np.exp(e - losses), 0) for e in epsilons])
    exact = exact_deltas(release, epsilons)
    if kind == "gaussian":
        before = exact_deltas(release, epsilons - step)
        assert (deltas >= exact - 2 * tail).all() and (deltas <= before).all()
        assert 1 - 2 * tail <= mass.sum() <= 1
    else:
        np.testing.assert_allclose(deltas, exact, atol=1e-12)
        assert mass.sum() == pytest.approx(1)
    middle = (np.arange(-60_000, 60_000) + 0.5) * 1e-3  # E[loss] from deltas: of P(loss > epsilon) the integral
    density = -np.diff(exact_deltas(release, np.append(middle - 5e-4, middle[-1] + 5e-4))) / 1e-3
    above = exact_deltas(release, middle) + density  # P(loss > epsilon) = delta - d delta / d epsilon
    mean = np.sum(np.where(middle > 0, above, above - 1)) * 1e-3
    assert loss_distribution._mean(release) == pytest.approx(mean, abs=2e-3 * r)


def test_how_far_the_sum_of_losses_may_lie_above_its_mean():
    releases = loss_distribution.Release("pure", 0.0, 0.3, 7), loss_distribution.Release("gaussian", 0.0, 0.5, 1)
    wanted = math.sqrt(2 * (7 * 0.31**2 + 0.51**2) * math.log(1e6))
    assert loss_distribution._reach(releases, 0.01, 1e-6) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("epsilon", "own", "times", "delta"),
    [(0.1, 0.0, 200, 1e-5), (1.0, 0.0, 8, 1e-3), (0.05, 1e-4, 300, 0.05), (3.0, 1e-9, 40, 1e-6), (0.4, 0.0, 2, 0.3),
     (9.0, 0.0, 30, 1e-3)],
)  # fmt: skip
def test_pure_releases_cost_what_the_binomial_law_says(epsilon, own, times, delta):
    """Kairouz, Oh and Viswanath 2015, Theorem 3.3, by its sum: from above, and within 1e-3 where deltas are added."""
    k = np.arange(times + 1)
    loss, law = epsilon * (times - 2 * k), stats.binom(times, 1 / (1 + math.exp(epsilon))).pmf(k)
    never = 1 - (1 - own) ** times

    def least(left):
        """The epsilon at which the finite losses cost what is left of delta."""
        excess = lambda at: law @ np.maximum(1 - np.exp(at - loss), 0) - left
        return optimize.brentq(excess, 0.0, epsilon * times, xtol=1e-12) if excess(0) > 0 else 0.0

    found = loss_distribution.compose_losses((loss_distribution.Release("pure", own, epsilon, times),), delta)
    assert least((delta - never) / (1 - never)) <= found <= least(delta - never) * (1 + 1e-3) + 1e-6


def test_where_losses_are_not_counted():
    release = loss_distribution.Release("pure", 0.0, 0.1, 20)
    compose, uncertain = loss_distribution.compose_losses, release._replace(delta=1e-3)
    assert compose((release,), 0.9e-9) == INF > compose((release,), 1.1e-9)
    assert compose((uncertain,), 1 - (1 - 1e-3) ** 20) == INF > compose((uncertain,), 0.02)
    # the mean of 20 losses of size r is 20 r, and sqrt(2 20 log 1e7) r = 25.39 r their reach: 600 together at 13.218
    assert [compose((release._replace(size=size),), 1e-3) < INF for size in (13.21, 13.23)] == [True, False]
    # the step is 2.2 sqrt(2 9e7 log 1e9) / 2^17 = 1.025 times the size: a loss may be off by more than itself
    assert compose((loss_distribution.Release("laplace", 0.0, 0.003, 90_000_000),), 1e-5) == INF


def test_many_equal_releases_cost_less_than_their_sum():
    many = [m.laplace_event("x", 1.0, 100.0, times=10_000)]
    assert m.compose(many) == (pytest.approx(100.0), 0.0)
    epsilon, delta = m.compose(many, 1e-3)
    assert epsilon < 0.4 * jb.theory.composed_epsilon(0.01, 10_000, 1e-3) < 4 and delta == 1e-3
    assert m.compose(many, 1e-12) == (jb.theory.composed_epsilon(0.01, 10_000, 1e-12), 1e-12)  # too small to be counted
    assert m.compose([m.laplace_event("x", 1.0, 100.0, times=64)], 0.1) == (0.0, 0.1)  # delta covers it
    assert m.compose([m.laplace_event("x", 1.0, 2.0)], 0.1) == (0.5, 0.0)  # one release keeps its pure guarantee
    # a large one among small ones is not forgotten: alone it has epsilon 4 + 2 log(1 - delta)
    mixed = [m.laplace_event("x", 4.0, 1.0), m.laplace_event("y", 0.1, 1.0, 5)]
    assert 4 + 2 * math.log(1 - 1e-3) <= m.compose(mixed, 1e-3)[0] < 4.5
    # 1,000 deltas of their own use up the delta asked for: the sum alone is true
    assert m.compose([m.other_event("binomial", "sums", 0.01, 1e-6, times=1000)], 1e-5) == pytest.approx((10, 1e-3))
    # a failure alone takes its delta: (0, 0.1) leaves (0.2 - 0.1) / 0.9 for Laplace noise, 1 + 2 log(1 - that)
    failing = [m.other_event("x", "y", 0.0, 0.1), m.laplace_event("z", 1.0, 1.0)]
    assert 1 + 2 * math.log(1 - 0.1 / 0.9) <= m.compose(failing, 0.2)[0] < 1 + 2 * math.log(0.9) + 1e-3
    halves = [m.laplace_event(x, 0.1, 1.0, 100) for x in "xy"]
    assert m.compose(halves, 1e-5) == m.compose([m.laplace_event("x", 0.1, 1.0, 200)], 1e-5)
    # delta covers both: two bits are 0.5987^2 - 0.4013^2 = 0.197 apart; Laplace 1 - e^-0.05 and Gaussian 0.0399 add up
    assert m.compose([m.response_event("x", 2.5, 2)], 0.3) == (0.0, 0.3)
    assert m.compose([m.laplace_event("x", 0.1, 1.0), m.gaussian_event("y", 0.1, 1.0)], 0.2) == (0.0, 0.2)


@pytest.fixture(scope="module")
def pld():
    pytest.importorskip("dp_accounting", reason="a tool of the developers")
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution


FINE = {"value_discretization_interval": 1e-3}


def test_gaussian_sums_and_trees(pld):
    """The nodes that a message enters are as many Gaussian releases; the accountant rounds up."""
    for ratio, times, delta in ((0.2, 1, 1e-5), (1 / 3, 4, 1e-3), (0.1, 100, 1e-6), (2.0, 3, 0.01)):
        theirs = pld.from_gaussian_mechanism(1 / ratio, **FINE).self_compose(times).get_epsilon_for_delta(delta)
        assert m.compose([m.gaussian_event("x", ratio, 1.0, times)], delta)[0] == pytest.approx(theirs, rel=1e-3)
        assert m.compose([m.gaussian_event("x", 1.01 * ratio, 1.0, times)], delta)[0] > theirs
        releases = 2**times - 1
        if times < 10:
            assert m.tree_epsilon(1.0, releases, math.sqrt(6) / ratio, delta) == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("coordinates", [1, 3])
def test_binomial_noise_of_a_shuffled_batch_against_the_accountant(pld, coordinates):
    """A user who moves every coordinate from -L to L: the exact law of its sums, composed by the accountant.

    Ours is a bound near it.
    """
    code, delta = m.VectorCode(1.0, 6.0, 4000.0), 1e-3
    trials, shift = int(code.trials), int(2 * code.levels)
    law = stats.binom(trials, 0.25)
    low, high = int(law.ppf(1e-12)), int(law.isf(1e-12))
    one = {x: float(law.logpmf(x)) for x in range(low, high + shift)}
    other = {x: float(law.logpmf(x - shift)) for x in range(low, high + shift)}
    single = pld.from_two_probability_mass_functions(one, other, **FINE)
    exact = single.self_compose(coordinates).get_epsilon_for_delta(delta)
    assert 0.98 * exact < m.vector_epsilon(code, 2.0 * math.sqrt(coordinates), coordinates, delta) < 1.5 * exact


def test_trees_and_unequal_gaussians(pld):
    """Renyi accounting of the whole tree is an upper bound, and not far above."""
    import dp_accounting

    theirs = dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    theirs.compose(dp_accounting.SingleEpochTreeAggregationDpEvent(noise_multiplier=3.0, step_counts=8))
    ours = m.tree_epsilon(1.0, 8, 3 * math.sqrt(6), 1e-3)
    assert ours < theirs.get_epsilon(1e-3) < 1.2 * ours
    both = pld.from_gaussian_mechanism(3.0, **FINE).compose(pld.from_gaussian_mechanism(5.0, **FINE))
    ours = m.compose([m.gaussian_event("x", 1.0, 3.0), m.gaussian_event("y", 2.0, 10.0)], 1e-4)[0]
    assert ours == pytest.approx(both.get_epsilon_for_delta(1e-4), rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "epsilon", "times", "delta"),
    [
        ("laplace", 1 / 3, 2, 1e-3), ("laplace", 0.1, 200, 1e-5), ("laplace", 0.01, 2_000, 1e-3),
        ("laplace", 3.0, 5, 1e-6),
        ("laplace", 0.05, 64, 0.1), ("laplace", 0.02, 64, 0.1), ("pure", 0.1, 200, 1e-5), ("pure", 1.0, 8, 1e-3),
    ],
)  # fmt: skip
def test_pure_releases_against_the_accountant(pld, kind, epsilon, times, delta):
    """Never below the accountant's optimistic estimate, and within 2% of its pessimistic one."""

    def theirs(pessimistic):
        given = {"value_discretization_interval": 1e-4, "pessimistic_estimate": pessimistic}
        if kind == "laplace":
            one = pld.from_laplace_mechanism(1 / epsilon, use_connect_dots=pessimistic, **given)
        else:
            one = pld.from_randomized_response(2 / (1 + math.exp(epsilon)), 2, **given)
        return one.self_compose(times).get_epsilon_for_delta(delta)

    if kind == "laplace":
        event = m.laplace_event("x", epsilon, 1.0, times)
    else:
        event = m.response_event("x", 1 / epsilon, times)
    ours = m.compose([event], delta)[0]
    assert theirs(False) <= ours + 1e-9 and ours <= 1.02 * theirs(True) + 1e-9


def test_releases_of_several_kinds_against_the_accountant(pld):
    """Two sizes of Laplace noise, a Gaussian release, and one of an (epsilon, delta) of its own."""
    given = {"value_discretization_interval": 1e-4}
    both = pld.from_laplace_mechanism(5.0, **given).self_compose(20)
    both = both.compose(pld.from_laplace_mechanism(2.0, **given).self_compose(3))
    both = both.compose(pld.from_gaussian_mechanism(3.0, **given))
    events = [m.laplace_event("x", 0.2, 1.0, 20), m.laplace_event("y", 0.5, 1.0, 3), m.gaussian_event("z", 1.0, 3.0)]
    theirs, ours = both.get_epsilon_for_delta(1e-5), m.compose(events, 1e-5)[0]
    assert 0.999 * theirs <= ours <= 1.01 * theirs
    from dp_accounting.pld import common

    stated = common.DifferentialPrivacyParameters(0.5, 1e-6)
    other = pld.from_privacy_parameters(stated, **given).self_compose(10)
    theirs = other.get_epsilon_for_delta(1e-4)
    ours = m.compose([m.other_event("amplified", "x", 0.5, 1e-6, times=10)], 1e-4)[0]
    assert 0.999 * theirs <= ours <= 1.01 * theirs and ours < 5.0


def test_mixtures_and_randomized_response(pld):
    both = pld.from_gaussian_mechanism(3.0, **FINE).compose(pld.from_laplace_mechanism(5.0, **FINE))
    theirs = both.get_epsilon_for_delta(1e-4)
    ours = m.compose([m.gaussian_event("x", 1.0, 3.0), m.laplace_event("y", 1.0, 5.0)], 1e-4)[0]
    assert theirs <= ours < 1.1 * theirs
    theirs = pld.from_randomized_response(2 / (1 + math.exp(1.0)), 2, **FINE).get_epsilon_for_delta(0.0)
    assert m.response_event("x", 1.0).epsilon == pytest.approx(theirs, abs=2e-3)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 12.0, 14.5, 14.69, 15.0])
def test_randomized_response_with_uniforms_of_23_bits(epsilon):
    """Every uniform there is, counted."""
    uniforms = (np.arange(2**23, dtype=np.float32) + np.float32(0.5)) * np.float32(2.0**-23)
    flip = np.float32(1) / (1 + np.exp(1 / np.float32(1 / epsilon)))
    # how often a bit is 1 for reward 0, and for reward 1
    one, other = np.mean(uniforms < flip), np.mean(uniforms < flip + (1 - 2 * flip))
    true = max(math.log(other / one), math.log((1 - one) / (1 - other)))
    made = jb.algorithms.ldp_ucb(num_arms=2, horizon=10, epsilon=epsilon, mechanism="randomized_response")
    assert made.guarantee.spend(made.params)[0] == pytest.approx(max(epsilon, true), rel=1e-5)


PERTURBED = {"online_ucb", "doubling"}  # features carry noise beyond the mechanism's, which mechanism_scale leaves


@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_spent_is_the_composition_of_the_events(name):
    algorithm, environment = case(name)
    claim, params = algorithm.guarantee, algorithm.params
    epsilon, delta = claim.spend(params)
    events = claim.events(params)
    assert m.compose(events, delta) == (epsilon, delta)
    # mechanism_scale enters every event's scale
    for event, double in zip(events, claim.events(params._replace(mechanism_scale=2.0)), strict=True):
        if event.mechanism == "binomial":  # four times the trials
            assert double.epsilon < event.epsilon
        elif name in PERTURBED:
            before, after = (x.sensitivity / x.scale for x in (event, double))
            assert before / 2 < after < before
        else:
            assert double.scale == pytest.approx(2 * event.scale) and double.sensitivity == event.sensitivity
    told = ledger(algorithm, environment)
    assert (told.epsilon, told.delta) == (epsilon, delta) == (ledger(algorithm).epsilon, ledger(algorithm).delta)
    assert name in repr(told) and events[0].what in repr(told) and "Mironov" in told._repr_html_()


@pytest.mark.parametrize("name", PRIVATE)
def test_scales_name_leaves_of_params_that_noise_is_proportional_to(name):
    algorithm = case(name)[0]
    assert "mechanism_scale" in algorithm.guarantee.scales
    assert set(algorithm.guarantee.scales) <= set(algorithm.params._fields)
    assert algorithm.guarantee.spend(algorithm.params._replace(mechanism_scale=0.0))[0] == INF


@pytest.mark.parametrize("name", PRIVATE)
def test_no_more_is_spent_than_was_asked_for(name):
    algorithm = case(name)[0]
    assert algorithm.guarantee.spend(algorithm.params)[0] <= epsilon_or_nan(algorithm) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("dp_se", {"horizon": 10**6}), ("dprse", {"horizon": 10**6, "epsilon": 7.0}), ("dprse", {"epsilon": 0.01}),
        ("prm_elimination", {"epsilon": 3.0, "horizon": 2**31 - 1}),
        ("prm_elimination", {"moment": "raw", "epsilon": 0.3}),
        ("prm_elimination", {"clip_mode": "literal"}), ("prm_ucb", {"epsilon": 20.0}),
        ("prm_thompson", {"epsilon": 0.05}),
    ],
)  # fmt: skip
def test_tables_of_noise_deliver_the_claim_in_every_row(name, changes):
    """Also where min(epsilon, 1) sets the clip, and where a batch is too long ever to end."""
    example = catalogue.ALGORITHMS[name]
    arguments = {"horizon": example.horizon, "num_arms": 3} | changes
    made = partial(example.algorithm, **arguments)()
    event = made.guarantee.events(made.params)[0]
    assert made.guarantee.spend(made.params) == (pytest.approx(made.config["epsilon"]), 0.0)
    rows = np.asarray(made.params.noise_scale)
    where = np.unravel_index(int(np.argmax(rows)), rows.shape)
    # half the noise in a single row is found
    rows = rows.copy()
    rows[where] /= 2
    assert made.guarantee.spend(made.params._replace(noise_scale=rows))[0] == pytest.approx(2 * made.config["epsilon"])
    assert event.times == 1


def test_sensitivity_of_the_sums_behind_a_mean():
    """Another reward moves what is released by no more than the event says, up to rounding."""
    from jaxbandits.algorithms.stochastic import integer_sums

    clip = np.float32(0.7)
    ceiling = np.float32(integer_sums.power_above(clip))
    values = np.linspace(-0.9, 0.9, 1801, dtype=np.float32)
    kept = np.where(np.abs(values) <= clip, values, 0)

    def sum_of(x):
        total = integer_sums.add_rewards(integer_sums.nothing(np.float32), np.full(1, x, np.float32), ceiling)
        return float(integer_sums.sum_as_float(total, ceiling, np.dtype("float32")))

    sums = list(map(sum_of, kept))
    assert max(sums) - min(sums) == pytest.approx(2 * 0.7, rel=1e-6)


def test_unbounded_rewards_make_bounded_guarantees_infinite():
    algorithm, bounded = case("private_elimination")
    assert ledger(algorithm, bounded).epsilon < INF
    unbounded = partial(catalogue.linear, noise="gaussian")
    told = ledger(algorithm, unbounded)
    assert told.epsilon == INF and told.events[0].sensitivity == INF
    spent = algorithm.guarantee._replace(spend=lambda params: (1.0, 0.125))
    assert ledger(algorithm._replace(guarantee=spent), unbounded)[1:3] == (INF, 0) and "inf" in repr(told)
    clipped = jb.algorithms.ldp_ucb(num_arms=2, horizon=10, epsilon=1.0)
    assert ledger(clipped, partial(jb.environments.gaussian_arms, means=[0.0, 1.0])).epsilon == 1.0


@pytest.mark.parametrize("name", ["gaussian_arms", "student_arms", "pareto_arms", "lognormal_arms"])
def test_arms_without_a_bound_void_bounded_guarantees(name):
    made = jb.algorithms.phased_elimination(actions=np.eye(3), horizon=40, epsilon=1.0)
    told = ledger(made, getattr(jb.environments, name)(means=[0.9, 0.5, 0.3]))
    assert told.epsilon == INF and told.rows()[["noise", "sensitivity", "epsilon"]].values.tolist() == [
        ["laplace", INF, INF]
    ]
    assert ledger(made, jb.environments.bernoulli_arms(means=[0.9, 0.5, 0.3])).epsilon == 1.0
    assert ledger(made, jb.environments.gaussian_arms(means=[0.9, 0.5, 0.3], scale=0.0)).epsilon == 1.0


def test_guarantees_of_factories_or_none_or_declared_as_a_whole():
    arms = partial(jb.environments.bernoulli_arms, means=[0.2, 0.8])
    told = ledger(partial(jb.algorithms.ldp_ucb, epsilon=0.5, horizon=100), arms)
    assert told.epsilon == 0.5 and told.model == "local" and told[:3] == (told.events, 0.5, 0.0)
    plain = ledger(partial(jb.algorithms.ucb1, horizon=100), arms)
    assert plain.events == () and plain.epsilon == INF and "no guarantee" in repr(plain)
    made = jb.algorithms.ldp_ucb(num_arms=2, horizon=10, epsilon=1.0)
    whole = made._replace(guarantee=made.guarantee._replace(events=lambda params: ()))
    assert [event.mechanism for event in ledger(whole).events] == ["other"] and ledger(whole).epsilon == 1.0


def test_a_ledger_by_hand():
    """Releases one by one, what they cost together in three ways, and the words."""
    events = m.laplace_event("first", 1.0, 2.0, 3), m.gaussian_event("second sum", 3.0, 4.0, 2)
    told = privacy.Ledger(events, 5.25, 1e-3, "some_name", "central", "loss_vector")
    rows = told.rows()
    assert list(rows.columns) == ["release", "noise", "sensitivity", "scale", "times", "epsilon"]
    one = m.gaussian_epsilon(3.0, 4.0, 1e-3)
    assert rows.values.tolist() == [
        ["first", "laplace", 1, 2, 3, 0.5],
        ["second sum", "gaussian", 3, 4, 2, pytest.approx(one)],
    ]
    assert told._replace(delta=0.0).rows()["epsilon"].tolist() == [0.5, INF]
    flips = privacy.Ledger((m.response_event("bit", 2.0),), 0.5, 0.0)
    assert flips.rows()["noise"].tolist() == ["randomized response"]
    rho = 3 * 0.125 + 0.5625
    assert (told.rho, told.g) == (pytest.approx(rho), INF)
    words = "some_name, central model, neighbours differ in one loss vector: epsilon = 5.25, delta = 0.001"
    assert repr(told).splitlines()[0] == f"{words}, rho of zCDP = {rho:.4g}" and len(repr(told).splitlines()) == 4
    normal = told._replace(events=events[1:])
    assert (normal.rho, normal.g) == (pytest.approx(0.5625), pytest.approx(math.sqrt(1.125)))
    assert repr(normal).splitlines()[0] == f"{words}, rho of zCDP = 0.5625, g of Gaussian privacy = 1.061"
    lost = normal._replace(epsilon=INF)
    assert (lost.rho, lost.g) == (INF, INF) and repr(lost).count("=") == 2
    assert repr(told._replace(events=())) == words and repr(told._replace(model="none")).startswith(
        "some_name: no guarantee\n"
    )
    page = privacy.Ledger((m.laplace_event("a < b", 1.0, 2.0),), 0.5, 0.0, "<name>")._repr_html_()
    assert (
        page.startswith("<p>&lt;name&gt;, ") and "a &lt; b" in page and page.endswith(f"<small>{SIMULATED}</small></p>")
    )
    made = jb.algorithms.ldp_ucb(num_arms=2, horizon=10, epsilon=1.5)
    claim = made.guarantee._replace(events=lambda params: (), spend=lambda params: (1.5, 0.01))
    (event,) = ledger(made._replace(guarantee=claim)).events
    assert (event.mechanism, event.what, event.epsilon, event.delta) == ("other", "all that is seen", 1.5, 0.01)
    nothing = ledger(made._replace(guarantee=claim._replace(spend=lambda params: (0.0, 0.01))))
    assert nothing[:3] == ((), 0.0, 0.01) and nothing[3:] == ("ldp_ucb", "local", "reward")


def test_the_table_of_private_algorithms():
    """The page is written from it (pages/test_generated.py); here what a row says, against the case and its records."""
    frame = privacy.table()
    assert sorted(frame["algorithm"]) == sorted(PRIVATE)
    order = list(dict.fromkeys(record.algorithm for record in provenance.records().values()))
    assert frame["algorithm"].tolist() == sorted(PRIVATE, key=order.index)
    page = (ROOT / "docs/privacy.md").read_text()
    lines = privacy.markdown(frame).splitlines()
    assert len(lines) == 2 + len(PRIVATE) and all(line in page for line in lines)
    rows = {row.algorithm: row for row in frame.itertuples()}
    for name in PRIVATE:
        row, (made, _) = rows[name], case(name)
        assert (row.model, row.unit) == made.guarantee[:2] and (row.here, row.delta) == made.guarantee.spend(
            made.params
        )
        assert row.claimed == pytest.approx(epsilon_or_nan(made), nan_ok=True)


def test_the_gaussian_mechanism_says_what_the_classic_formula_delivers():
    def spent(epsilon, delta):
        printed = {"mechanism": "gaussian", "calibration": "paper", "epsilon": epsilon, "delta": delta}
        made = jb.algorithms.private_elimination(actions=np.eye(3), horizon=1000, **printed)
        return made.guarantee.spend(made.params)[0]

    assert 0 < spent(0.5, 1e-5) < 0.5  # its proof is loose
    assert spent(20.0, 1e-6) > 20.0  # and does not hold there
    assert spent(0.4, 0.2) == 0.0  # delta alone covers it


def test_budgets_and_deltas_are_declared_above_0():
    """That a factory refuses what lies outside of a declared range is asked of every argument in test_reward_ranges."""
    rows = [(name, row) for name in PRIVATE for row in listing.factory_of(name).arguments.values()]
    rows = [(name, row) for name, row in rows if row.name in ("epsilon", "rho", "delta")]
    for name, row in rows:
        assert row.checked or name == "private_elimination", name  # whose delta is asked for by one of two mechanisms
        assert row.range.low > 0 or (row.range.low == 0 and row.range.open_low), (name, row)
        assert row.name != "delta" or row.range.high < 1 or row.range.open_high, (name, row)
    assert len(rows) >= 50


def test_documentation_and_results_say_that_noise_is_simulated():
    assert "Mironov" in (ROOT / "docs/privacy.md").read_text()
    arms = partial(jb.environments.bernoulli_arms, means=[0.2, 0.8])
    private = partial(jb.algorithms.ldp_ucb, epsilon=1.0)
    assert jb.sweep({"x": private}, arms, horizon=16, seeds=8, progress=False).attrs["privacy"] == SIMULATED
    assert "privacy" not in jb.sweep({"x": jb.algorithms.ucb1}, arms, horizon=16, seeds=8, progress=False).attrs


def test_a_group_pays_for_its_size():
    repeat, compose = composition.repeat_events, m.compose
    normal, pure = m.gaussian_event("sum", 1.0, 4.0), m.laplace_event("sum", 1.0, 2.0)
    three = m.gaussian_event("sum", 3.0, 4.0)
    assert compose(repeat([normal], 3, own=False), 1e-5) == compose([three], 1e-5)
    assert compose(repeat([normal], 9, own=True), 1e-5) == compose([three], 1e-5)
    assert compose(repeat([pure], 3, own=False)) == compose(repeat([pure], 3, own=True)) == (1.5, 0.0)
    assert compose(repeat([pure._replace(times=2)], 3, own=True)) == (3.0, 0.0)  # 2 times 3 of 1/2
    loose = m.other_event("x", "y", 0.5, 1e-6)
    epsilon, delta = compose(repeat([loose], 3, own=False), 1e-3)
    assert epsilon == 1.5 and delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)), rel=1e-9)
    assert compose(repeat([loose], 80, own=False), 0.5)[0] == INF
    # e^800 is beyond a float: the delta of three is above 1
    assert compose(repeat([m.other_event("x", "y", 400.0, 1e-6)], 3, own=False), 0.5) == (INF, 0.0)

"""Every factory with a budget, at its defaults: it spends what it is asked for, or says otherwise in words."""

import inspect
import math
import warnings
from functools import partial

import numpy as np
import pytest

import jaxbandits.algorithms as a
from jaxbandits import catalogue
from jaxbandits.mechanisms import gaussian_epsilon, zcdp
from jaxbandits.sweeps.assumptions import privacy_spent
from jaxbandits.sweeps.simulate import algorithm_for

BUDGETS = (0.2, 1.0, 10.0, 50.0)
HORIZONS = (1000, 20_000)
LESS = "spends less"  # words of a docstring
# What has to be chosen before there is a budget at all.
PER_ARM = {"models": "per_arm"}
STATISTICS = [{"statistics": name} for name in ("ldp", "jdp", "shuffle")]
STATISTICS += [{"statistics": name} | PER_ARM for name in ("ldp", "jdp")]
CHOICES = {
    "ldp_linucb": [{}, PER_ARM],
    "jdp_linucb": [{}, PER_ARM],
    "linear_thompson": STATISTICS,
    "epsilon_greedy": STATISTICS,
    "byzantine_ucb": [{"privacy": name} for name in ("counter", "tree", "increment")],
    "private_elimination": [{"num_batches": 4}],
}


def at_defaults(given):
    """A factory, and those of a partial's arguments for which it has no default."""
    factory, bound = (given.func, given.keywords) if isinstance(given, partial) else (given, {})
    known = inspect.signature(factory).parameters
    return factory, {key: x for key, x in bound.items() if known[key].default is inspect.Parameter.empty}


def with_budget(given, **budget):
    """The factory at its defaults with a budget, or around one that has it; None where neither takes any."""
    factory, needed = at_defaults(given)
    if budget.keys() <= inspect.signature(factory).parameters.keys():
        return partial(factory, **needed | budget)
    inner = with_budget(needed["base"], **budget) if "base" in needed else None
    return inner and partial(factory, **needed | {"base": inner})


def with_a(budget):
    return [name for name, row in catalogue.ALGORITHMS.items() if with_budget(row.algorithm, **{budget: 1.0})]


def spent_by(name, horizon, choices=(), **budget):
    row = catalogue.ALGORITHMS[name]
    environment, factory = row.environment(), with_budget(row.algorithm, **budget)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "horizon = .*least eigenvalue")  # of the combiner's bases
        made = algorithm_for(partial(factory, **dict(choices), horizon=horizon), environment)
    return made, privacy_spent(made, environment)


@pytest.mark.parametrize("name", with_a("epsilon"))
def test_a_default_spends_its_epsilon_or_says_what_it_does(name):
    shares = []
    for choices in CHOICES.get(name, [{}]):
        for horizon in HORIZONS:
            for epsilon in BUDGETS:
                try:
                    found = spent_by(name, horizon, choices, epsilon=epsilon)[1]
                except ValueError as error:
                    assert f"epsilon = {epsilon:g}" in str(error)
                    continue
                assert found.asked == epsilon
                assert found.epsilon <= epsilon * (1 + 1e-6), (choices, horizon, found)
                shares.append(found.epsilon / epsilon)
    assert shares, "every budget is refused"
    words = " ".join(inspect.getdoc(at_defaults(catalogue.ALGORITHMS[name].algorithm)[0]).split())
    assert (min(shares) < 0.9) == (LESS in words), min(shares)


@pytest.mark.parametrize("name", with_a("rho"))
def test_a_rho_is_spent_in_zero_concentrated_privacy(name):
    for horizon in HORIZONS:
        for rho in BUDGETS:
            made, found = spent_by(name, horizon, rho=rho)
            assert zcdp(made.guarantee.events(made.params)) == pytest.approx(rho, rel=1e-9)
            assert found.delta == min(1e-5, 1 / horizon)
            assert found.asked == pytest.approx(found.epsilon, rel=1e-9)
            assert found.epsilon == pytest.approx(gaussian_epsilon(math.sqrt(2 * rho), 1.0, found.delta), rel=1e-9)


def test_no_private_algorithm_is_left_out():
    looked_at = {*with_a("epsilon"), *with_a("rho")}
    assert set(catalogue.private()) <= looked_at and {"doubling", "bandit_to_experts"} <= looked_at


@pytest.mark.parametrize(("factory", "most"), [
    (partial(a.adac_ucb, num_arms=2, rho=1.0), 1e-5), (partial(a.dp_ts_ucb, num_arms=2), 1e-5),
    (partial(a.gdp_thompson, num_arms=2, variance_scale=1e4), 1e-5),
    (partial(a.dist_elimination, num_arms=2, epsilon=1.0, noise="skellam"), 1e-5),
    (partial(a.adac_gope, actions=np.eye(2), rho=1.0), 1e-5),
    (partial(a.private_elimination, actions=np.eye(2), epsilon=1.0, mechanism="gaussian"), 1e-3),
])  # fmt: skip
def test_a_default_delta_is_a_rewards_share_of_a_long_run(factory, most):
    for horizon in (100, 10**6):
        made = factory(horizon=horizon)
        assert made.guarantee.spend(made.params)[1] == min(most, 1 / horizon)

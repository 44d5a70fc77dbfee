"""Linear bandits over users at the ends of their arguments' ranges, under adversaries, and how their steps compile."""

import json
import math
import sys
import warnings
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from scipy.optimize import brentq

import jaxbandits as jb
from jaxbandits.mechanisms import gaussian_delta, gaussian_epsilon, gaussian_scale
from jaxbandits.mechanisms.gaussian import _root
from jaxbandits.simulator import advance, begin, case_of, parts_of
from jaxbandits.spans import segment

a = jb.algorithms
SHAPE = {"num_arms": 4, "dim": 3}
PRIVATE = {
    "online_ucb": a.online_ucb,
    "online_ucb paper": partial(a.online_ucb, calibration="paper", width="theory", gradient_bound="theory"),
    "ldp exact": a.ldp_linucb,
    "ldp reference": partial(a.ldp_linucb, preset="reference"),
    "ldp theory": partial(a.ldp_linucb, preset="theory"),
    "instrument exact": a.ldp_instrument_ucb,
    "jdp exact": a.jdp_linucb,
    "jdp reference": partial(a.jdp_linucb, preset="reference"),
    "jdp theory": partial(a.jdp_linucb, preset="theory"),
    "amplified exact": partial(a.shuffle_linucb, window=5, protocol="amplified"),
    "amplified reference": partial(a.shuffle_linucb, window=5, preset="reference"),
    "amplified theory": partial(a.shuffle_linucb, window=5, preset="theory"),
    "vector exact": partial(a.shuffle_linucb, window=5),
    "vector reference": partial(a.shuffle_linucb, window=5, protocol="vector", preset="reference"),
    "vector theory": partial(a.shuffle_linucb, window=5, protocol="vector", preset="theory"),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_extreme_budgets_give_finite_numbers_or_a_named_error(name):
    for epsilon in (1e-300, 1e-40, 1e-9, 1e4, 1e39, 1e300, 1.7e308):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                made = PRIVATE[name](**SHAPE, horizon=50, epsilon=epsilon)
            except ValueError as error:
                assert f"epsilon = {epsilon:g} " in str(error)
                assert epsilon < 1e-8 or epsilon > 1e38
                continue
        leaves = np.concatenate([np.ravel(x) for x in jax.tree.leaves(made.params)]).astype(np.float32)
        assert np.isfinite(leaves).all(), epsilon
        spent = made.guarantee.spend(made.params)[0]
        if name == "online_ucb" and epsilon > 1:
            assert spent >= epsilon * (1 - 1e-9)
        if name.endswith("exact") and epsilon < 1e308:  # above it rounding overflows
            assert spent <= epsilon * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e4, 1e9, 1e20, 1e39, 1e120, 1e300])
def test_gaussian_noise_of_huge_budgets(epsilon):
    scale = gaussian_scale(1.0, epsilon, 0.1, "analytic")
    np.testing.assert_allclose(gaussian_epsilon(1.0, scale, 0.1), epsilon, rtol=1e-9)
    if epsilon >= 1e9:  # to leading order epsilon = 1 / (2 scale^2)
        np.testing.assert_allclose(scale * math.sqrt(2) * math.sqrt(epsilon), 1, rtol=1e-4)
    if epsilon <= 1e9:
        np.testing.assert_allclose(gaussian_delta(1.0, scale, epsilon), 0.1, rtol=1e-5)


def test_roots_are_those_of_scipy(monkeypatch):
    def compared(function, low, high, absolute):
        root = _root(function, low, high, absolute)
        assert root == brentq(function, low, high, xtol=absolute, rtol=1e-15)
        steps.append(root)
        return root

    steps, rng = [], np.random.default_rng(0)
    monkeypatch.setattr(sys.modules[_root.__module__], "_root", compared)
    for epsilon, delta, sensitivity, share in np.exp(rng.uniform((-12, -60, -8, -1), (9, -0.01, 8, 1), (200, 4))):
        scale = gaussian_scale(sensitivity, epsilon, delta, "analytic")
        gaussian_epsilon(sensitivity, share * scale, delta)
    assert len(steps) > 300


def test_one_play_and_doubling_of_every_base_of_one_play_a_window():
    for factory in (a.ldp_linucb, a.jdp_linucb, partial(a.shuffle_linucb, window=1)):
        assert factory(**SHAPE, horizon=1, epsilon=1.0).params.statistics.ridge > 0
    # A private base as well: its claim is the base's.
    base = partial(a.ldp_linucb, epsilon=1.0)
    made = a.doubling(**SHAPE, horizon=50, base=base)
    single = base(**SHAPE, horizon=50)
    assert made.guarantee.spend(made.params) == single.guarantee.spend(single.params)


def test_the_combiner_takes_its_budget_from_its_bases():
    combiner = partial(a.bandit_combiner, **SHAPE, horizon=1 << 10)
    online = partial(a.online_ucb, learner="ogd")
    with pytest.warns(UserWarning, match="least eigenvalue"):
        asked = combiner(epsilon=2.0, base=online)
    with pytest.warns(UserWarning, match="least eigenvalue"):
        bound = combiner(base=partial(online, epsilon=2.0))
    chex.assert_trees_all_equal(asked.params, bound.params)
    bases = [partial(a.doubling, base=partial(online, epsilon=2.0)), partial(online, epsilon=2.0)]
    chex.assert_trees_all_equal(combiner(bases=bases).params, combiner(bases=bases, epsilon=2.0).params)
    bases[0] = partial(a.doubling, base=partial(online, epsilon=3.0))
    for asked in ({}, {"epsilon": 2.0}):
        with pytest.raises(ValueError, match=r"epsilon = 2, and a base is given 3, which a user who meets it spends"):
            combiner(bases=bases, **asked)
    plain = combiner(bases=[partial(a.doubling, base=a.linucb), a.linucb])
    assert plain.params.growth[0] == pytest.approx(math.log(1 << 10) ** 1.5 * math.sqrt(3))  # x = 0 at epsilon = inf


def test_an_adversary_that_does_not_read_the_truth():
    """Redrawn contexts: what the world tells adversaries may go unread, of which the compiler must not die."""
    found = jb.sweep(
        {"x": a.linucb}, jb.environments.contextual_linear(**SHAPE), horizon=40, seeds=8, checkpoints=2, progress=False,
        reward_adversary=jb.adversaries.huber(corruption=0.3, value="inf"),
    )  # fmt: skip
    assert np.isfinite(found.regret).all()


@pytest.mark.parametrize("name", ["linucb", "online_ucb", "ldp_linucb"])
def test_other_contexts_than_decision_sets_are_named(name):
    """An environment that shows something else than its facts say."""
    agents = jb.environments.federated_linear(num_agents=3, num_arms=4, dim=2)
    environment = agents._replace(facts={"num_arms": 4, "dim": 2}, remake=None)
    factory = partial(getattr(a, name), **({} if name == "linucb" else {"epsilon": 1.0}))
    with pytest.raises(ValueError, match=r"contexts have shape \(1, 3, 4, 2\).*contextual_linear"):
        jb.sweep(factory, environment, horizon=9, seeds=1, progress=False)


@pytest.mark.dealt(8)
def test_a_private_grid_passes_by_who_binds_no_noise():
    grid, env = {"epsilon": [1.0, 4.0]}, partial(jb.environments.contextual_linear, **SHAPE)
    both = {"plain": partial(a.epsilon_greedy, epsilon=math.inf), "ldp": partial(a.epsilon_greedy, statistics="ldp")}
    found = jb.sweep(both, env, horizon=9, seeds=2, grid=grid, progress=False)
    assert json.loads(found.attrs["constant_along"])["plain"] == ["epsilon"]


STEPS = {
    "maler": partial(a.online_ucb, epsilon=4.0),
    "descent": partial(a.online_ucb, epsilon=4.0, learner="ogd"),
    "tree": partial(a.jdp_linucb, epsilon=4.0, tree="binary"),
    "vector": partial(a.shuffle_linucb, epsilon=4.0, window=5, protocol="vector"),
    "thompson": partial(a.linear_thompson, epsilon=4.0, statistics="ldp"),
    "combiner": partial(a.bandit_combiner, bases=[partial(a.doubling, base=a.linucb), a.linucb]),
}


# small matrices are written out, larger ones are worked on in loops
DIMS = [("maler", 3), ("descent", 3), ("tree", 3), ("vector", 5), ("combiner", 3), ("maler", 9), ("thompson", 9)]


@pytest.mark.parametrize("name, dim", dealt(DIMS, 8, always=[("descent", 3)]))
def test_no_step_calls_a_solver_of_the_backend(name, dim):
    algorithm = STEPS[name](num_arms=4, dim=dim, horizon=40)
    environment, window = jb.environments.contextual_linear(num_arms=4, dim=dim), algorithm.schedule[0].slots
    parts, times = parts_of(algorithm, environment, None, None, "float32"), jnp.array([40], jnp.int32)
    whole = segment(algorithm.schedule[0], 0, 0, 40 // window, np.array([40]))
    single = lambda x: jnp.asarray(x, jnp.float32 if np.asarray(x).dtype.kind == "f" else jnp.int32)
    case = jax.tree.map(single, case_of(algorithm, environment))

    def lane(seed):
        return advance(parts, (window, True, False), case, seed, begin(parts, case, seed, 1), times, whole)

    text = jax.jit(jax.vmap(lane)).lower(jnp.arange(8, dtype=jnp.uint32)).as_text()
    assert "stablehlo.dot_general" not in text and "custom_call" not in text

"""`shortcut=True` of PRM-UCB and PRM-TS, and the exact sums it shares with every PRM algorithm."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt, others
from plays import Lane, played
from scipy import stats
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms.robust.prm_elimination import prm_elimination
from jaxbandits.algorithms.robust.prm_thompson import prm_thompson
from jaxbandits.algorithms.robust.prm_ucb import prm_ucb
from jaxbandits.algorithms.stochastic import integer_sums
from jaxbandits.random import MAX_TRIALS

MEANS = [0.9, 0.7, 0.5]
bernoulli = partial(jb.environments.bernoulli_arms, means=MEANS)
QUICK = {"epsilon": 2.0, "moment_bound": 0.9, "sampling_scale": 0.3, "privacy_scale": 0.3}
CENTRAL = {"moment": "central", "mean_bound": 4.0, "moment_bound": 0.25, "histogram_scale": 0.5}
MAKERS = {"ucb": partial(prm_ucb, **QUICK), "thompson": partial(prm_thompson, **QUICK)}
MAKERS["central"] = partial(prm_ucb, **QUICK | CENTRAL)


def sweep(algorithm, environment=bernoulli, **changes):
    return jb.sweep(algorithm, environment, **{"horizon": 2000, "seeds": 24, "progress": False} | changes)


@pytest.mark.parametrize("seed", range(3))
def test_counted_and_single_values_have_the_same_sum(seed):
    """Values with multiplicities against Python integers of any length, the largest and negative ones among them."""
    rng = np.random.default_rng(seed)
    ceiling = 2.0 ** rng.integers(-3, 4)
    values = np.float32(ceiling * np.append(rng.uniform(-1, 1, 4), [1.0, -1.0]))
    units = [round(float(x) * 2**23 / ceiling) for x in values]
    nothing = uncompiled(lambda: integer_sums.nothing(jnp.float32))()
    counted = uncompiled(lambda total, plays: integer_sums.add_rewards(total, jnp.asarray(values), ceiling, plays))
    total, exact = nothing, 0
    for _ in range(50):
        plays = rng.multinomial(MAX_TRIALS, rng.dirichlet(np.ones(6) * 0.3))
        total = counted(total, plays.astype(np.int32))
        exact += sum(n * u for n, u in zip(plays.tolist(), units, strict=True))
        assert int(total.high) * 2**23 + int(total.low) == exact and 0 <= int(total.low) < 2**23
    one = uncompiled(lambda total: integer_sums.add_rewards(total, jnp.asarray(values), ceiling))(nothing)
    assert one == counted(nothing, np.ones(6, np.int32))
    assert int(one.high) * 2**23 + int(one.low) == sum(units)


def test_a_full_window_of_the_largest_value_does_not_overflow():
    add = jax.jit(lambda total, x, ceiling: integer_sums.add_rewards(total, x, ceiling))
    value_of = uncompiled(lambda total, ceiling: integer_sums.sum_as_float(total, ceiling, jnp.dtype(jnp.float32)))
    for value in (np.float32(1.0), np.float32(-1.0)):
        total = none = uncompiled(lambda: integer_sums.nothing(jnp.float32))()
        for _ in range(3):
            total = add(total, np.full(integer_sums.MAX_PLAYS, value), np.float32(1.0))
        assert float(value_of(total, np.float32(1.0))) == 3 * integer_sums.MAX_PLAYS * value
        total = add(none, np.full(2 * integer_sums.MAX_PLAYS, value), np.float32(2.0))
        assert float(value_of(total, np.float32(2.0))) == 2 * integer_sums.MAX_PLAYS * value


@pytest.mark.parametrize("extra", [{}, *others([CENTRAL], 4)])
def test_releases_do_not_depend_on_the_checkpoints(extra):
    """Up to four checkpoints fit into a window; 200 of them cut it."""
    environment = jb.environments.gaussian_arms(means=MEANS, scale=0.3)
    lane = Lane(0, prm_elimination(num_arms=3, horizon=6000, **QUICK | extra), environment)
    few, many = (played([lane], checkpoints=n, dtype="float32")[0].history for n in (1, 200))
    released = few.released
    assert np.isfinite(released).sum() >= 8
    np.testing.assert_array_equal(released[np.isfinite(released)], many.released[np.isfinite(many.released)])
    np.testing.assert_array_equal(few.action, many.action)


@pytest.mark.parametrize("name", dealt(MAKERS, 3, always=["ucb"]))
def test_sure_rewards_take_the_same_path(name):
    """Arms that pay 0 and 1 for sure leave nothing to draw; noise and normals are those of the plain run, or off."""
    sure, grid = partial(jb.environments.bernoulli_arms, means=[0.0, 1.0, 1.0]), {"epsilon": [2.0, math.inf]}
    given = {key: value for key, value in MAKERS[name].keywords.items() if key != "epsilon"}
    plain, short = (sweep(partial(MAKERS[name].func, shortcut=s, **given), sure, grid=grid) for s in (False, True))
    np.testing.assert_array_equal(plain.regret, short.regret)
    np.testing.assert_array_equal(plain.pulls, short.pulls)
    assert len(np.unique(plain.pulls.isel(epsilon=1))) > 2


INF, SWAPPED, BOTH_SIGNS = {"kind": "fixed", "value": "inf"}, {"kind": "swapped"}, {"kind": "random_sign", "value": 0.8}
LAWS = [("ucb", None), ("ucb", BOTH_SIGNS), ("thompson", INF)]
LAWS += [("central", attack) for attack in (None, SWAPPED, INF)]


@pytest.mark.parametrize(("name", "kind"), dealt(LAWS, 10, always=[("ucb", None)]))
def test_the_shortcut_has_the_law_of_the_plain_draws(kind, name):
    adversary = None if kind is None else partial(jb.adversaries.huber, corruption=0.2, **kind)
    settings = {"horizon": 3000, "seeds": 600, "reward_adversary": adversary, "checkpoints": [700, 3000]}
    plain, short = (sweep(partial(MAKERS[name], shortcut=s), **settings) for s in (False, True))
    pairs = [(plain.regret.isel(t=t), short.regret.isel(t=t)) for t in (0, 1)]
    pairs += [(plain.pulls.isel(arm=a), short.pulls.isel(arm=a)) for a in range(3)]
    for pair in pairs:
        x, y = (v.values.ravel().astype(np.float64) for v in pair)
        assert abs(x.mean() - y.mean()) <= 4 * math.sqrt((x.var() + y.var()) / 600)
        assert x.std() > 0 and stats.ks_2samp(x, y).pvalue > 1e-3
    assert np.all(short.pulls.sum("arm") == 3000)
    if kind is not None and kind["kind"] == "fixed":
        assert abs(short.nonfinite_rewards.values.mean() - 600) <= 4 * math.sqrt(3000 * 0.2 * 0.8 / 600)


@pytest.mark.parametrize("name", others(MAKERS))
def test_no_bit_depends_on_lanes_or_checkpoints(name):
    make = partial(MAKERS[name], shortcut=True)
    adversary = partial(jb.adversaries.huber, corruption=0.05, value="inf")
    whole = sweep(make, reward_adversary=adversary, horizon=40_000)
    for seeds in (range(8), range(19, 21)):
        part = sweep(make, reward_adversary=adversary, horizon=40_000, seeds=seeds)
        np.testing.assert_array_equal(part.regret, whole.regret.sel(seed=list(seeds)))
    few = sweep(make, reward_adversary=adversary, horizon=40_000, checkpoints=[5, 6, 39_000, 40_000])
    np.testing.assert_array_equal(few.pulls, whole.pulls)


def test_a_long_horizon_draws_several_counts_an_episode():
    """Clean arms, every scale at its default: the best one has nearly all of 10^7 plays, windows enough are offered."""
    ds = sweep(partial(prm_ucb, epsilon=1.0, shortcut=True), horizon=10**7, seeds=8, checkpoints=3)
    assert np.all(ds.pulls.sum("arm") == 10**7) and np.all(ds.pulls.isel(arm=0) > 0.9 * 10**7)

"""PRM elimination in sweeps: rest, checkpoints, shared programs, limits, invariances, and the law of the shortcut."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt, others
from plays import Lane, played
from scipy import stats

import jaxbandits as jb
from jaxbandits import simulator
from jaxbandits.algorithms.robust.prm_elimination import prm_elimination
from jaxbandits.numerics import cond_any
from jaxbandits.random import MAX_TRIALS, Draws
from jaxbandits.sweeps.compilation import compiled
from jaxbandits.sweeps.plan import plan

MEANS = [0.9, 0.7, 0.5, 0.3, 0.1]
gaussian = partial(jb.environments.gaussian_arms, means=MEANS, scale=0.3)
bernoulli = partial(jb.environments.bernoulli_arms, means=MEANS)
CENTRAL = {"moment": "central", "mean_bound": 8.0, "moment_bound": 0.25, "histogram_scale": 0.5}
quick = partial(prm_elimination, epsilon=1.0, moment_bound=0.9, sampling_scale=0.2, privacy_scale=0.1)


def sweep(algorithm, environment=bernoulli, **changes):
    return jb.sweep(algorithm, environment, **{"horizon": 2000, "seeds": 24, "progress": False} | changes)


def final(ds):
    return ds.regret.isel(algorithm=0, t=-1).values.ravel()


def test_a_lane_at_rest_is_counted_as_if_it_played(monkeypatch):
    rested = sweep(quick)
    assert np.all(rested.active_arms == 1) and rested.undecided_plays.max() < 2000
    monkeypatch.setenv("JAXBANDITS_CACHE", "off")  # the names of programs on disk do not show what is replaced here
    monkeypatch.setattr(simulator, "resting", lambda parts, case, lane: None)
    compiled.functions_of_group.cache_clear()  # the programs above know of rest
    played = sweep(quick)
    compiled.functions_of_group.cache_clear()
    np.testing.assert_array_equal(rested.regret, played.regret)
    np.testing.assert_array_equal(rested.pulls, played.pulls)
    np.testing.assert_array_equal(rested.undecided_plays, played.undecided_plays)


@pytest.mark.dealt(4)
def test_counts_do_not_depend_on_the_checkpoints():
    dense = sweep(quick, checkpoints=list(range(1, 2001)), seeds=4)
    assert np.all(np.isin(np.round(np.diff(dense.regret.values, axis=-1), 9), np.round(0.9 - np.array(MEANS), 9)))
    few = sweep(quick, checkpoints=[1, 2, 3, 4, 5, 6, 700, 2000], seeds=4)
    np.testing.assert_array_equal(few.regret, dense.regret.sel(t=few.t))
    np.testing.assert_array_equal(few.pulls, dense.pulls)


def test_regret_by_the_play_is_played_to_the_horizon():
    """Losses that change with time have regret for each play: nothing is counted without being played."""
    losses = partial(jb.environments.fixed_gap_losses, num_arms=3, best=1)
    ds = sweep(partial(prm_elimination, epsilon=1.0, sampling_scale=0.1, privacy_scale=0.1), losses, seeds=8)
    assert np.all(ds.pulls.sum("arm") == 2000) and np.all(ds.active_arms == 1)
    np.testing.assert_allclose(final(ds), 0.3 * ds.pulls.isel(algorithm=0, arm=[0, 2]).sum("arm"), rtol=1e-5)


def test_few_slots_for_each_play():
    """At most 1.25 slots a drawn reward at a horizon of a million, where lanes play on (counted on two lanes)."""
    horizon = 10**6
    algorithm = prm_elimination(num_arms=5, horizon=horizon, epsilon=1.0, corruption_bound=0.1)
    environment = jb.environments.bernoulli_arms(means=MEANS)
    parts = simulator.parts_of(algorithm, environment, None, None, "float32")
    case = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), simulator.case_of(algorithm, environment))
    times = jnp.asarray(np.unique(np.geomspace(1, horizon, 200).astype(int)), jnp.int32)
    span = algorithm.schedule[0]

    @jax.jit
    def windows(seed):
        def play(carry):
            n, lane = carry
            return n + 1, simulator.one_counted(parts, (span.slots, False, False), case, seed, lane, times)[0]

        lane = simulator.begin(parts, case, seed, len(times))
        return jax.lax.while_loop(lambda c: simulator.moves(parts, case, c[1], times[-1]), play, (jnp.int32(0), lane))

    for seed in range(2):
        number, lane = windows(jnp.uint32(seed))
        plays = int(lane.algorithm.undecided)
        assert plays == horizon  # two arms are never told apart at this contamination
        assert plays <= int(number) * span.slots <= 1.1 * plays
        assert int(number) <= span.repeats + len(times)


def test_one_program_serves_a_grid():
    settings = {"horizon": 500, "seeds": 8, "checkpoints": 10}
    grid = {"epsilon": [0.1, math.inf], "moment_order": [2.0, 3.0], "corruption_bound": [0.0, 0.1]}
    one = plan(prm_elimination, gaussian, grid=grid | {"radius": ["order", "explicit"]}, **settings)
    assert len(one.cells) == 16 and len(one.groups) == 1
    central = partial(prm_elimination, moment="central", epsilon=1.0)
    assert len(plan(central, gaussian, grid={"mean_bound": [7.0, 9.0, 12.0]}, **settings).groups) == 1


@pytest.mark.parametrize("extra", [{}, CENTRAL])
def test_infinite_epsilon_is_the_noise_switched_off(extra):
    make = partial(quick, **extra)
    off = make(num_arms=5, horizon=1500)
    off = off._replace(params=off.params._replace(mechanism_scale=0.0))
    limit = make(num_arms=5, horizon=1500, epsilon=math.inf)
    assert not np.any(limit.params.noise_scale) and not np.any(limit.params.count_scale)
    actions = [run.history.action for run in played([Lane(3, a, gaussian()) for a in (off, limit)], dtype="float32")]
    np.testing.assert_array_equal(*actions)


@pytest.mark.dealt(8)
def test_no_contamination_is_the_clean_stream():
    adversary = partial(jb.adversaries.huber, corruption=0.0, value="nan")
    clean, touched = sweep(quick), sweep(quick, reward_adversary=adversary)
    np.testing.assert_array_equal(clean.regret, touched.regret)
    assert np.all(touched.nonfinite_rewards == 0)


@pytest.mark.parametrize("extra", [{}, {"moment": "central"}])
def test_rewards_and_their_unit_scale_together(extra):
    """Noise off; T0 given: its logarithm of D is not free of units (forced exploration is switched off)."""
    lanes = []
    for unit in (1.0, 4.0):  # a power of two scales without rounding
        make = partial(quick, epsilon=math.inf, histogram_scale=0.0, mean_bound=unit * 7.0, **extra)
        algorithm = make(num_arms=5, horizon=1500, moment_bound=0.9 * unit**2)
        arms = jb.environments.gaussian_arms(means=[unit * m for m in MEANS], scale=unit * 0.3)
        lanes.append(Lane(5, algorithm, arms))
    np.testing.assert_array_equal(*(run.history.action for run in played(lanes, dtype="float32")))


@pytest.mark.parametrize("shortcut", others([False, True]))
def test_lanes_do_not_depend_on_their_number(shortcut):
    make = partial(quick, shortcut=shortcut, **CENTRAL)
    adversary = partial(jb.adversaries.huber, corruption=0.05, value="inf")
    whole = sweep(make, reward_adversary=adversary)
    for seeds in (range(8), range(19, 21)):
        part = sweep(make, reward_adversary=adversary, seeds=seeds)
        np.testing.assert_array_equal(part.regret, whole.regret.sel(seed=list(seeds)))


@pytest.mark.dealt(8)
def test_infinite_rewards_never_reach_the_estimates():
    for value in ("inf", "-inf", "nan"):
        adversary = partial(jb.adversaries.huber, corruption=0.05, value=value)
        ds = sweep(partial(quick, corruption_bound=0.05, threshold_scale=0.1), gaussian, reward_adversary=adversary)
        assert np.all(ds.nonfinite_rewards > 0) and final(ds).mean() < 0.4 * 2000 * 0.4


def test_seldom_runs_only_where_wanted():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def add(x, wanted, y):
        return jnp.where(wanted, x + y, x)

    def one(x, wanted):
        return cond_any(wanted, add, x, wanted, jnp.float32(10))

    each = jax.jit(jax.vmap(jax.vmap(one)))
    wanted = np.arange(6).reshape(2, 3) == 5
    np.testing.assert_array_equal(each(x, wanted), np.where(wanted, x + 10, x))
    np.testing.assert_array_equal(each(x, wanted & False), x)
    assert "cond" in str(jax.make_jaxpr(each)(x, wanted))


def test_counts_of_outcomes_have_their_law():
    probabilities = np.float32([0.25, 0.7, 0.05, 0.0])

    @jax.jit
    @jax.vmap
    def draw(seed):
        return Draws(seed, "x").multinomial(jnp.int32(1), jnp.int32(MAX_TRIALS), jnp.asarray(probabilities))

    counts = np.asarray(draw(np.arange(4000, dtype=np.uint32)), np.int64)
    assert np.all(counts.sum(axis=1) == MAX_TRIALS) and np.all(counts >= 0) and not counts[:, 3].any()
    for i, p in enumerate(np.float64(probabilities[:3])):
        law, spread = stats.binom(MAX_TRIALS, p), counts[:, i] + np.random.default_rng(i).random(4000) - 1
        assert stats.kstest(spread, partial(_smooth, law)).pvalue > 1e-3
        wrong = stats.binom(MAX_TRIALS, p + 0.1 * law.std() / MAX_TRIALS)  # a tenth of a standard deviation is seen
        assert stats.kstest(counts[:, i] + 0.0, wrong.cdf).pvalue < 1e-3


def _smooth(law, x):
    """Distribution function of a count plus a uniform in (-1, 0)."""
    low = np.floor(x)
    return law.cdf(low) + (x - low) * law.pmf(low + 1)


KINDS = {
    "clean": None,
    "fixed": {"kind": "fixed", "value": "inf"},
    "swapped": {"kind": "swapped"},
    "target": {"kind": "target", "value": 0.6},
    "sign_flip": {"kind": "sign_flip"},
    "random_sign": {"kind": "random_sign", "value": 0.8},
}
LAWS = [(kind, central) for kind in KINDS for central in (False, True)]


@pytest.mark.parametrize(("kind", "central"), dealt(LAWS, 12, always=LAWS[:1]))
def test_the_shortcut_has_the_law_of_the_plain_draws(kind, central):
    kind, extra = KINDS[kind], CENTRAL if central else {}
    adversary = None if kind is None else partial(jb.adversaries.huber, corruption=0.2, **kind)
    make = partial(quick, epsilon=2.0, **extra)
    settings = {"horizon": 1000, "seeds": 300, "reward_adversary": adversary, "checkpoints": [300, 1000]}
    plain, short = (sweep(partial(make, shortcut=s), **settings) for s in (False, True))
    for t in (0, 1):
        x, y = (ds.regret.isel(algorithm=0, t=t).values for ds in (plain, short))
        assert abs(x.mean() - y.mean()) <= 4 * math.sqrt((x.var() + y.var()) / 300)
        assert x.std() > 0 and stats.ks_2samp(x, y).pvalue > 1e-3
    if kind is not None and kind.get("value") == "inf":
        assert short.nonfinite_rewards.sum() > 0

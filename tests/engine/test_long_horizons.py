"""float32 over long horizons: from where counts stand at 2^24 - 8, plays in float32 decide and learn as in float64.

A mean that is one float32 hardly moves there, and a float32 count stops at 2^24. docs/determinism.md has a table of
what every algorithm adds up, and how.
"""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from against_reference import on_tape
from dealt import others
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import catalogue, simulator, window
from jaxbandits.algorithms.stochastic import arm_means
from jaxbandits.numerics import columns, moved_mean
from jaxbandits.random import Draws
from jaxbandits.sweeps.plan import cast
from jaxbandits.sweeps.simulate import algorithm_for

a = jb.algorithms
COUNT, PLAYS, MEANS = 2**24 - 8, 64, np.array([0.875, 0.75, 0.625])  # sums of so many of these are float32 numbers
REWARDS = np.random.default_rng(7).random((PLAYS, 3)).astype(np.float32)
LAYERS = 26
LINEAR = [
    "linucb", "ldp_linucb", "ldp_instrument_ucb", "jdp_linucb", "cw_oful", "hvt_linucb", "robust_oful", "adac_oful",
    "shuffle_linucb", "linear_thompson", "epsilon_greedy", "online_ucb", "doubling", "bandit_combiner",
    "isolated_linucb", "oracle_linucb", "byzantine_ucb", *catalogue.PER_ARM,
]  # fmt: skip
# of these, those that play on decision sets of any number of features: above 8 matrices are arrays
ABOVE_8 = LINEAR[: LINEAR.index("doubling")]
ROOT = np.full(3, COUNT**-0.5)


class Late(NamedTuple):
    """An algorithm after many plays."""

    make: Any
    # {field: value} of its state, at any depth
    state: dict
    # (mean, what rounding left out of it, count) of everything that it keeps a mean of
    means: Any
    # whether its plays are those in float64: it draws nothing
    decides: bool = True


def of_arms(state):
    means = getattr(state, "means", state)
    return uncompiled(arm_means.unpack_arms)(*(x.rows for x in means))


def of_rounds(state):
    return state.mean, state.rest, state.rounds + (np.arange(3) < state.action)


def entropy_of(mean):
    return mean * np.log(mean) + (1 - mean) * np.log(1 - mean)


make = partial(partial, num_arms=3, horizon=2**26)
ARMS = {"mean": MEANS, "inverse_root": ROOT, "digits": [COUNT % 2**12] * 3}
LATE = {
    "ucb1": Late(make(a.ucb1), ARMS, of_arms),
    "moss": Late(make(a.moss), ARMS | {"index": MEANS}, of_arms),
    "kl_ucb": Late(make(a.kl_ucb), ARMS | {"entropy": entropy_of(MEANS)}, of_arms),
    "thompson": Late(make(a.thompson, posterior="gaussian"), ARMS, of_arms, decides=False),
    "gdp_thompson": Late(make(a.gdp_thompson), ARMS, of_arms, decides=False),
    "ldp_ucb": Late(make(a.ldp_ucb, epsilon=np.inf), ARMS, of_arms),
    "robust_ucb": Late(
        make(a.robust_ucb, moment_bound=1e6),
        {"arms": np.stack([MEANS, ROOT, MEANS * COUNT, 0 * MEANS], axis=1), "pulls": [COUNT] * 3},
        lambda state: (state.arms[:, 2] / state.pulls, state.arms[:, 3] / state.pulls, state.pulls),
    ),
    "successive_elimination": Late(
        make(a.successive_elimination, noise_scale=1e6), {"mean": MEANS, "rounds": COUNT}, of_rounds
    ),
    "stopping_elimination": Late(
        make(a.stopping_elimination, noise_scale=1e6, corruption_budget=0.0), {"mean": MEANS, "rounds": COUNT},
        of_rounds,
    ),
    "multilayer_elimination": Late(
        make(a.multilayer_elimination, width_scale=1e3),
        {"arms": [np.stack([MEANS, 0 * MEANS], axis=1)] * LAYERS, "pulls": [[COUNT] * 3] * LAYERS},
        lambda state: (state.arms[..., 0], state.arms[..., 1], state.pulls), decides=False,
    ),
    "dp_ts_ucb": Late(
        make(a.dp_ts_ucb), {"fresh_sum": MEANS * COUNT, "fresh": [COUNT] * 3, "size": [COUNT] * 3},
        lambda state: (state.fresh_sum / state.fresh, state.fresh_rest / state.fresh, state.fresh), decides=False,
    ),
    "gradient_bandit": Late(
        make(a.gradient_bandit), {"mean": MEANS[0]}, lambda state: (state.mean, state.rest, 3 * COUNT), decides=False
    ),
}  # fmt: skip


def filled(state, values):
    """A state whose fields of these names have these values, in the form and of the type of the fields."""

    def put(x, value):
        if isinstance(x, columns.Kept):
            return columns.Kept(put(x.rows, value))
        if isinstance(x, tuple):  # columns
            return tuple(entry.dtype.type(v) for entry, v in zip(x, value, strict=True))
        return np.broadcast_to(np.asarray(value, x.dtype), x.shape)

    if not hasattr(state, "_fields"):
        return state
    return type(state)(*(put(x, values[k]) if k in values else filled(x, values) for k, x in state._asdict().items()))


def played(late, dtype):
    """The state where counts stand at `COUNT`, and actions [P], messages [P] and states [P, ...] of the plays then."""
    algorithm, draws = late.make(), Draws(np.uint32(5), "alg", dtype)
    params = jax.tree.map(dtype, algorithm.params)
    with jax.enable_x64(dtype == np.float64):
        state = filled(jax.tree.map(np.asarray, uncompiled(algorithm.program.init)(params, draws)), late.state)
        return state, *on_tape(algorithm, np.zeros((PLAYS, 0)), REWARDS, draws, dtype, state, 3 * COUNT)


def total(means):
    """The sum of all rewards, and their number."""
    mean, rest, count = (np.float64(x) for x in means)
    return np.sum((mean + rest) * count), np.sum(count)


@pytest.mark.parametrize("name", LATE)
def test_counts_and_means_go_on_beyond_2_24(name):
    late = LATE[name]
    before, action, message, states = played(late, np.float32)
    (old, first), (new, last) = (total(late.means(s)) for s in (before, jax.tree.map(lambda x: x[-1], states)))
    if name == "gradient_bandit":  # its clock is the play
        new, last = new * (first + PLAYS) / first, first + PLAYS
    assert last - first == PLAYS
    assert new - old == pytest.approx(np.sum(message, dtype=np.float64), abs=1e-4)
    if late.decides:
        np.testing.assert_array_equal(action, played(late, np.float64)[1])


# Fields that grow with the number of plays, and the power of it that they grow with.
GROWS = {
    **dict.fromkeys(["own", "gram", "vector", "pulls", "fresh", "fresh_sum", "whole", "high", "size", "updates"], 1),
    **dict.fromkeys(["clock", "plays", "t", "rounds", "pending"], 1),
    **dict.fromkeys(["estimate", "logs"], 0.5), "inverse": -1, "inverse_root": -0.5, "rest": -np.inf,
}  # fmt: skip
SHORTER = {
    "dist_elimination": {"epsilon": 0.01},
    "robust_oful": {"theta_norm": 2.0},  # on the sphere an estimate is rounded when it is projected
    "median_elimination": {"num_batches": 2},
    "trimmed_elimination": {"num_batches": 2},
}
STORES_ALL = ["huber_ucb", "cr_ucb", "crimed"]  # and refuses such horizons


def grown(state, factor):
    """The state after `factor` times as many plays that were like those it has seen."""

    def of(path, x):
        power = next((GROWS[k.name] for k in reversed(path) if getattr(k, "name", None) in GROWS), 0)
        return np.asarray(x * factor**power).astype(x.dtype) if x.dtype.kind in "fiu" else x

    return jax.tree_util.tree_map_with_path(of, state)


def late_plays(name, dtype, dim=None):
    """Actions of 64 plays of an algorithm whose counts stand at `COUNT`, and its states before and after them."""
    row = catalogue.EVERYTHING[name]
    environment = jb.environments.contextual_linear(num_arms=5, dim=dim) if dim else row.environment()
    if name in catalogue.PER_ARM:  # a shuffle of their order takes most of the time
        environment = environment.remake(shuffle=False)
    arguments = {"horizon": 2**26} | SHORTER.get(name, {})
    algorithm = algorithm_for(partial(row.algorithm, **arguments), environment)
    parts, slots = simulator.parts_of(algorithm, environment, None, None, dtype), min(16, algorithm.schedule[0].slots)
    case = jax.tree.map(lambda x: cast(x, dtype), simulator.case_of(algorithm, environment))
    with jax.enable_x64(dtype == "float64"):
        begin = uncompiled(partial(simulator.begin_without_record, parts))
        offer = uncompiled(lambda case, seed, *args: window.offer(parts, case, seed, slots, *args, None))
        close = uncompiled(partial(simulator.close, parts))
        seed, actions = np.uint32(5), []

        def play(lane, before, plays):
            done = before
            while done < before + plays:
                lane, seen = offer(case, seed, lane, np.int32(done))
                done += int(seen.used)
                actions.append(seen.action[np.broadcast_to(seen.play, len(seen.action))])
                lane = lane if seen.used else close(case, seed, lane._replace(plays=np.int32(done)))
            return lane, done

        lane, plays = play(begin(case, seed), 0, 56)
        lane = lane._replace(algorithm=grown(lane.algorithm, COUNT / plays))
        actions.clear()
        after = play(lane, COUNT, PLAYS)[0]
    return np.concatenate(actions), lane.algorithm, after.algorithm


def kept_sums(state):
    """Every sum in a state of which what rounding leaves out is kept beside it, with that, in float64."""
    if not isinstance(state, tuple):
        return []
    rest = jax.tree.leaves(getattr(state, "rest", ()))
    if len(rest) and not hasattr(state, "mean"):
        return [np.float64(x) + np.float64(low) for x, low in zip(jax.tree.leaves(state), rest, strict=False)]
    return [x for part in state for x in kept_sums(part)]


@pytest.mark.parametrize("name", catalogue.ALGORITHMS)
def test_64_plays_beyond_2_24_are_those_in_float64(subject, name, unless_pinned):
    if name in STORES_ALL:
        with pytest.raises(ValueError, match="horizon = 67108864 must be at most"):
            late_plays(name, "float32")
        return
    are_those_in_float64(name)


@pytest.mark.parametrize("name", others(ABOVE_8, 3))
def test_so_are_those_of_matrices_that_are_arrays(name):
    are_those_in_float64(name, dim=10)


@pytest.mark.parametrize("name", others(catalogue.PER_ARM, 4))
def test_so_are_those_of_one_model_an_arm(name):
    are_those_in_float64(name)


def are_those_in_float64(name, dim=None):
    action, before, after = late_plays(name, "float32", dim)
    exact_action, exact_before, exact_after = late_plays(name, "float64", dim)
    np.testing.assert_array_equal(action, exact_action)
    sums = kept_sums(before) if name in LINEAR else []
    assert bool(sums) == (name in LINEAR)
    exact = jax.tree.leaves(exact_before), jax.tree.leaves(exact_after)
    for x, y, exact_x, exact_y in zip(sums, kept_sums(after), *exact, strict=False):
        assert np.max(np.abs((y - x) - (exact_y - exact_x))) <= 0.01 * np.max(np.abs(exact_y - exact_x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_arm_is_read_as_it_was_written(dtype):
    """Counts exactly, up to 2^31; what rounding left out of a mean to 19 bits."""
    rng = np.random.default_rng(3)
    pulls = np.concatenate([np.arange(1, 5000), rng.integers(1, 2**31, 20_000), [2**31 - 1, 2**24, 2**24 + 1]])
    mean = (rng.normal(size=len(pulls)) * 10.0 ** rng.integers(-20, 20, len(pulls))).astype(dtype)
    mean[:100] = 0
    rest = (mean * np.finfo(dtype).eps * rng.uniform(-0.5, 0.5, len(pulls))).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        arm = arm_means.Arm(mean, rest, pulls.astype(np.int32))
        found = uncompiled(lambda arm: arm_means.unpack_arms(*arm_means.pack_arm(arm)))(arm)
    np.testing.assert_array_equal(found.pulls, pulls)
    np.testing.assert_array_equal(found.mean, mean)
    assert np.all(np.abs(found.rest - rest) <= np.abs(mean) * np.finfo(dtype).eps * 2.0**-19)


def test_the_table_of_sums_is_right():
    """What an algorithm adds up, and whether its program says that float32 does not hold it."""
    text = (Path(__file__).parents[2] / "docs/determinism.md").read_text().split("## Long runs in float32")[1]
    rows = [row for row in text.split("## ")[0].splitlines() if row.startswith("| ")]
    warned = next(row for row in rows if "a sweep warns" in row)
    named = [name for name in a.__all__ if any(f"`{name}`" in row for row in rows)]  # a new one is not looked at yet
    assert len(named) >= 66
    for name in named:
        limited = catalogue.case(name)[0].program.float32_plays is not None
        assert limited == (f"`{name}`" in warned.split(";")[0])


def test_a_mean_of_2_24_and_more_rewards_is_the_exact_one():
    """A tape of failures after 2^24 successes, and the other way round."""
    for first in (1.0, 0.0):
        mean, rest = np.float32(first), np.float32(0)
        for k in range(1, 200):
            inverse = np.float32(1 / (2**24 + k))
            mean, rest = moved_mean(mean, rest, np.float32(1 - first), inverse)
        share = 199 / (2**24 + 199)
        assert abs(float(mean) + float(rest) - (1 - share if first else share)) < 1e-12


def test_statistics_without_noise_keep_what_rounding_leaves_out():
    """64 rewards of 2 after 2^26 of 1: theta = 1 + 64 / (2^26 + 64); a float32 of 1 does not move by 2^-26."""
    made = a.linear_thompson(num_arms=3, dim=2, horizon=2**27)
    draws, params = Draws(np.uint32(0), "alg", np.float32, long=True), jax.tree.map(np.float32, made.params)
    one, none = np.float32(1), np.float32(0)
    step = uncompiled(lambda p, s, x, y: made.program.update(p, s, draws, np.int32(1), (), (x, y), 1)[0])
    state = uncompiled(lambda p: made.program.init(p, draws))(params)
    state = state._replace(inverse=(np.float32(2.0**-26), none, np.float32(2.0**-26)), theta=(one, none))
    for _ in range(64):
        state = step(params, state, (one, none), np.float32(2))
    gained = np.float64(state.theta[0]) - 1 + np.float64(state.rest[1][0])
    assert gained == pytest.approx(64 / (2**26 + 64), rel=1e-3)

"""Every program of the catalogue as a kernel in C, compiled by `cc`, beside the scan: 128 lanes act alike."""

from functools import partial

import jax
import numpy as np
import pytest
from dealt import dealt
from laid_out import Played, in_turn, needs_cc, plan_of

from jaxbandits import algorithms as a
from jaxbandits import catalogue
from jaxbandits import environments as e
from jaxbandits.catalogue import EVERYTHING, SmallSweep
from jaxbandits.kernels.arrays import LARGEST
from jaxbandits.sweeps.plan import plan

pytestmark = [needs_cc, pytest.mark.compiles(60)]
# The least share of lanes that take the same actions, where that is not all of them, and why.
NOT_EQUAL = {
    "kl_ucb": (0.97, "entropies differ in the last bit, as XLA has another logarithm than the C library"),
    **dict.fromkeys(
        ["doubling by momentum", "hvt_linucb", "linear_thompson", "online_ucb by adam"],
        (0.97, "XLA that optimizes little, as in tests, rounds otherwise on some processors; optimized fully, all are"),
    ),
}
# In every run: single plays, full and counted windows, with loops in a play, and large arrays.
ALWAYS = {"ucb1", "exp3", "thompson", "linucb", "batched_exp4", "adap_ucb", "private_batched"}


# Beside the catalogue sizes whose arrays are too large to be held apart.
CASES = EVERYTHING | {
    "ucb1, 100 arms": SmallSweep(a.ucb1, partial(e.bernoulli_arms, means=np.linspace(0.1, 0.9, 100))),
    "linucb, 100 arms": SmallSweep(a.linucb, partial(e.contextual_linear, num_arms=100, dim=5)),
    "a table of losses": SmallSweep(a.exp3, partial(e.loss_table, losses=np.random.default_rng(0).random((400, 3)))),
}


@pytest.mark.parametrize("name", [*dealt(EVERYTHING, 12, always=ALWAYS), *sorted(CASES.keys() - EVERYTHING.keys())])
def test_a_kernel_plays_what_a_cpu_plays(name):
    share, _ = NOT_EQUAL.get(name, (1.0, ""))
    for number, both in enumerate(Played(plan_of(CASES[name])).spans()):
        assert both.actions.mean() >= share, number


def laid_out(algorithm, environment, grid=None, dtype="float32"):
    return plan(
        {"x": algorithm}, environment, horizon=96, seeds=16, points=None, reward_adversary=None, grid=grid,
        message_adversary=None, checkpoints=6, dtype=dtype,
    )  # fmt: skip


@pytest.mark.parametrize(("algorithm", "environment", "grid"), [
    (a.exp3, catalogue.losses, {"learning_rate": [0.01, 0.1, 1.0]}),
    (a.ucb1, partial(e.contextual_linear, num_arms=3, dim=2), {"bonus_scale": [0.5, 1.0]}),  # a state that points share
    (a.adap_ucb, partial(e.bernoulli_arms, means=[0.2, 0.5, 0.8]), {"epsilon": [1.0, 4.0]}),  # lanes come to rest
], ids=["numbers", "state", "windows"])  # fmt: skip
def test_points_have_numbers_of_their_own(algorithm, environment, grid):
    [both] = Played(laid_out(algorithm, environment, grid), (0, 1)).spans()
    assert both.actions.all()
    [alone] = Played(laid_out(algorithm, environment, grid), (1,)).spans()
    for x, y in zip(jax.tree.leaves(both.ours.record), jax.tree.leaves(alone.ours.record), strict=True):
        np.testing.assert_array_equal(x[:, 1], y)


@pytest.mark.parametrize("algorithm", [a.ucb1, partial(a.adap_ucb, epsilon=1.0)], ids=["ucb1", "adap_ucb"])
def test_in_double_precision(algorithm):
    arms = partial(e.gaussian_arms, means=[0.0, 0.5])
    with jax.enable_x64(True):
        [both] = Played(laid_out(algorithm, arms, dtype="float64")).spans(first=2)
    assert both.actions.all()


@pytest.mark.parametrize("largest", [LARGEST, 1], ids=["apart", "in memory"])
def test_full_windows_hold_several_checkpoints(largest):
    """Windows of three plays in batches of seven, the last of them shorter, and checkpoints anywhere in them."""
    played = Played(plan_of(SmallSweep(in_turn(3, 14, length=7), catalogue.arms)))
    played.choices = {kind: choice._replace(largest=largest) for kind, choice in played.choices.items()}
    [both] = played.spans(first=4)
    jax.tree.map(np.testing.assert_array_equal, both.ours, both.wanted)
    assert (both.ours.plays == 96).all() and len(played.group.times) == 8
    np.testing.assert_array_equal(both.ours.record.pulls_at.sum(-1)[0], played.group.times)


@pytest.mark.parametrize("counted", [False, True])
def test_windows_that_must_stay_whole_are_not_cut(counted):
    example = SmallSweep(in_turn(9, 11, length=9, full=not counted, whole=counted), catalogue.arms)
    played = Played(plan_of(example))
    assert [choice.traced.slots for choice in played.choices.values()] == [9]
    [both] = played.spans()
    assert both.actions.all()


def test_of_windows_that_may_be_cut_the_longest_are_taken_that_are_held_apart():
    [(kind, choice)] = Played(plan_of(EVERYTHING["adap_ucb"])).choices.items()
    assert kind[0] >= choice.traced.slots == 8 and choice.form == "written out"

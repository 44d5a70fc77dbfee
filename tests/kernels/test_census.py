"""What a GPU's threads would do and hold, counted of every algorithm of the catalogue without a GPU or a compiler."""

import re
from functools import partial

import numpy as np
import pytest
from laid_out import choices

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.catalogue import ALGORITHMS, OPTIMIZED, Example, experts
from jaxbandits.kernels.census import census_of

ALIVE = r"\d+ numbers alive at once, at most 200"
WORK = r"operations times numbers alive \d+, at most 100000"
COUNTED = "the algorithm decides how long its windows are"
# At most so many operations a play and numbers alive at once; loops and branches that are left; why it is no kernel.
TABLE = {
    "uniform": (96, 13, 0, 0, ""),
    "ucb1": (144, 24, 0, 0, ""),
    "thompson": (1281, 45, 1, 0, ""),
    "gradient_bandit": (233, 21, 0, 0, ""),
    "kl_ucb": (708, 53, 0, 0, ""),
    "moss": (149, 24, 0, 0, ""),
    "ldp_ucb": (244, 24, 0, 0, ""),
    "successive_elimination": (171, 19, 0, 0, ""),
    "exp3": (259, 26, 0, 0, ""),
    "exp3_ix": (238, 20, 0, 0, ""),
    "tsallis_inf": (354, 29, 0, 0, ""),
    "htinf": (360, 30, 0, 0, ""),
    "ftpl": (2811, 360, 0, 0, ALIVE),
    "private_batched": (454, 25, 0, 2, ""),
    "ldp_exp3": (349, 26, 0, 0, ""),
    "bandit_to_experts": (510, 30, 0, 2, ""),
    "exp4": (317, 37, 0, 0, ""),
    "local_exp4": (407, 37, 0, 0, ""),
    "batched_exp4": (628, 48, 0, 1, "windows of 6 plays"),
    "linucb": (972, 59, 0, 0, ""),
    "ldp_linucb": (1497, 57, 0, 0, ""),
    "jdp_linucb": (1668, 155, 0, 0, WORK),
    "shuffle_linucb": (2271, 57, 0, 0, "windows of 7 plays"),
    "linear_thompson": (1618, 49, 0, 0, ""),
    "epsilon_greedy": (1585, 49, 0, 0, "windows of 5 plays"),
    "online_ucb": (2367, 164, 1, 0, WORK),
    "doubling": (1328, 60, 0, 0, ""),
    "bandit_combiner": (1843, 113, 0, 0, WORK),
    "robust_elimination": (604, 154, 0, 1, COUNTED),
    "phased_elimination": (449, 80, 0, 1, COUNTED),
    "bogunovic_elimination": (366, 83, 0, 0, COUNTED),
    "private_elimination": (359, 83, 0, 0, COUNTED),
    "median_elimination": (660, 186, 0, 1, COUNTED),
    "trimmed_elimination": (660, 186, 0, 1, COUNTED),
    "prm_elimination": (1362, 64, 0, 0, COUNTED),
    "isolated_linucb": (7744, 447, 2, 0, "windows of 8 plays"),
    "oracle_linucb": (6066, 199, 2, 0, "windows of 8 plays"),
    "byzantine_ucb": (10377, 685, 4, 0, "windows of 8 plays"),
    "dp_se": (544, 44, 0, 0, COUNTED),
    "adap_ucb": (336, 35, 0, 0, COUNTED),
    "adap_kl_ucb": (1035, 51, 0, 0, COUNTED),
    "dprse": (596, 44, 0, 0, COUNTED),
    "prm_ucb": (836, 33, 0, 0, COUNTED),
    "prm_thompson": (3379, 115, 0, 0, COUNTED),
    "robust_ucb": (2387, 430, 1, 0, ALIVE),
    "huber_ucb": (7457, 916, 1, 0, ALIVE),
    "cr_ucb": (2501, 784, 0, 0, ALIVE),
    "gradient_bandit by adam": (286, 34, 0, 0, ""),
    "online_ucb by adam": (1388, 66, 0, 0, ""),
    "doubling by momentum": (1359, 62, 0, 0, ""),
}
SLACK = 1.03  # other releases of JAX trace a few operations more


@pytest.mark.parametrize("name", TABLE)
def test_what_a_play_does_and_holds(name):
    operations, alive, loops, branches, reason = TABLE[name]
    for _, choice in choices({**ALGORITHMS, **OPTIMIZED}[name]):
        census = choice.census or census_of(choice.window)
        assert census.operations <= SLACK * operations, census
        assert census.alive <= SLACK * alive, census
        assert (census.loops, census.branches) == (loops, branches)
        assert re.fullmatch(reason, choice.reason)


def test_every_algorithm_has_a_row():
    assert set(TABLE) == {*ALGORITHMS, *OPTIMIZED}


arms = partial(e.bernoulli_arms, means=np.linspace(0.1, 0.9, 10))
losses = partial(e.bernoulli_losses, means=np.linspace(0.1, 0.9, 10))
# Instructions a play of the first kernels of these, compiled for an H200.
INSTRUCTIONS = {
    "ucb1": (Example(a.ucb1, arms), 294),
    "exp3": (Example(a.exp3, losses), 345),
    "exp3 mixed": (Example(partial(a.exp3, learning_rate=0.05, mixing=0.1), losses), 453),
    "htinf": (Example(a.htinf, losses), 904),
    "uniform": (ALGORITHMS["uniform"], 108),
    "moss": (ALGORITHMS["moss"], 171),
    "successive_elimination": (ALGORITHMS["successive_elimination"], 195),
    "exp3_ix": (ALGORITHMS["exp3_ix"], 276),
    "ldp_ucb": (ALGORITHMS["ldp_ucb"], 307),
    "ldp_exp3": (ALGORITHMS["ldp_exp3"], 420),
    "tsallis_inf": (ALGORITHMS["tsallis_inf"], 520),
    "kl_ucb": (ALGORITHMS["kl_ucb"], 979),
    "local_exp4": (ALGORITHMS["local_exp4"], 565),
    "linucb": (ALGORITHMS["linucb"], 1088),
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_no_more_operations_than_an_earlier_kernel_had_instructions(name):
    example, instructions = INSTRUCTIONS[name]
    [(_, choice)] = choices(example)
    assert not choice.reason
    assert choice.census.operations <= instructions


def test_what_is_too_long_is_refused():
    """The rule asks for numbers alive, for operations, and for numbers of a case."""
    for arms, reason in ((20, ""), (32, WORK), (64, ALIVE)):
        [(_, choice)] = choices(Example(a.ucb1, partial(e.bernoulli_arms, means=np.linspace(0.1, 0.9, arms))))
        assert re.fullmatch(reason, choice.reason)
    table = Example(a.exp3_ix, partial(e.loss_table, losses=np.full((400, 3), 0.5)))
    [(_, choice)] = choices(table)
    assert choice.window is None and "numbers in a case" in choice.reason


def test_a_conversion_is_counted_with_its_base():
    [(_, alone)] = choices(Example(a.exp4, experts))
    [(_, private)] = choices(Example(partial(a.local_exp4, epsilon=1.0), experts))
    assert private.census.operations > alone.census.operations

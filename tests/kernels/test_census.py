"""What a GPU's threads would do and hold, counted of every algorithm of the catalogue without a GPU or a compiler."""

import re
from functools import partial

import numpy as np
import pytest
from dealt import dealt
from laid_out import choices

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.catalogue import ALGORITHMS, OPTIMIZED, SmallSweep, experts
from jaxbandits.kernels import engine
from jaxbandits.kernels.census import Census

ALIVE = r"\d+ numbers alive at once, at most 200"
LOOP = r"operations times numbers alive \d+ with a loop, at most 126000"
NUMBERS = r"\d+ numbers in a case, at most 1024"  # nothing is counted then
LONG = r"(7 plays of \d+ operations|\d+ operations, at most 5000)"
# At most so many operations a window and numbers alive at once; loops and branches that are left; plays that are
# written out of a window; why it is no kernel. What holds too much for one play is counted with one.
TABLE = {
    "uniform": (94, 13, 0, 0, 1, ""),
    "ucb1": (193, 24, 0, 0, 1, ""),
    "thompson": (1280, 45, 1, 0, 1, ""),
    "gradient_bandit": (276, 29, 0, 0, 1, ""),
    "kl_ucb": (592, 34, 0, 0, 1, ""),
    "moss": (203, 27, 0, 0, 1, ""),
    "ldp_ucb": (297, 24, 0, 0, 1, ""),
    "successive_elimination": (193, 22, 0, 0, 1, ""),
    "exp3": (257, 26, 0, 0, 1, ""),
    "exp3_ix": (245, 21, 0, 0, 1, ""),
    "tsallis_inf": (352, 29, 0, 0, 1, ""),
    "htinf": (358, 30, 0, 0, 1, ""),
    "ftpl": (2809, 38, 0, 0, 1, ""),
    "private_batched": (452, 25, 0, 2, 1, ""),
    "hybrid_tsallis_inf": (620, 37, 0, 0, 1, ""),
    "delayed": (880, 118, 1, 0, 1, ""),
    "ldp_exp3": (347, 26, 0, 0, 1, ""),
    "bandit_to_experts": (506, 30, 0, 2, 1, ""),
    "exp4": (313, 37, 0, 0, 1, ""),
    "local_exp4": (403, 37, 0, 0, 1, ""),
    "batched_exp4": (1947, 58, 0, 1, 6, ""),
    "linucb": (962, 59, 0, 0, 1, ""),
    "ldp_linucb": (1499, 57, 0, 0, 1, ""),
    "jdp_linucb": (1688, 129, 0, 0, 1, ""),
    "shuffle_linucb": (2261, 57, 0, 0, 1, LONG),
    "linear_thompson": (1623, 49, 0, 0, 1, ""),
    "epsilon_greedy": (7587, 169, 0, 0, 5, LONG),
    "online_ucb": (2359, 164, 1, 0, 1, LOOP),
    "doubling": (1321, 60, 0, 0, 1, ""),
    "bandit_combiner": (1864, 117, 0, 0, 1, ""),
    "robust_elimination": (3417, 196, 0, 1, 8, ""),
    "phased_elimination": (2265, 118, 0, 1, 8, ""),
    "bogunovic_elimination": (1623, 121, 0, 0, 8, ""),
    "private_elimination": (1551, 121, 0, 0, 8, ""),
    "median_elimination": (1105, 189, 0, 1, 2, ""),
    "trimmed_elimination": (1105, 189, 0, 1, 2, ""),
    "prm_elimination": (2297, 92, 0, 0, 8, ""),
    "isolated_linucb": (7693, 447, 2, 0, 1, ALIVE),
    "oracle_linucb": (5959, 199, 2, 0, 1, LOOP),
    "byzantine_ucb": (10203, 505, 4, 0, 1, ALIVE),
    "dp_se": (1229, 42, 0, 0, 8, ""),
    "adap_ucb": (1011, 61, 0, 0, 8, ""),
    "dp_klucb": (3000, 100, 0, 0, 8, ""),
    "dp_imed": (3000, 100, 0, 0, 8, ""),
    "lazy_dp_ts": (3000, 100, 1, 0, 1, ""),
    "dp_ts_ucb": (1000, 60, 0, 0, 1, ""),
    "gdp_thompson": (600, 40, 0, 0, 1, ""),
    "local_robust_elimination": (2681, 51, 0, 0, 8, ""),
    "adac_ucb": (1100, 61, 0, 0, 8, ""),
    "adac_gope": (1551, 121, 0, 0, 8, ""),
    "adac_oful": (1280, 78, 1, 0, 1, ""),
    "cw_oful": (1000, 60, 0, 0, 1, ""),
    "hvt_linucb": (1220, 62, 1, 0, 1, ""),
    "robust_oful": (1245, 62, 1, 0, 1, ""),
    "dist_elimination": (2592, 49, 0, 0, 8, ""),
    "stopping_elimination": (1330, 52, 0, 0, 8, ""),
    "adap_kl_ucb": (1377, 55, 0, 0, 8, ""),
    "dprse": (1274, 43, 0, 0, 8, ""),
    "multilayer_elimination": (667, 124, 0, 0, 1, ""),
    "barbar": (2300, 100, 0, 0, 8, ""),
    "prm_ucb": (1499, 61, 0, 0, 8, ""),
    "prm_thompson": (4539, 131, 0, 0, 8, ""),
    "robust_ucb": (2385, 430, 1, 0, 1, ALIVE),
    "huber_ucb": (6960, 915, 1, 0, 1, ALIVE),
    "cr_ucb": (2749, 534, 0, 0, 1, ALIVE),
    "crimed": (0, 0, 0, 0, 1, NUMBERS),
    "gradient_bandit by adam": (299, 38, 0, 0, 1, ""),
    "online_ucb by adam": (1381, 66, 0, 0, 1, ""),
    "doubling by momentum": (1352, 62, 0, 0, 1, ""),
}
SLACK = 1.03  # other releases of JAX trace a few operations more


# Plays of one and of several plays a window, counted and full, with loops, refused for each reason, with sums along
# spans: the longest windows that fit are chosen.
ALWAYS = {
    "ucb1", "exp3", "linucb", "kl_ucb", "dprse", "batched_exp4", "median_elimination", "crimed", "robust_ucb",
}  # fmt: skip


@pytest.mark.compiles(40)  # numbers of the host that tracing converts one by one
@pytest.mark.parametrize("name", dealt(TABLE, 8, always=ALWAYS))
def test_what_a_play_does_and_holds(name):
    operations, alive, loops, branches, plays, reason = TABLE[name]
    for _, choice in choices({**ALGORITHMS, **OPTIMIZED}[name]):
        census = choice.census or Census(0, 0, carried=0, loops=0, branches=0)
        assert census.operations <= SLACK * operations, census
        assert census.alive <= SLACK * alive, census
        assert (census.loops, census.branches) == (loops, branches)
        assert engine.plays_of(choice.window) == plays
        assert re.fullmatch(reason, choice.reason)


def test_rows_are_algorithms_of_the_catalogue():
    assert set(TABLE) <= {*ALGORITHMS, *OPTIMIZED}  # one that has no row yet was not counted yet


arms = partial(e.bernoulli_arms, means=np.linspace(0.1, 0.9, 10))
losses = partial(e.bernoulli_losses, means=np.linspace(0.1, 0.9, 10))
# Instructions a play of the first kernels of these, compiled for an H200, and what the digits of a mean and of a count
# that float32 cannot hold came to since.
DIGITS = 50
INSTRUCTIONS = {
    "ucb1": (SmallSweep(a.ucb1, arms), 294 + DIGITS),
    "exp3": (SmallSweep(a.exp3, losses), 345),
    "exp3 mixed": (SmallSweep(partial(a.exp3, learning_rate=0.05, mixing=0.1), losses), 453),
    "htinf": (SmallSweep(a.htinf, losses), 904),
    "uniform": (ALGORITHMS["uniform"], 108),
    "moss": (ALGORITHMS["moss"], 171 + DIGITS),
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


def test_the_bounds_of_the_rule():
    fits = Census(engine.MOST_OPERATIONS, engine.MOST_ALIVE, carried=9, loops=0, branches=0)
    assert engine.refusal(fits) == ""
    assert engine.refusal(fits._replace(operations=fits.operations + 1)) == "5001 operations, at most 5000"
    assert engine.refusal(fits._replace(alive=fits.alive + 1)) == "201 numbers alive at once, at most 200"


def test_what_is_too_long_is_refused():
    """The rule asks for numbers alive, for operations, and for numbers of a case."""
    few = r"\d+ numbers alive at once, at most 200"
    for arms, reason in ((20, ""), (32, ""), (64, ""), (2000, few)):
        [(_, choice)] = choices(SmallSweep(a.ucb1, partial(e.bernoulli_arms, means=np.linspace(0.1, 0.9, arms))))
        assert re.fullmatch(reason, choice.reason)
    table = SmallSweep(a.exp3_ix, partial(e.loss_table, losses=np.full((400, 3), 0.5)))
    [(_, choice)] = choices(table)
    assert choice.window is None and "numbers in a case" in choice.reason


def test_a_conversion_is_counted_with_its_base():
    [(_, alone)] = choices(SmallSweep(a.exp4, experts))
    [(_, private)] = choices(SmallSweep(partial(a.local_exp4, epsilon=1.0), experts))
    assert private.census.operations > alone.census.operations

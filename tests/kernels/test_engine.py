"""A stretch of plays as one kernel, interpreted, against the plays that a CPU makes."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import settings
from conftest import compiled_with
from dealt import dealt
from laid_out import ULPS, near, plan_of

from jaxbandits import algorithms, catalogue
from jaxbandits.kernels import engine
from jaxbandits.spans import segment
from jaxbandits.sweeps.compilation.compiled import compiled
from jaxbandits.sweeps.plan import host_case, plan, stacked

SEEDS = 32
KIND = (1, True, False)
SMALL = (
    "bandit_combiner", "classification", "contextual_linear", "exp3", "exp4", "gradient_bandit", "jdp_linucb", "kl_ucb",
    "ldp_ucb", "linucb", "private_batched", "thompson", "ucb1",
)  # fmt: skip
# Loops, floats of contexts, windows that end in batches; UCB1, EXP3 and counted windows are in every run elsewhere.
ALWAYS = {"linucb", "thompson", "private_batched"}
# Two payoffs often give two arms the same index, and the last bit decides: both forms are compiled as a user has them.
TIES = {"ucb1"}
# Compilers round the sums of these in another way, by multiplying and adding in one operation: later arms may differ.
ROUNDED = {"bandit_combiner", "contextual_linear", "exp4", "gradient_bandit", "jdp_linucb", "linucb"}
SAME_ACTIONS = 0.9  # the least share of lanes of these that play the same arms at every checkpoint
# Here noise is much larger than what it hides, so that its rounding moves the estimate.
NOISY, SAME_NOISY, ULPS_NOISY = {"bandit_combiner", "jdp_linucb"}, 0.8, 64


def both(laid_out, cells, first, count, options=None):
    """The lanes after some windows: by the kernel, and as a CPU plays them. options: of the kernel's compiler."""
    group = laid_out.groups[0]
    host, marks = stacked([host_case(laid_out.cells[c]) for c in cells], laid_out.dtype)
    marked, treedef = jax.tree.flatten(marks)
    run = compiled(group.parts, tuple(marked), treedef, len(cells), len(group.times))
    device, seeds = jax.devices()[0], np.arange(SEEDS, dtype=np.uint32)
    case, times = jax.device_put((host, group.times.astype(np.int32)), device)
    [span] = group.schedule

    def played(lane, number, windows):
        where = segment(span, 0, number, windows, group.times)
        return run("advance", device, case, seeds, lane, times, where, kind=KIND)

    start = run("begin", device, case, seeds)
    if first:
        start = played(start, 0, first)
    kept = jax.tree.map(np.array, start)  # `advance` takes over the memory of its lanes
    one = engine.choice(group.parts, host_case(laid_out.cells[cells[0]]), len(group.times), KIND).window
    where = segment(span, 0, first, count, group.times)
    ours = jax.jit(lambda lane: engine.advance(
        one, tuple(marked), case, jnp.asarray(seeds), lane, times, where, interpret=True
    ), compiler_options=options)(kept)  # fmt: skip
    return ours, played(start, first, count)


@pytest.mark.compiles(30)  # with the numbers that a data set, or the first case of a run, converts one by one
@pytest.mark.parametrize("name", dealt(SMALL, 8, always=ALWAYS))
def test_a_kernel_plays_what_a_cpu_plays(name):
    options = settings.FULLY_OPTIMIZED if name in TIES else None
    with compiled_with(options) if options else contextlib.nullcontext():
        ours, wanted = jax.tree.map(np.asarray, both(plan_of(catalogue.EVERYTHING[name]), [0], 13, 60, options))
    if name not in ROUNDED:
        jax.tree.map(np.testing.assert_array_equal, ours, wanted)
        return
    same = np.all([near(a, b) for a, b in zip(*map(jax.tree.leaves, (ours.record, wanted.record)), strict=True)], 0)
    share, ulps = (SAME_NOISY, ULPS_NOISY) if name in NOISY else (SAME_ACTIONS, ULPS)
    assert same.mean() >= share
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(wanted), strict=True):
        assert np.all(near(a, b, ulps)[same])


def test_points_have_numbers_of_their_own():
    laid_out = plan(
        {"x": algorithms.exp3}, catalogue.losses, horizon=96, seeds=SEEDS, points=None, reward_adversary=None,
        grid={"learning_rate": [0.01, 0.1, 1.0]}, message_adversary=None, checkpoints=6, dtype="float32",
    )  # fmt: skip
    ours, wanted = both(laid_out, [0, 1, 2], 0, 96)
    jax.tree.map(np.testing.assert_array_equal, ours, wanted)

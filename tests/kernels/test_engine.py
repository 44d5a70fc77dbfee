"""A stretch of plays as one kernel, interpreted, against the plays that a CPU makes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from laid_out import plan_of

from jaxbandits import algorithms, catalogue
from jaxbandits.kernels import engine
from jaxbandits.spans import segment
from jaxbandits.sweeps.compilation.compiled import compiled
from jaxbandits.sweeps.plan import host_case, plan, stacked

SEEDS = 32
KIND = (1, True, False)
SMALL = (
    "classification", "contextual_linear", "exp3", "exp4", "gradient_bandit", "kl_ucb", "ldp_ucb", "linucb",
    "private_batched", "thompson", "ucb1",
)  # fmt: skip
# Compilers round the sums of these in another way, by multiplying and adding in one operation: later arms may differ.
ROUNDED = {"contextual_linear", "exp4", "gradient_bandit", "linucb"}
SAME_ACTIONS = 0.9  # the least share of lanes of these that play the same arms at every checkpoint
ULPS = 8  # in those lanes, by how many units in the last place of the largest number others may differ


def both(laid_out, cells, first, count):
    """The lanes after some windows: by the kernel, and as a CPU plays them."""
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
    kept = jax.tree.map(jnp.array, start)  # `advance` takes over the memory of its lanes
    one = engine.choice(group.parts, host_case(laid_out.cells[cells[0]]), len(group.times), KIND).window
    where = segment(span, 0, first, count, group.times)
    ours = jax.jit(lambda lane: engine.advance(
        one, tuple(marked), case, jnp.asarray(seeds), lane, times, where, interpret=True
    ))(kept)  # fmt: skip
    return ours, played(start, first, count)


def near(ours, wanted):
    """In which lanes [S] arrays [S, M, ...] are the same, but for a few units in the last place."""
    rest = tuple(range(1, wanted.ndim))
    if wanted.dtype.kind != "f":
        return np.all(ours == wanted, rest)
    # at least 1: what a sum leaves behind is compared as a part of it
    largest = np.max(np.abs(wanted), rest, keepdims=True, initial=1)
    return np.all(np.abs(ours - wanted) <= ULPS * np.spacing(np.broadcast_to(largest, wanted.shape)), rest)


@pytest.mark.parametrize("name", SMALL)
def test_a_kernel_plays_what_a_cpu_plays(name):
    ours, wanted = jax.tree.map(np.asarray, both(plan_of(catalogue.EVERYTHING[name]), [0], 13, 60))
    if name not in ROUNDED:
        jax.tree.map(np.testing.assert_array_equal, ours, wanted)
        return
    same = np.all([near(a, b) for a, b in zip(*map(jax.tree.leaves, (ours.record, wanted.record)), strict=True)], 0)
    assert same.mean() >= SAME_ACTIONS
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(wanted), strict=True):
        assert np.all(near(a, b)[same])


def test_points_have_numbers_of_their_own():
    laid_out = plan(
        {"x": algorithms.exp3}, catalogue.losses, horizon=96, seeds=SEEDS, points=None, reward_adversary=None,
        grid={"learning_rate": [0.01, 0.1, 1.0]}, message_adversary=None, checkpoints=6, dtype="float32",
    )  # fmt: skip
    ours, wanted = both(laid_out, [0, 1, 2], 0, 96)
    jax.tree.map(np.testing.assert_array_equal, ours, wanted)

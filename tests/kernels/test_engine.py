"""A stretch of plays as one kernel, interpreted, against the plays that a CPU makes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import catalogue
from jaxbandits.checking.subject import Subject
from jaxbandits.kernels import engine
from jaxbandits.spans import segment
from jaxbandits.sweeps.compilation.compiled import compiled
from jaxbandits.sweeps.plan import host_case, plan, stacked

SEEDS, BLOCK = 32, 16
# Their sums are rounded differently where a compiler multiplies and adds in one operation: arms may differ afterwards.
ROUNDED = {"gradient_bandit", "htinf", "tsallis_inf", "exp4", "linucb"}
SMALL = (
    "exp3", "exp3_ix", "exp4", "gradient_bandit", "htinf", "kl_ucb", "ldp_exp3", "ldp_ucb", "linucb", "moss",
    "private_batched", "successive_elimination", "thompson", "tsallis_inf", "ucb1", "uniform",
)  # fmt: skip


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
        return run("advance", device, case, seeds, lane, times, where, kind=(1, True, False))

    start = run("begin", device, case, seeds)
    if first:
        start = played(start, 0, first)
    kept = jax.tree.map(jnp.array, start)  # `advance` takes over the memory of its lanes
    one = engine.kernel_of(group.parts, host_case(laid_out.cells[cells[0]]), len(group.times))
    assert one is not None
    where = segment(span, 0, first, count, group.times)
    ours = jax.jit(lambda lane: engine.advance(
        one, tuple(marked), case, jnp.asarray(seeds), lane, times, where, block=BLOCK, platform="cpu", interpret=True
    ))(kept)  # fmt: skip
    return ours, played(start, first, count)


@pytest.mark.parametrize("name", SMALL)
def test_a_kernel_plays_what_a_cpu_plays(name):
    example = catalogue.ALGORITHMS[name]
    laid_out = Subject(example.algorithm, example.environment, example.reward_adversary, example.message_adversary).plan
    ours, wanted = both(laid_out, [0], 13, 60)
    if name in ROUNDED:
        np.testing.assert_array_equal(ours.plays, wanted.plays)
        same = np.all(np.asarray(ours.record.pulls) == np.asarray(wanted.record.pulls), -1)
        assert same.mean() > 0.9
    else:
        jax.tree.map(np.testing.assert_array_equal, ours, wanted)


def test_points_have_numbers_of_their_own():
    example = catalogue.ALGORITHMS["exp3"]
    laid_out = plan(
        {"x": example.algorithm}, example.environment, horizon=96, seeds=SEEDS, points=None, reward_adversary=None,
        grid={"learning_rate": [0.01, 0.1, 1.0]}, message_adversary=None, checkpoints=6, dtype="float32",
    )  # fmt: skip
    ours, wanted = both(laid_out, [0, 1, 2], 0, 96)
    jax.tree.map(np.testing.assert_array_equal, ours, wanted)


@pytest.mark.parametrize("name", SMALL)
def test_it_lowers_for_a_gpu(name):
    """No device is needed to see that every operation has a form there."""
    example = catalogue.ALGORITHMS[name]
    laid_out = Subject(example.algorithm, example.environment, example.reward_adversary, example.message_adversary).plan
    group = laid_out.groups[0]
    host, marks = stacked([host_case(laid_out.cells[0])], laid_out.dtype)
    marked, treedef = jax.tree.flatten(marks)
    run = compiled(group.parts, tuple(marked), treedef, 1, len(group.times))
    lane = jax.eval_shape(run.functions["begin"], host, jnp.arange(128, dtype=jnp.uint32))
    one = engine.kernel_of(group.parts, host_case(laid_out.cells[0]), len(group.times))
    where = segment(group.schedule[0], 0, 0, 60, group.times)

    def advance(case, lane):
        seeds = jnp.arange(128, dtype=jnp.uint32)
        return engine.advance(one, tuple(marked), case, seeds, lane, jnp.asarray(group.times, jnp.int32), where)

    text = jax.jit(advance).trace(host, lane).lower(lowering_platforms=("cuda",)).as_text()
    assert "triton" in text and "while" not in text

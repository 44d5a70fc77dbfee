"""Estimators and a learner that are kernels over lanes on a GPU, at the sizes that gpu.py and gpu_static.py show."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from jaxbandits.estimators.geometric_median import _solver
from jaxbandits.estimators.spectral_filter import block_size, filter_blocks
from jaxbandits.estimators.weiszfeld import _warm, warm_median, warm_start
from jaxbandits.kernels import filter_kernel, over_lanes
from jaxbandits.kernels.fitting import Written
from jaxbandits.learners.maler import _kernel, num_pairs
from jaxbandits.random import Draws

REPORTS, ARMS, DIM, OUTLIERS = 1_000, 6, 3, 0.02  # of the filter
POINTS = 5
HORIZON = 5_000  # of Maler


class Case(NamedTuple):
    """One function of one lane."""

    title: str
    function: Callable[..., Any]
    arrays: Callable[[int], tuple[Any, ...]]  # its arguments for some number of lanes, which lead
    kernel: Callable[[], Written]


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def normal(lanes: int, *shape: int) -> Any:
    return np.random.default_rng(0).standard_normal((lanes, *shape), np.float32)


# ---- the filter: reports of six arms in blocks, some of them ten standard deviations off


def filtered(seed: Any, values: Any, directions: Any) -> Any:
    size = values.shape[-1]
    arm = jnp.minimum(jnp.arange(len(values), dtype=jnp.int32) * ARMS // len(values), ARMS - 1)
    present = jnp.arange(values.size).reshape(-1, size) < REPORTS
    return filter_blocks(Draws(seed, "filter"), 1, values, present, arm, directions, 1.0)


def batches(lanes: int) -> tuple[Any, ...]:
    size = block_size(REPORTS)
    values = normal(lanes, -(-REPORTS // size), size)
    values[np.random.default_rng(1).random(values.shape, np.float32) < OUTLIERS] = 10
    directions = normal(ARMS, DIM)
    directions *= np.sqrt(DIM) / np.linalg.norm(directions, axis=1, keepdims=True)
    return np.arange(lanes, dtype=np.uint32), values, np.broadcast_to(directions, (lanes, ARMS, DIM))


def filter_written() -> Written:
    _, values, directions = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), batches(1))
    blocks, number = jax.ShapeDtypeStruct(values.shape[:1], jnp.int32), jax.ShapeDtypeStruct((), jnp.int32)
    present = jax.ShapeDtypeStruct(values.shape, bool)

    def one(seed: Any, *args: Any) -> Any:
        return filter_kernel.one(0, Draws(seed, "filter"), *args)

    seed = jax.ShapeDtypeStruct((), jnp.uint32)
    return written(over_lanes.one_lane(one, seed, number, values, present, blocks, directions, floats(), number))


# ---- medians and Maler


def median_written() -> Written:
    solve: Any = _solver(64, False, False)
    arrays = floats(POINTS, DIM), floats(POINTS), floats(DIM), floats()
    return written(over_lanes.one_lane(solve.__wrapped__, *arrays))


def warm_written() -> Written:
    present = jax.ShapeDtypeStruct((POINTS,), bool)
    return written(over_lanes.one_lane(_warm(8), floats(POINTS, 9), present, floats(POINTS), floats(9)))


def learner() -> Any:
    return jb.learners.maler(dim=DIM, horizon=HORIZON, theta_bound=1.0, gradient_bound=4.0)


def maler_written() -> Written:
    return written(over_lanes.one_lane(_kernel(DIM, num_pairs(HORIZON)), jax.eval_shape(learner().init), floats(DIM)))


def states(lanes: int) -> tuple[Any, ...]:
    one = jax.tree.map(np.asarray, learner().init())
    return jax.tree.map(lambda x: np.broadcast_to(x, (lanes, *x.shape)), one), normal(lanes, DIM)


def written(one: over_lanes.OneLane) -> Written:
    """The kernel of what is one."""
    if one.kernel is None:
        raise ValueError(f"no kernel: {one.reason}")
    return one.kernel


CASES = {
    "spectral_filter": Case(
        f"spectral filter, {REPORTS:,} reports, {ARMS} arms, d = {DIM}", filtered, batches,
        filter_written,
    ),
    "geometric_median": Case(
        f"geometric median, {POINTS} points in {DIM} dimensions, 64 steps and certificate",
        partial(jb.estimators.geometric_median, iterations=64), lambda lanes: (normal(lanes, POINTS, DIM),),
        median_written,
    ),
    "warm_median": Case(
        f"the median of `byzantine_ucb`, {POINTS} points in 9 dimensions, 8 steps",
        lambda x: warm_median(x, warm_start(POINTS, 9, x.dtype)), lambda lanes: (normal(lanes, POINTS, 9),),
        warm_written,
    ),
    "maler": Case(
        f"an update of Maler, d = {DIM}, T = {HORIZON:,}", lambda state, g: learner().update(state, g), states,
        maler_written,
    ),
}  # fmt: skip

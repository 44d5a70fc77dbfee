"""Estimators and a learner that are kernels over lanes on a GPU, at the sizes that gpu.py and gpu_static.py show."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from jaxbandits.estimators.geometric_median import _solver, _warm, warm_median, warm_start
from jaxbandits.estimators.spectral_filter import block_size, filter_blocks
from jaxbandits.kernels import filter_kernel, over_lanes
from jaxbandits.kernels.schedule import Fitted
from jaxbandits.learners.maler import _kernel, num_pairs
from jaxbandits.random import Draws

REPORTS, OUTLIERS = 1_000, 0.02  # of the filter
HORIZON = 5_000  # of Maler


class Case(NamedTuple):
    """One function of one lane."""

    title: str
    function: Callable[..., Any]
    arrays: Callable[[int], tuple[Any, ...]]  # its arguments for some number of lanes, which lead
    kernel: Callable[[], Fitted]


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def normal(lanes: int, *shape: int) -> Any:
    return np.random.default_rng(0).standard_normal((lanes, *shape), np.float32)


def spectral_filter(dim: int = 3) -> Case:
    """Reports of twice as many arms as there are features, in blocks, some of them ten standard deviations off."""
    arms = 2 * dim

    def filtered(seed: Any, values: Any, directions: Any) -> Any:
        size = values.shape[-1]
        arm = jnp.minimum(jnp.arange(len(values), dtype=jnp.int32) * arms // len(values), arms - 1)
        present = jnp.arange(values.size).reshape(-1, size) < REPORTS
        return filter_blocks(Draws(seed, "filter"), 1, values, present, arm, directions, 1.0)

    def batches(lanes: int) -> tuple[Any, ...]:
        size = block_size(REPORTS)
        values = normal(lanes, -(-REPORTS // size), size)
        values[np.random.default_rng(1).random(values.shape, np.float32) < OUTLIERS] = 10
        directions = normal(arms, dim)
        directions *= np.sqrt(dim) / np.linalg.norm(directions, axis=1, keepdims=True)
        return np.arange(lanes, dtype=np.uint32), values, np.broadcast_to(directions, (lanes, arms, dim))

    def one(seed: Any, *args: Any) -> Any:
        return filter_kernel.one_lane_filter(0)(Draws(seed, "filter"), *args)

    def kernel() -> Fitted:
        _, values, directions = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), batches(1))
        blocks, number = jax.ShapeDtypeStruct(values.shape[:1], jnp.int32), jax.ShapeDtypeStruct((), jnp.int32)
        present, seed = jax.ShapeDtypeStruct(values.shape, bool), jax.ShapeDtypeStruct((), jnp.uint32)
        return over_lanes.one_lane(one, seed, number, values, present, blocks, directions, floats(), number)

    return Case(f"spectral filter, {REPORTS:,} reports, {arms} arms, d = {dim}", filtered, batches, kernel)


def geometric_median(points: int = 5, dim: int = 3) -> Case:
    solve: Any = _solver(64, False, False)
    return Case(
        f"geometric median, {points} points in {dim} dimensions, 64 steps and certificate",
        partial(jb.estimators.geometric_median, iterations=64), lambda lanes: (normal(lanes, points, dim),),
        lambda: over_lanes.one_lane(
            solve.__wrapped__, floats(points, dim), floats(points), floats(dim), floats()
        ),
    )  # fmt: skip


def median_of_byzantine_ucb(points: int = 5, dim: int = 9) -> Case:
    present = jax.ShapeDtypeStruct((points,), bool)
    return Case(
        f"the median of `byzantine_ucb`, {points} points in {dim} dimensions, 8 steps",
        lambda x: warm_median(x, warm_start(points, dim, x.dtype)), lambda lanes: (normal(lanes, points, dim),),
        lambda: over_lanes.one_lane(_warm(8), floats(points, dim), present, floats(points), floats(dim)),
    )  # fmt: skip


def maler(dim: int = 3) -> Case:
    def learner() -> Any:  # where a program is traced, its constants are too
        return jb.learners.maler(dim=dim, horizon=HORIZON, theta_bound=1.0, gradient_bound=4.0)

    def states(lanes: int) -> tuple[Any, ...]:
        one = jax.tree.map(np.asarray, learner().init())
        return jax.tree.map(lambda x: np.broadcast_to(x, (lanes, *x.shape)), one), normal(lanes, dim)

    return Case(
        f"an update of Maler, d = {dim}, T = {HORIZON:,}", lambda state, g: learner().update(state, g), states,
        lambda: over_lanes.one_lane(_kernel(dim, num_pairs(HORIZON)), jax.eval_shape(learner().init), floats(dim)),
    )  # fmt: skip


# By name, with their sizes: `geometric_median-10-4` is ten points in four dimensions.
CASES: dict[str, Callable[..., Case]] = {
    "spectral_filter": spectral_filter, "geometric_median": geometric_median, "warm_median": median_of_byzantine_ucb,
    "maler": maler,
}  # fmt: skip

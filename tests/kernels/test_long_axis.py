"""An axis across the threads of a warp: one-lane functions, and a kernel of many arms, against the usual form."""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import settings
from conftest import compiled_with
from dealt import others
from jax import lax
from laid_out import choices, near, plan_of

import jaxbandits as jb
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.catalogue import SmallSweep
from jaxbandits.kernels import engine
from jaxbandits.kernels.apart import Apart, Unsupported
from jaxbandits.kernels.elements import filled
from jaxbandits.kernels.forms import absent_gpu, forced
from jaxbandits.kernels.long_axis import LongAxis
from jaxbandits.numerics import argmax, fixed_cumsum, fixed_sum
from jaxbandits.spans import segment
from jaxbandits.sweeps.compilation.compiled import compiled
from jaxbandits.sweeps.plan import host_case, stacked

LANES, LENGTH = 4, 37
NAN, INF = np.nan, np.inf
AXIS = LongAxis(LENGTH)


def along(x):
    """An array [LANES, ...] as elements: [LANES, n] along the long axis, [LANES, 1] where there is none.

    Nothing may depend on what the axis is filled up with.
    """
    outside = {"f": NAN, "b": True}.get(np.dtype(x.dtype).kind, 99)
    axes = [d for d, n in enumerate(x.shape) if n == LENGTH]

    def element(index):
        row = x[(slice(None), *(slice(None) if d + 1 in axes else i for d, i in enumerate(index)))]
        return jnp.pad(row, ((0, 0), (0, AXIS.padded - LENGTH)), constant_values=outside) if axes else row[:, None]

    return filled(AXIS.held(x.shape[1:]), element)


def by_threads(function, *arrays):
    """The function of every lane, with the long axis in one element, to be compiled: it takes the arrays."""
    traced = jax.make_jaxpr(function)(*(x[0] for x in arrays))

    def on_block(*arrays):
        found = []
        for x, out in zip(Apart(LANES, long=AXIS).closed(traced, map(along, arrays)), traced.out_avals, strict=True):
            rows = [jnp.broadcast_to(jnp.asarray(each), (LANES, AXIS.padded)) for each in x.reshape(-1)]
            whole = jnp.stack(rows, 1).reshape(LANES, *x.shape, AXIS.padded)
            axes = [d for d, n in enumerate(out.shape) if n == LENGTH]
            whole = jnp.moveaxis(whole, -1, axes[0] + 1)[..., :] if axes else whole[..., 0]
            whole = jnp.squeeze(whole, axes[0] + 2) if axes else whole
            found.append(lax.slice_in_dim(whole, 0, LENGTH, axis=axes[0] + 1) if axes else whole)
        return found

    return on_block


def same(*cases):
    """Both forms of every (function, arrays...) agree, in one program."""
    blocks = [(by_threads(*case), jax.vmap(case[0])) for case in cases]
    program = jax.jit(lambda given: [(ours(*x), wanted(*x)) for (ours, wanted), x in zip(blocks, given, strict=True)])
    for number, (ours, wanted) in enumerate(program([arrays for _, *arrays in cases])):
        for x, y in zip(ours, jax.tree.leaves(wanted), strict=True):  # sums are taken in another order
            np.testing.assert_allclose(x, y, rtol=2e-6, atol=2e-6, err_msg=f"case {number}")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=(LANES, *shape)).astype(np.float32)


def places(low=0, high=LENGTH, seed=1):
    return np.random.default_rng(seed).integers(low, high, size=LANES).astype(np.int32)


SPECIAL = np.stack([np.full(LENGTH, 2.0)] * LANES).astype(np.float32)
SPECIAL[0, 5], SPECIAL[1, [7, 9]], SPECIAL[2, [3, 30]], SPECIAL[3, 36] = NAN, (INF, NAN), (-INF, -INF), 3.0


OPERATIONS = [
    lambda x: (x.max(0), x.min(0), x.sum(0), x.max(), x.min(), x.sum()),
    lambda x: (jnp.argmax(x, 0), jnp.argmin(x[:, 1])),
    lambda x: ((x > 1).any(0), (x > -9).all(0), (x > 0).sum(0)),
    lambda x: jnp.arange(LENGTH, dtype=jnp.float32) * 2 + x[:, 0],
    lambda x: jnp.where(jnp.arange(LENGTH)[:, None] % 3 == 0, x, -x),
    lambda x: jnp.stack([x[:, 0], x[:, 2]], axis=1) * x[:, 1:],
    lambda x: jnp.concatenate([x, x[:, :1]], axis=1).T,
    lambda x: x - x.mean(0)[None],
    lambda x: (x[4], x[-1:, 1], x[:1].sum()),
    lambda x: x @ x[0],
    lambda x: (jnp.cumsum(x, 0), fixed_sum(x, axis=0), fixed_sum(x[:, 1])),
    lambda x: fixed_cumsum(x.T),
    lambda x: jax.vmap(fixed_cumsum, in_axes=1, out_axes=1)(x.T),
    lambda x: jax.vmap(lambda y: lax.while_loop(lambda z: z < y, lambda z: z + 0.5, -3.0))(x[:, 0]),
]  # fmt: skip


def test_operations():
    same(*((function, numbers(LENGTH, 3)) for function in OPERATIONS))


def test_nan_and_equals_go_where_jax_sends_them():
    same((lambda x: (jnp.argmax(x), jnp.argmin(x), x.max(), x.min()), SPECIAL))


def test_reading_at_a_place():
    cases = [
        (lambda x, i: lax.dynamic_index_in_dim(x, i, 0), numbers(LENGTH), places(-9, 60)),
        (lambda x, i: jnp.take_along_axis(x, i[None, None], axis=1)[:, 0], numbers(1, LENGTH), places()),
    ]
    for mode, at in (("clip", places(0, 60)), ("fill", places(0, 60)), ("promise_in_bounds", places())):
        cases += [
            (lambda x, i, mode=mode: x.at[i].get(mode=mode), numbers(LENGTH), at),
            (lambda x, i, mode=mode: x.at[i].get(mode=mode), numbers(LENGTH, 2), at),
            (lambda x, i, mode=mode: x.at[1, i].get(mode=mode), numbers(3, LENGTH), at),
        ]
    same(*cases)


def test_writing_at_a_place():
    same(
        (lambda x, i: (x.at[i].set(7.0), x.at[i].add(x[3])), numbers(LENGTH), places(0, 60)),
        (lambda x, i: x.at[i].set(jnp.array([1.0, 2.0])), numbers(LENGTH, 2), places()),
    )


def test_a_loop_carries_the_axis():
    def function(x, n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + c[1].max()), (jnp.int32(0), x))[1]

    same((function, numbers(LENGTH), places(0, 5)))


@pytest.mark.parametrize("function", [
    lambda x: lax.cumsum(x, reverse=True), lax.cummax, jnp.sort,
    lambda x: x[3:9], lambda x: x[::-1], lambda x: x.reshape(-1)[jnp.argsort(x)],
    lambda x: jnp.concatenate([x, x]), lambda x: x @ x, lambda x: x.prod(),
    lambda x: x * np.random.default_rng(0).normal(size=LENGTH), lambda x: jnp.stack(list(x[:, None]), 0),
    lambda x: x[:, None] * x[None], lambda x: jnp.repeat(x[0], LENGTH + 2)[2:],
    lambda x: lax.dynamic_slice(jnp.repeat(x[0], 80), (jnp.int32(x[1]),), (LENGTH,)),
    lambda x: lax.dynamic_update_slice(jnp.repeat(x[0], 80), x, (jnp.int32(x[1]),)),
    lambda x: jnp.repeat(x[0], 80).at[2 : 2 + LENGTH].set(x), lambda x: x.at[3:9].set(1.0),
    lambda x: jnp.repeat(x[0], 2 * LENGTH)[::2], lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x),
    lambda x: jnp.stack([x[0]] * LENGTH),
])  # fmt: skip
def test_what_is_not_taken_apart_is_named(function):
    with pytest.raises(Unsupported, match=f"{LENGTH}"):
        jax.eval_shape(by_threads(function, numbers(LENGTH)), numbers(LENGTH))


# ---- many arms as a kernel

MEANS = np.linspace(0.1, 0.9, 40)
ARMS = partial(e.bernoulli_arms, means=MEANS)
LOSSES = partial(e.bernoulli_losses, means=MEANS)
MANY = SmallSweep(a.linucb, partial(e.contextual_linear, num_arms=40, dim=3))
UNTIL_STOPPED = SmallSweep(partial(a.adap_ucb, epsilon=1.0), ARMS)
CARRIED = {
    "single plays": SmallSweep(a.ucb1, ARMS), "running sums": SmallSweep(a.exp3, LOSSES),
    "windows that the algorithm ends": UNTIL_STOPPED,
}  # fmt: skip


def laid_out_lanes(seeds, example=MANY):
    laid_out = plan_of(example)
    group = laid_out.groups[0]
    host, marks = stacked([host_case(laid_out.cells[0])], laid_out.dtype)
    marked, treedef = jax.tree.flatten(marks)
    run = compiled(group.parts, tuple(marked), treedef, 1, len(group.times))
    span = group.schedule[0]
    kind = span.slots, span.full, span.whole
    window = engine.choice(group.parts, host_case(laid_out.cells[0]), len(group.times), kind).window
    return group, run, tuple(marked), host, np.arange(seeds, dtype=np.uint32), (kind, window)


@pytest.mark.dealt(4)
def test_many_arms_play_as_on_a_cpu():
    """Normals far out are rounded otherwise where less is optimized, and contexts with them."""
    with compiled_with(settings.FULLY_OPTIMIZED):
        plays_as_on_a_cpu()


def plays_as_on_a_cpu():
    group, run, marks, host, seeds, (_, window) = laid_out_lanes(16)
    device = jax.devices()[0]
    case, times = jax.device_put((host, group.times.astype(np.int32)), device)
    lane = run("begin", device, case, seeds)
    where = segment(group.schedule[0], 0, 0, 20, group.times)
    advance = partial(engine.advance, window, marks, interpret=True)
    ours = jax.jit(advance, compiler_options=settings.FULLY_OPTIMIZED)(
        case, seeds, jax.tree.map(np.array, lane), times, where
    )
    wanted = run("advance", device, case, seeds, lane, times, where, kind=(1, True, False))
    ours, wanted = jax.tree.map(np.asarray, (ours, wanted))
    same_plays = np.all(
        [near(x, y) for x, y in zip(*map(jax.tree.leaves, (ours.record, wanted.record)), strict=True)], 0
    )
    assert same_plays.mean() >= 0.9
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(wanted), strict=True):
        assert np.all(near(x, y)[same_plays])


CARRIED_ALONG = [
    (a.exp3, LOSSES), (partial(a.adap_ucb, epsilon=1.0), ARMS), (a.ucb1, ARMS),
    (partial(a.private_batched, epsilon=1.0), LOSSES),
]  # fmt: skip


@pytest.mark.compiles(24)  # two sweeps of three programs, with the small ones that lay out their chunks
@pytest.mark.parametrize(("algorithm", "environment"), [CARRIED_ALONG[0], *others(CARRIED_ALONG[1:], 4)])
def test_what_is_carried_for_each_of_many_arms_is_that_of_a_cpu(algorithm, environment):
    """With arms of the case, of the state and of the record, over two points and some checkpoints."""
    points = [{"environment.means": MEANS}, {"environment.means": MEANS[::-1]}]
    if algorithm is a.exp3:  # points share the means
        points = [{"learning_rate": 0.05}, {"learning_rate": 0.2}]
    options = {"horizon": 150, "seeds": 6, "checkpoints": 5, "points": points, "progress": False}
    assert [x.reason for _, x in choices(SmallSweep(algorithm, environment))] == [""]
    plain = jb.sweep(algorithm, environment, **options)
    with forced("interpreted"), warnings.catch_warnings():
        warnings.filterwarnings("error", "no kernel could be compiled")
        ours = jb.sweep(algorithm, environment, **options)
    assert np.mean(ours.pulls.values == plain.pulls.values) > 0.95
    np.testing.assert_array_equal(ours.pulls.sum("arm"), plain.pulls.sum("arm"))
    played_alike = (ours.pulls == plain.pulls).all("arm").values
    np.testing.assert_allclose(ours.regret.values[played_alike], plain.regret.values[played_alike], rtol=1e-5)


@pytest.mark.compiles(24)
def test_many_arms_in_double_precision():
    options = {"horizon": 60, "seeds": 4, "dtype": "float64", "progress": False}
    plain = jb.sweep(UNTIL_STOPPED.algorithm, ARMS, **options)
    with forced("interpreted"), warnings.catch_warnings():
        warnings.filterwarnings("error", "no kernel could be compiled")
        ours = jb.sweep(UNTIL_STOPPED.algorithm, ARMS, **options)
    np.testing.assert_array_equal(ours.regret, plain.regret)


def test_truth_values_of_many_arms_have_a_first_one():
    marks = np.zeros((3, 40), bool)
    marks[0, 7:9], marks[1, 39] = True, True
    first, last = jax.jit(lambda marks, x: (argmax(marks), argmax(x)))(marks, np.arange(200, dtype=np.uint8))
    np.testing.assert_array_equal(first, [7, 39, 0])
    assert last == 199


def test_numbers_of_other_types():
    cases = []
    for dtype in ("int32", "uint32", "int8", "bool", "float64"):
        x = (numbers(LENGTH, 3) * 9).astype(dtype)
        cases += [
            (lambda x, i: (x[i, 0], fixed_sum(x[:, 1]), x.max(0), jnp.argmax(x[:, 2])), x, places()),
            (lambda x: jnp.sum(x[:, 1], dtype=x.dtype), x),
        ]
    with jax.enable_x64(True):
        same(*cases)


@pytest.mark.compiles(20)  # a lowering for each kind of device
@pytest.mark.parametrize("example", [MANY, *CARRIED.values()], ids=["drawn anew", *CARRIED])
def test_the_kernel_of_many_arms_lowers(example):
    group, run, _, host, seeds, (kind, _) = laid_out_lanes(128, example)
    case = jax.tree.map(jax.typeof, host)
    lane = run.functions["begin"].trace(case, seeds).out_info
    where = segment(group.schedule[0], 0, 0, 1, group.times)
    with absent_gpu():
        traced = run.functions["kernel"].trace(kind, "kernel", case, seeds, lane, group.times.astype(np.int32), where)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("@__gpu$xla.gpu.triton(") == 1 and "stablehlo.while" not in text


def test_counts_and_refusals_of_many_arms():
    contexts = partial(e.contextual_linear, num_arms=100, dim=5)
    [(_, choice)] = choices(SmallSweep(a.linucb, contexts))
    assert not choice.reason and choice.window.long == LongAxis(100)
    assert choice.census.operations <= 1542 and choice.census.alive <= 84
    [(_, carried)] = choices(SmallSweep(a.ucb1, partial(e.bernoulli_arms, means=np.linspace(0.1, 0.9, 100))))
    assert not carried.reason and carried.census.operations <= 500 and carried.census.carried == 19
    [(_, several)] = choices(SmallSweep(partial(a.shuffle_linucb, epsilon=1.0), contexts))
    assert several.reason == "windows of 20 plays, at most 8"

"""What every rule gives, against XLA: numbers that only the program knows, held apart and in loops, and known ones."""

import operator
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from laid_out import both, kernel_of, needs_cc

from jaxbandits.kernels.arrays import LARGEST, constant
from jaxbandits.kernels.emitter import Emitter
from jaxbandits.kernels.text import Unsupported, is_known

INTEGERS = ["int8", "uint16", "int32", "uint64"]
TYPES = [*INTEGERS, "uint8", "int16", "uint32", "int64", "float32", "float64", "bool"]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 7.3, -300.7, 3e9, -3e9, np.inf, -np.inf, np.nan, 1e30]


def edges(dtype):
    """Sixteen numbers of a type, the least and the largest one among them."""
    if np.dtype(dtype).kind == "f":
        return np.array(FLOATS, dtype)
    info = np.iinfo(dtype)
    bits = info.bits
    numbers = [0, 1, -1, 2, 3, 5, -3, -7, bits - 1, bits, bits + 1, info.max - 1, info.min, info.min + 1, 100, info.max]
    return np.array([n % 2**bits for n in numbers], np.uint64).astype(f"uint{bits}").view(dtype)


def pairs(dtype):
    """Every pair of these numbers, one a lane."""
    return np.repeat(edges(dtype), 16), np.tile(edges(dtype), 16)


COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
NUMBERS = {
    **COMPARISONS, "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem, "max": lax.max,
    "min": lax.min, "neg": lambda x, y: -x, "abs": lambda x, y: jnp.abs(x), "sign": lambda x, y: lax.sign(x),
    "square": lambda x, y: lax.square(x), "clamp": lambda x, y: lax.clamp(y, x, lax.neg(y)),
    "select": lambda x, y: jnp.where(x < y, x, y),
    "cases": lambda x, y: lax.select_n((x > y).astype(jnp.int32) + (x > 0).astype(jnp.int32), x, y, x + y),
    "powers": lambda x, y: [lax.integer_pow(x, n) for n in (0, 1, 2, 3, 6, 7)],
    **{f"as {to}": lambda x, y, to=to: x.astype(to) for to in TYPES},
}  # fmt: skip
OF_FLOATS = {
    **NUMBERS, "floor": lambda x, y: lax.floor(x), "ceil": lambda x, y: lax.ceil(x),
    "round": lambda x, y: [lax.round(x, each) for each in lax.RoundingMethod], "finite": lambda x, y: lax.is_finite(x),
    "sqrt": lambda x, y: lax.sqrt(x), "inverse powers": lambda x, y: [lax.integer_pow(x, n) for n in (-1, -2, -3)],
    "bits": lambda x, y: [lax.bitcast_convert_type(x, f"{to}{8 * x.dtype.itemsize}") for to in ("int", "uint")],
    "nextafter": lax.nextafter, "precision": lambda x, y: lax.reduce_precision(x, *{4: (8, 23), 8: (11, 52)}[
        x.dtype.itemsize]),
    "beside a known number": lambda x, y: [
        f(*both) for c in (-0.5, np.nan, np.inf) for f in (lax.max, lax.min, lax.lt) for both in
        ((x, x.dtype.type(c)), (x.dtype.type(c), x))],
}  # fmt: skip
OF_INTEGERS = {
    **NUMBERS, "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor,
    "not": lambda x, y: lax.bitwise_not(x), "left": lax.shift_left, "right": lax.shift_right_logical,
    "signed right": lax.shift_right_arithmetic, "clz": lambda x, y: lax.clz(x),
    "ones": lambda x, y: lax.population_count(x),
    "bits": lambda x, y: [lax.bitcast_convert_type(x, to) for to in TYPES if to != "bool" and
                          np.dtype(to).itemsize == x.dtype.itemsize],
    "beside a known number": lambda x, y: [
        f(x, c) for c in edges(x.dtype)[[0, 2, 8, 9]] for f in
        (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic)] + [
        f(*both) for c in edges(x.dtype)[[12]] for f in (lax.max, lax.sub) for both in ((x, c), (c, x))],
}  # fmt: skip
OF_TRUTHS = {
    **COMPARISONS, "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": lambda x, y: ~x,
    "max": lax.max, "min": lax.min, "select": lambda x, y: jnp.where(x, y, ~y),
    "beside a known one": lambda x, y: [f(*both) for c in (np.False_, np.True_) for f in (operator.and_, operator.or_)
                                        for both in ((x, c), (c, x))],
    **{f"as {to}": lambda x, y, to=to: x.astype(to) for to in TYPES},
}  # fmt: skip
EITHER_ZERO = ("max", "min", "clamp", "beside a known number")  # of 0.0 and -0.0 either may be the larger one


def draws(seed, *shape, low=-4, high=5):
    """Small whole numbers, of which sums and products are exact in any order."""
    return np.random.default_rng(seed).integers(low, high, size=(256, *shape)).astype(np.int32)


X, Y, I, J = draws(0, 2, 3, 4).astype(np.float32), draws(1, 3, 4, 2).astype(np.float32), draws(2, 2, 3, 4), draws(3, 3)
Z = X.copy()
Z[::5, 0, 1, 2], Z[1::5, 1, :, 1], Z[2::5, :, 2, 3], Z[3::5, 1, 1, 1] = np.nan, np.nan, np.inf, -0.0


def best(x, i):
    """The largest number with the lowest number beside it, and where it begins."""

    def better(a, b):
        take = (b[0] > a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
        return jnp.where(take, b[0], a[0]), jnp.where(take, b[1], a[1])

    return lax.reduce((x, i), (jnp.float32(1), jnp.int32(-2)), better, (0, 2))


def sliced(x, i, mode, **sizes):
    """Slices of two numbers along the last axis, from places in two axes."""
    numbers = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(0,), start_index_map=(2, 0))
    return lax.gather(x, i, numbers, (1, 3, 2), mode=mode, **sizes)


def written(scatter, x, i, v, mode):
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(2, 0)
    )
    return scatter(x, i, v, numbers, mode=mode)


PLACES = draws(4, 3, 2, low=-3, high=6)
ARRAYS = {
    "broadcast": (lambda x: [lax.broadcast_in_dim(x[0], (3, 5, 4), (0, 2)), jnp.broadcast_to(x[:, :1], (2, 3, 4)),
                             lax.broadcast_in_dim(x[:, :1, :], (2, 6, 3, 4), (0, 2, 3))], X),
    "reshape": (lambda x: [x.reshape(shape) for shape in ((4, 6), (3, 2, 4), (2, 1, 3, 1, 4), (24,), (2, 12))], X),
    "squeeze": (lambda x: [x[:, 1:2].squeeze(1), x[:, :, None], lax.squeeze(x[:1, :, 3:], (0, 2))], X),
    "reverse": (lambda x: [lax.rev(x, (0, 2)), lax.rev(x, (1,))], X),
    "slice": (lambda x: [lax.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 3)), lax.slice(x, (1, 0, 1), (2, 3, 4), (1, 2, 2)),
                         lax.slice(x, (0, 1, 2), (1, 3, 3))], X),
    "split": (lambda x: [*jnp.split(x, [1], 2), *jnp.split(x, [1, 2], 1)], X),
    "transpose": (lambda x: [x.transpose(1, 2, 0), x.transpose(2, 0, 1), x.transpose(0, 2, 1)], X),
    "stack": (lambda x: [*jnp.unstack(x, axis=1), *jnp.unstack(x, axis=2), jnp.stack([x, -x, x + x], 2),
                         jnp.stack([x[0], x[1], x[0]], 1)], X),
    "concatenate": (lambda x: [lax.concatenate([x, x[:, :1], -x[:, :2]], 1), lax.concatenate(
        [x[..., 1:], -x, x[..., :1]], 2)], X),
    "iota": (lambda i: [lax.broadcasted_iota(t, (2, 3, 4), d) + i.astype(t) for t, d in (
        (jnp.int32, 0), (jnp.float32, 1), (jnp.uint8, 2))], I),
    "pad": (lambda x, v: [lax.pad(x, v[0], pads) for pads in (
        ((1, 0, 2), (-1, 2, 0), (0, -2, 1)), ((0, 2, 0), (1, 1, 1), (2, 0, 1)), ((0, 0, 0), (-2, 0, 0), (1, -3, 0)),
        ((0, -1, 1), (-1, -1, 1), (-1, 0, 2)))], X, J.astype(np.float32)),
    "one for all": (lambda x, v: [lax.clamp(v[0], x, v[1]), lax.select_n(v[0] > 0, x, -x)], Z, J.astype(np.float32)),
    "sums": (lambda x, i: [y.sum(axes) for y in (x, i) for axes in ((0, 2), (1,), (0, 1, 2))], Z, I),
    "products": (lambda x, i: [x.prod(1), x.prod((0, 1)), i.prod(0), x[:, :0].prod(1), i[:, :0].sum(1)], Z, I),
    "extremes": (lambda x, i, z: [f(y, axes) for f in (jnp.max, jnp.min) for y, axes in (
        (x, (0, 2)), (i, (0, 2)), (i, 1), (z, 2))], X, I, Z),
    "none at all": (lambda x: [f(y[:, :0], (1,)) for y in (x, x.astype(jnp.int16), x.astype(jnp.uint8), x > 0)
                               for f in (lax.reduce_max, lax.reduce_min)], X),
    "truths": (lambda i: [f(i > -2, axes) for f in (jnp.any, jnp.all) for axes in ((0, 2), (1,))] + [
        (i > 9).any(), (i > -9).all()], I),
    "bits of all": (lambda i: [lax.reduce_and(i, (1,)), lax.reduce_or(i, (0, 2))], I),
    "reduce": (best, X, I),
    "cumulative": (lambda x, i: [
        f(x, axis, reverse=back) for axis, back in ((0, False), (1, True), (2, False))
        for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin)] + [lax.cumsum(i, 1), lax.cummin(i, 1)], Z, I),
    "nothing to add": (lambda x: [lax.cumsum(x[:, :0], 1), lax.cumsum(x[:, :1], 1), lax.cummax(x[:0], 2)], X),
    "position": (lambda x, i: [f(y, axis, index) for f in (lax.argmax, lax.argmin) for y, axis, index in (
        (x, 0, jnp.int32), (x, 1, jnp.uint8), (x, 2, jnp.int32), (i, 1, jnp.int32),
        (i.astype(jnp.uint8), 2, jnp.int32))], Z, I),
    "products of matrices": (lambda x, y, i: [
        lax.dot_general(x, y, (((1,), (0,)), ((2,), (1,)))), lax.dot_general(x, y, (((1, 2), (0, 1)), ((0,), (2,)))),
        lax.dot_general(x, y, (((2,), (1,)), ((), ()))), lax.dot_general(i, i, (((0, 1), (0, 1)), ((), ()))),
        lax.dot_general(i > 2, y > 2, (((1, 2), (0, 1)), ((), ())))], X, Y, I),
    "sort": (lambda x, i: [lax.sort((x, i, -x), dimension=d, num_keys=1) for d in (0, 1, 2)] + [
        lax.sort(i, dimension=1), lax.sort(i.astype(jnp.uint8), dimension=2), lax.sort(i > 0, dimension=1)], Z, I),
    "dynamic slice": (lambda x, i, v: [
        lax.dynamic_slice(x, tuple(i), (1, 2, 2)), lax.dynamic_slice(x, tuple(i[::-1]), (2, 1, 3)),
        lax.dynamic_slice(x, (jnp.uint32(9), i[0].astype(jnp.uint32) % 9, jnp.uint32(0)), (1, 1, 2)),
        lax.dynamic_update_slice(x, v[:, :2, :2], tuple(i)),
        lax.dynamic_update_slice(x, v[:1], (i[0], i[1], i[2]))], X, J, -X),
    "gather": (lambda x, i, k: [
        x.at[places].get(mode=mode) for mode in ("clip", "fill") for places in (
            (slice(None), k), (k[0], k[1], k[2]), (k, slice(None), k[::-1]))] + [
        y[:, :, 0].at[:, k].get(mode="fill") for y in (i, i.astype(jnp.uint8), i > 0)] + [
        x[:, :, 0].at[:, k].get(mode="fill", fill_value=-7)], X, I, J),
    "slices of a gather": (lambda x, k: [sliced(x, k, mode) for mode in ("clip", "fill")] + [
        sliced(x, k, "fill", fill_value=-7.0)], X, PLACES),
    "gather of rows": (lambda x, i: jnp.take_along_axis(x, i[:, ::-1, :2], 2, mode="fill"), X, I),
    "scatter": (lambda x, k, v: [getattr(x.at[:, k], how)(v, mode=mode) for how, mode in (
        ("set", "drop"), ("add", "clip"), ("max", "drop"), ("min", "clip"))] + [
        getattr(x.at[k[0], k[1], k[2]], how)(v[0, 0, 0], mode=mode) for how, mode in (
            ("set", "clip"), ("add", "drop"), ("max", "clip"), ("min", "drop"))] + [
        x.at[0, :, 1].set(k.astype(x.dtype), mode="drop", wrap_negative_indices=False)], X, J, 2 * X),
    "slices of a scatter": (lambda x, k, v: [written(f, x, k, v, mode) for f, mode in (
        (lax.scatter_add, "drop"), (lax.scatter_max, "clip"))] + [
        written(lax.scatter, x, k[:1], v[:1], mode) for mode in ("clip", "drop")],
        X, PLACES[:, :2], draws(5, 2, 3, 2).astype(np.float32)),
    "what is known": (lambda x: [jnp.asarray(edges(to)) for to in INTEGERS] + [
        jnp.asarray(edges("float32")), jnp.asarray(edges("float64")), jnp.asarray([True, False]),
        x[0, 0] + jnp.arange(4, dtype=x.dtype)], X),
}  # fmt: skip
SCALARS = {
    **{f"{name} of {dtype}": (function, *pairs(dtype)) for dtype in INTEGERS for name, function in OF_INTEGERS.items()},
    **{f"{name} of {t}": (function, *pairs(t)) for t in ("float32", "float64") for name, function in OF_FLOATS.items()},
    **{f"{name} of truths": (function, draws(6) > 0, draws(7) > 0) for name, function in OF_TRUTHS.items()},
}  # fmt: skip
# Where XLA leaves NaN out, as it does at some levels of optimization and not at others, NumPy has the answer.
BY_NUMPY = {"extremes": {3: lambda x, i, z: z.max(3), 7: lambda x, i, z: z.min(3)}}
# Some of whose numbers no host computes.
NOT_ON_THE_HOST = "div rem left right signed clz ones nextafter beside round".split()


@cache
def results(largest):
    rows = ARRAYS if largest == 1 else SCALARS | ARRAYS
    with jax.enable_x64(True):
        found = dict(zip(rows, both(largest, *rows.values()), strict=True))
    for name, oracles in BY_NUMPY.items():
        for k, oracle in oracles.items():
            found[name][1][k] = oracle(*rows[name][1:])
    return found


def assert_same_numbers(name, ours, wanted):
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(x, y, err_msg=name, strict=True)
        if " of float" in name and x.dtype.kind == "f" and not name.startswith(EITHER_ZERO):
            np.testing.assert_array_equal(np.signbit(x)[x == 0], np.signbit(y)[x == 0], err_msg=name)


@needs_cc
@pytest.mark.parametrize("largest", [LARGEST, 1], ids=["apart", "loops"])
def test_every_rule_gives_what_xla_gives(largest):
    for name, (ours, wanted) in results(largest).items():
        assert_same_numbers(name, ours, wanted)


@needs_cc
def test_what_is_known_is_computed_on_the_host():
    """Of every row, for some lanes: a number of the program, or the same number."""
    for name, (function, *given) in (SCALARS | ARRAYS).items():
        wanted = [np.asarray(x) for x in jax.tree.leaves(results(LARGEST)[name][1])]
        with jax.enable_x64(True):
            traced = jax.make_jaxpr(function)(*(x[0] for x in given))
            lanes = range(2, 256, 3) if not given[0][0].shape else (0, 1)
            for lane in lanes:
                arrays = [constant(x[lane], var) for x, var in zip(given, traced.jaxpr.invars, strict=True)]
                for found, want in zip(Emitter().write_function(traced, arrays), wanted, strict=True):
                    pairs = [*zip(found.reshape(-1), want[lane].reshape(-1), strict=True)]
                    known = [(x, y) for x, y in pairs if is_known(x)]
                    assert len(known) == len(pairs) or name.split()[0] in NOT_ON_THE_HOST, name
                    if known:
                        both_sides = (np.array(x, want.dtype) for x in zip(*known, strict=True))
                        assert_same_numbers(f"{name}, lane {lane}", *both_sides)


@pytest.mark.parametrize("function, named", [
    (lambda x: lax.reduce_precision(x, 5, 10), "reduce_precision"), (lambda x: x.astype(jnp.bfloat16), "bfloat16"),
    (lambda x: lax.sort((x, x), num_keys=2), "sort by several keys"), (lax.digamma, "digamma"),
    (lambda x: lax.bitwise_not(x.astype(jnp.int8)).astype(jnp.int4), "int4"),
])  # fmt: skip
def test_what_has_no_rule_is_named(function, named):
    with pytest.raises((Unsupported, KeyError), match=named):
        kernel_of(function, np.float32([1, 2]))

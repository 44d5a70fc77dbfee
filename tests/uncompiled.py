"""Functions of the package evaluated in NumPy, operation by operation: traced, and never compiled.

Compiling a function takes longer than its test where it runs once on a few numbers, and jnp outside of a compiled
function compiles every operation by itself. `uncompiled` traces a function and goes through its operations instead.
What XLA makes of a program is the subject of other tests.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal
from numpy_draws import threefry2x32
from scipy import special

from jaxbandits.kernels import emitter
from jaxbandits.kernels.emitter import SAME
from jaxbandits.kernels.rules import Slices
from jaxbandits.kernels.scalars import HOST_FUNCTIONS

# operations that are programs, and the parameter that holds it; kernels follow some of them
CALLS = emitter.JAXPR_OF_CALL | dict.fromkeys(("checkpoint", "remat2"), "jaxpr")
CALLS |= dict.fromkeys(("core_call", "custom_vjp_call"), "call_jaxpr")


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, evaluated in NumPy. It is traced once for arguments of the same shapes and dtypes."""
    traces: dict[Any, Any] = {}

    @functools.wraps(function)
    def evaluated(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        key = tree, jax.config.jax_enable_x64, tuple((np.shape(x), jax.numpy.result_type(x)) for x in leaves)
        if key not in traces:
            traces[key] = jax.make_jaxpr(function, return_shape=True)(*args)
        closed, shapes = traces[key]
        return jax.tree.unflatten(jax.tree.structure(shapes), evaluate(closed, leaves))

    return evaluated


def evaluate(closed: Any, leaves: list[Any]) -> list[np.ndarray]:
    """The results of a closed jaxpr."""
    with np.errstate(all="ignore"):
        return _closed(closed, [_as(x, var.aval) for x, var in zip(leaves, closed.jaxpr.invars, strict=True)])


def _is_key(x: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(x, "dtype", np.float32), jax.dtypes.extended)


def _as(x: Any, aval: Any) -> Any:
    return x if _is_key(aval) else np.asarray(x, aval.dtype)


def _run(jaxpr: Any, consts: Any, inputs: Any) -> list[Any]:
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *inputs], strict=True))

    def read(atom: Any) -> Any:
        return values[atom] if type(atom) is not Literal else np.asarray(atom.val, atom.aval.dtype)

    for equation in jaxpr.eqns:
        arguments = [read(atom) for atom in equation.invars]
        name, params = equation.primitive.name, equation.params
        if name in ELEMENTWISE:
            results = [ELEMENTWISE[name](*arguments)]
        elif name in RULES:
            results = RULES[name](equation, params, *arguments)
        elif name in CALLS:
            results = _closed(params[CALLS[name]], arguments)
        else:  # an operation for which nothing is written here
            results = equation.primitive.bind(*arguments, **params)
            results = results if equation.primitive.multiple_results else [results]
        for var, result in zip(equation.outvars, results, strict=True):
            values[var] = _as(result, var.aval)
    return [read(atom) for atom in jaxpr.outvars]


def _closed(program: Any, args: Any) -> list[Any]:
    consts = [x if _is_key(x) else np.asarray(x) for x in getattr(program, "consts", ())]
    return _run(getattr(program, "jaxpr", program), consts, args)


# ---------------------------------------------------------------- one number in, one number out


def _truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return x / y
    quotient = x // np.where(y == 0, 1, y)
    return quotient + ((quotient < 0) & (quotient * y != x))


def _unsigned(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def _shift(x: np.ndarray, by: np.ndarray, move: Any) -> np.ndarray:
    bits = 8 * x.dtype.itemsize
    return np.where(_unsigned(by) < bits, move(x, np.minimum(_unsigned(by), bits - 1).astype(x.dtype)), 0)


def _exactly_rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """float32 by way of float64."""
    return lambda *args: function(*(np.asarray(x, np.float64) if x.dtype == np.float32 else x for x in args))


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **HOST_FUNCTIONS, "add_any": np.add, "div": _truncated, "rem": np.fmod, "rsqrt": lambda x: 1 / np.sqrt(x),
    "nextafter": np.nextafter, "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "select_n": lambda which, *cases: np.choose(np.asarray(which, np.intp), cases),
    "population_count": np.bitwise_count,
    "shift_left": lambda x, by: _shift(x, by, np.left_shift),
    "shift_right_logical": lambda x, by: _shift(_unsigned(x), by, np.right_shift).view(x.dtype),
    "shift_right_arithmetic": np.right_shift,
    **{name: _exactly_rounded(getattr(np, name)) for name in (
        "exp", "exp2", "log", "log1p", "expm1", "sin", "cos", "tan", "tanh", "cbrt", "sinh", "cosh")},
    "pow": _exactly_rounded(np.power), "atan2": _exactly_rounded(np.arctan2), "atan": _exactly_rounded(np.arctan),
    "asin": _exactly_rounded(np.arcsin), "acos": _exactly_rounded(np.arccos), "erf": _exactly_rounded(special.erf),
    "erfc": _exactly_rounded(special.erfc), "erf_inv": _exactly_rounded(special.erfinv),
    "lgamma": _exactly_rounded(special.gammaln), "digamma": _exactly_rounded(special.digamma),
    "igamma": _exactly_rounded(special.gammainc), "igammac": _exactly_rounded(special.gammaincc),
    "regularized_incomplete_beta": _exactly_rounded(special.betainc), "logistic": _exactly_rounded(special.expit),
    "bessel_i0e": _exactly_rounded(special.i0e), "bessel_i1e": _exactly_rounded(special.i1e),
}  # fmt: skip


# ---------------------------------------------------------------- shapes


def _broadcast(equation, params, x, *_):
    shape, places = params["shape"], params["broadcast_dimensions"]
    spread = [1] * len(shape)
    for size, place in zip(x.shape, places, strict=True):
        spread[place] = size
    return [np.broadcast_to(x.reshape(spread), shape)]


def _pad(equation, params, x, value):
    config = params["padding_config"]
    shape = [low + high + max(0, n + (n - 1) * inside) for n, (low, high, inside) in zip(x.shape, config, strict=True)]
    assert all(low >= 0 and high >= 0 for low, high, _ in config), "negative padding is not written here"
    out = np.full(shape, value, x.dtype)
    if x.size:
        out[tuple(slice(low, low + (n - 1) * (inside + 1) + 1, inside + 1)
            for n, (low, _, inside) in zip(x.shape, config, strict=True))] = x  # fmt: skip
    return [out]


def _slice(equation, params, x):
    strides = params["strides"] or (1,) * x.ndim
    return [x[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]]


def _window_at(starts, sizes, shape):
    first = [int(np.clip(start, 0, n - size)) for start, size, n in zip(starts, sizes, shape, strict=True)]
    return tuple(slice(a, a + size) for a, size in zip(first, sizes, strict=True))


def _updated(equation, params, x, update, *starts):
    out = x.copy()
    out[_window_at(starts, update.shape, x.shape)] = update
    return [out]


def _iota(equation, params, *_):
    shape, axis = params["shape"], params["dimension"]
    line = np.arange(shape[axis], dtype=params["dtype"]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return [np.broadcast_to(line, shape)]


def _sort(equation, params, *arrays):
    axis, keys = params["dimension"], params["num_keys"]
    if keys == 1:
        order = np.argsort(arrays[0], axis=axis, kind="stable")
    else:
        order = np.lexsort(arrays[keys - 1 :: -1], axis=axis)
    return [np.take_along_axis(x, order, axis) for x in arrays]


def _top_k(equation, params, x):
    k, axis = params["k"], params.get("axis", -1)
    order = np.take(np.argsort(-x, axis=axis, kind="stable"), np.arange(k), axis=axis)
    return [np.take_along_axis(x, order, axis), order]


def _cumulative(function):
    def rule(equation, params, x):
        axis = params["axis"]
        x = np.flip(x, axis) if params["reverse"] else x
        out = function(x, axis=axis)
        return [np.flip(out, axis) if params["reverse"] else out]

    return rule


def _bits_as(equation, params, x):
    return [np.ascontiguousarray(x).view(np.dtype(params["new_dtype"])).reshape(equation.outvars[0].aval.shape)]


def _converted(equation, params, x):
    dtype = np.dtype(params["new_dtype"])
    if x.dtype.kind == "f" and dtype.kind in "iu":  # XLA saturates, and NaN becomes 0
        limits = np.iinfo(dtype)
        top = float(limits.max) if limits.bits <= 32 else 2.0 ** (limits.bits - (dtype.kind == "i")) - 2048
        x = np.clip(np.where(np.isnan(x), 0, x).astype(np.float64), float(limits.min), top)
    return [x.astype(dtype)]


def _dot(equation, params, x, y):
    (x_sum, y_sum), (x_batch, y_batch) = params["dimension_numbers"]
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    of_x = [next(letters) for _ in range(x.ndim)]
    of_y = [next(letters) for _ in range(y.ndim)]
    for i, j in zip((*x_sum, *x_batch), (*y_sum, *y_batch), strict=True):
        of_y[j] = of_x[i]
    out = [of_x[i] for i in x_batch]
    out += [c for i, c in enumerate(of_x) if i not in (*x_sum, *x_batch)]
    out += [c for j, c in enumerate(of_y) if j not in (*y_sum, *y_batch)]
    return [np.einsum(f"{''.join(of_x)},{''.join(of_y)}->{''.join(out)}", x, y)]


# ---------------------------------------------------------------- gather and scatter


def _entries(equation, x, indices, slices):
    """Where all elements of the slices of a gather or scatter lie, and which of these lie inside."""
    numbers = Slices(x.shape, slices, equation.params["dimension_numbers"])
    clips = "CLIP" in str(equation.params["mode"])
    at, inside, along = [0] * x.ndim, np.True_, np.indices(slices, sparse=True)
    for d, axis in numbers.windows:
        at[axis] = along[d]
    for d, axis in numbers.batching:
        at[axis] = along[numbers.batch[d]]
    for k, (axis, top) in enumerate(zip(numbers.dims, numbers.tops, strict=True)):
        start = indices[(*(along[d] for d in numbers.batch), k)].astype(np.int64)
        inside = inside & (clips | ((start >= 0) & (start <= top)))
        at[axis] = at[axis] + np.clip(start, 0, top)
    return tuple(np.broadcast_to(place, slices) for place in at), np.broadcast_to(inside, slices)


def _gather(equation, params, x, indices):
    at, inside = _entries(equation, x, indices, equation.outvars[0].aval.shape)
    fill = _filling(x.dtype) if params["fill_value"] is None else params["fill_value"]
    return [np.where(inside | ("FILL" not in str(params["mode"])), x[at], np.asarray(fill, x.dtype))]


def _filling(dtype):
    """What stands where a gather looked outside."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return np.nan if dtype.kind == "f" else True


def _scatter(combine):
    def rule(equation, params, x, indices, updates):
        at, inside = _entries(equation, x, indices, updates.shape)
        out = x.copy()
        combine(out, tuple(index[inside] for index in at), updates[inside])
        return [out]

    return rule


def _set(out, at, values):
    out[at] = values


# ---------------------------------------------------------------- loops and branches


def _while(equation, params, *args):
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    m, n = params["cond_nconsts"], params["body_nconsts"]
    of_condition, of_body, carry = args[:m], args[m : m + n], list(args[m + n :])
    while np.any(going := _closed(condition, [*of_condition, *carry])[0]):
        after = _closed(body, [*of_body, *carry])
        # under vmap the condition has the axes of the lanes, in front, and a lane that has ended keeps what it has
        carry = [np.where(going.reshape(going.shape + (1,) * (x.ndim - going.ndim)), new, x)
            for new, x in zip(after, carry, strict=True)] if going.ndim else after  # fmt: skip
    return carry


def _scan(equation, params, *args):
    n, m, length = params["num_consts"], params["num_carry"], params["length"]
    consts, carry, inputs = args[:n], list(args[n : n + m]), args[n + m :]
    steps: list[Any] = [None] * length
    for i in reversed(range(length)) if params["reverse"] else range(length):
        out = _closed(params["jaxpr"], [*consts, *carry, *(x[i] for x in inputs)])
        carry, steps[i] = out[:m], out[m:]
    shapes = [var.aval for var in equation.outvars[m:]]
    return carry + [np.stack(ys) if length else np.zeros(s.shape, s.dtype)
        for ys, s in zip(zip(*steps, strict=True) if length else [[]] * len(shapes), shapes, strict=True)]  # fmt: skip


def _cond(equation, params, which, *args):
    branches = params["branches"]
    return _closed(branches[int(np.clip(int(which), 0, len(branches) - 1))], args)


def _platform(equation, params):
    found = [i for i, names in enumerate(params["platforms"]) if names is not None and "cpu" in names]
    return [found[0] if found else len(params["platforms"]) - 1]


def _reduction(function):
    return lambda equation, params, x: [function(x, axis=tuple(params["axes"]))]


RULES: dict[str, Callable[..., Any]] = {
    "integer_pow": lambda e, p, x: [_power(x, p["y"])],
    "round": lambda e, p, x: [
        np.rint(x) if p["rounding_method"].name == "TO_NEAREST_EVEN" else np.trunc(x + np.copysign(0.5, x))],
    "convert_element_type": _converted, "bitcast_convert_type": _bits_as, "reduce_precision": lambda e, p, x: [x],
    "broadcast_in_dim": _broadcast, "reshape": lambda e, p, x, *_: [x.reshape(p["new_sizes"])],
    "transpose": lambda e, p, x: [np.transpose(x, p["permutation"])],
    "squeeze": lambda e, p, x: [np.squeeze(x, tuple(p["dimensions"]))],
    "expand_dims": lambda e, p, x: [np.expand_dims(x, tuple(p["dimensions"]))],
    "concatenate": lambda e, p, *xs: [np.concatenate(xs, p["dimension"])], "pad": _pad, "slice": _slice,
    "dynamic_slice": lambda e, p, x, *at: [x[_window_at(at, p["slice_sizes"], x.shape)]],
    "dynamic_update_slice": _updated, "rev": lambda e, p, x: [np.flip(x, p["dimensions"])], "iota": _iota,
    "stack": lambda e, p, *xs: [np.stack(xs, p["axis"])], "tile": lambda e, p, x: [np.tile(x, p["reps"])],
    "unstack": lambda e, p, x: [np.take(x, i, p["axis"]) for i in range(x.shape[p["axis"]])],
    "split": lambda e, p, x: np.split(x, np.cumsum(p["sizes"])[:-1], p["axis"]), "sort": _sort, "top_k": _top_k,
    "dot_general": _dot, "gather": _gather, "scatter": _scatter(_set), "scatter-add": _scatter(np.add.at),
    "scatter_add": _scatter(np.add.at),
    "scatter-min": _scatter(np.minimum.at), "scatter_min": _scatter(np.minimum.at),
    "scatter-max": _scatter(np.maximum.at), "scatter_max": _scatter(np.maximum.at),
    "scatter_mul": _scatter(np.multiply.at), "scatter-mul": _scatter(np.multiply.at),
    "cumsum": _cumulative(np.cumsum), "cumprod": _cumulative(np.cumprod),
    "cummax": _cumulative(np.maximum.accumulate), "cummin": _cumulative(np.minimum.accumulate),
    "cumlogsumexp": _cumulative(np.logaddexp.accumulate),
    "reduce_sum": _reduction(np.sum), "reduce_prod": _reduction(np.prod), "reduce_max": _reduction(np.max),
    "reduce_min": _reduction(np.min), "reduce_and": _reduction(np.all), "reduce_or": _reduction(np.any),
    "argmax": lambda e, p, x: [np.argmax(x, *p["axes"])], "argmin": lambda e, p, x: [np.argmin(x, *p["axes"])],
    "while": _while, "scan": _scan, "cond": _cond, "platform_index": _platform,
    **dict.fromkeys(SAME, lambda e, p, *xs: xs),
    "threefry2x32": lambda e, p, k0, k1, x0, x1: threefry2x32((k0, k1), (x0, x1)),
    "eigh": lambda e, p, x: list(np.linalg.eigh(x))[::-1], "cholesky": lambda e, p, x: [np.linalg.cholesky(x)],
}  # fmt: skip


def _power(x: np.ndarray, n: int) -> np.ndarray:
    """x^n by multiplications, as XLA has it."""
    if n < 0:
        return 1 / _power(x, -n)
    result, square = np.ones_like(x), x
    while n:
        result, square, n = (result * square if n & 1 else result), square * square, n >> 1
    return result

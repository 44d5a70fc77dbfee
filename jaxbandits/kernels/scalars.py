"""Operations on single numbers, as expressions of C.

`EXPRESSIONS` says of each operation how it is written for each kind of operands: b truth values, i and u integers with
and without sign, f floats. {0}, {1} ... are the operands, {t} their type, {u} and {i} the unsigned and the signed type
of the same size, {s} how their functions end in `source.py`, {n} their bits. What is known is computed at once.
"""

from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn

from jaxbandits.kernels.source import FUNCTIONS, OF_TWO
from jaxbandits.kernels.text import Number, Unsupported, Writer, c_type, ending, host_number, is_known, text_of
from jaxbandits.typing import DType

WRAPPED = "({{t}})(({{u}}){{0}} {0} ({{u}}){{1}})"  # integers wrap around, which C promises for unsigned ones only
SHIFTED = "({{u}}){{1}} < {{n}}u ? ({{t}})(({{u}}){{0}} {0} {{1}}) : ({{t}})0"
EXPRESSIONS: dict[str, dict[str, str]] = {
    **{
        name: {"f": f"{name}_{{s}}({{0}}{', {1}' * (name in OF_TWO)})"} for name in (*FUNCTIONS, "erf_inv", "is_finite")
    },
    "add": {"i": WRAPPED.format("+"), "u": "({t})({0} + {1})", "f": "{0} + {1}", "b": "{0} | {1}"},
    "sub": {"i": WRAPPED.format("-"), "u": "({t})({0} - {1})", "f": "{0} - {1}"},
    "mul": {"i": WRAPPED.format("*"), "u": "({t})(1u * {0} * {1})", "f": "{0} * {1}", "b": "{0} & {1}"},
    # as in XLA: by 0 gives -1, and the remainder is the number itself
    "div": {
        "i": "{1} == 0 ? ({t})-1 : {1} == -1 ? ({t})(({u})0 - ({u}){0}) : ({t})({0} / {1})",
        "u": "{1} == 0 ? ({t})-1 : ({t})({0} / {1})", "f": "{0} / {1}",
    },
    "rem": {
        "i": "{1} == 0 ? {0} : {1} == -1 ? ({t})0 : ({t})({0} % {1})", "u": "{1} == 0 ? {0} : ({t})({0} % {1})",
        "f": "rem_{s}({0}, {1})",
    },
    "neg": {"iu": "({t})(({u})0 - ({u}){0})", "f": "-{0}"},
    "max": {"iu": "{0} > {1} ? {0} : {1}", "f": "max_{s}({0}, {1})", "b": "{0} | {1}"},
    "min": {"iu": "{0} < {1} ? {0} : {1}", "f": "min_{s}({0}, {1})", "b": "{0} & {1}"},
    "and": {"biu": "{0} & {1}"}, "or": {"biu": "{0} | {1}"}, "xor": {"biu": "{0} ^ {1}"},
    "not": {"b": "!{0}", "iu": "({t})~{0}"},
    "eq": {"biuf": "{0} == {1}"}, "ne": {"biuf": "{0} != {1}"}, "lt": {"biuf": "{0} < {1}"},
    "le": {"biuf": "{0} <= {1}"}, "gt": {"biuf": "{0} > {1}"}, "ge": {"biuf": "{0} >= {1}"},
    "before": {"biu": "{0} < {1}", "f": "before_{s}({0}, {1})"},
    "shift_left": {"iu": SHIFTED.format("<<")}, "shift_right_logical": {"iu": SHIFTED.format(">>")},
    "shift_right_arithmetic": {"iu": "({t})(({i}){0} >> (({u}){1} < {n}u ? {1} : {n} - 1))"},
    # by a known number of bits, fewer than there are
    "shift_left inside": {"i": "({t})(({u}){0} << {1})", "u": "({t})({0} << {1})"},
    "shift_right_logical inside": {"i": "({t})(({u}){0} >> {1})", "u": "({t})({0} >> {1})"},
    "shift_right_arithmetic inside": {"i": "{0} >> {1}", "u": "({t})(({i}){0} >> {1})"},
    "abs": {"i": "{0} < 0 ? ({t})(({u})0 - ({u}){0}) : {0}", "f": "abs_{s}({0})"},
    "sign": {"i": "({t})(({0} > 0) - ({0} < 0))", "u": "({t})({0} > 0)", "f": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0}"},
    "square": {"iu": "({t})(({u}){0} * ({u}){0})", "f": "{0} * {0}"},
    "population_count": {"iu": "({t})COUNT_ONES(({u}){0})"},
    "clz": {"iu": "({t})(LEADING_ZEROS((unsigned long long)({u}){0}) - 64 + {n})"},
}  # fmt: skip
ALWAYS: Number = np.bool_(True)
ANSWERS = {"eq", "ne", "lt", "le", "gt", "ge", "before", "is_finite"}  # give truth values
HOST_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "neg": np.negative,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "abs": np.abs,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "sign": lambda a: np.where(a == 0, a, np.sign(a)), "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt,
    "square": np.square, "rint": np.rint, "is_finite": np.isfinite, "before": lambda a, b: a < b or (b != b and a == a),
    # None: the program computes it
    "div": lambda a, b: a / b if a.dtype.kind == "f" else (a - np.fmod(a, b)) // b if b else None,
    "rem": lambda a, b: np.fmod(a, b) if a.dtype.kind in "iu" and b else None,
}  # fmt: skip


class Scalars(Writer):
    """Writes operations on single numbers."""

    def op(self, name: str, *x: Number) -> Number:
        """An operation of `EXPRESSIONS` on numbers of one type."""
        dtype = x[0].dtype
        result = np.dtype(bool) if name in ANSWERS else dtype
        if name in HOST_FUNCTIONS and all(map(is_known, x)):
            with np.errstate(all="ignore"):
                found = HOST_FUNCTIONS[name](*x)
            if found is not None:
                return host_number(found, result)
        if name in ("and", "or") and dtype.kind == "b" and any(map(is_known, x)):
            a, b = x if is_known(x[0]) else x[::-1]
            return b if bool(a) == (name == "and") else a
        if name.startswith("shift") and is_known(x[1]) and 0 <= int(x[1]) < 8 * dtype.itemsize:
            name += " inside"
        template = next((text for kinds, text in EXPRESSIONS.get(name, {}).items() if dtype.kind in kinds), None)
        if template is None:
            raise Unsupported(f"{name} of {dtype}")
        if name in ("max", "min") and dtype.kind == "f" and any(map(is_known, x)):
            x = x if is_known(x[1]) else x[::-1]
            # Where the comparison fails, the other one is NaN or the answer, unless the known one is NaN.
            template = "{1}" if np.isnan(x[1]) else f"{{1}} {'>' if name == 'max' else '<'}= {{0}} ? {{1}} : {{0}}"
        bits = 8 * dtype.itemsize
        u, i = c_type(f"uint{bits}"), c_type(f"int{bits}")
        return self.let(template.format(*map(text_of, x), t=c_type(dtype), u=u, i=i, s=ending(dtype), n=bits), result)

    def select(self, condition: Number, chosen: Number, other: Number) -> Number:
        """`chosen` where a condition holds, else `other`."""
        if is_known(condition):
            return chosen if condition else other
        if text_of(chosen) == text_of(other):
            return chosen
        return self.let(f"{condition} ? {text_of(chosen)} : {text_of(other)}", chosen.dtype)

    def all_of(self, conditions: Iterable[Number]) -> Number:
        """Whether all conditions hold."""
        return reduce(partial(self.op, "and"), conditions, ALWAYS)

    def clip_to_top(self, x: Number, top: int) -> Number:
        """An integer moved into 0 .. top."""
        return self.op("min", self.op("max", x, host_number(0, x.dtype)), host_number(top, x.dtype))

    def convert(self, x: Number, dtype: DType) -> Number:
        """A number of another type: floats are cut off, and stay inside of the type."""
        dtype = np.dtype(dtype)
        cut = x.dtype.kind == "f" and dtype.kind in "iu"
        if x.dtype == dtype:
            return x
        if is_known(x) and cut:
            info = np.iinfo(dtype)
            return host_number(0 if np.isnan(x) else int(min(max(float(x), info.min), info.max)), dtype)
        if is_known(x):
            return host_number(x, dtype)
        if cut:
            wide = dtype if dtype.itemsize >= 4 else np.dtype("int32")
            x = self.let(f"to_{ending(wide)}_{ending(x.dtype)}({x})", wide)
            if wide is dtype:
                return x
            x = self.op("max", x, host_number(np.iinfo(dtype).min, wide))
            x = self.op("min", x, host_number(np.iinfo(dtype).max, wide))
        return self.let(f"{x} != 0" if dtype.kind == "b" else f"({c_type(dtype)}){x}", dtype)

    def of_bits(self, x: Number, dtype: DType) -> Any:
        """The number whose bits are those of x."""
        dtype = np.dtype(dtype)
        if is_known(x):
            return np.asarray(x).view(dtype)[()]
        if x.dtype.kind == "f":
            x = self.let(f"BITS_{ending(x.dtype)}({x})", f"uint{8 * x.dtype.itemsize}")
        if dtype.kind == "f":
            unsigned = self.convert(x, f"uint{8 * dtype.itemsize}")
            return self.let(f"OF_BITS_{ending(dtype)}({unsigned})", dtype)
        return self.convert(x, dtype)

    def power(self, x: Number, n: int) -> Number:
        """A number to a known integer, by squaring."""
        if n < 0:
            return self.op("div", host_number(1, x.dtype), self.power(x, -n))
        found, square = host_number(1, x.dtype), x
        while n:
            if n & 1:
                found = square if is_known(found) and found == 1 else self.op("mul", found, square)
            n >>= 1
            square = self.op("mul", square, square) if n else square
        return found


# ---- primitives that act on each element alone


def _op_rule(name: str) -> Callable[..., Number]:
    return lambda run, eqn, *x: run.op(name, *x)


def _select_n(run: Scalars, eqn: JaxprEqn, which: Number, *cases: Number) -> Number:
    found = cases[0]
    for k, case in enumerate(cases[1:], 1):
        here = which if which.dtype.kind == "b" else run.op("eq", which, host_number(k, which.dtype))
        found = run.select(here, case, found)
    return found


def _reduce_precision(run: Scalars, eqn: JaxprEqn, x: Number) -> Number:
    if np.finfo(x.dtype).nmant != eqn.params["mantissa_bits"]:
        raise Unsupported("reduce_precision")
    return x


ELEMENTWISE: dict[str, Callable[..., Number]] = {
    **{name: _op_rule(name) for name in EXPRESSIONS if name not in ("round", "rint", "before")},
    "lt_to": _op_rule("lt"),
    "le_to": _op_rule("le"),  # what JAX compares to sort
    "bitcast_convert_type": lambda run, eqn, x: run.of_bits(x, eqn.params["new_dtype"]),
    "clamp": lambda run, eqn, low, x, high: run.op("min", run.op("max", x, low), high),
    "convert_element_type": lambda run, eqn, x: run.convert(x, eqn.params["new_dtype"]),
    "integer_pow": lambda run, eqn, x: run.power(x, eqn.params["y"]),
    "reduce_precision": _reduce_precision,
    "round": lambda run, eqn, x: run.op("rint" if int(eqn.params["rounding_method"]) == 1 else "round", x),
    "select_n": _select_n,
}

"""Operations on single numbers, as expressions of C.

`EXPRESSIONS` says of each operation how it is written for each kind of operands: b truth values, i and u integers with
and without sign, f floats. {0}, {1} ... are the operands, {t} their type, {u} and {i} the unsigned and the signed type
of the same size, {s} how their functions end in `prelude.py`, {n} their bits. What is known is computed at once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbandits.kernels.text import TYPES, Number, Unsupported, Writer, c_type, known, number, text_of

WRAPPED = "({{t}})(({{u}}){{0}} {0} ({{u}}){{1}})"  # integers wrap around, which C promises for unsigned ones only
SHIFTED = "({{u}}){{1}} < {{n}}u ? ({{t}})(({{u}}){{0}} {0} {{1}}) : ({{t}})0"

SHIFTED_INSIDE = {  # by a known number of bits, fewer than there are
    ("shift_left", "i"): "({t})(({u}){0} << {1})", ("shift_left", "u"): "({t})({0} << {1})",
    ("shift_right_logical", "i"): "({t})(({u}){0} >> {1})", ("shift_right_logical", "u"): "({t})({0} >> {1})",
    ("shift_right_arithmetic", "i"): "{0} >> {1}", ("shift_right_arithmetic", "u"): "({t})(({i}){0} >> {1})",
}  # fmt: skip


def _function(name: str) -> dict[str, str]:
    return {"f": f"{name}_{{s}}({{0}})"}


EXPRESSIONS: dict[str, dict[str, str]] = {
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
    "abs": {"i": "{0} < 0 ? ({t})(({u})0 - ({u}){0}) : {0}", "u": "{0}", "f": "abs_{s}({0})"},
    "sign": {"i": "({t})(({0} > 0) - ({0} < 0))", "u": "({t})({0} > 0)", "f": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0}"},
    "square": {"iu": "({t})(({u}){0} * ({u}){0})", "f": "{0} * {0}"},
    "population_count": {"iu": "({t})COUNT_ONES(({u}){0})"},
    "clz": {"iu": "({t})(LEADING_ZEROS((unsigned long long)({u}){0}) - 64 + {n})"},
    "atan2": {"f": "atan2_{s}({0}, {1})"}, "nextafter": {"f": "nextafter_{s}({0}, {1})"},
    "pow": {"f": "pow_{s}({0}, {1})"},
    **{
        name: _function(name)
        for name in """exp exp2 expm1 log log1p sin cos tan tanh sqrt rsqrt cbrt erf erfc erf_inv lgamma logistic floor
        ceil round rint is_finite""".split()
    },
}  # fmt: skip
ANSWERS = {"eq", "ne", "lt", "le", "gt", "ge", "before", "is_finite"}  # give truth values
TOTAL = {"lt_to": "lt", "le_to": "le"}  # what JAX compares to sort
KNOWN: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "neg": np.negative,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "abs": np.abs,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "square": np.square, "rint": np.rint,
}  # fmt: skip


class Scalars(Writer):
    """Writes operations on single numbers."""

    def op(self, name: str, *x: Number) -> Number:
        """An operation of `EXPRESSIONS` on numbers of one type."""
        dtype = x[0].dtype
        result = np.dtype(bool) if name in ANSWERS else dtype
        if all(map(known, x)) and (found := _folded(name, x)) is not None:
            return number(found, result)
        if name in ("and", "or") and dtype.kind == "b" and any(map(known, x)):
            a, b = x if known(x[0]) else x[::-1]
            return b if bool(a) == (name == "and") else a
        template = next((text for kinds, text in EXPRESSIONS.get(name, {}).items() if dtype.kind in kinds), None)
        if template is None:
            raise Unsupported(f"{name} of {dtype}")
        if name.startswith("shift") and known(x[1]) and 0 <= int(x[1]) < 8 * dtype.itemsize:
            template = SHIFTED_INSIDE[name, dtype.kind]
        if name in ("max", "min") and dtype.kind == "f" and any(map(known, x)):
            # A known number is not NaN: where the comparison fails, the other one is NaN or the answer.
            x = x if known(x[1]) else x[::-1]
            template = "{1} >= {0} ? {1} : {0}" if name == "max" else "{1} <= {0} ? {1} : {0}"
        kind, unsigned, ending = TYPES[str(dtype)]
        signed = TYPES[f"int{8 * dtype.itemsize}"][0]
        text = template.format(*map(text_of, x), t=kind, u=unsigned, i=signed, s=ending, n=8 * dtype.itemsize)
        return self.let(text, result)

    def select(self, condition: Number, chosen: Number, other: Number) -> Number:
        """`chosen` where a condition holds, else `other`."""
        if known(condition):
            return chosen if condition else other
        if text_of(chosen) == text_of(other):
            return chosen
        return self.let(f"{condition} ? {text_of(chosen)} : {text_of(other)}", chosen.dtype)

    def all_of(self, conditions: Any) -> Number:
        """Whether all conditions hold."""
        found: Number = np.bool_(True)
        for condition in conditions:
            found = self.op("and", found, condition)
        return found

    def within(self, x: Number, top: int) -> Number:
        """An integer moved into 0 .. top."""
        return self.op("min", self.op("max", x, number(0, x.dtype)), number(top, x.dtype))

    def converted(self, x: Number, dtype: Any) -> Number:
        """A number of another type: floats are cut off, and stay inside of the type."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if known(x) and not (x.dtype.kind == "f" and dtype.kind in "iu"):
            return number(x, dtype)
        text = text_of(x)
        if dtype.kind == "b":
            return self.let(f"{text} != 0", dtype)
        if x.dtype.kind == "f" and dtype.kind in "iu":
            wide = dtype if dtype.itemsize >= 4 else np.dtype("int32")
            if known(x):
                info = np.iinfo(dtype)
                return number(0 if np.isnan(x) else int(min(max(float(x), info.min), info.max)), dtype)
            found = self.let(f"to_{TYPES[str(wide)][2]}_{TYPES[str(x.dtype)][2]}({text})", wide)
            if wide is not dtype:
                low, high = (number(k, wide) for k in (np.iinfo(dtype).min, np.iinfo(dtype).max))
                found = self.converted(self.op("min", self.op("max", found, low), high), dtype)
            return found
        return self.let(f"({c_type(dtype)}){text}", dtype)

    def of_bits(self, x: Number, dtype: Any) -> Number:
        """The number whose bits are those of x."""
        dtype = np.dtype(dtype)
        if known(x):
            return np.asarray(x).view(dtype)[()]
        if x.dtype.kind == "f":
            x = self.let(f"BITS_{TYPES[str(x.dtype)][2]}({x})", f"uint{8 * x.dtype.itemsize}")
        if dtype.kind == "f":
            unsigned = self.converted(x, f"uint{8 * dtype.itemsize}")
            return self.let(f"OF_BITS_{TYPES[str(dtype)][2]}({unsigned})", dtype)
        return self.converted(x, dtype)

    def power(self, x: Number, n: int) -> Number:
        """A number to a known integer, by squaring."""
        if n < 0:
            return self.op("div", number(1, x.dtype), self.power(x, -n))
        found, square = number(1, x.dtype), x
        while n:
            if n & 1:
                found = square if known(found) and found == 1 else self.op("mul", found, square)
            n >>= 1
            square = self.op("mul", square, square) if n else square
        return found


def _folded(name: str, x: tuple[Number, ...]) -> Any:
    """An operation on known numbers; None where the program computes it."""
    with np.errstate(all="ignore"):
        if name in KNOWN:
            return KNOWN[name](*x)
        if name in ("div", "rem") and x[0].dtype.kind in "iu" and int(x[1]) != 0:
            quotient = abs(int(x[0])) // abs(int(x[1])) * (-1 if (x[0] < 0) != (x[1] < 0) else 1)
            return quotient if name == "div" else int(x[0]) - quotient * int(x[1])
        if name == "div" and x[0].dtype.kind == "f":
            return np.divide(*x)
        if name == "before":
            a, b = x
            return a < b or (b != b and a == a)
        if name == "is_finite":
            return np.isfinite(x[0])
    return None


# ---- primitives that act on each element alone


def _plain(name: str) -> Any:
    return lambda run, eqn, *x: run.op(name, *x)


def _select_n(run: Any, eqn: Any, which: Number, *cases: Number) -> Number:
    if which.dtype.kind == "b":
        return run.select(which, cases[1], cases[0])
    found = cases[0]
    for k, case in enumerate(cases[1:], 1):
        found = run.select(run.op("eq", which, number(k, which.dtype)), case, found)
    return found


def _round(run: Any, eqn: Any, x: Number) -> Number:
    return run.op("rint" if int(eqn.params["rounding_method"]) == 1 else "round", x)


def _reduce_precision(run: Any, eqn: Any, x: Number) -> Number:
    if np.finfo(x.dtype).nmant != eqn.params["mantissa_bits"]:
        raise Unsupported("reduce_precision")
    return x


ELEMENTWISE: dict[str, Callable[..., Number]] = {
    **{name: _plain(name) for name in EXPRESSIONS if name not in ("round", "rint", "before")},
    **{name: _plain(plain) for name, plain in TOTAL.items()},
    "bitcast_convert_type": lambda run, eqn, x: run.of_bits(x, eqn.params["new_dtype"]),
    "clamp": lambda run, eqn, low, x, high: run.op("min", run.op("max", x, low), high),
    "convert_element_type": lambda run, eqn, x: run.converted(x, eqn.params["new_dtype"]),
    "integer_pow": lambda run, eqn, x: run.power(x, eqn.params["y"]),
    "reduce_precision": _reduce_precision,
    "round": _round,
    "select_n": _select_n,
}

"""Edits of users' code between two runs: a key changes where results change, and stays where they stay.

Every row is a small module, an edit, and what the edit does. Keys are those of a store; results are played op by op
from the module as it is (`random_modules`), so that neither side knows of the other.
"""

import os
import re
import warnings
from functools import partial

import numpy as np
import pytest
from dealt import dealt
from random_modules import algorithm, key_of, loaded, outcome, random_edits

import jaxbandits as jb

# name -> definitions, the number that the algorithm uses, what is replaced, and by what
VALUES = {
    "a constant": ("LIMIT = 1.5", "LIMIT", "1.5", "2.5"),
    "the last bit of a constant": ("LIMIT = np.float32(1.5)", "LIMIT", "np.float32(1.5)", "np.nextafter(np.float32(1.5), np.float32(2))"),
    "a class constant": ("class C:\n    SIGN = 1.0", "C.SIGN", "1.0", "-1.0"),
    "a constant of a base class": ("class B:\n    SIGN = 1.0\nclass C(B): pass", "C().SIGN", "1.0", "-1.0"),
    "a constant of a nested class": ("class C:\n    class D:\n        SIGN = 1.0", "C.D.SIGN", "1.0", "-1.0"),
    "which class is inherited from": ("class A: X = 1.0\nclass B: X = 2.0\nclass C(A): pass", "C.X", "C(A)", "C(B)"),
    "a dataclass default": ("@dataclasses.dataclass\nclass C:\n    x: float = 1.0", "C().x", "= 1.0", "= 2.0"),
    "a dataclass field": ("@dataclasses.dataclass\nclass C:\n    x: list = dataclasses.field(default_factory=lambda: [1.0])", "C().x[0]", "[1.0]", "[2.0]"),
    "a frozen dataclass": ("@dataclasses.dataclass(frozen=True)\nclass C:\n    x: float = 1.0\nc = C()", "c.x", "= 1.0", "= 2.0"),
    "a NamedTuple default": ("class C(NamedTuple):\n    x: float = 1.0", "C().x", "= 1.0", "= 2.0"),
    "the order of a NamedTuple's fields": ("class C(NamedTuple):\n    x: float = 1.0\n    y: float = 2.0", "C(3.0)[0] + C().x", "C(3.0)[0]", "C(3.0)[1]"),
    "a property": ("class C:\n    @property\n    def x(self): return 1.0", "C().x", "1.0", "2.0"),
    "a cached property": ("class C:\n    @functools.cached_property\n    def x(self): return 1.0", "C().x", "1.0", "2.0"),
    "a static method": ("class C:\n    @staticmethod\n    def x(): return 1.0", "C.x()", "1.0", "2.0"),
    "a class method": ("class C:\n    S = 1.0\n    @classmethod\n    def x(cls): return cls.S", "C.x()", "1.0", "2.0"),
    "a method": ("class C:\n    def x(self, y): return y * 2.0", "C().x(params.rate)", "2.0", "3.0"),
    "a callable object": ("class C:\n    def __init__(self, y): self.y = y\n    def __call__(self): return self.y\nc = C(1.0)", "c()", "C(1.0)", "C(2.0)"),
    "a descriptor": ("class D:\n    def __get__(self, o, t): return 1.0\nclass C:\n    x = D()", "C.x", "1.0", "2.0"),
    "__getattr__ of a class": ("class C:\n    def __getattr__(self, n): return len(n) * 1.0", "C().ab", "len(n) * 1.0", "len(n) * 2.0"),
    "a metaclass": ("class M(type):\n    X = 1.0\nclass C(metaclass=M): pass", "C.X", "1.0", "2.0"),
    "slots": ("class C:\n    __slots__ = ('x',)\n    def __init__(self): self.x = 1.0\nc = C()", "c.x", "1.0", "2.0"),
    "an enum's value": ("class C(enum.Enum):\n    X = 1.0", "C.X.value", "1.0", "2.0"),
    "an IntEnum": ("class C(enum.IntEnum):\n    X = 1", "C.X * 1.0", "X = 1", "X = 2"),
    "enum.auto": ("class C(enum.Enum):\n    X = enum.auto()\n    Y = enum.auto()", "float(C.X.value)", "X = enum.auto()\n    Y = enum.auto()", "Y = enum.auto()\n    X = enum.auto()"),
    "a default argument": ("def f(x=1.0): return x", "f()", "1.0", "2.0"),
    "a keyword-only default": ("def f(*, x=1.0): return x", "f()", "1.0", "2.0"),
    "a default list": ("def f(x=[1.0]): return x[0]", "f()", "1.0", "2.0"),
    "a closure": ("def g(x):\n    def f(): return x\n    return f\nf = g(1.0)", "f()", "1.0", "2.0"),
    "a closure of a closure": ("def h(x):\n    def g():\n        def f(): return x\n        return f\n    return g()\nf = h(1.0)", "f()", "h(1.0)", "h(2.0)"),
    "a dict in a closure": ("def g(d):\n    return lambda: d['a']\nf = g({'a': 1.0})", "f()", "1.0", "2.0"),
    "a nonlocal": ("def g():\n    n = 1.0\n    def add():\n        nonlocal n\n        n = n + 1.0\n    add()\n    return lambda: n\nf = g()", "f()", "n + 1.0", "n + 2.0"),
    "a partial's argument": ("f = partial(lambda x: x, 1.0)", "f()", "1.0", "2.0"),
    "a partial's keyword": ("f = partial(lambda x: x, x=1.0)", "f()", "1.0", "2.0"),
    "a lambda in a list": ("F = [lambda: 1.0, lambda: 2.0]", "F[0]()", "1.0", "3.0"),
    "the order of a list": ("F = [1.0, 2.0]", "F[0]", "[1.0, 2.0]", "[2.0, 1.0]"),
    "a function by name": ("def f(): return 1.0\ndef g(): return 2.0\nNAME = 'f'", "globals()[NAME]()", "'f'", "'g'"),
    "a function in a dict": ("F = {'a': jnp.tanh}", "F['a'](params.rate)", "jnp.tanh", "jnp.sin"),
    "a function of NumPy": ("F = np.tanh", "F(0.5)", "np.tanh", "np.sin"),
    "the order of a dict": ("D = {'a': 1.0, 'b': 2.0}", "sum((i + 1) * x for i, x in enumerate(D.values()))", "{'a': 1.0, 'b': 2.0}", "{'b': 2.0, 'a': 1.0}"),
    "a defaultdict": ("import collections\nD = collections.defaultdict(lambda: 1.0)", "D['a']", "1.0", "2.0"),
    "a ChainMap": ("import collections\nD = collections.ChainMap({'a': 1.0}, {'a': 2.0})", "D['a']", "{'a': 1.0}, {'a': 2.0}", "{'a': 2.0}, {'a': 1.0}"),
    "a set": ("S = {1.0, 2.0}", "max(S)", "{1.0, 2.0}", "{1.0, 3.0}"),
    "membership": ("S = ('slow', 'fast')", "1.0 if 'fast' in S else 2.0", "'fast')", "'last')"),
    "text": ("MODE = 'fast'", "1.0 if MODE == 'fast' else 2.0", "'fast'\n", "'slow'\n"),
    "bytes": ("B = b'\\x00\\x00\\x80?'", "np.frombuffer(B, np.float32)[0]", "\\x80?", "\\x00@"),
    "a function's attribute": ("def f(): return f.x\nf.x = 1.0", "f()", "1.0", "2.0"),
    "a bound builtin": ("f = {'a': 1.0}.get", "f('a')", "1.0", "2.0"),
    "a bound method of an array": ("f = np.array([1.0, 2.0]).sum", "f()", "1.0", "3.0"),
    "an operator object": ("import operator\nf = operator.itemgetter(0)", "f((1.0, 2.0))", "itemgetter(0)", "itemgetter(1)"),
    "an array": ("X = np.array([1.0, 2.0])", "X[1]", "2.0", "3.0"),
    "an array of jax": ("X = jnp.array([1.0, 2.0])", "X[1]", "2.0", "3.0"),
    "an array as a whole": ("X = np.arange(300.0)", "jnp.sum(jnp.asarray(X, jnp.float32)) * 1e-4", "300.0", "301.0"),
    "the order of an array": ("X = np.arange(6.0).reshape(2, 3)", "X[0, 1]", "reshape(2, 3)", "reshape(2, 3, order='F')"),
    "a mask": ("X = np.ma.masked_array([1.0, 2.0], [False, True])", "X.sum()", "[False, True]", "[True, False]"),
    "the index of a Series": ("import pandas\nX = pandas.Series([1.0, 2.0], index=['a', 'b'])", "X['a']", "['a', 'b']", "['b', 'a']"),
    "a ragged list": ("X = [[1.0], [2.0, 3.0]]", "X[1][0] + len(X[0])", "[[1.0], [2.0, 3.0]]", "[[1.0, 2.0], [2.0]]"),
    "a ragged array": ("X = np.array([[1.0], [2.0, 3.0]], object)", "X[1][0]", "[2.0, 3.0]", "[3.0, 3.0]"),
    "a structured array": ("X = np.array([(1.0, 2.0)], [('a', float), ('b', float)])", "X['a'][0]", "[('a', float), ('b', float)]", "[('b', float), ('a', float)]"),
    "an interpolator": ("from jax.scipy.interpolate import RegularGridInterpolator\nf = RegularGridInterpolator((jnp.arange(2.0),), jnp.array([1.0, 2.0]))", "f(jnp.array([0.5], jnp.float32))[0]", "[1.0, 2.0]", "[1.0, 3.0]"),
    "an interpolator of SciPy": ("from scipy.interpolate import interp1d\nf = interp1d([0.0, 1.0], [1.0, 2.0])", "float(f(0.5))", "[1.0, 2.0]", "[1.0, 3.0]"),
    "a polynomial": ("f = np.polynomial.Polynomial([1.0, 2.0])", "f(2.0)", "2.0]", "3.0]"),
    "a Fraction": ("from fractions import Fraction\nX = Fraction(1, 3)", "float(X)", "(1, 3)", "(2, 3)"),
    "a Decimal": ("from decimal import Decimal\nX = Decimal('1.5')", "float(X)", "1.5", "2.5"),
    "a seed": ("X = np.random.default_rng(1).normal()", "X", "rng(1)", "rng(2)"),
    "a key": ("KEY = jax.random.key(1)", "jax.random.uniform(KEY, dtype=jnp.float32)", "key(1)", "key(2)"),
    "a key's generator": ("KEY = jax.random.key(1)", "jax.random.uniform(KEY, dtype=jnp.float32)", "key(1)", "key(1, impl='rbg')"),
    "the path of a draw": ("", "draws.child('a').uniform(t[0])", "child('a')", "child('b')"),
    "the law of a draw": ("", "draws.uniform(t[0])", "uniform", "laplace"),
    "the play of a draw": ("", "draws.uniform(t[0])", "t[0])", "t[0] + 1)"),
    "how bits are split": ("def f(key):\n    with jax.threefry_partitionable(True):\n        return jax.random.uniform(key, (3,), jnp.float32)[2]", "f(jax.random.wrap_key_data(jnp.stack([t[0], t[0]]).astype(jnp.uint32)))", "(True)", "(False)"),
    "an operator": ("def f(x): return x + 1.5", "f(params.rate)", "x + 1.5", "x * 1.5"),
    "a comparison": ("def f(x): return jnp.where(x < 6, 1.0, 2.0)", "f(t[0])", "x < 6", "x <= 2"),
    "the order of a sum": ("def f(x): return (x * 0.3 + 1e8) - 1e8", "f(params.rate)", "(x * 0.3 + 1e8) - 1e8", "x * 0.3 + (1e8 - 1e8)"),
    "a type": ("def f(x): return x.astype(jnp.float32)", "f(params.rate / 3)", "jnp.float32", "jnp.float16).astype(jnp.float32"),
    "an int and a float": ("X = 3", "jnp.asarray(X) / 2 if isinstance(X, float) else jnp.asarray(X) // 2", "X = 3", "X = 3.0"),
    "branches of `where`": ("def f(x): return jnp.where(x > 2, 1.0, 2.0)", "f(t[0])", "1.0, 2.0", "2.0, 1.0"),
    "a comprehension's filter": ("X = [1.0, 2.0, 3.0]", "sum(x for x in X if x > 1.5)", "x > 1.5", "x > 2.5"),
    "a slice": ("X = np.arange(5.0)\nS = slice(1, 3)", "X[S].sum()", "slice(1, 3)", "slice(1, 4)"),
    "star arguments": ("def f(*a, **k): return a[0] + k['b']\nX = (1.0, 2.0)", "f(*X, b=2.0)", "b=2.0", "b=3.0"),
    "code in text": ("S = {'__name__': 'm'}\nexec('def f(): return 1.0', S)", "S['f']()", "return 1.0", "return 2.0"),
    "what is pickled": ("import pickle\nX = pickle.dumps(1.0)", "pickle.loads(X)", "1.0", "2.0"),
    "a decorator": ("def twice(f): return lambda: 2.0 * f()\n@twice\ndef g(): return 1.0", "g()", "2.0 * f()", "3.0 * f()"),
    "what a decorator wraps": ("def twice(f):\n    @functools.wraps(f)\n    def g(): return 2.0 * f()\n    return g\n@twice\ndef h(): return 1.0", "h()", "return 1.0", "return 2.0"),
    "lru_cache": ("@functools.lru_cache\ndef f(x): return x * 2.0", "f(1.0)", "2.0", "3.0"),
    "singledispatch": ("@functools.singledispatch\ndef f(x): return 1.0\n@f.register\ndef _(x: str): return 2.0", "f('a')", "2.0", "3.0"),
    "a generator": ("def f():\n    yield 1.0", "next(f())", "1.0", "2.0"),
    "try and except": ("def f():\n    try: return {}['a']\n    except KeyError: return 1.0", "f()", "1.0", "2.0"),
    "a global that is written": ("X = 0.0\ndef f():\n    global X\n    X = 1.0\nf()", "X", "1.0", "2.0"),
    "del and another value": ("X = 1.0\nY = 2.0\nX = Y", "X", "X = Y", "X = -Y"),
    "jit": ("@jax.jit\ndef f(x): return x * 2.0", "f(params.rate)", "2.0", "3.0"),
    "a static argument of jit": ("@partial(jax.jit, static_argnums=1)\ndef f(x, n): return x * n", "f(params.rate, 2.0)", "rate, 2.0", "rate, 3.0"),
    "vmap": ("f = jax.vmap(lambda x, y: x * y, in_axes=(0, None))\nX = jnp.arange(3, dtype=jnp.float32)", "f(X, 2 * X + 1)[2, 1]", "in_axes=(0, None)", "in_axes=(None, 0)"),
    "what vmap maps": ("f = jax.vmap(jnp.sin)", "f(jnp.ones(3, jnp.float32))[0]", "jnp.sin", "jnp.cos"),
    "scan": ("def f(x): return jax.lax.scan(lambda c, _: (c * 1.5, None), x, None, length=3)[0]", "f(params.rate)", "1.5", "2.5"),
    "the length of a scan": ("def f(x): return jax.lax.scan(lambda c, _: (c * 1.5, None), x, None, length=3)[0]", "f(params.rate)", "length=3", "length=2"),
    "what a scan reads": ("X = np.array([1.0, 2.0], np.float32)\ndef f(x): return jax.lax.scan(lambda c, y: (c * y, None), x, X)[0]", "f(params.rate)", "2.0]", "3.0]"),
    "fori_loop": ("def f(x): return jax.lax.fori_loop(0, 3, lambda i, c: c * 1.5, x)", "f(params.rate)", "0, 3", "0, 2"),
    "while_loop": ("def f(x): return jax.lax.while_loop(lambda c: c < 7, lambda c: c * 1.5, x)", "f(params.rate)", "c < 7", "c < 3"),
    "cond": ("def f(x): return jax.lax.cond(x > 0.1, lambda: x * 2.0, lambda: x * 3.0)", "f(params.rate)", "2.0", "4.0"),
    "switch": ("def f(x): return jax.lax.switch(1, [lambda x: x, lambda x: 2 * x, lambda x: 3 * x], x)", "f(params.rate)", "switch(1,", "switch(2,"),
    "custom_jvp": ("@jax.custom_jvp\ndef f(x): return x * 2.0\n@f.defjvp\ndef _(p, t): return f(p[0]), t[0] * 5.0", "f(params.rate)", "x * 2.0", "x * 3.0"),
    "a rule of custom_jvp": ("@jax.custom_jvp\ndef f(x): return x * 2.0\n@f.defjvp\ndef _(p, t): return f(p[0]), t[0] * 5.0", "jax.grad(f)(jnp.asarray(params.rate))", "t[0] * 5.0", "t[0] * 6.0"),
    "custom_vjp": ("@jax.custom_vjp\ndef f(x): return x * 2.0\nf.defvjp(lambda x: (f(x), None), lambda r, g: (g * 5.0,))", "f(params.rate)", "x * 2.0", "x * 3.0"),
    "a rule of custom_vjp": ("@jax.custom_vjp\ndef f(x): return x * 2.0\nf.defvjp(lambda x: (f(x), None), lambda r, g: (g * 5.0,))", "jax.grad(f)(jnp.asarray(params.rate))", "g * 5.0", "g * 6.0"),
    "custom_vmap": ("@jax.custom_batching.custom_vmap\ndef f(x): return x * 2.0\n@f.def_vmap\ndef _(n, b, x): return x * 2.0, True", "f(state[0, 0] + wave(t[0], draws.seed, 0))", "return x * 2.0, True", "return x * 3.0, True"),
    "a rule of custom_vmap for one argument": ("@jax.custom_batching.custom_vmap\ndef f(x, y): return x * y\n@f.def_vmap\ndef _(n, b, x, y): return (x * y if all(b) else x * y * 2.0), True", "f(wave(t[0], draws.seed, 0), 1.0)", "x * y * 2.0", "x * y * 3.0"),
    "numpy_callback's place": ("def f(x): return x", "f(params.rate)", "return x", "return x + 1"),
    "linear algebra": ("X = np.array([[2.0, 1.0], [1.0, 2.0]], np.float32)", "jnp.linalg.inv(jnp.asarray(X))[0, 0]", "[[2.0", "[[3.0"),
    "a gather": ("X = jnp.arange(6, dtype=jnp.float32)", "jnp.take(X, t[0], mode='clip')", "mode='clip'", "mode='wrap'"),
    "a scatter": ("X = jnp.arange(6, dtype=jnp.float32)", "X.at[1].set(params.rate)[1] + X.at[2].add(1.0)[2]", ".add(1.0)", ".mul(1.0)"),
    "sorting": ("X = jnp.array([3.0, 1.0, 2.0], jnp.float32)", "jnp.sort(X)[0]", "jnp.sort(X)", "jnp.sort(X, descending=True)"),
    "a reduction": ("X = jnp.array([3.0, 1.0, 2.0], jnp.float32)", "jnp.max(X)", "jnp.max", "jnp.min"),
    "a default of Params": ("", "params.rate", "rate: Any = 0.5", "rate: Any = 0.25"),
    "another default of Params": ("", "params.rate", "bias: Any = 0.0", "bias: Any = 0.25"),
    "an argument of Params": ("", "params.rate", "Params(), Guarantee", "Params(bias=1.0), Guarantee"),
    "the client": ("", "1.0", "return reward[0]\n", "return 1 - reward[0]\n"),
    "the server": ("", "1.0", "step = params.rate * (message", "step = params.rate * (0.25 - message"),
    "the first state": ("", "1.0", "jnp.zeros((num_arms, 2), draws.dtype)", "jnp.ones((num_arms, 2), draws.dtype)"),
    "ties": ("", "0.0", "argmax(state[:, 0]", "jnp.int32(2) - argmax(state[::-1, 0]"),
    "diagnostics": ("", "1.0", '"total": jnp.sum(state)', '"total": jnp.max(state)'),
    "the name of a diagnostic": ("", "1.0", '"total"', '"sum"'),
    "one more diagnostic": ("", "1.0", '{"total": jnp.sum(state)}', '{"total": jnp.sum(state), "zero": jnp.zeros(())}'),
    "the trusted third party": ("def relay(params, draws, t, message, play): return message * 0.5", "1.0", "update, diagnose=diagnose)", "update, relay, diagnose=diagnose)"),
    "what the third party does": ("def relay(params, draws, t, message, play): return message * 0.5\n_Program = Program\ndef Program(*a, **k): return _Program(*a, relay=relay, **k)", "1.0", "* 0.5", "* 0.25"),
    "the end of a span": ("def close(params, state, draws, t): return state * 0.5", "1.0", "(Span(1, horizon),)", "(Span(1, horizon, close=True),)"),
    "what ends a span": ("def close(params, state, draws, t): return state * 0.5\n_Program = Program\ndef Program(*a, **k): return _Program(*a, close=close, **k)\n_Span = Span\ndef Span(*a): return _Span(*a, close=True)", "1.0", "* 0.5", "* 0.25"),
    "the schedule": ("", "1.0", "(Span(1, horizon),)", "(Span(2, horizon // 2),)"),
    "the length of a batch": ("", "1.0", "(Span(1, horizon),)", "(Span(2, horizon // 4, length=4),)"),
    "the world's rewards": ("", "1.0", "wave(t + 1, state, action) * params", "wave(t + 2, state, action) * params"),
    "the world's score": ("", "1.0", "Score(action, 1 - wave(", "Score(action, 2 - wave("),
    "the world's state": ("", "1.0", "return draws.seed\n", "return draws.seed + 1\n"),
    "the world's numbers": ("", "1.0", "truth, 3), 1.0,", "truth, 3), 0.5,"),
    "an int and a float as a parameter": ("", "2.0 + params.bias if jnp.asarray(params.bias).dtype.kind == 'f' else 1.0", "bias: Any = 0.0", "bias: Any = 0"),
    "the world's means": ("", "1.0", "Score(action, 1 - wave(t, state, action))", "Score(action)"),
}  # fmt: skip
# the same for edits after which nothing else is computed
NOTHING = {
    "a comment": ("LIMIT = 1.5", "LIMIT", "LIMIT = 1.5", "LIMIT = 1.5  # arms"),
    "a docstring": ("def f(): return 1.0", "f()", "return 1.0", "\n    'One.'\n    return 1.0"),
    "the module's docstring": ("LIMIT = 1.5", "LIMIT", "An algorithm of a user's.", "Mine."),
    "lines": ("LIMIT = 1.5", "LIMIT", "LIMIT = 1.5", "\n\n\nLIMIT = (\n    1.5\n)"),
    "a renamed constant": ("LIMIT = 1.5", "LIMIT", "LIMIT", "BOUND"),
    "a renamed function": ("def helper(x): return x * 1.5", "helper(params.rate)", "helper", "other"),
    "a renamed variable": ("def f(x):\n    y = x * 1.5\n    return y", "f(params.rate)", "y", "z"),
    "a renamed field": ("", "params.rate", "bias", "shift"),
    "a renamed class": ("class C:\n    X = 1.5", "C.X", "C", "D"),
    "a renamed step": ("", "1.0", "act", "play_arm"),
    "an annotation": ("def f(x): return x * 1.5", "f(params.rate)", "def f(x)", "def f(x: Any) -> Any"),
    "a function that is not used": ("def f(): return 1.0\ndef g(): return 2.0", "f()", "2.0", "3.0"),
    "a constant that is not used": ("X = 1.0\nY = 2.0", "X", "2.0", "3.0"),
    "a branch that is not taken": ("FAST = True\ndef f(): return 1.0 if FAST else 2.0", "f()", "2.0", "3.0"),
    "the order of definitions": ("def f(): return 1.0\ndef g(): return f()", "g()", "def f(): return 1.0\ndef g(): return f()", "def g(): return f()\ndef f(): return 1.0"),
    "another way to a constant": ("LIMIT = 1.5", "LIMIT", "LIMIT = 1.5", "LIMIT = 3 / 2"),
    "another way to a call": ("def f(x): return x * 1.5", "f(params.rate)", "def f(x): return x * 1.5", "f = lambda x: x * 1.5"),
    "a decorator that does nothing": ("def f(x): return x * 1.5", "f(0.5)", "def f", "@functools.lru_cache\ndef f"),
    "another import": ("import math\nX = math.pi", "X", "import math\nX = math.pi", "from math import pi\nX = pi"),
    "a check": ("def f(x): return x * 1.5", "f(params.rate)", "return x", "assert x is not None; return x"),
    "a name for the profiler": ("def f(x): return x * 1.5", "f(params.rate)", "return x * 1.5", "\n    with jax.named_scope('f'): return x * 1.5"),
    "the derivative of what is not derived": ("@jax.custom_jvp\ndef f(x): return x * 2.0\n@f.defjvp\ndef _(p, t): return f(p[0]), t[0] * 5.0", "f(params.rate)", "t[0] * 5.0", "t[0] * 6.0"),
    "a renamed jit": ("@jax.jit\ndef helper(x): return x * 2.0", "helper(params.rate)", "helper", "other"),
    "the algorithm's name": ("", "1.0", '("mine", 1, (num_arms,))', '("best", 1, ())'),
    "the algorithm's config": ("", "1.0", '{"horizon": horizon}', '{"horizon": horizon, "note": 3}'),
}  # fmt: skip
assert len(VALUES) > 120


def pair(definitions, value, old, new):
    text = algorithm(definitions, value)
    assert old in text
    return text, re.sub(rf"\b{old}\b", new, text) if old.isidentifier() else text.replace(old, new, 1)


@pytest.fixture(scope="module")
def outcomes():
    """Every module that was looked at, once."""
    return {}


def seen(outcomes, folder, text):
    if text not in outcomes:
        outcomes[text] = outcome(folder, {"mine.py": text})
    return outcomes[text]


@pytest.mark.parametrize("name", dealt(VALUES, 2))
def test_an_edit_that_changes_results_changes_the_key(name, outcomes, tmp_path):
    before, after = (seen(outcomes, tmp_path / str(i), text) for i, text in enumerate(pair(*VALUES[name])))
    assert not before.nameless and not after.nameless
    assert before.results != after.results and before.key != after.key


@pytest.mark.parametrize("name", NOTHING)
def test_an_edit_that_changes_nothing_keeps_the_key(name, outcomes, tmp_path):
    before, after = (seen(outcomes, tmp_path / str(i), text) for i, text in enumerate(pair(*NOTHING[name])))
    assert before.results == after.results and before.key == after.key


# ---- several files, and what a module reads

USE = algorithm("import helper", "helper.X")
FILES = {
    "a helper module": ({"mine.py": USE, "helper.py": "X = 1.0"}, "helper.py", "X = 2.0"),
    "pkg.sub": (
        {"mine.py": algorithm("import pkg.sub", "pkg.sub.X"), "pkg/__init__.py": "", "pkg/sub.py": "X = 1.0"},
        "pkg/sub.py", "X = 2.0",
    ),
    "a module of a module": ({"mine.py": USE, "helper.py": "from deep import X", "deep.py": "X = 1.0"}, "deep.py", "X = 2.0"),
    "an import inside a function": (
        {"mine.py": algorithm("def f():\n    import helper\n    return helper.X", "f()"), "helper.py": "X = 1.0"},
        "helper.py", "X = 2.0",
    ),
    "a module by name": (
        {"mine.py": algorithm("H = importlib.import_module('helper')", "H.X"), "helper.py": "X = 1.0"}, "helper.py", "X = 2.0",
    ),
    "a module in a closure": (
        {"mine.py": algorithm("import helper\ndef g(m): return lambda: m.X\nf = g(helper)", "f()"), "helper.py": "X = 1.0"},
        "helper.py", "X = 2.0",
    ),
    "a module in a dict": (
        {"mine.py": algorithm("import helper\nD = {'a': helper}", "D['a'].X"), "helper.py": "X = 1.0"}, "helper.py", "X = 2.0",
    ),
    "a module patched at import": (
        {"mine.py": algorithm("import helper\nhelper.X = 1.0", "helper.f()"), "helper.py": "X = 0.0\ndef f(): return X"},
        "mine.py", algorithm("import helper\nhelper.X = 2.0", "helper.f()"),
    ),
    "a module named like a standard one": (
        {"mine.py": algorithm("import colorsys", "colorsys.X"), "colorsys.py": "X = 1.0"}, "colorsys.py", "X = 2.0",
    ),
    "__getattr__ of a module": (
        {"mine.py": USE, "helper.py": "def __getattr__(n): return 1.0"}, "helper.py", "def __getattr__(n): return 2.0",
    ),
    "a file read at import": (
        {"mine.py": algorithm("X = float(open(os.path.dirname(__file__) + '/x.txt').read())", "X"), "x.txt": "1.0"},
        "x.txt", "2.0",
    ),
    "a file read while tracing": (
        {"mine.py": algorithm("def f(): return float(open(os.path.dirname(__file__) + '/x.txt').read())", "f()"), "x.txt": "1.0"},
        "x.txt", "2.0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("where", ["", "lib/site-packages"])
@pytest.mark.parametrize("name", FILES)
def test_an_edit_of_another_file_changes_the_key(name, where, tmp_path):
    files, file, text = FILES[name]
    folders = [{f"{where}/{f}".strip("/"): x for f, x in folder.items()} for folder in (files, files | {file: text})]
    before, after = (outcome(tmp_path / str(i), folder, path=where) for i, folder in enumerate(folders))
    assert before.results != after.results and before.key != after.key


def test_a_move_to_another_file_keeps_the_key(tmp_path):
    whole = algorithm("def f(x): return x * 1.5", "f(params.rate)")
    moved = {"mine.py": algorithm("from helper import f", "f(params.rate)"), "helper.py": "def f(x): return x * 1.5"}
    other = {"lib/site-packages/mine.py": whole}
    outcomes = [
        outcome(tmp_path / "a", {"mine.py": whole}),
        outcome(tmp_path / "b", moved),
        outcome(tmp_path / "c", other, path="lib/site-packages"),
        outcome(tmp_path / "d", {"another.py": whole}, name="another"),
    ]
    assert len(set(outcomes)) == 1


def test_an_environment_variable_read_at_import_is_seen(tmp_path, monkeypatch):
    text, outcomes = algorithm("X = float(os.environ['RATE_OF_MINE'])", "X"), []
    for i, rate in enumerate(("1.0", "2.0", "1.0")):
        monkeypatch.setenv("RATE_OF_MINE", rate)
        outcomes.append(outcome(tmp_path / str(i), {"mine.py": text}))
    assert outcomes[0] == outcomes[2] and outcomes[0].key != outcomes[1].key


def test_what_is_drawn_at_import_has_an_identity_and_what_is_drawn_while_tracing_has_none(tmp_path):
    imported = [
        outcome(tmp_path / f"a{i}", {"mine.py": algorithm("X = np.random.default_rng().random()", "X")})
        for i in range(2)
    ]
    assert imported[0].key != imported[1].key and imported[0].results != imported[1].results
    assert not imported[0].nameless
    for i, (definitions, value) in enumerate([
        ("", "np.random.default_rng().random()"),
        ("import time", "time.perf_counter()"),
        ("def f(x): return np.float32(2) * x", "jax.pure_callback(f, jax.ShapeDtypeStruct((), jnp.float32), params.rate, vmap_method='sequential')"),
        ("N = [0.0]\ndef f():\n    N[0] += 1\n    return N[0]", "f()"),
    ]):  # fmt: skip
        assert outcome(tmp_path / f"b{i}", {"mine.py": algorithm(definitions, value)}).nameless, value


# ---- environments, adversaries, and library parts that hold something of a user's

WORLD = (
    algorithm("", "1.0")
    + """

RATE = 1.0


def baseline(params, seed, times):
    return np.asarray(times) * RATE / 4 + (seed if SEEDED else 0)


SEEDED = True
world = world._replace(
    world=world.world._replace(baseline=baseline, seeded=SEEDED), facts={"num_arms": 3, "means": np.array([0.25, 0.5, 0.75])}
)


def corrupt(params, state, draws, t, payload, seen):
    return payload + params * 0.5, False, state


def law(params, values, probabilities, truth):
    return values, probabilities


adversary = Adversary(Attack(lambda params, draws: (), corrupt, law), 0.5, None, {})
"""
)
BASED = (
    algorithm("LIMIT = 1.5", "LIMIT")
    + """

from jaxbandits.protocol import Loss


def base(*, num_arms, horizon, more=1.0):
    part = jb.algorithms.exp3(num_arms=num_arms, horizon=horizon)

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(1 - reward[0] * 1.5)

    def act(params, state, draws, t, context):
        action, used, note = part.program.act(params, state, draws, t, context)
        return (action + OFFSET) % 3, used, note

    return part._replace(program=part.program._replace(encode=encode, act=act))


OFFSET = 1
mine = partial(jb.algorithms.private_batched, epsilon=0.5, base=base)
"""
)
CHANGED = (
    algorithm("", "1.0")
    + """


def mine(*, num_arms, horizon):
    part = jb.algorithms.exp3(num_arms=num_arms, horizon=horizon)
    CHANGE
    return part


world = jb.environments.bernoulli_arms(means=[0.25, 0.5, 0.75])
"""
)
PARTS = {
    "a baseline's number": (WORLD, "RATE = 1.0", "RATE = 2.0"),
    "a baseline's formula": (WORLD, "* RATE / 4", "* RATE / 8"),
    "whether it has a baseline": (WORLD, "baseline=baseline", "baseline=None"),
    "a seeded baseline": (WORLD, "(seed if SEEDED", "(2 * seed if SEEDED"),
    "whether the baseline is seeded": (WORLD, "SEEDED = True", "SEEDED = False"),
    "means of the facts": (WORLD, "0.75])", "0.5])"),
    "an adversary's function": (WORLD, "params * 0.5,", "params * 0.25,"),
    "an adversary's number": (WORLD, "law), 0.5,", "law), 0.25,"),
    "no adversary": (WORLD, "\nadversary = ", "\nnobody = "),
    "an adversary on messages": (WORLD, "\nadversary = ", "\nforger = "),
    "an adversary's mask": (WORLD, "+ params * 0.5, False", "+ params * 0.5 * draws.uniform(t), False"),
    "a base's constant": (BASED, "OFFSET = 1", "OFFSET = 2"),
    "a changed number": (CHANGED.replace("CHANGE", "part = part._replace(params=part.params._replace(learning_rate=0.5))"), "rate=0.5", "rate=0.25"),
    "a changed function": (CHANGED.replace("CHANGE", "part = part._replace(program=part.program._replace(encode=lambda *a, p=part.program: p.encode(*a)._replace(total=1.0 * a[6][0])))"), "1.0 * a", "2.0 * a"),
    "a changed schedule": (CHANGED.replace("CHANGE", "part = part._replace(schedule=(Span(1, horizon - 1 + 1),))"), "horizon - 1 + 1", "horizon + 1"),
    "an argument of the package's": (CHANGED.replace("CHANGE", "part = jb.algorithms.exp3(num_arms=3, horizon=horizon, mixing=0.5)"), "mixing=0.5", "mixing=0.25"),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_an_edit_of_a_part_changes_the_key(name, tmp_path):
    text, old, new = PARTS[name]
    assert old in text
    before, after = (outcome(tmp_path / str(i), {"mine.py": x}) for i, x in enumerate((text, text.replace(old, new))))
    assert before.results != after.results and before.key != after.key


def test_a_version_number_is_the_last_word(tmp_path):
    """What no trace and no first seeds show, such as a baseline that reads a file for a later seed."""
    for i, (old, new) in enumerate(
        [('("mine", 1,', '("mine", 2,'), ("law), 0.5, None, {})", "law), 0.5, None, {}, 2)")]
    ):
        before, after = (
            outcome(tmp_path / f"{i}{j}", {"mine.py": x}) for j, x in enumerate((WORLD, WORLD.replace(old, new)))
        )
        assert before.results == after.results and before.key != after.key


# ---- one process


def test_two_cells_of_an_integer_and_a_float_stay_apart(tmp_path):
    value = "2.0 + params.bias if jnp.asarray(params.bias).dtype.kind == 'f' else 1.0"
    text = algorithm("", value).replace("def mine(*, num_arms, horizon)", "def mine(*, num_arms, horizon, bias=0.0)")
    with loaded(tmp_path, {"mine.py": text.replace("Params(), ", "Params(bias=bias), ")}) as module:
        keys = [key_of(module, points=[{"bias": bias}])[0] for bias in (1, 1.0)]
        assert keys[0] != keys[1]
        settings = {
            "horizon": 12,
            "seeds": 8,
            "checkpoints": 2,
            "progress": False,
            "points": [{"bias": 1}, {"bias": 1.0}],
        }
        kept = jb.sweep(module.mine, module.world, **settings, store=tmp_path / "store")
        assert not np.array_equal(kept.total.isel(point=0), kept.total.isel(point=1))


@pytest.mark.parametrize("callback", [False, True])
def test_a_value_changed_between_two_sweeps_is_read_anew(callback, tmp_path):
    """In memory, with a store, and in `simulate`;
    also where a callback leaves the program without a lasting identity.
    """
    value = (
        "jax.pure_callback(double, jax.ShapeDtypeStruct((), jnp.float32), params.rate, vmap_method='expand_dims') * C.X"
    )
    text = algorithm("class C: X = 1.0\ndef double(x): return np.float32(2) * x", value if callback else "C.X")
    settings = {"horizon": 12, "seeds": 8, "checkpoints": 2, "progress": False}
    with loaded(tmp_path, {"mine.py": text}) as module, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        totals = []
        for x in (1.0, 2.0):
            module.C.X = x
            stored = jb.sweep(module.mine, module.world, **settings, store=tmp_path / "store").total.values
            memory = jb.sweep(module.mine, module.world, **settings).total.values
            single = jb.simulate(partial(module.mine, horizon=12), module.world, seed=3).diagnostics["total"]
            np.testing.assert_array_equal(stored, memory)
            np.testing.assert_array_equal(single, stored[0, 3])
            totals.append(stored)
        assert not np.array_equal(*totals)


def test_nothing_is_compiled_again_for_what_did_not_change(tmp_path):
    from jaxbandits.sweeps.compilation.compiled import compiled

    settings = {"horizon": 12, "seeds": 8, "checkpoints": 2, "progress": False}
    with loaded(tmp_path, {"mine.py": algorithm("class C: X = 1.0", "C.X")}) as module:
        jb.sweep(module.mine, module.world, **settings)
        before = compiled.cache_info().misses
        jb.sweep(module.mine, module.world, **settings)
        assert compiled.cache_info().misses == before


# ---- random edits of random modules


def test_random_edits_never_find_old_results(tmp_path, capsys):
    """EDITS=2000 (`make fuzz`) for more of them."""
    number, seed = int(os.environ.get("EDITS", 50)), int(os.environ.get("EDITS_SEED", 0))
    tally = random_edits(number, seed, tmp_path)
    with capsys.disabled():
        print(f"\n{number} edits: " + ", ".join(f"{len(edits)} {name}" for name, edits in tally._asdict().items()))
    assert not tally.stale
    assert len(tally.changed) > number / 3 and len(tally.broken) < number / 8
    # only what is computed and never read, and what rounding hides, may change a key for nothing
    assert len(tally.needless) < number / 4
    assert {"_comment", "_unused", "_renamed"}.isdisjoint(tally.needless) and len(tally.kept) > number / 20

"""Settings of JAX and flags of its compilers: what a sweep runs under is what its keys say, however it was set."""

import contextlib
import contextvars
import itertools
import random
import sqlite3
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import fresh_process
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import core
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jax_config import use_config

import jaxbandits as jb
from jaxbandits.protocol import Algorithm, Guarantee, Program, Span
from jaxbandits.sweeps import plan
from jaxbandits.sweeps.compilation import settings
from jaxbandits.sweeps.compilation.program_digest import fingerprint
from jaxbandits.sweeps.execution import SweepRun
from jaxbandits.sweeps.identity import identify_cells
from jaxbandits.sweeps.sweep import prepare_sweep

ARMS = jb.environments.bernoulli_arms(means=[0.1, 0.5, 0.9])
RUN = {"horizon": 12, "seeds": 4, "checkpoints": 1}


def drawn(draws, t):
    """A number that settings change: it is drawn by JAX, and multiplied by a matrix."""
    noise = jax.random.bits(jax.random.key(1), (2, 2)).astype(draws.dtype)
    return jnp.dot(noise, noise * t.astype(draws.dtype))[0, 0]


def one(draws, t):
    return 1.0


def algorithm(number=drawn, arm=lambda draws, t: jnp.int32(0)):
    """A user's algorithm that plays an arm and adds up a number of every play."""

    @cache
    def program():
        return Program(
            init=lambda params, draws: jnp.zeros((), draws.dtype),
            act=lambda params, state, draws, t, context: (jnp.full(t.shape, arm(draws, t[0]), jnp.int32), None, ()),
            encode=lambda params, note, draws, t, context, action, reward, play: (),
            update=lambda params, state, draws, t, note, message, used: (
                state + jnp.asarray(number(draws, t), draws.dtype), (),
            ),
            diagnose=lambda params, state: {"total": state},
        )  # fmt: skip

    def mine(*, num_arms, horizon):
        return Algorithm(program(), (Span(1, horizon),), (), Guarantee(), ("mine", 1, ()), {"horizon": horizon})

    return mine


def key(part):
    laid_out = plan.plan({"x": part}, ARMS, **RUN)
    (name,) = identify_cells(laid_out, "cpu", stored=True)[1]
    return name


def totals(part, **more):
    result = jb.sweep(part, ARMS, **RUN, progress=False, **more)
    return result.total.values, result.pulls.values


def managed(values):
    """The same settings by context managers of this thread."""
    stack = contextlib.ExitStack()
    for name, value in values.items():
        stack.enter_context(jax.config._value_holders[name](value))
    return stack


# another value, where it is not the negated or next one
OTHERS = {
    "jax_default_matmul_precision": "highest", "jax_default_prng_impl": "rbg", "jax_optimization_level": "O1",
    "jax_memory_fitting_level": "O3", "jax_cpu_collectives_implementation": "mpi", "jax_use_magma": "off",
    "jax_explicit_x64_dtypes": "error",
    "jax_error_checking_behavior_nan": "raise", "jax_error_checking_behavior_divide": "raise",
    "jax_error_checking_behavior_oob": "raise", "jax_pjrt_client_create_options": "a:1",
}  # fmt: skip


def other_value(name, value):
    """Another value of a setting; None where a release of JAX has a text that is not known here."""
    if name in OTHERS or isinstance(value, str | None):
        return OTHERS.get(name)
    return not value if isinstance(value, bool) else value + 1


def test_every_setting_in_a_key_counts_alike_in_a_thread_in_its_workers_and_in_the_process():
    jnp.zeros(1).block_until_ready()  # a few cannot be set once JAX has started, and then not be in a key
    counted = {
        name: jax.config.values[name]
        for name, holder in jax.config._value_holders.items()
        if hasattr(holder, "get_global") and "cache" not in name
        and name not in settings._OF_A_SWEEP and not name.startswith(settings._BESIDE)
    }  # fmt: skip
    others = {name: other for name, value in counted.items() if (other := other_value(name, value)) is not None}
    before, found = settings.in_force(), set()

    def in_worker(given):
        with settings.use_settings(given):
            return settings.in_force()

    with ThreadPoolExecutor(1) as pool:
        for name, other in others.items():
            with managed({name: other}):
                here, given = settings.in_force(), settings.of_this_thread()
                assert pool.submit(settings.in_force).result() == before, name
            assert pool.submit(in_worker, given).result() == here, name
            with use_config({name: other}):
                assert settings.in_force() == pool.submit(settings.in_force).result() == here, name
            found.add(here)
    assert settings.in_force() == before
    assert len(found) == len(others) > 40 and before not in found


CHANGED = {
    "jax_threefry_partitionable": [True, False],
    "jax_default_prng_impl": ["threefry2x32", "rbg"],
    "jax_random_seed_offset": [0, 3],
    "jax_high_dynamic_range_gumbel": [False, True],
    "jax_default_matmul_precision": [None, "highest", "bfloat16"],
    "jax_softmax_custom_jvp": [False, True],
}


@pytest.mark.compiles(24)  # a number drawn under every combination of the settings that change it
def test_random_settings_have_one_key_however_they_are_set_and_never_that_of_other_results():
    rng, part, results = random.Random(1), algorithm(), {}
    combinations = [{name: rng.choice(x) for name, x in CHANGED.items()} for _ in range(50)]

    @cache
    def result(*values):
        chosen = dict(zip(list(CHANGED)[:3], values, strict=True))
        with use_config(chosen):
            return np.asarray(jax.jit(lambda: jax.random.bits(jax.random.key(1), (2, 2)))()).tobytes()

    for i, values in enumerate(combinations):
        parts = [jb.algorithms.ucb1, part][: 1 if i % 5 else 2]  # a user's is traced, which takes longer
        with managed(values):
            keys = list(map(key, parts))
        with use_config(values):
            assert keys == list(map(key, parts)), values
        numbers = result(*itertools.islice(values.values(), 3))
        assert all(results.setdefault(one, numbers) == numbers for one in keys), values
    assert len(set(results.values())) >= 6 and len(results) > 35


ENVIRONMENT = {
    "JAX_THREEFRY_PARTITIONABLE": "0", "JAX_DEFAULT_PRNG_IMPL": "rbg", "JAX_DEFAULT_MATMUL_PRECISION": "highest",
    "JAX_RANDOM_SEED_OFFSET": "3", "JAX_SOFTMAX_CUSTOM_JVP": "1", "JAX_HIGH_DYNAMIC_RANGE_GUMBEL": "1",
}  # fmt: skip


def test_the_environment_counts_as_the_process_does():
    """In a process of its own, which JAX reads its environment in."""
    script = "from jaxbandits.sweeps.compilation import settings; print(settings.in_force())"
    environment = fresh_process.environment(**ENVIRONMENT)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    values = {name: x[-1] for name, x in CHANGED.items()} | {"jax_default_matmul_precision": "highest"}
    with managed(values):
        assert done.stdout.strip() == settings.in_force()


@pytest.mark.compiles(24)  # two settings, each three sweeps
@pytest.mark.parametrize(("name", "value"), [("threefry_partitionable", False), ("default_prng_impl", "rbg")])
def test_a_context_manager_around_a_sweep_is_what_is_played_and_stored(name, value, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXBANDITS_CACHE", "off")
    part = algorithm(one, arm=lambda draws, t: jnp.argmax(jax.random.uniform(jax.random.key(t), (3,), np.float32)))
    before = totals(part)
    with getattr(jax, name)(value):
        inside = totals(part, store=tmp_path)
    with use_config({f"jax_{name}": value}):
        truth = totals(part)
        files = sorted(tmp_path.rglob("*.npz"))
        found = totals(part, store=tmp_path)
    assert sorted(tmp_path.rglob("*.npz")) == files and len(files) == 1
    for played in (inside, found):
        np.testing.assert_array_equal(played[0], truth[0])
        np.testing.assert_array_equal(played[1], truth[1])
    assert not np.array_equal(before[1], truth[1])


def test_programs_of_this_package_are_compiled_for_their_settings():
    """Inside a process too: nothing about its parts is traced, and JAX keeps what was compiled."""
    first = plan.plan(jb.algorithms.ucb1, ARMS, **RUN).groups[0].parts
    again = plan.plan(jb.algorithms.ucb1, ARMS, **RUN).groups[0].parts
    with jax.default_matmul_precision("highest"):
        other = plan.plan(jb.algorithms.ucb1, ARMS, **RUN).groups[0].parts
    assert first == again != other


FLAGS = """
import os, sys, jax.numpy as jnp
from jaxbandits.sweeps.compilation import settings
if sys.argv[1:]:
    jnp.ones(3).sum().block_until_ready()
    os.environ["XLA_FLAGS"] = sys.argv[1]
print(settings.in_force())
"""
FAST = "--xla_cpu_enable_fast_math=true"


def test_flags_count_where_they_are_in_force():
    def found(*late, **variables):
        done = fresh_process.run(FLAGS, *late, env=fresh_process.environment(XLA_FLAGS="") | variables)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip()

    plain = found()
    assert plain == found(FAST) == found(XLA_FLAGS="--xla_cpu_enable_fast_math=false")
    assert plain == found(XLA_FLAGS="--xla_force_host_platform_device_count=3 --xla_dump_hlo_as_text")
    variables = [
        {"XLA_FLAGS": FAST}, {"LIBTPU_INIT_ARGS": "--a=1"}, {"NVIDIA_TF32_OVERRIDE": "0"}, {"NVIDIA_TF32_OVERRIDE": "1"}
    ]  # fmt: skip
    assert len({plain, *(found(**one) for one in variables)}) == 5


CHOSEN = contextvars.ContextVar("CHOSEN", default=0)


@pytest.mark.parametrize("cache_of_programs", [True, False])
def test_a_users_functions_run_in_the_thread_that_called(cache_of_programs, tmp_path, monkeypatch):
    """A baseline too: context variables, thread-locals and connections of sqlite are those of that thread."""
    if not cache_of_programs:
        monkeypatch.setenv("JAXBANDITS_CACHE", "off")
    threads, local, table = set(), threading.local(), sqlite3.connect(":memory:")
    local.number = 2.0
    table.execute("create table numbers (x)")
    table.execute("insert into numbers values (0.5)")

    def number(draws, t):
        threads.add(threading.get_ident())
        return local.number * table.execute("select x from numbers").fetchone()[0]

    def arm(draws, t):
        threads.add(threading.get_ident())
        return CHOSEN.get()

    def baseline(params, seed, times):
        threads.add(threading.get_ident())
        return np.zeros(len(times)) + local.number

    environment = ARMS._replace(world=ARMS.world._replace(baseline=baseline))

    def run():
        CHOSEN.set(2)
        return jb.sweep(algorithm(number, arm), environment, **RUN, progress=False, store=tmp_path)

    result = contextvars.copy_context().run(run)
    assert threads == {threading.get_ident()}
    assert (result.total.values == 12).all() and (result.pulls.values[..., 2] == 12).all()


def test_what_was_named_is_what_runs(tmp_path):
    """Also where a function would give something else later: it reads a clock, a counter or a file."""
    asked = []

    def number(draws, t):
        asked.append(t)
        return 2.0 if named else 1.0

    named = False
    job = prepare_sweep(algorithm(number), ARMS, RUN, store=tmp_path, progress=False)
    named, before = True, len(asked)
    assert (SweepRun(job).dataset().total.values == 12).all() and len(asked) == before


def operation(name):
    """An operation of a user's own, and a function that sets what it multiplies by."""
    own = Primitive(name)
    own.def_abstract_eval(lambda x, *, name: core.ShapedArray(x.shape, x.dtype))
    factor = {"batch": 1.0}

    def over_lanes(arrays, axes, *, name):
        return own.bind(arrays[0], name=name) * factor["batch"], axes[0]

    def multiply(by, in_batches=1.0):
        rule = mlir.lower_fun(lambda x, *, name: x * by * len(name), multiple_results=False)
        mlir.register_lowering(own, rule)
        factor["batch"] = in_batches

    batching.primitive_batchers[own] = over_lanes
    return own, multiply


@pytest.mark.compiles(30)  # four sweeps of two calls
def test_operations_of_a_users_own_have_no_identity(tmp_path):
    """Their rules are read by no trace: neither a store nor this process keeps what they gave."""
    own, multiply = operation("add")  # a name of JAX's
    text = ["a"]
    part = algorithm(lambda draws, t: own.bind((t + draws.seed.astype(jnp.int32)).astype(draws.dtype), name=text[0]))
    found, said = [], []
    for edit in (lambda: multiply(1.0), lambda: multiply(2.0), lambda: multiply(2.0, 3.0), lambda: text.append("aa")):
        edit()
        text[0] = text[-1]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(totals(part, store=tmp_path)[0].max())
        said.append([str(x.message) for x in caught])
    assert [x / found[0] for x in found] == [1, 2, 2 * 3, 2 * 3 * 2]
    assert all(len(texts) == 1 and "neither JAX's nor this package's" in texts[0] for texts in said)


def test_operations_of_jax_and_of_this_package_have_an_identity():
    def known(x):
        x = jb.numerics.materialize(jnp.linalg.cholesky(x @ x.T + 3 * jnp.eye(2, dtype=x.dtype)))
        return jax.lax.scan(lambda c, _: (jnp.sort(c, axis=0), None), jax.nn.softmax(x), None, length=2)[0]

    assert fingerprint([jax.make_jaxpr(known)(np.ones((2, 2), np.float32))], [])

"""How many programs a test compiles: 12 at most, or the number of its marker `compiles`. Pages and docstrings may more.

Most of a suite's time is tracing and compiling, and most of what is compiled are single operations: jnp outside of a
compiled function, on shapes that differ from case to case. Oracles are NumPy (`numpy_draws`), and functions of the
package that run once are evaluated without a compiler (`uncompiled`).
"""

import gc

import jax
import pytest

BUDGET = 12
# Single operations that the package compiles when a process first uses them: which test pays for them depends on what
# ran before it in its process.
SHARED = 8
_compiled = 0
_looked = 0  # programs that had been compiled when the memory maps were counted last


def _count(event, duration, **_):
    global _compiled
    if event.endswith("backend_compile_duration"):  # also where the program comes from the cache on disk
        _compiled += 1


jax.monitoring.register_event_duration_secs_listener(_count)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    item.compiled_before = _compiled
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    result = yield
    if not isinstance(item, pytest.Function) or item.get_closest_marker("pages"):  # written for people
        return result
    marker = item.get_closest_marker("compiles")
    budget, programs = marker.args[0] if marker else BUDGET, _compiled - item.compiled_before
    if programs > budget + SHARED:
        pytest.fail(
            f"the test compiled {programs} programs, and may compile {budget} of its own (tests/compilations.py): "
            "use NumPy, `uncompiled`, or one jitted function with one shape",
            pytrace=False,
        )
    return result


def forget_programs():
    """Let all compiled programs go."""
    from jaxbandits.sweeps.compilation.compiled import functions_of_group

    functions_of_group.cache_clear()
    jax.clear_caches()
    gc.collect()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Compiled programs map memory, a process may have 65,530 maps, and one beyond them crashes.

    They are let go between two groups of tests (cases.py), and within one only where it has to be. To count maps takes
    milliseconds: once in a hundred programs is enough.
    """
    from jaxbandits.sweeps.compilation.compiled import memory_maps

    global _looked
    if _compiled < _looked + 100:
        return
    _looked, (taken, limit) = _compiled, memory_maps()
    same = nextitem is not None and nextitem.group == item.group
    if taken > (2 if same else 1) * limit // 3:
        forget_programs()

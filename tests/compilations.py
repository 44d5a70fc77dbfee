"""How many programs a test compiles: 12 at most, or the number of its marker `compiles`. Pages and docstrings may more.

Most of a suite's time is tracing and compiling, and most of what is compiled are single operations: jnp outside of a
compiled function, on shapes that differ from case to case. Oracles are NumPy (`numpy_draws`), and functions of the
package that run once are evaluated without a compiler (`uncompiled`).
"""

import jax
import pytest

BUDGET = 12
# Single operations that the package compiles when a process first uses them: which test pays for them depends on what
# ran before it in its process.
SHARED = 8
_compiled = 0


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

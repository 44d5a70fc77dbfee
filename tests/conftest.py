"""Settings of every test: strict dtype promotion, one place for compiled programs, forgotten after each file."""

import gc
import importlib
import os
from pathlib import Path

os.environ.setdefault("JAXBANDITS_CACHE", str(Path(__file__).parents[1] / ".venv" / "xla-cache"))

import jax
import pytest

# Tracing makes millions of small objects, and few of them in circles, which take time to look for.
gc.set_threshold(20_000, 50, 100)

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Programs are optimized less, and the slowest part of XLA's compiler for CPUs is left out.
LITTLE_OPTIMIZED = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
# Folders whose tests are about programs as users have them: their bits, how they are compiled, what they cost.
# A file elsewhere says so by `pytestmark = pytest.mark.fully_optimized`.
FULLY_OPTIMIZED = {"engine", "kernels", "pages", "sweeps"}
# Folders whose tests compile functions of their own and run them briefly: of those, too, little is optimized.
OWN_FUNCTIONS = {"environments", "estimators"}
# the functions that `jb.simulate` compiles one by one, with their static arguments
PIECES = {
    "begin_lane": (0, 3),
    "advance_lane": (0, 1),
    "close_span": (0,),
    "finish_lane": (0,),
    "watch_windows": (0, 1, 2),
}
# Files that take minutes: the others are dealt to what is idle after them.
LONG_FILES = (
    "engine/test_contract.py", "pages/test_docs.py", "privacy/test_audit.py", "pages/test_papers.py",
    "pages/test_notebooks.py", "linear/test_robust_linear_reference.py", "pages/test_benchmarks.py",
)  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """Long files first. What is marked `exhaustive` runs where it is asked for by that name (`make exhaustive`)."""
    items.sort(key=lambda item: not str(item.path).endswith(LONG_FILES))
    if "exhaustive" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("exhaustive")])
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # what lives as long as the process is not looked at again


@pytest.fixture(autouse=True, scope="module")
def _forget_programs():
    """Compiled programs map memory, a process may have 65,530 maps, and one beyond them crashes:
    a file's are let go at its end.
    """
    yield
    from jaxbandits.sweeps.compilation.compiled import compiled

    compiled.cache_clear()
    jax.clear_caches()
    gc.collect()


@pytest.fixture(scope="session")
def little_optimized():
    """The options of `LITTLE_OPTIMIZED` that the installed JAX has."""

    def known(name, value):
        try:
            jax.jit(lambda x: x).lower(1.0).compile(compiler_options={name: value})
        except Exception:  # another release, whose compiler has no such option
            return False
        return True

    return {name: value for name, value in LITTLE_OPTIMIZED.items() if known(name, value)}


@pytest.fixture(autouse=True, scope="module")
def _options(request):
    """Most files' programs take longer to compile than to run, and nobody looks at their last bits."""
    marked = request.node.get_closest_marker("fully_optimized")
    if marked is None and request.path.parent.name not in FULLY_OPTIMIZED:
        request.getfixturevalue("quickly_compiled")
    jax.config.update("jax_disable_most_optimizations", request.path.parent.name in OWN_FUNCTIONS)


@pytest.fixture(scope="module")
def quickly_compiled(little_optimized):
    """Programs of sweeps and simulations are optimized little in a file. Not for comparisons of bits with pinned
    results, other devices, other numbers of lanes or other engines.
    """
    compilation = importlib.import_module("jaxbandits.sweeps.compilation.compiled")
    simulate = importlib.import_module("jaxbandits.sweeps.simulate")
    compilation.compiled.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "WIDE_VECTORS", little_optimized)
        for name, static in PIECES.items():
            function = getattr(simulate, name).__wrapped__
            patch.setattr(simulate, name, jax.jit(function, static_argnums=static, compiler_options=little_optimized))
        yield
    compilation.compiled.cache_clear()

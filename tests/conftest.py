"""What holds for every test: settings, how programs are compiled, how many, and which tests a run takes (README.md)."""

import settings  # first: it sets the environment, which JAX reads once

# isort: split
import contextlib
import gc
import importlib
import os

import jax
import pytest
from jaxtyping import install_import_hook

pytest_plugins = ["compilations", "dealt", "cases", "quick", "planting"]

if os.environ.get("CHECK_ANNOTATIONS"):  # imports take seven times as long: in `make exhaustive` alone
    install_import_hook("jaxbandits", "checked_annotations.check")

# Tracing makes millions of small objects, and few of them in circles, which take time to look for.
gc.set_threshold(20_000, 50, 100)

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# the functions that `jb.simulate` compiles one by one, with their static arguments
PIECES = {"begin_lane": (0, 3), "advance_lane": (0, 1), "close_span": 0, "finish_lane": 0, "watch_windows": (0, 1, 2)}


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # what lives as long as the process is not looked at again


@contextlib.contextmanager
def compiled_with(options):
    """Inside, programs of sweeps and simulations are compiled with these options too."""
    compilation = importlib.import_module("jaxbandits.sweeps.compilation.compiled")
    one_lane = importlib.import_module("jaxbandits.sweeps.engines.one_lane")
    compilation.functions_of_group.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "WIDE_VECTORS", compilation.WIDE_VECTORS | options)
        for name, static in PIECES.items():
            function = getattr(one_lane, name).__wrapped__
            patch.setattr(one_lane, name, jax.jit(function, static_argnums=static, compiler_options=options))
        yield
    compilation.functions_of_group.cache_clear()


@pytest.fixture
def fully_optimized():
    """Programs of sweeps and simulations are compiled as a user has them: for tests of their bits."""
    with compiled_with(settings.FULLY_OPTIMIZED):
        yield

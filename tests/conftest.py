"""Settings of every test: strict dtype promotion, one place for compiled programs, forgotten after each file."""

import gc
import os
from pathlib import Path

os.environ.setdefault("JAXBANDITS_CACHE", str(Path(__file__).parents[1] / ".venv" / "xla-cache"))

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


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

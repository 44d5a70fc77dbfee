"""Settings of every test: strict dtype promotion, one place for compiled programs, small cases."""

import os
from pathlib import Path

os.environ.setdefault("JAXBANDITS_CACHE", str(Path(__file__).parents[1] / ".venv" / "xla-cache"))

import jax

jax.config.update("jax_numpy_dtype_promotion", "strict")

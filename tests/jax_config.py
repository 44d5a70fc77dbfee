"""Settings of JAX for a while."""

import contextlib
from typing import Any

import jax


@contextlib.contextmanager
def use_config(settings: dict[str, Any]):
    """Settings of the process, which are put back."""
    before = {name: jax.config.values[name] for name in settings}
    try:
        for name, value in settings.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)

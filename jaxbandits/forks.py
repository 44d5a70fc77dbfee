"""Processes that were forked after JAX was used: JAX's threads stay behind, and what waits for them waits for ever."""

import os
import sys

_after_use = False


def _note_fork() -> None:
    global _after_use
    if "jax" in sys.modules:
        from jaxbandits.jax_internals import backends_are_initialized

        _after_use = backends_are_initialized()


def refuse_fork() -> None:
    """RuntimeError in a process that was forked after JAX was used. One that was forked after an import works."""
    if _after_use:
        why = "this process was forked after JAX was used, and JAX's threads stayed behind: it would wait for ever"
        remedy = "start it by multiprocessing.get_context('spawn'), or use JAX in the forked processes alone"
        raise RuntimeError(f"{why}: {remedy}")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)

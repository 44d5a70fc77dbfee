"""Processes that were forked after JAX was used: JAX's threads stay behind, and what waits for them waits for ever."""

import contextlib
import os
import sys
import threading

forks: list[bool] = []  # of this process and those that it comes from: whether JAX was in use


def _note_fork() -> None:
    if "jax" in sys.modules:
        from jaxbandits.jax_internals import backends_are_initialized

        forks.append(backends_are_initialized())


def note_forks() -> None:
    """Note every fork from here on, and one that was before: JAX is in use, and of its threads there is none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_note_fork)
        with contextlib.suppress(OSError):  # a system that does not list threads
            of_python = {threading.get_native_id(), *(thread.native_id for thread in threading.enumerate())}
            if {*map(int, os.listdir("/proc/self/task"))} <= of_python:
                _note_fork()


def refuse_fork() -> None:
    """RuntimeError in a process that was forked after JAX was used. One that was forked after an import works."""
    if any(forks):
        why = "this process was forked after JAX was used, and JAX's threads stayed behind: it would wait for ever"
        remedy = "start it by multiprocessing.get_context('spawn'), or use JAX in the forked processes alone"
        raise RuntimeError(f"{why}: {remedy}")

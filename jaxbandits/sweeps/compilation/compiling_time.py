"""What compiling a program takes, from its size: said before a long one begins.

XLA compiles one core's program in time and memory that grow with its operations, hardly with what they are.
"""

import os
import warnings

from jax.extend.core import ClosedJaxpr

from jaxbandits.contract import operations
from jaxbandits.formatting import duration, size

# Measured on one core for programs of 600 to 7,000 operations: 0.8 to 1.6 ms and 45 to 95 kB an operation.
# docs/decisions.md#compiling-time
SECONDS = 0.0011
BYTES = 70_000
LONG = 300.0  # seconds
OF_LANES = 1.2  # operations of a program of many lanes over those of one lane's window, measured: 1.1 to 1.6


def number_of(program: ClosedJaxpr) -> int:
    """Operations of a program, with those of the functions and loops inside."""
    return sum(1 for _ in operations(program.jaxpr.eqns))


def expected(number: int) -> tuple[float, int]:
    """Seconds and bytes that compiling so many operations takes, about."""
    return number * SECONDS, number * BYTES


def warn_if_long(number: int) -> None:
    """Say so where a program takes over five minutes or half of this machine's memory, and what helps."""
    seconds, memory = expected(number)
    if seconds > LONG or 2 * memory > _memory():
        warnings.warn(
            f"compiling {number:,} operations takes about {duration(seconds)} and {size(memory)}: write Python loops "
            "over arms or features as array operations or with lax.fori_loop, or lower those sizes",
            RuntimeWarning,
            stacklevel=2,
        )


def _memory() -> float:
    """Bytes of this machine's memory; inf where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")

"""Private running sums: `counter`, and a file for each form of its noise."""

from jaxbandits.mechanisms.counters.counter import Counter, counter

__all__ = ["Counter", "counter"]

"""Searches over the numbers of parts, each trial a sweep: which attack costs an algorithm most."""

from jaxbandits.searching.worst_case import WorstCase, worst_case

__all__ = ["WorstCase", "worst_case"]

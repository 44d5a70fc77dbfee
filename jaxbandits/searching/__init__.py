"""Searches over the numbers of parts, each trial a sweep: the best settings, and the attack that costs most."""

from jaxbandits.searching.tune import tune
from jaxbandits.searching.tuning import Tuning
from jaxbandits.searching.worst_attack import WorstCase, worst_case

__all__ = ["Tuning", "WorstCase", "tune", "worst_case"]

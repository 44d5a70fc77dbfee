"""Sweeps: plan, compute what is missing, keep it, collect."""

from jaxbandits.sweeps.files import load, save
from jaxbandits.sweeps.job import SweepError
from jaxbandits.sweeps.local import cores
from jaxbandits.sweeps.run import sweep
from jaxbandits.sweeps.single import simulate

__all__ = ["SweepError", "cores", "load", "save", "simulate", "sweep"]

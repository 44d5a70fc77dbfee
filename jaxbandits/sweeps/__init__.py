"""Sweeps: plan, run, collect."""

from jaxbandits.sweeps.local import cores
from jaxbandits.sweeps.run import sweep
from jaxbandits.sweeps.single import simulate

__all__ = ["cores", "simulate", "sweep"]

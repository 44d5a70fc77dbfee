"""Sweeps: plan what to run, compute what is missing, store it, collect it."""

from jaxbandits.sweeps.engines.local import cores
from jaxbandits.sweeps.execution import SweepError
from jaxbandits.sweeps.simulate import simulate
from jaxbandits.sweeps.storage.dataset_file import load, save
from jaxbandits.sweeps.sweep import sweep
from jaxbandits.sweeps.until import until

__all__ = ["SweepError", "cores", "load", "save", "simulate", "sweep", "until"]

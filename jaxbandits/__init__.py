"""Batched simulation of private and robust bandits in JAX."""

from jaxbandits import adversaries, algorithms, environments, estimators, mechanisms, theory
from jaxbandits.environments.data import read_labelled, read_losses
from jaxbandits.reports import plot
from jaxbandits.reports.output import load, save
from jaxbandits.statistics import compare, slope, summary, table
from jaxbandits.sweeps import cores, simulate, sweep
from jaxbandits.version import __version__

__all__ = [
    "__version__",
    "adversaries",
    "algorithms",
    "compare",
    "cores",
    "environments",
    "estimators",
    "load",
    "mechanisms",
    "plot",
    "read_labelled",
    "read_losses",
    "save",
    "simulate",
    "slope",
    "summary",
    "sweep",
    "table",
    "theory",
]

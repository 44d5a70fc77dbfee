"""Batched simulation of private and robust bandits in JAX."""

from jaxbandits import (
    adversaries,
    algorithms,
    auditing,
    checking,
    environments,
    estimators,
    learners,
    mechanisms,
    privacy,
    theory,
)
from jaxbandits.auditing import audit
from jaxbandits.checking import check
from jaxbandits.contract import ContractError
from jaxbandits.environments.data import read_labelled, read_losses
from jaxbandits.reports import plot
from jaxbandits.statistics import compare, slope, summary, table
from jaxbandits.sweeps import SweepError, cores, load, save, simulate, sweep
from jaxbandits.version import __version__

__all__ = [
    "ContractError",
    "SweepError",
    "__version__",
    "adversaries",
    "algorithms",
    "audit",
    "auditing",
    "check",
    "checking",
    "compare",
    "cores",
    "environments",
    "estimators",
    "learners",
    "load",
    "mechanisms",
    "plot",
    "privacy",
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

"""Linear bandits with a fixed set of arms: elimination in batches of a G-optimal design."""

from jaxbandits.algorithms.linear.adac_gope import adac_gope
from jaxbandits.algorithms.linear.bogunovic_elimination import bogunovic_elimination
from jaxbandits.algorithms.linear.median_elimination import median_elimination
from jaxbandits.algorithms.linear.phased_elimination import phased_elimination
from jaxbandits.algorithms.linear.private_elimination import private_elimination
from jaxbandits.algorithms.linear.robust_elimination import robust_elimination
from jaxbandits.algorithms.linear.trimmed_elimination import trimmed_elimination

__all__ = [
    "robust_elimination",
    "phased_elimination",
    "bogunovic_elimination",
    "private_elimination",
    "adac_gope",
    "median_elimination",
    "trimmed_elimination",
]

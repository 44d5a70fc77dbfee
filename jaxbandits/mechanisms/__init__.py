"""Noise of privacy mechanisms and its scales; each takes its sensitivity, or the bound it follows from, explicitly."""

from jaxbandits.mechanisms.gaussian import gaussian_epsilon, gaussian_scale, zcdp_rho
from jaxbandits.mechanisms.laplace import laplace_scale
from jaxbandits.mechanisms.tree import Tree, tree, tree_epsilon, tree_levels, tree_scale

__all__ = [
    "Tree",
    "gaussian_epsilon",
    "gaussian_scale",
    "laplace_scale",
    "tree",
    "tree_epsilon",
    "tree_levels",
    "tree_scale",
    "zcdp_rho",
]

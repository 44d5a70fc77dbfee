"""Noise of privacy mechanisms and its scales; each takes its sensitivity, or the bound it follows from, explicitly."""

from jaxbandits.mechanisms.composition import (
    Event,
    compose,
    gaussian_event,
    gdp,
    guarantee,
    laplace_event,
    other_event,
    response_event,
    zcdp,
)
from jaxbandits.mechanisms.counters import Counter, counter
from jaxbandits.mechanisms.gaussian import gaussian_delta, gaussian_epsilon, gaussian_scale, zcdp_rho
from jaxbandits.mechanisms.pure import laplace_scale, randomized_response
from jaxbandits.mechanisms.shuffle import VectorCode, amplified_epsilon, shuffle_epsilon, vector_code, vector_epsilon
from jaxbandits.mechanisms.tree import Tree, tree, tree_epsilon, tree_event, tree_levels, tree_scale

__all__ = [
    "Counter", "Event", "Tree", "VectorCode", "amplified_epsilon", "compose", "counter", "gaussian_delta",
    "gaussian_epsilon", "gaussian_event", "gaussian_scale", "gdp", "guarantee", "laplace_event", "laplace_scale",
    "other_event", "randomized_response", "response_event", "shuffle_epsilon", "tree", "tree_epsilon", "tree_event",
    "tree_levels", "tree_scale", "vector_code", "vector_epsilon", "zcdp", "zcdp_rho",
]  # fmt: skip

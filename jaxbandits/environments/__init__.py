"""Environment factories: keyword arguments in, `protocol.Environment` out."""

from jaxbandits.environments.arms import bernoulli_arms, gaussian_arms
from jaxbandits.environments.contextual import contextual_linear
from jaxbandits.environments.data import classification, contextual_table
from jaxbandits.environments.experts import rotating_experts
from jaxbandits.environments.federated import federated_linear
from jaxbandits.environments.fitted import fitted
from jaxbandits.environments.gymnasium_loop import as_gymnasium as as_gymnasium
from jaxbandits.environments.heavy_tailed import lognormal_arms, pareto_arms, student_arms
from jaxbandits.environments.linear import linear_arms
from jaxbandits.environments.losses import (
    bernoulli_losses,
    fixed_gap_losses,
    lemma51_losses,
    loss_table,
    sinusoid_losses,
    switching_losses,
)
from jaxbandits.names import refuse_unknown

__all__ = [
    "bernoulli_arms", "gaussian_arms", "student_arms", "pareto_arms", "lognormal_arms", "linear_arms",
    "contextual_linear", "federated_linear", "loss_table", "fixed_gap_losses", "switching_losses",
    "sinusoid_losses", "bernoulli_losses", "lemma51_losses", "rotating_experts", "classification",
    "contextual_table", "fitted",
]  # fmt: skip
FURTHER = ["as_gymnasium"]  # public, and no factory
__getattr__ = refuse_unknown(__name__, __all__)

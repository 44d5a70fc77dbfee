"""Online learners of one lane over a ball, and the projection that one of them needs; `vmap` outside."""

from jaxbandits.learners.from_optax import from_optax
from jaxbandits.learners.learner import Learner
from jaxbandits.learners.maler import maler
from jaxbandits.learners.ogd import ogd
from jaxbandits.learners.project_ellipsoid import project_ellipsoid

__all__ = ["Learner", "from_optax", "maler", "ogd", "project_ellipsoid"]

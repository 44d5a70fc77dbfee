"""Off-policy evaluation: what a policy would earn, from a log of what another one chose."""

from jaxbandits.off_policy.learners import Policy, trained
from jaxbandits.off_policy.offline import Offline, offline

__all__ = ["Offline", "Policy", "offline", "trained"]

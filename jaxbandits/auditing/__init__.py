"""Privacy as a checked claim: confidence bounds on the epsilon that an algorithm truly spends."""

from jaxbandits.auditing.audit import Audit, Bound, Event, audit
from jaxbandits.auditing.confidence_bounds import Curve, claimed_curve, clopper_pearson, epsilon_lower
from jaxbandits.auditing.neighbours import Edit

__all__ = ["Audit", "Bound", "Curve", "Edit", "Event", "audit", "claimed_curve", "clopper_pearson", "epsilon_lower"]

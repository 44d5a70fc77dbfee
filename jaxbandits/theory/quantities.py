"""What the arguments of bounds and tunings mean and may be: annotations that `validation.declare` reads.

A name stands for the meaning; the argument has a name of its own. K arms, N experts or agents, T plays.
"""

import math
from typing import Annotated

from jaxbandits.declared import Axes, Doc, Ge, Gt, Le, Lt
from jaxbandits.typing import Scalar, Vector

Arms = Annotated[int, Ge(2), Doc("Number of arms K.")]
Experts = Annotated[int, Ge(2), Doc("Number of experts N.")]
Agents = Annotated[int, Ge(1), Doc("Number of agents N.")]
Features = Annotated[int, Ge(1), Doc("Number of features d.")]
Plays = Annotated[int, Ge(1), Doc("Number of plays T.")]
Length = Annotated[Scalar, Ge(1), Doc("Number of plays T, which need not be whole.")]
Batch = Annotated[int, Ge(1), Doc("Plays tau of a batch.")]
Means = Annotated[Vector, Axes(1, "array of float [K]"), Ge(0), Le(1), Doc("Expected rewards of the arms.")]
MaxGap = Annotated[
    Scalar, Ge(0), Doc("Largest gap between two means: the value is cut at max_gap T. The default: no cut.")
]
Epsilon = Annotated[Scalar, Gt(0), Le(math.inf), Doc("Privacy budget of the whole run; inf: no privacy.")]
FiniteEpsilon = Annotated[Scalar, Gt(0), Doc("Privacy budget of the whole run, finite.")]
SmallDelta = Annotated[Scalar, Gt(0), Le(0.4), Doc("Failure probability of the privacy claim.")]
FailureProb = Annotated[Scalar, Gt(0), Lt(1), Doc("Failure probability of the bound. The default: 1 / T.")]
NoiseScale = Annotated[Scalar, Ge(0), Doc("Sub-Gaussian scale of the rewards.")]
ThetaNorm = Annotated[Scalar, Gt(0), Doc("Bound B on the norm of theta.")]
CorruptionBound = Annotated[Scalar, Ge(0), Lt(0.5), Doc("Share of contaminated rewards that the learner believes in.")]
Corruption = Annotated[Scalar, Ge(0), Lt(0.5), Doc("True share of contaminated rewards or reports.")]

RegretBound = Annotated[float, Doc("The bound, in units of a reward. It may exceed T.")]
Order = Annotated[float, Doc("An order, in units of a reward: a line to draw, no guarantee. It may exceed T.")]


def cut_at_max_gap(bound: Scalar, horizon: Scalar, max_gap: Scalar | None) -> float:
    """A bound cut at max_gap T, where a largest gap is given."""
    return float(bound if max_gap is None else min(bound, max_gap * horizon))

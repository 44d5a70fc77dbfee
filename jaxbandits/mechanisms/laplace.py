"""The scale of Laplace noise (Dwork, McSherry, Nissim and Smith 2006). `jaxbandits.random.Draws.laplace` draws it."""

import math
from typing import Annotated

from annotated_doc import Doc

from jaxbandits.declared import Positive
from jaxbandits.mechanisms.gaussian import Epsilon
from jaxbandits.validation import checked


@checked(source="Dwork, McSherry, Nissim and Smith 2006")
def laplace_scale(
    sensitivity: Annotated[Positive, Doc("Largest L1 change of the release between neighbouring inputs.")],
    epsilon: Epsilon,
) -> Annotated[float, Doc("The scale b; 0.0 without noise.")]:
    """Scale of Laplace noise that makes a release epsilon-private: sensitivity / epsilon.

    Notes: Noise drawn in floating point simulates the mechanism; it is not a certified release.

    >>> laplace_scale(1.0, 0.5)
    2.0
    >>> laplace_scale(1.0, float("inf"))
    0.0
    """
    return 0.0 if math.isinf(epsilon) else float(sensitivity / epsilon)

"""The Laplace mechanism (Dwork, McSherry, Nissim and Smith 2006)."""

import math

from jaxbandits.validation import number


def laplace_scale(sensitivity, epsilon) -> float:
    """Scale b = sensitivity / epsilon of Laplace noise that makes an L1-sensitive release epsilon-private.

    sensitivity > 0: largest L1 change of the release between neighbouring inputs. epsilon in (0, inf]: inf is no noise, 0.0.
    Raises ValueError outside. Noise drawn in floating point simulates the mechanism; it is not a certified release.

    >>> laplace_scale(1.0, 0.5)
    2.0
    >>> laplace_scale(1.0, float("inf"))
    0.0
    """
    sensitivity = number("sensitivity", sensitivity, 0.0, open_low=True)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    return 0.0 if math.isinf(epsilon) else sensitivity / epsilon

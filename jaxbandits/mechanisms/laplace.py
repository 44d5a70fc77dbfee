"""The scale of Laplace noise (Dwork, McSherry, Nissim and Smith 2006). `jaxbandits.random.Draws.laplace` draws it."""

import math

from jaxbandits.typing import Scalar
from jaxbandits.validation import number


def laplace_scale(sensitivity: Scalar, epsilon: Scalar) -> float:
    """Scale of Laplace noise that makes a release epsilon-private: sensitivity / epsilon.

    Parameters
    ----------
    sensitivity : float
        Largest L1 change of the release between neighbouring inputs, > 0.
    epsilon : float
        Privacy budget, in (0, inf]. inf: no noise.

    Returns
    -------
    float
        The scale b; 0.0 without noise.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    Noise drawn in floating point simulates the mechanism; it is not a certified release.

    References
    ----------
    Dwork, McSherry, Nissim and Smith 2006

    Examples
    --------
    >>> laplace_scale(1.0, 0.5)
    2.0
    >>> laplace_scale(1.0, float("inf"))
    0.0
    """
    sensitivity = number("sensitivity", sensitivity, 0.0, open_low=True)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    return 0.0 if math.isinf(epsilon) else sensitivity / epsilon

"""Budgets of corruption, on the host. Formulas: `docs/formulas/robust_frontier.md#robust-frontier-budgets`."""

from jaxbandits.typing import Scalar
from jaxbandits.validation import number


def budget_of_share(share: Scalar, horizon: Scalar, size: Scalar) -> float:
    """The budget that a share of corrupted rewards amounts to on average: share * horizon * size.

    Huber's share is no budget: how many rewards are hit is random, and nothing bounds how far each is moved. The number
    tells which `total` of `budgeted` to compare with which `corruption` of `huber`.

    Parameters
    ----------
    share : float
        Chance that a reward is corrupted, in [0, 1].
    horizon : float
        Number of plays T, at least 1.
    size : float
        How far a corrupted reward is moved, in units of a reward, greater than 0.

    Returns
    -------
    float
        The expected corruption C, in units of a reward.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    Ours: `docs/formulas/robust_frontier.md#robust-frontier-budgets`.

    Examples
    --------
    >>> budget_of_share(0.01, 20_000, 0.5)
    100.0
    """
    share, horizon = number("share", share, 0.0, 1.0), number("horizon", horizon, 1)
    return share * horizon * number("size", size, 0.0, open_low=True)

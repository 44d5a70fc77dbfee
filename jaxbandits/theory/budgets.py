"""Budgets of corruption, on the host. Formulas: `docs/formulas/robust_frontier.md#robust-frontier-budgets`."""

from jaxbandits.declared import Positive, Probability
from jaxbandits.theory.quantities import Length
from jaxbandits.validation import checked


@checked
def budget_of_share(share: Probability, horizon: Length, size: Positive) -> float:
    """The budget that a share of corrupted rewards amounts to on average: share * horizon * size.

    Huber's share is no budget: how many rewards are hit is random, and nothing bounds how far each is moved. The number
    tells which `total` of `budgeted` to compare with which `corruption` of `huber`.

    Parameters
    ----------
    share
        Chance that a reward is corrupted.
    size
        How far a corrupted reward is moved, in units of a reward.

    References
    ----------
    Ours: `docs/formulas/robust_frontier.md#robust-frontier-budgets`.

    Examples
    --------
    >>> budget_of_share(0.01, 20_000, 0.5)
    100.0
    """
    return float(share * horizon * size)

"""DP-KLUCB (Azize et al. 2025): an optimistic index by a divergence that knows the noise."""

from typing import Literal

from jaxbandits.algorithms.stochastic import growing_batches
from jaxbandits.algorithms.stochastic.private_divergence import counted_upper_index, upper_index
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import Array, Float, Scalar
from jaxbandits.validation import factory


def printed(
    params: growing_batches.Params,
    mean: Float[Array, " K"],
    pulls: Float[Array, " K"],
    batches: Float[Array, " K"],
    log_t: Float[Array, ""],
) -> Float[Array, " K"]:
    """The largest mean q with d_eps(p, q) <= log t / n [K], on the scale -log(1 - q)."""
    return upper_index(mean, log_t / pulls, params.epsilon)


def coupled(
    params: growing_batches.Params,
    mean: Float[Array, " K"],
    pulls: Float[Array, " K"],
    batches: Float[Array, " K"],
    log_t: Float[Array, ""],
) -> Float[Array, " K"]:
    """The largest mean q with D_m(p, q; n) <= log t [K], on the scale -log(1 - q)."""
    return counted_upper_index(mean, log_t / pulls, pulls, batches, params.epsilon)


INDICES: dict[str, growing_batches.Index] = {"printed": printed, "coupled": coupled}


@factory
def dp_klucb(
    *,
    num_arms: int,
    horizon: int,
    epsilon: Scalar,
    batch_ratio: Scalar = 2.0,
    first_batch: int = 1,
    index: Literal["printed", "coupled"] = "printed",
) -> Algorithm:
    """Play the arm of largest private index in batches that grow, and release one noisy sum a batch.

    Each arm is played for its first batch, in index order. Then the arm of the largest q with d_eps(p, q) <= ln t / n
    is played until its pulls reach the next of n_1, n_2, ..., and the sum of the batch is released with Laplace noise.
    Sums are not forgotten: an arm's mean p is that of all its batches and noises, over its n pulls, clipped to [0, 1].

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. Filled in from the sweep.
    epsilon : float
        Privacy budget, in (0, inf]; at inf there is no noise.
    batch_ratio : float
        alpha > 1: n_(m+1) is alpha n_m, rounded up, and at least n_m + 1.
    first_batch : int
        n_1, at least 1. For figures ceil(10 / epsilon) with `batch_ratio=1.5` is advised.
    index : {"printed", "coupled"}
        "coupled" replaces n d_eps(p, q) by D_m(p, q; n), which counts the m noises on the sum [static].

    Returns
    -------
    Algorithm
        epsilon-private in the central model for rewards that differ in one play: each reward enters one release.

    Raises
    ------
    ValueError
        For an argument outside its range.

    Warnings
    --------
    The regret theorem is asymptotic in T. With a ratio near 1 and a small epsilon many early batches put many noises on
    few samples, and a run may end on a wrong arm (22% of them at epsilon = 0.1 with ratio 1.1, DP-IMED, T = 1e5).

    Notes
    -----
    Rewards are clipped to [0, 1]; NaN counts as 0. Ties go to the lowest index. A batch that the horizon cuts is played
    and not released.

    References
    ----------
    Azize, Wu, Honda, Orabona, Ito and Basu 2025 (arXiv 2505.05613): the abstract was read, the index and the noise in a
    detailed summary; the batches' lengths and `index="coupled"` are ours,
    `docs/formulas/private_frontier.md#dp-klucb`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> algorithm = jb.algorithms.dp_klucb(num_arms=3, horizon=20, epsilon=0.5, batch_ratio=1.5)
    >>> [int(n) for n in algorithm.params.targets[:8]]
    [1, 2, 3, 5, 8, 12, 18, 27]
    """
    return growing_batches.algorithm_of_index(
        "dp_klucb", INDICES, index, num_arms, horizon, epsilon, batch_ratio, first_batch, version=2
    )
